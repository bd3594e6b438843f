"""Combines a configuration's criteria, targets and state for `gate monitor`, and chooses its exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from gate.config.load import Config
from gate.config.production import MonitorSection
from gate.config.resolve import Plan, make_plans
from gate.decision.outcomes import measured_values, passed
from gate.errors import EXIT_PRECEDENCE, ConfigError, ExitCode, nearest
from gate.model import Case, Criterion
from gate.monitor.alerts import EXPORT, FORMS, Alerts, Target, target_of
from gate.monitor.observe import Scoring, scoring_for
from gate.monitor.receive import SUFFIX, Inbox
from gate.monitor.report import Expected, MonitorReport, average, headline, to_text
from gate.monitor.store import MonitorState, open_state, read_state
from gate.monitor.watch import Say, Setup, Watch, report_of
from gate.monitor.window import Status
from gate.pipeline.budget import judge_of
from gate.pipeline.store import store_of
from gate.records import Record, read_record
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
    if not scoring.blocking:
        why = "; ".join(f"{name}: {why}" for name, why in scoring.skipped.items())
        what = f"no blocking criterion can judge a conversation without expectations ({why})"
        raise ConfigError(what, where=str(config.path), hint="add one that needs none, such as a judged metric")
    state_path = given["state"] or state_path_of(config)
    inbox = Inbox(state_path.with_name(f"{state_path.name}{SUFFIX}"), section.sample_rate)
    places = _places(config, inbox, given["traces"])
    expected = expected_of(config, plan, scoring, given["against"], environment)
    targets: list[Target] = []
    if not looking:
        _check_places(places, config)
        targets = _targets(section, environment)
    secrets: list[str] = []
    for target in targets:
        secrets += [target.url, target.token]
    return Setup(
        config,
        plan,
        scoring,
        redactor_of_production(environment, *secrets),
        Alerts(targets, suite=plan.suite.id, cool_down=section.cool_down, silence=section.silence),
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


def _targets(section: MonitorSection, environment: Mapping[str, str]) -> list[Target]:
    found = []
    for form in FORMS:
        for address in getattr(section.alerts, form):
            found.append(target_of(form, address.url, address.token or "", environment))
    if section.otlp:
        found.append(target_of(EXPORT, section.otlp, "", environment))
    return found


# --- CI's own averages ----------------------------------------------------------------------------


def expected_of(
    config: Config, plan: Plan, scoring: Scoring, against: str | None, environment: Mapping[str, str]
) -> Expected:
    """Return CI's figures for the same criteria, from the newest stored baseline or from a record's file."""
    if against is None or against == "none":
        return Expected()
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
    stored = record.header.measures
    same = [criterion for criterion in scoring.criteria if stored.get(criterion.name) == criterion.fingerprint]
    found = {}
    for criterion in same:
        mean = average(measured_values(trials, criterion), criterion.scale)
        if mean is not None:
            found[criterion.name] = mean
    pass_rate = None
    if all(criterion in same for criterion in scoring.blocking):
        pass_rate = average(_outcomes(record, plan, scoring.blocking))
    note = f"CI's averages are of {len(trials)} trials in {source}: other conversations, so compare with care"
    return Expected(found, pass_rate, note)


def _outcomes(record: Record, plan: Plan, criteria: Sequence[Criterion]) -> list[float]:
    """Return the outcome of each stored trial that can be judged by the criteria of production.

    These have no thresholds for single cases.
    """
    found = []
    for trial in record.trials:
        if trial.case_id not in plan.cases or not trial.is_of_epoch:
            continue
        outcome = passed(trial, Case(trial.case_id, ()), criteria)
        if outcome is not None:
            found.append(float(outcome))
    return found


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
    code of the comparison with another window."""
    found = [versus]
    if fail_on != "never":
        if report.status is Status.CRITICAL or (report.status is Status.WARNING and fail_on == "warning"):
            found.append(ExitCode.FAILED)
        if report.status is Status.INSUFFICIENT_DATA or lost:
            found.append(ExitCode.NOT_MEASURED)
    if problems:
        found.append(ExitCode.PUBLISH)
    return min(found, key=EXIT_PRECEDENCE.index)
