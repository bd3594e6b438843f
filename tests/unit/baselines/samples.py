"""Small records for the tests of stores, and processes that write at once."""

import multiprocessing

from gate.model import Criterion, Invocation, Part, Scale, Score, Side, ToolCall, Trial
from gate.records import Footer, Header, PlannedCase, Record

PLAN = (PlannedCase("a", "f1"), PlannedCase("b", "f2"))
CRITERIA = (Criterion("ok", "contains", Scale.BINARY, fingerprint="k1"),)

FORKED = multiprocessing.get_context("forkserver")
"""Processes that are forked from one that has imported what they need, in place of importing it again."""
FORKED.set_forkserver_preload([__name__, "pytest", "gate.baselines.git", "gate.baselines.file"])


def commit(number: int) -> str:
    return f"{number:040x}"


def make_trial(case: str, number: int, value: float = 1.0, side: Side = Side.CANDIDATE, tool: str = "look") -> Trial:
    turn = Invocation("hello", (Part("the answer"),), (ToolCall(tool, {"q": case}, result="found"),))
    return Trial(case, number, side=side, invocations=(turn,), scores={"ok": Score(value, "because")})


def make_record(
    number: int = 1,
    *,
    suite: str = "support",
    agent: str = "a1",
    created: float | None = None,
    trials: int = 2,
    run: str = "",
    value: float = 1.0,
) -> Record:
    header = Header(
        suite_id=suite,
        plan=PLAN,
        criteria=CRITERIA,
        commit=commit(number),
        agent=agent,
        run_id=run,
        created=1_700_000_000.0 + number if created is None else created,
    )
    made = tuple(make_trial(case.id, n, value) for case in PLAN for n in range(1, trials + 1))
    return Record(header, made, Footer(len(made), 0, 1))
