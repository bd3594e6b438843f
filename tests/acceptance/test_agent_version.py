"""`agent.version` and `agent.base`: an agent that the gate does not start is pooled, continued, and run at its base."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

import pytest

from gate.records import read_record
from tests.acceptance.conftest import Project, first_of
from tests.acceptance.test_crash import start
from tests.acceptance.test_stored_epochs import CASES, Served, http, in_ci, served, serving, set_up, suite_of
from tests.patience import CEILING

__all__ = ["in_ci", "served"]


@pytest.fixture
def base() -> Iterator[Served]:
    with serving() as found:
        yield found


def versioned(served: Served, version: Any, **keys: Any) -> dict[str, Any]:
    return {**http(served), "version": version, **keys}


@pytest.mark.slow
def test_records_of_one_version_are_pooled(project: Project, served: Served) -> None:
    set_up(project, versioned(served, "1.0"), budget={"runs": 2 * CASES})
    for commit in ("first", "second", "third"):
        project.gate("run", "-q")
        assert project.gate("baseline", "save").code == 0
        project.commit(commit)
    _, found = project.result("run", "-q")
    suite = suite_of(found)
    assert suite["baseline"]["records"] == 3
    assert suite["baseline"]["trials_per_case"] == 6
    assert suite["stored"]["epochs"] == 1, "what the budget leaves goes on towards the power that is wanted"


@pytest.mark.slow
def test_another_version_is_not_pooled_and_neither_is_an_agent_without_one(project: Project, served: Served) -> None:
    set_up(project, versioned(served, "${AGENT_VERSION}"), baseline={"trials": "off"})
    for version in ("1.0", "1.0", "2.0"):
        assert project.gate("run", "-q", AGENT_VERSION=version).code == 0
        project.gate("baseline", "save")
        project.commit()
    _, found = project.result("run", "-q", AGENT_VERSION="2.0")
    assert suite_of(found)["baseline"]["records"] == 1


@pytest.mark.slow
def test_a_version_comes_from_a_program(project: Project, served: Served) -> None:
    set_up(project, versioned(served, {"command": "cat version.txt"}))
    project.write("version.txt", "7\n")
    project.commit()
    project.gate("run", "-q")
    asked = served.asked
    assert project.gate("run", "-q").code == 0
    assert served.asked == asked, "the same version on the same commit: its record is continued"


@pytest.mark.slow
def test_a_version_comes_from_a_header(project: Project, served: Served) -> None:
    served.version = "7"
    set_up(project, versioned(served, {"header": "X-Version"}))
    project.gate("run", "-q")
    asked = served.asked
    assert project.gate("run", "-q").code == 0
    assert served.asked == asked
    served.version = "8"
    assert project.gate("run", "-q").code == 0
    assert served.asked == asked + 5 * CASES, "another version is measured anew"


def test_a_version_that_changes_during_the_run_is_no_measurement(project: Project, served: Served) -> None:
    served.version = "7"
    set_up(project, versioned(served, {"header": "x-version"}))

    def deployed(number: int) -> tuple[int, str]:
        served.version = "8" if number >= 3 else "7"
        return 200, "Done."

    served.answer = deployed
    ran = project.gate("run", "-q")
    assert ran.code == 3
    assert "changed during the run, from '7' to '8'" in ran.err
    assert project.gate("baseline", "save").code != 0, "there is nothing to store"


@pytest.mark.slow
def test_answers_of_another_version_than_is_told_are_no_measurement(project: Project, served: Served) -> None:
    """Who is asked for the version may be another than who answers: half a deployment, or what stands before it."""
    served.version, served.answered = "7", "8"
    set_up(project, versioned(served, {"header": "X-Version"}))
    for _ in range(2):
        ran = project.gate("run", "-q")
        assert ran.code == 3
        assert "changed during the run, from '7' to '8'" in ran.err
    assert project.gate("baseline", "save").code != 0, "there is nothing to store, and nothing to continue"
    for answered in ("7", ""):
        served.answered = answered
        assert project.gate("run", "-q").code == 0, "the same one, or none: an answer need not tell"


def records(project: Project) -> list[Path]:
    return list((project.root / ".gate/records").glob("*/*.jsonl"))


def test_what_was_measured_while_the_version_changed_is_not_continued(project: Project, served: Served) -> None:
    """During a roll-out the new version is told, and the old one answers."""
    served.version, served.answered = "7", ""
    set_up(project, versioned(served, {"header": "X-Version"}), baseline={"trials": "off"})

    def rolled_back(_number: int) -> tuple[int, str]:
        served.version = "6"
        return 200, "Done."

    served.answer = rolled_back
    assert project.gate("run", "-q").code == 3
    assert records(project) == [], "nothing of it is there to be continued, or to be saved"
    asked, served.version = served.asked, "7"
    served.answer = lambda _number: (200, "No.")
    code, found = project.result("run", "-q")
    assert served.asked > asked, "the version that is told now is measured"
    assert (code, suite_of(found)["verdict"]) == (1, "below_threshold")


@pytest.mark.slow
def test_what_an_earlier_run_measured_of_the_version_stays(project: Project, served: Served) -> None:
    served.version, served.answered = "7", ""
    set_up(project, versioned(served, {"header": "X-Version"}), baseline={"trials": "off"})
    assert project.gate("run", "-q").code == 0
    [path] = records(project)
    before = read_record(path)

    def deployed(_number: int) -> tuple[int, str]:
        served.version = "8"
        return 200, "Done."

    served.answer = deployed
    assert project.gate("run", "-q", "--trials", "3").code == 3
    assert read_record(path) == before


def stopped_at(project: Project, served: Served, number: int) -> None:
    """A run that is ended from outside when its agent, of another version by then, is asked for so many times."""
    served.answered = ""
    reached = Event()

    def answer(asked: int) -> tuple[int, str]:
        if asked < number:
            return 200, "Done."
        served.version = "8"
        reached.set()
        sleep(0.3 if asked >= number + 2 else 0)
        return 200, "No."

    served.answer = answer
    run = start(project, "-q")
    assert reached.wait(CEILING)
    sleep(0.1)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=CEILING)
    assert run.returncode == 143
    served.version, served.answer = "7", lambda _number: (200, "Done.")


@pytest.mark.slow
def test_what_a_run_measured_that_was_cut_short_is_not_continued(project: Project, served: Served) -> None:
    """Nobody looked the version up again."""
    served.version = "7"
    agent = versioned(served, {"header": "X-Version"}, concurrency=1)
    set_up(project, agent, baseline={"trials": "off"})
    stopped_at(project, served, 3)
    [path] = records(project)
    assert len(read_record(path, complete=False).trials) >= 2
    asked = served.asked
    code, found = project.result("run", "-q")
    assert (code, served.asked - asked) == (0, CASES)
    assert any("cut short do not count" in line for line in suite_of(found)["warnings"])
    assert len(read_record(path).trials) == CASES


@pytest.mark.slow
def test_nor_on_a_later_commit_of_the_change(project: Project, served: Served) -> None:
    served.version = "7"
    set_up(project, versioned(served, {"header": "X-Version"}, concurrency=1), baseline={"trials": "off"})
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    stopped_at(project, served, 3)
    project.git("commit", "-q", "--amend", "--allow-empty", "-m", "the same once more")
    asked = served.asked
    assert project.gate("run", "-q").code == 0
    assert served.asked - asked == CASES


@pytest.mark.slow
def test_what_is_run_for_later_changes_and_cut_short_is_not_stored(project: Project, served: Served) -> None:
    served.version = "7"
    set_up(project, versioned(served, {"header": "X-Version"}, concurrency=1))
    stopped_at(project, served, CASES + 2)
    assert project.gate("baseline", "save").code == 0, "the verdict was there, and so was the version"
    assert "1.0 trials per case" in project.gate("baseline", "show").out


def test_one_that_changes_after_the_verdict_leaves_it_alone_and_stores_nothing_mixed(
    project: Project, served: Served
) -> None:
    served.version = "7"
    set_up(project, versioned(served, {"header": "X-Version"}))

    def deployed(number: int) -> tuple[int, str]:
        served.version = "8" if number > 2 * CASES else "7"
        return 200, "Done."

    served.answer = deployed
    code, found = project.result("run", "-q", "--record", ".gate/r.jsonl")
    assert (code, suite_of(found)["verdict"], suite_of(found)["stored"]) == (0, "pass", None)
    assert any("is not kept" in line for line in suite_of(found)["warnings"])
    project.gate("baseline", "save", ".gate/r.jsonl")
    assert "1.0 trials per case" in project.gate("baseline", "show").out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "said"),
    first_of(
        [
            (1.1, "put it in quotes"),
            ("", "empty"),
            ("${NOT_SET}", "NOT_SET is not set"),
            ({"command": "cat nowhere.txt"}, "exit code 1"),
            ({"command": "no-such-program"}, "cannot be run"),
            ({"command": ["sh", "-c", "true"]}, "empty"),
            ({"header": "X-Other"}, "has no header X-Other"),
            ({}, "set a string, a command or a header"),
            ({"header": "X", "command": "y"}, "set a string, a command or a header"),
            ({"command": "y", "url": "http://127.0.0.1"}, "set header, too"),
        ],
        3,
    ),
)
def test_a_version_that_is_not_told(project: Project, served: Served, version: Any, said: str) -> None:
    set_up(project, versioned(served, version))
    ran = project.gate("run", "-q")
    assert ran.code in (2, 3)
    assert said in ran.err
    assert served.asked == 0


def test_a_started_agent_has_no_headers_and_no_address(project: Project) -> None:
    set_up(project, {"python": "agent:answer", "version": {"header": "X-Version"}})
    ran = project.gate("run", "-q")
    assert ran.code == 2 and "sends no headers" in ran.err
    set_up(project, {"python": "agent:answer", "base": "http://127.0.0.1:1"})
    ran = project.gate("run", "-q")
    assert ran.code == 2 and "has no address" in ran.err


@pytest.mark.slow
def test_a_version_is_part_of_a_started_agents_fingerprint(project: Project) -> None:
    set_up(project, {"python": "agent:answer", "version": "${AGENT_VERSION}"})
    first, other = ({"AGENT_VERSION": version} for version in ("1", "2"))
    runs = [suite_of(project.result("run", "-q", **one)[1]) for one in (first, first, other)]
    notes = [[line for line in suite["warnings"] if "continues" in line] for suite in runs]
    assert [bool(lines) for lines in notes] == [False, True, False]


# --- the base's address ---------------------------------------------------------------------------


def changed(project: Project, served: Served, base: Served, **keys: Any) -> dict[str, Any]:
    """A change on a branch whose baseline is thin, so that it matters whether the base can be run."""
    set_up(project, {**http(served), "base": "${BASE_URL}", **keys}, baseline={"trials": "off"})
    assert project.gate("run", "-q", BASE_URL=base.url).code == 0
    assert project.gate("baseline", "save").code == 0
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    served.version = "8"
    served.answer = lambda number: (200, "Done." if number % 2 else "No.")
    return suite_of(project.result("run", "-q", BASE_URL=base.url)[1])


@pytest.mark.slow
def test_the_base_is_run_at_its_address(project: Project, served: Served, base: Served) -> None:
    suite = changed(project, served, base)
    assert base.asked > 0
    assert suite["agent_runs"] == base.asked + served.asked - CASES
    assert suite["verdict"] == "regressed"


@pytest.mark.slow
def test_a_base_of_another_version_than_the_baselines_is_not_run(
    project: Project, served: Served, base: Served
) -> None:
    served.version, base.version = "7", "6"
    suite = changed(project, served, base, version={"header": "X-Version"})
    assert base.asked == 0
    assert any("serves version '6'" in line for line in suite["warnings"])


@pytest.mark.slow
def test_a_base_of_the_baselines_version_is_run(project: Project, served: Served, base: Served) -> None:
    served.version, base.version = "7", "7"
    changed(project, served, base, version={"header": "X-Version"})
    assert base.asked > 0


@pytest.mark.slow
def test_without_an_address_the_change_is_compared_with_what_is_stored(
    project: Project, served: Served, base: Served
) -> None:
    changed(project, served, base)
    asked = base.asked
    _, found = project.result("run", "-q")
    assert base.asked == asked
    assert any("BASE_URL is not set" in line for line in suite_of(found)["warnings"])


@pytest.mark.slow
@pytest.mark.parametrize("status", first_of([500, 503, 404]))
def test_a_base_that_is_down_excuses_no_drop(project: Project, served: Served, base: Served, status: int) -> None:
    """Next to a base that fails everything no change is worse."""
    set_up(project, {**http(served), "base": "${BASE_URL}"})
    cases = [{"id": f"case-{n}", "input": f"item {n}", "response": "Done."} for n in range(30)]
    project.write("suite.jsonl", "".join(json.dumps(case) + "\n" for case in cases))
    project.commit()
    project.store()
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    served.answer = lambda number: (200, "Done." if number % 5 > 1 else "no idea")
    base.answer = lambda _number: (status, "down")
    code, found = project.result("run", "-q", BASE_URL=base.url)
    suite = suite_of(found)
    assert (code, suite["verdict"]) == (1, "regressed"), suite["headline"]
    assert "the base was not run alongside this change" in suite["headline"]
    assert 0 < base.asked <= 16, "a few times, by as many at once as the agent is asked, and then no more"
    assert [line for line in suite["warnings"] if "infrastructure" in line] == [], "it is said once:"
    [told] = [line for line in suite["warnings"] if "the base commit's agent" in line]
    assert (
        f"{base.asked} of {base.asked} trials have no score because the base commit's agent failed" in told
        and "it was not called again" in told
    )


@pytest.mark.slow
def test_a_base_that_dies_in_the_middle_excuses_no_drop(project: Project, served: Served, base: Served) -> None:
    """It answered in the first check, so that it is there; what it fails at later is no measurement of it."""
    set_up(project, {**http(served), "base": "${BASE_URL}", "concurrency": 1})  # which case fails is no chance
    cases = [{"id": f"case-{n}", "input": f"item {n}", "response": "Done."} for n in range(30)]
    project.write("suite.jsonl", "".join(json.dumps(case) + "\n" for case in cases))
    project.commit()
    project.store()
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    served.answer = lambda number: (200, "Done." if number % 7 else "no idea")
    base.answer = lambda number: (200, "Done.") if number <= 10 else (500, "down")
    code, found = project.result("run", "-q", BASE_URL=base.url)
    suite = suite_of(found)
    assert base.asked > 10, "the first check left it open"
    assert (code, suite["verdict"]) == (1, "regressed"), suite["headline"]
    assert base.asked <= 30 + 16
