"""Bounds on untrusted input. One place, so that no reader invents its own."""

from __future__ import annotations

MAX_ANSWER_BYTES = 10_000_000
"""The largest answer read from an agent, in bytes."""
MAX_DOCUMENT_BYTES = 200_000_000
"""The largest suite or record file read whole, in bytes; records beyond it are streamed."""
MAX_LINE_BYTES = 50_000_000
"""The longest line of a JSON Lines file."""
MAX_NESTING = 100
"""The deepest nesting of a document from outside."""
MAX_ID_CHARS = 500
"""The longest case id, tool name or metric name that is not shortened."""
RAW_LOG_CHARS = 16_000
"""Most characters before secrets are masked: more than is kept, so that what is kept begins with no half of a
secret."""
MAX_LOG_CHARS = 4_000
"""The most that is kept of what an agent wrote beside its answers in one trial: the last of it."""


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters, followed by the number of characters left out, if any."""
    if len(text) <= limit:
        return text
    note = f"… ({len(text) - limit:,} more characters)"
    return text[:limit] + note


def tail(text: str, limit: int) -> str:
    """The last ``limit`` characters at most, the first ``…`` if something was left out; again changes nothing."""
    return text if len(text) <= limit else "…" + text[len(text) - limit + 1 :]


def described(error: BaseException) -> str:
    """Return an exception of somebody else's code in words, bounded."""
    return shorten(f"{type(error).__name__}: {error}", 300)


def cut(text: str, limit: int) -> str:
    """At most ``limit`` characters, the last ``…`` if something was left out; cutting twice changes nothing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
