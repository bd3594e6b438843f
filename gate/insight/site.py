"""Makes the dashboard of a history and writes its files."""

from __future__ import annotations

import re
from pathlib import Path

from gate.errors import ConfigError, MeasureError
from gate.histories.trends import Histories
from gate.reports.html.site import site
from gate.security import files
from gate.system.clock import now


def commit_link(remote: str) -> str:
    """Return the host's URL of a commit, with ``{commit}`` as a placeholder; empty for an unknown kind of host."""
    found = _REMOTE.fullmatch(remote)
    if found is None:
        return ""
    between = "-/commit" if "gitlab" in found["host"] else "commit"
    return f"https://{found['host']}/{found['path']}/{between}/{{commit}}"


_REMOTE = re.compile(
    r"(?:https://|git@|ssh://git@)(?P<host>(?:[\w-]+\.)*(?:github|gitlab)[\w.-]*)[:/](?P<path>[\w./-]+?)(?:\.git)?/?"
)


def write_site(found: Histories, folder: Path, *, commits: str = "") -> list[Path]:
    """Write the pages, badges and data into a folder, which may hold other files. Return the files written.

    Args:
        found: the histories to show.
        folder: created if missing.
        commits: see `site`.

    Raises:
        ConfigError: the folder's path contains a symbolic link.
        MeasureError: a file cannot be written.
    """
    written = []
    for name, content in site(found, commits=commits, made=now().timestamp()).items():
        path = folder / name
        try:
            files.write_text(path, content)
        except files.LinkError as problem:
            raise ConfigError(f"the dashboard cannot be written: {problem.strerror}", where=str(folder)) from None
        except OSError as problem:
            raise MeasureError(f"the dashboard cannot be written: {problem.strerror}", where=str(path)) from None
        written.append(path)
    return written
