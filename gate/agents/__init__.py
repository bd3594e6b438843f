"""Ways to drive the agent under test, one file each."""

from __future__ import annotations

AGENTS: dict[str, str] = {
    "python": "gate.agents.python:PythonAgent",
    "command": "gate.agents.command:CommandAgent",
    "http": "gate.agents.http:HttpAgent",
    "openai": "gate.agents.openai:OpenAIAgent",
    "adk": "gate.agents.adk:AdkAgent",
    "langgraph": "gate.agents.langgraph:LangGraphAgent",
    "replay": "gate.agents.replay:ReplayAgent",
}
"""The key under ``agent:`` → its class. One line here and one file there make a new kind."""
