"""What a change touches of the place in which both agents are run, and of the way in which they are started."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from gate.agents.sources import imported_from, what_installs
from gate.config.load import Config, load_config
from gate.pipeline.identity import definition_differs, surroundings_differ
from gate.system.git import Git

AGENT = """\
suite: evals
agent: {python: "agent:answer", env: [MODEL]}
setup: pip install -r needs.list
criteria: {response_match_score: 0.5}
"""
SERVED = """\
suite: evals
agent: {http: {url: "https://one.example", request: {model: big}}, base: "https://base.example"}
criteria: {response_match_score: 0.5}
"""
LATER = "agent: {python: 'agent:answer', env: [MODEL], timeout: 5s, retries: 1, sources: ['*.py'], version: '2'}"


def call(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Project:
    def __init__(self, root: Path, text: str) -> None:
        self.root = root
        call(root, "init", "-q")
        call(root, "config", "user.email", "a@b.example")
        call(root, "config", "user.name", "a")
        (root / "app" / "evals").mkdir(parents=True)
        self.write("app/gate.yaml", text)
        for name in ("app/agent.py", "app/needs.list", "requirements.txt", "other/package.json", "README.md"):
            self.write(name, "1")
        call(root, "add", ".")
        call(root, "commit", "-qm", "base")
        self.base = call(root, "rev-parse", "HEAD")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @property
    def config(self) -> Config:
        return load_config(self.root / "app" / "gate.yaml")

    @property
    def git(self) -> Git:
        return Git(self.root / "app", environment=os.environ)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("app/agent.py", "2", ""),
        ("README.md", "2", ""),
        ("other/package.json", "2", ""),
        ("app/needs.list", "2", "app/needs.list differs"),
        ("requirements.txt", "2", "requirements.txt differs"),
        ("app/uv.lock", "new", "app/uv.lock differs"),
        (".gitlab-ci.yml", "new", ".gitlab-ci.yml differs"),
        (".github/workflows/gate.yml", "new", ".github/workflows/gate.yml differs"),
        ("app/gate.yaml", AGENT.replace("[MODEL]", "{MODEL: small}"), "agent.env differs"),
        ("app/gate.yaml", AGENT.replace("agent:answer", "agent:other"), "agent.python differs"),
        ("app/gate.yaml", AGENT.replace("needs.list", "needs2.list"), "setup differs"),
        ("app/gate.yaml", AGENT.replace("0.5", "0.6"), ""),
        ("app/gate.yaml", AGENT.replace(AGENT.splitlines()[1], LATER), ""),
    ],
)
def test_a_change_of_what_is_installed_or_started_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    project = Project(tmp_path, AGENT)
    assert surroundings_differ(project.config, project.git, project.base) == ""
    project.write(name, text)
    call(tmp_path, "add", ".")
    assert surroundings_differ(project.config, project.git, project.base) == said, "not committed"
    call(tmp_path, "commit", "-qm", "change")
    assert surroundings_differ(project.config, project.git, project.base) == said


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("one.example", "two.example", ""),
        ("{model: big}", "{model: small}", "agent.http differs"),
        ("base.example", "elsewhere.example", ""),
        ('{url: "https://one.example", request: {model: big}}', '"https://one.example"', "agent.http differs"),
    ],
)
def test_a_server_is_asked_as_the_base_asks_it(tmp_path: Path, before: str, now: str, said: str) -> None:
    project = Project(tmp_path, SERVED)
    project.write("app/gate.yaml", SERVED.replace(before, now))
    assert definition_differs(project.config, project.git, project.base, but=("url", "headers")) == said


@pytest.mark.parametrize(
    ("setup", "name", "said"),
    [
        ("pip install ./vendor", "app/vendor/lib/code.py", "app/vendor/lib/code.py differs"),
        ("pip install './vendor[all]'", "app/vendor/lib/code.py", "app/vendor/lib/code.py differs"),
        ("pip install -e .", "app/agent.py", "app/agent.py differs"),
        ("pip install .", "app/evals/suite.yaml", ""),
        ("pip install -r needs.list", "app/agent.py", ""),
        ("pip install -r needs.list", "other/needs.list", ""),
        ("cd .. && pip install .", "app/agent.py", "app/agent.py differs"),
    ],
)
def test_what_setup_installs_from_the_tree_is_the_changes(tmp_path: Path, setup: str, name: str, said: str) -> None:
    project = Project(tmp_path, AGENT.replace("pip install -r needs.list", f'"{setup}"'))
    project.write(name, "2")
    call(tmp_path, "add", ".")
    assert surroundings_differ(project.config, project.git, project.base) == said


def test_what_is_imported_from_this_work_tree_is_the_changes(tmp_path: Path) -> None:
    project = Project(tmp_path, AGENT)
    project.write("src/acme/agent.py", "2")
    call(tmp_path, "add", ".")
    assert surroundings_differ(project.config, project.git, project.base, None, []) == ""
    said = surroundings_differ(project.config, project.git, project.base, None, [PurePosixPath("src")])
    assert said == "src/acme/agent.py differs (`agent.path: [../src]` would import each commit's own)"


def test_the_folders_that_an_environment_imports_from(tmp_path: Path) -> None:
    top, packages = tmp_path / "top", tmp_path / "venv/lib/python3.12/site-packages"
    installed = {
        "with_src": f"file://{top}/libs/with%20src",
        "flat": f"file://{top}/libs/flat",
        "elsewhere": f"file://{tmp_path}/elsewhere",
        "fetched": "https://example.com/x.whl",
    }
    for name, url in installed.items():
        place = packages / f"{name}-1.dist-info"
        place.mkdir(parents=True)
        (place / "direct_url.json").write_text(json.dumps({"url": url}))
    (packages / "odd-1.dist-info").mkdir()
    (packages / "odd-1.dist-info/direct_url.json").write_text("[]")
    (packages / "own.pth").write_text(f"import os\n{top}/old\nrelative\n")
    (top / "libs/with src/src").mkdir(parents=True)
    found = imported_from(top, [tmp_path / "venv", tmp_path / "none"], f"{top}/lib:..:/usr/lib:")
    assert set(map(str, found)) == {"lib", "libs/with src/src", "libs/flat", "old"}


def test_what_the_job_ran_stands_for_the_configurations(tmp_path: Path) -> None:
    project = Project(tmp_path, AGENT)
    project.write("app/agent.py", "2")
    assert surroundings_differ(project.config, project.git, project.base) == ""
    assert surroundings_differ(project.config, project.git, project.base, "pip install .") == "app/agent.py differs"
    project.write("app/needs.list", "2")
    assert surroundings_differ(project.config, project.git, project.base, "") == ""


def test_a_word_too_long_for_a_file_installs_nothing(tmp_path: Path) -> None:
    assert what_installs(tmp_path, tmp_path, f"echo {'a' * 300} | base64 -d") == []


def test_what_installs_the_agent_is_found_beside_and_above_it(tmp_path: Path) -> None:
    project = Project(tmp_path, AGENT)
    project.write("app/deep/pyproject.toml", "1")
    project.write("vendor/lib/code.py", "1")
    setup = "pip install -r needs.list ../vendor . .. /etc/hosts missing"
    found = what_installs(project.root / "app", project.root, setup)
    assert found == ["../requirements.txt", "needs.list", "../vendor"]


def test_a_folder_elsewhere_that_requirements_install_counts_with_what_it_installs(tmp_path: Path) -> None:
    project = Project(tmp_path, AGENT)
    project.write("app/requirements.txt", "-r more.txt\n-e ../libs/shared\n./inside\nhttpx\n")
    project.write("app/more.txt", "-e ../../outside\n")
    project.write("app/inside/code.py", "1")
    project.write("libs/shared/pyproject.toml", '[project]\ndependencies = ["core @ file:../core"]\n')
    project.write("libs/core/code.py", "1")
    found = what_installs(project.root / "app", project.root, "")
    assert {"../libs/shared", "../libs/core"} <= set(found)
    assert not any("outside" in name or "inside" in name for name in found)


def test_without_a_configuration_at_the_base_nothing_is_held_against_it(tmp_path: Path) -> None:
    project = Project(tmp_path, AGENT)
    call(tmp_path, "rm", "-q", "--cached", "app/gate.yaml")
    call(tmp_path, "commit", "-qm", "none")
    assert definition_differs(project.config, project.git, call(tmp_path, "rev-parse", "HEAD")) == ""
