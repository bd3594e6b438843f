"""Reads the gate's own suite files, in YAML or JSON. docs/reference/suites.md has every key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from msgspec import convert
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from gate.formats.positions import Key
from gate.model import Case, Complexity, Part, Rubric, Scenario, ToolCall, Turn
from gate.model.strict import StrictModel, short_for
from gate.suites.base import Contents, Document, Format, validation_error


def _text(value: Any) -> Any:
    """Return a whole number as text, any other value unchanged: other numbers would lose their spelling."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def _listed(value: Any) -> Any:
    if isinstance(value, list | None):
        return value
    return [value]


Text = Annotated[str, Field(min_length=1), BeforeValidator(_text)]
Texts = Annotated[list[Text], BeforeValidator(_listed)]


def _no_items() -> list[Any]:
    """Return an empty list; used instead of `list`, whose signature pydantic parses in 6 ms per start."""
    return []


_CALL = re.compile(r"(?P<name>[\w.-]{1,60})\(.*\)\Z")
"""A call in place of a tool's name."""


class ToolModel(StrictModel):
    """An expected call: a name, ``{name, args}`` or ``{category}``."""

    name: Text | None = None
    args: dict[str, Any] | None = None
    category: Text | None = None

    @model_validator(mode="after")
    def _name_or_category(self) -> Self:
        if (self.name is None) == (self.category is None):
            raise ValueError("a tool has either a name or a category")
        if self.category is not None and self.args is not None:
            raise ValueError("args go with a name, not with a category")
        called = _CALL.match(self.name or "")
        if called:
            raise ValueError(f"{self.name!r} is a call: write {{name: {called['name']}, args: {{…}}}}")
        return self


class RubricModel(StrictModel):
    """A property for a judge to check: a text, or ``{id, text, type, description}``."""

    id: Text
    text: Text
    type: Literal["FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY", "TRAJECTORY_QUALITY"] = "FINAL_RESPONSE_QUALITY"
    """The criterion that reads it; without a word the one on final responses."""
    description: str | None = None


Tool = Annotated[ToolModel, short_for("name"), BeforeValidator(_text)]
RubricItem = Annotated[RubricModel, short_for("id", "text")]


class NativeTurn(StrictModel):
    """The user's text, and the expectations."""

    input: Text
    tools: list[Tool] | None = None
    response: Texts | None = None
    rubrics: list[RubricItem] = Field(default_factory=_no_items)


class BehaviorModel(StrictModel):
    """One way in which a persona behaves."""

    name: Text
    description: str = ""
    instructions: Texts = Field(default_factory=_no_items)
    violations: Texts = Field(default_factory=_no_items)


class PersonaModel(StrictModel):
    """The simulated user's character: a text, or ``{id, description, behaviors}``."""

    id: Text
    description: str = ""
    behaviors: list[BehaviorModel] = Field(default_factory=_no_items)


class ScenarioModel(StrictModel):
    """A conversation that a simulated user holds."""

    start: Text
    plan: Text
    persona: Annotated[PersonaModel | None, short_for("id")] = None
    max_turns: int | None = Field(default=None, ge=1, le=100)


class CaseModel(StrictModel):
    """A conversation: ``input`` for one turn, ``turns`` for several, ``scenario`` for a simulated user."""

    id: Text
    input: Text | None = None
    tools: list[Tool] | None = None
    response: Texts | None = None
    turns: Annotated[list[NativeTurn], Field(min_length=1)] | None = None
    scenario: ScenarioModel | None = None
    rubrics: list[RubricItem] = Field(default_factory=_no_items)
    tags: Texts = Field(default_factory=_no_items)
    complexity: Complexity | None = None
    cluster: Text | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    state: dict[str, Any] = Field(default_factory=dict)
    thresholds: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = Field(default_factory=dict)
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    forbidden_tools: Texts | None = None
    contains: Texts | None = None
    not_contains: Texts | None = None
    regex: Texts | None = None
    json_schema: dict[str, Any] | None = None
    weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> Self:
        if [self.input, self.turns, self.scenario].count(None) != 2:
            raise ValueError("a case has either an input or turns, or a scenario")
        if self.input is None and (self.tools is not None or self.response is not None):
            kind = "a scenario, nothing is expected by turn"
            if self.turns:
                kind = "turns, tools and response belong to a turn"
            raise ValueError(f"in a case with {kind}")
        for shortcut in _stated_shortcuts(self):
            criterion, option = SHORTCUTS[shortcut]
            if getattr(self, shortcut) is not None and option in self.options.get(criterion, {}):
                raise ValueError(f"{shortcut} and options.{criterion}.{option} mean the same: keep one")
        return self


class DefaultsModel(StrictModel):
    """The properties shared by all cases of a file; a case adds to them or overrides them."""

    tags: Texts = Field(default_factory=_no_items)
    complexity: Complexity = Complexity.MEDIUM
    metadata: dict[str, Any] = Field(default_factory=dict)
    state: dict[str, Any] = Field(default_factory=dict)


class NativeFile(StrictModel):
    """A suite file; a bare list of cases will do as well."""

    cases: list[CaseModel]
    defaults: DefaultsModel = Field(default_factory=dict, validate_default=True)


SHORTCUTS = {
    "forbidden_tools": ("forbidden_tools", "tools"),
    "contains": ("contains", "values"),
    "not_contains": ("not_contains", "values"),
    "regex": ("regex", "patterns"),
    "json_schema": ("json_schema", "schema"),
    "weights": ("weighted_score", "weights"),
}
"""Keys of a case that are short for an option of a criterion."""


def recognises(data: Any) -> bool:
    if isinstance(data, Mapping):
        return "cases" in data
    if not isinstance(data, list) or not data or not isinstance(data[0], Mapping):
        return False
    return not data[0].keys().isdisjoint(("id", "input", "turns", "scenario"))


def read(document: Document) -> Contents:
    """Return the cases of a file."""
    keys: tuple[Key, ...] = ("cases",)
    data, added = document.data, 0
    if isinstance(data, list):
        data, keys, added = {"cases": data}, (), 1
    try:
        file = NativeFile.model_validate(data)
    except ValidationError as error:
        raise validation_error(document, error, NativeFile, added=added) from error
    cases = [_case(document, case, file.defaults, (*keys, index)) for index, case in enumerate(file.cases)]
    return Contents(tuple(cases))


def _case(document: Document, model: CaseModel, defaults: DefaultsModel, keys: tuple[Key, ...]) -> Case:
    scenario = None
    if model.scenario is not None:
        scenario = convert(model.scenario.model_dump(), Scenario)
        turns = [Turn(scenario.start)]
    elif model.turns is None:
        assert model.input is not None
        turns = [_turn(model.input, model.tools, model.response, [])]
    else:
        turns = [_turn(turn.input, turn.tools, turn.response, turn.rubrics) for turn in model.turns]
    return Case(
        model.id,
        tuple(turns),
        tags=frozenset([*defaults.tags, *model.tags]),
        complexity=model.complexity or defaults.complexity,
        metadata={**defaults.metadata, **model.metadata},
        state={**defaults.state, **model.state},
        options=_options(model),
        thresholds=model.thresholds,
        rubrics=_rubrics(model.rubrics),
        location=document.location(*keys),
        cluster=model.cluster or "",
        scenario=scenario,
    )


def _turn(user: str, tools: list[ToolModel] | None, response: list[str] | None, rubrics: list[RubricModel]) -> Turn:
    calls = parts = None
    if tools is not None:
        calls = tuple(map(_expected, tools))
    if response is not None:
        parts = tuple(map(Part, response))
    return Turn(user, calls, parts, _rubrics(rubrics))


def _expected(tool: ToolModel) -> ToolCall:
    return ToolCall(tool.name or "", tool.args, category=tool.category, any_args=tool.args is None)


def _rubrics(models: list[RubricModel]) -> tuple[Rubric, ...]:
    return tuple([Rubric(model.id, model.text, model.type, model.description) for model in models])


def _stated_shortcuts(model: CaseModel) -> list[str]:
    stated = model.model_fields_set
    return [key for key in SHORTCUTS if key in stated]


def _options(model: CaseModel) -> dict[str, dict[str, Any]]:
    options = {criterion: dict(values) for criterion, values in model.options.items()}
    for shortcut in _stated_shortcuts(model):
        value = getattr(model, shortcut)
        if value is not None:
            criterion, option = SHORTCUTS[shortcut]
            options.setdefault(criterion, {})[option] = value
    return options


FORMAT = Format(
    shape="a suite of the gate's own: `cases`, or a list of cases with `id` and `input` or `turns`",
    recognises=recognises,
    read=read,
)
