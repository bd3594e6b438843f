"""A decided suite in words: what happened, how it came about, what changed, what to be careful of. Escapes nothing."""

from __future__ import annotations

import math

from gate.decision.comparison import PASS_RATE
from gate.decision.findings import margin_over, natural
from gate.decision.trade import ROUNDING, most_suspect, moved, proven_by_cases, proven_by_mean
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
from gate.model.finding import CaseTally, Finding, KindName
from gate.reports.by_tag import where
from gate.reports.formatting import TYPICAL, by_chance, chance_and_limit, change, count, listing, percentage
from gate.reports.reasons import RULED_OUT, narrow_miss_of, stage_text
from gate.reports.words import (
    about,
    causes,
    crashes,
    is_lower_better,
    pooled,
    row_of,
    tell,
    tell_cases,
    tell_cause,
    tell_short,
    thin,
)

FEW_CASES = 10
MOST_TIMES = 25
"""As many cases as the suite has, times this, are the most that a reader is told to write."""


# --- what happened --------------------------------------------------------------------------------


def title(suite: SuiteResult) -> str:
    """Return what happened in a few words: ``4 of 12 cases broke``."""
    by = suite.deciding
    text = tell_cause(by)[0]
    return f"against the {by.reference}: {text}" if by.reference else text


def why(suite: SuiteResult) -> tuple[str, ...]:
    """Return the clauses that say more of what happened, and what is to be known before anything else."""
    return (*tell_cause(suite.deciding)[1], *_besides(suite))


def first_cause(suite: SuiteResult) -> str:
    """Return the criterion that is to blame first, of a suite that got worse."""
    return causes(suite, suite.cause["criteria"])[0]


def headline(suite: SuiteResult) -> str:
    """Return all of it in one line, with the names of the cases."""
    by = suite.deciding
    more = "; ".join(filter(None, (tell_cases(by), *tell_cause(by)[1])))
    return "; ".join([f"{title(suite)}: {more}" if more else title(suite), *_besides(suite)])


def _besides(suite: SuiteResult) -> list[str]:
    """Return what is to be known beside the cause of the verdict."""
    by, said = suite.deciding, []
    for found in by.changes:
        if found.kind == "answered_by" and by.verdict in MAY_BE_MOVED:
            said.append(f"{tell_short(found)}, which may be why")
    if by.cause.kind in OF_COMPARISON and not by.has_baseline:
        said.append(_no_baseline(by))
    if by.crashes is not None and by.verdict not in (Verdict.PASS, Verdict.ERROR):
        said.append(crashes(by, by.crashes))
    if place := where(by):
        said.append(f"most of it in {place}")
    said += [tell_short(found) for found in by.changes if found.kind == "base_run_beside"]
    said += [tell_short(found) for found in by.changes if found.kind == "other_agent"][:1]
    if by.baseline is not None and by.baseline.provenance == "unproven":
        said.append("against an unproven baseline")
    return [*said, *filter(None, (suite.expired, measured_again(suite), suite.scope))]


def measured_again(suite: SuiteResult) -> str:
    """``measurement 3 of this change (before: pass, regressed)``, if one of them fell short; else empty.

    Whatever a further one comes to, it is one of several, and a lucky one is not to hide the others.
    """
    found = next((one for one in suite.warnings if one.kind == "measured_before"), None)
    if found is None or FELL_SHORT.isdisjoint(found["verdicts"]):
        return ""
    return tell_short(found)


FELL_SHORT = {Verdict.REGRESSED, Verdict.BELOW_THRESHOLD}


OF_COMPARISON: tuple[KindName, ...] = (
    "thresholds_hold",
    "no_worse",
    "not_enough_evidence",
    "never_pass",
    "cases_broke",
    "suite_got_worse",
    "traded_off",
    "baseline_moved",
    "cases_fail",
    "criterion_fails",
    "criterion_not_measured",
)
"""Causes beside which it is said that there is no baseline, if there is none."""
MAY_BE_MOVED = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD, Verdict.INCONCLUSIVE)
"""Verdicts that another model, or another system of the provider, may have led to."""


def opening(suite: SuiteResult) -> tuple[str, ...]:
    """Return what stands right below what happened: how sure that is, what answers now, and which losses only warn."""
    known = why(suite)
    found = [tell(one) for one in suite.changes if one.kind == "answered_by"]
    answers = [line for line in found if not any(line.startswith(said.partition(",")[0]) for said in known)]
    return tuple(filter(None, (how_sure(suite), *answers, *losses_that_warn(suite))))


def losses_that_warn(suite: SuiteResult) -> tuple[str, ...]:
    """Return what got worse and does not block, a line each; a regression says enough by itself."""
    if suite.verdict is Verdict.REGRESSED:
        return ()
    return tuple(f"warning: {tell(one, suite)}" for one in suite.warnings if one.kind == "quiet_rise")


def how_sure(suite: SuiteResult) -> str:
    """Return how sure the verdict is, in one sentence; empty if it is no matter of chance."""
    by = suite.deciding
    match suite.verdict:
        case Verdict.REGRESSED:
            return _of_unchanged(by)
        case Verdict.PASS:
            return _seen(by)
        case Verdict.BELOW_THRESHOLD:
            row = row_of(by, by.cause["criterion"]) if by.cause.kind == "criterion_fails" else None
            return narrow_miss_of(row) if row is not None else ""
        case Verdict.INCONCLUSIVE if by.cause.kind not in ("baseline_moved", "cases_fail"):
            look = by.outcome.evidence.last_look if by.outcome is not None else None
            return "" if look is None else _seen_by_chance(look.p)
        case _:
            return ""


def _seen_by_chance(p: float) -> str:
    """Return how often an unchanged agent looks as bad; if that is mostly, nothing looks like a loss."""
    if p > 0.5:
        return "no sign of a loss"
    return f"an unchanged agent looks as bad or worse in {by_chance(p)} of runs"


RARE = (1_000, 500, 200, 100, 50)
"""Numbers of runs that a chance is told by."""


def _of_unchanged(suite: SuiteResult) -> str:
    """Return in how few runs an unchanged agent would look like this."""
    cause, outcome = suite.cause, suite.outcome
    chances = [cause["p"]] if cause.kind == "agent_fails" else []
    if outcome is not None and outcome.verdict == "REGRESSION":
        evidence = outcome.evidence
        chances += [look.p for look in evidence.looks if look.blocks]
        chances += [test.p for test in evidence.repeats if test.blocks]
        if evidence.highest_e_value is not None and evidence.highest_e_value >= evidence.e_threshold:
            chances.append(1 / evidence.highest_e_value)
    runs = next((n for n in RARE if chances and min(chances) * n <= 1), None)
    return "" if runs is None else f"an unchanged agent would look like this in fewer than 1 of {runs:,} runs"


def _seen(suite: SuiteResult) -> str:
    """Return what a pass could have seen: of a thin baseline what it cannot, else which drop shows mostly."""
    if told := thin(suite):
        return told
    outcome = suite.outcome
    rate = outcome.evidence.metrics.get(PASS_RATE) if outcome is not None else None
    if rate is None or rate.detectable is None or rate.detectable >= 1:
        return ""
    cases, drop = count(rate.cases, "case"), f"an overall drop below about {about(rate.detectable)} is often missed"
    return f"{cases} like these would show a case that breaks; {drop} (`gate power`)"


LONG = 3
"""Commits with a configuration, after which a baseline should have been stored."""


def _no_baseline(suite: SuiteResult) -> str:
    """Return the sentence that nothing is compared; plainer if a baseline should be there by now."""
    if suite.baseline is not None and suite.baseline.of_itself:
        return "nothing to compare with yet: the stored baseline is of this very commit; the next is compared with it"
    commits = suite.baseline.never_stored if suite.baseline is not None else 0
    if commits < LONG:
        return "no baseline yet"
    never = f"no baseline was ever stored, in {count(commits, 'commit')} of the base's history"
    return f"nothing is compared: {never}; let the job on the default branch end with `gate baseline save`"


def _outward(bound: float) -> float:
    """A bound as it is shown, rounded to its far side: nothing short of the bound itself is ruled out."""
    return math.copysign(math.ceil(1000 * abs(bound) - ROUNDING) / 1000, bound)


# --- what to do -----------------------------------------------------------------------------------

TO_MEASURE = "fix what prevented the measurement, then run the job again"
LOOK_AT_ERRORS = "if the error is the agent's own, fix it; if what it depends on was down, run the job again"
OTHER_THRESHOLD = "change the threshold in a pull request of its own"
OTHER_RULE = "change the rule in a pull request of its own"


def next_step(suite: SuiteResult, label: str = "") -> str:
    """Return what to do about the verdict; empty if that is nothing. ``label``: the one that accepts it, if any."""
    if suite.standing is Verdict.PASS or (suite.cause.kind == "shard" and suite.cause["problem"] is None):
        return ""  # of a shard the headline says what decides
    if suite.accepted:
        return _after_error(suite)
    match suite.verdict:
        case Verdict.REGRESSED if not suite.is_acceptable:
            return f"fix it; a threshold is missed, too: nobody can accept that, but you can {OTHER_THRESHOLD}"
        case Verdict.REGRESSED if suite.deciding.cause.kind == "not_shown_fixed":
            return f"run the job again, since a measurement that passes clears it, or {_accept(label)}"
        case Verdict.REGRESSED:
            return f"fix {'what was lost' if suite.trade is not None else 'it'}, or {_accept(label)}"
        case Verdict.BELOW_THRESHOLD if suite.deciding.cause.kind == "nothing_passes":
            return "fix the agent or the suite"
        case Verdict.BELOW_THRESHOLD:
            return f"fix it, or {OTHER_RULE if _is_hard(suite.deciding) else OTHER_THRESHOLD}"
        case Verdict.NOT_COMPARED:
            return ", or ".join(_after_gaps(suite, label))
        case Verdict.INCONCLUSIVE:
            return _after_noise(suite)
        case _:
            return _after_error(suite)


def _accept(label: str) -> str:
    """Return how a loss is accepted."""
    if label:
        return f"add the label `{label.replace('`', '')}` if this is intended"
    return "if this is intended, accept it: merge it, then run `gate baseline accept`"


def _is_hard(suite: SuiteResult) -> bool:
    """True if a hard rule was broken, which has no threshold."""
    row = row_of(suite, suite.cause["criterion"]) if suite.cause.kind == "criterion_fails" else None
    return row is not None and row.finding("hard_rule", Verdict.BELOW_THRESHOLD) is not None


def _after_gaps(suite: SuiteResult, label: str) -> list[str]:
    """Return what would let everything be compared again; more trials would not."""
    apart = [row.not_compared for row in suite.deciding.criteria if row.criterion.blocking and row.not_compared]
    ways = ["restore what is missing"]
    if any(one.kind == "not_compared" and one["why"] == "changed" for one in apart):
        ways.append("score the baseline's own record again (`gate rescore`)")
    if suite.is_acceptable:
        ways.append(_accept(label))
    return ways


def _after_noise(suite: SuiteResult) -> str:
    """Return what would tell an unchanged agent from a worse one."""
    match suite.deciding.cause.kind:
        case "nothing_decides":
            return "set a threshold, or store a baseline (`gate baseline save`, on the default branch)"
        case "cases_fail" if suite.deciding.cause["copies"]:
            return "clear the cache, or store a second run of the baseline, then run the job again"
        case "cases_fail":
            return "check that the base commit's agent is the one that was stored, then measure the baseline anew"
        case "baseline_moved":
            return "run the job again"
        case _:
            return "look at the cases; more cases, or more stored trials, would decide it"


def _after_error(suite: SuiteResult) -> str:
    """Return what to do if the suite could not be measured."""
    if suite.course is not None and suite.course.stopped:
        return "give the run what it was short of, then run the job again"
    if suite.cause.kind in ("outage", "failures_not_confirmed", "unexplained_failures"):
        return LOOK_AT_ERRORS
    if suite.cause.kind == "collapsed":
        if suite.cause["copies"]:
            return "clear the cache or add cases, then run the job again"
        return "fix the agent; if it is not broken, add cases"
    return TO_MEASURE


# --- how it came about ----------------------------------------------------------------------------


def story(suite: SuiteResult) -> tuple[str, ...]:
    """Return the course of the run and its findings, in the order in which it happened."""
    course = suite.course
    if course is None:
        return ()
    parts = [*_epochs(course), *_reran(course), *_named(suite), *_asked_besides(course)]
    lines = ["; ".join([*parts, _runs(course, more=suite.stored is not None)])]
    if suite.outcome is not None:
        lines += _how_decided(suite, suite.outcome)
        lines += _shared_error(course)
    return (*lines, f"stopped: {course.stopped}") if course.stopped else tuple(lines)


def _epochs(course: Course) -> list[str]:
    """``3 trials of 40 cases``: what ran in epochs, with the number of runs where it is not their product."""
    whole = f"{count(course.epochs, 'trial')} of {count(course.cases, 'case')}"
    if course.epoch_runs is not None:
        whole = f"at most {whole}, {count(course.epoch_runs, 'run')}"
    further = ((course.quarantined, "of cases in quarantine"), (course.baseline_epochs, "of the baseline's agent"))
    return [whole, *(f"{count(n, 'run')} {whose}" for n, whose in further if n)]


def _reran(course: Course) -> list[str]:
    if not course.rerun_cases:
        return []
    low, high = course.rerun_least, course.rerun_most
    times = count(low, "time") if low == high else f"{low}–{high} times"
    runs = [count(course.reruns, "run")] if course.reruns > high else []
    beside = f"{course.baseline_reruns:,}" if runs else count(course.baseline_reruns, "run")
    runs += [f"and {beside} of the baseline's agent"] if course.baseline_reruns else []
    added = f" ({', '.join(runs)})" if runs else ""
    return [f"{course.rerun_cases} suspicious, rerun {times}{added}"]


def _asked_besides(course: Course) -> list[str]:
    """Return the runs beside epochs and reruns, so that all that is named adds up to the runs."""
    kinds = (
        ("to see whether repeats are draws of their own", course.repeating, course.baseline_repeating),
        ("to tell the change from a drift", course.drifting, course.baseline_drifting),
        ("failures asked for again a while later", course.confirming, course.baseline_confirming),
        ("in place of trials that were lost", course.again, course.baseline_again),
    )
    said = []
    for why, runs, of_base in kinds:
        whose = f" ({of_base:,} of the baseline's agent)" if of_base else ""
        said += [f"{why}, {count(runs, 'run')}{whose}"] if runs else []
    return said


def _named(suite: SuiteResult) -> list[str]:
    """The cases that are proven broken, where the headline does not name them."""
    if suite.outcome is None or not suite.outcome.cases:
        return []
    named = "" if _headline_names_cases(suite) else f" ({listing(suite.outcome.cases)})"
    return [f"{len(suite.outcome.cases)} confirmed broken{named}"]


def _headline_names_cases(suite: SuiteResult) -> bool:
    """True if the headline says which cases prove the regression."""
    return suite.cause.kind in ("cases_broke", "traded_off")


def _runs(course: Course, *, more: bool) -> str:
    """``more``: whether further runs were made for later changes, so that nothing was saved."""
    text = count(course.runs, "agent run")
    if course.baseline_runs:
        text += f" ({course.baseline_runs:,} of the baseline's agent)"
    if more:
        return f"{text} for the verdict"
    return f"{text}; {course.fixed_runs:,} by a fixed number of trials" if 0 < course.runs < course.fixed_runs else text


def _how_decided(suite: SuiteResult, outcome: Outcome) -> list[str]:
    if _is_unmeasured(suite):
        return []
    evidence, stage = outcome.evidence, stage_text(outcome.stage)
    look = evidence.last_look
    if suite.cause.kind == "agent_fails":
        return [_proven_by_failures(outcome)]
    if look is None:
        return [f"the baseline could not be compared: {stage}"]
    if outcome.verdict == "REGRESSION":
        return [f"regression proven{_proof(suite, outcome, stage)}"]
    lines = [f"{stage}: {_seen_by_chance(look.p)}; {_detected(evidence)}"]
    if (suite.course is not None and suite.course.concurrent) or outcome.stage.concurrent:
        lines.append("the drop against the stored baseline did not show with both commits run now")
    if outcome.stage.kind is StageKind.MOVED_BEFORE:
        lines.append("against the baseline's newest runs alone no drop shows: the provider may have moved before them")
    if outcome.verdict == "INCONCLUSIVE":
        lines += _bounds(suite, evidence)
        lines += _to_decide(suite, evidence) if suite.verdict is Verdict.INCONCLUSIVE else []
        lines += _suspected(evidence)
    return lines


def _proven_by_failures(outcome: Outcome) -> str:
    """Nothing is open any more, whatever the comparison alone came to."""
    proven, look = "regression proven by the failures that came again a while later", outcome.evidence.last_look
    if look is None or outcome.verdict == "REGRESSION":
        return proven
    return f"{proven}; without them: {_seen_by_chance(look.p)}"


def _is_unmeasured(suite: SuiteResult) -> bool:
    """True if nothing that was tested says anything: the agent was down, or no trial was measured."""
    if suite.cause.problem is None:
        return False
    return suite.cause.kind == "outage" or all(row.candidate is None for row in suite.criteria)


def _shared_error(course: Course) -> list[str]:
    """Over what the promise holds, where that is more than this suite."""
    shared = [f"this job's {course.suites} suites"] if course.suites > 1 else []
    shared += [f"the {course.family} jobs of its matrix"] if course.family > 1 else []
    if not shared:
        return []
    return [
        f"an unchanged agent is called regressed in at most {percentage(course.alpha)}, over {' and '.join(shared)}"
    ]


def _repeats(test: RepeatsTest) -> str:
    """``5 cases that had failed once failed again: 25/25 → 6/15; by chance …``."""
    moved_by = f"{test.baseline_passed}/{test.baseline_trials} → {test.passed}/{test.trials}"
    said = f"{count(test.cases, 'case')} that had failed were run again: {moved_by}"
    return f"{said}; {_chance(test.p, test.threshold)}"


def _chance(p: float, threshold: float) -> str:
    often, limit = chance_and_limit(p, threshold)
    return f"by chance that happens to {often} of unchanged agents (limit {limit})"


def _proof(suite: SuiteResult, outcome: Outcome, stage: str) -> str:
    """Return the decision in plain words, the proof that the headline names first; `gate explain` has the p- and
    e-values."""
    whole, cases = _proven_over_suite(suite, outcome), _proven_by_cases(suite, outcome)
    if not whole or not cases or not _headline_names_cases(suite):
        return f" {stage}: {'; '.join((*whole, *cases))}"
    besides = "; ".join(whole)
    if outcome.stage.of_cases:
        return f" {stage}: {'; '.join(cases)}; besides, {besides}"
    return f": {'; '.join(cases)}; and {stage}: {besides}"


def _proven_over_suite(suite: SuiteResult, outcome: Outcome) -> list[str]:
    """Return the proof by the whole suite, or by the cases that had failed, taken together."""
    parts: list[str] = []
    for look in outcome.evidence.looks:
        if look.blocks and not parts:  # later ones say the same again
            name = _first_proven(suite, look)
            moved_to = "rose" if is_lower_better(suite, name) else "fell"
            how = f"the mean {moved_to}" if proven_by_mean(outcome, name) else f"a few cases {moved_to} far"
            parts.append(f"{name}: {how}; {_chance(look.p, look.threshold)}")
    return [*parts, *(_repeats(test) for test in outcome.evidence.repeats if test.blocks)]


def _first_proven(suite: SuiteResult, look: LookTest) -> str:
    """The criterion to tell a look by: the headline's, where the look proves it, else the one that it shows best."""
    tests, cause = look.metrics, suite.cause
    named = causes(suite, cause["criteria"]) if cause.kind == "suite_got_worse" else []
    proven = [name for name in named[:1] if name in tests and tests[name].p_adjusted <= look.threshold]
    return next(iter(proven), min(tests, key=lambda one: tests[one].p_adjusted))


def _proven_by_cases(suite: SuiteResult, outcome: Outcome) -> list[str]:
    """Return the sentence that single cases prove it by themselves, with their names if the headline has none."""
    if not proven_by_cases(outcome):
        return []
    cases = moved(outcome.evidence, outcome.cases) if outcome.cases else most_suspect(suite.cases)
    named = "" if _headline_names_cases(suite) or not cases else f" ({listing(map(_movement, cases))})"
    which = f"a single case{named} fails" if len(outcome.cases) == 1 else f"single cases{named} fail"
    return [f"{which} more often than chance allows an unchanged agent"]


def _movement(case: CaseTally) -> str:
    """``refund-lamp 5/5 → 0/4``."""
    return f"{case.case_id} {pooled([case])}"


def _detected(evidence: EvidenceSummary) -> str:
    rate = evidence.metrics.get(PASS_RATE)
    if rate is None or rate.detectable is None:
        return "which drop is found in so few trials is not known"
    return f"a drop of about {about(rate.detectable)} shows in four of five such runs"


def _blocking(suite: SuiteResult, evidence: EvidenceSummary) -> list[tuple[Criterion, MetricChange]]:
    by_name = {row.criterion.name: row.criterion for row in suite.criteria}
    return [(by_name[name], found) for name, found in evidence.metrics.items() if found.blocks_regression]


def _bounds(suite: SuiteResult, evidence: EvidenceSummary) -> list[str]:
    """Return the drops that are ruled out."""
    lines = []
    for criterion, found in _blocking(suite, evidence):
        low = found.excluded
        if low is not None and _excludes(found, low, criterion):
            word = "worse" if criterion.direction is Direction.LOWER else "lower"
            end = _outward(natural(min(low, 0.0), criterion))
            bound = change(end, criterion.scale, unit=not criterion.scale.is_relative)
            whose = f" for {TYPICAL}" if criterion.scale.is_relative else ""
            open_ = "" if found.holds else "; its margin is narrower"
            lines.append(f"{criterion.name}: {word} than {bound}{whose} is {RULED_OUT}{open_}")
    return lines


def _excludes(found: MetricChange, low: float, criterion: Criterion) -> bool:
    """True if the bound excludes anything that can happen: one of few cases, or at the end of the scale, does not."""
    return found.cases >= FEW_CASES and (not criterion.scale.is_zero_to_one or low > -1.0)


def _to_decide(suite: SuiteResult, evidence: EvidenceSummary) -> list[str]:
    for criterion, found in _blocking(suite, evidence):
        if found.holds or found.low is None:
            continue
        return [f"to decide {criterion.name}: {_what_decides(found, criterion)}"]
    return [] if _bounds(suite, evidence) else ["to decide: more cases, or more trials on both sides"]


def _what_decides(found: MetricChange, criterion: Criterion) -> str:
    """Return the runs that would bound a loss by its margin, if what was measured so far is true."""
    trials = "more trials on both sides"
    if found.change + found.margin <= 0:
        return f"{trials}; the estimate itself is beyond its margin"
    wide = f"a margin of {_as_option(max(-(found.low or 0.0), found.margin), criterion)}"
    if cases := _enough(found, criterion):
        return f"about {count(cases, 'case')}, or more baseline trials, or {wide}"
    if found.change + margin_over(found, criterion, MOST_TIMES * found.cases) <= 0:
        return f"{trials}, or {wide}; of more cases the margin is narrower, and the estimate itself is beyond it"
    return f"{trials}; the estimate itself is close to its margin"


def _enough(found: MetricChange, criterion: Criterion) -> int:
    """The fewest cases of which the interval, as wide as it is for its cases, would end within the margin that holds
    for so many; 0 where no number that a reader is told does."""
    half, most = found.change - (found.low or 0.0), MOST_TIMES * found.cases
    if margin_over(found, criterion, most) == found.margin:
        cases = max(found.cases + 1, math.ceil(found.cases * (half / (found.change + found.margin)) ** 2 - ROUNDING))
        return cases if cases <= most else 0

    def ends_within(cases: int) -> bool:
        return half * math.sqrt(found.cases / cases) <= found.change + margin_over(found, criterion, cases)

    return next(filter(ends_within, range(found.cases + 1, most + 1)), 0)


def _suspected(evidence: EvidenceSummary) -> list[str]:
    if not evidence.named:
        return []
    cases = listing(evidence.named)
    return [f"suspected, but not proven at this error rate: {cases}; more baseline trials would tell"]


def _as_option(value: float, criterion: Criterion) -> str:
    """A margin as it is written in the configuration, rounded up: a lower one would be too narrow."""
    if criterion.scale.is_relative:
        value = abs(natural(-value, criterion))
    return f"{math.ceil(100 * value - ROUNDING) / 100:.2f}"


# --- what changed, and what to be careful of ------------------------------------------------------


def changes(suite: SuiteResult) -> tuple[str, ...]:
    """Return the changes of the suite and its criteria against the baseline, and the change's rules that do not
    hold."""
    return tuple(map(tell, suite.changes))


def warnings(suite: SuiteResult) -> tuple[str, ...]:
    """Return the findings that weaken the verdict without changing it."""
    return tuple(_warning(found, suite) for found in suite.warnings)


def _warning(found: Finding, suite: SuiteResult) -> str:
    """Return a warning; failures of the agent that the headline tells are not counted again."""
    facts = suite.crashes
    if found.kind == "agent_failures" and facts is not None and crashes(suite, facts) in headline(suite):
        return f"the agent failed, most often: {facts.message}"
    return tell(found, suite)
