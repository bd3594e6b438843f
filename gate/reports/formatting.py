"""Figures for a reviewer: with unit, interval and n. Knows scales, but no report format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import combinations

from gate.model import Criterion, CriterionResult, Direction, Estimate, GroupResult, Scale

MINUS = "−"
NOT_MEASURED = "not measured"
TYPICAL = "a typical case"
"""The label of a relative change: the geometric mean of the cases' ratios, not the ratio of the two means."""
APART = 0.1
"""The minimum distance between the logarithms of two relative changes that are both shown: about 10 %."""
OPPOSED = 0.02
"""The minimum distance if one change is a rise and the other a fall."""
FINEST = 9
"""Maximum number of further digits of a figure; values equal to this many digits differ only by rounding."""


@lru_cache(maxsize=1024)
def figure(value: float | None, scale: Scale, *, signed: bool = False, finer: int = 0) -> str:
    """Return a value in its unit, to about three digits: ``0.817``, ``81.7 %``, ``$0.0123``, ``320 ms``.

    ``finer``: further digits, from `finer_for`. Cached, because most values of a suite are alike.
    """
    if value is None or not math.isfinite(1000 * value):
        return NOT_MEASURED
    size = abs(value)
    match scale:
        case Scale.BINARY | Scale.SHARE:
            text = f"{_within(100 * size, 1 + finer, 100.0)} %"
        case Scale.UNIT:
            text = _within(size, 3 + finer, 1.0, least=2)
        case Scale.LIKERT:
            text = _trimmed(size, 2 + finer, least=2)
        case Scale.PERCENT:
            text = _trimmed(size, 1 + finer)
        case Scale.SECONDS:
            text = seconds(size, finer=finer)
        case Scale.USD:
            text = dollars(size, finer=finer)
        case Scale.COUNT:
            places = 2 if size < 100 else 0
            text = _trimmed(size, places + finer, group=",")
    return _sign(value, text, signed) + text


def finer_for(values: Iterable[float | None], show: Callable[[float, int], str]) -> int:
    """Return the number of further digits needed to distinguish differing values; 0 if no number of digits would.

    If two values are shown because they differ, the reader must see the difference.
    """
    known = [one for one in values if one is not None and math.isfinite(1000 * one)]
    finer = 0
    for one, other in combinations(known, 2):
        if show(one, FINEST) == show(other, FINEST):
            continue  # differ only by rounding
        while show(one, finer) == show(other, finer):
            finer += 1
    return finer


def figures(values: Sequence[float | None], scale: Scale) -> list[str]:
    """Return values that are shown together, with digits that show their difference: ``0.7996`` and ``0.8004``."""
    finer = finer_for(values, lambda value, n: figure(value, scale, finer=n))
    return [figure(value, scale, finer=finer) for value in values]


def _trimmed(value: float, places: int, *, least: int = 0, group: str = "") -> str:
    whole, _, part = f"{value:{group}.{places}f}".partition(".")
    part = part.rstrip("0").ljust(least, "0")
    return f"{whole}.{part}".rstrip(".")


def _within(value: float, places: int, most: float, *, least: int = 0) -> str:
    """Return a share with up to six places, as needed to keep it from none and all: 2,999 of 3,000 is not all."""
    text = _trimmed(value, places, least=least)
    while places < 6 and float(text) in (0.0, most) and float(text) != value:
        places += 1
        text = _trimmed(value, places, least=least)
    return text


def _sign(value: float, text: str, signed: bool) -> str:
    is_zero = set(text).isdisjoint("123456789")
    if value < 0 and not is_zero:
        return MINUS
    if not signed:
        return ""
    return "±" if is_zero else "+"


def seconds(value: float, *, finer: int = 0) -> str:
    """Return a duration: ``40 µs``, ``320 ms``, ``1.84 s``, ``2 min 5 s``."""
    if not math.isfinite(1000 * value):
        return NOT_MEASURED
    if value >= 120:
        minutes, rest = divmod(round(value, finer), 60)
        if not rest:
            return f"{minutes:.0f} min"
        return f"{minutes:.0f} min {_trimmed(rest, finer)} s"
    size, unit, places = value, "s", 1
    if 0 < value < 0.0001:  # a very fast answer must not look like zero
        size, unit, places = 1e6 * value, "µs", 0
    elif value < 0.9995:
        size, unit, places = 1000 * value, "ms", 0
    if size < 10:
        places += 1
    return f"{_trimmed(size, places + finer)} {unit}"


def dollars(value: float, *, finer: int = 0) -> str:
    """Return an amount of money: ``$1.20``, or, below ten cents, three digits."""
    if not math.isfinite(1000 * value):
        return NOT_MEASURED
    if value >= 0.1 or value == 0:
        return f"${_trimmed(value, 2 + finer, least=2, group=',')}"
    places = min(12, max(2, 2 - math.floor(math.log10(value))))
    return f"${_trimmed(value, places + finer, least=2)}"


def percentage(value: float, *, signed: bool = False, finer: int = 0) -> str:
    """Return a relative change or a share: ``+12.3 %``; 0 % only for none, and 100 % only for all."""
    if not math.isfinite(1000 * value):
        return NOT_MEASURED
    text = f"{_within(100 * abs(value), 1 + finer, 100.0)} %"
    return _sign(value, text, signed) + text


def percents(share: float) -> str:
    """Return a share in whole percent, without the sign; decimals only if it would look like none or all."""
    return _within(100 * share, 0, 100.0)


def by_chance(p: float) -> str:
    """Return a p-value as the share of unchanged agents that look as bad: ``0.3 %``, ``less than 0.1 %``."""
    return "less than 0.1 %" if p < 0.001 else percentage(p)


def chance_and_limit(p: float, limit: float) -> tuple[str, str]:
    """Return a p-value like `by_chance`, and its limit, with digits that show their difference."""
    if p >= 0.001:
        finer = finer_for((p, limit), lambda value, n: percentage(value, finer=n))
        return percentage(p, finer=finer), percentage(limit, finer=finer)
    finer = 0
    if limit < 0.001:
        finer = 2
    return by_chance(p), percentage(limit, finer=finer)


def agree(number: int, one: str, many: str) -> str:
    """Return the form of a word that agrees with a number: the first for one, the second for others."""
    if number == 1:
        return one
    return many


def count(number: int, noun: str, plural: str = "") -> str:
    """Return text such as ``1 case`` or ``1,204 cases``."""
    return f"{number:,} {agree(number, noun, plural or noun + 's')}"


def change(value: float, scale: Scale, *, unit: bool = True, finer: int = 0) -> str:
    """Return a change: points for rates, a typical case's share for money, time and counts.

    ``unit=False``: for the end of an interval, whose unit is stated before.
    """
    if not scale.is_relative and not scale.is_in_percent:
        return figure(value, scale, signed=True, finer=finer)
    share = percentage(value, signed=True, finer=finer)
    if scale.is_relative:
        return f"{TYPICAL} {share}" if unit else share
    points = share.removesuffix(" %")
    return _points(points) if unit else points


def _points(number: str) -> str:
    """Return text such as ``4.2 points`` or ``−1 point``."""
    if number.lstrip(f"+±{MINUS}") == "1":
        return f"{number} point"
    return f"{number} points"


NAMED = 5


def listing(names: Iterable[str]) -> str:
    """Return the first few names, and the number of further ones."""
    names = list(names)
    said = ", ".join(names[:NAMED])
    if len(names) > NAMED:
        said += f" and {len(names) - NAMED} more"
    return said


def interval(estimate: Estimate | None, scale: Scale, *, finer: int = 0) -> str:
    """Return a mean with its interval: ``0.82 [0.71, 0.90]``; the unit once, if all three have the same.

    ``finer``: further digits of the mean, to distinguish it from a value next to it.
    """
    if estimate is None:
        return "–"

    def show(value: float) -> str:
        if value == estimate.value:
            return figure(value, scale, finer=finer)
        return figure(value, scale)

    return _bracketed(estimate, show)


def change_interval(estimate: Estimate | None, scale: Scale) -> str:
    """Return a change with its interval: points for rates, a typical case's share for money, time and counts."""
    if estimate is None:
        return "–"
    if scale.is_relative:
        return f"{TYPICAL} {_bracketed(estimate, lambda value: percentage(value, signed=True))}"
    if not scale.is_in_percent:
        return _bracketed(estimate, lambda value: figure(value, scale, signed=True))
    text = _bracketed(estimate, lambda value: percentage(value, signed=True))
    if "]" in text:
        return text.replace(" %", "", 1).replace("]", "] points", 1)
    if text.endswith(" %"):
        return _points(text.removesuffix(" %"))
    return text


def of_means(row: CriterionResult) -> str:
    """Return ``the mean over all cases −48.4 %`` if a typical case changed differently; else empty.

    Both means are over the cases of both sides, like the typical case.
    """
    found = row.change
    if not row.criterion.scale.is_relative or row.compared is None or found is None:
        return ""
    before, now = row.compared
    if not (before > 0 and now >= 0 and found.value > -1):
        return ""
    ratio = now / before
    if not (math.isfinite(ratio) and math.isfinite(found.value)):
        return ""
    apart = math.inf
    if ratio > 0:
        apart = abs(math.log(ratio) - math.log1p(found.value))
    opposed = (ratio - 1) * found.value < 0
    if not (apart > APART or (opposed and apart > OPPOSED)):
        return ""
    cases = "all cases"
    if not same_cases(row):
        cases = f"the {count(found.n, 'compared case')}"
    return f"the mean over {cases} {percentage(ratio - 1, signed=True)}"


def same_cases(row: CriterionResult | GroupResult) -> bool:
    """True if candidate and baseline are means over the same cases, the compared ones."""
    if row.candidate is None or row.baseline is None or row.candidate.n != row.baseline.n:
        return False
    return row.change is None or row.change.n == row.candidate.n


def with_means(text: str, row: CriterionResult) -> str:
    """Return a change in words, with the change of the means if the first alone would mislead."""
    return "; ".join(filter(None, (text, of_means(row))))


def difference_interval(estimate: Estimate | None, scale: Scale) -> str:
    """Return a difference in the scale's unit, with its interval: points for rates; money, time and counts too."""
    if estimate is None or not scale.is_relative:
        return change_interval(estimate, scale)
    return _bracketed(estimate, lambda value: figure(value, scale, signed=True))


def _bracketed(estimate: Estimate, show: Callable[[float], str]) -> str:
    """Return a mean with its interval; a unit that all three have is stated once."""
    mean = show(estimate.value)
    if estimate.level == 0.0:  # there is no interval
        return mean
    low, high = show(estimate.low), show(estimate.high)
    parts = [text.split(" ") for text in (mean, low, high)]
    if all(len(part) == 2 and part[1] == parts[0][1] for part in parts):
        low, high = parts[1][0], parts[2][0]
    elif low.startswith("$") and high.startswith("$"):
        low, high = low[1:], high[1:]
    return f"{mean} [{low}, {high}]"


def sample(estimate: Estimate | None) -> str:
    """Return the basis of a mean: ``n = 40``, with the trials if they differ from the cases."""
    if estimate is None:
        return ""
    said = f"n = {estimate.n:,}"
    if estimate.trials > estimate.n:
        said += f" ({count(estimate.trials, 'trial')})"
    return said


def threshold(criterion: Criterion) -> str:
    """Return the criterion's threshold: ``at least 0.9``, ``p95 at most 3 s``; or ``must not get worse``."""
    demands = []
    if criterion.threshold is not None:
        demands.append(demand(criterion, criterion.threshold))
    if criterion.limit is not None:
        demands.append(f"each {demand(criterion, criterion.limit)}")
    for q, value in criterion.quantiles:
        demands.append(f"p{100 * q:g} {demand(criterion, value)}")
    return ", ".join(demands) or "must not get worse"


def demand(criterion: Criterion, value: float) -> str:
    """Return ``at least 0.9`` or ``at most 3 s``. It is not rounded, because a rounded limit would be another one."""
    limit = figure(value, criterion.scale, finer=FINEST)
    if criterion.direction is Direction.LOWER:
        return f"at most {limit}"
    return f"at least {limit}"


def value_of(estimate: Estimate | None) -> float | None:
    """Return the mean; None if nothing was measured."""
    if estimate is None:
        return None
    return estimate.value


def margin(value: float, scale: Scale, *, finer: int = 0) -> str:
    """Return the largest loss that counts as unchanged: points for rates, a share for money, time and counts."""
    if scale.is_in_percent:
        return _points(percentage(value, finer=finer).removesuffix(" %"))
    if scale.is_relative:
        return percentage(value, finer=finer)
    return figure(value, scale, finer=finer)


def end_and_margin(end: float, allowed: float, scale: Scale, *, unit: bool = True) -> tuple[str, str]:
    """Return the end of a change's interval and its margin, with digits that show their difference.

    ``unit=False``: for the end, whose unit the margin states.
    """
    finer = finer_for((abs(end), allowed), lambda value, n: margin(value, scale, finer=n))
    return change(end, scale, unit=unit and not scale.is_relative, finer=finer), margin(allowed, scale, finer=finer)
