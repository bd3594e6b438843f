"""`gate run --rules-from`: where no event says what a change is held to, its job names the commit."""

from __future__ import annotations

import json
from pathlib import Path

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
  said: {metric: "checks:said", threshold: 1.0, strict: true}
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


def test_a_change_is_held_to_the_rules_of_the_commit(project: Project) -> None:
    base = changed(project)
    assert project.gate("run").code == 0
    for revision in (base, "main"):
        code, result = project.result("run", "--rules-from", revision)
        assert code == 1, result
        [suite] = result["suites"]
        assert "said.threshold: 1.0 → 0.1 takes effect once it is merged" in suite["changes"]
        assert "custom metric checks:said: edited, takes effect once it is merged" in suite["changes"]
    assert project.git("worktree", "list").count("\n") == 0


def test_a_suite_that_went_is_in_every_report(project: Project) -> None:
    changed(project)
    project.write("checks.py", SAID)
    project.write("agent.py", "def answer(message):\n    return message\n")
    project.write("gate.yaml", CONFIG.replace("name: s", "name: t"))
    code, result = project.result("run", "--rules-from", "main", "--markdown", "report.md")
    [suite] = result["suites"]
    assert (code, suite["verdict"]) == (0, "inconclusive")
    assert suite["headline"] == suite["doubt"] == "suite 's' of the base commit no longer exists"
    assert "no longer exists" in (project.root / "report.md").read_text()


def test_a_revision_that_is_not_here(project: Project) -> None:
    changed(project)
    ran = project.gate("run", "--rules-from", "elsewhere")
    assert ran.code == 2
    assert "commit 'elsewhere' not found" in ran.err


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
    assert project.gate("run").code == 0
    assert project.gate("baseline", "save").code == 0
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


def test_baselines_that_are_committed_are_read_as_the_base_has_them(project: Project) -> None:
    """A change that makes its yardstick worse, as it gets worse itself."""
    cases = [{"id": f"c{n}", "input": f"hello {n}", "response": f"hello {n}"} for n in range(12)]
    good, bad = ("def answer(message):\n    return " + text + "\n" for text in ("message", "'else'"))
    config = CONFIG.replace("{store: none}", "{store: file}").replace(", threshold: 1.0, strict: true", "")
    files = {"suite.yaml": {"cases": cases}, "agent.py": good, "gate.yaml": config, "checks.py": SAID}
    for name, content in {**files, ".gitignore": "result.json\n.gate/records/\n"}.items():
        project.write(name, content)
    for text in (good, bad):
        project.write("agent.py", text)
        project.commit("first")
        assert project.gate("run", "--trials", "5", "--against", "HEAD").code == 0
    worse = project.git("rev-parse", "HEAD")
    project.git("checkout", "-q", "HEAD~1")
    [record] = (project.root / ".gate/records").rglob(f"{worse}*.jsonl")
    first = project.git("rev-parse", "HEAD")
    [own] = (project.root / ".gate/records").rglob(f"{first}*.jsonl")
    assert project.gate("baseline", "save", str(own)).code == 0
    base = project.commit("with the baseline")
    project.write("agent.py", bad)
    [stored] = (project.root / ".gate/baselines").rglob(f"{first}.jsonl")
    forged = read_record(record)
    write_record(stored, replace(forged, header=replace(forged.header, commit=first)))
    project.commit("change")
    code, result = project.result("run", "--against", base, "--rules-from", base)
    [suite] = result["suites"]
    assert (code, suite["verdict"]) == (1, "regressed"), suite["headline"]
    assert ".gate/baselines: files edited, which takes effect once it is merged" in suite["changes"]
    assert suite["baseline"]["source"] == str(stored)
    assert project.result("report")[1]["suites"][0]["baseline"] == suite["baseline"]
