"""The record level: from the trials of a suite to the trials wanted next, or to its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.all_pass import lacks_trials
from gate.decision.comparison import (
    Comparison,
    Incomparable,
    Settings,
    Unmatched,
    error_share,
    passes,
    to_state,
    with_all_pass,
    with_outcomes,
)
from gate.decision.conclusions import findings_of
from gate.decision.consistency import compared, lacks_pairs
from gate.decision.crashes import base_gone, clearing, crash_facts, excused, probed, probes, unexplained, with_outage
from gate.decision.engine.state import FULL, Request
from gate.decision.rules import Table, judge
from gate.decision.stored_epochs import with_stored_epochs
from gate.decision.thresholds import may_turn, own_is_open
from gate.decision.unseen import without_unseen
from gate.decision.verdict import result_of_table, table_of
from gate.model import REPEAT, Case, Criterion, Outcome, Side, SuiteResult, Trial, Verdict
from gate.model.finding import Finding

MOST_RETRIES = 2
"""Most repetitions of a trial that infrastructure kept from being measured."""


LEAST_DOWN = 8
"""Failing cases that tell an outage when a run ended before it had tried every case; or half of the suite's."""
REPEATED = 3
"""Steady cases that are asked again where it is not known whether repeats are draws of their own."""
VARYING = 6
"""Cases that are asked again, twice, where only those that vary tell."""
SELDOM = 0.25
"""Share of a case's trials that the agent may fail in while its answers alone can prove it broken."""
FEW_CRASHING = 3
"""Below this many crashing cases another epoch looks for more, before the failures are confirmed."""


class More(Struct, frozen=True):
    """Undecided: these trials are wanted, all in one round."""

    requests: tuple[Request, ...]
    round: int
    """The number for their trials' ``round``."""
    why: str
    again: bool = False
    """True if they stand for trials of this very round that could not be measured."""
    pause: float = 0.0
    """Seconds to let pass before them."""

    @property
    def runs(self) -> int:
        return sum(request.runs for request in self.requests)


class Situation(Struct, frozen=True):
    """The state of a suite, from which the next trials or the verdict follow."""

    cases: Sequence[Case]
    criteria: Sequence[Criterion]
    trials: Sequence[Trial]
    """The trials of the rounds run so far, both sides, errors included; whole rounds only, so that a resumed run
    derives the same requests."""
    stored: Sequence[Trial]
    """The baseline's; empty: there is none."""
    settings: Settings
    seed: int = 0
    suite_id: str = ""
    not_comparable: Mapping[tuple[str, str], Incomparable] = {}
    """(case id, criterion name) → why the baseline's score of it says nothing about this one."""
    unmatched: Unmatched = Unmatched()
    """The part of the baseline that these trials do not let us compare."""
    stored_runs: Sequence[str] = ()
    """The runs that stored trials are of, the oldest first, where a change is held to them; empty: age is no matter."""
    stopped: str = ""
    """The reason why a run ends early (budget, clock): nothing more is asked for. Empty: it does not."""
    reported: bool = False
    """True if the baseline shows that this agent reports its tool calls."""
    selected: bool = False
    """True if a selection left cases of the suite out."""
    gaps: Sequence[Finding] = ()
    """Further parts of the base that were not compared."""
    earlier: Sequence[Verdict] = ()
    """Earlier measurements of this change, judged again, the newest first."""
    same_as: str = ""
    """The commit whose agent this is, if its stored trials are the candidate's."""
    same_verdict: str = ""
    """The verdict on those trials when they were stored, if they fell short: regressed or below their threshold."""
    excuses: bool = True
    """True if a mean that the base's record misses too is excused."""
    base_ran_now: bool = False
    """True if this job ran the base's agent for ``stored``, so that no drift of the provider lies between."""


def next_step(known: Situation, *, can_run: bool = True, verdict_only: bool = False) -> More | SuiteResult:
    """Return the next trials to run, or the verdict.

    ``can_run=False`` judges what there is: trials of one round in one look, those of several as their schedule looked.
    ``verdict_only``: of the result only verdict and criteria are wanted, which saves a second per 10,000 cases. The
    pipeline completes baseline, cost, duration and commit of the result.
    """
    comparison = _comparison(known)
    step = _scheduled(known, comparison, can_run=can_run)
    if isinstance(step, More):
        return step
    table = _table(known, comparison, step, can_run=can_run, with_cases=not verdict_only)
    if can_run and not known.stopped and (further := _settle_failures(comparison, table, step, known.seed)) is not None:
        return further
    return _result(known, table, verdict_only=verdict_only)


def wanted(known: Situation) -> More | None:
    """Return the next trials to run, as `next_step` does; None: the verdict, which `verdict_on` gives. If no agent
    failed, nothing but the rounds depends on that verdict, so it is not worked out here."""
    comparison = _comparison(known)
    step = _scheduled(known, comparison, can_run=True)
    if isinstance(step, More):
        return step
    if known.stopped or crash_facts(comparison) is None:
        return None
    table = _table(known, comparison, step, can_run=True, with_cases=False)
    return _settle_failures(comparison, table, step, known.seed)


def _scheduled(known: Situation, comparison: Comparison, *, can_run: bool) -> More | Outcome | None:
    """Return the trials to run before there is a verdict at all; else the engine's answer, None if nothing is
    paired."""
    seed, stopped = known.seed, known.stopped
    if can_run and not stopped and (again := _again(comparison)) is not None:
        return again
    outcome, more = _ask(comparison, seed, can_run=can_run, stopped=bool(stopped))
    blocking = [c for c in comparison.criteria if c.blocking and comparison.trials]
    found = [finding for c in blocking for finding in findings_of(comparison, c, None)]
    settled = _settled(comparison, found)
    if more is None and not settled:
        more = _for_thresholds(comparison, outcome, found, can_run=can_run and not stopped)
    if more is not None and not settled and (first := _whether_repeats_count(comparison)) is not None:
        return first
    if more is not None and not settled and more.runs:  # a round without a trial would be asked for again for ever
        return more
    if more is not None:
        outcome, _ = _ask(comparison, seed, can_run=can_run, stopped=True)
    return outcome


def verdict_on(known: Situation, *, scheduled: bool = False) -> SuiteResult:
    """The verdict on these trials as they stand.

    ``scheduled``: the schedule was followed with these settings, so the trials are looked at where it looked at them.
    Otherwise trials of one round are looked at once.
    """
    comparison = _comparison(known)
    outcome = None if known.same_as else _ask(comparison, known.seed, can_run=scheduled, stopped=True)[0]
    return _result(known, _table(known, comparison, outcome, can_run=scheduled, with_cases=True))


def _table(
    known: Situation, comparison: Comparison, outcome: Outcome | None, *, can_run: bool, with_cases: bool
) -> Table:
    """Return what the rules see; ``outcome`` is the sequential test's answer on this comparison."""

    def ask(other: Comparison) -> Outcome | None:
        if known.same_as:
            return None  # the trials of both sides are the same
        if other is comparison:
            return outcome
        return _ask(other, known.seed, can_run=can_run, stopped=True)[0]

    return table_of(
        comparison,
        ask,
        stopped=known.stopped,
        gaps=known.gaps,
        earlier=known.earlier,
        same_as=known.same_as,
        same_verdict=known.same_verdict,
        with_cases=with_cases,
    )


def _result(known: Situation, table: Table, *, verdict_only: bool = False) -> SuiteResult:
    result = result_of_table(table, verdict_only=verdict_only)
    return replace(result, suite_id=known.suite_id, seed=known.seed)


def _comparison(known: Situation) -> Comparison:
    cases, criteria, settings = known.cases, known.criteria, known.settings
    judged = [case.id for case in cases if case.id not in settings.quarantine]
    trials = with_stored_epochs(known.trials, judged, criteria)
    trials = without_unseen(criteria, trials, reported=known.reported)
    now, before = (compared(cases, criteria, side, settings.quarantine) for side in (trials, known.stored))
    by_id, apart = {case.id: case for case in cases}, dict(known.not_comparable)
    now, before = with_outcomes(now, by_id, criteria), with_outcomes(before, by_id, criteria, apart)
    now, before = with_all_pass(now, by_id, criteria), with_all_pass(before, by_id, criteria, apart)
    selected, unmatched, runs = known.selected, known.unmatched, tuple(known.stored_runs)
    whole = Comparison(
        tuple(cases),
        tuple(criteria),
        now,
        before,
        settings,
        apart,
        selected,
        unmatched,
        runs,
        known.excuses,
        known.base_ran_now,
    )
    found = with_outage(whole)
    if settings.rerun in ("match", "beside") and base_gone(found):
        return replace(found, settings=replace(settings, rerun="never"))
    return found


def _again(comparison: Comparison) -> More | None:
    """Return once more the trials that infrastructure kept from being measured in the newest round.

    Before anything is looked at, so that each look is taken once.
    """
    settings = comparison.settings
    newest_round = _next_round(comparison) - 1
    alone = settings.rerun == "never"  # a base that is gone is not asked again
    newest = [t for t in comparison.trials if t.round == newest_round and not (alone and t.side is Side.BASELINE)]
    tried = Counter((t.side, t.tag, t.case_id) for t in newest if comparison.is_replacement(t))
    lost = Counter((t.side, t.tag, t.case_id) for t in comparison.lost(newest) if not t.failed and not t.excused)
    short: dict[tuple[Side, str, int], list[str]] = {}
    for (side, tag, case_id), n in lost.items():
        if tried[side, tag, case_id] < MOST_RETRIES * n:
            short.setdefault((side, tag, n), []).append(case_id)
    requests = tuple(Request(side, tag, tuple(ids), n) for (side, tag, n), ids in short.items())
    if not requests or error_share(comparison) > settings.max_error_rate:
        return None
    if comparison.has_failed_hard:
        return None
    if settings.runs is not None and len(comparison.trials) + sum(r.runs for r in requests) > settings.runs:
        return None
    return More(requests, newest_round, "asking again what could not be measured", again=True)


def confirmation(known: Situation) -> More | None:
    """The trials that would confirm the failures of these cases, whether or not a block will need them."""
    comparison = _comparison(replace(known, settings=replace(known.settings, rerun="never"), reported=True))
    return _asked(comparison, () if comparison.outage else probes(comparison), "confirm the failures", once=True)


def trials_in_outage(known: Situation) -> tuple[Trial, ...]:
    """The trials that do not count when a run is continued, since they were run in an outage: failures, and trials
    that were run because of them.

    An outage says nothing about the agent, so a later session must not count it. In a run that ended early it takes
    `LEAST_DOWN` failing cases to recognise one, or all cases if they are fewer.
    """
    known = replace(known, reported=True)
    comparison = _comparison(known)
    if _failures_left_it_unmeasured(known):
        return comparison.trials  # what was answered, too: to keep that alone would choose by outcome
    down = sum(any(t.excused for t in comparison.candidate.get(case.id, ())) for case in comparison.judged)
    if not comparison.outage or down < min(LEAST_DOWN, (len(comparison.judged) + 1) // 2):
        return ()
    first = min(trial.round for trial in comparison.trials)
    return tuple(t for t in comparison.trials if t.round > first or t.excused)


def _failures_left_it_unmeasured(known: Situation) -> bool:
    """True if agent failures that did not come again left the suite unmeasured: running the job again must help."""
    for scheduled in (True, False):
        problem = verdict_on(known, scheduled=scheduled).cause.problem
        if problem not in ("failures_not_confirmed", "unexplained_failures"):
            return False
    return True


def _settle_failures(comparison: Comparison, table: Table, outcome: Outcome | None, seed: int) -> More | None:
    """Return what a verdict that turns on agent failures still needs: a confirmation, or answers that clear a case."""
    if not any(trial.failed for trial in comparison.errors) or comparison.outage:
        return None
    if table.not_confirmed is not None:
        further = _asked(comparison, _reruns_without(comparison, outcome, seed), "asking the cases that answer again")
        return further or _asked(comparison, probes(comparison), "confirm the failures", once=True)
    cause = judge(table)
    new = unexplained(comparison)
    is_open = cause.verdict is Verdict.INCONCLUSIVE or cause.problem == "unexplained_failures"
    if not new or not is_open:
        return None
    cleared = clearing(comparison) if comparison.settings.exact_epochs is None else ()
    further = _asked(comparison, cleared, "asking again where the agent failed")
    if further is None and len(new) < FEW_CRASHING and not probed(comparison):
        further = _asked(comparison, _another_pass(comparison), "looking for further cases in which the agent fails")
    return further or _asked(comparison, probes(comparison), "confirm the failures", once=True)


def _reruns_without(comparison: Comparison, outcome: Outcome | None, seed: int) -> Sequence[Request]:
    """Reruns that may prove the broken cases by their answers alone, so that no confirmation is needed.

    Of cases that seldom fail to answer: of others they would be asked for ever.
    """
    asked = {c: comparison.measured(c) for c in (outcome.cases if outcome is not None else ())}
    answering = {c for c, trials in asked.items() if sum(t.failed for t in trials) <= SELDOM * len(trials)}
    if not answering or comparison.settings.exact_epochs is not None:
        return ()
    _, more = _ask(excused(comparison), seed, can_run=True, stopped=False)
    requests = more.requests if more is not None else ()
    return [r for r in requests if r.tag != FULL and answering.issuperset(r.cases)]


def _another_pass(comparison: Comparison) -> tuple[Request, ...]:
    """One or two cases that crash prove little against a few stored trials; what crashes is rarely alone."""
    settings = comparison.settings
    if settings.exact_epochs is not None or passes(comparison) >= settings.max_epochs:
        return ()
    return (_whole(comparison, Request(Side.CANDIDATE, FULL, (), 1)),)


def _whether_repeats_count(comparison: Comparison) -> More | None:
    """A few cases again, before anything is rerun that a cache may answer: then reruns would prove nothing.

    Steady ones; where their answers say too little, those that come out otherwise in another run. The baseline's agent
    with them, if it can be run: that it answers as it did when it was stored proves it deterministic, whatever the
    change has reworded.
    """
    found = comparison.repeats
    if not found.untold or comparison.settings.exact_epochs is not None or not comparison.trials:
        return None
    if found.ask:
        cases, n = found.ask[:VARYING], 2
    else:
        steady = [case_id for case_id in comparison.paired if _all_pass(comparison, case_id)]
        cases, n = tuple(steady[:: max(1, len(steady) // REPEATED)][:REPEATED]), 1
    sides = (Side.BASELINE, Side.CANDIDATE) if _is_unproven(comparison) else (Side.CANDIDATE,)
    requests = [Request(side, REPEAT, cases, n) for side in sides]
    return _asked(comparison, requests if cases else (), "checking that answers come from no cache")


def _is_unproven(comparison: Comparison) -> bool:
    """True if the baseline's agent can be asked for a second run of its own."""
    found = comparison.repeats
    return comparison.settings.rerun == "match" and not found.proven and not found.ask


def _all_pass(comparison: Comparison, case_id: str) -> bool:
    trials = comparison.measured(case_id)
    return bool(trials) and all(map(comparison.passes, trials))


def _asked(comparison: Comparison, requests: Sequence[Request], why: str, *, once: bool = False) -> More | None:
    """These requests, if they are affordable; ``once``: the confirmation, which is one round after a while."""
    settings = comparison.settings
    runs = len(comparison.trials) + sum(request.runs for request in requests)
    if not requests or (once and probed(comparison)) or (settings.runs is not None and runs > settings.runs):
        return None
    pause = (settings.confirm_after or 0.0) if once else 0.0
    return More(tuple(requests), _next_round(comparison), why, pause=pause)


def _ask(comparison: Comparison, seed: int, *, can_run: bool, stopped: bool) -> tuple[Outcome | None, More | None]:
    """The engine's answer on the pairing; a first epoch if nothing is paired or nothing was run."""
    if not comparison.paired:
        return None, None
    from gate.decision.engine.rule import decide  # weight: only with a baseline

    step = decide(to_state(comparison, seed=seed, can_run=can_run, stopped=stopped))
    if isinstance(step, Outcome):
        return step, None
    requests = tuple(_whole(comparison, r) for r in step.requests)
    return None, More(requests, _next_round(comparison), step.why)


def _whole(comparison: Comparison, request: Request) -> Request:
    """An epoch takes in the cases outside the pairing too; those in quarantine once, to see whether they healed."""
    if request.tag != FULL or request.side is Side.BASELINE:
        return request
    first = not comparison.trials
    cases, left_out = comparison.cases if first else comparison.judged, frozenset(request.left_out)
    ids = tuple(case.id for case in cases if case.id not in left_out)
    return replace(request, cases=ids)


def _next_round(comparison: Comparison) -> int:
    return max((t.round for t in comparison.trials), default=0) + 1


def _settled(comparison: Comparison, found: Sequence[Finding]) -> bool:
    """True if something stands that no further trial can change: hard failure, missed threshold, too many errors."""
    if not comparison.trials:
        return False
    return any(f.settles for f in found) or error_share(comparison) > comparison.settings.max_error_rate


def _for_thresholds(
    comparison: Comparison, outcome: Outcome | None, found: Sequence[Finding], *, can_run: bool
) -> More | None:
    """A further epoch while a threshold is undecided: the whole schedule if there is no baseline."""
    settings = comparison.settings
    if not can_run or (outcome is not None and outcome.verdict == "REGRESSION"):
        return None
    done = passes(comparison)
    last = settings.exact_epochs or max(settings.max_epochs, settings.kept_epochs)
    open_ = any(f.verdict is Verdict.INCONCLUSIVE for f in found)
    open_ = open_ or any(may_turn(comparison, criterion, last) for criterion in comparison.demanding)
    open_ = open_ or any(own_is_open(comparison, criterion) for criterion in comparison.criteria)
    alone = lacks_pairs(comparison.criteria, comparison.trials) or lacks_trials(comparison.criteria, comparison.trials)
    if done >= last or (done and not open_ and not alone and settings.exact_epochs is None):
        return None
    n = 1 if settings.exact_epochs is None else settings.exact_epochs - done
    request = _whole(comparison, Request(Side.CANDIDATE, FULL, (), n))
    if settings.runs is not None and len(comparison.trials) + request.runs > settings.runs:
        return None
    return More((request,), _next_round(comparison), _why(done, alone))


def _why(done: int, alone: bool) -> str:
    if not done:
        return "asking each case"
    return (
        "asking each case again, to compare its answers" if alone else "asking each case again, as a threshold is close"
    )
