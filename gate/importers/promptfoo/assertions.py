"""Converts promptfoo's assertions to expectations, options and thresholds. Those without a counterpart are listed.

A case is never weaker than its assertions: an assertion that would be incomplete or weaker here is lost. Thresholds of
sets and weights, which let a test pass although an assertion fails, are dropped: all assertions must hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from gate.formats.messages import FormatError
from gate.formats.reading import carried as kept_whole
from gate.formats.shapes import as_list, as_text, in_list
from gate.importers.promptfoo import patterns
from gate.importers.promptfoo.files import SCHEME, Folder, NotReadError
from gate.importers.promptfoo.templates import TemplateError, filled, number_text
from gate.model import Rubric, ToolCall, Turn
from gate.security.limits import shorten
from gate.suites.base import Loss, expected_parts

CONTAINS, NOT_CONTAINS, REGEX, NOT_REGEX = "contains", "not_contains", "regex", "not_regex"
SCHEMA = "json_schema"
TRAJECTORY, FORBIDDEN = "tool_trajectory_avg_score", "forbidden_tools"
LATENCY, COST, CALLS = "latency", "cost", "tool_calls"
ANSWER_RUBRIC = "rubric_based_final_response_quality_v1"
GOAL_RUBRIC = "rubric_based_multi_turn_trajectory_quality_v1"
FACTS = "final_response_match_v2"
_KEYS = {"type", "value", "threshold", "weight", "metric", "provider", "rubricPrompt"}
_CRITERIA: Mapping[str, Any] = {
    FACTS: 1.0,
    TRAJECTORY: {"threshold": 1.0, "match_type": "ANY_ORDER"},
    ANSWER_RUBRIC: 1.0,
    GOAL_RUBRIC: 1.0,
}
"""The settings of criteria that need any; all others are used with their defaults."""
_RUBRICS = {"FINAL_RESPONSE_QUALITY": ANSWER_RUBRIC, "TRAJECTORY_QUALITY": GOAL_RUBRIC}
_OPTIONS = {CONTAINS: "values", NOT_CONTAINS: "values", REGEX: "patterns", NOT_REGEX: "patterns", FORBIDDEN: "tools"}
"""The option of each criterion that looks for texts, patterns or tools."""


class Checks(Struct):
    """The checks of one test, collected from its assertions."""

    variables: Mapping[str, Any]
    folder: Folder | None = None
    """The folder from which values may be read; None if reading is not allowed."""
    texts: dict[tuple[str, bool], list[str]] = {}
    """The texts, patterns or tools of a criterion, by its name, and by True if case is ignored."""
    schemas: list[Mapping[str, Any]] = []
    calls: list[ToolCall] = []
    """Expected calls, combined from all assertions about tools."""
    match_type: str = "ANY_ORDER"
    arguments: dict[str, str] = {}
    """For each tool, how its arguments are compared."""
    thresholds: dict[str, float] = {}
    rubrics: list[Rubric] = []
    response: str | None = None
    losses: list[Loss] = []
    """The losses, without the id of the case."""

    def add(self, assertion: Any) -> None:
        """Add an assertion or a set of them. Raises `FormatError`."""
        if not isinstance(assertion, Mapping) or not isinstance(assertion.get("type"), str):
            raise FormatError("an assertion is a mapping with a type")
        if assertion["type"] == "assert-set":
            self._add_set(assertion)
        elif assertion.get("weight") == 0:
            self.lose(f"{_named(kept_whole(assertion))}, which has weight 0 and only reports", check=False)
        else:
            self._add_one(assertion)

    def _add_set(self, assertion: Mapping[str, Any]) -> None:
        members = assertion.get("assert")
        if not isinstance(members, list):
            raise FormatError("assert-set: expected a list under assert")
        for key in assertion:
            if key not in (*_KEYS, "assert"):
                self.lose(f"assert-set with {key}")
        self.drop_threshold("assert-set", assertion.get("threshold"))
        for member in members:
            self.add(member)

    def drop_threshold(self, what: str, threshold: Any) -> None:
        """Record as a loss that a threshold is dropped: all assertions must hold."""
        if threshold is not None:
            self.lose(f"threshold {threshold} of the {what} (all of its assertions must hold)", check=False)

    def lose(self, what: str, *, check: bool = True) -> None:
        self.losses.append(Loss("", what, check))

    def _add_one(self, assertion: Mapping[str, Any]) -> None:
        kind = assertion["type"]
        apply = _KINDS.get(kind)
        carried, reason = False, ""
        if apply is not None and not set(assertion) - _KEYS:
            try:
                carried = apply(self, self._value(assertion.get("value")), assertion)
            except (NotReadError, TemplateError) as error:
                reason = f": {error}"
        if not carried:
            self.lose(f"{_named(kept_whole(assertion))}{reason}")
            return
        for key in ("weight", "metric"):
            if assertion.get(key) is not None:
                self.lose(f"{key} of {kind}", check=False)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(SCHEME):
            if self.folder is None:
                raise NotReadError(f"{value} is not supported here")
            value = self.folder.value(value)
        return filled(value, self.variables)

    @property
    def expected(self) -> Turn:
        """The turn's expectations, with the text of the user left empty."""
        return Turn("", tuple(self.calls) or None, expected_parts(self.response))

    def options(self) -> dict[str, dict[str, Any]]:
        """Return the options of this case, by criterion."""
        found: dict[str, dict[str, Any]] = {}
        for criterion, option in _OPTIONS.items():
            exact, folded = _once(self.texts.get((criterion, False), [])), _once(self.texts.get((criterion, True), []))
            if exact or folded:
                found[criterion] = {option: exact + folded}
            if exact and folded:
                found[criterion]["ignore_case"] = [False] * len(exact) + [True] * len(folded)
            elif folded:
                found[criterion]["ignore_case"] = True
        if self.schemas:
            schema: Mapping[str, Any] = {"allOf": self.schemas}
            if len(self.schemas) == 1:
                schema = self.schemas[0]
            found[SCHEMA] = {"schema": schema, "code_block": False}  # promptfoo parses the answer as it is
        if self.calls:
            found[TRAJECTORY] = {"match_type": self.match_type, "tools": dict(self.arguments)}
        return found

    def criteria(self) -> dict[str, Any]:
        """Return the criteria that these checks need."""
        names = [*self.options(), *self.thresholds, *(_RUBRICS[rubric.type or ""] for rubric in self.rubrics)]
        if self.response is not None:
            names.append(FACTS)
        return {name: _CRITERIA.get(name, {}) for name in names}


def _once(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _named(assertion: Mapping[str, Any]) -> str:
    value = assertion.get("value")
    name = f"assertion {shorten(str(assertion['type']), 60)}"
    if value is None:
        return name
    if not isinstance(value, str):
        value = repr(value)
    return f"{name} {shorten(value, 160)!r}"


# --- one kind each: True if it could be carried over -----------------------------------------------


def _text(value: Any) -> str | None:
    """Return a text to look for; a number becomes its usual text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return as_text(value) or None


def _several(value: Any) -> list[str] | None:
    """Return several texts: from a list, or a text separated by commas."""
    parts = value
    if isinstance(value, str) and '"' not in value:
        parts = [part.strip() for part in value.split(",")]
    texts = []
    for part in as_list(parts):
        if part == "":
            continue
        text = _text(part)
        if text is None:
            return None
        texts.append(text)
    return texts or None


def _any(value: Any, *, ignore_case: bool = False) -> str | None:
    """Return a pattern for any of several texts."""
    texts = _several(value)
    if texts is None:
        return None
    return patterns.any_of(texts, ignore_case=ignore_case)


def _made(value: Any, *, make: Callable[[str], str | None]) -> str | None:
    """Return the pattern that is made of a text."""
    if not isinstance(value, str) or not value:
        return None
    return make(value)


Read = Callable[[Any], list[str] | str | None]
"""Returns the texts or the pattern that a value states; None if it states none."""


def _look_for(
    checks: Checks, value: Any, _: Any, *, criterion: str = CONTAINS, read: Read = _text, ignore_case: bool = False
) -> bool:
    """Add texts or a pattern, all of which must occur, or must not occur."""
    found = read(value)
    if found is None:
        return False
    checks.texts.setdefault((criterion, ignore_case), []).extend(in_list(found))
    return True


_anywhere = partial(_look_for, criterion=REGEX)
_nowhere = partial(_look_for, criterion=NOT_REGEX)
_absent = partial(_look_for, criterion=NOT_CONTAINS)


def _equals(checks: Checks, value: Any, stated: Mapping[str, Any], *, inverse: bool = False) -> bool:
    if isinstance(value, Mapping | list):
        schema: dict[str, Any] = {"const": value}
        if inverse:
            schema = {"not": schema}
        checks.schemas.append(schema)
        return True
    criterion = REGEX
    if inverse:
        criterion = NOT_REGEX
    return _look_for(checks, _text(value), stated, criterion=criterion, read=partial(_made, make=patterns.whole))


def _is_json(checks: Checks, value: Any, _: Any) -> bool:
    if not (value is None or isinstance(value, Mapping)):
        return False
    checks.schemas.append(value or {})
    return True


def _limit(checks: Checks, _: Any, assertion: Mapping[str, Any], *, criterion: str, unit: float = 1.0) -> bool:
    given = assertion.get("threshold")
    if isinstance(given, bool) or not isinstance(given, int | float) or given < 0:
        return False
    limit = given * unit
    checks.thresholds[criterion] = min(limit, checks.thresholds.get(criterion, limit))
    return True


def _rubric(
    checks: Checks, value: Any, assertion: Mapping[str, Any], *, kind: str = "FINAL_RESPONSE_QUALITY", key: str = ""
) -> bool:
    text = value
    if key and isinstance(value, Mapping) and not value.keys() - {key}:
        text = value.get(key)
    if not isinstance(text, str) or not text.strip():
        return False
    if all(rubric.id != text for rubric in checks.rubrics):
        checks.rubrics.append(Rubric(text, text, kind))
    for name in ("threshold", "provider", "rubricPrompt"):
        if assertion.get(name) is not None:
            checks.lose(f"{name} of {assertion['type']}", check=False)
    return True


def _facts(checks: Checks, value: Any, _: Any) -> bool:
    text = _text(value)
    if text is None or checks.response is not None:
        return False
    checks.response = text
    return True


# --- tools ----------------------------------------------------------------------------------------


def _tools(steps: Any) -> list[str] | None:
    """Return the tools that matchers name; None if there are none or a matcher is for several tools."""
    names = list[str]()
    for step in in_list(steps):
        name = step
        if isinstance(step, Mapping):
            if step.keys() - {"name", "pattern", "type", "min"} or step.get("type", "tool") != "tool":
                return None
            if step.get("min", 1) != 1:
                return None
            name = step.get("name") or step.get("pattern")
        if not isinstance(name, str) or not name or set(name) & set("*?"):
            return None
        names.append(name)
    return names or None


def _tool_used(checks: Checks, value: Any, _: Any) -> bool:
    """Expect tools, in any order, with any arguments; False if a stated sequence lacks one of them."""
    names = _tools(value)
    if names is None:
        return False
    known = {call.name for call in checks.calls}
    missing = [ToolCall(name, any_args=True) for name in _once(names) if name not in known]
    if missing and checks.match_type != "ANY_ORDER":
        return False
    checks.calls += missing
    return True


def _sequence(checks: Checks, value: Any, _: Any) -> bool:
    """Expect tools in this order; those expected before must be among them, each once if its arguments are known."""
    mode, steps = "in_order", value
    if isinstance(value, Mapping):
        mode, steps = value.get("mode", "in_order"), value.get("steps")
    names = _tools(as_list(steps))
    if names is None or mode not in ("in_order", "exact") or checks.match_type != "ANY_ORDER":
        return False
    before = {call.name: call for call in checks.calls}
    for call in checks.calls:
        if call.name not in names or (not call.any_args and names.count(call.name) > 1) or before[call.name] != call:
            return False
    checks.calls = [before.get(name, ToolCall(name, any_args=True)) for name in names]
    checks.match_type = {"in_order": "IN_ORDER", "exact": "EXACT"}[mode]
    return True


_ARGUMENT_KEYS = {"name", "pattern", "type", "args", "arguments", "mode"}


def _arguments(checks: Checks, value: Any, _: Any) -> bool:
    if not isinstance(value, Mapping) or value.keys() - _ARGUMENT_KEYS:
        return False
    args, mode = value.get("args", value.get("arguments")), value.get("mode", "partial")
    names = _tools({key: held for key, held in value.items() if key in ("name", "pattern", "type")})
    rule = {"partial": "subset", "exact": "exact"}.get(as_text(mode))
    if names is None or rule is None or not isinstance(args, Mapping):
        return False
    (name,) = names
    bare, call = ToolCall(name, any_args=True), ToolCall(name, dict(args))
    if checks.arguments.get(name, rule) != rule or (checks.match_type != "ANY_ORDER" and checks.calls.count(bare) != 1):
        return False
    if bare in checks.calls:
        checks.calls[checks.calls.index(bare)] = call
    else:
        checks.calls.append(call)
    checks.arguments[name] = rule
    return True


def _steps(checks: Checks, value: Any, _: Any) -> bool:
    if not isinstance(value, Mapping) or value.keys() - {"type", "max"} or value.get("type") != "tool":
        return False
    return _limit(checks, None, {"threshold": value.get("max")}, criterion=CALLS, unit=1)


_KINDS: Mapping[str, Callable[[Checks, Any, Mapping[str, Any]], bool]] = {
    "contains": _look_for,
    "icontains": partial(_look_for, ignore_case=True),
    "contains-all": partial(_look_for, read=_several),
    "icontains-all": partial(_look_for, read=_several, ignore_case=True),
    "contains-any": partial(_anywhere, read=_any),
    "icontains-any": partial(_anywhere, read=partial(_any, ignore_case=True)),
    "not-contains": _absent,
    "not-icontains": partial(_absent, ignore_case=True),
    "not-contains-any": partial(_absent, read=_several),
    "not-icontains-any": partial(_absent, read=_several, ignore_case=True),
    "starts-with": partial(_anywhere, read=partial(_made, make=patterns.start)),
    "not-starts-with": partial(_nowhere, read=partial(_made, make=patterns.start)),
    "regex": partial(_anywhere, read=partial(_made, make=patterns.from_javascript)),
    "not-regex": partial(_nowhere, read=partial(_made, make=patterns.from_javascript)),
    "equals": _equals,
    "not-equals": partial(_equals, inverse=True),
    "is-json": _is_json,
    "latency": partial(_limit, criterion=LATENCY, unit=0.001),
    "cost": partial(_limit, criterion=COST),
    "llm-rubric": _rubric,
    "model-graded-closedqa": _rubric,
    "factuality": _facts,
    "model-graded-factuality": _facts,
    "trajectory:tool-used": _tool_used,
    "not-trajectory:tool-used": partial(_look_for, criterion=FORBIDDEN, read=_tools),
    "trajectory:tool-sequence": _sequence,
    "trajectory:tool-args-match": _arguments,
    "trajectory:step-count": _steps,
    "trajectory:goal-success": partial(_rubric, kind="TRAJECTORY_QUALITY", key="goal"),
}
"""The function for each type; `javascript`, `python` and all other types are lost, negated ones included."""

_SCRIPTS = {"javascript": "javascript", "fn": "javascript", "eval": "javascript", "python": "python"}
_LISTS = ("contains-all", "contains-any", "icontains-all", "icontains-any")
OTHERS = ("is-refusal", "contains-json", "is-sql", "contains-sql", "is-xml", "contains-xml", "is-html", "contains-html",
          "moderation", "guardrails", "webhook", "bleu", "gleu", "meteor", "word-count", "finish-reason", "ruby", "pi",
          "answer-relevance", "context-recall", "context-relevance", "context-faithfulness", "perplexity-score",
          "tool-call-f1", "skill-used", "g-eval", "search-rubric", "agent-rubric", "conversation-relevance",
          "is-valid-openai-tools-call", "is-valid-openai-function-call", "is-valid-function-call", "similar:cosine",
          "similar:dot", "similar:euclidean", "trace-error-spans", "trace-span-count",
          "trace-span-duration", "levenshtein", "similar", "rouge-n", "perplexity", "classifier")  # fmt: skip
"""promptfoo's types without a counterpart, which a CSV text may name."""


_BARE = {kind.removeprefix("not-") for kind in _KINDS}
_TYPES = "|".join(sorted(map(re.escape, {*_BARE, *OTHERS}), key=len, reverse=True))
_FROM_TEXT = re.compile(rf"(not-)?({_TYPES})(?:\((\d+(?:\.\d+)?)\))?(?::([\s\S]*))?")


def from_text(text: str) -> dict[str, Any]:
    """Return an assertion from a CSV file: ``type: value``, ``type(0.8): value``, or the whole answer."""
    scheme, _, rest = text.partition(":")
    if scheme in _SCRIPTS and rest:
        return {"type": _SCRIPTS[scheme], "value": rest.strip()}
    if scheme in ("grade", "llm-rubric") and rest:
        return {"type": "llm-rubric", "value": rest.strip()}
    if text.startswith(SCHEME):
        if ".py" in text:
            return {"type": "python", "value": text}
        return {"type": "javascript", "value": text}
    found = _FROM_TEXT.fullmatch(text)
    if found is None:
        return {"type": "equals", "value": text}
    inverse, kind, threshold, value = found.groups()
    made: dict[str, Any] = {"type": f"{inverse or ''}{kind}"}
    if value is not None:
        made["value"] = value.strip()
        if kind == "is-json":
            made["value"] = value
        elif kind in _LISTS:
            made["value"] = _several(value) or value
    if threshold is not None:
        made["threshold"] = float(threshold)
    return made
