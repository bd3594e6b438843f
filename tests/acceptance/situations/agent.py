"""The agent of the situations: what it does in each trial of a case is written in behaviour.json.

One file serves as a Python agent, as a command, and behind HTTP. Nothing in it is random: a plan may list what the
trials of a case do, in turn.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

BEHAVIOUR = Path(__file__).with_name("behaviour.json")


class RefusedError(Exception):
    """An answer of the provider's that is no answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status_code = status


def plan_of(case_id: str, trial: int) -> str:
    """What this trial does: a word, or the next of a list of words."""
    behaviour = json.loads(BEHAVIOUR.read_text(encoding="utf-8"))
    plan = behaviour.get(case_id, behaviour.get("*", "good"))
    return plan if isinstance(plan, str) else plan[(trial - 1) % len(plan)]


def good(message: str) -> dict[str, Any]:
    return {"output": f"the answer to {message}", "tool_calls": [{"name": "look_up", "arguments": {"item": message}}]}


def act(plan: str, message: str) -> Any:
    """The answer that goes with a word of the plan; may raise, hang or end the process."""
    answer = good(message)
    match plan:
        case "good":
            return answer
        case "wrong":
            return {**answer, "output": "something else entirely"}
        case "half":
            return {**answer, "output": f"{answer['output']} or perhaps not quite so sure"}
        case "friendly":
            return {**answer, "output": f"{answer['output']} Have a nice day!"}
        case "other_tool":
            return {**answer, "tool_calls": [{"name": "delete_account", "arguments": {}}]}
        case "no_tools":
            return {**answer, "tool_calls": []}
        case "text":
            return answer["output"]
        case "empty":
            return ""
        case "sorry":
            return "I am sorry, I cannot help with that."
        case "costly":
            return {**answer, "cost_usd": 0.4}
        case "cheap":
            return {**answer, "cost_usd": 0.001}
        case "tokens":
            return {**answer, "usage": {"input_tokens": 100, "output_tokens": 20}}
        case "too_many_tokens":
            return {**answer, "usage": {"input_tokens": 2**60, "output_tokens": 1}}
        case "slow":
            time.sleep(0.3)
            return answer
        case "error":
            return {"error": "the agent gave up", "output": ""}
        case "raise":
            raise ValueError("the tool returned an unknown field")
        case "exit":
            os._exit(3)
        case "hang":
            time.sleep(60)
        case "half_json":
            return '{"output": "the answ'
        case "throttled":
            raise RefusedError(429, "rate limit exceeded, retry later")
        case "overloaded":
            raise RefusedError(503, "the model is overloaded")
        case "crowded":
            raise ValueError("the upstream model answered: 503, overloaded")
        case "refused":
            raise ConnectionError("connection refused")
    raise AssertionError(f"no behaviour {plan!r}")


def answer(message: str, case_id: str, trial: int) -> Any:
    """The Python agent."""
    return act(plan_of(case_id, trial), message)


def main() -> None:
    """The command: one request in, one answer out."""
    request = json.load(sys.stdin)
    message = request["messages"][-1]["content"]
    plan = plan_of(request["case_id"], request["trial"])
    if plan == "banner":
        print("loading the model ...")
        plan = "good"
    told = act(plan, message)
    print(told if isinstance(told, str) else json.dumps(told))


if __name__ == "__main__":
    main()
