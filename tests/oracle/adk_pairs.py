"""Random pairs of conversations in google-adk's JSON, made to meet every rule and corner of its evaluators."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

WORDS = (
    *("Order", "order", "orders", "ordered", "ordering", "refund", "refunds", "refunded", "cancellation", "cancelled"),
    *("flights", "flying", "flies", "died", "relational", "conditional", "rational", "happily", "happiness", "happy"),
    *("enjoy", "enjoyment", "skies", "news", "innings", "proceed", "agreed", "feed", "hopping", "falling", "hissing"),
    *("filing", "sized", "conflated", "troubled", "analogously", "archaeology", "geology", "fully", "hopefully", "the"),
    *(
        "a",
        "of",
        "to",
        "you're",
        "it's",
        "e-mail",
        "42",
        "3.14",
        "v2",
        "A1B2",
        "x_y_z",
        "yyyy",
        "syzygy",
        "controlling",
    ),
    *("rolled", "radically", "generalizations", "oscillators"),
)
FOREIGN = (
    *(
        "наблюдение",
        "Straße",
        "İstanbul",
        "naïve",
        "café",
        "cafe\u0301",
        "ﬁnal",
        "Ωmega",
        "ΣΊΣΥΦΟΣ",
        "ﬀ",
        "½",
        "①",
        "K",
    ),
    *("中文字符", "漢字かな", "カタカナ・テスト", "々", "㐀㐁", "한국어", "ㄱㄴ", "ｆｕｌｌ", "ﾊﾝｶｸ", "𠀀", "丼", "ー"),
    *("สวัสดี", "สวัสดีhello", "฿100", "ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာ", "กำ", "๑๒๓"),
    *("مرحبا", "שלום", "हिन्दी", "বাংলা", "தமிழ்", "e\u0301\u0301", "\u0301start"),
    *("👍", "❤️", "☎️", "👩\u200d💻", "🇩🇪", "a\ufe0fb", "\ufe0f", "\u200b", "\u00a0", "\u2028", "\x1f", "\ufeff"),
    *("²", "ª", "Ⅷ", "℃", "™", "ʰ", "ـ", "ا", "\u0e33", "\u0eb3", "\u17b4", "\ua9e0", "\uaa60", "\u1e9e", "ŉ"),
)
SEPARATORS = (" ", " ", " ", " ", "\n", ", ", ". ", "-", "_", "", "\t", "…", "、", "/")
NAMES = ("lookup_order", "refund", "search", "Search", "transfer_to_agent", "é")
VALUES: tuple[Any, ...] = (
    *(1, 1.0, True, 0, False, None, "", "1", "A1", "a1", [1, 2], [2, 1], [], {}, {"k": 1}, {"k": 1.0}, -0.0, 10**20),
    *("café", "cafe\u0301", [{"a": [True]}], [{"a": [1]}], 0.1, 0.30000000000000004, "x" * 50),
)


def pairs(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """``{"id", "actual", "expected"}``, always the same for the same seed."""
    rng = random.Random(seed)
    for number in range(count):
        turns = rng.choice((1, 1, 1, 2, 3, 4, 7))
        expected = [_invocation(rng, None) for _ in range(turns)]
        actual = [_invocation(rng, one) for one in expected]
        if rng.random() < 0.03:
            actual = actual[:-1] if rng.random() < 0.5 else [*actual, _invocation(rng, None)]
        yield {"id": f"{seed}-{number}", "actual": actual, "expected": expected}


def _invocation(rng: random.Random, model: dict[str, Any] | None) -> dict[str, Any]:
    """An invocation; one that resembles the model, where one is given."""
    invocation: dict[str, Any] = {"user_content": {"role": "user", "parts": [{"text": "question"}]}}
    content = _content(rng, (model or {}).get("final_response"))
    if content is not _ABSENT:
        invocation["final_response"] = content
    data = _intermediate(rng, _calls_of(model) if model else None)
    if data is not _ABSENT:
        invocation["intermediate_data"] = data
    if rng.random() < 0.5:
        invocation["duration"] = rng.choice((0.0, 1.0, rng.random() * 3))
    return invocation


_ABSENT: Any = object()


def _content(rng: random.Random, model: Any) -> Any:
    roll = rng.random()
    if roll < 0.08:
        return rng.choice((_ABSENT, None, {"role": "model"}, {"role": "model", "parts": None}, {"parts": []}))
    if roll < 0.2 and model:
        return model
    parts: list[dict[str, Any]] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        part: dict[str, Any] = {"text": _text(rng, model)}
        if rng.random() < 0.15:
            part["thought"] = True
        parts.append(part)
    if rng.random() < 0.1:
        parts.insert(rng.randrange(len(parts) + 1), rng.choice(({"text": ""}, {"text": None}, _call_part(rng))))
    return {"role": "model", "parts": parts}


def _call_part(rng: random.Random) -> dict[str, Any]:
    return {"function_call": {"name": rng.choice(NAMES), "args": {}}}


def _text(rng: random.Random, model: Any) -> str:
    pool: list[str] = list(WORDS if rng.random() < 0.5 else WORDS + FOREIGN)
    if model and model.get("parts"):
        pool += [word for part in model["parts"] for word in (part.get("text") or "").split()] * 4
    count = rng.choice((0, 1, 3, 8, 20, 60))
    text = "".join(rng.choice(pool) + rng.choice(SEPARATORS) for _ in range(count))
    if rng.random() < 0.05:
        text += "".join(chr(rng.choice((rng.randrange(32, 0xD800), rng.randrange(0xE000, 0x20000)))) for _ in range(20))
    return text


def _calls_of(invocation: dict[str, Any]) -> list[dict[str, Any]]:
    data = invocation.get("intermediate_data") or {}
    events = data.get("invocation_events") or []
    parts = [part for event in events for part in (event.get("content") or {}).get("parts") or []]
    return [*(data.get("tool_uses") or []), *(part["function_call"] for part in parts if "function_call" in part)]


def _intermediate(rng: random.Random, model: list[dict[str, Any]] | None) -> Any:
    roll = rng.random()
    if roll < 0.08:
        return rng.choice((_ABSENT, None, {"tool_uses": []}, {"invocation_events": []}))
    calls = _calls(rng, model)
    if roll < 0.6:
        return {"tool_uses": calls}
    return {"invocation_events": [event for call in calls for event in _events(rng, call)]}


def _events(rng: random.Random, call: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    if rng.random() < 0.3:
        events.append({"author": "sub", "content": {"parts": [{"text": "thinking aloud"}]}})
    event: dict[str, Any] = {"author": "agent", "content": {"role": "model", "parts": [{"function_call": call}]}}
    if rng.random() < 0.6:
        event["usage_metadata"] = {"prompt_token_count": rng.randrange(500)}
        for key in ("candidates_token_count", "thoughts_token_count", "tool_use_prompt_token_count"):
            if rng.random() < 0.5:
                event["usage_metadata"][key] = rng.randrange(200)
    if rng.random() < 0.3:
        event["model_version"] = "m-1"
    events.append(event)
    if rng.random() < 0.2:
        events.append({"author": "agent", "content": None})
    return events


def _calls(rng: random.Random, model: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    if model is None:
        return [_call(rng) for _ in range(rng.choice((0, 0, 1, 1, 2, 3, 5)))]
    calls = [dict(call) for call in model]
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        change = rng.choice((_insert, _drop, _shuffle, _edit, _rename))
        change(rng, calls)
    return calls


def _call(rng: random.Random) -> dict[str, Any]:
    call: dict[str, Any] = {"name": rng.choice(NAMES)}
    if rng.random() < 0.3:
        call["id"] = f"call-{rng.randrange(10**6)}"
    roll = rng.random()
    if roll < 0.8:
        call["args"] = {key: rng.choice(VALUES) for key in rng.sample(("id", "q", "n"), rng.randrange(4))}
    elif roll < 0.9:
        call["args"] = None
    return call


def _insert(rng: random.Random, calls: list[dict[str, Any]]) -> None:
    calls.insert(rng.randrange(len(calls) + 1), _call(rng))


def _drop(rng: random.Random, calls: list[dict[str, Any]]) -> None:
    if calls:
        calls.pop(rng.randrange(len(calls)))


def _shuffle(rng: random.Random, calls: list[dict[str, Any]]) -> None:
    rng.shuffle(calls)


def _rename(rng: random.Random, calls: list[dict[str, Any]]) -> None:
    if calls:
        calls[rng.randrange(len(calls))]["name"] = rng.choice(NAMES)


_SAME = ((1, 1.0), (1, True), (1.0, True), (0, False), ({}, None), ("A1", "a1"), ([1, 2], [2, 1]))


def _edit(rng: random.Random, calls: list[dict[str, Any]]) -> None:
    """Changes an argument to a value that is, or nearly is, equal to it; or reorders, adds or removes arguments."""
    if not calls:
        return
    call = calls[rng.randrange(len(calls))]
    args = call.get("args")
    if not args:
        call["args"] = rng.choice(({}, None))
        return
    key = rng.choice(list(args))
    twins = [b if a == args[key] else a for a, b in _SAME if args[key] in (a, b)] or [rng.choice(VALUES)]
    changed = dict(reversed(list(args.items())))
    changed[key] = rng.choice(twins)
    call["args"] = changed
