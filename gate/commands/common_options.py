"""Options shared by several commands, and their translation into configuration keys and report files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gate.config import FILE_NAME
from gate.reports import FILES

if TYPE_CHECKING:
    from gate.reports.files import Outputs

DEFAULT_CONFIG = Path(FILE_NAME)
PATH = click.Path(path_type=Path)
RECORD = click.argument("record", required=False, type=PATH)
SOURCES = click.argument("sources", nargs=-1, metavar="[SOURCES]...", type=PATH)
SUITE = click.option("--suite", "suite_id", help="Only this suite.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
CONFIG = click.option(
    "-c",
    "--config",
    "config_path",
    default=DEFAULT_CONFIG,
    show_default=True,
    type=PATH,
    help="Configuration file.",
)
AGAINST = click.option("--against", "baseline", help="Another baseline record, or `none` to judge only by thresholds.")
TAG = click.option("--tag", "tags", multiple=True, help="Only cases with this tag; repeatable.")
CASE = click.option("--case", "ids", multiple=True, help="Only this case, or a pattern with * and ?; repeatable.")
CONDITION = click.option(
    "--where",
    "conditions",
    metavar="KEY=VALUE",
    multiple=True,
    help="Only cases with this metadata (or tag=, complexity=, id=); repeatable.",
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Print the estimated runs, judge calls and cost; run nothing.")
STATEMENT = click.option(
    "--statement",
    type=PATH,
    help="Write the result as an in-toto statement, for `gate attest` and `gate verify`.",
)
OUTPUTS = (
    *(click.option(f"--{name}", f"to_{name}", type=PATH, help=f"Write the {name} report here.") for name in FILES),
    click.option(
        "--report", "reports", metavar="NAME=PATH", multiple=True, help="Write this report here; plugins add more."
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print one line instead of a report."),
    click.option("-v", "--verbose", is_flag=True, help="Show all figures, every case, and the agents' output."),
)


def record_or_newest(record: Path | None, config_path: Path) -> Path:
    """Return the record for a command: the given one, or the newest finished one, which stderr names.

    Raises:
        MeasureError: none is given, and none exists.
    """
    if record is not None:
        return record
    from gate.stored.results import newest_record

    return said(newest_record(config_path), "the newest record")


def record_before_or(baseline: Path | None, record: Path, config_path: Path) -> Path:
    """Return the record to compare with: the given one, or the one before this of its suite, which stderr names."""
    if baseline is not None:
        return baseline
    from gate.stored.results import record_before

    return said(record_before(record, config_path), "compared with the record before it")


def said(path: Path, what: str) -> Path:
    """Print the chosen path to stderr and return it."""
    from gate.security.escape import console

    path = from_here(path)
    click.echo(f"gate: {what}: {console(str(path), 300)}", err=True)
    return path


def from_here(path: Path) -> Path:
    """Return the path relative to the current folder if it is inside."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


Command = TypeVar("Command", bound=Callable[..., Any])


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Apply several click options in the order given."""

    def apply(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


def overrides_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return command-line options as keys of the configuration, so that there is only one validation."""
    overrides: dict[str, Any] = {}
    for key, name in (("select.tags", "tags"), ("select.ids", "ids")):
        if given.get(name):
            overrides[key] = list(given[name])
    for key, values in _conditions(given.get("conditions") or ()).items():
        more = overrides.get(f"select.{key}", [])
        overrides[f"select.{key}"] = values if isinstance(values, dict) else [*more, *values]
    if given.get("trials"):
        text = given["trials"]
        overrides["trials"] = int(text) if text.isdecimal() else text
    if given.get("replay"):
        overrides["agent"] = {"replay": [str(Path(path).resolve()) for path in given["replay"]]}
    if given.get("against") is not None:  # empty, because a CI variable is: refused, like any name of no commit
        overrides["baseline.against"] = given["against"]
    if given.get("store"):
        overrides["baseline.store"] = given["store"]
    return overrides


def _conditions(conditions: Sequence[str]) -> dict[str, Any]:
    if not conditions:
        return {}
    from gate.suites.selection import where

    return where(conditions)


def outputs_of(given: dict[str, Any]) -> Outputs:
    """Return the report files that the options name."""
    from gate.reports.files import Outputs

    paths = {name: given[f"to_{name}"] for name in FILES if given[f"to_{name}"] is not None}
    for text in given["reports"]:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise click.BadParameter(f"{text!r} is not of the form markdown=report.md", param_hint="--report")
        if name in paths:
            raise click.UsageError(f"the {name} report is requested twice: give one path")
        paths[name] = Path(path)
    for name, path in paths.items():
        if path.is_dir():
            raise click.UsageError(f"the {name} report: {path} is a folder (name a file in it)")
    return Outputs(paths)
