"""The page's contents on single cases: conversations, trajectories and scores, bounded, in compressed pieces.

The size of a page is limited. The most important cases come first; the page states which cases, and which of their
further trials, are left out.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from msgspec import Struct

from gate.decision.outcomes import holds, mark, passed
from gate.model import FULL, Case, CaseResult, Invocation, Score, Side, ToolCall, Trial, Usage, text_of
from gate.reports.html.page import encoded
from gate.reports.trials import SuiteTrials
from gate.security.limits import cut

MAX_TEXT = 4_000
"""Maximum number of characters in one message, answer or tool's result."""
MAX_REASON = 1_000
MAX_ASKED = 140
"""Maximum number of characters in the first message in the table of cases."""
MAX_VALUE = 600
"""Maximum number of characters in one argument."""
MAX_ITEMS = 40
MAX_DEPTH = 6
MAX_CALLS = 60
"""Maximum number of calls in one turn."""
MAX_TURNS = 40
MAX_PARTS = 20
"""Maximum number of votes and parts of one score."""
MAX_PAGE = 12_000_000
"""Maximum number of characters in all pieces together, compressed."""
MAX_HELD = 80_000_000
"""Maximum number of bytes of contents before compression."""
PIECE = 200_000
"""Bytes of one piece before compression: a browser unpacks one when a case is opened."""
SIDES = {"now": (6, 4), "beside": (3, 3), "before": (3, 5)}
"""Side → the numbers of failing and of passing trials to show per case. ``beside``: the base commit, run now."""
QUIET = {"now": (2, 1), "beside": (1, 1), "before": (1, 1)}
"""Side → these numbers for a case that neither fails nor passes more often than before."""
LEVEL = 4
"""The compression level: a page takes half the time of level 6, and 5 % more space."""


class _Held(Struct):
    """The kept trials of one case."""

    case: Case
    most: Mapping[str, tuple[int, int]]
    """Side → the numbers of failing and of passing trials to show."""
    trials: list[bytes] = []
    counts: dict[tuple[str, bool], int] = {}
    users: list[str] = []
    left: dict[str, int] = {}


class CaseCollector:
    """Collects trials one at a time, in any order. More trials are shown of the cases in ``telling``."""

    def __init__(self, trials: SuiteTrials, telling: Set[str]) -> None:
        self._criteria = tuple(trials.criteria)
        self._held: dict[str, _Held] = {}
        for case in trials.cases:
            self._held[case.id] = _Held(case, SIDES if case.id in telling else QUIET)
        self._bytes = 0
        self.failing: dict[str, list[str]] = {}
        """Case → the criteria that failed in at least one of its trials."""
        self.pieces: list[str] = []
        """Deflated JSON in base64; each an object from the number of a case to its content."""
        self.where: dict[str, int] = {}
        """Case → the number of its piece."""
        self.left_out = 0
        """Number of cases without contents for lack of space."""
        self._space = MAX_PAGE
        for trial in trials.read():
            side = "now" if trial.side is Side.CANDIDATE else "beside"
            self._take(trial, side)
        for trial in trials.baseline:
            self._take(trial, "before")

    def _take(self, trial: Trial, side: str) -> None:
        held = self._held.get(trial.case_id)
        if held is None:
            return
        outcome, meets = passed(trial, held.case, self._criteria), self._meets(trial, held.case)
        kind = (side, outcome is not False)
        if side == "now" and outcome is not True:
            names = self.failing.setdefault(trial.case_id, [])
            names += [name for name, is_met in meets.items() if not is_met and name not in names]
        shown = held.counts.get(kind, 0)
        if shown >= held.most[side][kind[1]] or self._bytes > MAX_HELD:
            held.left[side] = held.left.get(side, 0) + 1
            return
        held.counts[kind] = shown + 1
        line = shown_trial(trial, side, outcome, meets, held.users)
        self._bytes += len(line)
        held.trials.append(line)

    def _meets(self, trial: Trial, case: Case) -> dict[str, bool]:
        """Return for each criterion that judges single trials, and has a value, whether the trial meets it."""
        found = {}
        for criterion in self._criteria:
            score = trial.scores.get(criterion.name)
            if score is None or score.value is None:
                continue
            if criterion.hard or mark(criterion, case) is not None:
                found[criterion.name] = holds(criterion, case, score) is True
        return found

    def pack(self, cases: Sequence[CaseResult], order: Iterable[CaseResult]) -> None:
        """Pack all contents in pieces; the cases that come first in ``order`` get space first."""
        number = {case.id: at for at, case in enumerate(cases)}
        waiting: dict[str, bytes] = {}
        for case in order:
            held = self._held.get(case.id)
            if held is None or not (held.trials or held.left):
                continue
            if self._space < 0:
                self.left_out += 1
                continue
            waiting[case.id] = b'"%d":%s' % (number[case.id], self._content(held, case))
            if sum(map(len, waiting.values())) >= PIECE:
                self._add_piece(waiting)
                waiting = {}
        if waiting:
            self._add_piece(waiting)

    def _add_piece(self, contents: Mapping[str, bytes]) -> None:
        """Add a piece with these contents if there is space for it; after one that does not fit, none is added."""
        piece = base64.b64encode(zlib.compress(b"{%s}" % b",".join(contents.values()), LEVEL)).decode()
        self._space -= len(piece)
        if self._space < 0:
            self.left_out += len(contents)
            return
        for case_id in contents:
            self.where[case_id] = len(self.pieces)
        self.pieces.append(piece)

    def asked(self, case_id: str) -> str:
        """Return the beginning of a case's first message; empty if it has no trial."""
        held = self._held.get(case_id)
        if held is None or not held.users:
            return ""
        return cut(" ".join(held.users[0].split()), MAX_ASKED)

    def _content(self, held: _Held, case: CaseResult) -> bytes:
        expected: list[list[Shown] | None] = []
        if any(calls is not None for calls in case.expected[:MAX_TURNS]):
            for calls in case.expected[:MAX_TURNS]:
                expected.append(None if calls is None else _calls(calls))
        wanted: list[str | None] = []
        for text in case.expected_text[:MAX_TURNS]:
            wanted.append(None if text is None else cut(text, MAX_TEXT))
        head = {
            "users": held.users,
            "expected": expected,
            "wanted": wanted,
            "left": held.left,
            "log": cut(case.log, 2 * MAX_TEXT),
        }
        return b'%s,"trials":[%s]}' % (encoded(head)[:-1], b",".join(held.trials))


# --- single trials --------------------------------------------------------------------------------

Shown = dict[str, Any]
"""An object for ``report.js``, which takes a missing key for an unknown value, an empty text, or nothing left out."""


def _known(**values: Any) -> Shown:
    return {name: value for name, value in values.items() if value is not None}


def shown_trial(trial: Trial, side: str, outcome: bool | None, meets: Mapping[str, bool], users: list[str]) -> bytes:
    """Return a trial for the page, as JSON. ``users`` has the messages of the case so far, and is extended."""
    usage = trial.usage or Usage()
    for turn in trial.invocations[len(users) : MAX_TURNS]:
        users.append(cut(turn.user, MAX_TEXT))
    scores = {}
    for name, score in trial.scores.items():
        scores[cut(name, 200)] = _score(score, meets.get(name))
    error = None
    if trial.error is not None:
        error = cut(f"{trial.error.kind.value}: {trial.error.message}", MAX_REASON)
    shown = _known(
        side=side,
        number=trial.number,
        passed=outcome,
        tag=None if trial.tag == FULL else trial.tag,
        error=error,
        seconds=trial.duration,
        usd=usage.cost_usd,
        tokens=usage.tokens,
        model=cut(_model(trial), 100) or None,
        turns=[_turn(turn, user) for turn, user in zip(trial.invocations, users, strict=False)] or None,
        scores=scores or None,
        more=max(0, len(trial.invocations) - MAX_TURNS) or None,
    )
    return encoded(shown)


def _model(trial: Trial) -> str:
    """Return the model that answered the first turn with a known usage; empty if unknown."""
    for turn in trial.invocations:
        if turn.usage is not None:
            return turn.usage.model or ""
    return ""


def _turn(turn: Invocation, user: str) -> Shown:
    """Return a turn, with the user's message if it differs from ``user``, that of the case's first trial."""
    asked = cut(turn.user, MAX_TEXT)
    said = "\n".join([part.text for part in turn.response if not part.thought])
    thought = "\n".join([part.text for part in turn.response if part.thought])
    return _known(
        user=None if asked == user else asked or None,
        said=cut(said, MAX_TEXT) or None,
        thought=cut(thought, MAX_TEXT) or None,
        before=cut(text_of(turn.intermediate), MAX_TEXT) or None,
        calls=_calls(turn.tool_calls or ()) or None,
        seconds=turn.duration,
        more=max(0, len(turn.tool_calls or ()) - MAX_CALLS) or None,
    )


def _calls(calls: Sequence[ToolCall]) -> list[Shown]:
    return list(map(_call, calls[:MAX_CALLS]))


def _call(call: ToolCall) -> Shown:
    name, result = call.name, call.result
    if not name and call.category:
        name = f"any {call.category} tool"
    if isinstance(result, str):
        result = cut(result, MAX_TEXT)
    else:
        result = _bounded(result)
    return _known(
        name=cut(name or "(no name)", 200),
        args=_bounded(call.args),
        result=result,
        error=cut(call.error or "", MAX_REASON) or None,
        seconds=call.duration,
        any=call.any_args or None,
    )


def _bounded(value: Any, depth: int = 0) -> Any:
    """Return a JSON value bounded in size, without numbers that a browser would round."""
    if isinstance(value, str):
        return cut(value, MAX_VALUE)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    if not isinstance(value, dict | list | tuple):
        return cut(str(value), 100)
    if depth >= MAX_DEPTH:
        return "…"
    more = len(value) - MAX_ITEMS
    if isinstance(value, dict):
        kept = {}
        for key, held in islice(value.items(), MAX_ITEMS):
            kept[cut(str(key), 100)] = _bounded(held, depth + 1)
        if more > 0:
            kept["…"] = f"{more} more"
        return kept
    items = [_bounded(item, depth + 1) for item in value[:MAX_ITEMS]]
    if more > 0:
        items.append(f"… {more} more")
    return items


def _score(score: Score, is_met: bool | None) -> Shown:
    votes, parts = [], {}
    if score.details:
        held = score.details.get("votes")
        if isinstance(held, list | tuple):
            votes = [vote for vote in held[:MAX_PARTS] if isinstance(vote, int | float)]
        parts = {cut(name, 100): value for name, value in islice(score.dimensions.items(), MAX_PARTS)}
    return _known(
        value=score.value,
        holds=is_met,
        reason=cut(score.reason, MAX_REASON) or None,
        error=cut(score.error or "", MAX_REASON) or None,
        votes=votes or None,
        parts=parts or None,
    )
