"""A change may tighten the rules it is held to, and loosens them only once it is merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from gate.config.base_policy import Rules, place_of, read_base, remove_outward_links
from gate.config.base_policy import under_base_policy as hold_to
from gate.config.load import read_config
from gate.config.resolve import make_plans
from gate.config.specs import read_specs
from gate.config.tighten import criteria_under_base
from gate.errors import ConfigError
from gate.judges import calibration
from gate.judges.options import CALIBRATION_FILE
from gate.model.strictness import DOWN, MORE, NEVER, ON, UP, Tightens, steps

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


def under_base_policy(path: Path, overrides: dict[str, Any], base: Path) -> Rules:
    """The configuration at ``path`` under the rules of the one at ``base``."""
    source = read_config(path)
    return hold_to(source, overrides, read_base(base, source, overrides))


def specs(raw: dict[str, Any]) -> Any:
    return read_specs(raw, lambda *_: "gate.yaml")


PUBLIC = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n"


def held(tmp_path: Path, **changes: Any):  # type: ignore[no-untyped-def]
    """The change's rules, where its configuration differs from the base's by ``changes``."""
    return under_base_policy(write(tmp_path / "head", BASE | changes), {}, write(tmp_path / "base", BASE))


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
        "latency.max: 3.0 → 1.0, stricter",
        "response_match_score.threshold: 0.8 → 0.1 takes effect once it is merged",
    ]


def test_a_removed_criterion_stays_and_a_new_one_counts(tmp_path: Path) -> None:
    rules = held(tmp_path, criteria={"latency": {"max": 3}, "contains": {"values": ["hello"]}})
    assert set(criteria(rules)) == {"response_match_score", "latency", "contains"}
    assert "criterion response_match_score is removed once it is merged" in rules.changes
    assert "criterion contains is new" in rules.changes


def test_taking_all_criteria_out_leaves_the_bases(tmp_path: Path) -> None:
    head = write(
        tmp_path / "head", {k: v for k, v in BASE.items() if k != "criteria"}, SUITE.replace("}", ", tools: []}")
    )
    rules = under_base_policy(head, {}, write(tmp_path / "base", BASE))
    assert criteria(rules)["latency"].limit == 3


def test_a_threshold_of_0_which_is_refused_can_be_taken_out(tmp_path: Path) -> None:
    idle = write(tmp_path / "base", BASE | {"criteria": {"response_match_score": 0, "latency": {"max": 3}}})
    head = write(tmp_path / "head", BASE | {"criteria": {"response_match_score": {}, "latency": {"max": 3}}})
    assert criteria(under_base_policy(head, {}, idle))["response_match_score"].threshold is None


@pytest.mark.parametrize(
    ("before", "after", "holds"),
    [
        ({"threshold": 0.5}, {"threshold": 0.5, "blocking": False}, {"threshold": 0.5}),
        ({"threshold": 0.5, "blocking": False}, {"threshold": 0.5}, {"threshold": 0.5, "blocking": True}),
        ({"threshold": 0.5, "margin": 0.02}, {"threshold": 0.5, "margin": 0.2}, {"threshold": 0.5, "margin": 0.02}),
        ({"threshold": 0.5, "margin": 0.02}, {"threshold": 0.5}, {"threshold": 0.5, "margin": 0.02}),
        ({"threshold": 0.5}, {"threshold": 0.5, "margin": 0.01}, {"threshold": 0.5, "margin": 0.01}),
        ({"threshold": 0.5}, {"threshold": 0.5, "margin": 0.11}, {"threshold": 0.5}),
        ({"threshold": 0.5}, {"threshold": 0.5, "regression": "warn"}, {"threshold": 0.5}),
        ({"threshold": 0.5}, {"threshold": 0.5, "ratchet": False}, {"threshold": 0.5, "ratchet": False}),
        ({"threshold": 0.5, "ratchet": False}, {"threshold": 0.5}, {"threshold": 0.5, "ratchet": False}),
        ({"threshold": 0.5}, {"threshold": 0.5, "ratchet": False}, {"threshold": 0.5, "ratchet": False}),
        ({"threshold": 0.5, "ratchet": False}, {"threshold": 0.5}, {"threshold": 0.5, "ratchet": False}),
        (
            {"threshold": 0.5, "match_type": "IN_ORDER"},
            {"threshold": 0.6, "match_type": "ANY_ORDER"},
            {"threshold": 0.6, "match_type": "IN_ORDER"},
        ),
        ({"threshold": 0.5}, {}, {"threshold": 0.5}),
        ({}, {"threshold": 0.5}, {}),  # without a threshold a trial passes from 1 on
        ({}, {"threshold": 1.0}, {"threshold": 1.0}),
    ],
)
def test_options_are_held_one_by_one(before: dict[str, Any], after: dict[str, Any], holds: dict[str, Any]) -> None:
    name = "tool_trajectory_avg_score"
    [found], changes = criteria_under_base(specs({name: before}), specs({name: after}))
    [wanted] = specs({name: holds})
    assert (found.common, found.options) == (wanted.common, wanted.options)
    assert changes


def test_another_spelling_is_no_change() -> None:
    name = "tool_trajectory_avg_score"
    before = specs({name: {"threshold": 1, "match_type": "EXACT"}})
    for spelling in (
        {"threshold": "1.0"},
        {"threshold": 1, "match_type": "exact"},
        1,
        {"threshold": 1, "ratchet": "yes"},
    ):
        found, changes = criteria_under_base(before, specs({name.upper(): spelling}))
        assert (found[0].options, changes) == (before[0].options, [])


@pytest.mark.parametrize(
    ("before", "after", "limits"),
    [
        ({"p95": 2}, {"p95": 2}, (None, ((0.95, 2.0),))),
        ({"p95": 2}, {"p95": 3}, (None, ((0.95, 2.0),))),
        ({"p95": 2}, {"p95": 1, "p50": 1}, (None, ((0.5, 1.0), (0.95, 1.0)))),
        ({"max": 3, "p95": 2}, {"max": 3}, (3.0, ((0.95, 2.0),))),
        (3, 5, (3.0, ())),
        (3, {"max": 2}, (2.0, ())),
        ({"max": 3}, {"threshold": 2}, (2.0, ())),
    ],
)
def test_limits_are_held_by_name_and_quantile(before: Any, after: Any, limits: Any) -> None:
    [found], changes = criteria_under_base(specs({"latency": before}), specs({"latency": after}))
    assert (found.common.max, found.quantiles) == limits
    assert bool(changes) is (before != after)


def test_the_threshold_of_the_users_own_metric_cannot_be_told_to_be_stricter() -> None:
    [found], changes = criteria_under_base(specs({"mine:Check": 0.5}), specs({"mine:Check": 0.9}))
    assert found.common.threshold == 0.5
    assert changes == ["mine:Check.threshold: 0.5 → 0.9 takes effect once it is merged"]


def test_a_criterion_that_names_another_metric_is_the_bases() -> None:
    before = specs({"x": {"metric": "contains", "values": ["a"], "threshold": 0.5}})
    [found], changes = criteria_under_base(before, specs({"x": {"metric": "not_contains", "values": ["b"]}}))
    assert (found, changes) == (before[0], ["x.metric: contains → not_contains takes effect once it is merged"])


def test_more_may_be_forbidden_and_nothing_less() -> None:
    before = specs({"forbidden_tools": {"tools": ["a", "b"]}})
    more, changes = criteria_under_base(before, specs({"forbidden_tools": {"tools": ["c", "b", "a"]}}))
    assert more[0].options == {"tools": ["c", "b", "a"]}
    assert changes == ['forbidden_tools.tools: ["a", "b"] → ["c", "b", "a"], stricter']
    less, _ = criteria_under_base(before, specs({"forbidden_tools": {"tools": ["a", "c"]}}))
    assert less[0].options == {"tools": ["a", "b", "c"]}, "what both forbid"


def test_quarantine_holds_once_it_is_merged(tmp_path: Path) -> None:
    entry = {"case": "a", "owner": "x", "reason": "y", "expires": "2099-01-01"}
    rules = held(tmp_path, quarantine=[entry])
    assert rules.config.file.quarantine == []
    assert rules.changes == ("quarantine of 'a' takes effect once it is merged",)


def test_quarantine_does_not_hold_for_another_case_that_goes_by_the_id(tmp_path: Path) -> None:
    entry = {"case": "a", "owner": "x", "reason": "y", "expires": "2099-01-01"}
    quarantined = BASE | {"quarantine": [entry]}
    base = write(tmp_path / "base", quarantined)
    exchanged = SUITE.replace("id: a", "id: x").replace("id: b", "id: a").replace("id: x", "id: b")
    moved = under_base_policy(write(tmp_path / "head", quarantined, exchanged), {}, base)
    assert moved.config.file.quarantine == []
    assert moved.changes == ("quarantine of 'a' does not hold: that is the id of another case now",)
    edited = SUITE.replace("input: hello", "input: hi")
    rules = under_base_policy(write(tmp_path / "edited", quarantined, edited), {}, base)
    assert [one.case for one in rules.config.file.quarantine] == ["a"]


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ({"gate": {"alpha": 0.0001}}, "gate.alpha", 0.02),
        ({"gate": {"alpha": 0.1}}, "gate.alpha", 0.1),
        ({"gate": {"on_inconclusive": "block"}}, "gate.on_inconclusive", "block"),
        ({"gate": {"max_error_rate": 0.9}}, "gate.max_error_rate", 0.1),
        ({"gate": {"pass_rate_margin": 1.0}}, "gate.pass_rate_margin", None),
        ({"gate": {"pass_rate_margin": 0.05}}, "gate.pass_rate_margin", 0.05),
        ({"baseline": {"on_missing": "fail"}}, "baseline.on_missing", "fail"),
        ({"baseline": {"branch": "mine"}}, "baseline.options", {}),
        ({"baseline": {"remote": "mine"}}, "baseline.remote", "origin"),
        ({"baseline": {"key": PUBLIC}}, "baseline.key", ""),
        ({"baseline": {"workflows": [".github/workflows/mine.yml"]}}, "baseline.workflows", []),
        ({"baseline": {"require_provenance": "off"}}, "baseline.require_provenance", "warn"),
        ({"baseline": {"require_provenance": "block"}}, "baseline.require_provenance", "block"),
        ({"baseline": {"accept_days": 366}}, "baseline.accept_days", 90),
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


def test_agent_and_setup_are_the_changes_own_and_another_agent_is_said(tmp_path: Path) -> None:
    rules = held(tmp_path, agent={"command": "false", "timeout": "5s"}, setup="make")
    assert rules.changes == (
        'the agent differs: agent.command: "true" → "false"',
        'the agent differs: agent.timeout: nothing → "5s"',
    )
    assert rules.config.file.setup == "make"


def test_thresholds_of_single_cases_are_held(tmp_path: Path) -> None:
    strict = SUITE.replace("response: hello", "response: hello, thresholds: {response_match_score: 0.9}")
    loose = SUITE.replace("response: hello", "response: hello, thresholds: {response_match_score: 0.1}")
    rules = under_base_policy(write(tmp_path / "head", BASE, loose), {}, write(tmp_path / "base", BASE, strict))
    [plan] = make_plans(rules.config, {})
    assert plan.cases["a"].thresholds == {"response_match_score": 0.9}
    assert rules.changes == ("case 'a': response_match_score: 0.9 → 0.1 takes effect once it is merged",)


@pytest.mark.parametrize("looser", [0.0, 0.79])
@pytest.mark.parametrize("identifier", ["a", "new"])
def test_a_threshold_of_its_own_lets_no_case_off(tmp_path: Path, looser: float, identifier: str) -> None:
    """Neither one of the base commit's cases nor one that is new, or said to be."""
    own = SUITE.replace(
        "{id: a, input: hello,", f"{{id: {identifier}, thresholds: {{response_match_score: {looser}}}, input: hi,"
    )
    rules = under_base_policy(write(tmp_path / "head", BASE, own), {}, write(tmp_path / "base", BASE))
    [plan] = make_plans(rules.config, {})
    assert plan.cases[identifier].thresholds == {}
    assert (
        f"case {identifier!r}: response_match_score: nothing → {looser} takes effect once it is merged" in rules.changes
    )


def test_a_stricter_threshold_of_its_own_holds(tmp_path: Path) -> None:
    own = SUITE.replace("{id: a,", "{id: a, thresholds: {response_match_score: 0.9},")
    rules = under_base_policy(write(tmp_path / "head", BASE, own), {}, write(tmp_path / "base", BASE))
    [plan] = make_plans(rules.config, {})
    assert plan.cases["a"].thresholds == {"response_match_score": 0.9}
    assert rules.changes == ()


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
    rules = under_base_policy(paths[0], {}, paths[1])
    assert criteria(rules)["response_match_score"].threshold == 0.7
    assert rules.changes


def test_a_first_configuration_has_no_base_to_be_held_to(tmp_path: Path) -> None:
    rules = under_base_policy(write(tmp_path / "head", BASE), {}, write(tmp_path / "base", None))
    assert "no such configuration" in rules.changes[0]
    assert criteria(rules)["latency"].limit == 3


def test_a_base_that_cannot_be_read_is_said_and_doubted(tmp_path: Path) -> None:
    rules = under_base_policy(write(tmp_path / "head", BASE), {}, write(tmp_path / "base", "sweet: true"))
    assert "cannot be read" in rules.changes[0]
    assert "cannot be read" in rules.doubts[0]


def test_what_is_overridden_of_the_agent_says_nothing_of_the_bases(tmp_path: Path) -> None:
    """A change may come with another kind of agent: that does not make the base's configuration unreadable."""
    served = write(tmp_path / "head", BASE | {"agent": {"http": {"url": "http://localhost:1"}}})
    rules = under_base_policy(served, {"agent.http.url": "http://172.17.0.1:1"}, write(tmp_path / "base", BASE))
    assert rules.changes == (
        'the agent differs: agent.command: "true" → nothing',
        'the agent differs: agent.http: nothing → {"url": "http://localhost:1"}',
    )
    assert rules.doubts == ()


def test_settings_and_criteria_hold_without_the_bases_suites(tmp_path: Path) -> None:
    base = write(tmp_path / "base", BASE)
    (base.parent / "suite.yaml").unlink()
    loose = {"criteria": {"response_match_score": 0.1}, "baseline": {"store": "none"}}
    rules = under_base_policy(write(tmp_path / "head", BASE | loose), {}, base)
    assert criteria(rules)["response_match_score"].threshold == 0.8
    assert rules.config.file.baseline.store == "file"
    assert "suites cannot be read, so thresholds of single cases are the change's own" in rules.changes[-1]
    assert rules.doubts == ()


def test_a_renamed_suite_is_said_doubted_and_held_to_the_bases_criteria(tmp_path: Path) -> None:
    rules = held(tmp_path, name="renamed", criteria={"response_match_score": 0.1})
    assert rules.changes[0] == "suite 'renamed' is not in the base commit"
    assert rules.doubts == ("suite 's' of the base commit was renamed, removed or is not selected now",)
    assert criteria(rules)["response_match_score"].threshold == 0.8


@pytest.mark.parametrize(
    ("tightens", "before", "now", "holds"),
    [
        (UP, None, 0.5, True),
        (UP, 0.5, None, False),
        (UP, 0.5, 0.4, False),
        (DOWN, None, 3, True),
        (DOWN, 3, 2, True),
        (DOWN, 2, None, False),
        (Tightens("down", unset=0.1), None, 1.0, False),
        (Tightens("down", unset=0.1), None, 0.05, True),
        (Tightens("down", unset=0.1), 0.05, None, False),
        (Tightens("down", unset=0.1), 0.5, None, True),
        (ON, False, True, True),
        (ON, True, False, False),
        (steps("warn", "block"), None, "warn", False),
        (steps("warn", "block"), None, "block", True),
        (steps("warn", "block"), "block", None, False),
        (MORE, ["a"], ["a", "b"], True),
        (MORE, ["a"], ["b"], False),
        (NEVER, 1, 2, False),
    ],
)
def test_which_way_an_option_tightens(tightens: Tightens, before: Any, now: Any, holds: bool) -> None:
    assert tightens.allows(before, now) is holds


def test_a_calibration_is_the_bases_where_the_base_has_one(tmp_path: Path) -> None:
    """Without it a judged criterion with ``min_kappa`` would only report."""
    judged = {"clarity": {"threshold": 0.7, "min_kappa": 0.2}, "latency": {"max": 3}}
    base, head = (write(tmp_path / name, BASE | {"criteria": judged}) for name in ("base", "head"))
    [plan] = make_plans(under_base_policy(head, {}, base).config, {"OPENAI_API_KEY": "x"})
    clarity = plan.criteria[0]
    assert not clarity.blocking
    known = replace(calibration.compared([(True, True), (False, False)] * 50), threshold=0.7)
    calibration.save(base.parent / CALIBRATION_FILE, clarity.fingerprint, known)
    rules = under_base_policy(head, {}, base)
    [plan] = make_plans(rules.config, {"OPENAI_API_KEY": "x"})
    assert plan.criteria[0].blocking
    assert rules.changes == ("calibration.json: removed once it is merged",)


# --- where the base's rules are read --------------------------------------------------------------


def test_a_folder_that_is_a_link_is_a_name_like_any_other(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path / "lax", BASE)
    (tmp_path / "lax" / ".git").mkdir()
    (tmp_path / "evals").symlink_to("lax")
    assert place_of(tmp_path / "evals" / "gate.yaml") == (tmp_path, Path("evals/gate.yaml"))
    assert place_of(tmp_path / "lax" / "gate.yaml") == (tmp_path / "lax", Path("gate.yaml"))


def test_without_a_repository_a_file_is_in_its_own_folder(tmp_path: Path) -> None:
    assert place_of(tmp_path / "evals" / "gate.yaml") == (tmp_path / "evals", Path("gate.yaml"))


def test_links_that_leave_the_tree_are_taken_out_of_it(tmp_path: Path) -> None:
    outside, tree = write(tmp_path / "outside", BASE), tmp_path / "tree"
    inside = write(tree, BASE)
    (tree / "inner.yaml").symlink_to("gate.yaml")
    (tree / "outer.yaml").symlink_to(outside)
    (tree / "folder").symlink_to(outside.parent)
    remove_outward_links(tree)
    assert sorted(path.name for path in tree.iterdir()) == ["gate.yaml", "inner.yaml", "suite.yaml"]
    assert inside.is_file()
    assert outside.is_file()


def test_files_of_the_base_that_were_changed_before_their_use_are_refused(tmp_path: Path) -> None:
    source = read_config(write(tmp_path / "head", BASE))
    base = read_base(write(tmp_path / "base", BASE, checks__py="def fair(a, e): return 0.0"), source, {})
    assert hold_to(source, {}, base).changes == ()
    (tmp_path / "base" / "checks.py").write_text("def fair(a, e): return 1.0")
    with pytest.raises(ConfigError, match="were changed before they were used"):
        hold_to(source, {}, base)


@pytest.mark.parametrize("way", ["package", "linked package", "compiled module", "compiled cache", "linked module"])
def test_nothing_can_be_put_before_a_check_of_the_base(tmp_path: Path, way: str) -> None:
    """Python imports a package, a compiled module or its cache in place of ``checks.py``, which stays as it was."""
    source = read_config(write(tmp_path / "head", BASE))
    base = read_base(write(tmp_path / "base", BASE, checks__py="def fair(a, e): return 0.0"), source, {})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "checks.py").write_text("def fair(a, e): return 0.0")
    checks = tmp_path / "base" / "checks"
    if way == "package":
        checks.mkdir()
    elif way == "linked package":
        checks.symlink_to(elsewhere)
    elif way == "compiled module":
        checks.with_suffix(".so").write_bytes(b"")
    elif way == "compiled cache":
        (tmp_path / "base" / "__pycache__").mkdir()
        (tmp_path / "base" / "__pycache__" / "checks.cpython-311.pyc").write_bytes(b"")
    else:
        checks.with_suffix(".py").unlink()
        checks.with_suffix(".py").symlink_to(elsewhere / "checks.py")
    with pytest.raises(ConfigError, match="were changed before they were used"):
        hold_to(source, {}, base)


def test_rules_of_which_the_files_were_changed_after_they_were_read_do_not_hold(tmp_path: Path) -> None:
    source = read_config(write(tmp_path / "head", BASE | {"criteria": {"response_match_score": 0.1}}))
    path = write(tmp_path / "base", BASE)
    base = read_base(path, source, {})
    path.write_text("sweet: true")
    (path.parent / "suite.yaml").unlink()
    with pytest.raises(ConfigError, match="were changed before they were used"):
        hold_to(source, {}, base)


@pytest.mark.parametrize(
    ("changes", "redefines"),
    [
        ({}, False),
        ({"trials": 3}, False),
        ({"agent": {"python": "agent:other"}}, False),
        ({"agent": {"python": "agent:answer", "sources": ["agent.py"]}}, True),
        ({"agent": {"python": "agent:answer", "version": "1"}}, True),
        ({"agent": {"command": "true"}}, True),
        ({"output": "src"}, True),
        ({"suite": ["suite.yaml", "more.yaml"]}, True),
    ],
)
def test_a_change_that_says_anew_what_its_agent_consists_of(
    tmp_path: Path, changes: dict[str, Any], redefines: bool
) -> None:
    before = write(tmp_path / "base", {**BASE, "agent": {"python": "agent:answer"}}, **{"agent.py": ""})
    now = write(
        tmp_path / "head",
        {**BASE, "agent": {"python": "agent:answer"}, **changes},
        **{"agent.py": "", "more.yaml": SUITE.replace("{id: ", "{id: more-")},
    )
    assert under_base_policy(now, {}, before).redefines is redefines
