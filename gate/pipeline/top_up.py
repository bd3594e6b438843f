"""Further epochs on the default branch, once its verdict is known, so that later changes have enough to compare with.

How often a case is run says nothing of its outcomes: each is run as often as it is short of the target. The trials have
a tag of their own, so that they are no part of the verdict of the run that made them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gate.baselines.base import POOL
from gate.baselines.fingerprint import with_tools
from gate.baselines.pairing import pair, reference_to
from gate.baselines.union import run_ids, without
from gate.config.resolve import Plan
from gate.config.settings import goal_of, wanted_trials
from gate.errors import BaselineError, MeasureError
from gate.model import FULL, STORED, Side, SuiteResult, Trial, Verdict
from gate.model.finding import Finding
from gate.pipeline.budget import RunBudget
from gate.pipeline.execute import Job
from gate.pipeline.journal import only_number, take_back
from gate.pipeline.references import drift_in, runs_after
from gate.pipeline.session import Session, check_version, may_change
from gate.pipeline.trials import TrialRunner
from gate.pipeline.verdict import load_to_judge, with_stored
from gate.records import Record, RecordWriter
from gate.reports.formatting import count
from gate.security.environment import in_ci

FIT = (Verdict.PASS, Verdict.INCONCLUSIVE)
"""Verdicts of records that are worth more trials; the others have to be put right first."""


async def top_up(session: Session, plan: Plan, suite: SuiteResult, path: Path) -> SuiteResult:
    """Run the trials that a future baseline is short of. Returns the suite with what that took.

    The record stays closed, under the verdict that it has; what keeps it from its target is a note in it. Whatever ends
    this, the trials that were run are kept: the next run of this commit or of this agent goes on from there. Not so
    where nobody knows in the end which version of the agent answered.
    """
    if not _is_due(session, suite):
        return suite
    record, started = load_to_judge(path, criteria=plan.criteria), time.monotonic()
    footer = record.footer
    if footer is None or footer.stopped or record.header.runs:  # what is of several runs is no one's to go on with
        return suite
    try:
        wanted, epochs = _missing(session, plan, record)
    except BaselineError as error:
        return _with_note(suite, f"nothing further was run for later changes: {error}")
    if not epochs:
        return suite
    work = FurtherTrials(session, plan, "for later changes")
    is_one_version, changed = not may_change(session.config), ""
    with RecordWriter(path, record.header, resume=True, remember=only_number) as journal:
        try:
            await work.run(epochs, journal, f"storing {count(wanted, 'trial')} a case for later changes")
            changed = await _version_problem(session)
            is_one_version = not changed
        finally:
            if is_one_version:
                terms = _terms(footer.terms, work.note)
                journal.finish(
                    duration=time.monotonic() - started,
                    judge_cost_usd=work.judge_cost_usd,
                    judges=work.judges,
                    terms=terms,
                )
            else:
                take_back(path)
    if changed:
        return _with_note(suite, f"what was run for later changes is not kept: {changed}")
    return with_stored(_with_note(suite, work.note), load_to_judge(path, criteria=plan.criteria))


def kept_epochs(session: Session) -> int:
    """Return how many epochs the run will have made when it ends; 0: as many as its verdict needs."""
    return wanted_trials(session.config) if makes_baseline(session) else 0


def _is_due(session: Session, suite: SuiteResult) -> bool:
    """True if the record is the default branch's or a release's, and fit to be stored."""
    return makes_baseline(session) and suite.verdict in FIT


def makes_baseline(session: Session) -> bool:
    """True if this run fills the stored baseline: it was asked to, or it is the CI job of the default branch."""
    where, asked = session.where, session.options.fills_baseline
    if asked is None:
        asked = in_ci(session.environment) and where.anchored and where.head is not None
    return asked and not where.dirty and session.store is not None and wanted_trials(session.config) > 0


async def _version_problem(session: Session) -> str:
    """Return why the version of the last answers is unknown; empty if the version is the same."""
    try:
        await check_version(session)
    except MeasureError as error:
        return str(error)
    return ""


def _with_note(suite: SuiteResult, note: str) -> SuiteResult:
    return replace(suite, warnings=(*suite.warnings, Finding.of("stated", text=note))) if note else suite


def _terms(terms: Mapping[str, Any], note: str) -> Mapping[str, Any]:
    return {**terms, "notes": [*terms.get("notes", ()), note]} if note else terms


class FurtherTrials:
    """Runs epochs that are no part of a schedule, and knows what they cost and what ended them early."""

    def __init__(self, session: Session, plan: Plan, purpose: str) -> None:
        """``purpose`` follows "24 runs" in the note that they ended early."""
        self._session, self._plan, self._purpose = session, plan, purpose
        self.judge_cost_usd: float | None = None
        self.judges: Mapping[str, tuple[str, ...]] = {}
        self.note = ""

    async def run(self, epochs: Sequence[Sequence[Job]], journal: RecordWriter, why: str) -> None:
        session = self._session
        session.run_budget.stopped = ""  # asked anew before each trial
        runs, done = sum(map(len, epochs)), 0
        epochs, short = _affordable(epochs, session.run_budget)
        session.progress.plan(self._plan.suite.id, sum(map(len, epochs)), why)
        config, run_id = session.config, journal.header.run_id
        async with TrialRunner(
            config, self._plan, session.environment, session.run_budget, run_id=run_id, version=session.version
        ) as runner:
            try:
                async for trial in runner.record([job for jobs in epochs for job in jobs], journal):
                    session.progress.trial(trial)
                    done += 1
            except MeasureError as error:  # the verdict stands, and the next run on this branch goes on
                self.note = str(error)
            finally:
                self.judge_cost_usd, self.judges = runner.judge_cost_usd, runner.judges
        if ended := self.note or session.run_budget.stopped or short:
            self.note = f"{done:,} of {count(runs, 'run')} {self._purpose} were made: {ended}"


def _affordable(epochs: Sequence[Sequence[Job]], budget: RunBudget) -> tuple[Sequence[Sequence[Job]], str]:
    """Return the whole epochs that ``budget.runs`` has room for, and why others are left out."""
    left = budget.runs_left
    for whole, jobs in enumerate(epochs):
        if left is not None and len(jobs) > left:
            return epochs[:whole], f"budget.runs ({budget.limits.runs}) has no room for another whole epoch"
        left = None if left is None else left - len(jobs)
    return epochs, ""


def _missing(session: Session, plan: Plan, record: Record) -> tuple[int, list[list[Job]]]:
    """Return how many trials a case is to have, and the missing jobs by epoch, each a round of its own.

    So an outage spoils only one.
    """
    records = [record, *_pooled(session, plan, record)]
    records = list(runs_after(records, drift_in(records)))  # what was run before the provider moved is not pooled
    reference = reference_to(records, None, distance=None, source="")
    later = pair(plan.planned, plan.criteria, reference).trials  # what a change would be compared with
    later = tuple(trial for trial in later if trial.measured and trial.tag == FULL)
    have = Counter(trial.case_id for trial in later)
    wanted = _wanted(session, plan, record, later)
    return wanted, epochs_short_of(plan, record, have, wanted)


def _wanted(session: Session, plan: Plan, record: Record, later: Sequence[Trial]) -> int:
    """Return how many trials a case is to have after this run.

    A run leaves so many of its own at most. Where other runs of this agent are stored, it adds them to theirs, until
    they are enough: for the goal, and for an unchanged agent to pass.
    """
    each, goal = wanted_trials(session.config), goal_of(session.config)
    if goal is None:
        return each
    own = set(run_ids(record))
    others = Counter(trial.case_id for trial in later if trial.run not in own)
    known = min((others[case.id] for case in record.header.plan), default=0)
    if not known:
        return each
    settings = session.settings
    from gate.decision.power import rates_of, stored_enough  # weight: only where a goal is set

    rates = rates_of(later, plan.criteria, plan.cases)
    margin = settings.pass_rate_margin
    enough = stored_enough(rates, goal, alpha=settings.own_alpha, epochs=settings.looks, margin=margin)
    return max(each, min(known + each, enough))


def epochs_short_of(plan: Plan, record: Record, have: Counter[str], wanted: int) -> list[list[Job]]:
    """Return the jobs that bring each case of a record's shard to so many trials, numbered after its own."""
    shard = record.header.shard[0]
    numbers = Counter[str]()
    for trial in record.trials:
        if trial.side is Side.CANDIDATE:
            numbers[trial.case_id] = max(numbers[trial.case_id], trial.number)
    last = max((trial.round for trial in record.trials), default=0)
    epochs: list[list[Job]] = []
    for case in record.header.plan:
        if case.shard != shard:
            continue
        for n in range(1, wanted - have[case.id] + 1):
            if n > len(epochs):
                epochs.append([])
            epochs[n - 1].append(Job(plan.cases[case.id], numbers[case.id] + n, last + n, STORED))
    return epochs


def _pooled(session: Session, plan: Plan, record: Record) -> Sequence[Record]:
    """Return the stored records of this commit, and earlier ones of the same agent."""
    where, store = session.where, session.store
    assert store is not None
    commits = dict.fromkeys(filter(None, (where.head, *where.ancestors)))
    found = store.find(plan.suite.id, tuple(commits))
    if found is None:
        return ()
    own = set(run_ids(record))
    records = []
    for stored in found.records:
        left = without(stored, own)
        if left is not None:
            records.append(left)
    agent = with_tools(record.header.agent, record.trials)
    if found.commit == where.head:
        return [one for one in records if not agent or one.header.agent == agent]
    return [one for one in records if agent and one.header.agent == agent][: POOL - 1]
