import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.baselines import StoreSettings, open_store
from gate.baselines.git import GitStore
from gate.baselines.ledger import LEDGER, Acceptance, Mark
from gate.baselines.union import run_ids
from gate.errors import BaselineError, BaselineWriteError
from gate.records import Record, record_lines, strip
from gate.records.keys import suite_key
from gate.system.git import GitError
from tests.integration.baselines.remotes import bare, clone_with_history, git, http_remote
from tests.unit.baselines.samples import FORKED, commit, make_record

DAY = 86_400.0
BRANCH = "gate-baselines"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a remote and of a work tree whose commits are on it: each test has a copy."""
    folder = tmp_path_factory.mktemp("made")
    clone_with_history(bare(folder / "remotes" / "origin.git"), folder / "work")
    return folder


@pytest.fixture
def remote(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "remotes", tmp_path / "remotes")
    return tmp_path / "remotes" / "origin.git"


@pytest.fixture
def work(made: Path, tmp_path: Path, remote: Path) -> Path:
    shutil.copytree(made / "work", tmp_path / "work")
    config = tmp_path / "work" / ".git" / "config"
    config.write_text(config.read_text().replace(str(made), str(tmp_path)))
    return tmp_path / "work"


def settings(work: Path, **changes: object) -> StoreSettings:
    options = {"branch": changes.pop("branch")} if "branch" in changes else {}
    made = StoreSettings(work, environment=dict(os.environ), options=options)
    return replace(made, **changes)  # type: ignore[arg-type]


def opened(work: Path, max_records: int = 200, max_age_days: float = 365, **changes: object) -> GitStore:
    store = GitStore.open(settings(work, **changes))
    store.max_records, store.max_age_days = max_records, max_age_days
    return store


@pytest.fixture
def store(work: Path) -> Iterator[GitStore]:
    with opened(work) as store:
        yield store


def at(number: int, **changes: object) -> Record:
    return make_record(number, **changes)  # type: ignore[arg-type]


def files(remote: Path) -> list[str]:
    return git(remote, "ls-tree", "-r", "--name-only", BRANCH).splitlines()


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(folder))] = (path.stat().st_mtime_ns, path.read_bytes())
    return found


# --- saving and finding ---------------------------------------------------------------------------


def test_what_is_saved_is_found_by_another_machine(store: GitStore, work: Path, remote: Path) -> None:
    where = store.save(at(1))
    assert where.startswith("branch gate-baselines of origin:support-")
    with open_store("git", settings(work)) as other:
        found = other.find("support", [commit(3), commit(1)])
    assert found is not None
    assert (found.records, found.commit, found.info.distance) == ((strip(at(1)),), commit(1), 1)
    assert found.info.source == where


def test_without_a_branch_nothing_is_found(store: GitStore) -> None:
    assert store.find("support", [commit(1)]) is None
    assert store.latest("support") is None
    assert store.entries() == []


def test_the_branch_shares_no_history_with_the_code(store: GitStore, remote: Path) -> None:
    store.save(at(1))
    store.save(at(2))
    roots = git(remote, "rev-list", "--max-parents=0", BRANCH).splitlines()
    assert len(roots) == 1
    assert roots[0] not in git(remote, "rev-list", "main").splitlines()
    assert len(git(remote, "rev-list", BRANCH).splitlines()) == 2
    git(remote, "fsck", "--strict", "--no-dangling")
    assert git(remote, "log", "-1", "--format=%an", BRANCH) == "agent-gate"


def test_the_users_repository_is_left_alone(work: Path, remote: Path) -> None:
    (work / "agent.py").write_text("edited\n")
    (work / "staged.py").write_text("new\n")
    git(work, "add", "staged.py")
    (work / ".git" / "hooks" / "pre-push").write_text("#!/bin/sh\ntouch ../hooked\nexit 1\n")
    (work / ".git" / "hooks" / "pre-push").chmod(0o755)
    before = snapshot(work)
    with opened(work) as store:
        store.save(at(1))
        store.find("support", [commit(1)])
        store.entries()
    assert snapshot(work) == before
    assert len(files(remote)) == 1


def test_close_leaves_no_temporary_folder(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with opened(work) as store:
        store.save(at(1))
        assert len(list(scratch.iterdir())) == 1
    assert list(scratch.iterdir()) == []
    assert store.find("support", [commit(1)]) is not None, "usable again"
    store.close()


def test_records_of_the_same_agent_are_pooled(store: GitStore) -> None:
    for number, agent in ((1, "x"), (2, "y"), (3, "x"), (4, "x")):
        store.save(at(number, agent=agent))
    found = store.find("support", [commit(n) for n in (4, 3, 2, 1)])
    assert found is not None
    assert [r.header.commit for r in found.records] == [commit(4), commit(3), commit(1)]
    two = store.find("support", [commit(n) for n in (4, 3, 2, 1)], pool=2)
    assert two is not None and len(two.records) == 2
    other = store.find("support", [commit(n) for n in (4, 3, 2, 1)], exclude=frozenset({commit(4), commit(3)}))
    assert other is not None
    assert (other.commit, other.info.distance, len(other.records)) == (commit(2), 2, 1)


def test_an_unknown_agent_is_never_pooled(store: GitStore) -> None:
    for number in (1, 2):
        store.save(at(number, agent=""))
    found = store.find("support", [commit(2), commit(1)])
    assert found is not None and len(found.records) == 1


def test_latest_entries_and_read(store: GitStore) -> None:
    for number, suite in ((1, "one"), (2, "two"), (3, "one")):
        store.save(at(number, suite=suite))
    entries = store.entries()
    assert [(e.suite_id, e.commit) for e in entries] == [("one", commit(3)), ("two", commit(2)), ("one", commit(1))]
    assert [e.commit for e in store.entries("two")] == [commit(2)]
    assert store.read(entries[0]) == strip(at(3, suite="one"))
    latest = store.latest("one")
    assert latest is not None and (latest.commit, latest.info.distance) == (commit(3), None)


def test_saving_again_adds_and_saving_the_same_changes_nothing(store: GitStore, remote: Path) -> None:
    store.save(at(1))
    tip = git(remote, "rev-parse", BRANCH)
    store.save(at(1))
    assert git(remote, "rev-parse", BRANCH) == tip
    store.save(at(1, trials=5, created=1_800_000_000.0))
    assert len(files(remote)) == 1
    found = store.find("support", [commit(1)])
    assert found is not None and len(found.records[0].trials) == 14
    store.save(at(1))
    assert len(files(remote)) == 1


def test_a_lookup_reads_only_the_records_it_needs(work: Path, remote: Path) -> None:
    with opened(work) as store:
        for number in range(1, 9):
            store.save(at(number, agent=f"agent {number}"))
    with opened(work) as fresh:
        assert fresh.find("support", [commit(5)]) is not None
        clone = Path(fresh._folder.name)  # type: ignore[union-attr]
        known = git(clone, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").splitlines()
        assert known.count("blob") == 1


def test_a_repository_whose_ids_are_sha256_keeps_its_baselines(tmp_path: Path) -> None:
    for options, name in ((["--bare"], "origin.git"), ([], "work")):
        git(tmp_path, "init", "-q", "--object-format=sha256", *options, name)
    work = tmp_path / "work"
    git(work, "remote", "add", "origin", (tmp_path / "origin.git").as_uri())
    with opened(work) as store:
        store.save(at(1))
        store.save(at(2))
    with opened(work) as store:
        assert store.find("support", [commit(2)]) is not None


def test_a_server_without_filters_works_too(work: Path, remote: Path) -> None:
    git(remote, "config", "uploadpack.allowFilter", "false")
    with opened(work) as store:
        for number in (1, 2):
            store.save(at(number))
        found = store.find("support", [commit(2), commit(1)])
        assert found is not None and len(found.records) == 2


@pytest.mark.parametrize("form", ["{remote}", "file://{remote}", "../remotes/origin.git"])
def test_a_remote_may_be_a_url_or_a_path(work: Path, remote: Path, form: str) -> None:
    with opened(work, remote=form.format(remote=remote), branch="other/branch") as store:
        store.save(at(1))
        assert store.find("support", [commit(1)]) is not None
    assert git(remote, "branch", "--list", "other/branch")


def test_other_files_on_the_branch_stay_and_are_not_read(work: Path, remote: Path) -> None:
    with opened(work) as store:
        folder = Path(store.save(at(9)).partition(":")[2]).parent
    git(work, "fetch", "-q", "origin", BRANCH)
    git(work, "checkout", "-q", "-B", "byhand", "FETCH_HEAD")
    (work / "README.md").write_text("what this is\n")
    (work / folder / f"99999999T999999-{commit(2)}-unknown.jsonl").write_text("nonsense\n")
    (work / folder / "notes.jsonl").write_text("nonsense")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "by hand")
    git(work, "push", "-q", "origin", f"HEAD:{BRANCH}")
    with opened(work, max_age_days=1e6) as store:
        store.save(at(1))
        assert {"README.md", str(folder / "notes.jsonl")} <= set(files(remote))
        assert store.find("support", [commit(1)]) is not None
        with pytest.raises(BaselineError, match="not a line of JSON"):
            store.find("support", [commit(2)])


# --- pruning --------------------------------------------------------------------------------------


def kept(remote: Path) -> list[int]:
    return sorted(int(name.rsplit("-", 2)[1], 16) for name in files(remote) if name.endswith(".jsonl"))


def test_pruning_by_count_keeps_the_newest(work: Path, remote: Path) -> None:
    with opened(work, max_records=3) as store:
        for number in range(1, 7):
            store.save(at(number))
        assert kept(remote) == [4, 5, 6]
        store.save(at(9, suite="other"))
        assert kept(remote) == [4, 5, 6, 9], "suites are counted apart"


def test_pruning_by_age_never_takes_the_record_just_saved(work: Path, remote: Path) -> None:
    with opened(work, max_age_days=10) as store:
        store.save(at(1, created=100 * DAY))
        store.save(at(2, created=109 * DAY))
        assert kept(remote) == [1, 2]
        store.save(at(3, created=112 * DAY))
        store.save(at(4, created=113 * DAY))
        assert kept(remote) == [2, 3, 4]
        store.save(at(5, created=50 * DAY))
        assert kept(remote) == [2, 3, 4, 5]


def test_one_clock_that_is_ahead_drops_nothing(work: Path, remote: Path) -> None:
    with opened(work, max_age_days=10) as store:
        for number, day in enumerate((100, 105, 1000, 106), 1):
            store.save(at(number, created=day * DAY))
        assert kept(remote) == [1, 2, 3, 4]


def mark(number: int, verdict: str = "pass", **more: str) -> Mark:
    return Mark(suite_key("support"), commit(number), more.pop("run", f"run {number}"), verdict, float(number), **more)


@pytest.mark.slow
def test_pruning_never_takes_releases_what_was_accepted_or_the_anchor(work: Path, remote: Path) -> None:
    accepted = Acceptance(suite_key("support"), commit(2), "wendy", time.time(), "wanted", date.max)
    with opened(work, max_records=2, max_age_days=1) as store:
        store.save(at(1, run="run 1"), [mark(1, release="v1")])
        store.save(at(2, run="run 2"), [mark(2, "regressed", base="b"), accepted])
        store.save(at(3, run="run 3"), [mark(3, "regressed", base="b", release="v2")])
        for number in range(4, 9):
            store.save(
                at(number, run=f"run {number}", created=2e9 + number * DAY), [mark(number, "regressed", base="b")]
            )
        assert kept(remote) == [1, 2, 3, 7, 8]
        found = store.anchor("support")
        assert found is not None and found.commit == commit(2)
        assert {line.key for line in store.ledger("support").lines} == {commit(n) for n in (1, 2, 3, 7, 8)}


def test_without_a_release_the_last_proven_record_is_kept_whatever_its_age(work: Path, remote: Path) -> None:
    with opened(work, max_records=2) as store:
        store.save(at(1, run="run 1"), [mark(1)])
        for number in range(2, 6):
            store.save(at(number, run=f"run {number}"), [mark(number, "regressed", base="b", anchor="a")])
        assert kept(remote) == [1, 4, 5]
        found = store.anchor("support")
        assert found is not None and found.commit == commit(1)


def test_the_anchor_is_near_and_without_the_runs_that_fell_short(store: GitStore) -> None:
    store.save(at(1, run="day"), [mark(1, run="day")])
    store.save(at(1, run="night", created=2e9, value=0.0), [mark(1, "regressed", run="night", base="b")])
    store.save(at(2, run="run 2"), [mark(2)])
    found = store.anchor("support", is_near=lambda known: known != commit(2))
    assert found is not None
    assert run_ids(found.records[0].header) == ("day",)
    assert {trial.scores["ok"].value for trial in found.records[0].trials} == {1.0}
    assert store.anchor("support", is_near=lambda known: known == commit(1), runs={"day"}) is None
    whole = store.find("support", [commit(1)])
    assert whole is not None and run_ids(whole.records[0].header) == ("day", "night")


# --- refusing -------------------------------------------------------------------------------------


def put_by_hand(remote: Path, work: Path, name: str, change: object) -> None:
    git(work, "fetch", "-q", "origin", BRANCH)
    git(work, "checkout", "-q", "-B", "byhand", "FETCH_HEAD")
    path = work / name
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    git(work, "commit", "-q", "-am", "by hand")
    git(work, "push", "-q", "origin", f"HEAD:{BRANCH}")


def test_a_torn_record_is_an_error_and_never_passed_over(store: GitStore, work: Path, remote: Path) -> None:
    store.save(at(1))
    name = store.save(at(2)).partition(":")[2]
    put_by_hand(remote, work, name, lambda data: data[:-20])
    with opened(work) as fresh:
        with pytest.raises(BaselineError, match="truncated") as caught:
            fresh.find("support", [commit(2), commit(1)])
        assert name in caught.value.where
        assert fresh.find("support", [commit(1)]) is not None


def test_a_renamed_record_is_misplaced(store: GitStore, work: Path, remote: Path) -> None:
    name = store.save(at(1)).partition(":")[2]
    git(work, "fetch", "-q", "origin", BRANCH)
    git(work, "checkout", "-q", "-B", "byhand", "FETCH_HEAD")
    git(work, "mv", name, name.replace(commit(1), commit(2)))
    git(work, "commit", "-q", "-m", "by hand")
    git(work, "push", "-q", "origin", f"HEAD:{BRANCH}")
    with opened(work) as fresh, pytest.raises(BaselineError, match="belongs to another suite or commit"):
        fresh.find("support", [commit(2)])


def test_another_suites_record_copied_over_is_misplaced(store: GitStore, work: Path, remote: Path) -> None:
    name = store.save(at(1)).partition(":")[2]
    other = store.save(at(1, suite="other")).partition(":")[2]
    put_by_hand(remote, work, name, lambda _: (work / other).read_bytes())
    tip = git(remote, "rev-parse", BRANCH)
    with opened(work) as fresh:
        for look in (fresh.latest, fresh.anchor, lambda suite: fresh.find(suite, [commit(1)])):
            with pytest.raises(BaselineError, match="belongs to another suite or commit"):
                look("support")
        with pytest.raises(BaselineWriteError, match=r"belongs to another suite or commit than its name says"):
            fresh.save(at(1, run="new"))
    assert git(remote, "rev-parse", BRANCH) == tip


def test_a_damaged_ledger_is_an_error_and_never_written_over(store: GitStore, work: Path, remote: Path) -> None:
    name = store.save(at(1), [mark(1)]).partition(":")[2]
    put_by_hand(remote, work, f"{Path(name).parent}/{LEDGER}", lambda data: data + b"nonsense")
    with opened(work) as fresh:
        with pytest.raises(BaselineError, match="damaged"):
            fresh.anchor("support")
        with pytest.raises(BaselineWriteError, match="damaged"):
            fresh.save(at(2))


def test_an_incomplete_record_is_not_stored(store: GitStore, remote: Path) -> None:
    with pytest.raises(BaselineWriteError, match="not closed"):
        store.save(replace(at(1), footer=None))
    assert git(remote, "branch", "--list", BRANCH) == ""


def test_an_unreachable_remote_is_an_error_of_its_kind(work: Path, tmp_path: Path) -> None:
    with opened(work, remote=str(tmp_path / "nowhere.git")) as store:
        with pytest.raises(BaselineError, match="cannot be read"):
            store.find("support", [commit(1)])
        with pytest.raises(BaselineWriteError, match="cannot be pushed"):
            store.save(at(1))


def test_a_missing_remote_is_an_error_of_its_kind(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with opened(tmp_path) as store, pytest.raises(BaselineError, match="No such remote"):
        store.find("support", [commit(1)])


def test_a_protected_branch_is_reported_at_once(store: GitStore, remote: Path) -> None:
    asked = remote / "asked"
    before_receiving(remote, f"echo once >> {asked}; echo protected; exit 1")
    with pytest.raises(BaselineWriteError, match=r"pre-receive hook declined.*exempt this branch from"):
        store.save(at(1))
    assert asked.read_text() == "once\n"


def before_receiving(remote: Path, commands: str) -> None:
    """What the remote does before it takes a push."""
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{commands}\n")
    hook.chmod(0o755)


@pytest.mark.parametrize("changes", [{"branch": "--force"}, {"branch": "a:b"}, {"branch": "a b"}, {"branch": ""}])
def test_wild_branches_are_refused(work: Path, changes: dict[str, str]) -> None:
    with pytest.raises(GitError):
        opened(work, **changes)


@pytest.mark.parametrize("wild", ["--upload-pack=touch hacked", "ext::sh -c touch% hacked", "", "a\nb"])
def test_wild_remotes_are_refused(work: Path, wild: str) -> None:
    with opened(work, remote=wild) as store, pytest.raises(BaselineError):
        store.find("support", [commit(1)])
    assert not (work / "hacked").exists()


# --- many at once ---------------------------------------------------------------------------------


def eight_writers(save: Callable[..., None], *given: object) -> None:
    """Eight processes that write at once, each with its number."""
    barrier = FORKED.Barrier(8)
    writers = [FORKED.Process(target=save, args=(*given, n, barrier)) for n in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 8


def save_both(work: Path, changes: dict[str, object], writer: int, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    with opened(work, **changes) as store:
        store.save(at(100 + writer, suite="shared"))
        store.save(at(200 + writer, suite=f"own {writer}"))


def save_one_run(work: Path, kind: str, writer: int, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    name = f"writer {writer}"
    with open_store(kind, settings(work)) as store:
        store.save(at(1, run=name, created=1.7e9 + writer), [mark(1, run=name)])
        store.save(at(1, run=name, created=1.7e9 + writer), [mark(1, run=name)])


@pytest.mark.parametrize("kind", ["git", "file"])
@pytest.mark.slow
def test_eight_writers_of_one_commit_unite_their_runs(work: Path, kind: str) -> None:
    eight_writers(save_one_run, work, kind)
    with open_store(kind, settings(work)) as store:
        [entry] = store.entries()
        record = store.read(entry)
        assert run_ids(record.header) == tuple(f"writer {n}" for n in range(8))
        assert len(record.trials) == 8 * 4
        assert sorted(line.run for line in store.ledger("support").marks) == [f"writer {n}" for n in range(8)]


def everything(work: Path, **changes: object) -> set[tuple[str, str | None]]:
    with opened(work, **changes) as store:
        entries = store.entries()
        for entry in entries:
            store.read(entry)
        return {(entry.suite_id, entry.commit) for entry in entries}


SHARED = {("shared", commit(100 + n)) for n in range(8)}
OWN = {(f"own {n}", commit(200 + n)) for n in range(8)}


@pytest.mark.slow
def test_eight_concurrent_writers_over_http_lose_nothing(work: Path, remote: Path) -> None:
    with http_remote(remote.parent, "s3cret") as (url, _):
        changes: dict[str, object] = {"remote": f"{url}/origin.git", "server": url, "token": "s3cret"}
        eight_writers(save_both, work, changes)
        assert everything(work, **changes) == SHARED | OWN
    assert len(git(remote, "rev-list", BRANCH).splitlines()) == 16
    git(remote, "fsck", "--strict", "--no-dangling")


# --- signing in -----------------------------------------------------------------------------------


def test_over_http_the_token_signs_in(work: Path, remote: Path) -> None:
    with http_remote(remote.parent, "s3cret-token") as (url, seen):
        with opened(work, remote=f"{url}/origin.git", server=url, token="s3cret-token") as store:
            store.save(at(1))
            assert store.find("support", [commit(1)]) is not None
        assert set(seen) == {"x-access-token:s3cret-token"}


def test_a_wrong_token_is_refused_without_naming_it(work: Path, remote: Path) -> None:
    with (
        http_remote(remote.parent, "right") as (url, _),
        opened(work, remote=f"{url}/origin.git", server=url, token="wr0ng-token") as store,
    ):
        with pytest.raises(BaselineWriteError) as caught:
            store.save(at(1))
        assert "wr0ng" not in str(caught.value)
        with pytest.raises(BaselineError, match="contents: read"):
            store.find("support", [commit(1)])


@pytest.mark.parametrize("server", ["https://github.com", "http://127.0.0.1", "http://127.0.0.1:1", "{url}0"])
def test_the_token_goes_to_its_own_server_alone(work: Path, remote: Path, server: str) -> None:
    """A pull request may name any remote; the token must not go there."""
    with http_remote(remote.parent, "s3cret-token") as (url, seen):
        evil = {"remote": f"{url}/origin.git", "server": server.format(url=url), "token": "s3cret-token"}
        with opened(work, **evil) as store, pytest.raises(BaselineError):
            store.find("support", [commit(1)])
        assert seen and set(seen) == {""}


def test_without_a_token_the_repositorys_own_header_signs_in(work: Path, remote: Path) -> None:
    """As the checkout action leaves it behind; a header configured there never doubles the token's."""
    from gate.system.git import token_header

    with http_remote(remote.parent, "left-by-checkout") as (url, seen):
        git(work, "remote", "set-url", "origin", f"{url}/origin.git")
        git(work, "config", f"http.{url}/.extraheader", token_header("left-by-checkout"))
        with opened(work) as store:
            store.save(at(1))
        assert set(seen) == {"x-access-token:left-by-checkout"}


def test_the_token_is_never_on_a_command_line(work: Path, remote: Path) -> None:
    lines: set[str] = set()
    done = threading.Event()
    seen = remote / "seen"
    before_receiving(remote, f"while ! [ -e {seen} ]; do sleep 0.05; done")

    def watch() -> None:
        while not done.is_set():
            if any("git" in line and "push" in line for line in lines):
                seen.touch()
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    lines.add(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
                except OSError:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with (
            http_remote(remote.parent, "s3cret-token") as (url, _),
            opened(work, remote=f"{url}/origin.git", server=url, token="s3cret-token") as store,
        ):
            store.save(at(1))
    finally:
        done.set()
        watcher.join()
    assert not any("s3cret" in line or "eC1hY2Nlc3M" in line for line in lines)


KILLED = """
import os, sys
from pathlib import Path
from gate.baselines import StoreSettings, open_store
from tests.unit.baselines.samples import make_record
store = open_store("git", StoreSettings(Path(sys.argv[1]), environment=dict(os.environ)))
print("ready", flush=True)
for number in range(1, 1000):
    store.save(make_record(number, trials=50))
"""


@pytest.mark.slow
def test_a_killed_writer_leaves_the_branch_whole(work: Path, remote: Path) -> None:
    for delay in (0.05, 0.1, 0.15, 0.2, 0.3):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(work)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.kill()
        process.wait()
        process.stdout.close()
        time.sleep(0.1)
    with opened(work) as store:
        store.save(at(5000))
        for entry in store.entries():
            store.read(entry)
    git(remote, "fsck", "--strict", "--no-dangling")


# --- everything at once ---------------------------------------------------------------------------


@pytest.mark.slow
def test_all_records_are_read_as_they_are_the_newest_first_also_a_damaged_one(
    store: GitStore, work: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gate.baselines.git.AT_ONCE", 2)
    for number in range(1, 6):
        store.save(at(number))
    path = files(remote)[0]  # the oldest
    git(work, "fetch", "-q", "origin", BRANCH)
    git(work, "checkout", "-q", "-B", "byhand", "FETCH_HEAD")
    (work / path).write_bytes(b"torn")
    git(work, "commit", "-qam", "Damage one")
    git(work, "push", "-q", "origin", f"HEAD:{BRANCH}")
    with opened(work) as fresh:
        found = [(stored.where, stored.open().read()) for stored in fresh.contents()]
    assert [content for _, content in found[:4]] == [b"".join(record_lines(strip(at(n)))) for n in (5, 4, 3, 2)]
    assert found[4][0].endswith(path)
    assert found[4][1] == b"torn"
