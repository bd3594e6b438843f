"""The errors that end a run: each says what, where and what to try, and carries its exit code.

Anything that can happen to a single trial or score is a value (`TrialError`, `Score.error`), not an exception.
"""

from __future__ import annotations

from collections.abc import Iterable

from gate.model import ExitCode


class GateError(Exception):
    """A run that cannot mean anything. Shown as one line; `--debug` adds the traceback."""

    exit_code = ExitCode.NOT_MEASURED

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        return f"{line} ({self.hint})" if self.hint else line


class ConfigError(GateError):
    """The configuration, the criteria or the suite cannot be read as written."""

    exit_code = ExitCode.CONFIGURATION


class MeasureError(GateError):
    """Nothing could be measured: zero cases, agent down, budget spent, disk full."""

    exit_code = ExitCode.NOT_MEASURED


class BaselineError(GateError):
    """The baseline is torn, foreign, or missing where it is required."""

    exit_code = ExitCode.BASELINE


class BaselineWriteError(GateError):
    """The baseline could not be written."""

    exit_code = ExitCode.BASELINE_WRITE


class PublishError(GateError):
    """The verdict stands, but it could not be published."""

    exit_code = ExitCode.PUBLISH


class UntrustedError(GateError):
    """An artifact from outside was refused."""

    exit_code = ExitCode.UNTRUSTED


class Cancelled(Exception):  # noqa: N818 - what happened, and no error
    """The work was stopped by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def nearest(word: str, known: list[str]) -> str:
    """A hint that names the nearest known word, or the known words where none is near."""
    close = closest(word, known, cutoff=0.5)
    return f"did you mean {close!r}?" if close else "known: " + ", ".join(sorted(known))


def closest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known word that is most like this one, where one is by at least ``cutoff`` (0–1)."""
    from difflib import get_close_matches  # weight: only on the way to an error

    return next(iter(get_close_matches(word, sorted(known), n=1, cutoff=cutoff)), None)


def unknown_key(key: str, known: list[str], where: str, *, noun: str = "key") -> ConfigError:
    """The error for a word that nobody knows, naming the nearest known one."""
    return ConfigError(f"unknown {noun} {key!r}", where=where, hint=nearest(key, known))
