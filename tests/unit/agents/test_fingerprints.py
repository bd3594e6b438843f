"""The fingerprints of unchanged agents, which are those of older records."""

from __future__ import annotations

from gate.agents.base import AgentOptions
from gate.agents.http import stated_options
from gate.agents.mcp import McpOptions
from gate.agents.openai import OpenAIOptions
from gate.baselines.fingerprint import of_definition, of_version


def fingerprints(kind: str, options: AgentOptions) -> tuple[str, str]:
    stated = stated_options(options)
    return of_definition(kind, stated), of_version(kind, stated, "1")


def test_the_fingerprints_of_agents_are_those_of_older_records() -> None:
    """If one has to change, every stored record seems to be of another agent."""
    server = OpenAIOptions.model_validate({"openai": {"url": "http://a.example/v1", "model": "m"}})
    assert fingerprints("openai", server) == ("882293f804e33c2d6ccdd2c307d7800f", "8fa782dfaf14c0a92565afb9e4def651")
    started = McpOptions.model_validate({"mcp": {"command": ["python", "s.py"], "tool": "t"}})
    assert fingerprints("mcp", started) == ("78bafae084bbd7d26768acbee21d8ff6", "57dd0e760edc9a449da16b9b88b01a47")
