"""Baselines only get better: nights, releases and copies, through real git and the command line.

The work of `gate.stored.upkeep`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from gate.records import read_record
from tests.acceptance.conftest import Outcome, Project

IDENTITY = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com"}
IDENTITY |= {"GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.com"}
CONFIG = """\
suite: suite.yaml
name: support
agent: {python: agent:answer, concurrency: 8}
criteria: {tool_trajectory_avg_score: {match_type: EXACT}}
trials: 3
baseline: {store: git}
"""
AGENT = """\
from pathlib import Path

BROKEN = 0


def answer(message):
    drift = Path(@DRIFT@)
    broken = BROKEN + (int(drift.read_text()) if drift.exists() else 0)
    if broken < 0:
        raise RuntimeError("the provider is down")
    number = int(message.split()[-1])
    return {"output": "Done.", "tool_calls": [{"name": "wrong" if number < broken else "look_up"}]}
"""


def suite(cases: int = 20) -> str:
    found = [{"id": f"case-{n}", "input": f"item {n}", "tools": ["look_up"], "tags": ["all"]} for n in range(cases)]
    found[0]["tags"] = ["all", "smoke"]
    return json.dumps({"cases": found})


@dataclass
class World:
    """A repository with a remote, of which every job has a clone of its own; a model that drifts lies outside it."""

    folder: Path
    jobs: int = 0

    def __post_init__(self) -> None:
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(self.folder / "remote.git")], check=True)
        self._clone(self.folder / "work")
        self.files = {"gate.yaml": CONFIG, "suite.yaml": suite(), ".gitignore": "result.json\n"}

    def _clone(self, folder: Path) -> None:
        subprocess.run(["git", "clone", "-q", (self.folder / "remote.git").as_uri(), str(folder)], check=True)

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder / "work"), *arguments]
        done = subprocess.run(command, env={**os.environ, **IDENTITY}, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, broken: int = 0, *, branch: str = "main", note: str = "", tag: str = "") -> str:
        agent = AGENT.replace("@DRIFT@", repr(str(self.folder / "drift"))).replace("BROKEN = 0", f"BROKEN = {broken}")
        self.git("checkout", "-q", "-B", branch)
        for name, content in {**self.files, "agent.py": agent}.items():
            (self.folder / "work" / name).write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", note or f"{broken} broken")
        if tag:
            self.git("tag", tag)
        self.git("push", "-q", "--tags", "origin", f"HEAD:refs/heads/{branch}")
        return self.git("rev-parse", "HEAD")

    def drift(self, broken: int) -> None:
        (self.folder / "drift").write_text(str(broken))

    def clone(self, commit: str) -> Path:
        """What a runner checks out for a job."""
        self.jobs += 1
        folder = self.folder / f"job-{self.jobs}"
        self._clone(folder)
        subprocess.run(["git", "-C", str(folder), "checkout", "-q", "--detach", commit], check=True)
        return folder

    def gate(self, folder: Path, *arguments: str) -> Outcome:
        return Project(folder).gate(*arguments, **IDENTITY)

    def job(self, commit: str, *options: str, release: str = "") -> dict[str, object]:
        """A run and, whatever its verdict, the saving of its record; what the JSON report says, and the exit code."""
        folder = self.clone(commit)
        tagged = ("--release", release) if release else ()
        ran = self.gate(folder, "run", "--json", "result.json", *tagged, *options)
        saved = self.gate(folder, "baseline", "save", *tagged)
        assert saved.code == 0, saved.err
        found = json.loads((folder / "result.json").read_text())
        [judged] = found["suites"]
        return {"code": ran.code, "verdict": found["verdict"], "suite": judged, "said": saved.out}

    def listed(self, folder: Path | None = None) -> str:
        return self.gate(folder or self.clone("origin/main"), "baseline", "list").out


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.slow
def test_a_model_that_drifts_is_measured_against_what_was_proven_every_night(world: World) -> None:
    """The same commit each night, one more case broken: what one night stores never hides it from the next."""
    main = world.commit()
    assert world.job(main)["code"] == 0
    verdicts = []
    for night in range(1, 6):
        world.drift(night)
        verdicts.append(world.job(main)["verdict"])
    first = verdicts.index("regressed")
    assert first <= 1, verdicts
    assert set(verdicts[first:]) == {"regressed"}, verdicts
    world.drift(0)
    assert world.job(main)["verdict"] == "pass", "and the day that the model is repaired is good again"


@pytest.mark.slow
def test_commits_that_break_one_more_case_each_night_are_held_to_the_anchor(world: World) -> None:
    good = world.commit()
    assert world.job(good)["code"] == 0
    verdicts, judged = [], []
    for night in range(1, 6):
        found = world.job(world.commit(night))
        verdicts.append(found["verdict"])
        judged.append(found)
    first = verdicts.index("regressed")
    assert first <= 2 and set(verdicts[first:]) == {"regressed"}, verdicts
    assert "marked regressed: it never becomes the long-term baseline" in str(judged[-1]["said"])
    lines = [line for line in world.listed().splitlines() if "long-term baseline" in line]
    assert len(lines) == 1 and good[:12] in lines[0]


@pytest.mark.slow
def test_a_release_is_decided_on_what_was_measured_of_its_commit(world: World) -> None:
    """Whatever its tag would find: the drift that came since is another night's finding."""
    world.job(world.commit())
    good = world.job(world.commit(note="a change", tag="v1"))
    assert good["code"] == 0
    world.drift(20)
    released = world.job("v1", "--statement", ".gate/s.json", release="v1")
    assert (released["code"], released["verdict"]) == (0, "pass")
    suite_ = released["suite"]
    assert [w for w in suite_["warnings"] if "decided on what was measured of this commit" in w]  # type: ignore[index]
    assert [w for w in suite_["warnings"] if "nothing new was run" in w]  # type: ignore[index]
    world.drift(0)
    bad = world.commit(6, tag="v2")
    assert world.job(bad)["code"] == 1
    world.drift(-20)  # would do well now
    rejected = world.job("v2", release="v2")
    assert (rejected["code"], rejected["verdict"]) == (1, "regressed")
    assert "release v2 (rejected)" in world.listed()


@pytest.mark.slow
def test_a_thin_record_of_a_release_is_added_to(world: World) -> None:
    """By as many trials as it is short of, and all of them decide in one look."""
    world.files["gate.yaml"] = CONFIG.replace("trials: 3\n", "")
    base = world.commit()
    world.job(base)
    commit = world.commit(note="a change", tag="v1")
    assert world.job(commit, "--trials", "2")["code"] == 0
    released = world.job("v1", release="v1")
    assert (released["code"], released["verdict"]) == (0, "pass")
    [said] = [w for w in released["suite"]["warnings"] if "decided on" in w]  # type: ignore[index]
    assert "40 trials of 1 run; 60 trials added where it was thin" in said
    shown = world.gate(world.clone("v1"), "baseline", "list").out
    assert "release v1, pass" in shown
    again = world.job("v1", release="v1")
    assert [w for w in again["suite"]["warnings"] if "100 trials of 2 runs; nothing new was run" in w]  # type: ignore[index]


@pytest.mark.slow
def test_the_first_recorded_commit_is_released_by_its_thresholds(world: World) -> None:
    held = CONFIG.replace("match_type: EXACT", "match_type: EXACT, threshold: 0.5")
    world.files["gate.yaml"] = held.replace("{store: git}", "{store: git, on_missing: fail}")
    commit = world.commit(tag="v1")
    folder = world.clone(commit)
    assert world.gate(folder, "run", "--release", "v1").code == 4, "nothing is stored"
    world.files["gate.yaml"] = held
    commit = world.commit(tag="v2")
    world.job(commit)
    released = world.job("v2", release="v2")
    assert (released["code"], released["verdict"]) == (0, "pass")
    assert "nothing to compare with yet" in released["suite"]["headline"]  # type: ignore[index]


@pytest.mark.slow
def test_a_release_has_an_error_rate_of_its_own(world: World) -> None:
    world.files["gate.yaml"] = CONFIG + "gate: {alpha: 0.2}\n"
    world.job(world.commit())
    commit = world.commit(note="a change")
    world.job(commit)
    folder = world.clone(commit)
    for options, alpha in ((("--release", "v1"), 0.01), ((), 0.2)):
        assert world.gate(folder, "run", "--record", ".gate/r.jsonl", *options).code == 0
        footer = read_record(folder / ".gate/r.jsonl").footer
        assert footer is not None and footer.terms["settings"].get("alpha") == alpha
        shutil.rmtree(folder / ".gate")


@pytest.mark.slow
def test_a_rejected_release_is_no_yardstick_for_the_next(world: World) -> None:
    assert world.job(world.commit(tag="v1.0.0"), release="v1.0.0")["code"] == 0
    rejected = world.job(world.commit(6, tag="v1.1.0"), release="v1.1.0")
    assert (rejected["code"], rejected["verdict"]) == (1, "regressed")
    empty = world.job(world.commit(6, tag="v1.1.1", note="nothing changed"), release="v1.1.1")
    assert (empty["code"], empty["verdict"]) == (1, "regressed")
    assert world.job(world.commit(0, tag="v1.1.2"), release="v1.1.2")["code"] == 0
    listed = world.listed()
    assert "long-term baseline, release v1.1.2, pass" in listed
    assert "release v1.1.0 (rejected), regressed" in listed


@pytest.mark.slow
def test_accepting_moves_the_anchor_and_keeps_who_when_and_why(world: World) -> None:
    world.job(world.commit())
    worse = world.commit(5)
    assert world.job(worse)["verdict"] == "regressed"
    following = world.commit(5, note="a following change")
    assert world.job(following)["verdict"] == "regressed", "its own base is no worse, the anchor is better"
    folder = world.clone(worse)
    refused = world.gate(folder, "baseline", "accept")
    assert refused.code == 2 and "--why" in refused.err
    done = world.gate(folder, "baseline", "accept", worse, "--why", "the tool was renamed", "--by", "wendy")
    assert done.code == 0, done.err
    assert f"{worse[:12]} is the long-term baseline now, by wendy" in done.out
    assert world.job(world.commit(5, note="the next"))["verdict"] == "pass"
    shown = world.gate(world.clone(worse), "baseline", "show").out
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d  accepted by wendy until \d{4}-\d\d-\d\d: the tool was renamed", shown)
    assert re.search(r"\d\d:\d\d  regressed against base [0-9a-f]{12} and long-term baseline [0-9a-f]{12}\n", shown)
    assert "accepted by wendy" in world.listed()


@pytest.mark.slow
@pytest.mark.parametrize("broken", [20, 7], ids=["missed and lost", "held and lost"])
def test_a_missed_threshold_cannot_be_accepted(world: World, broken: int) -> None:
    """Also where the verdict is that the record regressed, which outranks it."""
    world.files["gate.yaml"] = CONFIG.replace("EXACT}", "EXACT, threshold: 0.5}")
    assert world.job(world.commit())["code"] == 0
    worse = world.commit(broken)
    assert world.job(worse)["verdict"] == "regressed"
    done = world.gate(world.clone(worse), "baseline", "accept", "--why", "known", "--by", "wendy")
    refused = broken == 20
    assert done.code == (4 if refused else 0), done.err
    assert ("a hard rule is missed: tool_trajectory_avg_score" in done.err) is refused
    assert ("accepted by wendy" in world.listed()) is not refused


def aged(world: World, days: int) -> None:
    """Everything that is in the ledger, as if it had been written that many days earlier."""
    branch = world.clone("origin/gate-baselines")
    [path] = branch.glob("*/ledger.ndjson")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["at"] -= 86_400 * days
        if "until" in line:
            line["until"] = str(date.fromisoformat(line["until"]) - timedelta(days=days))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for command in (("commit", "-qam", "earlier"), ("push", "-q", "origin", "HEAD:gate-baselines")):
        subprocess.run(["git", "-C", str(branch), *command], env={**os.environ, **IDENTITY}, check=True)


@pytest.mark.slow
def test_a_known_loss_is_accepted_for_a_while_and_comes_back(world: World) -> None:
    """Also past a release that was held to it, which would keep the loss for good."""
    assert world.job(world.commit(tag="v1"), release="v1")["code"] == 0
    worse = world.commit(6, tag="v2")
    assert world.job(worse, release="v2")["code"] == 1
    done = world.gate(world.clone(worse), "baseline", "accept", "--why", "known", "--by", "wendy")
    last = datetime.now(UTC).date() + timedelta(days=90)
    assert (done.code, f"by wendy, until {last}" in done.out) == (0, True), done.err
    held = world.job(world.commit(6, tag="v3", note="more"), release="v3")
    assert (held["code"], held["verdict"]) == (0, "pass")
    aged(world, 91)
    again = world.job(world.commit(6, tag="v4", note="still"), release="v4")
    assert (again["code"], again["verdict"]) == (1, "regressed")
    headline = again["suite"]["headline"]  # type: ignore[index]
    assert f"the acceptance of {worse[:12]} by wendy ended on {last - timedelta(days=91)}" in headline
    listed = world.listed()
    assert f"accepted by wendy and ended on {last - timedelta(days=91)}" in listed
    assert "release v2 (rejected)" in listed and "long-term baseline, release v1" in listed
    renewed = world.gate(world.clone(worse), "baseline", "accept", "--why", "still known", "--by", "wendy")
    assert renewed.code == 0, renewed.err
    assert world.job(world.commit(6, tag="v5", note="on"), release="v5")["code"] == 0


@pytest.mark.slow
def test_until_is_a_day_that_the_configuration_allows(world: World) -> None:
    world.files["gate.yaml"] = CONFIG.replace("{store: git}", "{store: git, accept_days: 7}")
    commit = world.commit()
    world.job(commit)
    folder, today = world.clone(commit), datetime.now(UTC).date()
    for day in (today + timedelta(days=9), today - timedelta(days=2), "9999-12-31", "0001-01-01", "soon", "2026-02-30"):
        done = world.gate(folder, "baseline", "accept", "--why", "x", "--until", str(day))
        assert (done.code, "--until" in done.err) == (2, True), done.err
    done = world.gate(folder, "baseline", "accept", "--why", "x", "--until", str(today + timedelta(days=3)))
    assert (done.code, f"until {today + timedelta(days=3)}" in done.out) == (0, True), done.err


def test_accepting_what_is_not_stored_is_refused(world: World) -> None:
    world.job(world.commit())
    other = world.commit(1)
    folder = world.clone(other)
    for arguments, code, says in (
        ((other, "--why", "x"), 4, "no record of"),
        (("v9", "--why", "x"), 2, "commit 'v9' not found"),
        (("--why", " "), 2, "no reason given"),
        (("--why", "\u200b"), 2, "no reason given"),
    ):
        done = world.gate(folder, "baseline", "accept", *arguments)
        assert done.code == code, done.err
        assert says in done.err and len(done.err.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_thinner_run_of_the_same_commit_adds_to_the_richer(world: World) -> None:
    main = world.commit()
    world.job(main, "--trials", "5")
    world.job(main, "--trials", "1")
    shown = world.gate(world.clone(main), "baseline", "show").out
    assert "6.0 trials per case" in shown
    assert shown.count("pass") >= 2


@pytest.mark.slow
def test_a_change_is_compared_with_its_own_base_and_told_that_the_base_fell_short(world: World) -> None:
    world.job(world.commit())
    worse = world.commit(6)
    assert world.job(worse)["verdict"] == "regressed"
    change = world.commit(6, branch="change", note="changes nothing")
    folder = world.clone(change)
    ran = world.gate(folder, "run", "--json", "result.json")
    assert ran.code == 0, ran.out
    [judged] = json.loads((folder / "result.json").read_text())["suites"]
    assert judged["baseline"]["commit"] == worse
    [line] = [line for line in judged["warnings"] if "itself came out" in line]
    assert worse[:12] in line and "regressed" in line


@pytest.mark.slow
def test_partial_and_dirty_records_become_no_baseline(world: World) -> None:
    main = world.commit()
    folder = world.clone(main)
    assert world.gate(folder, "run", "--tag", "smoke").code == 0
    saved = world.gate(folder, "baseline", "save")
    assert saved.code == 6 and "a selection of the suite, 1 case" in saved.err
    folder = world.clone(main)
    (folder / "notes.txt").write_text("mine")
    world.gate(folder, "run")
    saved = world.gate(folder, "baseline", "save")
    assert saved.code == 6 and "uncommitted changes" in saved.err
    assert "no baselines are stored" in world.listed(folder)


def test_saving_a_run_of_another_commit_says_so(world: World) -> None:
    main = world.commit()
    folder = world.clone(main)
    assert world.gate(folder, "run").code == 0
    same = world.gate(folder, "baseline", "save")
    assert same.code == 0 and "which is checked out" not in same.out
    later = world.commit()
    subprocess.run(["git", "-C", str(folder), "fetch", "-q"], check=True)
    subprocess.run(["git", "-C", str(folder), "checkout", "-q", later], check=True)
    saved = world.gate(folder, "baseline", "save")
    assert saved.code == 0
    assert f"it is a run of {main[:12]}; `gate run` measures {later[:12]}, which is checked out" in saved.out


@pytest.mark.slow
def test_a_record_that_holds_an_outage_becomes_no_baseline(world: World) -> None:
    main = world.commit()
    world.job(main)
    world.drift(-1)
    folder = world.clone(main)
    ran = world.gate(folder, "run")
    assert ran.code == 3, ran.out
    saved = world.gate(folder, "baseline", "save")
    assert saved.code == 6, saved.err
    assert len(saved.err.strip().splitlines()) == 1
    assert world.listed(folder).count(main[:12]) == 2, "one row, of which the path names the commit too"


@pytest.mark.slow
def test_a_selection_that_the_configuration_makes_is_its_whole_suite(world: World) -> None:
    world.files["gate.yaml"] += "select: {tags: [smoke]}\n"
    main = world.commit()
    assert world.job(main)["code"] == 0
    assert main[:12] in world.listed()


@pytest.mark.slow
def test_another_suites_record_copied_over_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.files["gate.yaml"] = CONFIG.replace("store: git", "store: file")
    world.commit()
    folder = world.clone("origin/main")
    for name in ("support", "other"):
        (folder / "gate.yaml").write_text(world.files["gate.yaml"].replace("support", name))
        subprocess.run(
            ["git", "-C", str(folder), "commit", "-qam", name, "--allow-empty"],
            env={**os.environ, **IDENTITY},
            check=True,
        )
        world.gate(folder, "run", "--record", f".gate/{name}.jsonl")
        assert world.gate(folder, "baseline", "save", f".gate/{name}.jsonl").code == 0
    kept = folder / ".gate" / "baselines"
    mine, other = (next(kept.glob(f"{name}-*/*.jsonl")) for name in ("other", "support"))
    shutil.copy(other, mine)
    listed = world.gate(folder, "baseline", "list")
    assert (listed.code, "never compared with" in listed.out, "support" in listed.out) == (0, True, True)
    for command in (("run",), ("baseline", "show")):
        done = world.gate(folder, *command)
        assert done.code == 4, done.out + done.err
        assert "the stored baseline belongs to another suite or commit" in done.err
        assert len(done.err.strip().splitlines()) <= 2
