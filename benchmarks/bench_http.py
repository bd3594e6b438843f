"""Measures the hot path side by side: a bare asyncio client, our client, the runner over it, and the general clients.

    python benchmarks/bench_http.py [--cases 1000] [--concurrency 64]

The agent is a process of its own on loopback that answers after 50 ms. Each client is a process of its own too, so that
CPU time and memory are whole: interpreter, imports and all. Clients that are not installed are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

DELAY = 0.05
ANSWER = json.dumps(
    {"output": "The answer is 42, as the tool says.", "tool_calls": [{"name": "lookup", "arguments": {"q": "x"}}]}
).encode()
QUESTION = json.dumps({"messages": [{"role": "user", "content": "hello " * 20}]}).encode()
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class Agent(asyncio.Protocol):
    """Answers every request after a delay, on any number of connections."""

    def connection_made(self, transport):
        self.transport = transport
        self.buffer = b""

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ANSWER)
            asyncio.get_running_loop().call_later(DELAY, self.transport.write, answer + ANSWER)


async def serve():
    server = await asyncio.get_running_loop().create_server(Agent, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def bare(port, cases, concurrency):
    """The same requests and nothing else: the floor."""
    todo = iter(range(cases))
    durations = []

    async def work():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in todo:
            start = time.perf_counter()
            writer.write(HEAD % len(QUESTION) + QUESTION)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 "), head
            json.loads(await reader.readexactly(int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])))
            durations.append(time.perf_counter() - start)
        writer.close()

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return durations


async def spread(ask, cases, concurrency):
    """Asks ``cases`` times, ``concurrency`` at once; ``ask`` gives the body."""
    todo = iter(range(cases))
    durations = []

    async def work():
        for _ in todo:
            start = time.perf_counter()
            json.loads(await ask())
            durations.append(time.perf_counter() - start)

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return durations


async def ours(port, cases, concurrency):
    from gate.system.http import Client

    durations = []
    async with Client(limit=concurrency) as client:

        async def ask():
            answer = await client.request("POST", f"http://127.0.0.1:{port}/", body=QUESTION)
            durations.append(answer.duration)
            return answer.body

        await spread(ask, cases, concurrency)
    return durations


async def runner(port, cases, concurrency):
    from gate.agents.base import create, parse_options
    from gate.model import Case, Turn
    from gate.pipeline.execute import Job, execute

    kind, options = parse_options({"http": f"http://127.0.0.1:{port}/", "concurrency": concurrency})
    jobs = (Job(Case(f"case-{n}", (Turn("hello " * 20),)), 1) for n in range(cases))
    async with create(kind, options, root=Path(), environment={}) as agent:
        finished = execute(agent, jobs, concurrency=concurrency, timeout=60, retries=2)
        return [trial.duration async for trials in finished for trial in trials if trial.error is None]


async def httpx(port, cases, concurrency):
    import httpx

    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    async with httpx.AsyncClient(limits=limits, timeout=None) as client:

        async def ask():
            return (await client.post(f"http://127.0.0.1:{port}/", content=QUESTION)).content

        return await spread(ask, cases, concurrency)


async def httpcore(port, cases, concurrency):
    import httpcore

    async with httpcore.AsyncConnectionPool(max_connections=concurrency) as client:

        async def ask():
            headers = {"content-length": str(len(QUESTION))}
            url = f"http://127.0.0.1:{port}/"
            return (await client.request("POST", url, content=QUESTION, headers=headers)).content

        return await spread(ask, cases, concurrency)


async def aiohttp(port, cases, concurrency):
    """Timed by the library's own hooks: from the connection taken to the last byte read."""
    import aiohttp

    durations = []

    async def taken(_session, context, _params):
        context.trace_request_ctx.append(time.perf_counter())

    hooks = aiohttp.TraceConfig()
    hooks.on_connection_create_end.append(taken)
    hooks.on_connection_reuseconn.append(taken)
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, trace_configs=[hooks]) as client:

        async def ask():
            started = []
            async with client.post(f"http://127.0.0.1:{port}/", data=QUESTION, trace_request_ctx=started) as answer:
                body = await answer.read()
            durations.append(time.perf_counter() - started[-1])
            return body

        await spread(ask, cases, concurrency)
    return durations


CLIENTS = {"bare": bare, "ours": ours, "runner": runner, "aiohttp": aiohttp, "httpx": httpx, "httpcore": httpcore}


def one(name, port, cases, concurrency, files):
    """Runs one client in this process and prints its figures as JSON."""
    if files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    start = time.perf_counter()
    durations = asyncio.run(CLIENTS[name](port, cases, concurrency))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "answered": len(durations),
        "wall": time.perf_counter() - start,
        "cpu": usage.ru_utime + usage.ru_stime,
        "mb": usage.ru_maxrss / 1024,
        "median": statistics.median(durations),
    }
    print(json.dumps(figures))


def measure(name, port, cases, concurrency, files=0):
    argv = [sys.executable, __file__, "--one", name, "--port", str(port), "--files", str(files)]
    argv += ["--cases", str(cases), "--concurrency", str(concurrency)]
    figures = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    limit = f" ({files} files)" if files else ""
    cells = [
        f"{name}{limit}",
        cases,
        concurrency,
        figures["answered"],
        f"{figures['wall']:.2f}",
        f"{figures['cpu']:.2f}",
    ]
    cells += [f"{figures['mb']:.0f}", f"{1000 * figures['median']:.1f}"]
    print("|", " | ".join(map(str, cells)), "|", flush=True)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--one", choices=CLIENTS)
    parser.add_argument("--port", type=int)
    parser.add_argument("--files", type=int, default=0)
    given = parser.parse_args()
    if given.one:
        one(given.one, given.port, given.cases, given.concurrency, given.files)
        return
    code = f"import asyncio, runpy; asyncio.run(runpy.run_path({__file__!r})['serve']())"
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline())
        print("| client | cases | concurrency | answered | wall s | CPU s | MB | median ms |\n" + "|---" * 8 + "|")
        for name in CLIENTS:
            if name in ("bare", "ours", "runner") or importlib.util.find_spec(name):
                measure(name, port, given.cases, given.concurrency)
        for cases in (10, 100):
            for name in ("bare", "ours", "runner", *(["aiohttp"] if importlib.util.find_spec("aiohttp") else [])):
                measure(name, port, cases, min(cases, given.concurrency))
        measure("runner", port, given.cases, given.concurrency, files=256)
        measure("runner", port, given.cases, 512, files=256)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
