"""What a person sees while trials run."""

from __future__ import annotations

from io import StringIO

from gate.model import ErrorKind, Trial, TrialError
from gate.pipeline.progress import ProgressLines


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_pause_before_a_round_does_not_slow_its_estimate() -> None:
    out, clock = StringIO(), Clock()
    progress = ProgressLines(out, every=15.0, clock=clock)
    progress.plan("s", 48, "confirm the failures, in 60 s", 60.0)
    clock.now = 60.5
    progress.trial(Trial("a", 1))
    assert "left" not in out.getvalue(), "too early for an estimate"
    clock.now = 75.0
    progress.trial(Trial("a", 2))
    assert "  2 of 48 runs, 6 min left\n" in out.getvalue()


def test_a_failure_of_the_agent_is_not_called_unmeasured() -> None:
    out, clock = StringIO(), Clock()
    progress = ProgressLines(out, every=0.0, clock=clock)
    progress.plan("s", 3, "screen")
    progress.trial(Trial("a", 1, error=TrialError(ErrorKind.CRASH, "boom")))
    progress.trial(Trial("b", 1, error=TrialError(ErrorKind.LIMIT, "429")))
    assert out.getvalue().splitlines()[1:] == [
        "  1 of 3 runs, 0 s left, the agent failed in 1",
        "  2 of 3 runs, 0 s left, the agent failed in 1, 1 could not be measured",
    ]
    progress.plan("s", 1, "again")
    progress.trial(Trial("c", 1))
    assert out.getvalue().endswith("  1 of 1 runs, 0 s left\n"), "counted by round, as the runs are"
