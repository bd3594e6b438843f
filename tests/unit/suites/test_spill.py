"""What was said comes back from disk as it was, in any order, and rows are read one at a time."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path

import pytest

from gate.model import Invocation, Part, ToolCall
from gate.suites import FieldPaths, load, spill
from gate.suites.spill import InvocationFile


def test_invocations_come_back_in_any_order(monkeypatch) -> None:
    monkeypatch.setattr(spill, "IN_MEMORY", 1000)
    file = InvocationFile()
    said = [Invocation(f"q{n}", (Part("a" * n),), (ToolCall("t", {"n": [n, "\ud800"]}),)) for n in range(200)]
    kept = [file.keep(one) for one in said]
    assert [one[0] for one in reversed(kept)] == list(reversed(said))
    assert kept[3] == (said[3],)
    assert kept[3] != (said[4],)
    assert len(kept[3]) == 1
    kept.append(file.keep(said[0]))
    assert kept[-1][0] == said[0]
    del file
    gc.collect()
    assert kept[5][0] == said[5]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        path = tmp_path / f"{rows}.jsonl"
        with path.open("w") as file:
            for n in range(rows):
                messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": f"{n} " * 5_000}]
                file.write(json.dumps({"id": n % 5, "messages": messages}) + "\n")
        tracemalloc.start()
        (suite,) = load([path], root=tmp_path, fields=FieldPaths())
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(suite.recorded) == rows
        assert suite.recorded[-1].invocations[0].text.startswith(f"{rows - 1} ")
        return most

    small, large = peak(300), peak(700)
    assert large < small + 3_000_000, "20 kB a row would be 8 MB more"
