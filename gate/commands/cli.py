"""The command line: parse, call, print, exit. Only it and `action` print, read the environment or exit."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from msgspec.structs import replace

from gate import __version__
from gate.errors import Cancelled, GateError
from gate.model import ExitCode

if TYPE_CHECKING:
    from gate.model import Result
    from gate.pipeline.flow import RunOptions
    from gate.pipeline.progress import Progress
    from gate.reports.files import Outputs

# The imports inside the functions below are there for weight: `gate --help` loads neither pydantic nor an HTTP client.

CONFIG = click.option(
    "-c",
    "--config",
    "config_path",
    default="gate.yaml",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Configuration file.",
)
AGAINST = click.option("--against", "baseline", help="A baseline record instead, or `none` for thresholds alone.")
TAG = click.option("--tag", "tags", multiple=True, help="Only cases with this tag; may be repeated.")
COMPLEXITY = click.option(
    "--complexity", "complexities", multiple=True, help="Only cases of this complexity; may be repeated."
)
CASE = click.option("--case", "ids", multiple=True, help="Only this case, or a pattern with * and ?; may be repeated.")
WHERE = click.option(
    "--where",
    "conditions",
    metavar="KEY=VALUE",
    multiple=True,
    help="Only cases with this in their metadata (or tag=, complexity=, id=); may be repeated.",
)
OUTPUTS = (
    click.option("--junit", type=click.Path(path_type=Path), help="Write a JUnit report here."),
    click.option("--markdown", type=click.Path(path_type=Path), help="Write a Markdown report here."),
    click.option("--html", type=click.Path(path_type=Path), help="Write an HTML report here."),
    click.option("--json", "json_", type=click.Path(path_type=Path), help="Write a JSON report here."),
    click.option("-q", "--quiet", is_flag=True, help="One line instead of a report."),
)


GARBAGE_THRESHOLD = 200_000
"""Values made between two searches for cyclic garbage. A run makes many that stay and few cycles: at Python's 700, the
search would look at all cases and modules again and again, for a twentieth of the whole time."""

Command = TypeVar("Command", bound=Callable[..., Any])


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Applies several click options in the order they are listed."""

    def apply(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


class Once(click.Command):
    """A command whose options stand once, unless they may be repeated: of two files, the last would silently win."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for param in dict.fromkeys(order):
            is_one = isinstance(param, click.Option) and not (param.multiple or param.is_flag or param.count)
            if is_one and order.count(param) > 1:
                raise click.UsageError(f"{param.opts[-1]} is given {order.count(param)} times: give it once", ctx=ctx)
        return super().parse_args(ctx, args)


class Commands(click.Group):
    """A group of such commands."""

    command_class = Once
    group_class = type


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="gate")
@click.option("--debug", is_flag=True, help="Show tracebacks; may stand anywhere.")
def cli(debug: bool) -> None:
    """The quality gate for AI agents: pass, regressed or inconclusive, at a stated error rate."""


@cli.command()
@CONFIG
@with_options(TAG, COMPLEXITY, CASE, WHERE)
@click.option("--trials", help="`auto`, or exactly this many passes over all cases.")
@click.option("--against", metavar="COMMIT", help="Measure against this commit, branch or tag.")
@click.option("--store", type=click.Choice(["file", "git", "none"]), help="Where baselines are looked up.")
@click.option("--rules-from", metavar="REVISION", help="Hold the work tree to the rules of this commit, branch or tag.")
@click.option("--release", metavar="TAG", default="", help="Judge as this release: against the last accepted one.")
@click.option(
    "--record",
    "record_path",
    type=click.Path(path_type=Path),
    help="Write the record here; continue it where it exists.",
)
@click.option("--resume", is_flag=True, help="Continue the newest unfinished record.")
@click.option("--shard", metavar="I/N", help="Run part I of N; `gate merge` joins the records.")
@click.option(
    "--comment", is_flag=True, help="Write the result as a note on GitLab's merge request, where there is one."
)
@with_options(*OUTPUTS)
def run(config_path: Path, **given: Any) -> NoReturn:
    """Run the suite, compare with the baseline, and give a verdict as exit code."""
    from gate.config.base_policy import Rules, rules_of
    from gate.config.load import load_config
    from gate.pipeline.flow import run_gate
    from gate.system.signals import run as run_coroutine

    overrides, revision = _overrides(given), given["rules_from"]
    with ExitStack() as stack:
        if revision is None:
            rules = Rules(load_config(config_path, overrides))
        else:
            rules = stack.enter_context(rules_of(revision, config_path, overrides, os.environ))
        options = replace(_run_options(given), rules=rules)
        result = run_coroutine(run_gate(rules.config, options, _outputs(given), os.environ, _progress(given["quiet"])))
    if given["comment"]:
        _comment(result)
    _finish(result, given["quiet"])


@cli.command()
@click.argument("candidate", type=click.Path(path_type=Path))
@click.argument("baseline", type=click.Path(path_type=Path))
@click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Judge by these criteria instead of the record's own.",
)
@with_options(*OUTPUTS)
def compare(candidate: Path, baseline: Path, config_path: Path | None, **given: Any) -> NoReturn:
    """Decide between two records; nothing is run."""
    from gate.config.load import load_config
    from gate.pipeline.stored import compare_records

    config = load_config(config_path) if config_path else None
    _finish(compare_records(candidate, baseline, config, os.environ, _outputs(given), _command()), given["quiet"])


@cli.command()
@CONFIG
@with_options(TAG, COMPLEXITY, CASE, WHERE)
def suite(config_path: Path, **given: Any) -> None:
    """Show what would be run: cases, tags, complexity, criteria."""
    from gate.commands.review import describe_suites
    from gate.config.load import load_config

    click.echo(describe_suites(load_config(config_path, _overrides(given)), os.environ))


@cli.command()
@click.option("--metric", required=True, help="A registered metric, or module:attribute.")
@click.option("--options", default="{}", show_default=True, help="The metric's options as JSON.")
def score(metric: str, options: str) -> None:
    """Score recorded pairs: JSON lines of {id, actual, expected} in, {id, score, per_turn, error} out."""
    from gate.agents.base import allowed_environment
    from gate.formats.documents import parse_document
    from gate.metrics.recorded import score_lines

    parsed, seen = parse_document(options, "--options"), allowed_environment(os.environ, ())
    for line in score_lines(metric, parsed, sys.stdin, folder=str(Path.cwd()), environment=seen):
        click.echo(line)


@cli.command()
@click.option("--jsonl", is_flag=True, help="One state a line in, one answer a line out; the only form there is.")
def decide(jsonl: bool) -> None:  # noqa: ARG001 - what the command speaks anyway, for those who say it
    """Answer states of the decision protocol, so that anyone can test the rule with a simulator of their own."""
    from gate.decision.engine.protocol import decide_lines

    for line in decide_lines(sys.stdin):
        click.echo(line)


@cli.command()
@click.argument("record", type=click.Path(path_type=Path))
@AGAINST
@CONFIG
@with_options(*OUTPUTS)
def report(record: Path, baseline: str | None, config_path: Path, **given: Any) -> NoReturn:
    """Render a record's verdict again, in any form, against the baseline that its run would find."""
    from gate.pipeline.stored import report_record

    _finish(report_record(record, baseline, config_path, os.environ, _outputs(given), _command()), given["quiet"])


@cli.command()
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Where to write the whole record.")
@click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Decide too, as a run over all shards would: by this configuration, against its baseline.",
)
@with_options(*OUTPUTS)
def merge(records: tuple[Path, ...], output: Path, config_path: Path | None, **given: Any) -> None:
    """Join the records of all shards; refuses a missing, doubled, torn or foreign one."""
    from gate.config.load import load_config
    from gate.pipeline.stored import decide_merged, merge_records

    if config_path is None and any(given.values()):
        raise click.UsageError("reports need a verdict: name the configuration that decides (-c gate.yaml)")
    click.echo(merge_records(records, output), err=config_path is not None)
    if config_path is None:
        return
    _finish(decide_merged(output, load_config(config_path), os.environ, _outputs(given), _command()), given["quiet"])


@cli.command()
@click.argument("record", type=click.Path(path_type=Path))
@CONFIG
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Where to write the new record.")
def rescore(record: Path, config_path: Path, output: Path) -> None:
    """Score a kept record again, by the criteria and the judge of today; no agent is run."""
    from gate.config.load import load_config
    from gate.pipeline.rescore import rescore_record
    from gate.system.signals import run as run_coroutine

    click.echo(run_coroutine(rescore_record(record, output, load_config(config_path), os.environ)))


@cli.command()
@click.argument("record", type=click.Path(path_type=Path))
@AGAINST
@CONFIG
@click.option("--case", "case_id", help="One case: its trials on both sides.")
def explain(record: Path, baseline: str | None, config_path: Path, case_id: str | None) -> None:
    """How a verdict came about: estimates, intervals, tests, and what was spent of the error budget.

    Against the baseline that the record's run would find, unless another is named.
    """
    from gate.commands.review import explain_record

    click.echo(explain_record(record, baseline, config_path, os.environ, case_id))


@cli.command()
@click.argument("record", required=False, type=click.Path(path_type=Path))
@CONFIG
def power(record: Path | None, config_path: Path) -> None:
    """What drop a record's suite would find, with how many cases and trials, at what cost.

    Without RECORD: the suites of the configuration, by their stored baselines.
    """
    from gate.commands.review import power_of_record, power_of_suites
    from gate.config.load import load_config

    click.echo(power_of_record(record) if record else power_of_suites(load_config(config_path), os.environ))


@cli.command()
@click.argument("record", required=False, type=click.Path(path_type=Path))
@CONFIG
@click.option("--write", is_flag=True, help="Edit the file; comments and layout stay.")
def ratchet(record: Path | None, config_path: Path, write: bool) -> None:
    """Propose higher thresholds, by what a record shows the agent to reach already; none is ever lowered.

    Without RECORD: by the newest stored baseline of every suite.
    """
    from gate.config.load import load_config
    from gate.pipeline.ratchet import ratchet as propose

    click.echo(propose(load_config(config_path), record, os.environ, write=write))


@cli.command()
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path))
def history(records: tuple[Path, ...]) -> None:
    """Pass rate of each case over several records, with flaky cases flagged."""
    from gate.commands.review import history_of_records

    click.echo(history_of_records(records))


@cli.command()
@click.option("--report", "of_report", is_flag=True, help="Of the JSON report instead.")
def schema(of_report: bool) -> None:
    """Print the JSON Schema of gate.yaml, or of the JSON report."""
    import json

    from gate.config.load import json_schema
    from gate.reports.json import schema as report_schema

    click.echo(json.dumps(report_schema() if of_report else json_schema(), indent=2))


@cli.command()
@click.argument("labels", type=click.Path(path_type=Path))
@CONFIG
@click.option("--metric", required=True, help="The judged metric to calibrate.")
def calibrate(labels: Path, config_path: Path, metric: str) -> None:
    """Agreement of the judge with human labels: accuracy and Cohen's kappa, with intervals."""
    from gate.commands.review import calibrate_judge
    from gate.config.load import load_config
    from gate.system.signals import run as run_coroutine

    click.echo(run_coroutine(calibrate_judge(load_config(config_path), labels, metric, os.environ)))


@cli.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a first gate.yaml and a suite of two cases."""
    from gate.commands.scaffold import write_project

    for path in write_project(folder):
        click.echo(f"wrote {path}")
    click.echo("next: gate run; then, to keep a baseline: gate run --trials 5 --record .gate/main.jsonl")
    click.echo("                                       gate baseline save .gate/main.jsonl")


@cli.group()
def baseline() -> None:
    """Stored baselines: save, accept, show, list, compare."""


RELEASE = click.option("--release", metavar="TAG", default="", help="The tag that this commit is released as.")


@baseline.command("save")
@click.argument("record", type=click.Path(path_type=Path), required=False)
@CONFIG
@RELEASE
def baseline_save(record: Path | None, config_path: Path, release: str) -> None:
    """Add a complete record to its commit's baseline; without one, the newest finished record of each suite."""
    from gate.config.load import load_config
    from gate.pipeline.keeping import save_baseline, save_newest

    config = load_config(config_path)
    if record is None:
        click.echo(save_newest(config, os.environ, release=release))
    else:
        click.echo(save_baseline(config, record, os.environ, release=release))


@baseline.command("accept")
@click.argument("commit", required=False)
@CONFIG
@click.option("--why", required=True, help="The reason, which is stored.")
@click.option("--by", help="Who accepts; without it, as git or the CI knows you.")
def baseline_accept(commit: str | None, config_path: Path, why: str, by: str | None) -> None:
    """Make the stored record of COMMIT (HEAD) the anchor, which releases and the default branch are compared with."""
    from gate.config.load import load_config
    from gate.pipeline.keeping import accept_baseline

    click.echo(accept_baseline(load_config(config_path), os.environ, revision=commit, by=by, why=why))


@baseline.command("list")
@CONFIG
def baseline_list(config_path: Path) -> None:
    """List the stored baselines, what was found of them, and which is the anchor."""
    from gate.config.load import load_config
    from gate.pipeline.keeping import list_baselines

    click.echo(list_baselines(load_config(config_path), os.environ))


@baseline.command("show")
@CONFIG
def baseline_show(config_path: Path) -> None:
    """Show the baseline that a run would be compared with, the anchor, and what was found of both."""
    from gate.config.load import load_config
    from gate.pipeline.keeping import show_baseline

    click.echo(show_baseline(load_config(config_path), os.environ))


@baseline.command("diff")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
def baseline_diff(old: Path, new: Path) -> None:
    """What differs between two records, case by case."""
    from gate.commands.review import diff_records

    click.echo(diff_records(old, new))


def _overrides(given: dict[str, Any]) -> dict[str, Any]:
    """Command-line options as keys of the configuration, so that there is one validation."""
    overrides: dict[str, Any] = {}
    for key, name in (("select.tags", "tags"), ("select.complexity", "complexities"), ("select.ids", "ids")):
        if given.get(name):
            overrides[key] = list(given[name])
    for key, values in _where(given.get("conditions") or ()).items():
        more = overrides.get(f"select.{key}", [])
        overrides[f"select.{key}"] = values if isinstance(values, dict) else [*more, *values]
    if given.get("trials"):
        text = given["trials"]
        overrides["trials"] = int(text) if text.isdigit() else text
    if given.get("against"):
        overrides["baseline.against"] = given["against"]
    if given.get("store"):
        overrides["baseline.store"] = given["store"]
    return overrides


def _where(conditions: Sequence[str]) -> dict[str, Any]:
    if not conditions:
        return {}
    from gate.suites.selection import where

    return where(conditions)


def _run_options(given: dict[str, Any]) -> RunOptions:
    from gate.pipeline.flow import RunOptions

    shard = _shard(given["shard"]) if given["shard"] else (1, 1)
    return RunOptions(
        record_path=given["record_path"],
        resume=given["resume"],
        shard=shard,
        command=_command(),
        release=given["release"],
    )


def _shard(text: str) -> tuple[int, int]:
    index, slash, total = text.partition("/")
    if not (slash and index.isdigit() and total.isdigit() and 1 <= int(index) <= int(total) <= 10_000):
        raise click.BadParameter(f"{text!r} is not of the form 2/5", param_hint="--shard")
    return int(index), int(total)


def _outputs(given: dict[str, Any]) -> Outputs:
    from gate.reports.files import Outputs

    return Outputs(junit=given["junit"], markdown=given["markdown"], html=given["html"], json=given["json_"])


def _command() -> str:
    from shlex import join

    return join(["gate", *sys.argv[1:]])


def _progress(quiet: bool) -> Progress:
    from gate.pipeline.progress import Bar, Lines, Silent

    if quiet:
        return Silent()
    return Bar(sys.stderr) if sys.stderr.isatty() and not os.environ.get("CI") else Lines(sys.stderr)


def _comment(result: Result) -> None:
    """Publishes on the merge request of this pipeline. What goes wrong is said, and changes no verdict."""
    from gate.hosts.base import PostComment, publish
    from gate.hosts.gitlab import MergeRequestHost, merge_request_of
    from gate.hosts.rest import Rest
    from gate.reports.markdown import Place, render_suite
    from gate.security.escape import console

    request = merge_request_of(os.environ)
    if request is None:
        click.echo("gate: no comment: this is no merge request pipeline of GitLab", err=True)
        return
    place = Place(head=request.stamp.head, url=os.environ.get("CI_JOB_URL", ""))
    notes = [PostComment(suite.suite_id, render_suite(suite, result, place=place)) for suite in result.suites]
    with Rest(request.api, request.headers, environment=os.environ) as rest:
        done = publish(notes, MergeRequestHost(request, rest))
    for line in (*done.notes, *done.comment_urls, *map(str, done.problems)):
        click.echo(f"gate: {console(line)}", err=True)


def _finish(result: Result, quiet: bool) -> NoReturn:
    """Prints the report and ends with the verdict's exit code."""
    from shutil import get_terminal_size

    from gate.reports.console import render, render_line
    from gate.security.escape import console

    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = get_terminal_size((100, 20)).columns
    encoding = sys.stdout.encoding or "utf-8"
    text = (
        render_line(result, encoding=encoding) if quiet else render(result, width=width, color=color, encoding=encoding)
    )
    try:
        click.echo(text)
    except BrokenPipeError:  # the reader left early; the verdict stands
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  (or the interpreter complains when it flushes at exit)
    for problem in result.problems:
        click.echo(f"gate: {console(problem)}", err=True)
    raise SystemExit(int(result.exit_code))


def main() -> NoReturn:
    """The `gate` command. No traceback ever reaches a user; `--debug` shows it."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for some reads every installed package
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    try:
        cli.main([word for word in arguments if word != "--debug"], standalone_mode=False)
    except GateError as error:
        _fail(str(error), error.exit_code, debug)
    except click.exceptions.Exit as error:
        raise SystemExit(error.exit_code) from None
    except click.ClickException as error:
        _fail(_usage(error), ExitCode.CONFIGURATION, debug)
    except Cancelled as error:
        _fail("stopped; everything measured so far is in the record, and --resume continues it", error.exit_code, debug)
    except (KeyboardInterrupt, click.Abort):
        _fail("stopped", ExitCode.INTERRUPTED, debug)
    except Exception as error:  # noqa: BLE001  (the one place: whatever it was, nothing was measured)
        _fail(
            f"unexpected {type(error).__name__}: {error} (run again with --debug for the traceback)",
            ExitCode.NOT_MEASURED,
            debug,
        )
    raise SystemExit(0)


def _usage(error: click.ClickException) -> str:
    """What is wrong with the command line, as one line like every other error."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    what = " ".join(error.format_message().split())
    return what if context is None else f"{what} ({context.command_path.replace('python -m gate', 'gate')} --help)"


def _fail(message: str, exit_code: int, debug: bool) -> NoReturn:
    if debug:
        import traceback

        traceback.print_exc()
    from gate.security.escape import console

    click.echo(f"gate: {console(message)}", err=True)
    raise SystemExit(int(exit_code))
