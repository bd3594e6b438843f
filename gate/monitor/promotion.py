"""Finds a trace, makes a case from it, and adds it to a file of the suite: `gate promote`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from gate.config.load import Config
from gate.config.resolve import read_suites
from gate.errors import ConfigError, MeasureError
from gate.formats.documents import read_text
from gate.model import Case
from gate.monitor.model import Observation
from gate.monitor.promote import added, case_of, promoted_before
from gate.monitor.service import redactor_of_production, state_path_of
from gate.monitor.store import MonitorState, read_state
from gate.reports.formatting import count
from gate.security import files
from gate.security.escape import console
from gate.security.redact import Redactor

FILE = "production.yaml"
MOST_NAMED = 5


def promote_trace(
    config: Config,
    trace: str,
    environment: Mapping[str, str],
    *,
    target: Path | None,
    state: Path | None,
    why: str | None,
) -> str:
    """Return a message about what was done.

    Raises:
        ConfigError: there is no such trace, or the file does not allow another case.
    """
    with read_state(state or state_path_of(config)) as opened:
        found = _named(_find(opened, trace), redactor_of_production(environment))
    if why is not None:
        found = replace(found, why=redactor_of_production(environment).redact(" ".join(why.split())))
    place = target or _default_target(config)
    _check_target(config, place)
    with _alone(place.parent):
        cases: list[Case] = []
        for suite in read_suites(config):
            cases += suite.cases
        before = promoted_before(found, cases)
        if before is not None:
            return (
                f"{console(found.trace)} is a case already: {console(before.id)} ({before.location}); nothing written"
            )
        case = case_of(found, [case.id for case in cases])
        text = read_text(place, str(place)) if place.exists() else ""
        changed = added(text, case, str(place))
        try:
            files.write_text(place, changed)
        except OSError as error:
            raise MeasureError(f"cannot be written: {error.strerror or error}", where=str(place)) from error
    shown = os.path.relpath(place) if place.resolve().is_relative_to(Path.cwd()) else place
    lines = [f"added case {case.id} to {shown}"]
    if case.masked:
        was, its = "were", "their"
        if case.masked == 1:
            was, its = "was", "its"
        lines.append(f"{count(case.masked, 'value')} in it {was} masked: put something made up in {its} place")
    lines.append(f"say what should have happened, then try it: gate run --case {case.id} --trials 3")
    return "\n".join(lines)


def _named(found: Observation, redactor: Redactor) -> Observation:
    """Return the trace under an id that is safe in a repository: an id may be an address or hold a token."""
    if redactor.redact(found.trace) == found.trace:
        return found
    return replace(found, trace=sha256(found.trace.encode("utf-8", "surrogatepass")).hexdigest()[:32])


def _find(state: MonitorState, trace: str) -> Observation:
    found = state.trace(trace)
    if found is not None:
        return found
    near = state.like(trace, MOST_NAMED) if trace else []
    if len(near) == 1:
        only = state.trace(near[0])
        assert only is not None
        return only
    if near:
        raise ConfigError(f"several traces begin with {trace!r}", hint=f"among them {', '.join(near)}")
    hint = "`gate monitor --status` lists the newest that did not pass"
    raise ConfigError(f"no trace {trace!r} was scored", where=str(state.path), hint=hint)


def _default_target(config: Config) -> Path:
    source = config.root / config.file.suite[0]
    return source / FILE if source.is_dir() else source


def _check_target(config: Config, path: Path) -> None:
    """Raise `ConfigError` if the suite does not read the file: a case in it would protect nothing."""
    if path.suffix not in (".yaml", ".yml"):
        raise ConfigError("cases are added to YAML files", where=str(path), hint="name one with --to")
    absolute = path.resolve()
    sources = [(config.root / source).resolve() for source in config.file.suite]
    if not any(absolute.is_relative_to(source) for source in sources):
        hint = f"name one below {', '.join(config.file.suite)}"
        raise ConfigError("the suite does not read this file", where=str(path), hint=hint)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep two processes from adding cases to a folder at the same time."""
    files.make_folder(folder)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
