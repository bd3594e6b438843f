"""Samples traces: a share of them, decided by the trace's id alone, so that every reader picks the same."""

from __future__ import annotations

import re
from hashlib import blake2b

from gate.traces.values import hex_id

TRACE_IDS = re.compile(rb'"trace_?[iI][dD]"\s*:\s*"((?:[^"\\]|\\.){1,200})"')
"""The key of a trace's id in a line of OTLP JSON. Inside an attribute's text the quotes are escaped, so that none is
found."""
_OTLP = re.compile(rb'\s*\{\s*"resource(?:Spans|_spans|Logs|_logs)"\s*:\s*\[\s*\{')
"""The beginning of a request of OTLP. In any other line a trace's id may be one that a row of messages only
mentions."""


def trace_key(identifier: str) -> str:
    """An id as everybody spells it: 16 bytes in hexadecimal or base64 become lower-case hexadecimal."""
    return hex_id(identifier, 16) or identifier


def is_sampled(key: str, rate: float) -> bool:
    """True if a trace belongs to the sample; by its id, so again and elsewhere the answer is the same.

    Args:
        key: as `trace_key` gives it.
        rate: 0 to 1. A smaller sample is part of a larger one.
    """
    if rate >= 1.0:
        return True
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < rate * 2.0**64


def concerns_sample(line: bytes, rate: float) -> bool:
    """True if a line may hold something of the sample; decided without parsing it, where it is one of OTLP.

    True where no id is found, and where it is not sure whose an id is: a row's own is under a name that only its reader
    knows.
    """
    if rate >= 1.0 or _OTLP.match(line) is None:
        return True
    found = False
    seen: set[bytes] = set()
    for match in TRACE_IDS.finditer(line):
        found, raw = True, match[1]
        if raw in seen:
            continue
        if b"\\" in raw or is_sampled(trace_key(raw.decode("utf-8", "replace")), rate):
            return True
        seen.add(raw)
    return not found


def sampled_in(line: bytes, rate: float) -> int:
    """Return the number of traces of the sample that a line names, whatever else is wrong with it."""
    found = {trace_key(match[1].decode("utf-8", "replace")) for match in TRACE_IDS.finditer(line)}
    return sum(is_sampled(one, rate) for one in found)
