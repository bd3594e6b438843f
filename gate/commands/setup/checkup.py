"""One line of what `gate doctor` finds; shared by those that look."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gate.errors import ExitCode, GateError

State = Literal["ok", "note", "problem"]


class Checkup(Struct, frozen=True):
    """A check with its finding and the next step."""

    area: str
    name: str
    state: State
    found: str
    remedy: str = ""
    code: ExitCode = ExitCode.PASS
    """The exit code of a problem."""


def ok(area: str, name: str, found: str) -> Checkup:
    return Checkup(area, name, "ok", found)


def note(area: str, name: str, found: str, remedy: str = "") -> Checkup:
    """Nothing is wrong, and something is not there that others have."""
    return Checkup(area, name, "note", found, remedy)


def problem(area: str, name: str, found: str, remedy: str = "", code: ExitCode = ExitCode.NOT_MEASURED) -> Checkup:
    return Checkup(area, name, "problem", found, remedy, code)


def refused(area: str, name: str, error: GateError, remedy: str = "") -> Checkup:
    """An error that would end a run, as it words itself."""
    said = f"{error.where}: {error.what}" if error.where not in ("", name) else error.what
    return problem(area, name, said, remedy or error.hint, error.exit_code)
