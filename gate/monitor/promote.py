"""Makes a case from a trace that did not pass, and appends it to a file of the suite without changing the rest.

The case holds the question and its origin. Only its author knows what should have happened: the file says where to
write that, and shows what the agent did instead.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from gate.config.load import Config
from gate.config.resolve import read_suites
from gate.errors import ConfigError, MeasureError
from gate.formats.documents import parse_document, read_text
from gate.model import Case, Invocation, ToolCall
from gate.monitor.model import Observation
from gate.monitor.report import utc_time
from gate.monitor.service import redactor_of_production, state_path_of
from gate.monitor.store import MonitorState, read_state
from gate.reports.formatting import count
from gate.reports.trajectory_diff import call_text
from gate.security import files
from gate.security.escape import console
from gate.security.limits import cut
from gate.security.redact import MARK, PERSONAL_MARK, Redactor
from gate.system.serialize import unpack_invocations

FILE = "production.yaml"
MOST_NAMED = 5
MOST_CALLS = 10
MAX_COMMENT_CHARS = 300
MAX_SLUG_CHARS = 40
MAX_OWN_CHARS = 20
"""Most characters of a trace's id in the id of its case."""
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
_HINT = "`gate promote TRACE --to NEW.yaml` writes the case into a new file"


class Promoted(Struct, frozen=True):
    """A case made from a trace."""

    id: str
    text: str
    """The text of the case in the file, without indentation."""
    value: Mapping[str, Any]
    """The content of the text."""
    masked: int = 0
    """Number of masked values that somebody has to replace."""


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
    place = target or config.root / config.file.suite[0]
    if target is None and place.is_dir():
        place /= FILE
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


# --- the case -------------------------------------------------------------------------------------


def case_of(found: Observation, known: Iterable[str]) -> Promoted:
    """Return the case for a trace whose conversation was stored; ``known`` are the ids already used.

    Raises:
        ConfigError: the conversation was not stored, or has no question.
    """
    turns = _turns(found)
    asked = [turn.user for turn in turns]
    identifier = _unique(_slug(asked[0], found.trace), known)
    metadata = {"trace": found.trace, "time": utc_time(found.at), "why": found.why}
    value: dict[str, Any] = {"id": identifier}
    lines = [f"- id: {_quoted(identifier)}", *_comments(found, turns)]
    if len(asked) == 1:
        value["input"] = asked[0]
        lines.append(f"  input: {_quoted(asked[0])}")
    else:
        value["turns"] = [{"input": text} for text in asked]
        lines.append("  turns:")
        for text in asked:
            lines.append(f"    - input: {_quoted(text)}")
    value |= {"tags": ["production"], "metadata": metadata}
    lines += ["  tags: [production]", "  metadata:"]
    for name, text in metadata.items():
        lines.append(f"    {name}: {_quoted(text)}")
    masked = 0
    for text in asked:
        masked += text.count(MARK) + text.count(PERSONAL_MARK)
    return Promoted(identifier, "\n".join(lines) + "\n", value, masked)


def promoted_before(found: Observation, cases: Iterable[Case]) -> Case | None:
    """Return the case already made from a trace, or one with the same questions."""
    asked = None
    if found.kept:
        asked = [turn.user for turn in unpack_invocations(found.kept)]
    for case in cases:
        questions = [turn.user for turn in case.turns]
        if case.metadata.get("trace") == found.trace or questions == asked:
            return case
    return None


def added(text: str, case: Promoted, where: str) -> str:
    """Return the text of a suite's file with one more case at the end.

    Raises:
        ConfigError: the file's layout does not allow another case without rewriting it.
    """
    if not text.strip():
        return f"{text}cases:\n{_indented(case.text, 2)}"
    wanted = _with_case(parse_document(text, where), case)
    place = _place(text)
    if place is None or wanted is None:
        raise ConfigError("it is not a list of cases in block style", where=where, hint=_HINT)
    at, column = place
    head, tail = text[:at], text[at:]
    if not head.endswith("\n"):
        head += "\n"
    found = f"{head}{_indented(case.text, column)}{tail}"
    if _parsed(found, where) != wanted:
        raise ConfigError("a case cannot be added without rewriting it", where=where, hint=_HINT)
    return found


def _with_case(document: Any, case: Promoted) -> Any:
    """Return the content of a suite's file with one more case; None if it has no list of cases."""
    if isinstance(document, list):
        return [*document, case.value]
    if isinstance(document, dict) and isinstance(document.get("cases"), list):
        return {**document, "cases": [*document["cases"], case.value]}
    return None


def _place(text: str) -> tuple[int, int] | None:
    """Return the position and the column for another case; None if the cases are not a list in block style."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    node: yaml.Node | None = root
    if isinstance(root, yaml.MappingNode):
        node = next((value for key, value in root.value if key.value == "cases"), None)
    if not isinstance(node, yaml.SequenceNode) or node.flow_style or not node.value:
        return None
    end = node.value[-1].end_mark.index
    if end and text[end - 1] != "\n":
        end = text.find("\n", end) + 1 or len(text)
    return end, node.start_mark.column


def _parsed(text: str, where: str) -> Any:
    try:
        return parse_document(text, where)
    except ConfigError:
        return None


def _turns(found: Observation) -> Sequence[Invocation]:
    if not found.kept:
        why = "passed" if found.passed else "was too large to be kept, or is too long ago"
        hint = "only conversations that did not pass are kept; write the case by hand"
        raise ConfigError(f"the conversation of trace {found.trace!r} is not here: it {why}", hint=hint)
    turns = unpack_invocations(found.kept)
    if not turns or not all(turn.user.strip() for turn in turns):
        raise ConfigError(f"trace {found.trace!r} does not contain the user's message", hint="capture message content")
    return turns


def _comments(found: Observation, turns: Sequence[Invocation]) -> list[str]:
    said = "(nothing)"
    calls: list[ToolCall] = []
    for turn in turns:
        said = turn.text or said
        calls += turn.tool_calls
    lines = [f"What failed in production: {found.why}", f"The agent answered: {said}"]
    lines += [f"It called: {call_text(call)}" for call in calls[:MOST_CALLS]]
    if len(calls) > MOST_CALLS:
        lines.append(f"… and {len(calls) - MOST_CALLS} more calls")
    lines.append("Say what should have happened, such as `tools:`, `response:` or `contains:`.")
    return [f"  # {_UNSAFE.sub('?', cut(console(line), MAX_COMMENT_CHARS))}" for line in lines]


def _slug(text: str, trace: str) -> str:
    for mark in (MARK, PERSONAL_MARK):
        text = text.replace(mark, " ")
    words = re.sub(r"[^a-z0-9]+", "-", text.lower())[:MAX_SLUG_CHARS].strip("-")
    own = re.sub(r"[^A-Za-z0-9._-]+", "-", trace).strip("-")
    if len(own) > MAX_OWN_CHARS:
        own = own[:8]
    if words and own:
        return f"{words}-{own}"
    return words or own or "production"


def _unique(identifier: str, known: Iterable[str]) -> str:
    taken, found, number = set(known), identifier, 1
    while found in taken:
        number += 1
        found = f"{identifier}-{number}"
    return found


def _quoted(text: str) -> str:
    """Return text as a double-quoted YAML scalar, readable in any language."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _indented(text: str, column: int) -> str:
    return "".join(f"{' ' * column}{line}\n" for line in text.splitlines())
