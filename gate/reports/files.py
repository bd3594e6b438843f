"""Which reports are written as files, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gate.errors import EXIT_PRECEDENCE, ConfigError, ExitCode
from gate.model import Result
from gate.reports import REPORTS, load_report
from gate.reports.trials import SuiteTrials
from gate.security import files
from gate.security.limits import described


class Outputs(Struct, frozen=True):
    """Which reports are written, and where."""

    paths: Mapping[str, Path] = {}
    """Name of the report → its file."""

    @property
    def wanted(self) -> dict[str, Path]:
        """Name → path, in the order of writing: the built-in ones first, as the registry lists them."""
        names = [*(name for name in REPORTS if name in self.paths), *(n for n in self.paths if n not in REPORTS)]
        return {name: self.paths[name] for name in names}

    def beside(self, root: Path, configured: Mapping[str, str]) -> Outputs:
        """These, and those that a configuration in ``root`` asks for by ``reports``; these win."""
        return Outputs({**{name: root / path for name, path in configured.items()}, **self.paths})


def check_outputs(outputs: Outputs) -> None:
    """Creates the folders of the reports before anything is spent.

    Raises:
        ConfigError: nobody offers such a report, its file cannot be written, or another report is written there.
    """
    _check_apart(outputs.wanted)
    for form, path in outputs.wanted.items():
        if form not in REPORTS:
            load_report(form)
        try:
            files.make_folder(path.parent)
            with files.open_to_append(path):
                pass
        except OSError as error:
            raise ConfigError(f"the {form} report cannot be written: {error.strerror}", where=str(path)) from None


def _check_apart(wanted: Mapping[str, Path]) -> None:
    """The later of two reports in one file would replace the earlier; a device, as /dev/null, holds any number."""
    by_file: dict[Path, str] = {}
    for form, path in wanted.items():
        if path.exists() and not path.is_file():
            continue
        other = by_file.setdefault(path.resolve(), form)
        if other != form:
            what = f"the {other} and the {form} report are to be written to the same file"
            raise ConfigError(what, where=str(path), hint="give each a path of its own")


def write_reports(
    result: Result, outputs: Outputs, trials: Callable[[], Sequence[SuiteTrials]] | None = None
) -> Result:
    """Writes the reports. Where one fails, the result says so and its exit code is the worse of the two.

    ``trials``: those of each suite, for the reports that show them; asked for if one of these is written.
    """
    failed = []
    for form, path in outputs.wanted.items():
        try:
            files.write_text(path, _rendered(form, result, trials))
        except OSError as error:
            failed.append(f"{path}: {error.strerror}")
        except ReportError as error:
            failed.append(f"{path}: {error}")
    if not failed:
        return result
    return with_problems(result, [f"a report could not be written: {one}" for one in failed])


def with_problems(result: Result, problems: Sequence[str]) -> Result:
    """The result, which says what could not be written, and whose exit code is no better than that allows."""
    if not problems:
        return result
    worse = min(result.exit_code, ExitCode.NOT_MEASURED, key=EXIT_PRECEDENCE.index)
    return replace(result, exit_code=worse, problems=tuple(problems))


class ReportError(Exception):
    """A plugin's report failed; the verdict stands."""


def _rendered(form: str, result: Result, trials: Callable[[], Sequence[SuiteTrials]] | None) -> str:
    """Raises ReportError for anything that a plugin does wrong; an error of our own is not hidden."""
    if form == "html" and trials is not None:
        from gate.reports.html import render as render_page  # weight: only where a page is written

        return render_page(result, trials())
    render = load_report(form)
    if form in REPORTS:
        return render(result)
    try:
        text: object = render(result)
    except (Exception, SystemExit) as error:
        raise ReportError(f"the report {form!r} raised {described(error)}") from error
    if not isinstance(text, str):
        raise ReportError(f"the report {form!r} returned {type(text).__name__}, not text")
    return text
