"""The base policy: a change is judged by the rules of its base commit, which it may tighten, but not loosen.

Rules are what the configuration and its criteria demand, quarantine and thresholds included; what is measured (agent,
suite, setup) is the change's own. Which way an option tightens stands beside it (`gate.model.strictness`); any other
difference counts as loosening and takes effect once it is merged.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from gate.agents.base import AgentOptions
from gate.baselines import STORES
from gate.baselines.fingerprint import of_case
from gate.baselines.pairing import match_cases
from gate.config.load import Config, ConfigFile, SuiteRules, read_config
from gate.config.people import calibration_file
from gate.config.resolve import read_suites, stated_criteria
from gate.config.schema import NO_STORE, BaselineSection, File, Section
from gate.config.specs import Common, CriterionSpec
from gate.decision.consistency import cluster_of
from gate.errors import ConfigError, GateError
from gate.judges.options import JudgeOptions
from gate.metrics.custom.source import Folders
from gate.model import Case, Direction, Suite
from gate.model.strictness import DOWN, FREE, NEVER, UP, strictness_of
from gate.records import PlannedCase
from gate.security.limits import shorten
from gate.security.redact import redact
from gate.system.git import HINT_HISTORY, Git

FIRST = "the base commit has no such configuration: the change's own rules apply"
_DECIDING = ("store", "path", "require_provenance")
"""Keys of the baselines that have an effect where they are stated, even with the text of their default."""
MOVED = "the base commit has no such configuration, but a baseline of this suite is stored: its rules are unknown"


class BaseSuite(Struct, frozen=True):
    """The base commit's rules for a suite."""

    cases: tuple[Case, ...]
    specs: tuple[CriterionSpec, ...]


class BasePolicy(Struct, frozen=True):
    """The base commit's rules, read before anything of the change runs. Only custom metrics still are."""

    root: Path
    """The configuration's folder at the base commit, in a tree of its own that stays for as long as the rules."""
    config: Config | None
    """None if the base commit has no such configuration, or one that cannot be read."""
    suites: Mapping[str, BaseSuite] = {}
    unread: str = ""
    """What does not hold because the suites cannot be read, as when a step makes them."""
    broken: str = ""
    """Why the configuration cannot be read."""
    digest: str = ""
    """Of the files that are read again when the suite is judged."""
    commit: str = ""
    """The commit's id."""

    @property
    def is_absent(self) -> bool:
        """Whether the base commit has no such configuration."""
        return self.config is None and not self.broken


class Rules(Struct, frozen=True):
    """The rules in effect, and which of the change's own rules are not in effect yet."""

    config: Config
    changes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """Why nothing under these rules may pass: the base's rules are not known, or were left out."""
    base: Config | None = None
    """The base commit's own configuration; None if it is not known."""
    is_first: bool = False
    """Whether the base commit has no such configuration: a suite with a baseline must have come from another."""
    commit: str = ""
    """The commit whose rules they are; empty: the configuration's own."""
    redefines: bool = False
    """Whether the change says anew what its agent consists of: then an equal fingerprint may be of another agent."""


@contextmanager
def rules_of(
    revision: str, path: Path, overrides: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[Rules]:
    """The configuration at ``path`` under the rules of a commit, branch or tag; its files stay for as long.

    Raises:
        ConfigError: there is no such commit here.
    """
    source = read_config(path)
    with base_at(revision, source, overrides, environment) as base:
        yield under_base_policy(source, overrides, base)


@contextmanager
def base_at(
    revision: str,
    source: ConfigFile,
    overrides: Mapping[str, Any],
    environment: Mapping[str, str],
    usual: Mapping[str, Any] | None = None,
) -> Iterator[BasePolicy]:
    """The rules of a commit, branch or tag for a configuration of the work tree. Raises as `rules_of`.

    ``usual``: what holds of the baselines where the base commit's own text states nothing of it.
    """
    git = Git(place_of(source.path)[0], environment=environment)
    commit = git.resolve(revision) if git.is_repository() else None  # a branch may move meanwhile
    with path_at(commit or revision, source.path, environment) as path:
        yield replace(read_base(path, source, overrides, usual), commit=commit or "")


@contextmanager
def path_at(revision: str, path: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """The same file of the repository, as it is written, in a temporary tree of a commit, branch or tag.

    Raises:
        ConfigError: there is no such commit here.
    """
    top, inside = place_of(path)
    git = Git(top, environment=environment)
    if not git.is_repository():
        what = f"the rules of {revision!r} cannot be read: this is not a git repository"
        raise ConfigError(what, where=str(top), hint="run in a clone of the repository")
    if git.resolve(revision) is None:
        raise ConfigError(f"commit {revision!r} not found", where=str(top), hint=HINT_HISTORY)
    with git.worktree(revision) as tree:
        remove_outward_links(tree)
        yield tree / inside


def place_of(path: Path) -> tuple[Path, Path]:
    """The repository's top and a file's path below it, as written: a link on the way is a name like any other.

    A folder that was replaced by a link must not lead to the rules of where the link points.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  (resolve would follow links)
    tops = [folder for folder in path.parents if (folder / ".git").exists()]
    for top, outer in zip_longest(tops, tops[1:]):
        between = [top, *top.parents]
        if outer is None or not any(one.is_symlink() for one in between[: between.index(outer)]):
            return top, path.relative_to(top)
    return path.parent, Path(path.name)


def remove_outward_links(tree: Path) -> None:
    """Takes links that lead out of a tree out of it: what they lead to is not the commit's."""
    real = tree.resolve()
    for folder, folders, names in os.walk(tree):
        for one in (Path(folder) / name for name in (*folders, *names)):
            if one.is_symlink() and not one.resolve().is_relative_to(real):
                one.unlink()


def read_base(
    path: Path, source: ConfigFile, overrides: Mapping[str, Any], usual: Mapping[str, Any] | None = None
) -> BasePolicy:
    """The rules of the configuration at ``path``, the base commit's form of ``source``; ``usual`` as in `base_at`."""
    if not path.is_file():
        return BasePolicy(path.parent, None)
    try:
        known = read_config(path, of_base=True)
        config = known.load({**_unstated(usual or {}, known), **_of_base(overrides, source, known)})
        config = replace(config, base_root=config.root)
        suites, unread = _suites_of(config)
    except GateError as error:
        return BasePolicy(path.parent, None, broken=f"the base commit's configuration cannot be read: {error.what}")
    return BasePolicy(config.root, config, suites, unread, digest=_digest(config.root))


def _of_base(overrides: Mapping[str, Any], source: ConfigFile, base: ConfigFile) -> dict[str, Any]:
    """The overrides that say something of the base too: not of its agent, nor of a store that the change took out."""
    now, before = (one.data.get("baseline") or {} for one in (source, base))
    own = {"baseline.store"} if "store" in before and "store" not in now else set()
    return {key: value for key, value in overrides.items() if key.partition(".")[0] != "agent" and key not in own}


def _unstated(usual: Mapping[str, Any], base: ConfigFile) -> dict[str, Any]:
    """Which of these keys of the baselines the base commit does not state."""
    stated = base.data.get("baseline") or {}
    return {key: value for key, value in usual.items() if key.partition(".")[2] not in stated}


def _suites_of(config: Config) -> tuple[dict[str, BaseSuite], str]:
    """The base commit's suites by id, and what does not hold where they cannot be read."""
    try:
        suites = read_suites(config)
    except GateError as error:
        lost = "thresholds of single cases are" if config.file.criteria is not None else "criteria are"
        return {}, f"the base commit's suites cannot be read, so {lost} the change's own: {error.what}"
    return {suite.id: BaseSuite(suite.cases, stated_criteria(config, suite).specs) for suite in suites}, ""


def _digest(root: Path) -> str:
    """A digest of every name below a folder, with what it is: a file's bytes, a link's target, or a folder.

    A custom metric may be imported from more than ``.py``: a package, a compiled module or a link of its name goes
    before it.
    """
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(root):
        folders.sort()
        for path in (Path(folder) / name for name in (*folders, *sorted(names))):
            digest.update(os.fsencode(path.relative_to(root)) + b"\0" + _content(path) + b"\0")
    return digest.hexdigest()


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return b"link " + os.fsencode(path.readlink())
    if not path.is_file():
        return b"folder" if path.is_dir() else b"other"
    with path.open("rb") as file:
        return b"file " + hashlib.file_digest(file, "sha256").digest()


def under_base_policy(source: ConfigFile, overrides: Mapping[str, Any], base: BasePolicy) -> Rules:
    """A configuration under the rules of its base commit.

    Raises:
        ConfigError: the configuration cannot be read, or the base commit's files are no longer what they were.
    """
    return replace(_under(source, overrides, base), commit=base.commit)


def _under(source: ConfigFile, overrides: Mapping[str, Any], base: BasePolicy) -> Rules:
    head = source.load(overrides)
    if base.broken:
        said = f"{base.broken}; the change's own rules apply"
        return Rules(replace(head, base_root=base.root), (said,), (base.broken,))
    if base.config is None:
        return Rules(head, (FIRST,), is_first=True)
    if _digest(base.root) != base.digest:
        raise ConfigError("the base commit's files were changed before they were used", where=str(base.root))
    settings, changes = settings_under_base(base.config.file, head.file)
    own, before = _agent_of(source.load()), _agent_of(base.config)
    agent_rules, agent_changes = agent_under_base(before, own)
    head = replace(source.load({**overrides, **settings, **agent_rules}), base_root=base.root)
    ruled: dict[str, SuiteRules | None] = {}
    for suite in read_suites(head):
        ruled[suite.id] = _suite_under_base(suite, base, head, changes)
    changes += [base.unread] if base.unread else []
    gone = tuple(f"suite {name!r} of the base commit no longer exists" for name in base.suites if name not in ruled)
    changes += [*gone, *_edited_calibration(base.config, head), *_edited_baselines(base.config, head)]
    config = replace(head, base_rules={name: rules for name, rules in ruled.items() if rules is not None})
    differences = tuple(dict.fromkeys([*changes, *agent_changes]))
    return Rules(config, differences, gone, base.config, redefines=redefines_agent(base.config, config))


# --- suites ---------------------------------------------------------------------------------------


def _suite_under_base(suite: Suite, base: BasePolicy, head: Config, changes: list[str]) -> SuiteRules | None:
    """The rules for a suite; None if the base commit has none for it."""
    assert base.config is not None
    known = base.suites.get(suite.id)
    if known is None:
        changes += [f"suite {suite.id!r} is not in the base commit"] if not base.unread else []
        if base.config.file.criteria is None:
            return None
    before = known.specs if known is not None else stated_criteria(base.config, suite).specs
    specs, differences = criteria_under_base(before, stated_criteria(head, suite).specs)
    formerly = former_cases(known.cases, suite.cases) if known is not None else {}
    thresholds: dict[str, dict[str, float]] = {}
    lowered: list[str] = []
    if not base.unread:
        thresholds, lowered = thresholds_under_base(before, formerly, suite.cases)
    clusters, moved = clusters_under_base(formerly, suite.cases)
    changes += [*differences, *lowered, *moved, *_edited_metrics(head, specs)]
    stated = {case.id: case.thresholds for case in suite.cases} if base.unread else {}
    own = stated or {case_id: case.thresholds for case_id, case in formerly.items()}
    names = {spec.name for spec in before}
    kept = {case_id: {n: v for n, v in found.items() if n in names} for case_id, found in own.items()}
    return SuiteRules(specs, thresholds, formerly, _with_options_of(before, specs), kept, clusters)


def _with_options_of(before: Sequence[CriterionSpec], effective: Sequence[CriterionSpec]) -> tuple[CriterionSpec, ...]:
    """The base's demands on what is measured: scores are those of the options that hold."""
    options = {spec.name: spec.options for spec in effective}
    return tuple(replace(spec, options=options[spec.name]) for spec in before)


def former_cases(base: Sequence[Case], head: Sequence[Case]) -> dict[str, Case]:
    """By the id of a case: what it was at the base commit, paired as trials are paired."""
    match = match_cases(*([PlannedCase(case.id, of_case(case)) for case in cases] for cases in (head, base)))
    by_id = {case.id: case for case in base}
    return {match.ids[case_id]: by_id[case_id] for case_id in by_id if case_id in match.same or case_id in match.edited}


def _edited_metrics(head: Config, specs: Sequence[CriterionSpec]) -> list[str]:
    """The custom metrics that the base commit's code decides, because it has them and they differ here."""
    folders = Folders(str(head.root), str(head.base_root), head.paths)
    found = []
    for spec in (spec for spec in specs if spec.is_custom):
        in_agent = spec.options.get("run_in") == "agent"
        before = folders.file_of(spec.metric, folders.base, in_agent=in_agent)
        now = folders.file_of(spec.metric, folders.own, in_agent=in_agent)
        found += _edited(f"custom metric {spec.metric}", before, now)
    return found


def _edited_calibration(base: Config, head: Config) -> list[str]:
    """What people say of judges decides where it can loosen: the base commit's holds, and none where it has none."""
    before, now = calibration_file(base, base.root), calibration_file(head, head.root)
    name = (base.file.judge or JudgeOptions()).calibration
    if now.is_file() and not before.is_file():
        return [f"{name}: new, corrects scores once it is merged"]
    return _edited(name, before, now)


def _edited_baselines(base: Config, head: Config) -> list[str]:
    """That stored baselines which the base commit has are read from it, where the change has others in their place."""
    name = base.file.baseline.folder
    before, now = base.root / name, head.root / name
    if base.file.baseline.store != "file" or not before.is_relative_to(base.root):
        return []  # another store, or a folder that no commit has
    found = [path.relative_to(before) for path in before.rglob("*") if path.is_file()]
    gone = any(not (now / path).is_file() for path in found)
    edited = any((now / path).is_file() and _content(now / path) != _content(before / path) for path in found)
    said = " and ".join(what for what, holds in (("edited", edited), ("removed", gone)) if holds)
    return [f"{name}: files {said}, which takes effect once it is merged"] if said else []


def _edited(what: str, before: Path | None, now: Path | None) -> list[str]:
    """That a file of the base commit's is used instead of the change's, where they differ."""
    if before is None or not before.is_file():
        return []
    if now is None or not now.is_file():
        return [f"{what}: removed once it is merged"]
    return [] if before.read_bytes() == now.read_bytes() else [f"{what}: edited, takes effect once it is merged"]


# --- settings -------------------------------------------------------------------------------------


def settings_under_base(base: File, head: File) -> tuple[dict[str, Any], list[str]]:
    """Overrides (dotted key → value) that undo what the change loosens, and the differences in words.

    ``criteria`` and ``agent`` are not among them.
    """
    overrides: dict[str, Any] = {}
    changes: list[str] = []
    for key in File.model_fields:
        before, now = getattr(base, key), getattr(head, key)
        if isinstance(before, BaselineSection):  # equal or not: what is stated of it decides, too
            _baseline_under_base(before, now, overrides, changes)
            continue
        if key in ("criteria", "agent") or strictness_of(File, key) is FREE or before == now:
            continue
        if key == "quarantine":
            kept = [entry for entry in now if entry in before]
            added = [entry.case for entry in now if entry not in before]
            if added:
                overrides[key] = [entry.model_dump() for entry in kept]
            changes += [f"quarantine of {case!r} takes effect once it is merged" for case in added]
        elif isinstance(before, Section) and _has_ordered_options(type(before)):
            for name in type(before).model_fields:
                if _is_held(type(before), key, name, (before, now), changes):
                    overrides[f"{key}.{name}"] = _plain(getattr(before, name))
        else:
            overrides[key] = _plain(before)
            changes.append(f"{key} of the base commit applies until the change is merged")
    return overrides, changes


def _has_ordered_options(section: type[BaseModel]) -> bool:
    return any(strictness_of(section, name) is not NEVER for name in section.model_fields)


def _is_held(
    section: type[BaseModel], key: str, name: str, values: tuple[BaseModel, BaseModel], changes: list[str]
) -> bool:
    """Whether an option stays the base's, because the change has another that is not stricter; said in ``changes``."""
    before, now = (getattr(value, name) for value in values)
    tightens = strictness_of(section, name)
    if before == now or tightens is FREE:
        return False
    said = f"{key}.{name}: {_text(before)} → {_text(now)}"
    if tightens.allows(before, now):
        changes.append(f"{said}, stricter")
        return False
    changes.append(f"{said} takes effect once it is merged")
    return True


def _baseline_under_base(
    before: BaselineSection, now: BaselineSection, overrides: dict[str, Any], changes: list[str]
) -> None:
    """The whole section, as the base states it but for what the change makes stricter.

    What the base leaves unstated stays unstated: whether ``store`` and ``path`` are decides which store is read. A
    default that was written out would be another one.
    """
    stated, own = _plain(before), _plain(now)
    if _changes_plugin(before.store, now.store):
        taken = {"against"}  # options of another's store say nothing to it
        changes.append(f"baseline.store: {_text(before.store)} → {_text(now.store)} takes effect once it is merged")
    else:
        differing = _differing(before, now)
        taken = {name for model, name, values in differing if not _is_held(model, "baseline", name, values, changes)}
        told = {name for _, name, _ in differing}
        for name in _DECIDING:
            if (name in own) != (name in stated) and name not in told:
                held = f"baseline.{name}: {_text(stated.get(name))} → {_text(own.get(name))}"
                changes.append(f"{held} takes effect once it is merged")
    kept = {name: value for name, value in stated.items() if name not in taken}
    section = kept | {name: own[name] for name in taken if name in own}
    if section != own:
        overrides["baseline"] = section


def _differing(
    before: BaselineSection, now: BaselineSection
) -> list[tuple[type[BaseModel], str, tuple[BaseModel, BaseModel]]]:
    """The keys that differ, each with the model that reads it. The options of stores are each as its store reads it."""
    pairs: list[tuple[type[BaseModel], tuple[BaseModel, BaseModel]]] = [(BaselineSection, (before, now))]
    for model in dict.fromkeys([*before.models(), *now.models()]):
        read = [
            model.model_validate({k: v for k, v in section.options.items() if k in model.model_fields})
            for section in (before, now)
        ]
        pairs.append((model, (read[0], read[1])))
    return [
        (model, name, values)
        for model, values in pairs
        for name in model.model_fields
        if getattr(values[0], name) != getattr(values[1], name)
    ]


def _changes_plugin(before: str, now: str) -> bool:
    """Whether a store that is not built in comes or goes."""
    return before != now and not {before, now} <= {*STORES, NO_STORE}


def _plain(value: Any) -> Any:
    return value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value


# --- the agent ------------------------------------------------------------------------------------


def _agent_of(config: Config) -> tuple[Mapping[str, Any], AgentOptions]:
    """The agent as written, and as read."""
    return config.file.agent, config.agent


def agent_under_base(
    base: tuple[Mapping[str, Any], AgentOptions], head: tuple[Mapping[str, Any], AgentOptions]
) -> tuple[dict[str, Any], list[str]]:
    """The agent is the change's own, and that it is another is said; options that state their strictness are rules."""
    overrides: dict[str, Any] = {}
    changes: list[str] = []
    for name in AgentOptions.model_fields:
        before, now = (getattr(options, name) for _, options in (base, head))
        tightens = strictness_of(AgentOptions, name)
        if tightens is NEVER or before == now or tightens.allows(before, now):
            continue
        overrides[f"agent.{name}"] = _plain(before)
        changes.append(f"agent.{name}: {_text(before)} → {_text(now)} takes effect once it is merged")
    written, now_written = base[0], head[0]
    for key in [*written, *(key for key in now_written if key not in written)]:
        old, new = written.get(key), now_written.get(key)
        if old != new and f"agent.{key}" not in overrides:
            changes.append(f"the agent differs: agent.{key}: {_text(old)} → {_text(new)}")
    return overrides, changes


def redefines_agent(base: Config, head: Config) -> bool:
    """Whether a fingerprint may leave out what the base's would see: by its sources, its version, or what is no agent.

    Suites and what the gate writes are no part of the agent, so naming them differently takes files out of it.
    """
    one, other = (
        (config.agent_kind, config.agent.sources, config.agent.version, config.file.output) for config in (base, head)
    )
    return one != other or not set(head.file.suite) <= set(base.file.suite)


# --- criteria -------------------------------------------------------------------------------------


def criteria_under_base(
    base: Sequence[CriterionSpec], head: Sequence[CriterionSpec]
) -> tuple[tuple[CriterionSpec, ...], list[str]]:
    """The criteria that apply: every one of the base's is kept, and no option is loosened."""
    now = {spec.name: spec for spec in head}
    known = {spec.name for spec in base}
    effective: list[CriterionSpec] = []
    changes: list[str] = []
    for before in base:
        if before.name not in now:
            effective.append(before)
            changes.append(f"criterion {before.name} is removed once it is merged")
        else:
            effective.append(_criterion_under_base(before, now[before.name], changes))
    new = [spec for spec in head if spec.name not in known]
    changes += [f"criterion {spec.name} is new" for spec in new]
    return (*effective, *new), changes


def _criterion_under_base(before: CriterionSpec, now: CriterionSpec, changes: list[str]) -> CriterionSpec:
    if before.metric != now.metric:
        changes.append(f"{before.name}.metric: {before.metric} → {now.metric} takes effect once it is merged")
        return before
    common = _common_under_base(before, now, changes)
    quantiles = _quantiles_under_base(before, now, changes)
    options = _options_under_base(before, now, changes)
    return replace(before, common=common, quantiles=quantiles, options=options)


def _common_under_base(before: CriterionSpec, now: CriterionSpec, changes: list[str]) -> Common:
    stricter: dict[str, Any] = {}
    for name in Common.model_fields:
        old, new = getattr(before.effective, name), getattr(now.effective, name)
        if name == "metric" or old == new:
            continue
        if _tightens(before, name, old, new):
            stricter[name] = new
        changes.append(_said(f"{before.name}.{name}", old, new, is_stricter=name in stricter))
    return before.common.model_copy(update=stricter)


def _tightens(spec: CriterionSpec, name: str, before: Any, now: Any) -> bool:
    """Whether a change of a common option holds at once."""
    metric = spec.metric_type
    if name == "threshold" and metric is None:
        return False  # which way is up, the user's own code knows, and it is not loaded to find out
    if name == "threshold" and before is None and metric is not None and metric.pass_threshold is not None:
        return now is not None and now >= metric.pass_threshold  # below it, a trial would pass that does not
    if name == "margin":
        default = metric.scale.default_margin if metric is not None else None
        before, now = (default if value is None else value for value in (before, now))
        return before is not None and now is not None and DOWN.allows(before, now)
    return strictness_of(Common, name).allows(before, now)


def _quantiles_under_base(
    before: CriterionSpec, now: CriterionSpec, changes: list[str]
) -> tuple[tuple[float, float], ...]:
    old, new = dict(before.quantiles), dict(now.quantiles)
    effective = dict(old)
    for q in sorted({*old, *new}):
        if old.get(q) == new.get(q):
            continue
        is_stricter = DOWN.allows(old.get(q), new.get(q))
        if is_stricter:
            effective[q] = new[q]
        changes.append(_said(f"{before.name}.p{q * 100:g}", old.get(q), new.get(q), is_stricter=is_stricter))
    return tuple(sorted(effective.items()))


def _options_under_base(before: CriterionSpec, now: CriterionSpec, changes: list[str]) -> Mapping[str, Any]:
    """The base's options as they are written there, but for those that the change makes stricter."""
    old, new = before.parsed_options, now.parsed_options
    effective = dict(before.options)
    for name in [*old, *(name for name in new if name not in old)]:
        if old.get(name) == new.get(name):
            continue
        ordered = before.metric_type is not None
        metric = before.metric_type
        tightens = strictness_of(metric.options_type, name) if ordered and metric is not None else NEVER
        is_stricter = tightens.allows(old.get(name), new.get(name))
        if is_stricter:
            effective[name] = now.options[name]
        changes.append(_said(f"{before.name}.{name}", old.get(name), new.get(name), is_stricter=is_stricter))
    return effective


def _said(what: str, before: Any, now: Any, *, is_stricter: bool) -> str:
    change = f"{what}: {_text(before)} → {_text(now)}"
    return f"{change}, stricter" if is_stricter else f"{change} takes effect once it is merged"


# --- thresholds of single cases -------------------------------------------------------------------


def thresholds_under_base(
    specs: Sequence[CriterionSpec], formerly: Mapping[str, Case], head: Sequence[Case]
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """By case: the thresholds of its own that hold, where they are not those that it states.

    One that the base commit does not state for the case has to be at least as strict as its criterion there.
    """
    by_name = {spec.name: spec for spec in specs}
    effective: dict[str, dict[str, float]] = {}
    changes: list[str] = []
    for case in head:
        known = formerly[case.id].thresholds if case.id in formerly else {}
        kept = dict(case.thresholds)
        for name in [*known, *(name for name in case.thresholds if name not in known)]:
            spec, old, new = by_name.get(name), known.get(name), kept.get(name)
            if spec is None or old == new or _case_takes_effect(spec, old, new):
                continue
            kept.pop(name, None)
            kept |= {} if old is None else {name: old}
            changes.append(f"case {case.id!r}: {name} {_text(old)} → {_text(new)} takes effect once it is merged")
        if kept != dict(case.thresholds):
            effective[case.id] = kept
    return effective, changes


def _case_takes_effect(spec: CriterionSpec, before: float | None, now: float | None) -> bool:
    metric = spec.metric_type
    if metric is None:
        return False
    is_lower = metric.direction is Direction.LOWER
    if before is None:
        common = spec.effective
        before = common.max if is_lower else common.threshold
        before = metric.pass_threshold if before is None else before
        if before == now:
            return True
    return (DOWN if is_lower else UP).allows(before, now)


# --- clusters -------------------------------------------------------------------------------------


def clusters_under_base(formerly: Mapping[str, Case], head: Sequence[Case]) -> tuple[dict[str, str], list[str]]:
    """By case: the cluster of the base commit, where the change has it in another; and that in words.

    All cases in one cluster are a single unit, in which no drop of the suite can be proven. A case of other content is
    not compared, so its cluster is its own.
    """
    held = {
        case.id: cluster_of(before)
        for case in head
        if (before := formerly.get(case.id)) is not None
        and cluster_of(before) != cluster_of(case)
        and of_case(before) == of_case(case)
    }
    if not held:
        return {}, []
    others = f" and {len(held) - 1:,} more" if len(held) > 1 else ""
    return held, [f"the cluster of case {next(iter(held))!r}{others} takes effect once it is merged"]


def _text(value: Any) -> str:
    return shorten(redact(json.dumps(_plain(value), default=str)), 80) if value is not None else "nothing"
