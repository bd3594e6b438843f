"""gate.yaml → what to run. The only reader of configuration; composes the options that live beside the plugins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gate.agents import AGENTS
from gate.agents.base import AgentOptions, agent_class, parse_options
from gate.criteria import both_spellings, criterion_schema
from gate.errors import ConfigError, unknown_key
from gate.executors.options import Executor
from gate.formats.documents import Lines, read_document_with_lines
from gate.judges.options import JudgeOptions
from gate.metrics import METRICS
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


class Section(BaseModel):
    """Base of every section: unknown keys are errors, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def unstated() -> Any:
    """The default of a section: all of its defaults, read with the file's own reader instead of one made for it."""
    return Field(default_factory=dict, validate_default=True)


class BaselineSection(Section):
    """Where baselines are kept, and what to do without one."""

    store: Literal["file", "git", "none"] = "file"
    path: str = ".gate/baselines"
    """Folder of the file store, relative to the configuration file."""
    branch: str = "gate-baselines"
    remote: str = "origin"
    on_missing: Literal["warn", "fail"] = "warn"
    rerun: Literal["auto", "never", "match", "concurrent"] = "auto"
    against: str | None = None
    """A commit, branch or tag to measure against, instead of the merge base."""
    pool: int = Field(default=5, ge=1, le=50)
    """The most records of one agent fingerprint that are pooled."""


class GateSection(Section):
    """The decision: error rate, margins, and what an inconclusive answer does."""

    alpha: float = Field(default=0.02, gt=0, lt=0.5)
    on_inconclusive: Literal["warn", "block"] = "warn"
    max_error_rate: float = Field(default=0.1, ge=0, le=1)
    """Share of trials that may end in an infrastructure error before nothing can be said."""
    pass_rate_margin: float | None = Field(default=None, ge=0, le=1)


class BudgetSection(Section):
    """Upper bounds on what a run may spend; checked before spending."""

    usd: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    minutes: float | None = Field(default=None, gt=0)
    runs: int | None = Field(default=None, gt=0)
    judge_calls: int | None = Field(default=None, gt=0)


class TrialsSection(Section):
    """`trials: {max: N}`: screen once, rerun what is suspicious, at most N full passes."""

    max: int = Field(ge=1, le=100)


class QuarantineEntry(Section):
    """A case that is known to be broken: shown, but it does not block until the date has passed."""

    case: str
    owner: str = Field(min_length=1)
    reason: str = Field(min_length=1)
    expires: date


class File(Section):
    """The configuration file as written."""

    name: str | None = None
    suite: list[str]
    fields: FieldPaths | None = None
    agent: dict[str, Any] = Field(min_length=1)
    setup: str | None = None
    criteria: dict[str, Any] | None = None
    custom_metrics: dict[str, Any] = {}
    tool_categories: dict[str, list[str]] = {}
    trials: Literal["auto"] | int | TrialsSection = "auto"
    baseline: BaselineSection = unstated()
    gate: GateSection = unstated()
    judge: JudgeOptions | None = None
    budget: BudgetSection = unstated()
    select: Selection | None = None
    quarantine: list[QuarantineEntry] = []
    executor: Executor = unstated()
    """Where recorded trials are scored."""
    seed: int = Field(default=0, ge=0)
    output: str = ".gate"
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


class Held(Struct, frozen=True):
    """What a suite is held to instead of what its files say: the base commit's rules, where a change loosens them."""

    criteria: Mapping[str, Any]
    custom_metrics: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By case, those of its own thresholds."""


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
    held: Mapping[str, Held] = field(default_factory=dict)
    """By suite."""
    held_root: Path | None = None
    """This file's folder at the base commit, as long as it is there: checks and calibrations are taken from it."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Further folders that a ``python:`` agent imports from, relative to the root."""
        return tuple(getattr(self.agent, "path", ()))

    @property
    def output(self) -> Path:
        """Folder for records."""
        return self.root / self.file.output


def load_config(path: Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Reads the configuration file; ``overrides`` (dotted key → value) are laid over it, as the command line has them.

    Raises:
        ConfigError: missing, unreadable or invalid file; each with file, line and the nearest known key.
    """
    if not path.is_file():
        hint = "write one, or name another with --config; `gate init` writes a first one"
        raise ConfigError("no such configuration file", where=str(path), hint=hint)
    data, lines = read_document_with_lines(path)
    if not isinstance(data, dict):
        raise ConfigError(f"expected a mapping of keys, found {_kind(data)}", where=str(path))
    data = dict(data)
    for key, value in (overrides or {}).items():
        _set(data, key.split("."), value)
    root = path.resolve().parent
    criteria = _criteria_from_file(data, root, str(path), lines)
    if any(key.partition(".")[0] == "criteria" for key in overrides or {}):
        criteria = (criteria[0], None, ())
    file = _validate(data, str(path), lines, tuple(overrides or {}))
    kind, agent = _agent(file, str(path), lines)
    _check_executor(file, kind, str(path), lines)
    if file.criteria is not None and not file.criteria:
        raise ConfigError(
            "no criteria: nothing would be checked",
            where=_at(str(path), lines, ("criteria",)),
            hint="remove the key for ADK's defaults, or name a metric",
        )
    return Config(file, path, root, kind, agent, *criteria)


Place = tuple[str, Lines | None, tuple[str, ...]]
"""A file, its lines, and the keys in it."""


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


def criteria_of(content: Any, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The criteria and custom metrics of a ``test_config.json``, or of a bare mapping of criteria."""
    if not isinstance(content, dict):
        raise ConfigError(f"expected a mapping of criteria, found {_kind(content)}", where=where)
    if "criteria" not in content:
        return content, {}
    known = ["criteria", "custom_metrics", "customMetrics", "user_simulator_config", "userSimulatorConfig"]
    for key in content:
        if key not in known:
            raise unknown_key(key, known, where)
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
    """The first problem of a validation as one line; pydantic's union branches are no part of the user's path."""
    problem = error.errors()[0]
    found, unknown = problem["loc"], problem["type"] == "extra_forbidden"
    ours, theirs = (found[:-1], found[-1:]) if unknown else (found, ())  # a key of the user's may look like a branch
    path = (*(part for part in ours if not _is_branch(part)), *theirs)
    place = _at(where, lines, path)
    name = ".".join(str(part) for part in path)
    if unknown and name in ELSEWHERE:
        return ConfigError(f"unknown key {name!r}", where=place, hint=ELSEWHERE[name])
    if unknown:
        return unknown_key(str(path[-1]), _known_keys(path[:-1]), place)
    if problem["type"] == "missing":
        return ConfigError(f"missing key {name!r}", where=place)
    message = problem["msg"].removeprefix("Value error, ")
    for key in overridden:
        if key in OPTIONS and name.startswith(key):
            return ConfigError(message, where=OPTIONS[key])
    return ConfigError(f"{name}: {message}" if name else message, where=place)


def _is_branch(part: Any) -> bool:
    return isinstance(part, str) and bool(re.search(r"[\[(]|^literal|^int$|^[A-Z]\w+Section$", part))


def _known_keys(path: tuple[Any, ...]) -> list[str]:
    """The keys of the section at ``path`` of the configuration model."""
    model: Any = File
    for part in path:
        if not isinstance(part, str) or part not in model.model_fields:
            continue
        model = _section_type(model.model_fields[part].annotation) or model
    return list(model.model_fields)


def _section_type(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _section_type(inner)
        if found is not None:
            return found
    return None


def _agent(file: File, where: str, lines: Lines | None) -> tuple[str, AgentOptions]:
    try:
        return parse_options(file.agent)
    except ConfigError as error:
        path = tuple(error.where.split("."))
        raise ConfigError(f"{error.where}: {error.what}", where=_at(where, lines, path), hint=error.hint) from None


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
