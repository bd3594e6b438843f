"""The state on disk: each trace once, all of a batch or nothing, one writer, and no surprise in what is read back."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.config.production import MonitorSection
from gate.errors import ConfigError, MeasureError
from gate.monitor import store
from gate.monitor.model import Counts, Observation
from gate.monitor.sources import Position
from gate.monitor.store import Delivery, MonitorState, open_state, read_state
from gate.monitor.window import Status, decide


def opened(path: Path) -> MonitorState:
    state = open_state(path)
    assert state is not None
    return state


def seen(trace: str, passed: bool | None = True, **more: object) -> Observation:
    return replace(Observation(trace, 1.0, passed, 0.5, {"tone": 0.5}), **more)


def commit(
    state: MonitorState,
    *traces: Observation,
    criteria: str = "c",
    now: float = 5.0,
    look: int = 0,
    export: bool = False,
) -> int:
    """``look`` 0: each time in another."""
    place = Position("1:2", "a.jsonl", 70, 60, 75, b"mark", 4)
    return state.commit(
        traces, [place], Counts(lines=3), now=now, look=look or state.next_look(), criteria=criteria, export=export
    )


def test_a_trace_counts_once_whoever_brings_it(tmp_path: Path) -> None:
    with opened(tmp_path / "m.sqlite") as state:
        assert commit(state, seen("a"), seen("b", None)) == 2
        assert commit(state, seen("b"), seen("c", False)) == 1
        assert state.outcomes(10, "c") == [True, None, False], "what was stored first stands"
        assert state.counts == Counts(lines=6, sampled=3, repeated=1)
    with opened(tmp_path / "m.sqlite") as state:
        assert commit(state, seen("a")) == 0
        assert [one.trace for one in state.window(2, "c")] == ["b", "c"]
        assert state.positions() == [Position("1:2", "a.jsonl", 70, 60, 75, b"mark", 4)]
        assert (state.has("a"), state.has("z")) == (True, False)


def test_what_could_not_be_measured_ends_no_silence(tmp_path: Path) -> None:
    """A judge that is down would else keep an old window green, as long as few traces come."""
    with opened(tmp_path / "m.sqlite") as state:
        commit(state, seen("a", None))
        assert state.last_seen("c") is None
        commit(state, seen("b", False), now=6.0)
        commit(state, seen("c", None), now=7.0)
        assert state.last_seen("c") == 6.0
        assert state.last_seen("other") is None


def test_a_batch_is_stored_with_its_positions_or_not_at_all(tmp_path: Path) -> None:
    with opened(tmp_path / "m.sqlite") as state:
        with pytest.raises(TypeError):
            state.commit([seen("a"), seen("b", scores=object())], [], Counts(lines=1), now=0.0, look=1, criteria="c")
        assert (state.has("a"), state.counts, state.positions()) == (False, Counts(), [])
        assert commit(state, seen("a")) == 1


def test_one_monitor_writes_and_anybody_may_look(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    with opened(path) as state:
        commit(state, seen("a"))
        assert open_state(path) is None
        with read_state(path) as looking:
            assert looking.has("a")
    opened(path).close()


def test_a_window_holds_traces_of_one_set_of_criteria(tmp_path: Path) -> None:
    with opened(tmp_path / "m.sqlite") as state:
        commit(state, seen("a"), criteria="old", now=1.0)
        commit(state, seen("b", False), criteria="new", now=2.0)
        assert state.outcomes(10, "new") == [False]


def test_a_status_changes_once_and_targets_are_remembered(tmp_path: Path) -> None:
    with opened(tmp_path / "m.sqlite") as state:
        assert state.status is Status.INSUFFICIENT_DATA
        assert state.last_change() is None
        state.change(Status.WARNING, "why", 7.0)
        assert state.last_change() == (1, 7.0)
        state.change(Status.WARNING, "why", 8.0)
        assert state.last_change() == (1, 7.0)
        state.delivered("slack:X", Delivery(Status.WARNING, 7.0, 1, 9.0, "HTTP 500"))
    with opened(tmp_path / "m.sqlite") as state:
        assert state.deliveries() == {"slack:X": Delivery(Status.WARNING, 7.0, 1, 9.0, "HTTP 500")}
        assert state.status is Status.WARNING


def test_what_stood_before_nothing_could_be_said_stands_again(tmp_path: Path) -> None:
    with opened(tmp_path / "m.sqlite") as state:
        state.change(Status.WARNING, "why", 7.0)
        state.change(Status.INSUFFICIENT_DATA, "silence", 8.0, blind=True)
        assert (state.status, state.standing) == (Status.INSUFFICIENT_DATA, Status.WARNING)
        state.change(Status.INSUFFICIENT_DATA, "a window that began anew", 9.0)
        assert state.standing is Status.INSUFFICIENT_DATA


def test_scores_wait_to_be_exported(tmp_path: Path) -> None:
    with opened(tmp_path / "m.sqlite") as state:
        commit(state, seen("a"))
        commit(state, seen("b"), seen("c"), export=True)
        assert [one.trace for _, one in state.to_export(10)] == ["b", "c"]
        state.exported(state.to_export(1)[0][0])
        assert [one.trace for _, one in state.to_export(10)] == ["c"]


def kept_in(state: MonitorState) -> list[tuple[str, bytes]]:
    """The newest traces, the newest first, each with its conversation."""
    found = [state.trace(one.trace) for one in reversed(state.window(10, "c"))]
    return [(one.trace, one.kept) for one in found if one is not None]


def test_old_traces_and_conversations_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PRUNE_EVERY", 1)
    monkeypatch.setattr(store, "KEEP_TRACES", 3)
    monkeypatch.setattr(store, "KEEP_CONVERSATIONS", 1)
    with opened(tmp_path / "m.sqlite") as state:
        for name in "abcd":
            commit(state, seen(name, False, kept=b"said"))
        assert kept_in(state) == [("d", b"said"), ("c", b""), ("b", b"")]


def test_the_oldest_of_one_look_go_whatever_was_read_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PRUNE_EVERY", 1)
    monkeypatch.setattr(store, "KEEP_TRACES", 3)
    monkeypatch.setattr(store, "KEEP_CONVERSATIONS", 1)
    with opened(tmp_path / "m.sqlite") as state:
        for at in (4.0, 3.0, 2.0, 1.0):
            commit(state, replace(seen(f"t{at:.0f}", False, kept=b"said"), at=at), look=1)
        assert kept_in(state) == [("t4", b"said"), ("t3", b""), ("t2", b"")]


TIMES = st.lists(st.tuples(st.integers(0, 60), st.sampled_from((True, False, None))), max_size=60)


@pytest.mark.slow
@given(TIMES, st.randoms(use_true_random=False), st.integers(1, 20))
def test_any_order_of_the_same_traces_gives_the_same_window_and_verdict(
    traces: list[tuple[int, bool | None]], draw: random.Random, size: int
) -> None:
    """Of one look, read in one go or in batches, by themselves or mixed with others."""
    limits = MonitorSection(window=40, min_samples=10)
    known = [replace(seen(f"t{n}", passed), at=float(at)) for n, (at, passed) in enumerate(traces)]
    found = []
    for shuffled in (False, True):
        if shuffled:
            draw.shuffle(known)
        with TemporaryDirectory() as folder, opened(Path(folder) / "m.sqlite") as state:
            for start in range(0, len(known), size if shuffled else 60):
                commit(state, *known[start : start + size if shuffled else 60], now=100.0, look=1)
            outcomes = state.outcomes(limits.window, "c")
            newest = [(one.trace, one.passed) for one in state.window(limits.window, "c")]
            assert outcomes == [passed for _, passed in newest]
            found.append((newest, decide(outcomes, Status.HEALTHY, limits)))
    assert found[0] == found[1]
    assert len(found[0][0]) == min(len(traces), limits.window)
    times = {one.trace: one.at for one in known}
    assert [times[trace] for trace, _ in found[0][0]] == sorted(times.values())[-limits.window :]


def test_a_trace_of_the_future_counts_as_of_its_reading(tmp_path: Path) -> None:
    with opened(tmp_path / "m.sqlite") as state:
        commit(state, replace(seen("y2255"), at=9e9), replace(seen("y2256"), at=9.1e9), now=10.0)
        commit(state, replace(seen("old"), at=3.0), replace(seen("new"), at=19.0), now=20.0)
        assert [one.trace for one in state.window(9, "c")] == ["y2255", "y2256", "old", "new"]
        assert [one.at for one in state.window(9, "c")] == [10.0, 10.0, 3.0, 19.0]


def test_ids_are_found_by_their_beginning(tmp_path: Path) -> None:
    with opened(tmp_path / "m.sqlite") as state:
        commit(state, seen("ab%1"), seen("ab%2"), seen("abc"), seen("b"))
        assert sorted(state.like("ab%", 10)) == ["ab%1", "ab%2"]
        found = state.trace("abc")
        assert found is not None
        assert found.scores == {"tone": 0.5}
        assert state.trace("zzz") is None


def test_what_is_no_state_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    with pytest.raises(MeasureError, match="no monitor has stored anything"):
        read_state(path)
    path.touch()
    with pytest.raises(MeasureError, match="no monitor has stored anything"):
        read_state(path)
    path.write_bytes(b"not a database, and longer than a page header" * 40)
    with pytest.raises(ConfigError, match=r"state cannot be opened.*move it away"):
        open_state(path)
    path.unlink()
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version=99")
    newer.close()
    with pytest.raises(ConfigError, match="format 99"):
        open_state(path)


def foreign(path: Path) -> bytes:
    other = sqlite3.connect(path)
    other.executescript("CREATE TABLE answers (id INTEGER); INSERT INTO answers VALUES (7)")
    other.close()
    return path.read_bytes()


@pytest.mark.parametrize("opening", [open_state, read_state])
def test_the_database_of_another_program_is_left_as_it_is(
    tmp_path: Path, opening: Callable[[Path], MonitorState | None]
) -> None:
    before = foreign(path := tmp_path / "theirs.db")
    with pytest.raises(ConfigError, match="no monitor's state"):
        opening(path)
    assert path.read_bytes() == before


def test_looking_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    with opened(path) as state:
        commit(state, seen("a"))
    before = path.read_bytes()
    with read_state(path) as looking:
        assert looking.has("a")
        with pytest.raises(MeasureError, match="readonly"):
            looking.change(Status.WARNING, "why", 1.0)
    assert path.read_bytes() == before
    with opened(path) as state:
        assert commit(state, seen("b")) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE facts SET value = '{' WHERE name = 'counts'",
        "UPDATE facts SET value = '[]' WHERE name = 'counts'",
        "UPDATE facts SET value = '\"fine\"' WHERE name = 'status'",
        "UPDATE traces SET passed = 'yes'",
        "UPDATE traces SET passed = 7",
        "UPDATE traces SET scores = '{'",
        'UPDATE traces SET scores = \'{"tone": "high"}\'',
        "UPDATE traces SET seen = 'noon'",
        "UPDATE targets SET told = 'x'",
        "UPDATE changes SET at = 'x'",
        "UPDATE sources SET position = 'x'",
        "ALTER TABLE traces RENAME COLUMN query TO asked",
    ],
)
def test_a_damaged_state_is_told_in_one_line(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "m.sqlite"
    with opened(path) as state:
        commit(state, seen("a"))
        state.change(Status.WARNING, "why", 7.0)
        state.delivered("slack:X", Delivery(Status.WARNING))
    db = sqlite3.connect(path)
    db.execute(damage)
    db.commit()
    db.close()
    with opened(path) as state, pytest.raises(ConfigError, match=r"m\.sqlite: .* cannot be used: .*move it away"):
        _ = state.counts, state.status, state.last_change(), state.deliveries(), state.positions()
        _ = state.outcomes(9, "c"), state.window(9, "c"), state.last_seen("c")


def test_a_score_that_is_no_number_damages_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "m.sqlite") as state:
        commit(state, seen("a", scores={"tone": float("nan"), "kind": 1.0}))
        assert [one.scores for one in state.window(9, "c")] == [{"kind": 1.0}]


def test_a_state_of_which_a_page_or_a_table_is_gone_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    with opened(path) as state:
        commit(state, *(seen(f"t{n}", why="x" * 200) for n in range(200)))
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    with pytest.raises(ConfigError, match="move it away"), opened(path) as state:
        state.window(200, "c")
    path.write_bytes(whole)
    db = sqlite3.connect(path)
    db.execute("DROP TABLE traces")
    db.close()
    with pytest.raises(ConfigError, match="it lacks the table traces"):
        open_state(path)


def test_a_state_that_cannot_be_written_is_not_to_be_deleted(tmp_path: Path) -> None:
    (tmp_path / "folder.sqlite").mkdir()
    for path in (Path("/dev/full"), Path("/proc/m.sqlite"), tmp_path / "folder.sqlite"):
        with pytest.raises(ConfigError, match="cannot be opened") as refused:
            open_state(path)
        assert "make room" in str(refused.value.hint) and "delete" not in str(refused.value.hint)
