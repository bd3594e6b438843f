"""200 recorded conversations of an airline agent: the same agent on both sides passes, a broken one is found."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Project

FIELDS = """\
fields:
  id: task_id
  trial: trial
  messages: traj
  expected_tools: {path: info.task.actions, name: name, args: kwargs}
  content: [info.task.instruction]
  trials: [TRIALS]
"""
CONFIG = """\
suite: rows.json
name: airline
agent: {replay: true}
criteria:
  tool_trajectory_avg_score: {match_type: IN_ORDER}
"""


def record(project: Project, name: str, trials: tuple[int, ...], rows: list[dict[str, Any]] | None = None) -> Path:
    """Replays some of the recorded trials into a record."""
    folder = Project(project.root / name)
    folder.write("rows.json", rows or (project.root / "rows.json").read_text())
    folder.write("gate.yaml", CONFIG + FIELDS.replace("TRIALS", ", ".join(map(str, trials))))
    path = folder.root / "record.jsonl"
    ran = folder.gate("run", "--quiet", "--record", str(path))
    assert ran.code == 0, ran.out + ran.err
    return path


@pytest.fixture
def airline(project: Project, shared: Callable[[str], Path]) -> Project:
    project.write("rows.json", shared("tau-bench/gpt-4o-airline.json").read_text())
    return project


def without_first_tool(rows: list[dict[str, Any]], removed: set[int]) -> list[dict[str, Any]]:
    """The rows without any call of the first expected tool's name, in these tasks."""
    changed = json.loads(json.dumps(rows))
    for row in changed:
        if row["task_id"] in removed:
            name = row["info"]["task"]["actions"][0]["name"]
            for message in row["traj"]:
                calls = message.get("tool_calls") or []
                message["tool_calls"] = [call for call in calls if call["function"]["name"] != name] or None
            kept = {c["id"] for m in row["traj"] for c in m.get("tool_calls") or []}
            row["traj"] = [m for m in row["traj"] if m["role"] != "tool" or m.get("tool_call_id") in kept]
    return changed


@pytest.mark.slow
def test_the_same_agent_is_not_blocked_whichever_trials_are_the_baseline(airline: Project) -> None:
    """All six ways of splitting four trials in two and two."""
    verdicts = {}
    for baseline in itertools.combinations(range(4), 2):
        candidate = tuple(sorted(set(range(4)) - set(baseline)))
        old = record(airline, f"old-{baseline}", baseline)
        new = record(airline, f"new-{baseline}", candidate)
        code, result = airline.result("compare", str(new), str(old))
        verdicts[baseline] = result["verdict"]
        assert code == 0, verdicts
    assert len(verdicts) == 6
    assert not {"regressed", "error", "below_threshold"} & set(verdicts.values())


@pytest.mark.slow
def test_a_removed_tool_in_every_even_task_is_a_regression(airline: Project) -> None:
    rows = json.loads((airline.root / "rows.json").read_text())
    expecting = {row["task_id"] for row in rows if row["info"]["task"]["actions"]}
    assert len(expecting) == 43
    even = {task for task in expecting if task % 2 == 0}
    old = record(airline, "old", (0, 1))
    new = record(airline, "new", (2, 3), without_first_tool(rows, even))
    code, result = airline.result("compare", str(new), str(old))
    assert code == 1
    assert result["verdict"] == "regressed"
    named = {c["id"] for c in result["suites"][0]["cases"] if c["status"] == "broken"}
    assert named <= {str(task) for task in even}


@pytest.mark.slow
def test_a_saved_baseline_gives_the_same_answer_as_the_record(airline: Project) -> None:
    rows = json.loads((airline.root / "rows.json").read_text())
    even = {row["task_id"] for row in rows if row["info"]["task"]["actions"] and row["task_id"] % 2 == 0}
    old = record(airline, "old", (0, 1))
    new = Project(airline.root / "new")
    new.write("rows.json", without_first_tool(rows, even))
    new.write("gate.yaml", CONFIG + FIELDS.replace("TRIALS", "2, 3") + "baseline: {path: kept}\n")
    saved = new.gate("baseline", "save", str(old))
    assert saved.code == 0, saved.err
    code, result = new.result("run")
    assert (code, result["verdict"]) == (1, "regressed")
    assert "book_reservation" not in json.dumps(result["suites"][0]["baseline"])
