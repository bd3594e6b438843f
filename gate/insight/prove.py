"""Estimates from stored trials how often the rule would block a change that changes nothing (an A/A test).

Runs no agent. For each simulated change both sides are drawn anew: every case's true rate from those its trials leave
possible, and its trials with all their scores from recorded ones with that outcome. The rule then requests trials as in
a run and gets draws of the same kind; thresholds, looks and reruns all count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from random import Random
from statistics import fmean

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from gate.decision import Comparison, More, Settings, next_step, verdict_on
from gate.decision.outcomes import passed
from gate.decision.power import Rates
from gate.insight.power import Drawn, KnownSuite, Share, share_of
from gate.model import FULL, Case, Criterion, Direction, Score, Side, Trial, Verdict
from gate.security.escape import one_line

BLOCKS = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD, Verdict.NOT_COMPARED)
MOST_STEPS = 200
"""Maximum number of rounds; a change that is still undecided then gets the verdict on its trials so far."""
STEP = 0.05
"""Thresholds are rounded down to steps of five points."""

Tick = Callable[[], None]
Progress = Callable[[str], AbstractContextManager[Tick]]
"""Shows the progress of a suite's simulations, one tick each."""


class Proof(Struct, frozen=True):
    """The verdicts on changes that change nothing."""

    suite: str
    cases: int
    stored: float
    """Average number of stored trials per case."""
    changes: int
    blocked: Share
    regressed: Share
    below_threshold: Share
    inconclusive: Share
    unmeasured: Share
    single: Share
    """Share blocked by a gate that runs each case once and compares the pass rate with a threshold: the stored pass
    rate, rounded down to five points."""
    threshold: float
    """The threshold that follows from the actual stored trials."""
    runs_per_case: float


class Source(Struct, frozen=True):
    """Recorded trials to draw from."""

    cases: Sequence[Case]
    criteria: tuple[Criterion, ...]
    suite: KnownSuite
    passing: Sequence[Sequence[Trial]]
    """The trials that passed, by case."""
    failing: Sequence[Sequence[Trial]]
    sizes: tuple[int, ...]
    """Number of stored trials, by case."""

    def draw(self, rng: Random, index: int, rate: float) -> Trial:
        """Return a trial of this case: one of its own with the drawn outcome, else of any case, else an adapted one."""
        outcomes, others, wanted = self.failing, self.passing, 0.0
        if rng.random() < rate:
            outcomes, others, wanted = self.passing, self.failing, 1.0
        known = outcomes[index] or list(chain.from_iterable(outcomes))
        if known:
            return rng.choice(known)
        return self._turned(rng.choice(others[index]), wanted)

    def _turned(self, trial: Trial, wanted: float) -> Trial:
        """Return the trial adapted to an outcome that no case has: blocking scores are set to their best or worst."""
        scores = dict(trial.scores)
        for criterion in self.criteria:
            is_higher_better = criterion.direction is Direction.HIGHER
            if criterion.blocking and criterion.name in scores and is_higher_better:
                scores[criterion.name] = Score(wanted)
        return replace(trial, scores=scores, error=None)


def source_of(cases: Sequence[Case], criteria: Sequence[Criterion], trials: Sequence[Trial]) -> Source:
    """Return the trials that an A/A test draws from, without cases that have no known outcome."""
    by_case: dict[str, dict[bool, list[Trial]]] = {}
    known = {case.id: case for case in cases}
    for trial in trials:
        if trial.side is not Side.CANDIDATE or trial.case_id not in known:
            continue
        outcome = passed(trial, known[trial.case_id], criteria)
        if outcome is not None:
            # Without its answer: drawing a trial twice must not look like a cache.
            bare = replace(trial, invocations=(), answer="", process="", log="", run="", replay=None)
            by_case.setdefault(trial.case_id, {True: [], False: []})[outcome].append(bare)
    kept, passing, failing, counts = [], [], [], []
    for case in cases:
        if case.id in by_case:
            good, bad = by_case[case.id][True], by_case[case.id][False]
            kept.append(case)
            passing.append(good)
            failing.append(bad)
            counts.append((len(good), len(good) + len(bad)))
    suite, sizes = KnownSuite(Rates(tuple(counts))), tuple([size for _, size in counts])
    return Source(kept, tuple(criteria), suite, passing, failing, sizes)


def prove(
    suite: str,
    source: Source,
    settings: Settings,
    *,
    changes: int = 1000,
    seed: int = 0,
    tick: Tick = lambda: None,
) -> Proof:
    """Simulate changes that change nothing, and return how often they are blocked."""
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    verdicts, runs, single = [], 0, 0
    for _ in range(changes):
        drawn = source.suite.draw(rng, len(source.cases))
        before, verdict, trials = _change(source, settings, drawn, rng)
        verdicts.append(verdict)
        runs += len(trials)
        single += is_below(pass_rate(source, _first(trials)), threshold_of(pass_rate(source, before)))
        tick()

    def of(*which: Verdict) -> Share:
        return share_of(sum(verdict in which for verdict in verdicts), changes)

    return Proof(
        suite,
        len(source.cases),
        fmean(source.sizes),
        changes,
        of(*BLOCKS),
        of(Verdict.REGRESSED),
        of(Verdict.BELOW_THRESHOLD),
        of(Verdict.INCONCLUSIVE),
        of(Verdict.ERROR),
        share_of(single, changes),
        threshold_of(_stored_rate(source)),
        runs / (changes * len(source.cases)),
    )


def _change(
    source: Source, settings: Settings, drawn: Sequence[Drawn], rng: Random
) -> tuple[list[Trial], Verdict, list[Trial]]:
    """Return the stored trials of one simulated change, its verdict and its own trials."""
    place = {case.id: index for index, case in enumerate(source.cases)}
    numbers: Counter[tuple[str, Side]] = Counter()

    def trial(case_id: str, side: Side, tag: str, round_: int) -> Trial:
        numbers[case_id, side] += 1
        found = source.draw(rng, place[case_id], drawn[place[case_id]].rate)
        return replace(
            found, case_id=case_id, number=numbers[case_id, side], round=round_, tag=tag, side=side, again=False
        )

    stored = []
    for case, size in zip(source.cases, source.sizes, strict=True):
        stored += [trial(case.id, Side.CANDIDATE, FULL, n) for n in range(1, size + 1)]
    numbers.clear()
    trials: list[Trial] = []
    seed = rng.randrange(1 << 30)
    known = Comparison(source.cases, source.criteria, trials, stored, settings, seed=seed, reported=True)
    for _ in range(MOST_STEPS):
        step = next_step(known)
        if isinstance(step, Verdict):
            return stored, step, trials
        trials += _asked(step, trial)
    return stored, verdict_on(known).verdict, trials


def _asked(step: More, trial: Callable[[str, Side, str, int], Trial]) -> list[Trial]:
    found = []
    for request in step.requests:
        for case_id in request.cases:
            found += [trial(case_id, request.side, request.tag, step.round) for _ in range(request.n)]
    return found


# --- the simple gate for comparison ---------------------------------------------------------------


def pass_rate(source: Source, trials: Sequence[Trial]) -> float:
    """Return the mean over cases of the share that passed."""
    known = {case.id: case for case in source.cases}
    outcomes: dict[str, list[bool]] = {}
    for trial in trials:
        outcome = passed(trial, known[trial.case_id], source.criteria)
        if outcome is not None:
            outcomes.setdefault(trial.case_id, []).append(outcome)
    if not outcomes:
        return 0.0
    return fmean(map(fmean, outcomes.values()))


def threshold_of(rate: float) -> float:
    """Return the threshold that a user would set after measuring this pass rate."""
    return round(math.floor(rate / STEP + 1e-9) * STEP, 2)


def is_below(rate: float, threshold: float) -> bool:
    return rate < threshold - 1e-9


def _first(trials: Sequence[Trial]) -> list[Trial]:
    """Return the candidate's trials of the first epoch."""
    seen: set[str] = set()
    found = []
    for trial in trials:
        if trial.side is Side.CANDIDATE and trial.case_id not in seen:
            seen.add(trial.case_id)
            found.append(trial)
    return found


def _stored_rate(source: Source) -> float:
    return fmean(len(good) / size for good, size in zip(source.passing, source.sizes, strict=True))


# --- text and picture -----------------------------------------------------------------------------


def in_words(proof: Proof) -> str:
    """Return a one-sentence summary."""
    return (
        f"Of {proof.changes:,} unchanged changes your gate would have blocked {_number(proof.blocked)}; "
        f"a single-sample threshold would have blocked {_number(proof.single)}."
    )


def _number(share: Share) -> str:
    """Return the number of changes behind a share."""
    return f"{round(share.share * share.runs):,}"


WIDTH, LEFT, RIGHT, ROW = 720, 230, 90, 34
"""Sizes in the picture in pixels: total width, margins for name and number, and row height."""
OURS, OTHER, INK = "#11734a", "#bb2430", "#30363d"


def picture_of(proofs: Sequence[Proof]) -> str:
    """Return an SVG file: a bar per gate and suite, with its interval."""
    rows = []
    for proof in proofs:
        name = one_line(proof.suite, 24)
        rows += [(f"{name}: this gate", proof.blocked, OURS), ("one run, a threshold", proof.single, OTHER)]
    most = max(0.05, *(share.high for _, share, _ in rows))
    changes = f"{proofs[0].changes:,}"
    title = f"Of {changes} changes that change nothing, blocked"
    drawn = [_bar(number, row, most) for number, row in enumerate(rows)]
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img" aria-label="{said}" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="13">'
        '<title>{said}</title><rect width="{width}" height="{height}" rx="6" fill="#fff"/>'
        '<text x="16" y="28" font-size="15" font-weight="bold" fill="{ink}">{title}</text>{rows}</svg>\n'
    ).format(
        width=WIDTH,
        height=52 + ROW * len(rows),
        said=" ".join(map(in_words, proofs)),
        ink=INK,
        title=title,
        rows=Markup("").join(drawn),
    )


def _bar(number: int, row: tuple[str, Share, str], most: float) -> Markup:
    name, share, color = row
    scale = (WIDTH - LEFT - RIGHT) / most
    top = 44 + ROW * number
    return Markup(
        '<text x="16" y="{text}" fill="{ink}">{name}</text>'
        '<rect x="{left}" y="{top}" width="{length:.1f}" height="20" fill="{color}"/>'
        '<path d="M{low:.1f} {middle}H{high:.1f}" stroke="{ink}" stroke-width="2"/>'
        '<text x="{after:.1f}" y="{text}" fill="{ink}">{found}</text>'
    ).format(
        text=top + 15,
        ink=INK,
        name=name,
        left=LEFT,
        top=top,
        length=max(1.0, share.share * scale),
        color=color,
        low=LEFT + share.low * scale,
        high=LEFT + share.high * scale,
        middle=top + 10,
        after=LEFT + share.high * scale + 8,
        found=_number(share),
    )
