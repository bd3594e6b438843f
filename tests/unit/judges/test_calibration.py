from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import ConfigError, MeasureError
from gate.judges.calibration import (
    calibrate,
    compared,
    describe,
    load,
    not_applied,
    not_blocking,
    not_corrected,
    read_labels,
    save,
)
from gate.model import Case, Invocation, Score


def pairs(both_pass: int, both_fail: int, only_judge: int, only_people: int) -> list[tuple[bool, bool]]:
    table = [(True, True)] * both_pass + [(False, False)] * both_fail
    return table + [(False, True)] * only_judge + [(True, False)] * only_people


def test_textbook_example() -> None:
    """Cohen's κ of the table 20, 5, 10, 15: observed 0.70, by chance 0.50, κ 0.40."""
    found = compared(pairs(20, 15, 5, 10))
    assert found.accuracy.value == pytest.approx(0.70)
    assert found.kappa is not None
    assert found.kappa.value == pytest.approx(0.40)
    # Fleiss, Cohen & Everitt (1969): standard error 0.1264 at n = 50.
    assert found.kappa.low == pytest.approx(0.40 - 1.96 * 0.1264, abs=0.06)
    assert found.kappa.high == pytest.approx(0.40 + 1.96 * 0.1264, abs=0.06)


def test_few_labels_that_agree_prove_little_and_many_prove_much() -> None:
    few, many = compared(pairs(3, 2, 0, 0)).kappa, compared(pairs(100, 100, 0, 0)).kappa
    assert few is not None and many is not None
    assert few.value == many.value == 1.0
    assert few.low < 0.5 < 0.95 < many.low


@pytest.mark.slow
def test_intervals_cover_the_truth() -> None:
    """A judge right in 85 % of 60 labels, half of them pass: κ is 0.7, which 95 % of the intervals hold."""
    rng, hits = Random(1), 0
    for _ in range(100):
        truth = [rng.random() < 0.5 for _ in range(60)]
        found = compared([(one, one if rng.random() < 0.85 else not one) for one in truth]).kappa
        assert found is not None
        hits += found.low <= 0.7 <= found.high
    assert hits >= 88


@pytest.mark.slow
@given(st.tuples(*[st.integers(0, 30)] * 4).filter(any))
def test_figures_stay_in_range(table: tuple[int, int, int, int]) -> None:
    found = compared(pairs(*table))
    known = found.known
    assert (known.both_pass, known.both_fail, known.only_judge, known.only_people) == table
    assert 0 <= found.accuracy.low <= found.accuracy.value <= found.accuracy.high <= 1
    if found.kappa is not None:
        assert -1 <= found.kappa.low <= found.kappa.value <= found.kappa.high <= 1


def test_one_sided_labels_leave_kappa_undefined() -> None:
    found = compared(pairs(10, 0, 0, 0))
    assert found.kappa is None
    assert not_blocking(found, 0.0)
    assert "undefined" in describe(found)


def test_no_pairs_is_an_error() -> None:
    with pytest.raises(MeasureError):
        compared([])


def test_blocks_only_when_calibrated_at_the_level() -> None:
    good = compared(pairs(50, 50, 2, 2))
    assert not_blocking(None, None) == ""
    assert not_blocking(good, 0.6) == ""
    assert not_blocking(good, 0.95)
    assert "95 %" in not_blocking(good, 0.95)
    assert "never calibrated" in not_blocking(None, 0.6)


def test_kept_by_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "calibration.json"
    one, other = compared(pairs(5, 5, 1, 0), not_measured=2), compared(pairs(9, 0, 0, 0))
    save(path, "a", one)
    save(path, "b", other)
    assert load(path, "a") == one
    assert load(path, "b") == other
    assert load(path, "another judge") is None
    assert load(tmp_path / "none.json", "a") is None


@pytest.mark.parametrize(
    "text", ["[]", '{"version": 2, "calibrations": {}}', '{"version": 1, "calibrations": {"a": {"n": 1}}}']
)
def test_a_foreign_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        load(path, "a")


def test_labels_and_scores_meet_at_the_pass_mark(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(
        '{"user": "u", "answer": "good", "label": "pass"}\n'
        '{"user": "u", "answer": "bad", "label": "FAIL", "expected": "e"}\n'
        '{"answer": {"output": "good", "tool_calls": []}, "label": 4.5}\n'
        '{"answer": "bad", "label": true}\n'
        '{"answer": "?", "label": 1}\n'
    )
    labels = read_labels(path)
    assert labels[1].case.turns[0].response is not None

    async def score(case: Case, invocation: Invocation) -> Score:
        return Score({"good": 4.0, "bad": 2.0}.get(invocation.text), error=None if invocation.text != "?" else "down")

    found = asyncio.run(calibrate(labels, score, lambda value: value >= 3.5))
    agreed = found.known
    assert (agreed.both_pass, agreed.both_fail, agreed.only_judge, agreed.only_people) == (2, 1, 0, 1)
    assert found.not_measured == 1
    assert "4 labels, 1 not measured" in describe(found)


def test_a_judge_that_measures_nothing_is_no_calibration(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"answer": "a", "label": "pass"}\n')

    async def score(case: Case, invocation: Invocation) -> Score:
        return Score(None, error="judge not reached")

    with pytest.raises(MeasureError, match="judge not reached"):
        asyncio.run(calibrate(read_labels(path), score, bool))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"answer": "a"}', "label"),
        ('{"answer": "a", "label": "perhaps"}', "neither pass nor fail"),
        ('{"answer": 3, "label": "pass"}', "answer"),
        ('{"answer": "a", "label": "pass", "lable": 1}', "lable"),
        ("", "no labels"),
    ],
)
def test_unreadable_labels_name_their_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(line)
    with pytest.raises(ConfigError, match=message):
        read_labels(path)


def test_labels_that_are_all_scores_say_how_people_differ(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(f'{{"answer": "{n}", "label": {0.5 + 0.1 * n}}}\n' for n in range(4)))

    async def score(case: Case, invocation: Invocation) -> Score:
        return Score(0.4)

    found = asyncio.run(calibrate(read_labels(path), score, lambda value: value >= 0.6))
    graded = found.known.graded
    assert graded is not None
    assert (graded.labels, graded.bias) == (4, pytest.approx(0.25))
    assert "+0.250" in describe(found) and "0.129" in describe(found)
    assert not_corrected(found.known) in describe(found)
    save(tmp_path / "c.json", "f", found)
    assert load(tmp_path / "c.json", "f") == found


def test_a_line_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    one, other = '"user": "u", "answer": "a"', '"answer": "a", "user": "u"'
    path.write_text(
        f'{{{one}, "label": "pass"}}\n{{{other}, "label": "pass", "id": "again"}}\n{{{one}, "label": "fail"}}\n'
    )
    assert [label.label for label in read_labels(path)] == [1.0, 0.0]


def test_what_cannot_correct_is_said() -> None:
    useless, good = (compared(pairs(*table)) for table in ((10, 0, 0, 0), (50, 50, 1, 1)))
    assert "10 labels" in not_corrected(useless.known) and not_corrected(useless.known) in describe(useless)
    assert not_corrected(good.known) == ""


def graded_labels(folder: Path, *labels: float) -> Path:
    path = folder / "labels.jsonl"
    path.write_text("".join(f'{{"answer": "{n}", "label": {label}}}\n' for n, label in enumerate(labels)))
    return path


async def by_number(case: Case, invocation: Invocation) -> Score:
    """The judge's scores rise with the number of the answer."""
    return Score(int(invocation.text) / 40)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([n / 40 for n in range(40)], ""),
        ([1 - n / 40 for n in range(40)], "(correlation -1.00)"),
        ([0.7] * 40, "(correlation 0.00)"),
        ([0.3, 0.6], "2 graded labels"),
    ],
)
def test_graded_labels_correct_where_the_judge_rises_with_people(
    tmp_path: Path, labels: list[float], told: str
) -> None:
    found = asyncio.run(calibrate(read_labels(graded_labels(tmp_path, *labels)), by_number, lambda v: v >= 0.5))
    said = not_corrected(found.known)
    assert told in said and bool(said) == bool(told)
    assert said in describe(found)
    save(tmp_path / "c.json", "f", found)
    assert load(tmp_path / "c.json", "f") == found


def test_more_graded_labels_than_the_table_holds_are_refused(tmp_path: Path) -> None:
    found = asyncio.run(calibrate(read_labels(graded_labels(tmp_path, 0.4, 0.4)), by_number, bool))
    save(tmp_path / "c.json", "f", found)
    data = json.loads((tmp_path / "c.json").read_text())
    data["calibrations"]["f"]["graded"]["labels"] = 1_000_000
    (tmp_path / "c.json").write_text(json.dumps(data))
    with pytest.raises(ConfigError, match="1,000,000 graded labels beside a table of 2"):
        load(tmp_path / "c.json", "f")


def test_a_judge_that_measured_less_than_half_of_the_labels_is_not_used() -> None:
    half, less = compared(pairs(20, 20, 0, 0), not_measured=40), compared(pairs(20, 20, 0, 0), not_measured=41)
    assert not_applied(half) == ""
    assert not not_blocking(half, 0.5)
    assert "40 of 81" in not_applied(less) and not_applied(less) in describe(less)
    assert not_blocking(less, 0.5)


def test_only_the_counts_of_a_file_are_believed(tmp_path: Path) -> None:
    """A kappa that was written in by hand decides nothing."""
    path = tmp_path / "c.json"
    save(path, "f", compared(pairs(10, 10, 10, 10)))
    data = json.loads(path.read_text())
    data["calibrations"]["f"]["agreement"]["kappa"] = {"value": 0.9, "low": 0.8, "high": 1.0}
    path.write_text(json.dumps(data))
    found = load(path, "f")
    assert found is not None and found.kappa is not None
    assert found.kappa.value == 0.0
    assert not_blocking(found, 0.1)
