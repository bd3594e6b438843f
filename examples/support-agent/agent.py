"""A support agent that runs offline: it reads its prompt, picks tools by likeness of words, and really calls them.

The "model" is small but honest: it scores every tool by the words that a message shares with the tool's description
in the prompt, and samples from a softmax. So it is right most of the time, wrong some of the time, and a changed prompt
changes its behaviour for the reason that it would change a larger model's. Nothing in it knows the suite.

``SUPPORT_PROMPT`` names the prompt file, ``SUPPORT_SEED`` seeds the sampling (unset: a new seed for each process).
"""

from __future__ import annotations

import math
import os
import random
import re
import secrets
from pathlib import Path
from typing import Any

from tools import TOOLS

HERE = Path(__file__).parent
SEED = os.environ.get("SUPPORT_SEED") or secrets.token_hex(8)
ORDER = re.compile(r"\b([A-Z]\d{3})\b")
COMMON = """
    a an and are as at be by can do for from have i in is it me my of on or please that the this to was what
    with you your
"""
STOP_WORDS = frozenset(COMMON.split())
OPENINGS = ("Sure.", "Of course.", "Happy to help.", "Let me take care of that.")


def words(text: str) -> set[str]:
    """Lower-case words without their commonest endings."""
    plain = (
        re.sub(r"(ing|ed|es|s)$", "", word) for word in re.findall(r"[a-z]+", text.lower()) if word not in STOP_WORDS
    )
    return {word for word in plain if len(word) > 1}


def read_prompt(path: Path) -> dict[str, Any]:
    """Tool → its words and the tools to call before it; plus the temperature.

    One line a tool: ``name (after other_tool): description``.
    """
    prompt: dict[str, Any] = {"temperature": 0.2, "tools": {}}
    for line in path.read_text(encoding="utf-8").splitlines():
        setting = re.match(r"temperature:\s*([\d.]+)$", line)
        tool = re.match(r"(\w+)(?: \(after (\w+)\))?: (.+)$", line)
        if setting:
            prompt["temperature"] = float(setting[1])
        elif tool and tool[1] in TOOLS:
            prompt["tools"][tool[1]] = (words(tool[3]), tool[2])
    return prompt


PROMPT = read_prompt(HERE / os.environ.get("SUPPORT_PROMPT", "prompts/current.txt"))


def choose(message: str, rng: random.Random) -> str | None:
    """Samples one tool for a message; None where nothing in it resembles any tool."""
    said = words(message)
    scores = {name: len(said & known) / math.sqrt(len(said) or 1) for name, (known, _) in PROMPT["tools"].items()}
    if max(scores.values()) == 0:
        return None
    weights = [math.exp(score / PROMPT["temperature"]) for score in scores.values()]
    return rng.choices(list(scores), weights)[0]


def arguments(tool: str, message: str, order: str | None) -> dict[str, Any]:
    """The arguments of a call, taken from the message."""
    if tool == "search_catalog":
        return {"query": " ".join(sorted(words(message)))}
    if tool == "open_ticket":
        return {"topic": "complaint"}
    if tool == "update_address":
        place = re.search(r" to (\d+ [\w ]+)", message)
        return {"order": order, "address": place[1].strip() if place else ""}
    return {"order": order}


def answer(message: str, messages: list[dict[str, Any]], trial: int) -> dict[str, Any]:
    """One turn: which tools, in which order, and what to say."""
    rng = random.Random(f"{SEED}/{trial}/{len(messages)}/{message}")
    mentioned = [match for said in messages if said["role"] == "user" for match in ORDER.findall(str(said["content"]))]
    order = mentioned[-1] if mentioned else None
    tool = choose(message, rng)
    if tool is None:
        return {"output": "Hello! How can I help you with your order today?", **spent(message, 0)}
    before = PROMPT["tools"][tool][1]
    calls = []
    for name in ([before] if before else []) + [tool]:
        given = arguments(name, message, order)
        result = TOOLS[name](**given)
        calls.append({"name": name, "arguments": given, "result": result})
        if "error" in result:
            calls[-1]["error"] = result["error"]
            break
    said = calls[-1]["result"].get("error") or calls[-1]["result"]["say"]
    return {"output": f"{rng.choice(OPENINGS)} {said}", "tool_calls": calls, **spent(message, len(calls))}


def spent(message: str, calls: int) -> dict[str, Any]:
    """Usage as a small hosted model would report it: tokens by length, dollars by a made-up price list."""
    words = 40 + len(message) // 4 + 30 * calls
    usage = {"input_tokens": 300 + words, "output_tokens": words}
    return {"usage": usage, "cost_usd": round((300 + 5 * words) * 4e-7, 7)}
