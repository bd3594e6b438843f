"""Loads suites from files and folders. Knows which files belong together and the format of each, not their content."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from gate.errors import SAME_MEANING, ConfigError, MeasureError, closest
from gate.formats.documents import parse_document_with_lines, read_document, read_json_lines, read_text
from gate.formats.json_text import NAN, parse_json
from gate.formats.shapes import as_mapping
from gate.formats.yaml_text import EMPTY
from gate.model import Case, RecordedTrial, Suite
from gate.registry import Registry
from gate.security.limits import shorten
from gate.suites import messages, native, traces
from gate.suites.base import (
    Contents,
    Document,
    Format,
    Loss,
    Settle,
    note_unread,
    refuse_blank_rubrics,
    refuse_duplicates,
)
from gate.suites.messages import FieldPaths
from gate.suites.selection import Selection, select, select_all

_BUILT_IN = {
    "messages": "gate.suites.messages:format_of",
    "python-tests": "gate.importers.python_tests:FORMAT",
    "adk": "gate.suites.adk:FORMAT",
    "adk-results": "gate.suites.adk_results:FORMAT",
    "pydantic-evals": "gate.importers.pydantic_evals:FORMAT",
    "inspect": "gate.importers.inspect_logs:FORMAT",
    "promptfoo": "gate.importers.promptfoo:FORMAT",
    "exports": "gate.importers.exports:FORMAT",
    "native": "gate.suites.native:FORMAT",
    "evalview": "gate.importers.evalview:FORMAT",
    "traces": "gate.suites.traces:FORMAT",
}
FORMATS = Registry[Format | Callable[[FieldPaths], Format]](
    "suite format", "agent_gate.suites", _BUILT_IN, base="gate.suites.base:Format"
)
"""Formats by name, the built-in ones in the order in which they are tried; a plugin's is used only if named."""


CRITERIA_FILE = "test_config.json"
MAX_TURNS = 100
"""Most turns of a simulated user that a configuration may allow."""
EVAL_FILES = (".test.json",)
"""The files of a folder that google-adk's tests read."""
CONFIG_FILES = ("gate.yaml", "gate.yml")
OPENED_BY = {".eval": "inspect"}
"""For the extension of files that are not text, the format that opens them."""
REFERRING = {".py": "python-tests"}
"""For the extension of files that may refer to files with cases, the format that finds them."""
SUFFIXES = (".evalset.json", ".test.json", ".json", ".jsonl", ".yaml", ".yml", *OPENED_BY)
"""The files of a folder that are read; longer suffixes precede shorter ones with the same end."""


def load(
    paths: Sequence[Path],
    *,
    root: Path,
    fields: FieldPaths | None = None,
    name: str | None = None,
    format: str | None = None,
    split: bool = True,
    losses: list[Loss] | None = None,
) -> list[Suite]:
    """Return the suites in files and folders; relative paths start at ``root``.

    With ``split``, the files in and below a folder with a ``test_config.json`` form a separate suite, whose id is the
    folder's path and whose ``criteria`` are the content of that file. All other files form one suite, whose id is
    ``name`` or the given paths. ``fields`` describes the layout of rows of messages; ``format`` names the format of all
    files, else each is read in the first format that recognises it.

    Parts without a counterpart here are added to ``losses``; without that list, a lost check is an error.

    Raises `ConfigError` if any part of a file cannot be understood, and `MeasureError` if there are no cases.
    """
    sources = [root / path for path in paths]
    layout = fields or FieldPaths.model_construct()  # its defaults are valid
    form, suffixes = None, SUFFIXES
    if format is not None:
        form = format_named(format, layout)
        suffixes = (*form.suffixes, *SUFFIXES)
    files = _unique(chain.from_iterable([_files(source, root, suffixes) for source in sources]))
    if not files:
        raise MeasureError("no suite files", where=_listed(sources, root), hint=f"read are {', '.join(suffixes)}")
    groups: dict[Path | None, list[Path]] = {}
    for (here, source), members in groupby(files, key=lambda found: (found[0].parent, found[1])):
        above = None
        if split:
            above = _criteria_folder(here, source)
        groups.setdefault(above, []).extend([file for file, _ in members])
    reader = _Reader(root, layout, form, losses)
    return [_suite(members, sources, folder, reader, name) for folder, members in groups.items()]


def case_files(paths: Sequence[Path], root: Path) -> frozenset[Path]:
    """Return the files that contain only cases or criteria in these files and folders, relative to ``root``.

    Code and files in no known format are left out: the folder of a suite may contain a part of the agent.
    """
    found: set[Path] = set()
    for path in paths:
        source = root / path
        if source.exists():
            for file, _ in _files(source, root, SUFFIXES):
                if file.name.endswith(SUFFIXES):
                    found.add(file)
            found.update(source.rglob(CRITERIA_FILE))
    return frozenset(found)


class _Reader(Struct, frozen=True):
    """The options for reading the files of a configuration."""

    root: Path
    fields: FieldPaths
    form: Format | None
    """The named format; None to detect it."""
    losses: list[Loss] | None = None
    """The list for losses; None if a lost check is an error."""
    known: dict[str, Format] = field(default_factory=dict)
    """The formats that were tried so far."""

    def form_named(self, name: str) -> Format:
        if name not in self.known:
            self.known[name] = format_named(name, self.fields)
        return self.known[name]

    def contents_of(self, form: Format, document: Document) -> Contents:
        return self.settled(document, form.read(document), form.settle)

    def settled(self, document: Document, found: Contents, settle: Settle) -> Contents:
        if self.losses is None:
            return settle(document, found)
        self.losses.extend(found.losses)
        return found


def format_named(name: str, fields: FieldPaths | None = None) -> Format:
    """Return a format, for rows with the layout ``fields``. Raises `ConfigError` if the name is unknown."""
    found = FORMATS.load(name, where="format")
    if isinstance(found, Format):
        return found
    return found(fields or FieldPaths.model_construct())


def _suite(files: list[Path], sources: Sequence[Path], folder: Path | None, reader: _Reader, name: str | None) -> Suite:
    root = reader.root
    base = folder or Path(os.path.commonpath(list(map(_folder_of, sources))))
    contents = []
    for here, members in groupby(files, key=lambda file: file.parent):
        shown, name_of_folder = _shown(here, root), _relative(here, base)
        for file in members:
            where, stem = _below(shown, file.name), _below(name_of_folder, _stem(file))
            contents.append(_read(file, Document((), where, stem, root=root, folder=here), reader))
    cases = tuple(chain.from_iterable([content.cases for content in contents]))
    source = _listed(sources, root)
    if folder is not None:
        source = _listed([folder], root)
    if not cases:
        raise MeasureError("no cases", where=source, hint=_why_none(contents, reader.losses or ()))
    refuse_duplicates(cases)
    refuse_blank_rubrics(cases)
    criteria = None
    if folder is not None:
        criteria = _criteria(folder / CRITERIA_FILE, root)
    cases, notes = _limited(cases, criteria or {})
    if not name or (folder is not None and source != "."):
        name = source
    return Suite(
        id=name,
        cases=cases,
        criteria=criteria,
        recorded=_recorded(contents),
        source=source,
        brought=_brought(contents),
        notes=tuple(dict.fromkeys([*_notes(contents), *notes])),
        each=dict(chain.from_iterable([content.each.items() for content in contents])),
    )


def _why_none(contents: Sequence[Contents], losses: Sequence[Loss]) -> str:
    """Return a hint on the reason why files have no cases: the first omission, else the missing key."""
    left = [*map(str, sorted(losses, key=lambda loss: not loss.check)), *_notes(contents)]
    if left:
        return shorten(f"left out: {left[0]}", 120)
    return "name at least one under `cases`: a gate that checks nothing would always pass"


def _notes(contents: Sequence[Contents]) -> list[str]:
    return list(chain.from_iterable([content.notes for content in contents]))


def _recorded(contents: Sequence[Contents]) -> tuple[RecordedTrial, ...]:
    """Return the recorded trials; if there are any, rows without an answer count as failed trials."""
    recorded = list(chain.from_iterable([content.recorded for content in contents]))
    if recorded:
        recorded += chain.from_iterable([content.unanswered for content in contents])
    return tuple(recorded)


def _limited(cases: tuple[Case, ...], content: Mapping[str, Any]) -> tuple[tuple[Case, ...], list[str]]:
    """Return the cases with google-adk's limit of turns for simulated users, and a note on its other settings."""
    stated = content.get("user_simulator_config") or content.get("userSimulatorConfig")
    if not isinstance(stated, Mapping) or not any(case.scenario for case in cases):
        return cases, []
    limit = stated.get("max_allowed_invocations", stated.get("maxAllowedInvocations"))
    if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0:
        limited = []
        for case in cases:
            if case.scenario is not None and case.scenario.max_turns is None:
                case = replace(case, scenario=replace(case.scenario, max_turns=min(limit, MAX_TURNS)))  # noqa: PLW2901
            limited.append(case)
        cases = tuple(limited)
    unread = sorted(stated.keys() - {"max_allowed_invocations", "maxAllowedInvocations", "type"})
    if not unread:
        return cases, []
    names = ", ".join(map(str, unread))
    return cases, [f"user_simulator_config: {names} not read: `simulated_user` in gate.yaml says how"]


def _brought(contents: Sequence[Contents]) -> Mapping[str, Any] | None:
    """Return the criteria in the files, merged: the stricter of two numbers, and blocking before reporting."""
    found: dict[str, Any] = {}
    for content in contents:
        for name, value in (content.criteria or {}).items():
            known = found.get(name)
            if isinstance(value, float) and isinstance(known, float):
                found[name] = max(known, value)
            elif not known or value == {}:
                found[name] = value
    return found or None


def _criteria(path: Path, root: Path) -> Mapping[str, Any]:
    where = _shown(path, root)
    content = read_document(path, where=where)
    if not isinstance(content, dict) or not isinstance(content.get("criteria"), dict):
        raise ConfigError("criteria are missing", where=where, hint='{"criteria": {"response_match_score": 0.8}}')
    return content


# --- one file -------------------------------------------------------------------------------------


def _read(file: Path, empty: Document, reader: _Reader) -> Contents:
    """Read a file; ``empty`` is its document without content."""
    form = reader.form
    if file.suffix == ".jsonl" and form is None:
        streamed = _read_rows(file, replace(empty, row_lines=range(1, sys.maxsize)), reader)
        if streamed is not None:
            return streamed
    document = _document(file, empty)
    if form is not None:
        if form.recognises(document.data):
            return reader.contents_of(form, document)
        raise ConfigError("not in the given format", where=document.where, hint=f"expected {form.shape}")
    if document.data == []:
        return native.read(document)
    for name in FORMATS:
        candidate = reader.form_named(name)
        if name == "native" and _conversation_key(document.data):
            continue
        if candidate.recognises(document.data):
            return reader.contents_of(candidate, document)
    if _is_schema(document.data):
        return Contents(())
    hint = _nearest(document.data, reader.fields)
    raise ConfigError("not a suite in any known format", where=document.where, hint=hint)


_CONVERSATIONS = {"messages", "messages_json", "conversation", "conversations", "dialog", "traj", "trajectory", "chat"}
"""Common keys for a conversation in rows, other than ours."""


def _nearest(data: Any, fields: FieldPaths) -> str:
    """Return a hint for an unrecognised file, such as the most similar format."""
    held = _conversation_key(data)
    if held:
        return f"its rows look recorded: say under `fields` where they hold what, as in `messages: {shorten(held, 40)}`"
    keys = _keys(data)
    asked, answered = _known_as("input", keys), _known_as("response", keys)
    if asked and not isinstance(data, Mapping):
        renamed = f"{shorten(asked, 40)} `input`"
        if answered:
            renamed += f", and {shorten(answered, 40)} `response`"
        return f"as the gate's own cases: call {renamed}; `gate help cases`"
    marks: dict[str, str] = {}
    for name in FORMATS:
        shape = format_named(name, fields).shape
        for mark in re.findall(r"`(\w+)`", shape):
            marks.setdefault(mark, shape)
    for key in keys:
        near = closest(key, marks, cutoff=0.75)
        if near == "cases":
            return "did you mean 'cases'? `gate help cases` shows the file"
        if near:
            return f"nearest is {marks[near]}"
    return "`gate help cases` shows the gate's own; `format: NAME` says what one of the others misses"


def _keys(data: Any) -> list[str]:
    """Return the keys of a mapping, of a list's first row, or of a table's first line."""
    if isinstance(data, str):
        return [key.strip().strip('"') for key in data.partition("\n")[0].split(",")]
    if isinstance(data, list) and data:
        data = data[0]
    return list(map(str, as_mapping(data)))


def _conversation_key(data: Any) -> str:
    """Return the key of the conversation in a row, if it is a common one other than ours."""
    if isinstance(data, list) and data:
        for key in map(str, as_mapping(data[0])):
            if key.lower() in _CONVERSATIONS:
                return key
    return ""


def _known_as(name: str, keys: Sequence[str]) -> str:
    """Return the first key that other tools use for one of ours."""
    for key in keys:
        if key.lower() in SAME_MEANING[name].split():
            return key
    return ""


def _is_schema(data: Any) -> bool:
    """True for a JSON Schema, which Pydantic Evals writes next to each data set for editors: it has no cases."""
    if not isinstance(data, Mapping) or data.get("type") != "object":
        return False
    return isinstance(data.get("properties"), Mapping) and ("$defs" in data or "$schema" in data)


def _read_rows(file: Path, document: Document, reader: _Reader) -> Contents | None:
    """Read JSON Lines of recorded messages or traces, one line at a time; None for lines of another kind."""
    where, fields = document.where, reader.fields
    _, first = next(read_json_lines(file, where=where), (0, None))
    if messages.recognises([first], fields):
        rows = (row for _, row in read_json_lines(file, where=where, marked=True))
        return reader.settled(document, messages.read_lines(rows, document, fields), messages.settle)
    if traces.recognises(first):
        return reader.settled(document, traces.read_lines(file, where), note_unread)
    return None


def _document(file: Path, empty: Document) -> Document:
    """Return the document with the content of its file."""
    where = empty.where
    if file.suffix == ".jsonl":
        numbers, rows = [], []
        for number, row in read_json_lines(file, where=where):
            numbers.append(number)
            rows.append(row)
        return replace(empty, data=rows, row_lines=numbers)
    if file.suffix in OPENED_BY:
        opening = format_named(OPENED_BY[file.suffix]).open
        assert opening is not None
        return replace(empty, data=opening(file, where))
    text = read_text(file, where)
    if not file.name.endswith(SUFFIXES):
        return replace(empty, data=text, row_lines=range(1, text.count("\n") + 2))
    try:
        data, lines = parse_document_with_lines(text, where)
    except ConfigError as error:
        if error.what == EMPTY:
            raise ConfigError(EMPTY, where=where, hint="write at least one case: `gate help cases`") from None
        if error.what != NAN:
            raise
        data, lines = _log_with_nan(text, where), None
        if data is None:
            raise
    return replace(empty, data=data, lines=lines)


def _log_with_nan(text: str, where: str) -> Any:
    """Return the value of a log of Inspect, which writes NaN for missing scores; None if it is not such a log."""
    data = parse_json(text, where, allow_nan=True)
    if not format_named("inspect").recognises(data):
        return None
    return data


def _stem(file: Path) -> str:
    """Return the name of a file without its suffix."""
    for suffix in (*SUFFIXES, file.suffix):
        if file.name.endswith(suffix):
            return file.name.removesuffix(suffix)
    return file.name


# --- which files ----------------------------------------------------------------------------------


def _files(source: Path, root: Path, suffixes: tuple[str, ...]) -> Iterator[tuple[Path, Path]]:
    """Yield the suite files of a source in a fixed order, each with the given file or folder."""
    if not source.exists():
        raise ConfigError("no such file or folder", where=_shown(source, root))
    if not source.is_dir():
        yield source, source
        if source.suffix in REFERRING:
            refers = format_named(REFERRING[source.suffix]).refers
            assert refers is not None
            for named in refers(source, root):
                if named.is_dir():
                    yield from _files(named, root, EVAL_FILES)
                else:
                    yield from _files(named, root, suffixes)
        return
    for folder, folders, names in os.walk(source, onerror=_cannot_list):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in folders:
            _refuse_outside(here / name, source, root)
        for name in sorted(names):
            if _is_suite_file(name, suffixes):
                file = here / name
                _refuse_outside(file, source, root)
                yield file, source


def _is_suite_file(name: str, suffixes: tuple[str, ...]) -> bool:
    return name.endswith(suffixes) and not name.startswith(".") and name != CRITERIA_FILE and name not in CONFIG_FILES


def _cannot_list(error: OSError) -> None:
    raise ConfigError(f"cannot be listed: {error.strerror}", where=str(error.filename)) from error


def _refuse_outside(path: Path, source: Path, root: Path) -> None:
    """Raise `ConfigError` for a link out of the folder, instead of following or silently ignoring it."""
    if os.path.islink(path) and not path.resolve().is_relative_to(source.resolve()):  # noqa: PTH114 - for thousands
        hint = "name the file or folder that it leads to under `suite`"
        raise ConfigError("a symbolic link out of the folder is not followed", where=_shown(path, root), hint=hint)


def _unique(files: Iterable[tuple[Path, Path]]) -> list[tuple[Path, Path]]:
    """Return the files without duplicates."""
    seen: dict[str, tuple[Path, Path]] = {}
    for here, members in groupby(files, key=lambda found: found[0].parent):
        folder = os.path.realpath(here)
        for file, source in members:
            place = os.path.join(folder, file.name)  # noqa: PTH118 - for thousands of files
            if os.path.islink(place):  # noqa: PTH114 - for thousands of files
                place = os.path.realpath(place)
            seen.setdefault(place, (file, source))
    return list(seen.values())


def _criteria_folder(here: Path, source: Path) -> Path | None:
    """Return the nearest folder with criteria, from the given one up to the source."""
    top = _folder_of(source)
    for folder in (here, *here.parents):
        if (folder / CRITERIA_FILE).is_file():
            return folder
        if folder == top:
            return None
    return None


def _folder_of(source: Path) -> Path:
    if source.is_dir():
        return source
    return source.parent


# --- names ----------------------------------------------------------------------------------------


def _relative(path: Path, base: Path) -> str:
    """Return a path as text that is the same on every machine."""
    return Path(os.path.relpath(path, base)).as_posix()


def _below(folder: str, name: str) -> str:
    """Return the path of a file in a folder, both as text."""
    if folder == ".":
        return name
    return f"{folder}/{name}"


def _shown(path: Path, root: Path) -> str:
    """Return a path for messages: relative to the working directory if it is below it, else to the root."""
    near = _relative(path, Path.cwd())
    if near.startswith(".."):
        return _relative(path, root)
    return near


def _listed(paths: Iterable[Path], root: Path) -> str:
    return ", ".join(_relative(path, root) for path in paths)
