"""The flow: config → suite → execute → score → record → decide → report. The stages live elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from gate import __version__
from gate.baselines import Store
from gate.baselines.fingerprint import of_agent, of_definition
from gate.baselines.pairing import Pairing, Reference, identity, pair, reported_before
from gate.config.base_policy import Rules, place_of
from gate.config.load import BudgetSection, Config
from gate.config.resolve import Plan, make_plans
from gate.config.settings import now, settings_of
from gate.decision import More, Request, Settings, confirmation, next_step, spoiled
from gate.errors import ConfigError, MeasureError
from gate.judges.meter import Budget as JudgeBudget
from gate.model import FULL, Result, Side, SuiteResult, Trial, Verdict
from gate.pipeline.execute import Job
from gate.pipeline.journal import SECRET_NAME, open_journal, redactor_of, without
from gate.pipeline.progress import Progress
from gate.pipeline.reference import REPORTS, GitContext, References, find_baselines, git_context, store_of
from gate.pipeline.replay import Replay, check_executor, waits
from gate.pipeline.shards import assigned, epochs_of, measured
from gate.pipeline.trials import RunBudget, TrialRunner
from gate.pipeline.verdict import MAX_SHOWN_CHARS, Terms, accepted, conclude, judge, load, outside, terms_of_plan
from gate.records import Header, RecordWriter, from_digest, to_record
from gate.reports.files import Outputs, check_outputs, write_reports
from gate.reports.formatting import count
from gate.scoring.batch import ScoringSetup
from gate.system.git import Git

Slot = tuple[Side, str, str]
"""Side, tag and case of a trial."""
LOCAL_KINDS = ("python", "command")
"""Kinds of agents whose source is here, so that it has a fingerprint and the base commit's can be run."""


class RunOptions(Struct, frozen=True):
    """What the command line says of one run, besides the configuration."""

    record_path: Path | None = None
    resume: bool = False
    shard: tuple[int, int] = (1, 1)
    command: str = "gate run"
    rules: Rules | None = None
    """Those that the configuration comes from, where it is held to a base commit's."""
    changed: tuple[str, ...] | None = None
    """What differed from the commit before anything was installed here; None: git is asked as the run begins."""
    origin: str = ""
    """Whose measurements lie where this run takes up the record of its commit, in words."""
    note: str = ""
    """What a reader should know of how this run came about."""
    anchored: bool | None = None
    """Whether to compare with the anchor too; None: where git says that this is the default branch."""
    release: str = ""
    """The tag that is to be released."""


class Session(Struct, frozen=True):
    """Everything that the suites of one run share."""

    config: Config
    options: RunOptions
    environment: Mapping[str, str]
    progress: Progress
    git: Git
    where: GitContext
    agent: str
    """The agent's fingerprint; empty where its source is elsewhere."""
    store: Store | None
    settings: Settings
    run_budget: RunBudget


async def run_gate(
    config: Config, options: RunOptions, outputs: Outputs, environment: Mapping[str, str], progress: Progress
) -> Result:
    """Measures every suite, decides, and writes the reports.

    Raises:
        GateError: what keeps the run from meaning anything; its exit code says which kind.
    """
    plans = make_plans(config, environment)
    if options.record_path is not None and len(plans) > 1:
        raise ConfigError("--record names one file, and there are several suites", hint="leave it out")
    suites, paths = [], []
    with ExitStack() as stack:
        stack.callback(progress.close)
        written = [path for path in (options.record_path, *outputs.wanted.values()) if path is not None]
        session = _open(config, options, environment, progress, stack, written)
        check_outputs(outputs)  # creates them, so the work tree has been looked at before
        _check_judged(plans, session.settings)
        for plan in plans:
            decided, path = await _run_suite(session, plan)
            suites.append(decided)
            paths.append(path)
    settings = session.settings
    if options.shard[1] > 1:  # nothing is decided, so nothing can be blocked for want of evidence
        settings = replace(settings, on_inconclusive="warn")
    result = conclude(suites, settings, command=options.command, record_paths=paths)
    return write_reports(result, outputs)


def _open(
    config: Config,
    options: RunOptions,
    environment: Mapping[str, str],
    progress: Progress,
    stack: ExitStack,
    written: Sequence[Path],
) -> Session:
    git = Git(config.root, environment=environment)
    root = git.root.resolve()
    left = [path.resolve().relative_to(root).as_posix() for path in written if path.resolve().is_relative_to(root)]
    where = git_context(config, git, left, changed=options.changed, anchored=options.anchored, release=options.release)
    budget = config.file.budget
    store = store_of(config, environment)
    if store is not None:
        stack.enter_context(store)
    return Session(
        config,
        options,
        environment,
        progress,
        git,
        where,
        _agent_fingerprint(config, git, environment, left),
        store,
        settings_of(config, now()),
        RunBudget(budget, JudgeBudget(max_calls=budget.judge_calls, usd=budget.usd)),
    )


def _agent_fingerprint(config: Config, git: Git, environment: Mapping[str, str], left: Sequence[str]) -> str:
    """Of the agent's files, its settings and the environment it sees, secrets aside; empty for an agent elsewhere.

    ``left`` are the files that this run leaves behind: they are none of the agent's.
    """
    if config.agent_kind not in LOCAL_KINDS:
        return ""
    env = config.agent.env
    seen = {name: environment.get(name) for name in env if env[name] is None and not SECRET_NAME.search(name)}
    settings = [config.agent.model_dump(mode="json"), config.file.setup, seen]
    own = (config.file.output, config.file.baseline.folder, REPORTS, *config.file.suite, config.path.name, *left)
    return of_agent(git, sources=config.agent.sources, exclude=own, settings=settings)


async def _run_suite(session: Session, plan: Plan) -> tuple[SuiteResult, Path]:
    """One suite: rounds of trials for as long as the schedule asks for them, then its verdict."""
    started = time.monotonic()
    _check_runs(session, plan)
    found = find_baselines(session.config, session.store, plan.suite.id, session.where, session.git)
    header = _header(session, plan, found.first)
    path, resume = session.options.record_path, session.options.resume
    with ExitStack() as stack:
        memory = Memory(plan)
        journal = stack.enter_context(
            open_journal(session.config, header, now(), path=path, resume=resume, remember=memory.keep)
        )
        taken_up = len(journal.resumed)
        left_out = Spoiled(session, plan, found.first, journal.header).among
        journal = stack.enter_context(without(journal, left_out, remember=memory.keep))
        if journal.resumed:  # this very run may be what is stored
            run_id = journal.header.run_id
            found = find_baselines(session.config, session.store, plan.suite.id, session.where, session.git, run_id)
        base = BaseTree(session, found.first, stack)
        async with TrialRunner(session.config, plan, session.environment, session.run_budget, base.root) as runner:
            run = SuiteRun(session, plan, found.all, journal, runner, base.possible, memory)
            await run.measure()
            judge_cost = runner.judge_cost_usd
        notes = (*_notes(session, plan, journal, taken_up), *found.notes, *filter(None, (base.note,)))
        terms = _terms(session, plan, run, notes, found)
        journal.finish(
            duration=time.monotonic() - started,
            judge_cost_usd=judge_cost,
            stopped=session.run_budget.stopped,
            terms=run.redactor.redact_json(terms.plain()),
        )
    if session.options.shard[1] > 1:
        return replace(run.part(), duration=time.monotonic() - started, judge_cost_usd=judge_cost), journal.path
    run.forget()
    record = load(journal.path, criteria=plan.criteria)
    return accepted(judge(record, found.all, terms), found.accepted), journal.path


def _terms(session: Session, plan: Plan, run: SuiteRun, notes: Sequence[str], found: References) -> Terms:
    """What the record is judged by, here and wherever it is shown again."""
    alone = session.options.shard[1] == 1
    return replace(
        terms_of_plan(plan, session.config, run.settings, notes=notes, rules=session.options.rules),
        scheduled=alone and session.config.agent_kind != "replay",
        command=session.options.command if alone else "",
        anchored=session.where.anchored,
        release=session.where.release,
        store=session.config.file.baseline.store,
        compared=tuple(map(identity, found.all)) if alone else (),
    )


def _check_judged(plans: Sequence[Plan], settings: Settings) -> None:
    """Refuses a run in which every case is in quarantine: whatever it measured, nothing would be judged."""
    cases = [case.id for plan in plans for case in plan.suite.cases]
    if all(case_id in settings.quarantine for case_id in cases):
        hint = "nothing was run; select others too, or end a quarantine"
        raise MeasureError(f"all {len(cases)} selected cases are in quarantine", where="quarantine", hint=hint)


def _check_runs(session: Session, plan: Plan) -> None:
    """Refuses a budget of runs that cannot cover the passes that a decision needs at least."""
    runs, passes = session.config.file.budget.runs, session.settings.exact_epochs or 1
    needed = passes * len(plan.suite.cases)
    if runs is not None and session.run_budget.launched + needed > runs and session.options.shard[1] == 1:
        what = f"budget.runs {runs} does not cover {passes} x {len(plan.suite.cases)} runs of {plan.suite.id!r}"
        raise MeasureError(
            what, where=str(session.config.path), hint="nothing was run; raise it, or select fewer cases"
        )


def _header(session: Session, plan: Plan, reference: Reference) -> Header:
    return Header(
        suite_id=plan.suite.id,
        plan=assigned(plan.planned, reference, session.options.shard[1]),
        criteria=plan.criteria,
        run_id=uuid4().hex,
        gate_version=__version__,
        commit=session.where.head,
        base_commit=session.where.base,
        dirty=session.where.dirty,
        agent=session.agent,
        seed=session.config.file.seed,
        shard=session.options.shard,
        epochs=_shard_epochs(session, plan),
        selected=bool(plan.deselected),
        scope=plan.scope,
        whole=plan.whole,
        created=now().timestamp(),
        definition=of_definition(session.config.agent_kind, session.config.agent.model_dump(mode="json")),
    )


def _shard_epochs(session: Session, plan: Plan) -> int:
    """How often this shard runs each of its cases, at least; 0 for a whole run, whose schedule decides that."""
    if session.options.shard[1] == 1:
        return 0
    if session.config.agent_kind != "replay":
        return epochs_of(session.config)
    recorded = Counter(trial.case_id for trial in plan.suite.recorded)
    fewest = min((recorded[case.id] for case in plan.suite.cases), default=0)
    return min(fewest, session.settings.exact_epochs or fewest)


def _notes(session: Session, plan: Plan, journal: RecordWriter, taken_up: int) -> tuple[str, ...]:
    """What a reader should know of how the result came together."""
    notes = [note for note in (session.options.note, session.where.note) if note]
    if again := taken_up - len(journal.resumed):
        notes.append(f"{count(again, 'trial')} of an earlier session were run in an outage and do not count")
    if journal.resumed:
        fresh = "" if session.run_budget.runs else "; nothing new was run"
        whose = f" of {session.options.origin}" if session.options.origin else ""
        notes.append(f"continues a record of {count(len(journal.resumed), 'trial')}{whose}{fresh}")
    runs = session.config.file.budget.runs
    if runs is not None and runs < len(plan.suite.cases):
        notes.append(f"budget.runs allows {runs} agent runs, and one pass over the suite takes {len(plan.suite.cases)}")
    if session.config.file.budget.usd is not None and session.run_budget.unpriced:
        notes.append("some trials do not tell what they cost: each counts as the dearest of the others")
    return tuple(notes)


class Spoiled(Struct, frozen=True):
    """Knows what of an earlier session was run in an outage."""

    session: Session
    plan: Plan
    reference: Reference
    header: Header

    def among(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """Those of these trials that are to be run again; none of recordings, which say what they say."""
        plan, shard = self.plan, self.header.shard
        if not trials or self.session.config.agent_kind == "replay":
            return ()
        own = {case.id for case in self.header.plan if case.shard == shard[0]}
        cases = [case for case in plan.suite.cases if case.id in own]
        paired = pair(plan.planned, plan.criteria, self.reference)
        before = paired.trials if shard[1] == 1 else ()  # few cases are no sample of the suite: all have to fail
        apart = paired.not_comparable
        settings = self.session.settings
        return spoiled(cases, plan.criteria, trials, before, settings=settings, not_comparable=apart)


class BaseTree:
    """The base commit's work tree, made when the schedule first asks for its agent and removed with the run."""

    def __init__(self, session: Session, reference: Reference, stack: ExitStack) -> None:
        self._session, self._stack = session, stack
        self._commit = reference.info.commit
        self._root: Path | None = None
        local = session.config.agent_kind in LOCAL_KINDS
        sourced = any(record.header.agent for record in reference.records)  # recorded people cannot be run again
        possible = bool(local and sourced and self._commit and session.git.resolve(self._commit))
        # With pointers in place of its files the base would do worse than it did, and hide what the change breaks.
        maimed = possible and session.git.has_only_pointers()
        self.possible = possible and not maimed
        self.note = "the base commit's agent is not run again: it has files in LFS, and git-lfs is not installed"
        self.note = self.note if maimed else ""

    def root(self) -> Path:
        """The configuration's folder as it was at the base commit."""
        if self._root is None:
            assert self._commit is not None
            tree = self._stack.enter_context(self._session.git.worktree(self._commit, content=True))
            self._root = tree / place_of(self._session.config.path)[1].parent
        return self._root


class Memory:
    """What stays in memory of a trial that is on disk, so that a run of any length fits."""

    def __init__(self, plan: Plan) -> None:
        self._room = MAX_SHOWN_CHARS
        self._cases, self._setup = plan.cases, ScoringSetup(plan.scorers)

    def keep(self, trial: Trial) -> Trial:
        """What stays of a trial that was run or read here."""
        return self.fit(from_digest(trial, self._setup.digest(trial, self._cases.get(trial.case_id))))

    def fit(self, kept: Trial) -> Trial:
        """What stays of a trial that is a digest already: its answers only where there is room."""
        chars = sum(len(turn.text) for turn in kept.invocations)
        if chars and self._room <= 0:
            return replace(kept, invocations=tuple(replace(turn, response=()) for turn in kept.invocations))
        self._room -= chars
        return kept


class SuiteRun:
    """The rounds of one suite: what was measured in an earlier session counts, what is missing is run."""

    def __init__(
        self,
        session: Session,
        plan: Plan,
        references: Sequence[Reference],
        journal: RecordWriter,
        runner: TrialRunner,
        can_rerun: bool,
        memory: Memory,
    ) -> None:
        self.session, self.plan, self.journal, self.runner, self.memory = session, plan, journal, runner, memory
        self.settings = session.settings
        if session.config.file.baseline.rerun == "auto" and can_rerun:
            self.settings = replace(self.settings, rerun="match")
        elif not can_rerun and self.settings.rerun != "never":
            raise ConfigError(
                f"baseline.rerun: {self.settings.rerun} needs the base commit's agent, and it cannot be run here",
                where=str(session.config.path),
                hint="it takes a python: or command: agent, and a stored baseline whose commit is in this clone",
            )
        check_executor(session.config, plan)
        self.pairings = [
            pair(
                plan.planned,
                plan.criteria,
                one,
                deselected=plan.deselected | outside(plan.selection, plan.planned, one),
            )
            for one in references
        ]
        self.reported = any(reported_before(journal.header, one) for one in references)
        self.redactor = redactor_of(session.environment)
        self.trials: list[Trial] = []
        """Redacted, and without what was said: that is in the record."""
        self._earlier = list(journal.resumed)
        self._numbers = Counter[tuple[str, Side]]()
        for trial in journal.resumed:  # some may have been left out
            place = trial.case_id, trial.side
            self._numbers[place] = max(self._numbers[place], trial.number)

    async def measure(self) -> None:
        """Everything that is needed for the verdict; for a shard, its cases."""
        if self.session.options.shard[1] > 1:
            await self._measure_shard()
        elif self.session.config.agent_kind == "replay":
            await self._replay_trials([case.id for case in self.plan.suite.cases])
        else:
            await self._follow_schedule()

    async def _follow_schedule(self) -> None:
        """Asks for trials until the verdict is known against each reference, or a regression is proven."""
        for number, paired in enumerate(self.pairings):
            while isinstance(step := self._next(paired, further=number > 0), More):
                before = len(self.trials)
                await self._round(step)
                if len(self.trials) == before and not self.session.run_budget.stopped:
                    raise MeasureError(f"a round ({step.why}) brought no trial", hint="this is a defect of the gate")
            if step.verdict is Verdict.REGRESSED:
                return

    @property
    def _own(self) -> tuple[str, ...]:
        """The cases of this shard."""
        header = self.journal.header
        return tuple(case.id for case in header.plan if case.shard == header.shard[0])

    async def _measure_shard(self) -> None:
        """Runs every case of this shard as often as the schedule may ask for."""
        index, total = self.journal.header.shard
        if self.session.config.agent_kind == "replay":
            await self._replay_trials(self._own)
        else:
            request = Request(Side.CANDIDATE, FULL, self._own, epochs_of(self.session.config))
            await self._round(More((request,), 1, f"shard {index} of {total}"))
            if (step := self._confirmation()) is not None:
                await self._round(step)

    def _confirmation(self) -> More | None:
        """What `gate merge` will need of this shard's cases if they crash: only here can they be run."""
        own, before = set(self._own), self.pairings[0].trials if self.pairings else ()
        cases = [case for case in self.plan.suite.cases if case.id in own]
        return confirmation(cases, self.plan.criteria, self.trials, before, settings=self.settings)

    def part(self) -> SuiteResult:
        """What a shard says of itself: it decides nothing."""
        header, config = self.journal.header, self.session.config
        found = measured(
            header.shard, self._own, self.trials, suite_id=self.plan.suite.id, seed=header.seed, config=config
        )
        costs = [usage.cost_usd for t in self.trials if (usage := t.usage) is not None and usage.cost_usd is not None]
        return replace(found, cost_usd=sum(costs) if costs else None, commit=self.session.where.head)

    def forget(self) -> None:
        """Lets go of the trials: the record has them."""
        self.trials = []
        self._earlier = []

    async def _replay_trials(self, ids: Sequence[str]) -> None:
        available = Counter(trial.case_id for trial in self.plan.suite.recorded)
        wanted = self.settings.exact_epochs or max(available.values(), default=0)
        if not wanted:
            raise MeasureError("the suite holds no recorded trials to replay", where=self.plan.suite.source)
        self.trials += self.journal.resumed  # one that was recorded as failed stays so
        done = {(trial.case_id, trial.number) for trial in self.trials}
        each = {case_id: range(1, min(wanted, available[case_id]) + 1) for case_id in ids}
        missing = sum(map(len, each.values())) - sum(n in each.get(case_id, ()) for case_id, n in done)
        jobs = (job for job in self._recorded_jobs(each, wanted) if (job.case.id, job.number) not in done)
        if waits(self.plan):
            await self._run(list(jobs), "replaying recorded trials")
        elif missing:
            await self._replay_batches(jobs, missing)
        order = {case_id: place for place, case_id in enumerate(ids)}
        self.trials.sort(key=lambda trial: (trial.number, order.get(trial.case_id, 0)))

    def _recorded_jobs(self, each: Mapping[str, range], wanted: int) -> Iterator[Job]:
        """Case by case, so that each is sent and read once; under a budget pass by pass, so that whole passes stay."""
        cases, budget = self.plan.cases, self.session.config.file.budget
        if budget == BudgetSection():
            return (Job(cases[case_id], number) for case_id, numbers in each.items() for number in numbers)
        passes = range(1, wanted + 1)
        return (Job(cases[case_id], n) for n in passes for case_id, numbers in each.items() if n in numbers)

    async def _replay_batches(self, jobs: Iterable[Job], trials: int) -> None:
        session, plan = self.session, self.plan
        session.progress.plan(plan.suite.id, trials, "replaying recorded trials")
        replay = Replay(session.config, plan, session.environment, session.run_budget, self.redactor)
        async with aclosing(replay.run(jobs, trials)) as parts:
            async for part in parts:
                self.journal.extend(part)
                for trial, _ in part:
                    self.trials.append(self.memory.fit(trial))
                    session.progress.trial(trial)

    def _next(self, paired: Pairing, *, further: bool) -> More | SuiteResult:
        """The next round that a reference asks for; the agent of a ``further`` one is not run again."""
        own = [trial for trial in self.trials if trial.side is Side.CANDIDATE] if further else self.trials
        return next_step(
            self.plan.suite.cases,
            self.plan.criteria,
            own,
            paired.trials,
            settings=replace(self.settings, rerun="never") if further else self.settings,
            seed=self.journal.header.seed,
            suite_id=self.plan.suite.id,
            not_comparable=paired.not_comparable,
            stopped=self.session.run_budget.stopped,
            reported=self.reported,
            selected=bool(self.plan.deselected),
        )

    async def _round(self, step: More) -> None:
        """One round: what an earlier session measured of it, and what is missing."""
        have = [trial for trial in self._earlier if trial.round == step.round]
        self._earlier = [trial for trial in self._earlier if trial.round != step.round]
        self.trials += have
        done, lost = (
            Counter((t.side, t.tag, t.case_id) for t in have if t.measured is measured) for measured in (True, False)
        )
        parts = [self._jobs(request, step, done, lost) for request in step.requests]
        if step.pause and any(parts) and not await self._let_pass(step):
            return
        for jobs in parts:
            await self._run(jobs, "" if step.pause else step.why)

    def _jobs(self, request: Request, step: More, done: Counter[Slot], lost: Counter[Slot]) -> list[Job]:
        """What of a request is missing: pass by pass, so that a budget that ends leaves whole passes."""
        jobs = []
        for case_id in request.cases * request.n:
            slot = request.side, request.tag, case_id
            if done[slot] > 0:
                done[slot] -= 1
                continue
            again = step.again or lost[slot] > 0
            lost[slot] -= 1
            self._numbers[case_id, request.side] += 1
            number = self._numbers[case_id, request.side]
            jobs.append(Job(self.plan.cases[case_id], number, step.round, request.tag, request.side, again))
        return jobs

    async def _let_pass(self, step: More) -> bool:
        """Waits as long as the step asks for; whether the budget leaves the time."""
        run_budget = self.session.run_budget
        if run_budget.deadline is not None and time.monotonic() + step.pause >= run_budget.deadline:
            run_budget.stopped = f"the budget of minutes leaves no time to {step.why}"
            return False
        self.session.progress.plan(self.plan.suite.id, step.runs, f"{step.why}, in {step.pause:g} s")
        await asyncio.sleep(step.pause)
        return True

    async def _run(self, jobs: list[Job], why: str) -> None:
        if not jobs:
            return
        if why:
            self.session.progress.plan(self.plan.suite.id, len(jobs), why)
        async for scored in self.runner.run(jobs):
            trial, line = to_record(scored, self.redactor)
            self.journal.extend([(trial, line)])
            self.trials.append(self.memory.keep(trial))
            self.session.progress.trial(trial)
