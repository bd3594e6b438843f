"""Other forms of a trial: redacted for the record, digested for memory, stripped for storage as a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.model import (
    SILENT,
    Invocation,
    Part,
    Score,
    ToolCall,
    Trial,
    TrialError,
    Usage,
    parts_of,
    text_of,
)
from gate.records.lines import COMFORTABLE_BYTES, to_line, trial_line
from gate.records.model import Record
from gate.security.limits import MAX_LOG_CHARS, cut, shorten, tail
from gate.security.redact import Redactor

MAX_STORED_TEXT = 500
"""The most characters kept of an error's message and of any text in a tool's arguments, in a stored baseline."""
ANSWER_BYTES = 6
"""Bytes in the digest of an answer: two different answers of a case share one once in 2⁴⁸."""


_NAMES = frozenset(
    {
        *("case_id", "tag", "side", "answer", "process", "run", "kind"),
        *("id", "category", "usage", "digest", "unseen", "scorer"),
        *("source", "recording", "tools"),
    }
)
"""The fields of a trial and its parts that name things or count: they are kept as they are."""


def redacted(trial: Trial, redactor: Redactor) -> Trial:
    """Return the trial with every known secret masked in all texts from outside."""
    found: Trial = _redacted(trial, redactor)
    return replace(found, log=tail(found.log, MAX_LOG_CHARS))  # masked before it is cut: half a secret looks like none


def _redacted(value: Any, redactor: Redactor) -> Any:
    """Return a part of a trial with its texts masked; of a mapping by name, such as scores, the names are kept."""
    if isinstance(value, str):
        return redactor.redact(value)
    if isinstance(value, tuple):
        return tuple([_redacted(one, redactor) for one in value])
    if isinstance(value, Mapping):
        return {name: _redacted(held, redactor) for name, held in value.items()}
    if not isinstance(value, Struct):
        return value
    changed = {}
    for name in value.__struct_fields__:
        held = getattr(value, name)
        if name in _JSON:
            changed[name] = redactor.redact_json(held)
        elif name not in _NAMES:
            changed[name] = _redacted(held, redactor)
    return replace(value, **changed)


_JSON = ("args", "result", "details")
"""The fields that hold any JSON value, whose own keys may tell a secret."""


def to_record(trial: Trial, redactor: Redactor) -> tuple[Trial, bytes]:
    """Return the redacted trial with the digest of its answer, and its line in the record."""
    trial = with_answer_digest(trial)
    line = trial_line(trial)
    if len(line) <= COMFORTABLE_BYTES and redactor.passes(_without_usage(line), _json_values(trial)):
        return trial, line
    masked = with_answer_digest(redacted(trial, redactor))  # a secret could be guessed from its digest
    return masked, trial_line(masked)


def with_answer_digest(trial: Trial) -> Trial:
    """Return the trial with a digest of the agent's answer; without one if the agent failed or said nothing."""
    if trial.error is not None or not trial.invocations:
        return trial
    digest = blake2b(digest_size=ANSWER_BYTES, key=b"answer")
    for turn in trial.invocations:
        called = [(call.name, call.args) for call in turn.tool_calls]
        digest.update(to_line({"said": [part.text for part in turn.response], "called": called}))
    return replace(trial, answer=digest.hexdigest())


def _without_usage(line: bytes) -> str:
    """Return the line without its keys on token usage, which hold numbers; a quote inside a text would be escaped."""
    return line.decode().replace('"input_tokens":', "").replace('"output_tokens":', "")


def _json_values(trial: Trial) -> Iterator[Any]:
    for turn in trial.invocations:
        for call in turn.tool_calls:
            yield call.args
            yield call.result
    for given in trial.scores.values():
        if given.details:
            yield given.details


MAX_SHOWN_ERROR = 200
"""The most characters of a tool's error that stay in memory."""
MAX_SHOWN_LOG = 1_000
"""The most characters of a failing trial's log that stay in memory."""
ScoreDigest = tuple[str, float | None, str, str | None, tuple[tuple[str, float], ...], tuple[tuple[str, str], ...]]
"""A score's name, value, reason, error, dimensions and judges."""


def digested(trial: Trial, *, failed: bool, calls: bool = False, names: bool = False, text: int = 0) -> Trial:
    """Return a trial without the texts in its record on disk: all that a decision needs, in a tenth of the memory.

    Scores with their dimensions, usage, duration and error stay. The conversation becomes a digest, since it is only
    compared for equality. Reasons and tool calls stay if the trial ``failed``, so they can be shown; with ``calls``,
    tool calls always stay; the names and durations of timed tools always stay, with ``names`` those of all. ``text``:
    the number of characters of each response to keep.
    """
    answer = trial.answer if len(trial.invocations) == 1 else ""  # that of the only turn
    turns, scores = [], []
    for turn in trial.invocations:
        turns.append(_digested_turn(turn, answer, calls=failed or calls, names=names, text=text))
    for name, given in trial.scores.items():
        reason, dimensions = "", dict[str, float]()
        if failed or given.value is None:
            reason = given.reason
        if given.details:
            dimensions = dict(given.dimensions)
        scores.append((name, given.value, reason, given.error, tuple(dimensions.items()), given.judges))
    log = ""
    if failed:
        log = tail(trial.log, MAX_SHOWN_LOG)
    earlier = tuple(map(_usages_of, trial.earlier))
    return replace(trial, invocations=tuple(turns), scores=_shared_scores(tuple(scores)), log=log, earlier=earlier)


def bare(trial: Trial) -> Trial:
    """Return the part of a recorded trial that tells how the run goes on: its end, its duration and its usage."""
    return Trial(
        trial.case_id,
        trial.number,
        invocations=_usages_of(trial.invocations),
        error=trial.error,
        duration=trial.duration,
    )


def _usages_of(attempt: tuple[Invocation, ...]) -> tuple[Invocation, ...]:
    return tuple([Invocation(usage=turn.usage) for turn in attempt])


def _digested_turn(turn: Invocation, answer: str, *, calls: bool, names: bool, text: int) -> Invocation:
    """Return a turn as `digested` keeps it; ``answer`` is the digest of its texts and calls, empty if it has yet to be
    computed."""
    said = turn.text
    digest = answer
    if not said:
        digest = SILENT
    elif not answer:
        called = [(call.name, call.args) for call in turn.tool_calls]
        whole = f"{len(said)} {said} {called!r}".encode("utf-8", "surrogatepass")
        digest = blake2b(whole, digest_size=8).hexdigest()
    response: tuple[Part, ...] = ()
    if text:
        response = parts_of(cut(text_of(turn.response, thoughts=False), text))
    made = []
    if calls or names or any(call.duration is not None for call in turn.tool_calls):
        for call in turn.tool_calls:
            made.append(ToolCall(call.name, call.args if calls else None, duration=call.duration))
    outcomes = _shared_outcomes(tuple([(name, shorten(error, MAX_SHOWN_ERROR)) for name, error in turn.tool_outcomes]))
    if not response and not made:
        return _shared_turn(digest, turn.usage, outcomes, turn.shows_calls)
    return Invocation(
        response=response,
        tool_calls=tuple(made),
        usage=turn.usage,
        digest=digest,
        outcomes=outcomes,
        reports_calls=turn.shows_calls,
    )


@lru_cache(maxsize=1_000)
def _shared_turn(digest: str, usage: Usage | None, outcomes: tuple[tuple[str, str], ...], reports: bool) -> Invocation:
    return Invocation(usage=usage, digest=digest, outcomes=outcomes, reports_calls=reports)


@lru_cache(maxsize=1_000)
def _shared_outcomes(outcomes: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return one tuple shared by all turns with equal outcomes."""
    return outcomes


@lru_cache(maxsize=1_000)
def _shared_scores(scores: tuple[ScoreDigest, ...]) -> Mapping[str, Score]:
    """Return one mapping shared by all trials with equal scores."""
    found = {}
    for name, value, reason, error, parts, judges in scores:
        details = {"dimensions": dict(parts)} if parts else {}
        found[name] = Score(value, reason, error, details=details, judges=judges)
    return found


def strip(record: Record, redactor: Redactor | None = None) -> Record:
    """Return the form of a stored baseline: the measurements, without the conversations.

    Messages, responses, tool results, reasons and details are dropped; scores with their dimensions, usage, durations,
    and the names and redacted arguments of tools stay. Stripping twice changes nothing more.
    """
    if record.header.stripped:
        return record
    mask = redactor or Redactor()
    trials = tuple([_stripped(trial, mask) for trial in record.trials])
    plan = tuple([replace(case, responses=()) for case in record.header.plan])
    footer = record.footer
    if footer is not None:
        footer = replace(footer, terms={})
    return Record(replace(record.header, plan=plan, stripped=True), trials, footer)


def _stripped(trial: Trial, mask: Redactor) -> Trial:
    def message(text: str) -> str:
        return shorten(mask.redact(text), MAX_STORED_TEXT)

    turns, scores = [], {}
    for turn in trial.invocations:
        calls = []
        for made in turn.tool_calls:
            args = _shortened(mask.redact_json(made.args))
            calls.append(ToolCall(mask.redact(made.name), args, duration=made.duration))
        kept = Invocation(
            tool_calls=tuple(calls), usage=turn.usage, duration=turn.duration, reports_calls=turn.reports_calls
        )
        turns.append(kept)
    for name, given in trial.scores.items():
        stored = Score(given.value, error=given.error, per_turn=given.per_turn, judges=given.judges)
        if given.error is not None:
            stored = replace(stored, error=message(given.error))
        if given.details and given.dimensions:
            parts = {message(part): value for part, value in given.dimensions.items()}
            stored = replace(stored, details={"dimensions": parts})
        scores[name] = stored
    error, replay = trial.error, trial.replay
    if error is not None:
        error = TrialError(error.kind, message(error.message))
    if replay is not None:
        replay = replace(replay, difference="", tools_changed=())
    return replace(trial, invocations=tuple(turns), scores=scores, error=error, log="", replay=replay, earlier=())


def _shortened(value: Any) -> Any:
    """Return a JSON value with its long texts shortened; the redactor has already limited its nesting."""
    if isinstance(value, str):
        return shorten(value, MAX_STORED_TEXT)
    if isinstance(value, dict):
        return {key: _shortened(held) for key, held in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return value
