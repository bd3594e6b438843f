"""Finds copies: repeated trials that are no independent draws, as a cache or a reused session answered. Pure.

Identical answers within a run may be one draw; then they count as one trial. They may also come from a deterministic
agent: then another run gives them, too, and each counts, unless all answers are so short that runs would agree by
chance. docs/dev/decisions/0018-dependent-trials.md has the reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gate.model import FULL, REPEAT, Side, Trial
from gate.model.finding import CaseTally

LEAST = 3
"""Minimum number of steady cases repeated in a run before its repeats are judged."""
REPRODUCED = 0.05
"""Maximum share of cases (at least one case) that two stored runs of a deterministic agent may answer differently."""
MOST = 0.5
"""The maximum between the stored run and this one, since the change may cause the differences."""
FRESH = 0.1
"""With at least this share of differing repeats a run draws anew, whatever other runs answered."""
INDEPENDENT = 1 / 3
"""Copies are independent draws if they differ at least this often, relative to how often two runs differ."""
CACHED = 0.5
"""Cases with constant answers are cached, not predictable, if two runs disagree on more than this share of them."""
ANEW = 0.9
"""Minimum rate at which the repeats of all other cases must then differ."""
SHORT = 0.3
"""If at least this share of pairs of cases has the same passing answer, equal answers of two runs prove nothing."""


class AgentSession(NamedTuple):
    """The trials of one run and one side, which may share a cache."""

    run: str
    of_store: bool
    """True if the run is stored."""
    side: Side
    """The side to which the agent belongs."""
    process: str
    """The agent's process; empty to treat the run as one process."""


Trials = Sequence[Trial]
OfCase = Mapping[AgentSession, Trials]
"""The answers of one case by session, in the order of the trials."""
Answers = Mapping[str, OfCase]
"""The answers by case."""
Steady = Callable[[Trial], bool]
"""True if a trial passes."""


class Copies(Struct, frozen=True):
    """The trials that repeat a draw that is already counted."""

    dropped: frozenset[int] = frozenset()
    """The trials (by ``id``) that repeat another of their session."""
    cases: tuple[str, ...] = ()
    """The cases of these trials."""
    repeated: int = 0
    """Number of cases that ran more than once in a session."""
    frozen: bool = False
    """True if this run is known to give one answer per case: reruns prove nothing."""
    untold: bool = False
    """True if rerunning a few cases would settle the question."""
    ask: tuple[str, ...] = ()
    """The cases to rerun for that; empty for steady ones."""
    proven: bool = True
    """True if two runs of the baseline's agent show the nature of its repeats; else one more run would."""
    lost: tuple[CaseTally, ...] = ()
    """Cases that always passed and now always fail, if none went the other way and nothing is proven: either a cache
    drew worse answers, or a deterministic agent broke."""

    @property
    def tells(self) -> bool:
        """True if there are copies, or reruns would settle whether there are."""
        return bool(self.dropped) or self.frozen or self.untold

    def joined(self, other: Copies) -> Copies:
        """Return the copies shown by either of two views of the same trials."""
        if not other.tells:
            return self
        if not self.tells:
            return other
        frozen = self.frozen or other.frozen
        return Copies(
            self.dropped | other.dropped,
            tuple(dict.fromkeys((*self.cases, *other.cases))),
            max(self.repeated, other.repeated),
            frozen,
            (self.untold or other.untold) and not frozen,
            self.ask or other.ask,
            self.proven or other.proven,
            self.lost or other.lost,
        )


NONE = Copies()


def copies_among(stored: Trials, trials: Trials, steady: Steady) -> Copies:
    """Return the trials that are not independent draws.

    Failing trials are left out when a run is judged by its answers: a case that the change broke differs from the
    stored answer, and may well fail with the same words each time.

    Each process of the agent may have its own cache: a run with several processes, such as one that was topped up or
    resumed, may then differ within itself although each process repeats itself.
    """
    if not stored and len({trial.run for trial in trials}) < 2:
        return NONE  # with a single run, nothing shows how another would answer
    found = _told_by(_answers(stored, trials, by_process=False), steady, trials)
    if not any(trial.process for trial in (*stored, *trials)):
        return found
    answers, asked_again = _answers(stored, trials, by_process=True), 0
    for sessions in answers.values():
        asked_again += any(session.process and len(group) > 1 for session, group in sessions.items())
    if asked_again < max(1, min(LEAST, len(answers))):
        return found
    return found.joined(_told_by(answers, steady, trials))


def _told_by(answers: Answers, steady: Steady, trials: Trials) -> Copies:
    """Return the copies within sessions, judged by comparing answers within and between runs."""
    if not answers:
        return NONE
    passing = {}
    for case_id, sessions in answers.items():
        passing[case_id] = {session: group for session, group in sessions.items() if steady(group[0])}
    differing, is_of_base = _rate_of_difference(passing)
    most = MOST
    if is_of_base:
        most = max(REPRODUCED, 1 / len(answers))
    if differing <= most:
        if _says_little(passing):
            return _of_outcomes(answers, steady, trials)
        return NONE
    within: dict[Side, list[float]] = {side: [] for side in Side}
    for sessions in passing.values():
        for session, group in sessions.items():
            if len(group) > 1:
                within[session.side].append(_differing(group))
    pooled = list(chain.from_iterable(within.values()))
    least = min(LEAST, len(answers))
    frozen = {}
    for side, of_side in within.items():
        shares = of_side
        if len(of_side) < least:
            shares = pooled
        frozen[side] = len(shares) < least or _differ_too_seldom(shares, differing, of_one_agent=is_of_base)
    is_known = len(within[Side.CANDIDATE]) >= least or any(trial.tag == REPEAT for trial in trials)
    partly: frozenset[str] = frozenset()
    if not all(frozen.values()):
        partly = _cached_cases(answers)
    return _copies(answers, steady, frozen, partly, is_known=is_known, proven=is_of_base)


def _of_outcomes(answers: Answers, steady: Steady, trials: Trials) -> Copies:
    """Return the copies if answers show little more than pass or fail, so that runs agree on them by chance.

    The remaining evidence is cases whose outcome varies between runs. A change may break any case, so cases only count
    if they differ between two runs of the baseline's agent, or failed there and now pass. If such cases never differ
    within a run, a cache answers; if there are none, the agent is taken to be deterministic.
    """
    varied = [case_id for case_id, sessions in answers.items() if _varies(sessions, steady)]
    if not varied:
        return NONE
    within: list[float] = []
    between = []
    known = 0
    for case_id, sessions in answers.items():
        repeats = _repeated(sessions)
        if not repeats:
            continue
        known += case_id in varied
        within += map(_differing, repeats)
        share = _disagreement(_runs(sessions))
        if share is not None:
            between.append(share)
    is_known = known >= min(LEAST, len(varied)) or any(trial.tag == REPEAT for trial in trials)
    if is_known and within and fmean(within) >= INDEPENDENT * fmean(between or [0.0]):
        return NONE
    frozen = dict.fromkeys(Side, True)
    proven = _stored_twice(answers)
    found = _copies(answers, steady, frozen, frozenset(), is_known=is_known, proven=proven)
    if found.untold:
        return replace(found, ask=tuple(varied))
    return found


def _copies(
    answers: Answers,
    steady: Steady,
    frozen: Mapping[Side, bool],
    partly: frozenset[str],
    *,
    is_known: bool,
    proven: bool,
) -> Copies:
    """Return the trials to drop: constant answers of frozen sides, and of cases that a partial cache answers."""
    dropped: set[int] = set()
    cases = []
    for case_id, sessions in answers.items():
        if len(_runs(sessions)) > 1 and _is_constant(list(chain.from_iterable(sessions.values()))):
            continue  # several runs gave the same answer, and none gave another
        copies: list[Trial] = []
        for session, group in sessions.items():
            if (frozen[session.side] or case_id in partly) and _is_constant(group):
                copies += _but_one(group)
        if copies:
            cases.append(case_id)
            dropped.update(id(trial) for trial in copies)
    is_frozen = frozen[Side.CANDIDATE] and is_known
    lost: tuple[CaseTally, ...] = ()
    if is_frozen and not _stored_twice(answers):
        lost = _lost_one_way(answers, steady)
    return Copies(
        frozenset(dropped),
        tuple(cases),
        sum([bool(_repeated(sessions)) for sessions in answers.values()]),
        is_frozen,
        frozen[Side.CANDIDATE] and not is_known,
        proven=proven,
        lost=lost,
    )


# --- the answers ----------------------------------------------------------------------------------


def _answers(stored: Iterable[Trial], trials: Iterable[Trial], *, by_process: bool) -> Answers:
    """Return the drawn answers, without replays: these are equal by design and show nothing about repeats."""
    found: dict[str, dict[AgentSession, list[Trial]]] = {}
    for of_store, group in ((True, stored), (False, trials)):
        for trial in group:
            is_replayed = trial.replay is not None and trial.replay.replayed
            if not trial.answer or not trial.answered or is_replayed:
                continue
            side, process = trial.side, ""
            if of_store:
                side = Side.BASELINE
            if by_process:
                process = trial.process
            session = AgentSession(trial.run, of_store, side, process)
            found.setdefault(trial.case_id, {}).setdefault(session, []).append(trial)
    return found


def _runs(sessions: OfCase) -> list[Trials]:
    """Return the answers by run: both sides of a run are one job and may share its cache."""
    runs: dict[tuple[str, bool, str], list[Trial]] = {}
    for session, group in sessions.items():
        runs.setdefault((session.run, session.of_store, session.process), []).extend(group)
    return list(runs.values())


def _of_store(sessions: OfCase) -> list[Trials]:
    return [group for session, group in sessions.items() if session.of_store]


def _repeated(sessions: OfCase) -> list[Trials]:
    """Return the answers of each session that ran the case more than once."""
    return [group for group in sessions.values() if len(group) > 1]


def _is_constant(group: Trials) -> bool:
    return len({trial.answer for trial in group}) == 1


def _stored_twice(answers: Answers) -> bool:
    """True if two stored runs show the nature of the agent's repeats."""
    twice = [sessions for sessions in answers.values() if len(_of_store(sessions)) > 1]
    return len(twice) >= min(LEAST, len(answers))


def _but_one(group: Trials) -> list[Trial]:
    """Return all but the trial that represents them: the first of an epoch with all scores."""

    def order(trial: Trial) -> tuple[bool, bool, int, int]:
        lacks_score = any(score.error for score in trial.scores.values())
        return trial.tag != FULL, lacks_score, trial.round, trial.number

    first = min(group, key=order)
    return [trial for trial in group if trial is not first]


# --- how often answers differ ---------------------------------------------------------------------


def _rate_of_difference(answers: Answers) -> tuple[float, bool]:
    """Return the rate at which two runs answer a case differently, and True if only runs of the base's agent count.

    With two runs of that agent, the change has no influence on the rate. 0 if no case was answered in two runs.
    """
    own, every = [], []
    for sessions in answers.values():
        of_base = _disagreement([group for session, group in sessions.items() if session.side is Side.BASELINE])
        if of_base is not None:
            own.append(of_base)
        share = _disagreement(_runs(sessions))
        if share is not None:
            every.append(share)
    if len(own) >= min(LEAST, len(answers)):
        return fmean(own), True
    return fmean(every or [0.0]), False


def _disagreement(runs: Sequence[Trials]) -> float | None:
    """Return the share of pairs of trials from two different runs that answer differently; each pair of runs has the
    same weight."""
    if len(runs) < 2:
        return None
    shares: dict[str, float] = {}
    squares = 0.0
    for group in runs:
        for answer, n in Counter([trial.answer for trial in group]).items():
            shares[answer] = shares.get(answer, 0.0) + n / len(group)
            squares += (n / len(group)) ** 2
    agreeing = sum([share**2 for share in shares.values()]) - squares
    return 1 - agreeing / (len(runs) * (len(runs) - 1))


def _differing(group: Trials) -> float:
    """Return the share of pairs of these trials, at least two, that answer differently."""
    n = len(group)
    return 1 - _pairs_alike(group) / (n * (n - 1))


def _pairs_alike(group: Trials) -> int:
    """Return the number of ordered pairs of these trials with the same answer."""
    found = 0
    for n in Counter([trial.answer for trial in group]).values():
        found += n * (n - 1)
    return found


def _differ_too_seldom(repeats: Sequence[float], differing: float, *, of_one_agent: bool) -> bool:
    """True if repeats differ too seldom to be independent draws, compared with two runs."""
    share = fmean(repeats)
    return share < INDEPENDENT * differing and (of_one_agent or share < FRESH)


def _cached_cases(answers: Answers) -> frozenset[str]:
    """Return the cases that a cache answers, if it answers only some of them.

    Their repeats never differ and those of all other cases nearly always do, yet two runs answer them differently: both
    runs would give a merely predictable answer alike.
    """
    constant, disagreements, varying = [], [], []
    for case_id, sessions in answers.items():
        repeated = _repeated(sessions)
        if all(map(_is_constant, repeated)) and any(len(group) > 1 for group in _of_store(sessions)):
            constant.append(case_id)
            share = _disagreement(_runs(sessions))
            if share is not None:
                disagreements.append(share)
        varying += [_differing(group) for group in repeated if not _is_constant(group)]
    if len(disagreements) < LEAST or fmean(disagreements) <= CACHED or not varying or fmean(varying) < ANEW:
        return frozenset()
    return frozenset(constant)


# --- how outcomes differ --------------------------------------------------------------------------


def _says_little(passing: Answers) -> bool:
    """True if passing answers of different cases are often the same, like "yes" and "no"."""
    first = []
    for sessions in passing.values():
        if sessions:
            first.append(next(iter(sessions.values()))[0])
    n = len(first)
    return n > 1 and _pairs_alike(first) >= SHORT * n * (n - 1)


def _varies(sessions: OfCase, steady: Steady) -> bool:
    """True if outcomes vary between runs in a way that the change cannot have caused."""
    passed_before = [any(map(steady, group)) for group in _of_store(sessions)]
    if not passed_before:
        return False
    if any(passed_before):
        return not all(passed_before)
    later = [group for session, group in sessions.items() if not session.of_store]
    return any(map(steady, chain.from_iterable(later)))


def _lost_one_way(answers: Answers, steady: Steady) -> tuple[CaseTally, ...]:
    """Return the cases that passed in each stored trial and fail in each new one; none if any case went the other
    way."""
    lost = []
    for case_id, sessions in answers.items():
        before: list[bool] = []
        now: list[bool] = []
        for session, group in sessions.items():
            if session.of_store:
                before += map(steady, group)
            elif session.side is Side.CANDIDATE:
                now += map(steady, group)
        if before and now and not any(before) and all(now):
            return ()
        if before and now and all(before) and not any(now):
            lost.append(CaseTally(case_id, 0, len(now), len(before), len(before)))
    return tuple(lost)
