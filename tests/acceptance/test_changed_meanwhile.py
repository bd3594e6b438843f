"""The work tree changes while a run measures it: a record names a commit only if that commit alone was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gate.records import Header, Record, read_record
from tests.acceptance.conftest import Outcome, Project

AGENT = """\
import json, os, subprocess, sys
from pathlib import Path

json.load(sys.stdin)
print(json.dumps({"output": Path("behaviour.txt").read_text().strip()}))
calls = Path(os.environ["CALLS"])
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
if len(calls.read_text()) == 2:  # the user does something else meanwhile
    subprocess.run(["sh", calls.with_name("meanwhile.sh")], check=True, stdout=sys.stderr)
"""
CONFIGURATION = """\
suite: suite.yaml
agent: {{command: [python3, agent.py], concurrency: 1, env: [CALLS]{more}}}
criteria: {{contains: 1.0}}
"""
CASES = 3
IDENTITY = "git -c user.name=test -c user.email=test@localhost"


def repository(project: Project, more: str = "") -> Project:
    project.write("agent.py", AGENT)
    project.write("behaviour.txt", "good\n")
    project.write("README.md", "An agent\n")
    project.write("suite.yaml", {"cases": [{"id": f"c{n}", "input": "?", "contains": ["good"]} for n in range(CASES)]})
    project.write("gate.yaml", CONFIGURATION.format(more=more))
    project.write(".gitignore", ".gate/\n*.log\n")
    project.commit("good")
    project.git("checkout", "-qb", "other")
    project.write("behaviour.txt", "good, too\n")
    project.commit("other")
    project.git("checkout", "-q", "main")
    return project


def run(project: Project, meanwhile: str, *options: str, trials: int = 1, **environment: str) -> Outcome:
    """Runs the gate; its output comes back as one line."""
    calls = project.root.with_name(f"{project.root.name}-calls") / "calls.txt"
    calls.parent.mkdir(exist_ok=True)
    calls.unlink(missing_ok=True)
    calls.with_name("meanwhile.sh").write_text(meanwhile)
    ran = project.gate("run", "-v", "--trials", str(trials), *options, CALLS=str(calls), **environment)
    return replace(ran, out=" ".join(ran.out.split()))


def records(project: Project) -> list[Record]:
    found = [read_record(path, complete=False) for path in project.root.glob(".gate/records/*/*.jsonl")]
    return sorted(found, key=lambda record: record.header.dirty)


def header(project: Project) -> Header:
    (record,) = records(project)
    return record.header


@pytest.mark.parametrize(
    "meanwhile",
    [
        "git checkout -q other",
        "sleep 1; git checkout -q other; git switch -q main",
        "sleep 1; git reset -q --hard other; git reset -q --hard ORIG_HEAD",
        "echo better > behaviour.txt",
        "rm README.md",
        "chmod +x behaviour.txt",
        f"echo better > behaviour.txt; {IDENTITY} commit -qam better",
    ],
)
def test_a_record_of_a_changed_tree_counts_as_uncommitted(project: Project, meanwhile: str) -> None:
    commit = repository(project).git("rev-parse", "HEAD")
    ran = run(project, meanwhile)
    assert header(project).dirty
    assert header(project).commit == commit
    assert "changed during the run: it counts as a run with uncommitted" in ran.out
    saved = project.gate("baseline", "save")
    assert saved.code == 6
    assert "uncommitted changes" in saved.err


@pytest.mark.parametrize(
    "meanwhile",
    [
        "true",
        "touch behaviour.txt",
        "echo good > copy.log; mv copy.log behaviour.txt",
        "echo note > note.txt",
        "echo line >> calls.log",
        f"{IDENTITY} commit -q --allow-empty -m later",
        f"{IDENTITY} commit -q --amend -m better",
        f"echo note > note.txt; git add note.txt; {IDENTITY} commit -qm note",
        "git checkout -q --detach; git checkout -qb third",
    ],
)
def test_a_record_of_the_same_files_names_its_commit(project: Project, meanwhile: str) -> None:
    commit = repository(project).git("rev-parse", "HEAD")
    ran = run(project, meanwhile)
    assert ran.code == 0, ran.out
    assert not header(project).dirty
    assert header(project).commit == commit


def test_only_the_files_that_count_as_the_agents_matter(project: Project) -> None:
    repository(project, ", sources: [agent.py, behaviour.txt]")
    run(project, "echo more >> README.md")
    assert not header(project).dirty


def test_an_agent_that_writes_a_tracked_file_is_told_the_way_to_a_baseline(project: Project) -> None:
    repository(project)
    assert "`agent.sources` leaves out what the agent itself writes" in run(project, "echo 1 >> README.md").out
    project.git("checkout", "-q", "--", ".")
    project.write("gate.yaml", CONFIGURATION.format(more=", sources: [agent.py, behaviour.txt]"))
    project.commit("sources")
    run(project, "echo 1 >> README.md")
    saved = project.gate("baseline", "save", "--config", "gate.yaml")
    assert saved.code == 0, saved.err


def test_what_changes_in_a_ci_job_the_agent_writes_itself(project: Project) -> None:
    repository(project)
    run(project, "echo better > behaviour.txt", CI="true")
    assert not header(project).dirty


def test_the_record_of_the_commit_keeps_what_was_measured_of_it(project: Project) -> None:
    repository(project)
    run(project, "true")
    run(project, "echo better > behaviour.txt", trials=2)
    clean, changed = records(project)
    assert (clean.header.dirty, len(clean.trials)) == (False, CASES)
    assert (changed.header.dirty, len(changed.trials)) == (True, 2 * CASES)
    project.git("checkout", "-q", "--", ".")
    ran = run(project, "true", trials=2)
    assert "continues a record of 3 trials" in ran.out
    assert [len(record.trials) for record in records(project)] == [2 * CASES, 2 * CASES]


def test_a_named_record_says_it_itself(project: Project) -> None:
    repository(project)
    path = project.root.with_name(f"{project.root.name}-own.jsonl")
    run(project, "echo better > behaviour.txt", "--record", str(path))
    assert read_record(path).header.dirty


@pytest.mark.parametrize("touched", [True, False])
def test_a_run_that_was_cut_short_is_continued_if_nothing_was_touched(project: Project, touched: bool) -> None:
    repository(project)
    run(project, "true")
    (path,) = project.root.glob(".gate/records/*/*.jsonl")
    _cut_short(path)
    if touched:
        project.git("checkout", "-q", "other")
        project.git("checkout", "-q", "main")
    ran = run(project, "true")
    assert ("do not count: nobody knows whether the agent stayed the same" in ran.out) is touched
    assert ("continues a record of" in ran.out) is not touched
    (record,) = records(project)
    assert len(record.trials) == CASES


def _cut_short(path: Path) -> None:
    """Takes the closing line away."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
