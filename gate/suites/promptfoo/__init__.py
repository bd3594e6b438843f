"""Knows promptfoo: its configuration is a suite, its results are a suite with recorded trials."""

from __future__ import annotations

from typing import Any

from gate.suites.base import Contents, Document, Format, Loss, without_losses
from gate.suites.promptfoo import configuration, results


def recognises(data: Any) -> bool:
    return results.recognises(data) or configuration.recognises(data)


def carry(document: Document) -> tuple[Contents, list[Loss]]:
    """The cases and trials of a file, and what is lost of it. Raises `ConfigError` for what cannot be read."""
    return results.carry(document) if results.recognises(document.data) else configuration.carry(document)


def read(document: Document) -> Contents:
    """The cases and trials of a file. Raises `ConfigError` for what cannot be read, or is checked there and not here.

    A recorded trial that failed an assertion which cannot be repeated here failed here, too: in results such an
    assertion is named in a note.
    """
    found, losses = carry(document)
    if results.recognises(document.data):
        losses = [Loss(loss.case, loss.what, check=False) for loss in losses]
    return without_losses(document, found, losses)


FORMAT = Format(
    shape="a promptfoo configuration or its results: `prompts` and `tests`, or `results`",
    recognises=recognises,
    read=read,
    carry=carry,
)
