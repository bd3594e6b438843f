"""One change, measured several times: no push, attempt or move of its base is a silent further chance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gate.action.reuse import SEARCHED
from tests.acceptance.test_stored_epochs import Served, serving
from tests.integration.github.job import AGENT, CONFIG, Done, Step, as_process, suite
from tests.integration.github.scenarios import World, report
from tests.integration.github.test_reuse import again, head_of, measure_head, push_again, run_id

pytestmark = pytest.mark.slow


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as found:
        yield found


def test_the_same_head_goes_on_a_new_one_starts_anew_and_the_comment_counts(world: World, served: Served) -> None:
    config = CONFIG.replace('{python: "agent:answer", concurrency: 4}', f'{{http: "{served.url}", retries: 0}}')
    config = config.replace(
        "tool_trajectory_avg_score: {threshold: 0.5, match_type: IN_ORDER}", "contains: {values: [Done]}"
    )
    world.repository.files["gate.yaml"] = config
    done = world.push("good")
    assert done.code == 0, done.log
    served.answer = lambda number: (200, "Done." if number % 3 else "no idea")
    done = world.pull_request("good", 1)
    assert done.code == 1, done.log
    world.upload(100, head_of(world), "pull_request", conclusion="failure", head_branch="branch-1")
    measured, asked = run_id(world), served.asked

    done = again(world, 1, GITHUB_RUN_ID="200")
    assert (done.code, run_id(world), served.asked) == (1, measured, asked), "the same head is no new draw"
    assert "of run 100; nothing new was run" in done.summary, done.log
    world.upload(200, head_of(world), "pull_request", conclusion="failure", head_branch="branch-1")
    [comment] = world.comments()
    assert "measurement" not in comment

    told = []
    for run in (300, 400):
        head, merge = push_again(world)
        served.answer = lambda _number: (200, "Done.")
        before = served.asked
        done = measure_head(world, merge, run)
        assert served.asked > before and run_id(world) != measured, "a new head is measured anew"
        assert done.code == 0, done.log
        world.upload(run, head, "pull_request", head_branch="branch-1")
        [comment] = world.comments()
        told.append(comment.replace("\\", ""))
    assert "measurement 2 of this change; before: regressed (without a known version of the agent" in told[0]
    assert "measurement 3 of this change; before: pass, regressed" in told[1]


@pytest.mark.parametrize("stored", [True, False])
def test_a_moved_base_hides_no_regression(world: World, stored: bool) -> None:
    """Nothing but the base commit's agent beside the earlier head shows that it lost, where nothing is stored."""
    world.repository.files["suite.yaml"] = suite(4)
    if stored:
        assert world.push("good").code == 0
    else:
        world.repository.commit("good")
    assert world.pull_request("awful").outputs["verdict"] == "regressed"
    world.upload(100, head_of(world), "pull_request", conclusion="failure", head_branch="branch-1")
    world.repository.commit("good", README__md="meanwhile")
    _, merge = push_again(world, behaviour__txt="good", agent__py=f"{AGENT}# mended\n")
    done = measure_head(world, merge, 200)
    assert done.code == 0, done.log
    assert "Measurement 2 of this change (before: regressed)" in done.summary


@pytest.fixture
def lost(world: World) -> World:
    """A change that was measured as regressed; its second head leaves the question open with one trial per case."""
    world.repository.files["suite.yaml"] = suite(4)
    assert world.push("good").code == 0
    assert world.pull_request("awful").outputs["verdict"] == "regressed"
    world.upload(100, head_of(world), "pull_request", conclusion="failure", head_branch="branch-1")
    return world


def measure_open(world: World, run: int, merge: str = "", attempt: int = 1) -> Done:
    """Measure a further head, or the last one again, by a single trial per case."""
    if not merge:
        _, merge = push_again(world, behaviour__txt="slip", agent__py=f"{AGENT}# of run {run}\n")
    payload = {"action": "synchronize", "pull_request": world.fake.pulls[1]}
    environment = {"GITHUB_RUN_ID": str(run), "GITHUB_RUN_ATTEMPT": str(attempt)}
    ref, inputs = "refs/pull/1/merge", {"trials": "1"}
    done = world.step("pull_request", payload, ref, merge, inputs=inputs, environment=environment)
    world.upload(run, head_of(world), "pull_request", head_branch="branch-1")
    return done


def test_a_second_attempt_counts_the_earlier_heads_like_the_first(lost: World) -> None:
    for attempt in (1, 2):
        done = measure_open(lost, 200, lost.last.sha if attempt == 2 else "", attempt)
        assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
        assert "measured as regressed before and has not passed since" in done.summary
    assert "of attempt 1; nothing new was run" in done.summary


@pytest.mark.parametrize("pushes", [9, SEARCHED])
def test_no_number_of_pushes_hides_a_regression_in_silence(lost: World, pushes: int) -> None:
    measure_open(lost, 200)
    for number in range(1, pushes):
        lost.upload(200 + number, head_of(lost), "pull_request", head_branch="branch-1")
    done = measure_open(lost, 300)
    if pushes < SEARCHED:
        assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    else:
        assert f"more than {SEARCHED} earlier measurements, and older ones are not read" in done.log
        assert "not all earlier measurements of this change could be looked up" in done.summary
        assert "measurement 2 of this change; before: inconclusive" in done.log, "those that were read count"


def test_the_report_on_a_fork_counts_its_earlier_heads(world: World) -> None:
    world.repository.files["suite.yaml"] = suite(4)
    assert world.push("good").code == 0
    assert world.pull_request("awful", fork=True).outputs["verdict"] == "regressed"
    fork = {"repository": "mallory/agents", "head_branch": "branch-1"}
    world.upload(100, head_of(world), "pull_request", conclusion="failure", **fork)
    done = measure_open(world, 200)
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    reported = report(world)
    assert (reported.code, reported.outputs["verdict"]) == (1, "regressed"), reported.log
    assert "measured as regressed before and has not passed since" in world.comments()[0]


def with_mood(world: World) -> tuple[dict[str, str], Path]:
    """The agent's file, and one outside of the repository that says how well it answers."""
    mood = world.folder / "mood"
    return {"agent.py": AGENT.replace('Path(__file__).with_name("behaviour.txt")', f"Path({str(mood)!r})")}, mood


@pytest.mark.parametrize("event", ["pull_request", "merge_group"])
def test_an_attempt_in_a_dirty_work_tree_counts_in_the_next(lost: World, event: str) -> None:
    """Nothing shows that the same files are measured again, so the second attempt runs all; the first one counts."""

    def launch(step: Step, environment: dict[str, str]) -> object:
        (step.workspace / "suite.md").write_text("a step before the gate's writes here")
        return as_process(step, environment)

    lost.launch = launch  # type: ignore[assignment]
    files, mood = with_mood(lost)
    lost.repository.files |= files
    mood.write_text("awful")
    environment = {"GITHUB_RUN_ID": "300"}
    if event == "pull_request":
        done = lost.pull_request("any", 2, environment=environment)
    else:
        done, _ = lost.queue("any", 2, environment=environment)
    assert done.outputs["verdict"] == "regressed", done.log
    step = lost.last
    lost.upload(300, step.sha if event == "merge_group" else lost.fake.pulls[2]["head"]["sha"], event)
    mood.write_text("slip")
    environment |= {"GITHUB_RUN_ATTEMPT": "2"}
    done = lost.step(event, dict(step.payload), step.ref, step.sha, inputs={"trials": "1"}, environment=environment)
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    for told in ("Measurement 2 of this change (before: regressed)", "attempt 2 runs all trials"):
        assert told in done.summary


def test_a_second_attempt_in_the_merge_queue_continues_an_agent_behind_an_address(world: World, served: Served) -> None:
    config = CONFIG.replace('{python: "agent:answer", concurrency: 4}', f'{{http: "{served.url}", retries: 0}}')
    config = config.replace(
        "tool_trajectory_avg_score: {threshold: 0.5, match_type: IN_ORDER}", "contains: {values: [Done]}"
    )
    world.repository.files["gate.yaml"] = config
    assert world.push("good").code == 0
    served.answer = lambda number: (200, "Done." if number % 3 else "no idea")
    done, group = world.queue("good", environment={"GITHUB_RUN_ID": "300"})
    assert done.code == 1, done.log
    world.upload(300, group, "merge_group", conclusion="failure")
    served.answer, step = (lambda _number: (200, "Done.")), world.last
    environment = {"GITHUB_RUN_ID": "300", "GITHUB_RUN_ATTEMPT": "2"}
    done = world.step("merge_group", dict(step.payload), step.ref, step.sha, environment=environment)
    assert done.code == 1 and "of attempt 1; nothing new was run" in done.summary, done.log


def test_what_was_merged_from_the_same_branch_is_no_measurement_of_this_change(lost: World) -> None:
    lost.merge(environment={"GITHUB_RUN_ID": "150"})
    assert lost.push("good", before=lost.tip).code == 0
    head, merge = push_again(lost, behaviour__txt="slip", agent__py=f"{AGENT}# anew\n")
    pull = lost.fake.add_pull(2, head, branch="branch-1", updated_at="2026-01-04T00:00:00Z")
    inputs, environment = {"trials": "1"}, {"GITHUB_RUN_ID": "300"}
    payload = {"action": "opened", "pull_request": pull}
    done = lost.step("pull_request", payload, "refs/pull/1/merge", merge, inputs=inputs, environment=environment)
    assert (done.code, done.outputs["verdict"]) == (0, "inconclusive"), done.log
    assert "measurement 2" not in done.log
