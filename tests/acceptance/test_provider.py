"""A provider that moves, through agents over HTTP: said first, told to later changes; a check for it that is killed."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from random import Random, randrange
from threading import Event

import pytest

from tests.acceptance.conftest import Project, _environment, first_of
from tests.acceptance.test_stored_epochs import Served, http, in_ci, served, serving, set_up, suite_of

__all__ = ["in_ci", "served"]
CASES = 30


@pytest.fixture
def base() -> Iterator[Served]:
    with serving() as found:
        yield found


def fails(*items: int) -> object:
    """Answers that name no ticket twice, and are wrong for these items."""
    wrong = {f'item {item}"' for item in items}

    def reply(said: str) -> tuple[int, str]:
        return 200, f"no idea {randrange(10**9)}" if any(one in said for one in wrong) else "Done."

    return reply


def prepared(project: Project, agent: dict[str, object], **keys: object) -> None:
    set_up(project, agent, baseline={"trials": "off"}, **keys)
    cases = [{"id": f"case-{n}", "input": f"item {n}", "response": "Done."} for n in range(CASES)]
    project.write("suite.jsonl", "".join(json.dumps(case) + "\n" for case in cases))
    project.write(".gitignore", ".gate/\nresult.json\n")
    project.commit("thirty cases")


# --- what answers now -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "now", "said"),
    first_of(
        [
            ({"model": "m-1"}, {"model": "m-2"}, "the provider answered with m-2 where the baseline had m-1"),
            (
                {"model": "m-1", "system_fingerprint": "fp_a"},
                {"model": "m-1", "system_fingerprint": "fp_b"},
                "the provider's system is fp_b where it was fp_a for the baseline",
            ),
        ]
    ),
)
def test_another_model_or_system_is_said_above_every_fold(
    project: Project, served: Served, before: dict[str, str], now: dict[str, str], said: str
) -> None:
    prepared(project, http(served))
    served.told = before
    project.store()
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    served.told = now
    _, calm = project.result("run", "-q", "--record", ".gate/calm.jsonl")
    suite = suite_of(calm)
    assert suite["verdict"] == "pass" and said not in suite["headline"], "it explains nothing where nothing fell"
    assert suite["changes"] == [f"{said}; unless this change did that, the provider drifted"]
    served.reply = fails(*range(0, CASES, 2))  # type: ignore[assignment]
    code, found = project.result("run", "-q", "--record", ".gate/fell.jsonl", "--markdown", "comment.md")
    assert (code, suite_of(found)["verdict"]) == (1, "regressed")
    assert f"{said}, which may be why" in suite_of(found)["headline"]
    above = (project.root / "comment.md").read_text().replace("\\", "").partition("<details>")[0]
    assert f"{said}, which may be why."[1:] in above


@pytest.mark.slow
def test_the_same_model_is_no_news(project: Project, served: Served) -> None:
    prepared(project, http(served))
    served.told = {"model": "m-1", "system_fingerprint": "fp_a"}
    project.store()
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    _, found = project.result("run", "-q")
    assert suite_of(found)["changes"] == []


# --- what nightly runs found ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_change_is_told_that_the_provider_moved_after_its_baseline_was_stored(
    project: Project, served: Served
) -> None:
    prepared(project, {**http(served), "version": "1"}, trials=2)
    forked = project.git("rev-parse", "HEAD")
    commits: list[str] = []
    for night in range(6):
        served.reply = fails() if night < 3 else fails(*range(0, CASES, 2))  # type: ignore[assignment]
        project.gate("run", "-q")
        saved = project.gate("baseline", "save")
        assert saved.code == 0, saved.err
        commits.append(project.git("rev-parse", "HEAD")[:7])
        project.commit(f"night {night}")
    project.git("checkout", "-q", "-b", "change", forked)
    project.commit("change")
    _, found = project.result("run", "-q")
    told = [line for line in suite_of(found)["warnings"] if "the same agent scores" in line]
    assert len(told) == 1
    assert told[0].startswith("the baseline was measured before that: since ")
    assert f", {commits[3]} the same agent scores 50 points less on " in told[0]
    [kept] = found["record_paths"]
    _, again = project.result("report", kept)
    assert told[0] in suite_of(again)["warnings"], "the record keeps the fact, and reports word it"
    project.git("checkout", "-q", "-b", "rebased", "main")
    project.commit("rebased")
    _, found = project.result("run", "-q")
    [told_now] = [line for line in suite_of(found)["warnings"] if "the same agent scores" in line]
    assert told_now.startswith("since "), "what is pooled is what was measured after it"
    assert suite_of(found)["baseline"]["records"] == 3
    assert suite_of(found)["verdict"] == "pass"


@pytest.mark.slow
def test_a_drop_that_the_newest_night_shows_already_is_not_the_changes(project: Project, served: Served) -> None:
    prepared(project, {**http(served), "version": "1"}, trials=5)
    project.store(trials=5)
    asked: Counter[int] = Counter()

    def half(said: str) -> tuple[int, str]:
        item = next(n for n in range(CASES) if f'item {n}"' in said)
        asked[item] += 1
        right = Random(f"{item}:{asked[item]}").random() < 0.5
        return 200, "Done." if right else f"no idea {randrange(10**9)}"

    served.reply = half  # type: ignore[assignment]
    project.commit("a line of the docs, measured on a bad night")
    project.gate("run", "-q")
    assert project.gate("baseline", "save").code == 0
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    _, found = project.result("run", "-q", "--record", ".gate/change.jsonl")
    suite = suite_of(found)
    assert suite["verdict"] == "inconclusive"
    assert "fell against the stored baseline, but not against its newest runs: drift or chance" in suite["headline"]
    again = suite_of(project.result("report", ".gate/change.jsonl")[1])
    assert again["headline"] == suite["headline"], "whoever reads the record comes to the same"
    served.reply = fails(*range(CASES))  # type: ignore[assignment]
    project.commit("a change that answers nothing right")
    _, found = project.result("run", "-q", "--record", ".gate/broken.jsonl")
    assert suite_of(found)["verdict"] == "regressed", "worse than on the bad night, too"


# --- a check that is killed -----------------------------------------------------------------------


@pytest.mark.slow
def test_a_drift_check_that_is_killed_goes_on_where_it_was(project: Project, served: Served, base: Served) -> None:
    prepared(project, {**http(served), "base": base.url, "version": "1"})
    served.reply = base.reply = fails()  # type: ignore[assignment]
    project.store(trials=5)
    project.git("checkout", "-q", "-b", "change")
    project.write("gate.yaml", (project.root / "gate.yaml").read_text().replace('"version": "1"', '"version": "2"'))
    project.commit("another version")
    served.reply = fails(*range(0, CASES, 2))  # type: ignore[assignment]
    reached, released, turn = Event(), Event(), itertools.count(1)

    def slow(said: str) -> tuple[int, str]:
        if next(turn) >= 12:
            reached.set()
            released.wait(60)
        return 200, "Done."

    base.reply = slow
    asked = served.asked
    command = [sys.executable, "-m", "gate", "run", "-q"]
    run = subprocess.Popen(command, cwd=project.root, env=_environment(), stdout=subprocess.DEVNULL)
    assert reached.wait(60), "the check asks the base"
    time.sleep(0.5)  # what answered is on its way to the record
    run.kill()
    run.wait()
    released.set()
    own, killed = served.asked - asked, base.asked
    assert killed < CASES
    code, found = project.result("run", "-q")
    suite = suite_of(found)
    assert any("continues a record of" in line for line in suite["warnings"])
    assert served.asked == asked + own, "the candidate's trials were all in the record"
    assert base.asked <= CASES + 16, "asked twice is at most what was in flight"
    whole_code, whole = project.result("run", "-q", "--record", ".gate/whole.jsonl")
    assert (code, suite["verdict"]) == (whole_code, suite_of(whole)["verdict"]) == (1, "regressed")
    assert suite["agent_runs"] == suite_of(whole)["agent_runs"]
    assert suite["headline"] + "; measurement 2 of this change (before: regressed)" == suite_of(whole)["headline"]
