"""The files of a repository, read within bounds. Nothing is imported or run, and links are not followed.

The content is untrusted: text that does not parse is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gate.agents.requirements import MOST_BYTES
from gate.errors import GateError
from gate.formats.documents import parse_document

MOST_FILES, DEEPEST = 20_000, 8
"""Maximum numbers of files to list, and of nested folders."""
MOST_TEXT, MOST_DATA = 20_000_000, 2_000_000
"""Maximum number of bytes to read of all files together, and to parse as YAML and JSON: it takes a few seconds."""
PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages", "build", "dist", "target", "vendor"})


class Tree:
    """The files below a folder, by their paths relative to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = dict.fromkeys(files_below(root))
        """In a fixed order."""
        self._left, self._left_to_parse = MOST_TEXT, MOST_DATA
        self._read: dict[Path, str] = {}

    def text(self, path: Path) -> str:
        """Return the beginning of a file; empty if it is unreadable, or if too much has been read."""
        if path in self._read:
            return self._read[path]
        try:
            with (self.root / path).open("rb") as file:
                found = file.read(min(MOST_BYTES, self._left))
        except OSError:
            return ""
        self._left -= len(found)
        return self._read.setdefault(path, found.decode("utf-8", "replace"))

    def document(self, path: Path) -> Any:
        """Return the content of a file in YAML or JSON; None if it is neither, or if too much has been parsed."""
        text = self.text(path) if self._left_to_parse > 0 else ""
        self._left_to_parse -= len(text)
        try:
            return parse_document(text, path.as_posix())
        except GateError:
            return None

    def import_name(self, path: Path) -> tuple[str, str] | None:
        """Return the import name of a module, and the folder to import it from, empty for the root; None without a
        name."""
        top = path.parent
        while top.parts and top / "__init__.py" in self.files:
            top = top.parent
        parts = path.relative_to(top).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if not parts or not all(part.isidentifier() for part in parts):
            return None
        return ".".join(parts), top.as_posix() if top.parts else ""


def files_below(root: Path) -> Iterator[Path]:
    """Yield the plain files below a folder, relative to it, but none of hidden folders and installed packages."""
    listed = 0
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        depth = len(here.relative_to(root).parts)
        folders[:] = sorted(name for name in folders if depth < DEEPEST and _is_entered(here / name))
        for name in sorted(names):
            if listed >= MOST_FILES:
                return
            if not (here / name).is_symlink() and (here / name).is_file():
                listed += 1
                yield (here / name).relative_to(root)


def _is_entered(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name in PASSED_OVER
    return not (hidden or folder.is_symlink() or (folder / "pyvenv.cfg").exists())
