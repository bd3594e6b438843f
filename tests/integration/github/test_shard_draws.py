"""A change that is measured in parts on several machines, for one head after the other: no push is a silent chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.records import read_header
from tests.acceptance.test_stored_epochs import serving
from tests.integration.github.job import CONFIG, Done
from tests.integration.github.scenarios import World
from tests.integration.github.test_reuse import push_again

pytestmark = pytest.mark.slow


def parts_of(world: World, run: int) -> Path:
    return Path(world.folder) / f"parts-{run}"


def measured(world: World, run: int) -> set[str]:
    """The measurements that the parts are of: what continues a record keeps its name."""
    return {read_header(path).run_id for path in parts_of(world, run).rglob("*.jsonl")}


def measure(world: World, head: str, merge: str, run: int) -> Done:
    """Both parts and what joins them, as the guide's jobs: each artifact has a name of its own."""
    payload = {"action": "synchronize", "pull_request": world.fake.pulls[1]}
    ref, environment = "refs/pull/1/merge", {"GITHUB_RUN_ID": str(run)}
    parts = parts_of(world, run)
    for index in (1, 2):
        inputs = {"shard": f"{index}/2", "artifact": f"part-{index}"}
        part = world.step("pull_request", payload, ref, merge, inputs=inputs, environment=environment)
        assert part.code == 0, part.log
        world.upload(run, head, "pull_request", name=f"part-{index}", conclusion="failure", head_branch="branch-1")
        [path] = (world.last.workspace / "gate-results").glob("*.jsonl")
        (parts / str(index)).mkdir(parents=True)
        path.rename(parts / str(index) / path.name)
    done = world.step("pull_request", payload, ref, merge, inputs={"shards": str(parts)}, environment=environment)
    world.upload(run, head, "pull_request")
    return done


def opened(world: World, behaviour: str) -> tuple[str, str]:
    head, merge = world.repository.pull_request(1, behaviour)
    world.fake.add_pull(1, head, branch="branch-1", updated_at="2026-01-01T00:00:00Z")
    return head, merge


def test_each_part_continues_its_own_of_the_earlier_head(recorded: World) -> None:
    assert measure(recorded, *opened(recorded, "bad"), 100).code == 1
    done = measure(recorded, *push_again(recorded), 200)
    assert done.code == 1, done.log
    assert measured(recorded, 200) == measured(recorded, 100) and len(measured(recorded, 100)) == 2
    assert "of an earlier commit of this change" in done.summary and "nothing new was run" in done.summary
    assert "measurement" not in done.summary


def test_what_may_be_another_agent_is_counted_where_the_parts_are_joined(world: World) -> None:
    with serving() as served:
        config = CONFIG.replace('{python: "agent:answer", concurrency: 4}', f'{{http: "{served.url}", retries: 0}}')
        world.repository.files["gate.yaml"] = config.replace(
            "tool_trajectory_avg_score: {threshold: 0.5, match_type: IN_ORDER}", "contains: {values: [Done]}"
        )
        assert world.push("good").code == 0
        served.answer = lambda number: (200, "Done." if number % 3 else "no idea")
        assert measure(world, *opened(world, "good"), 200).code == 1
        served.answer = lambda _number: (200, "Done.")
        done = measure(world, *push_again(world), 300)
        assert done.code == 0, done.log
        [comment] = world.comments()
        assert "Measurement 2 of this change (before: regressed)" in comment.replace("\\", "")


def test_parts_need_no_proof_where_the_job_that_joins_them_requires_one(strict: World) -> None:
    """The baseline's proof is in that job's artifact; a part has another, and decides nothing."""
    before = len(strict.fake.calls)
    done = measure(strict, *opened(strict, "bad"), 200)
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    assert "unproven" not in done.summary
    listed = [call.query["name"] for call in strict.fake.calls[before:] if call.path.endswith("/artifacts")]
    assert not [name for name in listed if name.startswith("part-")], "a part asked for proofs"
