"""What `gate baseline diff` and `gate explain --case` print: plain words, one unit a line, and no zero for little."""

from __future__ import annotations

from pathlib import Path

from gate.metrics.efficiency import _dollars, _seconds
from gate.model import Criterion, Direction, Scale, Score, Trial
from gate.records import Footer, Header, PlannedCase, Record, write_record
from gate.stored.explain import _trial_lines
from gate.stored.record_diff import diff_records

PASSES = Criterion("ok", "ok", Scale.UNIT, threshold=0.9, pass_threshold=0.9)
COST = Criterion("cost", "cost", Scale.USD, Direction.LOWER, blocking=False)
TIME = Criterion("latency", "latency", Scale.SECONDS, Direction.LOWER, blocking=False)


def record(path: Path, commit: str | None, value: float, trials: int, *, dirty: bool) -> Path:
    criteria = (PASSES, COST, TIME)
    header = Header("s", (PlannedCase("c", "f"),), criteria, commit=commit, dirty=dirty)
    scores = {"ok": Score(value), "cost": Score(0.0000276), "latency": Score(0.0000079)}
    made = tuple(Trial("c", n, scores=scores) for n in range(1, trials + 1))
    write_record(path, Record(header, made, Footer(trials, 0, 1)))
    return path


def test_a_difference_in_plain_words(tmp_path: Path) -> None:
    old = record(tmp_path / "old.jsonl", None, 1.0, 5, dirty=False)
    new = record(tmp_path / "new.jsonl", "6e132310c331" + "a" * 28, 0.0, 11, dirty=True)
    text = diff_records(old, new)
    assert "commit: no commit → 6e132310c331\n" in text
    assert "work tree: clean → with uncommitted changes" in text
    assert "None" not in text and "True" not in text and "'" not in text
    assert "$0.0000276 (n = 1)" in text and "7.9 µs (n = 1)" in text
    assert "c: same case, passed 5/5 → 0/11, 5 → 11 trials" in text


def test_a_trial_tells_each_value_once() -> None:
    reasons = {"cost": "$0.0000, by the list price of m", "latency": "0.00 s", "ok": "0.00 s"}
    values = {"cost": 0.0000276, "latency": 0.0000079, "ok": 1.0}
    trial = Trial("c", 1, scores={name: Score(values[name], said) for name, said in reasons.items()})
    demanded = {one.name: (one, "no limit") for one in (PASSES, COST, TIME)}
    lines = _trial_lines("this change", trial, demanded, "(no call)")
    assert "  cost $0.0000276 (no limit) by the list price of m" in lines
    assert "  latency 7.9 µs (no limit)" in lines
    assert "  ok 1.000 (no limit) 0.00 s" in lines


def test_reasons_of_metrics_do_not_round_to_nothing() -> None:
    assert [_dollars(value) for value in (0.0234, 0.0000276, 0.0)] == ["$0.0234", "$0.000028", "$0.0000"]
    assert [_seconds(value) for value in (1.844, 0.0000079, 0.0)] == ["1.84 s", "0.0000079 s", "0.00 s"]
