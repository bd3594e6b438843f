"""A change that rewrites what it is judged by: its checks, its rules, its cases, or the record that it hands over."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
from msgspec.structs import replace

from gate.model import Side
from gate.records import PlannedCase, Record, parse_record, write_record
from gate.records.model import footer_of
from tests.integration.github.job import AGENT, CONFIG, Done, Step, as_process, from_the_entrypoint, git, suite
from tests.integration.github.scenarios import World, report

pytestmark = pytest.mark.slow

CRITERION = "  tool_trajectory_avg_score: {threshold: 0.5, match_type: IN_ORDER}"


def accept(world: World, by: str = "wendy") -> Done:
    """Sets the label on pull request 1 and runs its job again."""
    world.fake.set_label(1, "gate:accept", by, "2026-01-02T00:00:00Z")
    step = world.last
    payload = {
        "action": "labeled",
        "label": {"name": "gate:accept"},
        "sender": {"login": by},
        "pull_request": world.fake.pulls[1],
    }
    return world.step("pull_request", payload, step.ref, step.sha, environment={"GITHUB_RUN_ID": "200"})


def said(done: Done) -> str:
    """The log with its lines joined, so that it does not matter where they were broken."""
    return " ".join(done.log.split())


# --- checks ---------------------------------------------------------------------------------------

FAIR = """\
def fair(actual, expected):
    return float(len(actual[0].tool_calls) == 2)
"""
BLIND = """\
def fair(actual, expected):
    return 1.0
"""
SPY = """\
import json, os, sys
from pathlib import Path

SEEN = {"environment": dict(os.environ), "modules": sorted(sys.modules), "pid": os.getpid(), "parent": os.getppid()}
Path(os.environ["HOME"], "seen.json").write_text(json.dumps(SEEN))

import gate.decision.rules
import gate.decision.next_step
gate.decision.rules.exit_code = gate.decision.next_step.next_step = None

def fair(actual, expected):
    return float(len(actual[0].tool_calls) == 2)
"""
CLASS = """\
from gate.metrics.base import Metric, Options
from gate.model import Score


class Wanted(Options):
    calls: int = 2


class Calls(Metric[Wanted]):
    options_type = Wanted

    def score(self, case, performance):
        return Score(float(len(performance.invocations[0].tool_calls) == self.options.calls))
"""


def checked(world: World, code: str, *, run_in: str = "gate", metric: str = "checks:fair") -> Done:
    """A default branch that is held to a check of its own."""
    criterion = f'  fair: {{metric: "{metric}", threshold: 0.9, run_in: {run_in}}}'
    world.repository.files |= {"gate.yaml": CONFIG.replace(CRITERION, criterion), "checks.py": code}
    done = world.push("good")
    assert done.code == 0, done.log
    return done


@pytest.mark.parametrize("run_in", ["gate", "agent"])
def test_an_edited_check_judges_only_once_it_is_merged(world: World, run_in: str) -> None:
    checked(world, FAIR, run_in=run_in)
    done = world.pull_request("awful", files={"checks__py": BLIND})
    assert done.code == 1, done.log
    assert done.outputs["verdict"] in ("below_threshold", "regressed")
    assert "custom metric checks:fair: edited, takes effect once it is merged" in said(done)
    merged = world.push("awful", files={"checks__py": BLIND}, before=git(world.repository.remote, "rev-parse", "main"))
    assert (merged.code, merged.outputs["verdict"]) == (1, "not_compared"), merged.log
    assert "its options or judge changed" in said(merged)


def test_a_deleted_check_goes_on_judging(world: World) -> None:
    checked(world, FAIR)
    (world.repository.work / "checks.py").unlink()
    del world.repository.files["checks.py"]
    done = world.pull_request("awful")
    assert done.code == 1, done.log
    assert "custom metric checks:fair: removed once it is merged" in said(done)


def test_a_check_that_is_new_counts(recorded: World) -> None:
    criterion = f"{CRITERION}\n  checks:fair: 0.9"
    files = {"gate__yaml": CONFIG.replace(CRITERION, criterion), "checks__py": FAIR}
    done = recorded.pull_request("bad", files=files)
    assert done.code == 1, done.log
    assert "criterion checks:fair is new" in said(done)


def test_a_check_sees_neither_the_gates_environment_nor_its_modules(world: World) -> None:
    """It is imported by another process, and what it rewrites there changes no verdict."""
    world.launch = from_the_entrypoint
    checked(world, SPY)
    done = world.pull_request("awful", environment={"ACTIONS_RUNTIME_TOKEN": "runtime"})
    assert done.code == 1, done.log
    seen = json.loads((world.last.root / "home" / "seen.json").read_text())
    names = [name for name in seen["environment"] if "TOKEN" in name or name.startswith(("INPUT_", "GITHUB_", "GIT_"))]
    assert names == []
    assert "gate.action.main" not in seen["modules"]


def test_a_metric_class_is_computed_as_before(world: World) -> None:
    checked(world, CLASS, metric="checks:Calls", run_in="gate")
    done = world.pull_request("awful")
    assert done.code == 1, done.log
    misspelt = world.repository.files["gate.yaml"].replace("0.9", "0.9, cals: 3")
    pushed = world.push("good", files={"gate__yaml": misspelt})
    assert pushed.code == 2, pushed.log
    assert "unknown option 'cals'" in said(pushed)
    assert "did you mean 'calls'?" in said(pushed)


# --- a base whose suites or configuration cannot be read ------------------------------------------


@pytest.fixture
def built(world: World) -> World:
    """A world whose suite is no part of the repository: a step of the job makes it."""

    def launch(step: Step, environment: dict[str, str]) -> Any:
        (step.workspace / "built").mkdir(exist_ok=True)
        (step.workspace / "built" / "suite.yaml").write_text(suite())
        return as_process(step, environment)

    world.launch = launch
    config = CONFIG.replace("suite: suite.yaml", "suite: built/suite.yaml")
    world.repository.files |= {"gate.yaml": config, ".gitignore": "built/\n"}
    done = world.push("good")
    assert done.code == 0, done.log
    return world


def test_rules_hold_where_the_bases_suites_cannot_be_read(built: World) -> None:
    config = built.repository.files["gate.yaml"]
    loose = config.replace("threshold: 0.5", "threshold: 0.1").replace("store: git", "store: none")
    done = built.pull_request("awful", files={"gate__yaml": loose})
    assert done.code == 1, done.log
    assert "tool_trajectory_avg_score.threshold: 0.5 → 0.1 takes effect once it is merged" in said(done)
    assert 'baseline.store: "git" → "none" takes effect once it is merged' in said(done)
    assert "the base commit's suites cannot be read, so thresholds of single cases are" in said(done)


def test_nothing_passes_where_the_bases_configuration_cannot_be_read(world: World) -> None:
    world.repository.commit("good", gate__yaml="sweet: true")
    done = world.pull_request("good")
    assert (done.code, done.outputs["verdict"]) == (1, "not_compared"), done.log
    assert "the base commit's configuration cannot be read" in world.comments()[0]


def test_a_first_configuration_is_held_to_itself(world: World) -> None:
    git(world.repository.work, "commit", "-q", "--allow-empty", "-m", "nothing yet")
    git(world.repository.work, "push", "-q", "origin", "HEAD:refs/heads/main")
    done = world.pull_request("good")
    assert (done.code, done.outputs["verdict"]) == (0, "pass"), done.log
    assert "the base commit has no such configuration" in said(done)


# --- cases that are no longer compared ------------------------------------------------------------

CASES = suite().splitlines()
ODD = "".join(f"{line}\n" for line in [CASES[0], *CASES[13:]])
"""Without the twelve cases that a bad agent fails."""
REWORDED = suite().replace("input: refund order", "input: please refund order")


@pytest.mark.parametrize(
    ("cases", "why"), [(ODD, "12 of the 24 cases"), (REWORDED, "were edited and miss")], ids=["removed", "reworded"]
)
def test_a_regression_is_not_hidden_by_its_cases(recorded: World, cases: str, why: str) -> None:
    done = recorded.pull_request("bad", files={"suite__yaml": cases})
    assert (done.code, done.outputs["verdict"]) == (1, "not_compared"), done.log
    assert why in recorded.comments()[0]


def test_a_renamed_suite_is_not_a_fresh_start(recorded: World) -> None:
    renamed = CONFIG.replace("name: support", "name: support2")
    done = recorded.pull_request("bad", files={"gate__yaml": renamed})
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), "against the base's agent, run beside"
    assert "suite 'support' of the base commit was renamed, removed or is not selected now" in said(done)


def test_a_case_or_two_may_go(recorded: World) -> None:
    few = "".join(f"{line}\n" for line in [CASES[0], *CASES[3:]])
    done = recorded.pull_request("good", files={"suite__yaml": few})
    assert (done.code, done.outputs["verdict"]) == (0, "pass"), done.log


def test_a_selection_removes_nothing(recorded: World) -> None:
    smoke = [line.replace("{id", "{tags: [smoke], id") for line in CASES[:13]]
    recorded.repository.files["suite.yaml"] = "".join(f"{line}\n" for line in [*smoke, *CASES[13:]])
    pushed = recorded.push("good")
    assert pushed.code == 0, pushed.log
    done = recorded.pull_request("good", inputs={"tags": "smoke"})
    assert (done.code, done.outputs["verdict"]) == (0, "pass"), done.log


def test_a_writers_label_accepts_that_cases_went(recorded: World) -> None:
    done = recorded.pull_request("good", files={"suite__yaml": ODD})
    assert done.code == 1, done.log
    accepted = accept(recorded)
    assert (accepted.code, accepted.outputs["verdict"]) == (0, "not_compared"), accepted.log
    assert "wendy" in recorded.comments()[0]


# --- the record that a fork hands over ------------------------------------------------------------


def forged(world: World, change: Callable[[Record], Record]) -> Done:
    """The trusted half's answer to the record of a fork's bad agent, changed on its way."""
    done = world.pull_request("bad", fork=True)
    assert done.code == 1, done.log
    [path] = (world.last.workspace / "gate-results").glob("*.jsonl")
    record = change(parse_record(path.read_bytes()))
    path.unlink()
    assert record.footer is not None
    write_record(path, replace(record, footer=replace(footer_of(record.trials), terms=record.footer.terms)))
    return report(world)


MARKED = """
from pathlib import Path
Path(__import__("os").environ["HOME"], "ran-" + Path(__file__).name).touch()
"""


def test_what_reports_on_a_fork_runs_none_of_its_code(recorded: World) -> None:
    """Neither its agent nor its check is imported beside the token that comments; in its own job the agent was."""
    metric = CONFIG.replace(CRITERION, '  fair: {metric: "checks:fair", threshold: 0.9}')
    files = {"agent__py": MARKED + AGENT, "checks__py": MARKED + FAIR, "gate__yaml": metric}
    assert recorded.pull_request("bad", fork=True, files=files).code == 1
    ran = recorded.last.root / "home"
    assert (ran / "ran-agent.py").exists()
    done = report(recorded)
    assert recorded.last.root / "home" != ran
    assert (done.code, len(recorded.comments())) == (1, 1), done.log
    assert list((recorded.last.root / "home").glob("ran-*")) == []


def with_cases(record: Record, change: Callable[[PlannedCase], PlannedCase | None]) -> Record:
    plan = tuple(found for case in record.header.plan if (found := change(case)) is not None)
    kept = {case.id for case in plan}
    trials = tuple(trial for trial in record.trials if trial.case_id in kept)
    return replace(record, header=replace(record.header, plan=plan), trials=trials)


def test_a_forged_plan_does_not_pass(recorded: World) -> None:
    """Fingerprints that equal nothing: nothing is compared."""
    done = forged(recorded, lambda record: with_cases(record, lambda case: replace(case, fingerprint="0" * 32)))
    assert (done.code, done.outputs["verdict"]) == (1, "not_compared"), done.log


def test_cases_that_fail_cannot_be_left_out_of_the_record(recorded: World) -> None:
    failing = {f"refund-{n}" for n in range(12)}
    done = forged(recorded, lambda record: with_cases(record, lambda case: None if case.id in failing else case))
    assert (done.code, done.outputs["verdict"]) == (1, "not_compared"), done.log
    assert "12 of the 24 cases" in said(done)


def test_cases_that_fail_cannot_be_left_out_before_there_is_a_baseline(world: World) -> None:
    world.repository.commit("good", gate__yaml=CONFIG.replace("0.5", "0.9"))
    failing = {f"refund-{n}" for n in range(12)}
    done = forged(world, lambda record: with_cases(record, lambda case: None if case.id in failing else case))
    assert (done.code, done.outputs["verdict"]) == (1, "not_compared"), done.log
    assert "12 of 24 cases of the base branch were not measured" in said(done)


def test_trials_that_fail_count_whatever_they_call_themselves(recorded: World) -> None:
    """Under other tags, in another round, as ones that were run again: every case runs in an epoch."""
    tags = cycle(["base", "probe", "repeat", "confirm"])

    def disguised(record: Record) -> Record:
        failing = {f"refund-{n}": next(tags) for n in range(12)}
        trials = [
            replace(trial, tag=failing[trial.case_id], round=7, number=9, again=True)
            if trial.case_id in failing
            else trial
            for trial in record.trials
            if trial.case_id not in failing or trial.number == 1
        ]
        return replace(record, trials=tuple(trials))

    done = forged(recorded, disguised)
    assert done.code == 7, done.log
    assert "12 cases ran in no epoch of the suite" in said(done)


def test_thresholds_of_the_record_hold_for_nothing(recorded: World) -> None:
    lowered = {"tool_trajectory_avg_score": 0.1}
    done = forged(recorded, lambda record: with_cases(record, lambda case: replace(case, thresholds=lowered)))
    assert done.code == 1, done.log
    assert "from 100 % to 50 %" in said(done)  # of trials that pass: the record's own marks would have passed all


def test_trials_of_the_base_that_a_record_brings_make_no_pass(recorded: World) -> None:
    """A fork's job measures itself, so it can report any trial; those of the base are judged like any others."""

    def double(record: Record) -> Record:
        own = [t for t in record.trials if t.side is Side.CANDIDATE]
        more = (replace(t, side=Side.BASELINE, number=t.number + 100) for t in own)  # its base was run, too
        return replace(record, trials=(*record.trials, *more))

    done = forged(recorded, double)
    assert done.outputs["verdict"] in ("inconclusive", "regressed"), done.log


def test_the_base_branch_judges_and_not_the_default_branch(recorded: World) -> None:
    """What is checked out beside the trusted half is the default branch, and the change is not for it."""
    loose = CONFIG.replace("threshold: 0.5", "threshold: 0.1").replace("gate: {alpha: 0.05}", "gate: {alpha: 0.0001}")
    done = recorded.pull_request("awful", fork=True)
    assert done.code == 1, done.log
    git(recorded.repository.work, "push", "-q", "origin", "main:refs/heads/release")
    recorded.fake.pulls[1]["base"]["ref"] = "release"
    measured = recorded.last
    recorded.repository.commit("good", gate__yaml=loose)
    recorded.last = measured
    reported = report(recorded)
    assert reported.code == 1, reported.log
    assert "at least 0.50" in reported.summary
