"""A project with a folder or a module of its own called `gate`: everything runs; if it hides ours, a line says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Outcome, Project, _environment
from tests.integration.scoring.recordings import write_suite

pytestmark = pytest.mark.slow

SCRIPT = Path(sys.executable).with_name("gate")
AGENT = "def answer(message):\n    return {'output': message.upper(), 'tool_calls': []}\n"
CONFIG = "agent: {python: '%s:answer'}\nsuite: suite.json\nbaseline: {store: none}\ntrials: 1\ncriteria: %s\n"
OURS = "import gate\nfrom gate import Score\ndef good(actual, expected): return Score(1.0, gate.__name__)\n"
THEIRS = "from gate.scale import full\ndef good(actual, expected): return full()\n"
SHAPES = {
    "package": {"gate/__init__.py": "", "gate/agent.py": AGENT, "gate/scale.py": "def full(): return 1.0\n"},
    "folder": {"gate/agent.py": AGENT, "gate/scale.py": "def full(): return 1.0\n"},
    "module": {"gate.py": AGENT},
}


def write(project: Project, shape: str, criteria: str = "{safety_v1: {backend: patterns}}") -> Project:
    for name, text in SHAPES[shape].items():
        project.write(name, text)
    project.write("suite.json", {"cases": [{"id": "a", "input": "hello", "tools": []}]})
    project.write("gate.yaml", CONFIG % ("gate" if shape == "module" else "gate.agent", criteria))
    return project


def command(project: Project, *arguments: str, **environment: str) -> Outcome:
    """The installed command, in an interpreter that has imported nothing."""
    ran = subprocess.run(
        [str(SCRIPT), *arguments],
        cwd=project.root,
        env={**_environment(), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    return Outcome(ran.returncode, ran.stdout, ran.stderr)


CALLS_NO_TOOL = "{tool_trajectory_avg_score: 1.0}"


@pytest.mark.parametrize("shape", SHAPES)
def test_an_agent_in_it_is_run_by_the_installed_command(project: Project, shape: str) -> None:
    ran = command(write(project, shape, CALLS_NO_TOOL), "run")
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize("run_in", ["gate", "agent"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_custom_metric_of_ones_own_names_runs_beside_it(project: Project, shape: str, run_in: str) -> None:
    write(project, shape, f"{{ok: {{metric: 'mine:good', threshold: 1.0, run_in: {run_in}}}}}")
    project.write("mine.py", OURS if run_in == "gate" else "def good(actual, expected): return 1.0\n")
    ran = command(project, "run")
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize("shape", ["package", "module"])
def test_where_it_hides_our_package_a_line_says_so(project: Project, shape: str) -> None:
    """In the agent's interpreter the project's folder comes first, but for one without ``__init__.py``."""
    write(project, shape, "{ok: {metric: 'mine:good', threshold: 1.0, run_in: agent}}")
    project.write("mine.py", OURS)
    ran = command(project, "run")
    own = project.root / ("gate.py" if shape == "module" else "gate")
    assert ran.code == 2, ran.out + ran.err
    (line,) = [line for line in ran.err.splitlines() if "hides" in line]
    assert f"{own.name} hides Agent Gate's package `gate`" in line
    assert f"rename {own.name}" in line


@pytest.mark.parametrize("metric", ["mine:good", "gate.scale:full"])
def test_where_our_package_hides_it_a_line_says_so(project: Project, metric: str) -> None:
    write(project, "package", f"{{ok: {{metric: '{metric}', threshold: 1.0}}}}")
    project.write("mine.py", THEIRS)
    ran = command(project, "run")
    assert ran.code == 2, ran.out + ran.err
    (line,) = [line for line in ran.err.splitlines() if "hides" in line]
    assert "Agent Gate's package `gate` hides gate" in line
    assert "rename gate, or set `run_in: agent`" in line
    project.write("gate.yaml", (project.root / "gate.yaml").read_text().replace("1.0}", "1.0, run_in: agent}"))
    project.write("gate/scale.py", "def full(actual=None, expected=None): return 1.0\n")
    ran = command(project, "run")
    assert ran.code == 0, ran.out + ran.err


def test_workers_and_custom_metrics_are_ours_even_if_pythonpath_names_the_project(project: Project) -> None:
    """As in the action, whose own interpreter looks at no such variable; its child processes did."""
    write_suite(project.root, cases=3, trials=2, executor={"processes": 2}, criteria={"mine:good": 0.5})
    project.write("mine.py", OURS)
    project.write("gate/__init__.py", "")
    for name in ("json.py", "msgspec.py", "sitecustomize.py"):
        project.write(name, "import os\nopen(os.environ['WITNESS'], 'a').write(__name__)\nraise SystemExit(9)\n")
    witness = project.root / "witness"
    environment = {**_environment(), "PYTHONPATH": str(project.root), "WITNESS": str(witness)}
    ran = subprocess.run(
        [sys.executable, "-I", "-m", "gate", "run"],
        cwd=project.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not witness.exists()


def test_modules_beside_the_configuration_replace_none_of_ours(project: Project) -> None:
    """`python -m` puts the working directory first; what is imported late came from there."""
    write(project, "module", CALLS_NO_TOOL)
    (project.root / "gate.py").rename(project.root / "agent.py")
    project.write("gate.yaml", CONFIG % ("agent", CALLS_NO_TOOL))
    for name in ("yaml.py", "httpx.py", "rich/__init__.py"):
        project.write(name, "raise SystemExit('the wrong module')\n")
    ran = subprocess.run(
        [sys.executable, "-m", "gate", "run"],
        cwd=project.root,
        env={**_environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
