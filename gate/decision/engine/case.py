"""The trials of one paired case as the engine keeps them, and the evidence that the case broke."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from gate.decision.engine.coupled import with_pairs
from gate.decision.engine.state import CONCURRENT, Partner, Row
from gate.model import FULL, NARROW, Side
from gate.statistics.evalues import case_log_e, e_of
from gate.statistics.paired import Coupled, coupled_log_e


class CaseEvidence(Struct):
    """The trials of one paired case; larger values are better."""

    id: str
    before: list[Row]
    """Baseline trials of whole epochs: stored, and run now. Suite looks and the certificate use only these and
    ``full``."""
    full: list[Row] = field(default_factory=list)
    """Candidate trials of epochs: run regardless of earlier results, so they are a fair sample."""
    narrow: list[Row] = field(default_factory=list)
    """Candidate trials that narrow the interval of the change; stored trials decided how many, so they are fair, too,
    but not exchangeable with those."""
    stored: int = 0
    """Number of trials in ``before`` with a known outcome."""
    stored_passed: int = 0
    now: list[Row] = field(default_factory=list)
    """Trials of the baseline's agent run in this job, of whole epochs and of checks for drift."""
    baseline_trials: int = 0
    baseline_passed: int = 0
    trials: int = 0
    passed: int = 0
    newest_failed: bool = False
    before_job: int = 0
    """Number of trials in ``before`` that were stored before this job."""
    looked_before: int = 0
    """Number of trials in ``before`` that earlier looks have seen."""
    looked_at: list[int] = field(default_factory=lambda: [0])
    """Number of trials in ``full`` that each look so far has seen, after a 0."""
    links: list[Partner | None] = field(default_factory=list)
    """The trial in ``before`` with which each trial in ``full`` is coupled."""
    narrow_links: list[Partner | None] = field(default_factory=list)
    """The same for each trial in ``narrow``."""
    coupled: Coupled = Coupled()
    """The outcomes of all coupled trials, reruns included."""
    stored_at: dict[int, int] = field(default_factory=dict)
    """Position in the baseline's trials → position in ``before``, for measured trials."""
    whole: int = 0
    """Number of candidate trials answered entirely from recordings, including reruns."""
    others: int = 0
    """Number of candidate trials that asked the real model or tools for anything, or may have."""

    @property
    def sample(self) -> list[Row]:
        """The candidate's trials that are a fair sample of its answers: results never decided how many there are."""
        return [*self.full, *self.narrow]

    @property
    def sample_links(self) -> list[Partner | None]:
        """The trial in ``before`` with which each trial of the sample is coupled."""
        return [*self.links, *self.narrow_links]

    @property
    def live(self) -> bool:
        """True if the case could show a drift: not everything was answered from recordings."""
        return self.others > 0 or not self.whole

    @property
    def reruns(self) -> int:
        """Number of candidate trials with a known outcome that are not of epochs."""
        return self.trials - len(outcomes_in(self.full))

    @property
    def log_e(self) -> float:
        """The evidence of a break from all trials, reruns included: an e-value stays valid if it decides what is
        run."""
        return self.log_e_after()

    @property
    def seems_worse(self) -> bool:
        """True if passes and failures would suggest a break if all trials were independent: grounds for a rerun, not a
        proof. Coupled pairs need more failures for the same evidence, and these must be run first."""
        return case_log_e(self.baseline_passed, self.baseline_trials, self.passed, self.trials) >= 0

    def log_e_after(self, failing: int = 0, passing_before: int = 0) -> float:
        """Return the evidence after this many more failing trials of the candidate and passing trials of the
        baseline."""
        passed_before, before = self.baseline_passed + passing_before, self.baseline_trials + passing_before
        return coupled_log_e(self.coupled, passed_before, before, self.passed, self.trials + failing)

    @property
    def e_value(self) -> float:
        return e_of(self.log_e)

    @property
    def stored_outcomes(self) -> tuple[int, int]:
        """Passes and trials stored before this job."""
        outcomes = outcomes_in(self.before[: self.before_job])
        return sum(outcomes), len(outcomes)

    @property
    def never_passes(self) -> bool:
        """True if the case passed in every baseline trial and fails in every trial of the candidate."""
        return 0 < self.baseline_trials == self.baseline_passed and not self.passed and self.trials > 0

    @property
    def log_gain(self) -> float:
        """The evidence that the candidate passes more often than the baseline: the same test with the sides
        exchanged."""
        exchanged = self.coupled.exchanged
        return coupled_log_e(exchanged, self.passed, self.trials, self.baseline_passed, self.baseline_trials)

    def add(self, tag: str, side: Side, rows: Sequence[Row], links: Sequence[Partner | None]) -> None:
        """Add the trials of a round, without those that ended in an error: these count as run but not as seen.

        ``links``: the stored trial with which each is coupled.
        """
        measured, linked = [], []
        for row, link in zip(rows, links, strict=True):
            if is_measured(row):
                measured.append(row)
                linked.append(link)
        if tag == CONCURRENT:
            if side is Side.BASELINE:  # earlier versions reran the candidate, too; no test uses those trials
                self.now += measured
            return
        outcomes = outcomes_in(measured)
        if side is Side.BASELINE:
            self.baseline_trials += len(outcomes)
            self.baseline_passed += sum(outcomes)
            if tag == FULL:
                self.before.extend(measured)
                self.now.extend(measured)
                self.stored += len(outcomes)
                self.stored_passed += sum(outcomes)
            return
        self.trials += len(outcomes)
        self.passed += sum(outcomes)
        whole = sum([link is not None and link.whole for link in linked])
        self.whole += whole
        self.others += len(linked) - whole
        placed = list(map(self._placed, linked))
        self.coupled = with_pairs(self.coupled, measured, placed, self.before)
        if tag == FULL:
            self.full.extend(measured)
            self.links.extend(placed)
        elif tag == NARROW:
            self.narrow.extend(measured)
            self.narrow_links.extend(placed)
        if tag in (FULL, NARROW):
            newest = placed[-1] if placed else None
            # A trial that replays only the recording of a trial that failed, too, is no new failure.
            failed_alike = newest is not None and newest.whole and self.before[newest.stored][0] == 0
            self.newest_failed = bool(outcomes) and not outcomes[-1] and not failed_alike

    def _placed(self, link: Partner | None) -> Partner | None:
        """Return the partner with its position in ``before``; None if it was not measured."""
        if link is None or link.stored not in self.stored_at:
            return None
        return Partner(self.stored_at[link.stored], link.whole)


def outcomes_in(rows: Sequence[Row]) -> list[bool]:
    """Return True for each trial that passed and False for each that failed, without trials of unknown outcome."""
    return [row[0] >= 0.5 for row in rows if row[0] is not None]


def is_measured(row: Row) -> bool:
    """True if any value of a trial was measured."""
    return any(value is not None for value in row)
