"""Limits on untrusted input, in one place for all readers."""

from __future__ import annotations

MAX_ANSWER_BYTES = 10_000_000
"""The largest answer to read from an agent, in bytes."""
MAX_DOCUMENT_BYTES = 200_000_000
"""The largest suite or record file to read at once, in bytes; larger records are streamed."""
MAX_LINE_BYTES = 50_000_000
"""The longest line of a JSON Lines file, in bytes."""
MAX_NESTING = 100
"""The deepest nesting of a document from outside."""
MAX_ID_CHARS = 500
"""The longest case id, tool name or metric name that is not shortened."""
RAW_LOG_CHARS = 16_000
"""Characters of a log to keep until secrets are masked: more than in the end, so that the final text does not begin
with half of a secret."""
MAX_LOG_CHARS = 4_000
"""Characters to keep from the end of an agent's other output in one trial."""


def shorten(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, followed by the number of characters left out, if any."""
    if len(text) <= limit:
        return text
    note = f"… ({len(text) - limit:,} more characters)"
    return text[:limit] + note


def tail(text: str, limit: int) -> str:
    """Return at most the last ``limit`` characters, the first ``…`` if something was left out; repeating it changes
    nothing."""
    return text if len(text) <= limit else "…" + text[len(text) - limit + 1 :]


def described(error: BaseException) -> str:
    """Return an exception from other people's code in words, shortened."""
    return shorten(": ".join(filter(None, (type(error).__name__, str(error)))), 300)


def cut(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, the last ``…`` if something was left out; repeating it changes nothing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
