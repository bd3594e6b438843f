"""Processor time of one replayed trial, by stage, from its row to the reports.

    python benchmarks/stages.py [--cases 2000] [--trials 10]

Replays the rows of `replay.py` in this process, with a clock around the function of each stage. Prints one line of
JSON: microseconds a trial. A stage named `a: b` is part of `a`; the clock itself adds 0.3 to each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import replay
import run as bench

STAGES = {
    "read": "gate.config.resolve.read_suites",
    "read: line into JSON that notes its reads": "gate.formats.documents._parse_line",
    "read: messages into an invocation": "gate.formats.messages.to_invocation",
    "read: the row's case": "gate.suites.messages._case",
    "read: keys that nobody read": "gate.suites.messages.unread",
    "score": "gate.scoring.executor.score_batch",
    "score: criteria": "gate.scoring.batch.score_recorded",
    "score: ROUGE-1": "gate.metrics.response.rouge_1",
    "score: redact and encode": "gate.scoring.batch.to_record",
    "append to the record": "gate.records.writer.RecordWriter.extend",
    "read the record back": "gate.pipeline.verdict.fold_record",
    "judge": "gate.pipeline.flow.judge_record",
    "report": "gate.pipeline.flow.write_reports",
}
"""Stage → the name by which it is called."""


def clock(spent: dict[str, float], stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its processor time added to ``spent``."""

    def timed(*given: Any, **named: Any) -> Any:
        began = process_time()
        try:
            return work(*given, **named)
        finally:
            spent[stage] += process_time() - began

    return timed


def measure(cases: int, trials: int) -> dict[str, object]:
    """Return the microseconds a trial of each stage, and of the whole process."""
    from gate.commands.main import main as gate

    spent: dict[str, float] = defaultdict(float)
    for stage, place in STAGES.items():
        owner, _, name = place.rpartition(".")
        try:
            held: Any = import_module(owner)
        except ModuleNotFoundError:  # a class
            module, _, kind = owner.rpartition(".")
            held = getattr(import_module(module), kind)
        setattr(held, name, clock(spent, stage, getattr(held, name)))
    sys.argv = ["gate", "run", "--quiet", "--record", "record.jsonl", "--junit", "junit.xml"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        replay.write_rows(Path("rows.jsonl"), cases, trials)
        Path("gate.yaml").write_text(f"{replay.CONFIG}executor: {{processes: 1}}\n")
        began = process_time()
        try:
            gate()
        except SystemExit as ended:
            assert not ended.code, ended
        whole = process_time() - began
        os.chdir("/")
    found: dict[str, object] = {"trials": cases * trials}
    for stage in STAGES:
        found[stage] = f"{1e6 * spent[stage] / (cases * trials):.1f} µs"
    found["in all"] = f"{1e6 * whole / (cases * trials):.1f} µs"
    found["fixed loop"] = bench.machine(5)[0][1]
    found["load average"] = round(os.getloadavg()[0], 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--trials", type=int, default=10)
    given = parser.parse_args()
    print(json.dumps(measure(given.cases, given.trials)))


if __name__ == "__main__":
    main()
