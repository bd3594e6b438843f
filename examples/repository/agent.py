"""A support agent that needs no key: rules and a die stand in for the model that reads `prompt.txt`."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

PROMPT = Path(__file__).with_name("prompt.txt").read_text(encoding="utf-8")


def answer(message: str, case_id: str, trial: int) -> dict[str, Any]:
    """Return what the agent says, and the tools that it called."""
    dice = random.Random(f"{case_id}/{trial}")
    orders = re.findall(r"[AB]\d+", message)
    if not orders:
        return {"output": "Which order is it?", "tool_calls": [], "cost_usd": 0.002}
    order = orders[0]
    is_broken = "broke" in message
    forgets = dice.random() < 0.05  # as models do now and then
    calls = []
    if not forgets and ("Look up every order" in PROMPT or not is_broken):
        calls.append({"name": "look_up_order", "arguments": {"order": order}, "result": "shipped"})
    if is_broken:
        calls.append({"name": "refund", "arguments": {"order": order}, "result": "done"})
        said = f"I refunded your order {order}."
    else:
        said = f"Your order {order} is on its way."
    openings = ["Sure. ", "Of course. ", ""]
    if "Thank people" in PROMPT:
        openings = ["Thanks! ", "Thank you! "]
    return {"output": dice.choice(openings) + said, "tool_calls": calls, "cost_usd": 0.002}
