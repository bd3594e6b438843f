"""The findings of `gate init` in a repository."""

from __future__ import annotations

import json
from pathlib import Path

from gate.commands.setup.survey import MOST_AGENTS, survey

FUNCTION = "from openai import OpenAI\n\n\ndef run(prompt):\n    return prompt\n"
ADK = "from google.adk.agents import Agent\n\nroot_agent = Agent(name='shop')\n"
GRAPH = "from langgraph.graph import StateGraph\n\ngraph = StateGraph(dict).compile()\n"
ROUTE: dict[str, object] = {
    "post": {"requestBody": {"content": {"application/json": {"schema": {"properties": {"message": {}}}}}}}
}


def write(root: Path, files: dict[str, object]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content if isinstance(content, str) else json.dumps(content))


def test_of_many_agents_the_likeliest_are_kept(tmp_path: Path) -> None:
    write(tmp_path, {f"a{number}.py": FUNCTION for number in range(MOST_AGENTS + 5)})
    write(tmp_path, {"z.py": ADK})
    found = survey(tmp_path).agents
    assert len(found) == MOST_AGENTS
    assert found[0].where == "z.py:3"


def test_each_file_adds_what_it_says_and_a_graph_is_found_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "langgraph.json": {"graphs": {"shop": "./bot/graph.py:graph"}},
            "bot/graph.py": GRAPH,
            "docs/openapi.json": {"paths": {"/chat": ROUTE}},
            ".env.example": "SHOP_API_KEY=\n",
            ".env": "HIDDEN_API_KEY=secret\n",
        },
    )
    found = survey(tmp_path)
    assert [(agent.framework, agent.where) for agent in found.agents] == [
        ("LangGraph", "bot/graph.py:1"),
        ("an HTTP server", "docs/openapi.json"),
    ]
    assert found.agents[0].why == "langgraph.json names the graph 'shop'"
    assert found.keys == {"SHOP"}


def test_a_description_in_an_older_version_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    write(tmp_path, {"docs/swagger.yaml": "swagger: '2.0'\npaths: {/chat: {post: {}}}\n", "api/openapi.json": ["2.0"]})
    found = survey(tmp_path)
    assert (found.agents, found.notes) == (
        [],
        ["docs/swagger.yaml, a description in version 2.0 of OpenAPI: only 3 is read"],
    )
