"""A change may tighten the rules it is held to, and loosens them only once it is merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gate.held import hold, hold_criteria, is_stricter
from gate.judges import calibration
from gate.plan import CALIBRATION_FILE, make_plans

SUITE = "cases:\n  - {id: a, input: hello, response: hello}\n  - {id: b, input: bye, response: bye}\n"
BASE = {
    "name": "s",
    "suite": "suite.yaml",
    "agent": {"command": "true"},
    "criteria": {"response_match_score": 0.8, "latency": {"max": 3}},
}


def write(folder: Path, configuration: dict[str, Any] | str | None, suite: str = SUITE, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "suite.yaml").write_text(suite)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    path = folder / "gate.yaml"
    if configuration is not None:
        path.write_text(configuration if isinstance(configuration, str) else yaml.safe_dump(configuration))
    return path


def held(tmp_path: Path, **changes: Any):  # type: ignore[no-untyped-def]
    """The change's rules, where its configuration differs from the base's by ``changes``."""
    return hold(write(tmp_path / "head", BASE | changes), {}, write(tmp_path / "base", BASE))


def criteria(rules: Any) -> dict[str, Any]:
    [plan] = make_plans(rules.config, {})
    return {criterion.name: criterion for criterion in plan.criteria}


def test_without_a_change_nothing_is_said(tmp_path: Path) -> None:
    rules = held(tmp_path)
    assert rules.changes == ()
    assert criteria(rules)["response_match_score"].threshold == 0.8


def test_a_lower_threshold_does_not_hold_and_a_higher_one_does(tmp_path: Path) -> None:
    rules = held(tmp_path, criteria={"response_match_score": 0.1, "latency": {"max": 1}})
    found = criteria(rules)
    assert (found["response_match_score"].threshold, found["latency"].limit) == (0.8, 1)
    assert sorted(rules.changes) == [
        "latency.max: 3 → 1, stricter",
        "response_match_score.threshold: 0.8 → 0.1 holds once it is merged",
    ]


def test_a_removed_criterion_stays_and_a_new_one_counts(tmp_path: Path) -> None:
    rules = held(tmp_path, criteria={"latency": {"max": 3}, "contains": {"values": ["hello"]}})
    assert set(criteria(rules)) == {"response_match_score", "latency", "contains"}
    assert "criterion response_match_score is removed once it is merged" in rules.changes
    assert "criterion contains is new" in rules.changes


def test_taking_all_criteria_out_leaves_the_bases(tmp_path: Path) -> None:
    rules = hold(
        write(tmp_path / "head", {k: v for k, v in BASE.items() if k != "criteria"}), {}, write(tmp_path / "base", BASE)
    )
    assert criteria(rules)["latency"].limit == 3


@pytest.mark.parametrize(
    ("before", "after", "holds"),
    [
        ({"threshold": 0.5}, {"threshold": 0.5, "blocking": False}, {"threshold": 0.5}),
        (
            {"threshold": 0.5, "blocking": False},
            {"threshold": 0.5, "blocking": True},
            {"threshold": 0.5, "blocking": True},
        ),
        ({"threshold": 0.5, "margin": 0.02}, {"threshold": 0.5, "margin": 0.2}, {"threshold": 0.5, "margin": 0.02}),
        ({"threshold": 0.5}, {"threshold": 0.5, "margin": 0.01}, {"threshold": 0.5}),
        ({"threshold": 0.5}, {"threshold": 0.5, "regression": "warn"}, {"threshold": 0.5}),
        ({"threshold": 0.5}, {"threshold": 0.5, "ratchet": False}, {"threshold": 0.5, "ratchet": False}),
        (
            {"threshold": 0.5, "match_type": "EXACT"},
            {"threshold": 0.6, "matchType": "ANY_ORDER"},
            {"threshold": 0.6, "match_type": "EXACT"},
        ),
        ({"threshold": 0.5}, {}, {"threshold": 0.5}),
        ({}, {"threshold": 0.5}, {"threshold": 0.5}),
    ],
)
def test_options_are_held_one_by_one(before: dict[str, Any], after: dict[str, Any], holds: dict[str, Any]) -> None:
    found, changes = hold_criteria({"tool_trajectory_avg_score": before}, {"tool_trajectory_avg_score": after})
    assert found == {"tool_trajectory_avg_score": holds}
    assert changes


def test_a_limit_under_the_name_of_threshold_is_a_limit_all_the_same() -> None:
    found, _ = hold_criteria({"latency": 3}, {"latency": 5})
    assert found == {"latency": {"threshold": 3.0}}


def test_the_threshold_of_the_users_own_metric_cannot_be_told_to_be_stricter() -> None:
    found, _ = hold_criteria({"mine:Check": 0.5}, {"mine:Check": 0.9})
    assert found == {"mine:Check": {"threshold": 0.5}}


def test_quarantine_holds_once_it_is_merged(tmp_path: Path) -> None:
    entry = {"case": "a", "owner": "x", "reason": "y", "expires": "2099-01-01"}
    rules = held(tmp_path, quarantine=[entry])
    assert rules.config.file.quarantine == []
    assert rules.changes == ("quarantine of 'a' holds once it is merged",)


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ({"gate": {"alpha": 0.0001}}, "gate.alpha", 0.02),
        ({"gate": {"alpha": 0.1}}, "gate.alpha", 0.1),
        ({"gate": {"on_inconclusive": "block"}}, "gate.on_inconclusive", "block"),
        ({"gate": {"max_error_rate": 0.9}}, "gate.max_error_rate", 0.1),
        ({"baseline": {"on_missing": "fail"}}, "baseline.on_missing", "fail"),
        ({"baseline": {"branch": "mine"}}, "baseline.branch", "gate-baselines"),
        ({"trials": 1}, "trials", "auto"),
        ({"select": {"ids": ["a"]}}, "select", None),
        ({"budget": {"usd": 0.01}}, "budget.usd", None),
        ({"judge": {"model": "cheap"}}, "judge", None),
    ],
)
def test_settings_are_the_bases_unless_they_are_stricter(
    tmp_path: Path, changes: dict[str, Any], key: str, value: Any
) -> None:
    rules = held(tmp_path, **changes)
    found: Any = rules.config.file
    for name in key.split("."):
        found = getattr(found, name)
    assert found == value
    assert len(rules.changes) == 1


def test_agent_and_setup_are_the_changes_own(tmp_path: Path) -> None:
    rules = held(tmp_path, agent={"command": "false"}, setup="make")
    assert rules.changes == ()
    assert rules.config.file.setup == "make"


def test_thresholds_of_single_cases_are_held(tmp_path: Path) -> None:
    strict = SUITE.replace("response: hello", "response: hello, thresholds: {response_match_score: 0.9}")
    loose = SUITE.replace("response: hello", "response: hello, thresholds: {response_match_score: 0.1}")
    rules = hold(write(tmp_path / "head", BASE, loose), {}, write(tmp_path / "base", BASE, strict))
    [plan] = make_plans(rules.config, {})
    assert plan.cases["a"].thresholds == {"response_match_score": 0.9}
    assert rules.changes == ("case 'a': response_match_score 0.9 → 0.1 holds once it is merged",)


def test_criteria_beside_an_eval_set_are_held(tmp_path: Path) -> None:
    """ADK's ``test_config.json``, which the configuration does not mention."""
    evalset = json.dumps(
        {
            "eval_set_id": "e",
            "eval_cases": [
                {
                    "eval_id": "a",
                    "conversation": [
                        {"user_content": {"parts": [{"text": "x"}]}, "final_response": {"parts": [{"text": "y"}]}}
                    ],
                }
            ],
        }
    )
    plain = {"suite": "evals", "agent": {"command": "true"}}
    paths = []
    for name, threshold in (("head", 0.1), ("base", 0.7)):
        path = write(tmp_path / name, plain)
        (tmp_path / name / "evals").mkdir()
        (tmp_path / name / "evals" / "a.evalset.json").write_text(evalset)
        (tmp_path / name / "evals" / "test_config.json").write_text(
            json.dumps({"criteria": {"response_match_score": threshold}})
        )
        paths.append(path)
    rules = hold(paths[0], {}, paths[1])
    assert criteria(rules)["response_match_score"].threshold == 0.7
    assert rules.changes


def test_a_first_configuration_has_no_base_to_be_held_to(tmp_path: Path) -> None:
    rules = hold(write(tmp_path / "head", BASE), {}, write(tmp_path / "base", None))
    assert "no such configuration" in rules.changes[0]
    assert criteria(rules)["latency"].limit == 3


def test_a_base_that_cannot_be_read_is_said_and_doubted(tmp_path: Path) -> None:
    rules = hold(write(tmp_path / "head", BASE), {}, write(tmp_path / "base", "sweet: true"))
    assert "cannot be read" in rules.changes[0]
    assert "cannot be read" in rules.doubts[0]


def test_what_is_overridden_of_the_agent_says_nothing_of_the_bases(tmp_path: Path) -> None:
    """A change may come with another kind of agent: that does not make the base's configuration unreadable."""
    served = write(tmp_path / "head", BASE | {"agent": {"http": {"url": "http://localhost:1"}}})
    rules = hold(served, {"agent.http.url": "http://172.17.0.1:1"}, write(tmp_path / "base", BASE))
    assert (rules.changes, rules.doubts) == ((), ())


def test_settings_and_criteria_hold_without_the_bases_suites(tmp_path: Path) -> None:
    base = write(tmp_path / "base", BASE)
    (base.parent / "suite.yaml").unlink()
    loose = {"criteria": {"response_match_score": 0.1}, "baseline": {"store": "none"}}
    rules = hold(write(tmp_path / "head", BASE | loose), {}, base)
    assert criteria(rules)["response_match_score"].threshold == 0.8
    assert rules.config.file.baseline.store == "file"
    assert "suites cannot be read, so that thresholds of single cases are the change's own" in rules.changes[-1]
    assert rules.doubts == ()


def test_a_renamed_suite_is_said_doubted_and_held_to_the_bases_criteria(tmp_path: Path) -> None:
    rules = held(tmp_path, name="renamed", criteria={"response_match_score": 0.1})
    assert rules.changes[0] == "suite 'renamed' is not in the base commit"
    assert rules.doubts == ("suite 's' of the base commit is no longer there",)
    assert criteria(rules)["response_match_score"].threshold == 0.8


@pytest.mark.parametrize(
    ("key", "before", "now", "stricter"),
    [
        ("threshold", None, 0.5, True),
        ("threshold", 0.5, None, False),
        ("threshold", 0.5, "0.9", False),
        ("max", None, 3, True),
        ("p95", 3, 2, True),
        ("p95", 2, 3, False),
        ("margin", None, 0.001, False),
        ("tools", ["a"], ["a", "b"], False),
        ("strict", False, True, False),
        ("threshold", True, False, False),
    ],
)
def test_what_cannot_be_told_to_be_stricter_is_not(key: str, before: Any, now: Any, stricter: bool) -> None:
    assert is_stricter(key, before, now) is stricter


def test_a_calibration_is_the_bases_where_the_base_has_one(tmp_path: Path) -> None:
    """Without it a judged criterion with ``min_kappa`` would only report."""
    judged = {"clarity": {"threshold": 0.7, "min_kappa": 0.2}, "latency": {"max": 3}}
    base, head = (write(tmp_path / name, BASE | {"criteria": judged}) for name in ("base", "head"))
    [plan] = make_plans(hold(head, {}, base).config, {"OPENAI_API_KEY": "x"})
    clarity = plan.criteria[0]
    assert not clarity.blocking
    known = calibration.Calibration(calibration.agreement([(True, True), (False, False)] * 50))
    calibration.save(base.parent / CALIBRATION_FILE, clarity.fingerprint, known)
    rules = hold(head, {}, base)
    [plan] = make_plans(rules.config, {"OPENAI_API_KEY": "x"})
    assert plan.criteria[0].blocking
    assert rules.changes == ("calibration.json: removed once it is merged",)
