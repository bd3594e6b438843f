"""The steps of `gate run`: find each suite's baseline, measure the suite, judge its record, report, publish.

A failure to publish never changes the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from msgspec.structs import replace

from gate.agents.version import version_of
from gate.config.load import Config
from gate.config.resolve import make_plans
from gate.errors import ConfigError, MeasureError, PublishError
from gate.hosts import HOSTS, read_host_options
from gate.hosts.base import Applies, Done, Effect, Host, PostComment, Publication, WriteSummary, publish
from gate.model import Result, SuiteResult
from gate.pipeline.launch import wants_base_beside
from gate.pipeline.measurement import MeasuredSuite, measure_suite
from gate.pipeline.progress import Progress
from gate.pipeline.references import find_all_references
from gate.pipeline.session import RunOptions, open_session
from gate.pipeline.terms import job_settings
from gate.pipeline.verdict import accepted, judge_record, load_to_judge, result_of, shard_result, shown_trials
from gate.records import read_header
from gate.reports.files import Outputs, check_outputs, write_reports
from gate.reports.markdown import Place, render, render_suite
from gate.reports.trials import SuiteTrials
from gate.security.limits import described


async def run_gate(
    config: Config, options: RunOptions, outputs: Outputs, environment: Mapping[str, str], progress: Progress
) -> Result:
    """Measure every suite, decide, and write the reports.

    Raises:
        GateError: the run cannot mean anything; the exit code tells the kind of error.
    """
    plans = list(make_plans(config, environment))
    outputs = outputs.beside(config.root, config.file.reports)
    if options.record_path is not None and len(plans) > 1:
        raise ConfigError("--record names one file, but there are several suites", hint="leave it out")
    if options.record_path is not None and options.record_path.exists() and not options.record_path.is_file():
        what = "a record is a file that can be read again, and this is none"
        raise ConfigError(what, where=str(options.record_path), hint="omit --record, or name another path")
    with ExitStack() as stack:
        stack.callback(progress.close)
        own = (options.record_path, options.statement_path, *outputs.wanted.values())
        written = [path for path in own if path is not None]
        version = await version_of(config.agent_kind, config.agent, root=config.root, environment=environment)
        session = open_session(config, options, environment, progress, stack, written, version)
        check_outputs(outputs)  # creates them, so the work tree has been looked at before
        planned = [case.id for plan in plans for case in plan.suite.cases]
        if all(case_id in session.settings.quarantine for case_id in planned):  # it would judge nothing
            hint = "nothing was run; select others too, or end a quarantine"
            raise MeasureError(f"all {len(planned)} selected cases are in quarantine", where="quarantine", hint=hint)
        baselines = find_all_references(session.config, session.store, plans, session.where, session.git, environment)
        if not options.is_shard:  # a shard decides nothing; suites share an error budget
            beside = [wants_base_beside(session, found.first) for found in baselines]
            shared = job_settings(session.config, session.settings, plans, baselines, options.rules, beside=beside)
            session = replace(session, settings=shared)
        suites: list[MeasuredSuite] = []
        for found in baselines:
            plan = plans.pop(0)
            session.run_budget.reserved = session.settings.most_epochs * sum(len(rest.suite.cases) for rest in plans)
            suites.append(await measure_suite(session, plan, found))
            del plan  # drop the cases and recordings: judging needs only the record
        settings = session.settings
        if options.is_shard:  # missing evidence cannot block it
            settings = replace(settings, on_inconclusive="warn")
        paths = [one.path for one in suites]
        result = result_of(list(map(_judged, suites)), settings, command=options.command, record_paths=paths)

        def trials() -> list[SuiteTrials]:
            return [shown_trials(one.path, read_header(one.path), one.found.first, one.terms) for one in suites]

        return write_reports(result, outputs, trials)


def _judged(suite: MeasuredSuite) -> SuiteResult:
    """Return the verdict on a suite's record; a shard's has none."""
    record = load_to_judge(suite.path, criteria=suite.terms.criteria)
    if record.header.shard != (1, 1):
        return shard_result(record, suite.terms.settings.max_error_rate)
    return accepted(judge_record(record, suite.found.all, suite.terms), suite.found)


# --- publishing a result --------------------------------------------------------------------------


def publish_result(
    result: Result, hosts: Mapping[str, Mapping[str, Any]], environment: Mapping[str, str]
) -> Publication:
    """Publish a summary, and a comment per suite.

    Args:
        result: the result to publish.
        hosts: name of a host → its options, as under ``publish``.
        environment: the process's variables.

    Raises:
        ConfigError: a host is unknown, or does not have such an option.
    """
    all_of_them = Publication()
    for name, options in hosts.items():
        done = _publish_on(name, options, result, environment)
        all_of_them = Publication(
            (*all_of_them.urls, *done.urls),
            (*all_of_them.notes, *done.notes),
            (*all_of_them.problems, *done.problems),
        )
    return all_of_them


def _publish_on(name: str, options: Mapping[str, Any], result: Result, environment: Mapping[str, str]) -> Publication:
    read = read_host_options(name, options, f"publish.{name}")
    try:
        with _as_publish_errors(name):
            host = HOSTS.load(name).open(read, environment)
            if host is None:
                return Publication(notes=(HOSTS.load(name).nowhere,))
            with closing(host):
                return publish(_effects(result, host), _Guarded(name, host))
    except PublishError as error:
        return Publication(problems=(error,))


@contextmanager
def _as_publish_errors(name: str) -> Iterator[None]:
    """Turn whatever a plugin's host raises into a PublishError. An error of our own hosts is a bug, and stays one."""
    try:
        yield
    except PublishError:
        raise
    except (Exception, SystemExit) as error:
        if name in HOSTS:
            raise
        raise PublishError(f"the host raised {described(error)}", where=name) from error


def _effects(result: Result, host: Host) -> list[Effect]:
    place = Place(head=host.head, url=host.url)
    return [WriteSummary(render(result, place=place)), *comments_on(result, place, failed=bool(result.exit_code))]


def comments_on(result: Result, place: Place, *, failed: bool) -> list[Effect]:
    """Return the comment on each suite; ``failed``: it says why the job failed."""
    found: list[Effect] = []
    for suite in result.suites:
        found.append(PostComment(suite.suite_id, render_suite(suite, result, place=place), failed))
    return found


class _Guarded(Applies):
    """Wraps a plugin's host and turns each of its failures into a PublishError, so that later effects are still
    applied."""

    def __init__(self, name: str, host: Host) -> None:
        self._name, self._host = name, host

    def apply(self, effect: Effect) -> Done:
        with _as_publish_errors(self._name):
            done: object = self._host.apply(effect)
        return done if isinstance(done, Done) else Done()
