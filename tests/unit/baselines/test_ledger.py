import pytest
from msgspec.structs import replace

from gate.baselines.ledger import Acceptance, Ledger, Mark, anchors, read, write
from gate.errors import BaselineError

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
    assert first(*lines, Acceptance("s", "d", "wendy", 200.0, "wanted")) == "d"
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
    assert first(*lines, Acceptance("s", "d", "wendy", 200.0, "wanted")) == "d"


def test_accepting_moves_the_anchor_and_what_follows_is_held_to_it() -> None:
    lines = [mark("a"), mark("b", "regressed"), Acceptance("s", "b", "wendy", 150.0, "slower on purpose")]
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
    assert not ledger.add([Acceptance("s", "a", "w", 999.0, "y")]).rejected("a")
    assert not ledger.add([mark("a", "pass", 200.0, run="again", release="v1")]).rejected("a")


def test_the_same_verdict_on_the_same_run_is_said_once() -> None:
    ledger = Ledger().add([mark("a", at=5.0)])
    assert ledger.add([mark("a", at=6.0)]) is ledger
    turned = ledger.add([mark("a", "regressed", 7.0)]).add([mark("a", at=8.0)])
    assert [line.verdict for line in turned.marks] == ["pass", "regressed", "pass"]
    accepted = Acceptance("s", "a", "w", 1.0, "y")
    assert len(Ledger().add([accepted, accepted]).add([accepted]).lines) == 1


def test_marks_of_records_that_are_gone_go_and_releases_and_acceptances_stay() -> None:
    kept = (mark("b", release="v1"), Acceptance("s", "c", "w", 100.0, "y"))
    ledger = Ledger().add([mark("a"), *kept])
    assert set(ledger.only(frozenset()).lines) == set(kept)


def test_it_is_written_and_read() -> None:
    ledger = Ledger().add([mark("a", release="v1", anchor="x"), Acceptance("s", "a", "w ü", 1.0, "because\n\u2028")])
    assert read(write(ledger), "s", "here") == ledger


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"nonsense\n", "damaged"),
        (b'{"kind":"mark"}\n', "damaged"),
        (b'{"kind":"other"}\n', "damaged"),
        (b"\xff\xfe\n", "damaged"),
        (b"[" * 20_000, "too long"),
        (write(Ledger((Acceptance("s", "a", "w", 1.0, "y", v=9),))), "format 9"),
        (write(Ledger((Acceptance("other", "a", "w", 1.0, "y"),))), "belongs to suite 'other', not 's'"),
    ],
)
def test_a_damaged_or_foreign_ledger_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(BaselineError, match=says) as caught:
        read(data, "s", "here")
    assert caught.value.exit_code == 4
    assert "here:1" in str(caught.value)
