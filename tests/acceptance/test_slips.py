"""Slips of the first hour: each is answered by one short line that says what, where and what to write."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from gate.commands.main import main
from gate.config.load import load_config
from gate.errors import ConfigError
from tests.acceptance.conftest import Project
from tests.acceptance.test_stored_epochs import serving

CONFIG = "suite: evals/\nagent:\n  python: bot:answer\ncriteria:\n  tool_trajectory_avg_score: 0.8\n"
CASES = "cases:\n  - id: a\n    input: Hi\n    tools: []\n    response: Hello\n"
BOT = "def answer(message):\n    return {'output': 'Hello', 'tool_calls': []}\n"
HTTP = "suite: evals/\nagent: {{http: '{}', retries: 0}}\ncriteria: {{response_match_score: 0.5}}\n"
OPENAI = (
    "The api_key client option must be set either by passing api_key to the client or by setting the "
    "OPENAI_API_KEY environment variable"
)
"""Errors that libraries of models raise without a key."""
GENAI = (
    "Missing key inputs argument! To use the Google AI API, provide (`api_key`) arguments. "
    "To use the Google Cloud API, provide (`vertexai`, `project` & `location`) arguments."
)
PRINTS = """command: [printf, 'loading\\n{"output": "Hi", "tool_calls": []}']"""
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


def above(line: str, said: str) -> Slip:
    """Return the slip of a wrong line above the criteria."""
    return Slip("gate.yaml", "criteria:", f"{line}\ncriteria:", 2, said)


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
    Slip("gate.yaml", "0.8", "high", 2, "gate.yaml:5: … expected a number, found 'high' (write a number, as 0.6"),
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
    above("trials: 0", "gate.yaml:4: trials: a number of trials is between 1 and"),
    above("budget: 5", "gate.yaml:4: budget: … found a number (known keys: usd"),
    above("baseline: {store: gti}", "gate.yaml:4: unknown store 'gti' (did you mean 'git'?)"),
    above("criteria: {}", "gate.yaml:5: duplicate key 'criteria'"),
    Slip("gate.yaml", "0.8", "80%", 2, "gate.yaml:5: … expected a number, found '80%' (write a number, as 0.6"),
    Slip("gate.yaml", "0.8", "", 2, "gate.yaml:5: … expected a number, found nothing (write a number"),
    Slip("gate.yaml", "evals/", "[]", 2, "gate.yaml:1: suite: name at least one file or folder"),
    Slip("gate.yaml", "evals/", "", 2, "gate.yaml:1: suite: expected a path … found nothing (as in suite: evals/)"),
    Slip("gate.yaml", "evals/", "{path: evals/}", 2, "gate.yaml:1: suite: … found a mapping (as in suite: evals/)"),
    Slip("gate.yaml", "\n  python: bot:answer", " {http: {}}", 2, "gate.yaml:2: agent.http: missing key 'url'"),
    Slip(
        "gate.yaml",
        "tool_trajectory_avg_score: 0.8",
        "rubric: 0.8",
        2,
        "gate.yaml:5: rubric: missing option 'dimensions' (as in {dimensions: {accuracy: {weight: 0.6}, …}})",
    ),
    above("timeout: 30", "gate.yaml:4: unknown key … (write it under agent or judge)"),
    above("env: {A: b}", "gate.yaml:4: unknown key … (write it under agent)"),
    above("alpha: 0.1", "gate.yaml:4: unknown key … (write it under gate)"),
    above("zzz: 1", "gate.yaml:4: unknown key 'zzz' (known: agent, baseline, … more)"),
    Slip(
        "gate.yaml",
        "agent:\n  python:",
        "python:",
        2,
        "gate.yaml:1: missing key 'agent' (as in agent: {python: agent:answer})",
    ),
    Slip(
        "gate.yaml",
        "\n  tool_trajectory_avg_score: 0.8",
        " latency",
        2,
        "gate.yaml:4: … (for a metric, write {latency: 0.6})",
    ),
    Slip(
        "gate.yaml",
        "tool_trajectory_avg_score: 0.8",
        "latency: {max: fast}",
        2,
        "gate.yaml:5: … (write a number without",
    ),
    Slip(
        "gate.yaml",
        "tool_trajectory_avg_score: 0.8",
        "cost: {max: $1}",
        2,
        "gate.yaml:5: … (write a number without a unit)",
    ),
    Slip("gate.yaml", "bot:answer", "answer", 2, "gate.yaml:3: agent.python: … module:function, as in agent:answer"),
    Slip("gate.yaml", "suite:", "<<<<<<< HEAD\nsuite:", 2, "gate.yaml:1: an unresolved merge conflict (keep one side"),
    Slip("gate.yaml", "answer", "answer\n  http: http://x", 2, "gate.yaml:2: agent: more than one agent kind (name"),
    Slip("gate.yaml", "answer", "answer\n  executable: python9", 2, "agent.executable: no interpreter at python9"),
    Slip("gate.yaml", "answer", "answer\n  env: A_KEY=abc", 2, "agent.env: A_KEY=… is no name: write {A_KEY: …"),
    Slip(
        "gate.yaml", "answer", "answer\n  env:\n  - A: 1", 2, "agent.env: expected names, found a mapping: write {NAME"
    ),
    Slip("gate.yaml", "answer", "answer\n  env: {A: '${NOPE_KEY}'}", 2, "agent.env.A: … (export NOPE_KEY)"),
    above("judge: gpt-5", "judge: … found text (known keys: model, base_url"),
    above(
        "gate: {on_inconclusive: fail}", "gate.yaml:4: gate.on_inconclusive: expected 'warn' or 'block', found 'fail'"
    ),
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
    Slip("evals/first.yaml", "[]", "[look_up(id=1)]", 2, "evals/first.yaml:4: … write {name: look_up, args: {…}}"),
    Slip("evals/first.yaml", "Hi", "*hi", 2, "evals/first.yaml:3: unknown alias *hi (put the text in quotes)"),
    Slip("evals/first.yaml", "Hi", "@hi", 2, "evals/first.yaml:3: not YAML: … (put the text in quotes)"),
    Slip("evals/first.yaml", "Hi", '"Hi', 2, "not YAML: found unexpected end of stream (close the quotes)"),
    Slip("evals/first.yaml", "[]", "[{nam: look_up}]", 2, "case 'a': unknown key 'nam' (did you mean 'name'?)"),
    Slip("evals/first.yaml", "[]", "[{name: f, arguments: {}}]", 2, "unknown key 'arguments' (did you mean 'args'?)"),
    Slip("evals/first.yaml", "input: Hi", "turns: Hi", 2, "case 'a': turns: expected a list, found text"),
    Slip("evals/first.yaml", CASES, "", 2, "evals/first.yaml: is empty (write at least one case: `gate help cases`)"),
    Slip("evals/first.yaml", CASES, "cases: []", 3, "evals: no cases (name at least one under `cases`"),
    Slip("evals/first.yaml", CASES[7:], "  - Hi\n", 2, "evals/first.yaml:2: case 1: expected a mapping, found text"),
    Slip("evals/first.yaml", CASES[6:], " {a: {input: Hi}}\n", 2, "evals/first.yaml:1: cases: expected a list, found"),
    Slip("evals/first.yaml", "input: Hi", "turns: []", 2, "case 'a': turns: is empty (write at least one)"),
    Slip("evals/first.yaml", "input: Hi", "turns: [{response: Hi}]", 2, "case 'a': missing key 'turns.input'"),
    Slip("evals/first.yaml", "    input", "\tinput", 2, "evals/first.yaml:3: … (indent with spaces, not with tabs)"),
    Slip("evals/first.yaml", "    tools: []\n", "", 2, "would check nothing: neither it nor any case gives tools"),
    Slip("evals/first.yaml", "  - id", "<<<<<<< HEAD\n  - id", 2, "evals/first.yaml:2: an unresolved merge conflict"),
    Slip("evals/first.json", "", '{"cases": [', 2, "evals/first.json:1: not JSON: Expecting value"),
    Slip("evals/second.jsonl", "", '{"id": "b", "inp', 2, "evals/second.jsonl:1: … (if the file is cut off, write it"),
    Slip("evals/second.yaml", "", CASES, 2, "evals/second.yaml:2: duplicate case id 'a', first at evals/first.yaml:2"),
    Slip("evals/first.yaml", CASES, CASES + CASES[7:], 2, "evals/first.yaml:6: duplicate case id 'a', first at"),
)
AGENT = (
    Slip("bot.py", BOT, "import nowhere_x\n" + BOT, 3, "ModuleNotFoundError: No module named 'nowhere_x' (bot.py:1)"),
    Slip("bot.py", BOT, "import lost.tools\n" + BOT, 3, "No module named 'lost' … (install it, or set"),
    Slip("bot.py", BOT, "import os\nos.environ['A_KEY']\n" + BOT, 3, "(set A_KEY, and write agent.env: [A_KEY])"),
    Slip("bot.py", "(message):", "(message)", 3, "SyntaxError: expected ':' (bot.py:1)"),
    Slip("bot.py", "(message)", "(question, model)", 3, "nothing fills 'model': give it a default (filled are message"),
    Slip("bot.py", "    return", "    yield", 3, "return the answer as a whole, no generator"),
    Slip("bot.py", "{'output': 'Hello', 'tool_calls': []}", "5", 3, "must be text or an object, but this is a number"),
    Slip("bot.py", "{'output'", "{'reply'", 3, "no output … return 'reply' as output"),
    Slip("bot.py", "return", "said =", 3, "must be text or an object, but this is nothing"),
    Slip("bot.py", "return", "raise KeyError('SOME_API_KEY'); return", 3, "(set SOME_API_KEY, and write"),
    Slip("bot.py", BOT, f"raise ValueError({OPENAI!r})\n" + BOT, 3, "ValueError: The api_key … (set OPENAI_API_KEY"),
    Slip("bot.py", "return", f"raise ValueError({OPENAI!r}); return", 3, "ValueError: The … (set OPENAI_API_KEY"),
    Slip("bot.py", "return", f"raise ValueError({GENAI!r}); return", 3, "ValueError: Missing key inputs … (bot.py:2)"),
    Slip("bot.py", BOT, f"raise ValueError({GENAI!r})\n" + BOT, 3, "ValueError: Missing key inputs … (bot.py:1)"),
    Slip("bot.py", ", 'tool_calls': []", "", 3, "the answers report no tool calls: return `tool_calls` ([] for none)"),
    Slip("gate.yaml", CONFIG, HTTP.format("http://127.0.0.1:9/chat"), 3, "Connection refused; is the server started"),
    Slip("gate.yaml", CONFIG, HTTP.format("127.0.0.1:9/chat"), 2, "agent.http.url: not an address … (http://host:port"),
    Slip("gate.yaml", "python: bot:answer", "command: ./no.sh", 2, "agent.command: cannot run './no.sh'"),
    Slip("gate.yaml", "python: bot:answer", 'command: [echo, "{"]', 3, "the answer is not JSON: Expecting"),
    Slip("gate.yaml", "python: bot:answer", "command: [printf, '']", 3, "exited with status 0 without an answer"),
    Slip("gate.yaml", "python: bot:answer", PRINTS, 3, "print the JSON alone, and the rest on standard error"),
)  # fmt: skip
COMMANDS = (
    Slip("gate.yml", "", CONFIG, 2, "no such configuration file (name it gate.yaml, or: gate run -c gate.yml)"),
    Slip("", "", "", 2, "no such command 'rnu': did you mean 'run'? (gate --help)", "rnu"),
    Slip("", "", "", 2, "No such command 'sav'. Did you mean 'save'?", "baseline sav"),
    Slip("", "", "", 2, "diff was removed: write `gate compare NEW OLD`", "baseline diff new.jsonl"),
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
    Slip("", "", "", 4, "is stored or here (`gate run`, then accept it)", "baseline accept --why x"),
    Slip("", "", "", 2, "Missing option '--why'", "baseline accept"),
    Slip("", "", "", 2, "the html report: evals is a folder (name a file in it)", "run -q --html evals"),
    Slip("", "", "", 2, "bot.py/r.html: the html report cannot be written", "run -q --html bot.py/r.html"),
    Slip("", "", "", 2, "gate: evals: a folder, and no configuration file (name a file in it)", "run -q -c evals"),
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
    verdict = shown.out.partition("\n")[0].removeprefix("evals: error: ").removeprefix("could not decide: ")
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


@pytest.mark.parametrize(
    ("moved", "folder", "said"),
    [
        ("app/gate.yaml", ".", "gate.yaml: no such configuration file (did you mean: -c app/gate.yaml)"),
        ("gate.yaml", "evals", "gate.yaml: no such configuration file (did you mean: -c ../gate.yaml)"),
    ],
)
def test_a_configuration_elsewhere_is_named(
    ready: Project, project: Project, moved: str, folder: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.copied(project)
    (project.root / "app").mkdir()
    (project.root / "gate.yaml").rename(project.root / moved)
    monkeypatch.chdir(project.root / folder)
    with pytest.raises(ConfigError) as refused:
        load_config(Path("gate.yaml"))
    assert str(refused.value) == said


def test_files_of_other_editors_are_read_or_refused_with_the_line(ready: Project, project: Project) -> None:
    """A byte-order mark and CRLF change nothing; another encoding is named."""
    ready.copied(project)
    for name, text in (("gate.yaml", CONFIG), ("evals/first.yaml", CASES)):
        (project.root / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert project.gate("run", "-q").code == 0
    (project.root / "evals" / "first.yaml").write_bytes(CASES.replace("Hi", "Grüße").encode("latin-1"))
    ran = project.gate("run", "-q")
    assert (ran.code, "evals/first.yaml:3: not UTF-8 (save the file as UTF-8)" in ran.err) == (2, True)


def test_an_agent_that_cannot_be_started_is_not_said_to_be_asked(ready: Project, project: Project) -> None:
    ready.copied(project)
    project.write("bot.py", "import nothing_of_this_name\n")
    ran = project.gate("run")
    assert (ran.code, ran.err.startswith("gate: agent.python: cannot import the agent: ")) == (3, True), ran.err
    project.write("gate.yaml", CONFIG.replace("python: bot:answer", "command: ./bot.py"))
    ran = project.gate("run")
    assert (ran.code, ran.err.startswith("gate: agent.command: cannot run './bot.py': no such executable")) == (2, True)


def test_a_server_that_speaks_no_tls_is_said_so(ready: Project, project: Project) -> None:
    ready.copied(project)
    with serving() as served:
        project.write("gate.yaml", HTTP.format(served.url.replace("http:", "https:")))
        ran = project.gate("run", "-q")
    assert (ran.code, "no TLS connection" in ran.out, "begin with http://?" in ran.out) == (3, True, True), ran.out


def test_a_response_that_no_criterion_reads_is_said_with_the_key_to_add(ready: Project, project: Project) -> None:
    ready.copied(project)
    ran = project.gate("run")
    told = " ".join(ran.out.split())
    assert ran.code == 0
    assert "1 case states a response that no criterion reads: add `response_match_score: 0.5` to the criteria" in told
    project.write("gate.yaml", CONFIG.replace("tool_trajectory_avg_score: 0.8", "response_match_score: 0.5"))
    told = " ".join(project.gate("run").out.split())
    assert "1 case expects no call in a turn, which no criterion checks: add `tool_selection_accuracy: 0.9`" in told
    project.write("evals/first.yaml", CASES.replace("tools: []", "tools: [look_up]"))
    told = " ".join(project.gate("run").out.split())
    assert "1 case states tools that no criterion reads: add `tool_trajectory_avg_score: 0.6`" in told
    project.write("gate.yaml", CONFIG + "  response_match_score: 0.5\n")
    said = project.gate("run").out
    assert "no criterion reads" not in said and "no criterion checks" not in said


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("init", "fatal: cannot create the folder /tmp/gate-baselines-x/refs/heads: No space left on device"),
        ("fetch", "error: cannot update ref 'refs/heads/b': couldn't write '$PWD/refs/heads/b.lock'"),
    ],
)
def test_a_full_folder_of_temporary_files_is_no_matter_of_the_remote(project: Project, command: str, said: str) -> None:
    project.write("suite.yaml", {"cases": [{"id": "c", "input": "?"}]})
    project.write("gate.yaml", "suite: suite.yaml\nagent: {python: 'agent:answer'}\nbaseline: {store: git}\n")
    project.write("agent.py", "def answer(message):\n    return message\n")
    project.commit()
    project.git("remote", "add", "origin", str(project.root))
    git = project.write(
        "bin/git",
        f"""#!/bin/sh
case " $* " in *" {command} "*)
    echo "{said}" >&2; exit 128
esac
exec {shutil.which("git")} "$@"
""",
    )
    git.chmod(0o755)
    ran = project.gate("baseline", "list", PATH=f"{git.parent}{os.pathsep}{os.environ['PATH']}")
    assert ran.code == 4
    assert ran.err.strip().endswith("(is there room for temporary files? TMPDIR names another folder)")
