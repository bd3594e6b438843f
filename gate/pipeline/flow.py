"""The flow: config → suite → execute → score → record → decide → report. Each stage has a room of its own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from gate import __version__
from gate.agents.version import version_of
from gate.baselines.fingerprint import of_definition
from gate.baselines.pairing import Reference, identity
from gate.baselines.union import runs_in
from gate.config.load import Config
from gate.config.resolve import Plan, make_plans
from gate.decision import Settings
from gate.errors import ConfigError, GateError, MeasureError
from gate.model import Criterion, Result, SuiteResult, Trial, Verdict
from gate.model.finding import Finding
from gate.pipeline.base_tree import base_agent, check_base_address, stands_in
from gate.pipeline.division import after, step_down
from gate.pipeline.draws import continue_earlier, with_draws
from gate.pipeline.earlier_session import Spoiled
from gate.pipeline.journal import anew, check_untracked, open_journal, records_folder, take_back, without
from gate.pipeline.judge_stored import close_with
from gate.pipeline.memory import Memory
from gate.pipeline.past import past_rates
from gate.pipeline.progress import Progress
from gate.pipeline.reference import References, find_baselines, store_kind, suites_left_out
from gate.pipeline.release import OwnRecord, own_record
from gate.pipeline.rounds import SuiteRun
from gate.pipeline.session import (
    RunOptions,
    Session,
    about_address,
    about_literal_version,
    check_version,
    may_change,
    open_session,
)
from gate.pipeline.shards import assigned, epochs_of
from gate.pipeline.shown import shown_trials
from gate.pipeline.top_up import stores, top_up
from gate.pipeline.trials import TrialRunner
from gate.pipeline.unchanged import BaseRecord, unchanged
from gate.pipeline.verdict import (
    Terms,
    accepted,
    job_settings,
    judge_record,
    load_to_judge,
    result_of,
    terms_of_plan,
    with_design,
)
from gate.records import Header, Record, RecordWriter, read_header
from gate.records.model import INTERRUPTED
from gate.reports.files import Outputs, check_outputs, write_reports
from gate.reports.formatting import count
from gate.reports.trials import SuiteTrials
from gate.system.clock import now


async def run_gate(
    config: Config, options: RunOptions, outputs: Outputs, environment: Mapping[str, str], progress: Progress
) -> Result:
    """Measures every suite, decides, and writes the reports.

    Raises:
        GateError: what keeps the run from meaning anything; its exit code says which kind.
    """
    plans = list(make_plans(config, environment))
    outputs = outputs.beside(config.root, config.file.reports)
    if options.record_path is not None and len(plans) > 1:
        raise ConfigError("--record names one file, and there are several suites", hint="leave it out")
    if options.record_path is not None and options.record_path.exists() and not options.record_path.is_file():
        what = "a record is a file that can be read again, and this is none"
        raise ConfigError(what, where=str(options.record_path), hint="leave --record out, or name another path")
    with ExitStack() as stack:
        stack.callback(progress.close)
        own = (options.record_path, options.statement_path, *outputs.wanted.values())
        written = [path for path in own if path is not None]
        check_base_address(config)
        version = await version_of(config.agent_kind, config.agent, root=config.root, environment=environment)
        session = open_session(config, options, environment, progress, stack, written, version)
        check_outputs(outputs)  # creates them, so the work tree has been looked at before
        _check_judged(plans, session.settings)
        baselines = _all_baselines(session, plans)
        session = _sharing(session, plans, baselines)
        runs = [await _run_suite(session, plans, found) for found in baselines]
        suites, paths = _stepped_down(runs, environment), [run.path for run in runs]
        result = write_reports(_result(session, suites, paths), outputs, lambda: _shown(runs))
        # Every verdict first, and reported: what is run for later changes takes what is left of the budget.
        topped = [await _topped_up(session, ran, suite) for ran, suite in zip(runs, suites, strict=True)]
    if topped == suites:
        return result
    return write_reports(_result(session, topped, paths), outputs, lambda: _shown(runs))


def _result(session: Session, suites: Sequence[SuiteResult], paths: Sequence[Path]) -> Result:
    settings = session.settings
    if session.options.shard[1] > 1:  # nothing is decided, so nothing can be blocked for want of evidence
        settings = replace(settings, on_inconclusive="warn")
    return result_of(suites, settings, command=session.options.command, record_paths=paths)


def _shown(runs: Sequence[Ran]) -> list[SuiteTrials]:
    return [shown_trials(ran.path, read_header(ran.path), ran.found.first, ran.terms) for ran in runs]


class MeasuredSuite(Struct, frozen=True, kw_only=True):
    """One suite that was run, and what it is to be judged by."""

    criteria: tuple[Criterion, ...]
    path: Path
    """Of its record."""
    found: References
    terms: Terms
    plan: Plan | None
    """None where no further trials may follow the verdict."""


class Ran(MeasuredSuite, frozen=True, kw_only=True):
    """The same with its result."""

    result: SuiteResult


def _baselines(session: Session, plan: Plan, runs: Set[str] = frozenset()) -> References:
    """What a suite is compared with; ``runs``: not with these, which may be stored already."""
    config, store, where = session.config, session.store, session.where
    return find_baselines(config, store, plan.suite.id, where, session.git, runs, plan=plan.planned)


def _all_baselines(session: Session, plans: Sequence[Plan]) -> list[References]:
    """Return what each suite is compared with; the first also owes what the base has of suites that are not run."""
    found = [_baselines(session, plan) for plan in plans]
    suites = [plan.suite.id for plan in plans]
    gone = suites_left_out(session.config, session.store, suites, session.where, session.environment)
    if gone:
        found[0] = replace(found[0], doubts=(*found[0].doubts, gone))
    return found


def _sharing(session: Session, plans: Sequence[Plan], baselines: Sequence[References]) -> Session:
    """The session with an error budget that its suites share. A shard decides nothing."""
    if session.options.shard[1] > 1:
        return session
    beside = [stands_in(session, found.first) for found in baselines]
    settings = job_settings(session.config, session.settings, plans, baselines, session.options.rules, beside=beside)
    return replace(session, settings=settings)


def _stepped_down(runs: Sequence[Ran], environment: Mapping[str, str]) -> list[SuiteResult]:
    """The results, each judged by what the proven suites leave of the error budget; so its record says, too."""

    def again(number: int, proven: int) -> SuiteResult:
        ran = runs[number]
        terms = with_design(ran.terms, after(ran.terms.settings, proven))
        record = load_to_judge(ran.path, criteria=ran.criteria)
        result = _judged(record, ran.found, terms)
        if result.verdict is Verdict.REGRESSED:
            close_with(terms, ran.path, record, environment)
        return result

    return step_down([ran.result for ran in runs], again)


async def _topped_up(session: Session, ran: Ran, suite: SuiteResult) -> SuiteResult:
    return suite if ran.plan is None else await top_up(session, ran.plan, suite, ran.path)


async def _run_suite(session: Session, plans: list[Plan], found: References) -> Ran:
    """The first of these suites, which is taken out: rounds of trials for as long as the schedule asks for them, then
    its verdict.

    All that a verdict needs is in the record. The plan, with what the cases and recordings say, is let go of before.
    """
    measured = await _measure(session, plans.pop(0), found)
    if isinstance(measured, Ran):
        return measured
    record = load_to_judge(measured.path, criteria=measured.criteria)
    return _with_result(measured, _judged(record, measured.found, measured.terms))


def _judged(record: Record, found: References, terms: Terms) -> SuiteResult:
    return accepted(judge_record(record, found.all, terms), found)


def _with_result(measured: MeasuredSuite, result: SuiteResult) -> Ran:
    return Ran(**{name: getattr(measured, name) for name in measured.__struct_fields__}, result=result)


async def _measure(session: Session, plan: Plan, found: References) -> MeasuredSuite:
    """The record of a suite; with its result where it is a shard's, which nobody judges by itself."""
    started = time.monotonic()
    _check_runs(session, plan)
    header = planned_header(session, plan, found.first)
    if session.options.record_path is None:
        check_untracked(session.config, session.git, header.suite_id)
    if (stored := await _on_stored(session, plan, header, found)) is not None:
        return stored
    options = session.options
    path, resume, by_commit = options.record_path, options.resume, options.same_head and not header.agent
    origin = options.origin
    if path is None and not resume and not (options.rules is not None and options.rules.redefines):
        origin = continue_earlier(session.config, header) or origin
    with ExitStack() as stack:
        memory = Memory(plan)
        journal = stack.enter_context(
            open_journal(
                session.config, header, now(), path=path, resume=resume, by_commit=by_commit, remember=memory.keep
            )
        )
        journal, unsure = _sure_of_version(session, journal, memory, stack)
        taken_up = len(journal.resumed)
        spoiled = Spoiled(session, plan, found.all, journal.header).among(journal.resumed)
        journal = stack.enter_context(_without_outage(session, journal, header, spoiled, memory))
        if journal.resumed:  # this very run may be what is stored
            found = replace(_baselines(session, plan, runs_in(journal.header)), doubts=found.doubts)
        base = await base_agent(session, found.first, stack)
        run_id = journal.header.run_id
        before = _earlier(session, plan, journal.header, found)
        async with TrialRunner(
            session.config, plan, session.environment, session.run_budget, base, run_id, session.version
        ) as runner:
            run = SuiteRun(session, plan, found.all, journal, runner, base, memory, earlier=before.earlier)
            await run.measure()
            await _check_version(session, journal)
            judge_cost = runner.judge_cost_usd
        more = filter(None, (unsure, base.note, *run.notes, *runner.notes))
        notes = (*_notes(session, plan, journal, taken_up, origin), *found.notes, *more, *before.notes)
        terms = _terms(session, plan, run, notes, found, len(journal.resumed))
        terms = replace(terms, earlier=before.earlier, base_has_no_rules=base.without_rules)
        journal.finish(
            duration=time.monotonic() - started,
            judge_cost_usd=judge_cost,
            stopped=session.run_budget.stopped,
            terms=run.redactor.redact_json(terms.plain()),
        )
    measured = _measured(session, plan, journal.path, found, terms)
    if session.options.shard[1] == 1:
        return measured
    return _with_result(measured, replace(run.part(), duration=time.monotonic() - started, judge_cost_usd=judge_cost))


def _sure_of_version(
    session: Session, journal: RecordWriter, memory: Memory, stack: ExitStack
) -> tuple[RecordWriter, str]:
    """The journal without trials of a session that was ended before it looked the version up again, and a note of it:
    they may be of another version than the record says."""
    unsure = len(journal.resumed) - journal.closed_trials if may_change(session.config) else 0
    if not unsure:
        return journal, ""
    sure = journal.closed_trials
    kept = stack.enter_context(without(journal, journal.resumed[sure:], INTERRUPTED, remember=memory.keep))
    what = f"{count(unsure, 'trial')} of a run that was cut short do not count"
    return kept, f"{what}: nobody knows whether the agent's version stayed the same"


def _without_outage(
    session: Session, journal: RecordWriter, header: Header, spoiled: Sequence[Trial], memory: Memory
) -> RecordWriter:
    """The journal without what does not count of an earlier session; ``header`` is what a run of its own would have.

    Where answers are among it, as the agent failed in a part of everything, it was measured: this is a further draw.
    """
    if any(trial.answered and trial.round == journal.resumed[0].round for trial in spoiled):
        return anew(journal, header, records_folder(session.config, header.suite_id), now())
    return without(journal, spoiled, "an outage", remember=memory.keep)


async def _check_version(session: Session, journal: RecordWriter) -> None:
    """Raises as `check_version`. Then nothing of this session stays in the record: the next run would continue it."""
    try:
        await check_version(session)
    except GateError:
        take_back(journal.path)
        raise


def _measured(session: Session, plan: Plan, path: Path, found: References, terms: Terms) -> MeasuredSuite:
    kept = plan if stores(session) else None
    return MeasuredSuite(criteria=plan.criteria, path=path, found=found, terms=terms, plan=kept)


async def _on_stored(session: Session, plan: Plan, header: Header, found: References) -> MeasuredSuite | None:
    """A release, which is judged by what was measured of its commit, or a change whose agent is its base's; None if the
    suite is to be measured."""
    own = await own_record(session, plan, header)
    if own is not None:
        found = _baselines(session, plan, own.runs)
        terms = _stored_terms(session, plan, found, own.note, own.doubt)
        return _on_record(session, plan, own, found, terms)
    same = unchanged(session, plan, header, found)
    if same is None:
        return None
    literal = about_literal_version(session.config)
    terms = _stored_terms(session, plan, same.found, "; ".join(filter(None, (same.note, literal))))
    terms = replace(terms, same_as=same.commit, same_verdict=same.found.fell_short)
    return _on_record(session, plan, same, same.found, terms)


def _on_record(
    session: Session, plan: Plan, stored: OwnRecord | BaseRecord, found: References, terms: Terms
) -> MeasuredSuite:
    close_with(terms, stored.path, stored.record, session.environment)
    return _measured(session, plan, stored.path, found, terms)


def _stored_terms(session: Session, plan: Plan, found: References, note: str, doubt: str = "") -> Terms:
    """What a record is judged by for which nothing is run: everything in it, in one look."""
    notes = (*filter(None, (session.options.note, session.where.note)), note, *found.notes)
    doubts = (*filter(None, (doubt,)), *found.doubts)
    settings = replace(session.settings, rerun="never")
    config, options, where = session.config, session.options, session.where
    return replace(
        terms_of_plan(plan, config, settings, notes=notes, doubts=doubts, rules=options.rules, release=where.release),
        whole=True,
        command=options.command,
        anchored=where.anchored,
        release=where.release,
        store=store_kind(config, session.environment),
        compared=tuple(map(identity, found.all)),
        past=_past(session, plan, found),
    )


def _terms(
    session: Session, plan: Plan, run: SuiteRun, notes: Sequence[str | Finding], found: References, taken_up: int
) -> Terms:
    """What the record is judged by, here and wherever it is shown again."""
    alone = session.options.shard[1] == 1
    return replace(
        terms_of_plan(
            plan,
            session.config,
            run.settings,
            notes=notes,
            doubts=found.doubts,
            rules=session.options.rules,
            release=session.where.release,
        ),
        scheduled=alone and session.config.agent_kind != "replay",
        command=session.options.command if alone else "",
        anchored=session.where.anchored,
        release=session.where.release,
        store=store_kind(session.config, session.environment),
        compared=tuple(map(identity, found.all)) if alone else (),
        past=_past(session, plan, found) if alone else (),
        taken_up=taken_up if alone else 0,
    )


def _earlier(session: Session, plan: Plan, header: Header, found: References) -> Terms:
    """Return terms that hold nothing but the earlier measurements of this change, and what to say of them."""
    terms = terms_of_plan(plan, session.config, session.settings, rules=session.options.rules)
    terms = replace(terms, notes=(), anchored=session.where.anchored)
    return with_draws(terms, session.config, header, found.all, session.git)


def _past(session: Session, plan: Plan, found: References) -> tuple[float, ...]:
    cases = {case.id: case for case in plan.suite.cases}
    store, where = session.store, session.where
    return past_rates(store, found.first, plan.suite.id, where, plan.planned, cases, plan.criteria)


def _check_judged(plans: Sequence[Plan], settings: Settings) -> None:
    """Refuses a run in which every case is in quarantine: nothing would be judged."""
    cases = [case.id for plan in plans for case in plan.suite.cases]
    if all(case_id in settings.quarantine for case_id in cases):
        hint = "nothing was run; select others too, or end a quarantine"
        raise MeasureError(f"all {len(cases)} selected cases are in quarantine", where="quarantine", hint=hint)


def _check_runs(session: Session, plan: Plan) -> None:
    """Refuses a budget of runs that cannot cover the epochs that a decision needs at least."""
    runs, epochs = session.config.file.budget.runs, session.settings.exact_epochs or 1
    needed = epochs * len(plan.suite.cases)
    if runs is not None and session.run_budget.launched + needed > runs and session.options.shard[1] == 1:
        what = f"budget.runs {runs} does not cover {epochs} x {len(plan.suite.cases)} runs of {plan.suite.id!r}"
        raise MeasureError(
            what, where=str(session.config.path), hint="nothing was run; raise it, or select fewer cases"
        )


def planned_header(session: Session, plan: Plan, reference: Reference) -> Header:
    """The header of the record that a suite's run writes."""
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


def _notes(session: Session, plan: Plan, journal: RecordWriter, taken_up: int, origin: str) -> tuple[str, ...]:
    """Notes for the reader on how the result came about; ``origin``: whose record it continues."""
    about = about_address(session.config, session.agent)
    notes = [note for note in (session.options.note, session.where.note, about) if note]
    if again := taken_up - len(journal.resumed):
        down = "do not count: the agent, or what it depends on, was down"
        notes.append(f"{count(again, 'trial')} of an earlier session {down}")
    if journal.resumed:
        fresh = "" if session.run_budget.runs else "; nothing new was run"
        whose = f" of {origin}" if origin else ""
        notes.append(f"continues a record of {count(len(journal.resumed), 'trial')}{whose}{fresh}")
        notes += filter(None, [about_literal_version(session.config)])
    runs = session.config.file.budget.runs
    if runs is not None and runs < len(plan.suite.cases):
        notes.append(f"budget.runs allows {runs} agent runs, and one epoch of the suite takes {len(plan.suite.cases)}")
    if session.config.file.budget.usd is not None and session.run_budget.unpriced:
        notes.append("some trials report no cost: each is charged like the most expensive other one")
    return tuple(notes)
