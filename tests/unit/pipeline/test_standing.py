"""The notes of the ledger on the record that a change is compared with (`gate.pipeline.references`)."""

from __future__ import annotations

import pytest

from gate.baselines.ledger import LAPSED, Ledger, Mark
from gate.baselines.reference import Reference
from gate.model import BaselineInfo
from gate.pipeline.identity import GitContext
from gate.pipeline.references import note_of_shortfall
from gate.records.keys import key_of
from tests.unit.baselines.samples import make_record

BASE, ANCHOR = "b" * 40, "a" * 40
NOON = 1_785_585_600.0
"""2026-08-01, 12:00 UTC."""


def told(*marks: Mark) -> str:
    own = Reference(BaselineInfo(BASE), (make_record(),))
    below = Ledger(marks).below(key_of(BASE))
    return "" if below is None else note_of_shortfall(below, own, GitContext(base=BASE, ancestors=(BASE,)))


def mark(verdict: str, anchor: str = "") -> Mark:
    return Mark("support", BASE, "r2", verdict, NOON, anchor=anchor)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            mark("regressed", ANCHOR),
            f"the base commit {BASE[:12]} itself came out regressed on 2026-08-01, compared with {ANCHOR[:12]}",
        ),
        (
            mark("below_threshold"),
            f"the base commit {BASE[:12]} itself came out below threshold on 2026-08-01",
        ),
        (
            mark(LAPSED, ANCHOR),
            f"the base commit {BASE[:12]} passed only against {ANCHOR[:12]}, whose acceptance has ended",
        ),
        (
            mark("regressed", BASE),
            f"the base commit {BASE[:12]} was run again, and held to its own earlier runs came out regressed on "
            "2026-08-01",
        ),
        (
            mark(LAPSED, BASE),
            f"the base commit {BASE[:12]} passed only against its own earlier runs, whose acceptance has ended",
        ),
    ],
)
def test_what_fell_short_is_said_with_what_it_was_held_to(found: Mark, said: str) -> None:
    assert told(found) == f"{said}; this change is compared with it all the same"


def test_a_sound_base_needs_no_words() -> None:
    assert told(mark("pass", ANCHOR)) == ""
