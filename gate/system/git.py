"""A thin layer over the git executable, which trusts neither the repository nor the user's habits.

Never prompts, never waits forever, never runs hooks or a file-system monitor, and never writes to the index. The
executable is an absolute path. Revisions and remotes are checked before they reach a command line. Credentials are
passed only in the environment (`with_header`) of commands that use the network.

On a developer's machine the user's own git configuration applies. If untrusted code runs next to the gate, git is
`Sealed`: see `gate.action.sealing`.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from gate.errors import ConfigError, GateError
from gate.model.defaults import REMOTE
from gate.security.environment import in_ci, is_withheld
from gate.security.limits import MAX_DOCUMENT_BYTES, shorten
from gate.security.redact import redact
from gate.system.child import run
from gate.system.own_files import holds_only_own_files, is_own_file
from gate.system.temporary import TemporaryFolder

TIMEOUT = 120.0
"""Seconds for one command."""
_NEUTRAL = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.detachedHead=false",
    "diff.autoRefreshIndex=true",  # or a file that was merely touched would count as changed
    "diff.relative=false",
    "safe.bareRepository=explicit",  # or a folder of the change could pass for a repository
    "protocol.ext.allow=never",
)
_UNTOUCHED = (
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.commitGraph=false",  # it is a separate file, which may lie about history
    "core.multiPackIndex=false",
    "diff.ignoreSubmodules=dirty",  # git would run in each of them, under its configuration
    "credential.helper=",
)
"""Settings for a sealed repository, since the change may have written anything else that git would read."""
_POINTERS = (
    "filter.lfs.required=false",
    "filter.lfs.smudge=",
    "filter.lfs.clean=",
    "filter.lfs.process=",
)
"""Settings if git-lfs is not installed: if it is configured, git would refuse any command that touches a file in LFS.
With these, git sees what it stores itself: a pointer of a few lines."""
_POINTER = b"version https://git-lfs.github.com/spec/"
_DROPPED = re.compile(
    "GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|NAMESPACE|PREFIX"
    "|EXTERNAL_DIFF|TRACE.*|SHALLOW_FILE|REPLACE_REF_BASE)"
)
"""Set in hooks and for debugging; each would point a command at another repository, or make it print secrets."""
_FIXED = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
    "LANGUAGE": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GCM_INTERACTIVE": "never",
}
_PROTOCOLS = "file:git:http:https:ssh"
_LET_THROUGH = re.compile(
    r"(?:HOME|TMPDIR|TZ|SSH_AUTH_SOCK|SSL_CERT_(?:FILE|DIR)|GIT_SSL_\w+|GIT_HTTP_\w+|GIT_SSH(?:_COMMAND|_VARIANT)?"
    r"|GIT_(?:AUTHOR|COMMITTER)_\w+|(?i:https?_proxy|no_proxy|all_proxy))"
)
"""The variables that a sealed git sees: paths and how to reach the network, and no secrets."""
_LOCAL = re.compile(
    r"HOME|TMPDIR|TZ|PATH|USER|LOGNAME|XDG_\w+|LC_\w+|LANG\w*|LD_LIBRARY_PATH|GCM_INTERACTIVE|SYSTEMROOT"
    r"|GIT_(?:ALLOW_PROTOCOL|CEILING_DIRECTORIES|DISCOVERY_\w+|CONFIG_\w+|EXEC_PATH|TEMPLATE_DIR|ATTR_NOSYSTEM"
    r"|AUTHOR_\w+|COMMITTER_\w+|NO_REPLACE_OBJECTS|TERMINAL_PROMPT|OPTIONAL_LOCKS|PAGER)"
)
"""The variables that commands without a network see in a CI job."""
_ONLINE = ("fetch", "push", "ls-remote")
_READING = ("cat-file", "diff", "log", "ls-tree", "merge-base", "rev-list", "rev-parse", "status", "worktree")
"""Commands that fetch missing objects in a partial clone."""
_PARTIAL = r"^(extensions\.partialclone|remote\..+\.promisor)$"
"""The settings that make a clone partial."""
_DEEPENING = (50, 200, 1000, 5000)
_NAMES = ("--name-only", "-z", "--no-renames", "--no-ext-diff")
"""Options of `git diff` for the names of files alone."""
_MOST_CHECKED_OUT = 50
"""The newest moves of HEAD to look at."""
_SUFFIX = re.compile(r"[~^]|@\{")
"""Begins what follows a name in a revision, such as ``main~3``."""
COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class GitError(GateError):
    """A git command failed; callers that know its purpose raise their own kind of error."""

    def __init__(self, what: str, *, where: str = "", hint: str = "", output: str = "", is_local: bool = False) -> None:
        super().__init__(what, where=where, hint=hint)
        self.output = output
        """The output of git, redacted."""
        self.is_local = is_local
        """True if the command works without a network."""


class Sealed(Struct, frozen=True):
    """A repository as it was before untrusted code ran next to it; passed in the environment as `SEALED`.

    Git then knows only this repository: the configuration of the user, the machine and the repository is not read.
    """

    program: str = ""
    """The executable, an absolute path; empty if there is none."""
    path: str = ""
    """The folders to search for programs."""
    folder: str = ""
    """The git directory, which belongs to the gate; empty if there is no repository."""
    top: str = ""
    """The work tree; empty for a bare repository."""
    machine: str = ""
    """The file that replaces the machine's configuration; empty for none."""
    remotes: Mapping[str, str] = {}
    """Name → URL."""
    network: tuple[tuple[str, str], ...] = ()
    """Settings (key, value) of commands that use the network, including credentials."""
    is_partial: bool = False
    """True if objects may be missing, which git fetches when it needs them."""


SEALED = "INPUT_GIT"
"""The variable that holds a `Sealed`; its name keeps it from being passed on to anyone."""


MAX_SUBJECT = 120
"""The most characters of a commit's first line, or of a branch's name."""
_MADE_BY_HOST = re.compile(r"Merge [0-9a-f]{40} into [0-9a-f]{40}")


class Git:
    """The repository that contains the folder ``root``, which need not be its top."""

    def __init__(self, root: Path, *, environment: Mapping[str, str], timeout: float = TIMEOUT) -> None:
        self.root = root
        self.timeout = timeout
        self.sealed = _sealed_in(environment)
        self._partial: bool | None = None
        self._in_ci = in_ci(environment)
        if self.sealed is None:
            kept = {}
            for name, value in environment.items():
                if not _DROPPED.fullmatch(name) and (name.startswith("GIT_CONFIG_") or not is_withheld(name)):
                    kept[name] = value
            self.program = program(environment.get("PATH"))
            self.environment, self.signing = _parted({"GIT_ALLOW_PROTOCOL": _PROTOCOLS, **kept, **_FIXED})
            self.has_lfs = shutil.which("git-lfs", path=self.environment.get("PATH")) is not None
            if self._in_ci:  # an agent may look into every other process
                for name in [name for name in self.environment if not _LOCAL.fullmatch(name)]:
                    self.signing.setdefault(name, self.environment.pop(name))
        else:
            self.program = self.sealed.program
            self.environment = _sealed_environment(self.sealed, root, environment)
            self.signing = {}
            if any(url.startswith(("http://", "https://")) for url in self.sealed.remotes.values()):
                self.signing = _numbered(self.sealed.network)
            self.has_lfs = False  # its filters are programs
            self._partial = self.sealed.is_partial
        # Cached because the answers never change once known, and each costs a process.
        self._prefix: str | None = None
        self._object_format = ""
        self._is_whole = False
        self._commits: set[str] = set()

    def scratch(self, folder: Path, remote: str, *, token: str = "", server: str = "") -> Git:
        """Return an empty repository in ``folder`` with one remote, ``origin``: the one called ``remote`` here.

        Signs in with ``token`` if the remote is on ``server``, else as this repository does.
        """
        url = self.remote_url(remote)
        if "://" not in url and (self.root / url).exists():
            url = str((self.root / url).resolve())
        header = None
        if token and f"{url}/".startswith(f"{server.rstrip('/')}/"):
            header = token_header(token)
        if self.sealed is not None:
            network = self.sealed.network
            if header is not None:
                network = _with_header(network, url, header)
            sealed = msgspec.structs.replace(
                self.sealed, folder=str(folder), top="", remotes={"origin": url}, network=network, is_partial=True
            )
            clone = Git(folder, environment={**self.environment, SEALED: encode_sealed(sealed)}, timeout=self.timeout)
        else:
            environment = self._signed_in(url, header)
            clone = Git(folder, environment=environment, timeout=self.timeout)
            clone.environment["GIT_DIR"] = str(folder)
            clone._partial = True
        form = []
        if self.is_repository() and self._object_format == "sha256":  # both must have the same
            form = ["--object-format=sha256"]
        clone.run("init", "--quiet", "--bare", "--template=", *form, str(folder))
        clone.run("config", "remote.origin.url", url)
        return clone

    def _signed_in(self, url: str, header: str | None) -> dict[str, str]:
        """Return the environment in which another of the user's repositories reaches this URL as this one does."""
        environment = {**self.environment, **self.signing}
        if self.is_repository():
            ssh = self.ask("config", "--get", "core.sshCommand")
            if ssh and "GIT_SSH_COMMAND" not in environment:
                environment["GIT_SSH_COMMAND"] = ssh
            header = header or self.header_for(url)
        if header is None:
            return environment
        return with_header(environment, url, header)

    # --- running --------------------------------------------------------------------------------

    def run(self, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> bytes:
        """Return the output of ``git arguments``. Raises `GitError` if it fails or takes too long."""
        status, output, errors = self._call(arguments, stdin, environment or {})
        if status != 0:
            raise self._failed(arguments, errors)
        return output

    def text(self, *arguments: str) -> str:
        """Like `run`, decoded and without the final newline."""
        return os.fsdecode(self.run(*arguments)).removesuffix("\n")

    def entries(self, *arguments: str) -> list[str]:
        """Like `run`, for output in which a null byte ends each entry (``-z``)."""
        return [os.fsdecode(entry) for entry in self.run(*arguments).split(b"\0") if entry]

    def ask(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str | None:
        """Like `text`, but None if git answers with exit code 1, its "no"."""
        status, output, errors = self._call(arguments, b"", environment or {})
        if status == 1:
            return None
        if status != 0:
            raise self._failed(arguments, errors)
        return os.fsdecode(output).removesuffix("\n")

    def _call(self, arguments: Sequence[str], stdin: bytes, extra: Mapping[str, str]) -> tuple[int, bytes, str]:
        if not self.program:
            raise GitError("git is not in an absolute folder of PATH", where=str(self.root))
        settings = list(_NEUTRAL)
        if not self.has_lfs:
            settings += _POINTERS
        if self.sealed is not None:
            settings += _UNTOUCHED
        command = [self.program]
        for setting in settings:
            command += ["-c", setting]
        command += arguments
        environment = dict(self.environment)
        if self.signing and self._signs_in(_command_of(arguments)):
            environment |= self.signing
        environment |= extra
        try:
            status, output, errors = run(
                command, environment=environment, cwd=self.root, stdin=stdin, seconds=self.timeout
            )
        except TimeoutError:
            raise GitError(f"git {arguments[0]} took longer than {self.timeout:g} s", where=str(self.root)) from None
        except OSError as problem:
            raise GitError(f"git cannot be run: {problem.strerror}", where=str(self.root)) from None
        return status, output, redact(errors.decode("utf-8", "replace").strip())

    def _signs_in(self, command: str) -> bool:
        """True if a command may use the network, and so needs the credentials."""
        if command in _ONLINE or (command == "worktree" and self.has_lfs):  # which fetches files in LFS
            return True
        return command in _READING and self._is_partial()

    def _is_partial(self) -> bool:
        """True if the clone lacks objects, which git fetches when it needs them."""
        if self._partial is None:
            try:
                self._partial = self.ask("config", "--get-regexp", _PARTIAL) is not None
            except GitError:  # the command that asks for this says so
                return False
        return self._partial

    def _failed(self, arguments: Sequence[str], said: str) -> GitError:
        reason = next((line for line in said.splitlines() if line.startswith(("fatal:", "error:"))), said)
        hint = ""
        if "dubious ownership" in said:
            reason = "git refuses the folder, which belongs to another user"
            hint = "git config --global --add safe.directory with its path, or run as its owner"
        if "cannot use bare repository" in said:
            reason = "the folder has the files of a git repository in it, which git would take for the whole"
            hint = "remove HEAD, objects and refs from it"
        what = f"git {arguments[0]} failed: {shorten(reason, 300)}"
        is_local = not self._signs_in(_command_of(arguments))
        return GitError(what, where=str(self.root), hint=hint, output=shorten(said, 2000), is_local=is_local)

    # --- questions ------------------------------------------------------------------------------

    def is_repository(self) -> bool:
        """True if there is a repository and a git to read it. Raises `GitError` if git refuses to look."""
        try:
            self.prefix()
        except GitError as error:
            if "not a git repository" in error.output or not error.output:
                return False
            raise
        return True

    def prefix(self) -> str:
        """Return the root's path from the top of the work tree, empty at the top. Raises `GitError` outside a
        repository."""
        if self._prefix is None:
            said = self.text("rev-parse", "--is-shallow-repository", "--show-object-format", "--show-prefix")
            shallow, self._object_format, self._prefix = said.split("\n", 2)
            self._is_whole = shallow == "false"
        return self._prefix

    def is_out_of_reach(self) -> bool:
        """True if there seems to be a repository but no git to read it."""
        return not self.program and (repository_above(self.root.resolve()) / ".git").exists()

    def resolve(self, revision: str) -> str | None:
        """Return the id of the commit that a revision names; None if it names none that the repository has.

        Raises:
            ConfigError: it names several, as a tag and a branch: git would take the tag, which a change may bring.
        """
        if revision in self._commits:
            return revision
        if not is_revision(revision):
            return None
        self._check_unambiguous(revision)
        found = self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if found is not None:
            self._commits.add(found)
        return found

    def _check_unambiguous(self, revision: str) -> None:
        """Raise ConfigError if a revision begins with a name that tags and branches use for different commits: also a
        branch that only a remote has, since a job's clone often lacks its own."""
        name = _SUFFIX.split(revision, maxsplit=1)[0]
        if name in ("", "HEAD") or name.startswith("refs/") or COMMIT_ID.fullmatch(name):
            return
        refs = [f"refs/{kind}/{name}" for kind in ("tags", "heads", "remotes")]
        form = "--format=%(refname)%09%(objectname)%09%(*objectname)"
        found, far = {}, {}
        for line in self.text("for-each-ref", form, *refs, f"refs/remotes/*/{name}").splitlines():
            ref, target, annotated = line.split("\t")
            if ref in refs:  # a pattern also matches whatever is below it
                found[ref] = annotated or target
            elif ref.startswith("refs/remotes/") and ref.endswith(f"/{name}"):
                far[ref] = target
        if refs[1] not in found and refs[0] in found:  # a branch here may well be older than the remote's
            found |= far
        if len(set(found.values())) > 1:
            hint = f"write {' or '.join(sorted(found))}"
            raise ConfigError(f"{revision!r} names several commits", where=str(self.root), hint=hint)

    def head(self) -> str | None:
        """Return the commit of the work tree; None before the first commit and outside any repository."""
        return self.resolve("HEAD") if self.is_repository() else None

    def dirty(self, *, exclude: Sequence[str] = ()) -> bool:
        """True if any file is `changed`."""
        return bool(self.changed(exclude=exclude))

    def changed(self, *, exclude: Sequence[str] = ()) -> list[str]:
        """Return the tracked files that differ from HEAD, and untracked ones below the root; names start from the top.

        ``exclude`` are paths relative to the root that do not count, such as the folder of records. Untracked reports,
        records, bytecode folders and virtual environments do not count, either, nor do records and reports outside of
        the root. Files in LFS are ignored if git-lfs is not installed: their content would look like a change.
        """
        found = []
        for status, name in self._status(
            "--untracked-files=normal", "--", *self._all_but(exclude), *self._no_pointers()
        ):
            is_inside, is_tracked = name.startswith(self.prefix()), status != "??"
            if (is_inside and is_tracked) or ((is_inside or is_tracked) and not self._is_generated(name)):
                found.append(name)
        return found

    def not_in_commits(self, *, exclude: Sequence[str] = ()) -> list[str]:
        """Return the files and folders below the root that git does not track or ignores, which another work tree of
        the same commit lacks; names start from the root.

        ``exclude`` are paths relative to the root. Caches, what an editable install leaves, and what `changed` leaves
        out are left out here, too.
        """
        found = []
        for status, name in self._status("--ignored=matching", "--untracked-files=normal", "--", "."):
            if status in ("??", "!!") and not self._is_generated(name):
                here = os.path.relpath(name, self.prefix() or ".") + "/" * name.endswith("/")
                is_excluded = any(here.startswith(f"{one}/") for one in exclude)
                is_made_anew = here.endswith(".egg-info/") or (self.root / here / "CACHEDIR.TAG").exists()
                if not is_excluded and not is_made_anew:
                    found.append(here)
        return found

    def _status(self, *arguments: str) -> Iterator[tuple[str, str]]:
        """Yield the status and the name of each file or folder, as ``git status`` prints them."""
        entries = iter(self.entries("status", "--porcelain", "-z", *arguments))
        for entry in entries:
            status, name = entry[:2], entry[3:]
            if "R" in status or "C" in status:
                next(entries)  # the former name
            yield status, name

    def _is_generated(self, name: str) -> bool:
        """True if Python or the gate generates this file or folder when run; the name is relative to the top."""
        path = self.root / os.path.relpath(name, self.prefix() or ".")
        if path.is_dir() and not path.is_symlink():
            return path.name == "__pycache__" or (path / "pyvenv.cfg").is_file() or holds_only_own_files(path)
        return is_own_file(path)

    def differing(self, commit: str) -> list[str]:
        """Return the tracked files of the whole work tree that differ from a commit's; names start from the top."""
        return self.entries("diff", *_NAMES, checked_revision(commit), "--")

    def no_longer_as_in(self, commit: str, other: str = "", *, exclude: Sequence[str] = ()) -> list[str]:
        """Return the files of a commit that another one, or else the whole work tree, does not have as they are there;
        names start from the top. ``exclude``, and files in LFS: see `changed`."""
        sides, paths = [checked_revision(commit)], self._all_but(exclude)
        if other:
            sides.append(checked_revision(other))
        else:
            paths += self._no_pointers()
        return self.entries("diff", *_NAMES, *sides, "--diff-filter=a", "--", *paths)  # none that only the second has

    def checked_out_since(self, at: float) -> list[str]:
        """Return the commits at which HEAD was after ``at`` (Unix time), as far as git has logged that: by a checkout,
        a reset, a rebase."""
        found = []
        form = ("--no-show-signature", "--date=unix", "--format=%H%x09%gd", f"--max-count={_MOST_CHECKED_OUT}")
        for line in self.text("log", "--walk-reflogs", *form, "HEAD", "--").splitlines():
            commit, place = line.split("\t", 1)
            time = re.search(r"@\{(\d+)\}", place)
            if time is not None and int(time[1]) > at:
                found.append(commit)
        return found

    def _all_but(self, exclude: Sequence[str]) -> list[str]:
        """Return the paths for a git command on the whole work tree, but not on these paths relative to the root."""
        inside = [path for path in exclude if not path.startswith(("/", ".."))]
        return [":/", *(f":(exclude,literal){path}" for path in inside)]

    def _no_pointers(self) -> list[str]:
        """Return the path that leaves out files in LFS, if git-lfs is not installed."""
        return [] if self.has_lfs else [":(exclude,attr:filter=lfs)"]

    def tracked_in(self, folder: Path) -> str | None:
        """Return a tracked file in a folder, or one in the place of a folder on the way to it: a link, another
        repository.

        The name starts from the top; None if there is none, and for a folder outside the work tree.
        """
        if not self.is_repository():
            return None
        place = os.path.normpath(Path(self.prefix()) / os.path.relpath(folder, self.root))
        if place.startswith(".."):
            return None
        whole = f"{place}/"
        for name in self.entries("ls-files", "-z", "--full-name", "--", f":(top,literal){place.split('/')[0]}"):
            if name.startswith(whole) or whole.startswith(f"{name}/"):
                return name
        return None

    def has_only_pointers(self) -> bool:
        """True if files in LFS have their content here but would be mere pointers in another work tree."""
        if self.has_lfs:
            return False
        names = self.entries("ls-files", "-z", "--", ":(attr:filter=lfs)")
        return not all(_is_pointer(self.root / name) for name in names)

    def subject(self, commit: str) -> str:
        """Return the first line of a commit's message; for a host's merge of a change, that of the change."""
        said = self.text("log", "--max-count=1", "--format=%s", checked_revision(commit), "--")
        if _MADE_BY_HOST.fullmatch(said):
            parents = self.parents(commit)
            if len(parents) == 2:
                said = self.text("log", "--max-count=1", "--format=%s", parents[1], "--")
        return said[:MAX_SUBJECT]

    def branch(self) -> str:
        """Return the branch that is checked out; empty if a commit is."""
        return (self.ask("symbolic-ref", "--quiet", "--short", "HEAD") or "")[:MAX_SUBJECT]

    def parents(self, commit: str) -> list[str]:
        """Return the parents' ids, first parent first; none for a root commit."""
        return self.text("rev-list", "--parents", "--max-count=1", checked_revision(commit), "--").split()[1:]

    def first_parents(self, commit: str, limit: int = 100) -> list[str]:
        """Return the commit and its first-parent ancestors, newest first, at most ``limit``, as far as history is
        local."""
        count = f"--max-count={limit}"
        return self.text("rev-list", "--first-parent", count, checked_revision(commit), "--").split()

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the best common ancestor; None if none is known locally, as in a shallow clone."""
        first, second = self.resolve(one), self.resolve(other)
        if first is None or second is None:
            return None
        if first == second:
            return first
        return self.ask("merge-base", first, second)

    def is_ancestor(self, ancestor: str, commit: str) -> bool:
        first, second = self.resolve(ancestor), self.resolve(commit)
        if first is None or second is None:
            return False
        return first == second or self.ask("merge-base", "--is-ancestor", first, second) is not None

    def is_elsewhere(self, commit: str, head: str) -> bool:
        """True if a commit is on a branch but not in the history of ``head``; a replaced commit is on none."""
        found = self.resolve(commit)
        if found is None or self.is_ancestor(found, head):
            return False
        return bool(self.text("for-each-ref", "--count=1", f"--contains={found}", "refs/heads", "refs/remotes"))

    def is_shallow(self) -> bool:
        """True if history is cut off, until the rest is fetched; `fetch` never cuts off local history."""
        if not self._is_whole:
            self._is_whole = self.text("rev-parse", "--is-shallow-repository") == "false"
        return not self._is_whole

    def default_branch(self, remote: str = REMOTE) -> str | None:
        """Return the remote's default branch, as known locally or else by asking the remote; None if neither knows.

        In CI the remote is asked first: a work tree that is kept there may be older than the branch's name.
        """
        prefix = f"refs/remotes/{checked_remote(remote)}/"
        known = self.ask("symbolic-ref", "--quiet", f"{prefix}HEAD")
        if known is not None and self.resolve(known) is None:  # it was renamed after this clone was made
            known = None
        if known is not None and not self._in_ci:
            return known.removeprefix(prefix)
        try:
            said = self.text("ls-remote", "--symref", "--", remote, "HEAD")
        except GitError:
            said = ""
        found = re.match(r"ref: refs/heads/(\S+)\tHEAD", said)
        if found:
            return found[1]
        return known.removeprefix(prefix) if known is not None else None

    def remote_tip(self, branch: str, *, remote: str = REMOTE, depth: int | None = None) -> str | None:
        """Ask the remote for the newest commit of a branch, and fetch it as `fetch` does; None if there is no such
        branch."""
        ref = f"refs/heads/{checked_revision(branch)}"
        # The remote also lists refs that end in this name, such as refs/x/refs/heads/main.
        for line in self.text("ls-remote", "--", checked_remote(remote), ref).splitlines():
            commit, _, name = line.partition("\t")
            if name == ref:
                if self.resolve(commit) is None:
                    self.fetch(commit, remote=remote, depth=depth)
                return commit
        return None

    def tags(self, *, merged: str | None = None) -> list[tuple[str, str]]:
        """Return the names and commits of tags, newest first by their own date; with ``merged`` only those in the
        history of that commit."""
        form = "--format=%(refname:strip=2)%09%(objecttype)%09%(objectname)%09%(*objecttype)%09%(*objectname)"
        command = ["for-each-ref", "--sort=-creatordate", form]
        if merged is not None:
            command.append(f"--merged={checked_revision(merged)}")
        found = []
        for line in self.text(*command, "refs/tags/").splitlines():
            name, kind, target, kind_of_annotated, annotated = line.split("\t")
            if "commit" in (kind, kind_of_annotated):
                found.append((name, annotated or target))
        return found

    def top(self) -> Path:
        """Return the work tree's folder, with links resolved. Raises `GitError` outside a repository."""
        return Path(os.path.realpath(self.text("rev-parse", "--show-toplevel")))

    def files(self) -> dict[str, str | None] | None:
        """Return the paths of the whole work tree that git tracks, or would add; None outside a repository.

        They are relative to the root: ``../src/x`` if they are not below it. The value is the pinned commit for a
        submodule, empty for any other tracked file, and None for an untracked one.
        """
        if not self.is_repository():
            return None
        untracked = self.entries("ls-files", "-z", "--others", "--exclude-standard", "--", ":/")
        found: dict[str, str | None] = dict.fromkeys(untracked)
        for entry in self.entries("ls-files", "-z", "--stage", "--", ":/"):
            about, name = entry.split("\t", 1)
            mode, blob, _ = about.split()
            found[name] = ""
            if mode == "160000":
                found[name] = blob
        return found

    def show(self, commit: str, path: str) -> bytes | None:
        """Return a file's content at a commit, by its path relative to the root; None if it does not exist there.

        Raises `GitError` for an unknown commit, and for files beyond the limit on documents.
        """
        if self.resolve(commit) is None:
            raise GitError(f"commit {commit} is not in this clone", where=str(self.root), hint=HINT_HISTORY)
        listed = self.run("ls-tree", "-z", "--long", checked_revision(commit), "--", path).split(b"\0")[0]
        fields = listed.split(b"\t")[0].split()
        if len(fields) != 4 or fields[1] != b"blob" or listed.split(b"\t", 1)[1] != os.fsencode(path):
            return None
        if int(fields[3]) > MAX_DOCUMENT_BYTES:
            raise GitError(f"{path} at {commit} is too large to read", where=str(self.root))
        return self.run("cat-file", "blob", fields[2].decode())

    def remote_url(self, remote: str) -> str:
        """Return the URL of a named remote; a URL or path is returned unchanged."""
        checked_remote(remote)
        if "/" in remote or ":" in remote:
            return remote
        if self.sealed is None:
            return self.text("remote", "get-url", remote)
        if remote not in self.sealed.remotes:
            raise GitError(f"No such remote {remote!r}", where=str(self.root))
        return self.sealed.remotes[remote]

    def header_for(self, url: str) -> str | None:
        """Return the HTTP header that this repository is configured to send to a URL, such as CI checkouts leave."""
        if not url.startswith(("http://", "https://")):
            return None
        return self.ask("config", "--get-urlmatch", "http.extraHeader", url, environment=self.signing) or None

    # --- more history ---------------------------------------------------------------------------

    def fetch(self, commit: str, *, remote: str = REMOTE, depth: int | None = None) -> None:
        """Fetch a commit with its history or, in a shallow clone, ``depth`` commits of it. Moves no ref.

        In a full clone, ``depth`` is ignored: git would cut off local history there.
        """
        wanted = ["--", checked_remote(remote), checked_revision(commit)]
        if depth is not None and self.is_shallow():
            wanted.insert(0, f"--depth={depth}")
        self._fetch(*wanted)

    def common_history(self, one: str, other: str, *, remote: str = REMOTE) -> str | None:
        """Return the merge base, fetching more of a shallow history until it is found.

        Raises `GitError` if the remote does not provide it; returns None if the full history has no common commit.
        """
        for more in _DEEPENING:
            found = self.merge_base(one, other)
            if found is not None or not self.is_shallow():
                return found
            try:
                self._fetch(f"--deepen={more}", "--", checked_remote(remote), one, other)
            except GitError as error:
                what = "the history between the change and its base is not here, and could not be fetched"
                raise GitError(what, where=str(self.root), hint=HINT_HISTORY, output=error.output) from None
        return self.merge_base(one, other)

    def _fetch(self, *arguments: str) -> None:
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--refmap=")
        self.run("fetch", *quiet, *arguments)

    # --- another work tree ----------------------------------------------------------------------

    @contextmanager
    def worktree(self, commit: str, *, content: bool = False) -> Iterator[Path]:
        """Yield a temporary work tree of a commit, removed afterwards; the user's own is not touched.

        Submodules are not checked out, and no hook runs. Files in LFS are pointers, so that reading a configuration
        needs no download (a configuration in LFS cannot be read); with ``content``, they have their content if git-lfs
        is installed.
        """
        found = self.resolve(commit)
        if found is None:
            raise GitError(f"commit {commit} is not in this clone", where=str(self.root), hint=HINT_HISTORY)
        with TemporaryFolder("gate-base-") as folder:
            tree, environment = Path(folder) / "tree", {}
            if not content:
                environment["GIT_LFS_SKIP_SMUDGE"] = "1"
            self.run("worktree", "add", "--quiet", "--detach", "--", str(tree), found, environment=environment)
            try:
                yield tree
            finally:
                with suppress(GitError):
                    self.run("worktree", "remove", "--force", "--", str(tree))


HINT_HISTORY = "check out with fetch-depth: 0, or run git fetch --unshallow"


def repository_above(folder: Path) -> Path:
    """Return the nearest repository that a folder is in, without asking git; the folder itself if there is none."""
    for one in (folder, *folder.parents):
        if (one / ".git").exists():
            return one
    return folder


def _is_pointer(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:  # it was deleted, so its content is not here either
        return True


def is_revision(text: str) -> bool:
    """True if a text may name a commit, and cannot be mistaken for an option, a range or a path."""
    is_safe = bool(text) and not text.startswith("-") and ".." not in text
    return is_safe and not re.search(r"[\s\x00-\x1f\x7f:?*\[\\]", text)


def checked_revision(revision: str) -> str:
    """Return the revision if `is_revision`. Raises `GitError`."""
    if not is_revision(revision):
        raise GitError(f"not a revision: {shorten(revision, 100)!r}")
    return revision


def checked_remote(remote: str) -> str:
    """Return the remote's name, URL or path if it cannot be mistaken for an option or a helper program. Raises
    `GitError`."""
    if not remote or remote.startswith("-") or "::" in remote or re.search(r"[\x00-\x1f\x7f]", remote):
        raise GitError(f"not a remote: {shorten(redact(remote), 100)!r}")
    return remote


# --- the environment ------------------------------------------------------------------------------


def program(path: str | None) -> str:
    """Return the absolute path of git; empty if there is none. Folders given by a relative path are not searched."""
    return shutil.which("git", path=absolute(path)) or ""


def absolute(path: str | None) -> str:
    """Return a list of folders without relative ones, which depend on where a program is started."""
    folders = [folder for folder in (path or os.defpath).split(os.pathsep) if Path(folder).is_absolute()]
    return os.pathsep.join(folders) or os.devnull


def encode_sealed(sealed: Sealed) -> str:
    return msgspec.json.encode(sealed).decode()


def _sealed_in(environment: Mapping[str, str]) -> Sealed | None:
    found = environment.get(SEALED)
    if not found:
        return None
    return msgspec.json.decode(found, type=Sealed)


def _sealed_environment(sealed: Sealed, root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return git's environment: one repository, and the variables that match `_LET_THROUGH`."""
    folder, top = _place(sealed, root.resolve())
    kept = {name: value for name, value in environment.items() if _LET_THROUGH.fullmatch(name)}
    if top:
        kept["GIT_WORK_TREE"] = top
    return {
        **kept,
        **_FIXED,
        "GIT_DIR": folder,
        "PATH": sealed.path,
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": sealed.machine or os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
    }


def _place(sealed: Sealed, root: Path) -> tuple[str, str]:
    """Return the git directory and the work tree of a folder: the repository's own, or those of another work tree of
    it."""
    if not sealed.folder or not sealed.top or root.is_relative_to(sealed.top):
        return sealed.folder or os.devnull, sealed.top
    for known in Path(sealed.folder, "worktrees").glob("*/gitdir"):
        tree = Path(known.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n")).parent
        if root.is_relative_to(tree):
            return str(known.parent), str(tree)
    return os.devnull, ""


def _parted(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the environment without headers that hold credentials, and the variables that add them."""
    entries = _entries(environment)
    harmless = [entry for entry in entries if not entry[0].lower().endswith(".extraheader")]
    if len(harmless) == len(entries):
        return dict(environment), {}
    kept = {name: value for name, value in environment.items() if not _ENTRY.fullmatch(name)}
    return {**kept, **_numbered(harmless)}, _numbered(entries)


_MOST_ENTRIES = 1_000
_ENTRY = re.compile(r"GIT_CONFIG_(?:COUNT|KEY_\d+|VALUE_\d+)")


def _entries(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the git settings in the environment."""
    said = environment.get("GIT_CONFIG_COUNT", "")
    if not (said.isascii() and said.isdigit()):
        return []
    found = []
    for number in range(min(int(said), _MOST_ENTRIES)):
        key = environment.get(f"GIT_CONFIG_KEY_{number}", "")
        found.append((key, environment.get(f"GIT_CONFIG_VALUE_{number}", "")))
    return found


def _numbered(entries: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return settings in the form that git reads from its environment."""
    found = {"GIT_CONFIG_COUNT": str(len(entries))}
    for number, (key, value) in enumerate(entries):
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return found


def _command_of(arguments: Sequence[str]) -> str:
    """Return the name of the command, which may follow ``-c`` settings."""
    rest = iter(arguments)
    for argument in rest:
        if argument != "-c":
            return argument
        next(rest, None)
    return ""


def with_header(environment: Mapping[str, str], url: str, header: str) -> dict[str, str]:
    """Return the environment with which git sends this header, and no other, to the URL's host; never on a command
    line.

    Unchanged for URLs that are not http(s).
    """
    entries = _entries(environment)
    added = _with_header(entries, url, header)
    return {**environment, **_numbered(added)} if len(added) > len(entries) else dict(environment)


def _with_header(entries: Sequence[tuple[str, str]], url: str, header: str) -> tuple[tuple[str, str], ...]:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return tuple(entries)
    host = parts.netloc.rpartition("@")[2]
    key = f"http.{parts.scheme}://{host}/.extraHeader"
    return (*entries, (key, ""), (key, header))  # an empty value resets headers from other configuration


def token_header(token: str, *, user: str = "x-access-token") -> str:
    """Return the header that signs in with a token, in the form of GitHub's own checkout."""
    return "AUTHORIZATION: basic " + base64.b64encode(f"{user}:{token}".encode()).decode()
