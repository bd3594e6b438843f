"""No key of another tool's file disappears in silence: it is carried over, refused, or listed."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from gate.errors import ConfigError, GateError
from gate.formats.documents import parse_document
from gate.formats.reading import MAX_KINDS, MORE_KINDS
from gate.suites import format_named, load
from gate.suites.base import Format, Loss
from tests.unit.importers import test_evalview, test_inspect_logs, test_promptfoo
from tests.unit.suites import test_adk_results
from tests.unit.suites.files import EVAL_CASE, write
from tests.unit.traces.spans import TRACE, agent, asks, chat, request, said, span, text, tool

MORE = "one_more_key"
MARK = "its-value"
OWN = Path(__file__).parent / "samples"

LEGACY = {"query": "Hi", "expected_tool_use": [{"tool_name": "find", "tool_input": {"id": 1}}], "reference": "Hello"}
GOLDEN = {
    "input": "Hi",
    "expected_output": "Hello",
    "expected_tools": [{"name": "find", "inputParameters": {"id": 1}}],
    "additional_metadata": {"team": "care"},
}
SCENARIO = {
    "scenario_id": "s",
    "turns": [{"input": "Hi", "expected_response": "Hello"}],
    "expected_trajectory": {"toolNames": ["find"]},
    "assertions": ["Is kind."],
}
DATASET = {
    "name": "shop",
    "cases": [{"name": "one", "inputs": "Hi", "expected_output": "Hello", "evaluators": [{"Contains": "He"}]}],
    "evaluators": [{"LLMJudge": {"rubric": "Is kind."}}],
}
CONFIGURATION = {
    "prompts": ["{{q}}"],
    "providers": [{"id": "echo", "config": {"temperature": 0}}],
    "defaultTest": {"assert": [{"type": "latency", "threshold": 5000}], "options": {"prefix": "Say: "}},
    "tests": [
        {
            "vars": {"q": "Hi"},
            "assert": [{"type": "contains", "value": "He"}, {"type": "assert-set", "assert": [{"type": "is-json"}]}],
        }
    ],
}
TALK_OF_ROW = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": [{"type": "text", "text": "Where is A1?"}]},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
    {"role": "tool", "tool_call_id": "c", "content": "shipped"},
    {"type": "function_call", "id": "f", "status": "completed", "call_id": "d", "name": "tell", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "d", "output": "told"},
    {"role": "assistant", "content": [{"type": "text", "text": "Shipped."}]},
]
SPANS = [
    agent(1, **{"session.id": "s"}),
    chat(2, read=[said("user", text("Hello"))], wrote=[said("assistant", asks("find", {"n": 1}))]),
    tool(3, arguments={"n": 1}, result={"ok": True}),
    chat(4, wrote=[said("assistant", text("Done."))]),
]
JAEGER = {
    "data": [
        {
            "traceID": TRACE,
            "spans": [
                {
                    "traceID": TRACE,
                    "spanID": "0000000000000001",
                    "operationName": "chat",
                    "references": [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": "0000000000000009"}],
                    "startTime": 1,
                    "duration": 1,
                    "tags": [{"key": "gen_ai.operation.name", "type": "string", "value": "chat"}],
                    "processID": "p1",
                }
            ],
            "processes": {"p1": {"serviceName": "shop", "tags": []}},
        }
    ]
}
AGENTS_SDK = {
    "object": "trace.span",
    "id": "span_1",
    "trace_id": "trace_1",
    "parent_id": None,
    "started_at": "2026-11-22T08:34:15+00:00",
    "ended_at": "2026-11-22T08:34:16+00:00",
    "span_data": {"type": "function", "name": "find", "input": "{}", "output": "{}", "mcp_data": None},
    "error": None,
}
RESULTS = {
    "eval_set_id": "s",
    "eval_case_results": [test_adk_results.result("one", "Yes.", test_adk_results.metric("response_match_score"))],
}
ANSWERED = {"output": "Hi", "tokenUsage": {"total": 3, "prompt": 1, "completion": 2}, "cost": 0.1}
SAMPLES: dict[str, tuple[str, Any]] = {
    "adk": ("s.evalset.json", {"eval_set_id": "s", "eval_cases": [EVAL_CASE]}),
    "adk: a list of turns": ("s.test.json", [LEGACY]),
    "adk: a list of cases": ("s.test.json", [{"name": "one", "data": [LEGACY], "initial_session": {"state": {}}}]),
    "adk-results": ("r.evalset_result.json", RESULTS),
    "pydantic-evals": ("d.json", DATASET),
    "inspect": ("log.json", test_inspect_logs.log(test_inspect_logs.sample())),
    "promptfoo": ("c.json", CONFIGURATION),
    "promptfoo: results": (
        "r.json",
        {
            "results": {
                "version": 3,
                "results": [test_promptfoo.row("Hi", {"type": "contains", "value": "Hi"}, response=ANSWERED)],
            }
        },
    ),
    "deepeval": ("g.json", [GOLDEN]),
    "langsmith": ("e.json", [{"id": "1", "inputs": {"question": "Hi"}, "outputs": {"answer": "Hello"}}]),
    "langfuse": ("i.json", [{"id": "1", "input": {"question": "Hi"}, "expectedOutput": "Hello", "datasetName": "d"}]),
    "openai-evals": ("o.json", [{"item": {"input": "Hi", "ideal": "Hello"}, "sample": {"output_text": "Hello"}}]),
    "agentcore": ("a.json", [SCENARIO]),
    "messages": ("rows.json", [{"id": "one", "messages": TALK_OF_ROW}]),
    "messages: lines": ("rows.jsonl", [{"id": "one", "messages": TALK_OF_ROW}]),
    "traces": ("t.json", request(*SPANS, resource={"service.name": "shop"})),
    "traces: lines": ("t.jsonl", [request(one) for one in SPANS]),
    "traces: jaeger": ("j.json", JAEGER),
    "traces: agents sdk": ("s.json", {"spans": [AGENTS_SDK]}),
    "evalview": ("t.yaml", parse_document(test_evalview.FULL, "t.yaml")),
    "native": ("n.json", {"cases": [{"id": "one", "input": "Hi", "tools": [{"name": "find", "args": {"id": 1}}]}]}),
}
"""Of each format a file that holds what it has, by name."""


LINES = ".jsonl"
KINDS = dict.fromkeys(("deepeval", "langsmith", "langfuse", "openai-evals", "agentcore"), "exports")


def format_of(sample: str) -> Any:
    return format_named(KINDS.get(sample, sample.partition(":")[0]))


def is_declared(sample: str, place: tuple[Any, ...]) -> bool:
    """True if one more key at a place is one of those that a format says it does not read."""
    keys = (*(str(key) for key in place if not isinstance(key, int)), MORE)
    return sample in IGNORED and any(keys[:end] in IGNORED[sample] for end in range(1, len(keys) + 1))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every mapping in a value."""
    if isinstance(value, list):
        return [place for index, item in enumerate(value) for place in places(item, (*path, index))]
    if not isinstance(value, dict):
        return []
    return [path, *(place for key, held in value.items() for place in places(held, (*path, key)))]


def with_one_more(value: Any, place: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(value)
    held = changed
    for key in place:
        held = held[key]
    held[MORE] = MARK
    return changed


def as_file(name: str, data: Any) -> Any:
    """A value as it stands in a file of this name."""
    return "".join(json.dumps(row) + "\n" for row in data) if name.endswith(LINES) else data


def told(folder: Path, name: str, data: Any) -> tuple[str, list[str]]:
    """All that is carried over from a file, and all that a user is shown of it."""
    write(folder / name, as_file(name, data))
    found: list[Loss] = []
    try:
        suites = load([folder / name], root=folder, losses=found)
    except ConfigError as error:
        return "", [str(error)]
    return repr(suites), [*map(str, found)]


IGNORED = {name: form.ignored for name in SAMPLES if isinstance(form := format_of(name), Format) and form.ignored}
"""What each format does not read on purpose."""


CASES = [
    pytest.param(sample, place, id=f"{sample}-{'.'.join(map(str, place))}")
    for sample, (_, data) in SAMPLES.items()
    for place in places(data)
]


@pytest.mark.parametrize(("sample", "place"), CASES)
def test_one_more_key_is_never_passed_over(tmp_path: Path, sample: str, place: tuple[Any, ...]) -> None:
    name, data = SAMPLES[sample]
    before = told(tmp_path, name, data)[1]
    carried, shown = told(tmp_path, name, with_one_more(data, place))
    assert all(len(one) <= 200 for one in shown)
    assert MORE in carried or MARK in carried or shown != before or is_declared(sample, place)


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_samples_themselves_are_read_whole(tmp_path: Path, sample: str) -> None:
    name, data = SAMPLES[sample]
    write(tmp_path / name, as_file(name, data))
    found: list[Loss] = []
    load([tmp_path / name], root=tmp_path, losses=found)
    assert not [str(loss) for loss in found if "not read" in str(loss)]


def test_an_unknown_status_of_a_row_is_listed(tmp_path: Path) -> None:
    row = copy.deepcopy(TALK_OF_ROW)
    row[3]["status"] = "odd"
    assert "messages.status" in told(tmp_path, "rows.json", [{"id": "one", "messages": row}])[1]


def test_a_result_of_no_call_is_listed(tmp_path: Path) -> None:
    row = [*copy.deepcopy(TALK_OF_ROW), {"role": "tool", "tool_call_id": "of nobody", "content": "42"}]
    assert "messages.content" in told(tmp_path, "rows.json", [{"id": "one", "messages": row}])[1]


def test_results_that_are_a_text_in_json_are_read_by_the_same_object(tmp_path: Path) -> None:
    """As older versions of google-adk write them."""
    name, data = SAMPLES["adk-results"]
    text = json.dumps(json.dumps(with_one_more(data, ("eval_case_results", 0))))
    assert f"eval_case_results.{MORE}" in told(tmp_path, name, text)[1]


def test_a_key_of_a_prompt_that_is_a_chat_is_listed(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "Hi", "mood": "sad"}]
    shown = told(tmp_path, "c.json", {**CONFIGURATION, "defaultTest": {}, "prompts": [json.dumps(chat)]})[1]
    assert [one for one in shown if "the prompt's mood" in one]


WRITTEN = {
    "a part of an answer": chat(4, wrote=[said("assistant", text("Done."), {"type": "hologram", "of": "x"})]),
    "a part alone": chat(4, wrote=[said("assistant", {"type": "hologram", "of": "x"})]),
    "a part of a question": chat(4, read=[said("user", text("Hi"), {"type": "hologram", "of": "x"})]),
    "a role": chat(4, wrote=[said("narrator", text("Then."))]),
    "a message": {**SPANS[3], "events": [{"name": "gen_ai.narrator.message"}]},
    "a verdict": {**SPANS[3], "events": [{"name": "gen_ai.evaluation.result"}]},
    "a status": {**SPANS[3], "status": {"code": "STATUS_CODE_ODD"}},
    "a part of OpenInference": span(
        4,
        **{
            "openinference.span.kind": "LLM",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.contents.0.message_content.type": "hologram",
            "llm.output_messages.0.message.contents.0.message_content.of": "x",
        },
    ),
}
"""A span that says one more thing in a text or a value, which no key of the file tells."""


@pytest.mark.parametrize("what", WRITTEN)
def test_one_more_thing_in_a_span_is_never_passed_over(tmp_path: Path, what: str) -> None:
    plain = told(tmp_path, "t.json", request(*SPANS))[1]
    shown = told(tmp_path, "t.json", request(*SPANS[:3], WRITTEN[what]))[1]
    assert [one for one in shown if re.search("hologram|narrator|evaluation|status.code", one)]
    assert shown != plain


def test_a_key_is_listed_alike_by_gate_import_and_by_gate_suite(tmp_path: Path) -> None:
    name, data = SAMPLES["adk"]
    data = with_one_more(data, ("eval_cases", 0))
    write(tmp_path / name, data)
    losses: list[Loss] = []
    load([tmp_path / name], root=tmp_path, losses=losses)
    (suite,) = load([tmp_path / name], root=tmp_path)
    assert [str(loss) for loss in losses if MORE in str(loss)]
    assert any(MORE in note for note in suite.notes)
    json.dumps([case.metadata for case in suite.cases])


TALK = ("eval_cases", 0, "conversation", 0)
PARTS: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "a part of an answer": ("adk", (*TALK, "final_response", "parts"), {"executable_code": {"code": "1"}}),
    "a part of a question": ("adk", (*TALK, "user_content", "parts"), {"function_response": {"name": "f"}}),
    "a part of a message": ("inspect", ("samples", 0, "messages", 1, "content"), {"type": "video", "video": "v.mp4"}),
    "a role": ("inspect", ("samples", 0, "messages"), {"role": "narrator", "content": "Then."}),
    "a tool that a turn names": ("agentcore", (0, "turns"), {"input": "And?", "expectedTools": ["find"]}),
    "an evaluator": ("pydantic-evals", ("evaluators",), {"Unheard": {"of": 1}}),
    "a part of a row's question": ("messages", (0, "messages", 1, "content"), {"type": "hologram", "of": "x"}),
    "a part of a row's answer": ("messages: lines", (0, "messages", 6, "content"), {"type": "hologram", "of": "x"}),
    "a role of a row": ("messages", (0, "messages"), {"role": "narrator", "content": "Then."}),
    "an item of a row": ("messages: lines", (0, "messages"), {"type": "aside", "to": "the audience"}),
    "an assertion": ("promptfoo", ("tests", 0, "assert"), {"type": "unheard-of"}),
}  # fmt: skip
"""One more item, its sample and the list that it is put into."""


@pytest.mark.parametrize("what", PARTS)
def test_one_more_item_is_never_passed_over(tmp_path: Path, what: str) -> None:
    sample, place, item = PARTS[what]
    name, data = SAMPLES[sample]
    before = told(tmp_path, name, data)
    changed = copy.deepcopy(data)
    held = changed
    for key in place:
        held = held[key]
    held.append(item)
    assert told(tmp_path, name, changed)[1] != before[1]


@pytest.mark.parametrize(
    ("sample", "place"),
    [
        ("inspect", ("status",)),
        ("langfuse", (0, "status")),
        ("adk-results", ("eval_case_results", 0, "final_eval_status")),
    ],
)
def test_an_unknown_status_is_refused(tmp_path: Path, sample: str, place: tuple[Any, ...]) -> None:
    name, data = SAMPLES[sample]
    changed = copy.deepcopy(data)
    held = changed
    for key in place[:-1]:
        held = held[key]
    held[place[-1]] = "UNHEARD_OF"
    with pytest.raises(ConfigError, match="UNHEARD_OF"):
        load([write(tmp_path / name, changed)], root=tmp_path)


def inner_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything below a value."""
    held = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in held for place in ((*path, key), *inner_places(one, (*path, key)))]


STRANGE: tuple[Any, ...] = ("some text", 7, [1], {"x": 1}, None, True)


def made_strange(data: Any, place: tuple[Any, ...], number: int) -> Any:
    """The data with one value of another type, or without it."""
    changed = copy.deepcopy(data)
    held = changed
    for key in place[:-1]:
        held = held[key]
    if number % (len(STRANGE) + 1) < len(STRANGE):
        held[place[-1]] = STRANGE[number % (len(STRANGE) + 1)]
    else:
        del held[place[-1]]
    return changed


@pytest.mark.parametrize("sample", SAMPLES)
def test_whatever_is_changed_an_error_is_a_short_line_that_names_the_file(tmp_path: Path, sample: str) -> None:
    name, data = SAMPLES[sample]
    for number, place in enumerate(inner_places(data)):
        write(tmp_path / name, as_file(name, made_strange(data, place, number)))
        try:
            load([tmp_path / name], root=tmp_path)
        except GateError as error:
            assert len(str(error)) <= 200 and "\n" not in str(error), (place, str(error))
            assert name in str(error), (place, str(error))


def test_a_key_of_its_own_in_every_row_costs_no_memory_without_bound(tmp_path: Path) -> None:
    rows = [{"id": str(n), "messages": TALK_OF_ROW, f"key-{n}": 1} for n in range(MAX_KINDS + 50)]
    shown = told(tmp_path, "rows.jsonl", rows)[1]
    assert len(shown) == MAX_KINDS + 1
    assert shown[-1] == f"{MORE_KINDS} (50 times)"
