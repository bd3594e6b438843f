"""The interface of suite formats: a document in, cases and recorded trials out. One file for each format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from gate.errors import ConfigError, first_problem, unknown_key
from gate.formats.positions import Key, LineNumbers
from gate.formats.reading import Ignored, UnreadKey, carried, unread, with_read_marks
from gate.formats.shapes import as_mapping
from gate.model import Case, Invocation, Location, Part, RecordedTrial
from gate.security.limits import shorten


class Document(Struct, frozen=True):
    """A file's content, parsed but not yet understood."""

    data: Any
    """The value of a JSON or YAML file, the list of values of JSON Lines, the text of any other file."""
    where: str
    """The file's path in messages."""
    name: str
    """The file's path relative to the suite's root, without suffix: the id of a case that has no other."""
    lines: LineNumbers | None = None
    """None for JSON Lines, whose rows carry their own numbers."""
    row_lines: Sequence[int] = ()
    """JSON Lines: the line of each item of ``data``; other text: its lines."""
    root: Path | None = None
    """The folder that the suite's paths start at, where a format keeps its project's settings; None: not known."""
    folder: Path | None = None
    """The file's own folder, where its references start; None: it is not a file."""
    referred: list[tuple[str, Any]] = field(default_factory=list)
    """The files that were read because this one names them: name and content."""

    def location(self, *keys: Key) -> Location:
        """Return the place of the value at ``keys``."""
        if self.lines is not None:
            return Location(self.where, self.lines.line(*keys))
        row = keys[0] if keys else None
        return Location(self.where, self.row_lines[row] if isinstance(row, int) else None)

    def error(self, what: str, *keys: Key, hint: str = "") -> ConfigError:
        """An error about the value at ``keys``."""
        return ConfigError(what, where=str(self.location(*keys)), hint=hint)


NO_ANSWER = "the recording holds no answer"
"""The reason why a recorded trial failed of which only the question was recorded."""


def is_answered(said: Iterable[Invocation]) -> bool:
    """True if the agent said or called anything in a recorded conversation; blanks say nothing."""
    return any(turn.tool_calls or _says((*turn.response, *turn.intermediate)) for turn in said)


def _says(parts: Iterable[Part]) -> bool:
    return any(part.text.strip() for part in parts)


class Contents(Struct, frozen=True):
    """The contents of a file."""

    cases: tuple[Case, ...]
    recorded: tuple[RecordedTrial, ...] = ()
    criteria: Mapping[str, Any] | None = None
    """The criteria that the file states, by name; None if it states none."""
    notes: tuple[str, ...] = ()
    """Notes for the reader on how the file was understood."""
    unanswered: tuple[RecordedTrial, ...] = ()
    """Trials of which the file holds no answer: failed ones of a recording, and nothing where none was recorded."""


class Loss(Struct, frozen=True):
    """A part of somebody else's suite that has no counterpart here."""

    case: str
    """The id of its case; empty for a part of the whole file."""
    what: str
    check: bool = True
    """True if it would have checked something: without it, the suite promises less than its file."""
    keys: tuple[Key, ...] = ()
    """The place of it, if that is known."""

    def __str__(self) -> str:
        return f"{self.case}: {self.what}" if self.case else self.what


MOST_NAMED = 3
"""Cases that are named where one thing is lost of several."""


def by_kind(losses: Sequence[Loss]) -> list[Loss]:
    """The losses, one for all cases that lose the same if these are many."""
    kinds: dict[tuple[str, bool], list[Loss]] = {}
    for loss in losses:
        kinds.setdefault((loss.what, loss.check), []).append(loss)
    found = list[Loss]()
    for alike in kinds.values():
        if len(alike) <= MOST_NAMED:
            found += alike
        else:
            what = f"{alike[0].what} (and in {len(alike) - 1} more cases)" if alike[0].case else alike[0].what
            found.append(replace(alike[0], what=what))
    return found


def without_check(loss: Loss) -> Loss:
    """A lost check of a file that holds what another tool found: it is lost where an agent is run alone."""
    if not loss.check:
        return loss
    told = loss.what if loss.keys else f"{loss.what} (other than in the verdict on recorded trials)"
    return replace(loss, what=told, check=False)


def without_losses(document: Document, found: Contents, losses: Sequence[Loss]) -> Contents:
    """Return the contents, with notes on omissions. Raises `ConfigError` if a check would be lost."""
    lost = next((loss for loss in losses if loss.check), None)
    if lost is not None:
        hint = "`gate import --allow-loss` writes the suite without it"
        why = "it is not read here, and may be a check" if lost.keys and not lost.case else "the gate has no such check"
        raise document.error(f"{lost}: {why}", *lost.keys, hint=hint)
    notes = tuple(f"{document.where}: {loss} is not carried over" for loss in by_kind(losses))
    return replace(found, notes=(*found.notes, *notes))


def with_note(where: str, found: Contents, losses: Sequence[Loss], hint: str = "") -> Contents:
    """The contents of a recording, with one note of everything that was not read; none of it checks anything."""
    if not losses:
        return found
    return replace(found, notes=(*found.notes, f"{where}: {not_read(losses, ', which `gate import` lists')}{hint}"))


def not_read(losses: Sequence[Loss], where_all_are: str = "") -> str:
    """The parts of a recording that were not read, in words; each kind once, and the first kinds of many."""
    kinds = [str(loss) for loss in losses[:MOST_KINDS]]
    if len(losses) > MOST_KINDS:
        kinds.append(f"and {len(losses) - MOST_KINDS} more kinds{where_all_are}")
    return f"not read: {', '.join(kinds)}"


MOST_KINDS = 20
"""Kinds of unread keys that one note names."""


Carry = Callable[[Document], tuple[Contents, list[Loss]]]
"""Reads a document, and says what of it is lost."""


def nothing_unread(ignored: Ignored, *, checks: bool | Callable[[str], bool] = True) -> Callable[[Carry], Carry]:
    """Have a reader list every key that it did not ask for and does not ignore on purpose.

    ``checks``: whether a key that nobody knows may check something, so that a suite without it would promise less;
    or that by its path.
    """

    def whole(carry: Carry) -> Carry:
        def read(document: Document) -> tuple[Contents, list[Loss]]:
            data = with_read_marks(document.data, ignored)
            found, losses = carry(replace(document, data=data))
            kept: Contents = carried(found)
            losses += [_loss(one, checks) for one in unread(data, ignored)]
            for name, content in document.referred:
                losses += [replace(_loss(one, checks), case=name, keys=()) for one in unread(content, ignored)]
            return kept, losses

        return read

    return whole


def losses_of(kinds: Mapping[str, int]) -> list[Loss]:
    """The parts of a recording that were not read, and how often: none of it would check anything."""
    return [Loss("", _often(what, number), check=False) for what, number in kinds.items()]


def _loss(one: UnreadKey, checks: bool | Callable[[str], bool]) -> Loss:
    check = checks if isinstance(checks, bool) else checks(one.path)
    return Loss("", _often(one.path, one.count), check, one.first)


def _often(what: str, number: int) -> str:
    times = f" ({number} times)" if number > 1 else ""
    return f"{shorten(what, 100)}{times}"


class Format(Struct, frozen=True):
    """A way to write suites."""

    shape: str
    """The shape of a file in this format, for messages."""
    recognises: Callable[[Any], bool]
    """Return True if a parsed file is of this format; cheap, and true for broken files of it too."""
    read: Callable[[Document], Contents]
    """Raises `ConfigError` for anything in the file that cannot be understood."""
    carry: Carry | None = None
    """As ``read``, with what would be lost instead of an error; None where all that is read is carried over."""
    suffixes: tuple[str, ...] = ()
    """Endings of further files of a folder that are read if this format is named: ``(".csv",)``."""
    open: Callable[[Path, str], Any] | None = None
    """Reads a file that is no text, named for messages by its second argument; None: all files are text."""
    refers: Callable[[Path, Path], Sequence[Path]] | None = None
    """Returns the files of cases that a file names, in and below a root."""
    ignored: Ignored | None = None
    """The keys that are not read on purpose; None where every unknown key is refused."""


def refuse_duplicates(cases: Iterable[Case]) -> None:
    """Raises `ConfigError` if two cases have the same id."""
    seen: dict[str, Case] = {}
    for case in cases:
        first = seen.setdefault(case.id, case)
        if first is not case:
            raise ConfigError(
                f"duplicate case id {case.id!r}, first at {first.location}",
                where=str(case.location),
                hint="ids are unique in a suite",
            )


def validation_error(
    document: Document, error: ValidationError, models: Mapping[str, type[BaseModel]], *, added: int = 0
) -> ConfigError:
    """The first problem of a validation as one line, with its place and the nearest known key.

    ``models`` has under ``""`` the model of the file; ``added`` is the number of keys that were put in front of the
    document before it was validated.
    """
    problem = first_problem(error, models[""])
    path = problem.path[added:]
    subject = _subject(document, path)
    if problem.kind == "unknown":
        where = str(document.location(*path))
        return unknown_key(str(path[-1]), list(problem.known), f"{where}: {subject}" if subject else where)
    named = path[1:] if subject else path
    names = ".".join([part for part in named if isinstance(part, str)])
    if problem.kind == "missing":
        what = f"missing key {names!r}"
    else:
        what = f"{names}: {problem.message}" if names else problem.message
    return document.error(f"{subject}: {what}" if subject else what, *path)


def _subject(document: Document, path: tuple[Key, ...]) -> str:
    """Return the case that a path leads into, by its id if it has one."""
    case = path[:2] if path[:1] == ("cases",) else path[:1]
    if not case or not isinstance(case[-1], int):
        return ""
    value = document.data
    for part in case:
        value = value[part]
    identifier = as_mapping(value).get("id")
    return f"case {identifier!r}" if isinstance(identifier, str | int) else f"case {case[-1] + 1}"


def kinds_of(attached: Iterable[Mapping[str, Any]]) -> str:
    """Return the kinds of what is attached to a user's text, for messages."""
    return ", ".join(dict.fromkeys(chain.from_iterable(attached)))


def is_recorded(criterion: Any) -> bool:
    """True for a criterion that reads what another tool found in recorded trials."""
    return isinstance(criterion, Mapping) and criterion.get("metric") == "recorded_score"
