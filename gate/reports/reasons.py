"""The findings of a criterion in words: one wording per kind, and which part of it the figures beside it do not say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import assert_never

from msgspec import Struct

from gate.decision.engine.evidence_json import stage_name
from gate.model import Criterion, CriterionResult, Direction, Scale, Verdict, worst
from gate.model import findings as found
from gate.model.evidence import Stage, StageKind
from gate.model.findings import AnyFinding, Apart, Change, HeldMean, Unconfirmed
from gate.reports.formatting import (
    by_chance,
    change,
    count,
    end_and_margin,
    figures,
    listing,
    of_means,
    percentage,
    were,
)

RULED_OUT = "ruled out at 95 % confidence"
"""Of a bound that the true change lies beyond in at most 5 % of runs like this one. It is wider than the interval of
the change, which is Student's: steady cases hide their failures, so one that was not seen is counted."""
SHOWN_BROKEN = 5
"""Broken cases that a reason names."""
COUNTED = "in which the agent failed counted as"
"""What a threshold makes of a trial without a score."""


class Phrase(Struct, frozen=True):
    """A part of a reason."""

    text: str
    told: str = ""
    """What of it the figures beside it do not say."""
    broken: bool = False
    """Whether it names the broken cases, which reports list anyway."""


def _told(text: str) -> Phrase:
    return Phrase(text, text)


def reason(row: CriterionResult) -> str:
    """Why the criterion has its verdict, as one line; empty where nothing was found."""
    return "; ".join(part.text for part in parts(row))


def reason_of_verdict(row: CriterionResult) -> str:
    """`reason` without what fails besides."""
    return "; ".join(part.text for part in _of_verdict(row))


def broken_of(row: CriterionResult) -> tuple[str, ...]:
    """The broken cases that a reason names."""
    worse = row.finding(found.GotWorse)
    return () if worse is None else worse.broken[:SHOWN_BROKEN]


def fails_besides(row: CriterionResult) -> str:
    """What fails anyway beside a regression, which outranks it: a threshold or a limit; else empty."""
    besides = [one for one in row.findings if one.verdict is Verdict.BELOW_THRESHOLD]
    if row.verdict is not Verdict.REGRESSED or not besides:
        return ""
    what = "threshold is missed" if isinstance(besides[0], _OfMean) else "limit is broken"
    said = "; ".join(part.text for one in besides for part in _parts(one, row.criterion))
    return f"its {what}, too ({said})"


def telling(row: CriterionResult, *, with_broken: bool = True) -> list[str]:
    """The parts of the reason that say more than the figures beside it."""
    return [part.told for part in parts(row) if part.told and (with_broken or not part.broken)]


def with_failures(row: CriterionResult) -> HeldMean | None:
    """The mean that was held to a threshold, where it counts failures of the agent: the figures beside it do not."""
    return next((one.mean for one in row.findings if isinstance(one, _OfMean) and one.mean.failed), None)


def failed_as(mean: HeldMean) -> str:
    """``3 trials in which the agent failed counted as 0``."""
    return f"{count(mean.failed, 'trial')} {COUNTED} {mean.failed_as:g}"


def counted_failures(row: CriterionResult) -> str:
    """What `with_failures` finds, in words; empty where it finds nothing, or the reason says so."""
    mean = with_failures(row)
    if mean is None or COUNTED in reason(row):
        return ""
    value, least = figures((mean.value, mean.threshold), row.criterion.scale)
    return f"{failed_as(mean)} against the threshold: mean {value} over {count(mean.cases, 'case')}, threshold {least}"


def is_excused(row: CriterionResult) -> bool:
    """Whether it passes only because the baseline was no better."""
    kinds = found.MeanExcused | found.TrialExcused | found.QuantileExcused
    own = (one.excused for one in row.findings if isinstance(one, found.OwnThresholdsHold))
    return any(own) or any(isinstance(one, kinds) for one in row.findings)


def parts(row: CriterionResult) -> list[Phrase]:
    """The findings of the worst kind; what keeps them from deciding comes first, and so does what fails besides."""
    besides = fails_besides(row)
    return [*([_told(besides)] if besides else []), *_of_verdict(row)]


def _of_verdict(row: CriterionResult) -> list[Phrase]:
    first = next(iter(row.findings), None)
    if isinstance(first, found.NotCompared):
        return [_told(f"not compared: {why_apart(first.why)}"), *_of_row(row, row.findings[1:])]
    return _of_row(row, row.findings)


_OfChange = (
    found.ChangeAllowed
    | found.SuggestsDrop
    | found.Drifted
    | found.ChangeUnbounded
    | found.LossNotExcluded
    | found.GotWorse
)


def _of_row(row: CriterionResult, findings: Sequence[AnyFinding]) -> list[Phrase]:
    """The worst findings; and what became of the means, where it is not what became of a typical case."""
    least = worst([one.verdict for one in findings])
    said = _worst(findings, row.criterion)
    if not any(one.verdict is least and isinstance(one, _OfChange) for one in findings):
        return said
    means = of_means(row)
    return [*said, Phrase(means)] if means else said


def _worst(findings: Sequence[AnyFinding], criterion: Criterion) -> list[Phrase]:
    verdict = worst([one.verdict for one in findings])
    return [part for one in findings if one.verdict is verdict for part in _parts(one, criterion)]


def _parts(one: AnyFinding, criterion: Criterion) -> list[Phrase]:
    """The wording of one finding."""
    match one:
        case (
            found.MeanHolds()
            | found.MeanExcused()
            | found.MeanMisses()
            | found.MeanUnsure()
            | found.OwnThresholdMissed()
        ):
            return _of_mean(one, criterion)
        case (
            found.QuantileHolds()
            | found.QuantileExcused()
            | found.QuantileRisen()
            | found.QuantileOver()
            | found.QuantileOpen()
        ):
            return _of_quantile(one, criterion.scale)
        case (
            found.ChangeAllowed()
            | found.SuggestsDrop()
            | found.Drifted()
            | found.ChangeUnbounded()
            | found.LossNotExcluded()
        ):
            return [_of_change(one, criterion.scale)]
        case found.GotWorse():
            broken = f"broken: {', '.join(one.broken[:SHOWN_BROKEN])}"
            named = [Phrase(broken, broken, broken=True)] if one.broken else []
            return [Phrase(_worse(one.change, criterion)), *named]
        case found.TrialBeyond() | found.TrialExcused() | found.NoTrialBeyond():
            return _of_trial(one, criterion.scale)
        case found.NotCompared():  # never below another
            return []
        case _:
            return [_told(_plainly(one))]


_Plain = (
    found.NothingHeld
    | found.NotApplied
    | found.SameTrials
    | found.NothingChecked
    | found.NoTrialMeasured
    | found.NeverFailed
    | found.HardFailure
    | found.CasesNotScored
    | found.ScoresLost
    | found.AppliesToNone
    | found.AppliesNoMore
    | found.OwnThresholdsHold
    | found.NotTested
    | found.NeverPass
    | found.FailuresConfirmed
)


def never_pass(cases: Sequence[found.CaseTally], *, tallies: bool = True) -> str:
    """``1 case that always passed never does now: refund (1/1 → 0/11)``, and why that is no proof."""
    told = [f"{c.case_id} ({c.passed_before}/{c.trials_before} → {c.passed}/{c.trials})" for c in cases]
    told = told if tallies else [c.case_id for c in cases]
    verb = "does" if len(cases) == 1 else "do"
    which = f"{count(len(cases), 'case')} that always passed never {verb} now: {listing(told)}"
    return f"{which}; the baseline has too few trials to prove it"


def stage_text(stage: Stage) -> str:
    """Where a decision ended, in words; `stage_name` has the protocol's names."""
    match stage.kind:
        case StageKind.CERTIFIED | StageKind.CASES_AT_PASS | StageKind.SUITE_LOOK:
            said = f"after {count(stage.epochs, 'trial')} a case"
        case StageKind.CASE_RERUNS:
            said = "after reruns of the suspicious cases"
        case StageKind.REPEATS:
            said = "after the cases that had failed were run again"
        case StageKind.END:
            return "still open after the last trial"
        case _:
            return stage_name(stage)
    return f"{said}, confirmed against the baseline's agent run now" if stage.confirmed else said


def _plainly(one: _Plain) -> str:
    match one:
        case found.NothingHeld():
            return "not judged: no threshold and no baseline value to compare with"
        case found.NotApplied():
            return "applies to none of the selected cases"
        case found.SameTrials():
            return "nothing to compare: the trials are the baseline's own"
        case found.NothingChecked():
            return "no blocking criterion applies to any of these cases: nothing was checked"
        case found.NoTrialMeasured():
            return "no trial was measured"
        case found.NeverFailed():
            return "never failed"
        case found.HardFailure():
            more = f" and {one.more} more" if one.more else ""
            return f"{one.case_id}{more}: {one.reason or 'failed'}"
        case found.OwnThresholdsHold():
            return _own_thresholds(one)
        case found.NeverPass():
            return never_pass(one.cases)
        case found.NotTested():
            return stage_text(one.stage)
        case found.FailuresConfirmed():
            return failures_confirmed(one.p)
        case _:
            return _without_score(one)


def _own_thresholds(one: found.OwnThresholdsHold) -> str:
    """Of cases that are held to thresholds of their own: whether all reach them, or some miss them as before."""
    if one.short:
        verb = "is" if one.short == 1 else "are"
        return f"{one.short} of {count(one.cases, 'case')} {verb} below a threshold of its own, but not beyond chance"
    if not one.excused:
        return f"no case falls behind its own threshold ({count(one.cases, 'case')})"
    which = f"{one.excused} of {count(one.cases, 'case')}"
    if one.excused == 1:
        return f"{which} falls behind its own threshold, as it did at the baseline"
    return f"{which} fall behind their own threshold, as they did at the baseline"


_WithoutScore = found.CasesNotScored | found.ScoresLost | found.AppliesToNone | found.AppliesNoMore


def _without_score(one: _WithoutScore) -> str:
    match one:
        case found.CasesNotScored():
            return f"could not be measured for {_cases(one)}: {one.error}"
        case found.ScoresLost():
            return (
                f"{one.lost} of {count(one.of, 'score')} could not be measured, at most {percentage(one.most)} may: "
                f"{one.error}"
            )
        case found.AppliesToNone():
            return "applies to no case: none states what it compares with, and no answer has what it checks"
        case found.AppliesNoMore():
            return "applies to no case any more"
        case _:
            assert_never(one)


def _cases(one: found.CasesNotScored) -> str:
    return f"{one.cases} of {one.of} cases" if one.cases > 1 else one.case_id


CONFIRMED = "the agent fails where it answered at the baseline, and failed again when asked a while later"


def failures_confirmed(p: float) -> str:
    return f"{CONFIRMED} (by chance in {by_chance(p)} of unchanged agents)"


# --- thresholds and limits ------------------------------------------------------------------------

_OfMean = found.MeanHolds | found.MeanExcused | found.MeanMisses | found.MeanUnsure | found.OwnThresholdMissed


def _of_mean(one: _OfMean, criterion: Criterion) -> list[Phrase]:
    told = _mean(one.mean, criterion.scale)
    match one:
        case found.MeanHolds() | found.MeanExcused():
            return told
        case found.MeanMisses():
            of_base = (
                [_told("these are the base's own cases; only new ones bring the mean to the threshold")]
                if one.base_cases
                else []
            )
            return [*told, *of_base, *([_told(narrow)] if (narrow := narrow_miss(one, criterion)) else [])]
        case found.MeanUnsure():
            lost = f"{count(one.lost, 'trial')} could not be measured"
            return [*told, _told(f"{lost}; at their best, they would bring it to the threshold")]
        case found.OwnThresholdMissed():
            return [*told, _told(_also_missed(one.more))] if one.more else told
        case _:
            assert_never(one)


def _mean(mean: HeldMean, scale: Scale) -> list[Phrase]:
    """``mean 0.2 over 4 cases, threshold 0.9``, and what the baseline has to do with it."""
    new = mean.new_value if mean.new_cases else None
    value, least, before, of_new, measured = figures(
        (mean.value, mean.threshold, mean.before, new, mean.measured), scale
    )
    if mean.case_id:
        told = [_told(f"{mean.case_id} misses its own threshold: mean {value}, threshold {least}")]
    else:
        fell = f" ({failed_as(mean)})"
        plain = f" (corrected; measured {measured})" if mean.measured is not None else ""
        text = f"mean {value}{plain} over {count(mean.cases, 'case')}{fell if mean.failed else ''}, threshold {least}"
        told = [Phrase(text, text if mean.failed or plain else "")]
    if mean.before is not None:
        told.append(_told(f"the baseline missed it too ({before})"))
    if mean.new_cases:
        cases = f"{count(mean.new_cases, 'case')} without a baseline alone"
        told.append(_told(f"{cases}: {of_new}"))
    return told


def _also_missed(more: int) -> str:
    return f"{count(more, 'more case')} {'misses its own' if more == 1 else 'miss theirs'}"


def _open(one: found.QuantileOpen) -> str:
    """Return why a limit on a quantile is undecided."""
    after = count(one.trials, "trial")
    return f"too few to tell: {after}" if one.too_few else f"too close to call after {after}"


def fails(row: CriterionResult) -> str:
    """Return how a criterion fails by itself: ``is 0.73, below its threshold of 0.80 (5 cases)``."""
    missed = row.finding(found.MeanMisses)
    if missed is None:
        return f"fails: {reason(row)}"
    mean = missed.mean
    value, least = figures((mean.value, mean.threshold), row.criterion.scale)
    side = "below" if row.criterion.direction is Direction.HIGHER else "above"
    whose = "of the base's own cases " if missed.base_cases else ""
    fell = f", {failed_as(mean)}" if mean.failed else ""
    corrected = ""
    if mean.measured is not None:
        corrected = f", corrected from {figures((mean.measured,), row.criterion.scale)[0]}"
    return f"{whose}is {value}, {side} its threshold of {least} ({count(mean.cases, 'case')}{fell}{corrected})"


def narrow_miss_of(row: CriterionResult) -> str:
    """Return how narrow a criterion's miss is, if it is narrow; else empty."""
    missed = row.finding(found.MeanMisses)
    return "" if missed is None else narrow_miss(missed, row.criterion)


CLEAR = 1.645
"""Standard errors from which on an agent exactly at the threshold shows such a miss in at most 5 % of runs."""
MOST_MORE = 9
"""Times the cases that there are, up to which more of them are proposed."""


def narrow_miss(one: found.MeanMisses, criterion: Criterion) -> str:
    """Return how often an agent exactly at the threshold shows this or worse, and what would tell them apart.

    Empty if the miss is clear, or the spread of the trials is not known.
    """
    distance = abs(one.mean.value - one.mean.threshold)
    if not one.error or distance >= CLEAR * one.error:
        return ""
    sign = -1 if criterion.direction is Direction.HIGHER else 1
    chance = NormalDist().cdf(-distance / one.error)
    value, least = figures((one.mean.value, one.mean.threshold), criterion.scale)
    or_worse = f"{value} or {'less' if sign < 0 else 'more'}"
    often = f"an agent exactly at {least} shows {or_worse} in {percentage(round(chance, 2))} of runs"
    ways = []
    if distance > 0:
        ratio = CLEAR * one.error / distance  # above 1, and of a tiny distance as large as floats go
        if ratio <= math.sqrt(1 + MOST_MORE):
            needed = math.ceil(one.mean.cases * (ratio**2 - 1))
            ways = [f"{count(needed, 'more case')} would tell the two apart"]
    with_room = one.mean.value + sign * CLEAR * one.error
    if 0 < with_room < 1 and not criterion.scale.is_relative:
        at = math.floor(20 * with_room) / 20 if sign < 0 else math.ceil(20 * with_room) / 20
        ways += [f"{'lower' if sign < 0 else 'raise'} the threshold to {at:g}"] if 0 < at < 1 else []
    return "; ".join(filter(None, (often, ", or ".join(ways))))


def trial_over(one: found.TrialBeyond | found.TrialExcused, scale: Scale) -> str:
    value, limit = figures((one.value, one.limit), scale)
    return f"{one.case_id} reached {value}, limit {limit}"


def _of_trial(one: found.TrialBeyond | found.TrialExcused | found.NoTrialBeyond, scale: Scale) -> list[Phrase]:
    match one:
        case found.NoTrialBeyond():
            return [_told("no trial above its limit")]
        case found.TrialExcused():
            return [_told(trial_over(one, scale)), _told("the baseline was above it too")]
        case found.TrialBeyond():
            more = [_told(f"{one.trials} trials in all")] if one.trials > 1 else []
            return [_told(trial_over(one, scale)), *more]
        case _:
            assert_never(one)


_OfQuantile = (
    found.QuantileHolds | found.QuantileExcused | found.QuantileRisen | found.QuantileOver | found.QuantileOpen
)


def quantile(one: _OfQuantile, scale: Scale) -> str:
    value, limit = figures((one.value, one.limit), scale)
    return f"p{one.q * 100:g} {value}, limit {limit}"


def _of_quantile(one: _OfQuantile, scale: Scale) -> list[Phrase]:
    said = quantile(one, scale)
    match one:
        case found.QuantileHolds():
            return [_told(said)]
        case found.QuantileExcused():
            return [_told(said), _told("the baseline was above it too")]
        case found.QuantileRisen():
            return [_told(said), _told(f"the baseline's was {figures((one.before, one.value), scale)[0]}")]
        case found.QuantileOver():
            return [_told(f"{said}: {one.over} of {count(one.trials, 'trial')} above it")]
        case found.QuantileOpen():
            return [_told(f"{said}: {_open(one)}")]
        case _:
            assert_never(one)


# --- the comparison with the baseline -------------------------------------------------------------


def how_far(row: CriterionResult) -> str:
    """Return by how much a criterion got worse, without the interval: ``−5 points over 40 cases``."""
    worse = row.finding(found.GotWorse)
    if worse is None:
        return reason_of_verdict(row)
    named = f"broken: {', '.join(worse.broken[:SHOWN_BROKEN])}" if worse.broken else ""
    return "; ".join(filter(None, (_alone(worse.change, row.criterion.scale), of_means(row), named)))


def changed(one: Change, scale: Scale) -> str:
    """``−5.0 points (−9.1 to −0.9) over 40 cases``."""
    value, over = change(one.value, scale), f"over {count(one.cases, 'case')}"
    if one.low is None or one.high is None:
        return f"{value} {over}"
    low, high = (change(end, scale, unit=False) for end in (one.low, one.high))
    return f"{value} ({low} to {high}) {over}"


def _worse(one: Change, criterion: Criterion) -> str:
    """The change of what is proven worse; without an interval that the proof is not from, as single cases' is not."""
    return changed(one, criterion.scale) if excludes_gain(one, criterion) else _alone(one, criterion.scale)


def _alone(one: Change, scale: Scale) -> str:
    return f"{change(one.value, scale)} over {count(one.cases, 'case')}"


def excludes_gain(one: Change, criterion: Criterion) -> bool:
    """Whether the whole interval is on the bad side."""
    if one.low is None or one.high is None:
        return True
    return one.high < 0 if criterion.direction is Direction.HIGHER else one.low > 0


def _of_change(
    one: found.ChangeAllowed | found.SuggestsDrop | found.Drifted | found.ChangeUnbounded | found.LossNotExcluded,
    scale: Scale,
) -> Phrase:
    said = changed(one.change, scale)
    match one:
        case found.ChangeAllowed():
            return Phrase(said)
        case found.SuggestsDrop():
            told = "within its margin, but one test suggests a drop"
        case found.Drifted():
            what = "the newest stored runs" if one.before else "the base commit's agent run now"
            told = f"it does not show against {what}"
        case found.ChangeUnbounded():
            told = "too few trials to bound it"
        case found.LossNotExcluded():
            end, allowed = end_and_margin(one.worst, one.margin, scale)
            told = f"its interval reaches {end}, beyond the margin of {allowed}"
        case _:
            assert_never(one)
    return Phrase(f"{said}: {told}", told)


def why_apart(why: Apart) -> str:
    """Why what the baseline measured of a criterion is not compared."""
    match why:
        case found.ScorerChanged():
            return "its options, scorer or judge changed"
        case found.CasesGone():
            return f"none of the cases that it was measured on is compared ({why.cases})"
        case found.NoLongerMeasured():
            return "it is no longer measured"
        case found.ComparedWithout():
            return f"its trials are compared without {listing(why.criteria)}"
        case found.ChecksFellAway():
            return f"it {fell_silent(why)}"
        case _:
            assert_never(why)


def fell_silent(why: found.ChecksFellAway) -> str:
    where = f"{len(why.cases)} of {count(why.of, 'case')} ({listing(why.cases)})"
    return f"has nothing to check in {where}, and always had at the baseline"


def unconfirmed(why: Unconfirmed) -> str:
    """Why failures of the agent do not prove it to be at fault."""
    match why:
        case found.NothingRerun():
            return "the failures were not confirmed: nothing could be run again a while later"
        case found.ConfirmationLost():
            trials = count(why.trials, "trial")
            meant = f"{trials} that {were(why.trials)} to confirm the failures"
            return f"{why.lost} of {meant} {were(why.lost)} lost to infrastructure"
        case found.FailuresGone():
            trials = count(why.trials, "trial")
            return f"the failures did not come again: {trials} of the same cases answered a while later"
        case found.PerhapsProvider():
            whose = "at the base commit, run now" if why.at_base else "of cases that had answered before"
            beside = (
                f", and {why.other_failed} of {count(why.other_trials, 'trial')} {whose}" if why.other_trials else ""
            )
            again = f"a while later {why.failed} of {count(why.trials, 'trial')} failed again"
            return f"the failures may be a provider's: {again}{beside}"
        case found.SlowedDown():
            before, now = figures((why.before, why.now), Scale.SECONDS)
            slowed = f"answers slowed from {before} to {now}"
            return f"the failures came while {slowed}: the provider may be at fault"
        case _:
            assert_never(why)
