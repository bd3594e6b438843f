"""Trials in which the agent failed instead of answering: where, how often, and when a block may rest on them.

A change that crashes is worse, and a provider's bad two minutes look the same at first. So a block that needs failures
is confirmed: the failing cases are asked again a while later, between cases that answered and, if it can be run, beside
the base commit's agent. docs/dev/decisions/0010-a-crash-is-an-outcome.md says why that suffices.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from statistics import fmean

from msgspec.structs import replace

from gate.decision.comparison import Comparison
from gate.decision.engine.state import CONCURRENT, CONFIRM, Request
from gate.model import FULL, PROBE, CrashFacts, ErrorKind, Scale, Side, Trial, TrialError
from gate.model.finding import Finding
from gate.security.limits import cut
from gate.statistics.intervals import fisher_less

MAX_MESSAGE_CHARS = 200
PROBES = 24
"""Trials of failing cases that a confirmation asks for at least."""
MOST_PROBED = 24
"""Failing cases that are asked again; the most frequent stand for the rest."""
MOST_EACH = 12
"""Trials that one case is asked for."""
ANSWERS_EACH = 6
"""Answers that clear a case of one failure: one that fails in 60 % of its runs gives them once in 250."""
MOST_CLEARED = 2
"""Failures of a case that can be cleared so."""
MOST_LOST = 1 / 3
"""Share of the trials of a confirmation that may be lost to infrastructure."""
CRASH_SHARE = 0.10
"""Share of alpha for the one test of a confirmation against the stored trials; it is what looks and e-values leave."""
MEASURABLE = 0.05
"""Seconds by which answers have to slow at least for it to mean anything."""
LEAST_IN_VAIN = 10
"""Trials of the base's agent that are lost one after the other, before it is asked no more."""
_OF_ALL_CASES = (FULL, CONCURRENT)
"""Tags of trials that no failure picked the cases of."""
MOST = 0.5
"""An outage takes more than this share of the cases that answered."""


# --- facts ----------------------------------------------------------------------------------------


def crash_facts(comparison: Comparison) -> CrashFacts | None:
    """Return the crashes of the candidate's judged cases; None if the agent failed in none."""
    fell = _failing(comparison)
    if not fell:
        return None
    now: list[Trial] = []
    before: list[Trial] = []
    for case_id in fell:
        now += comparison.measured(case_id)
        if case_id in comparison.with_baseline:
            before += comparison.of_base(case_id)
    return CrashFacts(
        cases=tuple(fell),
        failed=sum(fell.values()),
        trials=len(now),
        baseline_failed=_failed(before),
        baseline_trials=len(before),
        message=_commonest(now),
        unexplained=unexplained(comparison),
    )


def _failing(comparison: Comparison, *, probes: bool = True) -> dict[str, int]:
    """Return the number of failures of the agent, by judged case, the most frequent first."""
    if not comparison.errors:
        return {}
    fell = {}
    for case in comparison.judged:
        failed = _failed(trial for trial in comparison.measured(case.id) if probes or trial.tag != PROBE)
        if failed:
            fell[case.id] = failed
    return dict(sorted(fell.items(), key=lambda one: (-one[1], one[0])))


def _failed(trials: Iterable[Trial]) -> int:
    return sum(trial.failed for trial in trials)


def _commonest(trials: Sequence[Trial]) -> str:
    return _commonest_of([trial for trial in trials if trial.failed])


def _commonest_of(trials: Sequence[Trial]) -> str:
    counts = Counter(f"{t.error.kind.value}: {t.error.message}" for t in trials if t.error is not None)
    text = min(counts, key=lambda text: (-counts[text], text))
    return cut(" ".join(text.split()), MAX_MESSAGE_CHARS)


# --- clearing: what keeps a verdict from PASS -----------------------------------------------------


def unexplained(comparison: Comparison) -> tuple[str, ...]:
    """Cases that failed so, never did at the baseline, and did not answer often enough since."""
    return tuple(case_id for case_id, missing in _uncleared(comparison) if missing)


def clearing(comparison: Comparison) -> tuple[Request, ...]:
    """Reruns that would clear them, or show what is wrong."""
    short: dict[int, list[str]] = {}
    for case_id, missing in _uncleared(comparison):
        if 0 < missing <= MOST_CLEARED * ANSWERS_EACH:
            short.setdefault(missing, []).append(case_id)
    return tuple(Request(Side.CANDIDATE, CONFIRM, tuple(ids), n) for n, ids in sorted(short.items()))


def _uncleared(comparison: Comparison) -> Iterator[tuple[str, int]]:
    """Each case that fails for the first time, with the trials that it is short of; beyond bounds if it fails often.

    So does one that the baseline does not have, or has with another content: nothing shows that it is not the change.
    """
    for case_id, fell in _failing(comparison).items():
        paired = case_id in comparison.with_baseline
        if not comparison.stored or (paired and _failed(comparison.of_base(case_id))):
            continue
        answers = len(comparison.measured(case_id)) - fell
        often = fell > MOST_CLEARED and answers < ANSWERS_EACH * fell
        yield case_id, PROBES if often else max(0, ANSWERS_EACH * fell - answers)


# --- an outage ------------------------------------------------------------------------------------


def with_outage(comparison: Comparison) -> Comparison:
    """The comparison with its failures excused if the agent is down: that is no regression, and no base is as bad."""
    comparison = _without_base_that_is_down(comparison)
    found = _outage(comparison)
    return replace(excused(comparison), outage=found) if found is not None else comparison


def _without_base_that_is_down(comparison: Comparison) -> Comparison:
    """The comparison without the failures of the base's agent in rounds in which most of what it answered before fails.

    A base that is not up fails everything, and next to it no change would be worse.
    """
    down = _rounds_of_a_base_that_is_down(comparison)
    if not down:
        return comparison
    trials = []
    for trial in comparison.trials:
        is_of_base = trial.side is Side.BASELINE and trial.round in down
        trials.append(_excuse(trial) if is_of_base else trial)
    return replace(comparison, trials=tuple(trials))


def _excuse(trial: Trial) -> Trial:
    """Return the trial as if infrastructure had kept it from being measured, if it failed."""
    return trial if trial.error is None else replace(trial, error=replace(trial.error, excused=True))


def _rounds_of_a_base_that_is_down(comparison: Comparison) -> set[int]:
    answered_before = {trial.case_id for trial in comparison.stored if trial.answered}
    asked: dict[int, set[str]] = {}
    up: dict[int, set[str]] = {}
    for trial in comparison.trials:
        if trial.side is not Side.BASELINE or not trial.measured or trial.tag not in _OF_ALL_CASES:
            continue
        if trial.case_id in answered_before:
            asked.setdefault(trial.round, set()).add(trial.case_id)
            if trial.answered:
                up.setdefault(trial.round, set()).add(trial.case_id)
    return {number for number, cases in asked.items() if len(cases - up.get(number, set())) > MOST * len(cases)}


def lost_to_infrastructure(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that could not be measured, without failures of an agent that is down: those were its own errors."""
    return [t for t in trials if not t.measured and not t.excused]


def failures_excused(comparison: Comparison) -> list[Finding]:
    """The failures that do not count, of each side: an agent that is down fails everything."""
    found = []
    for side in (Side.CANDIDATE, Side.BASELINE):
        own = [trial for trial in comparison.trials if trial.side is side]
        fell = [trial for trial in own if trial.excused]
        if fell:
            found.append(
                Finding.of(
                    "failures_excused",
                    failed=len(fell),
                    of=len(own),
                    error=_commonest_of(fell),
                    at_base=side is Side.BASELINE,
                )
            )
    return found


def base_gone(comparison: Comparison) -> Finding | None:
    """Return a finding if the base's agent was asked in vain: its newest trials, by whole rounds and `LEAST_IN_VAIN` at
    least, are all lost. Earlier trials still say what is known of the base."""
    rounds: dict[int, list[Trial]] = {}
    for trial in comparison.trials:
        if trial.side is Side.BASELINE:
            rounds.setdefault(trial.round, []).append(trial)
    lost: list[Trial] = []
    for number in sorted(rounds, reverse=True):
        if any(trial.measured for trial in rounds[number]):
            break
        lost += rounds[number]
    if len(lost) < LEAST_IN_VAIN:
        return None
    return Finding.of("base_gone", trials=len(lost), error=_commonest_of(lost))


def _outage(comparison: Comparison) -> Finding | None:
    """Return a finding if most cases that answered at the baseline now fail alike; without a baseline, every case."""
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
    often = _commonest([trial for trials in down for trial in trials])
    if not comparison.baseline:
        if len(down) < tried:
            return None
        return Finding.of("outage", cases=len(down), of=tried, compared=False, error=often)
    alike = max(Counter(_cause_of(trials[0]) for trials in down).values())
    if alike <= MOST * tried:
        return None
    return Finding.of("outage", cases=alike, of=tried, compared=True, error=often)


def _cause_of(trial: Trial) -> str:
    """Return the part that failures of one cause share: the kind, and the message up to its first particulars."""
    assert trial.error is not None
    return f"{trial.error.kind.value}: {re.sub('[0-9]+', '0', trial.error.message.partition(':')[0][:60])}"


def excused(comparison: Comparison) -> Comparison:
    """The comparison as if infrastructure had kept the candidate's failed trials from being measured.

    What a hard rule found in the turns before a failure is no less true for it.
    """
    hard = {criterion.name for criterion in comparison.criteria if criterion.hard}
    trials = []
    for trial in comparison.trials:
        stays = trial.side is Side.BASELINE or any(name in hard for name in trial.scores)
        trials.append(trial if stays else _excuse(trial))
    return replace(comparison, trials=tuple(trials))


def counted_as_failed(comparison: Comparison, lost: Collection[int]) -> Comparison:
    """The comparison as if the agent had failed in these trials (by ``id``)."""
    error = TrialError(ErrorKind.CRASH, "could not be measured")

    def failed(trials: Iterable[Trial]) -> tuple[Trial, ...]:
        return tuple([replace(trial, error=error) if id(trial) in lost else trial for trial in trials])

    return replace(comparison, trials=failed(comparison.trials), stored=failed(comparison.stored))


# --- confirmation ---------------------------------------------------------------------------------


def probes(comparison: Comparison) -> tuple[Request, ...]:
    """The failing cases once more, between as many that answered; of both sides if the base commit's can be run."""
    failing = list(_failing(comparison, probes=False))[:MOST_PROBED]
    if not failing or comparison.settings.confirm_after is None:
        return ()
    cases = []
    for failed, answered in zip_longest(failing, _answering(comparison, len(failing))):
        cases += [case_id for case_id in (failed, answered) if case_id is not None]
    n = min(MOST_EACH, max(2, -(-PROBES // len(failing))))
    once = [Request(Side.CANDIDATE, PROBE, tuple(cases), 1)]
    paired = tuple([case_id for case_id in cases if case_id in comparison.with_baseline])
    if comparison.settings.rerun != "never" and paired:
        once.append(Request(Side.BASELINE, PROBE, paired, 1))
    found = tuple(once * n)
    most = comparison.settings.runs
    is_affordable = most is None or len(comparison.trials) + sum(request.runs for request in found) <= most
    return found if is_affordable else ()


def _answering(comparison: Comparison, n: int) -> Sequence[str]:
    """Cases that answered each time, spread over the suite."""
    groups = ((case.id, comparison.measured(case.id)) for case in comparison.judged)
    ids = [case_id for case_id, trials in groups if trials and all(t.answered for t in trials)]
    step = max(1, len(ids) // n)
    return ids[::step][:n]


def probed(comparison: Comparison) -> bool:
    return any(trial.tag == PROBE for trial in comparison.trials)


def unconfirmed(comparison: Comparison) -> Finding | None:
    """Return the reason why failures that a block needs do not prove the agent to be at fault; None if they do.

    What failed before the confirmation picked the cases; in the confirmation itself a provider's trouble strikes them
    no more than it strikes those that answered, or the base commit's agent: Fisher's test on these trials alone.
    """
    picked = _failing(comparison, probes=False)
    fresh = [t for t in comparison.trials if t.tag == PROBE]
    failed = sum(trial.failed and trial.tag != PROBE for trial in comparison.errors)
    if not fresh:
        return Finding.of("failures_not_confirmed", failed=failed, why="nothing_rerun")
    if (lost := sum(not t.measured for t in fresh)) > MOST_LOST * len(fresh):
        return Finding.of("failures_not_confirmed", failed=failed, why="lost", lost=lost, trials=len(fresh))
    seen = [t for t in fresh if t.measured]
    now = [t for t in seen if t.side is Side.CANDIDATE and t.case_id in picked]
    base = [t for t in seen if t.side is Side.BASELINE and t.case_id in picked]
    others = [t for t in seen if t.side is Side.CANDIDATE and t.case_id not in picked]
    against = base or others
    answers = [sum(t.answered for t in group) for group in (now, against)]
    if against and fisher_less(answers[0], len(now), answers[1], len(against)) <= comparison.settings.own_alpha:
        return None if base else _slowed(comparison, others, failed)
    if not _failed(now):
        return Finding.of("failures_not_confirmed", failed=failed, why="gone", trials=len(now))
    return Finding.of(
        "failures_not_confirmed",
        failed=failed,
        why="perhaps_provider",
        failed_again=_failed(now),
        trials=len(now),
        other_failed=_failed(against),
        other_trials=len(against),
        at_base=bool(base),
    )


_OF_PROVIDER = re.compile(
    r"\b(429|503|529)\b|overloaded|rate.?limit|too many requests|service unavailable|temporarily unavailable", re.I
)
"""The words of a provider that cannot answer for now."""


def is_of_provider(comparison: Comparison, why: Finding) -> bool:
    """Return whether failures that did not come again look like a provider's, every one of them."""
    if why["why"] != "gone":
        return False
    failed = [t for case_id in _failing(comparison) for t in comparison.measured(case_id) if t.failed]
    return all(trial.error is not None and _OF_PROVIDER.search(trial.error.message) for trial in failed)


def proven(comparison: Comparison) -> float | None:
    """The p-value at which the confirmation alone proves the candidate worse; None if it does not.

    The candidate's earlier failures picked the cases, and nothing else did; so of an unchanged agent their fresh trials
    are exchangeable with those stored at the baseline. That the provider is not at fault `unconfirmed` has to say too.
    """
    picked = _failing(comparison, probes=False)
    now = [t for case_id in picked for t in comparison.measured(case_id) if t.tag == PROBE]
    then = [t for case_id in picked if case_id in comparison.with_baseline for t in comparison.of_base(case_id)]
    if not now or not then or unconfirmed(comparison):
        return None
    p = fisher_less(sum(t.answered for t in now), len(now), sum(t.answered for t in then), len(then))
    return p if p <= CRASH_SHARE * comparison.settings.own_alpha else None


def _slowed(comparison: Comparison, others: Iterable[Trial], failed: int) -> Finding | None:
    """The slowdown, if answers took longer than the latency margin allows: failures are then to be expected."""
    pairs = []
    for trial in others:
        known = [t.duration for t in comparison.baseline.get(trial.case_id, ()) if t.answered and t.duration]
        if trial.answered and trial.duration and known:
            pairs.append((trial.duration, fmean(known)))
    if not pairs:
        return None
    now, before = fmean(now for now, _ in pairs), fmean(before for _, before in pairs)
    own = [c.margin for c in comparison.criteria if c.scale is Scale.SECONDS and c.margin is not None]
    margin = min(own, default=Scale.SECONDS.default_margin)
    if now - before <= MEASURABLE or now <= before * (1 + margin):
        return None
    return Finding.of("failures_not_confirmed", failed=failed, why="slowed_down", now=now, before=before)


def lost_ids(comparison: Comparison) -> frozenset[int]:
    """The candidate's judged trials that could not be measured, and in whose place none was (by ``id``)."""
    if not comparison.errors:
        return frozenset()
    judged = {case.id for case in comparison.judged}
    own = chain.from_iterable(group for case_id, group in comparison.candidate.items() if case_id in judged)
    return frozenset(id(t) for t in comparison.lost(own) if t.tag != PROBE and not t.excused)


def unscored_ids(comparison: Comparison) -> frozenset[int]:
    """The answers of which a blocking criterion's score could not be computed (by ``id``), those of the baseline too;
    empty if it is none of the candidate's. A judge that refuses what is worst leaves the rest to look well.
    """
    blocking = [c.name for c in comparison.criteria if c.blocking]
    judged = {case.id for case in comparison.judged}
    own = (t for case_id, group in comparison.candidate.items() if case_id in judged for t in group)
    before = (t for case_id in comparison.with_baseline for t in comparison.of_base(case_id))
    found = [id(t) for t in own if any(_is_lost(t, name) for name in blocking)]
    if found:
        apart = comparison.not_comparable
        found += [id(t) for t in before if any(_is_lost(t, c) for c in blocking if (t.case_id, c) not in apart)]
    return frozenset(found)


def _is_lost(trial: Trial, name: str) -> bool:
    score = trial.scores.get(name) if trial.answered else None
    return score is not None and score.value is None and bool(score.error)
