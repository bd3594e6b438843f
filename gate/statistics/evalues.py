"""E-values: evidence that a case or a suite got worse, valid whenever it is looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from gate.statistics.intervals import log_beta, log_likelihood

# --- e-values -------------------------------------------------------------------------------------

Fractions = tuple[tuple[float, int, float], ...]
BROKEN_FRACTIONS: Fractions = ((0.4, 1, 0.0), (0.2, 2, 0.0), (0.2, 0, 0.05), (0.2, 0, 0.15))
"""The mixture over the share of broken cases: (weight, cases, share), for a broken share of cases / N + share."""
ONE_ALONE = 0.6
"""Weight of "exactly one case broke, any of them" if cases may share the same environment."""
MORE_THAN_ONE: Fractions = ((0.1, 2, 0.0), (0.15, 0, 0.05), (0.15, 0, 0.15))
"""The rest of that mixture."""


def e_of(log_e: float) -> float:
    """Return the e-value of this log evidence, at most e^700: a float holds little more."""
    return math.exp(min(log_e, 700.0))


@cache
def case_log_e(passed_before: int, before: int, passed_now: int, now: int) -> float:
    """Return the log evidence that a case passes less often than before, by universal inference.

    Numerator: beta-binomial marginals, baseline Beta(5, ½), candidate 0.8·Beta(0.15, 5) + 0.2·Beta(2, 2). Denominator:
    the maximum likelihood under "no worse" (p_now ≥ p_before). Under "no worse" the ratio is at most a non-negative
    martingale that starts at 1, for any order of the trials of both sides (Wasserman, Ramdas & Balakrishnan 2020).

    Args:
        passed_before: passed trials at the baseline, of ``before``.
        passed_now: passed trials of the candidate, of ``now``.

    Returns:
        The natural logarithm of the e-value; above 0 is evidence for "worse".
    """
    likely = log_marginal_of(passed_before, before, passed_now, now)
    if passed_now * before >= passed_before * now:
        likely -= log_likelihood(passed_before, before - passed_before)
        return likely - log_likelihood(passed_now, now - passed_now)
    passed = passed_before + passed_now
    return likely - log_likelihood(passed, before + now - passed)


def log_marginal_of(passed_before: int, before: int, passed_now: int, now: int) -> float:
    """Return the log probability of the outcomes of a case that broke: the numerator of its e-value."""
    return _log_broke(passed_before, before, passed_now, now, gone=0.8, half=0.2)


def log_break_ratio(passed_before: int, before: int, passed_now: int, now: int) -> float:
    """Return the log likelihood ratio of the outcomes: the case broke against it is unchanged, with the rates' priors.

    A broken case has a rate near zero or around one half, with weights 0.3 and 0.7. The ratio orders outcomes in exact
    tests and is no evidence by itself.
    """
    broke = _log_broke(passed_before, before, passed_now, now, gone=0.3, half=0.7)
    return broke - _log_marginal(passed_before + passed_now, before + now, 1, 0.25)


def _log_broke(passed_before: int, before: int, passed_now: int, now: int, *, gone: float, half: float) -> float:
    """Return the log probability of the outcomes; ``gone`` and ``half``: weights of a rate near zero and near one
    half."""
    now_gone, now_half = _log_marginal(passed_now, now, 0.15, 5), _log_marginal(passed_now, now, 2, 2)
    mixed = math.log(gone * math.exp(now_gone) + half * math.exp(now_half))
    return _log_marginal(passed_before, before, 5, 0.5) + mixed


def _log_marginal(successes: int, n: int, a: float, b: float) -> float:
    """Return the log probability of one sequence of outcomes whose rate has a Beta(a, b) law."""
    return log_beta(a + successes, b + n - successes) - log_beta(a, b)


def suite_e(log_es: Sequence[float], *, recorded: bool = False) -> float:
    """Return the evidence that some cases of a suite broke: the mixture over the broken share π of Π(1 + π(eᵢ − 1)).

    It is an e-process, since the cases are independent: it may be looked at after every trial. Infinite on overflow.

    Args:
        recorded: True if the baseline was recorded, which is known before anything runs. The mixture then includes the
        mean of the e-values, which is an e-process under any dependence: one case broke, and passes of the others are
        no evidence against that.
    """
    n = len(log_es)
    if not n:
        return 1.0
    es = [math.exp(min(value, 500.0)) for value in log_es]
    total, fractions = 0.0, BROKEN_FRACTIONS
    if recorded:
        total, fractions = ONE_ALONE * sum(es) / n, MORE_THAN_ONE
    for weight, cases, share in fractions:
        pi = cases / n + share
        if pi < 1:
            log_product = sum([math.log1p(pi * (e - 1)) for e in es])
        else:
            log_product = sum(map(math.log, es))
        total += weight * math.exp(min(log_product, 600.0))
    return total


FALSE_DISCOVERY = 0.10


def e_bh(log_es: Sequence[float]) -> list[int]:
    """Return the indices named by Benjamini–Hochberg on e-values: at most a share `FALSE_DISCOVERY` of them is wrong,
    under any dependence.

    Source: Wang & Ramdas 2022.
    """
    order = sorted(range(len(log_es)), key=lambda i: -log_es[i])
    named = 0
    for k, i in enumerate(order, start=1):
        if log_es[i] >= math.log(len(log_es) / (k * FALSE_DISCOVERY)):
            named = k
    return sorted(order[:named])
