"""Real files, scribbled over: every reader yields suites or an error of the gate's own."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.errors import GateError
from gate.suites import FieldPaths, load
from tests.properties import examples
from tests.unit.suites.files import AIRLINE, SHARED, needs_shared

SCRAPS = [
    b"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"null",
    b"-1",
    b"1e999",
    b"NaN",
    b"\\ud800",
    b"\xff",
    b"\n",
    b"\x00",
]


@cache
def real_texts() -> tuple[bytes, ...]:
    """All real eval sets, and the first rows of the real recordings."""
    sets = [path.read_bytes() for path in sorted((SHARED / "adk-samples").rglob("*.test.json"))]
    rows = json.loads((SHARED / "tau-bench/gpt-4o-airline.json").read_text(encoding="utf-8"))[:2]
    lines = "\n".join(json.dumps({**row, "traj": row["traj"][1:6]}) for row in rows)
    return (*sets, b"[" + lines.replace("\n", ",\n").encode() + b"]", lines.encode())


@needs_shared
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=examples(150))
@given(data=st.data())
def test_scribbled_real_files_are_suites_or_gate_errors(data: st.DataObject, tmp_path: Path) -> None:
    texts = real_texts()
    index = data.draw(st.integers(0, len(texts) - 1))
    text = bytearray(texts[index])
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 12))
        text[start:end] = data.draw(st.sampled_from(SCRAPS))
    fields = FieldPaths.model_validate(AIRLINE) if index >= len(texts) - 2 else None
    for suffix in (".jsonl",) if index == len(texts) - 1 else (".test.json", ".yaml"):
        path = tmp_path / f"scribbled{suffix}"
        path.write_bytes(text)
        try:
            (suite,) = load([path], root=tmp_path, fields=fields)
        except GateError as error:
            assert "\n" not in str(error)
            continue
        assert all(case.id and case.turns for case in suite.cases)
        json.dumps([case.metadata for case in suite.cases]).encode()
