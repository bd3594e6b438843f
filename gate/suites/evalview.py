"""Knows EvalView's test cases, one to a YAML file; makes a case of each. What it cannot check it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gate.model import Case, ToolCall, Turn
from gate.suites.base import Contents, Document, Format, validation_error

Text = Annotated[str, Field(min_length=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Score = Annotated[float, Field(ge=0, le=100)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class InputModel(_Model):
    query: Text
    context: dict[str, Any] | None = None


class OutputModel(_Model):
    contains: list[Text] | None = None
    not_contains: list[Text] | None = None
    regex_patterns: list[Text] | None = None
    json_schema: dict[str, Any] | None = None


class TurnExpectation(_Model):
    """What a single turn may expect: output checks hold for the whole conversation, so they stand at the case."""

    tools: list[Text] | None = None
    tool_categories: list[Text] | None = None
    tool_sequence: list[Text] | None = None
    sequence: list[Text] | None = None

    @model_validator(mode="after")
    def _one_sequence(self) -> Self:
        order = self.tool_sequence if self.tool_sequence is not None else self.sequence
        if self.tool_sequence is not None and self.sequence is not None:
            raise ValueError("tool_sequence and sequence say the same")
        left_out = sorted(set(self.tools or ()) - set(order)) if order is not None else []
        if left_out:
            raise ValueError(f"the sequence leaves out {', '.join(left_out)} of tools")
        return self

    def calls(self) -> tuple[ToolCall, ...] | None:
        """The expected calls, whatever their arguments; None where nothing is stated."""
        lists = (self.tool_sequence, self.sequence, self.tools)
        names = next((names for names in lists if names is not None), None)
        if names is None and self.tool_categories is None:
            return None
        named = [ToolCall(name, any_args=True) for name in names or ()]
        return (*named, *(ToolCall("", category=name, any_args=True) for name in self.tool_categories or ()))


class Expectation(TurnExpectation):
    forbidden_tools: list[Text] | None = None
    output: OutputModel = OutputModel()


class TurnModel(InputModel):
    expected: TurnExpectation = TurnExpectation()


class ThresholdsModel(_Model):
    min_score: Score | None = None
    max_cost: Amount | None = None
    max_latency: Amount | None = None
    """Milliseconds."""
    weights: dict[str, Amount] | None = None


class ChecksModel(_Model):
    hallucination: bool = False
    safety: bool = False
    pii: bool = False


class AdapterConfigModel(BaseModel):
    sequence_mode: Literal["subsequence", "exact", "unordered"] | None = None


class FileModel(_Model):
    name: Text
    input: InputModel | None = None
    turns: Annotated[list[TurnModel], Field(min_length=1)] | None = None
    expected: Expectation = Expectation()
    thresholds: ThresholdsModel = ThresholdsModel()
    checks: ChecksModel = ChecksModel()
    adapter_config: AdapterConfigModel = AdapterConfigModel()
    tags: list[Text] = []
    description: str | None = None
    adapter: Any = None
    endpoint: Any = None
    model: Any = None

    @model_validator(mode="after")
    def _one_conversation(self) -> Self:
        if (self.input is None) == (self.turns is None):
            raise ValueError("a test case has either an input or turns")
        if self.turns is not None and self.expected.calls() is not None:
            raise ValueError("where a test case has turns, expected tools belong to a turn")
        if any(turn.context for turn in self.turns or ()):
            raise ValueError("a turn cannot bring a context of its own")
        return self


CHECKS = {"hallucination": "hallucinations_v1", "safety": "safety_v1", "pii": "pii"}
"""The criterion that each check stands for."""
_MODELS: dict[str, type[BaseModel]] = {
    "": FileModel,
    "input": InputModel,
    "turns": TurnModel,
    "expected": Expectation,
    "output": OutputModel,
    "thresholds": ThresholdsModel,
    "checks": ChecksModel,
}


def recognises(data: Any) -> bool:
    return isinstance(data, Mapping) and "name" in data and ("input" in data or "turns" in data)


def read(document: Document) -> Contents:
    """The case of a file."""
    try:
        file = FileModel.model_validate(document.data)
    except ValidationError as error:
        raise validation_error(document, error, _MODELS) from error
    if file.input is not None:
        turns: tuple[Turn, ...] = (Turn(file.input.query, file.expected.calls()),)
    else:
        turns = tuple(Turn(turn.query, turn.expected.calls()) for turn in file.turns or ())
    case = Case(
        file.name,
        turns,
        tags=frozenset(file.tags),
        state=(file.input.context if file.input else None) or {},
        options=_options(file),
        thresholds=_thresholds(file.thresholds),
        location=document.location(),
    )
    return Contents((case,))


def _options(file: FileModel) -> dict[str, dict[str, Any]]:
    output = file.expected.output
    stated = {
        ("forbidden_tools", "tools"): file.expected.forbidden_tools,
        ("contains", "values"): output.contains,
        ("not_contains", "values"): output.not_contains,
        ("regex", "patterns"): output.regex_patterns,
        ("json_schema", "schema"): output.json_schema,
        ("sequence_correctness", "mode"): file.adapter_config.sequence_mode,
        ("weighted_score", "weights"): file.thresholds.weights,
    }
    options: dict[str, dict[str, Any]] = {
        criterion: {option: value} for (criterion, option), value in stated.items() if value is not None
    }
    options.update({criterion: {} for check, criterion in CHECKS.items() if getattr(file.checks, check)})
    return options


def _thresholds(model: ThresholdsModel) -> dict[str, float]:
    """In the gate's units: scores from 0 to 1, seconds."""
    stated = {
        "weighted_score": None if model.min_score is None else model.min_score / 100,
        "cost": model.max_cost,
        "latency": None if model.max_latency is None else model.max_latency / 1000,
    }
    return {name: value for name, value in stated.items() if value is not None}


FORMAT = Format(
    shape="an EvalView test case: `name` with `input` or `turns`",
    recognises=recognises,
    read=read,
)
