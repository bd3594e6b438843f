"""Makes a case from one promptfoo test and one prompt. Configurations and results share this conversion."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.formats.messages import FormatError
from gate.formats.shapes import as_mapping, as_text
from gate.importers.promptfoo.assertions import Checks
from gate.importers.promptfoo.files import SCHEME, Folder
from gate.importers.promptfoo.templates import TemplateError
from gate.model import Case, Location
from gate.security.limits import shorten
from gate.suites.base import Loss

MAX_NAME = 80
"""Most characters of a case's id that is made from the user's text."""
TEST_KEYS = {"description", "vars", "assert", "threshold", "options", "metadata", "provider", "providers", "prompts",
             "providerOutput", "assertScoringFunction", "__metric"}  # fmt: skip
_QUIET = {"disableVarExpansion", "disableConversationVar", "disableDefaultAsserts", "prefix", "suffix"}
"""Options that are supported or have no effect here."""
_REWRITTEN = "rewrites the answer before it is checked"
_UNSEEN = {"transform": _REWRITTEN, "postprocess": _REWRITTEN, "transformVars": "rewrites the variables"}


Prompt = tuple[str, str]
"""The text of a prompt to the agent, with or without its variables inserted, and its name; empty if there is one."""


class Made(Struct, frozen=True):
    """A case whose id may not be final, and the losses of its test."""

    case: Case
    criteria: Mapping[str, Any]
    losses: Sequence[Loss]
    """Without the id of the case."""


def mapping(value: Any, what: str) -> dict[str, Any]:
    """Return a mapping. Raises `FormatError` for any other value."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise FormatError(f"{what}: expected a mapping")
    return dict(value)


def make(
    test: Mapping[str, Any], variables: Mapping[str, Any], prompt: Prompt, folder: Folder | None, location: Location
) -> Made:
    """Return the case of a test with everything that it inherits, and one value per variable.

    Without a ``folder`` the prompt was already sent, and any chat is accepted unchanged.

    Raises:
        FormatError: a part of the test does not have promptfoo's shape.
        TemplateError: its prompt does not fit one turn.
    """
    text, label = prompt
    checks = Checks(variables, folder)
    listed = test.get("assert") or []
    if not isinstance(listed, list):
        raise FormatError("assert: expected a list")
    for assertion in listed:
        checks.add(assertion)
    checks.drop_threshold("test", test.get("threshold"))
    said, losses = _spoken(text, recorded=folder is None)
    losses += [*checks.losses, *_unread_parts(test, mapping(test.get("options"), "options"))]
    metadata = mapping(test.get("metadata"), "metadata")
    if variables:
        metadata = {**metadata, "vars": dict(variables)}
    case = Case(
        _id(as_text(test.get("description")) or said, label),
        (replace(checks.expected, user=said),),
        metadata=metadata,
        options=checks.options(),
        thresholds=dict(checks.thresholds),
        rubrics=tuple(checks.rubrics),
        location=location,
    )
    return Made(replace(case, content=_content(case, variables, label)), checks.criteria(), losses)


def _content(case: Case, variables: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return the content that identifies the case: its test, but not the prompt's wording, which may change."""
    (turn,) = case.turns
    calls = [[call.name, call.args, call.any_args] for call in turn.tools or ()]
    expected = [part.text for part in turn.response or ()]
    found = {"vars": dict(variables), "prompt": label, "tools": calls, "response": expected}
    if any(as_text(value).startswith(SCHEME) for value in variables.values()):  # their texts are elsewhere
        found["said"] = turn.user
    return found


def _unread_parts(raw: Mapping[str, Any], options: Mapping[str, Any]) -> list[Loss]:
    found = [Loss("", key) for key in raw if key not in TEST_KEYS]
    for key in ("provider", "providers", "providerOutput", "__metric"):
        if raw.get(key) not in (None, [], ""):
            found.append(Loss("", key, check=False))
    if raw.get("assertScoringFunction"):
        found.append(Loss("", "assertScoringFunction, a program, which is never run"))
    for key, value in options.items():
        if key in _UNSEEN and value:
            found.append(Loss("", f"options.{key}, which {_UNSEEN[key]}, is never run"))
        elif key not in _QUIET and key not in _UNSEEN:
            found.append(Loss("", f"options.{key}", check=False))
    return found


def _spoken(text: str, *, recorded: bool) -> tuple[str, list[Loss]]:
    """Return the user's text in a prompt: all of it, or the user message of a chat. Raises `TemplateError`."""
    messages = _messages(text)
    if messages is None:
        if not text:
            raise TemplateError("its prompt is empty")
        return text, []
    users = [one for one in messages if one.get("role") == "user"]
    system = [one for one in messages if one.get("role") in ("system", "developer")]
    if len(users) != 1 or len(users) + len(system) != len(messages) or not isinstance(users[0].get("content"), str):
        if recorded:
            return text, []
        raise TemplateError("its prompt is a chat with more than instructions and one user message")
    losses = []
    if system:
        losses.append(Loss("", "the prompt's instructions", check=False))
    for key in dict.fromkeys(chain.from_iterable(messages)):
        if key not in ("role", "content"):
            losses.append(Loss("", f"the prompt's {shorten(str(key), 40)}", check=False))
    return users[0]["content"], losses


def _messages(text: str) -> list[Mapping[str, Any]] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all("role" in as_mapping(one) for one in found):
        return None
    return found or None


# --- ids ------------------------------------------------------------------------------------------


def _id(name: str, label: str) -> str:
    short = shorten(" ".join(name.split()), MAX_NAME) or "test"
    if not label:
        return short
    return f"{short} [{shorten(label, MAX_NAME)}]"


def with_unique_ids(made: Sequence[Made]) -> list[Made]:
    """Return the cases with unique ids: a shared id gets a suffix from the content; equal cases keep the same id."""
    keys = [key_of(one.case) for one in made]
    counts = Counter(one.case.id for one in dict(zip(keys, made, strict=True)).values())
    marks = {key: hashlib.sha256(key.encode()).hexdigest() for key in keys}
    length = 6
    if len({mark[:length] for mark in marks.values()}) < len(marks):
        length = 16
    found = []
    for key, one in zip(keys, made, strict=True):
        case = one.case
        if counts[case.id] > 1:
            case = replace(case, id=f"{case.id} ({marks[key][:length]})")
        found.append(replace(one, case=case))
    return found


def key_of(case: Case) -> str:
    """Return a text that identifies the test of a case by its content, independent of its position in the file."""
    held = [case.id, case.content, case.options, case.thresholds, [rubric.text for rubric in case.rubrics]]
    return json.dumps(held, sort_keys=True, ensure_ascii=False, default=str)


def distinct(made: Sequence[Made]) -> list[Made]:
    """Return the cases without duplicates."""
    return list({key_of(one.case): one for one in made}.values())


def losses_of(made: Sequence[Made]) -> list[Loss]:
    """Return the losses of the cases without duplicates."""
    found: dict[Loss, None] = {}
    for one in made:
        for loss in one.losses:
            found[replace(loss, case=one.case.id)] = None
    return list(found)


def criteria_of(made: Sequence[Made]) -> dict[str, Any] | None:
    """Return the criteria that the cases need; None if there are none."""
    found: dict[str, Any] = {}
    for one in made:
        found |= one.criteria
    return found or None
