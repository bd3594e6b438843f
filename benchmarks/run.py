"""Measures what docs/dev/evidence/performance.md says, and writes it: `make bench`.

    python benchmarks/run.py [--rounds 5] [--part throughput|start|machine]

Ratios are taken side by side in one run, alternating, and given as medians. What takes long is measured by a command of
its own (`soak.py`, `peers.py`, `replay.py --trials 100`), whose line of JSON is kept in benchmarks/results.json under
the name of the command.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPOSITORY = HERE.parent
PAGE = REPOSITORY / "docs" / "dev" / "evidence" / "performance.md"
KEPT = HERE / "results.json"
PYTHON = sys.executable
HTTP = HERE / "bench_http.py"
CONCURRENCY = 64

HTTP_CONFIG = """\
suite: suite.json
agent: {http: "${AGENT_URL}", concurrency: 64}
baseline: {store: none}
trials: 1
criteria:
  tool_trajectory_avg_score: {match_type: IN_ORDER, threshold: 0.9}
  response_match_score: 0.5
"""
PYTHON_CONFIG = "suite: suite.json\nagent: {python: 'agent:answer'}\nbaseline: {store: none}\ntrials: 1\n"
PYTHON_CONFIG += "criteria: {tool_trajectory_avg_score: 0.5}\n"
PYTHON_AGENT = "import time\n\ndef answer(m):\n    open('first', 'a').write(f'{time.time()}\\n')\n    return 'done'\n"
ANSWER = "The answer is 42, as the tool says."


LAUNCHER = """
import json, os, sys, time
sink = os.open(os.devnull, os.O_WRONLY)
silent = [(os.POSIX_SPAWN_DUP2, sink, 1), (os.POSIX_SPAWN_DUP2, sink, 2)]
started, began = time.time(), time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(child, 0)
wall, cpu = time.perf_counter() - began, usage.ru_utime + usage.ru_stime
print(json.dumps([wall, cpu, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status), started]))
"""
"""Starts a process and waits for it, from a small process: Linux counts the peak of the memory that a process was
started from as its own, and this one's grows with what it has written and read."""


@dataclass(frozen=True)
class Used:
    """The time and memory of one process, its children included."""

    wall: float
    cpu: float
    mb: float
    code: int
    started: float
    """Unix time."""


def timed(argv: Sequence[str], *, folder: Path, environment: Mapping[str, str] | None = None) -> Used:
    """Runs a process, silently, and measures it whole. Bytecode is kept, as it is wherever the gate is installed."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    launcher = [PYTHON, "-I", "-S", "-c", LAUNCHER, *argv]
    run = subprocess.run(
        launcher, cwd=folder, env={**inherited, **(environment or {})}, check=True, stdout=subprocess.PIPE
    )
    return Used(*json.loads(run.stdout))


@contextmanager
def agent_on_loopback() -> Any:
    """The port of an agent that answers in 50 ms."""
    code = f"import asyncio, runpy; asyncio.run(runpy.run_path({str(HTTP)!r})['serve']())"
    server = subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline())
    finally:
        server.terminate()
        server.wait()


def write_suite(folder: Path, cases: int) -> None:
    tool = {"name": "lookup", "args": {"q": "x"}}
    listed = [{"id": f"case-{n}", "input": "hello " * 20, "tools": [tool], "response": ANSWER} for n in range(cases)]
    (folder / "suite.json").write_text(json.dumps({"cases": listed}))


def gate(*arguments: str) -> list[str]:
    return [PYTHON, "-m", "gate", *arguments]


# --- measurements ---------------------------------------------------------------------------------

LOOP_ROUNDS = 2_000_000


def machine(rounds: int) -> list[list[str]]:
    """Time a loop that never changes, so that figures of two machines can be compared."""
    took = []
    for _ in range(max(5, rounds)):
        began = time.process_time()
        fixed_loop(LOOP_ROUNDS)
        took.append(time.process_time() - began)
    return [["CPU of a fixed loop of pure Python (`fixed_loop`), the least", f"{min(took):.3f} s", ""]]


def fixed_loop(rounds: int) -> int:
    """Calls, numbers, texts, lists and mappings, as the gate's own code has them."""
    seen: dict[str, int] = {}
    held: list[int] = []
    for number in range(rounds):
        key = str(number % 1000)
        seen[key] = seen.get(key, 0) + len(key)
        if number % 3 == 0:
            held.append(number & 0xFF)
    return sum(seen.values()) + sum(held)


def start(folder: Path, rounds: int) -> list[list[str]]:
    """`gate --help` beside the imports it cannot do without, and the way to the first case."""
    ratios = []
    for _ in range(rounds):
        imports = timed([PYTHON, "-c", "import click, yaml; from pydantic import BaseModel"], folder=folder)
        ratios.append(timed(gate("--help"), folder=folder).wall / imports.wall)
    write_suite(folder, 10)
    (folder / "gate.yaml").write_text(PYTHON_CONFIG)
    (folder / "agent.py").write_text(PYTHON_AGENT)
    waits = []
    for _ in range(rounds):
        (folder / "first").unlink(missing_ok=True)
        began = timed(gate("run", "--quiet"), folder=folder).started
        waits.append(float((folder / "first").read_text().split()[0]) - began)
    return [
        ["`gate --help`, of a process that imports click, yaml and pydantic", f"{median(ratios):.2f} ×", "1.3 ×"],
        ["command to first call of a python agent", f"{median(waits):.2f} s", "0.5 s"],
    ]


def throughput(folder: Path, rounds: int) -> list[list[str]]:
    """1,000 cases with record, JUnit, Markdown and thresholds, beside a bare asyncio client asking the same."""
    (folder / "gate.yaml").write_text(HTTP_CONFIG)
    write_suite(folder, 1000)
    run = gate("run", "--quiet", "--record", "r.jsonl", "--junit", "j.xml", "--markdown", "m.md")
    bare = [PYTHON, str(HTTP), "--one", "bare", "--cases", "1000", "--concurrency", str(CONCURRENCY)]
    pairs = []
    rows = []
    with agent_on_loopback() as port:
        url = {"AGENT_URL": f"http://127.0.0.1:{port}/"}
        timed(run, folder=folder, environment=url)  # once unmeasured: bytecode and files are there from then on
        for _ in range(rounds):
            (folder / "r.jsonl").unlink(missing_ok=True)
            floor = timed([*bare, "--port", str(port)], folder=folder)
            pairs.append((floor, timed(run, folder=folder, environment=url)))
        (folder / "r.jsonl").unlink(missing_ok=True)
        shell = ["bash", "-c", 'ulimit -n 256; exec "$@"', "-", *run]
        few = timed(shell, folder=folder, environment=url)
        answered = len(durations(folder / "r.jsonl"))
        for cases in (10, 100, 1000):
            write_suite(folder, cases)
            (folder / "r.jsonl").unlink(missing_ok=True)
            timed(run, folder=folder, environment=url)
            recorded = 1000 * median(durations(folder / "r.jsonl"))
            rows.append([f"recorded median latency of a 50 ms agent, {cases:,} cases", f"{recorded:.1f} ms", "52.5 ms"])
    walls, cpus = [ours.wall / floor.wall for floor, ours in pairs], [ours.cpu / floor.cpu for floor, ours in pairs]

    def fastest(what: str) -> float:
        """Where the processor changes its speed from run to run, the least disturbed pair."""
        return min(getattr(ours, what) for _, ours in pairs) / min(getattr(floor, what) for floor, _ in pairs)

    return [
        ["wall, of a bare client's", f"{median(walls):.2f} ×", "1.3 ×"],
        ["CPU, of a bare client's", f"{median(cpus):.1f} ×", "4 ×"],
        ["wall and CPU, fastest of the gate by fastest of the bare client", f"{fastest('wall'):.2f} ×, "
         f"{fastest('cpu'):.1f} ×", ""],
        ["wall and CPU of the gate", f"{median([p[1].wall for p in pairs]):.2f} s, "
         f"{median([p[1].cpu for p in pairs]):.2f} s", ""],
        ["wall and CPU of the bare client", f"{median([p[0].wall for p in pairs]):.2f} s, "
         f"{median([p[0].cpu for p in pairs]):.2f} s", ""],
        ["memory", f"{max(ours.mb for _, ours in pairs):.0f} MB", "100 MB"],
        ["under `ulimit -n 256`", f"exit {few.code}, {answered:,} trials", "exit 0"],
        *rows,
    ]  # fmt: skip


def durations(record: Path) -> list[float]:
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    return [row["duration"] for row in rows if "case" in row and "error" not in row]


def scoring(rounds: int) -> list[list[str]]:
    """Metrics alone on one core, and whole replays of growing size."""
    sys.path[:0] = [str(HERE), str(REPOSITORY)]
    import bench_rouge
    import replay

    scored = bench_rouge.trials(bench_rouge.word_pairs(3_000, words=200, seed=1))
    rouge = bench_rouge.ResponseMatch(bench_rouge.ResponseMatchOptions())
    trajectory = bench_rouge.ToolTrajectory(bench_rouge.TrajectoryOptions())
    speeds = []
    for _ in range(3 * rounds):
        began = time.process_time()
        for one in scored:
            rouge.score(*one)
            trajectory.score(*one)
        speeds.append(len(scored) / (time.process_time() - began))
    rows = [["trajectory and ROUGE on 200 words, a second and core", f"{median(speeds):,.0f}", "5,000"]]
    for executor, trials in (("{processes: 1}", 1), ("{processes: 1}", 10), ("{}", 1), ("{}", 10)):
        found = replay.measure(10_000, trials, executor)
        what = f"replay of {found['trials']:,} trials of 10,000 cases, reading to reports, `executor: {executor}`"
        took = f"{found['cpu_s']} s CPU, {found['wall_s']} s wall, {found['mb']} MB in {found['processes']} processes"
        rows.append([what, took, "300 MB" if trials == 10 else ""])
    return rows


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


# --- the page -------------------------------------------------------------------------------------


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = ("what", "measured", "at most, or at least")) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def kept() -> str:
    """The long measurements, as their commands printed them."""
    found: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    parts = []
    for command, figures in found.items():
        rows = [[name.replace("_", " "), str(value)] for name, value in figures.items()]
        parts.append(f"### `{command}`\n\n{table(rows, ('what', 'measured'))}\n")
    return "\n".join(parts)


def write_page(rounds: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sections = {
            "The machine": machine(rounds),
            "Start": start(folder, rounds),
            "Throughput: 1,000 one-turn cases, 64 at once": throughput(folder, rounds),
            "Scoring and replay": scoring(max(1, rounds // 2)),
        }
    load = os.getloadavg()[0]
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    lines = [
        "# Performance",
        "",
        "Written by `make bench` (benchmarks/run.py). Ratios are medians of alternating runs, side by side. Processes",
        "are measured whole: interpreter, imports and all.",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}; {system}. The load average was {load:.1f} at the end:",
        "where that is more than 1, others worked on the same cores, and absolute times are upper bounds. Figures",
        "above what is aimed at: [decision 0012](../decisions/0012-one-path-from-record-to-result.md) says why.",
        "",
    ]
    for title, rows in sections.items():
        lines += [f"## {title}", "", table(rows), ""]
    lines += [
        "## Measured once",
        "",
        "If a load average above 1 is given, other work shared the cores: compare processor time.",
    ]
    lines += ["", kept()]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--part", choices=["machine", "start", "throughput"], help="measure and print this alone; writes nothing"
    )
    given = parser.parse_args()
    if given.part:
        with tempfile.TemporaryDirectory() as name:
            folder, rounds = Path(name), given.rounds
            parts = {
                "machine": lambda: machine(rounds),
                "start": lambda: start(folder, rounds),
                "throughput": lambda: throughput(folder, rounds),
            }
            print(table(parts[given.part]()))
        return
    page = write_page(given.rounds)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
