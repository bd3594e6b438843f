from math import comb

import pytest

from gate.model import Verdict
from gate.monitor.versus import Arm, arm_of, compare_arms, difference

RULE = {"alpha": 0.02, "margin": 0.10, "least": 30}


def arm(passed: int, measured: int, name: str = "canary") -> Arm:
    return Arm(name, passed, measured)


def test_what_two_windows_show() -> None:
    for new, old, verdict in [
        ((190, 200), (191, 200), Verdict.PASS),
        ((200, 200), (200, 200), Verdict.PASS),
        ((150, 200), (190, 200), Verdict.REGRESSED),
        ((0, 200), (200, 200), Verdict.REGRESSED),
        ((33, 40), (36, 40), Verdict.INCONCLUSIVE),
        ((200, 200), (120, 200), Verdict.PASS),
        ((29, 29), (200, 200), Verdict.NOT_MEASURED),
        ((200, 200), (29, 29), Verdict.NOT_MEASURED),
        ((0, 0), (0, 0), Verdict.NOT_MEASURED),
    ]:
        found, text = compare_arms(arm(*new), arm(*old, "stable"), **RULE)  # type: ignore[arg-type]
        assert found is verdict, text


def test_a_window_that_was_not_measured_is_no_pass() -> None:
    blind = arm_of("canary", [True] * 80 + [None] * 20, 0.1)
    found, _ = compare_arms(blind, arm(200, 200), **RULE)  # type: ignore[arg-type]
    assert found is Verdict.NOT_MEASURED


def test_traces_that_were_not_measured_and_could_turn_the_verdict_are_no_pass() -> None:
    stable = arm(200, 200, "stable")
    for lost, verdict in ((2, Verdict.PASS), (20, Verdict.NOT_MEASURED)):
        found, text = compare_arms(arm_of("canary", [True] * 180 + [None] * lost, 0.1), stable, **RULE)  # type: ignore[arg-type]
        assert found is verdict, text


def test_traces_that_are_lost_on_both_sides_do_not_hide_each_other() -> None:
    for lost, verdict in ((0, Verdict.PASS), (2, Verdict.PASS), (20, Verdict.NOT_MEASURED)):
        both = [arm_of(name, [True] * 180 + [None] * lost, 0.1) for name in ("canary", "stable")]
        found, text = compare_arms(*both, **RULE)  # type: ignore[arg-type]
        assert found is verdict, text
    assert "20 traces of canary and 20 traces of stable could not be measured: at worst" in text
    worse = []
    for name, passed in (("canary", 120), ("stable", 185)):
        worse.append(arm_of(name, [True] * passed + [False] * (190 - passed) + [None] * 10, 0.1))
    assert compare_arms(*worse, **RULE)[0] is Verdict.REGRESSED, "a loss that is shown stays one"  # type: ignore[arg-type]


def test_the_interval_is_newcombes() -> None:
    """His example: 56 of 70 against 48 of 80 (Newcombe 1998, table II, method 10)."""
    low, high = difference(arm(56, 70), arm(48, 80), 0.95)
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


@pytest.mark.parametrize(("rate", "n"), [(0.5, 30), (0.9, 30), (0.95, 60)])
def test_one_that_is_as_good_is_seldom_called_worse(rate: float, n: int) -> None:
    """Exactly, over every outcome of two windows of one rate."""
    share = [comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1)]
    likely = [k for k in range(n + 1) if share[k] > 1e-7]

    def called_worse(new: int, old: int) -> bool:
        return compare_arms(arm(new, n), arm(old, n), **RULE)[0] is Verdict.REGRESSED  # type: ignore[arg-type]

    worse = sum(share[new] * share[old] for new in likely for old in likely if new < old and called_worse(new, old))
    assert worse <= 0.02, worse
