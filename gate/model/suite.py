"""Cases with their turns, expectations and rubrics, and the suite that contains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from enum import Enum
from typing import Any

from msgspec import Struct, field, structs

from gate.model.conversation import Invocation, Part, ToolCall


class Complexity(str, Enum):
    """The difficulty of a case in its author's view; medium by default."""

    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"


class Rubric(Struct, frozen=True):
    """One property that a judge checks, as the author wrote it."""

    id: str
    text: str
    type: str | None = None
    description: str | None = None


class Turn(Struct, frozen=True, gc=False):
    """One turn as the author wrote it."""

    user: str
    tools: tuple[ToolCall, ...] | None = None
    """Expected calls in order; empty means that no call is expected, None that nothing is stated."""
    response: tuple[Part, ...] | None = None
    """The expected response; None if nothing is stated."""
    rubrics: tuple[Rubric, ...] = ()
    attached: tuple[Mapping[str, Any], ...] = ()
    """The user's parts in addition to the text, in google-genai's form, ``{"inline_data": {…}}``."""


class Behavior(Struct, frozen=True):
    """One way in which a persona behaves."""

    name: str
    description: str = ""
    instructions: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    """Signs for a judge that a simulated user violates this behavior."""


class Persona(Struct, frozen=True):
    """The character of a simulated user."""

    id: str
    description: str = ""
    behaviors: tuple[Behavior, ...] = ()


class Scenario(Struct, frozen=True):
    """A conversation led by a simulated user: its first message and its goals."""

    start: str
    plan: str
    persona: Persona | None = None
    max_turns: int | None = None
    """The most turns in this conversation, including the first; None: the configuration's number."""


class Location(Struct, frozen=True, gc=False):
    """A place in a file: a path relative to the working directory, and a line from 1."""

    path: str
    line: int | None = None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


class Case(Struct, frozen=True, gc=False):
    """One conversation to hold with the agent."""

    id: str
    turns: tuple[Turn, ...]
    tags: frozenset[str] = frozenset()
    complexity: Complexity = Complexity.MEDIUM
    metadata: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    """Initial session state, handed to the agent."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options for this case alone, by criterion, which override the criterion's (``contains``, ``forbidden_tools``
    …)."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """This case's own thresholds, by criterion."""
    rubrics: tuple[Rubric, ...] = ()
    app: Mapping[str, str] = field(default_factory=dict)
    """ADK's session input: ``app_name`` and ``user_id``, if given."""
    location: Location | None = None
    content: Any = None
    """The content behind the case's fingerprint; None means the fields above."""
    cluster: str = ""
    """The group of cases that share a fixture, so that their trials in one epoch depend on one another."""
    scenario: Scenario | None = None
    """The scenario of a case with a simulated user; ``turns`` then holds only the first turn."""

    def as_held(self, said: Sequence[Invocation]) -> Case:
        """Return the case with the turns of a simulated user, without expectations; any other case is unchanged."""
        if self.scenario is None or len(said) < 2:
            return self
        return structs.replace(self, turns=(self.turns[0], *(Turn(turn.user) for turn in said[1:])))


class RecordedTrial(Struct, frozen=True, gc=False):
    """An execution recorded outside the gate, as read from a file next to its case."""

    case_id: str
    number: int
    invocations: Sequence[Invocation]
    error: str | None = None


class Suite(Struct, frozen=True):
    """The cases that are run, judged and compared together."""

    id: str
    """The suite's name in baselines and comments; text, never a file name."""
    cases: tuple[Case, ...]
    criteria: Mapping[str, Any] | None = None
    """Raw criteria of a ``test_config.json`` beside the files, if there is one."""
    recorded: tuple[RecordedTrial, ...] = ()
    """Trials that came with the cases, for ``replay``."""
    source: str = ""
    """Its place, for messages."""
    brought: Mapping[str, Any] | None = None
    """Raw criteria from the files of cases themselves; those in a configuration refine them."""
    notes: tuple[str, ...] = ()
    """Notes on how the suite was read."""
    each: Mapping[str, float] = {}
    """Criterion → the threshold of each case that states none, by the default of the files' format."""

    def under(self, criteria: Mapping[str, Any]) -> Suite:
        """Return the suite under a configuration's criteria, in which None removes one that the files brought.

        A case without a threshold gets its format's, unless the configuration sets the criterion. The thresholds and
        options of a removed criterion are removed, too.
        """
        removed = {name for name in self.brought or {} if name in criteria and criteria[name] is None}
        least = {name: threshold for name, threshold in self.each.items() if name not in criteria}
        if not removed and not least:
            return self
        cases = []
        for case in self.cases:
            thresholds = _without({**least, **case.thresholds}, removed)
            cases.append(structs.replace(case, thresholds=thresholds, options=_without(case.options, removed)))
        return structs.replace(self, cases=tuple(cases))


def _without(settings: Mapping[str, Any], removed: Set[str]) -> dict[str, Any]:
    return {name: held for name, held in settings.items() if name not in removed}
