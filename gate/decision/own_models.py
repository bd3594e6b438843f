"""The models that the gate itself asks for a measurement: the judges of a score, and the model that plays the user.

A name such as ``x-latest`` leads to another model one day. What one model measured is not compared with what another
did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set

from gate.model import MeasuredTrial, Score, Trial

OwnModels = Mapping[str, Set[tuple[str, str]]]
"""By criterion, the models that were asked, each with the names by which it answered."""


def judges_of(trials: Iterable[Trial | MeasuredTrial]) -> OwnModels:
    """Return the judges of the trials' scores."""
    found: dict[str, set[tuple[str, str]]] = {}
    for trial in trials:
        for criterion, score in trial.scores.items():
            if isinstance(score, Score) and score.judges:
                found.setdefault(criterion, set()).update(score.judges)
    return found


def own_models_of(trials: Iterable[Trial | MeasuredTrial]) -> OwnModels:
    """Return every model that shaped the trials' scores: their judges, and the models that played the user."""
    trials = list(trials)
    found = {criterion: set(judges) for criterion, judges in judges_of(trials).items()}
    for trial in trials:
        if trial.users:
            for criterion in trial.scores:
                found.setdefault(criterion, set()).update(trial.users)
    return found


def moved(now: Collection[tuple[str, str]], then: Collection[tuple[str, str]]) -> list[str]:
    """Return the names, asked on both sides, that are known to lead to another model now.

    A further juror may be asked on one side alone, and a criterion without a case left asks nobody.
    """
    both = dict(now).keys() & dict(then).keys()
    return sorted({asked for asked, _ in {*now} ^ {*then} if asked in both})
