"""`gate run --rules-from`: where no event says what a change is held to, its job names the commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.records import read_record, write_record
from tests.acceptance.conftest import Project

SUITE = "cases:\n  - {id: a, input: hello, response: hello}\n  - {id: b, input: bye, response: bye}\n"
AGENT = "def answer(message):\n    return 'something else'\n"
CONFIG = """\
name: s
suite: suite.yaml
agent: {python: "agent:answer"}
baseline: {store: none}
criteria:
  said: {metric: "checks:said", threshold: 1.0}
"""
SAID = "def said(actual, expected):\n    return actual[0].text == expected[0].response[0].text\n"
BLIND = "def said(actual, expected):\n    return 1.0\n"


def changed(project: Project) -> str:
    """A project whose change loosens its threshold and blinds its check; returns the commit before it."""
    for name, content in {"suite.yaml": SUITE, "agent.py": AGENT, "gate.yaml": CONFIG, "checks.py": SAID}.items():
        project.write(name, content)
    base = project.commit()
    project.write("gate.yaml", CONFIG.replace("threshold: 1.0", "threshold: 0.1"))
    project.write("checks.py", BLIND)
    return base


@pytest.mark.slow
def test_a_change_is_held_to_the_rules_of_the_commit(project: Project) -> None:
    base = changed(project)
    assert project.gate("run").code == 0
    code, result = project.result("run", "--rules-from", base)
    assert code == 1, result
    [suite] = result["suites"]
    assert [("said.threshold" in line, "checks:said" in line) for line in suite["changes"]] == [
        (True, False),
        (False, True),
    ]
    assert project.git("worktree", "list").count("\n") == 0


def test_a_suite_that_went_is_in_every_report(project: Project) -> None:
    changed(project)
    project.write("checks.py", SAID)
    project.write("agent.py", "def answer(message):\n    return message\n")
    project.write("gate.yaml", CONFIG.replace("name: s", "name: t"))
    code, result = project.result("run", "--rules-from", "main", "--markdown", "report.md")
    [suite] = result["suites"]
    assert (code, suite["verdict"]) == (1, "not_compared")
    assert suite["headline"].count("suite 's' of the base commit was renamed, removed or is not selected now") == 1
    assert "renamed, removed or is not selected" in (project.root / "report.md").read_text()


@pytest.mark.parametrize("name", ["elsewhere", "", "a b", "main..HEAD", "--all"])
def test_a_name_of_no_commit_is_a_mistake_of_the_job_and_never_passed_over(project: Project, name: str) -> None:
    """A variable of CI that is empty must not be taken for a job without the option."""
    changed(project)
    ran = project.gate("run", f"--rules-from={name}")
    assert (ran.code, f"commit {name!r} not found" in ran.err) == (2, True), ran.err
    ran = project.gate("run", f"--against={name}")
    assert (ran.code, f"no commit {name!r} here" in ran.err) == (2, True), ran.err


@pytest.mark.slow
def test_a_report_looks_for_the_baseline_where_its_run_did(project: Project, tmp_path: Path) -> None:
    stored = CONFIG.replace("{store: none}", "{store: git}")
    project.write("suite.yaml", SUITE)
    project.write("agent.py", "def answer(message):\n    return message\n")
    project.write("checks.py", SAID)
    project.write("gate.yaml", stored)
    project.write(".gitignore", ".gate/\nresult.json\norigin.git/\n__pycache__/\n")
    base = project.commit()
    project.git("init", "-q", "--bare", str(tmp_path / "origin.git"))
    project.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    project.git("push", "-q", "origin", "HEAD")
    assert project.gate("baseline", "-q").code == 0
    project.git("checkout", "-q", "-b", "change")
    project.write("gate.yaml", stored.replace("{store: git}", "{store: git, branch: elsewhere}"))
    project.write("agent.py", AGENT)
    project.commit("change")
    runs = [project.result("run", "--against", base, "--rules-from", base), project.result("report")]
    (measured, shown) = (result["suites"][0] for _, result in runs)
    assert [code for code, _ in runs] == [1, 1]
    assert shown["verdict"] == measured["verdict"]
    assert shown["baseline"] == measured["baseline"]
    assert base[:12] in json.dumps(shown["baseline"])
    assert shown["warnings"] == measured["warnings"]
    assert project.git("worktree", "list").count("\n") == 0


# --- baselines beside the code --------------------------------------------------------------------

GOOD, BAD = ("def answer(message):\n    return " + text + "\n" for text in ("message", "'else'"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("made"))
    measure(project, "{store: file, path: baselines}")
    return project


def measured(project: Project, made: Project) -> tuple[str, Path, Path]:
    """A commit with its record, none of it saved yet, and the record of an agent that answers nothing right."""
    return found(made.copied(project))


def measure(project: Project, baseline: str) -> None:
    cases = [{"id": f"c{n}", "input": f"hello {n}", "response": f"hello {n}"} for n in range(12)]
    config = CONFIG.replace("{store: none}", baseline).replace(", threshold: 1.0", "")
    files = {"suite.yaml": {"cases": cases}, "agent.py": GOOD, "gate.yaml": config, "checks.py": SAID}
    for name, content in {**files, ".gitignore": "result.json\n.gate/records/\n__pycache__/\n"}.items():
        project.write(name, content)
    for text in (GOOD, BAD):
        project.write("agent.py", text)
        project.commit("first")
        assert project.gate("run", "--trials", "5", "--against", "HEAD").code == 0


def found(project: Project) -> tuple[str, Path, Path]:
    commits = [project.git("rev-parse", revision) for revision in ("HEAD~1", "HEAD")]
    project.git("checkout", "-q", "HEAD~1")
    own, worse = ((project.root / ".gate/records").rglob(f"{commit}*.jsonl") for commit in commits)
    return commits[0], next(own), next(worse)


def forge(record: Path, commit: str, to: Path) -> None:
    read = read_record(record)
    write_record(to, replace(read, header=replace(read.header, commit=commit)))


@pytest.mark.slow
def test_baselines_that_are_committed_are_read_as_the_base_has_them(project: Project, made: Project) -> None:
    """A change that makes its yardstick worse, as it gets worse itself."""
    first, own, worse = measured(project, made)
    assert project.gate("baseline", "save", str(own)).code == 0
    base = project.commit("with the baseline")
    project.write("agent.py", BAD)
    [stored] = (project.root / "baselines").rglob(f"{first}.jsonl")
    forge(worse, first, stored)
    project.commit("change")
    code, result = project.result("run", "--against", base, "--rules-from", base)
    [suite] = result["suites"]
    assert (code, suite["verdict"]) == (1, "regressed"), suite["headline"]
    assert "baselines: files edited, which takes effect once it is merged" in suite["changes"]
    assert suite["baseline"]["source"] == str(stored)
    assert project.result("report")[1]["suites"][0]["baseline"] == suite["baseline"]


@pytest.mark.slow
def test_a_folder_of_baselines_that_a_change_brings_counts_for_nothing(project: Project, made: Project) -> None:
    first, own, worse = measured(project, made)
    assert project.gate("baseline", "save", str(own)).code == 0
    [stored] = (project.root / "baselines").rglob(f"{first}.jsonl")
    forge(worse, first, stored)
    project.write("agent.py", BAD)
    project.commit("change")
    code, result = project.result("run", "--against", first, "--rules-from", first)
    assert (code, result["suites"][0]["verdict"]) == (1, "regressed"), "the base commit's agent is the yardstick"
    assert f"compared with the agent at {first[:7]}, run alongside this change" in result["suites"][0]["headline"]
    forge(own, first, stored.with_name(f"{'0' * 40}.jsonl"))
    ran = project.gate("run", "--against", first, "--rules-from", first)
    assert ran.code == 2 and "the change brings baselines/" in ran.err, "which of them count?"


@pytest.mark.slow
def test_records_that_no_commit_has_are_the_jobs_own(project: Project, made: Project) -> None:
    first, own, _ = measured(project, made)
    project.write("agent.py", BAD)
    project.commit("change")
    assert project.gate("baseline", "save", str(own)).code == 0
    code, result = project.result("run", "--against", first, "--rules-from", first)
    assert (code, result["suites"][0]["verdict"]) == (1, "regressed")


@pytest.mark.slow
@pytest.mark.parametrize("store", ["file", "none", "git"])
def test_a_folder_outside_the_repository_is_read_where_it_is(project: Project, tmp_path: Path, store: str) -> None:
    folder = tmp_path.with_name(f"{tmp_path.name}-shared")
    measure(project, f"{{store: file, path: {folder}}}")
    first, own, _ = found(project)
    assert project.gate("baseline", "save", str(own)).code == 0
    config = (project.root / "gate.yaml").read_text()
    project.write("gate.yaml", config.replace("store: file", f"store: {store}"))
    project.write("agent.py", BAD)
    project.commit("change")
    code, result = project.result("run", "--against", first, "--rules-from", first)
    assert (code, result["suites"][0]["verdict"]) == (1, "regressed"), "the base's store holds"
