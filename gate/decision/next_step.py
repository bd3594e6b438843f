"""Determines the trials that a suite should run next, or its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from gate.decision.comparison import Comparison
from gate.decision.crashes import clearing, count_failed, probed, probes, spread, unexplained
from gate.decision.engine.state import More, Request
from gate.decision.findings import findings_of, scores_lost
from gate.decision.outages import excused
from gate.decision.outcomes import lacks_trials
from gate.decision.prepare import prepared
from gate.decision.rules import Table, judge
from gate.decision.sequential import answer_of, outcome_without_runs, with_all_cases
from gate.decision.settings import Settings
from gate.decision.thresholds import may_turn
from gate.decision.verdict import result_of_table, table_of
from gate.model import FULL, NARROW, REPEAT, Outcome, Side, SuiteResult, Trial, Verdict
from gate.model.finding import Finding

MOST_RETRIES = 2
"""Maximum number of retries of a trial that infrastructure kept from being measured."""
LEAST_DOWN = 8
"""Number of failing cases that indicate an outage if a run ended before it tried every case; or half of the suite's."""
REPEATED = 3
"""Number of steady cases to rerun if repeats may not be independent draws."""
VARYING = 6
"""Number of cases to rerun twice if only cases with varying outcomes are informative."""
SELDOM = 0.25
"""Maximum share of a case's trials that may be agent failures for its answers alone to prove it broken."""
FEW_CRASHING = 3
"""With fewer crashing cases, another epoch looks for more before the failures are confirmed."""


# --- the public questions -------------------------------------------------------------------------


def next_round(comparison: Comparison) -> More | None:
    """Return the next trials to run; None if there are none, so that `verdict_on` gives the result."""
    known = prepared(comparison)
    step = _before_the_verdict(known)
    if isinstance(step, More):
        return step
    if not _may_settle_failures(known):
        return None
    return _to_settle_failures(known, table_of(known, step, can_run=True, with_cases=False), step)


def next_step(comparison: Comparison) -> More | Verdict:
    """Return the next trials to run, or the verdict if there are none; `verdict_on` gives the whole result."""
    known = prepared(comparison)
    step = _before_the_verdict(known)
    if isinstance(step, More):
        return step
    table = table_of(known, step, can_run=True, with_cases=False)
    further = None
    if _may_settle_failures(known):
        further = _to_settle_failures(known, table, step)
    return further or judge(table).verdict


def verdict_on(comparison: Comparison, *, scheduled: bool = False) -> SuiteResult:
    """Return the verdict on the trials so far.

    ``scheduled``: the schedule ran with these settings, so the trials are looked at when it looked. Otherwise trials of
    one round are looked at once.
    """
    known = prepared(comparison)
    outcome = outcome_without_runs(known, can_run=scheduled)
    return result_of_table(table_of(known, outcome, can_run=scheduled))


def confirmation(comparison: Comparison) -> More | None:
    """Return the trials that would confirm the failures of these cases, whether or not a block will need them."""
    alone = replace(comparison.settings, rerun="never")
    known = prepared(replace(comparison, settings=alone, reported=True))
    return None if known.outage else _confirmation(known, whole=True)


def trials_in_outage(comparison: Comparison) -> tuple[Trial, ...]:
    """Return the trials to discard when a run continues because they ran during an outage: failures, and trials that
    were run because of them.

    An outage says nothing about the agent, so a continued run must not count it. If a run ended early, `LEAST_DOWN`
    failing cases indicate an outage, or all cases if there are fewer.
    """
    comparison = replace(comparison, reported=True)
    known = prepared(comparison)
    by_both = (verdict_on(comparison, scheduled=scheduled).cause.problem for scheduled in (True, False))
    if all(problem == "agent_fails" for problem in by_both):  # failures that did not recur left it unmeasured
        return tuple(known.trials)  # including answers: keeping only those would select by outcome
    excused_cases = {trial.case_id for trial in known.errors if trial.excused}
    down = [case for case in known.judged if case.id in excused_cases]
    if not known.outage or len(down) < min(LEAST_DOWN, (len(known.judged) + 1) // 2):
        return ()
    first = min([trial.round for trial in known.trials])
    return tuple([trial for trial in known.trials if trial.round > first or trial.excused])


# --- trials before there is a verdict -------------------------------------------------------------


def _before_the_verdict(comparison: Comparison) -> More | Outcome | None:
    """Return the trials to run before any verdict; else the result of the sequential test, None if nothing is
    paired."""
    may_run = not comparison.stopped
    if may_run:
        again = _lost_ones_again(comparison)
        if again is not None:
            return again
    more: More | None = None
    outcome = answer_of(comparison, can_run=True, stopped=not may_run)
    if isinstance(outcome, More):
        more, outcome = outcome, None
    elif not may_run or comparison.epochs_spent >= _last_epoch(comparison.settings):
        return outcome
    found: list[Finding] = []
    if comparison.trials:
        for criterion in comparison.blocking:
            found += findings_of(comparison, criterion, None)
    if not _is_settled(comparison, found):
        if may_run and (more is None or more.narrows):  # while a threshold is open, too, the last epoch is whole
            more = _for_thresholds(comparison, outcome, found) or more
        if more is not None:
            first = _whether_repeats_count(comparison)
            if first is not None:
                return first
            if more.runs:  # a round without trials would be requested forever
                return more
    if more is not None:
        return outcome_without_runs(comparison, can_run=True)
    return outcome


def _is_settled(comparison: Comparison, found: Sequence[Finding]) -> bool:
    """True if no further trial can change the result: hard failure, missed limit, or too many errors or lost scores."""
    if not comparison.trials:
        return False
    if any(one.settles for one in found) or comparison.error_share > comparison.settings.max_error_rate:
        return True
    return _lost_too_many_scores(comparison)


def _lost_too_many_scores(comparison: Comparison) -> bool:
    """True if a blocking criterion stays unmeasured even if each trial of the epochs that are left has a score."""
    if lacks_trials(comparison.blocking, comparison.trials):
        return False
    left = (_last_epoch(comparison.settings) - comparison.epochs_spent) * len(comparison.judged)
    for criterion in comparison.blocking:
        lost = scores_lost(comparison, criterion)
        if lost is not None and lost["lost"] > comparison.settings.max_error_rate * (lost["of"] + left):
            return True
    return False


def _lost_ones_again(comparison: Comparison) -> More | None:
    """Return retries of the trials in the newest round that infrastructure kept from being measured.

    They run before anything is looked at, so that each look happens once.
    """
    settings = comparison.settings
    number = comparison.next_round - 1
    newest = [trial for trial in comparison.trials if trial.round == number]
    if settings.rerun == "never":  # a base that is gone is not run again
        newest = [trial for trial in newest if trial.side is Side.CANDIDATE]
    tried: Counter[tuple[Side, str, str]] = Counter()
    for trial in newest:
        tried[trial.side, trial.tag, trial.case_id] += trial.again
    lost: Counter[tuple[Side, str, str]] = Counter()
    for trial in comparison.lost(newest):
        if not trial.excused:
            lost[trial.side, trial.tag, trial.case_id] += 1
    cases: dict[tuple[Side, str, int], list[str]] = {}
    for (side, tag, case_id), n in lost.items():
        if tried[side, tag, case_id] < MOST_RETRIES * n:
            cases.setdefault((side, tag, n), []).append(case_id)
    requests = [Request(side, tag, tuple(ids), n) for (side, tag, n), ids in cases.items()]
    if comparison.error_share > settings.max_error_rate or comparison.has_failed_hard:
        return None
    return _round_of(comparison, requests, "asking again what could not be measured", again=True)


def _for_thresholds(comparison: Comparison, outcome: Outcome | None, found: Sequence[Finding]) -> More | None:
    """Return another epoch while a threshold is undecided; the whole schedule if there is no baseline."""
    settings = comparison.settings
    if outcome is not None and outcome.verdict == "REGRESSION":
        return None
    done, last = comparison.epochs_spent, _last_epoch(settings)
    if done >= last:
        return None
    lacks_others = lacks_trials(comparison.blocking, comparison.trials)
    if not done:
        why = "asking each case"
    elif lacks_others:
        why = "asking each case again, to compare its answers"
    else:
        why = "asking each case again, to be sure of a threshold"
    if settings.exact_epochs is not None:
        return _epochs(comparison, settings.exact_epochs - done, why)
    if done and not lacks_others and not _is_open(comparison, found, last):
        return None
    return _epochs(comparison, 1, why)


def _last_epoch(settings: Settings) -> int:
    """Return the number of epochs after which no threshold asks for another."""
    return settings.exact_epochs or max(settings.max_epochs, settings.kept_epochs)


def _is_open(comparison: Comparison, found: Sequence[Finding], last: int) -> bool:
    """True if further epochs may change the result of a threshold or a limit."""
    for finding in found:
        is_short = finding.kind == "own_thresholds" and finding.verdict is Verdict.PASS and finding["short"]
        if finding.verdict is Verdict.INCONCLUSIVE or is_short:
            return True
    return any(may_turn(comparison, criterion, last) for criterion in comparison.blocking)


def _whether_repeats_count(comparison: Comparison) -> More | None:
    """Return reruns of a few cases, before reruns that a cache may answer: these would prove nothing.

    The cases are steady ones, or if their answers say too little, those whose outcomes vary between runs. If possible
    the baseline's agent reruns them, too: if it still answers as it did when stored, it is deterministic, however the
    change reworded its answers.
    """
    known = comparison.copies
    if not known.untold or comparison.settings.exact_epochs is not None or not comparison.trials:
        return None
    if known.ask:
        cases, n = known.ask[:VARYING], 2
    else:
        cases, n = tuple(spread(_steady(comparison), REPEATED)), 1
    if not cases:
        return None
    sides = [Side.CANDIDATE]
    if comparison.settings.rerun == "match" and not known.proven and not known.ask:
        sides = [Side.BASELINE, Side.CANDIDATE]
    requests = [Request(side, REPEAT, cases, n) for side in sides]
    return _round_of(comparison, requests, "checking that answers come from no cache")


def _steady(comparison: Comparison) -> list[str]:
    """Return the paired cases whose trials all pass."""
    found = []
    for case_id in comparison.paired:
        trials = comparison.measured(case_id)
        if trials and all(map(comparison.passes, trials)):
            found.append(case_id)
    return found


# --- trials that settle failures of the agent -----------------------------------------------------


def _may_settle_failures(comparison: Comparison) -> bool:
    """True if a verdict that depends on agent failures may still get the trials it needs."""
    return comparison.has_failures and not comparison.outage and not comparison.stopped


def _to_settle_failures(comparison: Comparison, table: Table, outcome: Outcome | None) -> More | None:
    """Return the trials that a verdict depending on agent failures still needs: a confirmation, or answers that clear a
    case."""
    if table.not_confirmed is not None:
        requests = _reruns_without_failures(comparison, outcome)
        return _round_of(comparison, requests, "asking the cases that answer again") or _confirmation(comparison)
    cause = judge(table)
    new = unexplained(comparison)
    is_open = cause.verdict is Verdict.INCONCLUSIVE or cause.problem == "agent_fails"
    if not new or not is_open or _lost_too_many_scores(comparison):
        return None
    settings, further = comparison.settings, None
    if settings.exact_epochs is None:
        further = _round_of(comparison, clearing(comparison), "asking again where the agent failed")
        is_early = comparison.epochs_spent < settings.max_epochs and not probed(comparison)
        if further is None and len(new) < FEW_CRASHING and is_early:
            further = _epochs(comparison, 1, "looking for further cases in which the agent fails")
    return further or _confirmation(comparison)


def _reruns_without_failures(comparison: Comparison, outcome: Outcome | None) -> Sequence[Request]:
    """Return reruns that may prove the broken cases by their answers alone, so that no confirmation is needed.

    Only cases that seldom fail to answer are rerun: others would be rerun forever.
    """
    if outcome is None or comparison.settings.exact_epochs is not None:
        return ()
    answering = set()
    for case_id in outcome.cases:
        trials = comparison.measured(case_id)
        if count_failed(trials) <= SELDOM * len(trials):
            answering.add(case_id)
    if not answering:
        return ()
    answer = answer_of(excused(comparison), can_run=True, stopped=False)
    if not isinstance(answer, More):
        return ()
    picked = [one for one in answer.requests if one.tag not in (FULL, NARROW)]
    return [one for one in picked if answering.issuperset(one.cases)]


def _confirmation(comparison: Comparison, *, whole: bool = False) -> More | None:
    """Return the next round that reruns the failing cases, the first one after a pause."""
    if probed(comparison):
        return _round_of(comparison, probes(comparison), "asking the failing cases again, to be sure of the failures")
    pause = comparison.settings.confirm_after or 0.0
    return _round_of(comparison, probes(comparison, whole=whole), "confirm the failures", pause=pause)


# --- rounds ---------------------------------------------------------------------------------------


def _epochs(comparison: Comparison, n: int, why: str) -> More | None:
    """Return this many epochs as the next round."""
    request = with_all_cases(comparison, Request(Side.CANDIDATE, FULL, (), n))
    return _round_of(comparison, (request,), why)


def _round_of(
    comparison: Comparison, requests: Sequence[Request], why: str, *, again: bool = False, pause: float = 0.0
) -> More | None:
    """Return these requests as the next round, or ``again`` in the newest one; None if there are none or the budget
    does not allow them."""
    if not requests or not comparison.affords(requests):
        return None
    number = comparison.next_round
    if again:
        number -= 1
    return More(tuple(requests), why, number, again, pause)
