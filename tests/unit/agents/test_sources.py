"""The files that make up an agent: all that it reads, or a reason why nobody can tell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from gate.agents.sources import Sources, sources_of

BASE = {
    "app/bot.py": "import json\nfrom shared.util import greet\n",
    "libs/shared/shared/util.py": "",
    "libs/shared/tests/test_util.py": "import pytest\n",
    "texts/system.txt": "Be kind.",
    "README.md": "",
    "other/a.py": "",
}
SHARED = {"libs/shared/pyproject.toml": ""}


def sources(root: Path, files: Mapping[str, str], *, named: tuple[str, ...] = ()) -> Sources:
    files = {**BASE, **files}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    installs = [name for name in files if name in ("requirements.txt", "pyproject.toml", "uv.lock", ".env")]
    return sources_of(["app/bot.py"], root, files, named, installs)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        pytest.param({}, {"libs/shared/shared/util.py"}, id="a module that no parent folder reaches"),
        pytest.param(SHARED, {"libs/shared/"}, id="a distribution counts as a whole"),
        pytest.param(
            {"app/bot.py": "", "requirements.txt": "-e libs/shared  # ours\n"},
            {"libs/shared/"},
            id="an editable folder",
        ),
        pytest.param({"app/bot.py": "", "requirements.txt": "./libs/shared[all]\n"}, {"libs/shared/"}, id="a path"),
        pytest.param(
            {"app/bot.py": "", "requirements.txt": "shared @ file:libs/shared\n"}, {"libs/shared/"}, id="an address"
        ),
        pytest.param(
            {"app/bot.py": "", "pyproject.toml": '[tool.uv.sources]\nshared = {path = "libs/shared"}\n'},
            {"libs/shared/"},
            id="a path source of uv",
        ),
        pytest.param(
            {"requirements.txt": "-r needs/base.txt", "needs/base.txt": "openai>=1", "app/bot.py": "import openai"},
            {"needs/base.txt"},
            id="further requirements",
        ),
        pytest.param({"requirements.txt": "PyYAML==6", "app/bot.py": "import yaml"}, set(), id="another name"),
        pytest.param(
            {"app/bot.py": "import json, os.path\n", "a/json.py": ""}, {"a/json.py"}, id="any module of the name"
        ),
        pytest.param(
            {"app/bot.py": "X = open('settings/agent.yaml')\n", "settings/agent.yaml": "prompt: texts/system.txt\n"},
            {"settings/agent.yaml", "texts/system.txt"},
            id="a text that only the settings name",
        ),
        pytest.param(
            {"app/bot.py": "X = '/srv/a.yaml'\n", "settings/a.yaml": "folder: ../texts\n"},
            {"settings/a.yaml", "texts/"},
            id="a path from elsewhere, and a folder relative to the settings",
        ),
        pytest.param({"app/bot.py": "X = f'{name}.txt'\n"}, {"**/*.txt"}, id="the end of a name"),
        pytest.param(
            {"app/bot.py": "X = 'TO' + 'NE'\n", "TONE": ""}, {"TONE"}, id="the end of a name without a suffix"
        ),
        pytest.param({"app/bot.py": "X = 'texts/{}'\n"}, {"texts/"}, id="the beginning of a name"),
        pytest.param({"app/bot.py": "X = 'other.a:app'\n"}, {"other/a.py"}, id="a module named by a text"),
        pytest.param({"app/bot.py": "X = 'python -m other.a'\n"}, {"other/a.py"}, id="a command"),
        pytest.param(
            {"app/bot.py": "", ".env": "PROMPT=texts/system.txt\n"}, {".env", "texts/system.txt"}, id="a variable"
        ),
        pytest.param({"app/bot.py": "X = load('tone')\n", "app/tone.md": ""}, {"app/tone.md"}, id="a name to complete"),
        pytest.param({"app/bot.py": "X = 'tone.' + KIND\n", "tone.md": ""}, {"tone.md"}, id="a name without its end"),
        pytest.param({"app/bot.py": "X = load('ci')\n", ".github/workflows/ci.yml": ""}, set(), id="a hidden folder"),
        pytest.param(
            {
                "app/bot.py": "",
                "CLAUDE.md": "",
                "app/AGENTS.md": "",
                ".claude/skill.md": "",
                ".mcp.json": "",
                "app/settings.toml": "",
            },
            {"CLAUDE.md", "app/AGENTS.md", ".claude/", ".mcp.json", "app/settings.toml"},
            id="files that frameworks read of themselves",
        ),
        pytest.param(
            {"app/bot.py": "X = open('a.json')\n", "a.json": '{"$ref": "b.json#/x"}', "b.json": ""},
            {"a.json", "b.json"},
            id="a reference into a file",
        ),
        pytest.param(
            {
                "app/bot.py": "",
                "pyproject.toml": "[project.scripts]\nask = 'other.a:main'\n[project.entry-points.x]\ny = 'more'\n",
                "more.py": "",
            },
            {"other/a.py", "more.py"},
            id="programs and plugins that are installed",
        ),
        pytest.param(
            {
                "app/bot.py": "",
                "pyproject.toml": "[tool.uv.workspace]\nmembers = ['packages/*']\n",
                "packages/a/pyproject.toml": "",
            },
            {"packages/"},
            id="the members of a workspace",
        ),
        pytest.param(
            {"app/bot.py": "", "requirements.txt": "--find-links wheels\nx\n", "wheels/x-1-py3-none-any.whl": ""},
            {"wheels/"},
            id="packages in a folder",
        ),
    ],
)
def test_all_that_the_agent_reads_counts(tmp_path: Path, files: Mapping[str, str], found: set[str]) -> None:
    told = sources(tmp_path, files)
    assert (told.problem, set(told.names)) == ("", {"app/bot.py", *found})


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"app/bot.py": "import acme\n"}, "app/bot.py imports acme, which is neither a tracked file nor a requirement"),
        ({"app/bot.py": "from . import made\n"}, "imports .made, which is neither"),
        ({"app/bot.py": "import shared.made\n"}, "imports shared.made, which is neither"),
        ({"app/bot.py": "from os import listdir\n"}, "what app/bot.py reads shows only while it runs (listdir)"),
        ({"app/bot.py": "import importlib\nimportlib.import_module('x')\n"}, "while it runs (import_module)"),
        ({"app/bot.py": "X = 'run.js'\n", "run.js": ""}, "run.js is a program that is not in Python"),
        ({"app/bot.py": "X = ['python', '-m', 'worker']\n", "worker.py": ""}, "while it runs ('-m')"),
        ({"app/bot.py": "X = (\n"}, "app/bot.py is not valid Python"),
        ({"requirements.txt": "-e ../shared\n"}, "requirements.txt installs ../shared, which is not tracked"),
        ({"app/bot.py": "import subprocess\nX = ['make', 'prompt']\n"}, "only while it runs (subprocess)"),
        ({"app/bot.py": "import os\nos.system('cat prompts/*')\n"}, "only while it runs (os.system)"),
        (
            {"app/bot.py": "import asyncio\nX = asyncio.create_subprocess_exec\n"},
            "only while it runs (create_subprocess_exec)",
        ),
        ({"app/bot.py": "X = 'all.json'\n", "all.json": "1" * 400_000}, "all.json is a link, unreadable or too large"),
        (
            {"app/bot.py": "import mapped\n", "pyproject.toml": "[tool.setuptools.package-dir]\nmapped = 'libs'\n"},
            "imports mapped, which is neither",
        ),
    ],
)
def test_nothing_is_proposed_if_anything_is_left_open(tmp_path: Path, files: Mapping[str, str], problem: str) -> None:
    told = sources(tmp_path, files)
    assert (problem in told.problem, told.names) == (True, ()), told


IN_FOLDER = {
    "one/bot.py": "import tools\nimport common.texts\nX = open('tone.md')\n",
    "one/tools.py": "",
    "one/tone.md": "",
    "two/tools.py": "",
    "two/tone.md": "",
    "two/prompts/a.md": "",
    "common/__init__.py": "",
    "common/texts.py": "X = open('common/words.txt')\n",
    "common/words.txt": "",
    "prompts/a.md": "",
    "uv.lock": "[[package]]\nname = 'common'\nsource = {editable = '.'}\n",
}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, {"bot.py", "tools.py", "tone.md", "../common/", "../prompts/"}),
        (
            {"one/bot.py": "import sys\nsys.path.insert(0, '..')\nimport tools\n"},
            {"bot.py", "tools.py", "../two/tools.py", "../prompts/"},
        ),
    ],
    ids=["the agent's folder comes first", "unless the code changes where modules are found"],
)
def test_an_agent_in_a_subfolder_may_read_the_whole_repository(
    tmp_path: Path, files: Mapping[str, str], found: set[str]
) -> None:
    assert_found(tmp_path, {**IN_FOLDER, **files}, found)


def assert_found(root: Path, files: Mapping[str, str], found: set[str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    names = [os.path.relpath(name, "one") for name in files]
    told = sources_of(["bot.py"], root / "one", names, installs=["../uv.lock"], top=root)
    assert (told.problem, set(told.names)) == ("", found)


def test_of_a_folder_of_modules_only_the_imported_ones_count(tmp_path: Path) -> None:
    """`agent.path: [../libs]` makes the folder an entry, and a script in it is nobody's."""
    for name in ("one/bot.py", "libs/helper.py", "libs/deploy.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("import helper\n" if name.endswith("bot.py") else "")
    names = ["bot.py", "../libs/helper.py", "../libs/deploy.sh"]
    told = sources_of(["bot.py", "../libs"], tmp_path / "one", names, top=tmp_path)
    assert told == Sources(("bot.py", "../libs/helper.py"))


def test_folders_of_the_same_name_belong_to_other_agents(tmp_path: Path) -> None:
    files = {**IN_FOLDER, "one/bot.py": "X = f'texts/{tone}.txt'\nY = 'texts/lost.txt'\n", "one/texts/a.txt": ""}
    for number in range(40):
        files |= {f"service{number}/texts/{text}.md": "" for text in range(30)}
    assert_found(tmp_path, files, {"bot.py", "texts/", "**/*.txt", "../prompts/"})


def test_a_locked_distribution_of_the_repository_is_no_requirement(tmp_path: Path) -> None:
    lock = "[[package]]\nname = 'acme'\nsource = {editable = '.'}\n[[package]]\nname = 'httpx'\n"
    told = sources(tmp_path, {"uv.lock": lock, "app/bot.py": "import httpx\nimport acme.texts\n"})
    assert "imports acme.texts, which is neither" in told.problem


def test_an_agent_whose_program_is_unknown_has_no_sources(tmp_path: Path) -> None:
    assert "start the agent" in sources_of(["agent.js"], tmp_path, ["agent.js", "lib.js"]).problem
    assert "texts/system.txt" in sources(tmp_path, {}, named=("--prompt=texts/system.txt",)).names


def test_what_a_requirement_brings_along_is_no_file_of_the_agent(tmp_path: Path) -> None:
    """Frameworks come in several distributions, and repositories require one: langchain brings langchain-core."""
    (tmp_path / ".venv/lib/python3.11/site-packages/frame_core").mkdir(parents=True)
    files = {"requirements.txt": "frame[all]==1.0\n", "app/bot.py": "import frame\nfrom frame_core.tools import tool\n"}
    assert sources(tmp_path, files) == Sources(("app/bot.py",))
    files["app/bot.py"] = "import frame_other\n"
    assert "imports frame_other, which is neither" in sources(tmp_path, files).problem
