"""Writes reports to files.

A file holds the verdict of the run that was asked to write it, or says that this run has none: never an earlier run's.
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
"""Characters of why there is no verdict."""
_PAGE = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>not measured</title></head>'
    "<body><h1>not measured</h1><p>{}</p></body></html>\n"
)


class Outputs(Struct, frozen=True):
    """The reports to write, with their files."""

    paths: Mapping[str, Path] = {}
    """Name of the report → its file."""
    judged: set[Path] = field(default_factory=set)
    """The files that hold the verdict by now. Shared with what `beside` makes of these."""

    @property
    def wanted(self) -> dict[str, Path]:
        """Name → path, in the order of writing: the built-in ones first, as the registry lists them."""
        names = [*(name for name in REPORTS if name in self.paths), *(n for n in self.paths if n not in REPORTS)]
        return {name: self.paths[name] for name in names}

    def beside(self, root: Path, configured: Mapping[str, str]) -> Outputs:
        """These, and those that a configuration in ``root`` asks for by ``reports``; these win."""
        return Outputs({**{name: root / path for name, path in configured.items()}, **self.paths}, self.judged)


def check_outputs(outputs: Outputs) -> None:
    """Creates the reports before anything is spent; until there is a verdict they say that there is none.

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
    for form, path in outputs.wanted.items():
        if _is_own(path):
            _write_stub(form, path, NOT_ENDED, ExitCode.NOT_MEASURED)


def _check_apart(wanted: Mapping[str, Path]) -> None:
    """The later of two reports in one file would replace the earlier; a device, as /dev/null, holds any number."""
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
    """Writes the reports. Where one fails, the result says so and its exit code is the worse of the two.

    ``trials``: those of each suite, for the reports that show them; asked for if one of these is written.
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
    """Replaces each report that does not hold the verdict by one that says why the run ended without one.

    What cannot be written is removed, as far as that is possible: the error that ended the run is the one to tell.
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
    """True if it is a file that a run wrote, and no device or link of somebody's."""
    return path.is_file() and not path.is_symlink()


def _stub(form: str, why: str, exit_code: ExitCode) -> str | None:
    """The shortest report that says that there is no verdict; None for a plugin's, of whose format nothing is known."""
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
    """Return a report with a last line by which the gate knows it again, in a language that has comments."""
    return f"{text.rstrip()}\n{MARK}\n" if form in ("html", "junit", "markdown") else text


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
