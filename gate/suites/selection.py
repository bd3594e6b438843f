"""Knows which cases of a suite are run, and what a suite consists of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from gate.errors import ConfigError, MeasureError, nearest
from gate.limits import shorten
from gate.model import Case, Complexity, Suite

_one_or_more = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
_ONE_OR_MORE_SCHEMA = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
Words = Annotated[list[str], _one_or_more, _ONE_OR_MORE_SCHEMA]


_COMPLEXITY = {"enum": [one.value for one in Complexity]}
_COMPLEXITY_SCHEMA = WithJsonSchema({"anyOf": [_COMPLEXITY, {"type": "array", "items": _COMPLEXITY}]})


class Selection(BaseModel):
    """Which cases to run: those with any of the tags, any of the complexities and any of the ids.

    An empty list selects all. Ids are exact or patterns with ``*``, ``?`` and ``[…]``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    tags: Words = []
    complexity: Annotated[list[Complexity], _one_or_more, _COMPLEXITY_SCHEMA] = []
    ids: Words = []

    def takes(self, case: Case) -> bool:
        """Whether a case is run."""
        return (
            (not self.tags or not case.tags.isdisjoint(self.tags))
            and (not self.complexity or case.complexity in self.complexity)
            and (not self.ids or any(_matches(case.id, pattern) for pattern in self.ids))
        )


def select(suite: Suite, selection: Selection) -> Suite:
    """The suite with the selected cases alone.

    Raises `ConfigError` for a tag or id that no case has, and `MeasureError` where nothing is left.
    """
    return select_all([suite], selection)[0]


def select_all(suites: Sequence[Suite], selection: Selection) -> list[Suite]:
    """The suites with their selected cases alone, without the suites that have none.

    Raises `ConfigError` for a tag or id that no case of any suite has, and `MeasureError` where nothing is left.
    """
    _refuse_unknown([case for suite in suites for case in suite.cases], selection)
    chosen = [_taken(suite, selection) for suite in suites]
    left = [suite for suite in chosen if suite.cases]
    if not left:
        cases = [case for suite in suites for case in suite.cases]
        source = ", ".join(suite.source or suite.id for suite in suites)
        raise MeasureError("no case is selected", where=source, hint=_what_there_is(cases))
    return left


def _taken(suite: Suite, selection: Selection) -> Suite:
    cases = tuple(case for case in suite.cases if selection.takes(case))
    ids = {case.id for case in cases}
    return replace(suite, cases=cases, recorded=tuple(trial for trial in suite.recorded if trial.case_id in ids))


def _matches(identifier: str, pattern: str) -> bool:
    return identifier == pattern or fnmatchcase(identifier, pattern)


def _refuse_unknown(cases: Sequence[Case], selection: Selection) -> None:
    tags = {tag for case in cases for tag in case.tags}
    for tag in selection.tags:
        if tag not in tags:
            raise ConfigError(
                f"no case has the tag {tag!r}", where="select.tags", hint=nearest(tag, list(tags)) if tags else ""
            )
    for pattern in selection.ids:
        if not any(_matches(case.id, pattern) for case in cases):
            hint = shorten(nearest(pattern, [case.id for case in cases]), 300) if cases else ""
            raise ConfigError(f"no case has the id {pattern!r}", where="select.ids", hint=hint)


def _what_there_is(cases: Iterable[Case]) -> str:
    found = Counter(f"{case.complexity.value}: {', '.join(sorted(case.tags)) or 'no tags'}" for case in cases)
    listed = "; ".join(f"{count} × {kind}" for kind, count in found.most_common(10))
    return f"there are {listed}" if listed else "there are no cases"


class Distribution(Struct, frozen=True):
    """What a suite consists of, in numbers of cases."""

    cases: int
    turns: int
    """Turns of all cases together."""
    recorded: int
    """Recorded trials."""
    by_complexity: Mapping[str, int]
    by_tag: Mapping[str, int]
    """A case with several tags counts for each; ``""`` is for cases without."""
    by_turns: Mapping[int, int]
    expects_calls: int
    """Cases that expect at least one tool call."""
    expects_no_call: int
    """Cases that state what is expected, and expect no call in any turn."""
    states_no_calls: int
    """Cases that state nothing of tool calls."""
    expects_response: int


def distribution(suite: Suite) -> Distribution:
    """How the cases of a suite are distributed."""
    cases = suite.cases
    stated = [[turn.tools for turn in case.turns if turn.tools is not None] for case in cases]
    return Distribution(
        cases=len(cases),
        turns=sum(len(case.turns) for case in cases),
        recorded=len(suite.recorded),
        by_complexity={level.value: sum(case.complexity is level for case in cases) for level in Complexity},
        by_tag=dict(sorted(Counter(tag for case in cases for tag in case.tags or ("",)).items())),
        by_turns=dict(sorted(Counter(len(case.turns) for case in cases).items())),
        expects_calls=sum(any(turns) for turns in stated),
        expects_no_call=sum(bool(turns) and not any(turns) for turns in stated),
        states_no_calls=sum(not turns for turns in stated),
        expects_response=sum(any(turn.response is not None for turn in case.turns) for case in cases),
    )
