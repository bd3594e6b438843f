"""Runs the gate for half an hour against an agent on loopback, 256 trials at once, and watches its memory.

    python benchmarks/soak.py [--minutes 30] [--concurrency 256] [--delay 2]

Stops by itself: the run has a budget of minutes. Prints resident memory minute by minute, and one line of JSON.

What grows with each trial is what the decision pairs and tests at the end, about 200 bytes by ``tracemalloc``: the
trial itself (120), the tuple of its turns (48), its duration (24) and its place in the list (8). Scores, digests and
usage that are alike are shared, and everything that was said is in the record alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HTTP = Path(__file__).parent / "bench_http.py"
CASES = 1000


def project(folder: Path, minutes: float, concurrency: int, trials: int) -> None:
    """A suite of one-turn cases whose agent is behind ``AGENT_URL``."""
    cases = [
        {"id": f"case-{n}", "input": f"question {n}", "tools": [{"name": "lookup", "args": {"q": "x"}}]}
        for n in range(CASES)
    ]
    (folder / "suite.json").write_text(json.dumps({"cases": cases}))
    (folder / "gate.yaml").write_text(
        f"suite: suite.json\nagent: {{http: '${{AGENT_URL}}', concurrency: {concurrency}}}\n"
        f"baseline: {{store: none}}\ntrials: {trials}\nbudget: {{minutes: {minutes}}}\n"
        "criteria: {tool_trajectory_avg_score: {match_type: IN_ORDER, threshold: 0.9}}\n"
    )


def serve(delay: float) -> tuple[subprocess.Popen[str], int]:
    code = f"import asyncio, runpy; m = runpy.run_path({str(HTTP)!r}); m['Agent'].data_received.__globals__['DELAY'] = "
    code += f"{delay}; asyncio.run(m['serve']())"
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    return server, int(server.stdout.readline())


def resident(pid: int) -> tuple[float, int]:
    """Megabytes and open files of a process; zeros once it has gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return (int(found[1]) / 1024 if found else 0.0), sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0.0, 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--delay", type=float, default=2.0, help="seconds that the agent takes")
    given = parser.parse_args()
    trials = int(1.5 * given.minutes * 60 * given.concurrency / given.delay / CASES) + 2
    server, port = serve(given.delay)
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            project(folder, given.minutes, given.concurrency, trials)
            print(json.dumps(watch(folder, port, given)))
    finally:
        server.terminate()
        server.wait()


def watch(folder: Path, port: int, given: argparse.Namespace) -> dict[str, object]:
    """One run, sampled every 5 seconds."""
    environment = {**os.environ, "AGENT_URL": f"http://127.0.0.1:{port}/"}
    argv = [sys.executable, "-m", "gate", "run", "--record", "record.jsonl", "--quiet"]
    started = time.monotonic()
    run = subprocess.Popen(argv, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    samples: list[tuple[float, float, int]] = []
    while run.poll() is None:
        time.sleep(5)
        samples.append((time.monotonic() - started, *resident(run.pid)))
        if len(samples) % 12 == 0:
            print(f"{samples[-1][0] / 60:5.1f} min  {samples[-1][1]:6.1f} MB  {samples[-1][2]} files", flush=True)
    steady = [sample for sample in samples if 60 < sample[0] < given.minutes * 60]
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = (folder / "record.jsonl").read_text().splitlines()
    trials = [line for line in lines if line.startswith('{"case":')]
    return {
        "minutes": given.minutes,
        "concurrency": given.concurrency,
        "delay_s": given.delay,
        "exit_code": run.returncode,
        "trials": len(trials),
        "errors": sum('"error":[' in line for line in trials),
        "mb_after_one_minute": round(steady[0][1], 1) if steady else None,
        "mb_at_the_end": round(steady[-1][1], 1) if steady else None,
        "bytes_per_trial": round((steady[-1][1] - steady[0][1]) * 2**20 / len(trials)) if steady else None,
        "most_open_files": max((files for _, _, files in samples), default=0),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
    }


if __name__ == "__main__":
    main()
