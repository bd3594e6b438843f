"""Records out of folders, files, archives and stores: what can be read is read, the rest is counted and named."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.baselines import BlobStore, StoreSettings
from gate.baselines.file import FileStore
from gate.baselines.ledger import Mark
from gate.config.load import load_config
from gate.errors import ConfigError, MeasureError
from gate.histories.trends import Histories, suite_history
from gate.insight.history import history_of
from gate.insight.site import commit_link
from gate.model import Criterion
from gate.records import Record, record_lines, strip, write_record
from gate.records.keys import MISPLACED, suite_key
from gate.reports.history import label_of
from gate.stored.upkeep import list_baselines, misplaced_in
from tests.unit.baselines.samples import CRITERIA, commit, make_record
from tests.unit.baselines.test_blobs import Kept
from tests.unit.histories.drawn import drawn_runs


def at(number: int, **changes: object) -> Record:
    return make_record(number, run=f"run-{number}", **changes)  # type: ignore[arg-type]


def read(*sources: Path, suite_id: str | None = None) -> Histories:
    return history_of(sources, Path("gate.yaml"), {}, suite_id=suite_id)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(5):
        write_record(tmp_path / "records" / f"{number}.jsonl", at(number, value=float(number != 3)))
    return tmp_path / "records"


def test_a_folder_is_read_in_the_order_of_time(folder: Path) -> None:
    found = read(folder)
    (suite,) = found.suites
    assert found.unread == ()
    assert [run.commit for run in suite.runs] == [commit(n) for n in range(5)]
    scores = next(one for one in suite.whole if one.name == "ok")
    assert [point.estimate.value for point in scores.points] == [1, 1, 1, 0, 1]


def test_an_archive_holds_the_same_as_its_folder(folder: Path, tmp_path: Path) -> None:
    archive = tmp_path / "artifact.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in folder.iterdir():
            packed.write(path, f"gate-results/records/{path.name}")
        packed.writestr("report.html", "<p>")
    assert read(archive).suites[0].series == read(folder).suites[0].series


def test_what_is_damaged_is_named_and_the_rest_is_read(folder: Path, tmp_path: Path) -> None:
    data = (folder / "0.jsonl").read_bytes()
    bad = {
        "edited": data.replace(b"1.0", b"0.5", 1),
        "cut": data[:-20],
        "empty": b"",
        "other": b'{"rows": 1}\n',
        "newer": data.replace(b'"gate_record":2', b'"gate_record":9', 1),
        "binary": bytes(range(256)) * 99,
    }
    for name, content in bad.items():
        (folder / f"{name}.jsonl").write_bytes(content)
    sharded = at(7)
    write_record(folder / "shard.jsonl", replace(sharded, header=replace(sharded.header, shard=(1, 2))))
    (folder / "link.jsonl").symlink_to(folder / "0.jsonl")
    found = read(folder)
    assert len(found.suites[0].runs) == 5
    assert {Path(one.where).stem for one in found.unread} == {*bad, "shard"}
    assert all(one.why for one in found.unread)


@pytest.mark.slow
def test_a_damaged_archive_is_named(folder: Path, tmp_path: Path) -> None:
    archive = tmp_path / "artifact.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.jsonl", b"0" * 50_000_000)
        packed.write(folder / "0.jsonl", "0.jsonl")
    found = read(archive)
    assert len(found.suites[0].runs) == 1
    assert [one.where.rpartition(":")[2] for one in found.unread] == ["bomb.jsonl"]
    (tmp_path / "broken.zip").write_bytes(archive.read_bytes()[:200] + b"PK\x05\x06" + b"\x00" * 18)
    assert len(read(tmp_path / "broken.zip", folder).suites[0].runs) == 5


def test_a_damaged_newest_record_does_not_judge_the_others(folder: Path) -> None:
    other = replace(CRITERIA[0], fingerprint="k9")
    forged = at(99)
    lines = b"".join(record_lines(replace(forged, header=replace(forged.header, criteria=(other,)))))
    (folder / "forged.jsonl").write_bytes(lines[:-30])
    suite = read(folder).suites[0]
    assert all(run.criteria == CRITERIA for run in suite.runs)


def test_older_runs_are_held_to_todays_thresholds(tmp_path: Path) -> None:
    for number, threshold in ((1, 1.0), (2, 0.5)):
        record = at(number, value=0.7)
        criteria: tuple[Criterion, ...] = (replace(CRITERIA[0], threshold=threshold),)
        write_record(tmp_path / f"{number}.jsonl", replace(record, header=replace(record.header, criteria=criteria)))
    rate = read(tmp_path).suites[0].whole[0]
    assert [point.estimate.value for point in rate.points] == [1.0, 1.0]


def test_two_suites_stay_apart(tmp_path: Path) -> None:
    write_record(tmp_path / "a.jsonl", at(1, suite="one"))
    write_record(tmp_path / "b.jsonl", at(2, suite="two"))
    assert [suite.suite_id for suite in read(tmp_path).suites] == ["one", "two"]
    assert [suite.suite_id for suite in read(tmp_path, suite_id="two").suites] == ["two"]
    with pytest.raises(MeasureError, match=r"no record of suite .three.*one, two"):
        read(tmp_path, suite_id="three")


def test_nothing_to_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read(tmp_path / "absent")
    with pytest.raises(MeasureError, match="no finished record"):
        read(tmp_path)


# --- stores ---------------------------------------------------------------------------------------


@pytest.fixture(params=["file", "blobs"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlobStore]:
    made = FileStore(tmp_path / "stored") if request.param == "file" else Kept.open(StoreSettings(tmp_path))
    with made as opened:
        yield opened


def test_a_store_gives_every_record_as_it_is_the_newest_first(store: BlobStore) -> None:
    for number in (2, 1, 3):
        store.save(at(number))
    found = list(store.contents())
    assert len(found) == 3
    for number, stored in zip((3, 2, 1), found, strict=True):
        with stored.open() as file:
            assert file.read() == b"".join(record_lines(strip(at(number))))


def test_verdicts_and_releases_come_from_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text("agent: {command: cat}\nsuite: suite.yaml\n")
    (tmp_path / "suite.yaml").write_text("cases: []\n")
    with FileStore(tmp_path / ".gate" / "baselines") as store:
        for number, verdict in ((1, "pass"), (2, "regressed")):
            mark = Mark(
                suite_key("support"), commit(number), f"run-{number}", verdict, 1.0, release="v1" * (number == 1)
            )
            store.save(at(number), [mark])
    found = history_of((), tmp_path / "gate.yaml", {})
    assert [(run.verdict, run.releases) for run in found.suites[0].runs] == [("pass", ("v1",)), ("regressed", ())]
    assert found.source == "the stored baselines"


def test_a_stored_record_under_the_name_of_another_is_named(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text("suite: s.yaml\nagent: {python: 'a:b'}\nbaseline: {store: file}\n")
    config = load_config(tmp_path / "gate.yaml")
    with FileStore(config.root / config.file.baseline.folder) as store:
        for number in (1, 2):
            store.save(at(number))
        own = Path(next(stored.where for stored in store.contents()))
        assert misplaced_in(store) == []
        copy = own.with_name(f"{commit(9)}.jsonl")
        copy.write_bytes(own.read_bytes())
        other = own.parent.with_name(suite_key("other")) / own.name
        other.parent.mkdir()
        other.write_bytes(own.read_bytes())
        assert sorted(misplaced_in(store)) == sorted([str(copy), str(other)])
    found = history_of((), tmp_path / "gate.yaml", {})
    assert [(one.where, one.why) for one in sorted(found.unread, key=lambda one: one.where)] == [
        (where, MISPLACED) for where in sorted([str(copy), str(other)])
    ]
    assert len(found.suites[0].runs) == 2
    rows = list_baselines(config, {}).splitlines()
    assert [row.split()[1] for row in rows[1:3]] == [commit(2)[:12], commit(1)[:12]]
    assert sorted(rows[3:]) == sorted(f"never compared with: {where}: {MISPLACED}" for where in (copy, other))


@pytest.mark.parametrize(
    ("remote", "found"),
    [
        ("git@github.com:acme/agent.git", "https://github.com/acme/agent/commit/{commit}"),
        ("https://gitlab.example.org/a/b/c", "https://gitlab.example.org/a/b/c/-/commit/{commit}"),
        ("https://user:secret@github.com/acme/agent", ""),
        ("/srv/git/agent.git", ""),
    ],
)
def test_a_commit_is_linked_where_its_host_is_known(remote: str, found: str) -> None:
    assert commit_link(remote) == found


def test_a_run_that_is_stored_and_lies_in_the_results_folder_counts_once_with_its_verdict() -> None:
    (own,) = drawn_runs(1, lambda _: 0.9)
    own = replace(own, subject="Reword the prompt")
    stored = replace(own, verdict="pass", releases=("v1",))
    (run,) = suite_history("s", [own, stored]).runs
    assert (run.verdict, run.releases) == ("pass", ("v1",))
    assert label_of(run).endswith(" Reword the prompt")
