"""Events are placed by the platform's own sample payloads, and by crafted ones for what has no sample."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.hosts.events import ZERO_SHA, Activity, BaseKind, Labelled, Mode, activity

SAMPLES: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "integration" / "github" / "webhooks.json").read_text(encoding="utf-8")
)
SHA = "a" * 40


def sample(event: str, action: str | None = None) -> dict[str, Any]:
    found = next(s for s in SAMPLES[event] if action is None or s.get("action") == action)
    return copy.deepcopy(found)


def place(event: str, payload: dict[str, Any], ref: str = "") -> Activity:
    return activity(payload, {"GITHUB_EVENT_NAME": event, "GITHUB_REF": ref, "GITHUB_SHA": SHA})


@pytest.mark.parametrize("payload", SAMPLES["pull_request"], ids=lambda s: s["action"])
def test_every_sample_of_a_pull_request_runs_unless_it_is_closed(payload: dict[str, Any]) -> None:
    found = place("pull_request", payload)
    if payload["action"] == "closed":
        assert found.mode is Mode.REFUSED
        assert "closed" in found.hint
        return
    pull = payload["pull_request"]
    assert found.mode is Mode.RUN
    assert found.pull_request == pull["number"]
    assert found.head == pull["head"]["sha"]
    assert (found.base, found.base_commit) == (BaseKind.PARENT, pull["base"]["sha"])
    assert not found.is_fork
    assert found.default_branch == payload["repository"]["default_branch"]


def test_a_pull_request_from_another_repository_is_a_fork() -> None:
    payload = sample("pull_request", "opened")
    payload["pull_request"]["head"]["repo"]["full_name"] = "mallory/hello-world"
    found = place("pull_request", payload)
    assert (found.mode, found.is_fork) == (Mode.RUN, True)
    assert "mallory/hello-world" in found.reason


def test_a_pull_request_from_a_deleted_fork_is_a_fork() -> None:
    payload = sample("pull_request", "synchronize")
    payload["pull_request"]["head"]["repo"] = None
    assert place("pull_request", payload).is_fork


def test_the_event_of_setting_a_label_says_which_by_whom_and_on_which_head() -> None:
    payload = sample("pull_request", "labeled")
    found = place("pull_request", payload)
    assert found.labelled == Labelled(payload["label"]["name"], payload["sender"]["login"])
    assert found.head == payload["pull_request"]["head"]["sha"]


@pytest.mark.parametrize("action", ["synchronize", "opened", "unlabeled", "edited", "reopened"])
def test_no_other_event_sets_a_label(action: str) -> None:
    payload = sample("pull_request", "labeled") | {"action": action}
    assert place("pull_request", payload).labelled is None


def test_pull_request_target_is_refused_whatever_it_carries() -> None:
    for payload in [*SAMPLES["pull_request"], {}]:
        found = place("pull_request_target", payload)
        assert found.mode is Mode.REFUSED
        assert "`pull_request`" in found.hint


@pytest.mark.parametrize("payload", SAMPLES["issue_comment"], ids=lambda s: s["action"])
def test_issue_comments_are_refused(payload: dict[str, Any]) -> None:
    assert place("issue_comment", payload).mode is Mode.REFUSED


def test_a_merge_group_is_measured_against_its_base() -> None:
    payload = sample("merge_group")
    found = place("merge_group", payload)
    group = payload["merge_group"]
    assert found.mode is Mode.RUN
    assert (found.base, found.base_commit, found.head) == (BaseKind.COMMIT, group["base_sha"], group["head_sha"])
    assert found.pull_request == 104
    assert found.labelled is None


def test_a_merge_group_of_an_unusual_branch_names_no_pull_request() -> None:
    payload = sample("merge_group")
    payload["merge_group"]["head_ref"] = "refs/heads/gh-readonly-queue/pr-x-1/whatever"
    assert place("merge_group", payload).pull_request is None


def test_a_destroyed_merge_group_is_refused() -> None:
    payload = sample("merge_group") | {"action": "destroyed"}
    assert place("merge_group", payload).mode is Mode.REFUSED


def branch_push(**changes: Any) -> dict[str, Any]:
    payload = next(s for s in SAMPLES["push"] if s["ref"].startswith("refs/heads/"))
    return copy.deepcopy(payload) | {"before": "b" * 40, "after": "c" * 40, "deleted": False} | changes


def test_a_push_to_the_default_branch_records() -> None:
    found = place("push", branch_push())
    assert (found.mode, found.base, found.base_commit, found.head) == (Mode.RECORD, BaseKind.BEFORE, "b" * 40, "c" * 40)


def test_a_push_elsewhere_runs_and_records_nothing() -> None:
    found = place("push", branch_push(ref="refs/heads/feature/master"))
    assert (found.mode, found.base) == (Mode.RUN, BaseKind.MERGE_BASE)


def test_the_first_push_of_a_branch_has_no_commit_before_it() -> None:
    found = place("push", branch_push(ref="refs/heads/new", before=ZERO_SHA))
    assert (found.mode, found.base, found.base_commit) == (Mode.RUN, BaseKind.MERGE_BASE, None)


def test_a_deleted_branch_is_refused() -> None:
    deleted = [s for s in SAMPLES["push"] if s["deleted"]]
    assert deleted
    for payload in [*deleted, branch_push(after=ZERO_SHA)]:
        assert place("push", payload).mode is Mode.REFUSED


def test_a_pushed_tag_is_a_release() -> None:
    payload = next(s for s in SAMPLES["push"] if s["ref"].startswith("refs/tags/") and not s["deleted"])
    found = place("push", payload)
    assert (found.mode, found.base, found.tag) == (Mode.RELEASE, BaseKind.PREVIOUS_RELEASE, "simple-tag")


@pytest.mark.parametrize("payload", SAMPLES["release"], ids=lambda s: s["action"])
def test_releases_are_gated_before_they_are_edited_or_deleted(payload: dict[str, Any]) -> None:
    found = place("release", payload)
    if payload["action"] in ("edited", "deleted"):
        assert found.mode is Mode.REFUSED
    else:
        assert (found.mode, found.tag, found.head) == (Mode.RELEASE, payload["release"]["tag_name"], SHA)


@pytest.mark.parametrize("event", ["workflow_dispatch", "repository_dispatch"])
def test_a_run_on_demand_records_on_the_default_branch_alone(event: str) -> None:
    payload = sample(event)
    default = payload["repository"]["default_branch"]
    on_default = place(event, payload, f"refs/heads/{default}")
    assert (on_default.mode, on_default.base, on_default.base_commit) == (Mode.RECORD, BaseKind.COMMIT, SHA)
    elsewhere = place(event, payload, "refs/heads/elsewhere")
    assert (elsewhere.mode, elsewhere.base) == (Mode.RUN, BaseKind.MERGE_BASE)
    assert place(event, payload, "refs/tags/v1").mode is Mode.RELEASE


def test_a_schedule_records() -> None:
    found = place("schedule", {"schedule": "0 3 * * *"}, "refs/heads/main")
    assert (found.mode, found.default_branch, found.head) == (Mode.RECORD, "main", SHA)


def triggered(**changes: Any) -> dict[str, Any]:
    payload = sample("workflow_run", "completed")
    payload["workflow_run"] |= {"event": "pull_request", "head_sha": "d" * 40, "head_branch": "patch-1"} | changes
    return payload


def test_the_run_of_a_fork_is_reported() -> None:
    fork = {"full_name": "mallory/fork", "id": 99}
    found = place("workflow_run", triggered(head_repository=fork, created_at="2026-01-01T00:00:30Z"))
    assert (found.mode, found.is_fork, found.head) == (Mode.REPORT, True, "d" * 40)
    assert found.run is not None
    assert (found.run.head_repository, found.run.head_repository_id, found.run.head_branch) == (
        "mallory/fork",
        99,
        "patch-1",
    )
    assert found.pull_request is None, "the pull request is asked for, never read from a payload that names others"
    assert found.labelled is None


def test_the_run_of_a_deleted_fork_is_still_a_fork() -> None:
    assert place("workflow_run", triggered(head_repository=None)).is_fork


@pytest.mark.parametrize(
    ("conclusion", "told"), [("cancelled", True), ("action_required", True), ("skipped", False), ("failure", False)]
)
def test_only_runs_that_were_stopped_or_wait_have_nothing_to_report(conclusion: str, told: bool) -> None:
    """A change may skip its own job, which GitHub calls a success."""
    run = place("workflow_run", triggered(conclusion=conclusion)).run
    assert run is not None and bool(run.unmeasured) is told


def test_the_run_of_the_repository_itself_is_no_fork() -> None:
    own = sample("workflow_run")["repository"]
    assert not place("workflow_run", triggered(head_repository=own)).is_fork


@pytest.mark.parametrize("cause", ["push", "schedule", "pull_request_target", "workflow_run"])
def test_runs_that_were_not_started_by_a_pull_request_are_refused(cause: str) -> None:
    found = place("workflow_run", triggered(event=cause))
    assert found.mode is Mode.REFUSED
    assert "workflow_run.event == 'pull_request'" in found.hint


def test_a_run_that_has_not_completed_is_refused() -> None:
    assert place("workflow_run", sample("workflow_run", "requested")).mode is Mode.REFUSED


def test_unknown_events_are_refused_and_the_known_ones_named() -> None:
    found = place("deployment", {})
    assert found.mode is Mode.REFUSED
    assert "pull_request" in found.hint


@pytest.mark.parametrize("event", ["pull_request", "push", "merge_group", "release", "workflow_run"])
def test_an_empty_payload_is_refused(event: str) -> None:
    assert place(event, {}).mode is Mode.REFUSED


@pytest.mark.parametrize("key", ["sender", "label"])
def test_a_label_that_nobody_set_is_refused(key: str) -> None:
    payload = sample("pull_request", "labeled")
    del payload[key]
    assert place("pull_request", payload).mode is Mode.REFUSED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)
)


@given(st.data())
def test_no_payload_makes_it_raise(data: st.DataObject) -> None:
    """Any value anywhere in any sample is placed or refused; and nothing makes it run what was unsafe."""
    event = data.draw(st.sampled_from(sorted(SAMPLES)))
    payload = copy.deepcopy(data.draw(st.sampled_from(SAMPLES[event])))
    node = payload
    while True:
        key = data.draw(st.sampled_from(sorted(node)))
        if isinstance(node[key], dict) and node[key] and data.draw(st.booleans()):
            node = node[key]
            continue
        node[key] = data.draw(JSON)
        break
    found = place(event, payload, "refs/heads/main")
    assert isinstance(found, Activity)
    if event == "issue_comment":
        assert found.mode is Mode.REFUSED
