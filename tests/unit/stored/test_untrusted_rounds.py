"""The rounds of a record from an untrusted run: its labels may not exclude a trial."""

from __future__ import annotations

from gate.model import Trial
from gate.stored.judging import _in_rounds


def ordered(*tags: str) -> list[tuple[int, str]]:
    """The rounds and tags of one case's trials, beside another with two of epochs."""
    trials = [Trial("a", n, n, tag) for n, tag in enumerate(tags, 1)] + [Trial("b", 1), Trial("b", 2, 2)]
    return [(one.round, one.tag) for one in _in_rounds(trials, ["a", "b"], ()) if one.case_id == "a"]


def test_what_every_case_has_are_epochs_whatever_they_are_called() -> None:
    assert ordered("narrow", "confirm") == [(1, "full"), (2, "full")]


def test_trials_that_narrow_an_interval_still_count_in_it() -> None:
    """Or the same record would pass where it was measured and be inconclusive here."""
    found = ordered("full", "full", "narrow", "narrow", "confirm", "full", "probe")
    assert found[2:] == [(3, "narrow"), (4, "narrow"), (5, "confirm"), (6, "confirm"), (7, "confirm")]


def test_a_case_in_quarantine_runs_once_and_shortens_no_other() -> None:
    trials = [Trial("a", 1), Trial("a", 2, 2), Trial("b", 1)]
    assert [one.tag for one in _in_rounds(trials, ["a", "b"], ["b"])] == ["full", "full", "full"]
