"""The report on a fork's record says what the fork's own run said, under the same rules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gate.config.load import load_config
from gate.errors import UntrustedError
from gate.model import CONFIRM, Result
from gate.records import Record, read_record
from gate.reports import load_report
from gate.stored.judging import judge_records
from tests.acceptance.test_situations import TABLE, Project, at_base, make_change

RECORD = "run.jsonl"
CHOSEN = (
    "one case of twenty broke: python",
    "one case of twenty crashes in every trial: python raises",
    "three of thirty cases crash in most of their trials: python",
    "cases were removed: half of them",
    "the provider refuses at first and answers then: 429",
)
ROWS = {row["situation"]: row for row in TABLE}


def measured(row: Mapping[str, Any], root: Path, bases: dict[str, Path], *words: str) -> tuple[Project, str]:
    """The project after the run of a change, and the run's report."""
    project = at_base(row, root, bases, 0)
    make_change(project, row, 0)
    project.gate(*map(str, row.get("run", ["run"])), "--record", RECORD, "--markdown", "run.md", *words)
    return project, (project.root / "run.md").read_text()


def reported(project: Project, record: Record) -> Result:
    """Return the report of the job for forks on a record, from a checkout of the base branch."""
    project.git("checkout", "-q", "main")
    config = load_config(project.root / "gate.yaml", {"baseline.against": "main"})
    return judge_records([record], config, {"PATH": os.environ["PATH"]}, command="gate run")


def shown(text: str, root: Path) -> str:
    """A report up to what each job has of its own: its paths, and the command that repeats it."""
    return text.replace(f"{root}/", "").partition("**Seed**")[0]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {"": tmp_path_factory.mktemp("bases")}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_both_read_alike(name: str, tmp_path: Path, bases: dict[str, Path]) -> None:
    project, said = measured(ROWS[name], tmp_path / "project", bases)
    record = read_record(project.root / RECORD)
    result = reported(project, record)
    root = project.root
    assert shown(load_report("markdown")(result), root) == shown(said, root)


def test_a_case_that_ran_in_no_epoch_is_refused(tmp_path: Path, bases: dict[str, Path]) -> None:
    """Or its trials could name themselves reruns, which no mean includes."""
    project, _ = measured(ROWS["one case of twenty broke: python"], tmp_path / "project", bases)
    record = read_record(project.root / RECORD)
    case_id = record.trials[0].case_id
    trials = [replace(one, tag=CONFIRM) if one.case_id == case_id else one for one in record.trials]
    with pytest.raises(UntrustedError, match="1 case ran in no epoch"):
        reported(project, replace(record, trials=tuple(trials)))
