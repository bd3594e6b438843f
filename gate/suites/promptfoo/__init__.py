"""Knows promptfoo: its configuration is a suite, its results are a suite with recorded trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.suites.base import Contents, Document, Format, Loss, without_losses

_MARKS = ("prompts", "providers", "targets", "tests", "scenarios", "defaultTest")


def recognises(data: Any) -> bool:
    return _are_results(data) or _is_configuration(data)


def _are_results(data: Any) -> bool:
    held = data.get("results") if isinstance(data, Mapping) else None
    return isinstance(held, Mapping) and isinstance(held.get("results"), list) and "version" in held


def _is_configuration(data: Any) -> bool:
    """Two of the keys that only promptfoo has together."""
    return isinstance(data, Mapping) and sum(key in data for key in _MARKS) >= 2 and "cases" not in data


def carry(document: Document) -> tuple[Contents, list[Loss]]:
    """The cases and trials of a file, and what is lost of it. Raises `ConfigError` for what cannot be read."""
    from gate.suites.promptfoo import configuration, results  # weight: only where a file is promptfoo's

    return results.carry(document) if _are_results(document.data) else configuration.carry(document)


def read(document: Document) -> Contents:
    """The cases and trials of a file. Raises `ConfigError` for what cannot be read, or is checked there and not here.

    A recorded trial that failed an assertion which cannot be repeated here failed here, too: in results such an
    assertion is named in a note.
    """
    found, losses = carry(document)
    if _are_results(document.data):
        losses = [Loss(loss.case, loss.what, check=False) for loss in losses]
    return without_losses(document, found, losses)


FORMAT = Format(
    shape="a promptfoo configuration or its results: `prompts` and `tests`, or `results`",
    recognises=recognises,
    read=read,
    carry=carry,
)
