"""Trials in which the agent failed instead of answering: where, how often, and when a block may rest on them.

A change that crashes is worse, but a short outage of the provider looks the same at first. So a block that needs
failures is confirmed: the failing cases are rerun a while later, interleaved with cases that answered and, if possible,
with the base commit's agent. docs/dev/decisions/0010-a-crash-is-an-outcome.md explains why that suffices.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from statistics import fmean

from gate.decision.comparison import Comparison
from gate.decision.engine.state import Request
from gate.decision.outages import commonest_error
from gate.model import CONFIRM, PROBE, CrashFacts, Scale, Side, Trial, Verdict
from gate.model.finding import Finding
from gate.statistics.intervals import fisher_less

PROBES = 24
"""Minimum number of trials of failing cases in a whole confirmation."""
FIRST_PROBES = 8
"""Number of them to look at first: failures of a deterministic crash all recur, and need no more."""
MOST_PROBED = 24
"""Maximum number of failing cases to rerun; those that fail most often represent the rest."""
MOST_EACH = 12
"""Maximum number of trials per case in a confirmation."""
ANSWERS_EACH = 6
"""Answers that clear a case of one failure: a case that fails in 60 % of its runs gives that many once in 250 times."""
MOST_CLEARED = 2
"""Maximum number of failures of a case that answers can clear."""
MOST_LOST = 1 / 3
"""Maximum share of a confirmation's trials that infrastructure may lose."""
CRASH_SHARE = 0.10
"""Share of alpha for testing a confirmation against the stored trials; looks and e-values leave this much."""
FIRST_SHARE = 0.10
"""Share of these levels for the first look at a confirmation, so that it adds no more than this to their error."""
MEASURABLE = 0.05
"""A slowdown of answers counts only above this many seconds."""


# --- facts ----------------------------------------------------------------------------------------


def crash_facts(comparison: Comparison) -> CrashFacts | None:
    """Return the crashes in the candidate's judged cases; None if the agent never failed."""
    failures = failures_by_case(comparison)
    if not failures:
        return None
    now: list[Trial] = []
    before: list[Trial] = []
    for case_id in failures:
        now += comparison.measured(case_id)
        before += comparison.of_base(case_id)
    return CrashFacts(
        cases=tuple(failures),
        failed=sum(failures.values()),
        trials=len(now),
        baseline_failed=count_failed(before),
        baseline_trials=len(before),
        message=commonest_error([trial for trial in now if trial.failed]),
        unexplained=unexplained(comparison),
    )


def failures_by_case(comparison: Comparison, *, confirming: bool = True) -> dict[str, int]:
    """Return the number of agent failures by judged case, the most frequent first.

    ``confirming``: include the trials of confirmations.
    """
    judged = {case.id for case in comparison.judged}
    found: Counter[str] = Counter()
    for trial in comparison.errors:
        if trial.failed and trial.case_id in judged and (confirming or trial.tag != PROBE):
            found[trial.case_id] += 1
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def count_failed(trials: Iterable[Trial]) -> int:
    """Return the number of trials in which the agent failed."""
    return sum([trial.failed for trial in trials])


def _count_answered(trials: Iterable[Trial]) -> int:
    return sum([trial.answered for trial in trials])


# --- clearing: failures that keep a verdict from PASS ----------------------------------------------


def unexplained(comparison: Comparison) -> tuple[str, ...]:
    """Return the cases that failed, never did at the baseline, and have not answered often enough since."""
    return tuple([case_id for case_id, missing in _answers_missing(comparison).items() if missing])


def uncleared(comparison: Comparison) -> Finding | None:
    """Return the finding that cases fail that never did at the baseline; None if answers clear them."""
    new = unexplained(comparison)
    if not new:
        return None
    failures = failures_by_case(comparison)
    failed = sum(failures[case_id] for case_id in new)
    return Finding.of("agent_fails", failed=failed, why="new", cases=len(new))


def clearing(comparison: Comparison) -> tuple[Request, ...]:
    """Return the reruns that would clear those cases, or show the cause."""
    cases: dict[int, list[str]] = {}
    for case_id, missing in _answers_missing(comparison).items():
        if 0 < missing <= MOST_CLEARED * ANSWERS_EACH:
            cases.setdefault(missing, []).append(case_id)
    return tuple([Request(Side.CANDIDATE, CONFIRM, tuple(ids), n) for n, ids in sorted(cases.items())])


def _answers_missing(comparison: Comparison) -> dict[str, int]:
    """Return the number of answers each newly failing case still needs to be cleared; unreachable if it fails often.

    Cases that are new or edited since the baseline count as newly failing: nothing shows that the change is not the
    cause.
    """
    found: dict[str, int] = {}
    if not comparison.stored:
        return found
    for case_id, failed in failures_by_case(comparison).items():
        if count_failed(comparison.of_base(case_id)):
            continue
        answers = len(comparison.measured(case_id)) - failed
        missing = max(0, ANSWERS_EACH * failed - answers)
        if missing and failed > MOST_CLEARED:
            missing = PROBES
        found[case_id] = missing
    return found


# --- confirmation ---------------------------------------------------------------------------------


def probes(comparison: Comparison, *, whole: bool = False) -> tuple[Request, ...]:
    """Return the reruns of failing cases that are still missing: at first a few, then all; ``whole``: all at once.

    They are interleaved with cases that answered, and with the base's agent if it can be run.
    """
    failing = list(failures_by_case(comparison, confirming=False))[:MOST_PROBED]
    if not failing or comparison.settings.confirm_after is None:
        return ()
    n = min(MOST_EACH, max(2, -(-PROBES // len(failing))))
    others = _answering(comparison, len(failing))
    passes = n * list(zip_longest(failing, others))
    done = 0
    for trial in comparison.trials:
        done += trial.tag == PROBE and trial.side is Side.CANDIDATE and trial.case_id in failing
    passes = passes[done : None if done or whole else FIRST_PROBES]
    requests = []
    for start in range(0, len(passes), len(failing)):
        part = passes[start : start + len(failing)]
        cases = tuple([case_id for case_id in chain.from_iterable(part) if case_id is not None])
        requests.append(Request(Side.CANDIDATE, PROBE, cases, 1))
        paired = tuple([case_id for case_id, _ in part if case_id in comparison.with_baseline])
        if comparison.settings.rerun != "never" and paired:
            requests.append(Request(Side.BASELINE, PROBE, paired, 1))
    return tuple(requests)


def _answering(comparison: Comparison, n: int) -> Sequence[str]:
    """Return ``n`` cases that always answered, spread over the suite."""
    ids = []
    for case in comparison.judged:
        trials = [trial for trial in comparison.measured(case.id) if trial.tag != PROBE]
        if trials and all(trial.answered for trial in trials):
            ids.append(case.id)
    return spread(ids, n)


def spread(ids: Sequence[str], n: int) -> Sequence[str]:
    """Return ``n`` of the cases, spread over the suite; all if there are fewer."""
    return ids[:: max(1, len(ids) // n)][:n]


def probed(comparison: Comparison) -> bool:
    """True if the failures were rerun."""
    return any(trial.tag == PROBE for trial in comparison.trials)


def unconfirmed(comparison: Comparison) -> Finding | None:
    """Return the reason the failures that a block needs do not show the agent to be at fault; None if they do.

    The cases were picked by failures before the confirmation. Within the confirmation, trouble of the provider affects
    them no more than cases that answered, or the base commit's agent: Fisher's test on these trials alone.
    """
    failed = count_failed(trial for trial in comparison.errors if trial.tag != PROBE)
    asked = [trial for trial in comparison.trials if trial.tag == PROBE]
    if not asked:
        return Finding.of("agent_fails", failed=failed, why="nothing_rerun")
    picked = failures_by_case(comparison, confirming=False)
    now: list[Trial] = []
    others: list[Trial] = []
    base: list[Trial] = []
    lost = 0
    for trial in asked:
        if not trial.measured:
            lost += 1
        elif trial.case_id not in picked:
            if trial.side is Side.CANDIDATE:
                others.append(trial)
        elif trial.side is Side.CANDIDATE:
            now.append(trial)
        else:
            base.append(trial)
    if lost > MOST_LOST * len(asked):
        return Finding.of("agent_fails", failed=failed, why="lost", lost=lost, trials=len(asked))
    beside = base or others
    if beside and _p_of_answering_less(now, beside) <= _level(comparison):
        if base:
            return None
        return _slowed_down(comparison, others, failed)
    if not count_failed(now):
        return Finding.of("agent_fails", failed=failed, why="gone", trials=len(now))
    return Finding.of(
        "agent_fails",
        failed=failed,
        why="perhaps_provider",
        failed_again=count_failed(now),
        trials=len(now),
        other_failed=count_failed(beside),
        other_trials=len(beside),
        at_base=bool(base),
    )


def _level(comparison: Comparison) -> float:
    """Return the level of this look at the confirmation."""
    if probes(comparison):
        return FIRST_SHARE * comparison.settings.own_alpha
    return comparison.settings.own_alpha


def _p_of_answering_less(now: Sequence[Trial], beside: Sequence[Trial]) -> float:
    """Return the probability of answering this much less often than the others if both are alike."""
    return fisher_less(_count_answered(now), len(now), _count_answered(beside), len(beside))


_OF_PROVIDER = re.compile(
    r"\b(429|503|529)\b|overloaded|rate.?limit|too many requests|service unavailable|temporarily unavailable", re.I
)
"""Messages of a provider that is temporarily unable to answer."""


def is_of_provider(comparison: Comparison, why: Finding) -> bool:
    """True if no failure recurred and all of them look like the provider's."""
    if why["why"] != "gone":
        return False
    for case_id in failures_by_case(comparison):
        for trial in comparison.measured(case_id):
            if trial.failed and (trial.error is None or not _OF_PROVIDER.search(trial.error.message)):
                return False
    return True


def proven(comparison: Comparison) -> Finding | None:
    """Return the finding that the confirmation alone proves the candidate worse; None if it does not.

    The cases were picked only by the candidate's earlier failures, so for an unchanged agent their new trials are
    exchangeable with those stored at the baseline. `unconfirmed` must also rule out the provider.
    """
    now: list[Trial] = []
    then: list[Trial] = []
    for case_id in failures_by_case(comparison, confirming=False):
        now += [trial for trial in comparison.measured(case_id) if trial.tag == PROBE]
        then += comparison.of_base(case_id)
    if not now or not then or unconfirmed(comparison):
        return None
    p = _p_of_answering_less(now, then)
    if p > CRASH_SHARE * _level(comparison):
        return None
    return Finding.of("agent_fails", Verdict.REGRESSED, why="confirmed", p=p)


def _slowed_down(comparison: Comparison, others: Iterable[Trial], failed: int) -> Finding | None:
    """Return a finding if answers slowed beyond the latency margin, which would explain the failures."""
    took, took_before = [], []
    for trial in others:
        known = []
        for stored in comparison.baseline.get(trial.case_id, ()):
            if stored.answered and stored.duration:
                known.append(stored.duration)
        if trial.answered and trial.duration and known:
            took.append(trial.duration)
            took_before.append(fmean(known))
    if not took:
        return None
    now, before = fmean(took), fmean(took_before)
    margins = [c.margin for c in comparison.criteria if c.scale is Scale.SECONDS and c.margin is not None]
    margin = min(margins, default=Scale.SECONDS.default_margin)
    if now - before <= MEASURABLE or now <= before * (1 + margin):
        return None
    return Finding.of("agent_fails", failed=failed, why="slowed_down", now=now, before=before)
