import textwrap
from collections.abc import Iterator

import pytest

from gate.errors import ConfigError
from gate.metrics import load_metric
from gate.metrics.base import NoOptions, TrialOutput
from gate.metrics.custom.metric import MetricUse, resolve_in_agent
from gate.model import Case, Direction, Invocation, Part, Score, ToolCall, Turn, Usage

CODE = """
    from gate.metrics.base import Metric, NoOptions
    from gate.model import Direction, Score

    def same_length(actual, expected):
        '''Whether turns match.'''
        return len(actual) == len(expected)

    def half(actual, expected): return Score(0.5, reason="half")
    def broken(actual, expected): return 1 / 0
    def nothing(actual, expected): return None
    def nan(actual, expected): return float("nan")
    def nan_score(actual, expected): return Score(float("nan"))
    def percent(actual, expected): return 80
    def text(actual, expected): return "1"
    def skipped(actual, expected): return Score(None, "no refund was asked for")
    def not_asked(actual, expected): return {"value": None, "reason": "no refund was asked for"}
    def unknown(actual, expected): return {"value": None, "error": "no idea"}
    def empty(actual, expected): return {"value": None}
    def verdict(actual, expected): return {"value": 0.9, "passed": False}
    def four(one, two, three, four): return 0.25
    def three(one, two, three): return 1.0
    async def later(actual, expected): return 1.0
    NUMBER = 3

    class Refund(Metric[NoOptions]):
        direction = Direction.LOWER
        def score(self, case, performance):
            return Score(float(performance.invocations[0].text))
"""


@pytest.fixture(autouse=True, scope="module")
def user_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One folder, and so one process of custom metrics, for all of them."""
    tmp_path = tmp_path_factory.mktemp("metrics")
    (tmp_path / "users_checks.py").write_text(textwrap.dedent(CODE))
    (tmp_path / "users_broken.py").write_text("raise RuntimeError('on import')\n")
    (tmp_path / "users_needy.py").write_text("import not_installed_anywhere\n")
    with pytest.MonkeyPatch.context() as changed:
        changed.syspath_prepend(str(tmp_path))
        yield


def score(path: str, answer: str = "2.5") -> Score:
    performance = TrialOutput((Invocation("q", (Part(answer),)),))
    return load_metric(path)(NoOptions()).score(Case("c", (Turn("q"),)), performance)


def test_functions_by_either_spelling() -> None:
    assert score("users_checks:same_length") == Score(1.0)
    assert score("users_checks.half") == Score(0.5, reason="half")
    assert score("users_checks:skipped") == Score(None, reason="no refund was asked for")
    assert score("users_checks:not_asked") == Score(None, reason="no refund was asked for")
    assert score("users_checks:four") == Score(0.25)


def test_a_class_keeps_what_it_says_of_itself() -> None:
    assert load_metric("users_checks:Refund").direction is Direction.LOWER
    assert score("users_checks:Refund").value == 2.5


def test_whatever_it_does_becomes_an_error_of_the_score() -> None:
    for path, error in [
        ("users_checks:broken", "the metric raised ZeroDivisionError: division by zero"),
        ("users_checks:nothing", "the custom metric returned None, not a number from 0 to 1"),
        ("users_checks:nan", "the custom metric returned nan, not a number from 0 to 1"),
        ("users_checks:nan_score", "the custom metric returned nan, not a number from 0 to 1"),
        ("users_checks:percent", "the custom metric returned 80, not a number from 0 to 1"),
        ("users_checks:unknown", "no idea"),
        ("users_checks:empty", "the custom metric returned None, not a number from 0 to 1"),
        (
            "users_checks:verdict",
            "the custom metric returned a key that is not read: 'passed' (value, reason, error)",
        ),
        ("users_checks:text", "the custom metric returned '1', not a number from 0 to 1"),
    ]:
        assert score(path) == Score(None, error=error), (path, error)


def test_what_a_class_raises_becomes_an_error_of_the_score() -> None:
    assert "ValueError" in (score("users_checks:Refund", "no number").error or "")


@pytest.mark.slow
def test_paths_that_lead_nowhere_are_configuration_errors() -> None:
    for path, message in [
        ("users_checks:missing", "has no 'missing'"),
        ("users_checks:NUMBER", "neither a function"),
        ("users_checks:three", "two arguments"),
        ("users_checks:later", "coroutine"),
        ("no_such_module_here:x", "no module 'no_such_module_here'"),
        ("users_broken:x", "cannot be imported: RuntimeError: on import"),
        ("users_needy:x", "needs module 'not_installed_anywhere'"),
        (":x", "names no metric"),
        ("users_checks:", "names no metric"),
    ]:
        with pytest.raises(ConfigError, match=message):
            load_metric(path)


def test_a_request_states_every_field_of_a_call_and_of_usage() -> None:
    """The user's function reads them as attributes, so that one left out would be an error of the metric."""
    invocation = Invocation("q", (Part("a"),), (ToolCall("look_up"),), usage=Usage(1))
    metric = resolve_in_agent("users_checks:same_length", MetricUse())
    request = metric(NoOptions()).request(Case("c", (Turn("q", (ToolCall("look_up"),)),)), TrialOutput((invocation,)))
    assert request["actual"][0]["tool_calls"][0].keys() == set(ToolCall.__struct_fields__)
    assert request["expected"][0]["tools"][0].keys() == set(ToolCall.__struct_fields__)
    assert request["actual"][0]["usage"].keys() == set(Usage.__struct_fields__)
