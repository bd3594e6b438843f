"""Slips of the first hour: each is answered by one short line that says what, where and what to write."""

from __future__ import annotations

import sys
from typing import NamedTuple

import pytest

from gate.commands.main import main
from tests.acceptance.conftest import Project

CONFIG = "suite: evals/\nagent:\n  python: bot:answer\ncriteria:\n  tool_trajectory_avg_score: 0.8\n"
CASES = "cases:\n  - id: a\n    input: Hi\n    tools: []\n    response: Hello\n"
BOT = "def answer(message):\n    return {'output': 'Hello', 'tool_calls': []}\n"
HTTP = "suite: evals/\nagent: {{http: '{}', retries: 0}}\ncriteria: {{response_match_score: 0.5}}\n"
OFFLINE = '[remote "origin"]\n\turl = http://127.0.0.1:9/acme/shop.git\n'
MOST = 160


class Slip(NamedTuple):
    """A file, and what stands in it by mistake in place of something else."""

    file: str
    right: str
    wrong: str
    code: int
    said: str
    """Parts of the line, divided by ``…``."""
    command: str = "run -q"


CONFIGURATION = (
    Slip("gate.yaml", "suite:", "suites:", 2, "gate.yaml:1: unknown key 'suites' (did you mean 'suite'?)"),
    Slip("gate.yaml", "agent:", "agents:", 2, "gate.yaml:2: unknown key 'agents' (did you mean 'agent'?)"),
    Slip("gate.yaml", "criteria:", "criterias:", 2, "gate.yaml:4: unknown key 'criterias' (did you mean 'criteria'?)"),
    Slip("gate.yaml", "criteria:", "metrics:", 2, "gate.yaml:4: unknown key 'metrics' (did you mean 'criteria'?)"),
    Slip("gate.yaml", "suite: evals/\n", "", 2, "gate.yaml:1: missing key 'suite'"),
    Slip("gate.yaml", "python:", "pyton:", 2, "gate.yaml:2: agent: … (did you mean 'python'?)"),
    Slip("gate.yaml", "\n  python: bot:answer", " bot:answer", 2, "gate.yaml:2: agent: expected a mapping, found text"),
    Slip("gate.yaml", "  python", "python", 2, "gate.yaml:2: agent: is empty (name how it is asked: one of python"),
    Slip("gate.yaml", "  python", "\tpython", 2, "gate.yaml:3: not YAML: …(indent with spaces, not with tabs)"),
    Slip(
        "gate.yaml", "evals/", "evals/: x", 2, "gate.yaml:1: not YAML: … (put the text in quotes, or begin a new line"
    ),
    Slip("gate.yaml", "evals/", "eval/", 2, "gate.yaml:1: suite 'eval/' does not exist (did you mean 'evals/'?)"),
    Slip(
        "gate.yaml", "bot:answer", "bot.py:answer", 2, "gate.yaml:3: agent.python: … write the module, as in bot:answer"
    ),
    Slip("gate.yaml", "bot:answer", "./bot.py", 2, "gate.yaml:3: agent.python: … write the module, as in"),
    Slip("gate.yaml", "bot:answer", "bott:answer", 3, "agent.python: … no module named 'bott' (did you mean 'bot'?)"),
    Slip(
        "gate.yaml", "bot:answer", "bott:answer\n  sources: [bot.py]", 3, "no module named 'bott' (did you mean 'bot'?)"
    ),
    Slip("gate.yaml", "bot:answer", "bot:answr", 3, "agent.python: … has no attribute 'answr': did you mean 'answer'?"),
    Slip("gate.yaml", "answer", "answer\n  executable: .venv", 2, "agent.executable: no interpreter at .venv (name a"),
    Slip("gate.yaml", "answer", "answer\n  timeout: sixty", 2, "gate.yaml:4: agent.timeout: write a duration as"),
    Slip(
        "gate.yaml",
        "answer",
        "answer\n  sources: [src/]",
        2,
        "agent.sources: 'src/' matches no file (globs are relative",
    ),
    Slip(
        "gate.yaml", "trajectory_avg", "trajectory", 2, "unknown metric … (did you mean 'tool_trajectory_avg_score'?)"
    ),
    Slip("gate.yaml", "0.8", "high", 2, "gate.yaml:5: … expected a number, found 'high' (write a number, as 0.8"),
    Slip(
        "gate.yaml",
        "0.8",
        "80",
        2,
        "gate.yaml:5: tool_trajectory_avg_score: threshold 80 is out of range (did you mean 0.8",
    ),
    Slip(
        "gate.yaml",
        "0.8",
        "{threshhold: 1}",
        2,
        "gate.yaml:5: … unknown option 'threshhold' (did you mean 'threshold'?)",
    ),
    Slip("gate.yaml", "  tool_traj", "  - tool_traj", 2, "gate.yaml:4: criteria: expected a mapping, found a list"),
    Slip("gate.yaml", "tool_trajectory_avg_score", "final_response_match_v2", 2, "judge: … (set OPENAI_API_KEY"),
    Slip(
        "gate.yaml", "criteria:", "trials: 0\ncriteria:", 2, "gate.yaml:4: trials: a number of trials is between 1 and"
    ),
    Slip(
        "gate.yaml", "criteria:", "budget: 5\ncriteria:", 2, "gate.yaml:4: budget: expected a mapping (known keys: usd"
    ),
    Slip(
        "gate.yaml",
        "criteria:",
        "baseline: {store: gti}\ncriteria:",
        2,
        "gate.yaml:4: unknown store 'gti' (did you mean 'git'?)",
    ),
    Slip("gate.yaml", "criteria:", "criteria: {}\ncriteria:", 2, "gate.yaml:5: duplicate key 'criteria'"),
)
SUITE = (
    Slip(
        "evals/first.yaml",
        "input:",
        "inputs:",
        2,
        "evals/first.yaml:3: case 'a': unknown key 'inputs' (did you mean 'input'?)",
    ),
    Slip(
        "evals/first.yaml",
        "input:",
        "query:",
        2,
        "evals/first.yaml:3: case 'a': unknown key 'query' (did you mean 'input'?)",
    ),
    Slip("evals/first.yaml", "input:", "prompt:", 2, "unknown key 'prompt' (did you mean 'input'?)"),
    Slip(
        "evals/first.yaml", "response:", "expected:", 2, "evals/first.yaml:5: … 'expected' (did you mean 'response'?)"
    ),
    Slip("evals/first.yaml", "tools:", "tool:", 2, "unknown key 'tool' (did you mean 'tools'?)"),
    Slip("evals/first.yaml", "tools:", "toolCalls:", 2, "unknown key 'toolCalls' (did you mean 'tools'?)"),
    Slip(
        "evals/first.yaml", "id: a", "name: a", 2, "evals/first.yaml:2: case 1: unknown key 'name' (did you mean 'id'?)"
    ),
    Slip("evals/first.yaml", "id: a\n    ", "", 2, "evals/first.yaml:2: case 1: missing key 'id'"),
    Slip(
        "evals/first.yaml",
        "    input: Hi\n",
        "",
        2,
        "evals/first.yaml:2: case 'a': a case has either an input or turns",
    ),
    Slip("evals/first.yaml", "cases:", "case:", 2, "(did you mean 'cases'? `gate help cases` shows the file)"),
    Slip(
        "evals/first.yaml",
        "    input",
        "  input",
        2,
        "evals/first.yaml:3: not YAML: … (indent it like the lines above)",
    ),
    Slip("evals/first.yaml", "Hi", "[Hi]", 2, "evals/first.yaml:3: case 'a': input: expected text, found a list"),
    Slip("evals/first.yaml", "[]", "look_up", 2, "evals/first.yaml:4: case 'a': tools: expected a list, found text"),
    Slip("evals/first.yaml", "[]", "[{nam: look_up}]", 2, "case 'a': unknown key 'nam' (did you mean 'name'?)"),
    Slip("evals/first.yaml", "[]", "[{name: f, arguments: {}}]", 2, "unknown key 'arguments' (did you mean 'args'?)"),
    Slip("evals/first.yaml", "input: Hi", "turns: Hi", 2, "case 'a': turns: expected a list, found text"),
    Slip("evals/first.yaml", CASES, "", 2, "evals/first.yaml: is empty (write at least one case: `gate help cases`)"),
    Slip("evals/first.yaml", CASES, "cases: []", 3, "evals: no cases (name at least one under `cases`"),
    Slip("evals/first.yaml", CASES, CASES + CASES[7:], 2, "evals/first.yaml:6: duplicate case id 'a', first at"),
)
AGENT = (
    Slip("bot.py", BOT, "import nowhere_x\n" + BOT, 3, "ModuleNotFoundError: No module named 'nowhere_x' (bot.py:1)"),
    Slip("bot.py", "(message):", "(message)", 3, "SyntaxError: expected ':' (bot.py, line 1)"),
    Slip("bot.py", "{'output'", "{'reply'", 3, "return 'reply' as output, or set http.response.output: reply"),
    Slip("bot.py", "return", "said =", 3, "must be text or an object, but this is nothing"),
    Slip("bot.py", "return", "raise KeyError('SOME_API_KEY'); return", 3, "(set SOME_API_KEY, and write"),
    Slip("bot.py", ", 'tool_calls': []", "", 3, "the answers report no tool calls: return `tool_calls` ([] for none)"),
    Slip("gate.yaml", CONFIG, HTTP.format("http://127.0.0.1:9/chat"), 3, "Connection refused; is the server started"),
    Slip("gate.yaml", CONFIG, HTTP.format("127.0.0.1:9/chat"), 2, "agent.http.url: not an address … (http://host:port"),
    Slip("gate.yaml", "python: bot:answer", "command: ./no.sh", 2, "agent.command: cannot run './no.sh'"),
)  # fmt: skip
COMMANDS = (
    Slip("gate.yml", "", CONFIG, 2, "no such configuration file (name it gate.yaml, or: gate run -c gate.yml)"),
    Slip("", "", "", 2, "no such command 'rnu': did you mean 'run'? (gate --help)", "rnu"),
    Slip("", "", "", 2, "No such command 'sav'. Did you mean 'save'?", "baseline sav"),
    Slip("", "", "", 2, "no such option '--quite': did you mean '--quiet'?", "run --quite"),
    Slip("", "", "", 2, "--trials: 'five' is neither 'auto' nor a whole number from 1", "run -q --trials five"),
    Slip("", "", "", 2, "--tag: no case has the tag 'x'", "run -q --tag x"),
    Slip("", "", "", 2, "no topic 'case': did you mean 'cases'?", "help case"),
    Slip("", "", "", 3, "gate: .gate/records: no finished record (`gate run` writes one", "explain"),
    Slip("", "", "", 3, "gate: nope.jsonl: no such record", "explain nope.jsonl"),
    Slip("", "", "", 2, "--against: no commit 'mian' here (fetch it first)", "run -q --against mian"),
    Slip("", "", "", 2, "commit 'mian' not found", "run -q --rules-from mian"),
    Slip("", "", "", 4, "No such remote 'origin' (`git remote add origin URL`", "run -q --store git"),
    Slip(".git/config", "", OFFLINE, 4, "cannot be read: Failed to connect … (check", "run -q --store git"),
    Slip("", "", "", 4, "(`gate baseline` measures and stores one)", "baseline accept --why x"),
    Slip("", "", "", 2, "Missing option '--why'", "baseline accept"),
    Slip("new.txt", "", "x", 6, "not committed: new.txt (commit or ignore them, then run again)", "baseline"),
)  # fmt: skip


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A committed project without a slip."""
    made = Project(tmp_path_factory.mktemp("ready"))
    for name, text in {
        "gate.yaml": CONFIG,
        "evals/first.yaml": CASES,
        "bot.py": BOT,
        ".gitignore": "__pycache__/\n",
    }.items():
        made.write(name, text)
    made.commit()
    return made


@pytest.mark.parametrize(
    "slip", [*CONFIGURATION, *SUITE, *AGENT, *COMMANDS], ids=lambda slip: f"{slip.command}: {slip.wrong[:30]!r}"
)
def test_a_slip_is_one_line_that_says_what_to_write(
    ready: Project, project: Project, slip: Slip, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ready.copied(project)
    if slip.file:
        path = project.root / slip.file
        before = path.read_text() if path.exists() else ""
        assert slip.right in before
        path.write_text(before.replace(slip.right, slip.wrong, 1) if before else slip.wrong)
    if slip.file == "gate.yml":
        (project.root / "gate.yaml").unlink()
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("CI", "false")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(sys, "argv", ["gate", *slip.command.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capfd.readouterr()
    errors = [line for line in shown.err.splitlines() if line.startswith("gate: ")]
    verdict = shown.out.partition("\n")[0].removeprefix("evals: error: ").removeprefix("could not measure: ")
    line = errors[-1] if errors else verdict.removesuffix("; no baseline yet")
    assert ended.value.code == slip.code, line
    place = -1
    for part in slip.said.split("…"):
        place = line.find(part.strip(), place + 1)
        assert place >= 0, line
    assert len(errors) <= 1
    assert len(line) <= MOST, line
    assert str(project.root) not in line
    assert "Traceback" not in shown.err
