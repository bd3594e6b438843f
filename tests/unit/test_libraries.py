"""The page about libraries says what is true: lines, modules and dependencies."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "dev" / "decisions" / "0002-libraries.md").read_text(encoding="utf-8")
MODULE = re.compile(r"`(gate/[a-z0-9_/]+\.py)`")
IMPORT_NAMES = {
    "ada-url": "ada_url",
    "genai-prices": "genai_prices",
    "junit-xml": "junit_xml",
    "markdown-it-py": "markdown_it",
    "opentelemetry-proto": "opentelemetry",
    "pyyaml": "yaml",
}
TOLERANCE = 0.2
"""How far a number of lines may be from the truth, as a share of it."""


def rows(heading: str) -> dict[str, list[str]]:
    """First cell → the other cells, of the table under a heading."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in cells}


HAND_WRITTEN, DEPENDENCIES = rows("Written by hand"), rows("Dependencies")


def dependencies() -> set[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    ours = ("buckets", "inspect", "ray", "sign", "traces")
    named = [*project["dependencies"], *(line for extra in ours for line in extras[extra])]
    return {re.split(r"[<>=~!\[; ]", line, maxsplit=1)[0].lower() for line in named}


def imported(module: Path) -> set[str]:
    """The packages that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_lines_are_as_stated() -> None:
    for part in HAND_WRITTEN:
        modules, stated, *_ = HAND_WRITTEN[part]
        files = [REPOSITORY / name for name in MODULE.findall(modules)]
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        assert abs(lines - int(stated)) <= TOLERANCE * lines, f"{part}: {stated} stated, {lines} counted"


def test_each_dependency_has_its_row() -> None:
    assert set(DEPENDENCIES) == dependencies()


def test_each_dependency_is_used_where_the_page_says() -> None:
    for package in DEPENDENCIES:
        named = MODULE.findall(DEPENDENCIES[package][0])
        assert named, package
        for module in named:
            assert IMPORT_NAMES.get(package, package) in imported(REPOSITORY / module), (
                f"{module} does not import {package}"
            )
