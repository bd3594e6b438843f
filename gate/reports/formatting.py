"""Figures as a reviewer reads them: with their unit, their interval and their n. Knows scales, no report form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from gate.decision.findings import natural_margin
from gate.model import Criterion, CriterionResult, Direction, Estimate, GroupResult, Scale, SuiteResult

MINUS = "−"
NOT_MEASURED = "not measured"
ALL_TOOLS = "time of the agent per tool call"
TYPICAL = "a typical case"
"""The name of a relative change: the geometric mean of the cases' ratios, no ratio of the two means beside it."""
APART = 0.1
"""The least distance of the logarithms of two relative changes of which one cannot stand for the other: about 10 %."""
OPPOSED = 0.02
"""The least distance if one is a rise and the other a fall."""
FINEST = 9
"""Digits beyond the usual ones that a figure has at most; values that are alike to so many are the same but for
rounding."""


def figure(value: float | None, scale: Scale, *, signed: bool = False, finer: int = 0) -> str:
    """One value in its unit, to about three digits: ``0.817``, ``81.7 %``, ``$0.0123``, ``320 ms``.

    ``finer``: digits beyond these, as `finer_for` finds them.
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
            text = _trimmed(size, (2 if size < 100 else 0) + finer, group=",")
    return _sign(value, text, signed) + text


def finer_for(values: Iterable[float | None], show: Callable[[float, int], str]) -> int:
    """Return the number of further digits that tell differing values apart; none if no number of them would.

    Of two values that are told because they differ a reader must see that they do.
    """
    known = [one for one in values if one is not None and math.isfinite(1000 * one)]
    pairs = [pair for pair in combinations(known, 2) if show(pair[0], FINEST) != show(pair[1], FINEST)]
    return next((n for n in range(FINEST) if all(show(a, n) != show(b, n) for a, b in pairs)), FINEST)


def figures(values: Sequence[float | None], scale: Scale) -> list[str]:
    """Values that stand beside one another, told apart where they differ: ``0.7996`` and ``0.8004``, not ``0.80``."""
    finer = finer_for(values, lambda value, n: figure(value, scale, finer=n))
    return [figure(value, scale, finer=finer) for value in values]


def _trimmed(value: float, places: int, *, least: int = 0, group: str = "") -> str:
    whole, _, part = f"{value:{group}.{places}f}".partition(".")
    part = part.rstrip("0").ljust(least, "0")
    return f"{whole}.{part}" if part else whole


def _within(value: float, places: int, most: float, *, least: int = 0) -> str:
    """A share, with as many places as tell it from none and from all, to six: 2,999 of 3,000 are not all."""
    text = _trimmed(value, places, least=least)
    while places < 6 and float(text) in (0.0, most) and float(text) != value:
        places += 1
        text = _trimmed(value, places, least=least)
    return text


def _sign(value: float, text: str, signed: bool) -> str:
    if not any(c in "123456789" for c in text):
        return "±" if signed else ""
    if value < 0:
        return MINUS
    return "+" if signed else ""


def seconds(value: float, *, finer: int = 0) -> str:
    """A duration: ``40 µs``, ``320 ms``, ``1.84 s``, ``2 min 5 s``."""
    if not math.isfinite(1000 * value):
        return NOT_MEASURED
    if 0 < value < 0.0001:  # what answers so soon is still no zero
        return f"{_trimmed(1e6 * value, (0 if value >= 0.00001 else 1) + finer)} µs"
    if value < 0.9995:
        return f"{_trimmed(1000 * value, (0 if value >= 0.01 else 1) + finer)} ms"
    if value < 120:
        return f"{_trimmed(value, (2 if value < 10 else 1) + finer)} s"
    minutes, rest = divmod(round(value, finer), 60)
    return f"{minutes:.0f} min {_trimmed(rest, finer)} s" if rest else f"{minutes:.0f} min"


def dollars(value: float, *, finer: int = 0) -> str:
    """An amount of money: ``$1.20``, or three digits of less than a cent's worth."""
    if not math.isfinite(1000 * value):
        return NOT_MEASURED
    if value >= 0.1 or value == 0:
        return f"${_trimmed(value, 2 + finer, least=2, group=',')}"
    places = min(12, max(2, 2 - math.floor(math.log10(value))))
    return f"${_trimmed(value, places + finer, least=2)}"


def percentage(value: float, *, signed: bool = False, finer: int = 0) -> str:
    """A relative change, or a share: ``+12.3 %``; 0 % of nothing alone, and 100 % of all."""
    if not math.isfinite(1000 * value):
        return NOT_MEASURED
    text = f"{_within(100 * abs(value), 1 + finer, 100.0)} %"
    return _sign(value, text, signed) + text


def percents(share: float) -> str:
    """A share in whole percents, without their sign: with digits only where it would look like none or all."""
    return _within(100 * share, 0, 100.0)


def by_chance(p: float) -> str:
    """A p-value as the share of unchanged agents that look as bad: ``0.3 %``, ``less than 0.1 %``."""
    return "less than 0.1 %" if p < 0.001 else percentage(p)


def chance_and_limit(p: float, limit: float) -> tuple[str, str]:
    """A p-value as `by_chance` tells it, and what it is held to, told apart."""
    if p < 0.001:
        return by_chance(p), percentage(limit, finer=0 if limit >= 0.001 else 2)
    finer = finer_for((p, limit), lambda value, n: percentage(value, finer=n))
    return percentage(p, finer=finer), percentage(limit, finer=finer)


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 case``, ``1,204 cases``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def change(value: float, scale: Scale, *, unit: bool = True, finer: int = 0) -> str:
    """A change: points for rates, a typical case's share for money, time and counts.

    ``unit=False``: an end of an interval, of which the value before it says whose it is.
    """
    if scale.is_relative:
        share = percentage(value, signed=True, finer=finer)
        return f"{TYPICAL} {share}" if unit else share
    if not scale.is_in_percent:
        return figure(value, scale, signed=True, finer=finer)
    points = percentage(value, signed=True, finer=finer).removesuffix(" %")
    return _points(points) if unit else points


def _points(number: str) -> str:
    """``4.2 points``, ``−1 point``."""
    return f"{number} {'point' if number.lstrip(f'+±{MINUS}') == '1' else 'points'}"


NAMED = 5


def listing(names: Iterable[str]) -> str:
    """The first few names, and how many more."""
    names = list(names)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def interval(estimate: Estimate | None, scale: Scale, *, finer: int = 0) -> str:
    """A mean with its interval: ``0.82 [0.71, 0.90]``; units once, where they are the same for all three.

    ``finer``: further digits of the mean, where it stands beside a value that it is to be told apart from.
    """
    if estimate is None:
        return "–"
    return _bracketed(estimate, lambda value: figure(value, scale, finer=finer if value == estimate.value else 0))


def finer_sides(row: CriterionResult) -> int:
    """The digits that tell candidate, baseline and threshold of a criterion apart."""
    sides = [side.value for side in (row.candidate, row.baseline) if side is not None]
    return finer_for([*sides, row.criterion.threshold], lambda value, n: figure(value, row.criterion.scale, finer=n))


def change_interval(estimate: Estimate | None, scale: Scale) -> str:
    """A change with its interval: points for rates, a typical case's share for money, time and counts, otherwise the
    scale's unit."""
    if estimate is None:
        return "–"
    if scale.is_relative:
        return f"{TYPICAL} {_bracketed(estimate, lambda value: percentage(value, signed=True))}"
    if scale.is_in_percent:
        text = _bracketed(estimate, lambda value: percentage(value, signed=True))
        if "]" in text:
            return text.replace(" %", "", 1).replace("]", "] points", 1)
        return _points(text.removesuffix(" %")) if text.endswith(" %") else text
    return _bracketed(estimate, lambda value: figure(value, scale, signed=True))


def of_means(row: CriterionResult) -> str:
    """``the mean over all cases −48.4 %``, where a typical case changed otherwise; empty where that says enough.

    Both means are over the cases that both sides have, as the typical case is one of these.
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
    apart = math.inf if ratio == 0 else abs(math.log(ratio) - math.log1p(found.value))
    opposed = (ratio - 1) * found.value < 0
    said = apart > APART or (opposed and apart > OPPOSED)
    cases = "all cases" if same_cases(row) else f"the {count(found.n, 'compared case')}"
    return f"the mean over {cases} {percentage(ratio - 1, signed=True)}" if said else ""


def same_cases(row: CriterionResult | GroupResult) -> bool:
    """True if candidate and baseline are means over the same cases, those that are compared."""
    sides = [side.n for side in (row.candidate, row.baseline, row.change) if side is not None]
    return None not in (row.candidate, row.baseline) and len(set(sides)) == 1


def with_means(text: str, row: CriterionResult) -> str:
    """A change in words, and what became of the means, where the change alone would mislead beside them."""
    return "; ".join(filter(None, (text, of_means(row))))


def difference_interval(estimate: Estimate | None, scale: Scale) -> str:
    """A difference in the scale's own unit, with its interval: points for rates; money, time and counts too."""
    if estimate is None or not scale.is_relative:
        return change_interval(estimate, scale)
    return _bracketed(estimate, lambda value: figure(value, scale, signed=True))


def _bracketed(estimate: Estimate, show: Callable[[float], str]) -> str:
    if estimate.level == 0.0:  # nothing to make an interval of
        return show(estimate.value)
    mean, low, high = (show(v) for v in (estimate.value, estimate.low, estimate.high))
    for unit, factor in _FACTORS.items():  # a time is told in the unit of its mean, whatever its ends are
        ends = (estimate.low, estimate.high)
        if mean.endswith(unit) and " min" not in mean and all(math.isfinite(1000 * end) for end in ends):
            signed = show(1.0).startswith("+")
            shown = (_sign(end, "1" if end else "0", signed) + _in_unit(abs(end), factor) for end in ends)
            return f"{mean} [{', '.join(shown)}]"
    if all(text.endswith(" %") for text in (mean, low, high)):
        return f"{mean} [{low.removesuffix(' %')}, {high.removesuffix(' %')}]"
    if low.startswith("$") and high.startswith("$"):
        return f"{mean} [{low[1:]}, {high[1:]}]"
    return f"{mean} [{low}, {high}]"


_FACTORS = {" µs": 1e6, " ms": 1e3, " s": 1.0}


def _in_unit(value: float, factor: float) -> str:
    """A time in a unit that is not its own; no time but none is zero in it."""
    size = value * factor
    if not size:
        return "0"
    most = 2 if factor == 1 else 1
    least = 1 - math.floor(math.log10(size)) if size < 1 else 0
    return _trimmed(size, min(12, max(least, most if size < 10 else most - 1)))


def sample(estimate: Estimate | None) -> str:
    """Return the basis of a mean: ``n = 40``, with the trials if they differ from the cases."""
    if estimate is None:
        return ""
    trials = f" ({count(estimate.trials, 'trial')})" if estimate.trials > estimate.n else ""
    return f"n = {estimate.n:,}{trials}"


def threshold(criterion: Criterion) -> str:
    """Return the demand of the criterion: ``at least 0.9``, ``p95 at most 3 s``; or that it holds what the baseline
    had.

    As it is written: rounded, a demand would be another one.
    """
    word, scale = ("at least" if criterion.direction is Direction.HIGHER else "at most"), criterion.scale
    demands = [f"{word} {figure(criterion.threshold, scale, finer=FINEST)}"] if criterion.threshold is not None else []
    if criterion.limit is not None:
        demands.append(f"each {word} {figure(criterion.limit, scale, finer=FINEST)}")
    demands += [f"p{100 * q:g} {word} {figure(value, scale, finer=FINEST)}" for q, value in criterion.quantiles]
    return ", ".join(demands) or "no worse than the baseline"


def allowed(result: CriterionResult, suite: SuiteResult) -> float | None:
    """The loss that was called unchanged, as a reader means it: the margin that the comparison used, which of few cases
    is wider than the configured one; else what the criterion says."""
    found = suite.outcome.evidence.metrics.get(result.criterion.name) if suite.outcome is not None else None
    return result.criterion.margin if found is None else natural_margin(found.margin, result.criterion)


def evidence(result: CriterionResult, suite: SuiteResult) -> str:
    """Return the evidence behind a verdict beyond the intervals: p-value, detectable drop, margin, gaps, quantiles."""
    scale, notes = result.criterion.scale, []
    if result.p_value is not None:
        notes.append("p < 0.001" if result.p_value < 0.001 else f"p = {result.p_value:.3f}")
    if result.detectable:
        notes.append(f"a loss of about {margin(result.detectable, scale)} shows in four of five such runs")
    if (held := allowed(result, suite)) is not None:
        notes.append(f"margin {margin(held, scale)}")
    if result.not_measured:
        notes.append(f"{count(result.not_measured, 'trial')} not measured")
    if said := deviation(result):
        notes.append(said)
    return ", ".join([*notes, *quantiles(result)])


def deviation(result: CriterionResult) -> str:
    """Return the spread of scores: ``standard deviation 0.21 over 120 trials, 0.18 over the means of 40 cases``."""
    found, scale = result.candidate, result.criterion.scale
    scale = Scale.UNIT if scale.is_in_percent else scale  # of zeros and ones it is no share of anything
    if found is None or found.sd is None:
        return ""
    said = f"standard deviation {figure(found.sd, scale)} over {count(found.trials, 'trial')}"
    if found.sd_cases is None or found.trials == found.n:
        return said
    return f"{said}, {figure(found.sd_cases, scale)} over the means of {count(found.n, 'case')}"


def change_sample(result: CriterionResult) -> str:
    """Return the basis of a change, and that it is corrected for a calibrated judge's errors."""
    corrected = result.change is not None and result.judge is not None and result.judge.slope != 1.0
    return sample(result.change) + (", corrected" if corrected else "")


def judge_line(result: CriterionResult) -> str:
    """A calibrated judge: ``judge agrees with people on 92 of 100 labels (κ 0.81); corrected 0.88 [0.8, 0.94]``."""
    known, scale = result.judge, result.criterion.scale
    if known is None or not known.labels:
        return ""
    beyond_chance = "" if known.kappa is None else f" (κ {known.kappa:.2f})"
    said = f"judge agrees with people on {known.agreed:,} of {count(known.labels, 'label')}{beyond_chance}"
    if known.candidate is None:
        return f"{said}; not corrected"
    before = f", baseline {interval(known.baseline, scale)}" if known.baseline else ""
    return f"{said}; corrected {interval(known.candidate, scale)}{before}"


def dimensions(result: CriterionResult) -> list[tuple[str, str]]:
    """Return the parts of a score: ``0.82 [0.71, 0.90] n = 40, was 0.85 [0.8, 0.9] n = 40``. Names are the user's."""
    rows, scale = [], Scale.SHARE if result.criterion.scale.is_in_percent else Scale.UNIT
    for name, sides in result.dimensions.items():
        now, before = (f"{interval(side, scale)} {sample(side)}" if side else "" for side in sides)
        rows.append((name, ", was ".join([now or NOT_MEASURED, *([before] if before else [])])))
    return rows


def tool_times(suite: SuiteResult) -> list[tuple[str, str]]:
    """Time per tool: name → ``0.84 s a call (12 timed calls, 10.1 s)``. Names are the agent's.

    The first row is the time of all trials over all their calls; the agent need not time its tools for it.
    """
    calls = sum(one.calls for one in suite.tools)
    known = [case.duration for case in suite.cases if case.duration is not None]
    whole, rows = sum(known), []
    if known and calls and math.isfinite(whole):
        rows.append((ALL_TOOLS, f"{seconds(whole / calls)} ({seconds(whole)} in all, {count(calls, 'call')})"))
    return rows + [
        (one.name, f"{seconds(one.seconds_per_call)} a call ({count(one.timed, 'timed call')}, {seconds(one.seconds)})")
        for one in suite.tools
        if one.seconds_per_call is not None
    ]


def quantiles(result: CriterionResult) -> list[str]:
    """Return the values that the limits on quantiles are held against: ``p95 2.71 s [2.4, 2.98], n = 40``."""
    scale, limits, found = result.criterion.scale, dict(result.criterion.quantiles), []
    for q, estimate in result.quantiles:
        finer = finer_for((estimate.value, limits.get(q)), lambda value, n: figure(value, scale, finer=n))
        found.append(f"p{100 * q:g} {interval(estimate, scale, finer=finer)}, {sample(estimate)}")
    return found


def margin(value: float, scale: Scale, *, finer: int = 0) -> str:
    """A loss still called unchanged: points for rates, a share for money, time and counts."""
    if scale.is_in_percent:
        return _points(percentage(value, finer=finer).removesuffix(" %"))
    return percentage(value, finer=finer) if scale.is_relative else figure(value, scale, finer=finer)


def end_and_margin(end: float, allowed: float, scale: Scale) -> tuple[str, str]:
    """The end of an interval of a change and the margin that it is held to, told apart: of a typical case, if any."""
    finer = finer_for((abs(end), allowed), lambda value, n: margin(value, scale, finer=n))
    return change(end, scale, unit=not scale.is_relative, finer=finer), margin(allowed, scale, finer=finer)
