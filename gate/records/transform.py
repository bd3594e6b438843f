"""Other forms of a record: redacted, stripped for storage as a baseline, split over shards and merged again."""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any

from msgspec.structs import replace

from gate.errors import MeasureError
from gate.model import (
    SILENT,
    Invocation,
    Models,
    Part,
    Score,
    Side,
    ToolCall,
    Trial,
    TrialError,
    Usage,
    text_of,
)
from gate.records.lines import COMFORTABLE_BYTES, to_line, trial_line
from gate.records.model import Footer, Header, PlannedCase, Record, difference, footer_of
from gate.security.limits import MAX_LOG_CHARS, cut, shorten, tail
from gate.security.redact import Redactor

MAX_STORED_TEXT = 500
"""The most characters kept of an error's message and of any text in a tool's arguments, in a stored baseline."""
ANSWER_BYTES = 6
"""Bytes in the digest of an answer: two different answers of a case share one once in 2⁴⁸."""
OTHER_TERMS = "the shards ran under different criteria or settings: judge them by one configuration (gate merge -c)"
"""The reason why a merged record is not passed without another judgement."""


def redacted(trial: Trial, redactor: Redactor) -> Trial:
    """Return the trial with every known secret masked in all texts from outside."""
    text, value = redactor.redact, redactor.redact_json

    def error(said: str | None) -> str | None:
        return None if said is None else text(said)

    def parts(found: tuple[Part, ...]) -> tuple[Part, ...]:
        return tuple([Part(text(part.text), part.thought) for part in found])

    def call(made: ToolCall) -> ToolCall:
        args, result = value(made.args), value(made.result)
        return replace(made, name=text(made.name), args=args, result=result, error=error(made.error))

    def turns(given: tuple[Invocation, ...]) -> tuple[Invocation, ...]:
        found = []
        for turn in given:
            said = replace(turn, user=text(turn.user), response=parts(turn.response))
            foreign = tuple([replace(one, reason=text(one.reason)) for one in turn.foreign])
            calls = tuple(map(call, turn.tool_calls))
            found.append(replace(said, intermediate=parts(turn.intermediate), tool_calls=calls, foreign=foreign))
        return tuple(found)

    def models(found: Models) -> Models:
        return tuple([(text(asked), text(name)) for asked, name in found])

    scores = {}
    for name, given in trial.scores.items():
        scores[name] = replace(
            given,
            reason=text(given.reason),
            error=error(given.error),
            details=value(given.details),
            judges=models(given.judges),
        )
    trial = replace(trial, invocations=turns(trial.invocations), scores=scores, users=models(trial.users))
    if trial.error is not None:
        trial = replace(trial, error=TrialError(trial.error.kind, text(trial.error.message)))
    if trial.replay is not None:
        changed = tuple(map(text, trial.replay.tools_changed))
        told = replace(trial.replay, difference=text(trial.replay.difference), tools_changed=changed)
        trial = replace(trial, replay=told)
    log = tail(text(trial.log), MAX_LOG_CHARS)  # mask before cutting: half a secret is not recognized
    return replace(trial, log=log, earlier=tuple(map(turns, trial.earlier)))


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


MAX_SHOWN_LOG = 1_000
"""The most characters of a failing trial's log that stay in memory."""
CallDigest = tuple[str, Any, float | None]
TurnDigest = tuple[str, Usage | None, str, tuple[CallDigest, ...], bool]
ScoreDigest = tuple[str, float | None, str, str | None, tuple[tuple[str, float], ...], tuple[tuple[str, str], ...]]
Digest = tuple[tuple[TurnDigest, ...], tuple[ScoreDigest, ...], str, str]
"""The digest of a trial. Per turn: digest, usage, the beginning of the response, calls (name, arguments, seconds), and
a flag for whether calls are reported. Per score: name, value, reason, error, dimensions, judges. Then `Trial.answer`,
and the end of `Trial.log`."""


def digest_of(trial: Trial, *, failed: bool, calls: bool = False, names: bool = False, text: int = 0) -> Digest:
    """Return the digest of texts and scores that `digested` keeps, as plain values."""
    answer = trial.answer if len(trial.invocations) == 1 else ""  # that of the only turn
    turns, scores = [], []
    for turn in trial.invocations:
        turns.append(_turn_digest(turn, answer, calls=failed or calls, names=names, text=text))
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
    return tuple(turns), tuple(scores), trial.answer, log


def from_digest(trial: Trial, digest: Digest) -> Trial:
    """Return the trial with its content replaced by that of a digest."""
    turns, scores, answer, log = digest
    return Trial(
        trial.case_id,
        trial.number,
        trial.round,
        trial.tag,
        trial.side,
        tuple([_kept_turn(*turn) for turn in turns]),
        _shared_scores(scores),
        trial.error,
        trial.duration,
        trial.attempts,
        trial.started,
        trial.again,
        answer,
        trial.process,
        trial.run,
        log,
        trial.replay,
        trial.users,
        tuple(map(_usage_of, trial.earlier)),
    )


def _usage_of(attempt: tuple[Invocation, ...]) -> tuple[Invocation, ...]:
    return tuple([Invocation(usage=turn.usage) for turn in attempt])


def digested(trial: Trial, *, failed: bool, calls: bool = False, names: bool = False, text: int = 0) -> Trial:
    """Return a trial without the texts in its record on disk: all that a decision needs, in a tenth of the memory.

    Scores with their dimensions, usage, duration and error stay. The conversation becomes a digest, since it is only
    compared for equality. Reasons and tool calls stay if the trial ``failed``, so they can be shown; with ``calls``,
    tool calls always stay; the names and durations of timed tools always stay, with ``names`` those of all. ``text``:
    the number of characters of each response to keep.
    """
    return from_digest(trial, digest_of(trial, failed=failed, calls=calls, names=names, text=text))


def _turn_digest(turn: Invocation, answer: str, *, calls: bool, names: bool, text: int) -> TurnDigest:
    """Return the digest of a turn; ``answer`` is that of its texts and calls, empty if it has yet to be computed."""
    said = turn.text
    digest = answer
    if not said:
        digest = SILENT
    elif not answer:
        called = [(call.name, call.args) for call in turn.tool_calls]
        whole = f"{len(said)} {said} {called!r}".encode("utf-8", "surrogatepass")
        digest = blake2b(whole, digest_size=8).hexdigest()
    shown = cut(text_of(turn.response, thoughts=False), text) if text else ""
    made: tuple[CallDigest, ...] = ()
    if calls or names or any(call.duration is not None for call in turn.tool_calls):
        made = tuple([(call.name, call.args if calls else None, call.duration) for call in turn.tool_calls])
    return digest, turn.usage, shown, made, turn.shows_calls


def _kept_turn(
    digest: str, usage: Usage | None, shown: str, calls: tuple[CallDigest, ...], reports: bool
) -> Invocation:
    kept = _shared_turn(digest, usage, reports)
    if not shown and not calls:
        return kept
    response = (Part(shown),) if shown else ()
    made = tuple([ToolCall(name, args, duration=seconds) for name, args, seconds in calls])
    return replace(kept, response=response, tool_calls=made)


@lru_cache(maxsize=1_000)
def _shared_turn(digest: str, usage: Usage | None, reports: bool) -> Invocation:
    return Invocation(usage=usage, digest=digest, reports_calls=reports)


@lru_cache(maxsize=1_000)
def _shared_scores(scores: tuple[ScoreDigest, ...]) -> Mapping[str, Score]:
    """Return one mapping shared by all trials with equal scores."""
    return {
        name: Score(value, reason, error, details={"dimensions": dict(parts)} if parts else {}, judges=judges)
        for name, value, reason, error, parts, judges in scores
    }


def strip(record: Record, redactor: Redactor | None = None) -> Record:
    """Return the form of a stored baseline: the measurements, without the conversations.

    Messages, responses, tool results, reasons and details are dropped; scores with their dimensions, usage, durations,
    and the names and redacted arguments of tools stay. Stripping twice changes nothing more.
    """
    if record.header.stripped:
        return record
    mask = redactor or Redactor()
    trials = tuple([_stripped(trial, mask) for trial in record.trials])
    footer = None if record.footer is None else replace(record.footer, terms={})
    plan = tuple([replace(case, responses=()) if case.responses else case for case in record.header.plan])
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
        kept = Invocation(tool_calls=tuple(calls), usage=turn.usage, duration=turn.duration)
        turns.append(replace(kept, reports_calls=turn.reports_calls))
    for name, given in trial.scores.items():
        stored = Score(given.value, error=given.error, per_turn=given.per_turn, judges=given.judges)
        if given.error is not None:
            stored = replace(stored, error=message(given.error))
        if given.details and given.dimensions:
            parts = {message(part): value for part, value in given.dimensions.items()}
            stored = replace(stored, details={"dimensions": parts})
        scores[name] = stored
    trial = replace(trial, invocations=tuple(turns), scores=scores, log="", earlier=())
    if trial.error is not None:
        trial = replace(trial, error=TrialError(trial.error.kind, message(trial.error.message)))
    if trial.replay is not None:
        trial = replace(trial, replay=replace(trial.replay, difference="", tools_changed=()))
    return trial


def _shortened(value: Any) -> Any:
    """Return a JSON value with its long texts shortened; the redactor has already limited its nesting."""
    if isinstance(value, str):
        return shorten(value, MAX_STORED_TEXT)
    if isinstance(value, dict):
        return {key: _shortened(held) for key, held in value.items()}
    return [_shortened(item) for item in value] if isinstance(value, list) else value


def assign_shards(plan: Sequence[PlannedCase], shards: int) -> tuple[PlannedCase, ...]:
    """Return the plan with every case assigned to one of ``shards``, so that their expected durations are about equal.

    The longest cases are assigned first, each to the shard with the least so far; a case without a hint counts as the
    mean of the others. Depends on the plan alone, so that every machine makes the same assignment.
    """
    hints = [case.hint for case in plan if case.hint is not None]
    usual = math.fsum(hints) / len(hints) if hints else 1.0
    expected = {case.id: usual if case.hint is None else case.hint for case in plan}
    loads = [(0.0, 0, shard) for shard in range(1, shards + 1)]
    chosen: dict[str, int] = {}
    for case_id in sorted(expected, key=lambda case_id: (-expected[case_id], case_id)):
        seconds, cases, shard = heapq.heappop(loads)
        heapq.heappush(loads, (seconds + expected[case_id], cases + 1, shard))
        chosen[case_id] = shard
    return tuple(replace(case, shard=chosen[case.id]) for case in plan)


def merge(records: Sequence[Record]) -> Record:
    """Return the record that one run over all shards would have produced.

    Raises `MeasureError` if a shard is missing, duplicated, not closed, of another plan, commit or version, or has
    trials of cases that are not its own.
    """
    if not records:
        raise MeasureError("no shards to merge")
    first, total = records[0].header, records[0].header.shard[1]
    by_shard: dict[int, Record] = {}
    for record in records:
        index = record.header.shard[0]
        _check_shard(record, first, by_shard)
        by_shard[index] = record
    if len(by_shard) < total:
        absent = islice((str(index) for index in range(1, total + 1) if index not in by_shard), 20)
        raise MeasureError(f"shards are missing: {', '.join(absent)} of {total}", hint="run them, then merge")
    ordered = [by_shard[index] for index in sorted(by_shard)]
    trials = tuple(trial for record in ordered for trial in record.trials)
    plan = tuple(replace(case, shard=1) for case in first.plan)
    created = min(record.header.created for record in ordered)
    header = replace(first, plan=plan, shard=(1, 1), epochs=0, created=created, run_id=_run_of(ordered))
    return Record(header, trials, _joined(ordered, trials))


def _run_of(shards: Sequence[Record]) -> str:
    """Return the run id of the shards together, which changes if any of them is run anew."""
    ids = [record.header.run_id for record in shards]
    return ids[0] if len(set(ids)) == 1 else blake2b("\n".join(ids).encode(), digest_size=16).hexdigest()


def _check_shard(record: Record, first: Header, earlier: dict[int, Record]) -> None:
    header = record.header
    name = f"shard {header.shard[0]} of {header.shard[1]}"
    if header.shard[1] != first.shard[1]:
        raise MeasureError(f"{name} belongs to another run: the others are of {first.shard[1]}")
    if header.shard[0] in earlier:
        raise MeasureError(f"{name} occurs twice", hint="merge each shard's newest record once")
    if record.footer is None:
        raise MeasureError(f"{name} is truncated: it was not closed", hint="continue it with --resume")
    different = difference(replace(header, shard=first.shard), first)
    if not different and header.gate_version != first.gate_version:
        different = f"it was written by version {header.gate_version!r}, not {first.gate_version!r}"
    if different:
        raise MeasureError(f"{name} belongs to another run: {different}", hint="merge shards of one run only")
    own = set(header.own_cases)
    missing = _missing(record, own)
    if missing:
        what = f"{name} lacks {missing} of {len(own) * header.epochs} planned trials"
        raise MeasureError(what, hint="continue it with --resume")
    for trial in record.trials:
        if trial.case_id not in own:
            what = f"it has trials of case {trial.case_id[:60]!r}, which is another shard's"
            raise MeasureError(f"{name} belongs to another run: {what}")


def _missing(record: Record, own: Iterable[str]) -> int:
    """Return the number of planned trials that a shard lacks, failed ones included; 0 if it states why it stopped."""
    if record.footer is None or record.footer.stopped:
        return 0
    ran = Counter(trial.case_id for trial in record.trials if trial.side is Side.CANDIDATE)
    return sum(max(0, record.header.epochs - ran[case_id]) for case_id in own)


def _joined(records: list[Record], trials: tuple[Trial, ...]) -> Footer:
    """Return the footer of all shards. They run in parallel, so costs are added and durations are not."""
    found = footer_of(trials)
    costs, reasons, terms = [], dict[str, None](), []
    for record in records:
        footer = record.footer
        if footer is None:
            continue
        terms.append(footer.terms)
        if footer.judge_cost_usd is not None:
            costs.append(footer.judge_cost_usd)
        if footer.stopped:
            reasons[footer.stopped] = None
        found = replace(found, duration=max(found.duration, footer.duration))
    cost = sum(costs) if costs else None
    return replace(found, judge_cost_usd=cost, stopped="; ".join(reasons), terms=_joined_terms(terms))


def _joined_terms(terms: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the terms of the first shard with the notes of all; the command ran one shard alone.

    If the shards' terms differ, those of the first are a guess, and a pass by them is not trusted.
    """
    first = next(filter(None, terms), {})
    if len(terms) < 2 or not first:
        return first
    notes = {}
    for one in terms:
        told = one.get("notes")
        if isinstance(told, list | tuple):
            for note in told:  # a text, or a finding with its fields
                notes[json.dumps(note, sort_keys=True)] = note
    joined = {**first, "notes": list(notes.values()), "command": ""}
    if any(_rules(one) != _rules(first) for one in terms):
        joined["doubts"] = [*first.get("doubts", ()), OTHER_TERMS]
    return joined


def _rules(terms: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in terms.items() if name not in ("notes", "command")}
