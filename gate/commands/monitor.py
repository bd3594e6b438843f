"""`gate monitor`: scores a sample of the agent's production traces."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gate.commands.common_options import CONFIG, PATH
from gate.commands.groups import Once
from gate.commands.output import show, width_of

if TYPE_CHECKING:
    from gate.monitor.report import MonitorReport
    from gate.monitor.watch import Setup


@click.command(cls=Once)
@click.argument("traces", nargs=-1, type=PATH)
@CONFIG
@click.option(
    "--once", is_flag=True, help="Read the available traces, report, and exit; for cron. Default: run until stopped."
)
@click.option("--status", "looking", is_flag=True, help="Report from the stored state; read no traces.")
@click.option("--sample-rate", type=float, help="Share of the traces to score, 0 to 1; 1 scores all.")
@click.option("--state", type=PATH, help="File of the monitor's state. Default: monitor.sqlite beside the records.")
@click.option("--against", metavar="RECORD", help="Compare with CI's results: `baseline`, or a record file.")
@click.option(
    "--versus",
    metavar="STATE",
    type=PATH,
    help="With --once or --status: decide whether this window is worse than another monitor's, such as a canary than "
    "the stable version.",
)
@click.option("--json", "json_path", type=PATH, help="Write each report here as JSON.")
@click.option(
    "--fail-on",
    type=click.Choice(["critical", "warning", "never"]),
    default="critical",
    show_default=True,
    help="With --once or --status: exit with 1 from this status on.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print one line instead of a report.")
def monitor(config_path: Path, **given: Any) -> NoReturn:
    """Score a sample of production traces.

    Applies CI's criteria, and alerts when the pass rate falls. TRACES are files or folders with OTLP JSON lines
    or rows of messages; default: `monitor.traces`.
    """
    from gate.config.load import load_config
    from gate.monitor.service import set_up, stored_report
    from gate.monitor.versus import check_other

    if given["once"] and given["looking"]:
        raise click.UsageError("give either --once or --status")
    if given["versus"] is not None and not (given["once"] or given["looking"]):
        raise click.UsageError("--versus needs --once or --status")
    overrides = {}
    if given["sample_rate"] is not None:
        overrides["monitor.sample_rate"] = given["sample_rate"]
    config = load_config(config_path, overrides)
    setup = set_up(config, os.environ, given, looking=given["looking"])
    if given["versus"] is not None:
        check_other(setup, given["versus"])
    if given["looking"]:
        _finish(setup, stored_report(setup), given, write=True)
    if given["once"]:
        _once(setup, given)
    _forever(setup, given)


def _once(setup: Setup, given: Mapping[str, Any]) -> NoReturn:
    from gate.monitor.service import PATIENCE, stored_report, wait_for_state, watch
    from gate.system.signals import run as run_coroutine

    state = wait_for_state(setup.state_path, patience=PATIENCE)
    if state is None:
        note = "another monitor is at work on this state: nothing was read here"
        _finish(setup, stored_report(setup, [note]), given)
    with state:
        found = run_coroutine(watch(setup, state, os.environ, None))
        _finish(setup, found.report(), given, found.problems, lost=found.lost or found.unsettled)


def _forever(setup: Setup, given: Mapping[str, Any]) -> NoReturn:
    from gate.errors import Cancelled
    from gate.monitor.service import stored_report, text_of, wait_for_state, watch
    from gate.system.signals import run as run_coroutine

    def say(report: MonitorReport) -> None:
        width = width_of(os.environ)
        show(text_of(report, setup.section, quiet=given["quiet"], width=width), width)

    try:
        state = wait_for_state(setup.state_path, patience=0.0)
        if state is None:
            click.echo("gate: another monitor is at work on this state: waiting to take its place", err=True)
            state = wait_for_state(setup.state_path, patience=None)
        assert state is not None, "without a limit it is waited for"
        with state:
            run_coroutine(watch(setup, state, os.environ, say))
    except (Cancelled, KeyboardInterrupt):
        show(text_of(stored_report(setup), setup.section, quiet=True), width_of(os.environ))
    raise SystemExit(0)


def _finish(
    setup: Setup,
    report: MonitorReport,
    given: Mapping[str, Any],
    problems: list[str] | None = None,
    *,
    write: bool = False,
    lost: str = "",
) -> NoReturn:
    from gate.errors import ExitCode
    from gate.monitor.report import to_json
    from gate.monitor.service import exit_code, text_of
    from gate.monitor.versus import code_of, compared_with
    from gate.security import files
    from gate.security.escape import console

    if write and given["json_path"] is not None:
        files.write_text(given["json_path"], to_json(report))
    width = width_of(os.environ)
    show(text_of(report, setup.section, quiet=given["quiet"], width=width), width)
    against = ExitCode.PASS
    if given["versus"] is not None:
        verdict, text = compared_with(setup, given["versus"])
        against = code_of(verdict, setup.config)
        click.echo(console(f"against {given['versus'].name}: {text}", 500))
    for problem in (*([lost] if lost else []), *(problems or ())):
        click.echo(f"gate: {console(problem)}", err=True)
    raise SystemExit(int(exit_code(report, given["fail_on"], problems or (), lost=lost, versus=against)))
