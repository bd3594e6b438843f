"""Joint reruns of the cases that failed in an epoch: how they are picked, how often they are rerun, and their test.

Many cases that break halfway prove too little one by one, and a look at the whole suite sees one trial of each. Reruns
of the failed cases distinguish a break from bad luck. The test is exact although cases are picked for failing: that
failure is left out, and every other condition of the pick is one that each relabelling must satisfy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from gate.model.evidence import RepeatsTest
from gate.statistics.repeats import Repeated, repeats_p

REPEATS_SHARES = (0.08, 0.03)
"""Share of alpha for the test after epochs 1 and 2."""
REPEATS = (1, 2, 3, 4)
"""Trials per case, round by round; the test follows the last round."""
GOING_ON = (0.3, 0.25, 0.15)
"""If the p-value of the other cases after a round is at least this, their test is out of reach and reruns end."""
STEADY = 0.6
"""A failing case is picked only if at least this share of its stored trials passed, or its failure says little; and
only if it could have passed less often and still been picked."""
LEAST_CASES = 6
"""With fewer cases, each is left to its own evidence."""
LEAST_SUITE = 50
"""In smaller suites this many cases seldom fail: nothing is rerun, and the looks get the share."""
OPEN_P = 0.15
"""If the p-value of the suite look is at least this, the suite is about to pass and nothing is rerun."""


class AskedAgain(Struct):
    """The cases that are rerun, and their results so far. Nothing here depends on when a run ends: tests can only be
    left out."""

    cases: dict[str, Repeated] = field(default_factory=dict)
    newest: tuple[str, ...] = ()
    """The cases to rerun next: picked after the newest epoch, or earlier but not rerun yet."""
    rounds: int = 0
    failed: set[str] = field(default_factory=set)
    """Cases that failed in any epoch: each is picked at its first failure, or never."""
    over: bool = False
    """True if a test was skipped: no test follows then, since outcomes could decide which cases it includes."""
    tests: list[RepeatsTest] = field(default_factory=list)

    def pick(self, failing: Mapping[str, tuple[int, int]], p: float, epochs: int) -> None:
        """Pick cases after an epoch. Cases still waiting are rerun with them, so that the test after an epoch covers
        all cases picked so far, whenever the reruns came.

        Args:
            failing: the cases whose newest trial failed, with their stored passes and trials.
            p: p-value of the look at the whole suite.
            epochs: number of epochs so far.
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
        """Add a round of reruns, with None for trials that were not measured. Return the test if the round completes
        one."""
        newest, self.newest = self.newest, ()
        if not newest:
            return None
        if any(len(outcomes.get(case_id, ())) != REPEATS[self.rounds] for case_id in newest):
            self.over = True  # outcomes, or the cost of a trial, may have decided how often a case was rerun
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
        """Return the p-value without the case that failed most, and after the first round without all that always
        failed.

        Those are proven by their own evidence, with their own reruns.
        """
        _, *others = sorted(self.cases.values(), key=lambda case: case.passed - case.trials)
        return repeats_p(tuple(case for case in others if case.passed or self.rounds == 1))

    def _test(self, epochs: int, alpha: float) -> RepeatsTest:
        cases = tuple(self.cases.values())
        now = sum(case.passed for case in cases), sum(case.trials for case in cases)
        before = sum(case.passed_before for case in cases), sum(case.before for case in cases)
        return RepeatsTest(epochs, repeats_p(cases), REPEATS_SHARES[epochs - 1] * alpha, len(cases), *now, *before)
