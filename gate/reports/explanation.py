"""A decided suite in words: what happened, how it came about, what changed, what to be careful of. Escapes nothing.

Every sentence about a fact is made here and in `gate.reports.reasons`, the findings of single criteria; nothing else in
the product reads a sentence again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import assert_never

from gate.decision.comparison import PASS_RATE
from gate.decision.findings import margin_over, natural
from gate.decision.trade import ROUNDING, most_suspect, moved, proven_by_cases, proven_by_mean
from gate.model import (
    CrashFacts,
    Criterion,
    CriterionResult,
    Direction,
    EvidenceSummary,
    LookTest,
    MetricChange,
    Outcome,
    RepeatsTest,
    Scale,
    StageKind,
    SuiteResult,
    Verdict,
)
from gate.model import facts as fact
from gate.model.findings import CasesNotScored, CaseTally, ChecksFellAway, TrialExcused
from gate.reports import draws
from gate.reports.behaviour import changed_behaviour
from gate.reports.by_tag import where
from gate.reports.formatting import (
    TYPICAL,
    by_chance,
    chance_and_limit,
    change,
    count,
    figures,
    listing,
    margin,
    percentage,
    percents,
    same_cases,
    were,
    with_means,
)
from gate.reports.reasons import (
    CONFIRMED,
    RULED_OUT,
    broken_of,
    fails,
    fails_besides,
    fell_silent,
    how_far,
    narrow_miss_of,
    never_pass,
    quantile,
    reason,
    stage_text,
    trial_over,
    unconfirmed,
    why_apart,
)

FEW_CASES = 10
NOT_COMPARED = "not compared with the base"
DRIFT = "or the provider changed since the baseline was stored: the base was not measured beside it"
NOT_LOOKED_FOR = "a change of the provider since the baseline was stored was not looked for, as this fails anyway"
WIDER = (
    "the interval of the change says what these trials show, and the margin is held to it; "
    "what is ruled out counts one failure more than was seen"
)
MOST_TIMES = 25
"""As many cases as the suite has, times this, are the most that a reader is told to write."""
VISIBLE = 0.001
"""Between two bounds of a rate, 0–1, that readers would want to reconcile."""
MANY_THIN = 0.1
"""Share of the compared cases from which on the headline says that their baseline is thin."""
MOST_POINTS = 50.0
"""From this bound on the interval of the pass rate says nothing worth saying."""


# --- what happened --------------------------------------------------------------------------------


def headline(suite: SuiteResult) -> str:
    """One line: what happened."""
    text = _headline(suite) if suite.deciding is suite else headline(suite.deciding)
    told = "; ".join(filter(None, (text, suite.expired, suite.scope)))
    return f"{before}: {told}" if (before := draws.in_headline(suite)) else told


def _headline(suite: SuiteResult) -> str:
    text = _cause(suite)
    if suite.crashes is not None and suite.verdict not in (Verdict.PASS, Verdict.ERROR):
        text = f"{text}; {crashes(suite, suite.crashes)}"
    if place := where(suite):
        text = f"{place}; {text}" if suite.verdict is Verdict.REGRESSED else f"{text}; most of it in {place}"
    beside = _beside(suite)
    text = f"{text}; {_run_beside(beside)}" if beside is not None else text
    others = [answered_by(found) for found in suite.changes if isinstance(found, fact.AnsweredBy)]
    if others and suite.verdict in MAY_BE_MOVED:
        text = f"{', and '.join(others)}, which may be why: {text}"
    return f"against the {suite.reference}: {text}" if suite.reference else text


def _cause(suite: SuiteResult) -> str:
    cause = suite.cause
    match cause:
        case fact.CouldNotMeasure():
            by = f" (stopped: {suite.course.stopped})" if suite.course is not None and suite.course.stopped else ""
            return f"could not measure: {_problem(cause.problem)}{by}"
        case fact.CutShort():
            return f"stopped: {cause.why}; {cause.epochs} of {count(cause.wanted, 'epoch')} {were(cause.epochs)} run"
        case fact.ShardMeasured():
            made = f"{count(cause.trials, 'trial')} of {count(cause.cases, 'case')}"
            return f"shard {cause.shard} of {cause.of}: {made}; `gate merge` decides once all shards are done"
        case fact.ShardNotMeasured():
            return f"could not measure shard {cause.shard} of {cause.of}: {_problem(cause.problem)}"
        case fact.AgentFails():
            return CONFIRMED
        case fact.Incomplete():
            return f"{NOT_COMPARED}: {'; '.join(map(_gap, cause.gaps))}"
        case fact.NotShownFixed():
            ago = "before" if cause.measurements == 1 else f"{cause.measurements} measurements ago"
            return f"not shown to be fixed: this change was measured as regressed {ago} and has not passed since"
        case fact.SameAgent():
            fell = f", which fell short ({suite.verdict.value.replace('_', ' ')})" if cause.fell_short else ""
            return f"the agent is the one of {cause.commit[:7]}{fell}; nothing was run"
        case fact.NothingDecides():
            return "nothing to judge yet: no threshold, and no baseline"
        case fact.NothingPasses():
            return f"no trial passes (0 of {cause.trials:,}), and there is no baseline to compare with yet"
        case _:
            text = _compared(suite, cause)
            return text if suite.has_baseline else f"{text}; {_no_baseline(suite)}"


MAY_BE_MOVED = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD, Verdict.INCONCLUSIVE)
"""Verdicts that another model, or another system of the provider, may have led to."""


def opening(suite: SuiteResult) -> tuple[str, ...]:
    """What stands right below the headline, before any figure: what answers now, where the headline does not say so."""
    said = headline(suite)
    found = (one for one in suite.changes if isinstance(one, fact.AnsweredBy) and answered_by(one) not in said)
    return tuple(filter(None, (how_sure(suite), *map(_change, found))))


def how_sure(suite: SuiteResult) -> str:
    """Return how sure the verdict is, in one sentence; empty if it is no matter of chance."""
    by = suite.deciding
    match suite.verdict:
        case Verdict.REGRESSED:
            return _of_unchanged(by)
        case Verdict.PASS:
            return _seen(by)
        case Verdict.BELOW_THRESHOLD:
            row = _row(by, by.cause.criterion) if isinstance(by.cause, fact.CriterionFails) else None
            return narrow_miss_of(row) if row is not None else ""
        case Verdict.INCONCLUSIVE if not isinstance(by.cause, fact.BaselineMoved | fact.ControlFell | fact.CopiesLost):
            look = by.outcome.evidence.last_look if by.outcome is not None else None
            return "" if look is None else f"an unchanged agent looks as bad or worse in {by_chance(look.p)} of runs"
        case _:
            return ""


RARE = (1_000, 500, 200, 100, 50)
"""Numbers of runs that a chance is told by."""


def _of_unchanged(suite: SuiteResult) -> str:
    """Return in how few runs an unchanged agent would look like this."""
    cause, outcome = suite.cause, suite.outcome
    chances = [cause.p] if isinstance(cause, fact.AgentFails) else []
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
    if thin := _thin(suite):
        return thin.removeprefix("; ")
    outcome = suite.outcome
    rate = outcome.evidence.metrics.get(PASS_RATE) if outcome is not None else None
    if rate is None or rate.detectable is None or rate.detectable >= 1:
        return ""
    drop = f"a drop of about {_about(rate.detectable)}"
    return f"in {count(rate.cases, 'case')} like these, one that breaks is found, and {drop} shows in four of five runs"


LONG = 3
"""Commits with a configuration, after which a baseline should have been stored."""


def _no_baseline(suite: SuiteResult) -> str:
    """That nothing is compared; said plainly where a baseline should be there by now."""
    if suite.baseline is not None and suite.baseline.of_itself:
        return "nothing to compare with yet: the stored baseline is of this very commit; the next is compared with it"
    commits = suite.baseline.never_stored if suite.baseline is not None else 0
    if commits < LONG:
        return "no baseline yet"
    never = f"no baseline was ever stored, in {count(commits, 'commit')} of the base's history"
    return f"nothing is compared: {never}; let the job on the default branch end with `gate baseline save`"


_Compared = (
    fact.ThresholdsHold
    | fact.NoWorse
    | fact.NotEnoughEvidence
    | fact.CasesNeverPass
    | fact.CasesBroke
    | fact.SuiteGotWorse
    | fact.TradedOff
    | fact.BaselineMoved
    | fact.ControlFell
    | fact.CopiesLost
    | fact.CriterionFails
    | fact.CriterionNotMeasured
)


def _compared(suite: SuiteResult, cause: _Compared) -> str:
    match cause:
        case fact.ThresholdsHold():
            of = count(cause.cases, "case")
            cases = of if cause.checked == cause.cases else f"{cause.checked} of {of}"
            return f"every threshold holds over {cases}{_uncompared(cause.uncompared)}"
        case fact.NoWorse():
            return f"no loss found over {count(cause.cases, 'case')}{_uncompared(cause.uncompared)}"
        case fact.NotEnoughEvidence():
            extra = f"; suspected: {listing(cause.suspects)}" if cause.suspects else ""
            return f"not enough evidence on {listing(causes(suite, cause.criteria))}{extra}"
        case fact.CasesNeverPass():
            return never_pass(cause.cases, tallies=False)
        case fact.CasesBroke():
            return _broke(suite, cause)
        case fact.SuiteGotWorse():
            return _got_worse(suite, cause)
        case fact.TradedOff():
            return trade(suite, cause)
        case fact.BaselineMoved():
            named = causes(suite, cause.criteria)
            verb = "got worse" if any(_is_lower_better(suite, name) for name in named) else "fell"
            fell = f"{listing(named)} {verb} against the stored baseline"
            what = "its newest runs" if cause.before else "the base commit's agent run now"
            return f"{fell}, but not against {what}: drift or luck, not shown to be this change"
        case fact.CopiesLost():
            fail = "fails" if len(cause.cases) == 1 else "fail"
            lost = f"{listing(cause.cases)} passed every time and now {fail} every time"
            why = "but repeats are copies of one answer: a cache would look like this, and so would an agent that broke"
            return f"{lost}, {why}"
        case fact.ControlFell():
            fail = "fails" if len(cause.cases) == 1 else "fail"
            now = f"passed in every stored trial and now {fail} every time, with the base commit's agent too"
            return f"{listing(cause.cases)} {now}: the provider changed, or that agent is not the one that was stored"
        case fact.CriterionFails():
            row = _row(suite, cause.criterion)
            return f"{cause.criterion} fails" if row is None else f"{cause.criterion} {fails(row)}"
        case fact.CriterionNotMeasured():
            lost, said = "could not be measured", _reason_of(suite, cause.criterion)
            return f"{cause.criterion} {said if _names_loss(suite, cause.criterion) else f'{lost}: {said}'}"
        case _:
            assert_never(cause)


def _thin(suite: SuiteResult) -> str:
    """What cannot be proven on a thin baseline, and what will change that."""
    thin = next((one for one in suite.warnings if isinstance(one, fact.ThinBaseline)), None)
    if thin is None or suite.verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE) or _beside(suite) is not None:
        return ""
    compared = suite.outcome.evidence.paired if suite.outcome is not None else len(suite.cases)
    if thin.cases < MANY_THIN * compared:
        return ""
    missed = ["a single broken case would not be proven with so few"] if thin.blind else []
    if thin.drop is not None and thin.drop < 1:
        missed.append(f"a drop below about {_about(thin.drop)} is often missed")
    said = f": {', and '.join(missed)}" if missed else ""
    return f"; thin baseline, {_so_far(thin, compared)}{said}; {_more_stored(thin)}"


def _so_far(thin: fact.ThinBaseline, compared: int) -> str:
    """``fewer than 5 stored trials in 40 of 100 cases (least: 2)``."""
    where = "a case" if thin.cases >= compared else f"in {thin.cases} of {count(compared, 'case')}"
    return f"fewer than {count(thin.wanted, 'stored trial')} {where} (least: {thin.least})"


def _more_stored(thin: fact.ThinBaseline) -> str:
    """What makes a baseline thicker."""
    if thin.grows:
        return "runs on the default branch store more"
    return f"`baseline.trials: {thin.wanted}` makes runs on the default branch store more"


def _always_fails(suite: SuiteResult) -> bool:
    """Whether the broken cases are those in which the agent fails each time: counting that says what proves it, too."""
    cause, found = suite.cause, suite.crashes
    if not isinstance(cause, fact.CasesBroke) or found is None:
        return False
    return set(cause.cases) == set(found.cases) and found.failed == found.trials


def _broke(suite: SuiteResult, cause: fact.CasesBroke) -> str:
    """Return what the broken cases have in common: ``the agent no longer calls look_up (2 of 10 cases: a, b)``."""
    of = f"{len(cause.cases)} of {count(cause.of, 'case')}" if cause.of else count(len(cause.cases), "case")
    does, holds = changed_behaviour(suite.cases, cause.cases)
    if does:
        broken = len(cause.cases)
        in_some = f" in {holds} of the {broken} cases that broke" if holds < broken else ""
        return f"the agent {does}{in_some} ({of}: {listing(cause.cases)})"
    return f"{of} broke: {listing(cause.cases)}"


def _got_worse(suite: SuiteResult, cause: fact.SuiteGotWorse) -> str:
    """The proof that decided: a lower mean with its change, or drops of a few cases that no mean shows."""
    named = causes(suite, cause.criteria)
    first = _row(suite, named[0])
    broken = broken_of(first) if first is not None and cause.by_mean else ()
    suspects = [one.case_id for one in cause.suspects if one.case_id not in broken]
    suspected = listing(suspects or _falls(suite, cause))
    extra = f"; most suspect: {suspected}" if suspected and not where(suite) else ""  # of a tag, single cases are noise
    extra += f"; {NOT_LOOKED_FOR if cause.drift_moot else DRIFT}" if cause.perhaps_drift else ""
    rows = [row for name in causes(suite, cause.missed) if (row := _row(suite, name)) is not None]
    besides = "".join(f"{row.criterion.name}: {fails_besides(row) or reason(row)}; " for row in rows)
    if not cause.by_mean:
        return f"{besides}{listing(named)} got worse in some cases{extra}"
    said = how_far(first) if first is not None else ""
    return f"{besides}{listing(named)} got worse over the suite: {said}{extra}"


def causes(suite: SuiteResult, names: Sequence[str]) -> list[str]:
    """Criteria that are at fault, without a composite beside one of its parts: one cause is told once."""
    whole = {row.criterion.name: row.criterion.parts for row in suite.criteria if row.criterion.parts}
    return [name for name in names if set(names).isdisjoint(whole.get(name, ()))]


def _falls(suite: SuiteResult, cause: fact.SuiteGotWorse) -> list[str]:
    row = _row(suite, causes(suite, cause.criteria)[0])
    if row is None:
        return []
    scale = row.criterion.scale
    return [f"{one.case_id} {' → '.join(figures((one.before, one.now), scale))}" for one in cause.fell]


def trade(suite: SuiteResult, found: fact.TradedOff) -> str:
    """Return what was lost and what was gained, each with the trials that prove it."""
    lost, gained = found.lost, found.gained
    worse, better = (listing(one.case_id for one in side) for side in (lost, gained))
    broke = f"{count(len(lost), 'case')} broke ({worse})"
    if not found.named:
        broke = f"some cases got worse (most suspect: {worse})"
    improved = f"{len(gained)} improved ({better})"
    if not found.gained_named:
        improved = f"others improved as a group (most clearly: {better})"
    return f"a trade: {broke} and {improved}{_rates(suite)}"


def _rates(suite: SuiteResult) -> str:
    row = _row(suite, PASS_RATE)
    if row is None or row.compared is None or row.change is None:
        return ""
    over = "" if same_cases(row) else f" over {count(row.change.n, 'compared case')}"
    return f"; pass rate {' → '.join(figures(row.compared, row.criterion.scale))}{over}"


def pooled(cases: Iterable[CaseTally]) -> str:
    """``27/33 → 0/33``: how many trials passed at the baseline and now, all cases together."""
    cases = list(cases)
    before = f"{sum(c.passed_before for c in cases):,}/{sum(c.trials_before for c in cases):,}"
    return f"{before} → {sum(c.passed for c in cases):,}/{sum(c.trials for c in cases):,}"


def movement(case: CaseTally) -> str:
    """``refund-lamp 5/5 → 0/4``."""
    return f"{case.case_id} {pooled([case])}"


def _row(suite: SuiteResult, name: str) -> CriterionResult | None:
    return next((row for row in suite.criteria if row.criterion.name == name), None)


def _reason_of(suite: SuiteResult, name: str) -> str:
    row = _row(suite, name)
    return reason(row) if row is not None else ""


def _names_loss(suite: SuiteResult, name: str) -> bool:
    """Whether the reason itself says that scores could not be measured."""
    row = _row(suite, name)
    return row is not None and any(isinstance(f, CasesNotScored) for f in row.findings)


def _bound(low: float | None, cases: int) -> str:
    """Which drop of the pass rate the interval excludes; none where the cases are few, or the drop is most of it."""
    if low is None:
        return ""
    if cases < FEW_CASES:
        return "; so few cases rule out no particular drop"
    if low > -ROUNDING:
        return f": a drop is {RULED_OUT} over these cases"
    points = -100 * _outward(low)
    return f": a drop of more than {points:.1f} points is {RULED_OUT}" if points < MOST_POINTS else ""


def _outward(bound: float) -> float:
    """A bound as it is shown, rounded to its far side: nothing short of the bound itself is ruled out."""
    return math.copysign(math.ceil(1000 * abs(bound) - ROUNDING) / 1000, bound)


def _uncompared(found: fact.Uncompared) -> str:
    """What of the suite the baseline could say nothing about; empty where it said all."""
    parts = [f"{found.new} new"] if found.new else []
    parts += [f"{found.edited} edited"] if found.edited else []
    said = [f"{' and '.join(parts)}, held to thresholds only"] if parts else []
    said += [f"{found.removed} removed"] if found.removed else []
    return f"; {', '.join(said)}" if said else ""


def _problem(problem: fact.Problem) -> str:
    """Why a suite could not be measured."""
    match problem:
        case fact.NoCases():
            return "no cases"
        case fact.AllQuarantined():
            return "every case is in quarantine: nothing is left to judge"
        case fact.Outage():
            noun = "case" if problem.of == 1 else "cases"
            fail = "fails" if problem.cases == 1 else "fail"
            which = f"{noun} that answered at the baseline {fail} alike" if problem.compared else f"{noun} {fail}"
            return f"an outage: {problem.cases} of {problem.of} {which}{_often(problem.error)}"
        case fact.FailuresNotConfirmed():
            return f"the agent failed in {count(problem.failed, 'trial')}; {unconfirmed(problem.why)}"
        case fact.UnexplainedFailures():
            return f"the agent fails in {count(problem.cases, 'case')} in which it did not at the baseline"
        case fact.LostDecide():
            trials = [count(problem.trials, "trial") + " could not be measured"] if problem.trials else []
            answers = [count(problem.unscored, "answer") + " could not be scored"] if problem.unscored else []
            return f"{' and '.join([*trials, *answers])}; counted as failures, they would change the verdict"
        case fact.Collapsed():
            every = f"every value of {problem.criterion} is at its worst now ({count(problem.trials, 'trial')})"
            few = "there are too few cases to prove a loss"
            why = "repeats are copies of one answer, which proves nothing" if problem.copies else few
            return f"{every}, and was not at the base, but {why}"
        case fact.TooManyErrors():
            share, most = figures((problem.share, problem.most), Scale.BINARY)
            lost = f"{share} of the trials ended in infrastructure errors"
            return f"{lost}; at most {most} may{_often(problem.error)}"
        case fact.CasesNotMeasured():
            of, ids = count(problem.of, "case"), ", ".join(problem.cases[:5])
            return f"no trial of {len(problem.cases)} of {of} could be measured: {ids}{_often(problem.error)}"
        case fact.CasesNotRun():
            ids = ", ".join(problem.cases[:5])
            number = len(problem.cases)
            return f"{number} of its {count(problem.of, 'case')} {were(number)} not run: {ids}"
        case fact.CaseNotRecorded():
            lost = f"{problem.lost} of {count(problem.trials, 'trial')} of {problem.case_id}"
            return f"the recordings have no answer to what {lost} asked{_often(problem.error)}"
        case fact.CaseMostlyLost():
            lost = f"{problem.lost} of {count(problem.trials, 'trial')} of {problem.case_id}"
            return f"{lost} ended in infrastructure errors{_often(problem.error)}"
        case _:
            assert_never(problem)


def _often(error: str) -> str:
    return f"; most often: {error}" if error else ""


def crashes(suite: SuiteResult, found: CrashFacts) -> str:
    """``the agent failed in 9 of 15 trials of 3 cases, before in 0 of 15``; failures, so that no arrow shows a gain."""
    one = len(found.cases) == 1
    of = ("of it" if one else "of them") if _always_fails(suite) else f"of {count(len(found.cases), 'case')}"
    all_ = ", confirmation included" if suite.course is not None and suite.course.confirming else ""
    before = f", before in {found.baseline_failed} of {found.baseline_trials}" if found.baseline_trials else ""
    return f"the agent failed in {found.failed} of {count(found.trials, 'trial')} {of}{all_}{before}"


def _gap(found: fact.Gap) -> str:
    """Return what the base holds and was not compared."""
    match found:
        case fact.Stated():
            return found.text
        case fact.CriteriaNotCompared():
            return f"{'criterion' if len(found.criteria) == 1 else 'criteria'} {listing(found.criteria)}"
        case fact.TooManyCasesGone():
            return (
                f"{len(found.cases)} of {count(found.of, 'case')} that passed there are gone ({listing(found.cases)})"
            )
        case fact.EditedCasesMiss():
            verb = "was edited and misses" if len(found.cases) == 1 else "were edited and miss"
            return f"{listing(found.cases)} passed there, {verb} now"
        case fact.NothingPaired():
            return f"none of the base's {count(found.cases, 'case')} is in the suite"
        case ChecksFellAway():
            return f"{found.criterion} {fell_silent(found)}"
        case _:
            assert_never(found)


# --- how it came about ----------------------------------------------------------------------------


def story(suite: SuiteResult) -> tuple[str, ...]:
    """What was run and what it showed, in the order in which it happened."""
    course = suite.course
    if course is None:
        return ()
    parts = [*_epochs(course), *_reran(course), *_named(suite), *_asked_besides(course)]
    lines = ["; ".join([*parts, _runs(course, more=suite.stored is not None)])]
    if suite.outcome is not None:
        lines += _how_decided(suite, suite.outcome)
        lines += _shared_error(course)
    return (*lines, f"stopped: {course.stopped}") if course.stopped else tuple(lines)


def _epochs(course: fact.Course) -> list[str]:
    """``3 trials of 40 cases``: what ran in epochs, with the number of runs where it is not their product."""
    whole = f"{count(course.epochs, 'trial')} of {count(course.cases, 'case')}"
    if course.epoch_runs is not None:
        whole = f"at most {whole}, {count(course.epoch_runs, 'run')}"
    further = ((course.quarantined, "of cases in quarantine"), (course.baseline_epochs, "of the baseline's agent"))
    return [whole, *(f"{count(n, 'run')} {whose}" for n, whose in further if n)]


def _reran(course: fact.Course) -> list[str]:
    if not course.rerun_cases:
        return []
    low, high = course.rerun_least, course.rerun_most
    times = count(low, "time") if low == high else f"{low}–{high} times"
    runs = [count(course.reruns, "run")] if course.reruns > high else []
    beside = f"{course.baseline_reruns:,}" if runs else count(course.baseline_reruns, "run")
    runs += [f"and {beside} of the baseline's agent"] if course.baseline_reruns else []
    added = f" ({', '.join(runs)})" if runs else ""
    return [f"{course.rerun_cases} suspicious, rerun {times}{added}"]


def _asked_besides(course: fact.Course) -> list[str]:
    """What was run beside epochs and reruns, so that all that is named adds up to the runs."""
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
    """Whether the headline says which cases prove the regression, and by which trials."""
    return isinstance(suite.cause, fact.CasesBroke | fact.TradedOff) or suite.trade is not None


def _runs(course: fact.Course, *, more: bool) -> str:
    """``more``: whether further runs were made for later changes, so that nothing was saved."""
    text = count(course.runs, "agent run")
    if course.baseline_runs:
        text += f" ({course.baseline_runs:,} of the baseline's agent)"
    if more:
        return f"{text} for the verdict"
    return f"{text} instead of {course.fixed_runs:,}" if 0 < course.runs < course.fixed_runs else text


def _how_decided(suite: SuiteResult, outcome: Outcome) -> list[str]:
    if _is_unmeasured(suite):
        return []
    evidence, stage = outcome.evidence, stage_text(outcome.stage)
    look = evidence.last_look
    if isinstance(suite.cause, fact.AgentFails):
        return [_proven_by_failures(outcome)]
    if look is None:
        return [f"the baseline could not be compared: {stage}"]
    if outcome.verdict == "REGRESSION":
        return [f"regression proven{_proof(suite, outcome, stage)}"]
    lines = [f"{stage}: an unchanged agent looks as bad or worse in {by_chance(look.p)} of runs; {_detected(evidence)}"]
    if (suite.course is not None and suite.course.concurrent) or outcome.stage.concurrent:
        lines.append("the drop against the stored baseline did not show with both commits run now")
    if outcome.stage.kind is StageKind.MOVED_BEFORE:
        lines.append("against the baseline's newest runs alone no drop shows: the provider may have moved before them")
    if isinstance(suite.cause, fact.NoWorse) and _is_wider(suite.cause, evidence):
        lines.append(WIDER)
    if outcome.verdict == "INCONCLUSIVE":
        lines += [*_bounds(suite, evidence), *_to_decide(suite, evidence), *_suspected(evidence)]
    return lines


def _proven_by_failures(outcome: Outcome) -> str:
    """Nothing is open any more, whatever the comparison alone came to."""
    proven, look = "regression proven by the failures that came again a while later", outcome.evidence.last_look
    if look is None or outcome.verdict == "REGRESSION":
        return proven
    alone = f"in the comparison without them an unchanged agent looks as bad or worse in {by_chance(look.p)} of runs"
    return f"{proven}; {alone}"


def _is_unmeasured(suite: SuiteResult) -> bool:
    """Whether nothing that was tested says anything: the agent was down, or no trial was measured."""
    if not isinstance(suite.cause, fact.CouldNotMeasure):
        return False
    return isinstance(suite.cause.problem, fact.Outage) or all(row.candidate is None for row in suite.criteria)


def _is_wider(cause: fact.NoWorse, evidence: EvidenceSummary) -> bool:
    """Whether what the headline rules out lies visibly beyond the interval that is shown beside it."""
    rate = evidence.metrics.get(PASS_RATE)
    said = bool(_bound(cause.rate_low, cause.rate_cases)) and cause.rate_cases >= FEW_CASES
    if not said or rate is None or rate.low is None or cause.rate_low is None:
        return False
    return rate.low - cause.rate_low >= VISIBLE


def _shared_error(course: fact.Course) -> list[str]:
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
    """What decided, in plain words, the proof that the headline names first; `gate explain` has the p- and e-values."""
    whole, cases = _proven_over_suite(suite, outcome), _proven_by_cases(suite, outcome)
    if not whole or not cases or not _headline_names_cases(suite):
        return f" {stage}: {'; '.join((*whole, *cases))}"
    besides = "; ".join(whole)
    if outcome.stage.of_cases:
        return f" {stage}: {'; '.join(cases)}; besides, {besides}"
    return f": {'; '.join(cases)}; and {stage}: {besides}"


def _proven_over_suite(suite: SuiteResult, outcome: Outcome) -> list[str]:
    """What the whole of the suite proves, or the cases that had failed, taken together."""
    parts = []
    for look in outcome.evidence.looks:
        if look.blocks:
            name = _first_proven(suite, look)
            moved_to = "rose" if _is_lower_better(suite, name) else "fell"
            how = f"the mean {moved_to}" if proven_by_mean(outcome, name) else f"a few cases {moved_to} far"
            parts.append(f"{name}: {how}; {_chance(look.p, look.threshold)}")
    return [*parts, *(_repeats(test) for test in outcome.evidence.repeats if test.blocks)]


def _first_proven(suite: SuiteResult, look: LookTest) -> str:
    """The criterion to tell a look by: the headline's, where the look proves it, else the one that it shows best."""
    tests, cause = look.metrics, suite.cause
    named = causes(suite, cause.criteria) if isinstance(cause, fact.SuiteGotWorse) else []
    proven = [name for name in named[:1] if name in tests and tests[name].p_adjusted <= look.threshold]
    return next(iter(proven), min(tests, key=lambda one: tests[one].p_adjusted))


def _proven_by_cases(suite: SuiteResult, outcome: Outcome) -> list[str]:
    """That single cases prove it by themselves, with their names where the headline has none."""
    if not proven_by_cases(outcome):
        return []
    cases = moved(outcome.evidence, outcome.cases) if outcome.cases else most_suspect(suite.cases)
    named = "" if _headline_names_cases(suite) or not cases else f" ({listing(map(movement, cases))})"
    which = f"a single case{named} fails" if len(outcome.cases) == 1 else f"single cases{named} fail"
    return [f"{which} more often than chance allows an unchanged agent"]


def _is_lower_better(suite: SuiteResult, name: str) -> bool:
    row = _row(suite, name)
    return row is not None and row.criterion.direction is Direction.LOWER


def _detected(evidence: EvidenceSummary) -> str:
    rate = evidence.metrics.get(PASS_RATE)
    if rate is None or rate.detectable is None:
        return "which drop is found in so few trials is not known"
    return f"a drop of about {_about(rate.detectable)} shows in four of five such runs"


def _about(drop: float) -> str:
    """A drop in whole points, or as small as it is."""
    return f"{percents(drop)} points" if drop >= 0.015 else margin(drop, Scale.BINARY)


def _blocking(suite: SuiteResult, evidence: EvidenceSummary) -> list[tuple[Criterion, MetricChange]]:
    by_name = {row.criterion.name: row.criterion for row in suite.criteria}
    return [(by_name[name], found) for name, found in evidence.metrics.items() if found.blocks_regression]


def _bounds(suite: SuiteResult, evidence: EvidenceSummary) -> list[str]:
    """Which drops are ruled out."""
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
    """Whether the bound excludes anything that can happen: one of few cases, or at the end of the scale, does not."""
    return found.cases >= FEW_CASES and (criterion.scale not in (Scale.BINARY, Scale.UNIT) or low > -1.0)


def to_decide(suite: SuiteResult) -> str:
    """What would settle an open decision; empty where none is open, or nothing is known of it."""
    outcome = suite.outcome
    if outcome is None or outcome.verdict != "INCONCLUSIVE" or outcome.evidence.last_look is None:
        return ""
    if isinstance(suite.cause, fact.AgentFails):
        return ""
    return next(iter(_to_decide(suite, outcome.evidence)), "")


def _to_decide(suite: SuiteResult, evidence: EvidenceSummary) -> list[str]:
    for criterion, found in _blocking(suite, evidence):
        if found.holds or found.low is None:
            continue
        return [f"to decide {criterion.name}: {_what_decides(found, criterion)}"]
    return [] if _bounds(suite, evidence) else ["to decide: more cases, or more trials on both sides"]


def _what_decides(found: MetricChange, criterion: Criterion) -> str:
    """What would bound a loss by its margin, if what was measured so far is true."""
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
    """What changed in the suite and its criteria against the baseline, and which of the change's rules do not hold."""
    return tuple(map(_change, suite.changes))


def further_changes(suite: SuiteResult) -> tuple[str, ...]:
    """`changes` without what stands right below the headline."""
    told = opening(suite)
    return tuple(line for line in changes(suite) if line not in told)


def answered_by(found: fact.AnsweredBy) -> str:
    """Which model or system answers now: `the provider answered with m-2 where the baseline had m-1`."""
    now, before = listing(found.now), listing(found.before)
    if found.what == "model":
        return f"the provider answered with {now} where the baseline had {before}"
    return f"the provider's system is {now} where it was {before} for the baseline"


def _beside(suite: SuiteResult) -> fact.BaseRunBeside | None:
    """Return that the base commit's agent took the place of a stored baseline, if it did."""
    return next((found for found in suite.changes if isinstance(found, fact.BaseRunBeside)), None)


def _run_beside(found: fact.BaseRunBeside) -> str:
    """Return what took the place of a stored baseline."""
    rules = " and held to this change's rules, since the base has none" if found.without_rules else ""
    return f"compared with the agent of {found.commit[:12]}, run beside this change{rules}"


def _change(found: fact.RuleChange) -> str:
    match found:
        case fact.BaseRunBeside():
            return (
                "no baseline is stored yet: `gate baseline save` on the default branch spares runs of the base's agent"
            )
        case fact.Stated():
            return found.text
        case fact.AnsweredBy():
            return f"{answered_by(found)}; if this change did not ask for that, the provider moved"
        case fact.ToolsChanged():
            told = f"the tools of {listing(found.servers)} changed"
            return f"{told}: {listing(found.changes)}" if found.changes else f"{told} since the baseline was recorded"
        case fact.NewCases():
            return f"new, held to thresholds only: {listing(found.cases)}"
        case fact.EditedCases():
            return f"edited, held to thresholds only: {listing(found.cases)}"
        case fact.RenamedCases():
            shown = listing(f"{old} → {new}" for old, new in found.cases)
            return f"renamed, and compared by their content: {shown}"
        case fact.RemovedCases():
            return f"removed since the baseline: {listing(found.cases)}"
        case fact.CriterionApart():
            return f"not compared: {found.criterion}: {why_apart(found.why)}"
        case fact.RemovedCriteria():
            return f"not compared: {listing(found.criteria)}: no longer measured"
        case fact.NewCriteria():
            return f"new criterion, held to its threshold only: {listing(found.criteria)}"
        case fact.ByBaseRules():
            other = found.verdict.value.replace("_", " ")
            return f"judged by the base's own rules; the change's stricter ones would say {other}"
        case _:
            assert_never(found)


def warnings(suite: SuiteResult) -> tuple[str, ...]:
    """What weakens the verdict without changing it."""
    return tuple(_warning(found, suite) for found in suite.warnings)


def _warning(found: fact.Caution, suite: SuiteResult) -> str:
    match found:
        case fact.Stated():
            return found.text
        case fact.AgentFailures():
            return _agent_failed(suite)
        case fact.ThresholdExcused() | fact.LimitExcused() | fact.QuietRise():
            row = _row(suite, found.criterion)
            return _of_criterion(found, row) if row is not None else found.criterion
        case fact.FewCases() | fact.ThinBaseline():
            return _few(found, told=bool(_thin(suite)))
        case fact.NotAccepted():
            return _not_accepted(found, suite)
        case fact.ProviderMoved():
            return provider_moved(found)
        case fact.Unproven():
            return unproven(found)
        case fact.MeasuredBefore():
            return draws.sentence(found)
        case (
            fact.ScoresUnmeasured()
            | fact.TrialsLost()
            | fact.FailuresExcused()
            | fact.BaseGone()
            | fact.AttemptsRepeated()
        ):
            return _unmeasured(found)
        case _:
            return _of_answers(found)


def _not_accepted(found: fact.NotAccepted, suite: SuiteResult) -> str:
    """Return that an acceptance counts for nothing, and why."""
    short = f"{listing(found.criteria)} {'miss' if len(found.criteria) > 1 else 'misses'}"
    if not found.criteria:
        short = "no trial passes, which misses" if isinstance(suite.cause, fact.NothingPasses) else "the suite misses"
    what = f"{short} a threshold, a limit or a hard rule, which nobody can accept"
    return f"the acceptance by {found.by} does not count: {what}"


def _agent_failed(suite: SuiteResult) -> str:
    facts = suite.crashes
    if facts is None:
        return "the agent failed"
    said = crashes(suite, facts)
    return f"{'the agent failed, ' if said in headline(suite) else f'{said}; '}most often: {facts.message}"


def provider_moved(found: fact.ProviderMoved) -> str:
    """``since 2026-05-02 10:00 UTC, abc1234 the same agent scores 4 points less on pass rate (p = 0.001, 9 runs)``."""
    size = margin(abs(found.change), Scale.BINARY if found.scale is Scale.UNIT else found.scale)
    day = f"{datetime.fromtimestamp(found.since, UTC):%Y-%m-%d %H:%M} UTC"
    place = f"{day}, {found.commit[:7]}" if found.commit else day
    what = f"{size} {'less' if found.change < 0 else 'more'} on {found.metric}"
    rests = f"(p = {found.p:.2g}, {count(found.runs, 'run')})"
    older = "the baseline was measured before that: " if found.baseline_is_older else ""
    return f"{older}since {place} the same agent scores {what} {rests}: the provider drifted"


MOST_UNPROVEN = 3


def unproven(found: fact.Unproven) -> str:
    """``the baseline abc1234 is unproven: nothing shows which job measured it``."""
    said = []
    if found.compared:
        which = listing([commit[:7] for commit in found.compared[:MOST_UNPROVEN]])
        are = "is" if len(found.compared) == 1 else "are"
        because = f" ({found.why})" if found.why else ""
        said.append(
            f"the baseline of {which} {are} unproven: no trusted job is known to have measured it{because}, "
            "and whoever may write where baselines are kept may have written it"
        )
    for what, why in found.told[:MOST_UNPROVEN]:
        said.append(f"{what}: {why}")
    if more := len(found.told) - MOST_UNPROVEN:
        said += [f"{more} more"] if more > 0 else []
    return "; ".join(said)


def _of_criterion(found: fact.ThresholdExcused | fact.LimitExcused | fact.QuietRise, row: CriterionResult) -> str:
    criterion = row.criterion
    would, scale = "it does not block (`ratchet: false` would)", criterion.scale
    match found:
        case fact.ThresholdExcused():
            side = "below" if criterion.direction is Direction.HIGHER else "above"
            now, before, least = figures((found.value, found.before, found.threshold), scale)
            return f"{criterion.name}: {now} is {side} {least}, as the baseline was ({before}): {would}"
        case fact.LimitExcused():
            held = found.found
            said = trial_over(held, scale) if isinstance(held, TrialExcused) else quantile(held, scale)
            return f"{criterion.name}: {said}, as the baseline was above it too: {would}"
        case fact.QuietRise():
            said = f"{criterion.name}: {change(found.change, scale)}, beyond its margin"
            return f"{with_means(said, row)}; it warns only{_wording(found.wording)}"
        case _:
            assert_never(found)


def _wording(found: fact.Wording | None) -> str:
    """Return one answer as it is worded now, and as it was if that is known."""
    if found is None:
        return ""
    return f': {found.case_id} says "{found.now}"' + (f', and said "{found.before}"' if found.before else "")


def _few(found: fact.FewCases | fact.ThinBaseline, *, told: bool) -> str:
    """``told``: the headline says what a thin baseline cannot show."""
    if isinstance(found, fact.FewCases):
        what = "so few only show a case that breaks outright" if found.blind else "only clear breaks can be found"
        return f"{count(found.cases, 'paired case')}: {what}"
    cases = (
        f"{count(found.cases, 'case')} with fewer than {count(found.wanted, 'baseline trial')} (least: {found.least})"
    )
    return cases if told else f"{cases}: a single broken case may be missed; {_more_stored(found)}"


_Unmeasured = fact.ScoresUnmeasured | fact.TrialsLost | fact.FailuresExcused | fact.BaseGone | fact.AttemptsRepeated


def _unmeasured(found: _Unmeasured) -> str:
    match found:
        case fact.ScoresUnmeasured():
            return f"{found.criterion}: {found.lost} of {count(found.of, 'score')} could not be measured"
        case fact.TrialsLost():
            of = count(found.of, "trial")
            return f"{found.lost} of {of} ended in infrastructure errors and left no score"
        case fact.FailuresExcused():
            whose = "the base commit's agent" if found.at_base else "the agent"
            return f"{whose} failed in {found.failed} of {count(found.of, 'trial')} ({found.error})"
        case fact.BaseGone():
            asked = f"the base commit's agent gave no answer in {count(found.trials, 'trial')} and was asked no more"
            return f"{asked}: what is compared is the stored baseline ({found.error})"
        case fact.AttemptsRepeated():
            return f"{count(found.attempts, 'attempt')} repeated after an infrastructure error"
        case _:
            assert_never(found)


_OfAnswers = fact.RepeatsAlike | fact.RepeatsOnce | fact.CallsNotReported | fact.OneAnswer | fact.CasesUnchecked


def _of_answers(found: _OfAnswers) -> str:
    match found:
        case fact.RepeatsAlike():
            if found.cached:
                faster = "and five times faster: a response cache answers, not the agent"
                return f"repeated trials give identical answers, {faster}"
            return "repeated trials give identical answers: a fixed seed, a cache, or a deterministic agent"
        case fact.RepeatsOnce():
            where = f"repeats within a run are identical in {found.cases} of {count(found.of, 'repeated case')}"
            return f"{where}, and differ between runs: they count as one trial (is there a cache between trials?)"
        case fact.CallsNotReported():
            scores = f"the scores of {', '.join(found.criteria)} are right only if the agent made none"
            return f"no answer reports a tool call, although answers of the baseline did: {scores}"
        case fact.OneAnswer():
            same = f"all {count(found.answers, 'answer')} to {count(found.cases, 'case')} are the same"
            verb = "holds" if len(found.criteria) == 1 else "hold"
            return f"{same}: that {', '.join(found.criteria)} {verb} says little"
        case fact.CasesUnchecked():
            one = len(found.cases) == 1
            if found.were_checked:
                told = f"{count(len(found.cases), 'case')} {'is' if one else 'are'} unchecked, not passed"
                none = "no blocking criterion applies to what was answered, as one did at the baseline"
                return f"{told} ({listing(found.cases)}): {none}"
            one_of, many = "states nothing that a blocking criterion checks: it is", "state nothing that is checked"
            told = one_of if one else f"{many}: they are"
            return f"{count(len(found.cases), 'case')} {told} unchecked, not passed ({listing(found.cases)})"
        case _:
            assert_never(found)
