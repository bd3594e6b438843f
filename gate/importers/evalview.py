"""Reads EvalView's test cases, one per YAML file; each becomes a case. Checks without a counterpart are refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from msgspec.structs import replace
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from gate.errors import ConfigError
from gate.formats.documents import read_document_with_lines
from gate.formats.reading import Ignored
from gate.model import Case, Complexity, ToolCall, Turn
from gate.model.strict import StrictModel
from gate.suites.base import Contents, Document, Format, Loss, validation_error

Text = Annotated[str, Field(min_length=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _no_fraction(score: float) -> float:
    """Refuse a share such as 0.9, usual for our thresholds: on EvalView's scale any answer would reach it."""
    if 0 < score < 1:
        raise ValueError(f"{score:g} is too low for a scale from 0 to 100 (did you mean {100 * score:g}?)")
    return score


Score = Annotated[float, Field(ge=0, le=100), AfterValidator(_no_fraction)]


class InputModel(StrictModel):
    query: Text
    context: dict[str, Any] | None = None


class OutputModel(StrictModel):
    no_pii: bool = False
    contains: list[Text] | None = None
    not_contains: list[Text] | None = None
    regex_patterns: list[Text] | None = None
    json_schema: dict[str, Any] | None = None


class TurnExpectation(StrictModel):
    """The expectations of a single turn; output checks apply to the whole conversation, so they belong to the case."""

    tools: list[Text] | None = None
    tool_categories: list[Text] | None = None
    tool_sequence: list[Text] | None = None
    sequence: list[Text] | None = None

    @model_validator(mode="after")
    def _one_sequence(self) -> Self:
        if self.tool_sequence is not None and self.sequence is not None:
            raise ValueError("tool_sequence and sequence mean the same: keep one")
        order = self._order()
        if order is None:
            return self
        left_out = sorted(set(self.tools or ()) - set(order))
        if left_out:
            raise ValueError(f"the sequence omits {', '.join(left_out)} of tools")
        return self

    def _order(self) -> list[Text] | None:
        if self.tool_sequence is None:
            return self.sequence
        return self.tool_sequence

    def calls(self) -> tuple[ToolCall, ...] | None:
        """Return the expected calls, regardless of their arguments; None if there is no expectation."""
        names = self._order()
        if names is None:
            names = self.tools
        if names is None and self.tool_categories is None:
            return None
        named = [ToolCall(name, any_args=True) for name in names or ()]
        return (*named, *(ToolCall("", category=name, any_args=True) for name in self.tool_categories or ()))


class FactsModel(StrictModel):
    """EvalView's settings for its fact check; here every claim must be supported."""

    check: bool = False
    allow: bool = False
    confidence_threshold: float | None = None


class HarmModel(StrictModel):
    """EvalView's settings for its safety check; here any harm fails."""

    check: bool = False
    allow_harmful: bool = False
    categories: list[str] | None = None
    severity_threshold: str | None = None


class Expectation(TurnExpectation):
    forbidden_tools: list[Text] | None = None
    output: OutputModel = OutputModel()
    hallucination: FactsModel = FactsModel()
    safety: HarmModel = HarmModel()


class EvalViewTurn(InputModel):
    expected: TurnExpectation = TurnExpectation()


class WeightsModel(StrictModel):
    """The weight of each part of the score; a missing one keeps EvalView's weight."""

    tool_accuracy: Amount = 0.3
    output_quality: Amount = 0.5
    sequence_correctness: Amount = 0.2

    @model_validator(mode="after")
    def _whole(self) -> Self:
        total = math.fsum(self.model_dump().values())
        if not math.isclose(total, 1.0, abs_tol=1e-6):
            raise ValueError(f"the weights sum to {total:g}, not to 1; omitted ones count as EvalView's .3, .5 and .2")
        return self


class VarianceModel(StrictModel):
    """EvalView's statistical mode."""

    runs: int = Field(default=10, ge=2, le=100)
    pass_rate: float = Field(default=0.8, ge=0, le=1)
    min_mean_score: Score | None = None
    max_std_dev: Amount | None = None
    confidence_level: float | None = None


class ThresholdsModel(StrictModel):
    min_score: Score | None = None
    max_cost: Amount | None = None
    max_latency: Amount | None = None
    """In milliseconds."""
    weights: WeightsModel | None = None
    variance: VarianceModel | None = None


class ChecksModel(StrictModel):
    hallucination: bool = False
    safety: bool = False
    pii: bool = False


class AdapterConfigModel(BaseModel):
    """EvalView's connection to the agent; one of its keys affects what is checked."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    sequence_mode: Literal["subsequence", "exact", "unordered"] | None = None


class EvalViewFile(StrictModel):
    name: Text
    input: InputModel | None = None
    turns: Annotated[list[EvalViewTurn], Field(min_length=1)] | None = None
    expected: Expectation = Expectation()
    thresholds: ThresholdsModel = ThresholdsModel()
    weights: WeightsModel | None = None
    checks: ChecksModel = ChecksModel()
    adapter_config: AdapterConfigModel = AdapterConfigModel()
    tags: list[Text] = Field(default=[])
    difficulty: Literal["trivial", "easy", "medium", "hard", "expert"] = "medium"
    meta: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_conversation(self) -> Self:
        if self.input is None and self.turns is None:
            raise ValueError("neither `input` nor `turns`: write the user's message")
        turns = self.turns or []
        if self.expected.calls() is not None and any(turn.expected.calls() is not None for turn in turns):
            raise ValueError("expected tools belong either to the turns or to the whole test case")
        if any(turn.context for turn in turns[1:]):
            raise ValueError("only the first turn can have a context")
        if self.weights is not None and self.thresholds.weights is not None:
            raise ValueError("weights and thresholds.weights mean the same: keep one")
        return self

    @property
    def context(self) -> dict[str, Any]:
        """The first message of the session: EvalView fills `input` from the first turn if it is missing."""
        first: InputModel | None = self.input
        if self.turns and first is None:
            first = self.turns[0]
        if first is None:
            return {}
        return dict(first.context or {})

    @property
    def checked(self) -> set[str]:
        """The names of the enabled checks."""
        facts, harm = self.expected.hallucination, self.expected.safety
        stated = {
            "hallucination": self.checks.hallucination or (facts.check and not facts.allow),
            "safety": self.checks.safety or (harm.check and not harm.allow_harmful),
            "pii": self.checks.pii or self.expected.output.no_pii,
        }
        return {name for name, on in stated.items() if on}

    @property
    def own_weights(self) -> dict[str, float] | None:
        """The weights of this test; None if EvalView's defaults apply."""
        found = self.weights or self.thresholds.weights
        if found is None:
            return None
        return found.model_dump()


class ScoringModel(BaseModel):
    weights: WeightsModel | None = None


class ProjectModel(BaseModel):
    """The project settings that the gate reads: the default weights for tests without weights."""

    weights: WeightsModel | None = None
    scoring: ScoringModel = ScoringModel()

    @model_validator(mode="after")
    def _once(self) -> Self:
        if self.weights is not None and self.scoring.weights is not None:
            raise ValueError("weights and scoring.weights mean the same: keep one")
        return self


PROJECT = Path(".evalview") / "config.yaml"
"""A project's settings: the nearest file from the test case upwards, within its repository."""


def _project_file(document: Document) -> Path | None:
    start = document.folder or document.root
    if start is None:
        return None
    for folder in (start, *start.parents):
        if (folder / PROJECT).is_file():
            return folder / PROJECT
        if (folder / ".git").exists():
            break
    if document.root is not None and (document.root / PROJECT).is_file():
        return document.root / PROJECT
    return None


def _project_weights(document: Document) -> WeightsModel | None:
    """Return the weights in the project's settings; None if there are none.

    Raises:
        ConfigError: the file cannot be read, its weights are invalid, or it is a link out of the project.
    """
    path = _project_file(document)
    if path is None:
        return None
    if not path.resolve().is_relative_to(path.parent.parent.resolve()):
        raise ConfigError("a symbolic link out of the folder is not followed", where=str(path))
    data, lines = read_document_with_lines(path)
    try:
        found = ProjectModel.model_validate(data)
    except ValidationError as error:
        raise validation_error(Document(data, str(path), PROJECT.stem, lines), error, ProjectModel) from None
    return found.weights or found.scoring.weights


COMPLEXITY = {
    "trivial": Complexity.SIMPLE,
    "easy": Complexity.SIMPLE,
    "medium": Complexity.MEDIUM,
    "hard": Complexity.COMPLEX,
    "expert": Complexity.COMPLEX,
}
SCORE = "overall_score"
"""The criterion for EvalView's score."""
CHECKS = {"hallucination": "hallucinations_v1", "safety": "safety_v1", "pii": "pii"}
"""The criterion for each check."""
MIN_SCORE = 70.0
"""EvalView's ``min_score`` of a test without any."""
SOURCE_THRESHOLDS = {SCORE: MIN_SCORE, CHECKS["hallucination"]: 1.0}
"""EvalView's thresholds for a test without any: its default ``min_score``, and no contradiction."""


def recognises(data: Any) -> bool:
    return isinstance(data, Mapping) and "name" in data and not _MARKS.isdisjoint(data)


_MARKS = {"input", "turns", "expected", "thresholds", "weights", "checks"}
"""Keys of which a test case has at least one in addition to its name."""


def read(document: Document) -> Contents:
    """Return the case in a file."""
    try:
        file = EvalViewFile.model_validate({key: held for key, held in document.data.items() if key not in _IGNORED})
    except ValidationError as error:
        raise validation_error(document, error, EvalViewFile, ignored=_IGNORED) from error
    if file.own_weights is None:
        file = file.model_copy(update={"weights": _project_weights(document)})
    turns = [Turn(turn.query, turn.expected.calls()) for turn in file.turns or ()]
    if not turns and file.input is not None:
        turns = [Turn(file.input.query)]
    if file.expected.calls() is not None:  # they may be called in any turn
        turns[-1] = Turn(turns[-1].user, file.expected.calls())
    case = Case(
        file.name,
        tuple(turns),
        tags=frozenset(file.tags),
        complexity=COMPLEXITY[file.difficulty],
        metadata=file.meta or {},
        state=file.context,
        options=_options(file),
        thresholds=_thresholds(file.thresholds),
        location=document.location(),
    )
    losses = tuple(_losses(file, document.data))
    return Contents((case,), criteria=_criteria(file, case), each={SCORE: MIN_SCORE}, losses=losses)


def _criteria(file: EvalViewFile, case: Case) -> dict[str, Any]:
    """Return the criteria of the test: its score, whose parts only report, and everything else that it states."""
    weights = file.own_weights or WeightsModel().model_dump()
    parts = {name: weight for name, weight in weights.items() if weight > 0}
    found: dict[str, Any] = {name: {"blocking": False} for name in parts}
    if len(parts) < len(weights):  # EvalView's weights would include a part that no criterion measures
        found[SCORE] = {"weights": parts}
    for name in (SCORE, *case.options, *case.thresholds):
        found.setdefault(name, {})
    for name, threshold in SOURCE_THRESHOLDS.items():
        if name in found and name not in case.thresholds:
            found[name] = {"threshold": threshold, **found[name]}
    if file.thresholds.variance is not None:
        found["pass_rate"] = file.thresholds.variance.pass_rate
    return found


_UNASKED = "EvalView checks hallucination and safety unless told not to; here only where a file's `checks` asks for it"


def _losses(file: EvalViewFile, data: Mapping[str, Any]) -> Iterator[Loss]:
    """Yield the parts of the test that the gate handles differently from EvalView, or not at all."""
    variance = (data.get("thresholds") or {}).get("variance") or {}
    if variance.get("max_std_dev") is not None:
        yield Loss(file.name, "variance.max_std_dev")
    for key in ("runs", "confidence_level"):
        if key in variance:
            yield Loss(file.name, f"variance.{key}", check=False)
    for key, held in data.items():
        if key in _IGNORED and key != "source_file" and held not in (None, [], {}):
            yield Loss(file.name, key, check=False)
    asked, turns = data.get("input"), data.get("turns")
    if turns and isinstance(asked, Mapping) and asked.get("query") != turns[0].get("query"):
        yield Loss(file.name, "input.query, of which EvalView asks the turns as well", check=False)
    if "checks" not in file.model_fields_set and not file.checked:
        yield Loss("", _UNASKED, check=False)


def settle(document: Document, found: Contents) -> Contents:
    """Settle the losses of a test that is run: the gate's statistics take the place of EvalView's."""
    (case,), notes = found.cases, []
    if any(loss.what == _UNASKED for loss in found.losses):
        notes.append(_UNASKED)
    variance = (document.data.get("thresholds") or {}).get("variance")
    if variance is not None:
        runs = VarianceModel.model_validate(variance).runs
        stated = f"{case.id}: variance.runs {runs}: the gate decides how many trials it needs"
        notes.append(f"{stated}; `trials: {runs}` runs exactly as many")
        if variance.get("max_std_dev") is not None:
            notes.append(f"{case.id}: variance.max_std_dev is not checked: noise is part of the gate's statistics")
    return replace(found, notes=tuple(notes), losses=())


IGNORED = Ignored(
    {
        "how EvalView reaches the agent: `agent` in gate.yaml says so here": "adapter endpoint model adapter_config.*",
        "definitions of tools for EvalView's own agents": "tools",
        "answers of tools for its simulation; `world` in gate.yaml records them here": "mocks",
        "when its monitor alerts": "gate",
        "how its reports word a failure": "suite_type",
        "that its `init` wrote the file": "generated",
        "for people": "description",
        "where it was read from": "source_file",
        "here every claim has to be borne out": "hallucination.confidence_threshold",
        "here any harm fails": "safety.categories safety.severity_threshold",
    }
)
_IGNORED = frozenset(key for key in IGNORED.reasons if "." not in key)


_FOLDED = ("contains", "not_contains")
"""The checks of texts, in which EvalView ignores case; in its patterns, too, and a dot also matches a line end."""


def _options(file: EvalViewFile) -> dict[str, dict[str, Any]]:
    output = file.expected.output
    stated = {
        ("forbidden_tools", "tools"): file.expected.forbidden_tools,
        ("contains", "values"): output.contains,
        ("not_contains", "values"): output.not_contains,
        ("regex", "patterns"): output.regex_patterns and [f"(?is){one}" for one in output.regex_patterns],
        ("json_schema", "schema"): output.json_schema,
        ("sequence_correctness", "mode"): file.adapter_config.sequence_mode,
        (SCORE, "weights"): file.own_weights,
    }
    options: dict[str, dict[str, Any]] = {}
    for (criterion, option), value in stated.items():
        if value is not None:
            options[criterion] = {option: value}
            if criterion in _FOLDED:
                options[criterion]["ignore_case"] = True
    for check, criterion in CHECKS.items():
        if check in file.checked:
            options[criterion] = {}
    if file.turns and file.expected.calls() is not None:
        for criterion in ("tool_accuracy", "sequence_correctness"):
            options.setdefault(criterion, {})["whole_conversation"] = True
    return options


def _thresholds(model: ThresholdsModel) -> dict[str, float]:
    """Return the thresholds in the gate's units: scores from 0 to 100, dollars, seconds."""
    found = {}
    if model.min_score is not None:
        found[SCORE] = model.min_score
    if model.variance is not None and model.variance.min_mean_score is not None:
        found[SCORE] = max(model.variance.min_mean_score, model.min_score or 0.0)
    if model.max_cost is not None:
        found["cost"] = model.max_cost
    if model.max_latency is not None:
        found["latency"] = model.max_latency / 1000
    return found


FORMAT = Format(
    shape="an EvalView test case: `name` with `input` or `turns`",
    recognises=recognises,
    read=read,
    ignored=IGNORED,
    settle=settle,
)
