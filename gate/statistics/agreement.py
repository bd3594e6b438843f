"""Compares a judge with people's labels: Cohen's kappa, sensitivity and specificity, and shares corrected by them.

With sensitivity se and specificity sp, a true share π is judged as q = π·se + (1 − π)(1 − sp), so that π = (q + sp − 1)
/ (se + sp − 1) (Rogan & Gladen 1978). This assumes that the judge errs on the labelled answers as often as on those it
judges. Labels enter as counts, and their own error enters every interval here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from statistics import NormalDist

from gate.model.calibration import GradedLabels, JudgeCalibration
from gate.statistics.intervals import share_upper_bound, t_quantile

DRAWS = 2000
"""Number of draws behind an interval of kappa; its ends are then accurate to about a hundredth."""
LEVEL = 0.95
"""Level of the intervals, two-sided."""
USABLE_LEVEL = 0.95
"""The judge corrects nothing until one-sided bounds of both rates at this level show it to be better than chance."""
LEAST_GRADED = 20
"""Minimum number of graded labels for a correction: with fewer, a kind of answer without any label can move the mean by
more than a sixth of the scale (`difference_error`), as much as the corrections themselves."""

Ends = tuple[float, float]


def kappa(table: Sequence[float]) -> float | None:
    """Return κ = (pₒ − pₑ) / (1 − pₑ) (Cohen 1960): agreement beyond chance, at most 1.

    Args:
        table: counts or shares of: both pass, both fail, only the judge passes, only people pass.

    Returns:
        None if judge and people each gave the same verdict throughout: agreement is then undefined.
    """
    total = sum(table)
    both_pass, both_fail, only_judge, only_people = (cell / total for cell in table)
    people, judge = both_pass + only_people, both_pass + only_judge
    by_chance = people * judge + (1 - people) * (1 - judge)
    return None if by_chance >= 1 - 1e-12 else (both_pass + both_fail - by_chance) / (1 - by_chance)


def table_draws(table: Sequence[int], seed: int) -> list[tuple[float, ...]]:
    """Return draws from the posterior of a table of counts under Jeffreys' prior, Dirichlet(½).

    Unlike the bootstrap's, intervals from these stay wide if few labels happen to agree.
    """
    rng = Random(seed)  # noqa: S311 -- an interval, not a secret
    return [_draw(table, rng) for _ in range(DRAWS)]


def _draw(table: Sequence[int], rng: Random) -> tuple[float, ...]:
    masses = [rng.gammavariate(count + 0.5, 1.0) for count in table]
    total = sum(masses)
    return tuple(mass / total for mass in masses)


def middle(value: float, draws: Sequence[float]) -> Ends:
    """Return the middle 95 % of the draws, extended to include the value itself."""
    ordered = sorted(draws)
    cut = round(0.025 * len(ordered))
    return min(ordered[cut], value), max(ordered[-1 - cut], value)


def share_lower_bound(successes: int, n: int, error: float) -> float:
    """Return the one-sided Clopper–Pearson lower bound of a share, with error at most ``error``; 0 for n = 0."""
    return 1 - share_upper_bound(n - successes, n, error)


def clopper_pearson(successes: int, n: int) -> Ends:
    """Return the exact 95 % interval of a share: each side misses with probability at most .025."""
    error = (1 - LEVEL) / 2
    return share_lower_bound(successes, n, error), share_upper_bound(successes, n, error)


def is_usable(known: JudgeCalibration) -> bool:
    """True if the labels show the judge to be better than chance, so that its rates can correct scores."""
    error = (1 - USABLE_LEVEL) / 2
    sensitivity = share_lower_bound(known.both_pass, known.passed, error)
    return sensitivity + share_lower_bound(known.both_fail, known.failed, error) > 1


def corrects(graded: GradedLabels) -> bool:
    """True if there are enough graded labels and they show that the judge follows people."""
    return graded.labels >= LEAST_GRADED and _is_associated(graded)


def _is_associated(graded: GradedLabels) -> bool:
    """True if the judge's scores are shown to rise with people's: the lower end of the correlation's interval is above
    0 (Fisher 1921, z = artanh r with the standard error 1 / √(n − 3)).

    A judge that grades at random, or in reverse, may also differ from people by 0.3 on average; that says nothing about
    people's opinion of the next answer.
    """
    if graded.correlation <= 0:
        return False
    z = NormalDist().inv_cdf((1 + USABLE_LEVEL) / 2)
    return math.atanh(min(graded.correlation, 1 - 1e-12)) * math.sqrt(graded.labels - 3) > z


def difference_error(graded: GradedLabels, p: float, width: float) -> float:
    """Return the maximum distance, one-sided at level ``p``, between the true mean difference of people's and the
    judge's scores and that of the labels: Student's interval plus an allowance for differences without a label.

    If a kind of answer occurs with probability q, none of n labels shows it with probability (1 − q)^n. So with
    confidence p, q is at most 1 − (1 − p)^(1/n), about 3 / n at 95 % (the rule of three, Hanley & Lippman-Hand 1983);
    such answers differ by at most the ``width`` of the scale. So labels with equal differences are still no certainty.
    The sum is not a theorem; `tests/unit/statistics/test_agreement.py` shows that it is missed less often than
    promised, for coarse, skewed and rare differences.
    """
    unseen = -math.expm1(math.log1p(-p) / graded.labels)
    shown = t_quantile(p, graded.labels - 1) * graded.sd / math.sqrt(graded.labels)
    return shown + unseen * (width + abs(graded.bias))


def rates(known: JudgeCalibration) -> Ends:
    """Return sensitivity and specificity: of the answers people pass the share the judge passes, and of those people
    fail the share it fails."""
    return known.both_pass / known.passed, known.both_fail / known.failed


def slope(known: JudgeCalibration) -> Ends:
    """Return the factor se + sp − 1 by which true differences of shares shrink in the judge's verdicts, and its
    standard error.

    The error is that of rates with one agreement and one disagreement added to each, so that it is never 0.
    """
    se, sp = rates(known)
    (a, n), (b, m) = _padded(known)
    return se + sp - 1, math.sqrt(a * (1 - a) / n + b * (1 - b) / m)


def _padded(known: JudgeCalibration) -> tuple[Ends, Ends]:
    """Return both rates with one label added on either side, each with the resulting number of labels."""
    n, m = known.passed + 2, known.failed + 2
    return ((known.both_pass + 1) / n, n), ((known.both_fail + 1) / m, m)


def corrected_share(share: float, known: JudgeCalibration) -> float:
    """Return the share that people would find, by Rogan and Gladen; not limited to 0–1. ``known`` must be usable."""
    _, sp = rates(known)
    return (share + sp - 1) / slope(known)[0]


def corrected_interval(share: float, n: int, known: JudgeCalibration) -> Ends:
    """Return the 95 % interval of a corrected share with the error of both samples (Lang & Reiczigel 2014), within 0–1.

    Args:
        share: passing share of ``n`` verdicts.
        known: a usable calibration.
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
    """Return the value, limited to 0–1."""
    return min(1.0, max(0.0, value))


def corrected_change(change: float, low: float, high: float, by: Ends, quantile: float) -> tuple[float, float, float]:
    """Return a difference of two judged shares with its interval, as people would find them: divided by the slope.

    The slope's own error is added to both halves of the interval (delta method); the judge's bias cancels out.

    Args:
        change: difference of judged shares; ``low`` and ``high`` are the ends of its interval.
        by: the slope and its standard error.
        quantile: number of standard errors in each half of the interval.
    """
    steep, error = by
    of_slope = quantile * change * error / (steep * steep)
    value = change / steep
    return (
        value,
        value - math.hypot((change - low) / steep, of_slope),
        value + math.hypot((high - change) / steep, of_slope),
    )
