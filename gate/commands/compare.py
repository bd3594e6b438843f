"""`gate compare`: the verdict on one record against another, or a table of several records and configurations."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gate.commands.common_options import (
    DEFAULT_CONFIG,
    OUTPUTS,
    PATH,
    from_here,
    outputs_of,
    record_before_or,
    record_or_newest,
    with_options,
)
from gate.commands.groups import Once
from gate.commands.output import command_line, encoding_of, errors_in_reports, finish, progress_of, report_width, show
from gate.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from gate.config.load import Config
    from gate.insight.lineup import Contender

YAML = (".yaml", ".yml")
COMMIT = re.compile(r"[0-9a-f]{40}")
SHORT_COMMIT = 12
FORMS = ("json", "html", "markdown")
"""The formats of the table of several records."""
Side = tuple[str, Path]
"""The name of a record or a configuration, and its file."""


@click.command(cls=Once)
@click.argument("compared", nargs=-1, metavar="[RECORD | CONFIG.yaml | NAME=FILE]...")
@click.option(
    "-c",
    "--config",
    "config_path",
    type=PATH,
    help="Judge by these criteria instead of the record's own.",
)
@click.option("--table", is_flag=True, help="Print a table without a verdict, even for two records.")
@click.option(
    "--vary",
    metavar="NAME:KEY=VALUE",
    multiple=True,
    help="Also run the configuration with this key changed, as NAME; repeatable, even for one NAME.",
)
@click.option("--epochs", type=click.IntRange(1, 1000), help="Runs of each case per configuration.  [3]")
@click.option("--records", type=PATH, help="Folder for the records of configurations.")
@click.option("--prefer", is_flag=True, help="Also ask the judge which answers it prefers, in both orders.")
@click.option("--quality", metavar="CRITERION", help="The criterion for quality.  [pass rate]")
@click.option("--fail-if-worse", is_flag=True, help="Exit 1 if another is proven worse than the first.")
@with_options(*OUTPUTS)
def compare(compared: tuple[str, ...], config_path: Path | None, **given: Any) -> NoReturn:
    """Compare two records, or several side by side.

    Judges the first of one or two records (default: the newest) against the second (default: the one before).
    Three or more, --table, --vary or a configuration give one table, no verdict, and exit code 0.
    """
    sides = [_named(text) for text in compared]
    configured = any(path.suffix in YAML for _, path in sides)
    if len(sides) > 2 or given["table"] or given["vary"] or given["prefer"] or configured:
        _table(sides, config_path, given)
    for name in ("epochs", "records", "quality", "fail_if_worse"):  # ignored, they would seem to have worked
        if given[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} is for a table: add --table, or a third record")
    from gate.config.load import load_config
    from gate.stored.judging import compare_records

    config = load_config(config_path) if config_path else None
    candidate = Path(compared[0]) if compared else None
    baseline = Path(compared[1]) if len(compared) > 1 else None
    record = record_or_newest(candidate, config_path or DEFAULT_CONFIG)
    reference = record_before_or(baseline, record, config_path or DEFAULT_CONFIG)
    outputs = outputs_of(given)
    with errors_in_reports(lambda: outputs):
        result = compare_records(record, reference, config, os.environ, outputs, command_line())
    finish(result, given["quiet"], given["verbose"])


def _named(text: str) -> Side:
    """Return the name and the file of ``people=people.jsonl``, or of a file named after a commit, shortened."""
    name, equals, path = text.partition("=")
    if equals and name and path and not Path(text).exists():
        return name, Path(path)
    stem = Path(text).stem
    if COMMIT.fullmatch(stem):
        stem = stem[:SHORT_COMMIT]
    return stem, Path(text)


# --- the table ------------------------------------------------------------------------------------


def _table(sides: list[Side], config_path: Path | None, given: dict[str, Any]) -> NoReturn:
    from gate.insight.lineup import line_up, read_contenders

    outputs = _outputs(given)
    records = _records(sides, config_path, given)
    contenders = read_contenders(records)
    config = terms = None
    if given["prefer"] or config_path is not None:
        config = _judging(sides, config_path)
    votes, cost = _votes(records, config, given)
    if config is not None and config_path is not None and not given["vary"]:
        terms = _terms(contenders[0], config)
    lineup = line_up(contenders, terms, quality=given["quality"] or "pass rate", votes=votes, judge_cost_usd=cost)
    for form, path in outputs.items():
        _write(form, path, lineup)
    from gate.reports.lineup import render_line, render_text

    encoding = encoding_of(os.environ)
    if given["quiet"]:
        show(render_line(lineup, encoding=encoding))
    else:
        show(render_text(lineup, encoding=encoding, width=report_width()))
    raise SystemExit(int(_exit_code(lineup, given)))


def _outputs(given: dict[str, Any]) -> dict[str, Path]:
    """Return the files of the table, after creating their folders: a failure must come before anything is run."""
    from gate.reports.files import check_outputs

    outputs = outputs_of(given)
    for name in outputs.paths:
        if name not in FORMS:
            raise click.UsageError(f"a table has no {name} report: {', '.join(FORMS)}")
    check_outputs(outputs)
    return dict(outputs.wanted)


def _write(form: str, path: Path, lineup: Any) -> None:
    from gate.reports import lineup as forms
    from gate.security import files

    render = {"json": forms.render_json, "html": forms.render_html, "markdown": forms.render_markdown}[form]
    try:
        files.write_text(path, render(lineup))
    except OSError as error:
        raise ConfigError(f"the {form} report cannot be written: {error.strerror}", where=str(path)) from None


def _records(sides: list[Side], config_path: Path | None, given: dict[str, Any]) -> list[Side]:
    """Return the name and the record of each side; configurations are run first, all in parallel."""
    from gate.config.load import load_config
    from gate.insight.contest import run_contest
    from gate.insight.lineup import check_contenders
    from gate.model.defaults import MOST_EPOCHS
    from gate.system.signals import run as run_coroutine

    epochs = given["epochs"] or MOST_EPOCHS
    changes = {"trials": epochs, "baseline.store": "none"}
    varied = _varied(given["vary"])
    check_contenders([*(name for name, _ in sides), *varied])
    contestants = {}
    for name, path in sides:
        if path.suffix in YAML:
            contestants[name] = load_config(path, changes)
    for name, keys in varied.items():
        contestants[name] = load_config(config_path or DEFAULT_CONFIG, {**keys, **changes})
    if not contestants:
        return sides
    folder = given["records"] or _folder(next(iter(contestants.values())))
    progress = progress_of(given["quiet"])
    made = run_coroutine(run_contest(contestants, epochs, folder, os.environ, progress, command_line()))
    ran = {}
    for name, path in made:
        ran[name] = from_here(path)
        click.echo(f"gate: the record of {_shown(name)}: {_shown(str(ran[name]))}", err=True)
    records = [(name, ran.get(name, path)) for name, path in sides]
    records += [(name, ran[name]) for name in varied]
    return records


def _shown(text: str) -> str:
    from gate.security.escape import console

    return console(text, 300)


def _folder(config: Config) -> Path:
    from secrets import token_hex

    from gate.system.clock import now

    return config.output / "compare" / f"{now():%Y%m%dT%H%M%S}-{token_hex(4)}"


def _varied(texts: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return name → key → value from ``small:agent.env.MODEL=gpt-5-mini``; values are YAML."""
    from gate.formats.yaml_text import parse_yaml

    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, colon, change = text.partition(":")
        key, equals, value = change.partition("=")
        if not (name and colon and key and equals):
            what = f"{text!r} is not of the form small:agent.env.MODEL=gpt-5-mini"
            raise click.BadParameter(what, param_hint="--vary")
        found.setdefault(name, {})[key] = parse_yaml(value, "--vary")[0] if value.strip() else ""
    return found


def _judging(sides: list[Side], config_path: Path | None) -> Config | None:
    """Return the configuration for criteria and judge: the given one, else the first among the compared, else the
    usual one."""
    from gate.config.load import load_config

    if config_path is not None:
        return load_config(config_path)
    path = next((path for _, path in sides if path.suffix in YAML), DEFAULT_CONFIG)
    if not path.is_file():
        return None
    return load_config(path)


def _terms(first: Contender, config: Config) -> Any:
    from gate.pipeline.terms import terms_of_plan, with_run_of
    from gate.stored.judging import plan_of

    return with_run_of(first.record, terms_of_plan(plan_of(config, os.environ, first.record.header), config))


def _votes(records: list[Side], config: Config | None, given: dict[str, Any]) -> Any:
    """Return the judge's votes and their cost; none without ``--prefer``."""
    if not given["prefer"]:
        return (), None
    if config is None:
        raise ConfigError("--prefer needs a judge, and no configuration sets one", hint="use --config FILE")
    from gate.insight.lineup import Contender
    from gate.insight.preference import ask_preferences
    from gate.records import read_record
    from gate.system.signals import run as run_coroutine

    whole = [Contender(name, read_record(path), str(path)) for name, path in records]
    return run_coroutine(ask_preferences(whole, config, os.environ))


def _exit_code(lineup: Any, given: dict[str, Any]) -> ExitCode:
    """Return 0, as a table gives no verdict; 1 only with ``--fail-if-worse``, 3 if that or a preference is unknown."""
    if given["fail_if_worse"]:
        from gate.insight.lineup import incomparable, worse_than_first

        if worse_than_first(lineup):
            return ExitCode.FAILED
        if lost := incomparable(lineup):
            what = f"{lineup.quality} of {', '.join(map(_shown, lost))} cannot be compared with the first's"
            click.echo(f"gate: {what}: too few cases were measured, or in another way", err=True)
            return ExitCode.NOT_MEASURED
    if given["prefer"] and (not lineup.preferences or any(one.rate is None for one in lineup.preferences)):
        return ExitCode.NOT_MEASURED
    return ExitCode.PASS
