"""Samples a share of the traces by their ids alone, so that every reader picks the same ones."""

from __future__ import annotations

import re
from hashlib import blake2b

from gate.traces.values import hex_id

TRACE_IDS = re.compile(rb'"trace_?[iI][dD]"\s*:\s*"((?:[^"\\]|\\.){1,200})"')
"""The key of a trace's id in a line of OTLP JSON; never matches in an attribute's text, where quotes are escaped."""
_OTLP = re.compile(rb'\s*\{\s*"resource(?:Spans|_spans|Logs|_logs)"\s*:\s*\[\s*\{')
"""The beginning of an OTLP request. In any other line an id may merely be mentioned in a message."""


def trace_key(identifier: str) -> str:
    """Return an id in one spelling: 16 bytes in hexadecimal or base64 become lower-case hexadecimal."""
    return hex_id(identifier, 16) or identifier


def is_sampled(key: str, rate: float) -> bool:
    """True if a trace belongs to the sample; it depends on the id alone, so the answer is the same everywhere.

    Args:
        key: as returned by `trace_key`.
        rate: 0 to 1. A smaller sample is part of a larger one.
    """
    if rate >= 1.0:
        return True
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < rate * 2.0**64


def concerns_sample(line: bytes, rate: float) -> bool:
    """True if a line may hold data of the sample; a line of OTLP is not parsed to decide this.

    True if no id is found, or if it is unclear what an id belongs to: only the reader of rows knows under which key a
    row has its id.
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
    """Return the number of sampled traces that a line names, even if the line is otherwise invalid."""
    found = {trace_key(match[1].decode("utf-8", "replace")) for match in TRACE_IDS.finditer(line)}
    return sum(is_sampled(one, rate) for one in found)
