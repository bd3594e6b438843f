"""The reasons that models, servers and frameworks give for the end of an answer: one table of those that cut it off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from gate.formats.shapes import as_mapping, mappings_in
from gate.model import Usage

LENGTH, FILTER = "length", "filter"

CUT_OFF: Mapping[str, str] = {
    **dict.fromkeys(("length", "model_length", "incomplete", "continuation"), LENGTH),
    **dict.fromkeys(("max_tokens", "max_output_tokens", "model_context_window_exceeded"), LENGTH),
    **dict.fromkeys(("content_filter", "content_filtered", "guardrail_intervened", "refusal"), FILTER),
    **dict.fromkeys(("safety", "recitation", "blocklist", "prohibited_content", "spii"), FILTER),
}
"""The cause by which an answer was cut off, by the reason given for its end: the limit of its length, or a filter."""

_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
PLACES = frozenset(
    {*_KEYS, "response_metadata", "choices", "candidates", "incomplete_details", "type", "object", "status"}
)
"""All keys of an answer that `endings` reads."""


def cut_off_by(reason: Any) -> str:
    """Return `LENGTH` or `FILTER` if this reason means that an answer is not whole; empty for any other."""
    return CUT_OFF.get(str(reason).rpartition(".")[2].lower().replace("-", "_"), "")


def endings(body: Any) -> list[Any]:
    """Return the reasons that a model's answer, its first choice and its metadata give for their end."""
    body = as_mapping(body)
    if PLACES.isdisjoint(body.keys()):
        return []  # as in most messages
    places = [body, as_mapping(body.get("response_metadata"))]
    for key in ("choices", "candidates"):
        places += mappings_in(body.get(key))[:1]
    found: list[Any] = []
    for place in places:
        for key in _KEYS:
            told = place.get(key)
            if isinstance(told, list):  # of several model calls
                found += told
            else:
                found.append(told)
        found.append(as_mapping(place.get("incomplete_details")).get("reason"))
        if place.get("type") == "message" or place.get("object") == "response":
            found.append(place.get("status"))
    return [reason for reason in found if reason is not None]


def is_cut_off(body: Any) -> bool:
    """True if a model's answer says that it ended at the limit of its length or by a filter of its content."""
    return any(map(cut_off_by, endings(body)))


def noting_its_end(usage: Usage | None, body: Any) -> Usage | None:
    """Return the usage with a note if a model's answer was cut off."""
    if not is_cut_off(body):
        return usage
    return replace(usage or Usage(), cut_off=True)
