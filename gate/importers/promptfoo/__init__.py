"""Knows promptfoo: its configuration is a suite, its results are a suite with recorded trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.formats.shapes import as_mapping
from gate.importers.promptfoo.ignored import IGNORED
from gate.suites.base import Contents, Document, Format, Loss, nothing_unread, without_check, without_losses

_MARKS = ("prompts", "providers", "targets", "tests", "scenarios", "defaultTest")


def recognises(data: Any) -> bool:
    return _are_results(data) or _is_configuration(data)


def _are_results(data: Any) -> bool:
    held = as_mapping(data).get("results")
    return isinstance(held, Mapping) and isinstance(held.get("results"), list) and "version" in held


def _is_configuration(data: Any) -> bool:
    """Two of the keys that only promptfoo has together."""
    return isinstance(data, Mapping) and sum(key in data for key in _MARKS) >= 2 and "cases" not in data


def _checks(path: str) -> bool:
    """False for what an assertion may have that promptfoo does not use in one of its kind."""
    return not path.endswith((".threshold", ".provider", ".rubricPrompt"))


def carry(document: Document) -> tuple[Contents, list[Loss]]:
    """The cases and trials of a file, and what is lost of it. Raises `ConfigError` for what cannot be read."""
    from gate.importers.promptfoo import configuration, results  # weight: only where a file is promptfoo's

    if _are_results(document.data):
        return nothing_unread(IGNORED, checks=False)(results.carry)(document)
    return nothing_unread(IGNORED, checks=_checks)(configuration.carry)(document)


def read(document: Document) -> Contents:
    """The cases and trials of a file. Raises `ConfigError` for what cannot be read, or is checked there and not here.

    In results an assertion without a counterpart is a note: promptfoo's verdict on each recorded answer is a score.
    """
    found, losses = carry(document)
    if _are_results(document.data):
        losses = [without_check(loss) for loss in losses]
    return without_losses(document, found, losses)


FORMAT = Format(
    shape="a promptfoo configuration or its results: `prompts` and `tests`, or `results`",
    recognises=recognises,
    read=read,
    carry=carry,
    ignored=IGNORED,
)
