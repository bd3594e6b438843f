"""gate.yaml and command-line overrides → `Config`. The only reader of configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from pydantic import TypeAdapter, ValidationError

from gate.agents import AGENTS
from gate.agents.base import AgentOptions, parse_options
from gate.config import FILE_NAME
from gate.config.adk_criteria import criteria_of
from gate.config.place import FilePlace
from gate.config.removed import removed_keys, without_removed_keys
from gate.config.schema import BaselineSection, File
from gate.config.specs import CriterionSpec
from gate.errors import ConfigError, first_problem, kind_of, models_in, unknown_key
from gate.formats.documents import read_document_with_lines
from gate.formats.positions import LineNumbers
from gate.formats.yaml_text import EMPTY
from gate.model import Case
from gate.model.strict import FileBelow

OPTIONS = {
    "trials": "--trials",
    "select.tags": "--tag",
    "select.complexity": "--complexity",
    "select.ids": "--case",
    "select.metadata": "--where",
    "baseline.against": "--against",
}
"""Key → the command-line option that overrides it, for errors about its value."""


def option_for(name: str, overridden: Iterable[str]) -> str:
    """Return the command-line option that a key's value comes from; empty if it is from the file."""
    for key in overridden:
        if key in OPTIONS and name.startswith(key):
            return OPTIONS[key]
    return ""


ELSEWHERE = dict.fromkeys(
    ("pass_rate", "gate.pass_rate", "gate.min_pass_rate", "gate.threshold"),
    "a limit on the pass rate goes under criteria: `pass_rate: 0.85`",
)
"""Keys that users look for in the wrong place → a hint with the right one."""


class SuiteRules(Struct, frozen=True):
    """The rules of a suite in place of those in its files: the base commit's wherever the change is looser."""

    specs: tuple[CriterionSpec, ...]
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By case, its own thresholds."""
    formerly: Mapping[str, Case] = field(default_factory=dict)
    """By case, its form at the base commit; if that form was selected, the case is selected here, too."""
    before: tuple[CriterionSpec, ...] = ()
    """The base commit's own criteria. A stricter rule of the change must not hide a failure that they find."""
    thresholds_before: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The base commit's thresholds, by case."""
    clusters: Mapping[str, str] = field(default_factory=dict)
    """By case, its cluster at the base commit if the change assigns another; empty for none."""
    removed: frozenset[str] = frozenset()
    """Names of the base commit's criteria that the change removed. They are no longer measured or compared once all
    cases that they apply to are removed."""


class Config(Struct, frozen=True):
    """A validated configuration and its origin."""

    file: File
    path: Path
    root: Path
    """Folder of the configuration file; relative paths in it start here."""
    agent_kind: str
    agent: AgentOptions
    criteria: FilePlace
    """The place where the criteria are written."""
    base_rules: Mapping[str, SuiteRules] = field(default_factory=dict)
    """Rules by suite."""
    overridden: frozenset[str] = frozenset()
    """The keys whose values came from the command line."""
    base_root: Path | None = None
    """This file's folder at the base commit while it exists; custom metrics and calibrations are taken from it."""

    def place_of(self, *keys: str | int) -> str:
        """Return the place of a key's value: the command-line option, or the file and line."""
        name = ".".join(str(key) for key in keys)
        lines = None if self.has_adk_criteria else self.criteria.lines  # the lines belong to another file
        return option_for(name, self.overridden) or FilePlace(str(self.path), lines).at(*keys)

    @property
    def has_adk_criteria(self) -> bool:
        """True if the criteria come from an ADK file, in which thresholds may be true or false."""
        return self.criteria.file != str(self.path)

    @property
    def paths(self) -> tuple[str, ...]:
        """More folders that a ``python:`` agent imports from, relative to the root."""
        return tuple(getattr(self.agent, "path", ()))

    @property
    def output(self) -> Path:
        """Folder for records."""
        return self.root / self.file.output


class ConfigFile(Struct, frozen=True):
    """A configuration file as it was read; `load` applies overrides to it."""

    path: Path
    data: Mapping[str, Any]
    """Its content, including the criteria of a file that it names."""
    place: FilePlace
    criteria: FilePlace
    """The place where the criteria are written."""

    def load(self, overrides: Mapping[str, Any] | None = None) -> Config:
        """Return the validated content with ``overrides`` (dotted key → value), as from the command line, applied.

        Raises:
            ConfigError: invalid content, with file, line and the nearest known key.
        """
        overrides = overrides or {}
        data = dict(self.data)
        for key, value in overrides.items():
            _set(data, key.split("."), value)
        place = self.place
        _take_traces_for_suite(data)
        if "agent" in data and not (isinstance(data["agent"], Mapping) and data["agent"]):
            found = f"expected a mapping, found {kind_of(data['agent'])}" if data["agent"] else "is empty"
            hint = f"name how it is asked: one of {', '.join(AGENTS)}"
            raise ConfigError(f"agent: {found}", where=place.at("agent"), hint=hint)
        if "suite" in data and not isinstance(data["suite"], str | list):
            found = f"expected a path or a list of paths, found {kind_of(data['suite'])}"
            raise ConfigError(f"suite: {found}", where=place.at("suite"), hint="as in suite: evals/")
        try:
            file = File.model_validate(data)
        except ValidationError as error:
            raise _config_error(error, place, tuple(overrides)) from None
        kind, agent = _agent(file, place)
        _check_store(file.baseline, place, "--store" if "baseline.store" in overrides else "")
        _check_hosts(file.publish, place)
        _check_executor(file, kind, place)
        _check_traces(agent, kind, place)
        _check_base(agent, kind, place)
        if file.criteria is not None and not file.criteria:
            raise ConfigError(
                "no criteria: nothing would be checked",
                where=place.at("criteria"),
                hint="remove the key for ADK's defaults, or name a metric",
            )
        root = self.path.resolve().parent
        return Config(file, self.path, root, kind, agent, self.criteria, overridden=frozenset(overrides))


def load_config(path: Path, overrides: Mapping[str, Any] | None = None, *, of_base: bool = False) -> Config:
    """Read and validate a configuration file. Raises the same as `read_config` and `ConfigFile.load`."""
    return read_config(path, of_base=of_base).load(overrides)


def reports_named_in(path: Path) -> Mapping[str, str]:
    """Return the reports that a configuration file asks for, even if other parts are wrong; none if they cannot be
    read."""
    try:
        return TypeAdapter(dict[str, FileBelow]).validate_python(read_config(path).data.get("reports") or {})
    except (ConfigError, ValidationError):
        return {}


MOST_ABOVE, MOST_BELOW = 3, 1
NEAR_NAMES = (FILE_NAME, "gate.yml", "agent-gate.yaml", ".gate.yaml")
"""Files to look for if a configuration is missing."""


def read_config(path: Path, *, of_base: bool = False) -> ConfigFile:
    """Read a configuration file, and the file of criteria that it names.

    ``of_base``: True for the base commit's file, which may be written for an older version: removed keys are ignored.

    Raises:
        ConfigError: the file is missing or unreadable, or has a removed key.
    """
    if not path.is_file():
        what = "a folder, and no configuration file" if path.is_dir() else "no such configuration file"
        raise ConfigError(what, where=str(path), hint=_nearest_config(path))
    hint = "it needs at least `suite` and `agent`; `gate init` in an empty folder writes a first one"
    try:
        data, lines = read_document_with_lines(path)
    except ConfigError as error:
        if error.hint or error.what != EMPTY:
            raise
        raise ConfigError(error.what, where=error.where, hint=hint) from None
    if not isinstance(data, dict):
        raise ConfigError(f"expected a mapping of keys, found {kind_of(data)}", where=str(path), hint=hint)
    return _config_file(path, data, lines, of_base=of_base)


def _nearest_config(path: Path) -> str:
    """Return a hint for a missing configuration: one next to it, in it, above it or one folder below."""
    near = next((path.with_name(name) for name in NEAR_NAMES if path.with_name(name).is_file()), None)
    if near is not None and not path.is_dir():
        return f"name it {path.name}, or: gate run -c {near.name}"
    folder = path.parent
    above = [Path(*[".."] * up) / FILE_NAME for up in range(1, MOST_ABOVE + 1)]
    below = sorted(folder.glob(f"*/{FILE_NAME}"))[:MOST_BELOW] if folder.is_dir() else []
    for other in (path / FILE_NAME, *[folder / one for one in above], *below):
        if other.is_file():
            return f"did you mean: -c {other.as_posix()}"
    return "name a file in it" if path.is_dir() else "`gate init` writes a first one"


def config_from(data: Mapping[str, Any], root: Path) -> ConfigFile:
    """Return the content as a configuration file in ``root``, which need not exist. Raises the same as
    `read_config`."""
    return _config_file(root / FILE_NAME, data, None)


def _config_file(
    path: Path, content: Mapping[str, Any], lines: LineNumbers | None, *, of_base: bool = False
) -> ConfigFile:
    data, place = dict(content), FilePlace(str(path), lines)
    criteria = _criteria_from_file(data, path.resolve().parent, place)
    if of_base:
        return ConfigFile(path, without_removed_keys(data), place, criteria)
    for keys, advice in removed_keys(data).items():
        where = place.at(*keys)
        if keys[0] == "criteria" and criteria.file != str(path):
            where = criteria.file
        raise ConfigError(f"{'.'.join(keys)} was removed", where=where, hint=advice)
    return ConfigFile(path, data, place, criteria)


def _criteria_from_file(data: dict[str, Any], root: Path, place: FilePlace) -> FilePlace:
    """Replace `criteria: test_config.json` by the file's criteria; return the place where they are written."""
    named = data.get("criteria")
    if not isinstance(named, str):
        return FilePlace(place.file, place.lines, ("criteria",))
    path = root / named
    if not path.is_file():
        hint = f"for a metric, write {{{named}: 0.6}}" if named.isidentifier() else ""
        raise ConfigError(f"criteria file {named!r} does not exist", where=place.at("criteria"), hint=hint)
    content, lines = read_document_with_lines(path)
    data["criteria"] = criteria_of(content, str(path))
    return FilePlace(str(path), lines, ("criteria",) if "criteria" in content else ())


def _take_traces_for_suite(data: dict[str, Any]) -> None:
    """Use the replayed trace files as the suite if there is none: each conversation is a case without expectations."""
    replayed = data["agent"].get("replay") if isinstance(data.get("agent"), dict) else None
    if data.get("suite") is None and isinstance(replayed, str | list) and replayed:
        data["suite"] = [replayed] if isinstance(replayed, str) else replayed


def _set(data: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = data.get(key)
        data[key] = dict(inner) if isinstance(inner, dict) else {}
        data = data[key]
    data[keys[-1]] = value


def _config_error(error: ValidationError, place: FilePlace, overridden: Sequence[str]) -> ConfigError:
    """Return the first validation error as one line, with its place."""
    problem = first_problem(error, File)
    where = place.at(*problem.path)
    if problem.kind == "unknown":
        if problem.name in overridden:
            where = "overrides"
        if problem.name in ELSEWHERE:
            return ConfigError(f"unknown key {problem.name!r}", where=where, hint=ELSEWHERE[problem.name])
        sections = _sections_with(problem.name) if len(problem.path) == 1 else []
        if 1 <= len(sections) <= MOST_SECTIONS:
            hint = f"write it under {' or '.join(sections)}"
            return ConfigError(f"unknown key {problem.name!r}", where=where, hint=hint)
        return unknown_key(str(problem.path[-1]), list(problem.known), where)
    option = option_for(problem.name, overridden)
    return ConfigError(problem.message, where=option) if option else problem.as_error(where)


MOST_SECTIONS = 2
"""Maximum number of sections that a hint names."""


def _sections_with(key: str) -> list[str]:
    """Return the sections that have a key which the file has at its top."""
    found = ["agent"] if key in AGENTS or key in AgentOptions.model_fields else []
    for name, info in File.model_fields.items():
        if any(key in model.model_fields for model in models_in(info.annotation)):
            found.append(name)
    return found


def _agent(file: File, place: FilePlace) -> tuple[str, AgentOptions]:
    try:
        return parse_options(file.agent)
    except ConfigError as error:
        where = place.at(*error.where.split("."))
        raise ConfigError(f"{error.where}: {error.what}", where=where, hint=error.hint) from None


def _check_store(section: BaselineSection, place: FilePlace, option: str = "") -> None:
    """Raise ConfigError unless the store is available and its options are its own or a built-in store's; ``option``
    named it."""
    try:
        models = section.models()
    except ConfigError as error:
        raise ConfigError(error.what, where=option or place.at("baseline", "store"), hint=error.hint) from None
    known = {name: model for model in models for name in model.model_fields}
    for name in section.options:
        if name not in known:
            raise unknown_key(name, [*BaselineSection.model_fields, *known], place.at("baseline", name))
    for model in models:
        try:
            model.model_validate(section.options_of(model))
        except ValidationError as error:
            problem = first_problem(error, model)
            path = ("baseline", *problem.path)
            raise problem._replace(path=path).as_error(place.at(*path)) from None


def _check_hosts(hosts: Mapping[str, Mapping[str, Any]], place: FilePlace) -> None:
    """Raise ConfigError for an unknown host, or for options that are not its own."""
    if hosts:
        from gate.hosts import read_host_options  # weight: most runs publish nothing themselves

        for name, options in hosts.items():
            read_host_options(name, options, place.at("publish", name))


def _check_executor(file: File, kind: str, place: FilePlace) -> None:
    """Raise ConfigError for an executor with a live agent: its trials run under its own `concurrency` and are scored as
    they arrive."""
    if file.executor.named and kind != "replay":
        what = f"executor.{file.executor.named} scores recorded trials, and this agent is {kind}:"
        hint = "use `agent: {replay: true}`, or leave `executor` out"
        raise ConfigError(what, where=place.at("executor"), hint=hint)


def _check_traces(agent: AgentOptions, kind: str, place: FilePlace) -> None:
    """Raise ConfigError if traces have no port but somebody else starts the agent: it must know where to export to."""
    if agent.traces is not None and not agent.traces.port and not agent.is_local and kind != "replay":
        hint = "traces: {port: 4318}, and OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 for the agent"
        what = f"{kind}: agents are not started by the gate, so the receiver needs a port that the agent knows"
        raise ConfigError(what, where=place.at("agent", "traces"), hint=hint)


def _check_base(agent: AgentOptions, kind: str, place: FilePlace) -> None:
    """Raise ConfigError for the address of a base commit's agent that has none."""
    if agent.base is None:
        return
    from gate.agents.http import server_of  # weight: only where such an address is given

    if server_of(agent, kind) is None:
        hint = "leave it out"
        if agent.is_local:
            hint += ": the gate starts the base commit's agent itself"
        raise ConfigError(f"a {kind}: agent has no address", where=place.at("agent", "base"), hint=hint)
