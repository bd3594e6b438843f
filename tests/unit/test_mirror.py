"""Each module of the package has the test that mirrors it, or a line here that says which test covers it."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

import gate

PACKAGE = Path(gate.__file__).parent
TESTS = Path(__file__).parents[1]
COVERED = {
    "__init__.py": "acceptance/test_python_api.py",
    "action/entrypoint.py": "integration/github/test_environment.py",
    "action/reuse.py": "integration/github/test_reuse.py",
    "action/*.py": "integration/github/test_action.py",
    "agents/command.py": "integration/agents/test_command.py",
    "agents/python.py": "integration/agents/test_python.py",
    "agents/*.py": "integration/agents/test_connectors.py",
    "baselines/git.py": "integration/baselines/test_git_store.py",
    "baselines/tags.py": "unit/action/test_base_commit.py",
    "baselines/*.py": "unit/baselines/test_file.py",
    "commands/*.py": "acceptance/test_commands.py",
    "config/resolve.py": "unit/config/test_criteria.py",
    "config/settings.py": "unit/baselines/test_pairing.py",
    "config/specs.py": "unit/config/test_base_policy.py",
    "config/*.py": "unit/config/test_load.py",
    "decision/cases.py": "unit/decision/test_shown.py",
    "decision/engine/*.py": "unit/decision/engine/test_rule.py",
    "decision/history.py": "unit/decision/test_power.py",
    "decision/*.py": "unit/decision/test_next_step.py",
    "formats/json_text.py": "unit/formats/test_documents.py",
    "formats/positions.py": "unit/formats/test_documents.py",
    "formats/yaml_text.py": "unit/formats/test_documents.py",
    "guest/*.py": "unit/guest/test_bare_interpreters.py",
    "hosts/gitlab.py": "integration/gitlab/test_gitlab_api.py",
    "hosts/*.py": "integration/github/test_github_api.py",
    "judges/client.py": "integration/judges/test_judge_over_http.py",
    "judges/*.py": "unit/judges/test_cache_and_meter.py",
    "metrics/__init__.py": "unit/metrics/test_registry.py",
    "metrics/base.py": "unit/metrics/test_registry.py",
    "metrics/consistency.py": "acceptance/test_strategy_consistency.py",
    "metrics/custom/in_agent.py": "acceptance/test_custom_metrics.py",
    "metrics/custom/child.py": "unit/metrics/custom/test_isolated.py",
    "metrics/matching.py": "unit/metrics/test_patterns.py",
    "metrics/outcome.py": "integration/judges/test_examples.py",
    "metrics/pii.py": "unit/metrics/test_safety.py",
    "metrics/rouge.py": "unit/metrics/test_response.py",
    "metrics/*.py": "integration/judges/test_judged_catalogue.py",
    "model/*.py": "unit/records/test_reader.py",
    "monitor/*.py": "acceptance/test_monitor.py",
    "pytest_plugin/*.py": "acceptance/test_pytest_plugin.py",
    "pipeline/evidence.py": "acceptance/test_attest.py",
    "pipeline/api.py": "acceptance/test_python_api.py",
    "pipeline/baseline_upkeep.py": "acceptance/test_baselines_only_get_better.py",
    "pipeline/earlier_session.py": "acceptance/test_rerun.py",
    "pipeline/judge_stored.py": "acceptance/test_one_result.py",
    "pipeline/publishing.py": "acceptance/test_plugins.py",
    "pipeline/ratchet.py": "acceptance/test_ratchet.py",
    "pipeline/reference.py": "integration/baselines/test_reference.py",
    "pipeline/release.py": "acceptance/test_baselines_only_get_better.py",
    "pipeline/replay.py": "acceptance/test_recorded_airline.py",
    "pipeline/rescore.py": "acceptance/test_upgrades.py",
    "pipeline/contest.py": "acceptance/test_side_by_side.py",
    "pipeline/preference.py": "acceptance/test_side_by_side.py",
    "pipeline/*.py": "unit/pipeline/test_flow.py",
    "records/*.py": "unit/records/test_reader.py",
    "reports/html/lineup.py": "unit/reports/test_lineup.py",
    "reports/lineup/*.py": "unit/reports/test_lineup.py",
    "reports/*.py": "unit/reports/test_markdown.py",
    "scoring/ray_*.py": "integration/scoring/test_cluster.py",
    "scoring/*.py": "integration/scoring/test_processes.py",
    "security/limits.py": "unit/formats/test_documents.py",
    "suites/*.py": "unit/suites/test_load.py",
    "traces/*.py": "unit/traces/test_conversation.py",
    "world/*.py": "acceptance/test_world.py",
    "system/prices.py": "unit/formats/test_messages.py",
    "system/*.py": "unit/system/test_child.py",
}
"""Module, or a room's other modules → the test that covers them where none mirrors them; the first line that fits."""


def defines(path: Path) -> bool:
    """Whether there is anything to test: a function or a class."""
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in parse(path).body)


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def mirror(module: str) -> Path:
    """``system/git.py`` → ``unit/system/test_git.py``; that of a room is named after the room."""
    path = Path(module)
    name = (path.parent.name or "gate") if path.stem == "__init__" else path.stem.strip("_")
    return TESTS / "unit" / path.parent / f"test_{name}.py"


MODULES = [
    str(path.relative_to(PACKAGE))
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name != "__init__.py" or defines(path)
]


def line_of(module: str) -> str | None:
    return next((pattern for pattern in COVERED if fnmatch(module, pattern)), None)


def imports(test: Path) -> set[str]:
    """Modules that it imports, or imports something from; with what it imports from packages."""
    found = set()
    for node in ast.walk(parse(test)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def speaks_of(test: Path, subject: str) -> bool:
    """Whether it imports the module or room, or something of it, or has its name among its words."""
    path = Path(subject).with_suffix("")
    path = path.parent if path.stem == "__init__" or "*" in path.stem else path
    dotted = ".".join(["gate", *path.parts])
    words = re.sub(r"[^a-z]+", " ", test.read_text(encoding="utf-8").lower())
    return any(f"{name}.".startswith(f"{dotted}.") for name in imports(test)) or path.name.replace("_", " ") in words


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_its_test(module: str) -> None:
    if mirror(module).exists():
        return
    line = line_of(module)
    assert line is not None, f"write {mirror(module).relative_to(TESTS)}, or say in COVERED which test covers {module}"
    test = TESTS / COVERED[line]
    assert test.exists(), f"{COVERED[line]}, which is said to cover {module}, is not there"
    assert speaks_of(test, line), f"{COVERED[line]} is said to cover {line}, and does not name it"


def test_every_line_says_something_of_a_module() -> None:
    used = {line_of(module) for module in MODULES if not mirror(module).exists()}
    assert [line for line in COVERED if line not in used] == []
