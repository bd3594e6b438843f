"""Finds the file of a custom metric's module without importing it, and recognises the gate's own modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from msgspec import Struct

from gate.errors import ConfigError


class Folders(Struct, frozen=True):
    """The folders that hold the modules of custom metrics."""

    own: str = ""
    """The configuration's folder."""
    base: str = ""
    """The configuration's folder at the base commit, searched first; empty if there is no base."""
    paths: tuple[str, ...] = ()
    """More folders of the agent, relative to either of these."""

    def find(self, path: str, *, in_agent: bool) -> tuple[str, bytes | None]:
        """Return the folder to import a custom metric from, and its module's content; None if no file is found."""
        for folder in (self.base, self.own):
            if not folder:
                continue
            found = self.file_of(path, folder, in_agent=in_agent)
            if found is not None:
                return folder, found.read_bytes()
        return self.own, None

    def file_of(self, path: str, folder: str, *, in_agent: bool) -> Path | None:
        """Return the file that a custom metric's module would be imported from, given the folder; None if there is
        none."""
        if in_agent:
            return source_of(path, [folder, *(str(Path(folder) / inner) for inner in self.paths)])
        return source_of(path, searched(folder, self.hidden_from(folder)))

    def hidden_from(self, folder: str) -> str:
        """Return the change's own folder, if a custom metric comes from another."""
        if folder == self.own:
            return ""
        return self.own


def searched(folder: str, hidden: str = "") -> list[str]:
    """Return the folders to search for a custom metric; the user's is last, so that it cannot replace an installed
    module.

    ``hidden`` is left out, even if it is on Python's own path, as the working directory is.
    """
    found = [place for place in sys.path if place and not (hidden and Path(place).resolve() == Path(hidden))]
    if folder and folder not in found:
        found.append(folder)
    return found


def source_of(path: str, places: Sequence[str]) -> Path | None:
    """Return the file of a custom metric's module in the first folder that has it; None if none has."""
    importlib.invalidate_caches()
    found = None
    for name in split(path)[0].split("."):
        found = PathFinder.find_spec(name, places)
        if found is None:
            return None
        places = list(found.submodule_search_locations or ())
    if found is None or not found.has_location or not found.origin:
        return None
    return Path(found.origin)


def split(path: str) -> tuple[str, str]:
    """Return module and attribute of ``module:attribute``, or of google-adk's ``module.attribute``. Raises
    ConfigError."""
    module_name, colon, attribute = path.partition(":")
    if not colon:
        module_name, _, attribute = path.rpartition(".")
    if not module_name or not attribute:
        raise ConfigError(f"{path!r} names no metric", hint="write module:attribute")
    return module_name, attribute


def namesake(needed: str, folders: Sequence[Path]) -> Path | None:
    """Return the user's own ``gate/`` or ``gate.py``, if it may be why importing the module ``needed`` failed."""
    if needed.partition(".")[0] != "gate":
        return None
    ours = Path(__file__).parents[2]
    places = [folder / name for folder in folders for name in ("gate", "gate.py")]
    return next((place for place in places if place.exists() and place.resolve() != ours), None)
