"""Reads promptfoo's files: a configuration becomes a suite, results become a suite with recorded trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.formats.shapes import as_mapping
from gate.importers.promptfoo.ignored import IGNORED
from gate.suites.base import Contents, Document, Format, note_lost_checks, nothing_unread, refuse_lost_checks

_MARKS = ("prompts", "providers", "targets", "tests", "scenarios", "defaultTest")


def recognises(data: Any) -> bool:
    return _are_results(data) or _is_configuration(data)


def _are_results(data: Any) -> bool:
    held = as_mapping(data).get("results")
    return isinstance(held, Mapping) and isinstance(held.get("results"), list) and "version" in held


def _is_configuration(data: Any) -> bool:
    """True if at least two keys that only promptfoo combines are present."""
    return isinstance(data, Mapping) and sum(key in data for key in _MARKS) >= 2 and "cases" not in data


_NO_CHECKS = {"providers", "targets", "evaluateOptions", "commandLineOptions", "derivedMetrics", "env", "tracing"}


def _checks(path: str) -> bool:
    """False for the keys that check nothing, and those of an assertion that promptfoo ignores in some kinds of it."""
    return path not in _NO_CHECKS and not path.endswith((".threshold", ".provider", ".rubricPrompt"))


def read(document: Document) -> Contents:
    """Return the cases and trials of a file, and its losses. Raises `ConfigError` if it cannot be read."""
    from gate.importers.promptfoo import configuration, results  # slow to import: only for promptfoo's files

    if _are_results(document.data):
        return nothing_unread(IGNORED, checks=False)(results.read)(document)
    return nothing_unread(IGNORED, checks=_checks)(configuration.read)(document)


def settle(document: Document, found: Contents) -> Contents:
    """Settle the losses of a file; in results, promptfoo's verdict on each recorded answer is a score."""
    if _are_results(document.data):
        return note_lost_checks(document, found)
    return refuse_lost_checks(document, found)


FORMAT = Format(
    shape="a promptfoo configuration or its results: `prompts` and `tests`, or `results`",
    recognises=recognises,
    read=read,
    ignored=IGNORED,
    settle=settle,
)
