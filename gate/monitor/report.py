"""A monitor's report: the figures of the window, as JSON, as text and for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.json import encode, format
from msgspec.structs import asdict

from gate.config.production import MonitorSection
from gate.decision.estimates import estimate
from gate.model import Estimate, Scale
from gate.monitor.model import Counts, Observation
from gate.monitor.observe import Scoring
from gate.monitor.window import PassShare, Status, WindowFinding
from gate.reports.formatting import change, count, figure, interval, sample
from gate.reports.table import table
from gate.security.escape import console

FORMAT = 1
"""1: the keys of `to_json`."""
SHOWN_FAILURES = 5
STALE_SECONDS = 86_400.0
"""Seconds since the newest trace from which reports say that nothing new came."""
SILENT_AFTER = 20
"""Answered traces to which a criterion never applied, from which the report says so."""


class Expected(Struct, frozen=True):
    """The figures that CI measured with the same criteria. Its conversations are different, so compare with care."""

    criteria: Mapping[str, Estimate] = {}
    """By criterion, the mean of the trials that CI stored; only criteria that are scored the same way."""
    pass_rate: Estimate | None = None
    note: str = ""


class CriterionAverage(Struct, frozen=True):
    """A criterion's scores in the window."""

    name: str
    window: Estimate | None
    """None if it was never measured here."""
    note: str = ""
    scale: Scale = Scale.UNIT


class MonitorReport(Struct, frozen=True):
    """All figures of a monitor at one moment."""

    finding: WindowFinding
    samples: tuple[Observation, ...]
    """All traces of the window, the oldest first."""
    scoring: Scoring
    counts: Counts
    at: float
    """Unix time."""
    sample_rate: float
    expected: Expected = Expected()
    more_notes: tuple[str, ...] = ()
    """Notes on the reading and on deliveries."""

    @property
    def status(self) -> Status:
        return self.finding.status

    @property
    def average_score(self) -> Estimate | None:
        """Mean over the traces of each trace's mean score on bounded scales, from 0 to 1 (best)."""
        return average([one.average for one in self.samples if one.average is not None])

    @property
    def criteria(self) -> list[CriterionAverage]:
        """The average of each criterion."""
        values: dict[str, list[float]] = {}
        applied: set[str] = set()
        answered = 0
        for one in self.samples:
            applied.update(one.applied)
            if one.applied or (one.passed is not False and not one.has_no_agent):
                answered += 1
            for name, value in one.scores.items():
                values.setdefault(name, []).append(value)
        found = []
        for c in self.scoring.criteria:
            note = ""
            if answered >= SILENT_AFTER and c.name not in applied:
                note = "it applied to none of these traces: it needs a reference"
            found.append(CriterionAverage(c.name, average(values.get(c.name, ()), c.scale), note, c.scale))
        return found

    @property
    def notes(self) -> list[str]:
        """Notes for people."""
        notes = []
        for one in reversed(self.samples):
            if one.passed is None and one.why:
                notes.append(f"the newest trace that could not be measured: {one.why}")
                break
        notes += self.more_notes
        if self.expected.note:
            notes.append(self.expected.note)
        return notes

    @property
    def failures(self) -> list[Observation]:
        """The newest traces that did not pass, the newest first."""
        failed = [one for one in self.samples if one.passed is False]
        return failed[: -SHOWN_FAILURES - 1 : -1]

    @property
    def newest(self) -> float | None:
        """Unix time at which the newest trace of the window ended; None if there is none."""
        return max((one.at for one in self.samples), default=None)

    @property
    def without_agent(self) -> int:
        """Traces of the window that ended in an error before any agent; they are not measured."""
        return sum(one.has_no_agent for one in self.samples)

    @property
    def is_stale(self) -> bool:
        """True if nothing new came for so long that the status describes the past."""
        return self.newest is not None and self.at - self.newest > STALE_SECONDS


def average(values: Sequence[float], scale: Scale = Scale.UNIT) -> Estimate | None:
    """Return the mean of traces with its 95 % interval; None without values."""
    return estimate(values, values, scale)


# --- JSON -----------------------------------------------------------------------------------------


def to_json(report: MonitorReport) -> str:
    """Return the report for programs."""
    finding = report.finding
    evidence = None
    if finding.evidence is not None:
        evidence = _share_json(finding.evidence)
    newest = None
    if report.newest is not None:
        newest = utc_time(report.newest)
    criteria = []
    for row in report.criteria:
        means = {"window": _mean_json(row.window), "baseline": _mean_json(report.expected.criteria.get(row.name))}
        criteria.append({"name": row.name, **means, "note": row.note, "scale": row.scale})
    failures = []
    for one in report.failures:
        shown = {"trace": one.trace, "at": utc_time(one.at), "why": one.why, "query": one.query, "output": one.output}
        failures.append(shown)
    samples = []
    for one in report.samples:
        figures = {"passed": one.passed, "score": one.average, "scores": one.scores}
        samples.append({"trace": one.trace, "at": utc_time(one.at), **figures})
    value = {
        "status": finding.status,
        "why": finding.why,
        "at": utc_time(report.at),
        "sample_rate": report.sample_rate,
        "sample_count": len(report.samples),
        "pass_rate": _share_json(finding.share),
        "unmeasured": finding.unmeasured,
        "average_score": _mean_json(report.average_score),
        "criteria": criteria,
        "skipped": [{"name": name, "why": why} for name, why in report.scoring.skipped.items()],
        "failures": failures,
        "counts": report.counts,
        "notes": report.notes,
        "evidence": evidence,
        "baseline_pass_rate": _mean_json(report.expected.pass_rate),
        "version": FORMAT,
        "blind": finding.blind,
        "newest": newest,
        "without_agent": report.without_agent,
        "samples": samples,
    }
    return format(encode(value), indent=2).decode() + "\n"


def _mean_json(found: Estimate | None) -> dict[str, Any] | None:
    if found is None:
        return None
    low, high = (found.low, found.high) if found.level else (None, None)
    return {"mean": found.value, "n": found.n, "low": low, "high": high}


def _share_json(share: PassShare) -> dict[str, Any]:
    return {"rate": share.rate, **asdict(share)}


def utc_time(at: float, separator: str = "T") -> str:
    """Return a time in UTC; text for people has no time zone."""
    try:
        found = datetime.fromtimestamp(at, UTC).isoformat(separator, timespec="seconds")
        return found if separator == "T" else found.removesuffix("+00:00")
    except (OverflowError, ValueError, OSError):  # a trace may hold any number
        return "unknown"


# --- text -----------------------------------------------------------------------------------------


def headline(report: MonitorReport) -> str:
    """Return one line with the status and the figures behind it."""
    share, shown = report.finding.share, "nothing measured"
    if share.rate is not None:
        shown = f"pass rate {interval(Estimate(share.rate, share.low, share.high, share.measured), Scale.BINARY)}"
    said = f"{report.status.value}: {shown} over {count(len(report.samples), 'trace')}"
    if report.average_score is not None:
        said += f", average score {report.average_score.value:.2f}"
    if report.finding.why:
        said += f"; {report.finding.why}"
    if report.without_agent:
        said += f"; {count(report.without_agent, 'trace')} ended in an error before any agent"
    if not report.is_stale or report.newest is None:
        return said
    return f"{said}; no newer trace since {utc_time(report.newest, ' ')} UTC"


def to_text(report: MonitorReport, section: MonitorSection, width: int | None = None) -> str:
    """Return the report for people, for a terminal."""
    counts = report.counts
    warning, critical = figure(section.warning, Scale.BINARY), figure(section.critical, Scale.BINARY)
    lines = [
        headline(report),
        f"  warning below {warning}, critical below {critical}; sample rate "
        f"{report.sample_rate:g}; window of {section.window}, at least {section.min_samples}",
        f"  read {count(counts.lines, 'line')}, scored {count(counts.sampled, 'trace')}{_troubles(report)}",
    ]
    if report.expected.pass_rate is not None:
        lines.append(f"  pass rate in CI {_shown(report.expected.pass_rate, Scale.BINARY)}")
    lines = [_harmless(line) for line in lines]
    rows = report.criteria
    if rows:
        lines += ["", *_table(rows, report.expected.criteria, width), ""]
    more = [f"{name}: skipped, {why}" for name, why in report.scoring.skipped.items()]
    more += [f"{row.name}: {row.note}" for row in rows if row.note]
    if report.failures:
        more += ["", "newest traces that did not pass (`gate promote TRACE` makes a case of one):"]
        for one in report.failures:
            more.append(f"  {one.trace}  {utc_time(one.at, ' ')}  {one.why}")
            if one.query:
                more.append(f"    query: {one.query}")
            if one.output:
                more.append(f"    output: {one.output}")
    more += [f"note: {note}" for note in report.notes]
    return "\n".join([*lines, *map(_harmless, more)]).replace("\n\n\n", "\n\n").rstrip()


def _harmless(line: str) -> str:
    return " " * (len(line) - len(line.lstrip(" "))) + console(line)


def _troubles(report: MonitorReport) -> str:
    counts = report.counts
    held = ""
    if counts.lost > counts.bad:
        held = f" of {count(counts.lost, 'trace')}"
    found = (
        (counts.bad, f"unreadable line{held}", f"unreadable lines{held}"),
        (report.finding.unmeasured, "in the window not measured", "in the window not measured"),
        (counts.repeated, "repeated", "repeated"),
        (counts.cut, "scored incomplete", "scored incomplete"),
        (counts.empty, "trace without an agent", "traces without an agent"),
        (counts.late, "late span", "late spans"),
        (counts.truncated, "file begun anew", "files begun anew"),
    )
    return "".join(f", {count(number, one, many)}" for number, one, many in found if number)


def _table(rows: Sequence[CriterionAverage], in_ci: Mapping[str, Estimate], width: int | None) -> list[str]:
    cells: list[tuple[str, ...]] = [("criterion", "production", "CI", "difference")]
    for row in rows:
        window, baseline = row.window, in_ci.get(row.name)
        difference = "–"
        if window is not None and baseline is not None:
            difference = _difference(window.value - baseline.value, row.scale)
        cells.append((row.name, _shown(window, row.scale), _shown(baseline, row.scale), difference))
    if not in_ci:
        cells = [row[:2] for row in cells]
    return table(cells, width).splitlines()


def _shown(found: Estimate | None, scale: Scale) -> str:
    if found is None:
        return "not measured"
    return f"{interval(found, scale)} {sample(found)}"


def _difference(value: float, scale: Scale) -> str:
    """Return a difference in points for rates, else in the scale's unit."""
    return figure(value, scale, signed=True) if scale.is_relative else change(value, scale)


# --- Prometheus -----------------------------------------------------------------------------------


def to_prometheus(report: MonitorReport, suite: str) -> str:
    """Return the report in Prometheus' text format, for node_exporter's textfile collector."""
    label = f'suite="{_label(suite)}"'
    counts, finding = report.counts, report.finding
    share = finding.share
    found: list[tuple[str, str, str, list[tuple[str, float]]]] = [
        ("status", "gauge", "1 for the status that stands", _states(finding.status, label)),
        ("samples", "gauge", "Traces in the window", [(label, len(report.samples))]),
        ("unmeasured", "gauge", "Traces in the window without an outcome", [(label, finding.unmeasured)]),
        ("pass_rate", "gauge", "Share of measured traces that passed", _of(label, share.rate)),
        ("pass_rate_low", "gauge", "Its interval that decides, lower end", [(label, share.low)]),
        ("pass_rate_high", "gauge", "Its interval that decides, upper end", [(label, share.high)]),
        ("average_score", "gauge", "Mean score, 0 to 1", _of(label, getattr(report.average_score, "value", None))),
        ("criterion_average", "gauge", "Mean score of a criterion", _by_criterion(report, label)),
        ("lines_total", "counter", "Lines read", [(label, counts.lines)]),
        ("unreadable_lines_total", "counter", "Lines that could not be read", [(label, counts.bad)]),
        ("traces_total", "counter", "Traces of the sample that were scored", [(label, counts.sampled)]),
        ("newest_trace_seconds", "gauge", "When the newest trace ended, Unix time", _of(label, report.newest)),
        ("updated_seconds", "gauge", "When this was written, Unix time", [(label, report.at)]),
    ]
    lines = []
    for name, kind, text, samples in found:
        if samples:
            lines += [f"# HELP gate_monitor_{name} {text}.", f"# TYPE gate_monitor_{name} {kind}"]
            lines += [f"gate_monitor_{name}{{{labels}}} {float(value)!r}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _states(status: Status, label: str) -> list[tuple[str, float]]:
    return [(f'{label},status="{one.value}"', float(one is status)) for one in Status]


def _of(label: str, value: float | None) -> list[tuple[str, float]]:
    return [] if value is None else [(label, value)]


def _by_criterion(report: MonitorReport, label: str) -> list[tuple[str, float]]:
    found = []
    for row in report.criteria:
        if row.window is not None:
            found.append((f'{label},criterion="{_label(row.name)}"', row.window.value))
    return found


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
