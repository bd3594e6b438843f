"""An agent without a fingerprint, measured several times for one pull request: no push is a silent further chance."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.test_stored_epochs import Served, serving
from tests.integration.github.job import CONFIG
from tests.integration.github.scenarios import World
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
