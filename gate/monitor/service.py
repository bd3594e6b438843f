"""Combines a configuration's criteria, targets and state for `gate monitor`, and chooses its exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

from msgspec.structs import replace

from gate.baselines.base import outage_in, shard_of
from gate.config.load import Config
from gate.config.production import MonitorSection
from gate.config.resolve import Plan, make_plans
from gate.config.schema import PASS_RATE_MARGIN
from gate.decision.outcomes import measured_values, passed
from gate.decision.own_models import OwnModels, judges_of, moved
from gate.errors import EXIT_PRECEDENCE, ConfigError, ExitCode, GateError, nearest
from gate.model import Case, Criterion, Verdict
from gate.monitor.alerts import Alerts, Target, target_of
from gate.monitor.model import Observation
from gate.monitor.observe import Scoring, scoring_for
from gate.monitor.receive import SUFFIX, Inbox
from gate.monitor.report import STALE_SECONDS, Expected, MonitorReport, average, headline, to_text, utc_time
from gate.monitor.store import MonitorState, is_state, open_state, read_state
from gate.monitor.versus import Arm, compare_arms, of_cases, of_traces
from gate.monitor.watch import Say, Setup, Watch, report_of
from gate.monitor.window import Status
from gate.pipeline.budget import judge_of
from gate.pipeline.store import store_of
from gate.pipeline.terms import own_terms
from gate.pipeline.verdict import judge_record
from gate.records import Record, read_record
from gate.reports.formatting import count
from gate.security.environment import may_be_secret
from gate.security.redact import Redactor
from gate.suites.messages import FieldPaths
from gate.system.http import Client
from gate.traces.receiver import check_library

PATIENCE = 20.0
"""Seconds that `--once` waits for another monitor to end."""
LOOK_SECONDS = 0.2


def set_up(config: Config, environment: Mapping[str, str], given: Mapping[str, Any], *, looking: bool = False) -> Setup:
    """Return the monitor for a configuration and a command line.

    Args:
        config: with the command line's overrides.
        environment: for addresses and values to redact.
        given: the command's options.
        looking: whether only the state is shown, so that neither traces nor addresses are needed.

    Raises:
        ConfigError: there are no traces, no criterion applies in production, or an address is not set.
    """
    section = config.file.monitor
    plan = _plan_of(config, environment)
    scoring = scoring_for(plan.scorers)
    if not any(criterion.blocking for criterion in scoring.criteria):
        why = "; ".join(f"{name}: {why}" for name, why in scoring.skipped.items())
        what = f"no blocking criterion can judge a conversation without expectations ({why})"
        raise ConfigError(what, where=str(config.path), hint="add one that needs none, such as a judged metric")
    state_path = given["state"] or state_path_of(config)
    inbox = Inbox(state_path.with_name(f"{state_path.name}{SUFFIX}"), section.sample_rate)
    places = _places(config, inbox, given["traces"])
    expected = expected_of(config, plan, scoring, given["against"], environment)
    targets: list[Target] = []
    exports: list[Target] = []
    if not looking:
        _check_places(places, config)
        targets = _targets(config, environment)
        if section.otlp:
            exports.append(target_of("otlp", section.otlp, "", environment))
    secrets: list[str] = []
    for target in (*targets, *exports):
        secrets += [target.url, target.token]
    return Setup(
        config,
        plan,
        scoring,
        redactor_of_production(environment, *secrets),
        Alerts(targets, exports, suite=plan.suite.id, cool_down=section.cool_down, silence=section.silence),
        state_path,
        places,
        config.file.fields or FieldPaths(),
        given["json_path"],
        expected,
        inbox if section.receive is not None else None,
    )


def state_path_of(config: Config) -> Path:
    """Return the place of the monitor's state."""
    return config.output / "monitor.sqlite"


def _places(config: Config, inbox: Inbox, named: Sequence[Path]) -> tuple[Path, ...]:
    """Return the files and folders of traces. An inbox that exists is read even if nothing is received any more."""
    section = config.file.monitor
    places = [*named] or [config.root / place for place in section.traces]
    if section.receive is not None or inbox.path.exists():
        places.append(inbox.path)
    return tuple(places)


def redactor_of_production(environment: Mapping[str, str], *more: str) -> Redactor:
    """Return a redactor of secrets and personal data: people in production did not write for a test suite."""
    secrets = [value for name, value in environment.items() if may_be_secret(name)]
    return Redactor([*secrets, *more], personal=True)


def _plan_of(config: Config, environment: Mapping[str, str]) -> Plan:
    plans, named = make_plans(config, environment), config.file.monitor.suite
    by_id = {plan.suite.id: plan for plan in plans}
    if named is None and len(plans) == 1:
        return plans[0]
    if named is None:
        what = f"{len(plans)} suites have criteria of their own"
        raise ConfigError(what, where=f"{config.path}: monitor.suite", hint=f"name one of {', '.join(by_id)}")
    if named not in by_id:
        raise ConfigError(f"no suite {named!r}", where=f"{config.path}: monitor.suite", hint=nearest(named, [*by_id]))
    return by_id[named]


def _check_places(places: Sequence[Path], config: Config) -> None:
    if not places:
        hint = "a file or a folder with OTLP JSON lines or rows of messages; or name it on the command line"
        raise ConfigError("no traces given", where=f"{config.path}: monitor.traces", hint=hint)
    for place in places:
        if not place.exists() and not place.parent.is_dir() and not place.is_relative_to(config.output):
            raise ConfigError(f"no such file or folder: {place}", where="monitor.traces")


def _targets(config: Config, environment: Mapping[str, str]) -> list[Target]:
    alerts = config.file.monitor.alerts
    found = []
    for form in type(alerts).model_fields:
        for address in getattr(alerts, form):
            found.append(target_of(form, address.url, address.token or "", environment))
    return found


# --- CI's own averages ----------------------------------------------------------------------------


def expected_of(
    config: Config, plan: Plan, scoring: Scoring, against: str | None, environment: Mapping[str, str]
) -> Expected | None:
    """Return CI's figures for the same criteria, from the newest stored baseline or from a record's file."""
    if against is None or against == "none":
        return None
    if against != "baseline":
        return _expected(read_record(Path(against)), plan, scoring, against)
    store = store_of(config, environment)
    if store is None:
        raise ConfigError("baselines are switched off", where=str(config.path), hint="name a record instead")
    with store:
        found = store.latest(plan.suite.id)
    if found is None:
        return Expected({}, None, f"no baseline of {plan.suite.id!r} is stored: nothing to compare with")
    return _expected(found.records[0], plan, scoring, found.info.source)


def _expected(record: Record, plan: Plan, scoring: Scoring, source: str) -> Expected:
    trials = [trial for trial in record.trials if trial.is_of_epoch and trial.measured]
    changed = _scored_differently(record, scoring.criteria)
    found = {}
    for criterion in scoring.criteria:
        mean = average(measured_values(trials, criterion), criterion.scale)
        if mean is not None and criterion not in changed:
            found[criterion.name] = mean
    blocking = _blocking(scoring)
    pass_rate = None
    if not any(criterion in changed for criterion in blocking):
        pass_rate = average([outcome for _, outcome in _outcomes(record, plan, blocking)])
    note = f"CI's averages are of {len(trials)} trials in {source}: other conversations, so compare with care"
    return Expected(found, pass_rate, note)


def _blocking(scoring: Scoring) -> list[Criterion]:
    return [criterion for criterion in scoring.criteria if criterion.blocking]


def _scored_differently(record: Record, criteria: Sequence[Criterion]) -> list[Criterion]:
    """Return the criteria that the record lacks, or that scored otherwise there."""
    stored = record.header.measures
    return [criterion for criterion in criteria if stored.get(criterion.name) != criterion.fingerprint]


def _outcomes(record: Record, plan: Plan, criteria: Sequence[Criterion]) -> list[tuple[str, float]]:
    """Return the case and the outcome of each stored trial that can be judged by the criteria of production.

    These have no thresholds for single cases.
    """
    found = []
    for trial in record.trials:
        if trial.case_id not in plan.cases or not trial.is_of_epoch:
            continue
        outcome = passed(trial, Case(trial.case_id, ()), criteria)
        if outcome is not None:
            found.append((trial.case_id, float(outcome)))
    return found


# --- against another window, or a release ----------------------------------------------------------


def check_other(setup: Setup, other: Path) -> None:
    """Raise `ConfigError` if the window would be compared with the monitor's own state."""
    if other.resolve() == setup.state_path.resolve():
        raise ConfigError("it is this monitor's own state", where=str(other), hint="give the other version's state")


def compared_with(setup: Setup, other: Path) -> tuple[Verdict, str]:
    """Return the verdict on this window beside another monitor's state or a record, and a line about it.

    If the other is missing, damaged or neither of these, the verdict is `NOT_MEASURED`, and the status of this window
    still counts.
    """
    try:
        return _compared(setup, other)
    except GateError as error:
        return Verdict.NOT_MEASURED, f"not measured: {error}"


def _compared(setup: Setup, other: Path) -> tuple[Verdict, str]:
    config, criteria, most_lost = setup.config, setup.scoring.fingerprint, setup.max_unmeasured
    here = _window_in(setup, setup.state_path, criteria)
    judges = _judges_of(here)
    shared = 0
    if is_state(other):
        there = _window_in(setup, other, criteria)
        shared = len({one.trace for one in here} & {one.trace for one in there})
        against = of_traces(other.stem, [one.passed for one in there], most_lost, shared)
        against = _unless_judged_otherwise(against, setup, judges, _judges_of(there))
        note = _age(other.stem, max((one.at for one in there), default=None))
    else:
        record = read_record(other)
        against = _record_arm(record, setup, other.name)
        against = _unless_judged_otherwise(against, setup, judges, judges_of(record.trials))
        note = _age(other.name, record.header.created) + _own_verdict(record, other.name)
    own = of_traces("this window", [one.passed for one in here], most_lost, shared)
    gate = config.file.gate
    margin = gate.pass_rate_margin
    if margin is None:
        margin = PASS_RATE_MARGIN
    least = config.file.monitor.min_samples
    verdict, text = compare_arms(own, against, alpha=gate.alpha, margin=margin, least=least)
    return verdict, f"{text}{note}"


def _window_in(setup: Setup, path: Path, criteria: str) -> list[Observation]:
    with read_state(path) as state:
        return state.window(setup.section.window, criteria)


def _judges_of(window: Sequence[Observation]) -> OwnModels:
    """Return the judges of the traces in a window."""
    found: dict[str, set[tuple[str, str]]] = {}
    for one in window:
        for criterion, judges in one.judges.items():
            found.setdefault(criterion, set()).update(judges)
    return found


def _unless_judged_otherwise(arm: Arm, setup: Setup, here: OwnModels, there: OwnModels) -> Arm:
    """Return the other side, as not comparable if its judge is another model than this window's."""
    for criterion in _blocking(setup.scoring):
        asked = moved(here.get(criterion.name, ()), there.get(criterion.name, ()))
        if asked and not arm.problem:
            what = f"for {criterion.name}, another model answered as the judge {asked[0]}"
            return replace(arm, problem=f"{what}: score one side again")
    return arm


def _age(name: str, at: float | None) -> str:
    """Return a note on the other side if its newest measurement is old: what moved since is not the version alone."""
    if at is None or time() - at <= STALE_SECONDS:
        return ""
    return f"; {name} is from {utc_time(at, ' ')} UTC"


def _record_arm(record: Record, setup: Setup, name: str) -> Arm:
    """Return the cases of a record, each with the share of its trials that hold the criteria of production."""
    problem = _not_comparable(record, setup)
    if problem:
        return Arm(name, (), "case", problem=problem)
    return of_cases(name, _outcomes(record, setup.plan, _blocking(setup.scoring)))


def _not_comparable(record: Record, setup: Setup) -> str:
    """Return the reason why a record cannot be compared with the window; empty if it can."""
    problem = shard_of(record) or outage_in(record)
    if problem:
        return f"not a baseline: {problem}"
    if record.header.suite_id != setup.plan.suite.id:
        return f"it is of another suite, {record.header.suite_id!r}, and not of {setup.plan.suite.id!r}"
    own = {case.id: case.fingerprint for case in setup.plan.planned}
    others = [case.id for case in record.header.plan if own.get(case.id) != case.fingerprint]
    if others:
        verb = "is" if len(others) == 1 else "are"
        was = f"{count(len(others), 'case')} of its {len(record.header.plan)} {verb}"
        return f"{was} not as in the suite here, such as {others[0]!r}: measure the release again"
    changed = _scored_differently(record, _blocking(setup.scoring))
    if changed:
        return f"it was measured by another {changed[0].name}"
    return ""


def _own_verdict(record: Record, name: str) -> str:
    """Return a note for the comparison if the record did not pass by its own rules; else empty."""
    verdict = judge_record(record, (), own_terms(record)).verdict
    return "" if verdict is Verdict.PASS else f"; {name} itself is {verdict.value}"


# --- running --------------------------------------------------------------------------------------


async def watch(setup: Setup, state: MonitorState, environment: Mapping[str, str], say: Say | None) -> Watch:
    """Read once, or with ``say`` until a signal arrives."""
    async with AsyncExitStack() as stack:
        judge = None
        if any(scorer.needs_judge for scorer in setup.scoring.scorers):
            judge = await stack.enter_async_context(judge_of(setup.config, environment))
        client = await stack.enter_async_context(Client(environment=environment))
        inbox, port = setup.inbox, setup.config.file.monitor.receive
        if inbox is not None and port is not None and say is not None:
            check_library()
            await stack.enter_async_context(stack.enter_context(inbox).receiver(port))
        found = Watch(setup, state, judge)
        if say is None:
            await found.once(client)
        else:
            await found.forever(client, say)
    return found


def wait_for_state(path: Path, *, patience: float | None) -> MonitorState | None:
    """Return the state once no other monitor writes it; None if that takes longer than ``patience`` seconds."""
    until = None if patience is None else monotonic() + patience
    while True:
        state = open_state(path)
        if state is not None or (until is not None and monotonic() >= until):
            return state
        sleep(LOOK_SECONDS)


def stored_report(setup: Setup, notes: Sequence[str] = ()) -> MonitorReport:
    """Return the report on the stored traces, reading nothing new."""
    with read_state(setup.state_path) as state:
        return report_of(state, setup, notes)


def text_of(report: MonitorReport, section: MonitorSection, *, quiet: bool, width: int | None = None) -> str:
    """Return the report as printed text."""
    return headline(report) if quiet else to_text(report, section, width)


def exit_code(
    report: MonitorReport,
    fail_on: str,
    problems: Sequence[str],
    *,
    lost: str = "",
    versus: ExitCode = ExitCode.PASS,
) -> ExitCode:
    """Return the exit code of a report; ``lost``: the reason why new traces could not be measured; ``versus``: the exit
    code of the comparison with another window or a record."""
    return min(versus, _of_status(report, fail_on, problems, lost), key=EXIT_PRECEDENCE.index)


def code_of(verdict: Verdict, config: Config) -> ExitCode:
    """Return the exit code of a comparison, as for a run with this verdict."""
    if verdict is Verdict.INCONCLUSIVE:
        return ExitCode.FAILED if config.file.gate.on_inconclusive == "block" else ExitCode.PASS
    return {Verdict.PASS: ExitCode.PASS, Verdict.REGRESSED: ExitCode.FAILED}.get(verdict, ExitCode.NOT_MEASURED)


def _of_status(report: MonitorReport, fail_on: str, problems: Sequence[str], lost: str) -> ExitCode:
    if fail_on != "never":
        if report.status is Status.CRITICAL or (report.status is Status.WARNING and fail_on == "warning"):
            return ExitCode.FAILED
        if report.status is Status.INSUFFICIENT_DATA or lost:
            return ExitCode.NOT_MEASURED
    return ExitCode.PUBLISH if problems else ExitCode.PASS
