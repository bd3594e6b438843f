"""A decision in words: the headline, how it came about, what changed in the suite, and what to be careful of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from gate.decision.cases import edited, removed
from gate.decision.comparison import NEW, PASS_RATE, Comparison, all_unchecked, passes
from gate.decision.engine.evidence_json import stage_name
from gate.decision.engine.state import CONCURRENT, CONFIRM
from gate.decision.findings import RULED_OUT, natural, plural, show, show_change
from gate.decision.unseen import fell_silent, silence
from gate.model import (
    SILENT,
    CaseResult,
    CaseStatus,
    Criterion,
    CriterionResult,
    Direction,
    EvidenceSummary,
    MetricChange,
    Outcome,
    Scale,
    Side,
    Trial,
    Verdict,
    kind_of,
)

FIXED_DESIGN = 5
"""Trials a case of the fixed design that runs are compared with."""
FEW_CASES = 10
BLIND_MARGIN = 0.5
"""From this margin of the pass rate on, which four cases or fewer have, only a case that breaks outright is seen."""
MEASURABLE = 0.05
"""Seconds that a first answer takes at least, for a faster second one to mean anything."""
FEW_BASELINE_TRIALS = 5
NAMES = 5


def headline(
    comparison: Comparison,
    outcome: Outcome | None,
    results: Sequence[CriterionResult],
    cases: Sequence[CaseResult],
    *,
    verdict: Verdict,
    problem: str,
) -> str:
    """One line: what happened."""
    if verdict is Verdict.ERROR:
        return f"could not measure: {problem}"
    at_fault = [r for r in results if r.verdict is verdict and r.criterion.blocking]
    if verdict is Verdict.PASS:
        text = _passed(comparison, outcome)
    elif verdict is Verdict.INCONCLUSIVE:
        text = _inconclusive(at_fault, cases)
    else:
        text = _failed(at_fault, cases)
    return text if comparison.stored else f"{text}; no baseline yet"


def _passed(comparison: Comparison, outcome: Outcome | None) -> str:
    if outcome is None:
        total = len(comparison.judged)
        checked = total - len(_unchecked_ids(comparison))
        count = plural(total, "case") if checked == total else f"{checked} of {plural(total, 'case')}"
        return f"every threshold holds over {count}{_uncompared(comparison)}"
    rate = outcome.evidence.metrics.get(PASS_RATE)
    said = f"no worse than the baseline over {plural(len(comparison.paired), 'case')}"
    return said + _ruled_out(rate) + _uncompared(comparison)


def _ruled_out(rate: MetricChange | None) -> str:
    """Which drop of the pass rate the interval excludes; none where the cases are few, or the drop is most of it."""
    if rate is None or rate.low is None:
        return ""
    if rate.cases < FEW_CASES:
        return "; so few cases rule out no particular drop"
    bound = -100 * rate.low
    if bound < 0.05:
        return f": a drop is {RULED_OUT} over these cases"
    return f": a drop of more than {bound:.1f} points is {RULED_OUT}" if bound < 100 * BLIND_MARGIN else ""


def _uncompared(comparison: Comparison) -> str:
    """What of the suite the baseline could say nothing about; empty where there is no baseline, or it said all."""
    if not comparison.stored:
        return ""
    new, changed = _new(comparison), edited(comparison)
    parts = [f"{len(new)} new"] if new else []
    parts += [f"{len(changed)} edited"] if changed else []
    said = [f"{' and '.join(parts)}, held to thresholds only"] if parts else []
    gone = removed(comparison)
    said += [f"{len(gone)} removed"] if gone else []
    return f"; {', '.join(said)}" if said else ""


def _new(comparison: Comparison) -> list[str]:
    """The judged cases that the baseline does not have, under any name."""
    return [case.id for case in comparison.judged if case.id not in comparison.baseline]


def _inconclusive(at_fault: Sequence[CriterionResult], cases: Sequence[CaseResult]) -> str:
    if not at_fault:
        return "nothing to hold it to: no threshold"
    suspects = [c.id for c in cases if c.status is CaseStatus.SUSPECT]
    extra = f"; suspected: {listing(suspects)}" if suspects else ""
    return f"not enough evidence on {listing([r.criterion.name for r in at_fault])}{extra}"


def _failed(at_fault: Sequence[CriterionResult], cases: Sequence[CaseResult]) -> str:
    first = at_fault[0]
    if first.verdict is Verdict.NOT_MEASURED:  # the pass rate has no cause of its own
        first = next((r for r in at_fault if r.criterion.name != PASS_RATE), first)
    if first.verdict is Verdict.REGRESSED:
        broken = [c.id for c in cases if c.status is CaseStatus.BROKEN]
        if broken:
            return f"{plural(len(broken), 'case')} broke: {listing(broken)}"
        return f"{listing([r.criterion.name for r in at_fault])} got worse over the suite: {first.reason}"
    if first.verdict is not Verdict.NOT_MEASURED:
        return f"{first.criterion.name} fails: {first.reason}"
    lost = "could not be measured"
    return f"{first.criterion.name} {first.reason if first.reason.startswith(lost) else f'{lost}: {first.reason}'}"


# --- how it came about ----------------------------------------------------------------------------


def story(comparison: Comparison, outcome: Outcome | None, stopped: str) -> tuple[str, ...]:
    """What was run and what it showed, in the order in which it happened."""
    lines = ["; ".join([_screened(comparison), *_reran(comparison), *_named(outcome), _cost(comparison)])]
    if outcome is not None:
        lines += _how_decided(comparison, outcome)
    if stopped:
        lines.append(f"stopped: {stopped}")
    return tuple(lines)


def _screened(comparison: Comparison) -> str:
    return f"{plural(passes(comparison), 'trial')} of {plural(len(comparison.judged), 'case')}"


def _reran(comparison: Comparison) -> list[str]:
    counts: dict[str, int] = {}
    for trial in comparison.trials:
        if trial.tag == CONFIRM and trial.side is Side.CANDIDATE:
            counts[trial.case_id] = counts.get(trial.case_id, 0) + 1
    if not counts:
        return []
    low, high = min(counts.values()), max(counts.values())
    times = plural(low, "time") if low == high else f"{low}–{high} times"
    return [f"{len(counts)} suspicious, rerun {times}"]


def _named(outcome: Outcome | None) -> list[str]:
    if outcome is None or not outcome.cases:
        return []
    return [f"{len(outcome.cases)} confirmed broken ({listing(outcome.cases)})"]


def _cost(comparison: Comparison) -> str:
    runs = len(comparison.trials)
    fixed = FIXED_DESIGN * len(comparison.judged)
    fresh = sum(t.side is Side.BASELINE for t in comparison.trials)
    text = plural(runs, "agent run")
    if fresh:
        text += f" ({fresh} of the baseline's agent)"
    return f"{text} instead of {fixed}" if 0 < runs < fixed else text


def _how_decided(comparison: Comparison, outcome: Outcome) -> list[str]:
    evidence, stage = outcome.evidence, stage_name(outcome.stage)
    look = evidence.last_look
    if look is None:
        return [f"the baseline could not be compared: {stage}"]
    if outcome.verdict == "REGRESSION":
        return [f"regression proven ({stage}): {_proof(evidence)}"]
    lines = [f"{stage}: suite test p = {look.p:.2g}, {_detected(evidence)}"]
    if any(t.tag == CONCURRENT for t in comparison.trials) or outcome.stage.concurrent:
        lines.append("the drop against the stored baseline did not show with both commits run now: save a new baseline")
    if outcome.verdict == "INCONCLUSIVE":
        lines += _what_would_decide(comparison, evidence)
    return lines


def _proof(evidence: EvidenceSummary) -> str:
    parts = [
        f"suite test at pass {look.passes}, p = {look.p:.2g} (limit {look.threshold:.2g})"
        for look in evidence.looks
        if look.blocks
    ]
    highest = evidence.highest_e_value
    if highest is None or highest >= evidence.e_threshold:
        value = "over 1e300" if highest is None else f"{highest:.3g}"
        parts.append(f"case evidence e = {value} (limit {evidence.e_threshold:.0f})")
    return "; ".join(parts)


def _detected(evidence: EvidenceSummary) -> str:
    rate = evidence.metrics.get(PASS_RATE)
    if rate is None or rate.detectable is None:
        return "the detectable drop is not known from so few trials"
    drop = f"{100 * rate.detectable:.1f}"
    return "no spread was seen over the trials" if drop == "0.0" else f"a drop of {drop} points was detectable"


def _what_would_decide(comparison: Comparison, evidence: EvidenceSummary) -> list[str]:
    """Which drops are ruled out, and what would settle the rest."""
    lines = []
    by_name = {c.name: c for c in comparison.metrics}
    for name, found in evidence.metrics.items():
        if found.blocks_regression and _bounds(found, by_name[name]):
            word = "worse" if by_name[name].direction is Direction.LOWER else "lower"
            bound = show_change(min(found.low or 0.0, 0.0), by_name[name])
            open_ = "" if found.holds else ", which its margin does not allow"
            lines.append(f"{name}: {word} than {bound} is {RULED_OUT}{open_}")
    loose = [
        (name, f, f.low)
        for name, f in evidence.metrics.items()
        if f.blocks_regression and not f.holds and f.low is not None
    ]
    for name, found, low in loose[:1]:
        half = found.change - low
        room = found.change + found.margin
        if room > 0:
            cases = max(found.cases + 1, round(found.cases * (half / room) ** 2))
            wide = _margin(max(-low, found.margin), by_name[name])
            lines.append(f"to decide {name}: about {cases} cases, or more baseline trials, or a margin of {wide}")
        else:
            lines.append(f"to decide {name}: more trials on both sides; the estimate itself is beyond its margin")
    if not lines:
        lines.append("to decide: more cases, or more trials on both sides")
    if evidence.named:
        lines.append(
            f"suspected, but not proven at this error rate: {listing(evidence.named)}; more baseline trials would tell"
        )
    return lines


def _bounds(found: MetricChange, criterion: Criterion) -> bool:
    """Whether the interval excludes anything that can happen: one that reaches the end of the scale does not."""
    if found.low is None or found.cases < 2:
        return False
    return criterion.scale not in (Scale.BINARY, Scale.UNIT) or found.low > -1.0


def _margin(value: float, criterion: Criterion) -> str:
    if kind_of(criterion.scale) == "positive":
        return f"{abs(natural(-value, criterion)):.0%}"
    return f"{value:.2f}"


# --- what changed, and what to be careful of ------------------------------------------------------


def changes(comparison: Comparison) -> tuple[str, ...]:
    """New, changed and removed cases, and criteria that cannot be compared."""
    if not comparison.stored:
        return ()
    lines = []
    if new := _new(comparison):
        lines.append(f"new, held to thresholds only: {listing(new)}")
    if changed := edited(comparison):
        lines.append(f"edited, held to thresholds only: {listing(changed)}")
    if renamed := comparison.owed.renamed:
        shown = listing(f"{old} → {new}" for new, old in renamed.items())
        lines.append(f"renamed, and compared by their content: {shown}")
    for name, why in comparison.apart.items():
        lines.append(f"not compared: {name}: {why}")
    if gone_criteria := comparison.owed.removed:
        lines.append(f"not compared: {listing(c.name for c in gone_criteria)}: no longer measured")
    if fresh := sorted({name for (_, name), why in comparison.not_comparable.items() if why == NEW}):
        lines.append(f"new criterion, held to its threshold only: {listing(fresh)}")
    if gone := removed(comparison):
        lines.append(f"removed since the baseline: {listing(gone)}")
    return tuple(lines)


def warnings(comparison: Comparison, outcome: Outcome | None, results: Sequence[CriterionResult]) -> tuple[str, ...]:
    """What weakens the verdict without changing it."""
    return (
        *_excused(results),
        *_few(comparison, outcome),
        *_thin_baseline(comparison),
        *_quiet_rises(comparison, outcome),
        *_partly_measured(comparison),
        *_errors(comparison),
        *_repeats(comparison),
        *fell_silent(comparison.criteria, comparison.judged_trials, comparison.stored),
        *silence(comparison.criteria, comparison.judged_trials),
        *_unchecked(comparison),
    )


def _unchecked_ids(comparison: Comparison) -> list[str]:
    return [c.id for c in comparison.judged if all_unchecked(comparison.measured(c.id), comparison.criteria)]


def _unchecked(comparison: Comparison) -> list[str]:
    """Cases that ran without anything to fail by."""
    found = _unchecked_ids(comparison)
    if not found:
        return []
    one = len(found) == 1
    what = (
        "states nothing that a blocking criterion checks: it is" if one else "state nothing that is checked: they are"
    )
    return [f"{plural(len(found), 'case')} {what} unchecked, not passed ({listing(found)})"]


def _excused(results: Iterable[CriterionResult]) -> list[str]:
    """What passes only because the baseline was no better."""
    lines = []
    for found in results:
        criterion, would = found.criterion, "it does not block (`ratchet: false` would)"
        if found.verdict is not Verdict.PASS or not criterion.blocking:
            continue
        if "the baseline missed it too" in found.reason and found.candidate and found.baseline:
            side = "below" if criterion.direction is Direction.HIGHER else "above"
            now, before = show(found.candidate.value, criterion), show(found.baseline.value, criterion)
            least = show(criterion.threshold or 0.0, criterion)
            lines.append(f"{criterion.name}: {now} is {side} {least}, as the baseline was ({before}): {would}")
        lines += [
            f"{criterion.name}: {said}, as the baseline was above it too: {would}"
            for said in re.findall(r"(?:^|; )([^;]+); the baseline was above it too", found.reason)
        ]
    return lines


def _few(comparison: Comparison, outcome: Outcome | None) -> list[str]:
    n = len(comparison.paired)
    if not 0 < n < FEW_CASES:
        return []
    rate = outcome.evidence.metrics.get(PASS_RATE) if outcome is not None else None
    if rate is not None and rate.margin >= BLIND_MARGIN:
        return [f"{plural(n, 'paired case')}: so few only show a case that breaks outright"]
    return [f"{plural(n, 'paired case')}: only clear breaks can be found"]


def _thin_baseline(comparison: Comparison) -> list[str]:
    counts = [len(comparison.baseline[case_id]) for case_id in comparison.paired]
    if not counts or min(counts) >= FEW_BASELINE_TRIALS:
        return []
    thin = sum(count < FEW_BASELINE_TRIALS for count in counts)
    return [
        f"{plural(thin, 'case')} with fewer than {FEW_BASELINE_TRIALS} baseline trials (least: {min(counts)}): "
        "a single broken case may be missed"
    ]


def _quiet_rises(comparison: Comparison, outcome: Outcome | None) -> list[str]:
    """Metrics that do not block, and got worse beyond their margin and beyond noise."""
    lines = []
    by_name = {c.name: c for c in comparison.metrics}
    for name, found in (outcome.evidence.metrics if outcome is not None else {}).items():
        if not found.blocks_regression and found.high is not None and found.high < 0 and found.change < -found.margin:
            lines.append(
                f"{name} changed by {show_change(found.change, by_name[name])}: beyond its margin; it warns only"
            )
    return lines


def _partly_measured(comparison: Comparison) -> list[str]:
    lines = []
    for criterion in comparison.criteria:
        trials = comparison.answers
        scores = [s for t in trials if (s := t.scores.get(criterion.name)) is not None]
        lost = sum(s.value is None and s.error is not None for s in scores)
        if lost:
            lines.append(f"{criterion.name}: {lost} of {len(scores)} scores could not be measured")
    return lines


def _errors(comparison: Comparison) -> list[str]:
    lost, lines = sum(not t.measured for t in comparison.trials), []
    if lost:
        of = plural(len(comparison.trials), "trial")
        lines.append(f"{lost} of {of} ended in infrastructure errors and left no score")
    if again := sum(t.attempts - 1 for t in comparison.trials):
        lines.append(f"{plural(again, 'attempt')} repeated after an infrastructure error")
    return lines


def _repeats(comparison: Comparison) -> list[str]:
    """Repeats that never differ add no information: a cache, a fixed seed, or an agent without chance."""
    groups = [comparison.measured(case.id) for case in comparison.judged]
    groups = [group for group in groups if len(group) > 1 and any(map(_said, group))]
    if len(groups) < 3 or any(len({_said(t) for t in group}) > 1 for group in groups):
        return []
    later = [t.duration for group in groups for t in group[1:] if t.duration is not None]
    first = [group[0].duration for group in groups if group[0].duration is not None]
    fresh = sum(first) / len(first) if first else 0.0
    if fresh > MEASURABLE and later and sum(later) / len(later) < fresh / 5:
        return ["repeats answer word for word the same, and five times faster: a response cache answers, not the agent"]
    return ["repeats answer word for word the same: a fixed seed, a cache, or an agent without chance"]


def _said(trial: Trial) -> tuple[Any, ...]:
    return tuple(
        i.digest or (i.text, tuple((c.name, repr(c.args)) for c in i.tool_calls))
        for i in trial.invocations
        if i.digest not in ("", SILENT) or i.text
    )


def listing(names: Iterable[str]) -> str:
    """The first few names, and how many more."""
    names = list(names)
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(names[:NAMES]) + more
