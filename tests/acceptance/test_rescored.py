"""Records that are scored again, and shards: each says no more than its run measured."""

from __future__ import annotations

import pytest
import yaml

import gate
from tests.acceptance.conftest import Project
from tests.acceptance.test_situations import make_base

pytestmark = pytest.mark.slow


def configure(project: Project, behaviour: str, **more: object) -> None:
    row = {"agent": {"python": "agent:answer"}, "cases": 4, "stored": 0, "before": {"*": behaviour}}
    make_base({**row, "criteria": {"tool_trajectory_avg_score": 0.9}, "config": more}, project, port=0)


def test_a_run_that_was_cut_short_stays_so_once_it_is_scored_again(project: Project) -> None:
    configure(project, "costly", trials=5, budget={"usd": 2.4})
    assert project.gate("run", "--record", ".gate/run.jsonl").code == 3
    assert project.gate("rescore", ".gate/run.jsonl", "-o", ".gate/again.jsonl").code == 0
    code, result = project.result("report", ".gate/again.jsonl")
    assert (code, result["suites"][0]["facts"]["cause"]["kind"]) == (3, "not_run")


def test_shards_are_merged_once_they_are_scored_again_and_none_is_a_baseline(project: Project) -> None:
    configure(project, "good")
    again: list[str] = []
    for number in (1, 2):
        shard = f".gate/{number}.jsonl"
        again.append(f".gate/{number}-again.jsonl")
        assert project.gate("run", "--trials", "2", "--shard", f"{number}/2", "--record", shard).code == 0
        assert project.gate("rescore", shard, "-o", again[-1]).code == 0
    assert project.gate("merge", *again, "-o", ".gate/whole.jsonl", "-c", "gate.yaml").code == 0
    assert project.gate("run", "--trials", "2", "--record", ".gate/new.jsonl").code == 0
    for shard in (".gate/1.jsonl", again[0]):
        refused = project.gate("compare", ".gate/new.jsonl", shard)
        assert (refused.code, "it is shard 1 of 2" in refused.err) == (4, True)


def test_trials_of_cases_that_are_not_selected_are_called_so(project: Project) -> None:
    configure(project, "good")
    assert project.gate("run", "--trials", "1", "--record", ".gate/run.jsonl").code == 0
    configuration = yaml.safe_load((project.root / "gate.yaml").read_text())
    (one, *_) = [trial.case_id for trial in gate.load_record(project.root / ".gate/run.jsonl").trials]
    project.write("gate.yaml", {**configuration, "select": {"ids": [one]}})
    said = project.gate("rescore", ".gate/run.jsonl", "-o", ".gate/again.jsonl")
    text = "1 trial scored again; left out: 3 trials of cases that changed, left the suite or are not selected"
    assert (said.code, text in said.out + said.err) == (0, True), said
