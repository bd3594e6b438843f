"""Ways to drive the agent under test, one file each; `base` defines what each of them does, turn by turn."""

from __future__ import annotations

from typing import Any

from gate.registry import Registry

_BUILT_IN = {
    "python": "gate.agents.python:PythonAgent",
    "command": "gate.agents.command:CommandAgent",
    "http": "gate.agents.http:HttpAgent",
    "openai": "gate.agents.openai:OpenAIAgent",
    "adk": "gate.agents.adk:AdkAgent",
    "langgraph": "gate.agents.langgraph:LangGraphAgent",
    "agui": "gate.agents.agui:AguiAgent",
    "a2a": "gate.agents.a2a:A2AAgent",
    "mcp": "gate.agents.mcp:McpAgent",
    "replay": "gate.agents.replay:ReplayAgent",
}
AGENTS = Registry[Any]("kind of agent", "agent_gate.agents", _BUILT_IN, base="gate.agents.base:Agent")
"""The key under ``agent:`` → its class. A new kind takes one line here and one file next to this."""
