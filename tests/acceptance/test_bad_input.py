"""What goes wrong on the user's side: one line with what, where and what to try, and the documented exit code."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from gate.reports import REPORTS
from gate.reports.json import schema
from tests.acceptance.conftest import Outcome, Project, first_of

SUITE = "cases:\n  - {id: hello, input: Hello, response: Hi there}\n  - {id: bye, input: Bye, response: Goodbye}\n"
AGENT = "def answer(message):\n    return {'Hello': 'Hi there', 'Bye': 'Goodbye'}[message]\n"
CONFIG = "suite: suite.yaml\nagent: {python: agent:answer}\ncriteria:\n  response_match_score: 0.5\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("suite.yaml", SUITE)
    made.write("agent.py", AGENT)
    made.write("gate.yaml", CONFIG)
    return made


def one_line(ran: Outcome) -> str:
    """The error as the user sees it: the last line, and the only one from the gate itself."""
    lines = [line for line in ran.err.splitlines() if line.startswith("gate: ")]
    assert len(lines) == 1, ran.err
    return lines[0]


def test_the_good_project_passes(project: Project) -> None:
    ran = project.gate("run")
    assert ran.code == 0, ran.out + ran.err


CONFIGURATIONS = {
    "unknown key": (CONFIG + "critera: {}\n", "gate.yaml:5: unknown key 'critera' (did you mean 'criteria'?)"),
    "unknown nested key": (CONFIG + "gate: {alfa: 0.1}\n", "gate.yaml:5: unknown key 'alfa' (did you mean 'alpha'?)"),
    "unknown agent option": (
        CONFIG.replace("agent:answer}", "agent:answer, timout: 3}"),
        "gate.yaml:2: agent.timout: unknown key 'timout' (did you mean 'timeout'?)",
    ),
    "empty": ("", "gate.yaml: is empty (it needs at least `suite` and `agent`; `gate init` in an empty folder writes"),
    "a list": ("[]", "gate.yaml: expected a mapping of keys, found a list (it needs at least `suite` and `agent`"),
    "no agent kind": (CONFIG.replace("python:", "pyton:"), "did you mean 'python'?"),
    "unknown metric": (
        CONFIG.replace("response_match_score", "response_mach_score"),
        "gate.yaml:4: unknown metric 'response_mach_score' (did you mean 'response_match_score'?)",
    ),
    "unknown metric option": (
        CONFIG.replace("0.5", "{threshold: 0.5, flavour: adk-ts}"),
        "gate.yaml:4: response_match_score: unknown option 'flavour' (did you mean 'flavor'?)",
    ),
    "an option of all criteria, misspelt": (
        CONFIG.replace("0.5", "{treshold: 0.5}"),
        "gate.yaml:4: response_match_score: unknown option 'treshold' (did you mean 'threshold'?)",
    ),
    "an option's older name": (
        CONFIG.replace("0.5", "{threshold: 0.5, gate_regression: false}"),
        "gate.yaml:4: response_match_score: unknown option 'gate_regression' (did you mean 'regression'?)",
    ),
    "text where a mapping is wanted": (
        CONFIG.replace("python: agent:answer", "openai: gpt-x"),
        "agent.openai: expected a mapping, found text (known keys: url",
    ),
    "threshold out of range": (
        CONFIG.replace("0.5", "80"),
        "gate.yaml:4: response_match_score: threshold 80 is out of range (did you mean 0.8?)",
    ),
    "threshold that is no number": (CONFIG.replace("0.5", "high"), "threshold: expected a number, found 'high'"),
    "weight on no criterion": (
        CONFIG + "  weighted_score: {threshold: 0.5, weights: {respons_match_score: 1.0}}\n",
        "gate.yaml:3: weighted_score weighs 'respons_match_score', which is not a criterion of this run "
        "(did you mean 'response_match_score'?)",
    ),
    "weight on what is scored later": (
        CONFIG
        + "  weighted_score: {threshold: 0.5, weights: {overall_score: 1.0}, ranges: {overall_score: [0, 100]}}\n"
        + "  overall_score: {threshold: 50, weights: {response_match_score: 1.0}}\n",
        "weighted_score weighs overall_score, which is scored after it (name overall_score before weighted_score)",
    ),
    "minimum for no criterion": (
        CONFIG
        + "  weighted_score: {threshold: 0.5, weights: {response_match_score: 1.0}, minimums: {contains: 1.0}}\n",
        "weighted_score weighs 'contains', which is not a criterion of this run",
    ),
    "zero criteria": (CONFIG.replace("\n  response_match_score: 0.5", " {}"), "no criteria: nothing would be checked"),
    "only judges that may not block yet": (
        CONFIG.replace("response_match_score: 0.5", "clarity: {threshold: 0.7, min_kappa: 0.6}")
        + 'judge: {model: m, base_url: "http://localhost:9/v1"}\n',
        "gate.yaml:3: no criterion blocks: the gate could never fail (clarity reports only: this judge was never "
        "calibrated; run `gate calibrate`; see",
    ),
    "tools that no answer tells of": (
        CONFIG.replace("python: agent:answer", 'http: {url: "http://localhost:9", response: {output: text}}').replace(
            "response_match_score: 0.5", "forbidden_tools: {tools: [rm]}"
        ),
        "gate.yaml: forbidden_tools looks at tool calls, and agent.http.response does not say where to find them",
    ),
    "an option that looks at tools that no answer tells of": (
        CONFIG.replace("python: agent:answer", 'http: {url: "http://localhost:9", response: {output: text}}').replace(
            "response_match_score: 0.5", "containment_rate: {threshold: 0.5, escalation_tools: [handover]}"
        )
        + 'judge: {model: m, base_url: "http://localhost:9/v1"}\n',
        "gate.yaml: containment_rate looks at tool calls, and agent.http.response does not say where to find them",
    ),
    "a pattern that always matches": (
        CONFIG.replace("response_match_score: 0.5", 'regex: {patterns: [""]}'),
        "gate.yaml:4: regex: patterns: '' matches the empty string",
    ),
    "nothing that blocks": (
        CONFIG.replace("0.5", "{threshold: 0.5, blocking: false}"),
        "no criterion blocks: the gate could never fail",
    ),
    "missing suite": (CONFIG.replace("suite.yaml", "siute.yaml"), "suite 'siute.yaml' does not exist"),
    "missing key": (CONFIG.replace("suite: suite.yaml\n", ""), "missing key 'suite'"),
    "not a mapping": ("- suite: x\n", "gate.yaml: expected a mapping of keys, found a list"),
    "duplicate key": (CONFIG + "suite: other\n", "gate.yaml:5: "),
    "broken YAML": (CONFIG + "gate: {alpha: [\n", "gate.yaml:"),
    "alias bomb": (
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        "gate.yaml:",
    ),
    "several kinds of agent": (
        CONFIG.replace("agent:answer}", "agent:answer, command: ls}"),
        "more than one agent kind",
    ),
    "judge without a key": (CONFIG.replace("response_match_score", "final_response_match_v2"), "key is not set"),
    "safety without a backend": (CONFIG.replace("response_match_score: 0.5", "safety_v1: 1.0"), "key"),
    "trials of nothing": (CONFIG + "trials: 0\n", "trials: a number of trials is between 1 and 1000"),
    "quarantine of an unknown case": (
        CONFIG + "quarantine: [{case: helo, owner: me, reason: flaky, expires: 2999-01-01}]\n",
        "quarantine: no case 'helo' (did you mean 'hello'?)",
    ),
    "quarantine of an unknown case under a selection": (
        CONFIG + "select: {ids: [bye]}\nquarantine: [{case: helo, owner: me, reason: flaky, expires: 2999-01-01}]\n",
        "quarantine: no case 'helo' (did you mean 'hello'?)",
    ),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_bad_configuration_is_one_line_and_exit_2(project: Project, name: str) -> None:
    text, expected = CONFIGURATIONS[name]
    project.write("gate.yaml", text)
    ran = project.gate("run")
    assert ran.code == 2, ran.out + ran.err
    assert expected in one_line(ran)
    assert not (project.root / ".gate").exists()


@pytest.mark.parametrize("arguments", first_of([[], ["--case", "bye"], ["--shard", "1/2"]], 2))
def test_with_every_selected_case_in_quarantine_nothing_is_run(project: Project, arguments: list[str]) -> None:
    project.write("agent.py", "open('ran', 'w')\n" + AGENT)
    known = "owner: me, reason: known, expires: 2999-01-01"
    names = ["bye"] if "--case" in arguments else ["hello", "bye"]
    listed = ", ".join(f"{{case: {name}, {known}}}" for name in names)
    project.write("gate.yaml", CONFIG + f"quarantine: [{listed}]\n")
    ran = project.gate("run", *arguments, timeout=120)
    assert ran.code == 3
    assert "in quarantine (nothing was run" in one_line(ran)
    assert not (project.root / "ran").exists()


def test_quarantine_of_a_case_that_is_not_selected_is_no_error(project: Project) -> None:
    entry = "quarantine: [{case: hello, owner: me, reason: flaky, expires: 2999-01-01}]\n"
    project.write("gate.yaml", CONFIG + "select: {ids: [bye]}\n" + entry)
    assert project.gate("suite").code == 0


def test_a_judge_that_may_not_block_yet_can_still_be_calibrated(project: Project) -> None:
    criteria = "response_match_score: 0.5", "clarity: {threshold: 0.7, min_kappa: 0.6}"
    project.write("gate.yaml", CONFIG.replace(*criteria) + 'judge: {model: m, base_url: "http://127.0.0.1:9/v1"}\n')
    ran = project.gate("calibrate", "no-labels.jsonl", "--metric", "clarity")
    assert "no-labels.jsonl" in one_line(ran)


@pytest.mark.parametrize("other", first_of(["report", "./report", "link"]))
def test_two_reports_in_one_file_are_refused_before_anything_runs(project: Project, other: str) -> None:
    (project.root / "link").symlink_to("report")
    ran = project.gate("run", "--json", "report", "--junit", other)
    assert ran.code == 2
    assert "report are to be written to the same file (give each its own path)" in one_line(ran)
    assert not (project.root / ".gate").exists()
    assert project.gate("run", "--json", "/dev/null", "--junit", "/dev/null").code == 0


def test_a_wrong_option_is_told_of_the_option_not_of_the_file(project: Project) -> None:
    ran = project.gate("run", "--trials", "five")
    assert (ran.code, one_line(ran)) == (2, "gate: --trials: 'five' is neither 'auto' nor a whole number from 1")


SUITES = {
    "zero cases": ("cases: []\n", 3, "no cases"),
    "duplicate id": (SUITE + "  - {id: bye, input: Bye again}\n", 2, "suite.yaml:4"),
    "unknown key": (SUITE.replace("response: Hi there", "respons: Hi there"), 2, "did you mean 'response'?"),
    "threshold of no criterion": (
        SUITE.replace("response: Hi there", "thresholds: {tool_accuracy: 0.5}"),
        2,
        "add `tool_accuracy: {}` to the criteria",
    ),
    "half a file": (SUITE[:40], 2, "suite.yaml:"),
    "nothing like a suite": ("x: 1\n", 2, "suite.yaml"),
}


@pytest.mark.parametrize("name", SUITES)
def test_a_bad_suite_is_one_line(project: Project, name: str) -> None:
    text, code, expected = SUITES[name]
    project.write("suite.yaml", text)
    ran = project.gate("run")
    assert ran.code == code, ran.out + ran.err
    assert expected in one_line(ran)


def test_a_selection_of_nothing_is_exit_3_and_an_unknown_tag_names_the_nearest(project: Project) -> None:
    project.write("suite.yaml", SUITE.replace("id: hello", "id: hello, tags: [smoke]"))
    assert project.gate("run", "--tag", "smoke").code == 0
    unknown = project.gate("run", "--tag", "smok")
    assert unknown.code == 2
    assert "'smoke'" in one_line(unknown)
    nothing = project.gate("run", "--tag", "smoke", "--where", "complexity=complex")
    assert nothing.code == 3
    assert "no case is selected" in one_line(nothing)


AGENTS = {
    "does not import": ("import nothing_of_this_name\n", "nothing_of_this_name"),
    "has no such function": ("def reply(message): ...\n", "answer"),
    "raises": ("def answer(message):\n    raise KeyError('weather')\n", "KeyError"),
    "crashes": ("import os\ndef answer(message):\n    os._exit(3)\n", "exit"),
    "hangs": ("import time\ndef answer(message):\n    time.sleep(3600)\n", "no answer within 0.5 s"),
    "answers garbage": ("def answer(message):\n    return 17\n", "cannot be read"),
    "answers 50 MB": ("def answer(message):\n    return 'x' * 50_000_000\n", "10,000,000"),
}


@pytest.mark.parametrize("name", first_of(AGENTS, 3))
def test_an_agent_that_cannot_be_measured_is_exit_3_never_a_verdict(project: Project, name: str) -> None:
    source, expected = AGENTS[name]
    project.write("agent.py", source)
    seconds = 0.5 if name == "hangs" else 60
    project.write("gate.yaml", CONFIG.replace("agent:answer}", f"agent:answer, timeout: {seconds}s, retries: 0}}"))
    ran = project.gate("run")
    assert ran.code == 3, ran.out + ran.err
    assert expected in ran.out + ran.err


@pytest.fixture
def rude_server() -> Iterator[int]:
    """Accepts connections and closes them without a word."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def test_an_agent_that_is_down_or_hangs_up_is_exit_3(project: Project, rude_server: int) -> None:
    with socket.socket() as silent:  # holds its port, and does not listen
        silent.bind(("127.0.0.1", 0))
        for port in (rude_server, silent.getsockname()[1]):
            agent = f"{{http: {{url: 'http://127.0.0.1:{port}/'}}, retries: 0}}"
            project.write("gate.yaml", CONFIG.replace("{python: agent:answer}", agent))
            ran = project.gate("run")
            assert ran.code == 3, ran.out + ran.err


def test_a_torn_edited_or_foreign_baseline_is_exit_4(project: Project) -> None:
    assert project.gate("run", "--record", "record.jsonl", "--trials", "2").code == 0
    assert project.gate("baseline", "save", "record.jsonl").code == 0
    (stored,) = (project.root / ".gate" / "baselines").rglob("*.jsonl")
    whole = stored.read_bytes()
    lines = whole.splitlines(keepends=True)
    edited = whole.replace(b'"value":1.0', b'"value":0.0', 1)
    assert edited != whole
    project.write("gate.yaml", "name: another\n" + CONFIG)
    assert project.gate("run", "--record", "other.jsonl", "--trials", "2").code == 0
    project.write("gate.yaml", CONFIG)
    damaged = {"torn": whole[: len(whole) // 2], "a line short": b"".join(lines[:-2] + lines[-1:]), "text": b"hello\n"}
    damaged |= {"edited": edited, "another suite's": (project.root / "other.jsonl").read_bytes()}
    for name, content in damaged.items():
        stored.write_bytes(content)
        ran = project.gate("run")
        assert ran.code == 4, (name, ran.out, ran.err)
        assert "jsonl" in one_line(ran)
    stored.write_bytes(whole)
    assert project.gate("run").code == 0


def test_a_baseline_that_must_be_there_and_is_not_is_exit_4(project: Project) -> None:
    project.write("gate.yaml", CONFIG + "baseline: {on_missing: fail}\n")
    ran = project.gate("run")
    assert ran.code == 4
    assert "gate baseline save" in one_line(ran)


@pytest.mark.slow
def test_the_first_baseline_of_all_is_made_as_the_reference_says(project: Project) -> None:
    project.write("gate.yaml", CONFIG + "baseline: {on_missing: fail}\n")
    project.write(".gitignore", ".gate\n__pycache__\n")
    project.commit()
    assert project.gate("run").code == 4
    assert project.gate("run", "--store", "none").code == 0
    assert project.gate("baseline", "save").code == 0
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    assert project.gate("run").code == 0


def test_everything_may_be_committed_after_the_first_run(project: Project) -> None:
    project.write(".gitignore", "__pycache__/\n")
    assert project.gate("run").code == 0
    project.commit("change")
    assert project.gate("run").code == 0
    assert project.git("ls-files", ".gate") == ""


def test_an_unfinished_record_cannot_become_a_baseline_exit_6(project: Project) -> None:
    assert project.gate("run", "--record", "record.jsonl").code == 0
    lines = (project.root / "record.jsonl").read_bytes().splitlines(keepends=True)
    (project.root / "record.jsonl").write_bytes(b"".join(lines[:-1]))
    ran = project.gate("baseline", "save", "record.jsonl")
    assert ran.code in (3, 6)
    assert "record.jsonl" in one_line(ran)


def test_an_open_record_that_was_edited_is_not_continued(project: Project) -> None:
    path = project.root / "r.jsonl"
    assert project.gate("run", "--record", "r.jsonl").code == 0
    lines = path.read_bytes().splitlines(keepends=True)
    opened = b"".join(line for line in lines if not line.startswith(b'{"closing"'))
    edited = opened.replace(b'"response":["Goodbye"]', b'"response":["Goodbye!"]', 1)
    assert edited != opened
    path.write_bytes(edited)
    ran = project.gate("run", "--record", "r.jsonl")
    assert ran.code == 3
    assert "the sum does not fit this line or one before it" in one_line(ran)
    assert path.read_bytes() == edited
    path.write_bytes(opened)
    assert project.gate("run", "--record", "r.jsonl").code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_named(project: Project) -> None:
    (project.root / "closed").mkdir(mode=0o500)
    ran = project.gate("run", "--junit", "closed/report.xml")
    assert ran.code == 2
    assert "closed/report.xml" in one_line(ran)


def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(project: Project) -> None:
    project.write("agent.py", "open('ran', 'w')\n" + AGENT)
    ran = project.gate("run", "--json", "/proc/nowhere/report.json")
    assert ran.code == 2
    assert "/proc/nowhere/report.json" in one_line(ran)
    assert not (project.root / "ran").exists()


def test_bad_arguments_are_exit_2(project: Project) -> None:
    for arguments in (["run", "--no-such"], ["rum"], ["run", "--shard", "3/2"], ["score"], ["run", "--trials", "many"]):
        ran = project.gate(*arguments)
        assert ran.code == 2, (arguments, ran.err)


def test_debug_shows_the_traceback_and_nothing_else_does(project: Project) -> None:
    project.write("gate.yaml", "- 1\n")
    import subprocess
    import sys

    command = [sys.executable, "-m", "gate", "run", "--debug"]
    ran = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "Traceback" in ran.stderr


def test_hostile_names_reach_the_terminal_harmless(project: Project) -> None:
    hostile = "\x1b[2J::error::gone [/INST] \u202e"
    cases = [{"id": f"{hostile} {n}", "input": "Hello", "response": "Hi there"} for n in range(12)]
    project.write("suite.yaml", json.dumps({"cases": cases}))
    project.write("agent.py", "def answer(message):\n    return 'no \\x1b[31m ::set-output name=x::y'\n")
    ran = project.gate("run", "--markdown", "report.md", "--junit", "report.xml")
    assert ran.code == 1
    assert not re.search(r"\x1b|^::|\u202e", ran.out + ran.err, re.MULTILINE)


def test_an_address_that_is_none_is_named_with_its_key(project: Project) -> None:
    project.write("gate.yaml", CONFIG.replace("python: agent:answer", "http: nonsense"))
    ran = project.gate("run")
    assert ran.code == 2
    assert one_line(ran).startswith("gate: agent.http.url: not an address: 'nonsense' (http://host:")


def test_the_rules_of_a_commit_need_a_repository(project: Project) -> None:
    ran = project.gate("run", "--rules-from", "main")
    assert ran.code == 2
    assert "the rules of 'main' cannot be read: this is not a git repository (run in a clone" in one_line(ran)


def test_a_misspelt_command_is_answered_with_the_nearest(project: Project) -> None:
    ran = project.gate("rnu")
    assert ran.code == 2
    assert one_line(ran) == "gate: no such command 'rnu': did you mean 'run'? (gate --help)"


def test_a_record_of_another_commit_is_not_continued_and_the_line_says_what_to_do(project: Project) -> None:
    assert project.gate("run", "--record", "kept.jsonl").code == 0
    before = (project.root / "kept.jsonl").read_bytes()
    project.write("agent.py", AGENT + "\n# changed\n")
    ran = project.gate("run", "--trials", "2", "--record", "kept.jsonl")
    assert ran.code == 3
    assert "(name another file, or delete this one: an existing file is continued)" in one_line(ran)
    assert "None" not in one_line(ran)
    assert (project.root / "kept.jsonl").read_bytes() == before


@pytest.mark.slow
def test_a_record_that_is_out_of_reach_without_commits_is_not_called_absent(project: Project) -> None:
    assert project.gate("run", "--record", "kept.jsonl").code == 0
    assert project.gate("baseline", "save", "kept.jsonl").code == 0
    project.write("gate.yaml", CONFIG + "baseline: {on_missing: fail}\n")
    ran = project.gate("run")
    assert ran.code == 4
    assert "a baseline is stored, but `on_missing: fail` needs one of an ancestor" in one_line(ran)
    assert "there is no commit here" in one_line(ran)


ENDINGS: dict[str, tuple[str, str, int]] = {
    "a key that nobody knows": ("gate.yaml", CONFIG + "critera: {}\n", 2),
    "an agent that cannot be imported": ("gate.yaml", CONFIG.replace("agent:answer", "nobody:answer"), 3),
    "no cases": ("suite.yaml", "cases: []\n", 3),
    "a baseline that must be there": ("gate.yaml", CONFIG + "baseline: {on_missing: fail}\n", 4),
}
"""What is written in place of a file of the good project, and the exit code without a verdict that follows."""


@pytest.mark.parametrize("is_configured", first_of([False, True]))
@pytest.mark.parametrize("before", first_of(["a verdict", "nothing"]))
@pytest.mark.parametrize("ending", first_of(ENDINGS, 2))
def test_no_report_of_an_earlier_run_is_left_by_one_without_a_verdict(
    project: Project, ending: str, before: str, is_configured: bool
) -> None:
    """Whatever was there, each report says that there is no verdict, and why."""
    paths = {form: f"out/{form}" for form in REPORTS if form != "console"}
    wanted = [] if is_configured else [f"--report={form}={path}" for form, path in paths.items()]
    configured = f"reports: {json.dumps(paths)}\n" if is_configured else ""
    project.write("gate.yaml", CONFIG + configured)
    if before == "a verdict":
        assert project.gate("run", *wanted).code == 0
        assert 'value="pass"' in (project.root / "out" / "junit").read_text()
    name, text, code = ENDINGS[ending]
    project.write(name, text + (configured if name == "gate.yaml" else ""))
    ran = project.gate("run", *wanted)
    assert ran.code == code, ran.err
    why = one_line(ran).removeprefix("gate: ")
    said = {form: (project.root / path).read_text() for form, path in paths.items()}
    [error] = ElementTree.fromstring(said["junit"]).iter("error")
    assert error.get("message") == why
    [test] = json.loads(said["ctrf"])["results"]["tests"]
    assert (test["status"], test["message"]) == ("failed", why)
    result = json.loads(said["json"])
    assert (result["verdict"], result["exit_code"], result["problems"]) == ("error", code, [why])
    Draft202012Validator(schema()).validate(result)
    assert said["openmetrics"] == "# EOF\n"
    assert said["markdown"].startswith("### 💥 Could not decide")
    assert "<h1>not measured</h1>" in said["html"]


def test_the_reports_of_a_run_that_is_killed_say_that_it_has_not_ended(project: Project) -> None:
    """Nothing can be written then, so it is written before the agent is asked."""
    report = project.write("j.xml", "<testsuites/>")
    look = "Path('seen').write_text(Path('j.xml').read_text())"
    project.write("agent.py", "from pathlib import Path\n" + AGENT.replace("return", f"{look}; return"))
    assert project.gate("run", "--junit", str(report)).code == 0
    assert "has not ended" in (project.root / "seen").read_text()
    assert "has not ended" not in report.read_text()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("report", "gone.jsonl"), marks=pytest.mark.slow),
        pytest.param(("compare", "gone.jsonl", "gone.jsonl"), marks=pytest.mark.slow),
        ("merge", "-c", "gate.yaml", "-o", "o"),
    ],
)
def test_no_report_of_an_earlier_run_is_left_by_another_command_without_a_verdict(
    project: Project, command: tuple[str, ...]
) -> None:
    assert project.gate("run", "--record", "kept.jsonl", "--junit", "j.xml").code == 0
    record = project.root / "kept.jsonl"
    if command[0] == "merge":  # a whole record, of a commit that is not checked out
        project.commit()
        command = (*command, str(record))
    ran = project.gate(*command, "--junit", "j.xml")
    assert ran.code in (2, 3), ran.err
    [error] = ElementTree.parse(project.root / "j.xml").iter("error")
    assert error.get("message") == one_line(ran).removeprefix("gate: ")


@pytest.mark.slow
def test_costs_that_add_up_to_no_number_end_no_run(project: Project) -> None:
    """Each is a number; their sum is not. Whatever reads it says that the cost is not measured."""
    answer = "{'output': {'Hello': 'Hi there', 'Bye': 'Goodbye'}[message], 'cost_usd': 1e308}"
    project.write("agent.py", f"def answer(message):\n    return {answer}\n")
    ran = project.gate("run", *[f"--report={form}=out/{form}" for form in REPORTS])
    assert ran.code == 0, ran.err
    assert all((project.root / "out" / form).stat().st_size for form in REPORTS)
    summary = json.loads((project.root / "out" / "ctrf").read_text())["results"]["summary"]
    assert summary["extra"]["costUsd"] is None
    assert "not measured · 2 runs" in (project.root / "out" / "junit").read_text()
    assert project.gate("history").code == project.gate("site", "site").code == 0


def test_no_secret_that_an_agent_says_reaches_anything_that_is_written(project: Project) -> None:
    """By its shape, by its name, by its value, in an answer, a call of a tool, a log and an error."""
    shape, named, value = "sk-proj-" + "a1B2" * 10, "hunter2-hunter2", "tr0ub4dor and 3"
    said = f"take {shape}, password={named}, or {value}"
    project.write(
        "agent.py",
        f"""import sys
SAID = {said!r}

def answer(message):
    print(SAID, file=sys.stderr)
    if message == "Bye":
        raise ValueError(SAID)
    call = {{"name": "login", "arguments": {{"with": SAID, "password": {named!r}}}, "result": SAID}}
    return {{"output": SAID, "tool_calls": [call]}}
""",
    )
    hello = "{id: hello, input: Hello, response: Hi, tools: [{name: look, args: {}}]}"
    project.write("suite.yaml", f"cases:\n  - {hello}\n  - {{id: bye, input: Bye}}\n")
    project.write("gate.yaml", CONFIG + "  tool_trajectory_avg_score: 1.0\n")
    outputs = [f"--{name}=out/{name}" for name in ("junit", "markdown", "html", "json", "statement")]
    ran = project.gate("run", "--trials", "2", *outputs, MY_SECRET_KEY=value)
    assert ran.code == 1, ran.out + ran.err
    shown = project.gate("explain", "--case", "hello", MY_SECRET_KEY=value)
    written = [path for folder in ("out", ".gate") for path in (project.root / folder).rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"junit", "markdown", "html", "json"}
    assert any(path.suffix == ".jsonl" for path in written)
    texts = {str(path): path.read_text(encoding="utf-8") for path in written}
    texts |= {"out": ran.out, "err": ran.err, "explain": shown.out}
    assert any("[redacted]" in text for text in texts.values())
    for where, text in texts.items():
        for secret in (shape, named, value):
            assert secret not in text, where
