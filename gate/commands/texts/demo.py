"""The files of `gate demo`: a small agent, its cases, and the change that breaks it."""

from __future__ import annotations

AGENT = '''\
"""A support agent. A few rules take the place of a model, so that the demo needs no key and no network."""

import random
import re
from pathlib import Path

PROMPT = (Path(__file__).parent / "prompt.txt").read_text(encoding="utf-8")


def answer(message):
    found = re.search(r"[A-Z]\\d+", message)
    if found is None:
        return {"output": "Which order is it about?", "tool_calls": []}
    order = found[0]
    calls = []
    if "refund" not in message:
        calls.append({"name": "look_up_order", "arguments": {"order": order}, "result": "on its way"})
        said = f"Order {order} is on its way."
    else:
        if "look it up" in PROMPT:
            calls.append({"name": "look_up_order", "arguments": {"order": order}, "result": "paid"})
        calls.append({"name": "refund", "arguments": {"order": order}, "result": "done"})
        said = f"Your refund for order {order} is on its way."
    return {"output": random.choice(["", "Sure! ", "Of course. "]) + said, "tool_calls": calls}
'''
PROMPT = """\
You are the support agent of a small shop.
Before you refund an order, look it up.
Answer in one sentence.
"""
BROKEN_PROMPT = """\
You are the support agent of a small shop.
Refund orders without delay.
Answer in one sentence.
"""
CONFIG = """\
suite: cases.yaml
agent:
  python: agent:answer
  sources: [agent.py, prompt.txt]
criteria:
  tool_trajectory_avg_score: 0.4   # the calls of each case, in order
  response_match_score: 0.5        # the words of each answer
"""
ORDERS = ("A100", "B200", "C300", "D400", "E500")


def files() -> dict[str, str]:
    """Return the files of the demo's repository, by name."""
    return {
        "agent.py": AGENT,
        "prompt.txt": PROMPT,
        "cases.yaml": _cases(),
        "gate.yaml": CONFIG,
        ".gitignore": ".gate/\n__pycache__/\n",
    }


def _cases() -> str:
    lines = ["cases:\n"]
    for order in ORDERS:
        call = f"{{name: look_up_order, args: {{order: {order}}}}}"
        lines.append(
            f"  - id: track-{order.lower()}\n"
            f"    input: Where is my order {order}?\n"
            f"    tools: [{call}]\n"
            f"    response: Order {order} is on its way.\n"
            f"  - id: refund-{order.lower()}\n"
            f"    input: Please refund order {order}.\n"
            f"    tools: [{call}, {{name: refund, args: {{order: {order}}}}}]\n"
            f"    response: Your refund for order {order} is on its way.\n"
        )
    return "".join(lines)
