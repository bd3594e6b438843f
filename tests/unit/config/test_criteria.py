"""Criteria as users write them: what a number means, what an object means, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.config.adk_criteria import criteria_of
from gate.config.criteria import ADK_DEFAULTS, Setting, idle_thresholds, unread_expectations, unread_rubrics
from gate.config.place import FilePlace
from gate.config.specs import read_specs
from gate.errors import ConfigError
from gate.formats.documents import parse_document_with_lines
from gate.model import Case, Criterion, Part, Rubric, ToolCall, Turn
from gate.scoring.score import Scorer
from tests.properties import examples
from tests.unit.config.build import scorers_of

CASES = (Case("a", (Turn("hello", (), (Part("hello"),)),)),)


def parse(raw: dict[str, Any], cases: tuple[Case, ...] = CASES, **setting: Any) -> list[Scorer]:
    return list(scorers_of(raw, cases, Setting(**setting)))


def one(name: str, value: Any, **setting: Any) -> Criterion:
    return parse({name: value}, **setting)[0].criterion


@pytest.mark.parametrize("value", [1, 1.0, "1.0", True])
def test_a_threshold_is_read_as_adk_reads_it(value: Any) -> None:
    [scorer] = scorers_of({"tool_trajectory_avg_score": value}, CASES, Setting(), adk=True)
    assert (scorer.criterion.threshold, scorer.criterion.pass_threshold) == (1.0, 1.0)


@pytest.mark.parametrize("value", [True, False, {"threshold": True}])
def test_true_is_no_threshold_outside_of_adks_files(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"expected a number, found (true|false)"):
        one("tool_trajectory_avg_score", value)
    with pytest.raises(ConfigError, match="p95: expected a number, found true"):
        one("latency", {"p95": True})


def test_a_number_is_a_maximum_where_lower_is_better() -> None:
    found = one("latency", 5)
    assert (found.threshold, found.limit) == (None, 5.0)
    assert one("latency", {"threshold": 5}).limit == 5.0
    with pytest.raises(ConfigError, match="both set"):
        one("latency", {"threshold": 5, "max": 4})


def test_quantile_limits_are_ordered_and_only_for_lower_is_better() -> None:
    assert one("latency", {"p95": 3, "p50": 1}).quantiles == ((0.5, 1.0), (0.95, 3.0))
    for none in ("p0", "p00", "p0.0", "p100"):
        with pytest.raises(ConfigError, match=f"unknown option '{none}'"):
            one("latency", {none: 1})


@pytest.mark.parametrize(
    ("name", "margin", "hint"),
    [
        ("response_match_score", 1.5, "regression: warn"),
        ("overall_score", 200, "regression: warn"),
        ("response_match_score", 5, "did you mean 0.05"),
        ("response_match_score", 80, "did you mean 0.8"),
        ("cost", 20, "did you mean 0.2"),
        ("latency", 30, "did you mean 0.3"),
    ],
)
def test_a_margin_that_lets_any_loss_pass_is_refused(name: str, margin: float, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"margin {margin} would let any loss pass.*{hint}"):
        one(name, {"margin": margin})


def test_a_margin_may_be_as_wide_as_a_loss_can_be_seen() -> None:
    assert one("response_match_score", {"threshold": 0.5, "margin": 1}).margin == 1
    assert one("cost", {"margin": 2}).margin == 2


@pytest.mark.parametrize("value", [{}, {"threshold": None}, {"flavor": "adk"}])
def test_a_criterion_of_an_adk_file_needs_a_threshold_as_in_google_adk(value: Any) -> None:
    """Or nothing decides, and the run ends with exit code 0."""
    for raw in ({"response_match_score": value}, {"mine": {"metric": "checks:mine", **value}}):
        with pytest.raises(ConfigError, match="threshold is missing"):
            read_specs(raw, lambda *_: "f", adk=True)
        assert read_specs(raw, lambda *_: "f")
    assert read_specs({"forbidden_tools": {"tools": ["x"]}}, lambda *_: "f", adk=True)  # it has one by default
    with pytest.raises(ConfigError, match="lower is better"):
        one("response_match_score", {"p95": 0.5})


def test_rises_of_cost_warn_unless_asked_to_block() -> None:
    assert not one("cost", 1).blocks_regression
    assert one("cost", {"max": 1, "regression": "block"}).blocks_regression
    assert one("tool_trajectory_avg_score", 0.5).blocks_regression
    assert not one("tool_trajectory_avg_score", {"threshold": 0.5, "regression": "warn"}).blocks_regression


def test_a_regression_of_word_overlap_warns_unless_asked_to_block() -> None:
    """Its threshold blocks all the same."""
    found = one("response_match_score", 0.5)
    assert (found.lexical, found.blocking, found.threshold, found.blocks_regression) == (True, True, 0.5, False)
    assert one("response_match_score", {"threshold": 0.5, "regression": "block"}).blocks_regression


def test_without_a_threshold_only_the_baseline_judges_but_a_trial_still_passes_or_fails() -> None:
    found = one("tool_trajectory_avg_score", {"match_type": "IN_ORDER"})
    assert (found.threshold, found.pass_threshold) == (None, 1.0)
    assert one("response_match_score", {"threshold": None}).pass_threshold is None


def test_options_are_in_snake_case() -> None:
    scorer = parse({"tool_trajectory_avg_score": {"match_type": "any order"}})[0]
    assert scorer.metric.options.match_type.name == "ANY_ORDER"
    with pytest.raises(ConfigError, match=r"unknown option 'matchType' \(did you mean 'match_type'\?\)"):
        parse({"tool_trajectory_avg_score": {"matchType": "any order"}})


def test_camel_case_is_read_only_where_it_may_be_adks() -> None:
    adk = {
        "rubric_based_tool_use_quality_v1": {
            "threshold": 0.5,
            "judgeModelOptions": {"judgeModelConfig": {"maxOutputTokens": 9}, "numSamples": 2},
            "rubrics": [{"rubricId": "a", "rubricContent": {"textProperty": "Looks up."}}],
        },
        "json_schema": {"schema": {"type": "object", "properties": {"orderId": {}}}},
    }
    rubrics, schema = read_specs(adk, lambda *_: "f", adk=True)
    options = rubrics.parsed_options
    assert options["judge_model_options"].judge_model_config.max_output_tokens == 9
    assert options["rubrics"][0].rubric_content.text_property == "Looks up."
    assert schema.options == adk["json_schema"]


def test_upper_case_names_are_registered_names() -> None:
    assert one("RESPONSE_MATCH_SCORE", 0.5).name == "response_match_score"


def test_one_metric_may_stand_twice_under_names_of_ones_own() -> None:
    strict, loose = parse(
        {
            "exact": {"metric": "tool_trajectory_avg_score", "threshold": 0.5},
            "in_order": {"metric": "tool_trajectory_avg_score", "threshold": 0.9, "match_type": "IN_ORDER"},
        }
    )
    assert strict.criterion.metric == loose.criterion.metric
    assert strict.criterion.fingerprint != loose.criterion.fingerprint


def test_fingerprints_follow_options_not_thresholds() -> None:
    base = one("response_match_score", 0.5).fingerprint
    assert one("response_match_score", {"threshold": 0.9, "margin": 0.2}).fingerprint == base
    assert one("response_match_score", {"threshold": 0.5, "thoughts": "exclude"}).fingerprint != base


REFUSED = {
    "no criteria": ({}, "no criteria"),
    "unknown metric": ({"tool_trajectory_score": 1}, "tool_trajectory_avg_score"),
    "out of range": ({"response_match_score": 1.5}, "out of range"),
    "a percentage": ({"response_match_score": 80}, "did you mean 0.8"),
    "just beyond": ({"response_match_score": 1.1}, "scores are 0 to 1"),
    "a pattern of tools": (
        {"forbidden_tools": {"tools": ["delete_*"]}},
        "delete_. is a pattern, a list, a call or a quotation",
    ),
    "a list of tools as one text": (
        {"forbidden_tools": {"tools": ["drop, delete"]}},
        "drop, delete is a pattern, a list",
    ),
    "a call of a tool": ({"forbidden_tools": {"tools": ["delete(all=True)"]}}, "which no tool matches"),
    "a call of a tool without arguments": ({"forbidden_tools": {"tools": ["delete()"]}}, "which no tool matches"),
    "a tool in quotes": ({"forbidden_tools": {"tools": ["`delete`"]}}, "which no tool matches"),
    "a tool without a name": ({"forbidden_tools": {"tools": [" "]}}, "which no tool matches"),
    "a regular expression of tools": ({"forbidden_tools": {"tools": ["drop|delete"]}}, "which no tool matches"),
    "a space as forbidden word": ({"safety_v1": {"backend": "patterns", "words": [" "]}}, "at least 1 character"),
    "a space to contain": ({"contains": {"values": [" "]}}, "a space is contained in nearly everything"),
    "a blank rubric": (
        {
            "rubric_based_final_response_quality_v1": {
                "rubrics": [{"rubric_id": "a", "rubric_content": {"text_property": " "}}]
            }
        },
        "at least 1 character",
    ),
    "not a number": ({"response_match_score": [1]}, "expected a number"),
    "not finite": ({"response_match_score": float("nan")}, "finite"),
    "negative limit": ({"latency": -1}, "out of range"),
    "negative margin": ({"response_match_score": {"margin": -0.1}}, "below 0"),
    "unknown option": ({"regex": {"pattern": ["a"]}}, "patterns"),
    "option of another metric": ({"response_match_score": {"match_type": "EXACT"}}, "unknown option 'match_type'"),
    "bad flag": ({"response_match_score": {"ratchet": "maybe"}}, "ratchet"),
    "an empty pattern": ({"regex": {"patterns": [""]}}, "patterns: '' matches the empty string"),
    "a pattern of nothing": ({"regex": {"patterns": ["(ab)?"]}}, "matches the empty string"),
    "contains nothing": ({"contains": {}}, "contains would check nothing: neither it nor any case gives values"),
    "matches nothing": ({"regex": {}}, "gives patterns"),
    "a schema of nothing": ({"json_schema": {}}, "gives schema"),
    "forbids nothing": ({"forbidden_tools": {}}, "gives tools"),
    "weighs nothing": ({"weighted_score": {"threshold": 0.5}}, "gives weights"),
    "a hard criterion let off": ({"forbidden_tools": {"tools": ["x"], "threshold": 0}}, "one occurrence fails"),
    "hidden secrets": ({"secrets": 0}, "one occurrence fails"),
    "given twice": ({"response_match_score": 1, "RESPONSE_MATCH_SCORE": 1}, "twice"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_runs(name: str) -> None:
    raw, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        parse(raw)


def test_one_case_that_gives_something_to_check_is_enough() -> None:
    silent, own = Case("a", (Turn("x"),)), Case("b", (Turn("x"),), options={"contains": {"values": ["yes"]}})
    assert parse({"contains": {}}, (silent, own))
    with pytest.raises(ConfigError, match="would check nothing"):
        parse({"contains": {}}, (silent,))
    assert parse({"contains": {"blocking": False}, "safety_v1": 1}, (silent,))  # a report loses nothing


@pytest.mark.parametrize("name", ["contains", "response_match_score", "tool_trajectory_avg_score"])
def test_what_no_case_of_the_whole_suite_states_is_idle_whatever_is_selected(name: str) -> None:
    raw = {"safety_v1": 1, name: {"threshold": 0.5}}
    silent = Case("b", (Turn("hello"),))
    with pytest.raises(ConfigError, match=f"{name} would check nothing"):
        parse(raw, (silent,))
    stating = Case(
        "c", (Turn("hello", (ToolCall("look_up"),), (Part("hi"),)),), options={"contains": {"values": ["hi"]}}
    )
    with pytest.raises(ConfigError, match=f"{name} would check nothing"):
        parse(raw, (silent,), whole=(silent, silent))
    assert [scorer.criterion.name for scorer in parse(raw, (silent,), whole=(silent, stating))] == ["safety_v1", name]


def test_a_case_cannot_let_a_hard_criterion_off() -> None:
    own = (Case("a", (Turn("x"),), thresholds={"forbidden_tools": 0.0}),)
    with pytest.raises(ConfigError, match="one occurrence fails the gate"):
        parse({"forbidden_tools": {"tools": ["x"]}}, own)


def test_errors_name_the_line_of_the_criterion() -> None:
    text = "criteria:\n  contains: {values: x}\n\n  RESPONSE_MATCH_SCORE:\n    threshold: 80\n"
    raw, lines = parse_document_with_lines(text, "gate.yaml")
    with pytest.raises(ConfigError) as caught:
        parse(raw["criteria"], place=FilePlace("gate.yaml", lines, ("criteria",)))
    assert str(caught.value).startswith("gate.yaml:4: response_match_score: threshold 80 is out of range")


def test_what_a_case_sets_must_be_a_criterion() -> None:
    stray = (Case("a", (Turn("x"),), thresholds={"contains": 1.0}),)
    with pytest.raises(ConfigError, match=r"add `contains: \{\}`"):
        parse({"response_match_score": 0.5}, stray)
    typo = (Case("a", (Turn("x"),), thresholds={"response_mach_score": 1.0}),)
    with pytest.raises(ConfigError, match="did you mean 'response_match_score'"):
        parse({"response_match_score": 0.5}, typo)
    beyond = (Case("a", (Turn("x"),), thresholds={"response_match_score": 7.0}),)
    with pytest.raises(ConfigError, match="out of range"):
        parse({"response_match_score": 0.5}, beyond)


def test_a_cases_own_options_lie_over_the_criterions_and_are_checked() -> None:
    own = (Case("a", (Turn("x"),), options={"contains": {"ignore_case": False}}),)
    scorer = parse({"contains": {"values": ["no"], "ignore_case": True}}, own)[0]
    assert scorer.for_case(own[0]).options.ignore_case is False
    wrong = (Case("a", (Turn("x"),), options={"contains": {"valeus": ["yes"]}}),)
    with pytest.raises(ConfigError, match="did you mean 'values'"):
        parse({"contains": {}}, wrong)


@pytest.mark.parametrize(
    ("name", "option"),
    [("forbidden_tools", "tools"), ("contains", "values"), ("not_contains", "values"), ("regex", "patterns")],
)
def test_a_case_may_check_more_but_never_less(name: str, option: str) -> None:
    own = (Case("a", (Turn("x"),), options={name: {option: ["drop_table"]}}),)
    scorer = parse({name: {option: ["delete_account"]}}, own)[0]
    assert getattr(scorer.for_case(own[0]).options, option) == ("delete_account", "drop_table")
    mapping = (Case("a", (Turn("x"),), options={name: {option: {"drop_table": 1}}}),)
    with pytest.raises(ConfigError, match=option):
        parse({name: {option: ["delete_account"]}}, mapping)


def test_a_single_text_is_added_as_one() -> None:
    own = (Case("a", (Turn("x"),), options={"not_contains": {"values": "no"}}),)
    scorer = parse({"not_contains": {"values": "never"}}, own)[0]
    assert scorer.for_case(own[0]).options.values == ("never", "no")


def test_custom_metrics_of_adk_lead_to_their_function() -> None:
    for config in ({"code_config": {"name": "os.path.join"}}, {"codeConfig": {"name": "os.path.join"}}):
        raw = criteria_of({"criteria": {"mine": 0.5, "cost": 1}, "custom_metrics": {"mine": config}}, "f")
        mine, cost = read_specs(raw, lambda *_: "f", adk=True)
        assert (mine.metric, mine.common.threshold, cost.metric) == ("os.path.join", 0.5, "cost")
    with pytest.raises(ConfigError, match="code_config"):
        criteria_of({"criteria": {"mine": 0.5}, "custom_metrics": {"mine": {}}}, "f")


def test_adks_defaults_parse() -> None:
    assert [s.criterion.threshold for s in parse(dict(ADK_DEFAULTS))] == [1.0, 0.8]


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=20), st.recursive(st.none() | st.floats() | st.text(max_size=5), st.lists)))
@settings(max_examples=examples(100, quick=12))
def test_any_mapping_parses_or_is_a_config_error(raw: dict[str, Any]) -> None:
    try:
        parse(raw)
    except ConfigError as error:
        assert "\n" not in str(error) or any("\n" in key for key in raw)


def test_a_score_demanded_of_a_case_says_what_it_scores() -> None:
    demanding = (Case("a", (Turn("hello"),), thresholds={"weighted_score": 0.8}),)
    with pytest.raises(ConfigError, match=r"without weights .say what it scores"):
        parse({"contains": {"values": "x"}, "weighted_score": {}}, demanding)
    weights = {"weights": {"contains": 1}}
    assert parse({"contains": {"values": "x"}, "weighted_score": weights}, demanding)
    own = (Case("a", (Turn("hello"),), thresholds={"weighted_score": 0.8}, options={"weighted_score": weights}),)
    assert parse({"contains": {"values": "x"}, "weighted_score": {}}, own)


def test_what_compares_trials_is_judged_over_the_suite_alone() -> None:
    found = one("strategy_consistency", 0.8)
    assert (found.threshold, found.blocks_regression) == (0.8, False)
    with pytest.raises(ConfigError, match="a change of it cannot block"):
        one("strategy_consistency", {"threshold": 0.8, "regression": "block"})
    weighted = {"strategy_consistency": 0.8, "weighted_score": {"weights": {"strategy_consistency": 1}}}
    with pytest.raises(ConfigError, match="has no score for a single trial"):
        parse(weighted)
    with pytest.raises(ConfigError, match="which is judged over the suite"):
        parse({"strategy_consistency": 0.8}, (Case("a", (Turn("hello"),), thresholds={"strategy_consistency": 1.0}),))


def test_the_pass_rate_has_a_threshold_and_needs_another_criterion_that_blocks() -> None:
    found = parse({"response_match_score": 0.5, "pass_rate": {"threshold": 0.85}})[1].criterion
    assert (found.threshold, found.blocks_regression) == (0.85, False)
    for alone in ({"pass_rate": 0.85}, {"pass_rate": 0.85, "response_match_score": {"blocking": False}}):
        with pytest.raises(ConfigError, match="no other criterion blocks"):
            parse(alone)
    with pytest.raises(ConfigError, match=r"gate\.pass_rate_margin"):
        parse({"response_match_score": 0.5, "pass_rate": {"threshold": 0.85, "margin": 1.0}})
    with pytest.raises(ConfigError, match=r"unknown metric 'pass rate' \(did you mean 'pass_rate'\?\)"):
        parse({"pass rate": 0.85, "response_match_score": 0.5})
    with pytest.raises(ConfigError, match="judged over the suite"):
        own = (Case("a", (Turn("hello"),), thresholds={"pass_rate": 0.5}),)
        parse({"response_match_score": 0.5, "pass_rate": 0.85}, own)
    with pytest.raises(ConfigError, match="has no score for a single trial"):
        parse({"response_match_score": 0.5, "pass_rate": 0.85, "weighted_score": {"weights": {"pass_rate": 1.0}}})


def test_pass_k_says_how_many_trials_it_means() -> None:
    found = [parse({"response_match_score": 0.5, "pass_k": asked})[1].criterion for asked in (0.7, {"k": 5})]
    assert [(one.k, one.threshold, one.blocks_regression) for one in found] == [(3, 0.7, False), (5, None, False)]
    assert found[0].fingerprint != found[1].fingerprint
    for wrong in (1, 26):
        with pytest.raises(ConfigError, match="k"):
            parse({"response_match_score": 0.5, "pass_k": {"k": wrong}})
    with pytest.raises(ConfigError, match="no other criterion blocks"):
        parse({"pass_k": 0.85})


# --- rubrics of cases -----------------------------------------------------------------------------

QUALITY = "rubric_based_final_response_quality_v1"


def rubric_case(kind: str | None) -> Case:
    return Case("c", (Turn("a"),), rubrics=(Rubric("r", "Is short.", kind),))


@pytest.mark.parametrize(
    ("kind", "hint"), [(None, "give it one of"), ("FINAL_RESPONSE_QUALTY", "did you mean 'FINAL_RESPONSE_QUALITY'")]
)
def test_a_rubric_of_a_case_that_no_criterion_could_read_is_refused(kind: str | None, hint: str) -> None:
    with pytest.raises(ConfigError, match="rubric 'r' of case 'c'") as refused:
        scorers_of({QUALITY: 0.8}, (rubric_case(kind),), Setting())
    assert hint in refused.value.hint
    scorers_of({"latency": {}}, (rubric_case(kind),), Setting())


@pytest.mark.parametrize(
    ("kind", "unread"), [("FINAL_RESPONSE_QUALITY", 0), ("TOOL_USE_QUALITY", 1), ("HOUSE_STYLE", 1)]
)
def test_rubrics_that_no_criterion_reads_are_said(kind: str, unread: int) -> None:
    case = rubric_case(kind)
    told = unread_rubrics((case,), scorers_of({QUALITY: 0.8}, (case,), Setting()))
    assert told.startswith("cases with rubrics that no criterion reads: 1 ") if unread else told == ""


TOOLS = Case("t", (Turn("hello", (ToolCall("look_up"),)),))
NO_TOOLS = Case("n", (Turn("hello", ()),))


@pytest.mark.parametrize(
    ("criteria", "tools", "no_tools"),
    [
        ({"tool_trajectory_avg_score": 0.8}, True, True),
        ({"tool_trajectory_avg_score": {"threshold": 0.8, "match_type": "IN_ORDER"}}, True, False),
        ({"tool_trajectory_avg_score": {"threshold": 0.8, "match_type": "ANY_ORDER"}}, True, False),
        ({"tool_trajectory_avg_score": {"threshold": 0.8, "match_type": "ANY_ORDER", "credit": "f1"}}, True, True),
        ({"tool_accuracy": 0.8}, True, False),
        ({"tool_selection_accuracy": 0.8}, True, True),
        ({"sequence_correctness": 0.8}, True, False),
        ({"sequence_correctness": {"threshold": 0.8, "mode": "exact"}}, True, True),
        ({"step_efficiency": 0.8}, True, True),
        ({"forbidden_tools": {"tools": ["drop"]}}, False, False),
        ({"tool_calls": {"max": 0}}, False, True),
        ({"contains": {"values": "x"}}, False, False),
    ],
)
def test_expected_calls_that_no_criterion_compares_with_are_said(
    criteria: dict[str, Any], tools: bool, no_tools: bool
) -> None:
    scorers = scorers_of(criteria, (TOOLS, NO_TOOLS), Setting())
    told = unread_expectations((TOOLS, NO_TOOLS), scorers)
    assert any("1 case states tools that no criterion reads" in one for one in told) is not tools
    assert any("1 case expects no call in a turn, which no criterion checks" in one for one in told) is not no_tools


@pytest.mark.parametrize(
    ("criteria", "idle"),
    [
        ({"response_match_score": 0}, True),
        ({"contains": {"values": "x", "threshold": 0}}, True),
        ({"response_match_score": 0, "contains": {"values": "x"}}, True),
        ({"response_match_score": 0.01}, False),
        ({"response_match_score": {}}, False),
        ({"response_match_score": {"threshold": 0, "blocking": False}, "contains": {"values": "x"}}, False),
        ({"tool_calls": {"max": 0}}, False),
    ],
)
def test_a_threshold_that_every_score_reaches_is_refused(criteria: dict[str, Any], idle: bool) -> None:
    if idle:
        with pytest.raises(ConfigError, match="every score reaches its threshold of 0"):
            parse(criteria)
    else:
        assert parse(criteria)


def test_a_case_with_a_threshold_that_every_score_reaches_is_named() -> None:
    scorers = scorers_of({"response_match_score": 0.5}, CASES, Setting())
    held = replace(CASES[0], thresholds={"response_match_score": 0.1})
    assert idle_thresholds([held], scorers) == []
    idle = [replace(CASES[0], id=name, thresholds={"response_match_score": 0.0}) for name in ("a", "b")]
    end = "only a comparison with a baseline can fail"
    reaches = "response_match_score: every score reaches"
    assert idle_thresholds([held, idle[0]], scorers) == [f"{reaches} the case's own threshold (a): {end} it"]
    assert idle_thresholds(idle, scorers) == [f"{reaches} the cases' own thresholds (a, b): {end} them"]
