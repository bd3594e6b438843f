"""The page loads nothing, runs its own script alone, and says the same as the other reports."""

from __future__ import annotations

import base64
import itertools
import json
import re
import zlib
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import replace

from gate.decision.outcomes import holds, mark, passed
from gate.model import (
    STORED,
    Case,
    CaseResult,
    CaseStatus,
    Complexity,
    Criterion,
    Direction,
    ErrorKind,
    Invocation,
    Part,
    Scale,
    Score,
    Side,
    ToolCall,
    Trial,
    TrialError,
    Usage,
)
from gate.reports.html import contents
from gate.reports.html.contents import CaseCollector
from gate.reports.html.report import render
from gate.reports.trials import SuiteTrials
from tests.unit.reports.hostile import CORPUS
from tests.unit.reports.samples import RESULTS, TRAJECTORY


def body(page: str) -> str:
    """Without style, script and data, which hold what looks like tags."""
    return re.sub(r"<(style|script)[^>]*>.*?</\1>", "", page, flags=re.S)


class _Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("name", RESULTS)
def test_nothing_is_loaded(name: str) -> None:
    page = render(RESULTS[name])
    elements = _Elements(page).found
    assert {tag for tag, _ in elements}.isdisjoint({"iframe", "object", "embed", "link", "img", "base", "form"})
    names = {attribute for _, attributes in elements for attribute in attributes}
    assert not {one for one in names if one.startswith("on")} | (names & {"src", "style", "srcset", "action"})
    assert all((attributes.get("href") or "#").startswith("#") for _, attributes in elements)
    assert [attributes for tag, attributes in elements if tag == "script" and "type" not in attributes] == [{}]
    assert "url(" not in page
    assert "@import" not in page


def test_tables_and_drawings_are_named_for_those_who_cannot_see_them() -> None:
    page = render(RESULTS["regressed"])
    assert page.count('<tr class="figures"><th scope="row">') == 4
    assert page.count('role="img" aria-label=') == body(page).count("<svg")
    assert '<html lang="en">' in page


def test_every_less_than_sign_of_a_text_is_escaped() -> None:
    page = re.sub(r"</?[a-z][^<>]*>|<!doctype html>", "", body(render(RESULTS["regressed"])))
    assert "p &lt; 0.001" in page
    assert "<" not in page


# --- what it holds of cases -------------------------------------------------------------------------


def trial(case_id: str = "a", number: int = 1, said: str = "done", value: float = 1.0, **more: Any) -> Trial:
    call = ToolCall("lookup", {"of": 1}, result={"found": True})
    turn = Invocation("look up 1", (Part("hm", thought=True), Part(said)), (call,), usage=Usage(10, 5, 0.01))
    scores = {TRAJECTORY.name: Score(value, "as expected", details={"votes": [1.0, 0.0], "dimensions": {"tone": 0.5}})}
    return Trial(case_id, number, invocations=(turn,), scores=scores, duration=0.5, **more)


def case(case_id: str = "a", tags: tuple[str, ...] = ()) -> Case:
    return Case(case_id, (), tags=frozenset(tags), complexity=Complexity.SIMPLE)


def collected(trials: list[Trial], before: list[Trial] = [], telling: frozenset[str] = frozenset("a")) -> Any:  # noqa: B006
    cases = sorted({one.case_id for one in (*trials, *before)})
    found = CaseCollector(SuiteTrials([case(one) for one in cases], (TRAJECTORY,), lambda: trials, before), telling)
    results = [CaseResult(one, CaseStatus.OK) for one in cases]
    found.pack(results, results)
    return found


def unpacked(contents: Any) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for piece in contents.pieces:
        found |= json.loads(zlib.decompress(base64.b64decode(piece)))
    return found


def test_a_case_has_what_was_asked_answered_called_and_judged() -> None:
    held = collected([trial()])
    (one,) = unpacked(held)["0"]["trials"]
    assert one["turns"][0]["said"] == "done"
    assert one["turns"][0]["thought"] == "hm"
    assert one["turns"][0]["calls"][0] == {"name": "lookup", "args": {"of": 1}, "result": {"found": True}}
    score = one["scores"][TRAJECTORY.name]
    assert (score["votes"], score["parts"], score["reason"]) == ([1.0, 0.0], {"tone": 0.5}, "as expected")
    assert (one["passed"], one["usd"], one["tokens"]) == (True, 0.01, 15)
    assert held.asked("a") == "look up 1"


def test_trials_beyond_a_few_are_counted() -> None:
    found = unpacked(collected([trial(number=n) for n in range(1, 30)]))["0"]
    assert len(found["trials"]) == contents.SIDES["now"][1]
    assert found["left"] == {"now": 29 - len(found["trials"])}


def test_sides_are_told_apart_and_trials_for_later_changes_are_shown() -> None:
    trials = [trial(), trial(number=2, side=Side.BASELINE), trial(number=3, tag=STORED)]
    found = unpacked(collected(trials, [trial(number=4)]))["0"]
    assert [(one["side"], one["number"]) for one in found["trials"]] == [
        ("now", 1),
        ("beside", 2),
        ("now", 3),
        ("before", 4),
    ]


def test_criteria_that_fail_are_named() -> None:
    assert collected([trial(value=0.0)]).failing == {"a": [TRAJECTORY.name]}


def test_texts_are_bounded() -> None:
    long = "x" * 1_000_000
    call = ToolCall(long, {long: [long] * 500, "deep": [[[[[[[[[[1]]]]]]]]]]}, result=long, error=long)
    turn = Invocation(long, (Part(long),) * 3, (call,) * 500)
    short = Invocation("q")
    found = collected([Trial("a", 1, invocations=(turn, *(short,) * 99))])
    (piece,) = found.pieces
    assert 60 * 1_000 < len(zlib.decompress(base64.b64decode(piece))) < 60 * 60_000
    one = unpacked(found)["0"]["trials"][0]
    assert (one["more"], one["turns"][0]["more"]) == (60, 440)


def test_numbers_that_a_browser_would_round_are_texts() -> None:
    call = ToolCall("pay", {"to": 2**53, "deep": {"of": [2**63]}}, result={"id": 10**18 + 1, "n": 7})
    held = collected([Trial("a", 1, invocations=(Invocation("q", (), (call,)),))])
    (shown,) = unpacked(held)["0"]["trials"][0]["turns"][0]["calls"]
    assert shown["args"] == {"to": str(2**53), "deep": {"of": [str(2**63)]}}
    assert shown["result"] == {"id": str(10**18 + 1), "n": 7}


def test_outcomes_are_those_of_the_verdict() -> None:
    hard = Criterion("hard", "hard", Scale.BINARY, hard=True)
    most = Criterion("latency", "latency", Scale.SECONDS, Direction.LOWER, threshold=1.0)
    soft = Criterion("soft", "soft", Scale.UNIT, threshold=0.5, blocking=False)
    values = (None, 0.0, 0.4, 1.0, 3.0)
    made = [
        Trial("a", number, scores={"hard": Score(a), "latency": Score(b), "soft": Score(c), "other": Score(0.0)})
        for number, (a, b, c) in enumerate(itertools.product(values, values, values), 1)
    ]
    made += [Trial("a", 900, error=TrialError(ErrorKind.CRASH, "")), Trial("a", 901), Trial("a", 902, scores={})]
    for cut_off in ({}, {"latency": 3.0, "soft": 0.0}):
        one = Case("a", (), thresholds=cut_off)
        criteria = (hard, most, soft)
        for judged in made:
            found = CaseCollector(SuiteTrials([one], criteria, lambda judged=judged: [judged]), frozenset("a"))
            results = [CaseResult("a", CaseStatus.OK)]
            found.pack(results, results)
            (held,) = unpacked(found)["0"]["trials"]
            assert held.get("passed") == passed(judged, one, criteria)
            for name, score in judged.scores.items():
                rule = next((c for c in criteria if c.name == name), None)
                is_held = rule is not None and (rule.hard or mark(rule, one) is not None)
                wanted = holds(rule, one, score) if rule and is_held and score.value is not None else None
                assert held["scores"][name].get("holds") == wanted


def test_a_trial_in_which_nothing_was_checked_did_not_pass() -> None:
    """Whatever a criterion that only reports has measured."""
    idle = Criterion("idle", "idle", Scale.UNIT)
    reported = replace(TRAJECTORY, blocking=False)
    judged = Trial("a", 1, scores={"idle": Score(None), reported.name: Score(1.0)})
    held = CaseCollector(SuiteTrials([case()], (idle, reported), lambda: [judged]), frozenset("a"))
    results = [CaseResult("a", CaseStatus.OK)]
    held.pack(results, results)
    assert "passed" not in unpacked(held)["0"]["trials"][0]


def test_cases_without_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MAX_PAGE", 900)
    monkeypatch.setattr(contents, "PIECE", 100)
    held = collected([trial(case_id=name) for name in "abcdefgh"])
    assert 0 < len(held.where) < 8
    assert held.left_out == 8 - len(held.where)
    assert list(held.where) == list("abcdefgh")[: len(held.where)]


def test_hostile_contents_come_out_as_they_went_in() -> None:
    for text in CORPUS:
        found = unpacked(collected([trial(said=text)]))["0"]
        known = text.encode("utf-8", "replace").decode()
        assert found["trials"][0]["turns"][0].get("said", "") == known[: contents.MAX_TEXT - 1] + "…" * (
            len(known) > 4_000
        )
