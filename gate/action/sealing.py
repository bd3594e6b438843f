"""Seals a repository: fixes everything that git reads of it before untrusted code runs next to the gate.

A change's `setup` and agent may write anything to the repository's configuration, hooks, index and refs, and to the
configuration of the user that they run as. So the gate reads the repository through its own git directory outside the
workspace. Refs, index and the few settings that describe the work tree are copied; the objects, which are named by the
digests of their content, are shared. Remotes and their credentials are read here, once.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from gate.system.git import Git, Sealed, absolute, program

_DESCRIBING = re.compile(
    r"core\.(?:filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|safecrlf|sparsecheckout(?:cone)?|longpaths)"
    r"|extensions\.(?:objectformat|partialclone)|remote\..+\.(?:promisor|partialclonefilter)"
)
"""Settings of the repository that describe its work tree and its objects; none can run a program."""
_WORD = re.compile(r"[\w.:=+-]{0,200}")
_NETWORK = re.compile(r"http\..*")
"""Settings for reaching a server, including the header to sign in with."""
_COPIED = ("shallow", "index", "info/exclude", "info/attributes", "info/sparse-checkout")


def seal(git: Git, folder: Path) -> Sealed:
    """Return the repository in its present state, to be read through a git directory in ``folder``, which is empty.

    Raises:
        GitError: git refuses access, or the repository cannot be read.
    """
    path = absolute(git.environment.get("PATH"))
    if not git.is_repository() or git.text("rev-parse", "--is-inside-work-tree") != "true":
        return Sealed(program=program(path), path=path)
    settings = _settings(git)
    remotes = {}
    for name in git.text("remote").splitlines():
        remotes[name] = git.text("remote", "get-url", name)
    _copy(git, folder)
    _write_config(folder, settings, remotes)
    return Sealed(
        program=program(path),
        path=path,
        folder=str(folder),
        top=str(git.top()),
        machine=str(folder / "machine"),
        remotes=remotes,
        network=tuple((key, value) for key, value in settings if _NETWORK.fullmatch(key)),
        is_partial=any(key.endswith(".promisor") or key == "extensions.partialclone" for key, _ in settings),
    )


def _settings(git: Git) -> list[tuple[str, str]]:
    """Return every setting that applies, in order: those of the machine, the user, the repository, the environment."""
    said = os.fsdecode(git.run("config", "--list", "-z", environment=git.signing))
    settings = []
    for entry in said.split("\0"):
        key, newline, value = entry.partition("\n")
        if entry:
            settings.append((key, value if newline else "true"))
    return settings


def _copy(git: Git, folder: Path) -> None:
    """Copy refs, index and lists of paths unchanged; the objects stay in the repository."""
    for name in ("objects/info", "refs", "info"):
        (folder / name).mkdir(parents=True)
    (folder / "objects/info/alternates").write_bytes(os.fsencode(_path(git, "objects")) + b"\n")
    head = git.resolve("HEAD")
    (folder / "HEAD").write_text(f"{head}\n" if head else "ref: refs/heads/unborn\n", encoding="ascii")
    (folder / "packed-refs").write_bytes(_refs(git))
    for name in _COPIED:
        with suppress(FileNotFoundError):
            shutil.copyfile(_path(git, name), folder / name)
    for shared in Path(_path(git, "index")).parent.glob("sharedindex.*"):
        shutil.copyfile(shared, folder / shared.name)
    branch = git.ask("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD")
    if branch is not None:
        (folder / "refs/remotes/origin").mkdir(parents=True)
        (folder / "refs/remotes/origin/HEAD").write_text(f"ref: {branch}\n", encoding="utf-8")


def _path(git: Git, name: str) -> str:
    return git.text("rev-parse", "--path-format=absolute", "--git-path", name)


def _refs(git: Git) -> bytes:
    """Return all refs except replacements and symbolic ones, in git's packed format."""
    said = git.run("for-each-ref", "--sort=refname", "--format=%(symref)%09%(objectname) %(refname)")
    packed = []
    for line in said.split(b"\n"):
        stands_for_itself = line.startswith(b"\t")
        if stands_for_itself and b" refs/replace/" not in line:
            packed.append(line[1:] + b"\n")
    return b"".join(packed)


def _write_config(folder: Path, settings: Iterable[tuple[str, str]], remotes: Mapping[str, str]) -> None:
    kept = {}
    for key, value in settings:
        if _DESCRIBING.fullmatch(key) and _WORD.fullmatch(value):
            kept[key] = value
    version = "1" if any(key.startswith("extensions.") for key in kept) else "0"
    known = {f"remote.{name}.url": url for name, url in remotes.items()}
    lines = _lines({"core.repositoryformatversion": version, "core.bare": "false", **kept, **known})
    (folder / "config").write_text("".join(lines), encoding="utf-8", errors="surrogateescape")
    # The only machine-wide setting: git's local servers check who owns the folder.
    (folder / "machine").write_text("[safe]\n\tdirectory = *\n", encoding="ascii")


def _lines(settings: Mapping[str, str]) -> Iterable[str]:
    for key, value in settings.items():
        section, _, rest = key.partition(".")
        below, _, name = rest.rpartition(".")
        title = f'{section} "{_escaped(below)}"' if below else section
        yield f'[{title}]\n\t{name} = "{_escaped(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
