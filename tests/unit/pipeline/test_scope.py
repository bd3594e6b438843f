"""The files that count as the agent's: a change of one that it may read is another agent, any other is not."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from gate.config.load import load_config
from gate.pipeline.identity import GitContext, about_unused_sources, agent_fingerprint, files_of_agent
from gate.system.git import Git

FILES = {
    "Makefile": "ask:\n\tpython agent.py\n",
    "agent.py": "print(1)\n",
    "app/__init__.py": "",
    "app/bot.py": "import shared.texts\n",
    "lib/shared/texts.py": "",
    "run.sh": "cat prompts/*.md | python agent.py\n",
    "evals/suite.yaml": "cases: [{id: a, input: hi}]\n",
    "prompts/a.md": "Be kind.\n",
    "README.md": "An agent.\n",
}


class Project:
    def __init__(self, root: Path, files: Mapping[str, str] = FILES) -> None:
        self.root = root
        for name, text in files.items():
            self.write(name, text)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        self.add()

    def add(self) -> None:
        subprocess.run(["git", "add", "-A"], cwd=self.root, check=True)

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def agent(self, agent: object, folder: str = ".", environment: Mapping[str, str] = os.environ) -> str:
        """The fingerprint with this section ``agent`` of a configuration in the folder."""
        path = self.root / folder / "gate.json"
        path.parent.mkdir(exist_ok=True)
        suite = os.path.relpath(self.root / "evals", path.parent)
        path.write_text(json.dumps({"suite": suite, "agent": agent, "criteria": {"response_match_score": 0.5}}))
        try:
            config = load_config(path)
        finally:
            path.unlink()
        git = Git(config.root, environment=os.environ)
        return agent_fingerprint(config, git, environment, [], "", GitContext(), files_of_agent(config, git), None)

    def counts(self, agent: object, name: str, folder: str = ".") -> bool:
        """True if a change of this file is another agent."""
        before = self.agent(agent, folder)
        old = (self.root / name).read_text() if (self.root / name).exists() else None
        self.write(name, "changed\n")
        self.add()
        found = self.agent(agent, folder) != before
        (self.root / name).unlink()
        if old is not None:
            self.write(name, old)
        self.add()
        return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


SOURCES = ["agent.py", "app/"]


@pytest.mark.parametrize(
    "command",
    [
        ["make", "ask"],
        ["just", "ask"],
        ["npm", "run", "ask"],
        ["docker", "compose", "run", "agent"],
        ["uv", "run", "ask"],
        ["./run.sh"],
        ["sh", "run.sh"],
        ["sh", "-c", "cat prompts/* | python agent.py"],
        ["node", "built/agent.js"],
        [".venv/bin/ask"],
    ],
    ids=" ".join,
)
def test_every_file_counts_if_nobody_can_tell_what_starts_the_agent(project: Project, command: list[str]) -> None:
    agent = {"command": command, "sources": SOURCES}
    project.write(".gitignore", "built/\n.venv/\n")
    project.write("built/agent.js", "")
    project.write(".venv/bin/ask", "#!/usr/bin/env python\n")
    for name in ("Makefile", "justfile", "prompts/a.md", "lib/shared/texts.py", "README.md", "new/file"):
        assert project.counts(agent, name), name


@pytest.mark.parametrize("words", [["--prompt", "prompts/a.md"], ["--prompt=prompts/a.md"], ["-p=./prompts/a.md"]])
def test_a_file_that_the_command_names_counts_beside_stated_sources(project: Project, words: list[str]) -> None:
    agent = {"command": ["python", "agent.py", *words], "sources": SOURCES}
    assert project.counts(agent, "prompts/a.md")
    assert not project.counts(agent, "README.md")


@pytest.mark.parametrize(
    "agent",
    [
        {"python": "app.bot:answer"},
        {"command": ["python", "agent.py"]},
        {"command": ["uv", "run", "python", "-m", "app.bot"]},
        {"command": ["node", "./server.mjs"]},
        {"mcp": {"command": ["python", "agent.py"], "tool": "ask"}},
    ],
    ids=str,
)
def test_stated_sources_narrow_an_agent_whose_start_is_known(project: Project, agent: dict[str, object]) -> None:
    project.write("server.mjs", "")
    agent["sources"] = ["prompts/"]
    assert project.counts(agent, "prompts/a.md")
    assert not any(project.counts(agent, name) for name in ("Makefile", "README.md", "lib/shared/texts.py", "new/file"))
    for name in ("app/bot.py", "app/__init__.py", "agent.py", "server.mjs"):
        is_start = name.partition(".")[0] in str(agent) or (name.startswith("app/") and "app.bot" in str(agent))
        assert project.counts(agent, name) == is_start, name
    node = ("tsconfig.json", "deno.json", "bunfig.toml", ".pnpmfile.cjs")
    for name in (
        "sitecustomize.py",
        "uv.toml",
        "uv.lock",
        "pip.conf",
        ".python-version",
        "lib/own.pth",
        "go.work",
        *node,
    ):
        assert project.counts(agent, name), name


SCRIPTS = {
    "ask": "tsx src/agent.ts --quiet",
    "piped": "cat prompts/*.md | node src/agent.ts",
    "moved": "cd src && node src/agent.ts",
    "hooked": "node src/agent.ts",
    "prehooked": "node make-prompts.js",
    "shell": "./run.sh src/agent.ts",
}
PYPROJECT = "[project.scripts]\nask = 'app.bot:main'\n[tool.poetry.scripts]\ntell = 'app.bot:main'\n"


@pytest.mark.parametrize("command", ["npm run -s ask", "yarn ask", "uv run --frozen ask", "poetry run tell", "ask"])
def test_stated_sources_narrow_an_agent_that_a_projects_file_names(project: Project, command: str) -> None:
    project.write("package.json", json.dumps({"scripts": SCRIPTS}))
    project.write("pyproject.toml", PYPROJECT)
    project.write("src/agent.ts", "")
    project.add()
    agent = {"command": command.split(), "sources": ["prompts/"]}
    start = "src/agent.ts" if command.startswith(("npm", "yarn")) else "app/bot.py"
    for name in (start, "package.json", "pyproject.toml", "prompts/a.md"):
        assert project.counts(agent, name), name
    for name in ("README.md", "agent.py", "lib/shared/texts.py", "new/file"):
        assert not project.counts(agent, name), name


@pytest.mark.parametrize(
    "command",
    [
        *("npm run piped", "npm run moved", "npm run hooked", "npm run shell", "npm run nothing", "npm run"),
        *("npm --prefix=web run ask", "npm -w web run ask", "uv run --project web ask", "make ask", "uv"),
    ],
)
def test_every_file_counts_if_a_projects_file_does_not_say_plainly_what_starts(project: Project, command: str) -> None:
    project.write("package.json", json.dumps({"scripts": SCRIPTS}))
    project.write("pyproject.toml", PYPROJECT)
    project.write("src/agent.ts", "")
    project.add()
    assert project.counts({"command": command.split(), "sources": ["prompts/"]}, "README.md")


@pytest.mark.parametrize(
    "agent",
    [
        {"python": "shared.texts:answer", "env": {"PYTHONPATH": "../lib"}},
        {"command": ["python", "agent.py"], "env": {"PYTHONPATH": ".."}},
        {"python": "shared.texts:answer", "sources": ["."]},
    ],
    ids=str,
)
def test_a_configuration_in_a_subfolder_counts_modules_of_the_whole_repository(
    project: Project, agent: dict[str, object]
) -> None:
    project.write("checks/agent.py", "import app.bot\n")
    project.add()
    assert project.counts(agent, "lib/shared/texts.py", "checks")
    assert project.counts(agent, "app/bot.py", "checks") == ("sources" not in agent)


def test_sources_without_effect_are_reported(project: Project) -> None:
    notes = []
    for command in (["make", "ask"], ["python", "agent.py"]):
        section = {"command": command, "sources": SOURCES}
        told = {"suite": "evals", "agent": section, "criteria": {"response_match_score": 0.5}}
        project.write("gate.json", json.dumps(told))
        config = load_config(project.root / "gate.json")
        notes.append(about_unused_sources(config, files_of_agent(config, Git(config.root, environment=os.environ))))
    assert "in spite of `agent.sources`" in notes[0]
    assert notes[1] == ""


VARIABLES = {"KEYWORDS_FILE": "a.txt", "MAX_TOKENS": "10", "API_KEY": "k", "MONKEY": "m", "DB_PASSWORD": "p"}


def test_every_variable_but_a_secret_counts(project: Project) -> None:
    agent = {"python": "app.bot:answer", "env": list(VARIABLES)}
    before = project.agent(agent, environment=VARIABLES)
    for name in VARIABLES:
        now = project.agent(agent, environment={**VARIABLES, name: "another"})
        assert (now != before) == (name in ("KEYWORDS_FILE", "MAX_TOKENS", "MONKEY")), name


@pytest.mark.parametrize("number", [60, pytest.param(1_000, marks=pytest.mark.slow)])
def test_only_changes_of_files_that_the_agent_may_read_make_another_agent(project: Project, number: int) -> None:
    agent = {"python": "app.bot:answer", "sources": ["app/", "prompts/"]}
    rng, before = random.Random(20261128), project.agent(agent)
    names = ("notes.md", "bot.py", "Makefile.bak", "a b", "ü.txt", "-x", "app.py", "prompts.md", "uv.toml.old")
    outside = ("", "docs/", "lib/", "apps/", "x/app/", "x/prompts/", ".github/workflows/", "evals/", "prompts.d/")
    for step in range(number):
        for place, is_read in ((rng.choice(outside), False), (rng.choice(("app/", "prompts/", "app/deep/")), True)):
            name = place + rng.choice(names)
            if (project.root / name).exists():
                continue
            project.write(name, f"{rng.random()}")
            if rng.random() < 0.5:
                project.add()
            if rng.random() < 0.2:
                (project.root / name).chmod(0o755)
            assert (project.agent(agent) != before) == is_read, (step, name)
            (project.root / name).unlink()
    project.add()
    assert project.agent(agent) == before
