"""The story of a verdict: the course of the run and its findings, in order."""

from __future__ import annotations

import math

from gate.decision.causes import ROUNDING, most_suspect, proven_by_cases, proven_by_mean, tallies
from gate.decision.estimates import natural
from gate.model import (
    Criterion,
    Direction,
    EvidenceSummary,
    LookTest,
    MetricChange,
    Outcome,
    RepeatsTest,
    StageKind,
    SuiteResult,
    Verdict,
)
from gate.model.course import Course
from gate.reports.certainty import seen_by_chance
from gate.reports.formatting import TYPICAL, agree, chance_and_limit, change, count, listing, percentage
from gate.reports.reasons import RULED_OUT, stage_text
from gate.reports.words import causes, is_lower_better, pooled

FEW_CASES = 10


def story(suite: SuiteResult) -> tuple[str, ...]:
    """Return the course of the run and its findings, in order."""
    course = suite.course
    if course is None:
        return ()
    parts = [*_epochs(course), *_reran(course)]
    if suite.outcome is not None and suite.outcome.cases:
        parts.append(f"{len(suite.outcome.cases)} confirmed broken")
    parts += [*_asked_besides(course), _runs(course)]
    lines = ["; ".join(parts)]
    if suite.outcome is not None:
        lines += _how_decided(suite, suite.outcome)
        lines += _shared_error(course)
    if course.stopped:
        lines.append(f"stopped: {course.stopped}")
    return tuple(lines)


# --- the runs -------------------------------------------------------------------------------------


def _epochs(course: Course) -> list[str]:
    """Return ``3 trials of 40 cases`` for the epochs, with the number of runs if it is not the product."""
    whole = f"{count(course.epochs, 'trial')} of {count(course.cases, 'case')}"
    if course.epoch_runs is not None:
        whole = f"at most {whole}, {count(course.epoch_runs, 'run')}"
    said = [whole]
    if course.quarantined:
        said.append(f"{count(course.quarantined, 'run')} of cases in quarantine")
    if course.baseline_epochs:
        said.append(f"{count(course.baseline_epochs, 'run')} of the baseline's agent")
    return said


def _reran(course: Course) -> list[str]:
    """Return ``5 suspicious, rerun 2–3 times (13 runs, 4 of the baseline's agent)``."""
    if not course.rerun_cases:
        return []
    low, high = course.rerun_least, course.rerun_most
    said, runs = f"{course.rerun_cases} suspicious, rerun {count(low, 'time')}", course.reruns + course.baseline_reruns
    if low != high:
        said = f"{course.rerun_cases} suspicious, rerun {low}–{high} times"
    if course.baseline_reruns:
        said += f" ({count(runs, 'run')}, {course.baseline_reruns:,} of the baseline's agent)"
    elif runs > high:
        said += f" ({count(runs, 'run')})"
    return [said]


def _headline_names_cases(suite: SuiteResult) -> bool:
    """True if the headline names the cases that prove the regression."""
    return suite.cause.kind == "cases_broke"


def _asked_besides(course: Course) -> list[str]:
    """Return the runs besides epochs and reruns, so that all numbers add up to the total."""
    kinds = (
        ("to see whether repeats are draws of their own", course.repeating, course.baseline_repeating),
        ("of cases that vary, to narrow the interval of the change", course.narrowing, 0),
        ("to tell the change from a drift", course.drifting, course.baseline_drifting),
        ("failures rerun later", course.confirming, course.baseline_confirming),
        ("in place of trials that were lost", course.again, course.baseline_again),
    )
    said = []
    for why, runs, of_base in kinds:
        if runs and of_base:
            said.append(f"{why}, {count(runs, 'run')} ({of_base:,} of the baseline's agent)")
        elif runs:
            said.append(f"{why}, {count(runs, 'run')}")
    return said


def _runs(course: Course) -> str:
    text = count(course.runs, "agent run")
    if course.baseline_runs:
        text += f" ({course.baseline_runs:,} of the baseline's agent)"
    if 0 < course.runs < course.fixed_runs:
        return f"{text} instead of {course.fixed_runs:,} with a fixed number of trials"
    return text


def _shared_error(course: Course) -> list[str]:
    """Return the scope of the error rate, if it is more than this suite."""
    shared = []
    if course.suites > 1:
        shared.append(f"this job's {course.suites} suites")
    if course.family > 1:
        shared.append(f"the {course.family} jobs of its matrix")
    if not shared:
        return []
    return [
        f"an unchanged agent is called regressed in at most {percentage(course.alpha)}, over {' and '.join(shared)}"
    ]


# --- the decision ---------------------------------------------------------------------------------


def _how_decided(suite: SuiteResult, outcome: Outcome) -> list[str]:
    cause, nothing_measured = suite.cause, all(row.candidate is None for row in suite.criteria)
    if cause.problem is not None and (cause.kind == "outage" or nothing_measured):
        return []
    evidence, stage = outcome.evidence, stage_text(outcome.stage)
    look = evidence.last_look
    if cause.kind == "agent_fails" and cause.verdict is Verdict.REGRESSED:
        proven = "regression proven by failures that recurred later"
        if look is not None and outcome.verdict != "REGRESSION":
            proven += f"; without them: {seen_by_chance(look.p)}"
        return [proven]
    if look is None:
        return [f"the baseline could not be compared: {stage}"]
    if outcome.verdict == "REGRESSION":
        return [f"regression proven{_proof(suite, outcome, stage)}"]
    lines = [f"{stage}: {seen_by_chance(look.p)}"]
    if (suite.course is not None and suite.course.concurrent) or outcome.stage.concurrent:
        lines.append("the drop against the stored baseline did not show with both commits run now")
    if outcome.stage.kind is StageKind.MOVED_BEFORE:
        lines.append("against the baseline's newest runs alone no drop shows: the provider may have moved before them")
    if outcome.verdict == "INCONCLUSIVE":
        lines += _bounds(suite, evidence)
    return lines


def _proof(suite: SuiteResult, outcome: Outcome, stage: str) -> str:
    """Return the decision in plain words, starting with the proof that the headline names.

    `gate explain` has the p- and e-values.
    """
    whole, cases = _proven_over_suite(suite, outcome), _proven_by_cases(suite, outcome)
    if not whole or not cases or not _headline_names_cases(suite):
        return f" {stage}: {'; '.join((*whole, *cases))}"
    besides = "; ".join(whole)
    if outcome.stage.of_cases:
        return f" {stage}: {'; '.join(cases)}; besides, {besides}"
    return f": {'; '.join(cases)}; and {stage}: {besides}"


def _proven_over_suite(suite: SuiteResult, outcome: Outcome) -> list[str]:
    """Return the proof by the whole suite, or by the repeated failures of cases taken together."""
    parts = []
    for look in outcome.evidence.looks:
        if look.blocks:
            name = _first_proven(suite, look)
            verb = "rose" if is_lower_better(suite, name) else "fell"
            how = f"a few cases {verb} far"
            if proven_by_mean(outcome, name):
                how = f"the mean {verb}"
            parts.append(f"{name}: {how}; {_chance(look.p, look.threshold)}")
            break  # later ones add nothing
    parts += [_repeats(test) for test in outcome.evidence.repeats if test.blocks]
    return parts


def _first_proven(suite: SuiteResult, look: LookTest) -> str:
    """Return the criterion to describe a look with: the headline's if the look proves it, else the clearest."""
    tests, cause = look.metrics, suite.cause
    if cause.kind == "suite_got_worse":
        name = causes(suite, cause["criteria"])[0]
        if name in tests and tests[name].p_adjusted <= look.threshold:
            return name
    return min(tests, key=lambda one: tests[one].p_adjusted)


def _repeats(test: RepeatsTest) -> str:
    """Return text like ``5 cases that had failed were run again: 25/25 → 6/15; by chance …``."""
    moved_by = f"{test.baseline_passed}/{test.baseline_trials} → {test.passed}/{test.trials}"
    said = f"{count(test.cases, 'case')} that had failed were run again: {moved_by}"
    return f"{said}; {_chance(test.p, test.threshold)}"


def _chance(p: float, threshold: float) -> str:
    often, limit = chance_and_limit(p, threshold)
    return f"by chance that happens to {often} of unchanged agents (limit {limit})"


def _proven_by_cases(suite: SuiteResult, outcome: Outcome) -> list[str]:
    """Return the sentence that single cases prove it on their own, with their names if the headline has none."""
    if not proven_by_cases(outcome):
        return []
    which = agree(len(outcome.cases), "a single case{} fails", "single cases{} fail")
    cases = most_suspect(suite.cases)
    if outcome.cases:
        cases = tallies(outcome.evidence, outcome.cases)
    named = ""
    if cases and not _headline_names_cases(suite):
        named = f" ({listing(f'{case.case_id} {pooled([case])}' for case in cases)})"
    return [f"{which.format(named)} more often than chance allows an unchanged agent"]


# --- open questions -------------------------------------------------------------------------------


def _blocking(suite: SuiteResult, evidence: EvidenceSummary) -> list[tuple[Criterion, MetricChange]]:
    by_name = {row.criterion.name: row.criterion for row in suite.criteria}
    return [(by_name[name], found) for name, found in evidence.metrics.items() if found.blocks_regression]


def _bounds(suite: SuiteResult, evidence: EvidenceSummary) -> list[str]:
    """Return the drops that are ruled out."""
    lines = []
    for criterion, found in _blocking(suite, evidence):
        low = found.excluded
        if low is None or not _says_something(found, low, criterion):
            continue
        word = "worse" if criterion.direction is Direction.LOWER else "lower"
        exact = natural(min(low, 0.0), criterion)  # rounded away from zero: nothing short of it is ruled out
        end = math.copysign(math.ceil(1000 * abs(exact) - ROUNDING) / 1000, exact)
        bound = change(end, criterion.scale, unit=not criterion.scale.is_relative)
        if criterion.scale.is_relative:
            bound += f" for {TYPICAL}"
        line = f"{criterion.name}: {word} than {bound} is {RULED_OUT}"
        if not found.holds:
            line += "; its margin is narrower"
        lines.append(line)
    return lines


def _says_something(found: MetricChange, low: float, criterion: Criterion) -> bool:
    """True if the bound excludes a possible change: one from few cases, or at the end of the scale, does not."""
    return found.cases >= FEW_CASES and (not criterion.scale.is_zero_to_one or low > -1.0)
