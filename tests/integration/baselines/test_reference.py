"""What a change is measured against, in real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.baselines.ledger import Mark
from gate.baselines.reference import reference_to
from gate.config.load import load_config
from gate.errors import BaselineError, ConfigError
from gate.model import CONFIRM, FULL, REPEAT, STORED, Criterion, ErrorKind, Scale, Score, Trial, TrialError
from gate.pipeline.identity import NO_DEFAULT_BRANCH, git_context
from gate.pipeline.references import ALL_BELOW, References, Search, find_references
from gate.pipeline.store import store_of
from gate.records import Footer, Header, PlannedCase, Record, read_record, write_record
from gate.records.keys import suite_key
from gate.system.git import Git


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "-b", "main")
        (root / "gate.yaml").write_text("suite: evals\nagent: {python: 'a:b'}\n")
        (root / ".gitignore").write_text(".gate/\n")

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments]
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, text: str) -> str:
        (self.root / "agent.py").write_text(text)
        self.git("add", ".")
        self.git("commit", "-qm", text)
        return self.git("rev-parse", "HEAD")

    def git_context(self, **overrides: str):  # type: ignore[no-untyped-def]
        config = load_config(self.root / "gate.yaml", overrides)
        return git_context(config, Git(self.root, environment=os.environ))

    def save(self, commit: str, agent: str = "", verdict: str = "") -> None:
        header = Header("s", (PlannedCase("c", "f"),), (Criterion("m", "m", Scale.UNIT),), commit=commit, agent=agent)
        store = store_of(load_config(self.root / "gate.yaml"), os.environ)
        assert store is not None
        mark = Mark(suite_key("s"), commit, header.run_id, verdict, 1.0, base="0" * 40)
        lines = [mark] if verdict else []
        store.save(Record(header, (Trial("c", 1, scores={"m": Score(1.0)}),), Footer(1, 0, 1)), lines)

    def find(self, **overrides: str):  # type: ignore[no-untyped-def]
        config = load_config(self.root / "gate.yaml", overrides)
        store = store_of(config, os.environ)
        assert store is not None
        git = Git(self.root, environment=os.environ)
        return Search(config, store, "s", self.git_context(**overrides), git).own()

    def references(self) -> References:
        config, git = load_config(self.root / "gate.yaml"), Git(self.root, environment=os.environ)
        return find_references(config, store_of(config, os.environ), "s", self.git_context(), git)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_on_a_branch_the_base_is_the_merge_base(repository: Repository) -> None:
    first = repository.commit("1")
    repository.git("checkout", "-qb", "feature")
    repository.commit("2")
    repository.commit("3")
    assert repository.git_context().base == first


def test_on_the_default_branch_it_is_the_commit_before(repository: Repository) -> None:
    first = repository.commit("1")
    second = repository.commit("2")
    assert repository.git_context().base == first
    (repository.root / "agent.py").write_text("edited")
    edited = repository.git_context()
    assert (edited.base, edited.dirty) == (second, True)


def test_what_the_gate_writes_is_no_edit(repository: Repository) -> None:
    repository.commit("1")
    (repository.root / ".gate").mkdir()
    (repository.root / ".gate" / "record.jsonl").write_text("{}")
    assert not repository.git_context().dirty


def test_the_nearest_ancestor_with_a_record_is_found_with_its_distance(repository: Repository) -> None:
    first = repository.commit("1")
    repository.save(first)
    repository.commit("2")
    repository.commit("3")
    repository.git("checkout", "-qb", "feature")
    repository.commit("4")
    info = repository.find().info
    assert (info.commit, info.distance) == (first, 2)


def test_records_of_the_same_agent_are_pooled_and_others_are_not(repository: Repository) -> None:
    commits = [repository.commit(str(n)) for n in range(4)]
    repository.commit("last")
    for commit, agent in zip(commits, ("same", "other", "same", "same"), strict=True):
        repository.save(commit, agent)
    found = repository.find()
    assert [record.header.commit for record in found.records] == [commits[3], commits[2], commits[0]]
    assert found.info.trials_per_case == 3


def test_a_rerun_is_no_trial_of_a_baseline() -> None:
    header = Header("s", (PlannedCase("c", "f"),), (Criterion("m", "m", Scale.UNIT),), commit="c")
    trials = [Trial("c", n, scores={"m": Score(1.0)}, tag=tag) for n, tag in enumerate((FULL, STORED, CONFIRM, REPEAT))]
    assert reference_to([Record(header, tuple(trials), None)]).info.trials_per_case == 2


def test_against_names_any_commit_and_an_unknown_one_is_an_error(repository: Repository) -> None:
    first = repository.commit("1")
    repository.git("tag", "v1")
    repository.commit("2")
    repository.commit("3")
    assert repository.git_context(**{"baseline.against": "v1"}).base == first
    with pytest.raises(ConfigError, match="no commit 'v9'"):
        repository.git_context(**{"baseline.against": "v9"})
    with pytest.raises(ConfigError, match="no commit"):
        repository.git_context(**{"baseline.against": "--upload-pack=x"})


def test_no_baseline_says_where_it_looked_and_may_fail(repository: Repository) -> None:
    first = repository.commit("1")
    with pytest.raises(BaselineError, match=f"no baseline of 's' at {first[:12]}$"):  # not "in 1 ancestor" of itself
        _without_hint(repository)
    second = repository.commit("2")
    with pytest.raises(BaselineError, match=f"no baseline of 's' at {first[:12]}$"):
        _without_hint(repository)
    repository.commit("3")
    assert repository.find().info.missing == "no baseline of 's' in the store"
    with pytest.raises(BaselineError, match=f"no baseline of 's' at {second[:12]} or the 1 commit before it$"):
        _without_hint(repository)
    with pytest.raises(BaselineError, match="gate baseline save"):
        repository.find(**{"baseline.on_missing": "fail"})


def _without_hint(repository: Repository) -> None:
    try:
        repository.find(**{"baseline.on_missing": "fail"})
    except BaselineError as error:
        raise BaselineError(error.what) from None


def test_a_baseline_of_this_very_commit_is_not_said_to_be_missing(repository: Repository) -> None:
    commit = repository.commit("1")
    repository.save(commit, "agent")
    info = repository.find().info
    assert info.of_itself
    assert info.missing == "the baseline saved last is of this very commit: commit a change, then run again"


def test_outside_a_repository_the_latest_saved_is_taken(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text("suite: evals\nagent: {python: 'a:b'}\n")
    config = load_config(tmp_path / "gate.yaml")
    where = git_context(config, Git(tmp_path, environment=os.environ))
    assert (where.head, where.base) == (None, None)
    assert "not a git repository" in where.note


def test_a_stored_outage_is_passed_over(repository: Repository) -> None:
    """No store takes one, but somebody may put it there: the ancestor before it counts."""
    first, second = repository.commit("1"), repository.commit("2")
    repository.commit("3")
    repository.save(first)
    repository.save(second)
    [path] = repository.root.glob(f".gate/**/{second}*.jsonl")
    record = read_record(path)
    down = replace(record.trials[0], error=TrialError(ErrorKind.CRASH, "down"), scores={})
    write_record(path, replace(record, trials=(down,)))
    found = repository.find()
    assert (found.info.commit, found.info.distance) == (first, 1)


# --- a clone without its history ------------------------------------------------------------------


@pytest.fixture
def older(tmp_path: Path) -> tuple[Repository, list[str], str]:
    """A repository, the commits of its default branch, and a change of the first: each has a record but the change."""
    repository = Repository(_made(tmp_path / "whole"))
    commits = [repository.commit("1")]
    repository.git("checkout", "-qb", "feature")
    change = repository.commit("changed")
    repository.git("checkout", "-q", "main")
    commits += [repository.commit(str(number)) for number in range(2, 5)]
    return repository, commits, change


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def shallow(whole: Repository, commit: str, saved: list[str], *, is_offline: bool = False) -> Repository:
    """A clone of depth 1 with a commit checked out, and a store with records of these commits."""
    clone = whole.root.with_name("clone")
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", "--no-single-branch", whole.root.as_uri(), str(clone)], check=True
    )
    found = Repository.__new__(Repository)
    found.root = clone
    found.git("checkout", "-q", "--detach", commit)
    if is_offline:
        found.git("remote", "set-url", "origin", str(whole.root.with_name("nowhere")))
    for one in saved:
        found.save(one)
    return found


def test_a_shallow_clone_is_deepened_as_far_as_the_merge_base(older: tuple[Repository, list[str], str]) -> None:
    whole, commits, change = older
    clone = shallow(whole, change, commits)
    assert clone.git_context().base == commits[0]
    found = clone.references()
    assert (found.first.info.commit, found.first.info.distance, found.doubts) == (commits[0], 0, ())


def test_the_default_branch_is_deepened_too(older: tuple[Repository, list[str], str]) -> None:
    whole, commits, _ = older
    clone = shallow(whole, commits[-1], commits[:-1])
    assert clone.git_context().base == commits[-2]
    assert clone.references().first.info.commit == commits[-2]


@pytest.mark.parametrize("depth", [[], ["--depth=1"]])
def test_a_clone_of_the_changes_branch_alone_is_measured_against_the_default_branch(
    older: tuple[Repository, list[str], str], tmp_path: Path, depth: list[str]
) -> None:
    whole, commits, _ = older
    whole.git("checkout", "-q", "feature")
    whole.commit("changed again")
    whole.git("checkout", "-q", "main")
    copy = tmp_path / "copy"
    wanted = ["--single-branch", "--branch=feature", *depth]
    subprocess.run(["git", "clone", "-q", *wanted, whole.root.as_uri(), str(copy)], check=True)
    clone = Repository.__new__(Repository)
    clone.root = copy
    refs = clone.git("for-each-ref")
    where = clone.git_context()
    assert (where.base, where.note) == (commits[0], "")
    assert clone.git_context(**{"baseline.against": "main"}).base == commits[-1]
    assert clone.git("for-each-ref") == refs, "no ref is moved"


def test_a_tag_with_the_default_branchs_name_is_not_taken_for_it(older: tuple[Repository, list[str], str]) -> None:
    whole, commits, change = older
    for name in ("origin/main", "main"):
        whole.git("tag", name, change)
    copy = whole.root.with_name("copy")
    subprocess.run(["git", "clone", "-q", whole.root.as_uri(), str(copy)], check=True)
    clone = Repository.__new__(Repository)
    clone.root = copy
    clone.git("checkout", "-q", "--detach", change)
    assert (clone.git_context().base, clone.git_context().anchored) == (commits[0], False)


def test_a_shallow_clone_is_deepened_as_far_as_a_record(older: tuple[Repository, list[str], str]) -> None:
    whole, commits, _ = older
    clone = shallow(whole, commits[-1], commits[:1])
    found = clone.references()
    assert (found.first.info.commit, found.first.info.distance, found.doubts) == (commits[0], 2, ())


@pytest.mark.parametrize("is_change", [True, False])
def test_where_the_base_stays_unknown_no_pass_is_believed(
    older: tuple[Repository, list[str], str], is_change: bool
) -> None:
    whole, commits, change = older
    clone = shallow(whole, change if is_change else commits[-1], commits[1:-1], is_offline=True)
    where = clone.git_context()
    assert where.base is None and "the clone is shallow" in where.note
    found = clone.references()
    [doubt] = found.doubts
    assert "fetch-depth: 0" in doubt and "GIT_DEPTH: 0" in doubt
    assert found.first.info.source.endswith("(saved last; not known to be an ancestor of this commit)")


def test_nothing_is_doubted_where_nothing_is_stored(older: tuple[Repository, list[str], str]) -> None:
    whole, _, change = older
    assert shallow(whole, change, [], is_offline=True).references().doubts == ()


def test_where_the_default_branch_is_unknown_it_is_said_what_takes_its_place(repository: Repository) -> None:
    repository.commit("1")
    repository.git("branch", "-qM", "trunk")
    repository.git("checkout", "-qb", "feature")
    second = repository.commit("2")
    repository.commit("3")
    assert (repository.git_context().base, repository.git_context().note) == (second, NO_DEFAULT_BRANCH)
    assert repository.git_context(**{"baseline.against": "trunk"}).note == ""
    repository.git("branch", "-qm", "trunk", "main")
    assert repository.git_context().note == ""


# --- what was saved last --------------------------------------------------------------------------


def test_without_an_ancestor_what_fell_short_is_no_yardstick(repository: Repository) -> None:
    first, second = repository.commit("1"), repository.commit("2")
    repository.save(first)
    repository.save(second, verdict="regressed")
    repository.git("checkout", "-q", "--orphan", "new")
    repository.commit("3")
    repository.git("branch", "-qM", "main")
    found = repository.references()
    assert found.first.info.commit == first
    assert "saved last; not an ancestor of this commit" in found.first.info.source


def test_where_everything_fell_short_nothing_of_another_history_is_taken(repository: Repository) -> None:
    repository.save(repository.commit("1"), verdict="regressed")
    repository.git("checkout", "-q", "--orphan", "new")
    repository.commit("2")
    repository.git("branch", "-qM", "main")
    found = repository.references()
    assert found.first.records == ()
    assert found.first.info.missing == ALL_BELOW


def test_what_fell_short_is_taken_where_it_may_be_of_an_ancestor(older: tuple[Repository, list[str], str]) -> None:
    whole, commits, change = older
    clone = shallow(whole, change, [], is_offline=True)
    clone.save(commits[1], verdict="regressed")
    found = clone.references()
    assert found.first.info.commit == commits[1] and found.doubts


def test_an_earlier_commit_is_not_called_the_base(repository: Repository) -> None:
    first = repository.commit("1")
    repository.save(first, verdict="below_threshold")
    base = repository.commit("2")
    repository.git("checkout", "-qb", "feature")
    repository.commit("3")
    [note] = repository.references().notes
    assert f"{first[:12]}, which the base commit comes from, itself came out" in str(note)
    repository.save(base, verdict="below_threshold")
    [note] = repository.references().notes
    assert f"the base commit {base[:12]} itself came out" in str(note)
