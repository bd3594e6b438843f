import errno
import fcntl
import os
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.baselines import StoreSettings, open_store
from gate.baselines import file as file_module
from gate.baselines.base import thickness
from gate.baselines.file import FileStore
from gate.errors import BaselineError, BaselineWriteError
from gate.model import Side
from gate.records import Record, read_record, strip, write_record
from gate.records.keys import suite_key
from tests.patience import eventually
from tests.unit.baselines.samples import FORKED, commit, make_record, make_trial


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "baselines")


def commits(*numbers: int) -> list[str]:
    return [commit(number) for number in numbers]


def test_what_is_saved_is_found_in_its_stripped_form(store: FileStore) -> None:
    where = store.save(make_record(3))
    found = store.find("support", commits(3))
    assert found is not None
    assert (found.records, found.commit, found.info.distance) == ((strip(make_record(3)),), commit(3), 0)
    assert found.info.source == where
    assert "the answer" not in Path(where).read_text()


def test_the_registry_opens_it_where_the_settings_say(tmp_path: Path) -> None:
    with open_store("file", StoreSettings(tmp_path, options={"path": "kept/here"})) as store:
        assert store.save(make_record()).startswith(str(tmp_path / "kept" / "here"))


def test_the_nearest_ancestor_wins_whatever_its_age(store: FileStore) -> None:
    store.save(make_record(1, created=9e9))
    store.save(make_record(5, created=1.0))
    found = store.find("support", commits(9, 8, 5, 4, 1))
    assert found is not None
    assert (found.commit, found.info.distance) == (commit(5), 2)


def test_excluded_commits_are_passed_over_but_counted(store: FileStore) -> None:
    store.save(make_record(1))
    store.save(make_record(2))
    found = store.find("support", commits(2, 1), exclude=frozenset(commits(2)))
    assert found is not None
    assert (found.commit, found.info.distance) == (commit(1), 1)


def test_nothing_is_found_where_nothing_is(store: FileStore) -> None:
    assert store.find("support", commits(1)) is None
    assert store.latest("support") is None
    assert store.entries() == []
    store.save(make_record(1))
    assert store.find("support", []) is None
    assert store.find("support", commits(2)) is None
    assert store.find("other", commits(1)) is None
    assert store.latest("other") is None


def test_records_of_the_same_agent_are_pooled_nearest_first(store: FileStore) -> None:
    for number, agent in ((1, "x"), (2, "y"), (3, "x"), (4, "x"), (5, "x")):
        store.save(make_record(number, agent=agent))
    found = store.find("support", commits(5, 4, 3, 2, 1), pool=3)
    assert found is not None
    assert [r.header.commit for r in found.records] == commits(5, 4, 3)
    found = store.find("support", commits(5, 2, 1))
    assert found is not None
    assert [r.header.commit for r in found.records] == commits(5, 1)
    alone = store.find("support", commits(5, 4, 3), pool=1)
    assert alone is not None and len(alone.records) == 1


def test_an_unknown_agent_equals_none(store: FileStore) -> None:
    for number in (1, 2):
        store.save(make_record(number, agent=""))
    found = store.find("support", commits(2, 1))
    assert found is not None and len(found.records) == 1


def test_the_latest_is_the_newest_and_says_that_it_was_not_found_by_history(store: FileStore) -> None:
    store.save(make_record(7, created=50.0))
    store.save(make_record(8, created=40.0))
    found = store.latest("support")
    assert found is not None
    assert (found.commit, found.info.distance) == (commit(7), None)


def test_a_dirty_record_is_refused(store: FileStore) -> None:
    record = make_record(1)
    with pytest.raises(BaselineWriteError, match="uncommitted changes"):
        store.save(replace(record, header=replace(record.header, dirty=True)))
    assert store.entries() == []


@pytest.mark.parametrize("name", [commit(1), f"{commit(1)}-dirty"])
def test_a_dirty_record_that_somebody_put_there_is_refused(store: FileStore, name: str) -> None:
    record = strip(make_record(1))
    dirty = replace(record, header=replace(record.header, dirty=True))
    write_record(store.folder / suite_key("support") / f"{name}.jsonl", dirty)
    for ask in (lambda: store.find("support", [name]), store.entries, lambda: store.latest("support")):
        with pytest.raises(BaselineError, match="belongs to another suite or commit"):
            ask()


def test_a_selection_is_refused_unless_it_is_the_configurations_own(store: FileStore) -> None:
    record = make_record(1)
    selected = replace(record, header=replace(record.header, selected=True))
    for scope in (None, set(), {"a", "b", "c"}):
        with pytest.raises(BaselineWriteError, match="a selection of the suite, 2 cases"):
            store.save(selected, scope=scope)
    store.save(selected, scope={"a", "b"})
    assert store.find("support", commits(1)) is not None


def test_a_record_without_a_repository_is_kept_as_the_latest(store: FileStore) -> None:
    record = make_record(1)
    store.save(replace(record, header=replace(record.header, commit=None)))
    found = store.latest("support")
    assert found is not None and found.commit is None


def test_a_continued_run_takes_the_place_of_what_it_began_with(store: FileStore) -> None:
    store.save(make_record(1, trials=1))
    store.save(make_record(1, trials=4))
    store.save(make_record(1, trials=2))
    found = store.find("support", commits(1))
    assert found is not None and len(found.records[0].trials) == 8
    assert len(store.entries()) == 1


def test_another_run_of_the_commit_is_added(store: FileStore) -> None:
    said: list[str] = []
    store.save(make_record(1, trials=55, run="rich"), say=said.append)
    store.save(make_record(1, trials=10, run="thin", created=9e9), say=said.append)
    store.save(make_record(1, trials=10, run="thin", created=9e9), say=said.append)
    found = store.find("support", commits(1))
    assert found is not None and len(found.records[0].trials) == 130
    assert [(run.id, run.trials) for run in found.records[0].header.runs] == [("rich", 110), ("thin", 20)]
    assert said == []


def test_a_record_copied_over_another_suites_is_misplaced(store: FileStore) -> None:
    mine, other = Path(store.save(make_record(1))), Path(store.save(make_record(1, suite="other")))
    mine.write_bytes(other.read_bytes())
    for look in (store.latest, store.entries, store.anchor, lambda suite: store.find(suite, commits(1))):
        with pytest.raises(BaselineError, match="belongs to another suite or commit"):
            look("support")
    with pytest.raises(BaselineWriteError, match="restore or remove it"):
        store.save(make_record(1, run="new"))
    assert mine.read_bytes() == other.read_bytes(), "nothing is lost that someone may want to look at"


def test_entries_are_listed_newest_first_and_read(store: FileStore) -> None:
    for number, suite in ((1, "one"), (2, "two"), (3, "one")):
        store.save(make_record(number, suite=suite))
    assert [(e.suite_id, e.commit) for e in store.entries()] == [
        ("one", commit(3)),
        ("two", commit(2)),
        ("one", commit(1)),
    ]
    assert [e.commit for e in store.entries("one")] == commits(3, 1)
    assert store.read(store.entries("two")[0]) == strip(make_record(2, suite="two"))


@pytest.mark.parametrize("suite", ["../../etc/passwd", "", "a/b\\c", "x" * 5000, "größe 漢字", ".", "\ud800", "A", "a"])
def test_any_suite_id_is_a_safe_folder_of_its_own(store: FileStore, suite: str) -> None:
    store.save(make_record(1, suite="a b"))
    where = Path(store.save(make_record(1, suite=suite)))
    assert where.parent.parent == store.folder
    assert len(where.parent.name) < 60 and where.parent.name.isascii()
    others = {suite_key(other) for other in ("A", "a", "a b", "a-b", "") if other != suite}
    assert where.parent.name not in others


# --- refusing -------------------------------------------------------------------------------------

GOOD = make_record(1)


def changed(**header: object) -> Record:
    return replace(GOOD, header=replace(GOOD.header, **header))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (replace(GOOD, footer=None), "not closed"),
        (replace(GOOD, footer=replace(GOOD.footer, stopped="budget")), "stopped: budget"),  # type: ignore[type-var]
        (changed(shard=(1, 2)), "shard 1 of 2"),
        (replace(GOOD, trials=GOOD.trials[:2]), "1 of its cases were not run"),
        (replace(GOOD, trials=()), "2 of its cases were not run"),
        (Record(replace(GOOD.header, plan=()), (), GOOD.footer), "holds no trial"),
        (changed(commit="../../x"), "its commit is not one"),
        (changed(commit="HEAD"), "its commit is not one"),
    ],
)
def test_only_a_complete_record_becomes_a_baseline(store: FileStore, record: Record, says: str) -> None:
    with pytest.raises(BaselineWriteError) as caught:
        store.save(record)
    assert says in str(caught.value)
    assert store.entries() == []


def test_trials_of_the_base_commits_agent_are_left_out(store: FileStore) -> None:
    beside = make_trial("a", 1, value=0.0, side=Side.BASELINE)
    store.save(replace(GOOD, trials=(beside, *GOOD.trials)))
    found = store.find("support", commits(1))
    assert found is not None
    assert {t.side for t in found.records[0].trials} == {Side.CANDIDATE}
    with pytest.raises(BaselineWriteError, match="not run"):
        store.save(replace(GOOD, trials=tuple(replace(t, side=Side.BASELINE) for t in GOOD.trials)))


def test_a_torn_baseline_is_an_error_and_never_passed_over(store: FileStore) -> None:
    store.save(make_record(1))
    torn = Path(store.save(make_record(2)))
    torn.write_bytes(torn.read_bytes()[:-30])
    with pytest.raises(BaselineError, match="truncated") as caught:
        store.find("support", commits(2, 1))
    assert caught.value.where.startswith(str(torn))
    found = store.find("support", commits(1))
    assert found is not None, "others are not affected"


def test_an_edited_baseline_is_an_error(store: FileStore) -> None:
    path = Path(store.save(make_record(1)))
    path.write_text(path.read_text().replace('"ok":1.0', '"ok":0.5', 1).replace('{"value":1.0', '{"value":0.5', 1))
    with pytest.raises(BaselineError, match="checksum"):
        store.find("support", commits(1))


def test_a_renamed_baseline_is_misplaced(store: FileStore) -> None:
    path = Path(store.save(make_record(1)))
    path.rename(path.with_name(f"{commit(2)}.jsonl"))
    with pytest.raises(BaselineError, match="belongs to another suite or commit"):
        store.find("support", commits(2))


@pytest.mark.parametrize("content", [b"", b"hello", b"{}\n", b"\x00" * 100])
def test_garbage_in_the_store_is_a_baseline_error(store: FileStore, content: bytes) -> None:
    path = Path(store.save(make_record(1)))
    path.write_bytes(content)
    for ask in (lambda: store.find("support", commits(1)), lambda: store.latest("support"), store.entries):
        with pytest.raises(BaselineError):
            ask()


def test_a_store_that_cannot_be_written_is_a_write_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BaselineWriteError, match="cannot be written"):
        FileStore(tmp_path / "file").save(make_record())


def test_a_full_disk_leaves_the_earlier_baseline(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(make_record(1, trials=1))
    path = Path(store.shown(store.entries()[0].where))

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:  # what is written follows no link, so /dev/full cannot stand in for the file
        patched.setattr(os, "fsync", full)
        with pytest.raises(BaselineWriteError, match="No space left"):
            store.save(make_record(1, trials=3))
    found = store.find("support", commits(1))
    assert found is not None and len(found.records[0].trials) == 2
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_held_lock_is_waited_for_and_then_reported(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(store.save(make_record(1))).parent
    monkeypatch.setattr(file_module, "LOCK_SECONDS", 0.05)
    holder = os.open(folder, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    with pytest.raises(BaselineWriteError, match="another gate"):
        store.save(make_record(2))
    os.close(holder)
    store.save(make_record(2))


def test_committed_folders_keep_their_bytes(store: FileStore) -> None:
    store.save(make_record(1))
    assert (store.folder / ".gitattributes").read_text().startswith("*.jsonl -text linguist-generated\n")
    (store.folder / ".gitattributes").write_text("mine\n")
    store.save(make_record(2))
    assert (store.folder / ".gitattributes").read_text() == "mine\n"


# --- many at once ---------------------------------------------------------------------------------


def write_again_and_again(folder: Path, writer: int, enough: Event) -> None:
    store = FileStore(folder)
    while True:
        store.save(make_record(1, trials=20 + writer, run="" if writer == 0 else f"run {writer}"))
        store.save(make_record(100 + writer, trials=3))
        if enough.is_set():
            return


@pytest.mark.slow
def test_four_writers_and_a_reader_never_tear(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.save(make_record(1, trials=20))
    enough = FORKED.Event()
    writers = [FORKED.Process(target=write_again_and_again, args=(tmp_path, n, enough)) for n in range(4)]
    for writer in writers:
        writer.start()
    seen: list[int] = []

    def reads_of_several_writers() -> bool:
        found = store.find("support", commits(1))
        assert found is not None
        seen.append(len(found.records[0].trials) // 2)
        store.entries()
        return len(seen) > 300 and set(seen) >= {20, 20 + 21 + 22 + 23}

    try:
        assert eventually(reads_of_several_writers, pause=0), seen
    finally:
        enough.set()
        for writer in writers:
            writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert {e.commit for e in store.entries()} == {commit(1), *(commit(100 + n) for n in range(4))}
    names = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert names == [".gitattributes", *sorted(f"{commit(n)}.jsonl" for n in (1, 100, 101, 102, 103))]
    for path in tmp_path.rglob("*.jsonl"):
        assert read_record(path).footer is not None


def test_the_thickness_of_a_record_counts_epochs_of_its_own() -> None:
    made = make_record(1)
    cases, own = len(made.header.plan), made.trials[0]
    assert thickness(replace(made, trials=(own,) * 3 * cases)) == 3
    tagged = (replace(own, tag="stored"), replace(own, tag="confirm"), replace(own, side=Side.BASELINE))
    assert thickness(replace(made, trials=tagged)) == 1 / cases
