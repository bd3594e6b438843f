"""Holds what this version says of a situation against what was agreed on, and rewrites it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.recorded import files, judging
from tests.recorded.differences import Change


def said(situation: files.Situation) -> dict[str, Any]:
    """What this version says of a situation: the values of its JSON report, and its texts where they are agreed on."""
    result = judging.judged(situation)
    found = {files.RESULT: files.agreed(judging.as_json(result))}
    if situation.has_texts:
        found |= {files.TEXT: judging.as_text(result), files.COMMENT: judging.as_comment(result)}
    return found


def agreed(situation: files.Situation) -> dict[str, Any]:
    """What was agreed on, by file; nothing of what there is none yet."""
    paths = (situation.folder / file for file in (files.RESULT, files.TEXT, files.COMMENT))
    texts = {path.name: path.read_text(encoding="utf-8") for path in paths if path.exists()}
    return {name: json.loads(text) if name == files.RESULT else text for name, text in texts.items()}


def result_of(situation: files.Situation) -> Any:
    """The JSON report that was agreed on; empty where there is none yet."""
    return agreed(situation).get(files.RESULT, {})


def changed(name: str) -> Change | None:
    """The situation if anything that is said of it differs from what was agreed on."""
    situation = files.load(name)
    before, now = agreed(situation), said(situation)
    return None if before == now else Change(name, _by_path(before), _by_path(now))


def _by_path(told: dict[str, Any]) -> dict[str, Any]:
    """The values of the report, and beside them the lines of the texts."""
    texts = {file: text.splitlines() for file, text in told.items() if file != files.RESULT}
    return {**told.get(files.RESULT, {}), **texts}


def update(names: Iterable[str]) -> list[str]:
    """Rewrites what differs; returns the names of the situations in which something did."""
    rewritten = []
    for name in names:
        situation = files.load(name)
        before, now = agreed(situation), said(situation)
        for file, told in now.items():
            if before.get(file) != told:
                text = told if isinstance(told, str) else files.pretty(told)
                (situation.folder / file).write_text(text, encoding="utf-8")
        if before != now:
            rewritten.append(name)
    return rewritten
