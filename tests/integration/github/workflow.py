"""Walks a workflow as GitHub does: jobs in the order of their needs, each step on a machine of its own.

The action's steps run as in `job`; `run:` steps in a real shell with the real `gate`. What GitHub's own tools would do
is scripted: `gh` keeps releases and dispatched workflows in a folder, `pip` installs nothing, artifacts are archives.
A job that calls our reusable workflow walks that one, with the inputs, secrets and permissions that it is given.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from tests import warm
from tests.integration.github.job import IDENTITY, Done, Step, run
from tests.integration.github.runner_reader import read_file_commands
from tests.integration.github.scenarios import World

REPOSITORY = Path(__file__).parents[3]
DOCS = REPOSITORY / "docs"
_REUSABLE = re.compile(r"agent-gate/agent-gate/(\.github/workflows/\w+\.yml)@v0")
_COMPARISON = re.compile(r"github\.(event_name|ref_name) (==|!=) (?:'(\w+)'|github\.event\.repository\.default_branch)")
_EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
GH = '''#!{python}
"""What the pages ask of GitHub's command line."""
import json, os, shutil, subprocess, sys
from pathlib import Path

site, words = Path(os.environ["SITE"]), sys.argv[1:]
assert os.environ.get("GH_TOKEN"), "no token"


def value(name):
    return words[words.index(name) + 1]


if words[:2] == ["release", "create"]:
    tag, folder = words[2], site / "releases" / words[2]
    listed = subprocess.run(["git", "ls-remote", os.environ["REMOTE"], f"refs/tags/{{tag}}"], capture_output=True)
    assert "--verify-tag" in words and listed.stdout, f"no tag {{tag}}"
    folder.mkdir(parents=True)
    for path in [Path(word) for word in words[3:] if Path(word).is_file()]:
        shutil.copy(path, folder / path.name)
    (site / "prereleases").mkdir(exist_ok=True)
    if "--prerelease" in words:
        (site / "prereleases" / tag).touch()
elif words[:2] == ["release", "download"]:
    folder = site / "releases" / words[2]
    sys.exit("release not found") if not folder.is_dir() else None
    shutil.copytree(folder, value("--dir"))
elif words[:2] == ["workflow", "run"]:
    fields = dict(words[n + 1].split("=", 1) for n, word in enumerate(words) if word == "-f")
    with (site / "dispatched").open("a") as file:
        file.write(json.dumps([words[2], fields]) + "\\n")
else:
    sys.exit(f"not scripted: {{words}}")
'''


def documented(page: str, name: str) -> dict[str, Any]:
    """The workflow that a page shows under this file name."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^```yaml\n# \.github/workflows/{re.escape(name)}\n(.*?)^```$", text, re.M | re.S)
    assert found is not None, f"{page} shows no {name}"
    workflow: dict[str, Any] = yaml.safe_load(found[1])
    return workflow


@dataclass
class Walked:
    """How the jobs of a run ended, and what they printed."""

    jobs: dict[str, str] = field(default_factory=dict)
    """`success`, `failure` or `skipped`."""
    log: str = ""
    gates: dict[str, Done] = field(default_factory=dict)
    """The action's own steps, by job."""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    """What jobs that succeeded told those that need them."""
    environments: list[str] = field(default_factory=list)
    """Those that were entered, in their order: where a deployment is approved, and protected secrets are."""


@dataclass
class Site:
    """A repository's workflows, and everything on GitHub that outlives a run of them."""

    world: World
    secrets: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    runs: int = 1000
    meanwhile: Callable[[str], object] = lambda _job: None
    """What happens before a job starts, as where one waits for a person."""

    def __post_init__(self) -> None:
        self.folder = self.world.folder / "site"
        (self.folder / "bin").mkdir(parents=True)
        for name, text in (("gh", GH.format(python=sys.executable)), ("pip", '#!/bin/sh\ntest "$1" = install\n')):
            (self.folder / "bin" / name).write_text(text)
            (self.folder / "bin" / name).chmod(0o755)

    def dispatched(self) -> list[tuple[str, dict[str, str]]]:
        path = self.folder / "dispatched"
        return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []

    def deployed(self) -> list[str]:
        path = self.folder / "deployed"
        return path.read_text().splitlines() if path.exists() else []

    def walk(
        self,
        workflow: Mapping[str, Any],
        event: str,
        payload: Mapping[str, Any],
        ref: str,
        sha: str,
        inputs: Mapping[str, str] | None = None,
    ) -> Walked:
        """Runs every job whose needs have succeeded, or failed where it asks for that."""
        self.runs += 1
        github = {
            "token": "good",
            "repository": self.world.fake.repository,
            "ref": ref,
            "ref_name": ref.partition("/")[2].partition("/")[2],
            "sha": sha,
            "event_name": event,
        }
        context = {"github": github, "secrets": self.secrets, "vars": self.variables, "inputs": inputs or {}}
        walked, artifacts = Walked(), dict[str, bytes]()
        left = dict(workflow["jobs"])
        while left:
            name = next(name for name, job in left.items() if not set(_needs(job)) & left.keys())
            job = left.pop(name)
            walked.jobs[name] = "skipped"
            if wanted(job.get("if"), [walked.jobs[one] for one in _needs(job)], github):
                self.meanwhile(name)
                needs = {one: {"outputs": walked.outputs.get(one, {})} for one in _needs(job)}
                machine = _Machine(self, {**context, "needs": needs}, artifacts, walked, payload)
                if "uses" in job:
                    del walked.jobs[name]
                    self._call(name, job, machine)
                else:
                    walked.jobs[name] = machine.job(name, job)
        return walked

    def _call(self, name: str, job: Mapping[str, Any], caller: _Machine) -> None:
        """Walks the reusable workflow that the job calls; its jobs are named as the checks on GitHub are."""
        found = _REUSABLE.fullmatch(job["uses"])
        assert found, f"{job['uses']} is not walked"
        called = yaml.safe_load((REPOSITORY / found[1]).read_text(encoding="utf-8"))
        known = called[True]["workflow_call"]
        given = {key: caller.text(value) for key, value in job.get("with", {}).items()}
        secrets = {key: caller.text(value) for key, value in job.get("secrets", {}).items()}
        assert given.keys() <= known["inputs"].keys() and secrets.keys() <= known["secrets"].keys()
        defaults = {key: about["default"] for key, about in known["inputs"].items()}
        inside = {
            "github": caller.context["github"],
            "inputs": {**defaults, **given},
            "secrets": {**dict.fromkeys(known["secrets"], ""), **secrets},
        }
        machine = replace(caller, context=inside)
        for inner, parts in called["jobs"].items():
            assert _grants(job["permissions"], parts["permissions"]), "GitHub refuses to start such a run"
            whole = f"{name} / {inner}"
            self.meanwhile(whole)
            runs = wanted(parts.get("if"), [], caller.context["github"])
            caller.walked.jobs[whole] = machine.job(whole, parts) if runs else "skipped"


@dataclass
class _Machine:
    """A runner, from the beginning of a job to its end."""

    site: Site
    context: dict[str, Any]
    artifacts: dict[str, bytes]
    walked: Walked
    payload: Mapping[str, Any]

    def job(self, name: str, job: Mapping[str, Any]) -> str:
        self.name = name
        self.root = self.site.world.folder / f"run-{self.site.runs}-{name.replace(' / ', '-')}"
        self.workspace = self.root / "workspace"
        (self.root / "temp").mkdir(parents=True)
        self.context = {**self.context, "steps": {}}
        if environment := job.get("environment"):
            self.walked.environments.append(self.text(environment))
        failed = False
        for step in job["steps"]:
            if failed and step.get("if") != "always()":
                continue
            failed = not self.step(step) or failed
        if not failed:
            told = job.get("outputs", {}).items()
            self.walked.outputs[name] = {output: self.text(value) for output, value in told}
        return "failure" if failed else "success"

    def text(self, value: Any) -> str:
        def found(match: re.Match[str]) -> str:
            place: Any = self.context
            for part in match[1].split("."):
                assert part in place, f"{match[1]} is not known"
                place = place[part]
            return str(place)

        done = _EXPRESSION.sub(found, str(value))
        assert "${{" not in done, f"not an expression that is walked: {value}"
        return done

    def step(self, step: Mapping[str, Any]) -> bool:
        given = {name: self.text(value) for name, value in step.get("with", {}).items()}
        environment = {name: self.text(value) for name, value in step.get("env", {}).items()}
        if "run" in step:
            return self.shell(self.text(step["run"]), environment, step.get("id", ""))
        match step["uses"].partition("@")[0]:
            case "actions/checkout":
                ref = given.get("ref") or self.context["github"]["ref"]
                self.site.world.repository.checkout(self.workspace, ref, depth=int(given.get("fetch-depth", 1)))
            case "agent-gate/agent-gate" | "./":
                return self.gate(given, environment)
            case "actions/upload-artifact":
                self.artifacts[given["name"]] = _packed(self.workspace / given["path"])
            case "actions/download-artifact":
                with zipfile.ZipFile(io.BytesIO(self.artifacts[given["name"]])) as archive:
                    archive.extractall(self.workspace / given["path"])
            case other:
                raise AssertionError(f"{other} is not walked")
        return True

    def gate(self, given: Mapping[str, str], environment: Mapping[str, str]) -> bool:
        github, world = self.context["github"], self.site.world
        inputs = {name: value for name, value in given.items() if name != "setup"}
        about = {"full_name": world.fake.repository, "default_branch": "main"}
        payload = {**self.payload, "repository": about}
        more = {"GITHUB_RUN_ID": str(self.site.runs), **environment}
        step = Step(self.root, github["event_name"], payload, github["ref"], github["sha"], inputs, more)
        done = run(step, world.fake, world.launch)
        self.walked.gates[self.name] = done
        self.walked.log += done.log
        return done.code == 0

    def shell(self, script: str, environment: Mapping[str, str], id_: str) -> bool:
        output = self.root / "temp" / "output"
        output.write_text("")
        self.workspace.mkdir(exist_ok=True)
        places = [str(self.site.folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        known = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(output),
            "HOME": str(self.root),
            "PATH": os.pathsep.join(places),
            "REMOTE": str(self.site.world.repository.remote),
            "RUNNER_TEMP": str(self.root / "temp"),
            "SITE": str(self.site.folder),
            **IDENTITY,
        }
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=self.workspace,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **warm.options_of_a_script({**known, **environment}),
        )
        self.walked.log += done.stdout + done.stderr
        if id_:
            self.context["steps"][id_] = {"outputs": read_file_commands(output.read_text())}
        return done.returncode == 0


def wanted(condition: str | None, ended: list[str], github: Mapping[str, str]) -> bool:
    """True if a job with this condition runs, after the jobs that it needs have ended so."""
    if condition == "failure()":
        return "failure" in ended
    if condition is not None and not any(_all_hold(one, github) for one in condition.split(" || ")):
        return False
    return all(one == "success" for one in ended)


def _all_hold(comparisons: str, github: Mapping[str, str]) -> bool:
    for comparison in comparisons.split(" && "):
        found = _COMPARISON.fullmatch(comparison)
        assert found, f"a condition that is not walked: {comparison}"
        if (found[2] == "==") != (github[found[1]] == (found[3] or "main")):
            return False
    return True


def _grants(granted: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(granted.get(scope) in (level, "write") for scope, level in wanted.items())


def _needs(job: Mapping[str, Any]) -> list[str]:
    needs = job.get("needs", [])
    return [needs] if isinstance(needs, str) else list(needs)


def _packed(folder: Path) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                archive.write(path, str(path.relative_to(folder)))
    return stream.getvalue()
