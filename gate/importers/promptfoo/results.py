"""Reads promptfoo's results, version 3: each distinct test becomes a case, each repeat of it a recorded trial.

Repeats are grouped by the content of their test, never by its number, which grows with ``--repeat``. An answer from
promptfoo's cache is a copy of an earlier one, so equal cached repeats are one trial.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from gate.formats import messages
from gate.formats.reading import carried
from gate.formats.shapes import as_list, as_mapping, mappings_in
from gate.importers.promptfoo.cases import (
    Made,
    criteria_of,
    key_of,
    losses_of,
    make,
    mapping,
    with_unique_ids,
)
from gate.model import Case, ForeignScore, Invocation, RecordedTrial, ToolCall, Usage, parts_of
from gate.security.limits import shorten
from gate.suites.base import Contents, Document, Loss, recorded_criterion

VERSION = 3
SCORER = "promptfoo"
"""The name of promptfoo's verdict on an answer, used for the scorer and the criterion."""
ERROR = 2
"""The ``failureReason`` of a test that ended in an error instead of an answer."""
MAX_ERROR_CHARS = 1_000
Row = Mapping[str, Any]


def read(document: Document) -> Contents:
    """Return the cases and trials of results, and the assertions without a counterpart. Raises `ConfigError`."""
    held = document.data["results"]
    if held["version"] != VERSION:
        hint = "export them again with a current promptfoo: `promptfoo export eval ID -o results.json`"
        raise document.error(f"results of version {held['version']!r}, not {VERSION}", "results", "version", hint=hint)
    losses = list[Loss]()
    rows = held["results"]
    made = with_unique_ids(list(_made(document, rows)))
    groups = defaultdict[str, list[int]](list)
    for place, one in enumerate(made):
        groups[key_of(one.case)].append(place)
    cases, recorded, traces = list[Case](), list[RecordedTrial](), _traces(document.data.get("traces"))
    for places in groups.values():
        case = made[places[0]].case
        cases.append(case)
        kept = list(_fresh(rows, places))
        if len(kept) < len(places):
            what = f"repeats with the same answer from the cache ({len(places) - len(kept)} of {len(places)})"
            losses.append(Loss(case.id, what, check=False))
        for number, place in enumerate(kept, 1):
            recorded.append(_trial(document, place, case, number, traces))
    if any(map(_cached, rows)):
        what = "when answers from promptfoo's cache were measured (`--no-cache` measures anew)"
        losses.append(Loss("", what, check=False))
    criteria = {**(criteria_of(made) or {}), SCORER: recorded_criterion(SCORER, threshold=1.0)}
    return Contents(tuple(cases), tuple(recorded), criteria, losses=(*losses, *losses_of(made)))


def _made(document: Document, listed: list[Any]) -> Iterator[Made]:
    """Yield the case of each row."""
    several = len({_prompt(row)[0] for row in listed if isinstance(row, Mapping)}) > 1
    _one_agent(document, listed)
    for index, row in enumerate(listed):
        place = ("results", "results", index)
        if not isinstance(row, Mapping) or not isinstance(row.get("testCase"), Mapping):
            raise document.error("a result has no testCase", *place)
        raw = row["testCase"]
        label, text = _prompt(row)
        text = text or label or "-"
        if not several:
            label = ""
        with document.errors_at(*place):
            variables = mapping(row.get("vars", raw.get("vars")), "vars")
            one = make(raw, variables, (text, label), None, document.location(*place))
        yield one


def _prompt(row: Row) -> tuple[str, str]:
    """Return the label and the text of a row's prompt."""
    given = row.get("prompt")
    held = as_mapping(given)
    return str(held.get("label") or ""), str(held.get("raw") or "")


def _one_agent(document: Document, listed: list[Any]) -> None:
    """Refuse results of several providers: the trials of a case must come from one agent."""
    names = {json.dumps(row.get("provider"), sort_keys=True) for row in listed if isinstance(row, Mapping)}
    if len(names) > 1:
        hint = "write one file each: `promptfoo eval --filter-providers NAME -o NAME.json`"
        raise document.error(f"results of {len(names)} providers: a recording holds one agent", "results", hint=hint)


def _fresh(rows: list[Row], places: list[int]) -> Iterator[int]:
    """Yield the places of rows with fresh answers, and of cached rows the first for each answer."""
    seen = set[str]()
    for place in places:
        said = json.dumps(_response(rows[place]).get("output"), sort_keys=True)
        if _cached(rows[place]) and said in seen:
            continue
        seen.add(said)
        yield place


def _response(row: Row) -> Mapping[str, Any]:
    held = row.get("response")
    return as_mapping(held)


def _cached(row: Row) -> bool:
    return _response(row).get("cached") is True


def _place(held: Row) -> str:
    """Return the indexes of a test and its prompt, whatever their values, as text; empty without a test."""
    test = held.get("testIdx")
    return "" if test is None else f"{test!r} {held.get('promptIdx')!r}"


def _traces(listed: Any) -> dict[str, Row]:
    """Return the traces that promptfoo received, by the row that they belong to; ambiguous ones are left out."""
    found: dict[str, Row | None] = {}
    for trace in as_list(listed):
        place = _place(as_mapping(as_mapping(trace).get("metadata")))
        if place in found or not place:
            found[place] = None
        else:
            found[place] = trace
    return {place: trace for place, trace in found.items() if trace is not None}


def _traced(trace: Row | None) -> tuple[tuple[ToolCall, ...], bool]:
    """Return the calls in a trace, and whether the trace would show all calls."""
    if trace is None:
        return (), False
    from gate.traces import conversation_of, otlp  # slow to import: only when there are traces

    spans = [otlp.span(raw) for raw in _spans(carried(trace))]
    turns = conversation_of([span for span in spans if span is not None]).turns
    calls = tuple(chain.from_iterable([turn.invocation.tool_calls for turn in turns]))
    return calls, bool(turns) and all(turn.invocation.reports_calls for turn in turns)


def _spans(trace: Row) -> Iterator[Row]:
    """Yield the spans of a trace in OpenTelemetry's form; promptfoo writes their times in milliseconds."""
    for raw in mappings_in(trace.get("spans")):
        times = {}
        for key in ("startTime", "endTime"):
            if isinstance(raw.get(key), int | float):
                times[f"{key}UnixNano"] = raw[key] * 1_000_000
        status = raw.get("status", {"code": raw.get("statusCode"), "message": raw.get("statusMessage")})
        yield {**raw, **times, "traceId": trace.get("traceId") or "trace", "status": status}


def _trial(document: Document, index: int, case: Case, number: int, traces: Mapping[str, Row]) -> RecordedTrial:
    row = document.data["results"]["results"][index]
    response = _response(row)
    if row.get("failureReason") == ERROR or response.get("output") is None:
        error = str(row.get("error") or "no answer").split("\n    at ")[0]
        return RecordedTrial(case.id, number, (), shorten(error, MAX_ERROR_CHARS))
    with document.errors_at("results"):
        said, calls = _output(response.get("output"))
        traced, tells = _traced(traces.get(_place(row)))
        usage = _usage(response)
        duration = None
        if not _cached(row):
            duration = messages.number(row.get("latencyMs"), "latencyMs")
    if duration is not None:
        duration /= 1_000
    invocation = Invocation(
        case.turns[0].user,
        parts_of(said),
        calls or traced,
        reports_calls=tells,
        usage=usage,
        duration=duration,
        foreign=(_verdict(row),),
    )
    return RecordedTrial(case.id, number, (invocation,))


def _verdict(row: Row) -> ForeignScore:
    """Return promptfoo's verdict on the answer, with the failed assertions if it did not pass."""
    if row.get("success") is True:
        return ForeignScore(SCORER, 1.0)
    failed = []
    for held in mappings_in(as_mapping(row.get("gradingResult")).get("componentResults")):
        if held.get("pass") is not True and isinstance(held.get("assertion"), Mapping):
            failed.append(f"assertion {held['assertion'].get('type')}: {held.get('reason') or 'no reason given'}")
    told = "; ".join(failed) or str(row.get("error") or "it counts as failed, without an assertion that did")
    return ForeignScore(SCORER, 0.0, shorten(f"{SCORER}: {told}", MAX_ERROR_CHARS))


def _output(output: Any) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text and calls of an answer: a text, OpenAI's message or list of calls, or other JSON."""
    if output is None or isinstance(output, str):
        return output or "", ()
    held: Any = output
    if not isinstance(output, Mapping):
        held = {"tool_calls": output}
    listed = held.get("tool_calls")
    if isinstance(listed, list) and listed and all(isinstance(one, Mapping) and "function" in one for one in listed):
        spoken = [
            {"role": "user", "content": "-"},
            {"role": "assistant", "content": held.get("content"), "tool_calls": listed},
        ]
        found = messages.to_invocation(spoken)
        return found.text, found.tool_calls
    return json.dumps(output, ensure_ascii=False), ()


def _usage(response: Mapping[str, Any]) -> Usage | None:
    """Return the provider's figures; the row counts unreported ones as 0."""
    tokens, cost = response.get("tokenUsage"), response.get("cost")
    held = as_mapping(tokens)
    if response.get("cached") is True or (not held and cost is None):
        return None
    return Usage(_whole(held.get("prompt")), _whole(held.get("completion")), messages.number(cost, "cost"))


def _whole(value: Any) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return None
    return value
