"""A record that was damaged after it was written is never continued, replaced or passed over, and there is a way on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.conftest import Project, first_of

CONFIG = "suite: suite.yaml\nagent: {python: agent:answer}\ncriteria: {response_match_score: 0.5}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("made"))
    made.write("suite.yaml", "cases:\n  - {id: hello, input: Hello, response: Hi there}\n")
    made.write("agent.py", "def answer(message):\n    return 'Hi there'\n")
    made.write("gate.yaml", CONFIG)
    made.write(".gitignore", ".gate/\n__pycache__/\n")
    made.commit()
    assert made.gate("run", "-q").code == 0
    return made


@pytest.fixture
def project(tmp_path: Path, made: Project) -> Project:
    return made.copied(Project(tmp_path / "work"))


def damage(path: Path) -> bytes:
    """Edits one digit of a duration; returns what the file holds then."""
    path.write_bytes(re.sub(rb'"duration":\d', b'"duration":7', path.read_bytes(), count=1))
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "then"),
    first_of(
        [
            (("run",), "or name another by --record"),
            (("run", "--resume"), "or name another by --record"),
            (("report",), "then measure again"),
            (("explain",), "then measure again"),
        ]
    ),
)
def test_the_way_on_from_a_damaged_record(project: Project, command: tuple[str, ...], then: str) -> None:
    (record,) = (project.root / ".gate/records").rglob("*.jsonl")
    damaged = damage(record)
    ran = project.gate(*command)
    assert ran.code == 3
    last = ran.err.splitlines()[-1]
    named = re.search(r"^gate: (\S+):\d+: damaged: .*\(move it away, (.*)\)$", last)
    assert named is not None, (last, len(last))
    assert named[2] == then
    assert record.read_bytes() == damaged
    (project.root / named[1]).rename(project.root / "aside.jsonl")
    assert project.gate("run", "-q").code == 0


@pytest.mark.slow
def test_another_file_is_a_way_on(project: Project) -> None:
    (record,) = (project.root / ".gate/records").rglob("*.jsonl")
    damaged = damage(record)
    assert project.gate("run", "-q", "--record", ".gate/other.jsonl").code == 0
    assert record.read_bytes() == damaged


@pytest.mark.slow
def test_a_digit_that_makes_a_line_impossible_has_the_same_way_on(project: Project) -> None:
    (record,) = (project.root / ".gate/records").rglob("*.jsonl")
    record.write_bytes(re.sub(rb'"n":1\b', b'"n":0', record.read_bytes(), count=1))
    ran = project.gate("run")
    assert ran.code == 3
    assert "if damaged: move it away" in ran.err


def test_the_way_on_from_a_damaged_baseline_in_a_folder(project: Project) -> None:
    assert project.gate("baseline", "save").code == 0
    (stored,) = (project.root / ".gate/baselines").rglob("*.jsonl")
    damaged = damage(stored)
    for command, code in (("run", "-q", "--against", "HEAD"), 4), (("baseline", "save"), 6), (("baseline", "list"), 4):
        ran = project.gate(*command)
        assert ran.code == code, ran.err
        assert "damaged: the checksum does not fit (move it away, then save it again)" in ran.err
        assert len(ran.err.splitlines()[-1]) <= 200 and stored.name in ran.err
    assert stored.read_bytes() == damaged
    stored.rename(project.root / ".gate/aside.jsonl")
    assert project.gate("baseline", "save").code == 0


@pytest.mark.slow
def test_the_way_on_from_a_damaged_baseline_on_a_branch(project: Project) -> None:
    project.git("init", "-q", "--bare", str(project.root.parent / "remote"))
    project.git("remote", "add", "origin", str(project.root.parent / "remote"))
    project.write("gate.yaml", CONFIG + "baseline: {store: git}\n")
    project.commit()
    assert project.gate("run", "-q").code == 0
    assert project.gate("baseline", "save").code == 0
    project.git("clone", "-q", "-b", "gate-baselines", str(project.root.parent / "remote"), "../stored")
    other = Project(project.root.parent / "stored")
    (stored,) = other.root.rglob("*.jsonl")
    damage(stored)
    other.commit("damage")
    other.git("push", "-q", "origin", "HEAD")
    name = stored.relative_to(other.root).as_posix()
    for command, code in (("run", "-q", "--against", "HEAD"), 4), (("baseline", "save"), 6):
        ran = project.gate(*command)
        assert ran.code == code, ran.err
        assert "branch gate-baselines of origin:" in ran.err and "`git rm` it, then save it again" in ran.err
    other.git("rm", "-q", name)
    other.commit("remove what is damaged")
    other.git("push", "-q", "origin", "HEAD")
    assert project.gate("baseline", "save").code == 0


@pytest.mark.parametrize("how", first_of(["deleted", "renamed"]))
def test_a_baseline_that_is_gone_is_not_taken_for_the_first(project: Project, how: str) -> None:
    """The ledger knows it: "no baseline yet" is what a reader would otherwise take for the beginning."""
    assert project.gate("baseline", "save").code == 0
    (stored,) = (project.root / ".gate/baselines").rglob("*.jsonl")
    if how == "deleted":
        stored.unlink()
    else:
        stored.rename(stored.with_suffix(".txt"))
    base = project.git("rev-parse", "HEAD")
    project.commit("change")
    _, found = project.result("run", "--against", base)
    [told] = [line for line in found["suites"][0]["warnings"] if "the ledger names" in line]
    assert f"names a record of {base[:12]}, which is gone" in told
