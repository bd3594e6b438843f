"""What a suite asks of a metric that the configuration does not answer: refused before anything is run."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import Project

CONFIG = "agent: {python: agent:answer}\nsuite: suite.yaml\n"
EVALVIEW = "name: late\ninput: {query: Late}\nexpected: {tools: [find]}\nthresholds: {min_score: 80}\n"


@pytest.mark.parametrize(
    ("defined", "hint"),
    [
        ("tool_categories: {search: [find], pay: [charge]}\n", "did you mean 'search'?"),
        ("", "define it under tool_categories"),
    ],
)
def test_an_expected_category_that_is_not_defined_is_refused(project: Project, defined: str, hint: str) -> None:
    project.write("gate.yaml", CONFIG + defined + "criteria: {tool_accuracy: 1.0}\n")
    project.write("suite.yaml", "cases:\n  - {id: a, input: hi, tools: [{category: serach}]}\n")
    ran = project.gate("run")
    assert ran.code == 2, ran.out + ran.err
    assert "suite.yaml:2" in ran.err
    assert "case 'a' expects a tool of category 'serach', which is not defined" in ran.err
    assert hint in ran.err


def test_a_min_score_of_nothing_is_refused(project: Project) -> None:
    project.write("gate.yaml", CONFIG + "criteria: {tool_accuracy: 1.0, weighted_score: {}}\n")
    project.write("suite.yaml", EVALVIEW)
    ran = project.gate("run")
    assert ran.code == 2, ran.out + ran.err
    assert "case 'late' demands a weighted_score (`min_score`) without weights" in ran.err
    project.write("suite.yaml", EVALVIEW.replace("min_score: 80", "min_score: 80, weights: {tool_accuracy: 1}"))
    assert project.gate("suite").code == 0
