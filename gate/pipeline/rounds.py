"""The rounds of one suite: get the next trials from the schedule, run the missing ones, and keep them.

On the default branch, further epochs follow, so that later changes have enough trials to compare with. They come before
the verdict, and whole epochs count in it. Their number does not depend on outcomes: each case is run as often as it is
short of the target. A suite that falls short is not worth more trials: it has to be fixed first.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from statistics import fmean

from msgspec.structs import replace

from gate.baselines.base import POOL
from gate.baselines.fingerprint import with_tools
from gate.baselines.pairing import excuses, pair, reported_before
from gate.baselines.reference import BASE_EPOCHS, Reference, reference_to, unmeasured, useless, with_base
from gate.baselines.union import run_ids
from gate.config.resolve import Plan
from gate.config.schema import BudgetSection
from gate.config.settings import goal_of, wanted_trials
from gate.decision import CONCURRENT, Comparison, More, Request, confirmation, next_round, next_step, trials_in_outage
from gate.decision.next_step import MOST_RETRIES
from gate.decision.outages import LEAST_IN_VAIN
from gate.decision.rules import regressed_ago
from gate.decision.settings import MOST_ADDED
from gate.decision.stored_epochs import rounds_of_outages
from gate.errors import BaselineError, ConfigError, GateError, MeasureError
from gate.model import BASE, FULL, STORED, Side, Trial, Verdict
from gate.pipeline.execute import Job
from gate.pipeline.launch import BaseAgent
from gate.pipeline.references import since_last_move
from gate.pipeline.session import Session
from gate.pipeline.trials import BaseStartError, Replayer, TrialRunner, check_executor
from gate.pipeline.verdict import left_out_by
from gate.records import Header, PlannedCase, Record, RecordWriter, assign_shards
from gate.reports.formatting import count

Slot = tuple[Side, str, str]
"""Side, tag and case of a trial."""


MORE_EPOCHS = 2
"""Factor on the usual maximum of epochs for a change that was once measured as regressed and has not passed since."""


def _rerun_of_base(session: Session, base: BaseAgent, own: Reference, *, ran_beside: bool) -> str:
    """Return how the base commit's agent is run again; ``ran_beside``: it already ran.

    Raises:
        ConfigError: it has to be run, and cannot be.
    """
    where, wanted = session.where, session.config.file.baseline.rerun
    is_itself = where.head is not None and not where.dirty and own.commit == where.head
    if is_itself or base.mixed_with_change:  # as every night: running both sides would excuse drift
        return "never"
    if base.beside or (ran_beside and own.beside):
        return "never" if base.options is None else "beside"
    if wanted == "never":
        return "never"
    if base.options is not None:
        return "match"
    if wanted == "match":
        raise ConfigError(
            "baseline.rerun: match needs the base commit's agent, and it cannot be run here",
            where=str(session.config.path),
            hint="it needs a python: or command: agent, and a stored baseline whose commit is in this clone",
        )
    return "never"


class Numbers:
    """Hands out trial numbers by case and side, starting with those that an earlier session did not finish.

    A kill loses the trials in flight, which need not have the last numbers. Each number has a separate recording, from
    which its calls may be answered.
    """

    def __init__(self, resumed: Iterable[Trial]) -> None:
        self._taken = {(trial.case_id, trial.side, trial.number) for trial in resumed}
        self._last = Counter[tuple[str, Side]]()

    def next(self, case_id: str, side: Side) -> int:
        place = case_id, side
        self._last[place] += 1
        while (*place, self._last[place]) in self._taken:
            self._last[place] += 1
        return self._last[place]


class SuiteRun:
    """The rounds of one suite: trials of an earlier session count, and missing ones are run."""

    def __init__(
        self,
        session: Session,
        plan: Plan,
        references: Sequence[Reference],
        journal: RecordWriter,
        runner: TrialRunner,
        base: BaseAgent,
        earlier: tuple[Verdict, ...],
    ) -> None:
        self.session, self.plan, self.journal, self.runner = session, plan, journal, runner
        self.settings = replace(session.settings, kept_epochs=session.kept_epochs)
        if regressed_ago(earlier):  # only a pass clears it, so an inconclusive run goes on longer
            self.settings = replace(self.settings, max_epochs=MORE_EPOCHS * self.settings.max_epochs)
        self.base, self._references = base, references
        self._of_base = [trial for trial in journal.resumed if trial.tag == BASE]
        """Trials that take the place of a stored baseline."""
        self.notes: tuple[str, ...] = ()
        """Notes on how the base commit's agent did."""
        rerun = _rerun_of_base(session, base, references[0], ran_beside=bool(self._of_base))
        self.settings = replace(self.settings, rerun=rerun)
        check_executor(session.config, plan)
        self._pair()
        if runner.world is not None and not session.where.anchored:
            runner.world.couple(self.comparisons[0].stored)  # a baseline is always measured anew
        self.trials: list[Trial] = []
        """Redacted trials, without their messages, which are in the record."""
        self._earlier = [trial for trial in journal.resumed if trial.tag != BASE]
        self._numbers = Numbers(journal.resumed)

    def _pair(self) -> None:
        """Pair the plan with its references, as far as they are known by now."""
        plan, header, where = self.plan, self.journal.header, self.session.where
        references = with_base(header, self._of_base, self._references)
        self.comparisons: list[Comparison] = []
        for reference in references:
            left_out = left_out_by(plan.selection, plan.deselected, plan.planned, reference)
            paired = pair(plan.planned, plan.criteria, reference, deselected=left_out)
            known = replace(
                paired,
                cases=plan.suite.cases,
                seed=header.seed,
                suite_id=plan.suite.id,
                selected=bool(plan.deselected),
                excuses=excuses(reference, header) and not (where.anchored or where.release),
            )
            self.comparisons.append(known)
        self.reported = any(reported_before(header, one) for one in references)

    async def measure(self) -> None:
        """Measure the cases of a shard, or else whatever the verdict needs."""
        if self.session.config.agent_kind == "replay":
            await self._replay_trials()
        elif self.session.options.is_shard:
            await self._measure_shard()
        else:
            if self.base.beside:
                step = next_round(self._comparison(0))
                if step is not None:
                    await self._round(step)
                await self._run_base()
            await self._follow_schedule()

    async def _follow_schedule(self) -> None:
        """Run trials until the verdict is known against each reference, or a regression is proven."""
        last = len(self.comparisons) - 1
        for number in range(last + 1):
            step = next_round(self._comparison(number))
            while step is not None:
                before = len(self.trials), self.settings.rerun
                await self._round(step)
                if before == (len(self.trials), self.settings.rerun) and not self.session.run_budget.stopped:
                    raise MeasureError(f"a round ({step.why}) produced no trial", hint="please report this bug")
                step = next_round(self._comparison(number))
            if number < last and next_step(self._comparison(number)) is Verdict.REGRESSED:
                return

    async def _run_base(self) -> None:
        """Run the base commit's agent in place of a stored baseline.

        It runs after the change's first round, which shows that there is something to compare and how much a run uses.
        """
        budget, config = self.session.run_budget, self.session.config
        jobs = self._jobs_of_base()
        if jobs and not budget.stopped and any(trial.answered for trial in self.trials):
            lacking = budget.lacks(len(jobs))
            if lacking:
                self._tell(f"was not run beside: {lacking} has no room for {count(len(jobs), 'run')} of it")
                return
            why = "the base commit's agent, as no baseline is stored"
            self.session.progress.plan(self.plan.suite.id, len(jobs), why)
            try:
                for part in in_turn([jobs], config.agent.concurrency):
                    if part and not base_is_silent(self._of_base):
                        await self._run(part, self._of_base)
            except GateError as error:  # the change is then judged by thresholds
                self._tell(f"could not be run beside: {error}")
        if self._of_base:
            why = useless(self.journal.header, self._of_base)
            if why:
                self._tell(f"is no yardstick: {why}")
            else:
                for name, why in unmeasured(self.journal.header, self._of_base).items():
                    self._tell(f"is no yardstick for {name}: {why}")
        if self.settings.runs is not None:
            self.settings = replace(self.settings, runs=max(0, self.settings.runs - len(self._of_base)))
        self._pair()

    def _tell(self, what: str) -> None:
        self.notes = (*self.notes, f"no baseline is stored, and the base commit's agent {what}")

    def _jobs_of_base(self) -> list[Job]:
        """Return the missing jobs of the base commit's agent, epoch by epoch."""
        done, found = Counter([trial.case_id for trial in self._of_base]), []
        for epoch in range(BASE_EPOCHS):
            for case_id in self.own_cases:
                if case_id not in self.settings.quarantine and done[case_id] <= epoch:
                    number = self._numbers.next(case_id, Side.BASELINE)
                    found.append(Job(self.plan.cases[case_id], number, 1, BASE, Side.BASELINE))
        return found

    @property
    def own_cases(self) -> tuple[str, ...]:
        """Return the cases of this shard; all cases if the suite is not divided."""
        return self.journal.header.own_cases

    async def _measure_shard(self) -> None:
        """Run every case of this shard as often as the schedule might, which needs the results of the others."""
        index, total = self.journal.header.shard
        request = Request(Side.CANDIDATE, FULL, self.own_cases, self.session.settings.most_epochs)
        await self._round(More((request,), f"shard {index} of {total}", 1))
        if self.base.beside:
            await self._run_base()
        # `gate merge` will need another round of crashing cases, and only this shard can run its own.
        cases, before = [self.plan.cases[case_id] for case_id in self.own_cases], self.comparisons[0].stored
        step = confirmation(Comparison(cases, self.plan.criteria, self.trials, before, self.settings))
        if step is not None:
            await self._round(step)

    async def run_stored_epoch(self, cases: tuple[str, ...], why: str) -> bool:
        """Run these cases once more for later changes, and then any trials that the verdict needs.

        Return True if all of them were measured.
        """
        number = max(trial.round for trial in self.trials) + 1
        await self._round(More((Request(Side.CANDIDATE, STORED, cases, 1),), why, number))
        for _ in range(MOST_RETRIES):
            lost = self._lost_in(number, cases)
            if not lost or self.session.run_budget.stopped:
                break
            request = Request(Side.CANDIDATE, STORED, lost, 1)
            await self._round(More((request,), "asking again what could not be measured", number, again=True))
        if self._lost_in(number, cases) or number in rounds_of_outages(self.trials):
            return False
        if not self.session.options.is_shard:
            await self._follow_schedule()
        return True

    def _lost_in(self, number: int, cases: Sequence[str]) -> tuple[str, ...]:
        """Return the cases that could not be measured in this round's epoch."""
        measured = set()
        for trial in self.trials:
            if trial.round == number and trial.tag == STORED and trial.measured:
                measured.add(trial.case_id)
        return tuple([case_id for case_id in cases if case_id not in measured])

    async def _replay_trials(self) -> None:
        """Score the recorded trials of this shard's cases; those of an earlier session are in the journal."""
        done = {(trial.case_id, trial.number) for trial in self.journal.resumed}
        jobs = [job for job in self._recorded_jobs() if (job.case.id, job.number) not in done]
        if not jobs:
            return
        self.session.progress.plan(self.plan.suite.id, len(jobs), "replaying recorded trials")
        if self.plan.judged:  # then trials are scored one by one, many at a time
            await self._run(jobs, self.trials)
        else:
            await self._replay_batches(jobs)

    def _recorded_jobs(self) -> list[Job]:
        """Return a job for each recorded trial, case by case, so that each case is sent once."""
        available = Counter(trial.case_id for trial in self.plan.suite.recorded)
        most = self.settings.exact_epochs or max(available.values(), default=0)
        if not most:
            raise MeasureError("the suite holds no recorded trials to replay", where=self.plan.suite.source)
        jobs = []
        for case_id in self.own_cases:
            for number in range(1, min(most, available[case_id]) + 1):
                jobs.append(Job(self.plan.cases[case_id], number))
        if self.session.config.file.budget != BudgetSection():
            jobs.sort(key=lambda job: job.number)  # if it runs out, whole epochs remain
        return jobs

    async def _replay_batches(self, jobs: Sequence[Job]) -> None:
        session = self.session
        replay = Replayer(session.config, self.plan, session.environment, session.run_budget, self.runner.redactor)
        async with aclosing(replay.run(jobs)) as parts:
            async for part in parts:
                self.journal.extend(part)
                for trial, _ in part:
                    session.progress.trial(trial)

    def _comparison(self, number: int) -> Comparison:
        """Return the comparison of the trials so far with the reference of this number.

        Later references need no trials of the base.
        """
        trials, settings = self.trials, self.settings
        if number > 0:
            trials = [trial for trial in trials if trial.side is Side.CANDIDATE]
            settings = replace(settings, rerun="never")
        return replace(
            self.comparisons[number],
            trials=trials,
            settings=settings,
            stopped=self.session.run_budget.stopped,
            reported=self.reported,
        )

    async def _round(self, step: More) -> None:
        """Take the trials of an earlier session, and run the missing ones."""
        have = [trial for trial in self._earlier if trial.round == step.round]
        self._earlier = [trial for trial in self._earlier if trial.round != step.round]
        self.trials += have
        done, lost = Counter[Slot](), Counter[Slot]()
        for trial in have:
            slot = trial.side, trial.tag, trial.case_id
            if trial.measured:
                done[slot] += 1
            else:
                lost[slot] += 1
        parts = [self._jobs(request, step, done, lost) for request in step.requests]
        missing = sum(map(len, parts))
        if step.pause and missing and not await self._pause(step):
            return
        if not step.pause and missing:
            if any(jobs and jobs[0].side is Side.CANDIDATE for jobs in parts):
                await self.runner.agent(Side.CANDIDATE)  # before anybody is told that it is asked
            self.session.progress.plan(self.plan.suite.id, missing, step.why)
        start = len(self.trials)
        turns: Sequence[Sequence[Job]] = parts
        if not step.pause:
            turns = in_turn(parts, self.session.config.agent.concurrency)
        for jobs in turns:
            of_base = bool(jobs) and jobs[0].side is Side.BASELINE
            in_vain = of_base and (self.settings.rerun == "never" or base_is_silent(self.trials[start:]))
            if not jobs or in_vain:
                continue
            try:
                await self._run(jobs, self.trials)
            except BaseStartError as error:
                if self.session.config.file.baseline.rerun == "match":
                    what = "baseline.rerun: match needs the base commit's agent, and it cannot be started"
                    raise ConfigError(f"{what}: {error.what}", where=error.where, hint=error.hint) from None
                self.settings = replace(self.settings, rerun="never")
                self.notes = (*self.notes, f"the base commit's agent is not run again: {error}")

    def _jobs(self, request: Request, step: More, done: Counter[Slot], lost: Counter[Slot]) -> list[Job]:
        """Return the missing jobs of a request, epoch by epoch, so that a budget that runs out leaves whole epochs."""
        jobs = []
        for case_id in request.cases * request.n:
            slot = request.side, request.tag, case_id
            if done[slot] > 0:
                done[slot] -= 1
                continue
            again = step.again or lost[slot] > 0
            lost[slot] -= 1
            number = self._numbers.next(case_id, request.side)
            jobs.append(Job(self.plan.cases[case_id], number, step.round, request.tag, request.side, again))
        return jobs

    async def _pause(self, step: More) -> bool:
        """Wait as long as the step requires. Return False if the budget does not allow that."""
        run_budget = self.session.run_budget
        if run_budget.deadline is not None and time.monotonic() + step.pause >= run_budget.deadline:
            run_budget.stopped = f"the budget of minutes leaves no time to {step.why}"
            return False
        self.session.progress.plan(self.plan.suite.id, step.runs, f"{step.why}, in {step.pause:g} s", step.pause)
        await asyncio.sleep(step.pause)
        return True

    async def _run(self, jobs: Sequence[Job], into: list[Trial]) -> None:
        """Run these jobs, and add each trial to ``into`` as it finishes."""
        async for trial in self.runner.record(jobs, self.journal):
            into.append(self.journal.keep(trial))
            self.session.progress.trial(trial)


def base_is_silent(trials: Sequence[Trial]) -> bool:
    """True if the base's agent never answered in these trials of one round, so that the rest is skipped.

    In a round whose cases were picked by their outcomes, failures of the agent do not count as silence.
    """
    asked = 0
    for trial in trials:
        if trial.side is not Side.BASELINE:
            continue
        asked += 1
        is_silent = not trial.measured or (trial.failed and trial.tag in (FULL, CONCURRENT, BASE))
        if not is_silent:
            return False
    return asked >= LEAST_IN_VAIN


def in_turn(parts: Sequence[Sequence[Job]], each: int) -> list[Sequence[Job]]:
    """Return the jobs of both sides, alternating a few at a time, so that a move of the provider affects both.

    Jobs of the base alone are split into a few that show if it answers, and the rest.
    """
    if len(parts) < 2:
        if not parts or not parts[0] or parts[0][0].side is not Side.BASELINE:
            return list(parts)
        few = max(each, LEAST_IN_VAIN)
        return [parts[0][:few], parts[0][few:]]
    turns = []
    for start in range(0, max(map(len, parts)), each):
        for part in parts:
            chunk = part[start : start + each]
            if chunk:
                turns.append(chunk)
    return turns


# --- a part of the suite on each machine ----------------------------------------------------------


def assigned_to_shards(plan: Sequence[PlannedCase], reference: Reference, shards: int) -> tuple[PlannedCase, ...]:
    """Return the plan with a shard assigned to each case, balanced by the durations of the cases in the baseline."""
    if shards == 1:
        return tuple(plan)
    known = _durations(reference)
    return assign_shards([replace(case, hint=known.get(case.id)) for case in plan], shards)


def _durations(reference: Reference) -> Mapping[str, float]:
    """Return the mean seconds per trial by case, to the millisecond."""
    found: dict[str, list[float]] = defaultdict(list)
    for record in reference.records:
        for trial in record.trials:
            if trial.duration is not None and trial.error is None and trial.side is Side.CANDIDATE:
                found[trial.case_id].append(trial.duration)
    return {case_id: round(fmean(durations), 3) for case_id, durations in found.items()}


# --- an earlier session ---------------------------------------------------------------------------


def ran_in_outage(
    session: Session, plan: Plan, references: Sequence[Reference], header: Header, trials: Sequence[Trial]
) -> Sequence[Trial]:
    """Return the trials of an earlier session that ran during an outage and must be run again.

    Recordings are never among them: they cannot change.
    """
    references = with_base(header, trials, references)
    trials = [trial for trial in trials if trial.tag != BASE]
    if not trials or session.config.agent_kind == "replay":
        return ()
    cases = [plan.cases[case_id] for case_id in header.own_cases]
    found = []
    for reference in references:
        known = replace(
            pair(plan.planned, plan.criteria, reference), cases=cases, trials=trials, settings=session.settings
        )
        if session.options.is_shard:  # few cases are no sample of the suite, so all must fail
            known = replace(known, stored=())
        found.append(trials_in_outage(known))
    return min(found, key=len)  # what counts against one of them counts


# --- epochs for later changes ---------------------------------------------------------------------


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
    records = found.without_runs(frozenset(run_ids(record.header))).records
    agent = with_tools(record.header.agent, record.trials)
    is_of_this_commit = found.commit == where.head
    if not agent:
        return records if is_of_this_commit else ()
    same = [one for one in records if one.header.agent == agent]
    return same if is_of_this_commit else same[: POOL - 1]
