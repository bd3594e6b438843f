"""The files that `gate init` proposes and writes, and its first run."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import join
from typing import Any

import yaml
from msgspec import Struct

from gate.agents.requirements import text_on_disk
from gate.commands.setup import adapters, ci
from gate.commands.setup.found import STAMP, FoundAgent, Survey
from gate.commands.setup.remedies import remedy_for
from gate.commands.setup.survey import sources_of_agent
from gate.config import FILE_NAME
from gate.errors import ConfigError, ExitCode, GateError
from gate.model import Invocation, Result, Suite, Trial
from gate.security import files
from gate.security.escape import console
from gate.security.limits import shorten
from gate.system.signals import run

CASES = "evals/first.yaml"
FIRST_SECONDS = 45
"""Maximum number of seconds for each turn of the first case."""
SAMPLE_FILE = "my_agent.py"
SAMPLE_AGENT = '''\
def answer(message: str) -> dict:
    """Replace this with a call to your agent; return its answer and its tool calls, [] if none."""
    if "weather" in message:
        call = {"name": "get_weather", "arguments": {"city": "Paris"}, "result": "sunny"}
        return {"output": "It is sunny in Paris.", "tool_calls": [call]}
    return {"output": "Hello! How can I help?", "tool_calls": []}
'''
SAMPLE_CASES = """\
# `gate help cases` explains this file.
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
FIRST_INPUTS = {
    "greeting": "Hello! What can you help me with?",
    "unknown": "Please answer in one sentence, and say so if you do not know something that I ask for.",
}
IGNORED = f"{files.OWN_FOLDER}/\n__pycache__/\n"
STAMPED = re.compile(STAMP + r"([0-9a-f]{12})\n\Z")
LEAST_ALIKE = 60
"""Characters of a reason that identify it in the headline, which may cut it off."""
MOST_SHORT = 300
"""Maximum number of characters in a line of the verdict and its reasons."""
MOST_KEYS = 10
"""Maximum number of providers whose variables the agent may see."""
SECOND_NAMES = {"GOOGLE": "GEMINI"}
"""Prefix of a provider's variables → the second prefix that its client reads."""
MOST_ANSWER = 200
"""Maximum number of characters in an answer proposed as the expected one."""


class FirstFiles(Struct, frozen=True):
    """The files of a first project."""

    files: Mapping[str, str]
    """Name → content, including the configuration."""
    agent: FoundAgent | None
    workflow: ci.Workflow
    own_cases: bool
    """True if the cases are the gate's samples, which state no expectations yet."""


def propose(
    found: Survey, agent: FoundAgent | None, folder: Path, *, workflow: bool, answers: Mapping[str, Trial] | None = None
) -> FirstFiles:
    """Return the files for the chosen agent, or for a sample to replace if there is none.

    With the agent's ``answers`` to the sample cases, its calls are in these, and a criterion judges them.
    """
    suites = [suite for suite in found.suites if not suite.problem]
    if len(suites) > 1 and is_untouched(folder / CASES):
        suites = [suite for suite in suites if suite.source != CASES]  # no sample beside the project's own cases
    sources = [suite.source for suite in suites] or [CASES]
    place = (folder / CASES).parent
    others = [path for path in place.iterdir() if path.name != Path(CASES).name] if place.is_dir() else []
    if sources == [CASES] and not others:  # other files may not be cases
        sources = [f"{Path(CASES).parent}/"]  # the suite keeps this name when files are added
    keys = _keys(found, agent)
    made = ci.Workflow()
    if workflow:
        is_python = agent is not None and "python" in agent.agent
        made = ci.workflow_of(folder, keys, agent, found.executable if is_python else "")
    read: list[Suite] = []
    for suite in suites:
        read += suite.suites
    ids: list[str] = []
    for one in read:
        ids += [case.id for case in one.cases]
    are_samples = ids == list(FIRST_INPUTS) and is_untouched(folder / CASES)  # which an earlier `gate init` wrote
    own = agent is not None and (not suites or are_samples)
    text = "# `gate run` runs each case, compares the results with the baseline, and sets an exit code.\n"
    text += _yaml({"suite": sources[0] if len(sources) == 1 else sources})
    text += _agent_section(found, agent, folder, keys)
    answered = answers if answers and own else {}
    calls = any(turn.shows_calls for turn in _turns(answered))
    text += _criteria_file(folder, sources) or criteria_for(read, sample=agent is None, states_tools=calls)
    if ci.remote_of(folder):
        text += _yaml({"baseline": {"store": "git"}})
    proposed = {FILE_NAME: text}
    if not suites or answered:
        proposed[CASES] = SAMPLE_CASES if agent is None else own_cases(answered)
    if agent is None:
        proposed[SAMPLE_FILE] = SAMPLE_AGENT
    elif agent.adapter:
        proposed[f"{adapters.MODULE}.py"] = agent.adapter
    if made.path:
        proposed[made.path] = made.text
    if not (folder / ".gitignore").exists():
        proposed[".gitignore"] = IGNORED
    return FirstFiles(proposed, agent, made, own)


def mapping_of(agent: FoundAgent) -> str:
    """Return how a server is called: the address, the request, and the places of the answer and the calls."""
    ((kind, options),) = agent.agent.items()
    if not isinstance(options, Mapping) or "request" not in options:
        return f"{kind}: {options}"
    response = options.get("response", {})
    calls = response.get("tool_calls")
    path = calls["path"] if isinstance(calls, Mapping) else calls
    said = f"POST {options['url']} {json.dumps(options['request'])}, answer in {response.get('output', 'the text')!r}"
    return f"{said}, calls in {path!r}" if path else f"{said}, calls not reported"


def _agent_section(found: Survey, agent: FoundAgent | None, folder: Path, keys: Sequence[str]) -> str:
    if agent is None:
        return "agent:\n  python: my_agent:answer          # other kinds: `gate help agent`\n"
    section = dict(agent.agent)
    if "python" in section and found.executable:
        section["executable"] = found.executable
    if "python" in section and keys:
        second = [SECOND_NAMES[key] for key in keys if key in SECOND_NAMES]
        section["env"] = [f"{prefix}_*" for prefix in sorted({*keys, *second})]
    lines = f"# {agent.framework} {console(agent.place)}; other kinds: `gate help agent`\n"
    if agent.start:
        lines += f"# start it first: {console(agent.start)}\n"
    sources = sources_of_agent(folder, agent)
    names = list(sources.names)
    if sources.problem:
        lines += f"# every file counts as the agent's (no agent.sources): {console(sources.problem)}\n"
    if not names:
        return lines + _yaml({"agent": section})
    if agent.adapter:
        names.append(f"{adapters.MODULE}.py")
    told = "  # These files make up the agent; changes to others cost no runs. Add anything else that it reads.\n"
    return lines + _yaml({"agent": section}) + told + f"  sources: {_flow(names)}\n"


def _yaml(content: Mapping[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)


def _flow(items: Sequence[Any]) -> str:
    return yaml.safe_dump(
        list(items), default_flow_style=True, sort_keys=False, allow_unicode=True, width=100_000
    ).strip()


def _criteria_file(folder: Path, sources: Sequence[str]) -> str:
    """Return the line for the criteria that `gate import` wrote beside the suite; empty if there are none."""
    if len(sources) > 1 or not (folder / sources[0]).is_file():
        return ""
    path = Path(sources[0]).with_suffix(".criteria.json")
    return _yaml({"criteria": path.as_posix()}) if (folder / path).is_file() else ""


def criteria_for(suites: Sequence[Suite], *, sample: bool = False, states_tools: bool = False) -> str:
    """Return the criteria that fit the cases; none if the files bring their own."""
    if any(suite.criteria is not None for suite in suites):
        return "# The criteria come from test_config.json; `criteria:` here would replace them.\n"
    if any(suite.brought for suite in suites):
        return "# The criteria come from the suite's own files; `criteria:` here refines them.\n"
    states_response = sample
    states_tools = states_tools or sample
    for suite in suites:
        for case in suite.cases:
            for turn in case.turns:
                states_tools = states_tools or turn.tools is not None
                states_response = states_response or bool(turn.response)
    lines = []
    if states_tools:
        lines.append("  tool_trajectory_avg_score: 0.6   # the expected calls, in order; the mean must reach this\n")
    if states_response:
        lines.append("  response_match_score: 0.5        # the words of the expected answer\n")
    if not lines:
        lines.append("  latency: {max: 60}   # seconds; answers are not judged yet: `gate help criteria`\n")
    return "criteria:\n" + "".join(lines)


def own_cases(answers: Mapping[str, Trial]) -> str:
    """Return two sample cases, with the calls of the agent if it was run and reports them."""
    lines = ["# Replace these with what your users say, and state what you expect: `gate help cases`.\ncases:\n"]
    for case, text in FIRST_INPUTS.items():
        lines.append(f"  - id: {case}\n    input: {text}\n")
        turns = answers[case].invocations if case in answers else ()
        if turns and turns[0].shows_calls:
            lines.append(f"    tools: {_calls_of(turns[0])}   # what it called when `gate init` ran it: correct?\n")
        if turns and 0 < len(turns[0].text) <= MOST_ANSWER:
            lines.append(f"    # response: {json.dumps(turns[0].text, ensure_ascii=True)}   # what it said\n")
    return "".join(lines)


def _calls_of(turn: Invocation) -> str:
    """Return the calls as YAML on one line; only their names if the arguments would make it too long."""
    calls = []
    for call in turn.tool_calls:
        stated: dict[str, Any] = {"name": call.name}
        if call.args:
            stated["args"] = dict(call.args)
        calls.append(stated)
    whole = _flow(calls)
    if len(whole) > MOST_ANSWER:
        return _flow([call.name for call in turn.tool_calls])
    return whole


def _keys(found: Survey, agent: FoundAgent | None) -> list[str]:
    """Return the prefixes of the variables that the agent's process needs."""
    if agent is None:
        return []
    own = {"OpenAI Agents SDK": {"OPENAI"}, "Google ADK": {"GOOGLE"}}.get(agent.framework, set())
    if agent.framework == "CrewAI" and not found.keys:
        own = {"OPENAI"}  # its default
    return sorted(found.keys | own)[:MOST_KEYS]


# --- writing --------------------------------------------------------------------------------------


def is_from_init(path: Path) -> bool:
    """True if `gate init` wrote this file, whatever has changed since."""
    return STAMPED.search(text_on_disk(path)) is not None


def is_untouched(path: Path) -> bool:
    """True if `gate init` wrote this file and nobody has changed it since."""
    text = text_on_disk(path)
    found = STAMPED.search(text)
    return found is not None and found[1] == _digest(text[: found.start()])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def check_replaceable(folder: Path, *, force: bool) -> None:
    """Raise ConfigError if there is a configuration that a person wrote or changed."""
    path = folder / FILE_NAME
    if path.exists() and not force and not is_untouched(path):
        raise ConfigError(
            "you have changed this file", where=str(path), hint="edit it further, or replace it with --force"
        )


def write(folder: Path, proposal: FirstFiles, *, force: bool) -> tuple[list[str], list[str]]:
    """Write the files, all or none, the configuration last. Return the names of those written, and of those kept.

    A file that a person wrote or changed is kept, unless ``force`` is given.

    Raises:
        ConfigError: the configuration is such a file, or the folder cannot be written.
    """
    check_replaceable(folder, force=force)
    written, kept = [], []
    for name in proposal.files:
        path = folder / name
        is_persons = name != FILE_NAME and path.exists() and not is_untouched(path)
        if is_persons and not force:
            kept.append(name)
        else:
            written.append(name)
    made: list[Path] = []
    try:
        for name in sorted(written, key=lambda name: name == FILE_NAME):
            path = folder / name
            made += [one for one in reversed(path.parents) if not one.exists()]
            files.make_folder(path.parent)
            if not path.exists():
                made.append(path)
            text = proposal.files[name]
            files.write_text(path, f"{text}{STAMP}{_digest(text)}\n")  # by which a later `gate init` detects edits
    except BaseException as error:
        for path in reversed(made):
            with suppress(OSError):
                files.remove(path)
        if not isinstance(error, OSError):
            raise
        hint = "nothing was written"
        raise ConfigError(f"cannot write: {error.strerror}", where=str(path), hint=hint) from error
    return written, sorted(kept)


# --- the first run --------------------------------------------------------------------------------


class First(Struct, frozen=True):
    """The outcome of the first run."""

    lines: tuple[str, ...]
    code: ExitCode
    answers: Mapping[str, Trial] = {}
    """Case → its trial, if the agent answered."""
    remedy: str = ""
    """The remedy for a failed run; empty if none is known."""


def run_first(folder: Path, environment: Mapping[str, str], proposal: FirstFiles, again: str) -> First:
    """Run one trial of the shortest case, or of each sample case, without a baseline.

    ``again``: the command that was run, for a remedy.
    """
    from gate.config.load import load_config
    from gate.config.resolve import read_suites
    from gate.pipeline.flow import run_gate
    from gate.pipeline.progress import Progress
    from gate.pipeline.session import RunOptions
    from gate.records import read_record
    from gate.reports.files import Outputs

    path = folder / FILE_NAME
    start = proposal.agent.start if proposal.agent else ""
    remedy_of = partial(remedy_for, config=path.name, environment=environment, start=start, again=again)
    try:
        cases = read_suites(load_config(path))[0].cases
        ids = list(FIRST_INPUTS)
        if not proposal.own_cases:
            ids = [min(cases, key=lambda case: len(case.turns)).id]
        overrides: dict[str, Any] = {"select.ids": ids, "trials": 1, "baseline.rerun": "never"}
        overrides |= {"baseline.store": "file", "baseline.path": f"{files.OWN_FOLDER}/first"}  # which holds none
        overrides |= {"agent.timeout": FIRST_SECONDS, "agent.retries": 0}
        words = ["gate", "run"]
        for one in ids:
            words += ["--case", one]
        options = RunOptions(command=join([*words, "--trials", "1"]), fills_baseline=False)
        result = run(run_gate(load_config(path, overrides), options, Outputs(), environment, Progress()))
    except GateError as error:
        return First((str(error),), error.exit_code, remedy=remedy_of(str(error)))
    trials = {trial.case_id: trial for trial in read_record(Path(result.record_paths[0])).trials if trial.answered}
    reasons: list[str] = []
    for suite in result.suites:
        for case in suite.cases:
            reasons += [reason for reason in case.reasons if reason not in reasons]
    return First(_outcome_lines(result, reasons, trials), result.exit_code, trials, remedy_of(" ".join(reasons)))


def _turns(trials: Mapping[str, Trial]) -> list[Invocation]:
    return [turn for trial in trials.values() for turn in trial.invocations]


def _outcome_lines(result: Result, reasons: Sequence[str], trials: Mapping[str, Trial]) -> tuple[str, ...]:
    """Return the verdict, the reasons and the answer."""
    from gate.reports.console import render_line

    headline = render_line(result)
    lines = headline.splitlines()
    lines += [reason for reason in reasons if reason[:LEAST_ALIKE] not in headline][:3]
    lines = [shorten(line, MOST_SHORT) for line in lines]
    for turn in _turns(trials):
        if turn.text:
            lines.append(f"it answered: {turn.text}")
            break
    return tuple(lines)
