"""What a monitor says: JSON, text and Prometheus' form of the same figures, with hostile content inert."""

from __future__ import annotations

import json
import re

from msgspec.structs import replace

from gate.config.criteria import Setting, build_scorers
from gate.config.production import MonitorSection
from gate.config.specs import read_specs
from gate.model import Estimate
from gate.monitor.model import Counts, Observation
from gate.monitor.observe import Scoring, scoring_for
from gate.monitor.report import (
    Expected,
    MonitorReport,
    average,
    headline,
    to_json,
    to_prometheus,
    to_text,
)
from gate.monitor.window import Status, decide

LIMITS = MonitorSection()
NOTHING = Expected()
SAMPLE = re.compile(r'^gate_monitor_[a-z_]+\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*\} -?[0-9.e+-]+$')


def scoring() -> Scoring:
    criteria = {"not_contains": {"values": ["no"]}, "latency": {"max": 3.0}, "response_match_score": 0.8}
    return scoring_for(build_scorers(read_specs(criteria, lambda *_: "criteria"), (), Setting()))


def window(n: int, bad: int, why: str = "not_contains: no") -> list[Observation]:
    return [
        Observation(
            f"t{number}",
            1_700_000_000.0 + number,
            number < n - bad,
            float(number < n - bad),
            {"not_contains": float(number < n - bad)},
            "" if number < n - bad else why,
            "where?",
            "there",
            ("not_contains",),
        )
        for number in range(n)
    ]


def report(n: int = 100, bad: int = 60, why: str = "not_contains: no", expected: Expected = NOTHING) -> MonitorReport:
    seen = window(n, bad, why)
    finding = decide([one.passed for one in seen], Status.HEALTHY, LIMITS)
    counts = Counts(lines=n + 1, bad=1, sampled=n)
    return MonitorReport(finding, tuple(seen), scoring(), counts, 1_700_000_000.0, 0.5, expected)


def test_the_json_has_status_figures_and_previews() -> None:
    found = json.loads(to_json(report()))
    assert (found["version"], found["status"], found["sample_count"]) == (1, "critical", 100)
    assert found["pass_rate"]["rate"] == 0.4
    assert found["pass_rate"]["low"] < 0.4 < found["pass_rate"]["high"]
    assert found["average_score"]["mean"] == 0.4
    assert found["failures"][0] == {
        "trace": "t99",
        "at": "2023-11-14T22:14:59+00:00",
        "why": "not_contains: no",
        "query": "where?",
        "output": "there",
    }
    by_name = {row["name"]: row for row in found["criteria"]}
    assert by_name["not_contains"]["window"]["n"] == 100
    assert "applied to none" in by_name["latency"]["note"]
    assert [one["name"] for one in found["skipped"]] == ["response_match_score"]


def test_the_text_leads_with_the_status_and_says_what_is_skipped() -> None:
    text = to_text(report(), LIMITS)
    assert text.startswith("critical: pass rate 40 % [24.6, 56.9] ")
    assert re.search("^response_match_score: skipped", text, re.MULTILINE)


def test_production_is_laid_beside_ci() -> None:
    in_ci = Estimate(0.9, 0.75, 0.97, 30)
    expected = Expected({"not_contains": in_ci}, in_ci, "of CI")
    text = to_text(report(expected=expected), LIMITS)
    assert "90 % [75, 97] n = 30" in text
    row = next(line for line in text.splitlines() if line.startswith("not_contains  "))
    assert row.split("  ")[-2:] == ["90 % [75, 97] n = 30", "−50 points"]
    assert "note: of CI" in text
    assert json.loads(to_json(report(expected=expected)))["criteria"][0]["baseline"]["mean"] == 0.9


def test_nothing_measured_is_no_zero() -> None:
    found = report(0, 0)
    assert json.loads(to_json(found))["pass_rate"]["rate"] is None
    assert "gate_monitor_pass_rate{" not in to_prometheus(found, "shop")
    assert to_text(found, LIMITS).startswith("insufficient_data: ")


def test_prometheus_reads_every_line() -> None:
    text = to_prometheus(report(), 'a"b\\c\nd')
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert samples
    assert all(SAMPLE.match(line) for line in samples), samples
    assert 'gate_monitor_status{suite="a\\"b\\\\c\\nd",status="critical"} 1.0' in text
    kinds = [line.split()[2:] for line in text.splitlines() if line.startswith("# TYPE")]
    named = dict(kinds)
    assert len(named) == len(kinds)
    assert {name: kind for name, kind in named.items() if kind != "gauge"} == {
        name: "counter" for name in named if name.endswith("_total")
    }


def test_hostile_content_does_not_reach_the_terminal() -> None:
    text = to_text(report(why="\x1b[2J\u202eevil\r\n::error::x"), LIMITS)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\n::error::" not in text


def test_an_average_has_its_interval() -> None:
    assert average([]) is None
    found = average([0.9, 1.0, 0.95])
    assert found is not None
    assert 0 <= found.low < found.value < found.high <= 1.0


def test_one_trace_has_no_interval() -> None:
    seen = json.loads(to_json(report(1, 0)))["average_score"]
    assert seen == {"mean": 1.0, "n": 1, "low": None, "high": None}


def test_a_status_of_the_past_says_so() -> None:
    """Where traces stop coming the window stays as it was: whoever reads "healthy" has to see how old that is."""
    fresh, old = report(bad=0), replace(report(bad=0), at=1_700_000_000.0 + 3 * 86_400)
    assert "2023-11-14" not in headline(fresh)
    assert "2023-11-14 22:1" in headline(old)
    assert json.loads(to_json(old))["newest"].startswith("2023-11-14T22:1")
    assert 'gate_monitor_newest_trace_seconds{suite="s"} 1700000099.0' in to_prometheus(old, "s")


def test_where_the_agent_always_failed_no_criterion_is_said_not_to_apply() -> None:
    seen = [replace(one, scores={}, applied=(), why="the agent failed: it broke") for one in window(100, 100)]
    finding = decide([one.passed for one in seen], Status.HEALTHY, LIMITS)
    found = MonitorReport(finding, tuple(seen), scoring(), Counts(), 1_700_000_000.0, 0.5)
    assert found.status is Status.CRITICAL
    assert [row.note for row in found.criteria] == ["", ""]
