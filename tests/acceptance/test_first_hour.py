"""The first hour with the gate: the demo, the help, the first baseline, and files that its own runs leave behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from gate.commands.texts.help import TOPICS
from tests.acceptance.conftest import Project
from tests.acceptance.test_stored_epochs import serving

CASES = {"cases": [{"id": f"c{n}", "input": f"item {n}", "response": "Done."} for n in range(4)]}
AGENT = (
    "def answer(message):\n    with open('calls.txt', 'a') as calls:\n        calls.write('x')\n    return 'Done.'\n"
)


@pytest.fixture
def ready(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A committed project on somebody's own machine."""
    monkeypatch.setenv("CI", "false")
    project.write("cases.json", CASES)
    project.write(
        "gate.yaml",
        {"suite": "cases.json", "agent": {"python": "agent:answer"}, "criteria": {"response_match_score": 0.5}},
    )
    project.write("agent.py", AGENT)
    project.write(".gitignore", ".gate/\n__pycache__/\ncalls.txt\n")
    project.commit()
    return project


def asked(project: Project) -> int:
    return len((project.root / "calls.txt").read_text())


@pytest.mark.parametrize(
    "with_git", [pytest.param(True, id="git"), pytest.param(False, id="without git", marks=pytest.mark.slow)]
)
def test_the_demo_catches_its_change_and_its_loss_can_be_accepted(project: Project, with_git: bool) -> None:
    environment = {} if with_git else {"PATH": str(project.root)}
    ran = project.gate("demo", **environment)
    assert ran.code == 0, ran.out + ran.err
    assert "regressed" in ran.out
    report = re.search(r"report +(.*)", ran.out)
    assert report is not None
    assert "look_up_order" in Path(report[1]).read_text()
    shop = Project(Path(report[1]).parent)
    if with_git:
        assert shop.gate("baseline", "save").code == 0
        accepted = shop.gate("baseline", "accept", "--why", "no look-up is needed")
        assert (accepted.code, "is the long-term baseline now" in accepted.out) == (0, True), accepted.err
    shop.write("prompt.txt", "Before you refund an order, look it up.\n")
    assert shop.gate("run", "-q", **environment).code == 0, "the other way out"


def test_help_has_pages_whose_examples_can_be_read(project: Project) -> None:
    for topic, page in TOPICS.items():
        assert project.gate("help", topic).out == page.lstrip("\n")
        assert max(map(len, page.splitlines())) <= 110, topic
        examples = [part for part in page.split("\n\n") if re.match(r"\w+:", part) and ":\n" in part]
        assert all(isinstance(yaml.safe_load(part), dict) for part in examples if "One of" not in part), topic
    assert project.gate("help", "run").out.startswith("Usage: gate run")
    assert project.gate("help").out == project.gate().out
    missed = project.gate("help", "casse")
    assert (missed.code, "did you mean 'cases'?" in missed.err) == (2, True)


def test_baseline_measures_and_stores_in_one_step(ready: Project) -> None:
    assert ready.gate("run", "-q").code == 0
    ran = ready.gate("baseline", "-q")
    assert (ran.code, asked(ready)) == (0, 5 * 4), ran.err
    assert "saved .gate/baselines/" in ran.out
    assert "kept on this machine only" in ran.out
    again = ready.gate("baseline", "-q")
    assert (again.code, asked(ready)) == (0, 5 * 4), "everything is measured already"
    ready.git("checkout", "-q", "-b", "change")
    ready.write("agent.py", AGENT.replace("Done.", "No idea."))
    assert ready.gate("run", "-q").code == 1


def test_an_earlier_run_does_not_make_the_baseline_one_that_was_picked(ready: Project) -> None:
    """Of a server without a version nobody knows whether both runs asked the same agent."""
    with serving() as served:
        ready.write(
            "gate.yaml",
            {"suite": "cases.json", "agent": {"http": served.url}, "criteria": {"response_match_score": 0.5}},
        )
        ready.commit("gate")
        assert ready.gate("run", "-q").code == 0
        assert "left out" not in ready.gate("baseline", "-q").out
        ready.commit("change")
        ran = ready.gate("run")
    assert (ran.code, "picked" in ran.out) == (0, False), ran.out


def test_a_baseline_is_refused_before_anything_is_spent_on_it(ready: Project) -> None:
    ready.write("notes.txt", "x")
    ran = ready.gate("baseline")
    assert (ran.code, "not committed: notes.txt (" in ran.err, (ready.root / "calls.txt").exists()) == (6, True, False)
    misplaced = ready.gate("baseline", "-c", "other.yaml", "list")
    assert (misplaced.code, "--config belongs after 'list'" in misplaced.err) == (2, True)


def test_reports_and_records_are_no_changes_of_the_user(ready: Project) -> None:
    """Wherever they are written: the tree stays clean, and the agent stays the same."""
    written = {"html": "r.html", "markdown": "out/r.md", "junit": "out/r.xml", "json": "out/r.json", "ctrf": "c.json"}
    options = [f"--report={form}={path}" for form, path in written.items()]
    assert ready.gate("run", "-q", "--openmetrics", "m.txt", "--record", "r.jsonl", *options).code == 0
    before = asked(ready)
    ran = ready.gate("baseline", "-q")
    assert ran.code == 0, ran.err
    ready.gate("baseline", "-q")
    assert asked(ready) - before == 5 * 4, "the second run finds what the first one measured of the same agent"
    (ready.root / "out" / "note.md").write_text("mine")
    assert "not committed: out/" in ready.gate("baseline").err


def test_doctor_is_one_screen_and_names_the_agents_files(ready: Project) -> None:
    ready.write("README.md", "x")
    ready.commit("readme")
    ran = ready.gate("doctor")
    assert (ran.code, len(ran.out.splitlines()) <= 24) == (0, True), ran.out
    assert "all 5 tracked files count as the agent's" in ran.out
    assert "(to do: agent.sources: [agent.py])" in ran.out
    config = {"suite": "cases.json", "agent": {"python": "agent:answer", "sources": ["agent.py"]}}
    ready.write("gate.yaml", {**config, "criteria": {"response_match_score": 0.5}})
    assert "ok files: agent: 1 of 5 tracked files: agent.py" in ready.gate("doctor").out
    ready.write("requirements.txt", "")
    ready.git("add", "requirements.txt")
    assert "agent: 2 of 6 tracked files: agent.py, requirements.txt" in ready.gate("doctor").out


def test_a_change_beside_the_agent_says_what_sources_would_have_saved(ready: Project) -> None:
    assert ready.gate("baseline", "-q").code == 0
    ready.git("checkout", "-q", "-b", "change")
    ready.write("README.md", "x")
    ready.commit("readme")
    told = "with `agent.sources: [agent.py]` it would cost no run"
    ran = ready.gate("run", "-v")
    assert (ran.code, told in " ".join(ran.out.split())) == (0, True), ran.out
    ready.write("agent.py", AGENT + "x = 1\n")
    ready.commit("agent")
    assert told not in " ".join(ready.gate("run", "-v").out.split())


def test_a_dry_run_says_what_it_would_take_and_runs_nothing(ready: Project) -> None:
    config = {"suite": "cases.json", "agent": {"python": "agent:answer"}, "trials": {"max": 3}}
    judge = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "num_samples": 2}
    criteria = {"response_match_score": 0.5, "final_response_match_v2": 0.5}
    ready.write("gate.yaml", {**config, "criteria": criteria, "judge": judge})
    ran = ready.gate("run", "--dry-run")
    assert (ran.code, (ready.root / "calls.txt").exists()) == (0, False), ran.err
    assert (
        "agent runs   4, at most 12 if the answer is close; besides, reruns of cases that look worse, and " in ran.out
    )
    assert "judge calls  8, at most 24" in ran.out
    assert "money        not known" in ran.out
    priced = {**judge, "price": {"input": 1, "output": 4}}
    ready.write("gate.yaml", {**config, "criteria": criteria, "judge": priced})
    told = ready.gate("run", "--dry-run").out
    assert "money        about $0.04, at most $0.12 for the judge; no record here tells what a run costs" in told
    ready.write("gate.yaml", {**config, "criteria": {"response_match_score": 0.5}})
    ready.write("agent.py", "def answer(message):\n    return {'output': 'Done.', 'cost_usd': 0.01}\n")
    assert ready.gate("run", "-q").code == 0
    told = ready.gate("baseline", "--dry-run").out
    assert "agent runs   20, at most 40 if more are wanted, less what is measured already" in told
    assert "judge calls  none" in told
    assert "money        about $0.20, at most $0.40, at $0.01 a run\n" in told
    ready.write("gate.yaml", {**config, "criteria": criteria, "judge": priced})
    told = ready.gate("run", "--dry-run").out
    assert "money        about $0.08, at most $0.24, at $0.01 a run and $0.01 to judge it" in told
    assert not list((ready.root / ".gate").rglob("baselines"))


def test_a_dry_run_counts_turns_epochs_of_all_k_and_what_the_default_branch_stores(
    ready: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [{"input": "a", "response": "b"}, {"input": "c", "response": "d"}]
    ready.write("cases.json", [{"id": "one", "turns": turns}, {"id": "two", "input": "e", "response": "f"}])
    judge = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "num_samples": 2}
    criteria = {"final_response_match_v2": 0.5, "pass_k": {"k": 3, "threshold": 0.5}}
    config = {"suite": "cases.json", "agent": {"python": "agent:answer"}, "criteria": criteria, "judge": judge}
    ready.write("gate.yaml", config)
    told = ready.gate("run", "--dry-run").out
    assert "agent runs   6;" in told
    assert "judge calls  18\n" in told
    ready.commit()
    monkeypatch.setenv("CI", "true")
    assert "agent runs   10, at most 20 if more are wanted" in ready.gate("run", "--dry-run").out
