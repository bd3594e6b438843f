"""The findings on a criterion in words, or only those that its figures do not show."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from gate.decision.engine.evidence_json import stage_name
from gate.decision.thresholds import CLEAR
from gate.model import Criterion, CriterionResult, Direction, Scale, Verdict, worst
from gate.model.evidence import Stage, StageKind
from gate.model.finding import Change, Finding, HeldMean
from gate.reports.formatting import agree, change, count, end_and_margin, figures, of_means, percentage
from gate.reports.wording import Table, clauses, fill

RULED_OUT = "ruled out at 95 % confidence"
"""The label of a bound that the true change exceeds in at most 5 % of runs like this one. It is wider than the change's
Student interval: steady cases hide their failures, so an unseen failure is added."""
SHOWN_BROKEN = 5
"""Maximum number of broken cases that a reason names."""


def reason(row: CriterionResult) -> str:
    """Return the reason for the criterion's verdict, on one line; empty if there are no findings."""
    return "; ".join(filter(None, (fails_besides(row), *_of_verdict(row))))


def broken_of(row: CriterionResult) -> tuple[str, ...]:
    """Return the broken cases that a reason names."""
    worse = row.finding("change", Verdict.REGRESSED)
    if worse is None:
        return ()
    broken: tuple[str, ...] = worse["broken"][:SHOWN_BROKEN]
    return broken


def fails_besides(row: CriterionResult) -> str:
    """Return the threshold or limit that is missed in addition to a regression, which outranks it; else empty."""
    besides = [one for one in row.findings if one.verdict is Verdict.BELOW_THRESHOLD]
    if row.verdict is not Verdict.REGRESSED or not besides:
        return ""
    what = "limit is broken"
    if besides[0].kind in ("mean", "own_thresholds"):
        what = "threshold is missed"
    said: list[str] = []
    for one in besides:
        said += _parts(one, row.criterion)
    return f"its {what}, too ({'; '.join(said)})"


def failed_as(mean: HeldMean) -> str:
    """Return text like ``3 trials in which the agent failed counted as 0``."""
    return f"{count(mean.failed, 'trial')} in which the agent failed counted as {mean.failed_as:g}"


def with_failures(row: CriterionResult) -> str:
    """Return the mean held to a threshold if it counts failures of the agent, which the figures do not show."""
    for one in row.findings:
        if one.kind == "mean" and one["mean"].failed:
            return _of_mean(one, row.criterion)[0]
    return ""


def only_warns(row: CriterionResult) -> bool:
    """True if it got worse beyond its margin, but is configured not to block."""
    return any(one.kind == "change" and one.is_warning for one in row.findings)


def is_excused(row: CriterionResult) -> bool:
    """True if it passes only because the baseline was no better."""
    return any(finding.is_excused for finding in row.findings)


TOLD_APART = ("trials_lost", "not_judged")
"""Kinds of warnings that are no part of a criterion's reason, unless it has no other."""


def _of_verdict(row: CriterionResult) -> list[str]:
    """Return the worst findings, and the change of the means if it differs from that of a typical case."""
    said, findings = [], row.findings
    if findings and findings[0].kind == "not_compared":
        said.append(f"not compared: {why_apart(findings[0])}")
        findings = findings[1:]
    verdict = worst([one.verdict for one in findings])
    told = [one for one in findings if one.verdict is verdict]
    told = [one for one in told if not (one.is_warning and one.kind in TOLD_APART)] or told
    for one in told:
        said += _parts(one, row.criterion)
    if any(one.kind == "change" for one in told):
        said.append(of_means(row))
    return list(filter(None, said))


def _parts(one: Finding, criterion: Criterion) -> list[str]:
    """Return the wording of one finding."""
    if one.kind == "not_compared":  # it opens the reason, and no other finding outranks it
        return []
    told = clauses(one, WORDS, criterion)
    if one.kind == "change" and one.verdict is Verdict.REGRESSED:
        return [_worse(one["change"], criterion), *told]
    if one.kind == "change":
        said = changed(one["change"], criterion.scale)
        return ["; ".join([f"{said}: {text}" for text in told]) or said]
    return told


def stage_text(stage: Stage) -> str:
    """Return the stage at which a decision ended, in words; `stage_name` has the protocol's names."""
    match stage.kind:
        case StageKind.CERTIFIED | StageKind.CASES_AT_PASS | StageKind.SUITE_LOOK:
            said = f"after {count(stage.epochs, 'trial')} per case"
        case StageKind.CASE_RERUNS:
            said = "after reruns of the suspicious cases"
        case StageKind.REPEATS:
            said = "after the failed cases were rerun"
        case StageKind.END:
            return "still open after the last trial"
        case _:
            return stage_name(stage)
    if stage.confirmed:
        said += ", confirmed against the baseline's agent run now"
    return said


def _own_thresholds(one: Finding, criterion: Criterion) -> str | list[str]:
    """Return whether all cases reach their own thresholds, or the number of those that miss them."""
    if one["missed"] is not None:
        return _own_threshold_missed(one, criterion)
    cases, excused, short = count(one["cases"], "case"), one["excused"], one["short"]
    if short:
        are = agree(short, "is below a threshold of its own", "are below thresholds of their own")
        return f"{short} of {cases} {are}, but not beyond chance"
    if not excused:
        return f"no case misses its own threshold ({cases})"
    if excused == 1:
        return f"1 of {cases} misses its own threshold, as at the baseline"
    return f"{excused} of {cases} miss their own threshold, as at the baseline"


# --- thresholds and limits ------------------------------------------------------------------------


def _of_mean(one: Finding, criterion: Criterion) -> list[str]:
    """Return ``mean 0.2 over 4 cases, threshold 0.9``, with a note if the baseline missed it too."""
    mean: HeldMean = one["mean"]
    value, least, before, measured = figures((mean.value, mean.threshold, mean.before, mean.measured), criterion.scale)
    said = f"mean {value}"
    if mean.measured is not None:
        said += f" (corrected; measured {measured})"
    said += f" over {count(mean.cases, 'case')}"
    if mean.failed:
        said += f" ({failed_as(mean)})"
    told = [f"{said}, threshold {least}"]
    if mean.before is not None:
        told.append(f"the baseline missed it too ({before})")
    return told


def _mean_misses(one: Finding, criterion: Criterion) -> list[str]:
    told = _of_mean(one, criterion)
    if one["base_cases"]:
        told.append("these are the base's own cases; only new cases lift the mean to the threshold")
    return [*told, narrow_miss(one, criterion)]


def _mean_unsure(one: Finding, criterion: Criterion) -> list[str]:
    lost = f"{count(one['lost'], 'trial')} could not be measured"
    return [*_of_mean(one, criterion), f"{lost}; with the best scores, they would lift it to the threshold"]


def _own_threshold_missed(one: Finding, criterion: Criterion) -> list[str]:
    missed: HeldMean = one["missed"]
    value, least = figures((missed.value, missed.threshold), criterion.scale)
    told = [f"{missed.case_id} misses its own threshold: mean {value}, threshold {least}"]
    if one["more"]:
        told.append(f"{count(one['more'], 'more case')} {agree(one['more'], 'misses its own', 'miss theirs')}")
    return told


def fails(row: CriterionResult) -> str:
    """Return the failure of a criterion: ``is 0.73, below its threshold of 0.80 (5 cases)``."""
    missed = row.finding("mean", Verdict.BELOW_THRESHOLD)
    if missed is None:
        return f"fails: {reason(row)}"
    mean = missed["mean"]
    value, least = figures((mean.value, mean.threshold), row.criterion.scale)
    side = "above" if row.criterion.direction is Direction.LOWER else "below"
    said = f"is {value}, {side} its threshold of {least}"
    if missed["base_cases"]:
        said = f"of the base's own cases {said}"
    basis = [count(mean.cases, "case")]
    if mean.failed:
        basis.append(failed_as(mean))
    if mean.measured is not None:
        basis.append(f"corrected from {figures((mean.measured,), row.criterion.scale)[0]}")
    return f"{said} ({', '.join(basis)})"


MOST_MORE = 9
"""Maximum number of additional cases to propose, as a multiple of the present number."""


def narrow_miss(one: Finding, criterion: Criterion) -> str:
    """Return how often an agent exactly at the threshold looks as bad or worse, and ways to decide.

    Empty if the miss is clear, or the spread of the trials is not known.
    """
    mean, error = one["mean"], one["error"]
    distance = abs(mean.value - mean.threshold)
    if not error or distance >= CLEAR * error:
        return ""
    worse = "less"
    rounded: Callable[[float], int] = math.floor
    if criterion.direction is Direction.LOWER:
        worse, rounded = "more", math.ceil
    chance = NormalDist().cdf(-distance / error)
    value, least = figures((mean.value, mean.threshold), criterion.scale)
    often = f"an agent exactly at {least} shows {value} or {worse} in {percentage(round(chance, 2))} of runs"
    ways = []
    if distance and CLEAR * error / distance <= math.sqrt(1 + MOST_MORE):
        needed = math.ceil(mean.cases * ((CLEAR * error / distance) ** 2 - 1))
        ways.append(f"{count(needed, 'more case')} would distinguish the two")
    room = one["room"]
    if room is not None and 0 < room < 1 and not criterion.scale.is_relative:
        at = rounded(20 * room) / 20
        if 0 < at < 1:
            ways.append(f"a threshold of {at:g} leaves room for chance")
    return "; ".join(filter(None, (often, ", or ".join(ways))))


def _limit(one: Finding, criterion: Criterion) -> list[str]:
    """Return ``p95 3.5 s, limit 3 s: 9 of 40 trials above it``, or the highest trial above a limit, if there is one."""
    if one["q"] is None and not one["case_id"]:
        return ["no trial above its limit"]
    who = f"{one['case_id']} reached" if one["q"] is None else f"p{100 * one['q']:g}"
    value, limit = figures((one["value"], one["limit"]), criterion.scale)
    said = f"{who} {value}, limit {limit}"
    if one.verdict is Verdict.INCONCLUSIVE:
        close = "too few to tell: " if one["too_few"] else "too close to call after "
        return [f"{said}: {close}{count(one['trials'], 'trial')}"]
    if one.is_excused:
        return [said, "the baseline was above it too"]
    if one["before"] is not None:
        before = figures((one["before"], one["value"]), criterion.scale)[0]
        return [said, f"the baseline's was {before}"]
    if one["trials"]:
        return [f"{said}: {one['over']} of {count(one['trials'], 'trial')} above it"]
    return [said, f"{one['over']} trials in all"] if one["over"] > 1 else [said]


# --- the comparison with the baseline -------------------------------------------------------------


def how_it_differs(row: CriterionResult) -> list[str]:
    """Return details that a lower mean does not show: a different change of the means, and the broken cases."""
    worse = row.finding("change", Verdict.REGRESSED)
    if worse is None:
        return ["; ".join(_of_verdict(row))]
    return [of_means(row), *clauses(worse, WORDS, row.criterion)]


def changed(one: Change, scale: Scale) -> str:
    """Return text like ``−5.0 points (−9.1 to −0.9) over 40 cases``."""
    said = change(one.value, scale)
    if one.low is not None and one.high is not None:
        said += f" ({change(one.low, scale, unit=False)} to {change(one.high, scale, unit=False)})"
    return f"{said} over {count(one.cases, 'case')}"


def _worse(one: Change, criterion: Criterion) -> str:
    """Return a proven loss; without its interval if that includes a gain, because single cases are the proof."""
    if excludes_gain(one, criterion):
        return changed(one, criterion.scale)
    return f"{change(one.value, criterion.scale)} over {count(one.cases, 'case')}"


def excludes_gain(one: Change, criterion: Criterion) -> bool:
    """True if the whole interval is on the bad side."""
    if one.low is None or one.high is None:
        return True
    if criterion.direction is Direction.LOWER:
        return one.low > 0
    return one.high < 0


def _broken(one: Finding, _: Criterion) -> str:
    if not one["broken"]:
        return ""
    return f"broken: {', '.join(one['broken'][:SHOWN_BROKEN])}"


def _open_change(one: Finding, criterion: Criterion) -> str:
    """Return why a change is not certain to be within its margin."""
    if one["why"] != "beyond_margin":
        return WHY_OPEN.get(one["why"], "")
    end, allowed = end_and_margin(one["worst"], one["margin"], criterion.scale)
    return f"its interval reaches {end}, beyond the margin of {allowed}"


# --- why something is not compared, or has no score -----------------------------------------------


def why_apart(why: Finding) -> str:
    """Return why a criterion is not compared with the baseline; the criterion has been named before."""
    return fill(WHY_APART[why["why"]], why.data)


def _perhaps_provider(found: Finding, _: object) -> list[str]:
    """Return that the failures may be a provider's, beside those of the trials that they were compared with."""
    said = fill("later, {failed_again} of {trials:trial} failed again", found.data)
    if found["other_trials"]:
        whose = "{at_base:at the base commit, run now|of cases that had answered before}"
        said += fill(", and {other_failed} of {other_trials:trial} " + whose, found.data)
    return [fill(FAILED, found.data), f"the failures may be a provider's: {said}"]


# --- the words of each kind -----------------------------------------------------------------------

WHY_APART = {
    "changed": "its options or judge changed, or a new version of the gate scores it differently",
    "other_judge": (
        "its {models:judge|judges} {models:list} {models:is another model|are other models} now: {now:list} answered, "
        "and {before:list} at the baseline"
    ),
    "other_user": (
        "the simulated user {models:list} is another model now: {now:list} answered, and {before:list} at the baseline"
    ),
    "cases_gone": "none of the cases that it was measured on is compared ({of})",
    "nothing_to_check": (
        "it has nothing to check in {cases:n} of {of:case} ({cases:list}), but always had at the baseline"
    ),
    "removed": "it is no longer measured",
    "new": "it is new, judged only by its threshold",
    "without_others": "its trials are compared without {others:list}",
}
CASES_FAIL = "{cases:case} that always passed {cases:fails|fail} every time now"
WHY_CASES_FAIL = {
    "thin_baseline": "the baseline has too few trials to prove a loss",
    "copies": "repeats are copies of one answer: a cache would look like this, and so would an agent that broke",
    "base_fails_too": (
        "it is the same with the base commit's agent: the provider changed, or that agent is not the one that was "
        "stored"
    ),
}
WHY_OPEN = {
    "suggests_drop": "within its margin, but one test suggests a drop",
    "drifted": "it does not show against the base commit's agent run now",
    "moved_before": "it does not show against the newest stored runs",
    "unbounded": "too few trials to bound it",
}


def _cases_fail(one: Finding, about: object) -> list[str]:
    """Return the cases that always passed and always fail now; without names for a suite, which lists them
    elsewhere."""
    fail, why = fill(CASES_FAIL, one.data), WHY_CASES_FAIL[one["why"]]
    if not isinstance(about, Criterion):
        return [fail, why]
    return [f"{fail}: {fill('{cases:tallies}', one.data)}; {why}"]


def _agent_fails(one: Finding, about: object) -> list[str]:
    """Return that the agent fails where it had answered; for a criterion, with the probability of chance."""
    if isinstance(about, Criterion):
        by_chance = fill("by chance in {p:chance} of unchanged agents", one.data)
        return [f"{FAILS}, and failed again when rerun ({by_chance})"]
    return [FAILS, "it failed again when rerun"]


FAILS = "the agent fails where it answered at the baseline"

FAILED = "the agent failed in {failed:trial}"
UNCHECKED = "{cases:case} {cases:is|are} unchecked, not passed ({cases:list}): no blocking criterion applies to"
NO_SCORE = {
    "infrastructure": "{lost} of {of:trial} {lost:has|have} no score because of infrastructure errors",
    "agent": "{lost} of {of:trial} {lost:has|have} no score because the agent failed",
    "base": "{lost} of {of:trial} {lost:has|have} no score because the base commit's agent failed",
    "scoring": "{lost} of {of:answer} could not be scored",
}


def _trials_lost(found: Finding, _: object) -> str:
    lost = []
    if found["lost"]:
        lost.append(fill(TRIALS_LOST, found.data))
    if found["unscored"]:
        lost.append(fill("{unscored:answer} could not be scored", found.data))
    said = " and ".join(lost)
    if not found["decide"]:
        return said
    as_failures = agree(found["lost"] + found["unscored"], "counted as a failure, it", "counted as failures, they")
    return f"{said}; {as_failures} would change the verdict"


TRIALS_LOST = "{lost} of {of:trial}{cases:+ of #} gave no result{most:+, over the allowed #}{error:+; mostly: #}"


def _not_scored(found: Finding, _: object) -> str:
    """Return why answers could not be scored, with their number unless it is all of them."""
    if found["lost"] == found["of"] and not found["cases"]:
        return str(found["error"])
    lost = "{lost} of {of:answer}{cases:+ to #} could not be scored{most:+, over the allowed #}: {error}"
    return fill(lost, found.data)


def _without_score(found: Finding, _: object) -> list[str]:
    """Return how many trials have no score, and why."""
    said = []
    if found["lost"]:
        said.append(fill(NO_SCORE[found["by"]] + "{error:+ (#)}", found.data))
    if found["gone"]:
        said.append("it was not called again, and the comparison uses the stored baseline")
    if found["repeated"]:
        again = "{repeated:attempt} {repeated:was|were} repeated{lost:+| because of infrastructure errors}"
        said.append(fill(again, found.data))
    return said


WORDS: Table = {
    "not_judged": {
        "no_yardstick": "not judged: no threshold and no baseline value to compare with",
        "nothing_yet": ("nothing to judge yet", "no threshold that can be missed, and no baseline"),
        "not_tested": "nothing could be compared",
        "same_trials": "nothing to compare: the trials are the baseline's own",
        "not_selected": "applies to none of the selected cases",
        "applies_to_none": "it applies to no case: none states what it checks, and no answer has it",
        "no_longer_applies": "applies to no case any more",
        "no_trial": "no trial was measured",
        "unchecked": "no blocking criterion applies to any of these cases: nothing was checked",
        "cases_unchecked": UNCHECKED + " {cases:it|them}",
        "answers_unchecked": UNCHECKED + " the answers, although one did at the baseline",
    },
    "hard_rule": {
        Verdict.PASS: "never failed",
        Verdict.BELOW_THRESHOLD: "{case_id}{more:+ and # more}: {reason:+#|failed}",
    },
    "mean": {
        Verdict.PASS: _of_mean,
        Verdict.BELOW_THRESHOLD: _mean_misses,
        Verdict.NOT_MEASURED: _mean_unsure,
    },
    "own_thresholds": _own_thresholds,
    "limit": _limit,
    # the change itself comes before these
    "change": {
        Verdict.PASS: "",
        Verdict.INCONCLUSIVE: _open_change,
        Verdict.REGRESSED: _broken,
    },
    "cases_fail": _cases_fail,
    "agent_fails": {
        "confirmed": _agent_fails,
        "nothing_rerun": (FAILED, "the failures were not confirmed: nothing could be rerun later"),
        "lost": (
            FAILED,
            "{lost} of {trials:trial} that {trials:was|were} to confirm the failures {trials:was|were} lost to "
            "infrastructure",
        ),
        "gone": (FAILED, "the failures did not recur: {trials:trial} of the same cases answered later"),
        "perhaps_provider": _perhaps_provider,
        "slowed_down": (
            FAILED,
            "the failures came while answers slowed from {before:seconds} to {now:seconds}: the provider may be at "
            "fault",
        ),
        "new": (FAILED, "at the baseline, it never failed in {cases:this case|these # cases}"),
    },
    "not_compared": lambda one, _: f"not compared: {one['criterion']}: {why_apart(one)}",
    "trials_lost": {
        Verdict.ERROR: _trials_lost,
        Verdict.NOT_MEASURED: _not_scored,
        Verdict.PASS: _without_score,
    },
}
"""The words of the findings on a criterion, by verdict if they depend on it."""
