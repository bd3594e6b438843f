"""Where the suites' tests put and find files."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("GATE_SHARED_DATA", ROOT.parent / "shared" / "data"))
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the real data is not here")

TURN: dict[str, Any] = {
    "user_content": {"role": "user", "parts": [{"text": "Where is A1?"}]},
    "final_response": {"role": "model", "parts": [{"text": "On its way."}]},
    "intermediate_data": {"tool_uses": [{"name": "find", "args": {"id": "A1"}}]},
}
EVAL_CASE: dict[str, Any] = {
    "eval_id": "one",
    "conversation": [TURN, {"user_content": {"parts": [{"text": "Thanks"}]}}],
    "session_input": {"app_name": "shop", "user_id": "u", "state": {"vip": True}},
    "rubrics": [{"rubric_id": "kind", "rubric_content": {"text_property": "Is kind."}}],
    "tags": ["smoke"],
    "complexity": "simple",
}
ROW: dict[str, Any] = {
    "task": 7,
    "trial": 0,
    "log": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}],
    "want": {"calls": [{"tool": "find", "kwargs": {"id": 1}}], "text": "Hello!"},
    "labels": ["smoke"],
}
AIRLINE = {
    "id": "task_id",
    "trial": "trial",
    "messages": "traj",
    "expected_tools": {"path": "info.task.actions", "name": "name", "args": "kwargs"},
}


def write(path: Path, content: Any) -> Path:
    """Writes text as it is and anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return path


JUNK = [None, True, -1, "x", "", [], {}, [None], ["x"], {"x": 1}, [[]], 1.5]


def mutated(data: st.DataObject, value: Any) -> Any:
    """A copy with junk in one to three places."""
    mutant = copy.deepcopy(value)
    for place in data.draw(st.lists(st.sampled_from(places(mutant)), min_size=1, max_size=3)):
        target = mutant
        try:
            for key in place[:-1]:
                target = target[key]
            target[place[-1]] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier mutation took the place away
    return mutant


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(*path, key), *places(value[key], (*path, key))]]
