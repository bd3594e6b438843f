"""The record level: from the trials of a suite to the trials wanted next, or to its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.compare import Comparison, Owed, Settings, error_share, passes, to_state, with_outcomes
from gate.decision.consistency import compared, lacks_pairs
from gate.decision.findings import Finding
from gate.decision.results import conclude
from gate.decision.rules import hard_failures, judge
from gate.decision.state import FULL, Outcome, Request
from gate.decision.thresholds import hopeless, passes_to_prove
from gate.decision.unseen import without_unseen
from gate.model import Case, Criterion, Side, SuiteResult, Trial, Verdict

MOST_RETRIES = 2
"""Rounds that run again the cases of which no trial could be measured."""


class More(Struct, frozen=True):
    """Undecided: these trials are wanted, all in one round."""

    requests: tuple[Request, ...]
    round: int
    """The number for their trials' ``round``."""
    why: str

    @property
    def runs(self) -> int:
        return sum(request.runs for request in self.requests)


def next_step(
    cases: Sequence[Case],
    criteria: Sequence[Criterion],
    trials: Sequence[Trial],
    baseline_trials: Sequence[Trial],
    *,
    settings: Settings,
    seed: int = 0,
    suite_id: str = "",
    not_comparable: Mapping[tuple[str, str], str] | None = None,
    can_run: bool = True,
    stopped: str = "",
    reported: bool = False,
    selected: bool = False,
) -> More | SuiteResult:
    """What to run next, or the verdict.

    ``trials`` are those of the rounds run so far, both sides, errors included; call it with whole rounds only, and a
    resumed run derives the same requests. ``baseline_trials`` are the stored ones; empty means that there is no
    baseline. ``not_comparable``: (case id, criterion name) → why.

    ``can_run=False`` judges what there is: trials of one round in one look, those of several as their schedule looked.
    ``stopped`` says why a run ends early (budget, clock): nothing more is asked for. ``reported``: the baseline shows
    that this agent reports its tool calls. ``selected``: a selection left cases of the suite out. The pipeline
    completes baseline, cost, duration and commit of the result.
    """
    trials = without_unseen(criteria, trials, reported=reported)
    comparison = _comparison(cases, criteria, trials, baseline_trials, settings, not_comparable, selected)
    if can_run and not stopped and (again := _again(comparison)) is not None:
        return again
    outcome, wanted = _ask(comparison, seed, can_run=can_run, stopped=bool(stopped))
    found = [f for c in criteria if c.blocking for f in judge(comparison, c, None)]
    settled = _settled(comparison, found)
    if wanted is None and not settled:
        wanted = _for_thresholds(comparison, outcome, found, can_run=can_run and not stopped)
    if wanted is not None and not settled and wanted.runs:  # a round without a trial would be asked for again for ever
        return wanted
    if wanted is not None:
        outcome, _ = _ask(comparison, seed, can_run=can_run, stopped=True)
    return replace(conclude(comparison, outcome, stopped), suite_id=suite_id, seed=seed)


def verdict_on(
    cases: Sequence[Case],
    criteria: Sequence[Criterion],
    trials: Sequence[Trial],
    baseline_trials: Sequence[Trial],
    *,
    settings: Settings,
    seed: int = 0,
    suite_id: str = "",
    not_comparable: Mapping[tuple[str, str], str] | None = None,
    owed: Owed | None = None,
    scheduled: bool = False,
    stopped: str = "",
    reported: bool = False,
    selected: bool = False,
) -> SuiteResult:
    """The verdict on these trials as they stand; arguments as of `next_step`.

    ``owed``: what the baseline measured and these trials do not let us compare.
    ``scheduled``: the schedule was followed with these settings, so the trials are looked at where it looked at them.
    Otherwise trials of one round are looked at once.
    """
    trials = without_unseen(criteria, trials, reported=reported)
    comparison = _comparison(cases, criteria, trials, baseline_trials, settings, not_comparable, selected, owed)
    outcome, _ = _ask(comparison, seed, can_run=scheduled, stopped=True)
    return replace(conclude(comparison, outcome, stopped), suite_id=suite_id, seed=seed)


def _comparison(
    cases: Sequence[Case],
    criteria: Sequence[Criterion],
    trials: Sequence[Trial],
    baseline_trials: Sequence[Trial],
    settings: Settings,
    not_comparable: Mapping[tuple[str, str], str] | None,
    selected: bool,
    owed: Owed | None = None,
) -> Comparison:
    now, before = (compared(cases, criteria, side, settings.quarantine) for side in (trials, baseline_trials))
    by_id, apart = {case.id: case for case in cases}, dict(not_comparable or {})
    now, before = with_outcomes(now, by_id, criteria), with_outcomes(before, by_id, criteria, apart)
    return Comparison(
        tuple(cases), tuple(criteria), now, before, settings, apart, selected=selected, owed=owed or Owed()
    )


def _again(comparison: Comparison) -> More | None:
    """What crashed in the first pass, once more: a passing trouble leaves no case unmeasured.

    Before anything is looked at, so that each look is taken once.
    """
    settings = comparison.settings
    silent = [case.id for case in comparison.judged if _silent(comparison, case)]
    if not silent or len(comparison.retries) >= MOST_RETRIES or error_share(comparison) > settings.max_error_rate:
        return None
    if any(hard_failures(comparison, c) for c in comparison.criteria if c.hard and c.blocking):
        return None
    if settings.runs is not None and len(comparison.trials) + len(silent) > settings.runs:
        return None
    request = Request(Side.CANDIDATE, FULL, tuple(silent), 1)
    return More((request,), _next_round(comparison), "once more what could not be measured")


def _silent(comparison: Comparison, case: Case) -> bool:
    """Whether the one trial of a case failed, and none in its place could be measured."""
    return len(comparison.scheduled(case.id)) == 1 and not comparison.measured(case.id)


def _ask(comparison: Comparison, seed: int, *, can_run: bool, stopped: bool) -> tuple[Outcome | None, More | None]:
    """The engine's answer on the pairing; a first pass where nothing is paired or nothing was run."""
    if not comparison.paired:
        return None, None
    from gate.decision.engine import decide  # weight: only where there is a baseline

    step = decide(to_state(comparison, seed=seed, can_run=can_run, stopped=stopped))
    if isinstance(step, Outcome):
        return step, None
    requests = tuple(_whole(comparison, r) for r in step.requests)
    return None, More(requests, _next_round(comparison), step.why)


def _whole(comparison: Comparison, request: Request) -> Request:
    """A full pass takes in the cases outside the pairing too; those in quarantine once, to see whether they healed."""
    if request.tag != FULL:
        return request
    first = not comparison.trials
    ids = tuple(case.id for case in (comparison.cases if first else comparison.judged))
    return replace(request, cases=ids)


def _next_round(comparison: Comparison) -> int:
    return max((t.round for t in comparison.trials), default=0) + 1


def _settled(comparison: Comparison, found: Sequence[Finding]) -> bool:
    """Whether something stands that no further trial can change: hard failure, missed threshold, too many errors."""
    if not comparison.trials:
        return False
    return any(f.settles for f in found) or error_share(comparison) > comparison.settings.max_error_rate


def _for_thresholds(
    comparison: Comparison, outcome: Outcome | None, found: Sequence[Finding], *, can_run: bool
) -> More | None:
    """A further full pass while a threshold is undecided: the whole schedule where there is no baseline."""
    settings = comparison.settings
    if not can_run or (outcome is not None and outcome.verdict == "REGRESSION"):
        return None
    done = passes(comparison)
    last = settings.exact_passes or settings.max_passes
    open_ = any(f.verdict is Verdict.INCONCLUSIVE for f in found)
    alone = lacks_pairs(comparison.criteria, comparison.trials)
    if done >= last:
        n = _extended(comparison) - done
    elif done and not open_ and not alone and settings.exact_passes is None:
        n = 0
    else:
        n = 1 if settings.exact_passes is None else settings.exact_passes - done
    if n <= 0:
        return None
    request = _whole(comparison, Request(Side.CANDIDATE, FULL, (), n))
    if settings.runs is not None and len(comparison.trials) + request.runs > settings.runs:
        return None
    return More((request,), _next_round(comparison), _why(done, alone))


def _extended(comparison: Comparison) -> int:
    """The full passes after which a threshold that no trial reaches would be proven missed: one round, one look."""
    settings = comparison.settings
    if not settings.extends or passes(comparison) > settings.max_passes:
        return 0
    hopeless_ = [c for c in comparison.criteria if c.blocking and hopeless(comparison, c)]
    needed = max((passes_to_prove(comparison, c) for c in hopeless_), default=0)
    return min(settings.longest_passes, max(needed, settings.max_passes + 1)) if needed else 0


def _why(done: int, alone: bool) -> str:
    if not done:
        return "screen"
    return "trials are compared with one another" if alone else "a threshold is undecided"
