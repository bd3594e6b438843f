"""The findings on a criterion in words, and the part of them that the figures beside it do not say."""

from __future__ import annotations

import math
from statistics import NormalDist

from gate.decision.engine.evidence_json import stage_name
from gate.model import Criterion, CriterionResult, Direction, Scale, Verdict, worst
from gate.model.evidence import Stage, StageKind
from gate.model.finding import Change, Finding, HeldMean, KindName
from gate.reports.formatting import change, count, end_and_margin, figures, of_means, percentage
from gate.reports.wording import Table, clauses

RULED_OUT = "ruled out at 95 % confidence"
"""The name of a bound that the true change lies beyond in at most 5 % of runs like this one. It is wider than the
interval of the change, which is Student's: steady cases hide their failures, so one that was not seen is counted."""
SHOWN_BROKEN = 5
"""Broken cases that a reason names."""
COUNTED = "in which the agent failed counted as"
"""The effect of a threshold on a trial without a score."""


def reason(row: CriterionResult) -> str:
    """Return the reason for the criterion's verdict, as one line; empty if nothing was found."""
    return "; ".join(filter(None, (fails_besides(row), *_of_verdict(row))))


def reason_of_verdict(row: CriterionResult) -> str:
    """`reason` without what fails besides."""
    return "; ".join(_of_verdict(row))


def broken_of(row: CriterionResult) -> tuple[str, ...]:
    """The broken cases that a reason names."""
    worse = row.finding("got_worse")
    return () if worse is None else worse["broken"][:SHOWN_BROKEN]


def fails_besides(row: CriterionResult) -> str:
    """Return the failures beside a regression, which outranks them: a threshold or a limit; else empty."""
    besides = [one for one in row.findings if one.verdict is Verdict.BELOW_THRESHOLD]
    if row.verdict is not Verdict.REGRESSED or not besides:
        return ""
    what = "threshold is missed" if besides[0].kind in OF_MEAN else "limit is broken"
    said: list[str] = []
    for one in besides:
        said += _parts(one, row.criterion)
    return f"its {what}, too ({'; '.join(said)})"


def with_failures(row: CriterionResult) -> HeldMean | None:
    """The mean that was held to a threshold, where it counts failures of the agent: the figures beside it do not."""
    for one in row.findings:
        if one.kind in OF_MEAN and one["mean"].failed:
            held: HeldMean = one["mean"]
            return held
    return None


def failed_as(mean: HeldMean) -> str:
    """``3 trials in which the agent failed counted as 0``."""
    return f"{count(mean.failed, 'trial')} {COUNTED} {mean.failed_as:g}"


def counted_failures(row: CriterionResult) -> str:
    """Return the finding of `with_failures` in words; empty if it finds nothing, or the reason says so."""
    mean = with_failures(row)
    if mean is None or COUNTED in reason(row):
        return ""
    value, least = figures((mean.value, mean.threshold), row.criterion.scale)
    return f"{failed_as(mean)} against the threshold: mean {value} over {count(mean.cases, 'case')}, threshold {least}"


def is_excused(row: CriterionResult) -> bool:
    """True if it passes only because the baseline was no better."""
    own = row.finding("own_thresholds_hold")
    if own is not None and own["excused"]:
        return True
    return any(one.kind in ("mean_excused", "trial_excused", "quantile_excused") for one in row.findings)


def _of_verdict(row: CriterionResult) -> list[str]:
    """Return the worst findings; and what became of the means, if it is not what became of a typical case."""
    said, findings = [], row.findings
    if findings and findings[0].kind == "not_compared":
        said.append(f"not compared: {why_apart(findings[0]['why'])}")
        findings = findings[1:]
    verdict = worst([one.verdict for one in findings])
    tells_change = False
    for one in findings:
        if one.verdict is verdict:
            said += _parts(one, row.criterion)
            tells_change = tells_change or "change" in one.data
    if tells_change:
        said.append(of_means(row))
    return [text for text in said if text]


def _parts(one: Finding, criterion: Criterion) -> list[str]:
    """Return the wording of one finding."""
    if one.kind == "not_compared":  # it opens the reason, and is never below another
        return []
    told = clauses(one, WORDS, criterion)
    if one.kind == "got_worse":
        return [_worse(one["change"], criterion), *told]
    if "change" in one.data:
        said = changed(one["change"], criterion.scale)
        return ["; ".join([f"{said}: {text}" for text in told]) or said]
    return told


def stage_text(stage: Stage) -> str:
    """Return in words the stage at which a decision ended; `stage_name` has the protocol's names."""
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


CONFIRMED = "the agent fails where it answered at the baseline, and failed again when asked a while later"


def _own_thresholds(one: Finding, _: Criterion) -> str:
    """Return whether all cases reach thresholds of their own, or some miss them as before."""
    cases, excused, short = count(one["cases"], "case"), one["excused"], one["short"]
    if short:
        return f"{short} of {cases} {'is' if short == 1 else 'are'} below a threshold of its own, but not beyond chance"
    if not excused:
        return f"no case falls behind its own threshold ({cases})"
    if excused == 1:
        return f"1 of {cases} falls behind its own threshold, as it did at the baseline"
    return f"{excused} of {cases} fall behind their own threshold, as they did at the baseline"


def _not_scored(one: Finding, _: Criterion) -> str:
    where = f"{one['cases']} of {one['of']} cases" if one["cases"] > 1 else one["case_id"]
    return f"could not be measured for {where}: {one['error']}"


# --- thresholds and limits ------------------------------------------------------------------------


def _of_mean(one: Finding, criterion: Criterion) -> list[str]:
    """``mean 0.2 over 4 cases, threshold 0.9``, and what the baseline has to do with it."""
    mean: HeldMean = one["mean"]
    new = mean.new_value if mean.new_cases else None
    value, least, before, of_new, measured = figures(
        (mean.value, mean.threshold, mean.before, new, mean.measured), criterion.scale
    )
    if mean.case_id:
        told = [f"{mean.case_id} misses its own threshold: mean {value}, threshold {least}"]
    else:
        fell = f" ({failed_as(mean)})" if mean.failed else ""
        plain = f" (corrected; measured {measured})" if mean.measured is not None else ""
        told = [f"mean {value}{plain} over {count(mean.cases, 'case')}{fell}, threshold {least}"]
    if mean.before is not None:
        told.append(f"the baseline missed it too ({before})")
    if mean.new_cases:
        told.append(f"{count(mean.new_cases, 'case')} without a baseline alone: {of_new}")
    return told


def _mean_misses(one: Finding, criterion: Criterion) -> list[str]:
    told = _of_mean(one, criterion)
    if one["base_cases"]:
        told.append("these are the base's own cases; only new ones bring the mean to the threshold")
    return [*told, narrow_miss(one, criterion)]


def _mean_unsure(one: Finding, criterion: Criterion) -> list[str]:
    lost = f"{count(one['lost'], 'trial')} could not be measured"
    return [*_of_mean(one, criterion), f"{lost}; at their best, they would bring it to the threshold"]


def _own_threshold_missed(one: Finding, criterion: Criterion) -> list[str]:
    more = one["more"]
    if not more:
        return _of_mean(one, criterion)
    verb = "misses its own" if more == 1 else "miss theirs"
    return [*_of_mean(one, criterion), f"{count(more, 'more case')} {verb}"]


def fails(row: CriterionResult) -> str:
    """Return how a criterion fails by itself: ``is 0.73, below its threshold of 0.80 (5 cases)``."""
    missed = row.finding("mean_misses")
    if missed is None:
        return f"fails: {reason(row)}"
    mean = missed["mean"]
    value, least = figures((mean.value, mean.threshold), row.criterion.scale)
    side = "below" if row.criterion.direction is Direction.HIGHER else "above"
    whose = "of the base's own cases " if missed["base_cases"] else ""
    fell = f", {failed_as(mean)}" if mean.failed else ""
    corrected = ""
    if mean.measured is not None:
        corrected = f", corrected from {figures((mean.measured,), row.criterion.scale)[0]}"
    return f"{whose}is {value}, {side} its threshold of {least} ({count(mean.cases, 'case')}{fell}{corrected})"


def narrow_miss_of(row: CriterionResult) -> str:
    """Return how narrow a criterion's miss is, if it is narrow; else empty."""
    missed = row.finding("mean_misses")
    return "" if missed is None else narrow_miss(missed, row.criterion)


CLEAR = 1.645
"""Standard errors from which on an agent exactly at the threshold shows such a miss in at most 5 % of runs."""
MOST_MORE = 9
"""Times the cases that there are, up to which more of them are proposed."""


def narrow_miss(one: Finding, criterion: Criterion) -> str:
    """Return how often an agent exactly at the threshold shows this or worse, and what would tell them apart.

    Empty if the miss is clear, or the spread of the trials is not known.
    """
    mean, error = one["mean"], one["error"]
    distance = abs(mean.value - mean.threshold)
    if not error or distance >= CLEAR * error:
        return ""
    sign = -1 if criterion.direction is Direction.HIGHER else 1
    chance = NormalDist().cdf(-distance / error)
    value, least = figures((mean.value, mean.threshold), criterion.scale)
    or_worse = f"{value} or {'less' if sign < 0 else 'more'}"
    often = f"an agent exactly at {least} shows {or_worse} in {percentage(round(chance, 2))} of runs"
    ways = []
    ratio = CLEAR * error / distance if distance else math.inf  # above 1, of a tiny distance as large as floats go
    if ratio <= math.sqrt(1 + MOST_MORE):
        needed = math.ceil(mean.cases * (ratio**2 - 1))
        ways.append(f"{count(needed, 'more case')} would tell the two apart")
    with_room = mean.value + sign * CLEAR * error
    if 0 < with_room < 1 and not criterion.scale.is_relative:
        at = (math.floor(20 * with_room) if sign < 0 else math.ceil(20 * with_room)) / 20
        if 0 < at < 1:
            ways.append(f"a threshold of {at:g} leaves room for chance")
    return f"{often}; {', or '.join(ways)}" if ways else often


def _quantile_risen(one: Finding, criterion: Criterion) -> list[str]:
    value, limit = figures((one["value"], one["limit"]), criterion.scale)
    before = figures((one["before"], one["value"]), criterion.scale)[0]
    return [f"p{100 * one['q']:g} {value}, limit {limit}", f"the baseline's was {before}"]


# --- the comparison with the baseline -------------------------------------------------------------


def how_it_differs(row: CriterionResult) -> list[str]:
    """Return what a fallen mean does not say: where the means tell something else, and the cases that broke."""
    worse = row.finding("got_worse")
    if worse is None:
        return [reason_of_verdict(row)]
    return [of_means(row), *clauses(worse, WORDS, row.criterion)]


def changed(one: Change, scale: Scale) -> str:
    """``−5.0 points (−9.1 to −0.9) over 40 cases``."""
    said = change(one.value, scale)
    if one.low is not None and one.high is not None:
        said += f" ({change(one.low, scale, unit=False)} to {change(one.high, scale, unit=False)})"
    return f"{said} over {count(one.cases, 'case')}"


def _worse(one: Change, criterion: Criterion) -> str:
    """The change of what is proven worse; without an interval that the proof is not from, as single cases' is not."""
    if excludes_gain(one, criterion):
        return changed(one, criterion.scale)
    return f"{change(one.value, criterion.scale)} over {count(one.cases, 'case')}"


def excludes_gain(one: Change, criterion: Criterion) -> bool:
    """True if the whole interval is on the bad side."""
    if one.low is None or one.high is None:
        return True
    return one.high < 0 if criterion.direction is Direction.HIGHER else one.low > 0


def _broken(one: Finding, _: Criterion) -> str:
    return f"broken: {', '.join(one['broken'][:SHOWN_BROKEN])}" if one["broken"] else ""


def _beyond_margin(one: Finding, criterion: Criterion) -> str:
    end, allowed = end_and_margin(one["worst"], one["margin"], criterion.scale)
    return f"its interval reaches {end}, beyond the margin of {allowed}"


# --- why something is not compared, or failures are not believed ----------------------------------


def why_apart(why: Finding) -> str:
    """Return why what the baseline measured of a criterion is not compared; the criterion has been named."""
    return "; ".join(clauses(why.but(criterion="it") if "criterion" in why.data else why, WORDS))


def _perhaps_provider(why: Finding, _: object) -> str:
    whose = "at the base commit, run now" if why["at_base"] else "of cases that had answered before"
    again = f"a while later {why['failed']} of {count(why['trials'], 'trial')} failed again"
    if why["other_trials"]:
        again += f", and {why['other_failed']} of {count(why['other_trials'], 'trial')} {whose}"
    return f"the failures may be a provider's: {again}"


# --- the words of each kind -----------------------------------------------------------------------

OF_MEAN: tuple[KindName, ...] = ("mean_holds", "mean_excused", "mean_misses", "mean_unsure", "own_threshold_missed")
TRIAL = "{case_id} reached {value:figure}, limit {limit:figure}"
QUANTILE = "{q:quantile} {value:figure}, limit {limit:figure}"
TOO = "the baseline was above it too"
NEVER = "{cases:case} that always passed never {cases:does|do} now"
TOO_FEW = "the baseline has too few trials to prove it"

WORDS: Table = {
    "nothing_held": "not judged: no threshold and no baseline value to compare with",
    "not_applied": "applies to none of the selected cases",
    "same_trials": "nothing to compare: the trials are the baseline's own",
    "nothing_checked": "no blocking criterion applies to any of these cases: nothing was checked",
    "no_trial_measured": "no trial was measured",
    "never_failed": "never failed",
    "hard_failure": "{case_id}{more:+ and # more}: {reason:+#|failed}",
    "cases_not_scored": _not_scored,
    "scores_lost": "{lost} of {of:score} could not be measured, at most {most:%} may: {error}",
    "applies_to_none": "applies to no case: none states what it compares with, and no answer has what it checks",
    "applies_no_more": "applies to no case any more",
    "mean_holds": _of_mean,
    "mean_excused": _of_mean,
    "mean_misses": _mean_misses,
    "mean_unsure": _mean_unsure,
    "own_threshold_missed": _own_threshold_missed,
    "own_thresholds_hold": _own_thresholds,
    "no_trial_beyond": "no trial above its limit",
    "trial_beyond": (TRIAL, "{trials:|# trials in all}"),
    "trial_excused": (TRIAL, TOO),
    "quantile_holds": QUANTILE,
    "quantile_excused": (QUANTILE, TOO),
    "quantile_risen": _quantile_risen,
    "quantile_over": f"{QUANTILE}: {{over}} of {{trials:trial}} above it",
    "quantile_open": f"{QUANTILE}: {{too_few:too few to tell: |too close to call after }}{{trials:trial}}",
    # the change itself stands before these
    "change_allowed": "",
    "suggests_drop": "within its margin, but one test suggests a drop",
    "drifted": "it does not show against {before:the newest stored runs|the base commit's agent run now}",
    "change_unbounded": "too few trials to bound it",
    "loss_not_excluded": _beyond_margin,
    "got_worse": _broken,
    "never_pass": f"{NEVER}: {{cases:tallies}}; {TOO_FEW}",
    "not_tested": lambda one, _: stage_text(one["stage"]),
    "failures_confirmed": CONFIRMED + " (by chance in {p:chance} of unchanged agents)",
    "not_compared": "not compared: {why}",
    "scorer_changed": "its options, scorer or judge changed",
    "cases_gone": "none of the cases that it was measured on is compared ({cases})",
    "no_longer_measured": "it is no longer measured",
    "compared_without": "its trials are compared without {criteria:list}",
    "checks_fell_away": (
        "{criterion} has nothing to check in {cases:n} of {of:case} ({cases:list}), and always had at the baseline"
    ),
    "nothing_rerun": "the failures were not confirmed: nothing could be run again a while later",
    "confirmation_lost": (
        "{lost} of {trials:trial} that {trials:was|were} to confirm the failures {trials:was|were} lost to "
        "infrastructure"
    ),
    "failures_gone": ("the failures did not come again: {trials:trial} of the same cases answered a while later"),
    "perhaps_provider": _perhaps_provider,
    "slowed_down": (
        "the failures came while answers slowed from {before:seconds} to {now:seconds}: the provider may be at fault"
    ),
}
"""The words of the findings on a criterion, why it is not compared, and why failures of the agent are not believed."""
