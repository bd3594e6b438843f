"""Whoever may push a branch may rewrite the baselines: what they write proves nothing, and what was proven stays."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.baselines.ledger import Acceptance
from gate.baselines.ledger import read as read_ledger
from gate.baselines.ledger import write as write_ledger
from gate.baselines.proofs import proofs_of, write
from gate.baselines.union import unite
from gate.model import Score
from gate.records import Record, parse_record, record_lines
from tests.integration.github.conftest import FIRST, Measured
from tests.integration.github.fake_github import WORKFLOW, Answer, FakeGitHub
from tests.integration.github.job import AGENT, BLOCK, CONFIG, Done, as_process, git
from tests.integration.github.scenarios import World, archive_of, report

pytestmark = pytest.mark.slow

BRANCH = "gate-baselines"


@pytest.fixture
def world(proven: World) -> World:
    return proven


def tip(world: World) -> str:
    return world.tip


# --- the attacker ---------------------------------------------------------------------------------


def stored(world: World) -> tuple[str, Record]:
    """The path and content of the newest commit's record on the branch."""
    names = git(world.repository.remote, "ls-tree", "-r", "--name-only", BRANCH).splitlines()
    [path] = [name for name in names if tip(world) in name]
    return path, parse_record(git(world.repository.remote, "show", f"{BRANCH}:{path}").encode() + b"\n")


def awful(record: Record) -> Record:
    """The same record of an agent that never did anything right."""
    trials = [replace(t, scores={name: Score(0.0) for name in t.scores}) for t in record.trials]
    return replace(record, trials=tuple(trials))


def rewrite(world: World, files: dict[str, bytes | None]) -> None:
    """Pushes these files over the branch; None removes one."""
    clone = world.folder / f"attacker-{len(list(world.folder.iterdir()))}"
    git(world.folder, "clone", "-q", "-b", BRANCH, world.repository.remote.as_uri(), str(clone))
    for name, content in files.items():
        if content is None:
            (clone / name).unlink()
        else:
            (clone / name).write_bytes(content)
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "Baseline of support")
    git(clone, "push", "-q", "--force", "origin", BRANCH)


def forge(world: World) -> Record:
    """Rewrites the baseline as that of an agent that never passes; returns the forged record."""
    path, record = stored(world)
    forged = awful(record)
    rewrite(world, {path: b"".join(record_lines(forged))})
    return forged


def packed(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def in_artifact(world: World, record: Record, *, carried: bool = False) -> bytes:
    """What a job that measured this record would leave; ``carried``: a later job, which knows that it is proven."""
    if carried:
        return packed({"proofs.json": write(proofs_of(record))})
    [name] = [n for n in zipfile.ZipFile(io.BytesIO(measured_archive(world))).namelist() if n.endswith(".jsonl")]
    return packed({name: b"".join(record_lines(record))})


def measured_archive(world: World) -> bytes:
    [artifact] = world.fake.artifacts[FIRST]
    return world.fake.contents[artifact["id"]]


def verdict(done: Done) -> tuple[int, str]:
    return done.code, done.outputs["verdict"]


# --- what is proven -------------------------------------------------------------------------------


def test_a_baseline_that_the_default_branch_measured_is_compared_with_and_nothing_is_said(world: World) -> None:
    done = world.pull_request("good")
    assert verdict(done) == (0, "pass"), done.log
    assert done.outputs["baseline_sha"] == tip(world)
    assert "unproven" not in done.log + done.summary


def test_an_unproven_baseline_is_called_so_in_every_report(unproven: World) -> None:
    done = unproven.pull_request("good")
    assert verdict(done) == (0, "pass"), done.log
    folder = unproven.last.workspace / "gate-results"
    [comment] = unproven.comments()
    texts = [done.log, done.summary, comment]
    texts += [(folder / name).read_text() for name in ("report.html", "report.md", "report.json")]
    assert [text.count("unproven") > 0 for text in texts] == [True] * 6
    assert tip(unproven)[:7] in done.summary
    for text in (comment, done.summary):
        assert "against an unproven baseline" in text.partition("<details>")[0].lower(), text


def test_a_rewritten_baseline_lets_nothing_pass(world: World) -> None:
    forge(world)
    done = world.pull_request("awful")
    assert done.outputs["verdict"] not in ("pass", ""), done.log
    assert "somebody has rewritten it" in done.summary


def test_without_the_proof_the_same_forgery_would_pass(unproven: World) -> None:
    """What the others rest on: the forged baseline does let the agent through where nobody asks for a proof."""
    unproven.repository.files["gate.yaml"] = CONFIG.replace("{store: git}", "{store: git, require_provenance: off}")
    assert unproven.push("good").code == 0  # only the base's own record excuses a missed threshold
    forge(unproven)
    done = unproven.pull_request("awful")
    assert done.code == 0, done.log


def test_a_rewritten_baseline_ends_a_strict_job(strict: World) -> None:
    forge(strict)
    done = strict.pull_request("awful")
    assert done.code == 4, done.log
    assert "somebody has rewritten it" in done.log


def test_the_merge_queue_is_held_to_what_is_proven_and_proves_nothing_by_itself(strict: World) -> None:
    """Its commit counts from when the default branch's own job has measured and uploaded it, and takes nothing over."""
    before = tip(strict)
    done, group = strict.queue("good", environment={"GITHUB_RUN_ID": "201"})
    assert verdict(done) == (0, "pass"), done.log
    assert done.outputs["baseline_sha"] == before
    strict.upload(201, group, "merge_group")
    merged = strict.leave_queue(group, environment={"GITHUB_RUN_ID": "301"})
    assert merged.code == 0, merged.log
    assert "continues a record" not in merged.summary, "nobody had reviewed what the queue's job found in its caches"
    left = archive_of(strict.last.workspace)
    assert strict.queue("good", 2)[0].outputs["baseline_sha"] == before, "the new one is not proven yet"
    strict.upload(301, group, "push", left)
    assert strict.queue("good", 3)[0].outputs["baseline_sha"] == group


def test_a_forgery_lets_nothing_through_the_merge_queue(strict: World) -> None:
    forge(strict)
    assert strict.queue("awful")[0].code == 4


def test_a_forgery_before_the_next_job_of_the_default_branch_does_not_hide_its_loss(world: World) -> None:
    """The merge of the bad agent is held to what was proven, not to what lies on the branch."""
    forge(world)
    before = tip(world)
    done = world.push("awful", before=before, depth=0, environment={"GITHUB_RUN_ID": "95"})
    assert done.code == 1, done.log
    assert "somebody has rewritten it" in done.summary


def test_a_removed_baseline_lets_nothing_pass(world: World) -> None:
    path, _ = stored(world)
    rewrite(world, {path: None})
    done = world.pull_request("good")
    assert done.outputs["verdict"] == "not_compared", done.log
    assert "its record was proven, and is gone from the store" in done.summary


def test_once_all_baselines_are_removed_the_next_job_of_the_default_branch_stores_another(world: World) -> None:
    git(world.repository.remote, "branch", "-D", BRANCH)
    for done in (world.pull_request("good"), world.measure(91)):
        assert verdict(done) == (1, "not_compared"), done.log
        assert "gone from the store; the default branch's next job stores another" in done.summary
    assert verdict(world.measure(92)) == (0, "pass")
    git(world.repository.work, "fetch", "-q", "origin")
    assert verdict(world.pull_request("good", 2)) == (0, "pass")
    assert verdict(world.pull_request("bad", 3)) == (1, "regressed")


def test_an_added_run_is_left_out_of_a_proven_record(world: World) -> None:
    """Trials that say they are a second run of the commit, by whoever pushed them there."""
    path, record = stored(world)
    more = replace(awful(record), header=replace(record.header, run_id="f" * 32, created=record.header.created + 1))
    both, _ = unite(record, more)
    assert len(both.trials) == 2 * len(record.trials)
    moved = replace(both, header=replace(both.header, created=record.header.created))
    rewrite(world, {path: b"".join(record_lines(moved))})
    done = world.pull_request("broken-12")
    assert done.outputs["verdict"] == "regressed", done.log
    assert "runs that nothing proves are left out" in done.summary


def test_an_acceptance_that_nobody_proves_moves_no_anchor_where_proofs_are_required(strict: World) -> None:
    """Somebody accepts a bad commit by writing a line: the ledger is that of the jobs."""
    before = tip(strict)
    bad = strict.push("bad", before=before, depth=0, environment={"GITHUB_RUN_ID": "92"})
    assert bad.code == 1
    strict.upload(92, tip(strict), "push", conclusion="failure")
    path, lines = ledger(strict)
    accepted = Acceptance(lines[0].suite, tip(strict), "wendy", lines[-1].at + 1, "it is wanted", date.max)
    rewrite(strict, {path: write_ledger(replace(read_ledger(b"", "", ""), lines=(*lines, accepted)))})
    done = strict.push("bad", before=tip(strict), depth=0, environment={"GITHUB_RUN_ID": "93"})
    assert verdict(done) == (1, "regressed"), done.log
    assert "by wendy: passed over" in done.log


def ledger(world: World) -> tuple[str, tuple]:  # type: ignore[type-arg]
    names = git(world.repository.remote, "ls-tree", "-r", "--name-only", BRANCH).splitlines()
    [path] = [name for name in names if name.endswith("ledger.ndjson")]
    data = git(world.repository.remote, "show", f"{BRANCH}:{path}").encode()
    return path, read_ledger(data, path.partition("/")[0], path).lines


# --- which runs count -----------------------------------------------------------------------------


def by_fork(world: World, archive: bytes, run: int) -> None:
    world.upload(run, tip(world), "push", archive, repository="mallory/agents")


def by_pull_request(world: World, archive: bytes, run: int) -> None:
    world.upload(run, tip(world), "pull_request", archive)


def by_another_workflow(world: World, archive: bytes, run: int) -> None:
    world.upload(run, tip(world), "workflow_dispatch", archive, path=".github/workflows/run-anything.yml")


def swapped(world: World, archive: bytes, run: int) -> None:
    """The bytes are not those of which GitHub states the digest."""
    about = world.fake.add_run(run, tip(world), "push")
    origin = {"head_sha": tip(world), "head_repository_id": about["head_repository"]["id"]}
    world.fake.add_artifact(run, "gate-results", archive, workflow_run=origin)["digest"] = f"sha256:{'0' * 64}"


def of_another_run(world: World, archive: bytes, run: int) -> None:
    """The artifact is listed with the run, and says that it is another's."""
    world.fake.add_run(run, tip(world), "push")
    world.fake.add_artifact(run, "gate-results", archive, workflow_run={"id": 7, "head_sha": "e" * 40})


def expired(world: World, archive: bytes, run: int) -> None:
    about = world.fake.add_run(run, tip(world), "push")
    origin = {"head_sha": tip(world), "head_repository_id": about["head_repository"]["id"]}
    world.fake.add_artifact(run, "gate-results", archive, workflow_run=origin, expired=True)


def on_the_tip(world: World, archive: bytes) -> None:
    """Runs on the commit itself, of which nothing but what GitHub says of them tells that they do not count."""
    for run, way in enumerate(
        (by_fork, by_pull_request, by_another_workflow, swapped, of_another_run, expired), start=200
    ):
        way(world, archive, run)


def by_a_tag_of_the_branchs_name(world: World, archive: bytes) -> None:
    """A tag `main` on a commit of a change: the run's branch is called main."""
    head, _ = world.repository.pull_request(7, "awful")
    git(world.repository.work, "push", "-q", "origin", f"{head}:refs/tags/main")
    world.upload(200, head, "push", archive, head_branch="main")


def by_a_commit_inside_a_merge(world: World, archive: bytes) -> None:
    """A commit that was merged, and that never was the default branch: nobody reviewed what ran there."""
    work = world.repository.work
    git(work, "checkout", "-q", "-b", "inner", "origin/main")
    inner = world.repository.commit("awful", branch="inner")
    world.repository.commit("good", branch="inner")
    git(work, "checkout", "-q", "main")
    git(work, "merge", "-q", "--no-ff", "-m", "merge", "inner")
    git(work, "push", "-q", "origin", "main")
    world.upload(200, inner, "push", archive, head_branch="main")


def for_another_commit(world: World, archive: bytes) -> None:
    """A job of the next commit left a record that says it is of this one."""
    world.repository.commit("good")
    world.upload(200, tip(world), "push", archive)


Way = Callable[[World, bytes], None]
WAYS: list[tuple[Way, bool]] = [
    (on_the_tip, False),
    (on_the_tip, True),
    (by_a_tag_of_the_branchs_name, False),
    (by_a_commit_inside_a_merge, True),
    (for_another_commit, False),  # its list would count: that is a later job of the default branch
]


@pytest.mark.parametrize(("way", "carried"), WAYS)
def test_no_other_run_proves_a_forged_record(unproven: World, measured: Measured, way: Way, carried: bool) -> None:
    """The same forged record, or a list that says it is proven, in each run that an attacker can have."""
    unproven.upload(FIRST, tip(unproven), "push", measured.archive)
    archive = in_artifact(unproven, forge(unproven), carried=carried)
    first = tip(unproven)
    way(unproven, archive)
    done = unproven.pull_request("awful")
    assert done.code == 1, done.log
    assert "somebody has rewritten it" in done.summary
    assert f"the baseline of {first[:7]}: passed over" in done.log


@pytest.mark.parametrize("carried", [False, True], ids=["record", "list"])
def test_the_same_artifact_of_a_run_that_counts_does_prove(unproven: World, measured: Measured, carried: bool) -> None:
    """What the test above rests on: nothing but who ran it keeps the record from being believed."""
    unproven.upload(FIRST, tip(unproven), "push", measured.archive)
    archive = in_artifact(unproven, forge(unproven), carried=carried)
    unproven.upload(200, tip(unproven), "schedule", archive)
    done = unproven.pull_request("awful")
    assert done.code == 0, done.log
    assert "rewritten" not in done.summary


@pytest.mark.parametrize("content", [b"not an archive", b"half"])
def test_an_artifact_that_cannot_be_read_proves_nothing(unproven: World, measured: Measured, content: bytes) -> None:
    archive = measured.archive[: len(measured.archive) // 2] if content == b"half" else content
    unproven.upload(FIRST, tip(unproven), "push", archive)
    done = unproven.pull_request("good")
    assert verdict(done) == (0, "pass"), done.log
    assert "unproven" in done.summary


def test_what_is_hostile_in_an_archive_proves_nothing_and_hides_nothing(unproven: World, measured: Measured) -> None:
    """A list that grows without end, a record that does, one that is there twice, a link, a list elsewhere."""
    zeros = b"0" * 30_000_000
    with zipfile.ZipFile(io.BytesIO(measured.archive)) as opened:
        [name] = [name for name in opened.namelist() if name.endswith(".jsonl")]
        record = opened.read(name)
    link = zipfile.ZipInfo("c.jsonl")
    link.external_attr = 0o120777 << 16
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, pytest.warns(UserWarning, match="Duplicate"):
        for member, content in (("proofs.json", zeros), ("a.jsonl", zeros), ("b.jsonl", record), ("b.jsonl", b"{}")):
            archive.writestr(member, content)
        archive.writestr(link, "/proc/self/environ")
        archive.writestr("../proofs.json", b'{"v": 1, "digests": {"x": {"y": ["z"]}}}')
    unproven.upload(FIRST, tip(unproven), "push", stream.getvalue())
    done = unproven.pull_request("good")
    assert verdict(done) == (0, "pass"), done.log
    assert "unproven" in done.summary
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, record)
    unproven.upload(FIRST + 1, tip(unproven), "push", stream.getvalue())
    git(unproven.repository.work, "checkout", "-q", "main")
    done = unproven.pull_request("good", 2)
    assert verdict(done) == (0, "pass"), done.log
    assert "unproven" not in done.summary


def test_a_link_in_the_place_of_a_record_is_no_record(world: World) -> None:
    """The store follows nothing: neither out of the repository nor to another record."""
    path, _ = stored(world)
    clone = world.folder / "attacker"
    git(world.folder, "clone", "-q", "-b", BRANCH, world.repository.remote.as_uri(), str(clone))
    (clone / "elsewhere.jsonl").write_bytes((clone / path).read_bytes())
    (clone / path).unlink()
    (clone / path).symlink_to("../elsewhere.jsonl")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "a link")
    git(clone, "push", "-q", "origin", BRANCH)
    done = world.pull_request("good")
    assert done.outputs["verdict"] == "not_compared", done.log
    assert "its record was proven, and is gone from the store" in done.summary


def test_an_artifact_that_is_too_large_is_not_loaded(unproven: World, measured: Measured) -> None:
    unproven.upload(FIRST, tip(unproven), "push", measured.archive)
    unproven.fake.artifacts[FIRST][0]["size_in_bytes"] = 50_000_001
    done = unproven.pull_request("good")
    assert verdict(done) == (0, "pass"), done.log
    assert "unproven" in done.summary
    assert "at most 50,000,000" in done.summary


# --- nobody can be asked --------------------------------------------------------------------------


def test_where_github_does_not_answer_nothing_passes(world: World) -> None:
    for _ in range(40):
        world.fake.fail_once(Answer(500, {"message": "down"}), "GET", "/actions/")
    done = world.pull_request("good")
    assert done.outputs["verdict"] == "not_compared", done.log
    assert "GitHub could not be asked" in done.summary


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"workflow_runs": [1, {"id": []}]}'])
def test_an_answer_of_another_shape_lets_nothing_pass(world: World, content: bytes) -> None:
    for _ in range(40):
        world.fake.fail_once(Answer(200, content=content, lawless=True), "GET", "/actions/runs")
    done = world.pull_request("good")
    assert done.outputs["verdict"] == "not_compared", done.log
    assert "GitHub could not be asked" in done.summary


def test_a_token_that_may_not_read_runs_is_told_which_permission_it_lacks(world: World) -> None:
    for _ in range(40):
        world.fake.fail_once(Answer(403, {"message": "Resource not accessible by integration"}), "GET", "/actions/")
    done = world.pull_request("good")
    assert verdict(done) == (0, "pass"), done.log
    assert "unproven" in done.summary
    assert "actions: read" in done.summary


# --- beyond the artifact's retention --------------------------------------------------------------


def test_a_proof_outlives_the_artifact_that_it_comes_from(world: World) -> None:
    """Each job of the default branch carries on what was proven: the first's artifact is gone by the time."""
    first = tip(world)
    done = world.push("good", before=first, depth=0, environment={"GITHUB_RUN_ID": "91"})
    assert done.code == 0, done.log
    carried = json.loads((world.last.workspace / "gate-results" / "proofs.json").read_text())
    [suite] = carried["digests"].values()
    assert set(suite) == {first, tip(world)}
    world.upload(91, tip(world), "push")
    world.fake.artifacts[FIRST][0]["expired"] = True
    git(world.repository.work, "checkout", "-q", "--detach", first)
    head = world.repository.commit("good", branch="old")
    pull = world.fake.add_pull(3, head, updated_at="2026-01-01T00:00:00Z")
    pull["base"]["sha"] = first
    git(world.repository.work, "push", "-q", "origin", f"{head}:refs/pull/3/merge")
    payload = {"action": "synchronize", "pull_request": pull}
    later = world.step("pull_request", payload, "refs/pull/3/merge", head, depth=0)
    assert verdict(later) == (0, "pass"), later.log
    assert later.outputs["baseline_sha"] == first
    assert "unproven" not in later.summary


def test_of_two_jobs_at_once_neither_proof_is_lost(world: World) -> None:
    """Neither knows of the other as it ends; the one after them carries both on."""
    commits, left = [tip(world)], []
    for run in (91, 92):
        assert world.push("good", before=commits[-1], depth=0, environment={"GITHUB_RUN_ID": str(run)}).code == 0
        commits.append(tip(world))
        left.append(archive_of(world.last.workspace))
    for run, commit, archive in zip((91, 92), commits[1:], left, strict=True):
        world.upload(run, commit, "push", archive)
    assert world.measure(93).code == 0
    carried = json.loads((world.last.workspace / "gate-results" / "proofs.json").read_text())
    [suite] = carried["digests"].values()
    assert set(suite) == {*commits, tip(world)}


def test_what_a_change_carries_on_itself_proves_nothing(unproven: World, measured: Measured) -> None:
    """A list of proofs in the artifact of a pull request's run."""
    unproven.upload(FIRST, tip(unproven), "push", measured.archive)
    archive = in_artifact(unproven, forge(unproven), carried=True)
    head, _ = unproven.repository.pull_request(9, "good")
    unproven.upload(300, head, "pull_request", archive, head_branch="main")
    done = unproven.pull_request("awful")
    assert done.code == 1, done.log


# --- what is required -----------------------------------------------------------------------------


def test_where_a_proof_is_required_an_unproven_baseline_ends_the_job(unproven: World) -> None:
    unproven.repository.files["gate.yaml"] = BLOCK
    unproven.repository.commit("good")
    done = unproven.pull_request("good")
    assert done.code == 4, done.log
    assert "no proven baseline" in done.log


def test_a_change_cannot_ask_for_less(strict: World) -> None:
    forge(strict)
    off = CONFIG.replace("{store: git}", "{store: git, require_provenance: off}")
    done = strict.pull_request("awful", files={"gate__yaml": off})
    assert done.code == 4, done.log


def test_the_report_on_a_fork_looks_at_the_same_proofs(world: World) -> None:
    forge(world)
    done = world.pull_request("awful", fork=True)
    assert done.code == 1, done.log
    done = report(world)
    assert done.code == 1, done.log


def test_another_file_of_the_default_branch_that_uses_the_gate_may_measure(world: World) -> None:
    """As those that report on forks, or gate releases; which files they are is read from the default branch."""
    forge(world)
    assert world.pull_request("awful", fork=True).code == 1
    left = archive_of(world.last.workspace)
    named = {"GITHUB_WORKFLOW_REF": f"{world.fake.repository}/.github/workflows/report.yml@refs/heads/main"}
    done = report(world, left, environment=named)
    assert "somebody has rewritten it" not in done.log
    assert "unproven" in done.log
    git(world.repository.work, "checkout", "-q", "main")
    world.repository.files[WORKFLOW] = "jobs: {gate: {steps: [uses: agent-gate/agent-gate@v0]}}\n"
    world.repository.commit("good")
    done = report(world, left, environment=named)
    assert "somebody has rewritten it" in done.log


def test_a_configuration_can_name_the_files_that_count(world: World) -> None:
    world.repository.files["gate.yaml"] = CONFIG.replace("{store: git}", "{store: git, workflows: [a.yml]}")
    world.repository.commit("good")
    done = world.pull_request("good")
    assert done.code == 0, done.log
    assert "unproven" in done.log


def test_the_first_job_of_all_needs_no_proof(tmp_path: Path, fake: FakeGitHub) -> None:
    world = World(tmp_path, fake, as_process)
    world.repository.files["gate.yaml"] = BLOCK
    done = world.push("good")
    assert done.code == 0, done.log


# --- what is taken up -----------------------------------------------------------------------------


def test_where_a_proof_is_required_a_merge_is_measured_by_its_own_job(strict: World) -> None:
    done = strict.pull_request("good", files={"agent__py": AGENT + "\n# clearer now\n"})
    assert done.code == 0, done.log
    strict.upload(100, strict.fake.pulls[1]["head"]["sha"], "pull_request")
    done = strict.merge()
    assert done.code == 0, done.log
    assert "continues a record" not in done.summary


def test_trials_of_an_earlier_head_are_not_taken_up_after_the_merge(world: World) -> None:
    """What ran on the first head may have been another code, which wrote what it liked into its record."""
    done = world.pull_request("good", files={"agent__py": AGENT + "\n# clearer now\n"})
    world.upload(100, world.fake.pulls[1]["head"]["sha"], "pull_request")
    git(world.repository.work, "checkout", "-q", "change-1")
    git(world.repository.work, "commit", "-q", "--allow-empty", "-m", "again")
    head = git(world.repository.work, "rev-parse", "HEAD")
    base = tip(world)
    git(world.repository.work, "checkout", "-q", "--detach", "origin/main")
    git(world.repository.work, "merge", "-q", "--no-ff", "-m", "merge", head)
    merge = git(world.repository.work, "rev-parse", "HEAD")
    refs = [f"+{merge}:refs/pull/1/merge", f"{head}:refs/heads/change-1"]
    git(world.repository.work, "push", "-q", "origin", *refs)
    git(world.repository.work, "checkout", "-q", "main")
    git(world.repository.work, "branch", "-f", "change-1", head)
    world.fake.pulls[1]["head"]["sha"] = head
    payload = {"action": "synchronize", "pull_request": world.fake.pulls[1]}
    environment = {"GITHUB_RUN_ID": "101"}
    done = world.step("pull_request", payload, "refs/pull/1/merge", merge, environment=environment)
    assert done.code == 0, done.log
    assert "continues a record" in done.summary
    world.upload(101, head, "pull_request")
    assert tip(world) == base
    done = world.merge()
    assert done.code == 0, done.log
    assert "of an earlier job" in done.log


# --- an attacker who keeps the proofs from being found ----------------------------------------------


def test_a_limit_of_requests_that_somebody_used_up_is_no_lack_of_a_permission(world: World) -> None:
    """All jobs of a repository share one limit: whoever pushes a branch can use it up."""
    forge(world)
    spent = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9999999999"}
    for _ in range(40):
        world.fake.fail_once(Answer(403, {"message": "API rate limit exceeded"}, spent), "GET", "/actions/")
    done = world.pull_request("awful")
    assert done.outputs["verdict"] == "below_threshold", done.log
    assert "GitHub could not be asked" in done.summary


def test_an_artifact_that_is_gone_when_it_is_asked_for_is_no_lack_of_a_permission(world: World) -> None:
    """The newest was deleted between the list and the download; the one before it still says what is proven."""
    world.upload(FIRST + 1, tip(world), "push", b"deleted")
    forge(world)
    world.fake.fail_once(Answer(404, {"message": "Not Found"}, lawless=True), "GET", "/zip")
    done = world.pull_request("awful")
    assert done.outputs["verdict"] not in ("pass", ""), done.log
    assert "somebody has rewritten it" in done.summary


def test_runs_that_leave_nothing_do_not_crowd_out_the_one_that_does(world: World) -> None:
    """Somebody starts the workflow again and again and cancels it; or a watch looks at production each hour."""
    for run in range(200, 240):
        for event in ("workflow_dispatch", "schedule"):
            world.fake.add_run(2 * run + (event == "schedule"), tip(world), event, conclusion="cancelled")
    forge(world)
    done = world.pull_request("awful")
    assert done.outputs["verdict"] not in ("pass", ""), done.log
    assert "somebody has rewritten it" in done.summary


@pytest.mark.parametrize(("others", "said"), [(310, "somebody has rewritten it"), (1010, "GitHub could not be asked")])
def test_runs_of_other_workflows_do_not_crowd_it_out(world: World, others: int, said: str) -> None:
    """Somebody starts them on the branch's tip again and again. Beyond what can be listed, nothing passes."""
    other = world.fake.add_run(200, tip(world), "push", path=".github/workflows/other.yml")
    world.fake.runs[:0] = [{**other, "id": 200 + nth} for nth in range(1, others)]
    forge(world)
    done = world.pull_request("bad")
    assert done.outputs["verdict"] not in ("pass", ""), done.log
    assert said in done.summary


def test_a_shallow_clone_of_the_default_branch_knows_the_runs_before_its_tip(world: World) -> None:
    """The report on a fork, whose checkout has the newest commit alone, which has no run yet."""
    forge(world)
    assert world.pull_request("awful", fork=True).code == 1
    left = archive_of(world.last.workspace)
    git(world.repository.work, "checkout", "-q", "main")
    world.repository.commit("good")
    done = report(world, left)
    assert "somebody has rewritten it" in done.log


# --- what releases are held to ----------------------------------------------------------------------


def tagged(world: World, tag: str, run: int, behaviour: str = "") -> Done:
    """A release of the default branch's tip, or of a new commit, and its job, whose results are its artifact."""
    if behaviour:
        world.repository.commit(behaviour)
    sha = tip(world)
    git(world.repository.work, "tag", tag, sha)
    git(world.repository.work, "push", "-q", "origin", tag)
    payload = {"ref": f"refs/tags/{tag}", "before": "0" * 40, "after": sha, "deleted": False}
    environment = {"GITHUB_RUN_ID": str(run)}
    done = world.step("push", payload, f"refs/tags/{tag}", sha, depth=0, environment=environment)
    world.upload(run, sha, "push", head_branch=tag)
    return done


def test_a_release_that_was_accepted_stays_what_the_next_is_held_to(world: World) -> None:
    """Its job runs for a tag, and so is none of those that the default branch's runs list."""
    world.repository.files["gate.yaml"] = CONFIG.replace("{store: git}", "{store: git, trials: 1}")
    assert world.measure(110).code == 0
    released = tip(world)
    first = tagged(world, "v1.0.0", 111)
    assert first.code == 0, first.log
    assert "nothing new was run" in first.summary
    assert world.measure(112).code == 0
    assert world.measure(113).code == 0
    second = tagged(world, "v1.0.1", 114)
    assert second.code == 0, second.log
    assert second.outputs["baseline_sha"] == released, second.log
    assert "passed over" not in second.log
    assert "release v1.0.0" in second.summary


def test_an_anchor_that_somebody_removed_lets_no_release_pass(world: World) -> None:
    first = tip(world)
    assert world.measure(110).code == 0
    assert tagged(world, "v1.0.0", 111).code == 0
    assert world.measure(112).code == 0
    names = git(world.repository.remote, "ls-tree", "-r", "--name-only", BRANCH).splitlines()
    released = git(world.repository.remote, "rev-parse", "v1.0.0")
    assert released != first
    rewrite(world, {name: None for name in names if released in name})
    second = tagged(world, "v1.0.1", 113)
    assert second.outputs["verdict"] == "not_compared", second.log
    assert "is gone from the store" in second.summary
