"""A judge held to people's labels: Cohen's kappa, sensitivity and specificity, and shares corrected by them.

With sensitivity se and specificity sp, a true share π is judged to be q = π·se + (1 − π)(1 − sp), so that
π = (q + sp − 1) / (se + sp − 1) (Rogan & Gladen 1978). That supposes that the judge errs on the labelled answers as
often as on those it is asked about. Labels enter as counts, and their own error enters every interval here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from statistics import NormalDist

from gate.model.calibration import GradedLabels, JudgeCalibration
from gate.statistics.intervals import share_upper_bound, t_quantile

DRAWS = 2000
"""Draws behind an interval of kappa; its ends are then good to about a hundredth."""
LEVEL = 0.95
"""Level of the intervals, two-sided."""
USABLE_LEVEL = 0.95
"""A judge corrects nothing until both its rates, bounded from below at this level, show it to be better than chance."""
LEAST_GRADED = 20
"""Graded labels that a correction needs: of fewer, a kind of answer that none of them shows can move the mean by more
than a sixth of the scale (`difference_error`), as much as the corrections that are wanted."""

Ends = tuple[float, float]


def kappa(table: Sequence[float]) -> float | None:
    """κ = (pₒ − pₑ) / (1 − pₑ) (Cohen 1960): agreement beyond chance, at most 1.

    Args:
        table: both pass, both fail, only the judge passes, only people pass: counts or shares.

    Returns:
        None where judge and people each said one and the same thing throughout: there is nothing to agree on.
    """
    total = sum(table)
    both_pass, both_fail, only_judge, only_people = (cell / total for cell in table)
    people, judge = both_pass + only_people, both_pass + only_judge
    by_chance = people * judge + (1 - people) * (1 - judge)
    return None if by_chance >= 1 - 1e-12 else (both_pass + both_fail - by_chance) / (1 - by_chance)


def table_draws(table: Sequence[int], seed: int) -> list[tuple[float, ...]]:
    """Draws from the posterior of a table of counts under Jeffreys' prior, Dirichlet(½).

    Other than the bootstrap's, intervals of these stay wide where few labels happen to agree.
    """
    rng = Random(seed)  # noqa: S311 -- an interval, not a secret
    return [_draw(table, rng) for _ in range(DRAWS)]


def _draw(table: Sequence[int], rng: Random) -> tuple[float, ...]:
    masses = [rng.gammavariate(count + 0.5, 1.0) for count in table]
    total = sum(masses)
    return tuple(mass / total for mass in masses)


def middle(value: float, draws: Sequence[float]) -> Ends:
    """The middle 95 % of the draws, stretched to hold the value itself."""
    ordered = sorted(draws)
    cut = round(0.025 * len(ordered))
    return min(ordered[cut], value), max(ordered[-1 - cut], value)


def share_lower_bound(successes: int, n: int, error: float) -> float:
    """One-sided Clopper–Pearson lower bound of a share, missed with probability at most ``error``; 0 for n = 0."""
    return 1 - share_upper_bound(n - successes, n, error)


def clopper_pearson(successes: int, n: int) -> Ends:
    """Return the exact 95 % interval of a share: it misses on either side with probability at most .025."""
    error = (1 - LEVEL) / 2
    return share_lower_bound(successes, n, error), share_upper_bound(successes, n, error)


def is_usable(known: JudgeCalibration) -> bool:
    """True if the labels show the judge to be better than chance, so that its rates can correct anything."""
    error = (1 - USABLE_LEVEL) / 2
    sensitivity = share_lower_bound(known.both_pass, known.passed, error)
    return sensitivity + share_lower_bound(known.both_fail, known.failed, error) > 1


def corrects(graded: GradedLabels) -> bool:
    """True if graded labels are enough, and show the judge to follow people."""
    return graded.labels >= LEAST_GRADED and _is_associated(graded)


def _is_associated(graded: GradedLabels) -> bool:
    """True if the judge's scores are shown to rise with people's: the lower end of the correlation's interval is
    above 0 (Fisher 1921, z = artanh r with the standard error 1 / √(n − 3)).

    A judge that grades at random, or the other way round, can differ from people by 0.3 on average, too; that says
    nothing of what people think of the next answer.
    """
    if graded.correlation is None or graded.correlation <= 0:
        return False
    z = NormalDist().inv_cdf((1 + USABLE_LEVEL) / 2)
    return math.atanh(min(graded.correlation, 1 - 1e-12)) * math.sqrt(graded.labels - 3) > z


def difference_error(graded: GradedLabels, p: float, width: float) -> float:
    """Return the possible distance, one-sided at level ``p``, of the mean difference of people's scores and the judge's
    from that of the labels: Student's interval, and the difference that no label shows.

    That of n labels none shows what happens with the chance q has the probability (1 − q)^n, so with confidence p, q
    is at most 1 − (1 − p)^(1/n), about 3 / n at 95 % (the rule of three, Hanley & Lippman-Hand 1983); such answers
    differ by the ``width`` of the scale at most. So labels that all differ alike are no certainty. The sum is no
    theorem; `tests/unit/statistics/test_agreement.py` measures that it is missed more rarely than promised, by
    differences that are coarse, skewed and rare.
    """
    unseen = -math.expm1(math.log1p(-p) / graded.labels)
    shown = t_quantile(p, graded.labels - 1) * graded.sd / math.sqrt(graded.labels)
    return shown + unseen * (width + abs(graded.bias))


def rates(known: JudgeCalibration) -> Ends:
    """Sensitivity and specificity: the share of what people pass that the judge passes, and of what they fail."""
    return known.both_pass / known.passed, known.both_fail / known.failed


def slope(known: JudgeCalibration) -> Ends:
    """By how much a true difference of shares shrinks in the judge's verdicts, se + sp − 1, with its standard error.

    The error is of rates with one agreement and one disagreement added to each, so that it is never 0.
    """
    se, sp = rates(known)
    (a, n), (b, m) = _padded(known)
    return se + sp - 1, math.sqrt(a * (1 - a) / n + b * (1 - b) / m)


def _padded(known: JudgeCalibration) -> tuple[Ends, Ends]:
    """Both rates with one label added on either side, each with the number of labels that it then rests on."""
    n, m = known.passed + 2, known.failed + 2
    return ((known.both_pass + 1) / n, n), ((known.both_fail + 1) / m, m)


def corrected_share(share: float, known: JudgeCalibration) -> float:
    """The share that people would find, by Rogan and Gladen; not cut to 0–1. ``known`` is usable."""
    _, sp = rates(known)
    return (share + sp - 1) / slope(known)[0]


def corrected_interval(share: float, n: int, known: JudgeCalibration) -> Ends:
    """Return the 95 % interval of a corrected share with the error of both samples (Lang & Reiczigel 2014), within 0–1.

    Args:
        share: of ``n`` verdicts that pass.
        known: usable.
    """
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    p, size = (share * n + z * z / 2) / (n + z * z), n + z * z
    (se, _), (sp, _) = _padded(known)
    spread = max(se + sp - 1, 1e-9)
    value = (p + sp - 1) / spread
    of_se, of_sp = se * (1 - se) / known.passed, sp * (1 - sp) / known.failed
    shift = 2 * z * z * (value * of_se - (1 - value) * of_sp)
    variance = p * (1 - p) / size + value * value * of_se + (1 - value) ** 2 * of_sp
    half = z * math.sqrt(variance) / spread
    low, high = _share(value + shift - half), _share(value + shift + half)
    found = _share(corrected_share(share, known))
    return min(low, found), max(high, found)


def _share(value: float) -> float:
    """Return the value, cut to 0–1."""
    return min(1.0, max(0.0, value))


def corrected_change(change: float, low: float, high: float, by: Ends, quantile: float) -> tuple[float, float, float]:
    """A difference of two judged shares and its interval, as people would find them: divided by the slope.

    The slope's own error is added to both halves of the interval (delta method); the judge's bias cancels.

    Args:
        change: with ``low`` and ``high``, of judged shares.
        by: the slope and its standard error.
        quantile: how many standard errors a half of the interval spans.
    """
    steep, error = by
    of_slope = quantile * change * error / (steep * steep)
    value = change / steep
    return (
        value,
        value - math.hypot((change - low) / steep, of_slope),
        value + math.hypot((high - change) / steep, of_slope),
    )
