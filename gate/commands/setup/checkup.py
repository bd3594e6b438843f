"""One finding of `gate doctor`, on one line; all checks use it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gate.errors import ExitCode, GateError
from gate.security.escape import console

State = Literal["ok", "note", "problem"]
MARKS: dict[State, str] = {"ok": "ok", "note": "--", "problem": "!!"}


class Checkup(Struct, frozen=True):
    """A check with its finding and the next step."""

    area: str
    name: str
    state: State
    found: str
    remedy: str = ""
    code: ExitCode = ExitCode.PASS
    """The exit code of a problem."""

    def __str__(self) -> str:
        text = f"{MARKS[self.state]} {self.area}: {console(self.name, 60)}: {console(self.found, 500)}"
        return f"{text} (to do: {console(self.remedy, 300)})" if self.remedy else text


def ok(area: str, name: str, found: str) -> Checkup:
    return Checkup(area, name, "ok", found)


def note(area: str, name: str, found: str, remedy: str = "") -> Checkup:
    """Return a note: nothing is wrong, but an optional part is missing."""
    return Checkup(area, name, "note", found, remedy)


def problem(area: str, name: str, found: str, remedy: str = "", code: ExitCode = ExitCode.NOT_MEASURED) -> Checkup:
    return Checkup(area, name, "problem", found, remedy, code)


def refused(area: str, name: str, error: GateError, remedy: str = "") -> Checkup:
    """Return the problem for an error that would end a run, with the error's message."""
    said = f"{error.where}: {error.what}" if error.where not in ("", name) else error.what
    return problem(area, name, said, remedy or error.hint, error.exit_code)
