import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from gate.errors import ConfigError
from gate.system.git import Git, GitError, checked_remote, checked_revision, token_header, with_header
from tests.integration.baselines.remotes import http_remote
from tests.patience import eventually

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")


def sh(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def at(root: Path, **changes: str) -> Git:
    return Git(root, environment={**os.environ, **changes})


def commit(root: Path, text: str, name: str = "agent.py") -> str:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    sh(root, "add", "-A")
    sh(root, "commit", "-q", "-m", text)
    return sh(root, "rev-parse", "HEAD")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    sh(path, "init", "-q")
    return path


@pytest.fixture
def merged(root: Path) -> dict[str, str]:
    """main: a - b - m (merge of side into main); side: a - s."""
    ids = {"a": commit(root, "a")}
    sh(root, "checkout", "-q", "-b", "side")
    ids["s"] = commit(root, "s", "side.py")
    sh(root, "checkout", "-q", "main")
    ids["b"] = commit(root, "b")
    sh(root, "merge", "-q", "--no-ff", "-m", "m", "side")
    ids["m"] = sh(root, "rev-parse", "HEAD")
    return ids


# --- questions ------------------------------------------------------------------------------------


def test_outside_a_repository_there_is_nothing(tmp_path: Path) -> None:
    git = at(tmp_path, GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
    assert not git.is_repository()
    assert git.head() is None and git.files() is None


def test_without_git_there_is_no_repository(root: Path) -> None:
    assert not at(root, PATH="/nonexistent").is_repository()


def test_before_the_first_commit_there_is_no_head(root: Path) -> None:
    git = at(root)
    assert git.is_repository() and git.head() is None
    assert git.resolve("main") is None and git.merge_base("main", "HEAD") is None
    assert not git.dirty()


def test_history(root: Path, merged: dict[str, str]) -> None:
    git = at(root)
    a, b, s, m = (merged[name] for name in "absm")
    assert git.head() == git.resolve("main") == git.resolve(m[:10]) == m
    assert git.resolve("nowhere") is None and git.resolve("0" * 40) is None
    assert git.parents(m) == [b, s] and git.parents(a) == []
    assert git.first_parents(m) == [m, b, a]
    assert git.first_parents(m, limit=2) == [m, b]
    assert git.merge_base(b, s) == a and git.merge_base("side", "main") == s
    assert git.is_ancestor(s, m) and not git.is_ancestor(m, s) and not git.is_ancestor("nowhere", m)
    assert not git.is_shallow()


def test_a_name_of_a_tag_and_of_a_branch_names_no_commit(root: Path, merged: dict[str, str]) -> None:
    """Git takes the tag, which whoever proposes a change may be able to push."""
    sh(root, "tag", "main", merged["a"])
    sh(root, "update-ref", "refs/remotes/origin/main", merged["a"])
    sh(root, "tag", "-a", "-m", "x", "origin/main", "HEAD")
    git = at(root)
    for name in ("main", "main~1", "origin/main", "origin/main^{commit}"):
        with pytest.raises(ConfigError, match="names several commits"):
            git.resolve(name)
    assert git.resolve("refs/heads/main") == git.resolve("HEAD")
    assert git.resolve("refs/remotes/origin/main") == merged["a"]
    sh(root, "tag", "-f", "main", "refs/heads/main")
    assert git.resolve("main") == git.resolve("HEAD"), "both are one commit"


def test_a_tag_is_not_taken_for_a_branch_that_only_the_remote_has(root: Path, merged: dict[str, str]) -> None:
    sh(root, "update-ref", "refs/remotes/origin/release", merged["m"])
    sh(root, "update-ref", "refs/remotes/origin/main", merged["a"])
    git = at(root)
    assert git.resolve("main") == merged["m"], "older than the remote's, but no tag"
    sh(root, "tag", "release", merged["m"])
    assert git.resolve("release") == merged["m"]
    sh(root, "tag", "-f", "release", merged["a"])
    with pytest.raises(ConfigError, match="names several commits") as caught:
        at(root).resolve("release")
    assert "refs/remotes/origin/release" in str(caught.value.hint)


def test_unrelated_histories_have_no_merge_base(root: Path, merged: dict[str, str]) -> None:
    sh(root, "checkout", "-q", "--orphan", "other")
    other = commit(root, "o")
    assert at(root).merge_base(other, merged["m"]) is None
    assert at(root).common_history(other, merged["m"]) is None


def test_dirty(root: Path, merged: dict[str, str]) -> None:
    git = at(root)
    assert not git.dirty()
    (root / ".gate").mkdir()
    (root / ".gate" / "r.jsonl").write_text("x")
    assert git.dirty()
    assert not git.dirty(exclude=[".gate", "../elsewhere", "/tmp"])
    (root / "agent.py").write_text("edited")
    assert git.dirty(exclude=[".gate"])


def test_what_running_leaves_is_no_change(root: Path, merged: dict[str, str]) -> None:
    for name in ("__pycache__/agent.pyc", "src/__pycache__/x.pyc", ".agent/pyvenv.cfg", ".agent/bin/python"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    commit(root, "x", "src/x.py")
    sh(root, "rm", "-rq", "--cached", "__pycache__", "src/__pycache__", ".agent")
    sh(root, "commit", "-qm", "no bytecode")
    assert at(root).changed() == at(root / "src").changed() == []
    sh(root, "mv", "agent.py", "moved ü.py")
    (root / "src" / "x.py").write_text("edited")
    (root / "src" / "new").write_text("")
    assert at(root).changed() == ["moved ü.py", "src/x.py", "src/new"]
    (root / "elsewhere").write_text("untracked")
    assert at(root / "src").changed(exclude=["x.py"]) == ["moved ü.py", "src/new"]


def test_another_agents_records_are_no_change(root: Path) -> None:
    commit(root, '{"gate_record":1}\n', "other/stored.jsonl")
    commit(root, "x", "src/x.py")
    (root / "other/stored.jsonl").write_text('{"gate_record":1}\n{}\n')
    assert at(root / "src").changed() == []
    assert at(root / "other").changed() == ["other/stored.jsonl"]


def test_asking_writes_no_index(root: Path, merged: dict[str, str]) -> None:
    os.utime(root / "agent.py", (1, 1))
    before = (root / ".git" / "index").read_bytes()
    at(root).dirty()
    assert (root / ".git" / "index").read_bytes() == before


def test_files(root: Path) -> None:
    commit(root, "x\n", "ä b/\tc.py")
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").write_text("")
    (root / "new").write_text("")
    files = at(root).files()
    assert files == {".gitignore": None, "new": None, "ä b/\tc.py": ""}
    assert at(root / "ä b").files() == {"../.gitignore": None, "../new": None, "\tc.py": ""}


def test_what_another_work_tree_of_the_commit_lacks(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\n.env\nignored/\ncache/\n__pycache__/\nown/\n*.egg-info/\n")
    commit(root, "x\n", "below/a.py")
    (root / "below/own").mkdir()
    (root / "below/own/record").write_text("")
    caches = ("below/cache/CACHEDIR.TAG", "below/__pycache__/a.pyc", "below/src/bot.egg-info/PKG-INFO")
    for name in ("x.log", "below/.env", "below/ignored/a", *caches):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    for name in ("below/new", "below/out/new"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    assert sorted(at(root / "below").not_in_commits(exclude=["out", "own"])) == [".env", "ignored/", "new"]


def test_files_beside_the_root_and_the_commit_of_a_submodule(root: Path) -> None:
    commit(root, "x\n", "beside/a.py")
    pinned = commit(root, "x\n", "below/b.py")
    sh(root, "update-index", "--add", "--cacheinfo", f"160000,{pinned},below/module")
    below = at(root / "below")
    assert below.files() == {"../beside/a.py": "", "b.py": "", "module": pinned}


def test_show(root: Path, merged: dict[str, str]) -> None:
    git = at(root)
    assert git.show(merged["a"], "agent.py") == b"a"
    assert git.show("main", "agent.py") == b"b"
    assert git.show(merged["b"], "side.py") is None
    with pytest.raises(GitError, match="outside repository"):
        git.show("main", "../../etc/passwd")
    commit(root, "inner", "sub/inner.py")
    assert at(root / "sub").show("HEAD", "inner.py") == b"inner"
    assert git.show("HEAD", "sub") is None, "a folder is no file"
    with pytest.raises(GitError, match="is not in this clone"):
        git.show("0" * 40, "agent.py")


def test_tags(root: Path, merged: dict[str, str]) -> None:
    sh(root, "tag", "v1", merged["a"])
    for name, day in (("v2", 1), ("v3", 2)):
        environment = {**os.environ, "GIT_COMMITTER_DATE": f"2040-01-0{day}T00:00:00Z"}
        command = ["git", *IDENTITY, "tag", "-m", "x", name, merged["s"] if name == "v2" else merged["m"]]
        subprocess.run(command, cwd=root, check=True, env=environment)
    sh(root, "tag", "tree", "main^{tree}")
    assert at(root).tags() == [("v3", merged["m"]), ("v2", merged["s"]), ("v1", merged["a"])]
    assert at(root).tags(merged=merged["b"]) == [("v1", merged["a"])]


def test_default_branch_and_remote(root: Path, merged: dict[str, str], tmp_path: Path) -> None:
    sh(root, "branch", "-m", "main", "trunk/x")
    sh(tmp_path, "clone", "-q", str(root), "copy")
    copy = at(tmp_path / "copy")
    assert copy.default_branch() == "trunk/x"
    sh(root, "branch", "-m", "trunk/x", "develop")
    sh(tmp_path / "copy", "fetch", "-q", "--prune")
    assert copy.default_branch() == "develop", "what the clone knows is gone"
    sh(root, "branch", "-m", "develop", "trunk/x")
    sh(tmp_path / "copy", "fetch", "-q", "--prune")
    sh(tmp_path / "copy", "remote", "set-head", "origin", "--delete")
    assert copy.default_branch() == "trunk/x", "by asking the remote"
    sh(tmp_path / "copy", "remote", "set-url", "origin", str(tmp_path / "gone"))
    assert copy.default_branch() is None
    assert copy.remote_url("origin") == str(tmp_path / "gone")
    assert copy.remote_url("https://example.com/x.git") == "https://example.com/x.git"
    with pytest.raises(GitError, match="No such remote"):
        copy.remote_url("upstream")


def test_in_ci_a_work_tree_that_is_kept_learns_the_default_branchs_new_name(
    root: Path, merged: dict[str, str], tmp_path: Path
) -> None:
    sh(tmp_path, "clone", "-q", str(root), "copy")
    sh(root, "branch", "-m", "main", "trunk")
    sh(tmp_path / "copy", "fetch", "-q")
    assert at(tmp_path / "copy", CI="").default_branch() == "main", "nobody waits for the network on a laptop"
    assert at(tmp_path / "copy", CI="true").default_branch() == "trunk"
    sh(tmp_path / "copy", "remote", "set-url", "origin", str(tmp_path / "gone"))
    assert at(tmp_path / "copy", CI="true").default_branch() == "main"


# --- more history ---------------------------------------------------------------------------------


@pytest.fixture
def long(root: Path) -> dict[str, str]:
    """main with 120 commits after the one where a branch of 3 left it."""
    ids = {"base": commit(root, "base")}
    sh(root, "checkout", "-q", "-b", "change")
    for n in range(3):
        ids["change"] = commit(root, f"c{n}", "change.py")
    sh(root, "checkout", "-q", "main")
    stream = "".join(
        f"commit refs/heads/main\ncommitter t <t@example.com> {1_900_000_000 + n} +0000\ndata 1\nx\n"
        + (f"from {ids['base']}\n" if n == 0 else "")
        for n in range(120)
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input=stream.encode(), check=True)
    ids["main"] = sh(root, "rev-parse", "main")
    return ids


def test_a_shallow_history_is_deepened_until_the_base_is_found(
    root: Path, long: dict[str, str], tmp_path: Path
) -> None:
    sh(tmp_path, "clone", "-q", "--depth=1", "--branch=change", f"file://{root}", "copy")
    git = at(tmp_path / "copy")
    assert git.is_shallow() and git.resolve(long["main"]) is None
    refs = sh(tmp_path / "copy", "for-each-ref")
    git.fetch(long["main"], depth=1)
    assert git.merge_base(long["change"], long["main"]) is None
    assert git.common_history(long["change"], long["main"]) == long["base"]
    assert sh(tmp_path / "copy", "for-each-ref") == refs, "no ref is moved"
    assert not (tmp_path / "copy" / ".git" / "FETCH_HEAD").exists()


def test_a_history_that_is_whole_is_not_cut_off_by_fetching_a_commit(
    root: Path, long: dict[str, str], tmp_path: Path
) -> None:
    sh(tmp_path, "clone", "-q", "--single-branch", "--branch=change", f"file://{root}", "copy")
    git = at(tmp_path / "copy")
    before = sh(tmp_path / "copy", "rev-list", "HEAD")
    git.fetch(long["main"], depth=1)
    assert git.resolve(long["main"]) == long["main"]
    assert sh(tmp_path / "copy", "rev-list", "HEAD") == before
    assert not git.is_shallow()


def test_history_that_cannot_be_fetched_says_what_to_do(root: Path, long: dict[str, str], tmp_path: Path) -> None:
    sh(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", f"file://{root}", "copy")
    sh(tmp_path / "copy", "remote", "set-url", "origin", str(tmp_path / "gone"))
    with pytest.raises(GitError, match="fetch-depth: 0"):
        at(tmp_path / "copy").common_history(long["change"], long["main"])


# --- another work tree ----------------------------------------------------------------------------


def test_a_worktree_of_the_base_leaves_the_users_alone(root: Path, merged: dict[str, str]) -> None:
    (root / "agent.py").write_text("edited")
    hook = root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {root}/hooked\n")
    hook.chmod(0o755)
    index = (root / ".git" / "index").read_bytes()
    git = at(root)
    with git.worktree(merged["a"]) as tree:
        assert (tree / "agent.py").read_text() == "a"
        assert at(tree).head() == merged["a"]
        (tree / "agent.py").write_text("an agent wrote here")
        (tree / "left behind").write_text("")
    assert not tree.exists()
    assert (root / "agent.py").read_text() == "edited"
    assert (root / ".git" / "index").read_bytes() == index
    assert not (root / "hooked").exists()
    assert len(sh(root, "worktree", "list").splitlines()) == 1
    assert git.head() == merged["m"]


def test_a_worktree_goes_when_its_user_fails(root: Path, merged: dict[str, str]) -> None:
    with pytest.raises(RuntimeError), at(root).worktree(merged["a"]) as tree:
        raise RuntimeError
    assert not tree.exists() and not (root / ".git" / "worktrees").exists()
    with pytest.raises(GitError, match="is not in this clone"), at(root).worktree("0" * 40):
        pass


# --- LFS ------------------------------------------------------------------------------------------

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'1' * 64}\nsize 7\n"
CONTENT = "weights"


def without_lfs(tmp_path: Path) -> str:
    """A PATH on which there is git, and no git-lfs."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    for name in ("git", "sh"):
        (folder / name).symlink_to(shutil.which(name) or "")
    return str(folder)


def with_lfs(tmp_path: Path) -> str:
    """The same with a git-lfs that knows one content, and leaves it where it is told to."""
    path = Path(without_lfs(tmp_path))
    smudge = f"""#!/bin/sh
case "$1" in
  smudge) if [ -n "$GIT_LFS_SKIP_SMUDGE" ]; then {shutil.which("cat")}; else printf {CONTENT}; fi ;;
  clean) printf '{POINTER}' ;;
esac
"""
    (path / "git-lfs").write_text(smudge)
    (path / "git-lfs").chmod(0o755)
    return str(path)


@pytest.fixture
def lfs(root: Path) -> Path:
    """A repository with a file in LFS, whose content is checked out, and for which git-lfs is required."""
    commit(root, "*.bin filter=lfs -text\n", ".gitattributes")
    commit(root, POINTER, "model.bin")
    for name, value in (("required", "true"), ("smudge", "git-lfs smudge -- %f"), ("clean", "git-lfs clean -- %f")):
        sh(root, "config", f"filter.lfs.{name}", value)
    (root / "model.bin").write_text(CONTENT)
    return root


def test_a_required_git_lfs_that_is_not_installed_stops_nothing(lfs: Path, tmp_path: Path) -> None:
    git = at(lfs, PATH=without_lfs(tmp_path))
    with git.worktree("main") as tree:
        assert (tree / "model.bin").read_text() == POINTER
    with git.worktree("main", content=True) as tree:
        assert (tree / "model.bin").read_text() == POINTER
    assert not git.dirty()
    (lfs / "agent.py").write_text("new")
    assert git.dirty()


def test_git_lfs_fills_the_agents_tree_and_not_that_of_the_rules(lfs: Path, tmp_path: Path) -> None:
    git = at(lfs, PATH=with_lfs(tmp_path))
    with git.worktree("main") as tree:
        assert (tree / "model.bin").read_text() == POINTER
    with git.worktree("main", content=True) as tree:
        assert (tree / "model.bin").read_text() == CONTENT
    git.run("add", "model.bin")
    assert not git.dirty()
    assert not git.has_only_pointers()


def test_content_that_another_tree_would_not_have_is_noticed(lfs: Path, tmp_path: Path) -> None:
    git = at(lfs, PATH=without_lfs(tmp_path))
    assert git.has_only_pointers()
    (lfs / "model.bin").write_text(POINTER)
    assert not git.has_only_pointers(), "both trees have the pointer"
    (lfs / "model.bin").unlink()
    assert not git.has_only_pointers()


# --- hostility ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "revision",
    ["", "-h", "--output=x", "a..b", "a b", "a\nb", "a:b", "HEAD:x", "@\x00", ":/x", "a*", "a?", "a[", "a\\"],
)
def test_wild_revisions_are_refused(root: Path, revision: str) -> None:
    with pytest.raises(GitError, match="not a revision"):
        checked_revision(revision)
    with pytest.raises(GitError):
        at(root).first_parents(revision)


@pytest.mark.parametrize("revision", ["HEAD", "main", "v1.0", "feature/x", "a" * 40, "HEAD~3", "HEAD^2", "origin/main"])
def test_plain_revisions_are_let_through(revision: str) -> None:
    assert checked_revision(revision) == revision


@pytest.mark.parametrize("remote", ["", "-x", "--upload-pack=x", "ext::sh", "a\nb", "fd::17"])
def test_wild_remotes_are_refused(remote: str) -> None:
    with pytest.raises(GitError, match="not a remote"):
        checked_remote(remote)


def test_a_refused_remote_does_not_show_its_password() -> None:
    with pytest.raises(GitError) as caught:
        checked_remote("-https://me:hunter2hunter2@example.com/x.git")
    assert "hunter2" not in str(caught.value)


def test_a_hostile_repository_runs_nothing(root: Path, merged: dict[str, str], tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script = tmp_path / "script.sh"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "core.editor", "core.askPass", "gpg.program"):
        sh(root, "config", name, str(script))
    for name in ("post-checkout", "pre-push", "reference-transaction", "post-index-change", "pre-auto-gc"):
        hook = root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_bytes(script.read_bytes())
        hook.chmod(0o755)
    (root / "agent.py").write_text("edited")
    git = at(root)
    git.dirty()
    git.files()
    git.show("main", "agent.py")
    git.tags()
    with git.worktree("main"):
        pass
    assert not ran.exists()


def test_variables_of_a_surrounding_hook_do_not_lead_elsewhere(
    root: Path, merged: dict[str, str], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    sh(other, "init", "-q")
    git = at(root, GIT_DIR=str(other / ".git"), GIT_WORK_TREE=str(other), GIT_INDEX_FILE="x", GIT_TRACE="1")
    assert git.head() == merged["m"] and not git.dirty()


def test_a_folder_of_another_user_is_explained(root: Path, merged: dict[str, str], tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(root, 12345, 12345)
    os.chown(root / ".git", 12345, 12345)
    home = tmp_path / "home"
    home.mkdir()
    git = at(root, HOME=str(home), GIT_CONFIG_NOSYSTEM="1", SUDO_UID="")
    with pytest.raises(GitError, match=r"belongs to another user.*safe\.directory"):
        git.head()
    trusted = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": str(root)}
    assert at(root, HOME=str(home), GIT_CONFIG_NOSYSTEM="1", **trusted).head() == merged["m"]


def test_a_command_that_hangs_is_ended_with_its_helpers(root: Path, tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    transport = tmp_path / "ssh.sh"
    transport.write_text(f"#!/bin/sh\necho $$ > {marker}\nsleep 300\n")
    transport.chmod(0o755)
    environment = {**os.environ, "GIT_SSH_COMMAND": str(transport), "GIT_SSH_VARIANT": "simple"}
    for seconds in (1, 5, 25, 125):  # on a busy machine the helper may take longer to start than the first one
        start = time.monotonic()
        with pytest.raises(GitError, match=f"longer than {seconds} s"):
            Git(root, environment=environment, timeout=seconds).run("ls-remote", "ssh://example.invalid/x.git")
        assert time.monotonic() - start < seconds + 100
        if marker.exists() and marker.read_text():
            break
    assert eventually(lambda: not alive(int(marker.read_text()))), "the helper outlived its command"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_an_error_is_one_line_without_secrets(root: Path) -> None:
    with pytest.raises(GitError) as caught:
        at(root).run("fetch", "https://me:hunter2hunter2@127.0.0.1:1/x.git")
    assert "\n" not in str(caught.value) and "hunter2" not in str(caught.value) + caught.value.output


# --- signing in -----------------------------------------------------------------------------------


@pytest.mark.parametrize("filtered", ["blob:none", "tree:0"])
@pytest.mark.parametrize("way", ["header", "program"])
def test_in_ci_a_partial_clone_signs_in_for_what_it_lacks(tmp_path: Path, filtered: str, way: str) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    sh(whole, "init", "-q")
    base = commit(whole, "base")
    commit(whole, "notes", "docs/notes.md")
    head = commit(whole, "change")
    sh(tmp_path, "clone", "-q", "--bare", str(whole), "origin.git")
    sh(tmp_path / "origin.git", "config", "uploadpack.allowFilter", "true")
    sh(tmp_path / "origin.git", "config", "uploadpack.allowAnySHA1InWant", "true")
    with http_remote(tmp_path, "s3cret") as (url, _):
        asked = tmp_path / "asked"
        asked.write_text('#!/bin/sh\ncase "$1" in User*) echo x-access-token ;; *) echo s3cret ;; esac\n')
        asked.chmod(0o755)
        signing = {"GIT_ASKPASS": str(asked)}
        if way == "header":
            signing = with_header({}, url, token_header("s3cret"))
        command = ["git", "clone", "-q", f"--filter={filtered}", f"{url}/origin.git", str(tmp_path / "copy")]
        subprocess.run(command, env={**os.environ, **signing}, check=True)
        git = at(tmp_path / "copy", CI="true", **signing)
        with git.worktree(base) as tree:
            assert (tree / "agent.py").read_text() == "base"
        assert git.differing(base) == ["agent.py", "docs/notes.md"]
        assert git.show(base, "agent.py") == b"base"
        assert git.ask("log", "--format=%H", "--max-count=1", head, "--", "docs") is not None
        assert git.changed() == []


def test_a_header_is_for_its_host_alone_and_takes_the_place_of_others() -> None:
    own = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "/x"}
    environment = with_header({"A": "1", **own}, "https://me@example.com:8443/o/r.git", "X: y")
    assert environment == {
        "A": "1",
        **own,
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_1": "http.https://example.com:8443/.extraHeader",
        "GIT_CONFIG_VALUE_1": "",
        "GIT_CONFIG_KEY_2": "http.https://example.com:8443/.extraHeader",
        "GIT_CONFIG_VALUE_2": "X: y",
    }


@pytest.mark.parametrize("url", ["git@example.com:o/r.git", "ssh://example.com/x", "file:///x", "/x"])
def test_a_header_is_for_http_alone(url: str) -> None:
    assert with_header({}, url, "X: y") == {}


def test_the_token_goes_as_checkout_sends_it() -> None:
    assert token_header("t") == "AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46dA=="


# --- what is tracked where the gate writes --------------------------------------------------------


@pytest.mark.parametrize("own", ["", "app"])
def test_a_tracked_file_in_a_folder_is_found_and_what_stands_in_its_way(root: Path, own: str) -> None:
    commit(root, "a", f"{own or '.'}/agent.py")
    prefix = f"{own}/" if own else ""
    git, folder = at(root / own), root / own / ".gate" / "records" / "key"
    assert git.tracked_in(folder) is None
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_text("{}")
    assert git.tracked_in(folder) is None, "it lies there, and is not tracked"
    commit(root, "b", f"{prefix}.gate/records/other/y.jsonl")
    sh(root, "rm", "-q", "--cached", f"{prefix}.gate/records/key/x.jsonl")
    assert git.tracked_in(folder) is None
    sh(root, "add", "-f", f"{prefix}.gate/records/key/x.jsonl")
    assert git.tracked_in(folder) == f"{prefix}.gate/records/key/x.jsonl"
    assert git.tracked_in(root.parent / "elsewhere") is None


def test_a_link_or_a_repository_on_the_way_is_tracked_too(root: Path) -> None:
    commit(root, "a")
    (root / ".gate").symlink_to("data")
    (root / "data" / "records" / "key").mkdir(parents=True)
    sh(root, "add", ".gate")
    assert at(root).tracked_in(root / ".gate" / "records" / "key") == ".gate"
    sh(root, "rm", "-q", "-f", ".gate")
    sh(root, "update-index", "--add", "--cacheinfo", f"160000,{sh(root, 'rev-parse', 'HEAD')},.gate")
    assert at(root).tracked_in(root / ".gate" / "records" / "key") == ".gate"
