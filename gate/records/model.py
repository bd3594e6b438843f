"""A record in memory; `wire`, `lines`, `writer` and `reader` write and read it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from gate.model import Case, Complexity, Criterion, Location, Part, ToolCall, Trial, Turn
from gate.model.bounds import Amount, Count, Ordinal

FORMAT = 2
"""The format that is written and read."""
INTERRUPTED = "interrupted"
"""The reason given for the end of a run that never closed its record, in a closed copy of the record."""


class PlannedCase(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A case that a run is going to measure, as the plan's lines hold it."""

    id: str
    fingerprint: str = field(name="fp")
    """Fingerprint of the case's content: trials of cases with different fingerprints are not comparable."""
    tags: tuple[str, ...] = ()
    """In alphabetical order."""
    complexity: Complexity = Complexity.MEDIUM
    at: Annotated[tuple[str | Ordinal, ...], Meta(min_length=1, max_length=2)] | None = None
    """``[path]`` or ``[path, line]``"""
    hint: Amount | None = None
    """Expected duration of one trial in seconds, from earlier records."""
    shard: Ordinal = 1
    """The shard that runs it, counted from 1."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """The case's own thresholds by criterion, so that the record can be judged without its suite."""
    equivalent: str = ""
    """The group of cases that the author declares to be the same task."""
    cluster: str = ""
    """The group of cases that share a fixture, so that their trials in one epoch depend on one another."""
    expected: tuple[tuple[ToolCall, ...] | None, ...] = field(default=(), name="expect")
    """Expected calls per turn, so that differences can be shown; None for turns without an expectation."""
    responses: tuple[str | None, ...] = ()
    """Expected responses per turn, shortened, to show next to the actual ones; empty if none is given."""

    @property
    def location(self) -> Location | None:
        if self.at is None:
            return None
        path, line = (*self.at, None)[:2]
        return Location(str(path), line if isinstance(line, int) else None)


class Run(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """One of the runs whose trials a stored record unites. In a line ``[id, created, trials]``."""

    id: str
    created: Amount
    """Unix time."""
    trials: Count
    """Number of the record's trials that belong to it; they follow those of the runs before it."""

    @property
    def age(self) -> tuple[float, str]:
        """Return the key that orders runs, oldest first; simultaneous runs by their ids."""
        return self.created, self.id


class Header(Struct, frozen=True):
    """The plan of a run: cases, criteria, commit and agent."""

    suite_id: str
    plan: tuple[PlannedCase, ...]
    """Every case of the suite in order, in whichever shard it runs."""
    criteria: tuple[Criterion, ...]
    run_id: str = ""
    gate_version: str = ""
    commit: str | None = None
    base_commit: str | None = None
    """The commit that the change is measured against."""
    dirty: bool = False
    """True if the work tree differed from ``commit``, when the run began or while it ran."""
    agent: str = ""
    """Fingerprint of the agent's source; empty if unknown, which equals nothing."""
    seed: int = 0
    shard: tuple[int, int] = (1, 1)
    """The number of the shard, from 1, and the number of shards."""
    epochs: int = 0
    """Number of planned epochs of a shard; 0 if it is not decided in advance."""
    created: float = 0.0
    """Unix time."""
    selected: bool = False
    """True if a selection excluded cases of the suite from the plan."""
    scope: str = ""
    """The selection of cases in words, such as ``tag smoke``."""
    whole: int = 0
    """Number of cases in the suite's files, if a selection reduced the plan; 0 without a selection."""
    stripped: bool = False
    """True if messages and responses were dropped (the form of a stored baseline)."""
    definition: str = ""
    """Fingerprint of the agent's definition, the ``agent`` section: its requests and how its answers are read."""
    subject: str = ""
    """First line of the commit's message."""
    branch: str = ""
    """Branch that was measured."""
    version: str = ""
    """The agent's version from `agent.version`; empty if it has none."""
    runs: tuple[Run, ...] = ()
    """The runs that a stored record combines, oldest first; empty: the record holds one run alone, ``run_id``."""

    @property
    def measures(self) -> dict[str, str]:
        """Return the fingerprint of each criterion, by name: scores under equal ones are comparable."""
        return {criterion.name: criterion.fingerprint for criterion in self.criteria}

    @property
    def contents(self) -> dict[str, str]:
        """Return the fingerprint of each case's content, by id."""
        return {case.id: case.fingerprint for case in self.plan}

    @property
    def own_cases(self) -> tuple[str, ...]:
        """Return the ids of the cases that this shard runs; all cases if the suite is not divided."""
        return tuple([case.id for case in self.plan if case.shard == self.shard[0]])


class Footer(Struct, frozen=True):
    """The summary, in the closing line, of the lines before it."""

    trials: int
    errors: int
    """Trials without an answer, because of the agent or the infrastructure."""
    rounds: int
    """The highest round."""
    duration: float = 0.0
    """Wall time in seconds, over all sessions that wrote the record."""
    judge_cost_usd: float | None = None
    stopped: str = ""
    """The reason why the run ended before its schedule (budget, cancelled); empty if it did not."""
    terms: Mapping[str, Any] = field(default_factory=dict)
    """The terms of the run's verdict, as written by `gate.pipeline.terms.Terms`; empty if the run stated none."""


class Record(Struct, frozen=True):
    """All measurements of a run."""

    header: Header
    trials: tuple[Trial, ...]
    footer: Footer | None = None
    """None if the record was not closed: the run crashed or is still going."""


def footer_of(trials: tuple[Trial, ...]) -> Footer:
    """Return the footer for these trials."""
    errors = sum(trial.error is not None for trial in trials)
    return Footer(len(trials), errors, max((trial.round for trial in trials), default=0))


_TREE = {True: "dirty", False: "clean"}


def difference(one: Header, other: Header) -> str:
    """Return the difference, in words, that keeps trials of the two out of one record; empty if there is none.

    Thresholds and margins may differ: they decide, they do not measure.
    """
    plain = (
        ("suite", one.suite_id, other.suite_id),
        ("commit", one.commit, other.commit),
        ("work tree", _TREE[one.dirty], _TREE[other.dirty]),
        ("agent's fingerprint", one.agent, other.agent),
        ("shard", one.shard, other.shard),
        ("number of planned epochs", one.epochs, other.epochs),
        ("form", one.stripped, other.stripped),
    )
    for name, mine, theirs in plain:
        if mine != theirs:
            return f"its {name} is {_shown(mine)}, not {_shown(theirs)}"
    return _plan_difference(one, other) or _criteria_difference(one, other)


def _shown(value: object) -> str:
    return "unknown" if value is None else repr(value)


def _plan_difference(one: Header, other: Header) -> str:
    for mine, theirs in zip(one.plan, other.plan, strict=False):
        if mine.id != theirs.id:
            return f"its plan has case {mine.id!r} in place of {theirs.id!r}"
        if mine.fingerprint != theirs.fingerprint:
            return f"case {mine.id!r} has another content"
        if mine.shard != theirs.shard:
            return f"case {mine.id!r} is assigned to shard {mine.shard}, not {theirs.shard}"
    if len(one.plan) != len(other.plan):
        return f"its plan has {len(one.plan)} cases, not {len(other.plan)}"
    return ""


def _criteria_difference(one: Header, other: Header) -> str:
    mine = one.measures
    theirs = other.measures
    for name in sorted(mine.keys() | theirs.keys()):
        if mine.get(name) != theirs.get(name):
            return f"criterion {name!r} differs"
    return ""


def _turns(case: PlannedCase) -> tuple[Turn, ...]:
    """Return the turns of a planned case as far as they are known: only the expectations."""
    turns = []
    for tools, said in zip_longest(case.expected, case.responses):
        response = None if said is None else (Part(said),)
        turns.append(Turn("", tools, response))
    return tuple(turns) or (Turn(""),)


def cases_of(header: Header, thresholds: Mapping[str, Mapping[str, float]] | None = None) -> tuple[Case, ...]:
    """Return the cases of a record as far as a verdict needs them; the plan does not contain their texts."""
    found = []
    for case in header.plan:
        one = Case(
            id=case.id,
            turns=_turns(case),
            tags=frozenset(case.tags),
            complexity=case.complexity,
            thresholds=case.thresholds if thresholds is None else thresholds.get(case.id, {}),
            location=case.location,
            metadata={"equivalent": case.equivalent} if case.equivalent else {},
            cluster=case.cluster,
        )
        found.append(one)
    return tuple(found)
