"""A project over time: what its branch of baselines, its records and an artifact say of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.acceptance.conftest import REPOSITORY, Project

AGENT = """\
def answer(message):
    return "done" if int(message.split()[-1]) % {modulus} else "no idea"
"""
CASES = "\n".join(
    f"  - {{id: case-{n}, input: item {n}, response: done, tags: [{'refund' if n % 2 else 'order'}]}}"
    for n in range(1, 21)
)
CONFIG = """\
agent: {python: agent:answer}
suite: suite.yaml
criteria: {response_match_score: 0.5}
trials: 2
baseline: {store: git, trials: off}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Six commits on main, each with its baseline on the branch; the fifth breaks every other case."""
    return with_baselines(tmp_path_factory.mktemp("history"), commits=6)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The first two of them."""
    return with_baselines(tmp_path_factory.mktemp("short"), commits=2)


def with_baselines(root: Path, commits: int) -> Project:
    made = Project(root / "work")
    made.write("gate.yaml", CONFIG)
    made.write("suite.yaml", f"cases:\n{CASES}\n")
    made.write(".gitignore", ".gate/\n__pycache__/\nsaved.json\n*.zip\n")
    for number in range(commits):
        made.write("agent.py", AGENT.format(modulus=97 if number < 4 else 2) + f"# {number}\n")
        made.commit(f"change {number}")
        if number == 0:
            made.git("init", "-q", "--bare", str(root / "origin.git"))
            made.git("remote", "add", "origin", str(root / "origin.git"))
        made.git("push", "-q", "origin", "main")
        ran = made.gate("run", "-q")
        assert ran.code in (0, 1), ran.err
        saved = made.gate("baseline", "save")
        assert saved.code == 0, saved.err
    return made


@pytest.mark.slow
def test_without_arguments_it_reads_the_branch_of_the_baselines(project: Project) -> None:
    ran = project.gate("history")
    assert (ran.code, ran.err) == (0, "")
    assert "suite.yaml · 6 runs of 6 commits" in ran.out
    for part in ("pass rate", "- refund", "response_match_score", "duration of a trial", "version"):
        assert part in ran.out, part
    assert "none of 20 cases is flaky" in ran.out


@pytest.mark.slow
def test_a_move_is_laid_to_its_commit(project: Project) -> None:
    document = json.loads(project.gate("history", "--json").out)
    (suite,) = document["suites"]
    assert document["source"].startswith("the stored baselines and ")
    assert [run["commit"] for run in suite["runs"]] == list(reversed(project.git("log", "--format=%H").split()))
    assert suite["runs"][4]["verdict"] == "regressed"
    rate = suite["series"][0]
    (move,) = rate["moves"]
    assert (rate["criterion"], move["run"], move["change"]) == ("pass rate", 4, -0.5)
    assert move["commits"]["commit"] == suite["runs"][4]["commit"]


@pytest.mark.slow
def test_records_and_an_artifact_tell_the_same(project: Project, tmp_path: Path) -> None:
    records = project.root / ".gate" / "records"
    archive = tmp_path / "artifact.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in records.rglob("*.jsonl"):
            packed.write(path, path.name)
    stored, folder, packed_up = (
        json.loads(project.gate("history", *given, "--json").out)["suites"][0]
        for given in ((), (str(records),), (str(archive),))
    )
    assert folder["series"] == packed_up["series"]
    assert stored["cases"] == folder["cases"]
    assert [one["summary"] for one in stored["series"]] == [one["summary"] for one in folder["series"]]


def test_damaged_records_are_named_and_never_fatal(short: Project, tmp_path: Path) -> None:
    for path in (short.root / ".gate" / "records").rglob("*.jsonl"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "torn.jsonl").write_bytes(path.read_bytes()[:-30])
    (tmp_path / "evil\x1b[31m.jsonl").write_text('{"gate_record": 2}\n')
    ran = short.gate("history", str(tmp_path))
    assert ran.code == 0
    assert "2 runs" in ran.out
    assert "2 records left out:" in ran.out
    assert "torn.jsonl: unreadable record: cut short" in ran.out
    assert "\x1b" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("absent",), 2, "no such file"),
        (("--suite", "other"), 3, "no record of suite 'other'"),
        (("gate.yaml",), 3, "no finished record"),
        (("-c", "absent.yaml"), 2, "absent.yaml"),
    ],
)
def test_what_cannot_be_read_is_one_line(short: Project, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = short.gate("history", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_before_anything_is_stored_the_records_are_read(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("gate.yaml", CONFIG.replace("git", "file"))
    project.write("suite.yaml", f"cases:\n{CASES}\n")
    project.write("agent.py", AGENT.format(modulus=97))
    assert project.gate("history").code == 3
    assert project.gate("run", "-q").code == 0
    ran = project.gate("history")
    assert ran.code == 0
    assert "1 run of 1 version of the agent, " in ran.out


# --- gate site ------------------------------------------------------------------------------------


def test_a_dashboard_of_the_branch_is_written_with_its_badge(short: Project, tmp_path: Path) -> None:
    ran = short.gate("site", str(tmp_path / "pages"))
    assert (ran.code, ran.err) == (0, "")
    assert "2 runs" in ran.out
    assert "suite.<wbr>yaml" in (tmp_path / "pages" / "index.html").read_text()
    verdict = json.loads(short.gate("history", "--json").out)["suites"][0]["runs"][-1]["verdict"]
    assert f"agent gate: suite.yaml: {verdict} (" in (tmp_path / "pages" / "badge.svg").read_text()
    (page,) = (tmp_path / "pages").glob("suite-yaml-*.html")
    assert short.git("rev-parse", "HEAD")[:8] in page.read_text()


@pytest.mark.slow
def test_a_dashboard_shows_where_it_fell(project: Project, tmp_path: Path) -> None:
    assert project.gate("site", str(tmp_path)).code == 0
    assert 'fell by <span class="whole">50 points</span>' in (tmp_path / "index.html").read_text()


@pytest.mark.slow
def test_a_badge_of_records_that_nobody_judged_is_unknown(project: Project, tmp_path: Path) -> None:
    assert project.gate("site", str(tmp_path), str(project.root / ".gate" / "records")).code == 0
    assert "unknown" in (tmp_path / "badge.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("gate.yaml",), 2, "gate.yaml"),
        (("out", "absent"), 2, "no such file"),
        ((), 2, "Missing argument 'OUT'"),
    ],
)
def test_what_cannot_be_written_is_one_line(short: Project, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = short.gate("site", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (short.root / "out").exists()


@pytest.mark.slow
def test_the_guides_workflow_publishes_the_dashboard_and_replaces_it(project: Project, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "how-to" / "production.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(# \.github/workflows/dashboard\.yml\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    steps = yaml.safe_load(block)["jobs"]["dashboard"]["steps"]
    remote = tmp_path / "pages.git"
    project.git("init", "-q", "--bare", str(remote))
    for sha in ("first", "second"):
        made = next(step["run"] for step in steps if step.get("run", "").startswith("gate site"))
        assert project.gate(*made.split()[1:-1], str(tmp_path / sha)).code == 0
        environment = {**os.environ, "REMOTE": str(remote), "GITHUB_SHA": sha}
        publish = next(step for step in steps if step.get("name") == "Publish")["run"]
        subprocess.run(["bash", "-e", "-c", publish], cwd=tmp_path / sha, env=environment, check=True)
    project.git("fetch", "-q", str(remote), "gh-pages")
    assert project.git("log", "--format=%s", "FETCH_HEAD") == "Dashboard at second"
    assert {".nojekyll", "index.html", "badge.svg"} <= set(project.git("ls-tree", "--name-only", "FETCH_HEAD").split())


@pytest.mark.slow
def test_a_change_is_shown_beside_the_runs_of_the_default_branch(project: Project) -> None:
    project.git("checkout", "-q", "-b", "change")
    project.commit("a change that touches nothing")
    _, result = project.result("run", "--markdown", "comment.md")
    project.git("checkout", "-q", "main")
    (suite,) = result["suites"]
    assert suite["trend"] == [1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5]
    assert "pass rate 100 % … 50 % in 6 stored runs before, 50 % now" in (project.root / "comment.md").read_text()
    again = project.gate("report", "--json", "again.json")
    assert json.loads((project.root / "again.json").read_text())["suites"][0]["trend"] == suite["trend"], again.err


@pytest.mark.slow
def test_a_stored_record_under_the_name_of_another_commit_is_named(project: Project, tmp_path: Path) -> None:
    project.git("clone", "-q", "-b", "gate-baselines", project.git("remote", "get-url", "origin"), str(tmp_path / "b"))
    branch = Project(tmp_path / "b")
    path = sorted(branch.root.glob("*/*.jsonl"))[0]
    name = re.sub("[0-9a-f]{40}", "0" * 40, path.name)
    (path.parent / name).write_bytes(path.read_bytes())
    branch.git("add", "-A")
    branch.git("commit", "-q", "-m", "a copy")
    branch.git("push", "-q")
    why = "it belongs to another suite or commit than its name says"
    ran = project.gate("history")
    assert (ran.code, "1 record left out:" in ran.out) == (0, True)
    ran = " ".join(project.gate("history").out.split()), " ".join(project.gate("baseline", "list").out.split())
    for text in ran:
        assert f"{path.parent.name}/{name}: {why}" in text
    branch.git("rm", "-q", f"{path.parent.name}/{name}")
    branch.git("commit", "-q", "-m", "no copy")
    branch.git("push", "-q")
    assert why not in project.gate("history").out + project.gate("baseline", "list").out
