"""What `gate init` proposes for what it found, writes, and shows of the first case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import join
from typing import Any

import yaml
from msgspec import Struct

from gate.commands.texts import adapters, ci
from gate.commands.texts.remedies import remedy_for
from gate.commands.texts.survey import FoundAgent, FoundSuite, Survey, start_of
from gate.errors import ConfigError, ExitCode, GateError
from gate.model import Result, Suite
from gate.security import files
from gate.security.escape import console
from gate.system.signals import in_loop

CONFIG = "gate.yaml"
CASES = "evals/first.yaml"
HEAD = """\
# The criteria for your agent. `gate run` measures them, compares with the baseline, and answers with an exit code.
"""
FIRST_SECONDS = 45
"""The longest that the first case may take for one turn."""
SAMPLE_AGENT = '''\
def answer(message: str) -> dict:
    """Replace this with a call of your agent; return what it said and which tools it called, [] if none."""
    if "weather" in message:
        call = {"name": "get_weather", "arguments": {"city": "Paris"}, "result": "sunny"}
        return {"output": "It is sunny in Paris.", "tool_calls": [call]}
    return {"output": "Hello! How can I help?", "tool_calls": []}
'''
SAMPLE_CASES = """\
cases:
  - id: greeting
    input: Hello!
    tools: []                      # no tool is expected
    response: Hello! How can I help?
  - id: weather
    input: What is the weather in Paris?
    tools: [{name: get_weather, args: {city: Paris}}]
    response: It is sunny in Paris.
"""
OWN_CASES = """\
# Two cases to begin with. Put in what your users say, and what has to come of it:
#   tools: [{name: look_up_order, args: {order: A7}}]   the calls that it needs; [] for none
#   response: Your order is on its way.                 the answer, compared by its words
cases:
  - id: greeting
    input: Hello! What can you help me with?
  - id: unknown
    input: Please answer in one sentence, and say so if you do not know something that I ask for.
"""
IGNORED = ".gate/\n__pycache__/\n"
KINDS = "python: or command: / http: / openai: / agui: / a2a: / mcp: / adk: / langgraph: / replay:"


class FirstFiles(Struct, frozen=True):
    """The files of a first project, by name, and what to say of them."""

    files: Mapping[str, str]
    said: tuple[str, ...] = ()


def propose(found: Survey, agent: FoundAgent | None, folder: Path, *, workflow: bool) -> FirstFiles:
    """The files for the agent that was chosen, or for a sample to replace where there is none."""
    suites = [suite for suite in found.suites if not suite.problem]
    sources = [suite.source for suite in suites] or [CASES if (folder / CASES).parent.exists() else "evals/"]
    proposed = {CONFIG: _configuration(found, agent, suites, sources)}
    if not suites:
        proposed[CASES] = OWN_CASES if agent is not None else SAMPLE_CASES
    if agent is None:
        proposed["my_agent.py"] = SAMPLE_AGENT
    elif agent.adapter:
        proposed[f"{adapters.MODULE}.py"] = agent.adapter
    said = [f"to fill in: {note}" for note in agent.fill] if agent is not None else []
    if workflow:
        path, text = ci.workflow_of(folder, _keys(found, agent))
        proposed |= {path: text} if path else {}
    if not (folder / ".gitignore").exists():
        proposed[".gitignore"] = IGNORED
    elif ".gate" not in start_of(folder / ".gitignore"):
        said.append("add .gate/ to .gitignore: results are written there")
    return FirstFiles(proposed, tuple(said))


def _configuration(
    found: Survey, agent: FoundAgent | None, suites: Sequence[FoundSuite], sources: Sequence[str]
) -> str:
    parts = [HEAD, _yaml({"suite": sources[0] if len(sources) == 1 else list(sources)})]
    if agent is None:
        parts.append("agent:\n  python: my_agent:answer          # " + KINDS.removeprefix("python: ") + "\n")
    else:
        section = dict(agent.agent)
        if "python" in section:
            section |= {"executable": found.executable} if found.executable else {}
            section |= {"env": [f"{key}_*" for key in keys]} if (keys := _keys(found, agent)) else {}
        parts.append(f"# {agent.framework} in {console(agent.where)}; otherwise {KINDS}\n" + _yaml({"agent": section}))
    return "".join([*parts, _criteria([one for suite in suites for one in suite.suites], sample=agent is None)])


def _yaml(content: Mapping[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)


def _criteria(suites: Sequence[Suite], *, sample: bool) -> str:
    """Those that the cases can be measured by; none where the files bring their own."""
    if any(suite.criteria is not None for suite in suites):
        return "# The criteria are those of test_config.json; `criteria:` here would take their place.\n"
    if any(suite.brought for suite in suites):
        return "# The criteria are those of the suite's own files; `criteria:` here refines them.\n"
    turns = [turn for suite in suites for case in suite.cases for turn in case.turns]
    lines = []
    if sample or any(turn.tools is not None for turn in turns):
        lines.append("  tool_trajectory_avg_score: 0.8   # a number is a threshold on the suite's mean\n")
    if sample or any(turn.response for turn in turns):
        lines.append("  response_match_score: 0.5\n")
    if not lines:
        lines.append(
            "  regex: {patterns: ['\\S']}        # it says something; see docs/how-to/choose-metrics.md for more\n"
        )
        lines.append("  latency: {max: 60}               # seconds\n")
    return "criteria:\n" + "".join(lines)


def _keys(found: Survey, agent: FoundAgent | None) -> list[str]:
    """Prefixes of the variables that the agent's process has to see."""
    own = {"OpenAI Agents SDK": {"OPENAI"}, "Google ADK": {"GOOGLE"}}.get(agent.framework if agent else "", set())
    return sorted(found.keys | own)[:10] if agent is not None else []


def write(folder: Path, proposal: FirstFiles) -> tuple[list[str], list[str]]:
    """Writes the files that are missing: all or none, and the configuration last, without which nothing has happened.

    Returns their names, and those of the files that are there and stay.

    Raises:
        ConfigError: the configuration already exists, or the folder cannot be written.
    """
    if (folder / CONFIG).exists():
        raise ConfigError(f"{CONFIG} already exists", where=str(folder), hint="edit it, or name another folder")
    kept = [name for name in proposal.files if (folder / name).exists()]
    order = sorted((name for name in proposal.files if name not in kept), key=lambda name: name == CONFIG)
    made: list[Path] = []
    try:
        for name in order:
            made += [one for one in reversed((folder / name).parents) if not one.exists()]
            files.make_folder((folder / name).parent)
            made.append(folder / name)
            files.write_text(folder / name, proposal.files[name])
    except BaseException as error:
        for path in reversed(made):
            with suppress(OSError):
                files.remove(path)
        if not isinstance(error, OSError):
            raise
        hint = "nothing is written"
        raise ConfigError(f"cannot write: {error.strerror}", where=str(folder / name), hint=hint) from error
    return [name for name in proposal.files if name in order], kept


# --- the first case -------------------------------------------------------------------------------


class First(Struct, frozen=True):
    """What came of the first case."""

    lines: tuple[str, ...]
    code: ExitCode


def run_first(folder: Path, environment: Mapping[str, str]) -> First:
    """One trial of one case, compared with nothing: what it came to, and what to do where it failed."""
    from gate.config.load import load_config
    from gate.config.resolve import read_suites
    from gate.pipeline.flow import run_gate
    from gate.pipeline.progress import NoProgress
    from gate.pipeline.session import RunOptions
    from gate.reports.files import Outputs

    path = folder / CONFIG
    try:
        case = min(read_suites(load_config(path))[0].cases, key=lambda case: len(case.turns)).id  # the shortest
        overrides: dict[str, Any] = {"select.ids": [case], "trials": 1, "baseline.store": "none"}
        overrides |= {"agent.timeout": FIRST_SECONDS, "agent.retries": 0}
        options = RunOptions(command=join(["gate", "run", "--case", case, "--trials", "1"]), fills_baseline=False)
        result = in_loop(run_gate(load_config(path, overrides), options, Outputs(), environment, NoProgress()))
    except GateError as error:
        return First((str(error), *_remedies(str(error), path, environment)), error.exit_code)
    return First(_told(result, path, environment), result.exit_code)


def _told(result: Result, path: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    from gate.reports.console import render_line

    reasons = [reason for suite in result.suites for case in suite.cases for reason in case.reasons][:3]
    texts = [text for suite in result.suites for case in suite.cases for text in case.actual_text[:1]]
    answered = [f"it answered: {text}" for text in texts[:1] if text]
    return (*render_line(result).splitlines(), *reasons, *answered, *_remedies(" ".join(reasons), path, environment))


def _remedies(text: str, path: Path, environment: Mapping[str, str]) -> list[str]:
    found = remedy_for(text, path.name, environment)
    return [f"to do: {found}"] if found else []
