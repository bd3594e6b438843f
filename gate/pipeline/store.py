"""The store of baselines for a run: its kind, its place, and the part of it that is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gate.baselines import Store, StoreSettings, open_store
from gate.baselines.base import SUFFIX
from gate.config.load import Config
from gate.config.schema import NO_STORE
from gate.errors import ConfigError
from gate.security.environment import TOKEN, in_ci
from gate.security.escape import one_line
from gate.system.git import Git


def store_kind(config: Config, environment: Mapping[str, str]) -> str:
    """Return the configured kind of store; by default files, and in CI the repository's own branch.

    Files that a job writes next to its clone are lost with it. But a folder that already exists, committed or restored,
    is still used, and so it is if there is no remote to push to. Under the rules of a base commit, a folder that the
    change commits does not count: it would leave the change with nothing to be compared with.
    """
    section = config.file.baseline
    stated = "store" in section.model_fields_set or "path" in section.options
    git = Git(config.root, environment=environment)
    if stated or not in_ci(environment) or _has_folder(config, git):
        return section.store
    has_remote = git.is_repository() and git.ask("config", "--get", f"remote.{section.remote}.url") is not None
    return "git" if has_remote else section.store


def _has_folder(config: Config, git: Git) -> bool:
    """True if the file store's folder exists; under a base's rules, in the base's tree or with uncommitted records."""
    name = config.file.baseline.folder
    folder = config.root / name
    if config.base_root is None or (config.base_root / name).is_dir():
        return config.base_root is not None or folder.is_dir()
    return _has_restored(config, git)


def _has_restored(config: Config, git: Git) -> bool:
    """True if the file store's folder has records that are in no commit."""
    folder = str(config.root / config.file.baseline.folder)
    restored = git.ask("ls-files", "-z", "--others", "--", folder) if git.is_repository() else None
    return any(name.endswith(SUFFIX) for name in (restored or "").split("\0"))


def is_lost(config: Config, environment: Mapping[str, str]) -> bool:
    """True if stored records are lost with the CI job, being in an uncommitted folder of its clone."""
    folder = config.root / config.file.baseline.folder
    if store_kind(config, environment) != "file" or not in_ci(environment) or not folder.is_relative_to(config.root):
        return False
    git = Git(config.root, environment=environment)
    return not (git.is_repository() and git.ask("ls-files", "--", str(folder)))


def store_of(config: Config, environment: Mapping[str, str]) -> Store | None:
    """Return the store of baselines; None if they are switched off."""
    section, kind = config.file.baseline, store_kind(config, environment)
    if kind == NO_STORE:
        return None
    settings = StoreSettings(
        root=_root_of(config, kind, environment),
        environment=environment,
        remote=section.remote,
        options=section.options,
        token=environment.get(TOKEN) or environment.get("GITHUB_TOKEN", ""),
        server=environment.get("GITHUB_SERVER_URL", "https://github.com"),
    )
    from gate.pipeline.provenance import proven_store  # weight: only where there is a store

    return proven_store(open_store(kind, settings), config, environment, kind)


def _root_of(config: Config, kind: str, environment: Mapping[str, str]) -> Path:
    """Return the folder that the store's paths are relative to.

    A change could edit a committed folder, or add one: under a base's rules it is read as the base commit has it.
    Records in no commit are the job's, for instance from a cache. Raises ConfigError if one folder has both.
    """
    base, name = config.base_root, config.file.baseline.folder
    if kind != "file" or base is None:
        return config.root
    if (base / name).is_dir():
        return base
    git = Git(config.root, environment=environment)
    brought = git.tracked_in(config.root / name)
    if brought is not None and _has_restored(config, git):
        what = f"the change brings {one_line(brought, 200)} into the folder of the baselines, which counts once merged"
        raise ConfigError(
            what, where=str(config.root / name), hint="remove it from the change, or keep baselines elsewhere"
        )
    return config.root if brought is None else base
