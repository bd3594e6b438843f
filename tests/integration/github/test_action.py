"""The action from event to comment: real processes, real git, a GitHub that checks both sides, all but the image."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gate.action.publish import OUTPUTS
from tests.integration.github.job import AGENT, CONFIG, Done, git, suite
from tests.integration.github.scenarios import World, report
from tests.unit.reports.harmless import findings
from tests.unit.reports.hostile import CORPUS

pytestmark = pytest.mark.slow


def test_a_push_to_the_default_branch_saves_the_baseline(world: World) -> None:
    done = world.push("good")
    assert done.code == 0, done.log
    assert done.outputs["verdict"] == "pass"
    assert done.outputs["exit_code"] == "0"
    assert git(world.repository.remote, "ls-tree", "-r", "--name-only", "gate-baselines")
    assert world.comments() == []


def test_a_sound_change_passes_with_a_comment_that_says_so(recorded: World) -> None:
    done = recorded.pull_request("good")
    assert done.code == 0, done.log
    assert done.outputs["verdict"] == "pass"
    assert done.outputs["baseline_sha"] == git(recorded.repository.remote, "rev-parse", "main")
    assert done.outputs["baseline_distance"] == "0"
    assert done.outputs["regressions"] == "0"
    assert float(done.outputs["cost_usd"]) > 0
    [comment] = recorded.comments()
    assert "support" in comment
    assert done.outputs["comment_url"].startswith("https://")
    assert (recorded.last.workspace / done.outputs["junit_path"]).read_text().startswith("<?xml")
    assert "<html" in (recorded.last.workspace / done.outputs["report_path"]).read_text()
    assert "support" in done.summary
    assert done.annotations("error") == []


def test_a_regression_fails_with_annotations_at_the_cases_lines(recorded: World) -> None:
    done = recorded.pull_request("bad")
    assert done.code == 1, done.log
    assert done.outputs["verdict"] == "regressed"
    assert done.outputs["exit_code"] == "1"
    assert int(done.outputs["regressions"]) >= 1
    [comment] = recorded.comments()
    assert comment.splitlines()[1].startswith("### ❌")
    assert done.annotations("error")
    remarks = done.annotations("error", "warning")
    placed = [properties for _, properties, _ in remarks if "file" in properties]
    assert len(placed) >= 9
    for properties in placed:
        line = (recorded.last.workspace / properties["file"]).read_text().splitlines()[int(properties["line"]) - 1]
        case = properties["title"].split(": ")[1].split()[0]
        assert f"id: {case}," in line
    assert all("the agent speaks" not in message for _, _, message in remarks)


def test_what_the_agent_prints_is_never_a_command(recorded: World) -> None:
    done = recorded.pull_request("good")
    assert not [
        command for command in done.annotations() if "agent speaks" in command[2] or "other stream" in command[2]
    ]


def test_a_change_that_breaks_the_suite_fails_without_any_baseline(world: World) -> None:
    base = world.repository.commit("good")
    done = world.pull_request("awful")
    assert done.code == 1, done.log
    assert done.outputs["verdict"] == "regressed"
    assert done.outputs["baseline_sha"] == base


def test_why_the_job_failed_is_among_the_ten_errors_that_the_runner_shows(world: World) -> None:
    """More cases fail than it shows, and the baseline is refused: that comes last, and must not be the one dropped."""
    hook = world.repository.remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nwhile read a b c; do case $c in *gate-baselines) exit 1;; esac; done\n")
    hook.chmod(0o755)
    done = world.push("awful")
    errors = done.annotations("error")
    assert len(errors) == 10, done.log
    assert errors[0][1]["title"] == "Agent Gate" and "gate-baselines" in errors[0][2]
    assert errors[-1][1]["title"] == "and more"


def test_a_token_that_no_request_can_carry_changes_no_verdict(recorded: World) -> None:
    done = recorded.pull_request("good", inputs={"token": ""})
    assert done.code == 0, done.log
    assert "unexpected" not in done.log and "Illegal header" not in done.log
    [said] = {
        said for _, where, said in done.annotations("warning") if where.get("title", "").endswith("not published")
    }
    assert "Authorization cannot be sent: the token is empty, or has characters that no token has" in said


def test_a_folder_of_shards_that_has_the_workspace_in_it_is_refused(recorded: World) -> None:
    done = recorded.pull_request("good", inputs={"shards": "../.."})
    assert done.code == 2, done.log
    [(_, _, said)] = done.annotations("error")
    assert said.startswith("with: shards: ")


def test_no_trials_at_all_are_refused(recorded: World) -> None:
    done = recorded.pull_request("good", inputs={"trials": "0"})
    assert done.code == 2, done.log


def test_without_a_baseline_a_sound_change_passes_and_says_so(world: World) -> None:
    base = world.repository.commit("good")
    done = world.pull_request("good")
    assert done.code == 0, done.log
    assert done.outputs["baseline_sha"] == base
    assert "run alongside this change" in world.comments()[0]


def test_a_missing_baseline_fails_where_asked(world: World) -> None:
    world.repository.commit("good")
    done = world.pull_request("good", inputs={"on_missing_baseline": "fail"})
    assert done.code == 4, done.log
    assert done.outputs["exit_code"] == "4"


def test_inconclusive_warns_or_blocks_as_asked(world: World) -> None:
    world.repository.files["suite.yaml"] = suite(4)
    assert world.push("good").code == 0
    warned = world.pull_request("slip", 1, inputs={"trials": "1"})
    assert (warned.code, warned.outputs["verdict"]) == (0, "inconclusive"), warned.log
    blocked = world.pull_request("slip", 2, inputs={"trials": "1", "on_inconclusive": "block"})
    assert (blocked.code, blocked.outputs["verdict"]) == (1, "inconclusive"), blocked.log


def test_an_agent_that_is_down_is_not_measured(recorded: World) -> None:
    done = recorded.pull_request("down")
    assert done.code == 3, done.log
    assert done.outputs["verdict"] == "error"
    assert git(recorded.repository.remote, "rev-list", "--count", "gate-baselines") == "1"


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"on_inconclusive": "wran"}, "warn"),
        ({"config": "gte.yaml"}, "gte.yaml"),
    ],
)
def test_a_bad_input_says_what_is_meant(world: World, inputs: dict[str, str], said: str) -> None:
    world.repository.commit("good")
    done = world.pull_request("good", inputs=inputs)
    assert done.code == 2, done.log
    [(_, _, message)] = done.annotations("error")
    assert said in message
    assert done.outputs["exit_code"] == "2"
    assert said in done.summary
    assert "Traceback" not in done.log


def test_a_bad_configuration_is_one_line(recorded: World) -> None:
    done = recorded.pull_request("good", files={"gate__yaml": CONFIG + "sweet: true\n"})
    assert done.code == 2, done.log
    [(_, _, message)] = done.annotations("error")
    assert "sweet" in message


def test_pull_request_target_is_refused(recorded: World) -> None:
    done = recorded.pull_request("good", event="pull_request_target")
    assert done.code == 2
    assert "pull_request_target" in done.annotations("error")[0][2]
    assert recorded.comments() == []


def test_a_token_that_only_reads_leaves_the_verdict_and_says_the_line_to_add(recorded: World) -> None:
    done = recorded.pull_request("good", inputs={"token": "reader"})
    assert done.code == 0, done.log
    assert any("pull-requests: write" in message for _, _, message in done.annotations("warning"))
    assert done.outputs["comment_url"] == ""


def test_failing_to_publish_is_the_exit_code_where_asked(recorded: World) -> None:
    done = recorded.pull_request("good", 1, inputs={"token": "reader", "on_publish_error": "fail"})
    assert (done.code, done.outputs["exit_code"]) == (5, "5"), done.log
    worse = recorded.pull_request("bad", 2, inputs={"token": "reader", "on_publish_error": "fail"})
    assert worse.code == 1, worse.log


def test_the_comment_is_updated_by_a_later_run(recorded: World) -> None:
    recorded.pull_request("good")
    pull, step = recorded.fake.pulls[1], recorded.last
    again = recorded.step(
        "pull_request",
        {"action": "synchronize", "pull_request": pull},
        step.ref,
        step.sha,
        environment={"GITHUB_RUN_ID": "200"},
    )
    assert again.code == 0, again.log
    assert len(recorded.comments()) == 1


def test_no_comment_where_none_is_wanted(recorded: World) -> None:
    assert recorded.pull_request("good", inputs={"comment": "false"}).code == 0
    assert recorded.comments() == []


def test_jobs_of_a_matrix_keep_apart_by_name(world: World) -> None:
    """One configuration, two models: neither overwrites the other's baseline or comment."""
    for name, behaviour in (("small", "bad"), ("large", "good")):
        assert world.push(behaviour, inputs={"name": name}).code == 0
    regressed = world.pull_request("bad", 1, inputs={"name": "large"})
    sound = world.step(
        "pull_request",
        {"action": "synchronize", "pull_request": world.fake.pulls[1]},
        world.last.ref,
        world.last.sha,
        inputs={"name": "small"},
    )
    assert (regressed.code, sound.code) == (1, 0), (regressed.log, sound.log)
    assert len(world.comments()) == 2


# --- the base's rules ------------------------------------------------------------------------------


def test_a_change_cannot_loosen_the_criteria_it_is_judged_by(world: World) -> None:
    """It lowers the threshold, takes out what is blocking, and quarantines the cases it breaks."""
    world.repository.commit("good")
    loose = CONFIG.replace("threshold: 0.5", "threshold: 0.01")
    loose += "quarantine:\n" + "".join(
        f"  - {{case: refund-{n}, owner: mallory, reason: trust me, expires: 2099-01-01}}\n" for n in range(24)
    )
    done = world.pull_request("awful", files={"gate__yaml": loose})
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    [comment] = world.comments()
    assert "threshold: 0.5 → 0.01" in comment
    assert "once it is merged" in comment


def test_a_change_can_tighten_the_criteria_it_is_judged_by(world: World) -> None:
    world.repository.commit("bad")
    assert world.pull_request("bad", 1).code == 0
    tight = CONFIG.replace("threshold: 0.5", "threshold: 0.95")
    done = world.pull_request("bad", 2, files={"gate__yaml": tight})
    assert (done.code, done.outputs["verdict"]) == (1, "below_threshold"), done.log


def test_looser_criteria_hold_once_they_are_merged(world: World) -> None:
    before = world.repository.commit("good")
    done = world.push("good", before=before, files={"gate__yaml": CONFIG.replace("threshold: 0.5", "threshold: 0.01")})
    assert done.code == 0, done.log
    assert "once it is merged" not in done.summary


# --- labels ---------------------------------------------------------------------------------------


LINK_IN_THE_WAY = """
OUT = Path(__file__).with_name("out")
if BEHAVIOUR == "bad" and OUT.is_dir() and not OUT.is_symlink():
    OUT.rename("moved")
    OUT.symlink_to("moved")


def answer"""


def test_a_report_that_cannot_be_written_is_said_and_no_label_accepts_it(recorded: World) -> None:
    files = recorded.repository.files
    files["agent.py"] = files["agent.py"].replace("\ndef answer", LINK_IN_THE_WAY)
    files["gate.yaml"] = CONFIG.replace("concurrency: 4", "concurrency: 1") + "reports: {json: out/report.json}\n"
    assert recorded.push().code == 0
    done = recorded.pull_request("bad")
    assert done.code == 1 and "a report could not be written" in done.annotations("error")[0][2], done.log
    recorded.fake.set_label(1, "gate:accept", "wendy", "2026-01-02T00:00:00Z")
    done = labelled(recorded, "gate:accept", "wendy")
    assert (done.code, done.outputs["verdict"]) == (3, "regressed"), done.log
    assert "a report could not be written" in done.summary


def test_log_and_page_of_a_pull_request_name_the_label_that_accepts(recorded: World) -> None:
    """A blocked change cannot be merged first."""
    done = recorded.pull_request("bad")
    page = (recorded.last.workspace / done.outputs["report_path"]).read_text(encoding="utf-8")
    for told in (" ".join(done.log.split()), page.replace("<wbr>", "")):
        assert "gate:accept" in told and "merge it" not in told, told


def test_a_writers_label_accepts_a_regression_and_says_who(recorded: World) -> None:
    first = recorded.pull_request("bad")
    assert first.code == 1
    recorded.fake.set_label(1, "gate:accept", "wendy", "2026-01-02T00:00:00Z")
    pull, step = recorded.fake.pulls[1], recorded.last
    payload = {
        "action": "labeled",
        "label": {"name": "gate:accept"},
        "sender": {"login": "wendy"},
        "pull_request": pull,
    }
    done = recorded.step("pull_request", payload, step.ref, step.sha, environment={"GITHUB_RUN_ID": "200"})
    assert done.code == 0, done.log
    assert done.outputs["verdict"] == "regressed"
    assert "wendy" in recorded.comments()[0]
    assert done.annotations("error") == []


@pytest.mark.parametrize("threshold", [0.5, 0.01])
def test_the_label_accepts_no_missed_threshold_that_a_regression_outranks(recorded: World, threshold: float) -> None:
    """Nor one that the change itself has lowered: the default branch's still is missed."""
    rules = CONFIG.replace("threshold: 0.5", f"threshold: {threshold}")
    first = recorded.pull_request("broken-20", files={"gate__yaml": rules})
    assert (first.code, first.outputs["verdict"]) == (1, "regressed"), first.log
    assert "sets `gate:accept`" not in first.summary, "it would do nothing"
    recorded.fake.set_label(1, "gate:accept", "wendy", "2026-01-02T00:00:00Z")
    done = labelled(recorded, "gate:accept", "wendy")
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    for told in (done.summary, recorded.comments()[0]):
        assert "the acceptance by wendy at 2026-01-02" in told and "does not count" in told
        assert "**Accepted:**" not in told


def test_a_readers_label_accepts_nothing(recorded: World) -> None:
    """Nothing but the permission tells their label from one that counts."""
    assert recorded.pull_request("bad").code == 1
    for who, code in (("reed", 1), ("stranger", 1), ("wendy", 0)):
        recorded.fake.set_label(1, "gate:accept", who, "2026-01-02T00:00:00Z")
        done = labelled(recorded, "gate:accept", who)
        assert done.code == code, done.log
        for told in (done.log, done.summary, recorded.comments()[0]):
            assert ("was set by someone who may not write to this repository" in told) is (code == 1), told


def labelled(world: World, name: str, sender: str, **changes: Any) -> Done:
    """The job of setting a label on pull request 1, on what its last job ran on."""
    pull, step = world.fake.pulls[1], world.last
    payload = {"action": "labeled", "label": {"name": name}, "sender": {"login": sender}, "pull_request": pull}
    return world.step(
        "pull_request", payload | changes, step.ref, step.sha, environment={"GITHUB_RUN_ID": str(200 + world.count)}
    )


def test_a_push_after_the_label_is_not_accepted(recorded: World) -> None:
    """Also where it came so soon that the job of the label ran on it."""
    assert recorded.pull_request("bad").code == 1
    labelled_head = dict(recorded.fake.pulls[1])
    recorded.fake.set_label(1, "gate:accept", "wendy", "2026-01-02T00:00:00Z")
    recorded.fake.pulls[1] = recorded.fake.pulls[1] | {"head": recorded.fake.pulls[1]["head"] | {"sha": "f" * 40}}
    done = labelled(recorded, "gate:accept", "wendy", pull_request=labelled_head)
    assert done.code == 1, done.log
    assert "it was set before the latest change" in done.log
    recorded.fake.pulls[1] = labelled_head | {"labels": recorded.fake.pulls[1]["labels"]}
    for name in ("bug", "gate:accept"):  # the label of another, and then its own
        done = labelled(recorded, name, "wendy")
        assert done.code == (0 if name == "gate:accept" else 1), done.log


def merged(world: World, behaviour: str, label_by: str) -> Done:
    """The push that merging a labelled pull request makes."""
    before = git(world.repository.remote, "rev-parse", "main")
    sha = world.repository.commit(behaviour)
    measured, labelled, closed = (
        f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}" for days in (3, 2, 1)
    )
    parts = {"state": "closed", "merged_at": closed, "merge_commit_sha": sha}
    world.fake.add_pull(7, "e" * 40, **parts)
    world.fake.add_run(70, "e" * 40, "pull_request", created_at=measured)
    world.fake.set_label(7, "gate:accept", label_by, labelled)
    payload = {"ref": "refs/heads/main", "before": before, "after": sha, "deleted": False}
    return world.step("push", payload, "refs/heads/main", sha)


def test_what_was_accepted_on_the_pull_request_is_accepted_on_the_default_branch(recorded: World) -> None:
    done = merged(recorded, "bad", "wendy")
    assert (done.code, done.outputs["verdict"]) == (0, "regressed"), done.log
    assert "wendy" in done.summary
    assert git(recorded.repository.remote, "rev-list", "--count", "gate-baselines") == "2", "it is the baseline now"
    assert recorded.pull_request("bad", 8).code == 0, "and what comes after is compared with it"


def test_the_merge_queue_is_measured_against_its_base_without_a_comment(recorded: World) -> None:
    done, _ = recorded.queue("bad")
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    assert done.outputs["baseline_sha"] == git(recorded.repository.remote, "rev-parse", "main")
    assert recorded.comments() == []


def test_what_was_accepted_on_the_pull_request_is_accepted_in_the_queue(recorded: World) -> None:
    recorded.fake.add_pull(2, "e" * 40)
    original = recorded.fake.add_pull

    def labelled(number: int, head: str, **parts: Any) -> Any:
        pull = original(number, head, **parts)
        recorded.fake.add_run(20, head, "pull_request", created_at="2025-12-31T00:00:00Z")
        recorded.fake.set_label(number, "gate:accept", "alice")
        return pull

    recorded.fake.add_pull = labelled  # type: ignore[method-assign]
    done, _ = recorded.queue("bad", 2)
    assert (done.code, done.outputs["verdict"]) == (0, "regressed"), done.log


def test_behind_a_loss_in_the_queue_it_counts_until_the_default_branch_has_stored_it(recorded: World) -> None:
    _, first = recorded.queue("bad")
    done, _ = recorded.queue("bad", 2, behind=first, depth=0)
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    assert "1 commit before the base: losses since then count, too, until its own is stored" in done.summary
    assert "**Next:** run again once the base's own baseline is stored, or fix it, or" in done.summary
    recorded.leave_queue(first)
    done, _ = recorded.queue("bad", 3)
    assert (done.code, done.outputs["verdict"]) == (0, "pass"), done.log


# --- releases -------------------------------------------------------------------------------------


def release(world: World, tag: str, behaviour: str) -> Done:
    sha = world.repository.commit(behaviour)
    git(world.repository.work, "tag", "-a", "-m", tag, tag)
    git(world.repository.work, "push", "-q", "origin", tag)
    payload = {"ref": f"refs/tags/{tag}", "before": "0" * 40, "after": sha, "deleted": False}
    return world.step("push", payload, f"refs/tags/{tag}", sha, depth=0)


def test_a_release_is_held_to_the_release_before_it(world: World) -> None:
    first = release(world, "v1", "good")
    assert (first.code, first.outputs["baseline_sha"]) == (0, ""), first.log
    tagged = git(world.repository.work, "rev-parse", "HEAD")
    world.push("bad", before=tagged)  # regressed on the way, and recorded: what comes next is compared with it
    second = release(world, "v2", "bad")
    assert (second.code, second.outputs["verdict"]) == (1, "regressed"), second.log
    assert second.outputs["baseline_sha"] == tagged


# --- forks: measured in one job, reported by another ----------------------------------------------


def test_a_fork_is_measured_without_a_comment_and_reported_by_the_trusted_half(recorded: World) -> None:
    measured = recorded.pull_request("bad", fork=True)
    assert measured.code == 1, measured.log
    assert recorded.comments() == []
    assert "workflow_run" in measured.log
    reported = report(recorded)
    assert reported.code == 1, reported.log
    assert reported.outputs["verdict"] == "regressed"
    assert reported.outputs["baseline_sha"] == git(recorded.repository.remote, "rev-parse", "main")
    [comment] = recorded.comments()
    assert comment.splitlines()[1].startswith("### ❌ `support`: "), "others may comment beside it"
    assert "| case | main | this change |" in comment


@pytest.mark.parametrize("place", ["import hashlib\n", "def answer(message):\n    "], ids=["starts", "answers"])
def test_a_fork_whose_agent_lacks_its_key_is_told_who_can_run_it(recorded: World, place: str) -> None:
    """Its author can neither fix that nor run the job again with more success."""
    keyed = AGENT.replace(
        place, f"{place}import os; os.environ['MODEL_KEY']\n" + " " * (len(place) - len(place.rstrip(" ")))
    )
    measured = recorded.pull_request("good", fork=True, files={"agent__py": keyed})
    assert measured.code == 3, measured.log
    reported = report(recorded, conclusion="failure")
    assert reported.code == 3, reported.log
    [comment] = recorded.comments()
    for told in (measured.summary, reported.summary, comment):
        assert "### 💥 Could not" in told
        assert "fork's job has no secrets: if the agent needs one, review the change" in told, told
    assert "[Run again](https://github.example/octo/agents/actions/runs/100)" in comment, "the run that measured"
    assert "[Full report](https://github.example/octo/agents/actions/runs/101)" in comment, "which has no artifact"
    if "answer" not in place:
        assert "did not finish measuring 'support'; its log has the reason" in reported.log


def test_the_report_compares_with_what_the_fork_was_merged_into(recorded: World) -> None:
    """Not with where it began: what the base branch lost or gained since is not the fork's doing."""
    work = recorded.repository.work
    git(work, "branch", "began-here")
    recorded.push("bad", before=recorded.tip)
    git(work, "checkout", "-q", "-b", "change-1", "began-here")
    (work / "README.md").write_text("hello")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "readme")
    head = git(work, "rev-parse", "HEAD")
    git(work, "checkout", "-q", "--detach", "origin/main")
    git(work, "merge", "-q", "--no-ff", "-m", "merge", head)
    merge = git(work, "rev-parse", "HEAD")
    git(work, "push", "-q", "origin", "HEAD:refs/pull/1/merge", f"{head}:refs/pull/1/head")
    pull = recorded.fake.add_pull(1, head, head_repository="mallory/agents")
    payload = {"action": "opened", "pull_request": pull}
    measured = recorded.step("pull_request", payload, "refs/pull/1/merge", merge, inputs={"token": "reader"})
    assert measured.code == 0, measured.log
    reported = report(recorded)
    assert (reported.code, reported.outputs["baseline_sha"]) == (0, recorded.tip), reported.log


def test_the_trusted_half_judges_by_the_bases_criteria(recorded: World) -> None:
    """A fork that lowers its threshold passes its own job, and fails the report."""
    loose = CONFIG.replace("threshold: 0.5", "threshold: 0.01").replace("gate: {alpha: 0.05}", "gate: {alpha: 0.0001}")
    recorded.pull_request("awful", fork=True, files={"gate__yaml": loose})
    reported = report(recorded)
    assert reported.code == 1, reported.log
    assert reported.outputs["verdict"] in ("below_threshold", "regressed")


def test_a_record_measured_by_other_criteria_is_refused(recorded: World) -> None:
    """The base has changed its criteria since; what was measured by the old ones says nothing of the new."""
    recorded.pull_request("bad", fork=True)
    measured = recorded.last
    recorded.repository.commit("good", gate__yaml=CONFIG.replace("IN_ORDER", "ANY_ORDER"))
    recorded.last = measured
    reported = report(recorded)
    assert reported.code == 7, reported.log
    assert "Could not decide" in recorded.comments()[0].splitlines()[2]


def test_an_artifact_that_is_no_archive_is_refused(recorded: World) -> None:
    recorded.pull_request("good", fork=True)
    reported = report(recorded, b"not an archive")
    assert reported.code == 7, reported.log
    assert reported.outputs["exit_code"] == "7"
    assert "Could not decide" in recorded.comments()[0].splitlines()[2]


def test_a_record_that_was_tampered_with_is_refused(recorded: World) -> None:
    recorded.pull_request("bad", fork=True)
    [path] = (recorded.last.workspace / "gate-results").glob("*.jsonl")
    path.write_text(path.read_text().replace('"refund-1"', '"refund-1' + "x" * 10 + '"', 1))
    reported = report(recorded)
    assert reported.code == 7, reported.log


# --- shards ---------------------------------------------------------------------------------------


def test_shards_are_measured_apart_and_judged_as_one(recorded: World, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    head, merge = recorded.repository.pull_request(1, "bad")
    pull = recorded.fake.add_pull(1, head, updated_at="2026-01-01T00:00:00Z")
    payload = {"action": "synchronize", "pull_request": pull}
    for index in (1, 2):
        part = recorded.step("pull_request", payload, "refs/pull/1/merge", merge, inputs={"shard": f"{index}/2"})
        assert part.code == 0, part.log
        [path] = (recorded.last.workspace / "gate-results").glob("*.jsonl")
        path.rename(parts / f"{index}.jsonl")
    assert recorded.comments() == []
    joined = recorded.step("pull_request", payload, "refs/pull/1/merge", merge, inputs={"shards": str(parts)})
    assert joined.code == 1, joined.log
    assert joined.outputs["verdict"] == "regressed"
    assert len(recorded.comments()) == 1


# --- hostile text ---------------------------------------------------------------------------------

ECHO = """
def answer(message):
    return {"output": message, "tool_calls": [{"name": message, "arguments": {message: message}, "result": message}]}
"""


def test_nothing_that_a_case_or_an_agent_says_becomes_more_than_text(world: World) -> None:
    """Hostile ids, inputs, tool names, arguments and responses, through comment, summary, annotations and outputs."""
    texts = [text for text in CORPUS if text.strip()]
    cases = [
        {
            "id": f"{text[:200]} {number}",
            "input": text,
            "tools": [{"name": f"{text[:200]}!", "args": {text[:200]: text}}],
            "response": text[::-1],
        }
        for number, text in enumerate(texts)
    ]
    world.repository.files |= {"agent.py": ECHO, "suite.yaml": json.dumps({"cases": cases})}
    world.repository.commit("good")
    done = world.pull_request("good")
    assert done.code == 1, done.log
    [comment] = world.comments()
    ours = re.findall(r" ?(?:· )?\[[A-Z][a-z ]+\]\(https://github\.example/\S+/actions/runs/100\S*\)", comment)
    assert len(ours) == 2
    for markdown in (comment.partition("\n")[2].replace(ours[0], "").replace(ours[1], ""), done.summary):
        headings = sum(line.startswith("#") for line in markdown.splitlines())
        assert findings(markdown, headings=headings) == []
    assert {command for command, _, _ in done.reader.commands} == {"stop-commands", "error"}
    assert [p for _, p, _ in done.annotations() if set(p) - {"title", "file", "line"}] == []
    assert {p.get("file") for _, p, _ in done.annotations()} <= {"suite.yaml", None}
    assert (done.outputs["verdict"], done.outputs["exit_code"]) == ("below_threshold", "1")
    assert set(done.outputs) == set(OUTPUTS)
