"""The runs of a suite over time by criterion, tag, version and case, with moves and trends.

Compares only like with like. Runs are compared on the cases that they share with the same content. If a criterion's
options changed or no case is shared, a new stretch begins, and nothing is compared across its border. Pure: reading
records is left to `gate.insight.history`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.outcomes import PASS_RATE, RATE_METRIC
from gate.decision.outcomes import pass_rate as pass_rate_criterion
from gate.decision.own_models import moved
from gate.histories.cases import CaseHistory
from gate.histories.runs import SPENT, RunValues, described, spent_beside
from gate.model import Criterion, Estimate
from gate.statistics.changepoint import Piece, course
from gate.statistics.intervals import deviation, mean
from gate.statistics.trend import LEAST_RUNS, FittedLine, Level, Sums, crossing, fitted, levels, together

ERROR = 0.01
"""P(a move or a trend is reported | runs differ only by chance), over all criteria of a suite; and over its tags."""
AHEAD_LEVEL = 0.8
"""Level of the interval of an early warning."""
DAY, WEEK = 86_400, 604_800
"""Durations in seconds."""
MOST_TAGS = 30
"""Maximum number of tags to follow, the most frequent first."""


class PastRun(Struct, frozen=True):
    """One run of a suite, with its origin."""

    id: str
    created: float
    """Unix time."""
    values: RunValues
    criteria: tuple[Criterion, ...]
    cases: Mapping[str, str]
    """Id → fingerprint of the content, for every planned case."""
    tags: Mapping[str, frozenset[str]]
    commit: str | None = None
    dirty: bool = False
    agent: str = ""
    """Fingerprint of the agent's source and version; empty if unknown."""
    subject: str = ""
    """First line of the commit message."""
    told: str = ""
    """The agent's version according to `agent.version`."""
    where: str = ""
    verdict: str = ""
    """The verdict in the ledger; empty if nobody judged it."""
    releases: tuple[str, ...] = ()
    recorded: float = 0.0
    """Unix time of the record that holds it, which may be that of a later commit with the same agent."""

    @property
    def version(self) -> str:
        """The version of the agent: its fingerprint, else its commit."""
        return self.agent or self.commit or ""


class Point(Struct, frozen=True):
    """The value of one run in a series."""

    run: int
    """Position among the suite's runs, from 0."""
    estimate: Estimate
    least: float
    """The lowest score of a trial; for a pass rate, the lowest of a case."""
    most: float


class Stretch(Struct, frozen=True):
    """Consecutive runs that measured alike."""

    start: int
    """Position of its first point."""
    changed: tuple[str, ...] = ()
    """The criteria that changed at its start; empty if instead no case is shared."""


class SeriesMove(Struct, frozen=True):
    """An abrupt move of the values."""

    run: int
    """Position of the first run after the move."""
    first: int
    """Lower end of the 95 % interval of that position; ``last`` is the upper end."""
    last: int
    change: float
    """Change in the series' unit, up to the next move."""
    p: float
    same_agent: bool
    """True if the agent's source is known to be the same on both sides, so that something else moved."""


class Going(Struct, frozen=True):
    """The slope of the runs since the last move."""

    runs: int
    by_run: Estimate
    """Change of the mean from one run to the next, with its 95 % interval."""
    by_week: Estimate | None
    """None if the runs have no usable times, or all ran on one day."""
    found: bool
    """True if the slope is significant at the error rate shared by all criteria."""


class Ahead(Struct, frozen=True):
    """An early warning: the trend meets the threshold."""

    threshold: float
    first: int
    """The smallest number of further runs after which the mean may be beyond the threshold; ``last`` is the largest."""
    last: int
    level: float = AHEAD_LEVEL


class Summary(Struct, frozen=True):
    """Averages over the runs of the newest stretch."""

    runs: int
    average: float
    lowest: float
    highest: float
    spread: float | None
    """Standard deviation over runs; None for a single run."""


class Series(Struct, frozen=True):
    """One criterion over time, for the whole suite or for one tag."""

    criterion: Criterion
    tag: str
    points: tuple[Point, ...]
    """The points, oldest first."""
    stretches: tuple[Stretch, ...]
    """At least one stretch; only the last is summarised and searched for moves and trends."""
    summary: Summary
    moves: tuple[SeriesMove, ...] = ()
    going: Going | None = None
    ahead: Ahead | None = None

    @property
    def name(self) -> str:
        return self.criterion.name

    @property
    def newest(self) -> Point:
        return self.points[-1]

    @property
    def current(self) -> tuple[Point, ...]:
        """The points of the newest stretch."""
        return self.points[self.stretches[-1].start :]


class VersionValue(Struct, frozen=True):
    """The score of one version of the agent in all of its runs."""

    name: str
    """Name of the criterion."""
    estimate: Estimate
    least: float
    most: float


class Version(Struct, frozen=True):
    """One version of the agent."""

    agent: str
    commits: tuple[str, ...]
    """The commits, oldest first."""
    runs: tuple[int, ...]
    values: tuple[VersionValue, ...]


class SuiteHistory(Struct, frozen=True):
    """The history of one suite."""

    suite_id: str
    runs: tuple[PastRun, ...]
    """The runs, oldest first."""
    series: tuple[Series, ...]
    """The pass rate, then the criteria of the newest run, then the cost of trials; each for the suite, then by tag."""
    versions: tuple[Version, ...]
    cases: tuple[CaseHistory, ...]

    @property
    def whole(self) -> tuple[Series, ...]:
        """The series of the whole suite."""
        return tuple(one for one in self.series if not one.tag)

    def by_tag(self, name: str) -> tuple[Series, ...]:
        return tuple(one for one in self.series if one.tag and one.name == name)


class Unread(Struct, frozen=True):
    """A record that was left out."""

    where: str
    why: str


class Histories(Struct, frozen=True):
    """The histories found in all sources."""

    suites: tuple[SuiteHistory, ...]
    """The suites, sorted by name."""
    unread: tuple[Unread, ...] = ()
    source: str = ""
    """Description of the source."""


def suite_history(suite_id: str, runs: Iterable[PastRun]) -> SuiteHistory:
    """Return the history of the runs of one suite, in any order; a duplicate run counts once."""
    unique: dict[str, PastRun] = {}
    for run in runs:
        if run.id in unique:
            run = _same_run(unique[run.id], run)  # noqa: PLW2901
        unique[run.id] = run
    ordered = tuple(sorted(unique.values(), key=lambda run: (run.created, run.id)))
    measures = _measures(ordered)
    tags = _tags(ordered)
    criteria = sum(criterion.name not in SPENT for criterion in measures)
    found = []
    for criterion in measures:
        whole = _series(ordered, criterion, ERROR / criteria)
        if whole is not None:
            found.append(whole)
        error = 0.0
        if criterion.name == PASS_RATE:
            error = ERROR / max(1, len(tags))
        for tag, cases in tags.items():
            of_tag = _series(ordered, criterion, error, tag=tag, cases=cases)
            if of_tag is not None:
                found.append(of_tag)
    return SuiteHistory(suite_id, ordered, tuple(found), _versions(ordered, measures), _cases(ordered))


def _same_run(known: PastRun, run: PastRun) -> PastRun:
    """Return the copy with more trials, with the verdict and releases of either: one copy may be outside the store.

    Its commit is that of the older record, which measured it; later commits with the same agent only repeat it.
    """
    more, less = known, run
    if run.values.trials > known.values.trials:
        more, less = run, known
    first = min(known, run, key=lambda one: one.recorded)
    return replace(
        more,
        commit=first.commit,
        dirty=first.dirty,
        subject=first.subject,
        told=first.told,
        recorded=first.recorded,
        verdict=more.verdict or less.verdict,
        releases=more.releases or less.releases,
    )


def _measures(runs: Sequence[PastRun]) -> list[Criterion]:
    """Return the measures to follow: the criteria of the newest run, and the costs of trials."""
    rate, others = pass_rate_criterion(), []
    for criterion in runs[-1].criteria:
        if criterion.metric == RATE_METRIC:
            rate = pass_rate_criterion(own=criterion)
        else:
            others.append(criterion)
    beside, wanted = spent_beside(others), [rate, *others]
    measured: set[str] = set()
    for name, spent in SPENT.items():
        if name in beside:
            wanted.append(spent)
    for run in runs:
        measured |= run.values.values.keys()
    return [criterion for criterion in wanted if criterion.name in measured]


def _tags(runs: Sequence[PastRun]) -> dict[str, list[str]]:
    """Return the cases by tag, for tags of the newest run that divide the suite into parts of more than one case.

    A case has the tags of its latest run, in all runs, so that a tag added yesterday has a history, too.
    """
    latest: dict[str, frozenset[str]] = {}
    for run in runs:
        latest.update(run.tags)
    members: dict[str, list[str]] = {}
    for case, tags in latest.items():
        for tag in tags:
            members.setdefault(tag, []).append(case)
    newest = runs[-1].tags
    sizes = {}
    for tag, cases in members.items():
        size = len(newest.keys() & cases)
        if 1 < size < len(newest):
            sizes[tag] = size
    largest = sorted(sizes, key=lambda tag: (-sizes[tag], tag))[:MOST_TAGS]
    return {tag: members[tag] for tag in sorted(largest)}


# --- one series -------------------------------------------------------------------------------------


def _series(
    runs: Sequence[PastRun],
    criterion: Criterion,
    error: float,
    *,
    tag: str = "",
    cases: Sequence[str] | None = None,
) -> Series | None:
    cells, measured, points = [], [], []
    for number, run in enumerate(runs):
        cell = _cells(run, criterion.name, cases)
        cells.append(cell)
        if cell:
            measured.append(number)
            points.append(Point(number, *described(list(cell.values()), criterion.scale)))
    if not measured:
        return None
    stretches = _stretches(runs, measured, cells, criterion)
    start = stretches[-1].start
    values = [point.estimate.value for point in points[start:]]
    summary = Summary(len(values), mean(values), min(values), max(values), deviation(values))
    found = Series(criterion, tag, tuple(points), stretches, summary)
    if error == 0.0:
        return found
    return _with_course(found, runs, measured[start:], cells, error)


def _cells(run: PastRun, name: str, cases: Sequence[str] | None) -> Mapping[str, Sums]:
    """Return the values of a criterion in the run, for the given cases or for all."""
    found = run.values.values.get(name, {})
    if cases is None:
        return found
    return {case: found[case] for case in cases if case in found}


def _stretches(
    runs: Sequence[PastRun],
    measured: Sequence[int],
    cells: Sequence[Mapping[str, Sums]],
    criterion: Criterion,
) -> tuple[Stretch, ...]:
    measured_content = {}
    for run in measured:
        measured_content[run] = {(case, runs[run].cases[case]) for case in cells[run]}
    found = [Stretch(0)]
    for position, number in enumerate(measured[1:], 1):
        changed = _changed(runs[measured[position - 1]], runs[number], criterion)
        earlier = map(measured_content.__getitem__, reversed(measured[found[-1].start : position]))
        if changed or all(map(measured_content[number].isdisjoint, earlier)):
            found.append(Stretch(position, changed))
    return tuple(found)


def _changed(before: PastRun, now: PastRun, criterion: Criterion) -> tuple[str, ...]:
    """Return the criteria that are measured differently than before, or by other models under the same names."""
    then, own = _measured_by(before, criterion), _measured_by(now, criterion)
    changed = {name for name, _ in then.items() ^ own.items()}
    models, models_before = now.values.models, before.values.models
    for name in own:
        if moved(models.get(name, ()), models_before.get(name, ())):
            changed.add(name)
    return tuple(sorted(changed))


def _measured_by(run: PastRun, criterion: Criterion) -> Mapping[str, str]:
    """Return the fingerprints that the values depend on: the criterion's; for the pass rate, those of all blocking
    ones."""
    found = {}
    for one in run.criteria:
        if criterion.name == PASS_RATE:
            counts = one.blocking and one.metric != RATE_METRIC
        else:
            counts = one.name == criterion.name
        if counts and criterion.name not in SPENT:
            found[one.name] = one.fingerprint
    return found


def _with_course(
    series: Series,
    runs: Sequence[PastRun],
    current: Sequence[int],
    cells: Sequence[Mapping[str, Sums]],
    error: float,
) -> Series:
    """Return the series with moves, trend and early warning of its newest stretch."""
    measured = []
    for number in current:
        content = runs[number].cases
        measured.append({(case, content[case]): sums for case, sums in cells[number].items()})
    scale, reach = series.criterion.scale, 0.0
    if scale.is_bounded:
        reach = scale.range[1] - scale.range[0]
    found = levels(measured, reach)
    parted = course(found, level=error)
    moves = []
    for step, before, after in zip(parted.steps, parted.pieces, parted.pieces[1:], strict=False):
        change = _mean_level(found, after) - _mean_level(found, before)
        agent = runs[current[step.at - 1]].agent
        is_same = bool(agent) and agent == runs[current[step.at]].agent
        moves.append(SeriesMove(current[step.at], current[step.first], current[step.last], change, step.p, is_same))
    last = found[parted.pieces[-1].start :]
    going = _going(last, [runs[current[one.run]].created for one in last], error)
    return replace(series, moves=tuple(moves), going=going, ahead=_ahead(last, series, going))


def _mean_level(found: Sequence[Level], piece: Piece) -> float:
    return mean([one.value for one in found[piece.start : piece.end]])


def _going(found: Sequence[Level], times: Sequence[float], error: float) -> Going | None:
    if len(found) < LEAST_RUNS:
        return None
    by_run = _line(found, [float(one.run) for one in found])
    if by_run is None:
        return None
    by_week = None
    if times[0] > 0 and times[-1] - times[0] >= DAY:
        line = _line(found, [(time - times[0]) / WEEK for time in times])
        if line is not None:
            by_week = _slope(line)
    return Going(len(found), _slope(by_run), by_week, by_run.goes(error))


def _line(found: Sequence[Level], xs: Sequence[float]) -> FittedLine | None:
    """Return the line through the levels; their error is never less than that of the levels themselves."""
    floor = sum([one.variance for one in found]) / len(found)
    return fitted([(x, one.value) for x, one in zip(xs, found, strict=True)], floor)


def _slope(line: FittedLine) -> Estimate:
    return Estimate(line.slope, *line.interval(0.95), line.n)


def _ahead(found: Sequence[Level], series: Series, going: Going | None) -> Ahead | None:
    """Return an early warning if the trend is more than chance and reaches the threshold within as many runs as it is
    based on; else None."""
    limit, direction = series.criterion.threshold, series.criterion.direction
    if going is None or not going.found or limit is None:
        return None
    line = _line(found, [float(one.run) for one in found])
    if line is None or not direction.is_loss(going.by_run.value):
        return None
    now = float(found[-1].run)
    is_beyond_already = direction.is_worse(line.value(now), limit)
    if is_beyond_already:
        return None
    met = crossing(line, limit, now, level=AHEAD_LEVEL, furthest=now + len(found))
    if met is None:
        return None
    first, last = met
    return Ahead(limit, max(1, int(first - now) + 1), max(1, int(last - now) + 1))


# --- versions and cases -----------------------------------------------------------------------------


def _versions(runs: Sequence[PastRun], measures: Sequence[Criterion]) -> tuple[Version, ...]:
    """Return the versions in order of their first runs, with the values that were measured as in the newest run."""
    groups: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        groups.setdefault(run.version, []).append(number)
    found = []
    for numbers in groups.values():
        own = [runs[number] for number in numbers]
        values = []
        for criterion in measures:
            cells = _pooled(own, criterion, _measured_by(runs[-1], criterion))
            if cells:
                values.append(VersionValue(criterion.name, *described(cells, criterion.scale)))
        commits = dict.fromkeys(run.commit for run in own if run.commit)
        found.append(Version(own[0].agent, tuple(commits), tuple(numbers), tuple(values)))
    return tuple(found)


def _pooled(runs: Sequence[PastRun], criterion: Criterion, measured_by: Mapping[str, str]) -> list[Sums]:
    """Return the values of each case over all of these runs that measured the criterion in this way."""
    by_case: dict[str, list[Sums]] = defaultdict(list)
    for run in runs:
        if _measured_by(run, criterion) == measured_by:
            for case, sums in run.values.values.get(criterion.name, {}).items():
                by_case[case].append(sums)
    return list(map(together, by_case.values()))


def _cases(runs: Sequence[PastRun]) -> tuple[CaseHistory, ...]:
    """Return every case, over the runs in which its content was the same as in the newest run that has it."""
    content: dict[str, str] = {}
    for run in runs:
        content.update(run.cases)
    found = []
    versions = []
    for run in runs:
        versions.append("" if run.dirty and not run.agent else run.version)
    for case_id in sorted(content):
        counts = []
        for run in runs:
            passed_and_trials = (0, 0)
            if run.cases.get(case_id) == content[case_id]:
                passed_and_trials = run.values.outcomes.get(case_id, (0, 0))
            counts.append(passed_and_trials)
        history = CaseHistory.of(case_id, counts, versions)
        if history is not None:
            found.append(history)
    return tuple(found)
