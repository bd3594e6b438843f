"""The flow of the guides end to end: merges on a default branch, then changes, with real git and the real command.

    python benchmarks/flow.py [--chains 20] [--agent http|python] [--guide gitlab|other] [--only TEXT]
                              [--keep FILE] [--write docs/dev/evidence/flow.md]

A chain is a bare remote, a first push and three innocent merges, then one change of every kind from the same tip. Every
job is a fresh clone that runs the lines of the guide as they stand on its page; what one job leaves to the next is what
it stored in the remote. The agent is a server on loopback, or a function that asks it: each request of a case is right
with that case's true pass rate, drawn from the chain's seed, the job and the request's number. Same seed, same answers.
With `--keep` each chain is kept in a file as it ends, and a later call of the same options plays only what is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))
import page
from simulate import BREAKABLE, SUITES, _rates

from gate.statistics.intervals import wilson

REPOSITORY = Path(__file__).parents[1]
CASES, MERGES = 100, 3
EXPECTED = "Order {n} left the warehouse this morning and arrives at your door tomorrow before noon."
FILLER = [
    "Certainly",
    "thanks",
    "again",
    "glad",
    "happy",
    "indeed",
    "today",
    "please",
    "note",
    "kindly",
    "just",
    "right",
    "away",
    "well",
]
CRASH_RATE = 0.6


@dataclass(frozen=True)
class Change:
    """One kind of change, and the verdict that it should get."""

    name: str
    wanted: str
    broken: int = 0
    drop: float = 0.0
    crashing: int = 0


CHANGES: Mapping[str, Change] = {
    "merge": Change("innocent merge", "5 runs a case, and its reruns"),
    "unchanged": Change("unchanged", "blocked ≤ .02, inconclusive ≤ .05, ≤ 2 runs a case"),
    "broken": Change("one case broke", "blocked ≥ .95", broken=1),
    "ten": Change("−10 points", "blocked ≥ .90", drop=0.10),
    "crash": Change("three cases answer HTTP 500 in 60 % of runs", "never green once met", crashing=3),
    "five": Change("−5 points", "", drop=0.05),
}

# --- the agent ------------------------------------------------------------------------------------


@cache
def truth(chain: int, kind: str, cases: int) -> tuple[Sequence[float], frozenset[int]]:
    """The true pass rate of every case under a change of this kind, and the cases that crash."""
    rates = _rates(SUITES["typical"], cases, Random(f"flow:{chain}"))
    change, rng = CHANGES[kind], Random(f"flow:{chain}:{kind}")
    steady = [n for n, rate in enumerate(rates) if rate >= BREAKABLE]
    lost = set(rng.sample(steady, min(change.broken, len(steady))))
    crashing = frozenset(rng.sample(steady, min(change.crashing, len(steady))))
    kept = 1 - change.drop / (fmean(rates) or 1.0)
    return [0.0 if n in lost else rate * kept for n, rate in enumerate(rates)], crashing


@dataclass
class Job:
    """The agent of one job, and the requests that it got."""

    name: str
    chain: int
    cases: int
    wording: str
    asked: Counter[tuple[str, int]] = field(default_factory=Counter)
    crashed: int = 0

    def answer(self, kind: str, case: int) -> dict[str, Any] | None:
        """The next answer for a case; None: the server fails."""
        self.asked[kind, case] += 1
        number = self.asked[kind, case]
        rates, crashing = truth(self.chain, kind, self.cases)
        rng = Random(f"flow:{self.name}:{kind}:{case}:{number}")
        if case in crashing and rng.random() < CRASH_RATE:
            self.crashed += 1
            return None
        if rng.random() >= rates[case]:
            words = rng.sample(FILLER, 6) if self.wording == "varied" else FILLER[:6]
            return {"output": " ".join(words), "tool_calls": []}
        extra = rng.sample(FILLER, rng.randint(1, 5)) if self.wording == "varied" else []
        calls = [{"name": "look_up", "arguments": {"order": case}}]
        return {"output": " ".join([EXPECTED.format(n=case), *extra]), "tool_calls": calls}


class Server:
    """One HTTP server for all jobs; the address says which job asks, and which agent it deployed."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.port = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                body = await reader.readexactly(length)
                name, kind = head.split(b" ")[1].decode().strip("/").split("/")
                found = re.search(rb"order number (\d+)", body)
                answer = self.jobs[name].answer(kind, int(found[1])) if found else None
                status = b"200 OK" if answer is not None else b"500 Internal Server Error"
                said = json.dumps(answer or {"error": "KeyError: 'order'"}).encode()
                form = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                writer.write(form % (status, len(said)) + said)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @contextmanager
    def running(self) -> Iterator[Server]:
        ready, stopped = threading.Event(), asyncio.Event()

        async def main() -> None:
            nonlocal loop
            loop = asyncio.get_running_loop()
            listening = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=256)
            self.port = listening.sockets[0].getsockname()[1]
            ready.set()
            await stopped.wait()
            listening.close()

        loop: asyncio.AbstractEventLoop
        thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
        thread.start()
        ready.wait()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(stopped.set)
            thread.join()


# --- the project ----------------------------------------------------------------------------------

AGENTS = {"http": '{http: "${AGENT_URL}/${AGENT_KIND}"}', "python": "{python: agent:answer, env: [AGENT_URL]}"}
CONFIG = """\
suite: suite.json
name: support
agent: AGENT
criteria: {tool_trajectory_avg_score: 0.5, response_match_score: 0.5}
gate: {confirm_after: 1}
reports: {json: gate-results/flow.json}
"""
"""The least that the guide wants, but for the report that this program reads, and one second instead of a minute before
failures are confirmed: the server's do not depend on the time."""
PYTHON_AGENT = """\
import json, os, urllib.request

KIND = "merge"


def answer(message):
    body = json.dumps({"input": message}).encode()
    asked = urllib.request.Request(os.environ["AGENT_URL"] + "/" + KIND, body, {"Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(asked).read())
"""
IDENTITY = {f"GIT_{who}_{what}": "flow@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
HIDDEN = ("GITHUB_", "GITLAB_", "CI", "OPENAI_", "GATE_", "INPUT_")


def lines_of(guide: str) -> str:
    """The commands of the guide's page: of GitLab's job, or those for any other CI."""
    page = (REPOSITORY / "docs" / "how-to" / "other-ci.md").read_text()
    if guide == "gitlab":
        found = re.search(r"^```yaml\n(# \.gitlab-ci\.yml.*?)^```$", page, re.MULTILINE | re.DOTALL)
        assert found is not None
        return "\n".join(yaml.safe_load(found[1])["gate"]["script"])
    run, save = re.findall(r"^```\n(gate .*)\n```$", page, re.MULTILINE)[:2]
    plain = run.replace(" --against <commit> --rules-from <commit>", "")
    on_main = f"CODE=0; {plain} || CODE=$?; {save}; exit $CODE"
    change = run.replace("<commit>", '"$CI_MERGE_REQUEST_DIFF_BASE_SHA"')
    return f'if [ -z "$CI_MERGE_REQUEST_DIFF_BASE_SHA" ]; then {on_main}; else {change}; fi'


@dataclass(frozen=True)
class Ran:
    """One job's end."""

    chain: int
    kind: str
    code: int
    verdict: str
    runs: float
    """Trials a case, by the report."""
    stored: float
    """Baseline trials a case, by the report."""
    named: int
    named_wrongly: int
    crashed: int
    """Requests that the server failed."""
    said: str


@dataclass(frozen=True)
class Chain:
    """One repository, its remote, and the jobs on it."""

    folder: Path
    seed: int
    agent: str
    server: Server
    script: str
    cases: int = CASES
    wording: str = "varied"

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder / "work"), *arguments]
        return subprocess.run(
            command, env={**os.environ, **IDENTITY}, check=True, capture_output=True, text=True
        ).stdout.strip()

    def start(self) -> None:
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(self.folder / "remote.git")], check=True)
        work = self.folder / "work"
        subprocess.run(["git", "clone", "-q", str(self.folder / "remote.git"), str(work)], check=True, stderr=-3)
        listed = [
            {
                "id": f"order-{n:03d}",
                "input": f"Where is order number {n}?",
                "tools": [{"name": "look_up", "args": {"order": n}}],
                "response": EXPECTED.format(n=n),
            }
            for n in range(self.cases)
        ]
        (work / "suite.json").write_text(json.dumps({"cases": listed}))
        (work / "gate.yaml").write_text(CONFIG.replace("AGENT", AGENTS[self.agent], 1))
        (work / ".gitignore").write_text("__pycache__/\n")

    def commit(self, branch: str, kind: str, note: str) -> str:
        """A commit on a branch, of an agent of this kind; each changes the agent's file, by a remark at least."""
        work = self.folder / "work"
        if self.agent == "python":
            (work / "agent.py").write_text(PYTHON_AGENT.replace('"merge"', f'"{kind}"') + f"# {note}\n")
        (work / "NOTES.md").write_text(f"{note}\n")
        self.git("checkout", "-q", "-B", branch)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", note)
        self.git("push", "-q", "-f", "origin", f"HEAD:refs/heads/{branch}")
        return self.git("rev-parse", "HEAD")

    def job(self, kind: str, commit: str, note: str, base: str = "", request: int = 0) -> Ran:
        """The guide's lines in a fresh clone of the commit."""
        name = f"{self.seed}-{note}"
        asked = self.server.jobs[name] = Job(name, self.seed, self.cases, self.wording)
        clone = self.folder / f"job-{note}"
        subprocess.run(["git", "clone", "-q", (self.folder / "remote.git").as_uri(), str(clone)], check=True)
        subprocess.run(["git", "-C", str(clone), "checkout", "-q", "--detach", commit], check=True)
        url = {"AGENT_URL": f"http://127.0.0.1:{self.server.port}/{name}", "AGENT_KIND": kind}
        ci = {"CI": "true", "CI_DEFAULT_BRANCH": "main", "CI_COMMIT_SHA": commit}
        if base:
            ci |= {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "CI_MERGE_REQUEST_IID": str(request)}
        else:
            ci |= {"CI_COMMIT_BRANCH": "main"}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(HIDDEN)}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-ec", self.script],
            cwd=clone,
            env={**kept, **IDENTITY, "PATH": path, **url, **ci},
            capture_output=True,
            text=True,
            check=False,
        )
        ran = self._read(kind, clone, done, asked)
        shutil.rmtree(clone)
        return ran

    def _read(self, kind: str, clone: Path, done: subprocess.CompletedProcess[str], asked: Job) -> Ran:
        path, said = clone / "gate-results" / "flow.json", done.stdout + done.stderr
        if not path.exists():
            return Ran(self.seed, kind, done.returncode, "none", 0, 0, 0, 0, asked.crashed, said)
        suite = json.loads(path.read_text())["suites"][0]
        cases = suite["cases"]
        stored = fmean([case.get("baseline_trials") or 0 for case in cases]) if cases else 0.0
        now, crashing = truth(self.seed, kind, self.cases)
        before, _ = truth(self.seed, "merge", self.cases)
        named = [int(case["id"].rpartition("-")[2]) for case in cases if case.get("named")]
        wrong = sum(now[n] >= before[n] and n not in crashing for n in named)
        runs = sum(count for count in asked.asked.values()) / self.cases
        verdict = suite["verdict"]
        return Ran(self.seed, kind, done.returncode, verdict, runs, stored, len(named), wrong, asked.crashed, said)


def play(chain: Chain, kinds: Sequence[str], draws: int) -> list[Ran]:
    """A first push, the merges, and the changes from their tip."""
    chain.folder.mkdir()
    chain.start()
    ran = []
    for n in range(MERGES + 1):
        tip = chain.commit("main", "merge", f"merge-{n}")
        ran.append(chain.job("merge", tip, f"merge-{n}"))
    for number, (kind, draw) in enumerate([(k, d) for k in kinds for d in range(draws)], 1):
        chain.git("checkout", "-q", "main")
        commit = chain.commit(f"{kind}-{draw}", kind, f"{kind}-{draw}")
        ran.append(chain.job(kind, commit, f"{kind}-{draw}", base=tip, request=number))
    shutil.rmtree(chain.folder)
    return ran


# --- the table ------------------------------------------------------------------------------------

VERDICTS = ("pass", "inconclusive", "error")


def rate(count: int, n: int) -> str:
    low, high = wilson(count, n)
    return f"{count} of {n} ({low:.2f}–{high:.2f})"


def table(ran: Sequence[Ran]) -> Iterator[str]:
    yield "| change | blocked | inconclusive | pass | error | runs a case | stored trials a case | wanted |"
    yield "|---|---|---|---|---|---|---|---|"
    for kind, change in CHANGES.items():
        for label, chosen in _rows(kind, [r for r in ran if r.kind == kind]):
            if not chosen:
                continue
            n, verdicts = len(chosen), Counter(r.verdict for r in chosen)
            blocked = n - sum(verdicts[v] for v in VERDICTS) - verdicts["none"]
            shares = [rate(blocked, n), rate(verdicts["inconclusive"], n), rate(verdicts["pass"], n)]
            shares.append(str(verdicts["error"] + verdicts["none"] or "–"))
            runs, stored = fmean(r.runs for r in chosen), fmean(r.stored for r in chosen)
            yield f"| {label} | {' | '.join(shares)} | {runs:.2f} | {stored:.2f} | {change.wanted} |"


def _rows(kind: str, ran: Sequence[Ran]) -> Iterable[tuple[str, Sequence[Ran]]]:
    name = CHANGES[kind].name
    if kind == "merge":
        for n in range(MERGES + 1):
            yield f"{name} {n}" if n else "first push", ran[n :: MERGES + 1]
    elif kind == "crash":
        yield f"{name}, met in the run", [r for r in ran if r.crashed]
        yield f"{name}, none met", [r for r in ran if not r.crashed]
    else:
        yield name, ran


def measure(given: argparse.Namespace) -> Iterator[Ran]:
    kinds = [k for k in CHANGES if k != "merge" and given.only in k]
    script = lines_of(given.guide)
    with tempfile.TemporaryDirectory() as name, Server().running() as server:
        chains = [
            Chain(Path(name) / f"chain-{n}", n, given.agent, server, script, given.cases, given.wording)
            for n in range(given.seed, given.seed + given.chains)
        ]
        kept = known(given.keep)
        with ThreadPoolExecutor(given.processes) as pool:
            missing = [chain for chain in chains if chain.seed not in kept]
            for all_of in pool.map(lambda chain: play(chain, kinds, given.draws), missing):
                for one in all_of:
                    print(_told(one, whole=given.verbose), file=sys.stderr, flush=True)
                kept[all_of[0].chain] = all_of
                keep(given.keep, all_of)
    for chain in chains:
        yield from kept[chain.seed]


def known(path: Path | None) -> dict[int, list[Ran]]:
    """Return the jobs of the chains that a file holds, by chain."""
    found: dict[int, list[Ran]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else ():
        ran = Ran(**json.loads(line))
        found.setdefault(ran.chain, []).append(ran)
    return found


def keep(path: Path | None, ran: Sequence[Ran]) -> None:
    """Add the jobs of a chain to the file that keeps them."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({**vars(one), "said": ""}) + "\n" for one in ran)


def _told(ran: Ran, *, whole: bool) -> str:
    line = (
        f"chain {ran.chain}, {ran.kind}: exit {ran.code}, {ran.verdict}, {ran.runs:.2f} runs, {ran.stored:.2f} stored"
    )
    return f"=== {line}\n{ran.said}" if whole else line


def main(argv: Sequence[str] | None = None) -> int:
    parser = page.parser(__doc__, seed=1)
    parser.add_argument("--chains", type=int, default=20)
    parser.add_argument("--keep", type=Path, help="Where chains are kept as they end.")
    parser.add_argument("--draws", type=int, default=1, help="Changes of each kind per chain.")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--agent", choices=sorted(AGENTS), default="http")
    parser.add_argument("--guide", choices=("gitlab", "other"), default="gitlab")
    parser.add_argument("--wording", choices=("varied", "same"), default="varied")
    parser.add_argument("--verbose", action="store_true", help="Print what each job said.")
    parser.add_argument("--section", help="Where in the page the table belongs; by default the kind of agent.")
    given = parser.parse_args(argv)
    lines = page.show(table(list(measure(given))))
    if given.write:
        page.write(given.write, given.section or given.agent, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
