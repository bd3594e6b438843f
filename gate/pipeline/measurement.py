"""One suite, measured: from a plan to a closed record that states the terms of its verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from gate import __version__
from gate.agents.http import stated_options
from gate.baselines.fingerprint import of_definition
from gate.baselines.reference import Reference, identity
from gate.baselines.union import run_ids
from gate.config.resolve import Plan
from gate.decision import Settings
from gate.errors import GateError, MeasureError
from gate.model import BASE, Side, Trial, Verdict
from gate.model.finding import Finding
from gate.pipeline.earlier import EarlierDraws, StoredTrials, continue_earlier, earlier_draws, stored_trials
from gate.pipeline.identity import (
    about_address,
    about_literal_version,
    about_sources,
    about_unused_sources,
    may_change,
)
from gate.pipeline.journal import (
    anew,
    check_untracked,
    close_again,
    free_path,
    open_journal,
    records_folder,
    take_back,
    uncommitted,
    without,
)
from gate.pipeline.launch import base_agent
from gate.pipeline.references import References, past_rates
from gate.pipeline.rounds import SuiteRun, assigned_to_shards, ran_in_outage, run_stored_epochs
from gate.pipeline.session import Session, change_of_files, check_package, check_version, unconfirmed
from gate.pipeline.store import store_kind
from gate.pipeline.terms import Terms, terms_of_plan
from gate.pipeline.trials import TrialRunner
from gate.pipeline.verdict import Keeper, judge_record, load_to_judge, shard_result
from gate.records import Header, Record, RecordWriter
from gate.records.model import INTERRUPTED
from gate.reports.formatting import count
from gate.security.environment import in_ci
from gate.system.clock import now
from gate.system.git import MAX_SUBJECT


class MeasuredSuite(Struct, frozen=True):
    """A suite that was run, and the terms of its verdict."""

    path: Path
    """The file of its record."""
    found: References
    terms: Terms


async def measure_suite(session: Session, plan: Plan, found: References) -> MeasuredSuite:
    """Run trials for as long as the schedule asks for them, unless stored ones decide, and close the record."""
    started = time.monotonic()
    _check_runs(session, plan)
    header = planned_header(session, plan, found.first)
    if session.options.record_path is None:
        check_untracked(session.config, session.git, header.suite_id)
    stored = await stored_trials(session, plan, header, found)
    if stored is not None:
        terms = _stored_terms(session, plan, header, stored)
        close_again(stored.path, stored.record, terms.plain(), session.environment)
        return MeasuredSuite(stored.path, stored.found, terms)
    with ExitStack() as stack:
        journal, origin = _open_journal(session, plan, header)
        journal = stack.enter_context(journal)
        compared = journal.closed_terms.get("compared")
        journal, unsure = _without_unconfirmed(session, journal, stack)
        earlier_trials = len(journal.resumed)
        in_outage = ran_in_outage(session, plan, found.all, journal.header, journal.resumed)
        if any(trial.answered and trial.round == journal.resumed[0].round for trial in in_outage):
            # The agent was measured in the first round, so this is a further draw.
            folder = records_folder(session.config, header.suite_id)
            journal = stack.enter_context(anew(journal, header, folder, now()))
        else:
            journal = stack.enter_context(without(journal, in_outage, "an outage"))
        if journal.resumed:  # this very run may already be stored
            found = replace(session.baselines(plan, frozenset(run_ids(journal.header))), doubts=found.doubts)
            others = _of_another_base(journal, compared, found.first)
            earlier_trials -= len(others)
            journal = stack.enter_context(without(journal, others, "another base"))
        base = await base_agent(session, found.first, stack)
        terms = terms_of_plan(plan, session.config, session.settings, rules=session.options.rules, where=session.where)
        is_in_ci = in_ci(session.environment)
        draws = earlier_draws(session.config, journal.header, found.all, terms, session.git, in_ci=is_in_ci)
        async with TrialRunner(
            session.config, plan, session.environment, session.run_budget, base, journal.header.run_id, session.version
        ) as runner:
            run = SuiteRun(session, plan, found.all, journal, runner, base, draws.verdicts)
            await run.measure()
            await _check_end(session, journal)
            changed = change_of_files(session)
            if changed:
                path = session.options.record_path
                if path is None:
                    path = free_path(records_folder(session.config, header.suite_id), journal.header, now())
                run.journal = journal = stack.enter_context(uncommitted(journal, path))
            past: tuple[float, ...] = ()
            if not session.options.is_shard:
                past = past_rates(session.store, found.first, session.where, header)
            left_out = earlier_trials - len(journal.resumed)
            measurement = _Measurement(run, found, draws, past, started, origin, (unsure, changed), left_out)
            measurement.close()
            fills = session.fills_baseline and not changed
            if fills and not session.run_budget.stopped and not journal.header.runs:
                await _store_further(measurement)
    return MeasuredSuite(journal.path, found, measurement.terms)


class _Measurement:
    """A suite whose trials were run: the terms that its record is closed with, and its verdict so far.

    ``origin`` describes the record that it continues; ``doubts`` are notes on which agent answered, some of them empty;
    ``left_out`` is the number of an earlier session's trials that ran in an outage.
    """

    def __init__(
        self,
        run: SuiteRun,
        found: References,
        draws: EarlierDraws,
        past: tuple[float, ...],
        started: float,
        origin: str,
        doubts: Sequence[str],
        left_out: int,
    ) -> None:
        self.run, self._found, self._draws, self._past, self._started = run, found, draws, past, started
        self._origin, self._doubts, self._left_out = origin, doubts, left_out
        session = run.session
        self._saving = about_sources(session.config, session.git, session.where, session.files)
        self._unused = about_unused_sources(session.config, session.files)
        self.terms = self._terms_now()

    def _terms_now(self, *more: str) -> Terms:
        run, draws = self.run, self._draws
        session = run.session
        told = (*self._notes(), *self._found.notes, *self._doubts, *run.base.notes)
        notes = [note for note in (*told, *run.notes, *run.runner.notes, *draws.notes, *more) if note]
        terms = _terms(session, run.plan, run.settings, notes, self._found)
        return replace(
            terms,
            past=self._past,
            earlier=draws.verdicts,
            base_has_no_rules=run.base.without_rules,
            taken_up=0 if session.options.is_shard else len(run.journal.resumed),
            saving=self._saving,
        )

    def _notes(self) -> list[str]:
        """Return notes on how the result came about."""
        session, journal = self.run.session, self.run.journal
        config, cases = session.config, self.run.plan.suite.cases
        notes = [session.options.note, session.where.note, about_address(config, session.agent), self._unused]
        if self._left_out:
            down = "do not count: the agent, or what it depends on, was down"
            notes.append(f"{count(self._left_out, 'trial')} of an earlier session {down}")
        if journal.resumed:
            said = f"continues a record of {count(len(journal.resumed), 'trial')}"
            if self._origin:
                said += f" of {self._origin}"
            if not session.run_budget.runs:
                said += "; nothing new was run"
            notes += [said, about_literal_version(config)]
        runs = config.file.budget.runs
        if runs is not None and runs < len(cases):
            notes.append(f"budget.runs allows {runs} agent runs, and one epoch of the suite takes {len(cases)}")
        if config.file.budget.usd is not None and session.run_budget.unpriced:
            notes.append("some trials report no cost: each is charged like the most expensive other one")
        return notes

    def close(self, note: str = "") -> None:
        """Close the record with the terms of its verdict. More trials may follow; then it is closed again."""
        runner, self.terms = self.run.runner, self._terms_now(note)
        self.run.journal.finish(
            duration=time.monotonic() - self._started,
            judge_cost_usd=runner.judge_cost_usd,
            stopped=self.run.session.run_budget.stopped,
            terms=runner.redactor.redact_json(self.terms.plain()),
        )

    def close_without_further(self, why: str) -> None:
        """Discard the trials run since the record was closed, and close it again."""
        journal = self.run.journal
        self.terms = self._terms_now(f"what was run for later changes is not kept: {why}")
        journal.close()
        take_back(journal.path)
        close_again(journal.path, load_to_judge(journal.path), self.terms.plain(), self.run.session.environment)

    def verdict(self) -> Verdict:
        """Return the verdict on the trials so far; for a shard, it only shows if its cases were measured."""
        run = self.run
        record = Record(run.journal.header, tuple(run.trials))
        if run.session.options.is_shard:
            return shard_result(record, run.settings.max_error_rate).verdict
        return judge_record(record, self._found.all, self._terms_now()).verdict


async def _store_further(measurement: _Measurement) -> None:
    """Run the epochs that the stored baseline lacks, and discard trials of an unknown version of the agent.

    However this ends, the record is closed.
    """
    run = measurement.run
    needed = len(run.trials)
    try:
        note = await run_stored_epochs(run, measurement.verdict)
    except BaseException:
        if may_change(run.session.config):
            take_back(run.journal.path)
        else:
            measurement.close()
        raise
    if len(run.trials) == needed:
        if note:
            measurement.close(note)
        return
    try:
        await check_version(run.session)
        why = change_of_files(run.session)
    except MeasureError as error:
        why = str(error)
    if why:
        measurement.close_without_further(why)
        return
    try:
        check_package(run.session)
    except GateError:
        take_back(run.journal.path)
        raise
    measurement.close(note)


def _open_journal(session: Session, plan: Plan, header: Header) -> tuple[RecordWriter, str]:
    """Return the record to write to, and a description of the earlier record that it continues."""
    options, origin = session.options, session.options.origin
    redefines = options.rules is not None and options.rules.redefines
    if options.record_path is None and not options.resume and not redefines:
        origin = continue_earlier(session, header) or origin
    journal = open_journal(
        session.config,
        header,
        now(),
        path=options.record_path,
        resume=options.resume,
        by_commit=options.same_head and not header.agent,
        keep=Keeper(plan.cases, plan.criteria, room=0).keep,  # answers are shown from the record
    )
    return journal, origin


def _without_unconfirmed(session: Session, journal: RecordWriter, stack: ExitStack) -> tuple[RecordWriter, str]:
    """Return the journal without trials that another agent may have answered, and a note about them.

    They are from a session that was cut short before it checked that the agent was still the same.
    """
    unsure = len(journal.resumed) - journal.closed_trials
    if not unsure or not unconfirmed(session, journal.header):
        return journal, ""
    sure = journal.closed_trials
    kept = stack.enter_context(without(journal, journal.resumed[sure:], INTERRUPTED))
    what = f"{count(unsure, 'trial')} of a run that was cut short do not count"
    return kept, f"{what}: nobody knows whether the agent stayed the same"


def _of_another_base(journal: RecordWriter, compared: object, reference: Reference) -> list[Trial]:
    """Return trials of a base's agent that is not the reference's; ``compared``: the references of the record's run.

    While its base is not measured yet, a change is compared with an older one. That may be of the same agent.
    """
    if not (reference.records and isinstance(compared, list) and compared):
        return []
    commits = [record.header.commit or "no commit" for record in reference.records]
    if str(compared[0]).startswith(tuple([commit[:12] for commit in commits])):
        return []
    return [trial for trial in journal.resumed if trial.side is Side.BASELINE and trial.tag != BASE]


async def _check_end(session: Session, journal: RecordWriter) -> None:
    """Raise an error if the agent, or the gate itself, has changed since the run began.

    Then no trial of this session stays in the record, as the next run would continue it.
    """
    try:
        await check_version(session)
        check_package(session)
    except GateError:
        take_back(journal.path)
        raise


# --- what the record is judged by -----------------------------------------------------------------


def _stored_terms(session: Session, plan: Plan, header: Header, stored: StoredTrials) -> Terms:
    """Return the terms of a record for which nothing is run: everything in it counts, in one look."""
    found = stored.found
    literal = about_literal_version(session.config) if stored.same_as else ""
    notes = [note for note in (session.options.note, session.where.note, stored.note, literal) if note]
    settings = replace(session.settings, rerun="never")
    terms = _terms(session, plan, settings, [*notes, *found.notes], found, doubt=stored.doubt)
    return replace(
        terms,
        past=past_rates(session.store, found.first, session.where, header),
        whole=True,
        scheduled=False,
        same_as=stored.same_as,
        same_verdict=found.first.info.fell_short if stored.same_as else "",
    )


def _terms(
    session: Session,
    plan: Plan,
    settings: Settings,
    notes: Sequence[str | Finding],
    found: References,
    *,
    doubt: str = "",
) -> Terms:
    """Return the terms by which the record is judged, here and wherever it is shown again."""
    config, options = session.config, session.options
    doubts = (doubt, *found.doubts) if doubt else found.doubts
    terms = terms_of_plan(plan, config, settings, notes=notes, doubts=doubts, rules=options.rules, where=session.where)
    terms = replace(terms, store=store_kind(config, session.environment))
    if options.is_shard:
        return terms
    return replace(
        terms,
        scheduled=config.agent_kind != "replay",
        command=options.command,
        compared=tuple(map(identity, found.all)),
    )


# --- the header of its record -------------------------------------------------------------------


def _check_runs(session: Session, plan: Plan) -> None:
    """Refuse a budget of runs that cannot cover the fewest epochs that a decision needs."""
    runs, epochs = session.config.file.budget.runs, session.settings.exact_epochs or 1
    needed = epochs * len(plan.suite.cases)
    if runs is not None and session.run_budget.launched + needed > runs and not session.options.is_shard:
        what = f"budget.runs {runs} does not cover {epochs} x {len(plan.suite.cases)} runs of {plan.suite.id!r}"
        raise MeasureError(
            what, where=str(session.config.path), hint="nothing was run; raise it, or select fewer cases"
        )


def planned_header(session: Session, plan: Plan, reference: Reference) -> Header:
    """Return the header of the record that a suite's run writes."""
    return Header(
        suite_id=plan.suite.id,
        plan=assigned_to_shards(plan.planned, reference, session.options.shard[1]),
        criteria=plan.criteria,
        run_id=uuid4().hex,
        gate_version=__version__,
        commit=session.where.head,
        base_commit=session.where.base,
        dirty=session.where.dirty,
        agent=session.agent,
        shard=session.options.shard,
        epochs=_least_epochs(session, plan),
        selected=bool(plan.deselected),
        scope=plan.scope,
        whole=plan.whole,
        created=now().timestamp(),
        subject=session.where.subject,
        branch=session.where.branch,
        version=session.version[:MAX_SUBJECT],
        definition=of_definition(session.config.agent_kind, stated_options(session.config.agent)),
    )


def _least_epochs(session: Session, plan: Plan) -> int:
    """Return the fewest times that a shard runs each of its cases; 0 for a whole run, whose schedule decides."""
    if not session.options.is_shard:
        return 0
    if session.config.agent_kind != "replay":
        return session.settings.most_epochs
    recorded = Counter(trial.case_id for trial in plan.suite.recorded)
    fewest = min((recorded[case.id] for case in plan.suite.cases), default=0)
    return min(fewest, session.settings.exact_epochs or fewest)
