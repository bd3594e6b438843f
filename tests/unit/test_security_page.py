"""The table of threats names tests; each of them is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

TOP = Path(__file__).parents[2]
NAMED = re.compile(r"`(test_\w+)::(test_\w+)`")


def rows() -> list[list[str]]:
    lines = (TOP / "SECURITY.md").read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| attacker |"))
    table = lines[start + 2 : lines.index("", start)]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table]


@cache
def defined(file: str) -> frozenset[str]:
    paths = list((TOP / "tests").rglob(f"{file}.py"))
    return frozenset(
        found for path in paths for found in re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.M)
    )


def test_every_line_says_who_what_and_what_stops_it() -> None:
    assert len(rows()) > 20
    assert all(len(row) == 4 and all(row[1:]) for row in rows())


def test_every_line_names_tests_and_they_exist() -> None:
    for row in rows():
        named = NAMED.findall(row[3])
        assert named, row[1]
        assert NAMED.sub("", row[3]).strip() == "", row[3]
        assert [f"{file}::{test}" for file, test in named if test not in defined(file)] == [], row[1]


def test_the_attacks_that_are_played_are_there() -> None:
    text = (TOP / "docs/dev/attacks.md").read_text(encoding="utf-8")
    named = NAMED.findall(text)
    assert len(named) > 15
    assert [f"{file}::{test}" for file, test in named if test not in defined(file)] == []
