"""What was said survives its way through a file or a pipe."""

from __future__ import annotations

from typing import Any

import pytest

from gate.model import Invocation, Part, ToolCall, Usage
from gate.system.serialize import pack_invocations, unpack_invocations


def said(args: Any, result: Any = None) -> tuple[Invocation, ...]:
    call = ToolCall("lookup", args, id="c1", result=result, duration=0.25)
    parts = (Part("größe → 漢字"), Part("hm", thought=True))
    return (Invocation("hello", parts, (call,), usage=Usage(1, 2, 0.5, model="m"), duration=1.5), Invocation())


@pytest.mark.parametrize(
    "args",
    [
        None,
        {},
        {"a": [1, 2.0, None, True, {"b": "c"}]},
        "not an object",
        {"beyond 64 bits": 2**70},
        {"text without an encoding": "\ud800"},
        {1: "a key that is a number"},
    ],
)
def test_everything_comes_back(args: Any) -> None:
    for invocations in (said(args), said({}, result=args), ()):
        read = unpack_invocations(pack_invocations(invocations))
        assert read == invocations
        assert repr(read) == repr(invocations)  # 1 stays 1, and 1.0 stays 1.0
