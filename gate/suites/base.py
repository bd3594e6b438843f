"""The interface of suite formats: they convert a document to cases and recorded trials. One file per format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from gate.errors import ConfigError, first_problem, unknown_key
from gate.formats.messages import FormatError
from gate.formats.positions import Key, LineNumbers
from gate.formats.reading import Ignored, UnreadKey, carried, unread, with_read_marks
from gate.formats.shapes import as_mapping
from gate.model import Case, Complexity, Invocation, Location, Part, RecordedTrial, parts_of
from gate.model.conversation import is_blank
from gate.security.limits import shorten


class Document(Struct, frozen=True):
    """A file's content, parsed but not interpreted."""

    data: Any
    """The value of a JSON or YAML file, the list of values of JSON Lines, or the text of any other file."""
    where: str
    """The file's path in messages."""
    name: str
    """The file's path relative to the suite's root, without suffix: the default id of a case."""
    lines: LineNumbers | None = None
    """None for JSON Lines, which have their line numbers in ``row_lines``."""
    row_lines: Sequence[int] = ()
    """For JSON Lines, the line of each item of ``data``; for other text, its lines."""
    root: Path | None = None
    """The folder to which the suite's paths are relative, where a format finds project settings; None if unknown."""
    folder: Path | None = None
    """The file's folder, to which its references are relative; None if it is not a file."""
    referred: list[tuple[str, Any]] = field(default_factory=list)
    """The files that were read because this one refers to them: name and content."""

    def location(self, *keys: Key) -> Location:
        """Return the place of the value at ``keys``."""
        if self.lines is not None:
            return Location(self.where, self.lines.line(*keys))
        if keys and isinstance(keys[0], int):
            return Location(self.where, self.row_lines[keys[0]])
        return Location(self.where)

    def error(self, what: str, *keys: Key, hint: str = "") -> ConfigError:
        """Return an error about the value at ``keys``."""
        return ConfigError(what, where=str(self.location(*keys)), hint=hint)

    @contextmanager
    def errors_at(self, *keys: Key, about: str = "") -> Iterator[None]:
        """Give each `FormatError` the place of the value at ``keys``; ``about`` precedes its message."""
        try:
            yield
        except FormatError as error:
            raise self.error(f"{about}{error}", *keys) from error


NO_ANSWER = "the recording holds no answer"
"""The error of a recorded trial that contains only the question."""


def is_answered(said: Iterable[Invocation]) -> bool:
    """True if the agent said or called anything in a recorded conversation; whitespace does not count."""
    return any(turn.tool_calls or _says((*turn.response, *turn.intermediate)) for turn in said)


def _says(parts: Iterable[Part]) -> bool:
    return any(part.text.strip() for part in parts)


class Loss(Struct, frozen=True):
    """A part of a suite from another tool that has no counterpart here."""

    case: str
    """The id of its case; empty for a part of the whole file."""
    what: str
    check: bool = True
    """True if it would have checked something, so that the suite checks less than its file."""
    unread: bool = False
    """True for a key that no reader knows."""
    location: str = ""
    """The place of a lost check, if it is not that of the whole file."""

    def __str__(self) -> str:
        if not self.case:
            return self.what
        return f"{self.case}: {self.what}"


class Contents(Struct, frozen=True):
    """The contents of a file."""

    cases: tuple[Case, ...]
    recorded: tuple[RecordedTrial, ...] = ()
    criteria: Mapping[str, Any] | None = None
    """The criteria in the file, by name; None if it has none."""
    notes: tuple[str, ...] = ()
    """Notes for the user on the interpretation of the file."""
    unanswered: tuple[RecordedTrial, ...] = ()
    """Trials without an answer: they count as failed if the file has recorded trials, and are dropped otherwise."""
    each: Mapping[str, float] = {}
    """Criterion → the threshold of each case that states none, if the format has such a default."""
    losses: tuple[Loss, ...] = ()
    """The parts of the file that have no counterpart here."""


MOST_NAMED = 3
"""Most cases that are named for the same loss."""


def by_kind(losses: Sequence[Loss]) -> list[Loss]:
    """Return the losses, with one for all cases if many lose the same part."""
    kinds: dict[tuple[str, bool], list[Loss]] = {}
    for loss in losses:
        kinds.setdefault((loss.what, loss.check), []).append(loss)
    found = list[Loss]()
    for alike in kinds.values():
        one = alike[0]
        if len(alike) <= MOST_NAMED:
            found += alike
        elif not one.case:
            found.append(one)
        else:
            found.append(replace(one, what=f"{one.what} (and in {len(alike) - 1} more cases)"))
    return found


Settle = Callable[[Document, Contents], Contents]
"""Returns the contents of a file that is run, with notes instead of losses. Raises `ConfigError` for a lost check."""


def refuse_lost_checks(document: Document, found: Contents) -> Contents:
    """Settle the losses of a suite, which must not check less than its file."""
    for loss in found.losses:
        if loss.check:
            why = "the gate has no such check"
            if loss.unread:
                why = "it is not read here, and may be a check"
            where = loss.location or str(document.location())
            hint = "`gate import --allow-loss` writes the suite without it"
            raise ConfigError(f"{loss}: {why}", where=where, hint=hint)
    notes = tuple(f"{document.where}: {loss} is not carried over" for loss in by_kind(found.losses))
    return replace(found, notes=(*found.notes, *notes), losses=())


def note_losses(document: Document, found: Contents) -> Contents:
    """Settle the losses of a suite whose own tool ignores them, too."""
    losses = tuple([replace(loss, check=False) for loss in found.losses])
    return refuse_lost_checks(document, replace(found, losses=losses))


def note_lost_checks(document: Document, found: Contents) -> Contents:
    """Settle the losses of another tool's results, whose verdicts are scores: only new trials lose a check."""
    losses = []
    for loss in found.losses:
        what = loss.what
        if loss.check and not loss.unread:
            what += " (other than in the verdict on recorded trials)"
        losses.append(replace(loss, what=what))
    return note_losses(document, replace(found, losses=tuple(losses)))


def note_unread(document: Document, found: Contents, hint: str = "") -> Contents:
    """Settle the losses of a recording, none of which is a check, in one note."""
    if not found.losses:
        return found
    told = f"{document.where}: {not_read(found.losses, ', which `gate import` lists')}{hint}"
    return replace(found, notes=(*found.notes, told), losses=())


def not_read(losses: Sequence[Loss], where_all_are: str = "") -> str:
    """Return a text about the parts of a recording that were not read: each kind once, and the first kinds of many."""
    kinds = [str(loss) for loss in losses[:MOST_KINDS]]
    if len(losses) > MOST_KINDS:
        kinds.append(f"and {len(losses) - MOST_KINDS} more kinds{where_all_are}")
    return f"not read: {', '.join(kinds)}"


MOST_KINDS = 20
"""Most kinds of unread keys named in one note."""


Read = Callable[[Document], Contents]


def nothing_unread(ignored: Ignored, *, checks: bool | Callable[[str], bool] = True) -> Callable[[Read], Read]:
    """Wrap a reader so that it lists every key that it neither reads nor ignores on purpose.

    ``checks``: whether an unknown key may be a check, so that a suite without it would check less; or a function that
    decides this by the key's path.
    """

    def whole(read: Read) -> Read:
        def read_all(document: Document) -> Contents:
            data = with_read_marks(document.data, ignored)
            found = read(replace(document, data=data))
            kept: Contents = carried(found)
            losses = list(found.losses)
            for one in unread(data, ignored):
                loss = replace(_loss(one, checks), unread=True)
                if loss.check:
                    loss = replace(loss, location=str(document.location(*one.first)))
                losses.append(loss)
            for name, content in document.referred:
                losses += [replace(_loss(one, checks), case=name) for one in unread(content, ignored)]
            return replace(kept, losses=tuple(losses))

        return read_all

    return whole


def losses_of(kinds: Mapping[str, int]) -> tuple[Loss, ...]:
    """Return the unread parts of a recording as losses with their number; none of them is a check."""
    return tuple([Loss("", _often(what, number), check=False) for what, number in kinds.items()])


def _loss(one: UnreadKey, checks: bool | Callable[[str], bool]) -> Loss:
    if not isinstance(checks, bool):
        checks = checks(one.path)
    return Loss("", _often(one.path, one.count), checks)


def _often(what: str, number: int) -> str:
    what = shorten(what, 100)
    if number > 1:
        what += f" ({number} times)"
    return what


class Format(Struct, frozen=True):
    """A format for suites."""

    shape: str
    """The shape of a file in this format, for messages."""
    recognises: Callable[[Any], bool]
    """Returns True if a parsed file is in this format; fast, and also true for invalid files of this format."""
    read: Read
    """Reads a document. Raises `ConfigError` for anything that cannot be understood."""
    suffixes: tuple[str, ...] = ()
    """Suffixes of further files of a folder that are read if this format is named: ``(".csv",)``."""
    open: Callable[[Path, str], Any] | None = None
    """Reads a file that is not text; the second argument is its name for messages. None if all files are text."""
    refers: Callable[[Path, Path], Sequence[Path]] | None = None
    """Returns the files of cases to which a file refers, within a root."""
    ignored: Ignored | None = None
    """The keys that are ignored on purpose; None if every unknown key is refused."""
    settle: Settle = refuse_lost_checks
    """Settles the losses of a file that is run."""


def refuse_duplicates(cases: Iterable[Case]) -> None:
    """Raise `ConfigError` if two cases have the same id."""
    seen: dict[str, Case] = {}
    for case in cases:
        first = seen.setdefault(case.id, case)
        if first is not case:
            raise ConfigError(
                f"duplicate case id {case.id!r}, first at {first.location}",
                where=str(case.location),
                hint="ids are unique in a suite",
            )


def refuse_blank_rubrics(cases: Iterable[Case]) -> None:
    """Raise `ConfigError` for a rubric without text, which any answer would satisfy."""
    for case in cases:
        for rubrics in (case.rubrics, *(turn.rubrics for turn in case.turns)):
            if any(is_blank(rubric.text) for rubric in rubrics):
                raise ConfigError(f"case {case.id!r}: a rubric has no text", where=str(case.location))


def validation_error(
    document: Document,
    error: ValidationError,
    model: type[BaseModel],
    *,
    added: int = 0,
    ignored: Iterable[str] = (),
) -> ConfigError:
    """Return the first problem of a validation in one line, with its location and the nearest known key.

    ``model`` is that of the file; ``added`` is the number of keys put in front of the document before validation, and
    ``ignored`` are the keys of the file that were left out of it.
    """
    problem = first_problem(error, model)
    path = problem.path[added:]
    subject = _subject(document, path)
    if problem.kind == "unknown":
        where, known = str(document.location(*path)), list(problem.known)
        if subject:
            where += f": {subject}"
        if len(path) == 1:
            known += ignored
        return unknown_key(str(path[-1]), known, where)
    named = path
    if subject:
        named = path[1:]
    names = ".".join([part for part in named if isinstance(part, str)])
    what = problem.message
    if problem.kind == "missing":
        what = f"missing key {names!r}"
    elif names:
        what = f"{names}: {what}"
    if subject:
        what = f"{subject}: {what}"
    return document.error(what, *path)


def _subject(document: Document, path: tuple[Key, ...]) -> str:
    """Return the case that contains a path, by its id if it has one."""
    case = path[:1]
    if case == ("cases",):
        case = path[:2]
    if not case or not isinstance(case[-1], int):
        return ""
    value = document.data
    for part in case:
        value = value[part]
    identifier = as_mapping(value).get("id")
    if isinstance(identifier, bool) or not isinstance(identifier, str | int):
        return f"case {case[-1] + 1}"
    return f"case {identifier!r}"


def kinds_of(attached: Iterable[Mapping[str, Any]]) -> str:
    """Return the kinds of a user's attachments, for messages."""
    return ", ".join(dict.fromkeys(chain.from_iterable(attached)))


def complexity_of(raw: Any) -> Complexity:
    """Return the stated complexity of a case. Raises `FormatError`."""
    if raw is None:
        return Complexity.MEDIUM
    try:
        return Complexity(raw)
    except ValueError as error:
        raise FormatError(f"complexity must be one of {', '.join(Complexity)}") from error


def expected_parts(text: str | None) -> tuple[Part, ...] | None:
    """Return an expected answer as parts: no parts for an empty one, None if nothing is stated."""
    if text is None:
        return None
    return parts_of(text)


_RECORDED = "recorded_score"


def recorded_criterion(scorer: str, **more: Any) -> dict[str, Any]:
    """Return the criterion that reads the scores of another tool's scorer; ``more``: further keys of it."""
    return {"metric": _RECORDED, "scorer": scorer, **more}


def is_recorded(criterion: Any) -> bool:
    """True for a criterion that reads another tool's scores of recorded trials."""
    return isinstance(criterion, Mapping) and criterion.get("metric") == _RECORDED
