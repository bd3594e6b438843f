"""A trial in numbers, as a history needs it, without any texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from gate.model.bounds import Amount, Ordinal
from gate.model.conversation import Usage, total_usage
from gate.model.trial import ENDS, End, ErrorKind, Models, Score, Side


class MeasuredTurn(Struct, frozen=True, gc=False):
    """One turn of a trial."""

    usage: Usage | None = None


class MeasuredTrial(Struct, frozen=True, gc=False):
    """One execution of a case, kept in the form of its record: a history reads a hundred thousand of them."""

    case_id: str = field(name="case")
    number: Ordinal = field(name="n")
    tag: str | None = None
    """None means `FULL`."""
    side: Side = Side.CANDIDATE
    scores: Mapping[str, float | Score | None] = {}
    """By criterion name. A number is short for a `Score` of that value, None for one that does not apply."""
    error: tuple[ErrorKind, str] | None = None
    duration: Amount | None = None
    turns: tuple[MeasuredTurn, ...] = ()
    users: Models = ()
    """The models that played the user."""

    @property
    def end(self) -> End:
        return End.ANSWERED if self.error is None else ENDS[self.error[0]]

    @property
    def usage(self) -> Usage | None:
        """Return the total usage of the turns; None if no turn reported any."""
        if len(self.turns) == 1:
            return self.turns[0].usage
        return total_usage(turn.usage for turn in self.turns)


def values_of(name: str, trials: Iterable[MeasuredTrial]) -> list[float | None]:
    """Return each trial's value of a criterion; None if it has none."""
    values = []
    for trial in trials:
        score = trial.scores.get(name)
        values.append(score.value if isinstance(score, Score) else score)
    return values
