from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.baselines.ledger import LAPSED, LAST_SECOND, Acceptance, Ledger, Mark, anchors, read, write
from gate.errors import BaselineError

DAY = 86_400.0
LAST_DAY = date(1970, 1, 11)
STORED = {key: float(n) for n, key in enumerate("abcdef")}


def mark(key: str, verdict: str = "pass", at: float = 0.0, **more: str) -> Mark:
    return Mark("s", key, more.pop("run", f"run {key}"), verdict, at or float(ord(key)), **{"base": "0", **more})


def first(*lines: Mark | Acceptance, **more: str) -> str:
    return next((candidate.key for candidate in anchors(Ledger().add(lines), STORED, **more)), "")


def only(*keys: str) -> dict[str, float]:
    return {key: STORED[key] for key in keys}


@pytest.mark.parametrize("verdict", ["regressed", "below_threshold", "inconclusive", "error", "not_measured"])
def test_only_what_is_proven_moves_the_anchor(verdict: str) -> None:
    ledger = Ledger().add([mark("a"), mark("b", verdict), mark("c", verdict)])
    assert [c.key for c in anchors(ledger, only("a", "b", "c"))] == ["a"]
    ledger = ledger.add([mark("d")])
    assert [c.key for c in anchors(ledger, only("a", "b", "c", "d"))] == ["a", "d"]


def test_passes_do_not_move_the_anchor_since_each_may_hide_a_small_loss() -> None:
    ledger = Ledger().add([mark(key) for key in "abcdef"])
    assert [c.key for c in anchors(ledger, STORED)] == list("abcdef")
    assert anchors(ledger, STORED)[0].why == "first proven"
    assert not any(c.is_chosen for c in anchors(ledger, STORED))


def test_what_is_far_better_moves_the_anchor_up() -> None:
    better = replace(mark("c"), improved=True)
    lines = [mark("a"), mark("b"), better, mark("d")]
    assert first(*lines) == "c"
    assert anchors(Ledger().add(lines), STORED)[0].is_chosen
    assert first(*lines, Acceptance("s", "d", "wendy", 200.0, "wanted", LAST_DAY)) == "d"
    fallen = Ledger().add([*lines, mark("c", "regressed", 150.0, run="run c")])
    assert [c.key for c in anchors(fallen, only("a", "b", "c", "d"))] == ["a", "b", "d"], "judged by its latest mark"
    assert read(write(Ledger().add(lines)), "s", "here") == Ledger().add(lines)


def test_the_first_record_has_nothing_to_fall_short_of() -> None:
    ledger = Ledger().add([mark("a", "inconclusive", base="")])
    assert [c.key for c in anchors(ledger, only("a"))] == ["a"]
    ledger = Ledger().add([mark("a", "below_threshold", base="")])
    assert anchors(ledger, only("a")) == []


def test_an_accepted_release_holds_the_anchor_until_the_next() -> None:
    lines = [mark("a"), mark("b", release="v1"), mark("c"), mark("d", "regressed", release="v2"), mark("e")]
    assert first(*lines) == "b"
    assert first(*lines, mark("f", release="v3")) == "f"
    assert first(*lines, Acceptance("s", "d", "wendy", 200.0, "wanted", LAST_DAY)) == "d"


def test_accepting_moves_the_anchor_and_what_follows_is_held_to_it() -> None:
    lines = [mark("a"), mark("b", "regressed"), Acceptance("s", "b", "wendy", 150.0, "slower on purpose", LAST_DAY)]
    ledger = Ledger().add(lines)
    [chosen, *_] = anchors(ledger, only("a", "b"))
    assert (chosen.key, chosen.why, chosen.without) == ("b", "accepted by wendy", frozenset())
    assert ledger.below("b") is None
    later = ledger.add([mark("b", "regressed", 160.0, run="night")])
    assert anchors(later, only("a", "b"))[0].without == {"night"}, "what is measured later was not accepted"
    assert later.below("b") is not None


def test_a_regressed_night_leaves_the_commits_good_run_the_anchor() -> None:
    ledger = Ledger().add([mark("a"), mark("a", "regressed", 150.0, run="night")])
    [chosen] = anchors(ledger, only("a"))
    assert (chosen.key, chosen.without) == ("a", {"night"})


def test_releases_of_another_package_are_left_out() -> None:
    lines = [mark("a", release="agent-v1"), mark("b", release="tool-v7")]
    assert first(*lines, series="agent-v") == "a"
    assert first(*lines) == "b"


def test_records_that_nobody_judged_count_as_proven() -> None:
    assert [c.key for c in anchors(Ledger(), only("a", "b"))] == ["a", "b"]


def test_what_is_no_longer_stored_is_no_anchor() -> None:
    assert anchors(Ledger().add([mark("z", release="v1")]), {}) == []


def test_a_rejected_release_is_known() -> None:
    ledger = Ledger().add([mark("a", "regressed", release="v1")])
    assert ledger.rejected("a")
    assert not ledger.add([Acceptance("s", "a", "w", 999.0, "y", LAST_DAY)]).rejected("a")
    assert not ledger.add([mark("a", "pass", 200.0, run="again", release="v1")]).rejected("a")


def test_the_same_verdict_on_the_same_run_is_said_once() -> None:
    ledger = Ledger().add([mark("a", at=5.0)])
    assert ledger.add([mark("a", at=6.0)]) is ledger
    turned = ledger.add([mark("a", "regressed", 7.0)]).add([mark("a", at=8.0)])
    assert [line.verdict for line in turned.marks] == ["pass", "regressed", "pass"]
    accepted = Acceptance("s", "a", "w", 1.0, "y", LAST_DAY)
    assert len(Ledger().add([accepted, accepted]).add([accepted]).lines) == 1


def test_marks_of_records_that_are_gone_go_and_releases_and_acceptances_stay() -> None:
    kept = (mark("b", release="v1"), Acceptance("s", "c", "w", 100.0, "y", LAST_DAY))
    ledger = Ledger().add([mark("a"), *kept])
    assert set(ledger.only(frozenset()).lines) == set(kept)


def test_it_is_written_and_read() -> None:
    ledger = Ledger().add(
        [mark("a", release="v1", anchor="x"), Acceptance("s", "a", "w ü", 1.0, "because\n\u2028", LAST_DAY)]
    )
    assert read(write(ledger), "s", "here") == ledger


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"nonsense\n", "damaged"),
        (b'{"kind":"mark"}\n', "damaged"),
        (b'{"kind":"other"}\n', "damaged"),
        (b"\xff\xfe\n", "damaged"),
        (b"[" * 20_000, "too long"),
        (write(Ledger((Acceptance("s", "a", "w", 1.0, "y", LAST_DAY, v=9),))), "format 9"),
        (write(Ledger((Acceptance("other", "a", "w", 1.0, "y", LAST_DAY),))), "belongs to suite 'other', not 's'"),
    ],
)
def test_a_damaged_or_foreign_ledger_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(BaselineError, match=says) as caught:
        read(data, "s", "here")
    assert caught.value.exit_code == 4
    assert "here:1" in str(caught.value)


# --- acceptances that end -------------------------------------------------------------------------

ENDS = Acceptance("s", "b", "wendy", 150.0, "slower on purpose", LAST_DAY)
BEFORE = [mark("a"), mark("b", "regressed", anchor="a")]


def keys(ledger: Ledger, at: float) -> list[str]:
    return [candidate.key for candidate in anchors(ledger.at(at), STORED) if ledger.knows(candidate.key)]


def test_an_acceptance_counts_through_its_last_day_and_then_as_if_it_had_never_been_given() -> None:
    ledger = Ledger().add([*BEFORE, ENDS])
    last = datetime(1970, 1, 12, tzinfo=UTC).timestamp()
    assert keys(ledger, last - 1) == ["b", "a"]
    assert keys(ledger, last) == keys(Ledger().add(BEFORE), last) == ["a"]
    assert ledger.at(last).ended == (ENDS,)
    assert ledger.at(last).below("b") is not None and ledger.at(last - 1).below("b") is None


def test_what_passed_against_an_acceptance_that_has_ended_is_not_proven() -> None:
    """Else the loss would be there for good with the first release that is held to it."""
    after = [mark("c", at=200.0, anchor="b", release="v2"), mark("d", at=300.0, anchor="c", release="v3")]
    ledger = Ledger().add([*BEFORE, ENDS, *after])
    assert keys(ledger, 400.0)[0] == "d"
    assert keys(ledger, 12 * DAY) == ["a"]
    assert [m.verdict for m in ledger.at(12 * DAY).marks] == ["pass", "regressed", LAPSED, LAPSED]
    repaired = ledger.add([mark("e", at=13 * DAY, anchor="a", release="v4"), mark("f", at=14 * DAY, anchor="e")])
    assert keys(repaired, 15 * DAY)[0] == "e", "what passes against the old anchor is proven"


def test_who_accepts_again_goes_on() -> None:
    again = Acceptance("s", "b", "wendy", 11 * DAY, "still slower", date(1970, 2, 1))
    ledger = Ledger().add([*BEFORE, ENDS, mark("c", at=200.0, anchor="b"), again])
    assert keys(ledger, 15 * DAY)[0] == "b" and ledger.at(15 * DAY).ended == ()
    assert "c" in keys(ledger, 15 * DAY)


def test_no_acceptance_counts_for_longer_than_a_year_or_from_the_future() -> None:
    for_ever = Acceptance("s", "b", "mallory", 150.0, "x", date.max)
    assert keys(Ledger().add([*BEFORE, for_ever]), 366 * DAY)[0] == "b"
    assert keys(Ledger().add([*BEFORE, for_ever]), 367 * DAY) == ["a"]
    dated_ahead = Acceptance("s", "b", "mallory", LAST_SECOND, "x", date.max)
    assert keys(Ledger().add([*BEFORE, dated_ahead]), 20 * DAY) == ["a"]
    assert for_ever.fault(367 * DAY) == "ended on 1971-01-02"
    assert dated_ahead.fault(20 * DAY) == "is dated 9999-12-31, by a clock that is ahead"


def test_its_end_is_written_and_read() -> None:
    ledger = Ledger().add([ENDS])
    assert b'"until":"1970-01-11"' in write(ledger)
    assert read(write(ledger), "s", "here") == ledger


@pytest.mark.parametrize("until", ['"tomorrow"', '"2026-13-01"', '"99999-01-01"', "1e300", "[]"])
def test_a_day_that_is_none_is_refused(until: str) -> None:
    data = write(Ledger((ENDS,))).replace(b'"1970-01-11"', until.encode())
    with pytest.raises(BaselineError, match="damaged"):
        read(data, "s", "here")


@pytest.mark.parametrize("at", ["1e300", "-1", "253402300800"])
def test_a_time_that_no_date_has_is_refused(at: str) -> None:
    for line in (ENDS, mark("a", at=150.0)):
        with pytest.raises(BaselineError, match="damaged"):
            read(write(Ledger((line,))).replace(b'"at":150.0', b'"at":' + at.encode()), "s", "here")


VERDICTS = st.sampled_from(["pass", "regressed", "inconclusive"])


@st.composite
def histories(draw: st.DrawFn) -> list[Mark | Acceptance]:
    """Commits in their order, each held to one that stood at its time; some accepted until a day in January 1970."""
    lines: list[Mark | Acceptance] = []
    standing = [""]
    for number, key in enumerate("abcdef"):
        found = mark(key, draw(VERDICTS), 10.0 * number + 1, anchor=draw(st.sampled_from(standing)))
        lines.append(found)
        accepted = draw(st.booleans())
        if accepted:
            until = date(1970, 1, 2) + timedelta(draw(st.integers(0, 9)))
            lines.append(Acceptance("s", key, "w", 10.0 * number + 5, "y", until))
        standing += [key] if found.proven or accepted else []
    return lines


@given(histories())
def test_once_all_have_ended_what_stands_is_what_passed_against_what_passed(lines: list[Mark | Acceptance]) -> None:
    marks = {line.key: line for line in lines if isinstance(line, Mark)}

    def passed(key: str) -> bool:
        return not key or (marks[key].proven and passed(marks[key].anchor))

    assert set(keys(Ledger().add(lines), 40 * DAY)) == {key for key in marks if passed(key)}
