"""Verdicts on existing records: compared, reported, merged, measured by an untrusted run, or scored again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from gate.baselines import STORES
from gate.baselines.base import outage_in, shard_of
from gate.baselines.pairing import Match, match_cases
from gate.baselines.reference import Reference, identity, reference_to
from gate.baselines.union import run_ids
from gate.config.base_policy import Rules, rules_of
from gate.config.load import Config, load_config
from gate.config.resolve import Plan, asks_judge, make_plans
from gate.config.schema import NO_STORE
from gate.config.settings import settings_of
from gate.decision import Settings
from gate.decision.gaps import are_few
from gate.errors import BaselineError, ConfigError, GateError, MeasureError, UntrustedError, nearest
from gate.model import Result, Side, Trial
from gate.model.finding import Finding
from gate.pipeline.budget import RunBudget, judge_budget
from gate.pipeline.earlier import against_base, earlier_draws, with_stored_trials
from gate.pipeline.identity import SEARCHED, GitContext, about_address, git_context
from gate.pipeline.journal import close_again
from gate.pipeline.references import LUCKY, References, find_all_references, find_references
from gate.pipeline.store import store_kind, store_of
from gate.pipeline.terms import (
    Terms,
    job_settings,
    own_terms,
    terms_of_plan,
    with_run_of,
    with_settings_of_run,
)
from gate.pipeline.trials import TrialRunner
from gate.pipeline.verdict import (
    NO_REFERENCE,
    accepted,
    judge_record,
    load_to_judge,
    result_of,
    shown_trials,
)
from gate.records import (
    Header,
    PlannedCase,
    Record,
    footer_of,
    merge,
    read_header,
    read_record,
    write_record,
)
from gate.reports.files import Outputs, check_outputs, write_reports
from gate.reports.formatting import count
from gate.security.environment import in_ci
from gate.stored.results import other_runs_beside
from gate.system.clock import now
from gate.system.git import Git


def read_baseline(source: Path | Record) -> Reference:
    """Return a record as a reference. Raises `BaselineError`."""
    if isinstance(source, Record):
        return reference_to([source], source="a record")
    return reference_to([read_record(source, error=BaselineError)], source=str(source))


def compare_records(
    candidate: Path | Record,
    baseline: Path | Record | None,
    config: Config | None,
    environment: Mapping[str, str],
    outputs: Outputs,
    command: str,
) -> Result:
    """Return the verdict on one record against another, or against thresholds alone.

    ``config`` supplies the criteria and settings; without it, the candidate's own apply.
    """
    check_outputs(outputs)
    if config is None:
        record = load_to_judge(candidate)
        terms = own_terms(record)
    else:
        header = candidate.header if isinstance(candidate, Record) else read_header(candidate)
        plan = plan_of(config, environment, header)
        record = load_to_judge(candidate, criteria=plan.criteria)
        terms = with_run_of(record, terms_of_plan(plan, config))
    reference = NO_REFERENCE if baseline is None else read_baseline(baseline)
    _check_other_run(record, reference, baseline)
    reference = reference.without_runs(frozenset(run_ids(record.header)))
    if isinstance(baseline, Path) and reference.records:
        terms = _with_note_of_picked_run(terms, baseline, reference, record)
    if config is not None and reference.records:
        ancestors, distance = _ancestors(Git(config.root, environment=environment), record.header), None
        if reference.commit in ancestors:
            distance = ancestors.index(reference.commit)  # first-parent commits back from the record's base
        reference = replace(reference, info=replace(reference.info, distance=distance))
    return _result(candidate, record, References((reference,)), terms, outputs, command)


def _with_note_of_picked_run(terms: Terms, path: Path, reference: Reference, record: Record) -> Terms:
    """Return the terms, with a note if the baseline was picked by hand from several runs of its commit."""
    header = reference.records[0].header
    if header.commit == record.header.commit:
        return terms
    others = other_runs_beside(path, header, path.parent)
    if not others:
        return terms
    left = f"{count(len(others), 'other run')} of its commit beside it"
    note = f"the baseline was picked by hand, {left}: {LUCKY}"
    return replace(terms, notes=(*terms.notes, note))


def _where(source: Path | Record | None) -> str:
    """Return the file of a record; empty if it is none."""
    if isinstance(source, Path):
        return str(source)
    return ""


def _check_other_run(record: Record, reference: Reference, baseline: Path | Record | None) -> None:
    """Raise `BaselineError` if the baseline is a shard or an outage, is the candidate itself, or belongs to another
    suite."""
    where = _where(baseline)
    for stored in reference.records:
        problem = shard_of(stored) or outage_in(stored)
        if problem:
            hint = "name the record to judge first, then the baseline"
            raise BaselineError(f"not a baseline: {problem}", where=where, hint=hint)
        if record.header.run_id and set(run_ids(stored.header)) == {record.header.run_id}:
            what = "the baseline is the same run as the candidate: it would always pass"
            raise BaselineError(what, where=where)
        if stored.header.suite_id != record.header.suite_id:
            what = f"the baseline belongs to suite {stored.header.suite_id!r}, not {record.header.suite_id!r}"
            raise BaselineError(what, where=where)


def _ancestors(git: Git, header: Header) -> tuple[str, ...]:
    if not header.base_commit or not git.is_repository():
        return ()
    base = git.resolve(header.base_commit)
    if not base:
        return ()
    return tuple(git.first_parents(base, SEARCHED))


def report_record(
    path: Path, baseline: str | None, config_path: Path, environment: Mapping[str, str], outputs: Outputs, command: str
) -> Result:
    """Return the verdict on a record as its run reached it, against a named baseline or the one found now.

    Raises:
        ConfigError: without a configuration the baseline cannot be found, and skipping the comparison must not look
            like
            passing it.
    """
    if baseline is not None:
        return compare_records(path, path_of_baseline(baseline), None, environment, outputs, command)
    check_outputs(outputs)
    record = load_to_judge(path)
    if not config_path.exists():
        hint = "use --against BASELINE, --against none, or --config FILE"
        raise ConfigError("no configuration, so the baseline is not known", where=str(path), hint=hint)
    config = load_config(config_path)
    terms = own_terms(record, settings_of(config, now()))
    found = find_as_run_did(record.header, terms, config, environment)
    return _result(path, record, found, _with_note_of_difference(terms, found), outputs, command)


def _with_note_of_difference(terms: Terms, found: References) -> Terms:
    """Return the terms, with a note if the run compared its record with other references."""
    here = tuple(map(identity, found.all))
    if not terms.compared or terms.compared == here:
        return terms
    then = f"the run compared this record with {' and '.join(terms.compared)}"
    note = f"{then}; here it is compared with {' and '.join(here)}, so the verdict may be another"
    return replace(terms, notes=(*terms.notes, note))


def path_of_baseline(baseline: str) -> Path | None:
    """Return the file named by ``--against``; None for ``none``."""
    if baseline == "none":
        return None
    return Path(baseline)


def find_as_run_did(header: Header, terms: Terms, config: Config, environment: Mapping[str, str]) -> References:
    """Return the references that the record's run would have now, in the kind of store that it used.

    A run judged by a base commit's rules looked for baselines where those rules have them.
    """
    with ExitStack() as stack:
        if terms.rules:
            with suppress(GateError):  # a commit that is no longer here shows in the comparison that follows
                config = stack.enter_context(rules_of(terms.rules, config.path, {}, environment)).config
        if terms.store in (*STORES, NO_STORE):  # a record is not a configuration and names no plugins
            baseline = config.file.baseline.model_copy(update={"store": terms.store})
            config = replace(config, file=config.file.model_copy(update={"baseline": baseline}))
        git = Git(config.root, environment=environment)
        ancestors = _ancestors(git, header)
        base = next(iter(ancestors), None)
        where = GitContext(header.commit, header.dirty, base, ancestors, anchored=terms.anchored, release=terms.release)
        store = store_of(config, environment)
        if store is not None:
            stack.enter_context(store)
        own = frozenset(run_ids(header))
        if terms.same_as:
            own = frozenset()
        return find_references(config, store, header.suite_id, where, git, own, plan=header.plan)


def _result(
    source: Path | Record, record: Record, found: References, terms: Terms, outputs: Outputs, command: str
) -> Result:
    if record.header.shard != (1, 1):
        index, total = record.header.shard
        what = f"the record is shard {index} of {total}, which decides nothing"
        raise MeasureError(what, where=_where(source), hint="`gate merge` joins the shards")
    suite = accepted(judge_record(record, found.all, terms), found)
    paths = []
    if isinstance(source, Path):
        paths.append(source)
    result = result_of([suite], terms.settings, command=terms.command or command, record_paths=paths)
    return write_reports(result, outputs, lambda: [shown_trials(source, record.header, found.first, terms)])


# --- shards ---------------------------------------------------------------------------------------


def merge_records(paths: Sequence[Path], output: Path) -> str:
    """Join shards into one record. Raises `MeasureError` if one is missing, duplicated, damaged or of another run."""
    whole = merge([read_record(path) for path in paths])
    footer = write_record(output, whole)
    return f"{output}: {count(len(paths), 'shard')}, {count(footer.trials, 'trial')}, {count(footer.errors, 'error')}"


def decide_merged(
    record_path: Path,
    config: Config,
    environment: Mapping[str, str],
    outputs: Outputs,
    command: str,
    rules: Rules,
    *,
    anchored: bool | None = None,
    release: str = "",
    note: str = "",
    selected_here: bool = False,
) -> Result:
    """Return the verdict that one run over all shards would have reached.

    Criteria and baseline are looked up as in that run.

    ``rules`` are the rules that the configuration comes from; ``note`` tells the reader how the record came about.
    ``selected_here``: the configuration has the selection of cases, and the one stated by the shards is not trusted.

    Raises:
        ConfigError: the record belongs to another suite, or to a commit other than the one checked out.
    """
    outputs = outputs.beside(config.root, config.file.reports)
    check_outputs(outputs)
    git = Git(config.root, environment=environment)
    where = git_context(config, git, anchored=anchored, release=release)
    header = read_header(record_path)
    if header.commit != where.head:
        what = f"the record is from commit {header.commit}, and {where.head} is checked out"
        raise ConfigError(what, where=str(record_path), hint="check out the commit that the shards ran on")
    plans = make_plans(config, with_key_of_judge(config, environment, header))
    plan = plan_named(header.suite_id, plans, config)
    record = load_to_judge(record_path, criteria=plan.criteria)
    store = store_of(config, environment)
    with store if store is not None else nullcontext():
        baselines = find_all_references(config, store, plans, where, git, environment, frozenset(run_ids(header)))
    found = baselines[plans.index(plan)]
    notes = [*filter(None, (note, where.note, about_address(config, header.agent))), *found.notes]
    own = terms_of_plan(plan, config, notes=notes, doubts=found.doubts, rules=rules, where=where)
    terms = with_run_of(record, own, scope=not selected_here)
    job = job_settings(config, terms.settings, plans, baselines, rules)
    terms = replace(
        terms,
        settings=with_settings_of_run(terms.settings, job),
        anchored=where.anchored,
        release=where.release,
        command=terms.command or command,
        store=store_kind(config, environment),
        compared=tuple(map(identity, found.all)),
    )
    draws = earlier_draws(config, header, found.all, terms, git, in_ci=in_ci(environment))
    terms = replace(terms, notes=(*terms.notes, *draws.notes), earlier=draws.verdicts)
    close_again(record_path, record, terms.plain(), environment)
    return _result(record_path, record, found, terms, outputs, command)


def rules_of_run(path: Path) -> str:
    """Return the commit by whose rules the record's run was judged; empty if by its own."""
    return own_terms(load_to_judge(path)).rules


def plan_of(config: Config, environment: Mapping[str, str], header: Header) -> Plan:
    return plan_named(header.suite_id, make_plans(config, with_key_of_judge(config, environment, header)), config)


def plan_named(suite_id: str, plans: Sequence[Plan], config: Config) -> Plan:
    """Return the plan of a record's suite. Raises `ConfigError` if the configuration does not have it."""
    for plan in plans:
        if plan.suite.id == suite_id:
            return plan
    hint = nearest(suite_id, [plan.suite.id for plan in plans])
    raise ConfigError(f"the record belongs to suite {suite_id!r}", where=str(config.path), hint=hint)


def suite_ids(config: Config, environment: Mapping[str, str]) -> list[str]:
    """Return the ids of the suites that the configuration runs."""
    return [plan.suite.id for plan in make_plans(config, with_key_of_judge(config, environment))]


def with_key_of_judge(
    config: Config, environment: Mapping[str, str], header: Header | None = None
) -> Mapping[str, str]:
    """Return the environment with placeholder keys for judges and a simulated user that are never called; their models
    and addresses still count.

    The judges' are left out if ``header`` shows that the record was measured without one.
    """
    environment = with_key_of_user(config, environment)
    if header is not None and not any(asks_judge(criterion.metric) for criterion in header.criteria):
        return environment
    keys = {"OPENAI_API_KEY": "not used"}
    if config.file.judge is not None:
        if config.file.judge.api_key_env:
            keys[config.file.judge.api_key_env] = "not used"
        for juror in config.file.judge.jury:
            if juror.api_key_env:
                keys[juror.api_key_env] = "not used"
    return {**keys, **environment}


def with_key_of_user(config: Config, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with a placeholder key for a simulated user that is never called."""
    user = config.file.simulated_user
    if user is None or user.api_key_env is None:
        return environment
    return {user.api_key_env: "not used", **environment}


# --- measured by an untrusted run -----------------------------------------------------------------


def judge_records(records: Sequence[Record], config: Config, environment: Mapping[str, str], *, command: str) -> Result:
    """Return the verdict on records of an untrusted run, under this configuration and against its stored baselines.

    A record is judged as its run judged it, with the trials of the base commit's agent: who can invent a label can
    invent a score. The demands are this configuration's.

    Raises:
        ConfigError: a record belongs to a suite that the configuration does not have.
        UntrustedError: a record was measured by criteria other than those that are to judge it.
    """
    settings, git = settings_of(config, now()), Git(config.root, environment=environment)
    where = git_context(config, git, anchored=False)
    all_plans = make_plans(config, with_key_of_judge(config, environment))
    plans = [plan_named(record.header.suite_id, all_plans, config) for record in records]
    store = store_of(config, environment)
    with store if store is not None else nullcontext():  # suites that this configuration no longer has are not missed
        baselines = [find_references(config, store, p.suite.id, where, git, plan=p.planned) for p in plans]
    settings = job_settings(config, settings, plans, baselines)
    results = []
    for record, plan, found in zip(records, plans, baselines, strict=True):
        _check_measured_by(record, plan)
        trusted = against_base(_under_own_plan(with_stored_trials(record, found), plan), where.base)
        doubts = (*_cases_not_measured(trusted, plan, settings, found.first), *found.doubts)
        terms = terms_of_plan(plan, config, settings, notes=found.notes, doubts=doubts)
        terms = _as_its_run(terms, record)
        if record.header.stripped:
            same, verdict = found.first.commit or "", found.first.info.fell_short
            terms = replace(terms, whole=True, same_as=same, same_verdict=verdict)
        results.append(judge_record(trusted, found.all, terms))
    return result_of(results, settings, command=command)


def _as_its_run(terms: Terms, record: Record) -> Terms:
    """Return the terms with what only the record's run knows: its schedule, and the earlier measurements that count
    against it.

    Raises:
        UntrustedError: the record does not state it.
    """
    try:
        own = own_terms(record)
    except MeasureError as error:
        raise UntrustedError(error.what, where=record.header.suite_id) from None
    if own.earlier:
        verdicts, is_known = own.earlier, bool(record.header.agent)
        told = Finding.of("measured_before", verdicts=verdicts, total=len(verdicts), fingerprinted=is_known)
        terms = replace(terms, notes=(*terms.notes, told))
    settings = replace(terms.settings, exact_epochs=own.settings.exact_epochs, rerun=own.settings.rerun)
    return replace(
        terms,
        settings=settings,
        scheduled=own.scheduled,
        earlier=own.earlier,
        base_has_no_rules=own.base_has_no_rules,
    )


def _under_own_plan(record: Record, plan: Plan) -> Record:
    """Return the record's own scores under the cases of this plan, without the rules in the record.

    A case in the plan, matched by content under any id, is taken from the plan; if its content differs, it counts as
    edited, regardless of what the baseline says. For a case outside the plan, only the record's fingerprint of its
    content is used.
    """
    known, match = {case.id: case for case in plan.planned}, match_cases(plan.planned, record.header.plan)
    cases = []
    for case in record.header.plan:
        here = known.get(match.ids[case.id])
        if here is None:
            cases.append(PlannedCase(case.id, case.fingerprint))
        elif case.id in match.same:
            cases.append(replace(here, id=case.id))
        else:
            cases.append(replace(here, fingerprint=f"edited {case.fingerprint}"))
    footer = record.footer
    if footer is not None:
        footer = replace(footer, terms={})
    return replace(record, header=replace(record.header, plan=tuple(cases), seed=0), footer=footer)


def _cases_not_measured(record: Record, plan: Plan, settings: Settings, before: Reference) -> list[str]:
    """Return a note if too many cases of this plan were not measured for a pass.

    Those that the reference holds are left out: the rules compare them.
    """
    known = set()
    for header in (record.header, *(stored.header for stored in before.records)):
        for case in header.plan:
            known |= {case.id, case.fingerprint}
    judged = [case for case in plan.planned if case.id not in settings.quarantine]
    gone = [case for case in judged if known.isdisjoint((case.id, case.fingerprint))]
    if are_few(len(gone), len(judged)):
        return []
    return [f"{len(gone)} of {len(judged)} cases of the base branch were not measured"]


def _check_measured_by(record: Record, plan: Plan) -> None:
    measured = record.header.measures
    for criterion in plan.criteria:
        if measured.get(criterion.name) != criterion.fingerprint:
            raise UntrustedError(
                f"the record was not measured by the criterion {criterion.name!r} as configured here",
                where=record.header.suite_id,
                hint="bring the change up to date with its base, and measure again",
            )
    in_epochs = {trial.case_id for trial in record.trials if trial.is_of_epoch}
    others = {trial.case_id for trial in record.trials if trial.side is Side.CANDIDATE} - in_epochs
    if others:  # else a trial could name itself one that no mean includes
        what = f"{count(len(others), 'case')} ran in no epoch of the suite"
        raise UntrustedError(what, where=record.header.suite_id)


# --- scored again ---------------------------------------------------------------------------------
# This lets a baseline follow an upgrade of its judge: recorded conversations are scored by the current criteria.


async def rescore_record(path: Path, output: Path, config: Config, environment: Mapping[str, str]) -> str:
    """Write the record at ``path``, scored again, to ``output``; return one line on what was done.

    Raises:
        MeasureError: its trials are stored ones, without messages, or none of its cases is unchanged in the suite.
    """
    record = read_record(path)
    if record.header.stripped:
        raise MeasureError(
            "its trials are a baseline's, which keeps no messages",
            where=str(path),
            hint="name the record of the run that measured them: --record, .gate/records, or its job's artifact",
        )
    plans = make_plans(config, with_key_of_user(config, environment))
    plan = plan_named(record.header.suite_id, plans, config)
    match = match_cases(plan.planned, record.header.plan)
    kept = [trial for trial in record.trials if trial.case_id in match.same]
    if not kept:
        what = "the suite has no case with the same content as in the record"
        raise MeasureError(what, where=str(path), hint="check out the suite that the record belongs to")
    started, budget = monotonic(), config.file.budget
    run_budget = RunBudget(budget, judge_budget(budget))
    async with TrialRunner(config, plan, environment, run_budget) as runner:
        trials = [trial async for trial in runner.score(_renamed(kept, match))]
        judge_cost = runner.judge_cost_usd
    trials.sort(key=lambda trial: (trial.round, trial.case_id, trial.side.value, trial.number))
    stopped = [run_budget.stopped]
    if record.footer is not None:
        stopped.insert(0, record.footer.stopped)
    footer = replace(
        footer_of(tuple(trials)),
        duration=monotonic() - started,
        judge_cost_usd=judge_cost,
        stopped="; ".join(filter(None, dict.fromkeys(stopped))),
        terms=_rescored_terms(record, plan),
    )
    shards = {match.ids[case.id]: case.shard for case in record.header.plan if case.id in match.same}
    header = replace(
        record.header,
        plan=tuple([replace(case, shard=shards[case.id]) for case in plan.planned if case.id in shards]),
        criteria=plan.criteria,
        selected=record.header.selected or bool(plan.deselected),
        created=now().timestamp(),
    )
    write_record(output, Record(header, tuple(trials), footer))
    said, left = f"{output}: {count(len(trials), 'trial')} scored again", len(record.trials) - len(kept)
    if left:
        said += f"; left out: {count(left, 'trial')} of cases that changed, left the suite or are not selected"
    return said


async def _renamed(trials: Sequence[Trial], match: Match) -> AsyncIterator[Trial]:
    """Yield the trials under the current ids of their cases, without their scores."""
    for trial in trials:
        yield replace(trial, case_id=match.ids[trial.case_id], scores={})


def _rescored_terms(record: Record, plan: Plan) -> Mapping[str, object]:
    """Return the run's terms with the current criteria, unscheduled: its schedule used other scores."""
    own = own_terms(record)
    notes = (*own.notes, "scored again by other criteria or another judge than those of its run")
    terms = replace(own, criteria=plan.criteria, thresholds=None, notes=notes, base=None, scheduled=False)
    return terms.plain()
