"""Parity with agentevals, which scores ADK's trajectory metric on traces: the same files, trace by trace."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.acceptance.conftest import Project
from tests.connectors.traces import SHAPES, calls, eval_set, wanted, words
from tests.unit.traces.spans import agent, chat, request, said, text

pytestmark = pytest.mark.connectors
TRACES = 220
METRIC = "tool_trajectory_avg_score"


def written(project: Project) -> list[str]:
    """A file of traces and an eval set that expects something of each; the shape of each trace."""
    draw = Random(20)
    made = [calls(draw) for _ in range(TRACES)]
    shapes = [SHAPES[number % len(SHAPES)] for number in range(TRACES)]
    lines = [one for number, shape in enumerate(shapes) for one in shape(draw, number, made[number])]
    project.write("traces.jsonl", "\n".join(map(json.dumps, lines)) + "\n")
    project.write("cases.evalset.json", eval_set([wanted(draw, one) for one in made]))
    return [shape.__name__ for shape in shapes]


def theirs(agentevals: Path, project: Project, match_type: str) -> dict[str, float]:
    """Case → score, as agentevals gives it."""
    arguments = ["run", "traces.jsonl", "-e", "cases.evalset.json", "-o", "json", "--group-by", "trace"]
    arguments += ["--trajectory-match-type", match_type.lower(), "-m", METRIC]
    ran = subprocess.run([agentevals, *arguments], cwd=project.root, capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(ran.stdout[ran.stdout.index("{") :])
    return {f"case-{int(one['trace_id'], 16) - 1}": one["metrics"][0]["score"] for one in found["traces"]}


def ours(project: Project, match_type: str) -> dict[str, float | None]:
    criteria = {METRIC: {"threshold": 0.5, "match_type": match_type}}
    config = {"suite": "cases.evalset.json", "agent": {"replay": "traces.jsonl"}, "criteria": criteria}
    project.write("gate.yaml", config)
    project.gate("run", "--quiet", "--record", f"{match_type}.jsonl")
    lines = [json.loads(line) for line in (project.root / f"{match_type}.jsonl").read_text().splitlines()]
    return {line["case"]: _value(line["scores"][METRIC]) for line in lines if "scores" in line}


def _value(score: Any) -> float | None:
    found: float | None = score.get("value") if isinstance(score, dict) else score
    return found


@pytest.mark.parametrize("match_type", ["EXACT", "IN_ORDER", "ANY_ORDER"])
def test_scores_are_theirs_trace_by_trace(project: Project, agentevals: Path, match_type: str) -> None:
    shapes = written(project)
    expected, found = theirs(agentevals, project, match_type), ours(project, match_type)
    assert len(expected) == TRACES
    differing = {
        case: (shapes[int(case.removeprefix("case-"))], score, found.get(case))
        for case, score in expected.items()
        if found.get(case) != score
    }
    assert differing == {}
    assert 0 < sum(expected.values()) < TRACES  # the expectations tell traces apart


def test_what_a_trace_does_not_show_is_not_measured_here_and_agreed_there(project: Project, agentevals: Path) -> None:
    """The one difference: spans without content say nothing of calls, which they score as an agent without calls."""
    project.write("cases.evalset.json", eval_set([[]]))
    bare = request(agent(1, trace=f"{1:032x}"), chat(2, read=[said("user", text(words(0)))], trace=f"{1:032x}"))
    project.write("traces.jsonl", json.dumps(bare) + "\n")
    assert theirs(agentevals, project, "EXACT") == {"case-0": 1.0}
    assert ours(project, "EXACT") == {"case-0": None}
