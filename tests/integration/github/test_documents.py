"""What we hand to others to copy is valid: action, Dockerfile, workflows, and every YAML block in README and docs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from gate.action.inputs import INPUTS
from gate.action.publish import OUTPUTS
from tests.quick_yaml import read_yaml

REPOSITORY = Path(__file__).parents[3]
ACTION = read_yaml((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
COMPOSITE = read_yaml((REPOSITORY / "composite/action.yml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((REPOSITORY / ".github/workflows").glob("*.yml"))
EXAMPLES = sorted(REPOSITORY.glob("examples/*/.github/workflows/*.yml"))
PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("examples/**/*.md")])


@dataclass(frozen=True)
class Block:
    """A fenced YAML block of a page."""

    page: str
    line: int
    text: str

    @property
    def kind(self) -> str:
        """By the file that its first line names, or by its keys."""
        named = re.match(r"# (\.gitlab-ci|\.circleci/config|azure-pipelines)\.yml", self.text)
        if named:
            return {".gitlab-ci": "gitlab-ci", ".circleci/config": "circle-ci", "azure-pipelines": "azure-pipelines"}[
                named[1]
            ]
        content = read_yaml(self.text)
        keys = set(content) if isinstance(content, dict) else set()
        is_step = isinstance(content, list) and all(isinstance(x, dict) and x.keys() & {"uses", "run"} for x in content)
        return "github-workflows" if keys & {True, "on", "jobs", "steps"} or is_step else "other"


def blocks() -> list[Block]:
    found = []
    for page in PAGES:
        content = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^```ya?ml\n(.*?)^```$", content, re.MULTILINE | re.DOTALL):
            line = content[: match.start()].count("\n") + 1
            found.append(Block(str(page.relative_to(REPOSITORY)), line, match[1]))
    return found


BLOCKS = blocks()


def tool(name: str) -> str:
    path = Path(sys.executable).parent / name
    found = str(path) if path.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def passes(*command: str) -> None:
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def whole(text: str) -> str:
    """A workflow around a fragment; a whole one stays as it is written, comments included."""
    content = yaml.safe_load(text)
    if isinstance(content, list):
        content = {"steps": content}
    if True in content and "jobs" in content:
        return text
    job = {
        "runs-on": "ubuntu-24.04",
        "timeout-minutes": 5,
        "permissions": {},
        "steps": content.get("steps", [{"run": "true"}]),
    }
    made = {
        "name": "x",
        "on": content.get(True, "push"),
        "permissions": {},
        "jobs": content.get("jobs", {"example": job}),
    }
    return yaml.safe_dump(made, sort_keys=False)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_every_block_is_valid_yaml(block: Block) -> None:
    assert list(yaml.safe_load_all(block.text)) != [None]


@pytest.mark.parametrize("kind", sorted({block.kind for block in BLOCKS} - {"other"}))
def test_blocks_for_a_ci_are_what_that_ci_takes(kind: str, tmp_path: Path) -> None:
    for block in BLOCKS:
        if block.kind == kind:
            path = tmp_path / f"{block.page.replace('/', '-')}-{block.line}.yml"
            path.write_text(whole(block.text) if kind == "github-workflows" else block.text, encoding="utf-8")
    variant = ["--regex-variant", "nonunicode"] if kind == "azure-pipelines" else []  # its patterns need it
    passes(tool("check-jsonschema"), *variant, "--builtin-schema", f"vendor.{kind}", *map(str, tmp_path.glob("*.yml")))


def test_the_guides_show_a_workflow_for_each_ci() -> None:
    assert {block.kind for block in BLOCKS} >= {"github-workflows", "gitlab-ci", "circle-ci", "azure-pipelines"}


def test_action_and_workflows_are_what_github_takes() -> None:
    actions = ("action.yml", "composite/action.yml")
    passes(tool("check-jsonschema"), "--builtin-schema", "vendor.github-actions", *actions)
    assert WORKFLOWS and EXAMPLES
    passes(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *map(str, [*WORKFLOWS, *EXAMPLES]))


def test_zizmor_finds_nothing_in_action_workflows_and_guides(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for number, block in enumerate(b for b in BLOCKS if b.kind == "github-workflows"):
        (folder / f"{number}-{Path(block.page).stem}-{block.line}.yml").write_text(whole(block.text), encoding="utf-8")
    config = tmp_path / "zizmor.yml"
    config.write_text('rules: {unpinned-uses: {config: {policies: {"agent-gate/*": ref-pin, "*": hash-pin}}}}\n')
    passes(tool("zizmor"), "--offline", "--no-progress", "--config", str(config), str(tmp_path))
    ours = ("action.yml", "composite/action.yml", *map(str, [*WORKFLOWS, *EXAMPLES]))
    passes(tool("zizmor"), "--offline", "--no-progress", "--config", str(config), *ours)


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    passes(tool("hadolint"), "Dockerfile")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_our_workflows_grant_nothing_by_default_and_pin_everything(path: Path) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert content["permissions"] == {}
    used = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
    assert used
    assert [use for use in used if not re.search(r"@[0-9a-f]{40}$|^\./$|^agent-gate/agent-gate@v0$", use)] == []


def jobs_with_the_gate() -> list[tuple[str, str, dict[str, Any]]]:
    """Of every whole workflow that we show or run: where, the job's name, and the job."""
    shown = [(f"{b.page}:{b.line}", b.text) for b in BLOCKS if b.kind == "github-workflows"]
    own = [(path.name, path.read_text(encoding="utf-8")) for path in WORKFLOWS]
    found = []
    for where, text in [*shown, *own]:
        content = yaml.safe_load(text)
        for name, job in (content.get("jobs", {}) if isinstance(content, dict) else {}).items():
            if any(re.match(r"agent-gate/|\./$", step.get("uses", "")) for step in job.get("steps", [])):
                found.append((where, name, job))
    return found


def test_no_job_that_runs_a_change_holds_a_token_that_writes_code() -> None:
    jobs = jobs_with_the_gate()
    assert [name for _, name, _ in jobs].count("gate") >= 4
    for where, name, job in jobs:
        writes = job["permissions"].get("contents") == "write"
        merged = "github.event_name == 'push'" in job.get("if", "") or "releases.md" in where  # by tags alone
        assert writes is merged, (where, name)


def test_every_job_that_measures_leaves_its_records_and_may_read_those_of_earlier_ones() -> None:
    for where, name, job in jobs_with_the_gate():
        given = [step.get("with") or {} for step in job["steps"]]
        if name == "report":
            continue
        assert any("gate-results/" in step.get("path", "") for step in given), (where, name)
        assert job["permissions"]["actions"] == "read", (where, name)


def test_every_job_that_can_be_accepted_may_see_the_label_and_the_runs() -> None:
    """Whose head had a run before the label was set is what binds the label to it."""
    for where, name, job in jobs_with_the_gate():
        if name != "part" and "releases.md" not in where:  # it decides nothing; a tag has no label
            assert job["permissions"].get("actions") == "read", (where, name)
            assert job["permissions"].get("pull-requests") in ("read", "write"), (where, name)


# --- one list of inputs and outputs ---------------------------------------------------------------


def test_action_and_entrypoint_know_the_same_inputs() -> None:
    assert list(ACTION["inputs"]) == list(INPUTS)
    for name, stated in ACTION["inputs"].items():
        assert isinstance(stated["default"], str), name
        if name != "token":
            assert stated["default"] == INPUTS[name].default, name


def test_action_and_entrypoint_know_the_same_outputs() -> None:
    assert list(ACTION["outputs"]) == list(OUTPUTS)


def test_the_variant_without_docker_has_the_same_inputs_and_outputs_and_hands_them_on() -> None:
    *_, run = COMPOSITE["runs"]["steps"]
    assert COMPOSITE["inputs"] == ACTION["inputs"]
    assert run["env"] == {f"INPUT_{name.upper()}": f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}
    values = {name: f"${{{{ steps.{run['id']}.outputs.{name} }}}}" for name in ACTION["outputs"]}
    stated = {name: {**about, "value": values[name]} for name, about in ACTION["outputs"].items()}
    assert COMPOSITE["outputs"] == stated


def test_inputs_are_in_snake_case() -> None:
    """The runner keeps dashes in the names of variables, and a shell loses those."""
    assert [name for name in INPUTS if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []


def test_the_action_maps_and_decides_nothing() -> None:
    runs: dict[str, Any] = ACTION["runs"]
    assert runs == {"using": "docker", "image": "Dockerfile"}
