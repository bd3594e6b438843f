"""The store of baselines that a run looks in: of which kind it is, where, and what of it is trusted."""

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
    """Return the kind of store that is configured; without one, files, and in CI the repository's own branch.

    What a job writes beside its clone is gone with it. A folder that is there already, committed or restored, is kept
    to; so it is where there is no remote to push to. Under the rules of a base commit, one that the change commits says
    nothing: it would be compared with nothing.
    """
    section = config.file.baseline
    stated = "store" in section.model_fields_set or "path" in section.options
    git = Git(config.root, environment=environment)
    if stated or not in_ci(environment) or _has_folder(config, git):
        return section.store
    has_remote = git.is_repository() and git.ask("config", "--get", f"remote.{section.remote}.url") is not None
    return "git" if has_remote else section.store


def _has_folder(config: Config, git: Git) -> bool:
    """True if the file store's folder is there; under a base's rules, in its tree or with records no commit has."""
    name = config.file.baseline.folder
    folder = config.root / name
    if config.base_root is None or (config.base_root / name).is_dir():
        return config.base_root is not None or folder.is_dir()
    return _has_restored(config, git)


def _has_restored(config: Config, git: Git) -> bool:
    """True if the file store's folder has records that no commit has."""
    folder = str(config.root / config.file.baseline.folder)
    restored = git.ask("ls-files", "-z", "--others", "--", folder) if git.is_repository() else None
    return any(name.endswith(SUFFIX) for name in (restored or "").split("\0"))


def is_lost(config: Config, environment: Mapping[str, str]) -> bool:
    """True if stored records are gone with the CI job: they are in a folder of its clone that nobody has committed."""
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

    A change could edit a folder that is committed, or bring one: under a base's rules it is read as the base commit has
    it. What no commit has is the job's, as from a cache. Raises ConfigError where both are in one folder.
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
