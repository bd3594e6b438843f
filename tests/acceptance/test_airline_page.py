"""The page on the recorded airline shows what one run of its own configuration finds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gate.decision.consistency import compared
from gate.records import Record, cases_of, read_record
from tests.acceptance.conftest import REPOSITORY, Project

PAGE = (REPOSITORY / "docs" / "dev" / "evidence" / "airline.md").read_text(encoding="utf-8")
HEAD = "| criterion | mean | measured | does not apply | not measured |\n|---|---|---|---|---|\n"


def table(record: Record) -> str:
    """Per criterion: the mean over its measured trials, and how many there are of each kind."""
    rows = []
    trials = compared(cases_of(record.header), record.header.criteria, record.trials)
    for criterion in record.header.criteria:
        scores = [trial.scores.get(criterion.name) for trial in trials]
        values = [score.value for score in scores if score is not None and score.value is not None]
        failed = sum(score is None or score.error is not None for score in scores)
        mean = f"{sum(values) / len(values):.3f}" if values else "–"
        silent = len(scores) - len(values) - failed
        rows.append(f"| `{criterion.name}` | {mean} | {len(values)} | {silent} | {failed} |")
    return HEAD + "\n".join(rows)


@pytest.mark.slow
def test_the_page_shows_what_the_run_finds(project: Project, shared: Callable[[str], Path]) -> None:
    config = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    shown = re.search(r"<!-- found -->\n(.*?)\n<!-- /found -->", PAGE, re.DOTALL)
    assert config and shown
    project.write("gate.yaml", config[1])
    project.write("rows.json", shared("tau-bench/gpt-4o-airline.json").read_text())
    ran = project.gate("run", "--quiet", "--record", "all.jsonl")
    assert ran.code == 1, "no conversation satisfies all of them, and no baseline says that this is as before"
    assert table(read_record(project.root / "all.jsonl")) == shown[1]
