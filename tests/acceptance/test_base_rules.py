"""What a change may do to the rules that it is judged by, through real git and the real command: nothing that helps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest

from tests.acceptance.conftest import Project, first_of

CASES = 12
AGENT = """\
from pathlib import Path

BROKEN = Path(__file__).with_name("broken.txt").read_text().split()


def answer(message):
    return "something else" if message in BROKEN else message
"""
CONFIG = """\
name: s
suite: suite.yaml
agent: {python: "agent:answer"}
criteria:
  contains: {threshold: 0.5}
"""
SMOKE = CONFIG + "select: {tags: [smoke], complexity: [simple, medium]}\n"


HALF = " ".join(f"word{n}" for n in range(CASES // 2))


def case(n: int, more: str = "tags: [smoke]") -> str:
    return f"  - {{id: c{n}, input: word{n}, options: {{contains: {{values: [word{n}]}}}}, {more}}}\n"


def suite(changed: Callable[[int], str | None] = lambda _: None) -> str:
    return "cases:\n" + "".join(changed(n) or case(n) for n in range(CASES))


def based(project: Project, config: str = CONFIG, folder: str = ".", **files: str) -> None:
    """A main branch with a baseline: three trials of a sound agent."""
    for name, content in {"suite.yaml": suite(), "agent.py": AGENT, "broken.txt": "", "gate.yaml": config}.items():
        project.write(f"{folder}/{name}", content)
    for name, content in files.items():
        project.write(name.replace("__", "."), content)
    project.write(".gitignore", ".gate/\n__pycache__/\nresult.json\n")
    project.commit()
    project.store("-c", f"{folder}/gate.yaml", trials=3)
    project.git("checkout", "-q", "-b", "change")


def breaks(project: Project, cases: int, folder: str = ".") -> None:
    project.write(f"{folder}/broken.txt", " ".join(f"word{n}" for n in range(cases)))


def judged(project: Project, config: str = "gate.yaml", *arguments: str) -> tuple[int, dict]:  # type: ignore[type-arg]
    project.commit("change")
    code, result = project.result("run", "-c", config, "--rules-from", "main", *arguments)
    [found] = result["suites"]
    return code, found


@pytest.mark.slow
@pytest.mark.parametrize(
    "disguise", first_of(["tags: [other]", "tags: [smoke], complexity: complex", "complexity: complex"])
)
def test_failing_cases_are_judged_whatever_they_are_called_now(project: Project, disguise: str) -> None:
    based(project, SMOKE)
    breaks(project, 4)
    project.write("suite.yaml", suite(lambda n: case(n, disguise) if n < 4 else None))
    code, found = judged(project)
    assert (code, found["verdict"]) == (1, "regressed"), found["headline"]


@pytest.mark.slow
def test_a_renamed_case_is_selected_by_what_it_was(project: Project) -> None:
    based(project, CONFIG + 'select: {ids: ["c*"]}\n')
    breaks(project, 4)
    project.write("suite.yaml", suite(lambda n: case(n).replace(f"id: c{n}", f"id: x{n}") if n < 4 else None))
    _, found = judged(project)
    assert found["verdict"] != "pass", found["headline"]
    assert {f"x{n}" for n in range(4)} <= {case["id"] for case in found["cases"]}


@pytest.mark.slow
def test_a_folder_that_became_a_link_is_judged_by_the_rules_of_its_name(project: Project) -> None:
    based(project, folder="evals")
    lax = CONFIG.replace("threshold: 0.5", "threshold: 0.0, blocking: false").replace(
        "criteria:", 'criteria:\n  not_contains: {values: ["never said"]}'
    )
    for name, content in {"suite.yaml": suite(), "agent.py": AGENT, "broken.txt": "", "gate.yaml": lax}.items():
        project.write(f"lax/{name}", content)
    (project.root / "evals" / ".gate").rename(project.root / "lax" / ".gate")
    shutil.rmtree(project.root / "evals")
    (project.root / "evals").symlink_to("lax")
    breaks(project, 12, "lax")
    code, found = judged(project, "evals/gate.yaml")
    assert code == 1, found["headline"]
    assert "contains.blocking: true → false takes effect once it is merged" in found["changes"]


@pytest.mark.slow
def test_a_ratchet_that_was_off_stays_off(project: Project) -> None:
    strict = CONFIG.replace("{threshold: 0.5}", "{threshold: 0.9, ratchet: false, regression: warn}")
    lax = CONFIG.replace("{threshold: 0.5}", "{threshold: 0.9, regression: warn}")
    based(
        project, CONFIG.replace("threshold: 0.5", "threshold: 0.1"), broken__txt=" ".join(f"word{n}" for n in range(6))
    )
    project.git("checkout", "-q", "main")
    project.write("gate.yaml", strict)
    project.git("commit", "-q", "-a", "-m", "raise it")
    project.git("checkout", "-q", "change")
    project.write("gate.yaml", lax)
    code, found = judged(project)
    assert (code, found["verdict"]) == (1, "below_threshold"), found["headline"]


@pytest.mark.slow
def test_the_margin_of_the_pass_rate_is_the_bases_default(project: Project) -> None:
    based(project)
    breaks(project, 4)
    project.write("gate.yaml", CONFIG + "gate: {pass_rate_margin: 1.0}\n")
    code, found = judged(project)
    assert code == 1, found["headline"]
    assert "gate.pass_rate_margin: nothing → 1.0 takes effect once it is merged" in found["changes"]


def test_a_case_does_not_let_itself_off(project: Project) -> None:
    based(project, CONFIG.replace("threshold: 0.5", "threshold: 0.5, regression: warn"))
    breaks(project, 4)
    project.write("suite.yaml", suite(lambda n: case(n, "tags: [smoke], thresholds: {contains: 0.0}")))
    code, found = judged(project)
    assert (code, found["verdict"]) == (1, "regressed"), found["headline"]
    assert "case 'c0': contains: nothing → 0.0 takes effect once it is merged" in found["changes"]


@pytest.mark.slow
def test_a_change_does_not_hide_a_drop_of_the_suite_in_a_cluster(project: Project) -> None:
    """All cases in one cluster are one unit, and one unit proves nothing."""
    based(project)
    breaks(project, 9)
    project.write("suite.yaml", suite(lambda n: case(n, "tags: [smoke], cluster: all")))
    code, found = judged(project, "gate.yaml", "--trials", "1")
    assert (code, found["verdict"]) == (1, "regressed"), found["headline"]
    assert "the cluster of case 'c0' and 11 more takes effect once it is merged" in found["changes"]


def test_rules_that_moved_prove_nothing(project: Project) -> None:
    """No such configuration at the base, and a baseline of this very suite."""
    based(project)
    project.git("rm", "-q", "gate.yaml")
    project.write("other.yaml", CONFIG)
    code, found = judged(project, "other.yaml")
    assert (code, found["verdict"]) == (1, "not_compared"), found["headline"]
    assert "its rules are unknown" in found["headline"]


@pytest.mark.slow
def test_a_configuration_that_moves_with_its_suite_renamed_is_no_first_one(project: Project) -> None:
    based(project)
    project.git("rm", "-q", "gate.yaml")
    project.write("other.yaml", CONFIG.replace("name: s", "name: t"))
    code, found = judged(project, "other.yaml")
    assert (code, found["verdict"]) == (1, "not_compared"), found["headline"]
    assert "suite 's' of the base commit was renamed" in found["headline"]


@pytest.mark.slow
def test_an_unchanged_limit_on_a_quantile_is_no_change(project: Project) -> None:
    based(project, CONFIG + "  latency: {p95: 60}\n")
    code, found = judged(project, "gate.yaml", "--trials", "1")
    assert (code, found["verdict"]) in ((0, "pass"), (0, "inconclusive")), found["headline"]
    assert not [line for line in found["changes"] if "latency" in line]


@pytest.mark.slow
def test_stricter_rules_hide_nothing(project: Project) -> None:
    """Under a threshold that the baseline missed too, the ratchet would forgive what the base's own does not."""
    half = " ".join(f"word{n}" for n in range(6))
    based(
        project,
        CONFIG.replace("{threshold: 0.5}", "{threshold: 0.45, regression: warn, margin: 0.9}"),
        broken__txt=half,
    )
    breaks(project, 12)
    project.write("gate.yaml", CONFIG.replace("{threshold: 0.5}", "{threshold: 1.0, regression: warn, margin: 0.9}"))
    code, found = judged(project)
    assert code == 1, found["headline"]


@pytest.mark.slow
def test_another_agent_is_said_and_measured(project: Project) -> None:
    based(project)
    project.write("other.py", AGENT)
    project.write("gate.yaml", CONFIG.replace("agent:answer", "other:answer"))
    code, found = judged(project)
    assert code == 0, found["headline"]
    assert 'the agent differs: agent.python: "agent:answer" → "other:answer"' in found["changes"]
    assert "another agent than the base's" in found["headline"]


@pytest.mark.slow
def test_a_stub_in_the_agents_place_stands_in_the_headline(project: Project) -> None:
    """It passes what it was written to pass; a reader has to know what passed."""
    based(project)
    project.write("stub.py", AGENT)
    told = "import sys; sys.path.insert(0, '.'); import json, stub; print(json.dumps({'output': 'done'}))"
    project.write(
        "gate.yaml", CONFIG.replace('{python: "agent:answer"}', json.dumps({"command": ["python", "-c", told]}))
    )
    _, found = judged(project)
    assert "another agent than the base's" in found["headline"]


@pytest.mark.slow
def test_a_selection_says_what_it_left_out(project: Project) -> None:
    based(project)
    project.write("suite.yaml", suite(lambda n: case(n, "tags: [rare]") if n >= 3 else None))
    project.commit("tags")
    code, result = project.result("run", "--tag", "rare")
    [found] = result["suites"]
    assert code == 0
    assert found["headline"].endswith("; 9 of 12 cases were run: tag rare")
    assert not [case for case in found["cases"] if case["status"] == "removed"]


@pytest.mark.slow
def test_outside_of_a_selection_nothing_is_owed(project: Project) -> None:
    based(project, CONFIG, suite__yaml=suite(lambda n: case(n, "tags: [rare]") if n < 9 else None))
    project.write("suite.yaml", "cases:\n" + "".join(case(n) for n in range(9, 12)))
    _, found = judged(project, "gate.yaml", "--tag", "smoke")
    assert not [case for case in found["cases"] if case["status"] == "removed"], found["headline"]
    everything = project.result("run", "--rules-from", "main")[1]["suites"][0]
    assert everything["verdict"] == "not_compared"
    assert "9 of the 12" in everything["headline"]


WITH_RESPONSE = suite(lambda n: case(n).replace("word0,", "word0, response: word0,") if n == 0 else None)


@pytest.mark.parametrize("now", first_of([WITH_RESPONSE.replace("response:", "metadata: {a: b}, response:"), suite()]))
def test_a_criterion_is_owed_however_few_cases_it_was_measured_on(project: Project, now: str) -> None:
    """It goes with its cases, edited or no longer there: inconclusive, neither a pass nor a refusal of the change."""
    based(project, CONFIG + "  response_match_score: {threshold: 0.5}\n", suite__yaml=WITH_RESPONSE)
    project.write("suite.yaml", now)
    if "response" not in now:
        project.write("gate.yaml", CONFIG)
    code, found = judged(project, "gate.yaml")
    assert (code, found["verdict"]) == (1, "not_compared"), found["headline"]
    [row] = [row for row in found["criteria"] if row["criterion"]["name"] == "response_match_score"]
    assert row["not_compared"] == "none of the cases that it was measured on is compared (1)"
