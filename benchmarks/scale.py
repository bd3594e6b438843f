"""Cases by the thousand, from loading the suite to the reports, beside a bare client that asks the same.

    python benchmarks/scale.py [--cases 1000] [--rounds 3] [--together]

Every case is a JSON file of its own, or all are in one with `--together`; the agent answers in 50 ms, 64 are asked at
once, seven criteria judge each answer, and a record, JUnit, Markdown and JSON are written. Processes are measured
whole. Prints one line of JSON: medians of alternating runs, and ratios of each pair's.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
import run as bench

CONFIG = """\
suite: evals
name: support
agent: {http: "${AGENT_URL}", concurrency: 64}
baseline: {store: none}
trials: 1
criteria:
  tool_trajectory_avg_score: {match_type: IN_ORDER, threshold: 0.9}
  response_match_score: 0.5
  tool_accuracy: 0.5
  step_efficiency: 0.5
  regex: {patterns: ['\\b42\\b'], threshold: 0.5}
  pii: {}
  forbidden_tools: {tools: [send_money]}
"""
REPORTS = ("--record", "r.jsonl", "--junit", "j.xml", "--markdown", "m.md", "--json", "r.json")


def write_suite(folder: Path, cases: int, *, together: bool) -> None:
    """Write the cases: a file each, or all in one."""
    evals = folder / "evals"
    evals.mkdir()
    tool = {"name": "lookup", "args": {"q": "x"}}
    listed = [
        {"id": f"case-{number:06d}", "input": "hello " * 20, "tools": [tool], "response": bench.ANSWER}
        for number in range(cases)
    ]
    if together:
        (evals / "suite.json").write_text(json.dumps({"cases": listed}))
        return
    for one in listed:
        (evals / f"{one['id']}.json").write_text(json.dumps({"cases": [one]}))


def ratio(pairs: Sequence[tuple[bench.Used, bench.Used]], what: str) -> str:
    """Return by how much the gate took more than the bare client, and what both took."""
    bare = median(getattr(floor, what) for floor, _ in pairs)
    ours = median(getattr(gate, what) for _, gate in pairs)
    times = median(getattr(gate, what) / getattr(floor, what) for floor, gate in pairs)
    return f"{ours:.2f} s, {times:.2f} × the bare client's {bare:.2f} s"


def measure(cases: int, rounds: int, *, together: bool) -> dict[str, object]:
    """Return what a run of so many cases takes."""
    with tempfile.TemporaryDirectory() as name, bench.agent_on_loopback() as port:
        folder = Path(name)
        (folder / "gate.yaml").write_text(CONFIG)
        write_suite(folder, cases, together=together)
        url = {"AGENT_URL": f"http://127.0.0.1:{port}/"}
        bare = [bench.PYTHON, str(bench.HTTP), "--one", "bare", "--cases", str(cases), "--port", str(port)]
        pairs = []
        for _ in range(rounds):
            (folder / "r.jsonl").unlink(missing_ok=True)
            floor = bench.timed(bare, folder=folder)
            pairs.append((floor, bench.timed(bench.gate("run", "--quiet", *REPORTS), folder=folder, environment=url)))
        answered = len(bench.durations(folder / "r.jsonl"))
    return {
        "cases": cases,
        "files": 1 if together else cases,
        "answered": answered,
        "exit_code": pairs[-1][1].code,
        "wall": ratio(pairs, "wall"),
        "CPU": ratio(pairs, "cpu"),
        "memory": f"{max(gate.mb for _, gate in pairs):.0f} MB",
        "rounds": rounds,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--together", action="store_true", help="All cases in one file.")
    given = parser.parse_args(argv)
    print(json.dumps(measure(given.cases, given.rounds, together=given.together), ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
