"""Whole reports as they were agreed on, each from a real run of the command. `make golden` rewrites them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gate import __version__
from gate.reports import REPORTS
from tests.acceptance.conftest import REPOSITORY, Project

GOLDEN = REPOSITORY / "tests" / "golden" / "reports"
CASES = 12
AGENT = """
COUNTS = {}


def answer(messages):
    question = messages[-1]["content"]
    number = int(question.rpartition(" ")[2])
    COUNTS[number] = trial = COUNTS.get(number, 0) + 1
    BODY
    return {"output": "done", "tool_calls": [{"name": "lookup", "arguments": {"of": number}}], "cost_usd": 0.001}
"""
GUESS = '{"output": "a guess", "tool_calls": [{"name": "guess", "arguments": {}, "error": "no such row"}]}'
CRITERIA = "{tool_trajectory_avg_score: {match_type: IN_ORDER, threshold: 0.5}, response_match_score: {threshold: 0.5}}"
FREE = "{tool_trajectory_avg_score: {match_type: IN_ORDER}}"
SOON = "\ngate: {confirm_after: 100ms}"
ALONE = "\nbaseline: {rerun: never}"
STEADY = "pass"
BASE = {"trade": f"if number >= 8: return {GUESS}"}
"""What the base commit's agent does, where it is not steady. Of another length than the change, which may be written
in the same second: Python would take the module compiled before for the new one."""
STORED = {"thin": 1}
"""Stored trials of each case, where they are not five."""
WORLDS: dict[str, tuple[str, str, str]] = {
    "pass": (STEADY, CRITERIA, CRITERIA),
    "regressed": (f"if number < 4: return {GUESS}", CRITERIA, CRITERIA),
    "below_threshold": (f"if number < 8: return {GUESS}", "", CRITERIA),
    "mean_fell": (f"if number < 2 and trial % 2: return {GUESS}", FREE, FREE),
    "not_compared": (f"if number < 9: return {GUESS}", FREE, "{tool_trajectory_avg_score: {match_type: EXACT}}"),
    "no_baseline": (STEADY, "", CRITERIA),
    "trade": (f"if number < 2: return {GUESS}", FREE, FREE),
    "thin": (STEADY, CRITERIA + ALONE, CRITERIA + ALONE),
    "crash": ("if number < 3: raise ValueError('no such row')", CRITERIA + SOON, CRITERIA + SOON),
}
"""What the agent does, and the criteria of the baseline (empty: there is none) and of the run."""
FORMS = {"markdown": "md", "junit": "xml", "html": "html", "json": "json"}
FORMS_OF_REPORT = {"ctrf": "ctrf.json", "openmetrics": "metrics.txt"}
"""Forms that are made from the closed record, as `gate report` makes them."""


def configure(project: Project, body: str, criteria: str) -> None:
    project.write("agent.py", AGENT.replace("BODY", body))
    agent = "{python: 'agent:answer', concurrency: 1, retries: 0}"
    project.write("gate.yaml", f"suite: suite.json\nname: support\nagent: {agent}\ncriteria: {criteria}\n")


@pytest.fixture
def project() -> Iterator[Project]:
    """In a folder whose path is always as long: the console breaks its lines where paths end."""
    with TemporaryDirectory(prefix="golden-", dir="/tmp") as folder:
        yield Project(Path(folder))


@pytest.fixture
def world(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "2026-01-01T00:00:00Z")
    call = {"name": "lookup"}
    cases = [
        {"id": f"case-{n:02}", "input": f"look up {n}", "tools": [{**call, "args": {"of": n}}], "response": "done"}
        for n in range(CASES)
    ]
    project.write("suite.json", json.dumps({"cases": cases}, indent=1))
    project.write(".gitignore", ".gate\n__pycache__\n")
    return project


def steady(project: Project, text: str) -> str:
    """The report without what differs from run to run: times, and where it was run."""
    return without_times(text.replace(str(project.root), "/project"))


def without_times(text: str) -> str:
    """The report without times, the version, and a page's code and packed data."""
    text = text.replace(__version__, "VERSION")
    text = re.sub(r'("(?:duration|latency|started|start|stop)": )[\d.e-]+', r"\g<1>0.0", text)
    text = re.sub(r'("reportId": )"[^"]+"', r'\g<1>"ID"', text)
    text = re.sub(r"^(gate_duration_seconds\S+ ).*", r"\g<1>0", text, flags=re.MULTILINE)
    text = re.sub(r' time="[\d.]+"', "", text)
    # Of a page: its own code, and what is packed; tests/browser looks at these.
    text = re.sub(r"(<(script|style)[^>]*>).*?(</\2>)", r"\1…\3", text, flags=re.DOTALL)
    text = re.sub(r"sha256-[\w+/=]+", "sha256-…", text)
    return re.sub(r"\b\d+(?:\.\d+)? (?:µs|ms|s|min)\b(?: \d+ s\b)?", "1 s", text)


def agrees(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("GATE_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def measure(project: Project, name: str) -> dict[str, str]:
    """The reports of a world by the suffix of their form."""
    body, before, now = WORLDS[name]
    if before:
        configure(project, BASE.get(name, STEADY), before)
        project.commit("base")
        project.store(trials=STORED.get(name, 5))
    configure(project, body, now)
    project.commit("change")
    outputs = {form: project.root / ".gate" / f"report.{suffix}" for form, suffix in FORMS.items()}
    wanted = [word for form, path in outputs.items() for word in (f"--{form}", str(path))]
    ran = project.gate("run", *wanted, COLUMNS="100")
    assert outputs["json"].exists() and outputs["json"].stat().st_size, ran.err
    found = {FORMS[form]: path.read_text(encoding="utf-8") for form, path in outputs.items()}
    if name == "regressed":
        found |= reported(project, json.loads(found["json"])["record_paths"][0])
    return {suffix: steady(project, text) for suffix, text in {**found, "txt": ran.out}.items()}


def reported(project: Project, record: str) -> dict[str, str]:
    """The further reports on a record by the suffix of their form."""
    outputs = {form: project.root / ".gate" / f"report.{suffix}" for form, suffix in FORMS_OF_REPORT.items()}
    project.gate("report", record, *[f"--report={form}={path}" for form, path in outputs.items()])
    return {FORMS_OF_REPORT[form]: path.read_text(encoding="utf-8") for form, path in outputs.items()}


SLOW = ("below_threshold", "no_baseline", "not_compared", "thin", "trade")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in WORLDS]
)
def test_reports_of_real_runs_are_as_agreed(world: Project, name: str) -> None:
    found = measure(world, name)
    suffixes = [*FORMS.values(), *FORMS_OF_REPORT.values()] if name == "regressed" else ["md"]
    for suffix in (*suffixes, "txt"):
        agrees(f"{name}.{suffix}", found[suffix])
    verdict = json.loads(found["json"])["verdict"]
    if verdict != "pass":
        assert not re.search(r"^## ✅", found["md"], flags=re.MULTILINE)


def test_every_registered_form_has_a_golden_file() -> None:
    assert set(REPORTS) == {*FORMS, *FORMS_OF_REPORT, "console"}
    for suffix in (*FORMS.values(), *FORMS_OF_REPORT.values(), "txt"):
        assert (GOLDEN / f"regressed.{suffix}").exists()


def test_every_golden_file_is_made_here() -> None:
    made = {f"{name}.{suffix}" for name in WORLDS for suffix in ("md", "txt")}
    made |= {f"regressed.{suffix}" for suffix in (*FORMS.values(), *FORMS_OF_REPORT.values())} | {"result.schema.json"}
    assert {path.name for path in GOLDEN.iterdir() if path.is_file()} == made
