"""Wrong connectors and wrong shapes: the line names the framework, and what it says to write works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.frameworks.scripted_model import serving
from tests.acceptance.conftest import REPOSITORY, Project
from tests.connectors.models import scripted_model
from tests.connectors.servers import ask, errors_of, served, turns_of

pytestmark = pytest.mark.connectors
ONE = {"id": "a", "input": "Where is A1?", "response": "Order A1 has shipped."}
ALL = "return what invoke gives"
SHAPES = {
    "frameworks": {
        "agents: agent": "this looks like the OpenAI Agents SDK: return what `await Runner.run(...)` gives",
        "pydantic-ai: agent": "this looks like pydantic-ai: return what `await agent.run(...)` gives",
        "pydantic-ai: stream": "this looks like pydantic-ai: return what `await agent.run(...)` gives",
        "langgraph: graph": "this looks like LangGraph: return what invoke or ainvoke gives",
        "langgraph: stream": "this looks like LangGraph: return what invoke or ainvoke gives",
        "langgraph: updates": f"this looks like the updates of a LangGraph graph: {ALL}",
        "langgraph: values": f"this looks like the stream of a LangGraph graph: {ALL}",
        "langgraph: messages": f"this looks like the stream of a LangGraph graph: {ALL}",
        "langgraph: renamed": 'return {"messages": state["history"]}',
        "claude: query": "this looks like the Claude Agent SDK: return the list of messages",
        "microsoft: response": "this looks like Microsoft's Agent Framework: return response.text",
    },
    "adk": {
        "google-adk: generator": "this looks like google-adk: return the list of events",
        "google-adk: agent": "this looks like google-adk: return the list of events",
    },
    "crewai": {
        "crewai: crew": "this looks like CrewAI: return what kickoff() gives",
        "strands: result": "this looks like Strands: return str(result), export its spans (StrandsTelemetry), and set",
        "strands: stream": "this looks like Strands: return str(result), export its spans (StrandsTelemetry), and set",
    },
}


@pytest.fixture(scope="module")
def model() -> Iterator[dict[str, str]]:
    with serving() as variables:
        yield variables


@pytest.mark.parametrize("environment", SHAPES)
def test_a_wrong_shape_says_what_to_return(
    project: Project, environment: str, request: pytest.FixtureRequest, model: dict[str, str]
) -> None:
    interpreter = request.getfixturevalue(environment).with_name("python")
    source = Path(__file__).parent / "agents" / "wrong_shapes.py"
    project.write(source.name, source.read_text(encoding="utf-8"))
    env = {**model, "OTEL_SDK_DISABLED": "true", "EXAMPLES": str(REPOSITORY / "examples" / "frameworks")}
    agent = {"python": "wrong_shapes:answer", "executable": str(interpreter), "env": env, "concurrency": 4}
    ask(project, agent, [{"id": shape, "input": shape, "response": "x"} for shape in SHAPES[environment]])
    errors = errors_of(project)
    assert set(errors) == set(SHAPES[environment])
    assert {shape: said for shape, said in errors.items() if SHAPES[environment][shape] not in said} == {}
    assert not any("\n" in said for said in errors.values())


USER = {"role": "user", "parts": [{"text": "{{message}}"}]}
LOOKUP = {"name": "lookup_order", "parameters": {"type": "object"}}
BODIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Chat Completions": ("OPENAI_BASE_URL", "/chat/completions", {"model": "m", "messages": "{{messages}}"}),
    "OpenAI's Responses": ("OPENAI_BASE_URL", "/responses", {"model": "m", "input": "{{message}}"}),
    "Anthropic's Messages": ("ANTHROPIC_BASE_URL", "/v1/messages", {"model": "m", "messages": "{{messages}}"}),
    "Gemini": ("GOOGLE_GEMINI_BASE_URL", "/v1beta/models/m:generateContent", {"contents": [USER]}),
}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "Chat Completions": [{"type": "function", "function": LOOKUP}],
    "OpenAI's Responses": [{"type": "function", **LOOKUP}],
}


@pytest.mark.parametrize("name", BODIES)
def test_the_places_that_a_hint_names_hold_the_answer(project: Project, model: dict[str, str], name: str) -> None:
    """The line itself is read as configuration."""
    base, path, body = BODIES[name]
    agent: dict[str, Any] = {"url": model[base] + path, "request": body}
    ask(project, {"http": agent}, [ONE])
    said = errors_of(project)["a"]
    assert f"this looks like {name}: " in said
    told = yaml.safe_load(said[said.index("http.response") :])
    response = told.get("http.response") or {"output": told["http.response.output"]}
    ran = ask(project, {"http": {**agent, "response": response}}, [ONE])
    assert ran.code == 0, ran.out + ran.err
    assert turns_of(project)["a"][0]["response"] == ["Order A1 has shipped."]
    if name in TOOLS:
        ask(project, {"http": {**agent, "request": {**body, "tools": TOOLS[name]}, "response": response}}, [ONE])
        assert [call["name"] for call in turns_of(project)["a"][0]["calls"]] == ["lookup_order"]


def test_agui_is_known_by_what_it_misses(project: Project, frameworks: Path) -> None:
    with (
        scripted_model() as scripted,
        served(frameworks, "agui_server.py", {"MODEL_URL": scripted}, arguments=["pydantic-ai"]) as url,
    ):
        ask(project, {"http": f"{url}/agent"}, [ONE])
        assert "this looks like AG-UI: use agui:" in errors_of(project)["a"]
        ask(project, {"openai": {"url": url, "model": "m"}}, [ONE])
        assert "agent.openai.url is what comes before /chat/completions" in errors_of(project)["a"]


def test_servers_of_mcp_and_a2a_are_known_by_their_json_rpc(project: Project, frameworks: Path) -> None:
    with served(frameworks, "mcp_server.py", arguments=["http"]) as url:
        ask(project, {"http": f"{url}/mcp"}, [ONE])
        assert "this looks like an MCP server: use mcp:" in errors_of(project)["a"]
        ask(project, {"mcp": {"url": url, "tool": "plain"}}, [ONE])
        assert "agent.mcp.url is the whole address of an MCP server" in errors_of(project)["a"]
    with served(frameworks, "a2a_server.py") as url:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "x"}
        ask(project, {"http": {"url": f"{url}/rpc", "request": asked}}, [ONE])
        assert "this looks like a server of A2A or MCP: use a2a: or mcp:" in errors_of(project)["a"]
