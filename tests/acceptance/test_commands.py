"""Every command beside `gate run`: what it prints for a project with a baseline and a change that broke a case."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from gate.reports.table import columns
from tests.acceptance.conftest import REPOSITORY, Project

CONFIG = """\
suite: suite.yaml
agent: {python: agent:answer}
criteria:
  tool_trajectory_avg_score: 0.5
  latency: {max: 30}
baseline: {path: baselines}
"""
AGENT = """\
BROKEN = "{broken}"


def answer(message):
    name = "other" if message == BROKEN else "look_up"
    return {{"output": "Done.", "tool_calls": [{{"name": name, "arguments": {{"id": message}}}}], "cost_usd": 0.001}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("commands"))
    cases = [{"id": f"case-{n}", "input": f"item {n}", "tools": ["look_up"], "tags": ["all"]} for n in range(15)]
    made.write("suite.yaml", {"cases": cases})
    made.write("gate.yaml", CONFIG)
    made.write("agent.py", AGENT.format(broken=""))
    made.store(record="old.jsonl")
    made.write("agent.py", AGENT.format(broken="item 3"))
    broken = made.gate("run", "-q", "--record", "new.jsonl")
    assert broken.code == 1
    assert "case-3" in broken.out
    return made


def printed(project: Project, *arguments: str, code: int = 0, stdin: str = "") -> str:
    ran = project.gate(*arguments, stdin=stdin)
    assert ran.code == code, ran.out + ran.err
    return ran.out


def test_explain_tells_estimates_tests_and_the_error_budget(project: Project) -> None:
    page = printed(project, "explain", "new.jsonl", "--against", "old.jsonl")
    assert re.search(r"^✗ pass rate +100 % +93.3 % +−[\d.]+ +[\d.]+ points +–$", page, flags=re.MULTILINE)
    assert "e = " not in page and "case-3" in page
    text = printed(project, "explain", "-v", "new.jsonl", "--against", "old.jsonl")
    assert text.startswith(page.partition("\nMore: ")[0])
    for word in ("  before  ", "  now  ", "  change  ", "look after epoch 1: p = ", "broken cases together: e = "):
        assert word in text, word


@pytest.mark.slow
def test_explain_finds_the_baseline_that_the_run_found(project: Project) -> None:
    text = printed(project, "explain", "-v", "new.jsonl")
    assert "broken cases together: e = " in text
    assert printed(project, "explain", "new.jsonl", "--case", "case-3").count("baseline, trial") == 5
    assert "nothing was tested against a baseline" in printed(
        project, "explain", "-v", "new.jsonl", "--against", "none"
    )


def test_explain_names_the_commits_of_a_pooled_baseline(project: Project, tmp_path: Path) -> None:
    pooled = Project(tmp_path)
    for name in ("suite.yaml", "agent.py"):
        pooled.write(name, (project.root / name).read_text())
    pooled.write("agent.py", AGENT.format(broken=""))
    pooled.write("gate.yaml", CONFIG.replace("agent:answer}", "agent:answer, sources: [agent.py]}"))
    pooled.write(".gitignore", ".gate/\nbaselines/\n__pycache__/\n")
    commits = []
    for subject in ("first", "second"):
        pooled.write("notes.txt", subject)
        commits.append(pooled.commit(subject))
        assert pooled.gate("baseline", "-q").code == 0
    pooled.write("agent.py", AGENT.format(broken="item 3"))
    assert pooled.gate("run", "-q").code == 1
    told = printed(pooled, "explain", "--case", "case-3")
    for commit in commits:
        assert f"baseline of {commit[:7]}, trial 1" in told


def test_explain_of_a_case_shows_its_trials_on_both_sides(project: Project) -> None:
    text = printed(project, "explain", "new.jsonl", "--against", "old.jsonl", "--case", "case-3")
    assert "this change, trial 1" in text
    assert text.count("baseline, trial") == 5
    assert "other(" in text
    assert "look_up(" in text
    unknown = project.gate("explain", "new.jsonl", "--case", "case-33")
    assert unknown.code == 2
    assert "did you mean 'case-3'" in unknown.err


@pytest.mark.slow
def test_power_says_what_is_found_to_programs(project: Project) -> None:
    (plain,) = json.loads(printed(project, "power", "old.jsonl", "--simulations", "10", "--json"))
    assert plain["suite"] == "suite.yaml"
    assert plain["power"]["drops"][-1]["found"]["share"] > 0.5


def test_prove_says_what_unchanged_changes_would_have_come_to(project: Project) -> None:
    picture = project.root / "proof.svg"
    (found,) = json.loads(printed(project, "prove", "old.jsonl", "--changes", "20", "--json", "--svg", str(picture)))
    assert found["blocked"]["share"] == found["single"]["share"] == 0
    assert found["cases"] == 15
    assert found["sentence"] in picture.read_text()
    of_store = printed(project, "prove", "--changes", "20")
    assert of_store.startswith("Of 20 unchanged changes your gate would have blocked 0; ")


@pytest.mark.slow
def test_the_guide_shows_what_power_says_of_the_example(project: Project) -> None:
    (record,) = (REPOSITORY / "examples" / "support-agent" / "baselines").rglob("*.jsonl")
    guide = (REPOSITORY / "docs" / "how-to" / "how-many-cases.md").read_text(encoding="utf-8")
    shown = guide.partition("```text\n")[2].partition("```")[0]
    assert shown.strip() == printed(project, "power", str(record)).strip()


@pytest.mark.slow
def test_power_says_how_many_cases_find_a_wanted_drop(project: Project) -> None:
    wanted = printed(project, "power", "old.jsonl", "--simulations", "10", "--drop", "0.5")
    assert re.search(r"−50 points with 15 stored trials per case: \d+ cases", wanted)
    assert "a typical suite's" not in printed(project, "power", "--simulations", "10")


PRINTING = {
    "explain": ("explain", "new.jsonl"),
    "explain -v": ("explain", "-v", "new.jsonl"),
    "explain a case": ("explain", "new.jsonl", "--case", "case-3"),
    "history": ("history",),
    "history of files": ("history", "old.jsonl", "new.jsonl", "--tags"),
    "baseline list": ("baseline", "list"),
    "baseline show": ("baseline", "show"),
    "suite": ("suite",),
    "ratchet": ("ratchet", "old.jsonl"),
    "report": ("report", "new.jsonl"),
    "report -v": ("report", "-v", "new.jsonl"),
    "compare": ("compare", "new.jsonl", "old.jsonl"),
    "compare several": ("compare", "new.jsonl", "old.jsonl", "a_name_of_some_length_for_a_model=old.jsonl"),
    "power": ("power", "old.jsonl", "--simulations", "10"),
    "monitor": ("monitor", "--once", "--sample-rate", "1", "--state", "monitor.db", "traces.jsonl"),
}


QUICK = ("explain a case", "report -v", "compare several")


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PRINTING]
)
def test_no_command_prints_lines_longer_than_the_terminal(project: Project, command: str) -> None:
    """Words that no terminal holds, as the path of a file, may be broken; those that it holds may not."""
    turns = [{"role": "user", "content": "item 1"}, {"role": "assistant", "content": "Done. " * 40}]
    project.write("traces.jsonl", "".join(json.dumps({"id": str(n), "messages": turns}) + "\n" for n in range(3)))
    wide = project.gate(*PRINTING[command], COLUMNS="400")
    held = " ".join(word for word in wide.out.split() if len(word) <= 40)
    heads = {"criterion", "version", "change", "oldest", "to", "time", "UTC"}  # paragraphs omit them
    words = {*re.findall(r"[A-Za-z]{2,}", held)} - heads
    assert words and wide.code in (0, 1, 3), wide.err
    for width in (60, 80, 120):
        ran = project.gate(*PRINTING[command], COLUMNS=str(width))
        assert (ran.code, [line for line in ran.out.splitlines() if columns(line) > width]) == (wide.code, [])
        assert words <= {*re.findall(r"[A-Za-z]{2,}", ran.out)}


@pytest.mark.slow
def test_what_a_program_reads_has_its_lines_whole(project: Project) -> None:
    assert max(map(len, printed(project, "explain", "-v", "new.jsonl").splitlines())) > 100


def test_history_flags_what_flips(project: Project) -> None:
    text = printed(project, "history", "old.jsonl", "new.jsonl")
    row = next(line for line in text.splitlines() if line.startswith("case-3 "))
    assert "5/5" in row
    assert len(text.splitlines()) >= 16


def test_compare_and_report_in_every_form(project: Project) -> None:
    forms = [
        "--junit",
        "r.xml",
        "--markdown",
        "r.md",
        "--html",
        "r.html",
        "--json",
        "r.json",
        "--report",
        "ctrf=r.ctrf",
    ]
    text = printed(project, "compare", "new.jsonl", "old.jsonl", *forms, code=1)
    assert "case-3" in text
    for name in ("r.xml", "r.md", "r.html", "r.json", "r.ctrf"):
        assert "case-3" in (project.root / name).read_text(), name
    assert project.gate("compare", "old.jsonl", "old.jsonl").code == 4


def test_report_says_again_what_the_run_said(project: Project, tmp_path: Path) -> None:
    assert "case-3" in printed(project, "report", "new.jsonl", code=1)
    assert printed(project, "report", "new.jsonl", "--against", "none", "-q").startswith("suite.yaml: pass")
    own = printed(project, "report", "old.jsonl", "-q")
    assert own.startswith("suite.yaml: pass"), "the stored baseline is this very run, and is not compared with itself"
    elsewhere = Project(tmp_path / "elsewhere")
    elsewhere.write("new.jsonl", (project.root / "new.jsonl").read_text())
    lost = elsewhere.gate("report", "new.jsonl")
    assert (lost.code, lost.out) == (2, "")
    assert "--against none" in lost.err


def test_baseline_commands(project: Project) -> None:
    assert "suite.yaml" in printed(project, "baseline", "list")
    shown = printed(project, "baseline", "show")
    assert "5.0 trials per case from 1 record" in shown
    assert "tool_trajectory_avg_score" in shown


def test_suite_counts(project: Project) -> None:
    text = printed(project, "suite")
    assert "15 cases" in text
    assert "all 15" in text


def test_score_and_decide_speak_json_lines(project: Project) -> None:
    said = {"userContent": {"parts": [{"text": "hi"}]}, "finalResponse": {"parts": [{"text": "one two"}]}}
    pair = json.dumps({"id": 7, "actual": [said], "expected": [said]})
    scored = printed(project, "score", "--metric", "response_match_score", stdin=pair + "\n")
    assert json.loads(scored) | {"reason": ""} == {
        "id": 7,
        "score": 1.0,
        "per_turn": [1.0],
        "error": None,
        "reason": "",
    }
    state = {
        "protocol": 1,
        "id": "s",
        "seed": 1,
        "config": {},
        "metrics": [{"name": "success", "kind": "binary", "direction": "higher", "gating": True}],
        "baseline": {f"c{n}": [[1]] * 5 for n in range(20)},
        "rounds": [],
    }
    answer = json.loads(printed(project, "decide", stdin=json.dumps(state) + "\n"))
    assert answer["verdict"] == "CONTINUE"
    assert len(answer["requests"][0]["cases"]) == 20


@pytest.mark.slow
def test_schema_is_json(project: Project) -> None:
    assert json.loads(printed(project, "schema"))["required"] == ["suite", "agent"]
    printed(project, "report", "old.jsonl", "-q", "--json", "again.json")
    report = json.loads((project.root / "again.json").read_text())
    jsonschema.validate(report, json.loads(printed(project, "schema", "--report")))


def test_version_and_help_need_no_project(tmp_path: Path) -> None:
    empty = Project(tmp_path)
    assert empty.gate("--version").out.startswith("gate")
    assert "run" in empty.gate("--help").out
    assert empty.gate("run").code == 2


@pytest.mark.slow
def test_two_configurations_of_one_repository_have_suites_of_their_own(tmp_path: Path) -> None:
    """Both say ``suite: cases.yaml``; in baselines, records and comments they are told apart by their folders."""
    repository = Project(tmp_path)
    for folder in ("a", "b"):
        own = Project(tmp_path / folder)
        own.write("agent.py", AGENT.format(broken="nothing"))
        own.write("cases.yaml", "cases:\n  - {id: one, input: look item 1, tools: [{name: look_up, args: {}}]}\n")
        own.write("gate.yaml", "suite: cases.yaml\nagent: {python: agent:answer}\ncriteria: {tool_accuracy: 0.5}\n")
    repository.commit("two agents")
    ids = {}
    for folder in ("a", "b"):
        _, report = Project(tmp_path / folder).result("run")
        ids[folder] = [suite["suite_id"] for suite in report["suites"]]
    assert ids == {"a": ["a/cases.yaml"], "b": ["b/cases.yaml"]}


@pytest.mark.parametrize(
    "words",
    [
        ("run", "-c", "a", "-c", "b"),
        ("run", "--trials", "1", "--trials", "2"),
        ("baseline", "list", "-c", "a", "--config", "b"),
    ],
)
def test_an_option_that_is_given_twice_is_refused(project: Project, words: tuple[str, ...]) -> None:
    """Of two configurations the last would silently win."""
    ran = project.gate(*words)
    assert ran.code == 2
    assert "is given 2 times: give it once" in ran.err
