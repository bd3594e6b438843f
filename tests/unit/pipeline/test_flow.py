"""What a run keeps in memory decides as the whole trials would."""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate import api
from gate.config.resolve import Plan
from gate.decision import Comparison, Settings, verdict_on
from gate.model import (
    Case,
    Criterion,
    Direction,
    ErrorKind,
    Invocation,
    Part,
    Scale,
    Score,
    Side,
    SuiteResult,
    ToolCall,
    Trial,
    TrialError,
    Turn,
    Usage,
)
from gate.pipeline import flow
from gate.pipeline.verdict import Keeper, load_to_judge
from gate.records import Record, digested

CRITERIA = (
    Criterion("trajectory", "tool_trajectory_avg_score", Scale.UNIT, threshold=0.6, pass_threshold=0.6),
    Criterion("latency", "latency", Scale.SECONDS, Direction.LOWER, limit=5.0, blocks_regression=False),
    Criterion("forbidden", "forbidden_tools", Scale.BINARY, hard=True, blocking=False, pass_threshold=1.0),
)
CASES = tuple(Case(f"case-{n}", (Turn("hi", (ToolCall("lookup", {"n": n}),)),)) for n in range(12))


def make_trial(rng: random.Random, case: Case, number: int, *, steady: bool) -> Trial:
    if not steady and rng.random() < 0.05:
        return Trial(case.id, number, error=TrialError(ErrorKind.CRASH, "gone"), duration=0.1)
    good = rng.random() < 0.8
    said = "done" if steady else rng.choice(["done", "it is done", ""])
    calls = (ToolCall("lookup" if good else "guess", {"n": 1, "long": "x" * 500}, result="y" * 500),)
    forbidden = 0.0 if rng.random() < 0.02 else 1.0
    scores = {
        "trajectory": Score(float(good), reason="as expected" if good else "guess instead of lookup", per_turn=(1.0,)),
        "latency": Score(rng.choice([1.0, 2.0]), reason="fast"),
        "forbidden": Score(forbidden, reason=f"{forbidden}", details={"why": "x"}),
    }
    usage = Usage(10, 5, 0.001)
    turn = Invocation("hi", (Part(said),) if said else (), calls, usage=usage, duration=1.0)
    return Trial(case.id, number, invocations=(turn,), scores=scores, duration=1.0, started=5.0)


def decide(trials: list[Trial], stored: list[Trial]) -> SuiteResult:
    return verdict_on(Comparison(CASES, CRITERIA, trials, stored, Settings()))


@pytest.mark.parametrize("seed", range(20))
def test_a_digest_decides_as_the_trial_does(seed: int) -> None:
    rng = random.Random(seed)
    trials = [make_trial(rng, case, n, steady=seed % 4 == 0) for case in CASES for n in (1, 2, 3)]
    stored = [make_trial(rng, case, n, steady=False) for case in CASES for n in (1, 2, 3)]
    keeper = Keeper({case.id: case for case in CASES}, CRITERIA, room=0)
    whole, kept = decide(trials, stored), decide([keeper.keep(trial) for trial in trials], stored)
    shown = [_as_shown(case.actual) for case in whole.cases]
    assert [case.actual for case in kept.cases] == shown
    blank = {"cases": ()}
    assert replace(kept, **blank) == replace(whole, **blank)
    for mine, theirs in zip(kept.cases, whole.cases, strict=True):
        assert mine == replace(theirs, actual=mine.actual, actual_text=mine.actual_text)


def _as_shown(calls: tuple[tuple[ToolCall, ...], ...]) -> tuple[tuple[ToolCall, ...], ...]:
    """Names and arguments: results are in the record alone."""
    return tuple(tuple(ToolCall(call.name, call.args) for call in turn) for turn in calls)


def test_a_digest_tells_answers_apart_and_keeps_none() -> None:
    def said(text: str, tool: str = "lookup") -> Trial:
        return Trial("a", 1, invocations=(Invocation("hi", (Part(text),), (ToolCall(tool),)),), side=Side.CANDIDATE)

    one, same, other, another = (digested(t, failed=False) for t in (said("a"), said("a"), said("b"), said("a", "x")))
    assert one == same
    assert one != other
    assert one != another
    assert one.invocations[0].tool_calls == one.invocations[0].response == ()
    assert one.invocations[0].outcomes == (("lookup", ""),)
    assert one.invocations[0] is same.invocations[0]
    assert digested(said("a"), failed=True).invocations[0].tool_calls == (ToolCall("lookup"),)
    assert digested(said(""), failed=False).invocations[0].text == ""


@pytest.mark.slow
def test_what_was_measured_is_judged_without_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings and what cases say take more memory than judging does, and the record has all that it needs."""
    rows = [{"id": n, "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
            for n in range(3)]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    plans: list[list[Plan]] = []

    def watched(path: Path, *, criteria: Sequence[Criterion]) -> Record:
        plans.append([one for one in gc.get_objects() if isinstance(one, Plan)])
        return load_to_judge(path, criteria=criteria)

    monkeypatch.setattr(flow, "load_to_judge", watched)
    config = {"suite": "rows.jsonl", "agent": {"replay": True}, "criteria": {"regex": {"patterns": ["hello"]}},
              "fields": {"id": "id", "messages": "messages"}}  # fmt: skip
    result = api.run(config, root=tmp_path)
    assert (result.exit_code, plans) == (0, [[]])
