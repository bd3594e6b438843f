"""Finds repeated trials that are no draws of their own: a cache or a reused session gives one answer again and again.
Pure.

Identical answers of one run may be one draw, and then they count as one trial. They may also come from a deterministic
agent: then another run gives them too, and each counts, unless all answers are so short that chance would give them as
well. docs/dev/decisions/0018-dependent-trials.md has the reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from gate.model import FULL, REPEAT, Side, Trial

LEAST = 3
"""Steady cases that have to be repeated in a run, before it is said whether its repeats are draws of their own."""
REPRODUCED = 0.05
"""Up to this share of cases, or one of them, may answer differently in two stored runs of a deterministic agent."""
MOST = 0.5
"""The most in the stored run and this one, since a change may be why they differ."""
FRESH = 0.1
"""From this share of differing repeats on a run draws anew, whatever other runs answered."""
INDEPENDENT = 1 / 3
"""Repeats are draws of their own if they differ at least this often, as a share of how often two runs do."""

CACHED = 0.5
"""Cases of constant answers are cached, not predictable, if two runs disagree on more than this share of them."""
ANEW = 0.9
"""The least rate at which the repeats of all other cases then differ."""

SHORT = 0.3
"""From this share of pairs of cases with the same passing answer on, equal answers of two runs prove nothing."""

Session = tuple[str, bool, Side, str]
"""The run, whether it is a stored one, whose agent, and which of its processes; empty where a run is taken as one."""
Answers = Mapping[str, Mapping[Session, Sequence[Trial]]]
"""By case and session, in the order in which they were asked for."""


class Repeats(Struct, frozen=True):
    """The trials that repeat a draw that counts already."""

    dropped: frozenset[int] = frozenset()
    """The trials (by ``id``) that repeat another of their session."""
    cases: tuple[str, ...] = ()
    """The cases that they are of."""
    repeated: int = 0
    """Cases that were asked more than once in a session."""
    frozen: bool = False
    """True if this run is known to give one answer a case: asking again proves nothing."""
    untold: bool = False
    """True if asking a few cases again would tell."""
    ask: tuple[str, ...] = ()
    """The cases to ask then; empty: steady ones."""
    proven: bool = True
    """True if two runs of the baseline's agent show what its repeats are; else one more would."""
    lost: tuple[str, ...] = ()
    """Cases that passed each time and now fail each time, where none went the other way and nothing is proven: a cache
    that drew worse answers, or a deterministic agent that broke."""

    @property
    def tells(self) -> bool:
        """True if repeats were found that are no draws of their own, or asking again would say whether they are."""
        return bool(self.dropped) or self.frozen or self.untold

    def joined(self, other: Repeats) -> Repeats:
        """Return the repeats that either of two views of the same trials shows."""
        if not (self.tells and other.tells):
            return other if other.tells else self
        frozen = self.frozen or other.frozen
        return Repeats(
            self.dropped | other.dropped,
            tuple(dict.fromkeys((*self.cases, *other.cases))),
            max(self.repeated, other.repeated),
            frozen,
            (self.untold or other.untold) and not frozen,
            self.ask or other.ask,
            self.proven or other.proven,
            self.lost or other.lost,
        )


NONE = Repeats()


def repeats(stored: Sequence[Trial], trials: Sequence[Trial], steady: Callable[[Trial], bool]) -> Repeats:
    """Return the trials that are no draws of their own.

    ``steady``: whether a trial passes. Those that fail are left out where a run is judged by its answers: what a change
    broke differs from the stored answer, and may well fail with the same words each time.
    """
    if not stored and len({trial.run for trial in trials}) < 2:
        return NONE  # a single run: nothing says what another would answer
    found = _told_by(_answers(stored, trials), steady, trials)
    return found.joined(_of_processes(stored, trials, steady))


def _of_processes(stored: Sequence[Trial], trials: Sequence[Trial], steady: Callable[[Trial], bool]) -> Repeats:
    """Return the repeats if each process of the agent has a cache of its own: then a run that was held by several, as
    one that was topped up or resumed is, does not repeat itself, and each of them does."""
    if not any(trial.process for group in (stored, trials) for trial in group):
        return NONE
    answers = _answers(stored, trials, by_process=True)
    asked_again = sum(any(s[3] and len(group) > 1 for s, group in sessions.items()) for sessions in answers.values())
    return NONE if asked_again < max(1, min(LEAST, len(answers))) else _told_by(answers, steady, trials)


def _told_by(answers: Answers, steady: Callable[[Trial], bool], trials: Sequence[Trial]) -> Repeats:
    """Return the repeats within sessions, and those among the answers of different ones."""
    if not answers:
        return NONE
    passing = {c: {s: group for s, group in found.items() if steady(group[0])} for c, found in answers.items()}
    differing, own = _rate_of_difference(passing)
    if differing <= (max(REPRODUCED, 1 / len(answers)) if own else MOST):
        return _of_outcomes(answers, steady, trials) if _says_little(passing) else NONE
    within = {side: _within(passing, side) for side in Side}
    pooled = [*within[Side.CANDIDATE], *within[Side.BASELINE]]
    least = min(LEAST, len(answers))
    told = {side: within[side] if len(within[side]) >= least else pooled for side in Side}
    frozen = {side: len(told[side]) < least or _is_frozen(told[side], differing, own) for side in Side}
    known = len(within[Side.CANDIDATE]) >= least or any(trial.tag == REPEAT for trial in trials)
    partly = frozenset() if all(frozen.values()) else _cached_cases(answers)
    return _repeated(answers, steady, frozen, partly, known=known, own=own)


def _of_outcomes(answers: Answers, steady: Callable[[Trial], bool], trials: Sequence[Trial]) -> Repeats:
    """Return the repeats if an answer says no more than whether it passes, so that runs agree on it by chance.

    What is left are the cases that come out otherwise in another run. A change may break any, so only those count that
    differ between two runs of the baseline's agent, or that failed there and now do not. If such cases never differ
    within a run, a cache answers; without one of them the agent is taken to be deterministic.
    """
    varied = tuple(case_id for case_id, sessions in answers.items() if _varies(sessions, steady))
    if not varied:
        return NONE
    repeated = {c: s for c, s in answers.items() if any(len(group) > 1 for group in s.values())}
    known = len(set(varied) & set(repeated)) >= min(LEAST, len(varied)) or any(t.tag == REPEAT for t in trials)
    within = [_differing(group) for s in repeated.values() for group in s.values() if len(group) > 1]
    differing = [share for s in repeated.values() if (share := _disagreement(_runs(s))) is not None]
    if known and within and fmean(within) >= INDEPENDENT * fmean(differing or [0.0]):
        return NONE
    frozen = dict.fromkeys(Side, True)
    found = _repeated(answers, steady, frozen, frozenset(), known=known, own=_stored_twice(answers))
    return replace(found, ask=varied if found.untold else ())


def _repeated(
    answers: Answers,
    steady: Callable[[Trial], bool],
    frozen: Mapping[Side, bool],
    partly: frozenset[str],
    *,
    known: bool,
    own: bool,
) -> Repeats:
    """Return the trials to drop: constant answers of frozen sides, and of the cases that a partial cache answers."""
    dropped = [
        (case_id, trial)
        for case_id, sessions in answers.items()
        if not _unanimous(sessions)
        for session, group in sessions.items()
        if (frozen[session[2]] or case_id in partly) and _is_constant(group)
        for trial in _but_one(group)
    ]
    is_frozen = frozen[Side.CANDIDATE] and known
    return Repeats(
        frozenset(id(trial) for _, trial in dropped),
        tuple(dict.fromkeys(case_id for case_id, _ in dropped)),
        sum(any(len(group) > 1 for group in sessions.values()) for sessions in answers.values()),
        is_frozen,
        frozen[Side.CANDIDATE] and not known,
        proven=own,
        lost=_one_way(answers, steady) if is_frozen and not _stored_twice(answers) else (),
    )


def _says_little(passing: Answers) -> bool:
    """True if passing answers of different cases are often the same, as "yes" and "no" are."""
    first = [next(iter(sessions.values()))[0].answer for sessions in passing.values() if sessions]
    n = len(first)
    return n > 1 and sum(k * (k - 1) for k in Counter(first).values()) >= SHORT * n * (n - 1)


def _stored_twice(answers: Answers) -> bool:
    """True if two stored runs say what the agent's repeats are."""
    return sum(len(_of_store(sessions)) > 1 for sessions in answers.values()) >= min(LEAST, len(answers))


def _of_store(sessions: Mapping[Session, Sequence[Trial]]) -> list[Sequence[Trial]]:
    return [group for (_, of_store, *_), group in sessions.items() if of_store]


def _varies(sessions: Mapping[Session, Sequence[Trial]], steady: Callable[[Trial], bool]) -> bool:
    """True if runs come out differently, and the change cannot have broken it."""
    before = [[steady(trial) for trial in group] for group in _of_store(sessions)]
    if not before:
        return False
    now = [steady(trial) for session, group in sessions.items() if not session[1] for trial in group]
    differ = any(any(group) for group in before) and not all(any(group) for group in before)
    return differ or (not any(map(any, before)) and any(now))


def _one_way(answers: Answers, steady: Callable[[Trial], bool]) -> tuple[str, ...]:
    """The cases that passed in each stored trial and fail in each new one; none, if any went the other way."""
    lost = []
    for case_id, sessions in answers.items():
        before = [steady(trial) for group in _of_store(sessions) for trial in group]
        now = [
            steady(t)
            for (_, of_store, side, _), g in sessions.items()
            if not of_store
            for t in g
            if side is Side.CANDIDATE
        ]
        if before and now and not any(before) and all(now):
            return ()
        if before and now and all(before) and not any(now):
            lost.append(case_id)
    return tuple(lost)


def _answers(stored: Iterable[Trial], trials: Iterable[Trial], *, by_process: bool = False) -> Answers:
    """The answers that were drawn: what was replayed is equal by design, and says nothing of repeats."""
    found: dict[str, dict[Session, list[Trial]]] = {}
    for of_store, group in ((True, stored), (False, trials)):
        for trial in group:
            if trial.answer and trial.answered and not (trial.replay is not None and trial.replay.replayed):
                process = trial.process if by_process else ""
                session = (trial.run, of_store, Side.BASELINE if of_store else trial.side, process)
                found.setdefault(trial.case_id, {}).setdefault(session, []).append(trial)
    return found


def _rate_of_difference(answers: Answers) -> tuple[float, bool]:
    """Return the rate at which two runs answer a case differently, and whether it is of runs of the base's agent alone.

    Where two of them are known, a change has no part in it. 0 where no case was answered in two.
    """
    own = [
        _disagreement([group for s, group in sessions.items() if s[2] is Side.BASELINE])
        for sessions in answers.values()
    ]
    known = [share for share in own if share is not None]
    if len(known) >= min(LEAST, len(answers)):
        return fmean(known), True
    every = [_disagreement(_runs(sessions)) for sessions in answers.values()]
    known = [share for share in every if share is not None]
    return (fmean(known) if known else 0.0), False


def _runs(sessions: Mapping[Session, Sequence[Trial]]) -> list[Sequence[Trial]]:
    """The answers by run: both sides of one run are one job, whose cache both may share."""
    runs: dict[tuple[str, bool, str], list[Trial]] = {}
    for (run, of_store, _, process), group in sessions.items():
        runs.setdefault((run, of_store, process), []).extend(group)
    return list(runs.values())


def _disagreement(runs: Sequence[Sequence[Trial]]) -> float | None:
    """The share of pairs of trials, of two runs each, that answer differently; all pairs of runs weigh the same."""
    if len(runs) < 2:
        return None
    shares: dict[str, float] = {}
    squares = 0.0
    for group in runs:
        for answer, n in Counter(trial.answer for trial in group).items():
            shares[answer] = shares.get(answer, 0.0) + n / len(group)
            squares += (n / len(group)) ** 2
    agreeing = sum(share**2 for share in shares.values()) - squares
    return 1 - agreeing / (len(runs) * (len(runs) - 1))


def _within(answers: Answers, side: Side) -> list[float]:
    """Return the share of pairs of trials that answer differently, of each case that a session repeated."""
    found = []
    for sessions in answers.values():
        for (_, _, whose, _), group in sessions.items():
            if whose is side and len(group) > 1:
                found.append(_differing(group))
    return found


def _is_frozen(within: Sequence[float], differing: float, of_one_agent: bool) -> bool:
    """True if repeats differ too seldom for draws of their own."""
    share = fmean(within)
    return share < INDEPENDENT * differing and (of_one_agent or share < FRESH)


def _cached_cases(answers: Answers) -> frozenset[str]:
    """The cases that a cache answers, where it answers some of them only.

    Their repeats never differ, those of all other cases nearly always do, and yet two runs answer them differently:
    a case that is merely predictable would be answered alike by both.
    """
    found, varying = {}, []
    for case_id, sessions in answers.items():
        repeated = [group for group in sessions.values() if len(group) > 1]
        if all(map(_is_constant, repeated)) and any(
            of_store and len(g) > 1 for (_, of_store, *_), g in sessions.items()
        ):
            found[case_id] = _disagreement(_runs(sessions))
        varying += [_differing(group) for group in repeated if not _is_constant(group)]
    known = [share for share in found.values() if share is not None]
    if len(known) < LEAST or fmean(known) <= CACHED or not varying or fmean(varying) < ANEW:
        return frozenset()
    return frozenset(found)


def _is_constant(group: Sequence[Trial]) -> bool:
    return len({trial.answer for trial in group}) == 1


def _differing(group: Sequence[Trial]) -> float:
    """The share of pairs of these trials, of which there are at least two, that answer differently."""
    n = len(group)
    return 1 - sum(k * (k - 1) for k in Counter(trial.answer for trial in group).values()) / (n * (n - 1))


def _unanimous(sessions: Mapping[Session, Sequence[Trial]]) -> bool:
    """True if several runs gave the same answer, and none another: it is reproduced."""
    return len(_runs(sessions)) > 1 and len({t.answer for group in sessions.values() for t in group}) == 1


def _but_one(group: Sequence[Trial]) -> list[Trial]:
    """All but the trial that stands for them: the first of an epoch that lacks no score."""
    first = min(group, key=lambda t: (t.tag != FULL, any(s.error for s in t.scores.values()), t.round, t.number))
    return [trial for trial in group if trial is not first]
