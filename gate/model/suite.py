"""Cases with their turns, expectations and rubrics, and the suite that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from msgspec import Struct, field, structs

from gate.model.conversation import Invocation, Part, ToolCall


class Complexity(str, Enum):
    """The difficulty of a case as its author sees it; medium by default."""

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
    """Expected calls in order; empty means that none is expected, None that nothing is stated."""
    response: tuple[Part, ...] | None = None
    """The expected response; None where nothing is stated."""
    rubrics: tuple[Rubric, ...] = ()
    attached: tuple[Mapping[str, Any], ...] = ()
    """The user's parts beside the text, as google-genai has them, ``{"inline_data": {…}}``."""


class Behavior(Struct, frozen=True):
    """One way in which a persona behaves."""

    name: str
    description: str = ""
    instructions: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    """The signs by which a judge finds that a simulated user does not behave so."""


class Persona(Struct, frozen=True):
    """The character of a simulated user."""

    id: str
    description: str = ""
    behaviors: tuple[Behavior, ...] = ()


class Scenario(Struct, frozen=True):
    """A conversation that a simulated user holds: what it says first, and what it wants."""

    start: str
    plan: str
    persona: Persona | None = None
    max_turns: int | None = None
    """The most turns of this conversation, the first one included; None: what the configuration says."""


class Location(Struct, frozen=True, gc=False):
    """A place where something was written: a path relative to the working directory, and a line from 1."""

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
    """Per criterion: options of this case alone, laid over the criterion's (``contains``, ``forbidden_tools`` …)."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Per criterion: this case's own threshold."""
    rubrics: tuple[Rubric, ...] = ()
    app: Mapping[str, str] = field(default_factory=dict)
    """ADK's session input: ``app_name`` and ``user_id``, where given."""
    location: Location | None = None
    content: Any = None
    """The content that the case's fingerprint is taken of; None means the fields above."""
    cluster: str = ""
    """The group of cases that share a fixture, so that their trials of one epoch depend on one another."""
    scenario: Scenario | None = None
    """The scenario of a case with a simulated user; ``turns`` then holds only the first turn."""

    def as_held(self, said: Sequence[Invocation]) -> Case:
        """The case with the turns that a simulated user took, which state nothing; any other case is what it is."""
        if self.scenario is None or len(said) < 2:
            return self
        return structs.replace(self, turns=(self.turns[0], *(Turn(turn.user) for turn in said[1:])))


class RecordedTrial(Struct, frozen=True, gc=False):
    """One execution that was recorded outside the gate, as read from a file beside its case."""

    case_id: str
    number: int
    invocations: Sequence[Invocation]
    error: str | None = None
    origin: str = ""
    """Its place and its number there, for messages."""


class Suite(Struct, frozen=True):
    """The cases that are run together, judged together and compared together."""

    id: str
    """Names the suite in baselines and comments; text, never a file name."""
    cases: tuple[Case, ...]
    criteria: Mapping[str, Any] | None = None
    """Raw criteria of a ``test_config.json`` beside the files, if there is one."""
    recorded: tuple[RecordedTrial, ...] = ()
    """Trials that came with the cases, for ``replay``."""
    source: str = ""
    """Its place, for messages."""
    brought: Mapping[str, Any] | None = None
    """Raw criteria that the files of cases bring themselves; a configuration's refine them."""
    notes: tuple[str, ...] = ()
    """Notes on how the suite was read."""
