"""The road that a report advises for an intended loss, walked in real repositories: merge, run, accept, go on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.acceptance.conftest import Outcome, Project

AGENT = """\
def answer(message):
    return "wrong" if message in {broken} else "the right answer"
"""
CASES = [{"id": f"c{n}", "input": f"item {n}", "contains": ["right"]} for n in range(8)]
BROKEN = ("item 1", "item 2", "item 3")
ACCEPT = ("baseline", "accept", "--by", "ada", "--why", "shorter answers")


def merge_commit(project: Project) -> None:
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "-m", "merge", "change")


def squash(project: Project) -> None:
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--squash", "change")
    project.git("commit", "-q", "-m", "squashed")


def fast_forward(project: Project) -> None:
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--ff-only", "change")


def rebase(project: Project) -> None:
    """Rebases the change onto a main branch that has moved meanwhile."""
    project.git("checkout", "-q", "main")
    project.write("notes.md", "moved\n")
    project.commit("meanwhile")
    project.git("checkout", "-q", "change")
    project.git("rebase", "-q", "main")
    fast_forward(project)


def repository(project: Project, store: str, *, remote: bool) -> Project:
    project.write("agent.py", AGENT.format(broken=()))
    project.write("suite.yaml", {"cases": CASES})
    configuration = "suite: suite.yaml\nagent: {python: 'agent:answer'}\ncriteria: {contains: 0.5}\n"
    project.write("gate.yaml", f"{configuration}baseline: {{store: {store}}}\n")
    project.write(".gitignore", ".gate/\n__pycache__/\n")
    project.commit("good")
    if remote:
        origin = project.root.with_name(f"{project.root.name}-origin.git")
        project.git("init", "-q", "--bare", "-b", "main", str(origin))
        project.git("remote", "add", "origin", str(origin))
        push(project)
    stored = project.gate("baseline", "-q")
    assert stored.code == 0, stored.out + stored.err
    project.git("checkout", "-qb", "change")
    project.write("agent.py", AGENT.format(broken=BROKEN))
    project.commit("shorter answers")
    ran = one_line(project.gate("run"))
    assert ran.code == 1
    assert "on the default branch, after `gate run` there" in ran.out
    return project


def push(project: Project) -> None:
    if project.git("remote"):
        project.git("push", "-q", "origin", "main")
        project.git("fetch", "-q", "origin")


def one_line(ran: Outcome) -> Outcome:
    return Outcome(ran.code, " ".join(ran.out.split()), " ".join(ran.err.split()))


@pytest.mark.parametrize(
    ("merge", "store", "remote"),
    [
        (merge_commit, "file", False),
        pytest.param(squash, "file", True, marks=pytest.mark.slow),
        (squash, "git", True),
        pytest.param(rebase, "git", True, marks=pytest.mark.slow),
        pytest.param(rebase, "file", False, marks=pytest.mark.slow),
        pytest.param(fast_forward, "file", False, marks=pytest.mark.slow),
        pytest.param(merge_commit, "git", True, marks=pytest.mark.slow),
    ],
)
def test_the_road_that_a_report_advises(
    project: Project, merge: Callable[[Project], None], store: str, remote: bool
) -> None:
    repository(project, store, remote=remote)
    merge(project)
    push(project)
    merged = project.gate("run", "-q")
    assert merged.code == 1, merged.out + merged.err
    accepted = project.gate(*ACCEPT)
    assert accepted.code == 0, accepted.out + accepted.err
    assert "is the long-term baseline now, by ada" in accepted.out
    project.write("README.md", "later\n")
    project.commit("later")
    push(project)
    later = project.gate("run", "-q")
    assert later.code == 0, later.out


def test_accepting_too_early_names_the_command_that_is_missing(project: Project) -> None:
    repository(project, "file", remote=False)
    merge_commit(project)
    early = one_line(project.gate(*ACCEPT))
    assert early.code == 4
    assert "is stored or here (`gate run`, then accept it)" in early.err
    project.write("agent.py", AGENT.format(broken=()))
    changed = one_line(project.gate(*ACCEPT))
    assert "(commit or stash your changes, `gate run`, then accept it)" in changed.err
    elsewhere = one_line(project.gate(*ACCEPT, "main~1"))
    assert elsewhere.code == 0, elsewhere.err  # it is stored
    project.git("checkout", "-q", "--", ".")
    project.git("checkout", "-q", "change")
    other = one_line(project.gate(*ACCEPT, "main"))
    assert "(check it out, `gate run`, then accept it)" in other.err


def test_nothing_lies_between_a_commit_and_the_one_before_it(project: Project) -> None:
    """Recipes compare a commit of the default branch with its merge base, which is that commit."""
    repository(project, "file", remote=False)
    merge_commit(project)
    merged = one_line(project.gate("run", "--against", "HEAD"))
    assert merged.code == 1, merged.out
    assert "before the base" not in merged.out
    project.write("notes.md", "more\n")
    project.commit("more")
    later = one_line(project.gate("run", "--against", "HEAD"))
    assert "ewest baseline is 1 commit before the base" in later.out


def test_a_fast_forward_needs_no_further_run(project: Project) -> None:
    repository(project, "file", remote=False)
    fast_forward(project)
    accepted = project.gate(*ACCEPT)
    assert accepted.code == 0, accepted.out + accepted.err
    assert list((project.root / ".gate-baselines").rglob("*.jsonl")) or accepted.out.startswith("saved ")


def test_a_missed_threshold_of_a_record_here_is_not_accepted(project: Project) -> None:
    repository(project, "file", remote=False)
    project.write("agent.py", AGENT.format(broken=tuple(case["input"] for case in CASES)))
    project.commit("all broken")
    project.gate("run", "-q")
    accepted = project.gate(*ACCEPT)
    assert accepted.code == 4
    assert "not accepted: a threshold" in accepted.err
    assert project.git("rev-parse", "HEAD") not in project.gate("baseline", "list").out
