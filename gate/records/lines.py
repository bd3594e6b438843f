"""Single lines of a record as bytes: strict when reading, and always valid JSON when writing.

Lines are UTF-8 without unpaired surrogates, numbers are finite, nesting and length are limited. The fields of a line
are declared in `wire`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import NODEFAULT, DecodeError, Struct, ValidationError
from msgspec.json import Decoder, Encoder, decode
from msgspec.structs import astuple, fields, replace

from gate.errors import MeasureError
from gate.model import Score, Trial
from gate.records import wire
from gate.records.model import FORMAT, Footer, Header
from gate.records.wire import MalformedError
from gate.security.limits import MAX_LINE_BYTES, MAX_NESTING, shorten

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

S = TypeVar("S", bound=Struct)

PLAN_CHUNK = 1000
"""The most cases on one plan line, so that a plan of a million cases has no line of hundreds of megabytes."""
COMFORTABLE_BYTES = 2_000_000
"""A trial's line longer than this is written again with shortened texts."""
SUM_DIGITS = 12
SUM_BYTES = len(b',"sum":""}\n') + SUM_DIGITS
"""Length of a line's end if it has a sum."""
_MOST_BYTES = MAX_LINE_BYTES - SUM_BYTES
CLOSING = b'{"closing"'
"""The beginning of closing lines, and of no others."""
_MAX_INTEGER_BITS = 1000
_LONGEST_MISTAKE = 200
_INNER_NESTING = MAX_NESTING - 10
"""The deepest nesting of a tool's arguments that keeps the line around them within the limit."""


# --- reading --------------------------------------------------------------------------------------


class NotJSONError(MalformedError):
    """The line is not JSON at all, for instance because it was never written completely."""


def read_line(kind: type[S], line: bytes, name: str) -> S:
    """Return the line as a struct of `wire`. Raises `MalformedError`, which calls the line ``name`` and names the
    mistake."""
    try:
        found: S = _decoder(kind).decode(line)
    except ValidationError as problem:
        raise MalformedError(_mistake(str(problem), name)) from None
    except (DecodeError, ValueError, RecursionError) as problem:
        raise NotJSONError(f"not a line of JSON: {problem}") from None
    if line.count(b"[") + line.count(b"{") > MAX_NESTING and not nests_within(line, MAX_NESTING):
        raise NotJSONError(f"nested more than {MAX_NESTING} deep")
    return found


def read_header_line(line: bytes) -> wire.HeaderLine:
    """Read the first line of a record. Raises `MalformedError` for an unknown format."""
    try:
        version = _decoder(wire.VersionLine).decode(line).gate_record
    except ValidationError as problem:
        if "missing required field" in str(problem):
            raise MalformedError("not a record of the gate") from None
    except (DecodeError, ValueError, RecursionError):
        pass
    else:
        if version != FORMAT:
            raise MalformedError(f"written in format {version}; this version reads {FORMAT}")
    return read_line(wire.HeaderLine, line, "header")


def _mistake(problem: str, name: str) -> str:
    """Return msgspec's message on one line, with the field first: ``turns[0].calls[1].name: expected str, got int``.

    The message may quote the line, which may be hostile.
    """
    what, _, path = problem.rpartition(" - at `$")
    if what:
        place = path.removesuffix("`").removeprefix(".")
    else:
        what, place = problem, name
    said = shorten(f"{place}: {what[0].lower()}{what[1:]}".replace("`", ""), _LONGEST_MISTAKE)
    return repr(said)[1:-1]


@cache
def _decoder(kind: type[S]) -> Decoder[S]:
    """Return a decoder that rejects unpaired surrogates, NaN and numbers out of range."""
    return Decoder(kind)


# --- writing --------------------------------------------------------------------------------------


def header_lines(header: Header) -> bytes:
    """Return the header's line and the plan's lines after it."""
    lines = [to_line(wire.header_line(header))]
    for start in range(0, len(header.plan), PLAN_CHUNK):
        lines.append(to_line(wire.PlanLine(header.plan[start : start + PLAN_CHUNK])))
    return b"".join(lines)


def trial_line(trial: Trial) -> bytes:
    """Return a trial as one line; texts are shortened if the line would be unreasonably long."""
    line = to_line(wire.trial_line(trial))
    if len(line) <= COMFORTABLE_BYTES:
        return line
    for text_limit, enough in ((20_000, COMFORTABLE_BYTES), (500, _MOST_BYTES)):
        shorter = _shortened(line, text_limit)
        if len(shorter) <= enough:
            return shorter
    bare = {name: Score(s.value, error=s.error, judges=s.judges) for name, s in trial.scores.items()}
    line = _shortened(to_line(wire.trial_line(replace(trial, invocations=(), earlier=(), scores=bare))), 500)
    if len(line) <= _MOST_BYTES:
        return line
    raise MeasureError(f"a trial of case {shorten(trial.case_id, 100)!r} is too large to record")


def _shortened(line: bytes, text_limit: int) -> bytes:
    """Return a trial's line with every text shortened except the case's name."""
    plain = decode(line)
    return to_line({**clean(plain, text_limit=text_limit), "case": plain["case"]})


def footer_line(footer: Footer, checksum: str) -> bytes:
    """Return the closing line; ``checksum`` is the SHA-256 of all bytes before it."""
    return to_line(wire.closing_line(footer, checksum))


def summed(lines: bytes, checksum: Hash) -> bytes:
    """Return the lines, the last one with a ``sum`` over all bytes of the record before it, and update ``checksum``.

    ``checksum`` is the SHA-256 of everything before ``lines``.
    """
    body = lines[:-2]  # without the brace and the newline
    checksum.update(body)
    end = b',"sum":"%b"}\n' % checksum.hexdigest()[:SUM_DIGITS].encode()
    checksum.update(end)
    return body + end


def to_line(value: Struct | Mapping[str, Any]) -> bytes:
    """Return one line of JSON. Values that JSON cannot hold are replaced by the nearest that it can."""
    try:
        line = _dump(value)
        if line.count(b"[") + line.count(b"{") <= _INNER_NESTING:
            return line
    except (ValueError, TypeError, RecursionError):  # the slow path
        return _dump(clean(value))
    return line if nests_within(line, MAX_NESTING) else _dump(clean(value))


def _dump(value: Any) -> bytes:
    return _ENCODER.encode(value) + b"\n"


_ENCODER = Encoder()
"""Writes non-finite numbers as null."""


def nests_within(line: bytes, limit: int) -> bool:
    """True if the containers in a line of JSON nest at most ``limit`` deep. Needs no stack, at any depth."""
    if b"\\" in line:
        line = line.replace(rb"\\", b"").replace(rb"\"", b"")  # quotes that do not end a text
    shape = line.translate(_BRACKETS, _REST).replace(b'""', b"")
    shape = _TEXTS.sub(b"", shape)
    for _ in range(limit):
        if not shape:
            return True
        shape = shape.replace(b"[]", b"")  # the innermost level
    return not shape


_BRACKETS = bytes.maketrans(b"{}", b"[]")
_REST = bytes(set(range(256)) - set(b'[]{}"'))
_TEXTS = re.compile(rb'"[^"]*"')


def clean(value: Any, depth: int = 0, text_limit: int | None = None) -> Any:
    """Return the nearest value that is valid JSON: text without unpaired surrogates, finite numbers, limited
    nesting."""
    if isinstance(value, str):
        text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text if text_limit is None else shorten(text, text_limit)
    if value is None or isinstance(value, (int, float)):
        return _clean_number(value)
    if depth >= _INNER_NESTING:
        return "… (nested too deeply)"
    if isinstance(value, Struct):
        value = _plain(value)
    if isinstance(value, Mapping):
        return {clean(str(k)): clean(v, depth + 1, text_limit) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [clean(item, depth + 1, text_limit) for item in value]
    return clean(shorten(str(value), 20_000))


def _plain(struct: Struct) -> Mapping[str, Any] | Sequence[Any]:
    """Return the struct's fields as the encoder would write them, for any values."""
    values = astuple(struct)
    if struct.__struct_config__.array_like:
        return values
    found = {}
    for (key, usual), value in zip(_keys(type(struct)), values, strict=True):
        is_usual = value is usual or (type(value) is type(usual) and value == usual)
        if not is_usual:
            found[key] = value
    return found


@cache
def _keys(kind: type[Struct]) -> list[tuple[str, Any]]:
    """Return each key with the value at which it is left out; `NODEFAULT`, which nothing equals, if it never is."""
    found = []
    for info in fields(kind):
        usual = info.default if info.default_factory is NODEFAULT else {}
        found.append((info.encode_name, usual))
    return found


def _clean_number(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        bits = value.bit_length()
        return int(value) if bits <= _MAX_INTEGER_BITS else f"(an integer of {bits} bits)"
    return float(value) if value is not None and math.isfinite(value) else None
