"""promptfoo: configurations as suites, results as recorded trials; what checks something is carried over or named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError
from gate.importers.convert import convert
from gate.importers.promptfoo.assertions import from_text
from gate.importers.promptfoo.patterns import from_javascript
from gate.importers.promptfoo.templates import TemplateError, rendered
from gate.model import Case, Suite, ToolCall
from gate.suites import load
from gate.suites.base import Loss
from tests.properties import examples
from tests.unit.suites.files import write

SAMPLES = Path(__file__).parent / "samples" / "promptfoo"
"""A project of ours and what promptfoo 0.121 wrote when it ran it twice, its stack traces and counters left out."""


def loaded(path: Path, losses: list[Loss] | None = None) -> Suite:
    (suite,) = load([path], root=path.parent, losses=losses)
    return suite


def suite_of(folder: Path, losses: list[Loss] | None = None, **changes: Any) -> Suite:
    data = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [{"vars": {"q": "Hi"}}], **changes}
    write(folder / "promptfooconfig.json", data)
    return loaded(folder / "promptfooconfig.json", losses)


def case_of(folder: Path, *asserts: Any, losses: list[Loss] | None = None, **test: Any) -> Case:
    (case,) = suite_of(folder, losses, tests=[{"vars": {"q": "Hi", "n": 20.0}, "assert": list(asserts), **test}]).cases
    return case


# --- what promptfoo wrote itself ------------------------------------------------------------------


def test_a_genuine_configuration_is_a_suite() -> None:
    losses: list[Loss] = []
    suite = loaded(SAMPLES / "promptfooconfig.yaml", losses)
    assert [case.id for case in suite.cases] == [
        "refund of a broken kettle",
        "crash now",
        "fail please",
        "greeting",
        "bye",
    ]
    first = suite.cases[0]
    assert first.turns[0].user == "My kettle from order A100 arrived broken"
    assert first.options == {
        "contains": {"values": ["refund"]},
        "not_contains": {"values": ["SORRY"], "ignore_case": True},
        "regex": {"patterns": [r"(?a:\$\d+)", r"\Anothing\Z"]},
    }
    assert {case.thresholds["latency"] for case in suite.cases} == {5.0}
    assert suite.brought == {"contains": {}, "not_contains": {}, "regex": {}, "latency": {}}
    assert not [loss for loss in losses if loss.check]


def test_genuine_results_are_the_same_cases_with_a_trial_for_each_repeat() -> None:
    stated, suite = loaded(SAMPLES / "promptfooconfig.yaml"), loaded(SAMPLES / "results.json")
    assert [(c.id, c.turns, c.options, c.content) for c in suite.cases] == [
        (c.id, c.turns, c.options, c.content) for c in stated.cases
    ]
    assert [trial.number for trial in suite.recorded] == [1, 2] * 5
    errors = {trial.case_id: trial.error for trial in suite.recorded if trial.error}
    assert errors == {"crash now": "Error: the backend is gone"}
    (said,) = suite.recorded[0].invocations
    assert said.usage is not None
    assert (said.text, said.usage.tokens, said.usage.cost_usd) == ("I started a refund of $39", 30, 0.001)
    assert said.duration == 0.017


def test_results_are_grouped_by_their_test_not_by_its_number(tmp_path: Path) -> None:
    data = json.loads((SAMPLES / "results.json").read_text())
    for number, row in enumerate(reversed(data["results"]["results"])):
        row["testIdx"] = number % 2
    write(tmp_path / "r.json", data)
    suite = loaded(tmp_path / "r.json")
    assert len(suite.cases) == 5
    assert len(suite.recorded) == 10


# --- results --------------------------------------------------------------------------------------


def row(output: Any = "Hi", *asserts: Any, passed: bool = True, **changes: Any) -> dict[str, Any]:
    components = [{"pass": passed, "reason": "because", "assertion": one} for one in asserts]
    return {
        "testCase": {"vars": {"q": "Hi"}, "assert": list(asserts)},
        "vars": {"q": "Hi"},
        "prompt": {"raw": "Hi", "label": "{{q}}"},
        "provider": {"id": "echo"},
        "response": {"output": output},
        "success": passed,
        "failureReason": 0 if passed else 1,
        "gradingResult": {"pass": passed, "componentResults": components},
        **changes,
    }


def results(folder: Path, *rows: dict[str, Any], losses: list[Loss] | None = None, version: int = 3) -> Suite:
    write(folder / "r.json", {"evalId": "e", "results": {"version": version, "results": list(rows)}})
    return loaded(folder / "r.json", losses)


def test_equal_answers_from_the_cache_are_one_trial(tmp_path: Path) -> None:
    cached = {"response": {"output": "Hi", "cached": True}, "latencyMs": 900}
    fresh = row("Hi", latencyMs=900)
    losses: list[Loss] = []
    suite = results(tmp_path, row(**cached), row(**cached), row(**cached), losses=losses)
    (trial,) = suite.recorded
    assert trial.invocations[0].duration is None
    assert [loss.what for loss in losses if "2 of 3" in loss.what]
    assert len(results(tmp_path, fresh, fresh, row(**cached)).recorded) == 2


def test_an_error_is_never_an_answer(tmp_path: Path) -> None:
    suite = results(
        tmp_path, row(failureReason=2, success=False, error="gone\n    at /home/me/x.js"), row(response=None)
    )
    assert [(trial.error, trial.invocations) for trial in suite.recorded] == [("gone", ()), ("no answer", ())]


def test_the_verdict_of_promptfoo_is_a_score_that_decides(tmp_path: Path) -> None:
    script = {"type": "javascript", "value": "false"}
    suite = results(tmp_path, row("a", script, passed=False), row("b", script), row("c", passed=False))
    assert [trial.error for trial in suite.recorded] == [None, None, None]
    given = [score for trial in suite.recorded for score in trial.invocations[0].foreign]
    assert [(score.scorer, score.value) for score in given] == [
        ("promptfoo", 0.0),
        ("promptfoo", 1.0),
        ("promptfoo", 0.0),
    ]
    assert given[0].reason == "promptfoo: assertion javascript: because"
    assert suite.brought == {"promptfoo": {"metric": "recorded_score", "scorer": "promptfoo", "threshold": 1.0}}
    (note,) = suite.notes
    assert "assertion javascript 'false' (other than in the verdict on recorded trials) is not carried over" in note


def test_the_reason_names_an_assertion_that_the_test_does_not_show(tmp_path: Path) -> None:
    """As one that an extension or the provider added."""
    component = {"pass": False, "reason": "not safe", "assertion": {"type": "guardrails"}}
    failed = row(
        "Hi", {"type": "contains", "value": "Hi"}, passed=False, gradingResult={"componentResults": [component]}
    )
    (trial,) = results(tmp_path, failed).recorded
    assert trial.invocations[0].foreign[0].reason == "promptfoo: assertion guardrails: not safe"


def test_spans_inside_results_tell_of_calls(tmp_path: Path) -> None:
    """Or a forbidden call of an agent that answers with text would pass unseen."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "delete"}
    spans = [
        {"spanId": "a" * 16, "name": "agent", "startTime": 1, "endTime": 9,
         "attributes": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}},
        {"spanId": "b" * 16, "parentSpanId": "a" * 16, "name": "delete", "startTime": 2, "endTime": 3,
         "attributes": {**tool, "gen_ai.tool.call.arguments": '{"id": 1}'}, "statusCode": 2, "statusMessage": "no"},
    ]  # fmt: skip
    trace = {"traceId": "c" * 32, "testCaseId": "0-0", "metadata": {"testIdx": 0, "promptIdx": 0}, "spans": spans}
    rows = [row("Done.", testIdx=0, promptIdx=0), row("So.", testIdx=1, promptIdx=0)]
    write(tmp_path / "r.json", {"results": {"version": 3, "results": rows}, "traces": [trace]})
    first, second = (trial.invocations[0] for trial in loaded(tmp_path / "r.json").recorded)
    (call,) = first.tool_calls
    assert (call.name, call.args, call.error, first.reports_calls) == ("delete", {"id": 1}, "no", True)
    assert (second.tool_calls, second.reports_calls) == ((), False)


def test_an_index_that_is_no_number_finds_no_trace_and_ends_nothing(tmp_path: Path) -> None:
    traces = [{"metadata": {"testIdx": [0]}, "spans": []}]
    write(tmp_path / "r.json", {"results": {"version": 3, "results": [row(testIdx={"a": 0})]}, "traces": traces})
    (trial,) = loaded(tmp_path / "r.json").recorded
    assert trial.invocations[0].reports_calls is False


def test_calls_in_an_answer_are_the_trajectory(tmp_path: Path) -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"id": 1}'}}]
    for output in (calls, {"content": None, "tool_calls": calls}):
        (trial,) = results(tmp_path, row(output)).recorded
        assert [(call.name, call.args) for call in trial.invocations[0].tool_calls] == [("find", {"id": 1})]
    (trial,) = results(tmp_path, row({"a": 1})).recorded
    assert trial.invocations[0].text == '{"a": 1}'


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"vars": {}}], "no testCase"),
        ([row(), row(provider={"id": "other"})], "2 providers"),
        ([row(response={"output": "x"}, latencyMs=-1)], "latencyMs"),
        ([row(response={"output": "x", "cost": "much"})], "cost"),
        ([{**row(), "testCase": {"assert": "contains"}}], "assert"),
    ],
)
def test_results_that_cannot_be_read_are_refused(tmp_path: Path, rows: list[Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        results(tmp_path, *rows)


def test_results_of_another_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="version 2, not 3"):
        results(tmp_path, row(), version=2)


# --- assertions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assertion", "options"),
    [
        ({"type": "contains", "value": 7}, {"contains": {"values": ["7"]}}),
        ({"type": "not-contains", "value": 1e3}, {"not_contains": {"values": ["1000"]}}),
        ({"type": "contains", "value": "{{n}} of 0.5"}, {"contains": {"values": ["20 of 0.5"]}}),
        ({"type": "contains-all", "value": "a, b"}, {"contains": {"values": ["a", "b"]}}),
        ({"type": "icontains-any", "value": ["a", "b"]}, {"regex": {"patterns": ["(?i:a|b)"]}}),
        ({"type": "not-contains-any", "value": ["a", "b"]}, {"not_contains": {"values": ["a", "b"]}}),
        ({"type": "starts-with", "value": "{{q}}"}, {"regex": {"patterns": [r"\AHi"]}}),
        ({"type": "equals", "value": {"a": 1}}, {"json_schema": {"schema": {"const": {"a": 1}}, "code_block": False}}),
        ({"type": "is-json"}, {"json_schema": {"schema": {}, "code_block": False}}),
        (
            {"type": "is-json", "value": {"type": "object"}},
            {"json_schema": {"schema": {"type": "object"}, "code_block": False}},
        ),
        ({"type": "not-regex", "value": r"I'm \d"}, {"not_regex": {"patterns": [r"(?a:I'm \d)"]}}),
        ({"type": "not-starts-with", "value": "Sorry"}, {"not_regex": {"patterns": [r"\ASorry"]}}),
        ({"type": "not-equals", "value": "No"}, {"not_regex": {"patterns": [r"\ANo\Z"]}}),
        ({"type": "not-trajectory:tool-used", "value": "drop"}, {"forbidden_tools": {"tools": ["drop"]}}),
    ],
)
def test_each_type_with_a_counterpart(tmp_path: Path, assertion: Any, options: Any) -> None:
    assert case_of(tmp_path, assertion).options == options


def test_texts_with_and_without_regard_to_case_beside_one_another(tmp_path: Path) -> None:
    asserts = [{"type": name, "value": value} for name, value in
               [("contains", "A"), ("icontains", "b."), ("not-contains", "C"), ("not-icontains", "d")]]  # fmt: skip
    options = case_of(tmp_path, *asserts).options
    assert options == {
        "contains": {"values": ["A", "b."], "ignore_case": [False, True]},
        "not_contains": {"values": ["C", "d"], "ignore_case": [False, True]},
    }


def test_tools_come_together_in_one_trajectory(tmp_path: Path) -> None:
    sequence = {"type": "trajectory:tool-sequence", "value": {"mode": "in_order", "steps": ["find", {"name": "pay"}]}}
    used = {"type": "trajectory:tool-used", "value": ["pay"]}
    args = {"type": "trajectory:tool-args-match", "value": {"name": "pay", "args": {"id": 1}}}
    for asserts in ([sequence, used, args], [args, used, sequence]):
        case = case_of(tmp_path, *asserts)
        assert case.turns[0].tools == (ToolCall("find", any_args=True), ToolCall("pay", {"id": 1}))
        assert case.options == {"tool_trajectory_avg_score": {"match_type": "IN_ORDER", "tools": {"pay": "subset"}}}
    once = case_of(tmp_path, {"type": "trajectory:tool-used", "value": {"name": "find", "min": 1}}, used)
    assert [call.name for call in once.turns[0].tools or ()] == ["find", "pay"]
    assert case_of(tmp_path, {"type": "trajectory:step-count", "value": {"type": "tool", "max": 3}}).thresholds == {
        "tool_calls": 3
    }


def test_rubrics_and_references(tmp_path: Path) -> None:
    suite = suite_of(
        tmp_path,
        tests=[
            {
                "vars": {"q": "Hi"},
                "assert": [
                    {"type": "llm-rubric", "value": "Greets with {{q}}"},
                    {"type": "trajectory:goal-success", "value": {"goal": "Be greeted"}},
                    {"type": "factuality", "value": "Hello"},
                ],
            }
        ],
    )
    (case,) = suite.cases
    assert [(rubric.text, rubric.type) for rubric in case.rubrics] == [
        ("Greets with Hi", "FINAL_RESPONSE_QUALITY"),
        ("Be greeted", "TRAJECTORY_QUALITY"),
    ]
    assert suite.brought is not None
    assert set(suite.brought) == {
        "rubric_based_final_response_quality_v1",
        "rubric_based_multi_turn_trajectory_quality_v1",
        "final_response_match_v2",
    }


LOST: list[dict[str, Any]] = [
    {"type": "javascript", "value": "true"},
    {"type": "python", "value": "file://check.py"},
    {"type": "similar", "value": "Hello", "threshold": 0.8},
    {"type": "not-is-json"},
    {"type": "not-contains-all", "value": ["a", "b"]},
    {"type": "not-latency", "threshold": 5},
    {"type": "latency"},
    {"type": "contains", "value": "a", "transform": "output.x"},
    {"type": "contains", "value": ""},
    {"type": "contains", "value": "{% if q %}a{% endif %}"},
    {"type": "regex", "value": "(a"},
    {"type": "regex", "value": "a*"},
    {"type": "not-llm-rubric", "value": "Is rude"},
    {"type": "trajectory:tool-used", "value": "find*"},
    {"type": "trajectory:tool-used", "value": {"name": "find", "max": 2}},
    {"type": "trajectory:tool-used", "value": {"name": "find", "min": 2}},
    {"type": "trajectory:tool-args-match", "value": {"name": "a", "args": {}, "ignore": ["b"]}},
    {"type": "trajectory:step-count", "value": {"min": 1}},
    {"type": "never-heard-of", "value": 1},
]


@pytest.mark.parametrize("assertion", LOST, ids=lambda one: f"{one['type']}-{str(one.get('value'))[:20]}")
def test_a_type_without_a_counterpart_is_a_lost_check(tmp_path: Path, assertion: dict[str, Any]) -> None:
    losses: list[Loss] = []
    assert case_of(tmp_path, assertion, losses=losses).options == {}
    assert [loss.check for loss in losses if loss.what.startswith(f"assertion {assertion['type']}")] == [True]
    with pytest.raises(ConfigError, match="the gate has no such check"):
        case_of(tmp_path, assertion)


def test_a_tool_that_a_stated_sequence_lacks_is_lost(tmp_path: Path) -> None:
    losses: list[Loss] = []
    asserts = [
        {"type": "trajectory:tool-sequence", "value": ["a", "b"]},
        {"type": "trajectory:tool-used", "value": "c"},
    ]
    case = case_of(tmp_path, *asserts, losses=losses)
    assert [call.name for call in case.turns[0].tools or ()] == ["a", "b"]
    assert [loss.what for loss in losses if loss.check] == ["assertion trajectory:tool-used 'c'"]


_TEXT = st.from_regex(r"m[0-9]{3}", fullmatch=True)
_ASSERTION = st.one_of(
    st.builds(
        lambda kind, value: {"type": kind, "value": value},
        st.sampled_from(["contains", "icontains", "not-contains", "not-icontains", "equals", "not-equals", "regex",
                         "not-regex", "starts-with", "llm-rubric", "not-llm-rubric", "javascript", "python", "similar",
                         "factuality", "contains-any", "contains-all", "not-contains-all", "is-json", "unknown",
                         "trajectory:tool-used", "not-trajectory:tool-used", "trajectory:goal-success"]),
        _TEXT,
    ),
    st.builds(
        lambda mode, steps: {"type": "trajectory:tool-sequence", "value": {"mode": mode, "steps": steps}},
        st.sampled_from(["in_order", "exact", "other"]),
        st.lists(_TEXT, min_size=1, max_size=3),
    ),
    st.builds(
        lambda name, value, mode: {
            "type": "trajectory:tool-args-match",
            "value": {"name": name, "args": {"id": value}, "mode": mode},
        },
        _TEXT,
        _TEXT,
        st.sampled_from(["partial", "exact", "other"]),
    ),
)  # fmt: skip
_SET = st.builds(
    lambda held: {"type": "assert-set", "threshold": 0.5, "assert": held}, st.lists(_ASSERTION, max_size=3)
)


def _marks(value: Any) -> set[str]:
    return set(re.findall(r"m[0-9]{3}", json.dumps(value)))


@given(st.lists(_ASSERTION | _SET, max_size=6), st.lists(_ASSERTION, max_size=2))
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_check_disappears_unsaid(tmp_path: Path, own: list[Any], inherited: list[Any]) -> None:
    """Every text that is looked for is in the files that `gate import` writes, or in a loss that it lists."""
    losses: list[Loss] = []
    test = {"vars": {"q": "Hi"}, "assert": own}
    suite = suite_of(tmp_path, losses, tests=[test], defaultTest={"assert": inherited})
    made = convert(suite)
    checks = [loss.what for loss in [*losses, *made.losses] if loss.check]
    kept = [made.suite, made.criteria]
    assert _marks([own, inherited]) <= _marks([kept, checks])
    assert not made.losses or all(not loss.check for loss in made.losses)


# --- tests, prompts and files ---------------------------------------------------------------------


def test_lists_of_texts_and_prompts_multiply(tmp_path: Path) -> None:
    suite = suite_of(
        tmp_path,
        prompts=["{{q}} in {{city}}?", {"raw": "Say: {{q}}, {{city}}", "label": "say"}],
        tests=[{"vars": {"q": ["Rain", "Sun"], "city": ["Rome", "Bern"]}}],
    )
    assert len({case.id for case in suite.cases}) == 8
    assert suite.cases[0].id == "Rain in Rome? [{{q}} in {{city}}?]"
    assert suite.cases[1].turns[0].user == "Say: Rain, Rome"


def test_a_prompt_that_is_reworded_leaves_the_case_what_it_is(tmp_path: Path) -> None:
    (first,) = suite_of(tmp_path, prompts=["{{q}}"]).cases
    (second,) = suite_of(tmp_path, prompts=["Now: {{q}}"]).cases
    assert first.turns != second.turns
    assert first.content == second.content


def test_scenarios_are_lost_by_name(tmp_path: Path) -> None:
    scenario = {"config": [{"vars": {"q": "One"}}], "tests": [{"assert": [{"type": "contains", "value": "c"}]}]}
    losses: list[Loss] = []
    assert len(suite_of(tmp_path, losses, scenarios=[scenario]).cases) == 1
    assert [loss.what for loss in losses if loss.check] == ["scenarios (write each of their tests under tests)"]
    for tests in ([], None, [{"vars": {"q": "Hi"}}]):
        with pytest.raises(ConfigError, match="scenarios"):
            suite_of(tmp_path, tests=tests, scenarios=[scenario], defaultTest={"vars": {"q": "no"}})


def test_templates_of_assertions_and_files(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("From a file\n")
    (tmp_path / "prompts.txt").write_text("{{q}}\n---\nAgain: {{q}}")
    write(
        tmp_path / "tests" / "more.yaml", '- {vars: {q: file://q.txt}, assert: [{$ref: "#/assertionTemplates/kind"}]}'
    )
    suite = suite_of(
        tmp_path,
        prompts=["file://prompts.txt"],
        tests="file://tests/more.yaml",
        assertionTemplates={"kind": {"type": "contains", "value": "kind"}},
    )
    assert [case.turns[0].user for case in suite.cases] == ["From a file", "Again: From a file"]
    assert {case.options["contains"]["values"][0] for case in suite.cases} == {"kind"}


def test_a_prompt_that_a_test_names_and_that_does_not_exist_is_a_loss(tmp_path: Path) -> None:
    losses: list[Loss] = []
    prompts = [{"raw": "{{q}}", "label": "plain"}, {"raw": "Say: {{q}}", "label": "say"}]
    tests = [{"vars": {"q": "Hi"}, "prompts": ["plain", "sya"]}, {"vars": {"q": "Ho"}, "prompts": ["plain"]}]
    suite = suite_of(tmp_path, losses, tests=tests, prompts=prompts)
    assert [case.turns[0].user for case in suite.cases] == ["Ho"]
    assert [loss.what for loss in losses if loss.check] == ["the whole test: there is no prompt sya"]


def test_a_file_of_code_is_never_run(tmp_path: Path) -> None:
    (tmp_path / "gen.py").write_text("raise SystemExit(9)")
    losses: list[Loss] = []
    tests: list[Any] = ["file://gen.py", {"vars": {"q": "file://gen.py:make"}}, {"vars": {"q": "Hi"}}]
    suite = suite_of(tmp_path, losses, tests=tests, prompts=["{{q}}", "exec:make", "file://p.js"])
    assert [case.turns[0].user for case in suite.cases] == ["Hi"]
    assert len([loss for loss in losses if loss.check]) == 4


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/hostname", "link/secret.txt"])
def test_a_file_outside_the_folder_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="outside the repository"):
        suite_of(inside, tests=[{"vars": {"q": f"file://{name}"}}])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tests": [7]}, "tests: expected"),
        ({"tests": [{"vars": 7}]}, "vars: expected"),
        ({"tests": [{"vars": {"q": "a"}, "assert": [{"value": "a"}]}]}, "a type"),
        ({"tests": [{"vars": {"q": "file://none.txt"}}]}, "none.txt"),
        ({"tests": [{"assert": [{"$ref": "#/none"}]}]}, "no such assertion template"),
        ({"prompts": [{"label": "x"}]}, "prompts"),
        ({"tests": [{"vars": {name: ["x"] * 100 for name in "abc"}}]}, "combinations"),
        ({"tests": "file://rows.csv"}, "more fields than the header"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, changes: Any, said: str) -> None:
    (tmp_path / "rows.csv").write_text("q,__expected\na,b,c\n")
    with pytest.raises(ConfigError, match=said):
        suite_of(tmp_path, **changes)


def test_what_the_gate_does_not_do_is_lost_by_name(tmp_path: Path) -> None:
    losses: list[Loss] = []
    suite_of(
        tmp_path,
        losses,
        redteam={"plugins": ["pii"]},
        evaluateOptions={"repeat": 3},
        tests=[
            {"vars": {"q": "a"}, "options": {"transform": "output.x", "provider": "p"}, "unheard": 1, "threshold": 0.5},
            {"description": "loops", "vars": {"q": "{% for x in y %}{% endfor %}"}},
        ],
    )
    assert {str(loss) for loss in losses if loss.check} == {
        "redteam",
        "loops: the whole test: its template contains more than variables",
        "a: unheard",
        "a: options.transform, which rewrites the answer before it is checked, is never run",
    }
    quiet = [str(loss) for loss in losses if not loss.check]
    assert "evaluateOptions" in quiet
    assert "a: threshold 0.5 of the test (all of its assertions must hold)" in quiet


# --- pieces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("contains:a:b", {"type": "contains", "value": "a:b"}),
        ("not-icontains: x", {"type": "not-icontains", "value": "x"}),
        ("contains-all: a, b", {"type": "contains-all", "value": ["a", "b"]}),
        ("latency(1000)", {"type": "latency", "threshold": 1000.0}),
        ("trajectory:tool-used: find", {"type": "trajectory:tool-used", "value": "find"}),
        ("fn: output", {"type": "javascript", "value": "output"}),
        ("grade: is kind", {"type": "llm-rubric", "value": "is kind"}),
        ("file://x.py", {"type": "python", "value": "file://x.py"}),
        ("latency", {"type": "latency"}),
        ("similar(0.9):a", {"type": "similar", "value": "a", "threshold": 0.9}),
        ("unknown: a", {"type": "equals", "value": "unknown: a"}),
        ("Just this", {"type": "equals", "value": "Just this"}),
    ],
)
def test_assertions_of_csv_files(text: str, made: Any) -> None:
    assert from_text(text) == made


@pytest.mark.parametrize(
    ("pattern", "python"),
    [
        (r"^a$", r"^a\Z"),
        (r"a\$[$]", r"a\$[$]"),
        (r"(?<n>a)\k<n>", r"(?P<n>a)(?P=n)"),
        (r"\d+", r"(?a:\d+)"),
        (r"(?<=a)b", r"(?<=a)b"),
        (r"\p{L}", None),
        (r"(", None),
        (r"a?", None),
        (r"a.b", r"a[^\n\r\u2028\u2029]b"),
        (r"[[&]x{2,3}?", r"[\[\&]x{2,3}?"),
        (r"[^]x", r"[\s\S]x"),
        *((other, None) for other in (r"(?i)x", r"(?P<n>x)", r"a++", r"a*+b", r"\A", r"x\Z", r"x{,3}", r"(?>a)b")),
        *((other, None) for other in (r"[\k<n>]x", r"(?#c)x", r"(?(1)a|b)x", r"[]", r"[\S]x", r"\a", r"*a")),
    ],
)
def test_javascripts_patterns(pattern: str, python: str | None) -> None:
    assert from_javascript(pattern) == python


@pytest.mark.parametrize("text", ["\u00a0", "\ufeff", "\u2003", " "])
def test_a_space_is_javascripts(text: str) -> None:
    found = from_javascript(r"a\sb\d")
    assert found is not None
    assert re.search(found, f"a{text}b1")
    assert not re.search(found, "a b\u0661")


def test_assertions_among_the_variables_are_refused(tmp_path: Path) -> None:
    test = {"vars": {"q": "Hi", "assert": [{"type": "is-json"}]}}
    with pytest.raises(ConfigError, match="`assert` is under `vars`"):
        suite_of(tmp_path, tests=[test])


def test_files_are_read_as_far_as_the_repository_goes(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path / "shared" / "a.json", [{"vars": {"q": "Hi"}}])
    suite = suite_of(tmp_path / "evals", tests="file://../shared/a.json")
    assert [case.turns[0].user for case in suite.cases] == ["Hi"]


def test_a_pattern_of_names_stands_for_files_and_is_named_where_there_are_none(tmp_path: Path) -> None:
    for name in "ba":
        write(tmp_path / "tests" / f"{name}.json", [{"vars": {"q": name}}])
    suite = suite_of(tmp_path, tests="file://tests/*.json")
    assert [case.turns[0].user for case in suite.cases] == ["a", "b"]
    with pytest.raises(ConfigError, match=r"no file matches none/\*\.json"):
        suite_of(tmp_path, tests=["file://none/*.json", {"vars": {"q": "Hi"}}])


def test_templates_name_variables_and_nothing_else() -> None:
    held = {"a": {"b": [1, "x"]}, "t": True, "n": None}
    assert rendered("{{ a.b.1 }}{{t}}{{n}}{{none}}{{-a.b-}}", held) == 'xtrue[1, "x"]'
    for text in ("{{ a | upper }}", "{% if a %}", "{# a #}", "{{ a() }}", "{{"):
        with pytest.raises(TemplateError):
            rendered(text, held)
    with pytest.raises(TemplateError):
        rendered("{{a}}" * 1_000, {"a": "x" * 10_000})


def test_a_key_in_a_file_of_tests_is_not_passed_over_either(tmp_path: Path) -> None:
    test = {"vars": {"q": "Hi"}, "assert": [{"type": "latency", "threshold": 5, "provider": "p"}]}
    write(tmp_path / "tests.json", [test])
    for tests, told in (([test], "tests.assert.provider"), ("file://tests.json", "file://tests.json: assert.provider")):
        assert any(f"{told} is not carried over" in note for note in suite_of(tmp_path, tests=tests).notes)


@pytest.mark.slow
def test_many_tests_that_begin_alike_have_ids_of_their_own(tmp_path: Path) -> None:
    """Six digits of a mark are alike in some of 5,000 tests."""
    suite = suite_of(tmp_path, tests=[{"description": "one", "vars": {"q": f"q{n}"}} for n in range(5_000)])
    assert len({case.id for case in suite.cases}) == 5_000
