"""The score that another tool's scorer gave a recorded trial."""

from __future__ import annotations

from gate.metrics.base import TrialOutput
from gate.metrics.outcome import RecordedOptions, RecordedScore
from gate.model import Case, ForeignScore, Invocation, Turn

CASE = Case("a", (Turn("hi"),))
MATCH = RecordedScore(RecordedOptions(scorer="match"))


def test_its_value_and_reason_are_the_scorers() -> None:
    said = Invocation("hi", foreign=(ForeignScore("other", 1.0), ForeignScore("match", 0.5, "half of it")))
    score = MATCH.score(CASE, TrialOutput((said,)))
    assert (score.value, score.reason) == (0.5, "half of it")


def test_it_does_not_apply_where_the_scorer_said_nothing() -> None:
    score = MATCH.score(CASE, TrialOutput((Invocation("hi"),)))
    assert (score.value, score.error) == (None, None)


def test_without_a_scorer_it_checks_nothing() -> None:
    assert RecordedScore(RecordedOptions()).missing == "scorer"
