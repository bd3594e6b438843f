"""The cost of `gate monitor`, and the share of runs in which its status is wrong.

    python benchmarks/monitor.py speed [--traces N]           # one line of JSON, for benchmarks/results.json
    python benchmarks/monitor.py rule [--write docs/dev/evidence/monitor.md]

`speed` reads, assembles, scores, redacts and stores traces of 10 spans and about 10 kB, all of them in the sample, with
four criteria and no judge, in one process; and a day's worth of them at a sample of 1 in 100. `rule` follows simulated
agents trace by trace: how often one at or above a limit is called worse, and how many traces a drop takes to be seen.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.json import Decoder

sys.path.insert(0, str(Path(__file__).parent))
from page import publish, share
from traces import trace

from gate.config.production import MonitorSection
from gate.monitor.window import WORSE, Status, decide

CONFIG = """
name: shop
suite: evals/
agent: {replay: true}
criteria:
  not_contains: {values: ["I cannot"]}
  forbidden_tools: {tools: [delete_account]}
  pii: {}
  tokens: {max: 100000}
monitor: {traces: traces/, sample_rate: %s}
"""
CASE = "cases:\n  - {id: a, input: hello}\n"
ROUNDS = 3
PATTERNS = 500
"""Traces that differ in more than their ids."""
DAY = 100_000
"""Traces of the larger file, over 1 GB: at one in a hundred, 1,000 are scored."""


def project(folder: Path, rate: float, traces: int) -> None:
    """A configuration, and a file of traces."""
    for name in ("evals", "traces"):
        (folder / name).mkdir()
    (folder / "gate.yaml").write_text(CONFIG % rate, encoding="utf-8")
    (folder / "evals" / "a.yaml").write_text(CASE, encoding="utf-8")
    patterns = [(trace(number), f"{number + 1:032x}".encode()) for number in range(PATTERNS)]
    with (folder / "traces" / "all.jsonl").open("wb") as file:
        for number in range(traces):
            line, own = patterns[number % PATTERNS]
            file.write(line.replace(own, f"{number + 1:032x}".encode()) + b"\n")


def monitor(folder: Path) -> tuple[float, float, float, int]:
    """Processor seconds, seconds, megabytes at most, and traces that were scored; of the whole command."""
    code = (
        "import json, resource, sys\n"
        "from gate.commands.main import main\n"
        "sys.argv = ['gate', 'monitor', '--once', '-q', '--fail-on', 'never', '--json', 'status.json']\n"
        "try:\n    main()\nfinally:\n"
        "    used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "    print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))\n"
    )
    began = time.perf_counter()
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=compiled, capture_output=True, text=True, check=True
    )
    wall = time.perf_counter() - began
    cpu, peak = json.loads(done.stdout.splitlines()[-1])
    status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    assert status["counts"]["bad"] == 0, status
    return cpu, wall, peak, status["counts"]["sampled"]


def speed(traces: int) -> dict[str, object]:
    """The fastest of some rounds, the cost of a start taken off."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project(folder, 1.0, traces)
        size = (folder / "traces" / "all.jsonl").stat().st_size
        runs = [_fresh(folder) for _ in range(ROUNDS)]
        (folder / "traces" / "all.jsonl").write_bytes(b"")
        start = min(_fresh(folder)[0] for _ in range(ROUNDS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project(folder, 0.01, DAY)
        day = _fresh(folder)
        gigabytes = (folder / "traces" / "all.jsonl").stat().st_size / 1e9
    cpu, wall, peak, scored = min(runs)
    decoding = min(_decoding(traces) for _ in range(ROUNDS))
    assert scored == traces
    return {
        "traces": traces,
        "spans each": 10,
        "bytes each": size // traces,
        "scored a second and core": round(traces / (cpu - start)),
        "of which decoding their JSON would alone take s": round(decoding, 2),
        "start s": round(start, 2),
        "cpu s": round(cpu, 2),
        "wall s": round(wall, 2),
        "mb": round(peak),
        f"of {DAY:,} traces ({gigabytes:.1f} GB) at one in a hundred: scored": day[3],
        "cpu s of these": round(day[0], 1),
        "mb of these": round(day[2]),
        f"load average on {os.cpu_count()} cores": round(os.getloadavg()[0], 1),
    }


def _decoding(traces: int) -> float:
    """Processor seconds of decoding the same lines, in this very process: how busy the machine is."""
    lines, decoder = [trace(number) for number in range(min(traces, 1_000))], Decoder()
    began = time.process_time()
    for line in lines:
        decoder.decode(line)
    return (time.process_time() - began) * traces / len(lines)


def _fresh(folder: Path) -> tuple[float, float, float, int]:
    for path in (folder / ".gate").glob("*"):
        path.unlink()
    return monitor(folder)


# --- the rule -----------------------------------------------------------------------------------------


def statuses(
    rate: float, traces: int, limits: MonitorSection, draw: random.Random, before: list[bool | None]
) -> Iterator[Status]:
    """The status after each trace of an agent with this pass rate."""
    window, status = list(before), Status.HEALTHY
    for _ in range(traces):
        window.append(draw.random() < rate)
        del window[: -limits.window]
        found = decide(window, status, limits).status
        status = status if found is Status.INSUFFICIENT_DATA else found
        yield status


def false_alarms(limits: MonitorSection, runs: int, seed: int, traces: int = 1_000) -> Iterator[str]:
    """Count the agents that are ever called worse within so many traces."""
    yield f"| true pass rate | ever `warning` or `critical` in {traces:,} traces | ever `critical` | agents |"
    yield "|---|---|---|---|"
    for rate in (0.70, 0.85, 0.87, 0.90, 0.95):
        worse = critical = 0
        for run in range(runs):
            seen = set(statuses(rate, traces, limits, random.Random(f"{seed}:{rate}:{run}"), []))
            worse += not seen <= {Status.HEALTHY}
            critical += Status.CRITICAL in seen
        shown = "(it is below 85 %)" if rate < limits.warning else share(worse, runs)
        yield f"| {rate:.0%} | {shown} | {share(critical, runs)} | {runs} |"


def delays(limits: MonitorSection, runs: int, seed: int, most: int = 2_000) -> Iterator[str]:
    """Return the traces after a drop at which the status says so."""
    yield "| pass rate before → after | status | traces until then: median | 9 of 10 within | agents |"
    yield "|---|---|---|---|---|"
    drops = ((0.95, 0.75, Status.WARNING), (0.95, 0.60, Status.WARNING), (0.95, 0.60, Status.CRITICAL))
    for before, after, wanted in (*drops, (0.95, 0.40, Status.CRITICAL), (0.95, 0.0, Status.CRITICAL)):
        found = []
        for run in range(runs):
            draw = random.Random(f"{seed}:{before}:{after}:{run}")
            window: list[bool | None] = [draw.random() < before for _ in range(limits.window)]
            series = statuses(after, most, limits, draw, window)
            found.append(next((n for n, s in enumerate(series, 1) if WORSE.index(s) >= WORSE.index(wanted)), most))
        found.sort()
        median, late = found[runs // 2], found[int(0.9 * runs)]
        yield f"| {before:.0%} → {after:.0%} | `{wanted.value}` | {median} | {late} | {runs} |"


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("what", choices=["speed", "rule"])
    made.add_argument("--traces", type=int, default=10_000)
    made.add_argument("--runs", type=int, default=400)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--write", type=Path, help="Put the tables of the rule into this page.")
    given = made.parse_args()
    if given.what == "speed":
        print(json.dumps(speed(given.traces)))
        return
    limits = MonitorSection()
    tables = {
        "false alarms": false_alarms(limits, given.runs, given.seed),
        "delays": delays(limits, given.runs, given.seed),
    }
    publish(tables, given.write)


if __name__ == "__main__":
    main()
