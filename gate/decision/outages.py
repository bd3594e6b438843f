"""Trials that do not count: those lost to infrastructure, and failures during an outage."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Set
from itertools import chain

from msgspec.structs import replace

from gate.decision.comparison import Comparison
from gate.decision.engine.state import CONCURRENT
from gate.decision.outcomes import lacks_a_score
from gate.model import FULL, PROBE, ErrorKind, Trial, TrialError, Verdict
from gate.model.finding import Finding
from gate.security.limits import cut

MAX_MESSAGE_CHARS = 200
LEAST_IN_VAIN = 10
"""Number of consecutive lost trials of the base's agent after which it is not run again."""
OF_ALL_CASES = (FULL, CONCURRENT)
"""Tags of trials whose cases were not picked by failures."""
LEAST_TRIALS = 3
"""Minimum trials of the base's agent for which something may be missing where it runs."""
MOST = 0.5
"""If more than this share of the answering cases fails, the failures are an outage."""


def commonest_error(trials: Iterable[Trial], most: int = MAX_MESSAGE_CHARS) -> str:
    """Return the most common error of these trials with its kind, cut to ``most`` characters; empty without errors."""
    return _told(_commonest(trials), most)


def outage_of(trials: Iterable[Trial], *, cases: int, of: int, compared: bool) -> Finding:
    """Return the finding that these trials failed, in ``cases`` of the ``of`` that count."""
    often = _commonest(trials)
    is_of_setup = often is not None and often.kind is ErrorKind.SETUP
    error = _told(often, MAX_MESSAGE_CHARS)
    return Finding.of("outage", cases=cases, of=of, compared=compared, error=error, setup=is_of_setup)


def _commonest(trials: Iterable[Trial]) -> TrialError | None:
    """Return the most common error of these trials; None without errors."""
    counts: Counter[str] = Counter()
    errors: dict[str, TrialError] = {}
    for trial in trials:
        if trial.error is not None:
            text = f"{trial.error.kind.value}: {trial.error.message}"
            counts[text] += 1
            errors[text] = trial.error
    if not counts:
        return None
    return errors[min(counts, key=lambda text: (-counts[text], text))]


def _told(error: TrialError | None, most: int) -> str:
    if error is None:
        return ""
    return _cut(" ".join(f"{error.kind.value}: {error.message}".split()), most)


def _cut(text: str, most: int) -> str:
    """Return at most ``most`` characters; a hint in brackets at the end of a long text is kept."""
    said, bracket, hint = text.rpartition(" (")
    if len(text) <= most or not bracket or not hint.endswith(")") or len(hint) > most // 2:
        return cut(text, most)
    return f"{cut(said, most - len(bracket + hint))} ({hint}"


# --- an agent that is down ------------------------------------------------------------------------


def with_outage(comparison: Comparison) -> Comparison:
    """Return the comparison with its failures excused if the agent is down: an outage is no regression."""
    comparison = _without_base_that_is_down(comparison)
    found = _outage(comparison)
    return comparison if found is None else replace(excused(comparison), outage=found)


def _outage(comparison: Comparison) -> Finding | None:
    """Return a finding if most cases that answered at the baseline now fail alike; without a baseline, if every case
    does."""
    if not comparison.errors:
        return None
    tried, down = 0, []
    for case in comparison.judged:
        trials = comparison.measured(case.id)
        answered_before = any(trial.answered for trial in comparison.baseline.get(case.id, ()))
        if trials and (answered_before or not comparison.baseline):
            tried += 1
            if not any(trial.answered for trial in trials):
                down.append(trials)
    if not down:
        return None
    failed = list(chain.from_iterable(down))
    if not comparison.baseline:
        if len(down) < tried:
            return None
        return outage_of(failed, cases=len(down), of=tried, compared=False)
    alike = max(Counter([_cause_of(trials[0]) for trials in down]).values())
    if alike <= MOST * tried:
        return None
    return outage_of(failed, cases=alike, of=tried, compared=True)


def _cause_of(trial: Trial) -> str:
    """Return the part that failures with one cause share: the kind, and the message up to its first specific detail."""
    assert trial.error is not None
    return f"{trial.error.kind.value}: {re.sub('[0-9]+', '0', trial.error.message.partition(':')[0][:60])}"


def _without_base_that_is_down(comparison: Comparison) -> Comparison:
    """Return the comparison without failures of the base's agent in rounds in which most of the cases that it answered
    before fail, or in any if it never answers now what the change answers.

    A base that is down fails everything, and compared with it no change would be worse.
    """
    answered_before = {trial.case_id for trial in comparison.stored if trial.answered}
    never = _base_never_answers(comparison, answered_before)
    down = _rounds_of_a_base_that_is_down(comparison, answered_before)
    if not never and not down:
        return comparison
    return _excusing(comparison, {id(trial) for trial in comparison.base_now if never or trial.round in down})


def _base_never_answers(comparison: Comparison, answered_before: Set[str]) -> bool:
    """True if the base's agent fails in every trial of this run, on cases that it answered before and that the change
    answers in every trial: then something is missing where it runs, such as a file that is in no commit. If the change
    fails there, too, both may depend on what is down."""
    asked = comparison.base_now
    if len(asked) < LEAST_TRIALS or not all(trial.failed for trial in asked):
        return False
    now = {trial.case_id for trial in comparison.own if trial.answered}
    fails = {trial.case_id for trial in comparison.own if trial.failed}
    return {trial.case_id for trial in asked} <= (answered_before & now) - fails


def _rounds_of_a_base_that_is_down(comparison: Comparison, answered_before: Set[str]) -> set[int]:
    asked: dict[int, set[str]] = defaultdict(set)
    up: dict[int, set[str]] = defaultdict(set)
    for trial in comparison.base_now:
        if trial.measured and trial.tag in OF_ALL_CASES and trial.case_id in answered_before:
            asked[trial.round].add(trial.case_id)
            if trial.answered:
                up[trial.round].add(trial.case_id)
    return {number for number, cases in asked.items() if len(cases - up[number]) > MOST * len(cases)}


def excused(comparison: Comparison) -> Comparison:
    """Return the comparison as if infrastructure had kept the candidate's failed trials from being measured.

    Violations of a hard rule in the turns before a failure remain valid.
    """
    hard = {criterion.name for criterion in comparison.criteria if criterion.hard}
    return _excusing(comparison, {id(trial) for trial in comparison.own if hard.isdisjoint(trial.scores)})


def _excusing(comparison: Comparison, chosen: Collection[int]) -> Comparison:
    """Return the comparison as if infrastructure had kept those of the chosen trials (by ``id``) that failed from being
    measured."""
    trials = []
    for trial in comparison.trials:
        if trial.error is not None and id(trial) in chosen:
            trials.append(replace(trial, error=replace(trial.error, excused=True)))
        else:
            trials.append(trial)
    return replace(comparison, trials=tuple(trials))


def failures_excused(comparison: Comparison) -> list[Finding]:
    """Return a finding per side on the failures that do not count: an agent that is down fails everything."""
    found = []
    for by, trials in (("agent", comparison.own), ("base", comparison.base_now)):
        failed = [trial for trial in trials if trial.excused]
        if failed:
            error = commonest_error(failed)
            found.append(Finding.of("trials_lost", Verdict.PASS, lost=len(failed), of=len(trials), error=error, by=by))
    return found


def base_gone(comparison: Comparison) -> Finding | None:
    """Return a finding if the base's agent no longer answers: its newest trials, in whole rounds and at least
    `LEAST_IN_VAIN`, are all lost. Its earlier trials still count."""
    rounds: dict[int, list[Trial]] = {}
    for trial in comparison.base_now:
        rounds.setdefault(trial.round, []).append(trial)
    lost: list[Trial] = []
    for number in sorted(rounds, reverse=True):
        if any(trial.measured for trial in rounds[number]):
            break
        lost += rounds[number]
    if len(lost) < LEAST_IN_VAIN:
        return None
    of, error = len(comparison.base_now), commonest_error(lost)
    return Finding.of("trials_lost", Verdict.PASS, lost=len(lost), of=of, error=error, by="base", gone=True)


# --- lost trials ----------------------------------------------------------------------------------


def lost_to_infrastructure(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials that could not be measured, except failures of an agent that is down: those are its own."""
    return [trial for trial in trials if not trial.measured and not trial.excused]


def lost_ids(comparison: Comparison) -> frozenset[int]:
    """Return the candidate's judged trials (by ``id``) that could not be measured and were not replaced."""
    if not comparison.errors:
        return frozenset()
    lost = comparison.lost(_judged_attempts(comparison))
    return frozenset([id(trial) for trial in lost if trial.tag != PROBE and not trial.excused])


def unscored_ids(comparison: Comparison) -> frozenset[int]:
    """Return the answers (by ``id``) without a computable score of a blocking criterion, the baseline's included; empty
    if none is the candidate's. A judge that refuses the worst answers makes the rest look good."""
    names = [criterion.name for criterion in comparison.blocking]
    found = [id(trial) for trial in _judged_attempts(comparison) if trial.answered and lacks_a_score(trial, names)]
    if not found:
        return frozenset()
    for case_id in comparison.with_baseline:
        compared = [name for name in names if (case_id, name) not in comparison.not_comparable]
        for trial in comparison.of_base(case_id):
            if trial.answered and lacks_a_score(trial, compared):
                found.append(id(trial))
    return frozenset(found)


def _judged_attempts(comparison: Comparison) -> list[Trial]:
    """Return the candidate's trials of judged cases, including errors."""
    return list(chain.from_iterable([comparison.candidate.get(case.id, ()) for case in comparison.judged]))


def counted_as_failed(comparison: Comparison, lost: Collection[int]) -> Comparison:
    """Return the comparison as if the agent had failed in these trials (by ``id``)."""
    error = TrialError(ErrorKind.CRASH, "could not be measured")

    def failed(trials: Iterable[Trial]) -> tuple[Trial, ...]:
        return tuple([replace(trial, error=error) if id(trial) in lost else trial for trial in trials])

    return replace(comparison, trials=failed(comparison.trials), stored=failed(comparison.stored))
