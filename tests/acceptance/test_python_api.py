"""The public interface: its page is run, its names are on it, and the documentation imports nothing else of ours."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gate
from tests.acceptance.conftest import REPOSITORY, Project

PAGE = REPOSITORY / "docs/reference/python.md"
FENCE = re.compile(r"^```(?:python|py)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = sorted(
    [*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md", *(REPOSITORY / "examples").rglob("*.md")]
)
CODE = sorted((REPOSITORY / "examples").rglob("*.py"))


def test_the_page_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-m", "gate", "init", str(tmp_path)], check=True, capture_output=True)
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert failed == 0
    assert tried > 15
    assert (tmp_path / "api.xml").read_text().startswith("<?xml")


def test_every_public_name_is_there_typed_and_documented() -> None:
    assert len(set(gate.__all__)) == len(gate.__all__), "no name has two homes"
    page = PAGE.read_text(encoding="utf-8")
    for name in gate.__all__:
        assert getattr(gate, name) is not None
        assert re.search(rf"\b{name}\b", page), f"{name} is not on the page"
    typed = ast.parse(Path(f"{gate.__file__}i").read_text(encoding="utf-8"))
    imported = {
        (node.module, alias.name) for node in typed.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported == {(module, name) for module, names in gate._HOMES.items() for name in names}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'gate' has no attribute 'runs'"):
        _ = gate.runs  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing_else_of_ours() -> None:
    code = "import sys, gate; print([m for m in sys.modules if m.startswith('gate.') or m in ('pydantic', 'msgspec')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def imports(code: str) -> set[str]:
    """Names of our modules below the public one that are imported."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gate."):
            found.add(node.module)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("gate.")}
    return found


def test_pages_and_examples_import_the_public_interface_alone() -> None:
    blocks = [(page, block["text"]) for page in SHOWN for block in FENCE.finditer(page.read_text(encoding="utf-8"))]
    code = [*blocks, *((file, file.read_text(encoding="utf-8")) for file in CODE)]
    assert len(blocks) >= 10 and len(CODE) >= 5
    assert [(file.name, imports(text)) for file, text in code if imports(text)] == []


def test_the_metric_class_of_the_guide_runs_in_its_own_process(project: Project) -> None:
    page = (REPOSITORY / "docs/how-to/extend.md").read_text(encoding="utf-8")
    (code,) = [block["text"] for block in FENCE.finditer(page) if "class Apologies" in block["text"]]
    assert code.startswith("from gate import ")
    project.write("checks.py", code)
    project.write("cases.yaml", "cases: [{id: a, input: hello}]")
    config = "suite: cases.yaml\nagent: {command: [echo, 'sorry, sorry']}\ncriteria: {'checks:Apologies': {max: %d}}\n"
    project.write("gate.yaml", config % 1)
    assert project.gate("run", "-q").code == 1
    project.write("gate.yaml", config % 3)
    assert project.gate("run", "-q").code == 0


def test_a_result_has_no_truth_value() -> None:
    """`assert gate.run(…)` would hold whatever the verdict is."""
    failed = gate.Result((), gate.Verdict.REGRESSED, gate.ExitCode.FAILED)
    with pytest.raises(TypeError, match="compare its exit_code with 0"):
        assert failed
