"""gate.yaml → what to run. The only reader of configuration; composes the options that live beside the plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gate.agents import AGENTS
from gate.agents.base import AgentOptions, agent_class, parse_options
from gate.baselines import STORES, StoreOptions, store_models
from gate.baselines.file import FileOptions
from gate.config.criteria import both_spellings, criterion_schema
from gate.config.specs import CriterionSpec
from gate.decision.comparison import DEFAULT_MARGINS
from gate.errors import ConfigError, first_problem, unknown_key
from gate.formats.documents import Lines, read_document_with_lines
from gate.formats.durations import Seconds
from gate.judges.options import JudgeOptions
from gate.metrics import METRICS
from gate.model import Case, Scale
from gate.model.strictness import DOWN, FREE, UP, Tightens, steps
from gate.scoring.options import Executor
from gate.suites import Selection
from gate.suites.messages import FieldPaths

TEXT_ALONE = ("HttpRequest", "ToolPaths", "ArgsRule")
"""Objects that a text alone may stand for."""
OPTIONS = {
    "trials": "--trials",
    "select.tags": "--tag",
    "select.complexity": "--complexity",
    "select.ids": "--case",
    "select.metadata": "--where",
    "baseline.against": "--against",
}
"""Key → the option that overrides it, for what is wrong with its value."""


ELSEWHERE = dict.fromkeys(
    ("pass_rate", "gate.pass_rate", "gate.min_pass_rate", "gate.threshold"),
    "a limit on the pass rate stands under criteria: `pass_rate: 0.85`",
)
"""Keys that are looked for in one place and stand in another → where."""


PASS_RATE_MARGIN = DEFAULT_MARGINS[Scale.BINARY]
"""The loss of pass rate that is still called unchanged where the configuration gives none."""


class Section(BaseModel):
    """Base of every section: unknown keys are errors, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def unstated() -> Any:
    """The default of a section: all of its defaults, read with the file's own reader instead of one made for it."""
    return Field(default_factory=dict, validate_default=True)


NO_STORE = "none"
"""Under ``baseline.store``: baselines are neither kept nor looked up."""


class BaselineSection(Section):
    """Where baselines are kept, and what to do without one. The options of the store stand among these keys."""

    model_config = ConfigDict(extra="allow")

    store: str = "file"
    """Where records are kept: in a folder (``file``), on a branch of the repository (``git``), nowhere (``none``), or a
    plugin."""
    remote: str = "origin"
    """Remote of the repository: where its default branch is looked up, and the git store keeps its own."""
    on_missing: Annotated[Literal["warn", "fail"], steps("warn", "fail")] = "warn"
    """If no baseline is found: judge by thresholds alone and say so, or end with exit code 4."""
    rerun: Literal["auto", "never", "match", "concurrent"] = "auto"
    """When the base commit's agent is run, too; ``auto`` is ``match`` if it can be run, else ``never``."""
    against: Annotated[str | None, FREE] = None
    """A commit, branch or tag to measure against. Default: the merge base."""
    pool: int = Field(default=5, ge=1, le=50)
    """The most records of one agent fingerprint that are pooled."""

    @property
    def options(self) -> Mapping[str, Any]:
        """What is given of the options of stores, as written."""
        return self.model_extra or {}

    @property
    def folder(self) -> str:
        """The file store's folder: what is kept there is no part of the agent."""
        return FileOptions.model_validate({"path": self.options["path"]} if "path" in self.options else {}).path

    def models(self) -> list[type[StoreOptions]]:
        """Those that the options of the store may belong to. Raises as `store_models`."""
        return store_models(self.store, self.options)


class GateSection(Section):
    """The decision: error rate, margins, and what an inconclusive answer does."""

    alpha: Annotated[float, UP] = Field(default=0.02, gt=0, lt=0.5)
    """Bound on the probability of calling an unchanged agent regressed; a larger one finds more."""
    on_inconclusive: Annotated[Literal["warn", "block"], steps("warn", "block")] = "warn"
    """What an inconclusive verdict does: exit 0 with a loud warning, or exit 1."""
    max_error_rate: Annotated[float, DOWN] = Field(default=0.1, ge=0, le=1)
    """Share of trials that may end in an infrastructure error; above it the verdict is ``error``."""
    confirm_after: Annotated[Seconds, Field(le=3600)] = 60.0
    """How much later failures of the agent are confirmed before they block, in seconds or as ``500ms``, ``2m``."""
    pass_rate_margin: Annotated[float | None, Tightens("down", unset=PASS_RATE_MARGIN)] = Field(
        default=None, ge=0, le=1
    )
    """Loss of the pass rate that is still called unchanged, 0–1. Default: the larger of 0.10 and two cases' worth."""


class BudgetSection(Section):
    """Upper bounds on what a run may spend; checked before spending."""

    usd: float | None = Field(default=None, gt=0)
    """US dollars of agent and judge together, as reported or by list price."""
    tokens: int | None = Field(default=None, gt=0)
    """Tokens of the agent, input and output."""
    minutes: float | None = Field(default=None, gt=0)
    """Minutes that the run may take."""
    runs: int | None = Field(default=None, gt=0)
    """Agent runs, both sides together."""
    judge_calls: int | None = Field(default=None, gt=0)
    """Calls of the judge, retries included."""


class TrialsSection(Section):
    """`trials: {max: N}`: screen once, rerun what is suspicious, at most N full passes."""

    max: int = Field(ge=1, le=100)
    """The most epochs."""


class QuarantineEntry(Section):
    """A case that is known to be broken: shown, but it does not block until the date has passed."""

    case: str
    """The case's id."""
    owner: str = Field(min_length=1)
    """Who will fix it."""
    reason: str = Field(min_length=1)
    """What is broken."""
    expires: date
    """The last day on which the case does not block, as ``2026-12-31``."""


class File(Section):
    """The configuration file as written. What does not state otherwise is a rule, and a change cannot loosen it."""

    name: Annotated[str | None, FREE] = None
    """The suite's id in baselines and comments; unique in a repository. Default: the paths under ``suite``."""
    suite: Annotated[list[str], FREE]
    """Files or folders with cases, in any format; one path or a list."""
    format: Annotated[str | None, FREE] = None
    """The format of all suite files, also a plugin's. Default: the first built-in one that recognises a file."""
    fields: Annotated[FieldPaths | None, FREE] = None
    """Where rows of recorded messages keep id, trial, messages and expected calls."""
    agent: Annotated[dict[str, Any], FREE] = Field(min_length=1)
    """The agent under test: one kind and its options."""
    setup: Annotated[str | None, FREE] = None
    """Commands that install the agent, run by the action before anything else."""
    criteria: dict[str, Any] | None = None
    """Metrics with thresholds and options, or the path of a file with them. Default: the suite's own, else ADK's."""
    custom_metrics: dict[str, Any] = {}
    """ADK's custom metrics: ``{name: {code_config: {name: module.function}}}``."""
    tool_categories: dict[str, list[str]] = {}
    """Category → names of tools, for expected and forbidden tools."""
    trials: Literal["auto"] | int | TrialsSection = "auto"
    """``auto``: one epoch, reruns of suspicious cases, at most three epochs. ``{max: N}``: the same, at most N epochs.
    ``N``: exactly N epochs and one look."""
    baseline: BaselineSection = unstated()
    """Where baselines are kept, and which one is compared with."""
    gate: GateSection = unstated()
    """The decision: error rate, margins, and what an inconclusive verdict does."""
    judge: JudgeOptions | None = None
    """The model that judged metrics ask."""
    budget: BudgetSection = unstated()
    """Upper bounds on what a run may spend, checked before each trial."""
    select: Selection | None = None
    """Which cases are run. Default: all."""
    quarantine: list[QuarantineEntry] = []
    """Cases that are known to be broken: shown, but not blocking until a date has passed."""
    executor: Annotated[Executor, FREE] = unstated()
    """Where recorded trials are scored."""
    seed: int = Field(default=0, ge=0)
    """Seed of the gate's own randomness."""
    output: Annotated[str, FREE] = ".gate"
    """Folder for records and reports, relative to the configuration file."""

    @field_validator("suite", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("suite")
    @classmethod
    def _not_empty(cls, value: list[str]) -> list[str]:
        if not value:
            raise ValueError("name at least one file or folder")
        return value

    @field_validator("trials", mode="before")
    @classmethod
    def _auto_or_a_number(cls, value: Any) -> Any:
        if isinstance(value, str) and value != "auto" and not value.isdecimal():
            raise ValueError(f"{value!r} is neither 'auto' nor a whole number from 1")
        return value

    @field_validator("trials")
    @classmethod
    def _at_least_one(cls, value: Any) -> Any:
        if isinstance(value, bool) or (isinstance(value, int) and not 1 <= value <= 1000):
            raise ValueError("a number of trials is between 1 and 1000")
        return value


class SuiteRules(Struct, frozen=True):
    """What a suite is judged by instead of what its files say: the base commit's rules where a change is looser."""

    specs: tuple[CriterionSpec, ...]
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By case, those of its own thresholds."""
    formerly: Mapping[str, Case] = field(default_factory=dict)
    """By case, what it was at the base commit: a case that was selected there is selected here."""
    before: tuple[CriterionSpec, ...] = ()
    """The base commit's own criteria. What the change makes stricter must not hide what these find."""
    thresholds_before: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Likewise by case."""


class Config(Struct, frozen=True):
    """A validated configuration and where it came from."""

    file: File
    path: Path
    root: Path
    """Folder of the configuration file; relative paths in it start here."""
    agent_kind: str
    agent: AgentOptions
    criteria_where: str = "criteria"
    criteria_lines: Lines | None = None
    """Of the file that the criteria stand in."""
    criteria_keys: tuple[str, ...] = ()
    """Where in it they stand."""
    base_rules: Mapping[str, SuiteRules] = field(default_factory=dict)
    """By suite."""
    base_root: Path | None = None
    """This file's folder at the base commit, as long as it is there: checks and calibrations are taken from it."""

    @property
    def has_adk_criteria(self) -> bool:
        """Whether the criteria come from a file of ADK's, whose thresholds may be true and false."""
        return self.criteria_where != str(self.path)

    @property
    def paths(self) -> tuple[str, ...]:
        """Further folders that a ``python:`` agent imports from, relative to the root."""
        return tuple(getattr(self.agent, "path", ()))

    @property
    def output(self) -> Path:
        """Folder for records."""
        return self.root / self.file.output


Place = tuple[str, Lines | None, tuple[str, ...]]
"""A file, its lines, and the keys in it."""


class ConfigFile(Struct, frozen=True):
    """A configuration file as it was read, once; what overrides make of it is `load`."""

    path: Path
    data: Mapping[str, Any]
    """Its content, with the criteria of a file that it names in their place."""
    lines: Lines
    criteria: Place
    """Where the criteria stand."""

    def load(self, overrides: Mapping[str, Any] | None = None) -> Config:
        """Validates the content; ``overrides`` (dotted key → value) are laid over it, as the command line has them.

        Raises:
            ConfigError: invalid content, with file, line and the nearest known key.
        """
        overrides = overrides or {}
        data = dict(self.data)
        for key, value in overrides.items():
            _set(data, key.split("."), value)
        where = str(self.path)
        file = _validate(data, where, self.lines, tuple(overrides))
        kind, agent = _agent(file, where, self.lines)
        _check_store(file.baseline, where, self.lines)
        _check_executor(file, kind, where, self.lines)
        if file.criteria is not None and not file.criteria:
            raise ConfigError(
                "no criteria: nothing would be checked",
                where=_at(where, self.lines, ("criteria",)),
                hint="remove the key for ADK's defaults, or name a metric",
            )
        root = self.path.resolve().parent
        return Config(file, self.path, root, kind, agent, *self.criteria)


def load_config(path: Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Reads and validates a configuration file. Raises as `read_config` and `ConfigFile.load`."""
    return read_config(path).load(overrides)


def read_config(path: Path) -> ConfigFile:
    """Reads a configuration file, and the file of criteria that it names.

    Raises:
        ConfigError: missing or unreadable.
    """
    if not path.is_file():
        hint = "write one, or name another with --config; `gate init` writes a first one"
        raise ConfigError("no such configuration file", where=str(path), hint=hint)
    data, lines = read_document_with_lines(path)
    if not isinstance(data, dict):
        raise ConfigError(f"expected a mapping of keys, found {_kind(data)}", where=str(path))
    data = dict(data)
    return ConfigFile(path, data, lines, _criteria_from_file(data, path.resolve().parent, str(path), lines))


def _criteria_from_file(data: dict[str, Any], root: Path, where: str, lines: Lines) -> Place:
    """Replaces `criteria: test_config.json` by that file's criteria; returns where they stand."""
    named = data.get("criteria")
    if not isinstance(named, str):
        return where, lines, ("criteria",)
    path = root / named
    if not path.is_file():
        raise ConfigError(f"criteria file {named!r} does not exist", where=where)
    content, lines = read_document_with_lines(path)
    criteria, custom = criteria_of(content, str(path))
    data["criteria"] = criteria
    if custom:
        data["custom_metrics"] = {**custom, **data.get("custom_metrics", {})}
    return str(path), lines, ("criteria",) if "criteria" in content else ()


_BESIDE_CRITERIA = (
    ("custom_metrics", "customMetrics"),
    ("user_simulator_config", "userSimulatorConfig"),
    ("live_model_config", "liveModelConfig"),
)
"""What a ``test_config.json`` may hold beside its criteria; all but the first are for ADK's own runs."""


def criteria_of(content: Any, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The criteria and custom metrics of a ``test_config.json``, or of a bare mapping of criteria."""
    if not isinstance(content, dict):
        raise ConfigError(f"expected a mapping of criteria, found {_kind(content)}", where=where)
    if "criteria" not in content:
        return content, {}
    known = ["criteria", *(key for keys in _BESIDE_CRITERIA for key in keys)]
    for key in content:
        if key not in known:
            raise unknown_key(key, known, where)
    for snake, camel in _BESIDE_CRITERIA:
        if snake in content and camel in content:
            raise ConfigError(f"both {snake} and {camel} are given", where=where, hint="keep one of them")
    criteria = content["criteria"]
    if not isinstance(criteria, dict):
        raise ConfigError(f"criteria: expected a mapping, found {_kind(criteria)}", where=where)
    return criteria, content.get("custom_metrics") or content.get("customMetrics") or {}


def _set(data: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = data.get(key)
        data[key] = dict(inner) if isinstance(inner, dict) else {}
        data = data[key]
    data[keys[-1]] = value


def _validate(data: dict[str, Any], where: str, lines: Lines | None, overridden: Sequence[str]) -> File:
    try:
        return File.model_validate(data)
    except ValidationError as error:
        raise _config_error(error, where, lines, overridden) from None


def _config_error(
    error: ValidationError, where: str, lines: Lines | None, overridden: Sequence[str] = ()
) -> ConfigError:
    """The first problem of a validation as one line, with its place."""
    problem = first_problem(error, File)
    place = _at(where, lines, problem.path)
    if problem.kind == "unknown" and problem.name in ELSEWHERE:
        return ConfigError(f"unknown key {problem.name!r}", where=place, hint=ELSEWHERE[problem.name])
    if problem.kind == "unknown":
        return unknown_key(str(problem.path[-1]), list(problem.known), place)
    for key in overridden:
        if key in OPTIONS and problem.name.startswith(key):
            return ConfigError(problem.message, where=OPTIONS[key])
    return problem.as_error(place)


def _agent(file: File, where: str, lines: Lines | None) -> tuple[str, AgentOptions]:
    try:
        return parse_options(file.agent)
    except ConfigError as error:
        path = tuple(error.where.split("."))
        raise ConfigError(f"{error.where}: {error.what}", where=_at(where, lines, path), hint=error.hint) from None


def _check_store(section: BaselineSection, where: str, lines: Lines | None) -> None:
    """A store that somebody offers, with options that are its own or a built-in store's."""
    try:
        models = section.models()
    except ConfigError as error:
        raise ConfigError(error.what, where=_at(where, lines, ("baseline", "store")), hint=error.hint) from None
    known = {name: model for model in models for name in model.model_fields}
    for name in section.options:
        if name not in known:
            raise unknown_key(name, [*BaselineSection.model_fields, *known], _at(where, lines, ("baseline", name)))
    for model in models:
        own = {name: value for name, value in section.options.items() if name in model.model_fields}
        try:
            model.model_validate(own)
        except ValidationError as error:
            problem = first_problem(error, model)
            place = _at(where, lines, ("baseline", *problem.path))
            raise problem._replace(path=("baseline", *problem.path)).as_error(place) from None


def _check_executor(file: File, kind: str, where: str, lines: Lines) -> None:
    """A live agent's trials are spread by its own `concurrency`, and scored as they come."""
    if file.executor.named and kind != "replay":
        what = f"executor.{file.executor.named} scores recorded trials, and this agent is {kind}:"
        hint = "use `agent: {replay: true}`, or leave `executor` out"
        raise ConfigError(what, where=_at(where, lines, ("executor",)), hint=hint)


def _at(where: str, lines: Lines | None, path: tuple[Any, ...]) -> str:
    while lines is not None and path:
        line = lines.line(*path)
        if line is not None:
            return f"{where}:{line}"
        path = path[:-1]
    return where


def _kind(value: Any) -> str:
    names = {
        list: "a list",
        str: "text",
        type(None): "nothing",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), type(value).__name__)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of gate.yaml, with every agent kind's and every metric's options."""
    schema = File.model_json_schema(by_alias=False)
    judge = JudgeOptions.model_json_schema(by_alias=False)
    for name, definition in (*judge.pop("$defs").items(), ("JudgeOptions", judge)):
        schema["$defs"][name] = both_spellings(definition)
    kinds = []
    for kind in AGENTS:
        options = agent_class(kind).Options.model_json_schema()
        schema.setdefault("$defs", {}).update(options.pop("$defs", {}))
        kinds.append(options)
    stores = {name: STORES.load(name).Options.model_json_schema() for name in STORES}
    baseline = schema["$defs"]["BaselineSection"]
    for options in stores.values():
        schema["$defs"].update(options.pop("$defs", {}))
        baseline["properties"].update(options["properties"])
    baseline["properties"]["store"]["examples"] = [*stores, NO_STORE]
    several = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    schema["properties"]["suite"] = {
        "description": "Files or folders with cases.",
        "anyOf": [{"type": "string"}, several],
    }
    schema["properties"]["agent"] = {"description": "The agent under test: exactly one kind.", "oneOf": kinds}
    criteria = {name: criterion_schema(name, schema["$defs"]) for name in METRICS}
    schema["properties"]["criteria"] = {
        "description": "Criteria by name, or the path of a file with criteria.",
        "anyOf": [{"type": "string"}, {"type": "object", "properties": criteria, "minProperties": 1}],
    }
    for name in TEXT_ALONE:
        schema["$defs"][name] = {"anyOf": [{"type": "string"}, schema["$defs"][name]]}
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Agent Gate"}
    return {**title, **schema, **_names_of_criteria()}


def _names_of_criteria() -> dict[str, Any]:
    """A criterion is a registered metric (also in upper case), a dotted path, or names one with ``metric``.

    Under ``custom_metrics``, which a schema cannot look into, it may have any name.
    """
    named = {
        "type": ["object", "string", "null"],
        "properties": dict.fromkeys(METRICS, True),
        "patternProperties": {r"[.:]|^[A-Z][A-Z0-9_]*$": True},
        "additionalProperties": {"type": "object", "required": ["metric"]},
    }
    free = {"required": ["custom_metrics"]}
    return {"if": {"not": free}, "then": {"properties": {"criteria": named}}}
