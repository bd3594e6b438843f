"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from gate.security.escape import console


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned by spaces; everything in them made harmless for a terminal."""
    clean = [[console(cell, 200) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*clean, strict=True)] if clean else []
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in clean)
