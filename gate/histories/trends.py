"""The runs of a suite over time: by criterion, tag, version and case; where they moved, and where they are going.

Only what was measured alike is compared. A run is put beside the others by the cases that they share, each with the
same content; where a criterion's options changed, or no case is left in common, a new stretch begins and nothing is
said across its border. Pure: reading records is left to `gate.insight.history`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.outcomes import PASS_RATE, RATE_METRIC
from gate.decision.outcomes import pass_rate as pass_rate_criterion
from gate.histories.cases import CaseHistory
from gate.histories.runs import SPENT, RunValues, described, spent_beside, together
from gate.model import Criterion, Direction, Estimate
from gate.statistics.changepoint import Jump, Piece, course
from gate.statistics.intervals import deviation, mean
from gate.statistics.trend import LEAST_RUNS, Level, Sums, crossing, fitted, levels

ERROR = 0.01
"""P(a move or a trend is stated | only chance moves the runs), over all criteria of a suite; and over its tags."""
AHEAD_LEVEL = 0.8
"""The level of the interval of an early warning."""
MOST_TAGS = 30
"""Tags that are followed, those of most cases."""


class PastRun(Struct, frozen=True):
    """One run of a suite, with where it comes from."""

    id: str
    created: float
    """Unix time."""
    values: RunValues
    criteria: tuple[Criterion, ...]
    cases: Mapping[str, str]
    """Id → fingerprint of the content, of every planned case."""
    tags: Mapping[str, frozenset[str]]
    commit: str | None = None
    dirty: bool = False
    agent: str = ""
    """Fingerprint of the agent's source and version; empty where it is not known."""
    subject: str = ""
    """First line of the commit's message."""
    told: str = ""
    """The agent's version as `agent.version` tells it."""
    where: str = ""
    verdict: str = ""
    """The verdict in the ledger; empty if nobody judged it."""
    releases: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """Return the version of the agent: its fingerprint, else its commit."""
        return self.agent or self.commit or ""


class Point(Struct, frozen=True):
    """The value of one run in a series."""

    run: int
    """Position among the suite's runs, from 0."""
    estimate: Estimate
    least: float
    """The lowest score of a trial; of a pass rate the lowest of a case."""
    most: float


class Stretch(Struct, frozen=True):
    """Runs that measured alike."""

    start: int
    """Position of its first point."""
    changed: tuple[str, ...] = ()
    """The criteria that are measured in another way than before it; empty if no case is left in common instead."""


class SeriesMove(Struct, frozen=True):
    """The values moved at once."""

    run: int
    """Position of the first run after it."""
    first: int
    """The first end of the 95 % interval of that position."""
    last: int
    change: float
    """In the series' unit, of the runs after it until the next move."""
    p: float
    same_agent: bool
    """True if the agent's source is known to be the same on both sides: then something else moved."""


class Going(Struct, frozen=True):
    """The slope of the runs since the last move."""

    runs: int
    by_run: Estimate
    """Change of the mean from one run to the next, with its 95 % interval."""
    by_week: Estimate | None
    """None where the runs hold no usable times, or are all of one day."""
    found: bool
    """True if it is more than chance, at the error that all criteria share."""


class Ahead(Struct, frozen=True):
    """An early warning: the trend meets the threshold."""

    threshold: float
    first: int
    """The fewest further runs after which the mean is beyond the threshold."""
    last: int
    level: float = AHEAD_LEVEL


class Summary(Struct, frozen=True):
    """The averages of the newest stretch's runs."""

    runs: int
    average: float
    lowest: float
    highest: float
    spread: float | None
    """Their standard deviation; None for a single run."""


class Series(Struct, frozen=True):
    """One criterion over time, of the whole suite or of one tag."""

    criterion: Criterion
    tag: str
    points: tuple[Point, ...]
    """Oldest first."""
    stretches: tuple[Stretch, ...]
    """At least one; only the last is summarised and looked at for moves and trends."""
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
    """The criterion's."""
    estimate: Estimate
    least: float
    most: float


class Version(Struct, frozen=True):
    """One version of the agent."""

    agent: str
    commits: tuple[str, ...]
    """Oldest first."""
    runs: tuple[int, ...]
    values: tuple[VersionValue, ...]


class SuiteHistory(Struct, frozen=True):
    """All that is known of one suite over time."""

    suite_id: str
    runs: tuple[PastRun, ...]
    """Oldest first."""
    series: tuple[Series, ...]
    """The pass rate, then the criteria of the newest run, then what trials cost; each of the suite, then by tag."""
    versions: tuple[Version, ...]
    cases: tuple[CaseHistory, ...]

    @property
    def whole(self) -> tuple[Series, ...]:
        """The series of the whole suite."""
        return tuple(one for one in self.series if not one.tag)

    def by_tag(self, name: str) -> tuple[Series, ...]:
        return tuple(one for one in self.series if one.tag and one.name == name)


def suite_history(suite_id: str, runs: Iterable[PastRun]) -> SuiteHistory:
    """The history of the runs of one suite, in any order; a run that is there twice counts once."""
    unique: dict[str, PastRun] = {}
    for run in runs:
        known = unique.get(run.id, run)
        more, less = (run, known) if run.values.trials > known.values.trials else (known, run)
        unique[run.id] = replace(
            more, verdict=more.verdict or less.verdict, releases=more.releases or less.releases
        )  # one of them may lie outside of the store, which knows both
    ordered = tuple(sorted(unique.values(), key=lambda run: (run.created, run.id)))
    measures = _measures(ordered)
    tags = _tags(ordered)
    contents = _contents(ordered)
    headline = sum(not _is_spent(criterion) for criterion in measures)
    found = []
    for criterion in measures:
        own = [_series(ordered, contents, criterion, ERROR / headline)]
        error = ERROR / max(1, len(tags)) if criterion.name == PASS_RATE else 0.0
        own += [_series(ordered, contents, criterion, error, tag=tag, cases=cases) for tag, cases in tags.items()]
        found += [one for one in own if one is not None]
    return SuiteHistory(suite_id, ordered, tuple(found), _versions(ordered, measures), _cases(ordered))


def _measures(runs: Sequence[PastRun]) -> list[Criterion]:
    """Return the measures that are followed: the criteria of the newest run, and the costs of trials."""
    newest = runs[-1]
    own = next((c for c in newest.criteria if c.metric == RATE_METRIC), None)
    others = [c for c in newest.criteria if c.metric != RATE_METRIC and not c.stands_for]
    wanted = [pass_rate_criterion(own=own), *others]
    wanted += [SPENT[name] for name in SPENT if name in spent_beside(others)]
    return [criterion for criterion in wanted if any(criterion.name in run.values.values for run in runs)]


def _is_spent(criterion: Criterion) -> bool:
    return criterion.name in SPENT


def _tags(runs: Sequence[PastRun]) -> dict[str, list[str]]:
    """The tags of the newest run that part the suite, not those of a single case nor of all, with their cases.

    A case has the tags that it was last seen with, in all runs: a tag that was added yesterday has a history, too.
    """
    latest: dict[str, frozenset[str]] = {}
    for run in runs:
        latest.update(run.tags)
    members: dict[str, list[str]] = {}
    for case, tags in latest.items():
        for tag in tags:
            members.setdefault(tag, []).append(case)
    newest = runs[-1].tags
    sizes = {tag: sum(case in newest for case in cases) for tag, cases in members.items()}
    kept = sorted((-n, tag) for tag, n in sizes.items() if 1 < n < len(newest))
    return {tag: members[tag] for tag in sorted(tag for _, tag in kept[:MOST_TAGS])}


Contents = Sequence[Mapping[str, int]]
"""The cases of each run, each with a number that stands for the case with its content."""


def _contents(runs: Sequence[PastRun]) -> Contents:
    numbers: dict[tuple[str, str], int] = {}
    return [{case: numbers.setdefault((case, fp), len(numbers)) for case, fp in run.cases.items()} for run in runs]


# --- one series -------------------------------------------------------------------------------------


def _series(
    runs: Sequence[PastRun],
    contents: Contents,
    criterion: Criterion,
    error: float,
    *,
    tag: str = "",
    cases: Sequence[str] | None = None,
) -> Series | None:
    cells = [_cells(run, criterion.name, cases) for run in runs]
    measured = [number for number, cell in enumerate(cells) if cell]
    if not measured:
        return None
    points = tuple(_point(number, list(cells[number].values()), criterion) for number in measured)
    stretches = _stretches(runs, contents, measured, cells, criterion)
    current = measured[stretches[-1].start :]
    values = [point.estimate.value for point in points[stretches[-1].start :]]
    summary = Summary(len(values), mean(values), min(values), max(values), deviation(values))
    made = Series(criterion, tag, points, stretches, summary)
    return made if error == 0.0 else _with_course(made, runs, contents, current, cells, error)


def _cells(run: PastRun, name: str, cases: Sequence[str] | None) -> Mapping[str, Sums]:
    """Return the values of a criterion in the run; of some cases, or of all."""
    found = run.values.values.get(name, {})
    if cases is None:
        return found
    return {case: sums for case in cases if (sums := found.get(case)) is not None}


def _point(number: int, cells: Sequence[Sums], criterion: Criterion) -> Point:
    return Point(number, *described(cells, criterion.scale))


def _stretches(
    runs: Sequence[PastRun],
    contents: Contents,
    measured: Sequence[int],
    cells: Sequence[Mapping[str, Sums]],
    criterion: Criterion,
) -> tuple[Stretch, ...]:
    found = [Stretch(0)]
    for position, number in enumerate(measured[1:], 1):
        changed = _changed(runs[measured[position - 1]], runs[number], criterion)
        content = contents[number]
        own = {content[case] for case in cells[number]}
        earlier = (measured[before] for before in range(position - 1, found[-1].start - 1, -1))
        if changed or all(own.isdisjoint(map(contents[run].__getitem__, cells[run])) for run in earlier):
            found.append(Stretch(position, changed))
    return tuple(found)


def _changed(before: PastRun, now: PastRun, criterion: Criterion) -> tuple[str, ...]:
    """Return the measures that are taken in another way than before."""
    if now.criteria == before.criteria:
        return ()
    then, own = _terms(before, criterion), _terms(now, criterion)
    return tuple(sorted(name for name in then.keys() | own.keys() if then.get(name) != own.get(name)))


def _terms(run: PastRun, criterion: Criterion) -> Mapping[str, str]:
    """Return the fingerprints that the values depend on: the criterion's, or those of all that decide whether a trial
    passes."""
    if _is_spent(criterion):
        return {}
    if criterion.name == PASS_RATE:
        return {c.name: c.fingerprint for c in run.criteria if c.blocking and c.metric != RATE_METRIC}
    return {c.name: c.fingerprint for c in run.criteria if c.name == criterion.name}


def _with_course(
    series: Series,
    runs: Sequence[PastRun],
    contents: Contents,
    current: Sequence[int],
    cells: Sequence[Mapping[str, Sums]],
    error: float,
) -> Series:
    """With moves, trend and early warning of the newest stretch."""
    measured = [
        {content[case]: sums for case, sums in cells[number].items()}
        for number in current
        for content in (contents[number],)
    ]
    scale = series.criterion.scale
    reach = scale.range[1] - scale.range[0] if scale.is_bounded else 0.0
    found = levels(measured, reach)
    parted = course(found, level=error)
    moves = tuple(_moved(step, current, runs, _named(found, parted.pieces, n)) for n, step in enumerate(parted.steps))
    last = found[parted.pieces[-1].start :]
    going = _going(last, [runs[current[one.run]].created for one in last], error)
    ahead = _ahead(last, series, going)
    return replace(series, moves=moves, going=going, ahead=ahead)


def _named(found: Sequence[Level], pieces: Sequence[Piece], number: int) -> float:
    """The change from one piece to the next: between the mean levels of both."""
    before, after = pieces[number], pieces[number + 1]
    sides = [[one.value for one in found[piece.start : piece.end]] for piece in (before, after)]
    return mean(sides[1]) - mean(sides[0])


def _moved(step: Jump, current: Sequence[int], runs: Sequence[PastRun], change: float) -> SeriesMove:
    before, after = runs[current[step.at - 1]], runs[current[step.at]]
    same = bool(before.agent) and before.agent == after.agent
    return SeriesMove(current[step.at], current[step.first], current[step.last], change, step.p, same)


def _going(found: Sequence[Level], times: Sequence[float], error: float) -> Going | None:
    if len(found) < LEAST_RUNS:
        return None
    floor = sum(one.variance for one in found) / len(found)

    def slope(xs: Iterable[float]) -> tuple[Estimate, bool] | None:
        line = fitted(list(zip(xs, (one.value for one in found), strict=True)), floor)
        if line is None:
            return None
        low, high = line.interval(1 - error)
        return Estimate(line.slope, *line.interval(0.95), len(found)), low > 0 or high < 0

    by_run = slope(float(one.run) for one in found)
    spans_days = times[0] > 0 and times[-1] - times[0] >= 86_400
    weeks = slope((time - times[0]) / 604_800 for time in times) if spans_days else None
    if by_run is None:
        return None
    return Going(len(found), by_run[0], weeks[0] if weeks else None, by_run[1])


def _ahead(found: Sequence[Level], series: Series, going: Going | None) -> Ahead | None:
    """The early warning: the trend is more than chance, and meets the threshold within as many runs as it rests on."""
    criterion = series.criterion
    limit, slope = criterion.threshold, going.by_run.value if going else 0.0
    if going is None or not going.found or limit is None:
        return None
    if (slope < 0) is (criterion.direction is Direction.LOWER):
        return None  # it gets better
    line = fitted([(float(one.run), one.value) for one in found], sum(one.variance for one in found) / len(found))
    now = float(found[-1].run)
    if line is None or (line.value(now) < limit) is not (criterion.direction is Direction.LOWER):
        return None  # it is beyond the threshold already
    met = crossing(line, limit, now, level=AHEAD_LEVEL, furthest=now + len(found))
    if met is None:
        return None
    first, last = (max(1, int(x - now) + 1) for x in (met.first, met.last))
    return Ahead(limit, first, last)


# --- versions and cases -----------------------------------------------------------------------------


def _versions(runs: Sequence[PastRun], measures: Sequence[Criterion]) -> tuple[Version, ...]:
    """In the order of their first runs; of values alone that were measured as in the newest run."""
    groups: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        groups.setdefault(run.version, []).append(number)
    found = []
    for numbers in groups.values():
        values = []
        for criterion in measures:
            alike = [n for n in numbers if _terms(runs[n], criterion) == _terms(runs[-1], criterion)]
            by_case: dict[str, list[Sums]] = defaultdict(list)
            for number in alike:
                for case, sums in runs[number].values.values.get(criterion.name, {}).items():
                    by_case[case].append(sums)
            if by_case:
                cells = [together(sums) for sums in by_case.values()]
                values.append(VersionValue(criterion.name, *described(cells, criterion.scale)))
        commits = dict.fromkeys(commit for n in numbers if (commit := runs[n].commit))
        found.append(Version(runs[numbers[0]].agent, tuple(commits), tuple(numbers), tuple(values)))
    return tuple(found)


def _cases(runs: Sequence[PastRun]) -> tuple[CaseHistory, ...]:
    """Every case, over the runs in which its content was as it is in the newest that has it."""
    content: dict[str, str] = {}
    for run in runs:
        content.update(run.cases)
    found = []
    for case_id in sorted(content):
        counts = tuple(
            run.values.outcomes.get(case_id, (0, 0)) if run.cases.get(case_id) == content[case_id] else (0, 0)
            for run in runs
        )
        history = CaseHistory.of(case_id, counts)
        if history is not None:
            found.append(history)
    return tuple(found)
