"""The lines of `gate explain --case`: plain words, one unit a line, and no zero for little."""

from __future__ import annotations

from gate.metrics.efficiency import _dollars, _seconds
from gate.model import Criterion, Direction, Scale, Score, Trial
from gate.stored.explain import _trial_lines

PASSES = Criterion("ok", "ok", Scale.UNIT, threshold=0.9, pass_threshold=0.9)
COST = Criterion("cost", "cost", Scale.USD, Direction.LOWER, blocking=False)
TIME = Criterion("latency", "latency", Scale.SECONDS, Direction.LOWER, blocking=False)


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
