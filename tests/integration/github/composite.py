"""Runs the steps of the action's variant without Docker, as the runner does for a composite action."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.integration.github.job import IDENTITY, Step

REPOSITORY = Path(__file__).parents[3]
SHELL = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c")
PYTHON = f"""#!/bin/sh
# Stands for a runner's python3: the virtual environment that it makes is this one, into which pip installs nothing.
test "$1 $2" = "-m venv" || exec {sys.executable} "$@"
mkdir -p "$3/bin"
printf '#!/bin/sh\\ntest "$1 $2" = "-m pip" || exec {sys.executable} "$@"\\n' > "$3/bin/python"
chmod +x "$3/bin/python"
"""


@dataclass
class Composite:
    """Starts the steps of `composite/action.yml`, one after the other until one fails."""

    action: Path = REPOSITORY / "composite"
    """Where the runner has unpacked it, below the rest of the repository."""
    path: str = os.environ["PATH"]
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the machine has besides."""

    def __call__(self, step: Step, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        (step.root / "temp").mkdir(exist_ok=True)
        action = yaml.safe_load((self.action / "action.yml").read_text(encoding="utf-8"))
        given = {name: environment.pop(f"INPUT_{name.upper()}", None) for name in action["inputs"]}
        inputs = {
            name: about["default"] if given[name] is None else given[name] for name, about in action["inputs"].items()
        }
        machine = {
            "HOME": str(step.root / "home"),
            "PATH": self.path,
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_EVENT_PATH": str(step.root / "workflow" / "event.json"),
            "GITHUB_OUTPUT": str(step.root / "file_commands" / "output"),
            "GITHUB_STEP_SUMMARY": str(step.root / "file_commands" / "summary"),
            "GITHUB_WORKSPACE": str(step.workspace),
            "RUNNER_TEMP": str(step.root / "temp"),
            **IDENTITY,
            **self.environment,
        }
        printed = ""
        for part in action["runs"]["steps"]:
            own = {name: _filled_in(value, inputs) for name, value in part.get("env", {}).items()}
            done = subprocess.run(
                [*SHELL, part["run"]],
                cwd=step.workspace,
                env={**machine, **environment, **own},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
                check=False,
            )
            printed += done.stdout
            if done.returncode:
                break
        return subprocess.CompletedProcess([], done.returncode, printed, "")


def _filled_in(value: str, inputs: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], value)


def path_with(python: str, folder: Path) -> str:
    """The search path of a machine whose python3 is this script."""
    folder.mkdir()
    (folder / "python3").write_text(python)
    (folder / "python3").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
