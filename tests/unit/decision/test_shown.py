"""What a result tells a reader beyond its verdict: answers, causes, and what passes without being good."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.decision import Settings
from gate.decision.cases import MAX_TEXT_CHARS
from gate.decision.settings import Goal
from gate.model import (
    Case,
    CaseStatus,
    ErrorKind,
    Invocation,
    Part,
    SuiteResult,
    ToolCall,
    Trial,
    TrialError,
    Turn,
    Verdict,
)
from gate.model.finding import Finding, HeldMean
from gate.pipeline.verdict import Keeper
from gate.reports.view import criteria_that_warn

from .records import LATENCY, RESPONSE, TRAJECTORY, by_name, cases, findings, judge, once, stored, trial

SUITE = cases(12)
MATCH = replace(RESPONSE, threshold=0.9)
ASKED = Case("asked", (Turn("Paris?", response=(Part("It is sunny in Paris."),)), Turn("Thanks")))


def said(number: int, response: float, *texts: str, trajectory: float = 1.0) -> Trial:
    turns = tuple(Invocation(response=(Part("hm", thought=True), Part(text)) if text else ()) for text in texts)
    return replace(trial("asked", number, response=response, trajectory=trajectory), invocations=turns)


def texts(result: SuiteResult) -> tuple[tuple[str | None, ...], tuple[str | None, ...]]:
    return result.cases[0].expected_text, result.cases[0].actual_text


def test_a_failing_answer_is_kept_of_the_worst_trial() -> None:
    trials = [said(1, 0.5, "Sunny.", "Bye."), said(2, 0.0, "No idea.", ""), said(3, 1.0, "It is sunny in Paris.", "")]
    assert texts(judge([ASKED], [MATCH], trials)) == (("It is sunny in Paris.", None), ("No idea.", None))
    assert texts(judge([ASKED], [MATCH], trials[2:])) == ((), ())


def test_an_answer_is_kept_only_where_it_explains_the_failure() -> None:
    calls = replace(TRAJECTORY, threshold=1.0, reads_tools=True)
    called = said(1, 1.0, "It is.", trajectory=0.0)
    called = replace(called, invocations=tuple(replace(turn, reports_calls=True) for turn in called.invocations))
    assert texts(judge([ASKED], [calls, MATCH], [called])) == ((), ())
    slow = replace(LATENCY, limit=1.0)
    trials = [
        replace(t, scores={**t.scores, "latency": replace(t.scores["response"], value=9.0)})
        for t in [said(1, 1.0, "It is.")]
    ]
    assert texts(judge([ASKED], [slow, MATCH], trials)) == ((), ())


def test_without_what_was_expected_or_said_there_is_nothing_to_show() -> None:
    bare = replace(ASKED, turns=(Turn("", (ToolCall("lookup"),)),))
    assert texts(judge([bare], [MATCH], [said(1, 0.0, "No idea.")])) == ((), ("No idea.",))
    assert texts(judge([bare], [MATCH], [said(1, 0.0, "")])) == ((), ())


def test_long_answers_are_bounded() -> None:
    long = replace(ASKED, turns=(Turn("", response=(Part("a" * 9_000),)),))
    expected, actual = texts(judge([long], [MATCH], [said(1, 0.0, "b" * 9_000)]))
    assert [len(text or "") for text in (*expected, *actual)] == [MAX_TEXT_CHARS] * 2


def test_no_criterion_passes_without_a_measured_trial() -> None:
    down = [Trial(c.id, 1, error=TrialError(ErrorKind.UNREACHABLE, "refused")) for c in SUITE]
    for before in ((), stored(SUITE, trajectory=1.0, response=1.0)):
        result = judge(SUITE, [TRAJECTORY, replace(RESPONSE, blocking=False)], down, before)
        assert result.verdict is Verdict.ERROR
        assert Verdict.PASS not in by_name(result).values()
    assert findings(judge(SUITE, [TRAJECTORY], down), "trajectory") == [
        Finding.of("not_judged", Verdict.NOT_MEASURED, why="no_trial")
    ]


def test_the_cause_names_the_criterion_that_was_not_measured() -> None:
    result = judge(SUITE, [replace(TRAJECTORY, threshold=0.5)], once(SUITE, trajectory="judge is down"))
    assert result.verdict is Verdict.ERROR
    assert result.cause == Finding.of("criteria_decide", Verdict.ERROR, criteria=("trajectory",))


def test_the_cause_of_an_error_is_what_happened_most_often() -> None:
    errors = ["connection\nrefused " + "x" * 500] * 8 + ["reset"] * 4
    trials = [
        Trial(c.id, 1, error=TrialError(ErrorKind.UNREACHABLE, text)) for c, text in zip(SUITE, errors, strict=True)
    ]
    result = judge(SUITE, [TRAJECTORY], trials)
    problem = result.cause
    assert (problem.kind, problem["lost"], problem["of"], problem["most"]) == ("trials_lost", 12, 12, 0.1)
    shown = problem["error"]
    assert shown.startswith("unreachable: connection refused xxx")
    assert (len(shown), shown[-1]) == (120, "…")
    silent = judge(SUITE, [TRAJECTORY], [*trials[11:], *once(SUITE[:11], trajectory=1.0)])
    assert silent.cause == Finding.of("trials_lost", lost=1, of=1, cases=("case-11",), error="unreachable: reset")


def test_what_only_the_baseline_excuses_is_a_warning() -> None:
    before, now = stored(SUITE, response=0.0), once(SUITE, response=0.0)
    result = judge(SUITE, [MATCH], now, before)
    assert result.verdict is Verdict.PASS
    excused = Finding.of("mean", mean=HeldMean(0.0, 0.9, 12, before=0.0))
    assert [found for _, found in criteria_that_warn(result)] == [excused]
    better = judge(SUITE, [MATCH], once(SUITE, response=0.95), before)
    assert criteria_that_warn(better) == []
    informs = judge(SUITE, [replace(MATCH, blocking=False)], now, before)
    assert criteria_that_warn(informs) == []


@pytest.mark.parametrize(
    ("score", "kind", "verdict"),
    [(0.5, "mean", Verdict.BELOW_THRESHOLD), ("judge is down", "trials_lost", Verdict.NOT_MEASURED)],
)
def test_a_criterion_that_only_reports_warns_if_its_threshold_does_not_hold(
    score: float | str, kind: str, verdict: Verdict
) -> None:
    """The headline says that every threshold holds."""
    reports = replace(MATCH, blocking=False)
    decides = replace(TRAJECTORY, threshold=0.5)
    result = judge(SUITE, [decides, reports], once(SUITE, trajectory=1.0, response=score))
    assert result.verdict is Verdict.PASS
    [(row, found)] = criteria_that_warn(result)
    assert (row.criterion, found.kind, found.verdict) == (reports, kind, verdict)


def test_a_limit_that_the_baseline_broke_is_a_warning_too() -> None:
    slow = replace(LATENCY, limit=1.0)
    result = judge(SUITE, [slow], once(SUITE, latency=2.0), stored(SUITE, latency=2.0))
    assert result.verdict is Verdict.PASS
    excused = Finding.of("limit", case_id="case-00", value=2.0, limit=1.0)
    assert [found for _, found in criteria_that_warn(result)] == [excused]


@pytest.mark.parametrize(
    ("before", "now", "status"),
    [(0.0, 0.0, CaseStatus.NEVER_PASSED), (1.0, 0.0, CaseStatus.SUSPECT), (1.0, 1.0, CaseStatus.OK)],
)
def test_a_case_of_which_nothing_passes_is_not_ok(before: float, now: float, status: CaseStatus) -> None:
    """One stored trial and one now: no evidence that it got worse, and none that it is well."""
    known = [trial("case-00", 1, trajectory=before), *once(SUITE[1:], trajectory=1.0)]
    trials = [trial("case-00", 1, trajectory=now), *once(SUITE[1:], trajectory=1.0)]
    result = judge(SUITE, [TRAJECTORY], trials, known, settings=Settings(exact_epochs=1))
    assert [case.status for case in result.cases[:2]] == [status, CaseStatus.OK]


def test_a_thin_baseline_is_measured_by_the_trials_that_are_asked_for() -> None:
    for target, stored_trials, said in [
        (5, 5, None),
        (5, 2, (5, True)),
        (8, 5, (8, True)),
        (8, 8, None),
        (2, 2, (5, False)),
        (0, 2, (5, False)),
    ]:
        before = [trial(c.id, n, round=n, trajectory=1.0) for n in range(1, stored_trials + 1) for c in SUITE]
        settings = Settings(stored_trials=target)
        result = judge(SUITE, [TRAJECTORY], once(SUITE, trajectory=1.0), before, settings=settings)
        found = [(one["wanted"], one["grows"]) for one in result.warnings if one.kind == "thin_baseline"]
        assert found == ([said] if said else []), (target, stored_trials)


@pytest.mark.parametrize(("drop", "thin"), [(0.2, True), (0.6, False)])
def test_a_baseline_is_thin_until_it_finds_the_drop_that_is_asked_for(drop: float, thin: bool) -> None:
    before = [trial(c.id, n, round=n, trajectory=float(n != i)) for n in range(1, 6) for i, c in enumerate(SUITE)]
    settings = Settings(goal=Goal(drop))
    result = judge(SUITE, [TRAJECTORY], once(SUITE, trajectory=1.0), before, settings=settings)
    found = [one for one in result.warnings if one.kind == "thin_baseline"]
    assert [one["grows"] for one in found] == [True] * thin
    assert all(5 < one["wanted"] <= 25 for one in found)


def test_a_drop_is_candidate_minus_baseline() -> None:
    down = once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[:8]}, trajectory=1.0)
    result = judge(SUITE, [TRAJECTORY], down, stored(SUITE, trajectory=1.0), settings=Settings())
    [found] = findings(result, "pass rate")
    assert found["change"].value == pytest.approx(-2 / 3)
    assert found["change"].low < found["change"].value < found["change"].high < 0


# --- figures beyond the verdict -------------------------------------------------------------------


def graded(case_id: str, number: int, value: float, **dimensions: float) -> Trial:
    found = trial(case_id, number, response=value)
    score = replace(found.scores["response"], details={"dimensions": dimensions} if dimensions else {})
    return replace(found, scores={"response": score})


def test_dimensions_are_means_over_cases_beside_those_of_the_baseline() -> None:
    suite = cases(2)
    now = [graded("case-00", 1, 0.5, depth=0.2, form=0.8), graded("case-00", 2, 0.5, depth=0.4)]
    now += [graded("case-01", 1, 1.0, depth=0.9), graded("case-01", 2, 1.0)]
    before = [graded(case.id, n, 1.0, depth=1.0) for case in suite for n in (1, 2)]
    found = judge(suite, [MATCH], now, before, settings=Settings(exact_epochs=2)).criteria[1]
    depth, form = found.dimensions["depth"], found.dimensions["form"]
    assert depth[0] is not None and depth[1] is not None and form[0] is not None
    assert (round(depth[0].value, 12), depth[0].n, depth[0].trials) == (0.6, 2, 3)  # ((0.2 + 0.4) / 2 + 0.9) / 2
    assert (depth[1].value, depth[1].trials) == (1.0, 4)
    assert (form[0].value, form[0].n, form[1]) == (0.8, 1, None)
    apart = {(case.id, "response"): "its options changed" for case in suite}
    other = judge(suite, [MATCH], now, before, settings=Settings(exact_epochs=2), not_comparable=apart).criteria[1]
    assert other.dimensions["depth"][1] is None


def test_details_that_are_no_dimensions_are_left_out() -> None:
    odd = graded("case-00", 1, 0.5)
    for details in ({"dimensions": [1]}, {"dimensions": {"a": "b", "c": None, "d": 7.0, "e": float("nan")}}):
        score = replace(odd.scores["response"], details=details)
        found = judge(cases(1), [MATCH], [replace(odd, scores={"response": score})])
        assert found.criteria[1].dimensions == {}


def test_standard_deviations_over_trials_and_over_cases() -> None:
    values = {"case-00": (0.2, 0.4), "case-01": (0.6, 1.0)}
    trials = [trial(name, n, response=one) for name, both in values.items() for n, one in enumerate(both, 1)]
    found = judge(cases(2), [MATCH], trials, settings=Settings(exact_epochs=2)).criteria[1].candidate
    assert found is not None and found.sd is not None and found.sd_cases is not None
    # deviations from 0.55: −0.35, −0.15, 0.05, 0.45; means 0.3 and 0.8
    assert round(found.sd, 9) == round((0.35 / 3) ** 0.5, 9)
    assert round(found.sd_cases, 9) == round(0.125**0.5, 9)
    alone = judge(cases(1), [MATCH], trials[:1]).criteria[1].candidate
    assert alone is not None and (alone.sd, alone.sd_cases) == (None, None)


def test_a_case_that_got_better_has_the_evidence_that_its_loss_would_have() -> None:
    suite = cases(3)
    before = stored(suite[:1], trajectory=0.0) + stored(suite[1:], trajectory=1.0)
    up = judge(suite, [TRAJECTORY], once(suite, trajectory=1.0), before).cases[0]
    exchanged = stored(suite[:1], trajectory=0.0) + once(suite[1:], trajectory=1.0)
    down = judge(suite, [TRAJECTORY], exchanged, once(suite, trajectory=1.0)).cases[0]
    assert up.improvement == down.e_value and (up.improvement or 0) > 2
    lost = once(suite, {"case-00": {"trajectory": 0.0}}, trajectory=1.0)
    down = judge(suite, [TRAJECTORY], lost, stored(suite, trajectory=1.0)).cases[0]
    assert (up.baseline_passed, up.baseline_trials, up.passed, up.trials) == (0, 5, 1, 1)
    assert (down.improvement or 0) < 1


def test_time_per_tool_is_total_time_by_timed_calls() -> None:
    calls = (ToolCall("pay", duration=2.0), ToolCall("pay"), ToolCall("find", duration=0.5), ToolCall("log"))
    timed = replace(trial("case-00", 1, response=1.0), invocations=(Invocation(tool_calls=calls),))
    silent = replace(trial("case-01", 1, response=1.0), invocations=(Invocation(tool_calls=(ToolCall("pay"),)),))
    tools = judge(cases(2), [MATCH], [timed, silent]).tools
    assert [(one.name, one.calls, one.timed, one.seconds, one.seconds_per_call) for one in tools] == [
        ("pay", 2, 1, 2.0, 2.0),
        ("find", 1, 1, 0.5, 0.5),
        ("log", 1, 0, 0, None),
    ]


def test_where_a_criterion_is_about_time_all_calls_are_counted_also_of_what_was_digested() -> None:
    one = replace(trial("case-00", 1, latency=2.0), invocations=(Invocation(tool_calls=(ToolCall("pay", {"n": 1}),)),))
    kept = Keeper({"case-00": cases(1)[0]}, [LATENCY]).keep(one)
    assert kept.invocations[0].tool_calls == (ToolCall("pay"),)
    assert [(tool.name, tool.calls) for tool in judge(cases(1), [LATENCY], [kept]).tools] == [("pay", 1)]
    assert judge(cases(1), [MATCH], [replace(one, scores={})]).tools == ()
