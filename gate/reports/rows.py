"""A criterion in words and figures, for all reports. Escapes nothing."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.estimates import natural, natural_margin
from gate.decision.outcomes import PASS_RATE
from gate.model import CriterionResult, Estimate, Scale, SuiteResult, Verdict
from gate.model.evidence import MetricChange
from gate.reports.cases import passes_less
from gate.reports.formatting import (
    NOT_MEASURED,
    change_interval,
    count,
    end_and_margin,
    figure,
    finer_for,
    interval,
    listing,
    margin,
    of_means,
    sample,
    threshold,
    value_of,
)
from gate.reports.labels import TONES, VERDICTS
from gate.reports.reasons import excludes_gain, is_excused, only_warns, reason, why_apart, with_failures

HOLDS = (Verdict.PASS, Verdict.NOT_APPLIED)


class Figure(Struct, frozen=True):
    """A figure with its interval and its basis."""

    value: str
    rests_on: str
    note: str = ""
    """The change of the means, if the change alone would mislead."""

    @property
    def text(self) -> str:
        """The figure without its basis."""
        return "; ".join(filter(None, (self.value, self.note)))

    @property
    def line(self) -> str:
        """The figure with its basis and its note."""
        said = f"{self.value} {self.rests_on}".rstrip()
        return "; ".join(filter(None, (said, self.note)))


class RowView:
    """The words and figures of a criterion, for all reports."""

    def __init__(self, found: CriterionResult, suite: SuiteResult) -> None:
        self.found = found
        self.suite = suite
        self.criterion = found.criterion

    @property
    def name(self) -> str:
        """The criterion's name, chosen by the user."""
        return self.criterion.name

    # --- the verdict ------------------------------------------------------------------------------

    @property
    def verdict(self) -> Verdict:
        """The verdict to show: a criterion that was never measured does not pass, even if a record says so."""
        if self.found.verdict is Verdict.PASS and self.found.candidate is None:
            return Verdict.NOT_MEASURED
        return self.found.verdict

    @property
    def is_ticked(self) -> bool:
        """True if it passes and could have failed."""
        return self.verdict is Verdict.PASS and self.found.checked and not self.found.not_compared

    @property
    def standing(self) -> str:
        """The verdict in a word or two, or a note that the criterion was not compared or not judged."""
        if self.found.not_compared and self.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE):
            return "not compared"
        if self.verdict is Verdict.PASS and not self.found.checked:
            return "not judged"
        return VERDICTS[self.verdict]

    def standing_before(self, why: str) -> str:
        """Return a reason after the verdict in a word or two, which it may begin with."""
        if why.startswith(f"{self.standing}: "):
            return why
        return f"{self.standing}: {why}"

    @cached_property
    def warns(self) -> bool:
        """True if it got worse, but is configured not to block."""
        return only_warns(self.found)

    @property
    def needs_words(self) -> bool:
        """True if only a tick would mislead."""
        return self.warns or not self.is_ticked or is_excused(self.found)

    @property
    def tone(self) -> str:
        """The tone of its sign: neither a loss that does not block nor a criterion without a judgement gets a tick."""
        if self.verdict is not Verdict.PASS:
            return TONES[self.verdict]
        if not self.is_ticked:
            return "mute"
        if self.warns:
            return "warn"
        return "good"

    # --- the figures ------------------------------------------------------------------------------

    @cached_property
    def wanted(self) -> str:
        return threshold(self.criterion)

    @cached_property
    def _finer(self) -> int:
        """The further digits needed to distinguish candidate, baseline and threshold."""
        values = (self.criterion.threshold, value_of(self.found.candidate), value_of(self.found.baseline))
        return finer_for(values, lambda value, n: figure(value, self.criterion.scale, finer=n))

    @property
    def candidate(self) -> Figure:
        side = self.found.candidate
        return Figure(interval(side, self.criterion.scale, finer=self._finer), sample(side))

    @property
    def baseline(self) -> Figure:
        """The baseline's mean, or a note that it is not compared."""
        side = self.found.baseline
        if self.found.not_compared and side is None:
            return Figure("not compared", "")
        return Figure(interval(side, self.criterion.scale, finer=self._finer), sample(side))

    @property
    def change(self) -> Figure:
        """The change, and the change of the means if that differs."""
        rests_on = sample(self.found.change)
        judge = self.found.judge
        if self.found.change is not None and judge is not None and judge.slope != 1.0:
            rests_on += ", corrected"  # corrected for the errors of a calibrated judge
        return Figure(change_interval(self._change, self.criterion.scale), rests_on, of_means(self.found))

    @property
    def _change(self) -> Estimate | None:
        """The change with its interval; without it if single cases prove a loss and the interval includes a gain."""
        if self.found.change is None:
            return None
        for one in self.found.findings:
            if one.kind != "change" or one.verdict is not Verdict.REGRESSED:
                continue
            if not excludes_gain(one["change"], self.criterion):
                return replace(self.found.change, level=0.0)
        return self.found.change

    @property
    def _tested(self) -> MetricChange | None:
        """The engine's comparison of the criterion; None if it made none."""
        if self.suite.outcome is None:
            return None
        return self.suite.outcome.evidence.metrics.get(self.name)

    @property
    def allowed(self) -> float | None:
        """The loss that counts as unchanged: the comparison's margin, wider for few cases, or else the criterion's."""
        used = self._tested
        if used is None:
            return self.criterion.margin
        return natural_margin(used.margin, self.criterion)

    @property
    def means(self) -> tuple[str, str]:
        """The means of baseline and candidate, without their intervals."""
        return self._mean(self.found.baseline), self._mean(self.found.candidate)

    def _mean(self, side: Estimate | None) -> str:
        if side is None:
            return "–"
        return figure(side.value, self.criterion.scale, finer=self._finer)

    @property
    def worst_change(self) -> tuple[str, str] | None:
        """The bad end of the change's interval, and the margin; None if the change is not bounded or not judged."""
        used = self._tested
        if used is None or used.low is None or not used.blocks_regression:
            return None
        end, allowed = natural(used.low, self.criterion), natural_margin(used.margin, self.criterion)
        return end_and_margin(end, allowed, self.criterion.scale, unit=False)

    @property
    def evidence(self) -> str:
        """The evidence beyond the intervals: p-value, detectable drop, margin, gaps, spread, quantiles."""
        found, scale = self.found, self.criterion.scale
        notes = []
        if found.p_value is not None and found.p_value < 0.001:
            notes.append("p < 0.001")
        elif found.p_value is not None:
            notes.append(f"p = {found.p_value:.3f}")
        if found.detectable:
            notes.append(f"a loss of about {margin(found.detectable, scale)} shows in four of five such runs")
        if self.allowed is not None:
            notes.append(f"margin {margin(self.allowed, scale)}")
        if found.not_measured:
            notes.append(f"{count(found.not_measured, 'trial')} not measured")
        if self.deviation:
            notes.append(self.deviation)
        return ", ".join([*notes, *self.quantiles])

    @property
    def deviation(self) -> str:
        """The spread of scores: ``standard deviation 0.21 over 120 trials, 0.18 over the means of 40 cases``."""
        found, scale = self.found.candidate, self.criterion.scale
        if found is None or found.sd is None:
            return ""
        if scale.is_in_percent:  # for zeros and ones it is no percentage
            scale = Scale.UNIT
        said = f"standard deviation {figure(found.sd, scale)} over {count(found.trials, 'trial')}"
        if found.sd_cases is None or found.trials == found.n:
            return said
        return f"{said}, {figure(found.sd_cases, scale)} over the means of {count(found.n, 'case')}"

    @property
    def quantiles(self) -> list[str]:
        """The values compared with the limits on quantiles: ``p95 2.71 s [2.4, 2.98], n = 40``."""
        scale, limits = self.criterion.scale, dict(self.criterion.quantiles)
        lines = []
        for q, estimate in self.found.quantiles:
            finer = finer_for((estimate.value, limits.get(q)), lambda value, n: figure(value, scale, finer=n))
            lines.append(f"p{100 * q:g} {interval(estimate, scale, finer=finer)}, {sample(estimate)}")
        return lines

    @property
    def judge(self) -> str:
        """The judge's agreement with people: ``judge agrees with people on 92 of 100 labels (κ 0.81); corrected …``."""
        known, scale = self.found.judge, self.criterion.scale
        if known is None or not known.labels:
            return ""
        said = f"judge agrees with people on {known.agreed:,} of {count(known.labels, 'label')}"
        if known.kappa is not None:
            said += f" (κ {known.kappa:.2f})"
        if known.candidate is None:
            return f"{said}; not corrected"
        said += f"; corrected {interval(known.candidate, scale)}"
        if known.baseline:
            said += f", baseline {interval(known.baseline, scale)}"
        return said

    @property
    def dimensions(self) -> list[tuple[str, str]]:
        """The parts of a score: ``0.82 [0.71, 0.90] n = 40, was 0.85 [0.8, 0.9] n = 40``. Names are the user's."""
        scale = Scale.SHARE if self.criterion.scale.is_in_percent else Scale.UNIT
        rows = []
        for name, (now, before) in self.found.dimensions.items():
            said = NOT_MEASURED
            if now:
                said = f"{interval(now, scale)} {sample(now)}"
            if before:
                said += f", was {interval(before, scale)} {sample(before)}"
            rows.append((name, said))
        return rows

    # --- the reason -------------------------------------------------------------------------------

    @property
    def reason(self) -> str:
        return reason(self.found)

    @property
    def full_reason(self) -> str:
        """The reason, and the mean that counts the agent's failures if the reason does not state it."""
        mean = with_failures(self.found)
        if mean in self.reason:
            return self.reason
        return "; ".join(filter(None, (self.reason, mean)))

    @property
    def words(self) -> str:
        """The words on what the figures do not show."""
        if self.needs_words:
            return self.full_reason
        return with_failures(self.found)

    @property
    def not_compared(self) -> str:
        if self.found.not_compared is None:
            return ""
        return why_apart(self.found.not_compared)

    @cached_property
    def same_cause(self) -> str:
        """The cause that a worse criterion shares with its parts or the pass rate; empty if there is none."""
        parts = self._failing_parts()
        if parts:
            return f"moved with {listing(parts)}"
        if self.found.verdict is not Verdict.REGRESSED or self.criterion.metric == PASS_RATE:
            return ""
        rate = self.suite.row(PASS_RATE)
        if rate is not None and rate.verdict is Verdict.REGRESSED and self._fell_with_passes():
            return "in the same cases"
        return ""

    def _failing_parts(self) -> list[str]:
        """Return the failing parts of a composite criterion, which are the cause."""
        if self.found.verdict in HOLDS:
            return []
        found = []
        for row in self.suite.criteria:
            if row.criterion.name in self.criterion.parts and row.verdict not in HOLDS:
                found.append(row.criterion.name)
        return found

    def _fell_with_passes(self) -> bool:
        """True if the score fell only in cases that pass less often, and in at least one."""
        sign = self.criterion.direction.sign
        fell = []
        for case in self.suite.cases:
            now, before = case.scores.get(self.name, (None, None))
            if now is not None and before is not None and sign * (before - now) > 1e-9:
                fell.append(case)
        return bool(fell) and all(map(passes_less, fell))
