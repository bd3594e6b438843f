"""Epochs that a run on the default branch always makes, so that later changes have enough trials to compare with.

They come before the verdict, and whole epochs count in it. The number of trials does not depend on outcomes: each case
is run as often as it is short of the target. A suite that falls short is not worth more trials: it has to be fixed
first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from gate.baselines.base import POOL
from gate.baselines.fingerprint import with_tools
from gate.baselines.pairing import pair
from gate.baselines.reference import reference_to
from gate.baselines.union import run_ids, without
from gate.config.resolve import Plan
from gate.config.settings import goal_of, wanted_trials
from gate.decision.settings import MOST_ADDED
from gate.errors import BaselineError, MeasureError
from gate.model import FULL, Trial, Verdict
from gate.pipeline.past import since_last_move
from gate.pipeline.rounds import SuiteRun
from gate.pipeline.session import Session
from gate.records import Record
from gate.reports.formatting import count

FIT = (Verdict.PASS, Verdict.INCONCLUSIVE)
"""Verdicts of suites that are worth more trials."""


async def run_stored_epochs(run: SuiteRun, verdict: Callable[[], Verdict]) -> str:
    """Run the epochs that the stored baseline lacks, and after each one the trials that the verdict then needs.

    Return the reason why they ended early; empty if they did not. ``verdict`` judges the trials so far.
    """
    if verdict() not in FIT:
        return ""
    try:
        each, own = wanted_by_baseline(run.session, run.plan, Record(run.journal.header, tuple(run.trials)))
    except BaselineError as error:
        return f"nothing further was run for later changes: {error}"
    budget = run.session.run_budget
    made, ended = 0, ""
    missing = _missing(run, own)
    while missing:
        lacking = budget.lacks(len(missing) + budget.reserved)
        if lacking:
            ended = f"{lacking} has no room for another whole epoch"
            break
        before, nth = len(run.trials), each - max(missing.values()) + 1
        why = f"storing trial {nth} of {each} per case for later changes"
        try:
            is_measured = await run.run_stored_epoch(tuple(missing), why)
        except MeasureError as error:
            is_measured, ended = False, str(error)
        made += len(run.trials) - before
        if not is_measured:
            ended = ended or "the agent was down, or could not be measured"
        ended = budget.stopped or ended
        if ended:
            break
        if verdict() not in FIT:
            break
        missing = _missing(run, own)
    budget.stopped = ""
    if not ended:
        return ""
    runs = count(made + sum(_missing(run, own).values()), "run")
    return f"{made:,} of {runs} for later changes were made: {ended}; the verdict counts the whole epochs"


def _missing(run: SuiteRun, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return how many trials the cases of this shard are short of that have too few."""
    have = Counter(trial.case_id for trial in run.trials if trial.is_of_epoch and trial.measured)
    missing = {}
    for case_id in run.own_cases:
        if wanted[case_id] > have[case_id]:
            missing[case_id] = wanted[case_id] - have[case_id]
    return missing


def wanted_by_baseline(session: Session, plan: Plan, record: Record) -> tuple[int, Mapping[str, int]]:
    """Return the target number of trials per case for the baseline, and the number that this run should make, by case.

    Trials of other runs of this agent count. Call it once this run has made its first epoch.

    Raises:
        BaselineError: a stored record cannot be read.
    """
    records: Sequence[Record] = [record, *_pooled(session, plan, record)]
    records, _ = since_last_move(records)  # trials from before the provider moved are not pooled
    compared = pair(plan.planned, plan.criteria, reference_to(records)).stored  # what a change would be compared with
    later = [trial for trial in compared if trial.measured and trial.tag == FULL]
    own = set(run_ids(record.header))
    others = Counter(trial.case_id for trial in later if trial.run not in own)
    stored = {case.id: others[case.id] for case in record.header.plan}
    each = _wanted_of_each(session, plan, later, min(stored.values(), default=0))
    return each, {case_id: each - have for case_id, have in stored.items()}


def _wanted_of_each(session: Session, plan: Plan, later: Sequence[Trial], stored: int) -> int:
    """Return the target number of trials per case; ``stored``: the fewest per case from other runs.

    Without a goal or other runs it is `wanted_trials`. Else a run adds up to `MOST_ADDED` to the others' trials, until
    there are enough for the goal and for an unchanged agent to pass.
    """
    each, goal = wanted_trials(session.config), goal_of(session.config)
    if goal is None or not stored:
        return each
    from gate.decision.power import rates_of, stored_enough  # weight: only where a goal is set

    enough = stored_enough(rates_of(later, plan.criteria, plan.cases), goal, session.settings)
    return max(each, min(stored + MOST_ADDED, enough))


def _pooled(session: Session, plan: Plan, record: Record) -> Sequence[Record]:
    """Return the other stored records of this commit, or earlier ones of the same agent."""
    where, store = session.where, session.store
    assert store is not None
    commits = dict.fromkeys(filter(None, (where.head, *where.ancestors)))
    found = store.find(plan.suite.id, tuple(commits))
    if found is None:
        return ()
    own = set(run_ids(record.header))
    records = []
    for stored in found.records:
        left = without(stored, own)
        if left is not None:
            records.append(left)
    agent = with_tools(record.header.agent, record.trials)
    is_of_this_commit = found.commit == where.head
    if not agent:
        return records if is_of_this_commit else ()
    same = [one for one in records if one.header.agent == agent]
    return same if is_of_this_commit else same[: POOL - 1]
