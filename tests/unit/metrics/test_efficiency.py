import pytest

from gate.metrics.base import TrialOutput
from gate.model import Case, Direction, Invocation, Scale, ToolCall, Turn, Usage, total_usage
from tests.unit.metrics.build import metric, tool_score, used_score


def test_lower_is_better() -> None:
    for name, scale in [
        ("cost", Scale.USD),
        ("latency", Scale.SECONDS),
        ("response_time", Scale.SECONDS),
        ("tokens", Scale.COUNT),
        ("tool_calls", Scale.COUNT),
        ("tool_call_count_v1", Scale.COUNT),
        ("inference_call_count_v1", Scale.COUNT),
        ("token_usage_v1", Scale.COUNT),
        ("invocation_duration_v1", Scale.SECONDS),
    ]:
        assert (metric(name).direction, metric(name).scale) == (Direction.LOWER, scale), (name, scale)


def test_totals_over_the_trial() -> None:
    usages = [
        {"cost_usd": 0.01, "input_tokens": 100, "output_tokens": 20},
        {"cost_usd": 0.02, "input_tokens": 50, "output_tokens": 0},
    ]
    assert used_score("cost", usages).value == 0.03
    assert used_score("cost", usages).reason == "$0.0300"
    assert used_score("tokens", usages).value == 170
    assert used_score("tokens", usages).per_turn == (120, 50)


@pytest.mark.parametrize(("name", "what"), [("tokens", "input_tokens or output_tokens"), ("latency", "duration")])
def test_what_was_not_reported_is_an_error_and_not_zero(name: str, what: str) -> None:
    score = used_score(name, [None])
    assert (score.value, score.error) == (None, f"the agent reports no {what}")


def test_one_turn_that_was_not_reported_makes_the_total_unknown() -> None:
    score = used_score("tokens", [{"input_tokens": 3, "output_tokens": 1}, {"input_tokens": 3}, {"cost_usd": 0.01}])
    assert (score.value, score.error) == (None, "the agent reports no input_tokens or output_tokens for turn 2, 3")


def test_lost_usage_is_not_measured_and_never_cheaper() -> None:
    nothing = {"input_tokens": 0, "output_tokens": 0}
    for name in ("tokens", "cost"):
        for more in ({}, {"model": "gpt-4o"}, {"model_calls": 1}, {"cost_usd": 0.0}):
            for turns in (1, 2):
                score = used_score(name, [{**nothing, **more}] * turns)
                assert (score.value, score.error) == (None, "the agent reports 0 tokens, as if its usage was lost")
    assert used_score("cost", [{**nothing, "cost_usd": 0.5}]).value == 0.5


def test_a_turn_that_asked_no_model_used_nothing() -> None:
    """Because it came from a cache, or because a fixed text answered it."""
    nothing, asked = {"input_tokens": 0, "output_tokens": 0}, {"input_tokens": 1_000_000, "output_tokens": 0}
    assert used_score("tokens", [nothing, asked]).value == 1_000_000
    assert used_score("cost", [nothing, {**asked, "model": "gpt-4o"}]).value == pytest.approx(2.5)
    for name in ("tokens", "cost"):
        assert used_score(name, [{**nothing, "model_calls": 0}]).value == 0


def test_tokens_of_a_known_model_are_priced_where_no_cost_is_reported() -> None:
    tokens = {"input_tokens": 1_000_000, "output_tokens": 100_000}
    score = used_score("cost", [{**tokens, "model": "gpt-4o"}, {"cost_usd": 0.5}])
    assert score.value == pytest.approx(2.5 + 1.0 + 0.5)
    assert score.reason == "$4.0000, by the list price of gpt-4o"
    assert used_score("cost", [{**tokens, "model": "openai/gpt-4o"}]).value == pytest.approx(3.5)
    assert used_score("cost", [{**tokens, "model": "gpt-4o", "cost_usd": 0.01}]).value == 0.01


def test_a_cost_of_0_gives_way_to_a_list_price() -> None:
    """Libraries report 0 for models that they do not know; a local model has no list price, and is free."""
    tokens = {"input_tokens": 1_000_000, "output_tokens": 100_000, "cost_usd": 0.0}
    score = used_score("cost", [{**tokens, "model": "gpt-4o"}, {"cost_usd": 0.5}])
    assert (score.value, score.reason) == (pytest.approx(4.0), "$4.0000, by the list price of gpt-4o")
    for local in ({**tokens, "model": "llama3.2:3b"}, tokens, {"cost_usd": 0.0, "model": "gpt-4o"}):
        assert used_score("cost", [local]).value == 0


def test_a_turn_without_a_price_makes_the_cost_unknown() -> None:
    for usage, error in [
        (None, "the agent reports no cost, nor input and output tokens to price"),
        ({"input_tokens": 3, "model": "gpt-4o"}, "the agent reports no cost, nor input and output tokens to price"),
        ({"input_tokens": 3, "output_tokens": 10**400, "model": "gpt-4o"}, "the agent reports no cost, nor"),
        ({"input_tokens": 3, "output_tokens": 3}, "tokens but neither cost nor model"),
        ({"input_tokens": 3, "output_tokens": 3, "model": "homegrown-1"}, "no price is known for model 'homegrown-1'"),
        ({"cost_usd": -1.0, "input_tokens": 3, "output_tokens": 3, "model": "gpt-4o"}, "cannot be meant"),
    ]:
        alone, among = used_score("cost", [usage]), used_score("cost", [{"cost_usd": 1.0}, usage])
        assert alone.value is None and error in (alone.error or ""), (usage, error)
        assert among.value is None and (among.error or "").startswith("turn 2: "), (usage, error)


def test_several_models_in_one_turn_have_no_one_price() -> None:
    both = total_usage((Usage(3, 3, model="gpt-4o"), Usage(3, 3, model="gpt-4o-mini")))
    assert both is not None and (both.tokens, both.model) == (12, None)
    same = total_usage((Usage(3, 3, model="gpt-4o"), Usage(3, 3, model="gpt-4o")))
    assert same is not None and same.model == "gpt-4o"


def test_figures_that_mean_nothing_are_as_good_as_none() -> None:
    for nonsense in [float("nan"), float("inf"), -1.0, 10**400]:
        assert used_score("cost", [{"cost_usd": nonsense}]).value is None, nonsense
        assert used_score("latency", [None], [nonsense], duration=nonsense).error is not None, nonsense


def test_a_trial_without_turns_is_an_error() -> None:
    assert used_score("tool_calls", []).error == "the trial has no turns"


def test_latency_is_the_time_inside_requests() -> None:
    assert used_score("latency", [None, None], [1.0, 0.5]).value == 1.5
    score = used_score("latency", [None, None], [1.0, None], duration=1.7)
    assert (score.value, score.reason) == (1.7, "1.70 s")
    assert used_score("latency", [None, None], [1.0, None]).error == "the agent reports no duration for turn 2"


def test_latency_tells_the_time_inside_tools() -> None:
    calls = (
        *(ToolCall("a", duration=0.25), ToolCall("b", duration=0.75), ToolCall("c")),
        *(ToolCall("b", duration=0.5), ToolCall("b"), ToolCall("a", duration=-1.0)),
    )
    performance = TrialOutput((Invocation("q", tool_calls=calls),), duration=3.0)
    score = metric("response_time").score(Case("c", (Turn("q"),)), performance)
    assert score.value == 3.0
    assert score.details == {
        "tool_calls": 6,
        "tool_seconds": 1.5,
        "seconds_per_tool_call": 0.5,
        "tools": {
            "b": {"calls": 3, "timed": 2, "seconds": 1.25, "seconds_per_call": 0.625},
            "a": {"calls": 2, "timed": 1, "seconds": 0.25, "seconds_per_call": 0.25},
            "c": {"calls": 1, "timed": 0, "seconds": 0, "seconds_per_call": None},
        },
    }


def test_tool_calls_are_counted_and_named() -> None:
    score = tool_score("tool_calls", [None, None], [["a", "b", "a"], []])
    assert (score.value, score.per_turn, score.details) == (3, (3, 0), {"a": 2, "b": 1})


def test_google_adks_four_are_means_per_turn() -> None:
    usages = [{"input_tokens": 100, "output_tokens": 1, "model_calls": 3}, {"model_calls": 1}, None]
    assert used_score("token_usage_v1", usages).value == 101 / 3
    assert used_score("inference_call_count_v1", usages).value == 2.0
    assert used_score("invocation_duration_v1", usages, [1.0, 0.00061, None]).value == 0.5
    assert tool_score("tool_call_count_v1", [None, None], [["a"], ["a", "b"]]).value == 1.5


def test_google_adks_four_fail_closed() -> None:
    for name in ["inference_call_count_v1", "token_usage_v1", "invocation_duration_v1"]:
        assert used_score(name, [None, None]).value is None, name
        assert used_score(name, [None, None]).error is not None, name
