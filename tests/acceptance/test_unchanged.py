"""A change that leaves the agent as it was is judged by what is stored of its base, and nothing is run for it."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate import api
from gate.baselines.ledger import Mark
from gate.config.load import load_config
from gate.errors import BaselineWriteError, UntrustedError
from gate.model import Result, Verdict
from gate.pipeline.store import store_of
from gate.records import read_record
from gate.records.keys import key_of, suite_key
from gate.reports.files import Outputs
from gate.stored.judging import judge_records, report_record
from gate.stored.upkeep import save_baseline
from tests.acceptance.conftest import Project

CASES = 3
STORED = 4
AGENT = """\
from pathlib import Path


def answer(message):
    here = Path(__file__).parent
    with (here.parent / ".gate" / "asked").open("a") as file:
        file.write("x")
    return (here / "prompt.txt").read_text().strip() + " " + message
"""
AGENT_SECTION = {"python": "app.agent:answer", "sources": ["app/"], "concurrency": 4}
CONFIG: dict[str, object] = {
    "suite": "evals",
    "agent": AGENT_SECTION,
    "criteria": {"response_match_score": 0.8},
}
FILES = {
    "evals/suite.json": {"cases": [{"id": f"c{n}", "input": f"item {n}", "response": f"it is item {n}"}
                                   for n in range(CASES)]},
    "evals/notes.txt": "how the cases were found",
    "app/agent.py": AGENT,
    "app/prompt.txt": "it is",
    "app/unused/data.csv": "a,b",
    "README.md": "An agent.",
    "docs/guide/first.md": "Start here.",
    ".gitignore": ".gate/\n__pycache__/\n",
}  # fmt: skip
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """With a baseline of its base commit on ``main``, on a branch that has no commit yet."""
    return with_baseline(tmp_path, CONFIG)


def with_baseline(root: Path, config: object, **environment: str) -> Project:
    project = Project(root)
    for name, content in FILES.items():
        project.write(name, content)
    project.write("gate.yaml", config)
    project.commit("base")
    (root / ".gate").mkdir()
    result = run(project, trials=STORED, **environment)
    save_baseline(load_config(root / "gate.yaml"), Path(result.record_paths[0]), ENVIRONMENT)
    project.git("checkout", "-q", "-b", "change")
    return project


def run(project: Project, trials: int | None = None, record: Path | None = None, **environment: str) -> Result:
    overrides = {} if trials is None else {"trials": trials}
    return api.run(
        project.root / "gate.yaml", overrides=overrides, record=record, environment=ENVIRONMENT | environment
    )


def asked(project: Project) -> int:
    """How often the agent was asked since this was called last."""
    path = project.root / ".gate" / "asked"
    found = len(path.read_text()) if path.exists() else 0
    path.unlink(missing_ok=True)
    return found


def change(project: Project, name: str, content: str = "changed\n") -> str:
    project.write(name, content)
    return project.commit(f"change {name}")


def mark(project: Project, verdict: Verdict, *, config: str = "gate.yaml") -> None:
    """What the ledger says of the base's record."""
    found = load_config(project.root / config)
    store = store_of(found, ENVIRONMENT)
    assert store is not None
    base = project.git("rev-parse", "main")
    with store:
        record = store.find("evals", [base])
        assert record is not None
        run_id = record.records[0].header.run_id
        store.note("evals", [Mark(suite_key("evals"), key_of(base), run_id, verdict.value, 4e9, anchor="a" * 40)])


# --- what is the same -----------------------------------------------------------------------------


def test_a_change_outside_of_the_agent_costs_nothing_and_passes(project: Project) -> None:
    base = project.git("rev-parse", "HEAD")
    assert asked(project) == CASES * STORED
    change(project, "README.md")
    result = run(project)
    (suite,) = result.suites
    assert (asked(project), result.exit_code, result.verdict) == (0, 0, Verdict.PASS)
    assert (suite.agent_runs, suite.cost_usd, suite.commit) == (0, None, project.git("rev-parse", "HEAD"))
    assert [row.candidate.trials for row in suite.criteria if row.candidate] == [CASES * STORED] * 2
    said = api.render(result, "console")
    assert f"agent is the same as at {base[:7]}" in " ".join(said.split())
    assert "not judged" not in said


def test_it_comes_out_the_same_when_it_is_shown_again(project: Project) -> None:
    change(project, "README.md")
    first = run(project)
    path = Path(first.record_paths[0])
    again = report_record(path, None, project.root / "gate.yaml", ENVIRONMENT, Outputs(), "gate report")
    (suite, shown) = (*first.suites, *again.suites)
    assert (shown.verdict, shown.cause, shown.warnings) == (suite.verdict, suite.cause, suite.warnings)
    alone = report_record(path, "none", project.root / "gate.yaml", ENVIRONMENT, Outputs(), "gate report")
    assert alone.suites[0].cause != suite.cause  # compared with nothing, its trials are trials like any other


def test_what_was_not_run_is_no_baseline_and_no_measurement(project: Project) -> None:
    change(project, "README.md")
    config = load_config(project.root / "gate.yaml")
    path = Path(run(project).record_paths[0])
    assert "nothing to save" in save_baseline(config, path, ENVIRONMENT)
    store = store_of(config, ENVIRONMENT)
    assert store is not None
    with store, pytest.raises(BaselineWriteError, match="nothing was run for it"):
        store.save(read_record(path))
    asked(project)
    change(project, "app/prompt.txt", "it is\n")
    result = run(project)
    assert asked(project) >= CASES
    assert "measured before" not in api.render(result, "console")


def test_a_record_that_fell_short_does_so_for_the_change_too(project: Project) -> None:
    change(project, "README.md")
    mark(project, Verdict.REGRESSED)
    result = run(project)
    assert (asked(project), result.verdict, result.exit_code) == (CASES * STORED, Verdict.REGRESSED, 1)
    assert "fell short (regressed)" in api.render(result, "markdown")


def test_of_an_untrusted_run_only_what_the_store_holds_is_judged(project: Project) -> None:
    change(project, "README.md")
    config = load_config(project.root / "gate.yaml")
    record = read_record(Path(run(project).record_paths[0]))
    told = replace(record, trials=record.trials[:CASES])
    (suite,) = judge_records([told], config, ENVIRONMENT, command="gate").suites
    assert suite.cause.kind == "same_agent"
    assert [row.candidate.trials for row in suite.criteria if row.candidate] == [CASES * STORED] * 2
    of_another = replace(record, header=replace(record.header, agent="0" * 32))
    with pytest.raises(UntrustedError, match="of another agent"):
        judge_records([of_another], config, ENVIRONMENT, command="gate")


def test_a_record_whose_mark_says_nothing_of_the_agent_is_measured_again(project: Project) -> None:
    change(project, "README.md")
    mark(project, Verdict.ERROR)
    asked(project)
    assert (run(project).exit_code, asked(project) > 0) == (0, True)


# --- what is measured -----------------------------------------------------------------------------


@pytest.mark.slow
def test_nights_runs_on_demand_and_stated_trials_measure(project: Project) -> None:
    change(project, "README.md")
    asked(project)
    for environment in ({"GITHUB_EVENT_NAME": "schedule"}, {"GITHUB_EVENT_NAME": "workflow_dispatch"},
                        {"CI_PIPELINE_SOURCE": "schedule"}, {"CI_PIPELINE_SOURCE": "web"}):  # fmt: skip
        run(project, record=project.root / ".gate" / f"{'-'.join(environment.values())}-{len(environment)}.jsonl",
            **environment)  # fmt: skip
        (path,) = (project.root / ".gate").glob("*.jsonl")
        path.unlink()
        assert asked(project) > 0, environment
    run(project, trials=1)
    assert asked(project) == CASES
    for environment in ({"GITHUB_EVENT_NAME": "pull_request"}, {"CI_PIPELINE_SOURCE": "merge_request_event"}):
        run(project, **environment)
        assert asked(project) == 0, environment


CONFIGS: dict[str, dict[str, object]] = {
    "an option of a criterion": {"criteria": {"response_match_score": {"threshold": 0.8, "flavor": "adk-ts"}}},
    "the agent's options": {"agent": {**AGENT_SECTION, "env": {"TONE": "kind"}}},
    "what a category of tools is": {"tool_categories": {"reads": ["look_up"]}},
}


@pytest.mark.slow
@pytest.mark.parametrize("what", CONFIGS)
def test_what_measures_otherwise_is_measured(project: Project, what: str) -> None:
    asked(project)
    change(project, "gate.yaml", json.dumps(CONFIG | CONFIGS[what]))
    run(project)
    assert asked(project) >= CASES


def test_another_case_is_measured_and_another_threshold_is_not(project: Project) -> None:
    asked(project)
    change(project, "gate.yaml", json.dumps({**CONFIG, "criteria": {"response_match_score": 0.9}}))
    assert (run(project).exit_code, asked(project)) == (0, 0)
    suite = {"cases": [{"id": "c0", "input": "item 1", "response": "it is item 1"}]}
    change(project, "evals/suite.json", json.dumps(suite))
    run(project)
    assert asked(project) > 0


def test_variables_that_are_handed_on_belong_to_the_agent(tmp_path: Path) -> None:
    project = with_baseline(
        tmp_path, {**CONFIG, "agent": {**AGENT_SECTION, "env": ["MODEL_*", "GITHUB_*", "MAX_TOKENS"]}}
    )
    change(project, "README.md")
    asked(project)
    run(project, GITHUB_RUN_ID="7", MODEL_KEY="secret", TONE="not handed on")
    assert asked(project) == 0
    for name, value in (("MODEL_NAME", "small"), ("MAX_TOKENS", "10")):
        run(project, **{name: value})
        assert asked(project) >= CASES, name


def test_a_variable_within_a_value_belongs_to_the_agent(tmp_path: Path) -> None:
    env = {"MODEL": "${SIZE}-latest", "KEY": "${SOME_KEY}"}
    project = with_baseline(tmp_path, {**CONFIG, "agent": {**AGENT_SECTION, "env": env}}, SIZE="big", SOME_KEY="a")
    change(project, "README.md")
    asked(project)
    run(project, SIZE="big", SOME_KEY="b")
    assert asked(project) == 0
    run(project, SIZE="small", SOME_KEY="a")
    assert asked(project) >= CASES


def test_a_work_tree_with_changes_is_measured(project: Project) -> None:
    change(project, "README.md")
    asked(project)
    project.write("README.md", "changed again")
    run(project)
    assert asked(project) >= CASES


@pytest.mark.slow
def test_without_sources_any_file_may_be_the_agents(tmp_path: Path) -> None:
    """Also what lies beside the cases, and what no rule reads of the configuration."""
    agent = {"python": "app.agent:answer", "concurrency": 4}
    project = with_baseline(tmp_path, {**CONFIG, "agent": agent})
    for name in ("README.md", "evals/notes.txt", "gate.yaml"):
        project.git("checkout", "-q", "-B", "change", "main")
        asked(project)
        change(project, name, json.dumps({**CONFIG, "agent": agent, "output": ".gate/new"}))
        run(project)
        assert asked(project) >= CASES, name


# --- many changes ---------------------------------------------------------------------------------

NAMES = ("notes.md", "a b.txt", "ünï.py", "agent.py", "prompt.txt", "-x", "app", "x/app/agent.py", "Makefile")


def outside(project: Project, rng: random.Random) -> None:
    """Something that is not below the agent's sources: written, made executable, moved or removed."""
    root = project.root
    kind = rng.choice(["write", "write", "mode", "move", "remove"])
    if kind == "write":
        folder = rng.choice(["docs", ".github/workflows", "src", "application", "docs/app"])
        project.write(f"{folder}/{rng.choice(NAMES)}", f"{rng.random()}")
    elif kind == "mode":
        (root / "README.md").chmod(0o755)
    elif kind == "move":
        (root / "README.md").rename(root / f"README-{rng.randrange(99)}.md")
    else:
        (root / rng.choice(["README.md", "docs/guide/first.md"])).unlink()


def inside(project: Project, rng: random.Random) -> None:
    """Something below the agent's sources, which leaves it working."""
    root = project.root / "app"
    kind = rng.choice(["write", "write", "edit", "mode", "move", "remove"])
    if kind == "write":
        project.write(f"app/{rng.choice(['more', 'unused', 'deep/er'])}/{rng.choice(NAMES)}", f"{rng.random()}")
    elif kind == "edit":
        project.write("app/agent.py", f"{AGENT}\n# {rng.random()}\n")
    elif kind == "mode":
        (root / rng.choice(["agent.py", "prompt.txt"])).chmod(0o755)
    elif kind == "move":
        (root / "unused/data.csv").rename(root / f"data-{rng.randrange(99)}.csv")
    else:
        (root / "unused/data.csv").unlink()


@pytest.mark.parametrize("number", [3, pytest.param(25, marks=pytest.mark.slow)])
def test_only_changes_of_the_agent_are_measured(project: Project, number: int) -> None:
    rng = random.Random(20261126)
    asked(project)
    for make, expected in ((outside, False), (inside, True)):
        found = []
        for step in range(number):
            project.git("checkout", "-q", "-B", "change", "main")
            make(project, rng)
            project.commit(f"{make.__name__} {step}")
            verdict = run(project).verdict  # exit code 0 may be inconclusive, too
            found.append((verdict, asked(project) > 0))
            subprocess.run(["git", "clean", "-qfdx", "-e", ".gate"], cwd=project.root, check=True)
            shutil.rmtree(project.root / ".gate/records")  # the same change once more would go on with its own record
        assert set(found) == {(Verdict.PASS, expected)}, (make.__name__, found)
