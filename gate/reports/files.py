"""Which reports are written as files, and where."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gate.errors import EXIT_PRECEDENCE, ConfigError, ExitCode
from gate.model import Result
from gate.reports import load_report
from gate.security import files


class Outputs(Struct, frozen=True):
    """Where reports are written; None: not at all."""

    junit: Path | None = None
    markdown: Path | None = None
    html: Path | None = None
    json: Path | None = None

    @property
    def wanted(self) -> dict[str, Path]:
        """Form → path, in the order of writing."""
        forms = (("junit", self.junit), ("html", self.html), ("json", self.json), ("markdown", self.markdown))
        return {form: path for form, path in forms if path is not None}


def check_outputs(outputs: Outputs) -> None:
    """Creates the folders of the reports before anything is spent. Raises `ConfigError` where one cannot be written."""
    for form, path in outputs.wanted.items():
        try:
            files.make_folder(path.parent)
            with files.open_to_append(path):
                pass
        except OSError as error:
            raise ConfigError(f"the {form} report cannot be written: {error.strerror}", where=str(path)) from None


def write_reports(result: Result, outputs: Outputs) -> Result:
    """Writes the reports. Where one fails, the result says so and its exit code is the worse of the two."""
    failed = []
    for form, path in outputs.wanted.items():
        text = load_report(form)(result)
        try:
            files.write_text(path, text)
        except OSError as error:
            failed.append(f"{path}: {error.strerror}")
    if not failed:
        return result
    worse = min(result.exit_code, ExitCode.NOT_MEASURED, key=EXIT_PRECEDENCE.index)
    return replace(result, exit_code=worse, problems=tuple(f"a report could not be written: {one}" for one in failed))
