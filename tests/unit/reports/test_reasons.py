"""The findings of a criterion in words: the wording of each kind, once."""

from __future__ import annotations

from typing import get_args

import pytest

from gate.model import Criterion, CriterionResult, Direction, Scale, Stage, StageKind, Verdict, worst
from gate.model import findings as found
from gate.model.findings import AnyFinding, Change, HeldMean
from gate.reports.reasons import is_excused, reason, stage_text, unconfirmed, why_apart

RESPONSE = Criterion("response", "response", Scale.UNIT, threshold=0.9)
RATE = Criterion("pass rate", "pass rate", Scale.BINARY)
LATENCY = Criterion("latency", "latency", Scale.SECONDS, Direction.LOWER, limit=3.0)
MISSED = HeldMean(0.2, 0.9, 4)
DROP = Change(-0.125, -0.2, -0.05, 40)
WORDS: list[tuple[Criterion, AnyFinding, str]] = [
    (
        RESPONSE,
        found.NothingHeld(),
        "not judged: no threshold and no baseline value to compare with",
    ),
    (RESPONSE, found.NotApplied(), "applies to none of the selected cases"),
    (RATE, found.SameTrials(), "nothing to compare: the trials are the baseline's own"),
    (RATE, found.NothingChecked(), "no blocking criterion applies to any of these cases: nothing was checked"),
    (RESPONSE, found.NoTrialMeasured(), "no trial was measured"),
    (RESPONSE, found.NeverFailed(), "never failed"),
    (RESPONSE, found.HardFailure("a", 0, ""), "a: failed"),
    (RESPONSE, found.HardFailure("a", 2, "deleted an account"), "a and 2 more: deleted an account"),
    (RESPONSE, found.CasesNotScored("a", 1, 9, "no key"), "could not be measured for a: no key"),
    (RESPONSE, found.CasesNotScored("a", 3, 9, "no key"), "could not be measured for 3 of 9 cases: no key"),
    (RESPONSE, found.NeverAnswered("a", 1, 9, "crash: x"), "the agent never answered a: crash: x"),
    (
        RESPONSE,
        found.ScoresLost(80, 120, 0.1, "no key"),
        "80 of 120 scores could not be measured, at most 10 % may: no key",
    ),
    (
        RESPONSE,
        found.AppliesToNone(),
        "applies to no case: none states what it compares with, and no answer has what it checks",
    ),
    (RESPONSE, found.AppliesNoMore(), "applies to no case any more"),
    (RESPONSE, found.MeanHolds(HeldMean(0.95, 0.9, 1)), "mean 0.95 over 1 case, threshold 0.90"),
    (RATE, found.MeanHolds(HeldMean(0.5, 0.85, 10)), "mean 50 % over 10 cases, threshold 85 %"),
    (
        RESPONSE,
        found.MeanExcused(HeldMean(0.2, 0.9, 4, before=0.1)),
        "mean 0.20 over 4 cases, threshold 0.90; the baseline missed it too (0.10)",
    ),
    (RESPONSE, found.MeanMisses(MISSED), "mean 0.20 over 4 cases, threshold 0.90 (strict)"),
    (RESPONSE, found.MeanProvenShort(MISSED, 0.4), "mean 0.20 over 4 cases, threshold 0.90; at best 0.40"),
    (
        RESPONSE,
        found.MeanProvenShort(MISSED, 0.89999),
        "mean 0.20 over 4 cases, threshold 0.90; at best 0.89999",
    ),
    (
        RESPONSE,
        found.MeanProvenShort(MISSED, 0.9 - 1e-14),
        "mean 0.20 over 4 cases, threshold 0.90; at best just below 0.90",
    ),
    (
        RESPONSE,
        found.MeanMisses(HeldMean(0.7996, 0.8004, 4, before=0.79961)),
        "mean 0.7996 over 4 cases, threshold 0.8004; the baseline missed it too (0.79961) (strict)",
    ),
    (LATENCY, found.TrialBeyond("a", 3.0004, 3.0, 1), "a reached 3.0004 s, limit 3 s"),
    (LATENCY, found.QuantileHolds(0.95, 2.9996, 3.0), "p95 2.9996 s, limit 3 s"),
    (
        RATE,
        found.LossNotExcluded(Change(-0.02, -0.10004, 0.06, 40), -0.10004, 0.1),
        "−2 points (−10 to +6) over 40 cases: its interval reaches −10.004 points, beyond the margin of 10 points",
    ),
    (
        RESPONSE,
        found.MeanProvenShort(HeldMean(0.0, 0.9, 12, before=0.0, new_cases=11), 0.4),
        "mean 0.00 over 12 cases, threshold 0.90; the baseline missed it too (0.00); "
        "11 cases without a baseline alone: 0.00; at best 0.40",
    ),
    (
        RESPONSE,
        found.NoTrialReached(HeldMean(0.1, 0.9, 4, failed=3), 12),
        "mean 0.10 over 4 cases (3 trials in which the agent failed counted as 0), threshold 0.90; "
        "none of 12 trials reached it",
    ),
    (
        RESPONSE,
        found.MeanOpen(MISSED, 12, too_few=False),
        "mean 0.20 over 4 cases, threshold 0.90: too close to call after 12 trials",
    ),
    (
        RESPONSE,
        found.MeanOpen(HeldMean(0.2, 0.9, 1, "own"), 1, too_few=True, more=1),
        "own is below its own threshold: mean 0.20, threshold 0.90: too few to tell: 1 trial; and 1 more case",
    ),
    (RESPONSE, found.OwnThresholdsHold(2), "no case falls behind its own threshold (2 cases)"),
    (
        RESPONSE,
        found.OwnThresholdsHold(3, 1),
        "1 of 3 cases falls behind its own threshold, as it did at the baseline",
    ),
    (
        RESPONSE,
        found.OwnThresholdsHold(3, 2),
        "2 of 3 cases fall behind their own threshold, as they did at the baseline",
    ),
    (LATENCY, found.NoTrialBeyond(), "no trial above its limit"),
    (LATENCY, found.TrialBeyond("a", 4.5, 3.0, 2), "a reached 4.5 s, limit 3 s; 2 trials in all"),
    (LATENCY, found.TrialExcused("a", 4.5, 3.0), "a reached 4.5 s, limit 3 s; the baseline was above it too"),
    (LATENCY, found.QuantileHolds(0.95, 2.5, 3.0), "p95 2.5 s, limit 3 s"),
    (LATENCY, found.QuantileExcused(0.95, 3.5, 3.0), "p95 3.5 s, limit 3 s; the baseline was above it too"),
    (LATENCY, found.QuantileRisen(0.95, 9.0, 3.0, 3.3), "p95 9 s, limit 3 s; the baseline's was 3.3 s"),
    (LATENCY, found.QuantileOver(0.5, 9.0, 3.0, 30, 40), "p50 9 s, limit 3 s: 30 of 40 trials above it"),
    (
        LATENCY,
        found.QuantileOpen(0.95, 9.0, 3.0, 40, too_few=False),
        "p95 9 s, limit 3 s: too close to call after 40 trials",
    ),
    (RATE, found.ChangeAllowed(DROP), "−12.5 points (−20 to −5) over 40 cases"),
    (RATE, found.ChangeAllowed(Change(0.0, None, None, 1)), "±0 points over 1 case"),
    (LATENCY, found.ChangeAllowed(Change(0.6, 0.2, 1.0, 40)), "a typical case +60 % (+20 % to +100 %) over 40 cases"),
    (
        RATE,
        found.SuggestsDrop(DROP),
        "−12.5 points (−20 to −5) over 40 cases: within its margin, but one test suggests a drop",
    ),
    (
        RATE,
        found.Drifted(DROP),
        "−12.5 points (−20 to −5) over 40 cases: it does not show against the base commit's agent run now",
    ),
    (
        RATE,
        found.Drifted(DROP, before=True),
        "−12.5 points (−20 to −5) over 40 cases: it does not show against the newest stored runs",
    ),
    (RATE, found.ChangeUnbounded(DROP), "−12.5 points (−20 to −5) over 40 cases: too few trials to bound it"),
    (
        RATE,
        found.LossNotExcluded(DROP, -0.2, 0.1),
        "−12.5 points (−20 to −5) over 40 cases: its interval reaches −20 points, beyond the margin of 10 points",
    ),
    (RATE, found.GotWorse(DROP, ("a", "b")), "−12.5 points (−20 to −5) over 40 cases; broken: a, b"),
    (
        RATE,
        found.NeverPass((found.CaseTally("refund", 0, 11, 1, 1),)),
        "1 case that always passed never does now: refund (1/1 → 0/11); the baseline has too few trials to prove it",
    ),
    (RATE, found.GotWorse(Change(-0.02, -0.06, 0.02, 40), ("a",)), "−2 points over 40 cases; broken: a"),
    (
        RATE,
        found.TradeWarned(Change(0.02, -0.06, 0.1, 40), ("a",)),
        "+2 points over 40 cases; broken: a; a trade: `gate.on_tradeoff` does not block it",
    ),
    (
        RATE,
        found.TradeAccepted(Change(0.02, -0.06, 0.1, 40)),
        "+2 points over 40 cases; a trade: `gate.on_tradeoff` accepts it",
    ),
    (RATE, found.NotTested(Stage(StageKind.NOTHING)), "nothing to compare"),
    (
        RATE,
        found.FailuresConfirmed(0.0004),
        "the agent fails where it answered at the baseline, also when asked again a while later "
        "(by chance in less than 0.1 % of unchanged agents)",
    ),
]


@pytest.mark.parametrize(("criterion", "finding", "said"), WORDS)
def test_each_kind_in_words(criterion: Criterion, finding: AnyFinding, said: str) -> None:
    assert reason(CriterionResult(criterion, finding.verdict, (finding,))) == said


def test_no_kind_is_left_out() -> None:
    first = {found.NotCompared, found.NotConfirmed}
    assert {type(finding) for _, finding, _ in WORDS} == set(get_args(AnyFinding)) - first


def test_the_findings_of_the_verdict_alone_are_its_reason() -> None:
    held, open_ = found.MeanHolds(MISSED), found.ChangeUnbounded(DROP)
    assert worst([held.verdict, open_.verdict]) is Verdict.INCONCLUSIVE
    row = CriterionResult(RATE, Verdict.INCONCLUSIVE, (held, open_))
    assert reason(row).endswith("too few trials to bound it")
    assert "mean" not in reason(row)


def test_what_keeps_a_finding_from_deciding_comes_first() -> None:
    worse = found.GotWorse(DROP)
    apart = CriterionResult(RATE, Verdict.INCONCLUSIVE, (found.NotCompared(found.ScorerChanged()), worse))
    assert reason(apart) == (
        "not compared: its options, scorer or judge changed; −12.5 points (−20 to −5) over 40 cases"
    )
    doubt = CriterionResult(RATE, Verdict.INCONCLUSIVE, (found.NotConfirmed(found.FailuresGone(24)), worse))
    assert reason(doubt) == (
        "the failures did not come again: 24 trials of the same cases answered a while later "
        "(−12.5 points (−20 to −5) over 40 cases)"
    )


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (found.NothingRerun(), "the failures were not confirmed: nothing could be run again a while later"),
        (found.ConfirmationSpared(), "the failures were not confirmed: the suite fails without them"),
        (found.ConfirmationLost(9, 24), "9 of 24 trials that were to confirm the failures were lost to infrastructure"),
        (
            found.PerhapsProvider(20, 24, 24, 24, at_base=True),
            "the failures may be a provider's: a while later 20 of 24 trials failed again, "
            "and 24 of 24 trials at the base commit, run now",
        ),
        (
            found.PerhapsProvider(20, 24, 0, 0, at_base=False),
            "the failures may be a provider's: a while later 20 of 24 trials failed again",
        ),
        (
            found.SlowedDown(9.0, 2.0),
            "the failures came while answers slowed from 2 s to 9 s: the provider may be at fault",
        ),
    ],
)
def test_why_failures_are_not_confirmed(why: found.Unconfirmed, said: str) -> None:
    assert unconfirmed(why) == said


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (found.CasesGone(4), "none of the cases that it was measured on is compared (4)"),
        (found.NoLongerMeasured(), "it is no longer measured"),
        (found.ComparedWithout(("a", "b")), "its trials are compared without a, b"),
    ],
)
def test_why_something_is_not_compared(why: found.Apart, said: str) -> None:
    assert why_apart(why) == said


def test_what_the_baseline_excuses_is_known_by_its_kind() -> None:
    excused = found.TrialExcused("a", 4.5, 3.0)
    assert is_excused(CriterionResult(LATENCY, Verdict.PASS, (found.NoTrialBeyond(), excused)))
    assert not is_excused(CriterionResult(LATENCY, Verdict.PASS, (found.NoTrialBeyond(),)))
    assert is_excused(CriterionResult(RESPONSE, Verdict.PASS, (found.OwnThresholdsHold(3, 1),)))
    assert not is_excused(CriterionResult(RESPONSE, Verdict.PASS, (found.OwnThresholdsHold(3),)))


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        (Stage(StageKind.CERTIFIED, 2), "after 2 trials a case"),
        (Stage(StageKind.CASES_AT_PASS, 1), "after 1 trial a case"),
        (
            Stage(StageKind.CASES_AT_PASS, 1, confirmed=True),
            "after 1 trial a case, confirmed against the baseline's agent run now",
        ),
        (
            Stage(StageKind.CASE_RERUNS, confirmed=True),
            "after reruns of the suspicious cases, confirmed against the baseline's agent run now",
        ),
        (Stage(StageKind.SUITE_LOOK, 1), "after 1 trial a case"),
        (Stage(StageKind.REPEATS, 1), "after the cases that had failed were run again"),
        (Stage(StageKind.END), "still open after the last trial"),
        (Stage(StageKind.DRIFTED), "not confirmed against the baseline's agent run now (drift or luck)"),
    ],
)
def test_where_a_decision_ended(stage: Stage, said: str) -> None:
    assert stage_text(stage) == said
