"""Reads Inspect's logs, ``.eval`` and JSON: each sample id becomes a case, each epoch of it a recorded trial.

A log that did not end well is refused: its missing samples were never measured. Inspect's scorers are not run here:
each recorded score becomes a separate criterion, ``inspect:NAME``. For ``includes``, the target also becomes a text
that an answer must contain; every other scorer is a lost check for `gate import`, which writes cases without their
trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from gate.formats import messages
from gate.formats.messages import FormatError
from gate.formats.reading import Ignored, changed, plain_copy
from gate.formats.shapes import as_mapping, as_text
from gate.importers.eval_archive import read_eval_archive
from gate.model import Case, ForeignScore, Invocation, Location, RecordedTrial, Turn, Usage, total_usage
from gate.model.strict import one_or_more
from gate.security.limits import shorten
from gate.suites.base import (
    NO_ANSWER,
    Contents,
    Document,
    Format,
    Loss,
    is_answered,
    note_lost_checks,
    nothing_unread,
    recorded_criterion,
)

_ATTACHMENT = "attachment://"
_INCLUDES = "includes"
_FULL = {"c", "correct", "yes", "true", "pass", "passed"}
"""Scores in words that give full credit; any other word gives none, as Inspect counts it, except `_PARTIAL`."""
_PARTIAL = {"p", "partial"}
_ROUNDING = 1e-9
MAX_ERROR_CHARS = 1_000
Sample = Mapping[str, Any]


def recognises(data: Any) -> bool:
    return isinstance(data, Mapping) and isinstance(data.get("eval"), Mapping) and "status" in data


IGNORED = Ignored(
    {
        "how the log was made": (
            "$.version $.eval $.plan $.stats $.reductions $.location $.etag $.results.* $.log_updates "
            "samples.turn_count samples.uuid samples.total_time samples.limit samples.error_retries "
            "samples.started_at samples.completed_at samples.role_usage samples.timelines"
        ),
        "how the sample's place was set up": "samples.sandbox samples.files samples.setup",
        "what happened beside the messages": "samples.store samples.events samples.events_data",
        "texts are put in where a message names them": "samples.attachments",
        "the last of the messages": "samples.output",
        "of the scorer": "samples.scores.*.metadata samples.scores.*.history",
        "what the scorer took for the answer": "samples.scores.*.answer",
        "of the model's own record of a message": (
            "messages.id messages.source messages.model messages.metadata messages.internal messages.function "
            "tool_calls.type tool_calls.view tool_calls.internal content.internal content.refusal content.citations "
            "input.id input.source input.metadata error.type"
        ),
        "how closely an image is looked at": "content.detail",
        "a thought": "content.reasoning content.summary content.signature content.redacted",
        "in the other counts": (
            "model_usage.*.total_tokens model_usage.*.reasoning_tokens model_usage.*.input_tokens_cache_read "
            "model_usage.*.input_tokens_cache_write"
        ),
        "the message says what went wrong": "error.traceback error.traceback_ansi",
    }
)


@nothing_unread(IGNORED, checks=False)
def read(document: Document) -> Contents:
    """Return the cases and trials of a log, and the scorers without a counterpart.

    Raises `ConfigError` if it did not end well or cannot be read.
    """
    _check_whole(document)
    cases, recorded, losses = dict[str, Case](), list[RecordedTrial](), list[Loss]()
    seen, blocking = set[tuple[str, int]](), dict[str, bool]()
    for number, sample in enumerate(_samples(document)):
        location = document.location("samples", number)
        with document.errors_at("samples", number):
            case = _case(sample, location)
            known = cases.setdefault(case.id, case)
            if (known.turns, known.options) != (case.turns, case.options):
                raise FormatError(f"sample {case.id!r} has a different input or target from an earlier epoch")
            given = list(_given(sample))
            trial = _trial(sample, case, tuple(score for score, _ in given))
            if (trial.case_id, trial.number) in seen:
                raise FormatError(f"epoch {trial.number} of sample {case.id!r} occurs twice")
        seen.add((trial.case_id, trial.number))
        recorded.append(trial)
        for score, decides in given:
            blocking[score.scorer] = blocking.get(score.scorer, True) and decides
        if known is case:
            for name in _scorers(sample):
                if name != _INCLUDES or not case.options:
                    losses.append(Loss(case.id, f"scorer {name}"))
    criteria = _criteria(cases.values(), blocking) or None
    return Contents(tuple(cases.values()), tuple(recorded), criteria, losses=tuple(losses))


def _criteria(cases: Iterable[Case], blocking: Mapping[str, bool]) -> dict[str, Any]:
    """Return the criteria of the log: a scorer with verdicts is blocking, any other only reports."""
    found: dict[str, Any] = {}
    if any(case.options for case in cases):
        found["contains"] = {}
    for scorer, decides in blocking.items():
        found[f"inspect:{scorer}"] = recorded_criterion(scorer)
        if not decides:
            found[f"inspect:{scorer}"]["blocking"] = False
    return found


def _check_whole(document: Document) -> None:
    status = document.data["status"]
    if status != "success":
        hint = "run it to its end: what a log lacks was never measured"
        raise document.error(f"the log's status is {shorten(repr(status), 40)}, not success", "status", hint=hint)
    if document.data.get("invalidated"):
        raise document.error("the log was invalidated", "invalidated")
    results, held = document.data.get("results"), document.data.get("samples")
    counted = as_mapping(results).get("total_samples")
    if isinstance(counted, int) and isinstance(held, list) and 0 < len(held) < counted:
        hint = "take the whole log: what it lacks is not known to have passed"
        raise document.error(f"the log holds {len(held)} of {counted} samples", "results", hint=hint)


def _samples(document: Document) -> list[Sample]:
    samples = document.data.get("samples")
    if not isinstance(samples, list) or not samples or not all(isinstance(one, Mapping) for one in samples):
        raise document.error("the log holds no samples", hint="dump it whole: `inspect log dump`")
    return samples


def _case(sample: Sample, location: Location) -> Case:
    """Return the case of a sample. Raises `FormatError`."""
    identifier = sample.get("id")
    if isinstance(identifier, bool) or not isinstance(identifier, str | int) or identifier == "":
        raise FormatError("a sample has no id")
    spoken = sample.get("input")
    if isinstance(spoken, str):
        spoken = [{"role": "user", "content": spoken}]
    try:
        user = messages.to_invocation(_plain(spoken, sample)).user
    except FormatError as error:
        raise FormatError(f"input: {error}") from None
    targets = one_or_more(sample.get("target") or [])
    if not isinstance(targets, list) or not all(isinstance(text, str) for text in targets):
        raise FormatError("target: expected a string or a list of strings")
    metadata = sample.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise FormatError("metadata: expected a mapping")
    metadata = {**metadata}
    if targets:
        metadata["target"] = targets
    options = {}
    if len(targets) == 1 and _INCLUDES in _scorers(sample):
        options = {"contains": {"values": targets, "ignore_case": True}}
    return Case(
        str(identifier),
        (Turn(user, attached=messages.attached(_plain(spoken, sample))),),
        metadata=metadata,
        options=options,
        location=location,
    )


def _scorers(sample: Sample) -> Iterator[str]:
    scores = sample.get("scores")
    yield from map(str, as_mapping(scores))


def _trial(sample: Sample, case: Case, scores: tuple[ForeignScore, ...]) -> RecordedTrial:
    """Return the trial of a sample. Raises `FormatError`."""
    epoch = sample.get("epoch", 1)
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 1:
        raise FormatError("epoch: expected a whole number from 1")
    if sample.get("invalidation"):
        raise FormatError(f"sample {case.id!r} was invalidated")
    error = sample.get("error")
    if error:
        if isinstance(error, Mapping):
            error = error.get("message")
        return RecordedTrial(case.id, epoch, (), shorten(str(error), MAX_ERROR_CHARS))
    said = messages.to_invocation(_plain(sample.get("messages"), sample))
    usage, duration = _usage(sample), messages.number(sample.get("working_time"), "working_time")
    invocation: Invocation = replace(said, user=case.turns[0].user, usage=usage or said.usage, duration=duration)
    if not is_answered([invocation]):
        return RecordedTrial(case.id, epoch, (), NO_ANSWER)
    return RecordedTrial(case.id, epoch, (replace(invocation, foreign=scores),))


def _given(sample: Sample) -> Iterator[tuple[ForeignScore, bool]]:
    """Yield a sample's scores, each with True if it is a verdict, and not a part of a score or a share.

    Each part of a composite score has a separate name.
    """
    held = sample.get("scores")
    for name, score in as_mapping(held).items():
        value, why = score, ""
        if isinstance(score, Mapping):
            value, why = score.get("value"), as_text(score.get("explanation"))
        if isinstance(value, list):
            value = dict(enumerate(value, 1))
        if isinstance(value, Mapping):
            for key, part in value.items():
                yield _score(f"{name}.{key}", part, why), False
        else:
            yield _score(str(name), value, why), not _is_amount(value)


def _is_amount(value: Any) -> bool:
    """True for a share of the credit, or a number beyond a scale from 0 to 1, such as 7 of 10: neither is a verdict."""
    if not isinstance(value, int | float) or _is_full(value):
        return False
    return 0 < value < 1 or value > 1


def _is_full(value: float) -> bool:
    """True for full credit, also as a sum of shares that is not exactly 1."""
    return abs(value - 1) <= _ROUNDING


def _score(scorer: str, value: Any, why: str) -> ForeignScore:
    told = f"{scorer}: {shorten(repr(value), 100)}"
    if why:
        told += f", {why}"
    return ForeignScore(scorer, _credit(value), shorten(told, MAX_ERROR_CHARS))


def _credit(value: Any) -> float | None:
    """Return a score from 0 to 1 for letters, words or numbers; None if there is none, or its scale is another one."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            word = value.strip().lower()
            if word in _PARTIAL:
                return 0.5
            return float(word in _FULL)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if not isinstance(value, bool | int | float):
        return 0.0
    if _is_full(value):
        return 1.0
    if value > 1:
        return None
    return max(0.0, float(value))


def _usage(sample: Sample) -> Usage | None:
    """Return the usage over all models of a sample."""
    by_model = sample.get("model_usage")
    if not isinstance(by_model, Mapping):
        return None
    found = []
    for model, given in by_model.items():
        used = messages.to_usage(given, cost_usd=as_mapping(given).get("total_cost"))
        if used is not None:
            found.append(replace(used, model=str(model)))
    return total_usage(found)


def _plain(spoken: Any, sample: Sample) -> Any:
    """Return Inspect's messages in OpenAI's form, with long texts put back in place."""
    if not isinstance(spoken, list):
        return spoken
    attached = sample.get("attachments")
    texts = as_mapping(attached)
    return [_message(one, texts) for one in spoken]


def _message(message: Any, texts: Mapping[str, Any]) -> Any:
    if not isinstance(message, Mapping):
        return message
    found: dict[str, Any] = {"content": _attached(message.get("content"), texts)}
    error = message.get("error")
    if isinstance(error, Mapping):
        found |= {"status": "error", "content": str(error.get("message") or found["content"])}
    return changed(message, **found)


def _attached(content: Any, texts: Mapping[str, Any]) -> Any:
    if isinstance(content, str) and content.startswith(_ATTACHMENT):
        return texts.get(content.removeprefix(_ATTACHMENT), content)
    if isinstance(content, list):
        return [_attached_part(part, texts) for part in content]
    return content


def _attached_part(part: Any, texts: Mapping[str, Any]) -> Any:
    if not isinstance(part, Mapping):
        return part
    for key in ("text", "image", "audio", "video", "document"):
        if key in part:
            return changed(part, **{key: _attached(plain_copy(part).get(key), texts)})
    return part


FORMAT = Format(
    shape="an Inspect log, `.eval` or dumped as JSON: `eval` and `samples`",
    recognises=recognises,
    read=read,
    open=read_eval_archive,
    ignored=IGNORED,
    settle=note_lost_checks,
)
