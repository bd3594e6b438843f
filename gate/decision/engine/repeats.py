"""The cases that failed in an epoch and are all asked again: which, how often, and their test as one.

Many cases that break halfway are each too little to prove, and a look at the whole suite sees one trial of each. Asked
again, those that failed tell a break from bad luck. The test is exact although they are picked for failing: that
failure is left out of it, and whatever else decides who is picked is a condition that every relabelling has to meet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from gate.model.evidence import RepeatsTest
from gate.statistics.repeats import Repeated, repeats_p

REPEATS_SHARES = (0.08, 0.03)
"""Share of alpha of the test after epoch 1 and 2."""
REPEATS = (1, 2, 3, 4)
"""Trials of each case, round by round; the test is after the last."""
GOING_ON = (0.3, 0.25, 0.15)
"""From this p-value of the other cases after a round on, their test is out of sight, and none is asked further."""
STEADY = 0.6
"""The least share of stored trials that a case passed, or its failing says little and it is not picked; nor is one that
could not have passed less often and still been."""
LEAST_CASES = 6
"""Fewer are left to their own evidence."""
LEAST_SUITE = 50
"""In a suite of fewer cases so many seldom fail: nothing is repeated, and the looks have the share."""
OPEN_P = 0.15
"""From this p of the suite look on the suite is about to pass, and nothing is repeated."""


class AskedAgain(Struct):
    """The cases that are asked again, and their results so far. Nothing in it depends on when a run ends: tests are
    only ever left out."""

    cases: dict[str, Repeated] = field(default_factory=dict)
    newest: tuple[str, ...] = ()
    """The cases that are asked again: picked after the newest epoch, or before it and not asked yet."""
    rounds: int = 0
    failed: set[str] = field(default_factory=set)
    """Cases that failed in any epoch: each is picked at its first failure, or never."""
    over: bool = False
    """True if a test was passed over: then none follows, or it would depend on outcomes which cases one is of."""
    tests: list[RepeatsTest] = field(default_factory=list)

    def pick(self, failing: Mapping[str, tuple[int, int]], p: float, epochs: int) -> None:
        """Pick cases after an epoch. Those that still wait to be asked are asked with them, so that the test after an
        epoch is of all cases picked until then, whenever the reruns came.

        Args:
            failing: the cases whose newest trial failed, with their passes and trials that are stored.
            p: of the look at the whole suite.
            epochs: how many there are.
        """
        found = {}
        for case_id, (passed, trials) in failing.items():
            least = math.ceil(STEADY * trials)
            if case_id not in self.failed and trials > least and passed >= least:
                found[case_id] = Repeated(passed, trials, 0, 0, least)
        self.failed.update(failing)
        waiting, self.newest = self.newest, ()
        if self.over or not (found or waiting) or len(self.cases) + len(found) < LEAST_CASES:
            return
        if p >= OPEN_P or (waiting and self.rounds) or epochs > len(REPEATS_SHARES):
            self.over = True
            return
        self.cases.update(found)
        self.newest, self.rounds = (*waiting, *found), 0

    def add(self, outcomes: Mapping[str, Sequence[bool | None]], epochs: int, alpha: float) -> RepeatsTest | None:
        """A round of reruns, with None for what was not measured; the test, where it completes one."""
        newest, self.newest = self.newest, ()
        if not newest:
            return None
        if any(len(outcomes.get(case_id, ())) != REPEATS[self.rounds] for case_id in newest):
            self.over = True  # outcomes, or what a trial cost, may have decided how often one is asked
            return None
        for case_id in newest:
            case, found = self.cases[case_id], [outcome for outcome in outcomes[case_id] if outcome is not None]
            passed, trials = case.passed + sum(found), case.trials + len(found)
            self.cases[case_id] = Repeated(case.passed_before, case.before, passed, trials, case.least)
        self.rounds += 1
        if self.rounds < len(REPEATS):
            self.over = self._of_the_others() >= GOING_ON[self.rounds - 1]
            self.newest = () if self.over else newest
            return None
        self.tests.append(self._test(epochs, alpha))
        return self.tests[-1]

    def _of_the_others(self) -> float:
        """The p-value without the case that failed most, and later without all that failed each time.

        Those are proven by their own evidence, with reruns of their own.
        """
        _, *others = sorted(self.cases.values(), key=lambda case: case.passed - case.trials)
        return repeats_p(tuple(case for case in others if case.passed or self.rounds == 1))

    def _test(self, epochs: int, alpha: float) -> RepeatsTest:
        cases = tuple(self.cases.values())
        now = sum(case.passed for case in cases), sum(case.trials for case in cases)
        before = sum(case.passed_before for case in cases), sum(case.before for case in cases)
        return RepeatsTest(epochs, repeats_p(cases), REPEATS_SHARES[epochs - 1] * alpha, len(cases), *now, *before)
