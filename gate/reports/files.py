"""Writes reports to files.

A file has the verdict of the run that writes it, or states that this run has none; never that of an earlier run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from gate import __version__
from gate.errors import EXIT_PRECEDENCE, ConfigError, ExitCode
from gate.model import Result, Verdict
from gate.reports import REPORTS, load_report
from gate.reports.trials import SuiteTrials
from gate.security import files
from gate.security.escape import console, html
from gate.security.limits import described, shorten
from gate.system.own_files import MARK

NOT_ENDED = "the run that is to write this report has not ended: there is no verdict"
MOST_TOLD = 2_000
"""Maximum number of characters in the reason why there is no verdict."""
_PAGE = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>not measured</title></head>'
    "<body><h1>not measured</h1><p>{}</p></body></html>\n"
)


class Outputs(Struct, frozen=True):
    """The reports to write, with their files."""

    paths: Mapping[str, Path] = {}
    """Name of the report → its file."""
    judged: set[Path] = field(default_factory=set)
    """The files that have the verdict by now. Shared with the objects that `beside` creates."""

    @property
    def wanted(self) -> dict[str, Path]:
        """Name → path, in the order of writing: the built-in ones first, in the order of the registry."""
        return {name: self.paths[name] for name in (*REPORTS, *self.paths) if name in self.paths}

    def beside(self, root: Path, configured: Mapping[str, str]) -> Outputs:
        """Return these reports and those of ``reports`` in a configuration in ``root``; these take precedence."""
        paths = {name: root / path for name, path in configured.items()}
        return Outputs({**paths, **self.paths}, self.judged)


def check_outputs(outputs: Outputs) -> None:
    """Create the reports before anything is spent; they state that there is no verdict until there is one.

    Raises:
        ConfigError: a report is unknown, its file cannot be written, or another report has the same file.
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
    for form, path in outputs.wanted.items():
        if _is_own(path):
            _write_stub(form, path, NOT_ENDED, ExitCode.NOT_MEASURED)


def _check_apart(wanted: Mapping[str, Path]) -> None:
    """Raise ConfigError if two reports have the same file; a device, such as /dev/null, can take any number."""
    by_file: dict[Path, str] = {}
    for form, path in wanted.items():
        if path.exists() and not path.is_file():
            continue
        other = by_file.setdefault(path.resolve(), form)
        if other != form:
            what = f"the {other} and the {form} report are to be written to the same file"
            raise ConfigError(what, where=str(path), hint="give each its own path")


def write_reports(
    result: Result, outputs: Outputs, trials: Callable[[], Sequence[SuiteTrials]] | None = None
) -> Result:
    """Write the reports. If one fails, return a result that states this and has the worse exit code.

    ``trials`` returns those of each suite; called only for reports that show them.
    """
    failed = []
    for form, path in outputs.wanted.items():
        try:
            files.write_text(path, _marked(form, _rendered(form, result, trials)))
            outputs.judged.add(path)
        except OSError as error:
            failed.append(f"{path}: {error.strerror}")
        except ReportError as error:
            failed.append(f"{path}: {error}")
    if not failed:
        return result
    told = with_problems(result, [f"a report could not be written: {one}" for one in failed])
    write_stubs(outputs, "; ".join(told.problems), told.exit_code)
    return told


def write_stubs(outputs: Outputs, why: str, exit_code: ExitCode) -> None:
    """Replace each report that lacks the verdict by one with the reason why the run ended without one.

    A file that cannot be written is removed if possible: only the error that ended the run is reported.
    """
    by_file = {path.resolve(): (form, path) for form, path in reversed(outputs.wanted.items())}
    for form, path in by_file.values():
        if path not in outputs.judged:
            _write_stub(form, path, why, exit_code)


def _write_stub(form: str, path: Path, why: str, exit_code: ExitCode) -> None:
    text = _stub(form, why, exit_code)
    if text is not None:
        with suppress(OSError):
            files.write_text(path, _marked(form, text))
            return
    if _is_own(path):
        with suppress(OSError):
            files.remove(path)


def _is_own(path: Path) -> bool:
    """True if it is a regular file, and not a device or a link."""
    return path.is_file() and not path.is_symlink()


def _stub(form: str, why: str, exit_code: ExitCode) -> str | None:
    """Return the shortest report without a verdict; None for a plugin's report, whose format is unknown."""
    if form == "markdown":
        from gate.reports.markdown import render_unmeasured

        return render_unmeasured(why)
    if form == "html":
        return _PAGE.format(html(shorten(why, MOST_TOLD)))
    if form == "console":
        return f"{console(why, MOST_TOLD)}\n"
    if form not in REPORTS:
        return None
    why = shorten(why, MOST_TOLD)
    return load_report(form)(Result((), Verdict.ERROR, exit_code, version=__version__, problems=(why,)))


def _marked(form: str, text: str) -> str:
    """Return a report with a last line by which the gate recognises it, if the format has comments."""
    if form not in ("html", "junit", "markdown"):
        return text
    return f"{text.rstrip()}\n{MARK}\n"


def with_problems(result: Result, problems: Sequence[str]) -> Result:
    """Return the result with these problems, and with the worse exit code."""
    if not problems:
        return result
    worse = min(result.exit_code, ExitCode.NOT_MEASURED, key=EXIT_PRECEDENCE.index)
    return replace(result, exit_code=worse, problems=tuple(problems))


class ReportError(Exception):
    """A plugin's report failed; the verdict is not affected."""


def _rendered(form: str, result: Result, trials: Callable[[], Sequence[SuiteTrials]] | None) -> str:
    """Render a report. Raises ReportError for any error in a plugin; errors in the gate are not hidden."""
    if form == "html" and trials is not None:
        from gate.reports.html import render as render_page  # weight: only needed for a page

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
