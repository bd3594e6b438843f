"""A typical repository's history, with recordings and without: what each change runs, calls and costs, and its verdict.

    python benchmarks/world_history.py [--chains 5] [--cases 100] [--suites 200] [--only TEXT]
                                       [--write docs/dev/evidence/world.md]

A chain is a git repository with the `gate` command: a push to the default branch, which is measured and stored, and one
change of every kind from it, each on a branch. It is played twice from the same seed: with `world:` in gate.yaml, and
without. The agent asks a model twice for each case, by the variable OPENAI_BASE_URL; the model is a server of its own
on loopback that answers each case right with a true pass rate, by chance, and counts what it is asked. `gate` runs in
processes that are forked from one that has imported it. The second table has many small suites, a baseline each, with
the command called in this process and one worker of the agent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import page
from click.testing import CliRunner
from flow import EXPECTED, FILLER, IDENTITY
from simulate import BREAKABLE, SUITES, _rates

from gate.commands.main import cli
from tests import warm

SMALL = 20
INPUT_USD, OUTPUT_USD = 3e-6, 15e-6
"""The price of a token that is assumed."""
CHARS_A_TOKEN = 4
REFUNDS = (3, 9, 15, 21)
"""Of each 25 cases, those that are offered the tool of which the description changes: 16 of 100."""


@dataclass(frozen=True)
class Change:
    """One kind of change: what of the repository it replaces, and what it breaks."""

    name: str
    file: str
    before: str
    now: str
    breaks: bool = False
    """True if the model fails one case from then on; of those that see the change."""


CHANGES: Mapping[str, Change] = {
    "code": Change("the code alone: a remark, and a variable's name", "agent.py", "said", "told"),
    "tool": Change("one tool's description, which 16 of 100 cases see", "tools.json", "Pays an order", "Refunds it"),
    "tool-broke": Change("the same, and one of them broke", "tools.json", "Pays an order", "Gives it", breaks=True),
    "prompt": Change("the system prompt", "prompt.txt", "You answer", "You briefly answer"),
    "model": Change("another model, as good", "agent.py", '"model-1"', '"model-2"'),
    "code-broke": Change("the code alone: one case broke", "agent.py", "LOST = None", "LOST = {lost}"),
}
WANTED = {True: ("regressed",), False: ("pass", "inconclusive")}
BREAKING = ("tool-broke", "code-broke")

PROMPT = "You answer customers of a shop.\n" + "\n".join(
    f"Rule {n}: " + " ".join(Random(f"rule {n}").choices(FILLER, k=20)) + "." for n in range(40)
)
TOOLS = [
    {"type": "function", "function": {"name": name, "description": told, "parameters": {"type": "object"}}}
    for name, told in (("look_up", "Finds where an order is."), ("refund", "Pays an order back to its customer."))
]
CONFIG = """\
suite: suite.json
agent:
  python: agent:answer
  env: [OPENAI_BASE_URL]
"""
CRITERIA = "criteria: {response_match_score: 0.5}\n"
AGENT = """\
import json, os, urllib.request
from pathlib import Path

HERE = Path(__file__).parent
MODEL = "model-1"
LOST = None
PROMPT = (HERE / "prompt.txt").read_text()
TOOLS = {tool["function"]["name"]: tool for tool in json.loads((HERE / "tools.json").read_text())}


def ask(messages, tools):
    body = json.dumps({"model": MODEL, "messages": messages, "tools": [TOOLS[name] for name in tools]}).encode()
    asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
    asked.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(asked) as answered:
        return json.load(answered)["choices"][0]["message"]


def answer(message):
    tools = ["look_up", "refund"] if "pay back" in message else ["look_up"]
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": message}]
    said = ask(messages, tools)
    calls = [call["function"]["name"] for call in said["tool_calls"]]
    messages += [said, {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "on its way"}]
    final = ask(messages, tools)["content"]
    lost = LOST is not None and message.endswith(f" {LOST}?")
    return {"output": "" if lost else final, "tool_calls": [{"name": name, "arguments": {}} for name in calls]}
"""

# --- the model ------------------------------------------------------------------------------------


class Model:
    """Answers as a model does: otherwise each time. Told which job asks, so that the same seed is the same table."""

    def __init__(self) -> None:
        self.job: dict[str, Any] = {}
        self.asked: Counter[int] = Counter()
        self.calls = 0
        self.usd = 0.0

    def take(self, path: str, body: bytes) -> dict[str, Any]:
        if path == "/job":
            told = {"calls": self.calls, "usd": self.usd}
            self.job, self.asked, self.calls, self.usd = json.loads(body), Counter(), 0, 0.0
            return told
        asked = json.loads(body)
        said = self._message(asked)
        size = len(json.dumps(said))
        self.calls += 1
        self.usd += (len(body) * INPUT_USD + size * OUTPUT_USD) / CHARS_A_TOKEN
        return {"choices": [{"message": said}], "usage": {"prompt_tokens": len(body) // CHARS_A_TOKEN}}

    def _message(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        found = re.search(r"order number (\d+)", asked["messages"][1]["content"])
        assert found is not None
        case = int(found[1])
        self.asked[case] += 1
        rng = Random(f"{self.job['name']}:{case}:{self.asked[case]}")
        words = " ".join(rng.sample(FILLER, 6))
        if len(asked["messages"]) == 2:
            call = {"id": f"call_{rng.randrange(10**16):016}", "type": "function"}
            function = {"name": "look_up", "arguments": json.dumps({"order": case})}
            return {"role": "assistant", "content": words, "tool_calls": [{**call, "function": function}]}
        lost = case == self.job["lost"] and self.job["sees"] in json.dumps(asked["tools"])
        right = not lost and rng.random() < self.job["rates"][case]
        return {"role": "assistant", "content": f"{EXPECTED.format(n=case)} {words.split()[0]}" if right else words}


def serve(port_to: Any) -> None:
    """The model's process."""
    model = Model()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                said = json.dumps(model.take(head.split(b" ")[1].decode(), await reader.readexactly(length))).encode()
                form = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                writer.write(form % len(said) + said)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(one, "127.0.0.1", 0, backlog=256)
        port_to.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@contextmanager
def modelled() -> Iterator[str]:
    """The model's address."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


# --- a repository ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """One job's end."""

    kind: str
    world: bool
    verdict: str
    same: float
    """Share of the cases in which nothing that the model sees changed; 0 without recordings."""
    runs: float
    """Runs a case that asked the model, on both sides: each asks twice."""
    calls: int
    usd: float


class Chain:
    """A repository and its jobs."""

    def __init__(self, folder: Path, seed: int, cases: int, url: str, *, world: bool, inside: bool = False) -> None:
        self.folder, self.seed, self.cases, self.url, self.world = folder, seed, cases, url, world
        self.inside = inside
        """True if the command is called in this process, and the agent has one worker."""
        self.rates = _rates(SUITES["typical"], cases, Random(f"history:{seed}"))
        rng, steady = Random(f"history:{seed}:lost"), [n for n, rate in enumerate(self.rates) if rate >= BREAKABLE]
        self.lost = {"tool-broke": rng.choice([n for n in steady if n % 25 in REFUNDS] or steady)}
        self.lost["code-broke"] = rng.choice(steady)

    def git(self, *words: str) -> None:
        subprocess.run(
            ["git", *words], cwd=self.folder, env={**os.environ, **IDENTITY}, check=True, capture_output=True
        )

    def start(self) -> None:
        self.folder.mkdir()
        listed = [
            {
                "id": f"order-{n:03d}",
                "input": f"{'Please pay back' if n % 25 in REFUNDS else 'Where is'} order number {n}?",
                "tools": [{"name": "look_up"}],
                "response": EXPECTED.format(n=n),
            }
            for n in range(self.cases)
        ]
        world = f"world: {{store: {self.folder}-recordings}}\n" if self.world else ""
        files = {
            "suite.json": json.dumps({"cases": listed}),
            "gate.yaml": CONFIG + ("  concurrency: 1\n" if self.inside else "") + CRITERIA + world,
            "agent.py": AGENT,
            "prompt.txt": PROMPT,
            "tools.json": json.dumps(TOOLS, indent=1),
            ".gitignore": ".gate/\n__pycache__/\nresult.json\n",
        }
        for name, text in files.items():
            (self.folder / name).write_text(text)
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")

    def gate(self, *words: str) -> None:
        environment = {**os.environ, **IDENTITY, "OPENAI_BASE_URL": f"{self.url}/v1"}
        for name in [name for name in environment if name.startswith(("GITHUB_", "GITLAB_", "CI", "GATE_"))]:
            del environment[name]
        if self.inside:
            os.chdir(self.folder)
            os.environ["OPENAI_BASE_URL"] = environment["OPENAI_BASE_URL"]
            invoked = CliRunner().invoke(cli, list(words))
            code, said = invoked.exit_code, f"{invoked.output}{invoked.exception}"
        else:
            done = warm.run(["-m", "gate", *words], cwd=self.folder, environment=environment)
            code, said = done.returncode, done.stdout + done.stderr
        if code not in (0, 1, 2):
            raise SystemExit(f"gate {' '.join(words)}: exit {code}\n{said}")

    def told(self, kind: str) -> dict[str, Any]:
        """Tells the model whose job begins; returns what the last one cost."""
        lost = self.lost[kind] if kind == "tool-broke" else None
        sees = CHANGES[kind].now if kind in CHANGES else ""
        job = {"name": f"{self.seed}:{self.world}:{kind}", "rates": self.rates, "lost": lost, "sees": sees}
        asked = urllib.request.Request(f"{self.url}/job", json.dumps(job).encode())
        with urllib.request.urlopen(asked) as answered:
            found: dict[str, Any] = json.load(answered)
            return found

    def push(self) -> Ran:
        self.told("push")
        self.gate("run", "-q", "--json", "result.json")
        self.gate("baseline", "save")
        return self._read("push")

    def change(self, kind: str) -> Ran:
        change = CHANGES[kind]
        self.git("checkout", "-q", "-B", kind, "main")
        path = self.folder / change.file
        text = path.read_text()
        assert change.before in text
        path.write_text(text.replace(change.before, change.now.format(lost=self.lost.get(kind))))
        if change.file == "agent.py":
            path.write_text(path.read_text() + f"# {kind}\n")
        self.git("commit", "-q", "-a", "-m", kind)
        self.told(kind)
        self.gate("run", "-q", "--against", "main", "--json", "result.json")
        return self._read(kind)

    def _read(self, kind: str) -> Ran:
        cost = self.told("over")
        (suite,) = json.loads((self.folder / "result.json").read_text())["suites"]
        share = suite.get("replayed")
        same = 0.0 if share is None else share["same"] / self.cases
        return Ran(kind, self.world, suite["verdict"], same, cost["calls"] / 2 / self.cases, cost["calls"], cost["usd"])


def play(folder: Path, seed: int, url: str, kinds: Sequence[str], cases: int, *, small: bool) -> Iterator[Ran]:
    """Both histories of a seed; of a small suite only that with recordings."""
    for world in (True,) if small else (True, False):
        chain = Chain(folder / f"{seed}-{world}", seed, cases, url, world=world, inside=small)
        chain.start()
        yield chain.push()
        for kind in kinds:
            yield chain.change(kind)


# --- the tables -----------------------------------------------------------------------------------

HEAD = (
    "| change | wanted | with `world:`: so | met the same world | live runs a case | model calls | dollars "
    "| without: so | runs a case | model calls | dollars | n |"
)


def table(ran: Sequence[Ran]) -> Iterator[str]:
    yield HEAD
    yield "|---" * 12 + "|"
    for kind in ("push", *CHANGES):
        sides = [[one for one in ran if one.kind == kind and one.world is world] for world in (True, False)]
        if not all(sides):
            continue
        wanted = ("pass", "inconclusive") if kind == "push" else WANTED[kind in BREAKING]
        name = "a push to the default branch, measured and stored" if kind == "push" else CHANGES[kind].name
        cells = [name, " or ".join(wanted)]
        for side, world in zip(sides, (True, False), strict=True):
            cells.append(page.share(sum(one.verdict in wanted for one in side), len(side), 2))
            cells += [f"{fmean(one.same for one in side):.0%}"] if world else []
            cells.append(f"{fmean(one.runs for one in side):.2f}")
            cells += [f"{fmean(one.calls for one in side):,.0f}", f"{fmean(one.usd for one in side):.2f}"]
        yield f"| {' | '.join(cells)} | {len(sides[0])} |"


def suites_table(ran: Sequence[Ran]) -> Iterator[str]:
    yield f"| a change of the code alone, {SMALL} cases | blocked | inconclusive | live runs | model calls | n |"
    yield "|---|---|---|---|---|---|"
    chosen = [one for one in ran if one.kind == "code"]
    counts, n = Counter(one.verdict for one in chosen), len(chosen)
    cells = [page.share(counts["regressed"], n), page.share(counts["inconclusive"], n)]
    cells += [f"{sum(one.runs for one in chosen):.2f}", f"{sum(one.calls for one in chosen):,}"]
    yield f"| with `world:`, a baseline each | {' | '.join(cells)} | {n} |"


def measure(seeds: range, kinds: Sequence[str], cases: int, *, small: bool = False) -> list[Ran]:
    found: list[Ran] = []
    with modelled() as url:
        for seed in seeds:
            with tempfile.TemporaryDirectory() as name:
                for one in play(Path(name), seed, url, kinds, cases, small=small):
                    print(f"{seed}: {one}", file=sys.stderr, flush=True)
                    found.append(one)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser: argparse.ArgumentParser = page.parser(__doc__, seed=1)
    parser.add_argument("--chains", type=int, default=5)
    parser.add_argument("--cases", type=int, default=100, help="Of a chain.")
    parser.add_argument("--suites", type=int, default=200)
    given = parser.parse_args(argv)
    kinds = [kind for kind in CHANGES if given.only in kind]
    try:
        if given.chains:
            lines = page.show(table(measure(range(given.seed, given.seed + given.chains), kinds, given.cases)))
            if given.write:
                page.write(given.write, "history", lines)
        if given.suites:
            first = 1000 + given.seed
            lines = page.show(suites_table(measure(range(first, first + given.suites), ["code"], SMALL, small=True)))
            if given.write:
                page.write(given.write, "suites", lines)
    finally:
        warm.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
