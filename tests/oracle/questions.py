"""What is asked of google-adk and of us: every metric and option over random pairs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from gate.metrics.recorded import score_lines
from tests.oracle.adk_pairs import pairs

TRAJECTORY = [
    {"match_type": match_type, "ignore_args": ignore}
    for match_type, ignore in itertools.product(("EXACT", "IN_ORDER", "ANY_ORDER"), (False, True))
]
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("response_match_score", {}),
    *(("tool_trajectory_avg_score", options) for options in TRAJECTORY),
    *((f"{name}_v1", {}) for name in ("tool_call_count", "inference_call_count", "token_usage", "invocation_duration")),
]


def questions(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every pair under every metric."""
    for pair in pairs(count, seed):
        for metric, options in ASKED:
            if metric == "inference_call_count_v1" and not all(_tells_model_calls(one) for one in pair["actual"]):
                continue
            yield {"metric": metric, "options": options, **pair}


def _tells_model_calls(invocation: dict[str, Any]) -> bool:
    """Whether events, where there are any, show a model call. Where none does, google-adk says 0, we: unknown."""
    data = invocation.get("intermediate_data") or {}
    events = data.get("invocation_events")
    return events is None or any("usage_metadata" in event or "model_version" in event for event in events)


def our_answers(asked: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What we say to the same lines."""
    answers = []
    for line in asked:
        pair = json.dumps({key: line[key] for key in ("id", "actual", "expected")})
        (answer,) = score_lines(line["metric"], line["options"], [pair])
        answers.append({"metric": line["metric"], **json.loads(answer)})
    return answers


def differences(asked: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> list[str]:
    """Where a score or a turn's score is not the same number, bit by bit; errors need only both be errors."""
    found = []
    for line, ours, other in zip(asked, our_answers(asked), theirs, strict=True):
        not_measured = ours["score"] is None and other["score"] is None
        if not_measured:
            continue
        if (ours["score"], ours["per_turn"]) != (other["score"], other["per_turn"]):
            found.append(f"{line['metric']} {line['options']} {json.dumps(line)}\n  ours {ours}\n  adk  {other}")
    return found
