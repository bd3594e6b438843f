"""The files that `gate init` writes: a configuration, a suite of two cases, and an agent to replace."""

from __future__ import annotations

from pathlib import Path

from gate.errors import ConfigError
from gate.security import files

FILES = {
    "gate.yaml": """\
# The criteria for your agent. `gate run` measures them, compares with the baseline, and answers with an exit code.
suite: evals/
agent:
  python: my_agent:answer          # or command: / http: / openai: / agui: / a2a: / mcp: / adk: / langgraph: / replay:
criteria:
  tool_trajectory_avg_score: 0.8   # a number is a threshold on the suite's mean
  response_match_score: 0.5
""",
    "evals/first.yaml": """\
cases:
  - id: greeting
    input: Hello!
    tools: []                      # no tool is expected
    response: Hello! How can I help?
  - id: weather
    input: What is the weather in Paris?
    tools: [{name: get_weather, args: {city: Paris}}]
    response: It is sunny in Paris.
""",
    ".gitignore": ".gate/\n__pycache__/\n",
    "my_agent.py": '''\
def answer(message: str) -> dict:
    """Replace this with a call of your agent; return what it said and which tools it called, [] if none."""
    if "weather" in message:
        call = {"name": "get_weather", "arguments": {"city": "Paris"}, "result": "sunny"}
        return {"output": "It is sunny in Paris.", "tool_calls": [call]}
    return {"output": "Hello! How can I help?", "tool_calls": []}
''',
}


def write_project(folder: Path) -> list[Path]:
    """Writes the files that are missing; never touches an existing one.

    Raises:
        ConfigError: the configuration already exists, or the folder cannot be written.
    """
    if (folder / "gate.yaml").exists():
        raise ConfigError("gate.yaml already exists", where=str(folder), hint="edit it, or name another folder")
    written = []
    try:
        for name, text in FILES.items():
            path = folder / name
            if path.exists():
                continue
            files.write_text(path, text)
            written.append(path)
    except OSError as error:
        raise ConfigError(f"cannot write: {error.strerror}", where=str(folder)) from error
    return written
