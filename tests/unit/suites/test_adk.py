"""ADK's eval sets, current and legacy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.baselines.fingerprint import of_case
from gate.errors import ConfigError, GateError
from gate.formats.documents import parse_document_with_lines
from gate.model import Behavior, Case, Complexity, Part, Persona, Rubric, Scenario, ToolCall, Turn
from gate.suites import load
from gate.suites.adk import read
from gate.suites.base import Document
from tests.unit.formats.test_adk import in_camel
from tests.unit.suites.files import EVAL_CASE, TURN, mutated, write

EVAL_SET = {"eval_set_id": "s", "name": None, "eval_cases": [EVAL_CASE]}
TURNS = (
    Turn("Where is A1?", (ToolCall("find", {"id": "A1"}),), (Part("On its way."),)),
    Turn("Thanks", (), None),
)


def cases(data: Any, name: str = "file") -> tuple[Case, ...]:
    value, lines = parse_document_with_lines(json.dumps(data, indent=1), "f.json")
    return read(Document(value, "f.json", name, lines)).cases


def test_eval_case() -> None:
    (case,) = cases(EVAL_SET)
    assert (case.id, case.turns, case.tags, case.complexity) == ("one", TURNS, {"smoke"}, Complexity.SIMPLE)
    assert (case.state, case.app) == ({"vip": True}, {"app_name": "shop", "user_id": "u"})
    assert case.rubrics == (Rubric("kind", "Is kind."),)
    assert str(case.location) == "f.json:5"


def test_either_case_at_every_level() -> None:
    plain = cases(EVAL_SET)[0]
    for spelled in (in_camel(EVAL_SET), {"evalCases": [EVAL_CASE]}, {"eval_cases": [in_camel(EVAL_CASE)]}):
        (case,) = cases(spelled)
        assert (case.id, case.turns, case.app, case.rubrics) == (plain.id, plain.turns, plain.app, plain.rubrics)


def test_ids_are_text_never_file_names() -> None:
    (case,) = cases({"eval_cases": [{**EVAL_CASE, "eval_id": "/etc/passwd/../x"}]})
    assert case.id == "/etc/passwd/../x"


def test_flat_legacy_list_is_one_conversation() -> None:
    rows = [
        {
            "query": "Where is A1?",
            "expected_tool_use": [{"tool_name": "find", "tool_input": {"id": "A1"}}],
            "reference": "On its way.",
            "expected_intermediate_agent_responses": [{"author": "a", "text": "hm"}],
        },
        {"query": "Thanks"},
    ]
    (case,) = cases(rows, "sub/legacy")
    assert (case.id, case.turns, str(case.location)) == ("sub/legacy", TURNS, "f.json:1")


def test_legacy_list_of_sessions() -> None:
    row = {"query": "hi", "expected_tool_use": [{"name": "find", "args": {}}], "reference": ""}
    data = [
        {"name": "a", "data": [row], "initial_session": {"state": {"x": 1}, "app_name": "shop", "user_id": "u"}},
        {"name": "b", "data": [row, row], "initial_session": {}},
    ]
    first, second = cases(data)
    assert first.turns == (Turn("hi", (ToolCall("find", {}),), ()),)
    assert (first.state, first.app, len(second.turns)) == ({"x": 1}, {"app_name": "shop", "user_id": "u"}, 2)


def changed(**change: Any) -> dict[str, Any]:
    return {"eval_cases": [{**EVAL_CASE, **change}]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"eval_cases": {}}, "f.json:2: cases must be a list"),
        ({"eval_cases": ["x"]}, "f.json:3: a case must be an object"),
        (changed(eval_id=None), "f.json:3: a case must have an eval_id"),
        (changed(evalId="x"), "f.json:3: both eval_id and evalId are given"),
        (changed(conversation=None), "f.json:3: case 'one': give exactly one of conversation"),
        (changed(conversation=[]), "f.json:3: case 'one': conversation must be a list of at least one turn"),
        (changed(conversation=[{}]), "f.json:6: user_content has no text"),
        (
            changed(conversation=[{**TURN, "final_respons": 1}]),
            "f.json:6: unknown key 'final_respons' in an invocation",
        ),
        (changed(sesion_input={}), "f.json:63: case 'one': unknown key 'sesion_input' (did you mean 'session_input'?)"),
        (changed(tags="smoke"), "f.json:59: tags must be a list of strings"),
        (changed(complexity="hard"), "f.json:62: complexity must be one of simple, medium, complex"),
        (changed(rubrics=[{}]), "f.json:51: rubric_content must be an object"),
        ([{"query": "hi"}, {"qery": "ho"}], "f.json:5: unknown key 'qery' in a turn, did you mean 'query'?"),
        ([{"query": "hi", "expected_tool_use": [{"tool_input": {}}]}], "f.json:2: an expected tool use must have"),
        ([{"query": "hi", "reference": 3}], "f.json:2: reference must be text"),
        ([{"name": "a", "data": []}], "f.json:2: case 'a': data must be a list of at least one turn"),
        ([{"name": "a", "data": [], "initial": {}}], "f.json:2: case 'a': unknown key 'initial'"),
    ],
)
def test_malformed(data: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        cases(data)
    assert str(caught.value).startswith(message)


def test_files_of_a_question_are_part_of_it() -> None:
    image = {"inline_data": {"mime_type": "image/png", "data": "aGk="}}
    parts = [{"text": "What?"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "text": None}]
    (case,) = cases({"eval_cases": [{"eval_id": "one", "conversation": [{"user_content": {"parts": parts}}]}]})
    assert (case.turns[0].user, case.turns[0].attached) == ("What?", (image,))
    plain = replace(case, turns=(Turn("What?", ()),))
    assert of_case(case) != of_case(plain)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"function_response": {"name": "approve", "response": {"ok": True}}}, "user_content has function_response"),
        ({"inline_data": {"mime_type": "image/png", "data": "aGk="}}, "no text, only inline_data"),
    ],
)
def test_a_question_that_cannot_be_put_is_refused(part: Any, said: str) -> None:
    parts = [part] if "inline_data" in part else [{"text": "Yes."}, part]
    with pytest.raises(ConfigError, match=said):
        cases({"eval_cases": [{"eval_id": "one", "conversation": [{"user_content": {"parts": parts}}]}]})


def scenario_of(**changes: Any) -> Any:
    scenario = {"startingPrompt": "hi", "conversationPlan": "Ask.", **changes}
    (case,) = cases({"eval_cases": [{"eval_id": "one", "conversationScenario": scenario}]})
    assert [turn.user for turn in case.turns] == ["hi"]
    return case.scenario


def test_scenarios_are_cases_of_a_simulated_user() -> None:
    assert scenario_of() == Scenario("hi", "Ask.")
    assert scenario_of(userPersona="EXPERT").persona.id == "EXPERT"
    behavior = {"name": "b", "description": "d", "behavior_instructions": ["i"], "violation_rubrics": ["v"]}
    persona = {"id": "p", "description": "who", "behaviors": [behavior]}
    assert scenario_of(user_persona=persona).persona == Persona("p", "who", (Behavior("b", "d", ("i",), ("v",)),))


@pytest.mark.parametrize(("limit", "turns"), [(4, 4), (-1, None), (True, None)])
def test_the_limit_of_turns_beside_an_eval_set_is_read(tmp_path: Path, limit: Any, turns: int | None) -> None:
    scenario = {"starting_prompt": "hi", "conversation_plan": "Ask."}
    cases = [{"eval_id": "one", "conversation_scenario": scenario}]
    write(tmp_path / "s.evalset.json", {"eval_set_id": "s", "eval_cases": cases})
    config = {"max_allowed_invocations": limit, "model": "m"}
    write(tmp_path / "test_config.json", {"criteria": {"safety_v1": 1}, "user_simulator_config": config})
    (suite,) = load([tmp_path], root=tmp_path)
    assert suite.cases[0].scenario == Scenario("hi", "Ask.", max_turns=turns)
    assert [note for note in suite.notes if "model not read" in note]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"conversationPlan": ""}, "must have a starting_prompt and a conversation_plan"),
        ({"userPersona": "SOMEBODY"}, "unknown user_persona 'SOMEBODY'; known: EXPERT"),
        ({"userPersona": {"id": "p"}}, "need an id, a name"),
        ({"other": 1}, "unknown key 'other'"),
    ],
)
def test_malformed_scenarios(changes: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        scenario_of(**changes)


def test_other_keys_of_a_case_are_passed_over_as_adk_does() -> None:
    assert cases(changed(owner="me", jira="X-1"))[0].id == "one"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_mutants_are_suites_or_gate_errors(data: st.DataObject, tmp_path: Path) -> None:
    legacy: Any = [{"query": "q", "expected_tool_use": [{"tool_name": "t", "tool_input": {"a": 1}}], "reference": "r"}]
    session: Any = [{"name": "n", "data": legacy, "initial_session": {"state": {"a": 1}, "app_name": "a"}}]
    mutant = mutated(data, data.draw(st.sampled_from([EVAL_SET, in_camel(EVAL_SET), legacy, session])))
    path = write(tmp_path / "m.test.json", mutant)
    try:
        (suite,) = load([path], root=tmp_path)
    except GateError as error:
        assert "\n" not in str(error)
        return
    for case in suite.cases:
        assert case.id
        assert case.turns
        assert all(turn.user and turn.tools is not None for turn in case.turns)
