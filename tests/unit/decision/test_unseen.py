"""What looks at tool calls is measured only where there is evidence that the agent reports them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from gate.config.criteria import Setting
from gate.decision import exit_code
from gate.decision.settings import Settings
from gate.decision.unseen import UNSEEN, needs_calls
from gate.errors import ExitCode
from gate.metrics import METRICS, load_metric
from gate.metrics.base import Composite, Context, Judged, TrialOutput
from gate.model import Case, CaseStatus, Criterion, Invocation, Part, Scale, Score, Side, ToolCall, Trial, Turn, Verdict
from gate.model.finding import Finding, Uncompared
from gate.records.transform import digested
from gate.scoring.score import Scorer, score_recorded
from tests.unit.config.build import scorers_of
from tests.unit.metrics.test_examples import OPTIONS as EXAMPLE_OPTIONS

from .records import FORBIDDEN, RESPONSE, by_name, cases, findings, judge, not_scored, once, stored

FORBIDS = replace(FORBIDDEN, reads_tools=True)
SUITE = cases(12)
OPTIONS = {**EXAMPLE_OPTIONS, "recorded_score": {"scorer": "accuracy"}}
CASE = Case("c", (Turn("go", (ToolCall("find", any_args=True),), (Part("found"),)), Turn("on", (), (Part("done"),))))
CALLS = (ToolCall("delete", result={"id": "a"}), ToolCall("find", error="down"), ToolCall("find", result=[{"id": "b"}]))
COMPARED = ("strategy_consistency", "pass_rate")
"""Metrics that are computed when the suite is judged."""
OFFLINE = sorted(
    name for name in METRICS if not issubclass(load_metric(name), Judged | Composite) and name not in COMPARED
)


def scorers(*names: str) -> tuple[Scorer, ...]:
    return scorers_of({name: OPTIONS.get(name, {}) for name in names}, (CASE,), Setting(context=Context()))


def said(*turns: Invocation) -> Trial:
    return Trial("c", 1, invocations=turns, duration=1.0)


def telling(trials: Sequence[Trial]) -> list[Trial]:
    return [replace(trial, invocations=(Invocation(reports_calls=True),)) for trial in trials]


def test_a_metric_whose_score_depends_on_calls_says_so() -> None:
    silent = (Invocation("go", (Part("found"),), duration=1.0), Invocation("on", (Part("done"),), duration=1.0))
    loud = tuple(replace(turn, tool_calls=CALLS) for turn in silent)
    quiet = []
    for scorer in scorers(*OFFLINE):
        one, other = (scorer.for_case(CASE).score(CASE, TrialOutput(turns, 2.0)) for turns in (silent, loud))
        if (one.value, one.error) != (other.value, other.error) and not scorer.criterion.reads_tools:
            quiet.append(scorer.criterion.name)
    assert quiet == []


@pytest.mark.parametrize("text", ["", "found", "delete\n{}"])
def test_of_a_text_only_agent_no_call_metric_is_measured(text: str) -> None:
    names = [name for name in OFFLINE if load_metric(name).reads_tools]
    made = scorers(*names, "latency")
    turns = [Invocation(turn.user, (Part(text),) if text else (), duration=1.0) for turn in CASE.turns]
    trial = score_recorded(made, CASE, said(*turns))
    criteria = [scorer.criterion for scorer in made]
    result = judge([CASE], criteria, [trial])
    assert [name for name in names if by_name(result)[name] is not Verdict.NOT_MEASURED] == []
    assert exit_code([result], Settings()) is ExitCode.NOT_MEASURED
    shown = said(replace(turns[0], reports_calls=True), turns[1])
    result = judge([CASE], criteria, [replace(trial, invocations=shown.invocations)])
    told = [(name, getattr(found, "error", "")) for name in names for found in findings(result, name)]
    assert [name for name, error in told if UNSEEN in error] == []


def test_judged_metrics_that_are_shown_the_calls_for_their_own_sake_need_them() -> None:
    named = {name for name in METRICS if issubclass(load_metric(name), Judged) and load_metric(name).reads_tools}
    assert named >= {
        "api_usage",
        "data_handling",
        "error_handling",
        "hallucination",
        "multi_turn_task_success_v1",
        "multi_turn_tool_use_quality_v1",
        "multi_turn_trajectory_quality_v1",
        "rubric_based_multi_turn_trajectory_quality_v1",
        "rubric_based_tool_use_quality_v1",
    }


def test_a_support_metric_needs_calls_where_a_tool_means_escalation() -> None:
    for options, needs in (({}, False), ({"escalation_tools": ["handover"]}, True)):
        (scorer,) = scorers_of({"containment_rate": options}, (CASE,), Setting())
        assert scorer.criterion.reads_tools is needs


def test_what_is_computed_from_unseen_scores_is_unseen_too() -> None:
    parts = (
        Criterion("tools", "tool_accuracy", Scale.UNIT, reads_tools=True),
        Criterion("text", "contains", Scale.BINARY),
        Criterion("sum", "weighted_score", Scale.UNIT, parts=("tools", "text")),
        Criterion("all", "weighted_score", Scale.UNIT, parts=("sum",)),
        Criterion("texts", "weighted_score", Scale.UNIT, parts=("text",)),
    )
    assert needs_calls(parts) == {"tools", "sum", "all"}


def test_a_composite_to_which_no_part_of_calls_applies_needs_no_evidence() -> None:
    parts = [
        Criterion("tools", "tool_accuracy", Scale.UNIT, reads_tools=True, blocking=False),
        Criterion("text", "contains", Scale.UNIT, blocking=False),
        Criterion("sum", "weighted_score", Scale.UNIT, threshold=0.5, parts=("tools", "text")),
    ]
    trials = [replace(t, scores={**t.scores, "tools": Score(None)}) for t in once(SUITE, text=1.0, sum=1.0)]
    assert by_name(judge(SUITE, parts, trials))["sum"] is Verdict.PASS
    assert by_name(judge(SUITE, parts, once(SUITE, tools=1.0, text=1.0, sum=1.0)))["sum"] is Verdict.NOT_MEASURED


def test_the_weights_of_a_case_count_among_the_parts() -> None:
    own = replace(CASE, options={"weighted_score": {"weights": {"tool_accuracy": 1.0}}})
    made = scorers_of(
        {"tool_accuracy": {}, "latency": {}, "weighted_score": {"weights": {"latency": 1.0}}}, (own,), Setting()
    )
    assert made[2].criterion.parts == ("latency", "tool_accuracy")


def test_without_evidence_it_is_not_measured_and_names_the_line_to_add() -> None:
    result = judge(SUITE, [FORBIDS, RESPONSE], once(SUITE, forbidden_tools=1.0, response=1.0))
    assert result.verdict is Verdict.ERROR
    assert findings(result, "forbidden_tools") == [not_scored(len(SUITE), len(SUITE), error=UNSEEN)]
    assert by_name(result)["response"] is not Verdict.NOT_MEASURED


@pytest.mark.parametrize("where", ["one answer", "a call", "a rerun of the base", "the baseline"])
def test_evidence_from_anywhere_in_the_run_or_its_baseline(where: str) -> None:
    trials = once(SUITE, forbidden_tools=1.0, response=1.0)
    turn = Invocation(tool_calls=(ToolCall("find"),)) if where == "a call" else Invocation(reports_calls=True)
    if where in ("one answer", "a call"):
        trials[-1] = replace(trials[-1], invocations=(turn,))
    if where == "a rerun of the base":
        trials.append(replace(trials[0], side=Side.BASELINE, round=1, tag="confirm", invocations=(turn,)))
    result = judge(SUITE, [FORBIDS, RESPONSE], trials, reported=where == "the baseline")
    assert by_name(result)["forbidden_tools"] is Verdict.PASS


def test_a_run_that_no_longer_reports_what_its_baseline_did_is_warned_about() -> None:
    trials, before = (f(SUITE, forbidden_tools=1.0, response=1.0) for f in (once, stored))
    told = [
        Finding.of("answers_say_little", criteria=("forbidden_tools",), why="no_calls")
        in judge(SUITE, [FORBIDS, RESPONSE], *both).warnings
        for both in ((trials, telling(before)), (telling(trials), telling(before)), (trials, before))
    ]
    assert told == [True, False, False]


def test_a_criterion_of_an_old_record_stays_as_it_was_judged() -> None:
    result = judge(SUITE, [FORBIDDEN, RESPONSE], once(SUITE, forbidden_tools=1.0, response=1.0))
    assert by_name(result)["forbidden_tools"] is Verdict.PASS


def test_what_does_not_apply_needs_no_evidence() -> None:
    trials = [replace(t, scores={**t.scores, "forbidden_tools": Score(None)}) for t in once(SUITE, response=1.0)]
    result = judge(SUITE, [FORBIDS, replace(RESPONSE, threshold=0.5)], trials, stored(SUITE, response=1.0))
    assert not any(UNSEEN in getattr(found, "error", "") for found in findings(result, "forbidden_tools"))


def test_reporting_calls_is_kept_when_a_trial_is_digested() -> None:
    trials = telling(once(SUITE, forbidden_tools=1.0, response=1.0))
    kept = [digested(trial, failed=False) for trial in trials]
    assert by_name(judge(SUITE, [FORBIDS, RESPONSE], kept))["forbidden_tools"] is Verdict.PASS


# --- nothing checked, nothing said ----------------------------------------------------------------

MATCH = replace(RESPONSE, threshold=0.5)
PII = Criterion("pii", "pii", Scale.BINARY, hard=True, absence=True)


def unchecked(case_id: str) -> Trial:
    return replace(once([Case(case_id, ())], response=1.0)[0], scores={"response": Score(None, "states nothing")})


def test_a_case_to_which_nothing_applies_is_unchecked_and_counts_for_nothing() -> None:
    trials = [unchecked(SUITE[0].id), *once(SUITE[1:], response=1.0)]
    result = judge(SUITE, [MATCH], trials)
    assert [case.status for case in result.cases[:2]] == [CaseStatus.UNCHECKED, CaseStatus.OK]
    assert (result.cases[0].passed, result.cases[0].trials) == (0, 0)
    assert result.criteria[0].candidate is not None
    assert result.criteria[0].candidate.n == len(SUITE) - 1
    assert Finding.of("not_judged", why="cases_unchecked", cases=(SUITE[0].id,)) in result.criteria[0].findings
    assert result.verdict is Verdict.PASS
    assert result.cause == Finding.of(
        "passes", compared=0, checked=len(SUITE) - 1, cases=len(SUITE), uncompared=Uncompared()
    )


@pytest.mark.parametrize("selected", [False, True])
def test_a_suite_of_unchecked_cases_measured_nothing(selected: bool) -> None:
    result = judge(SUITE, [MATCH], [unchecked(case.id) for case in SUITE], selected=selected)
    assert result.verdict is Verdict.ERROR
    assert exit_code([result], Settings()) is ExitCode.NOT_MEASURED
    assert by_name(result)["response"] is (Verdict.NOT_APPLIED if selected else Verdict.NOT_MEASURED)
    assert {case.status for case in result.cases} == {CaseStatus.UNCHECKED}


def test_the_cause_is_what_could_not_be_measured() -> None:
    trials = [replace(t, scores={"response": Score(None, error="no key")}) for t in once(SUITE, response=1.0)]
    result = judge(SUITE, [MATCH], trials)
    assert result.cause == Finding.of("criteria_decide", Verdict.ERROR, criteria=("response",))
    assert findings(result, "response") == [not_scored(len(SUITE), len(SUITE), error="no key")]


def test_of_a_selection_a_criterion_of_other_cases_is_not_applied_and_decides_nothing() -> None:
    other = replace(FORBIDDEN, name="other", hard=False, threshold=1.0)
    trials = [replace(t, scores={**t.scores, "other": Score(None)}) for t in once(SUITE, response=1.0)]
    chosen, whole = (judge(SUITE, [MATCH, other], trials, selected=selected) for selected in (True, False))
    assert (chosen.verdict, by_name(chosen)["other"]) == (Verdict.PASS, Verdict.NOT_APPLIED)
    assert (whole.verdict, by_name(whole)["other"]) == (Verdict.ERROR, Verdict.NOT_MEASURED)
    failing = once(SUITE, response=0.0)
    failing = [replace(t, scores={**t.scores, "other": Score(None)}) for t in failing]
    assert judge(SUITE, [MATCH, other], failing, selected=True).verdict is not Verdict.PASS


def answering(*texts: str, digests: bool = False) -> list[Trial]:
    trials = once(SUITE, pii=1.0, response=1.0)
    turns = [Invocation("q", (Part(text),) if text else ()) for text in texts]
    trials = [replace(t, invocations=(turns[n % len(turns)],)) for n, t in enumerate(trials)]
    return [digested(trial, failed=False) for trial in trials] if digests else trials


@pytest.mark.parametrize("digests", [False, True])
@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("a",), True),
        (("a", "b"), False),
        (("", "a", "b"), False),
    ],
)
def test_answers_that_say_nothing_are_told_under_criteria_of_absence(
    texts: tuple[str, ...], said: bool, digests: bool
) -> None:
    trials = answering(*texts, digests=digests)
    told = [found for found in judge(SUITE, [PII, MATCH], trials).warnings if found.kind == "answers_say_little"]
    assert len(told) == said
    assert all(found["criteria"] == ("pii",) for found in told)
    assert not [found for found in judge(SUITE, [MATCH], trials).warnings if found.kind == "answers_say_little"]


@pytest.mark.parametrize("digests", [False, True])
@pytest.mark.parametrize(
    ("errors", "trials"),
    [((None, None), 0), (("down", None), 0), (("down", "down"), 12), (("", ""), 12), (("down",), 12), ((), 0)],
    ids=["works", "once", "always", "without words", "one call", "no call"],
)
def test_a_tool_that_always_fails_is_told_although_the_agent_answers_well(
    errors: tuple[str | None, ...], trials: int, digests: bool
) -> None:
    calls = tuple([ToolCall("refund", error=error) for error in errors])
    made = Invocation("go", (Part("a"),), (*calls, ToolCall("find")), reports_calls=True)
    asked = [replace(trial, invocations=(made,)) for trial in once(SUITE)]
    if digests:
        asked = [digested(trial, failed=False) for trial in asked]
    found = [one for one in judge(SUITE, [MATCH], asked).warnings if one.kind == "tool_fails"]
    expected = [Finding.of("tool_fails", tool="refund", trials=trials, error=errors[0] or "failed")] if trials else []
    assert found == expected
    assert not [one for one in judge(SUITE, [MATCH], asked[:1]).warnings if one.kind == "tool_fails"]
