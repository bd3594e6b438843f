"""The lines that the guides of other CI systems give, run as they stand: what one commit stores the next one finds."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import warm
from tests.acceptance.conftest import REPOSITORY
from tests.acceptance.test_stored_epochs import Served, served

__all__ = ["served"]

IDENTITY = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com"}
IDENTITY |= {"GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.com"}
CONFIG = """\
suite: suite.yaml
name: support
agent: {python: agent:answer}
criteria: {tool_trajectory_avg_score: 0.5, "checks:said": 0.5}
baseline: {store: git}
"""
CASES = {"cases": [{"id": f"case-{n}", "input": f"item {n}", "tools": ["look_up"]} for n in range(12)]}
FILES = {
    "gate.yaml": CONFIG,
    "suite.yaml": json.dumps(CASES),
    "agent.py": "def answer(message):\n    return {'output': 'Done.', 'tool_calls': [{'name': 'look_up'}]}\n",
    "checks.py": "def said(case, answer):\n    return bool(answer)\n",  # importing it leaves __pycache__
}


@dataclass(frozen=True)
class Cache:
    """What a recipe keeps of a job: a folder, under a key. Later jobs find it by the key, or by how that begins."""

    folder: str
    key: str
    begins: str | None = None

    def finds(self, key: str, job: int) -> bool:
        if self.begins is None:
            return key == expanded(self.key, job)
        return key.startswith(expanded(self.begins, job))


@dataclass
class Project:
    """A repository with a remote, of which every pipeline has a clone of its own."""

    folder: Path
    jobs: int = 0
    kept: dict[str, Path] = field(default_factory=dict)
    """The copies of caches by their keys, the newest last."""

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder / "work"), *arguments]
        return subprocess.run(
            command, env={**os.environ, **IDENTITY}, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, branch: str, **files: str) -> str:
        for name, content in files.items():
            (self.folder / "work" / name.replace("__", ".")).write_text(content, encoding="utf-8")
        self.git("checkout", "-q", "-B", branch)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", branch)
        self.git("push", "-q", "origin", f"HEAD:refs/heads/{branch}")
        return self.git("rev-parse", "HEAD")

    def job(
        self, script: list[str], commit: str, cache: Cache | None = None, code: int = 0, /, **variables: str
    ) -> tuple[Path, str]:
        """Runs the lines in a fresh clone of the commit, as runners do; its folder, and what was printed.

        ``cache``: what is there of earlier jobs, and is kept for later ones, whatever the lines end with.
        """
        self.jobs += 1
        clone = self.folder / f"job-{self.jobs}"
        remote = (self.folder / "remote.git").as_uri()
        subprocess.run(["git", "clone", "-q", remote, str(clone)], check=True)
        subprocess.run(["git", "-C", str(clone), "checkout", "-q", "--detach", commit], check=True)
        if cache:
            for key in [key for key in reversed(self.kept) if cache.finds(key, self.jobs)][:1]:
                shutil.copytree(self.kept[key], clone / cache.folder)
        lines = "\n".join(script)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, **IDENTITY, "PATH": path, "CI_DEFAULT_BRANCH": "main", **variables}
        options = warm.options_of_a_script(environment)
        done = subprocess.run(["sh", "-ec", lines], cwd=clone, capture_output=True, text=True, check=False, **options)
        assert done.returncode == code, done.stdout + done.stderr
        if cache:
            copy = self.folder / f"cache-{self.jobs}"
            shutil.copytree(clone / cache.folder, copy)
            self.kept[expanded(cache.key, self.jobs)] = copy
        return clone, done.stdout + done.stderr


def expanded(key: str, job: int, change: str = "fix") -> str:
    """A key of a cache with the names that its system knows, of a job of a change."""
    of_change = ("CI_MERGE_REQUEST_IID", "JOB_NAME", "Branch", "System.PullRequest.PullRequestId")
    of_job = ("BuildNum", "Build.BuildId", "System.JobAttempt")
    known = dict.fromkeys(of_change, change) | dict.fromkeys(of_job, str(job))
    named = re.compile(
        r"\$\((?P<azure>[\w.]+)\)|\$\{env\.(?P<jenkins>\w+)\}|\{\{ \.(?P<circleci>\w+) \}\}|\$(?P<gitlab>\w+)"
    )
    return named.sub(lambda found: known[str(found[str(found.lastgroup)])], key)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(tmp_path / "remote.git")], check=True)
    subprocess.run(["git", "clone", "-q", (tmp_path / "remote.git").as_uri(), str(tmp_path / "work")], check=True)
    for name, content in FILES.items():
        (tmp_path / "work" / name).write_text(content, encoding="utf-8")
    return made


MERGE_REQUEST = {"CI_MERGE_REQUEST_IID": "1"}


def gitlab() -> list[str]:
    page = (REPOSITORY / "docs/how-to/other-ci.md").read_text(encoding="utf-8")
    found = re.search(r"^```yaml\n(# \.gitlab-ci\.yml.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    script: list[str] = yaml.safe_load(found[1])["gate"]["script"]
    return script


def others() -> list[str]:
    """The commands of the page's text; ``<commit>`` is the one before the change."""
    page = (REPOSITORY / "docs/how-to/other-ci.md").read_text(encoding="utf-8")
    run, save = re.findall(r"^```\n(gate .*)\n```$", page, re.MULTILINE)[:2]
    return [run, save]


def reported(clone: Path) -> str:
    return (clone / "gate-results/report.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_gitlabs_lines_store_what_the_next_merge_request_finds(project: Project) -> None:
    main = project.commit("main")
    clone, said = project.job(gitlab(), main, CI_COMMIT_BRANCH="main", CI_COMMIT_SHA=main)
    assert "uncommitted changes" not in said
    assert project.git("ls-remote", "origin", "refs/heads/gate-baselines")
    change = project.commit("change", agent__py=FILES["agent.py"] + "# another agent\n")
    given = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": main, **MERGE_REQUEST}
    clone, said = project.job(gitlab(), change, CI_COMMIT_SHA=change, **given)
    assert main[:7] in reported(clone)
    assert "no baseline" not in reported(clone)
    listed = warm.run(["-m", "gate", "baseline", "list"], cwd=clone, environment=os.environ)
    assert listed.returncode == 0, listed.stderr
    assert len(listed.stdout.splitlines()) == 2, "a merge request stores nothing"


@pytest.mark.slow
def test_what_the_target_branch_lost_is_not_blamed_on_a_merge_request(project: Project) -> None:
    """A pipeline for merged results runs on a merge commit, which holds what happened on the target branch since."""
    base = project.commit("main", agent__py=FILES["agent.py"])
    change = project.commit("change", notes__txt="a change")
    project.git("checkout", "-q", "main")
    target = project.commit("main", agent__py=FILES["agent.py"].replace("look_up", "guess"))
    project.job(gitlab(), target, None, 1, CI_COMMIT_BRANCH="main", CI_COMMIT_SHA=target)
    project.git("merge", "-q", "--no-ff", "-m", "merge", change)
    merged = project.git("rev-parse", "HEAD")
    project.git("push", "-q", "origin", "HEAD:refs/merge-requests/1/merge", "HEAD:refs/heads/kept")
    given = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": target, **MERGE_REQUEST}
    clone, _ = project.job(gitlab(), merged, None, 0, CI_COMMIT_SHA=merged, **given)
    assert target[:7] in reported(clone)


@pytest.mark.slow
def test_a_merge_request_without_a_common_commit_fails_and_stores_nothing(project: Project) -> None:
    project.commit("main")
    project.git("checkout", "-q", "--orphan", "other")
    other = project.commit("other")
    project.job(gitlab(), other, None, 2, CI_COMMIT_SHA=other, **MERGE_REQUEST)
    assert not project.git("ls-remote", "origin", "refs/heads/gate-baselines")


@pytest.mark.slow
def test_the_lines_for_any_other_ci_do_the_same(project: Project) -> None:
    first = project.commit("main")
    project.job([line.replace("<commit>", "HEAD") for line in others()], first)
    second = project.commit("main", agent__py=FILES["agent.py"] + "# another agent\n")
    clone, said = project.job([line.replace("<commit>", shlex.quote(first)) for line in others()], second)
    assert "no baseline" not in reported(clone)
    assert first[:7] in reported(clone)
    assert "uncommitted changes" not in said


@pytest.mark.slow
def test_reports_of_an_earlier_run_are_no_change_and_a_file_of_the_users_is(project: Project) -> None:
    first = project.commit("main")
    run, save = others()
    run = run.replace("--against <commit> --rules-from <commit>", "--quiet")
    _, said = project.job([run, f"{run} --json report.json", f"{run} --json report.json", save], first)
    assert "uncommitted changes" not in said
    _, said = project.job(["touch notes.txt", run, f"{save} || echo refused with $?"], first)
    assert "uncommitted changes" in said and "refused with 6" in said


@pytest.mark.slow
def test_without_any_record_there_is_nothing_to_save(project: Project) -> None:
    first = project.commit("main")
    _, said = project.job(["gate baseline save || echo exit code $?"], first)
    assert "no finished record of 'support'" in said
    assert "exit code" in said


# --- merges, then a change ------------------------------------------------------------------------


def page(name: str, begin: str, language: str = "yaml") -> str:
    """The first block of a page that begins so."""
    text = (REPOSITORY / "docs/how-to" / name).read_text(encoding="utf-8")
    found = re.search(rf"^```{language}\n({begin}.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def jenkins() -> list[str]:
    script = re.search(r"sh '''\n(.*?)'''", page("other-ci.md", "pipeline", "groovy"), re.DOTALL)
    assert script is not None
    return script[1].splitlines()


def circleci() -> list[str]:
    steps = yaml.safe_load(page("other-ci.md", r"# \.circleci"))["jobs"]["gate"]["steps"]
    return [step["run"] for step in steps if isinstance(step, dict) and "gate run" in step.get("run", "")]


def azure() -> list[str]:
    measure, _ = yaml.safe_load(page("other-ci.md", r"# azure"))["jobs"]
    return [step["script"] for step in measure["steps"] if "gate run" in step.get("script", "")]


def bitbucket() -> list[str]:
    step = yaml.safe_load(page("other-ci.md", r"# bitbucket"))["definitions"]["steps"][0]["step"]
    return [line for line in step["script"] if "pip install" not in line]


RECIPES = {
    "gitlab": (gitlab, {"CI_COMMIT_BRANCH": "main"}, {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "BASE", **MERGE_REQUEST}),
    "jenkins": (jenkins, {"BRANCH_NAME": "main"}, {"BRANCH_NAME": "PR-1", "CHANGE_TARGET": "main"}),
    "circleci": (circleci, {"CIRCLE_BRANCH": "main"}, {"CIRCLE_BRANCH": "change"}),
    "azure": (azure, {"BUILD_SOURCEBRANCH": "refs/heads/main"}, {"BUILD_SOURCEBRANCH": "refs/pull/1/merge"}),
    "bitbucket": (bitbucket, {}, {"BITBUCKET_PR_ID": "1"}),
}
"""Each guide's lines, with what its system says on the default branch, and on a change."""
ALL_DEFAULTS = CONFIG.replace("baseline: {store: git}\n", "")


def expect_enough_of(main: str, clone: Path, code: int) -> None:
    """The record of the clone was compared with this commit, of which there are five trials of each case or more."""
    [record] = (clone / ".gate/records").rglob("*.jsonl")
    words = ["-m", "gate", "report", str(record), "--json", "found.json", "-q"]
    shown = warm.run(words, cwd=clone, environment={**os.environ, "CI": "true"})
    assert shown.returncode == code, shown.stderr
    found = json.loads((clone / "found.json").read_text(encoding="utf-8"))["suites"][0]
    assert found["baseline"]["commit"] == main
    assert min(case["baseline_trials"] for case in found["cases"]) >= 5


@pytest.mark.slow
def test_after_three_merges_of_an_agent_behind_http_a_change_is_compared(project: Project, served: Served) -> None:
    script, merge, change = RECIPES["circleci"]
    agent = f"agent: {{http: '{served.url}'}}\ncriteria: {{response_match_score: 0.5}}"
    config = re.sub(r"agent: .*\ncriteria: .*", agent, ALL_DEFAULTS)
    cases = [{"id": f"case-{n}", "input": f"item {n}", "response": "Done."} for n in range(6)]
    project.commit("main", gate__yaml=config, suite__yaml=json.dumps({"cases": cases}))
    for number in range(3):
        main = project.commit("main", agent__py=FILES["agent.py"] + f"# version {number}\n")
        _, said = project.job(script(), main, CI="true", **merge)
        assert "saved branch gate-baselines of origin" in said
    head = project.commit("change", agent__py=FILES["agent.py"] + "# a change\n")
    clone, said = project.job(script(), head, CI="true", **change)
    assert "saved" not in said, "a change stores nothing"
    expect_enough_of(main, clone, 0)


@pytest.mark.slow
def test_in_ci_a_folder_that_goes_with_the_clone_is_said_to(project: Project) -> None:
    main = project.commit("main", gate__yaml=CONFIG.replace("store: git", "store: file"))
    _, said = project.job(["gate run -q", "gate baseline save"], main, CI="true")
    assert "gone with the job's clone" in said


@pytest.mark.slow
def test_in_ci_a_committed_folder_stays_the_store(project: Project) -> None:
    main = project.commit("main", gate__yaml=ALL_DEFAULTS + "baseline: {path: baselines}\n")
    project.job(["gate run -q", "gate baseline save"], main, CI="")
    shutil.copytree(project.folder / "job-1" / "baselines", project.folder / "work" / "baselines")
    second = project.commit("main")
    _, said = project.job(["gate run -q", "gate baseline save"], second, CI="true")
    assert "saved" in said and "baselines" in said and "gone" not in said


# --- what a change measured is there for its next job ----------------------------------------------


def gitlabs_cache(*, change: bool) -> Cache | None:
    found = yaml.safe_load(page("other-ci.md", r"# \.gitlab-ci"))
    job = found["gate"] if change else {**found["gate"], **found["baseline"]}
    cache = job.get("cache")
    if not cache:
        return None
    assert cache["when"] == "always"
    [folder] = cache["paths"]
    return Cache(folder, cache["key"])


def jenkins_cache(*, change: bool) -> Cache | None:
    script = page("other-ci.md", "pipeline", "groovy")
    copied = re.search(
        r'if \(env\.CHANGE_ID\) \{[^\n]*\n\s*copyArtifacts projectName: "(.*?)", selector: lastCompleted\(\), '
        r"filter: '(.*?)/\*\*', optional: true\n",
        script,
    )
    if copied is None or not change:
        return None
    job, folder = copied.groups()
    always = script[script.index("always {") :]
    assert f"{folder}/**" in always, "it copies what was archived, of red builds, too"
    assert f'copyArtifactPermission("{job}")' in script
    return Cache(folder, job)


def circlecis_cache(*, change: bool) -> Cache | None:
    steps: list[dict[str, Any]] = []
    for step in yaml.safe_load(page("other-ci.md", r"# \.circleci"))["jobs"]["gate"]["steps"]:
        if isinstance(step, dict) and "unless" in step:
            assert step["unless"]["condition"] == {"equal": ["main", "<< pipeline.git.branch >>"]}
            steps += step["unless"]["steps"] if change else []
        elif isinstance(step, dict):
            steps.append(step)
    saved = [step["save_cache"] for step in steps if "save_cache" in step]
    found = [key for step in steps if "restore_cache" in step for key in step["restore_cache"]["keys"]]
    if not saved and not found:
        return None
    [cache], [begins] = saved, found
    assert cache["when"] == "always"
    [folder] = cache["paths"]
    return Cache(folder, cache["key"], begins)


def azures_cache(*, change: bool) -> Cache | None:
    measure, verdict = yaml.safe_load(page("other-ci.md", r"# azure"))["jobs"]
    assert verdict["dependsOn"] == measure["job"]
    cached = [step for step in measure["steps"] if step.get("task") == "Cache@2"]
    if not cached or (not change and cached[0]["condition"] == "eq(variables['Build.Reason'], 'PullRequest')"):
        return None
    given = cached[0]["inputs"]
    return Cache(given["path"], given["key"], given["restoreKeys"])


CACHES = {"gitlab": gitlabs_cache, "jenkins": jenkins_cache, "circleci": circlecis_cache, "azure": azures_cache}
EVERY_CACHE = pytest.mark.parametrize("name", CACHES)


@EVERY_CACHE
def test_each_change_has_a_cache_of_its_own_and_the_default_branch_reads_none(name: str) -> None:
    assert CACHES[name](change=False) is None, "a change could have written it"
    cache = CACHES[name](change=True)
    assert cache is not None
    assert Path(cache.folder) == Path(".gate/records")
    assert cache.finds(expanded(cache.key, 1), 2), "the next job finds it"
    assert not any(cache.finds(expanded(cache.key, 1, other), 2) for other in ("fix-2", "fi", ""))


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_a_change_is_compared_with_its_base_and_a_retry_in_a_fresh_clone_continues(project: Project, name: str) -> None:
    script, merge, change = RECIPES[name]
    main = project.commit("main", gate__yaml=ALL_DEFAULTS)
    given = {key: main if value == "BASE" else value for key, value in change.items()}
    caches = CACHES.get(name, lambda *, change: None)
    _, said = project.job(script(), main, caches(change=False), CI="true", **merge)
    assert "saved branch gate-baselines of origin" in said
    red = 0 if name == "azure" else 1

    def measure(head: str) -> tuple[Path, str]:
        clone, said = project.job(script(), head, caches(change=True), red, CI="true", **given)
        assert red or "##vso[task.setvariable variable=code;isOutput=true]1" in said
        assert "saved" not in said, "a change stores nothing"
        return clone, " ".join(said.split())

    worse = FILES["agent.py"].replace("look_up", "guess")
    head = project.commit("change", agent__py=worse)
    clone, said = measure(head)
    assert "continues a record" not in said
    expect_enough_of(main, clone, 1)
    if name not in CACHES:
        return
    _, said = measure(head)
    assert "continues a record of" in said and "nothing new was run" in said, "a retry"
    if name != "gitlab":  # what follows is the gate's, not the recipe's
        return
    _, said = measure(project.commit("change"))
    assert "of an earlier commit of this change" in said and "nothing new was run" in said, "an empty commit"
    _, said = measure(project.commit("change", agent__py=worse + "# please\n"))
    assert "measurement 2 of this change; before: " in said, "a comment"
