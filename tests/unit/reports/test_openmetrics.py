"""The OpenMetrics report is read by the format's own parser, and by GitLab's rules."""

from __future__ import annotations

import math
import re
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gate.model import Result, Verdict
from gate.reports.openmetrics import render

from .hostile import CORPUS, TEXT
from .samples import PASSED, RESULTS, hostile, result


def samples(found: Result) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Name and labels → value, as the format's own parser reads them."""
    read = {}
    for family in text_string_to_metric_families(render(found)):
        assert family.type == "gauge"
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in read
            read[key] = sample.value
    return read


def value(found: Result, name: str, **labels: str) -> float | None:
    own = {"suite": found.suites[0].suite_id, **labels}
    matching = [
        held for (one, given), held in samples(found).items() if one == name and own.items() <= dict(given).items()
    ]
    assert len(matching) < 2
    return matching[0] if matching else None


def gitlab(text: str) -> dict[str, str]:
    """What GitLab makes of the file: comments cut, each line split as by a shell, the first two words kept."""
    found = {}
    for line in text.splitlines():
        words = shlex.split(re.sub(r"#.*$", "", line))
        if words:
            found[words[0]] = words[1]
    return found


@pytest.mark.parametrize("name", RESULTS)
def test_every_kind_of_result_is_read_alike_by_both(name: str) -> None:
    read = samples(RESULTS[name])
    assert all(math.isfinite(number) for number in read.values())
    assert sorted(map(float, gitlab(render(RESULTS[name])).values())) == sorted(read.values())


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict is not Verdict.PASS])
def test_only_a_pass_is_passed(verdict: Verdict) -> None:
    assert value(result(replace(PASSED, verdict=verdict)), "gate_passed") == 0


def test_what_was_not_measured_is_left_out() -> None:
    unknown = replace(PASSED, cost_usd=None, criteria=(replace(PASSED.criteria[0], candidate=None),))
    assert value(result(unknown), "gate_agent_cost_usd") is None
    assert value(result(unknown), "gate_criterion") is None
    assert "NaN" not in render(result(unknown))


def test_hostile_names_stay_label_values() -> None:
    for text in (*CORPUS, "x" * 100_000, '"} 1\ngate_passed 1 #'):
        check(text)


@given(TEXT)
def test_any_name_stays_a_label_value(text: str) -> None:
    check(text)


@given(st.lists(st.sampled_from(["a", "a ", "a\t", "\u200b", "a#", "a＃"]), min_size=1, max_size=4))
def test_suites_whose_names_come_out_alike_are_not_doubled(names: list[str]) -> None:
    samples(result(*[replace(PASSED, suite_id=name) for name in names]))


def check(text: str) -> None:
    found: Any = result(hostile((text,)), command=text)
    read, plain = samples(found), samples(result(hostile(("word",))))
    assert {name for name, _ in read} == {name for name, _ in plain}
    assert max(len(held) for _, labels in read for _, held in labels) < 300
    assert len(gitlab(render(found))) == len(read)
