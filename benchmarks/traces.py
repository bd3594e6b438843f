"""The speed of reading traces: `python -m benchmarks.traces [TRACES]`, each of 10 spans and about 10 kB, one a line.

Prints traces a second on one core, for bytes → spans and for bytes → conversation.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from statistics import median
from time import process_time

from gate.traces import TraceReader, conversation_of

ROUNDS = 5


def _attribute(key: str, value: str | int) -> dict[str, object]:
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}


def _span(
    number: int, place: int, parent: int | None, name: str, attributes: dict[str, str | int]
) -> dict[str, object]:
    start = 1_795_336_446_000_000_000 + number * 1_000_000_000 + place * 10_000_000
    return {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{number * 100 + place + 1:016x}",
        "parentSpanId": "" if parent is None else f"{number * 100 + parent + 1:016x}",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 9_000_000),
        "attributes": [_attribute(key, value) for key, value in attributes.items()],
        "status": {},
    }


def trace(number: int) -> bytes:
    """One request: an agent, five model calls and four tools, with the messages that each saw."""
    messages: list[dict[str, object]] = [{"role": "user", "parts": [{"type": "text", "content": f"Order {number}?"}]}]
    agent: dict[str, str | int] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
    spans = [_span(number, 0, None, "invoke_agent support", agent)]
    for step in range(5):
        last = step == 4
        call = {"type": "tool_call", "id": f"c{step}", "name": f"tool_{step}", "arguments": {"order": number}}
        said = {"role": "assistant", "parts": [{"type": "text", "content": "It has shipped."} if last else call]}
        chat: dict[str, str | int] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-5-mini",
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps([said]),
            "gen_ai.usage.input_tokens": 100 + step,
            "gen_ai.usage.output_tokens": 10,
        }
        spans.append(_span(number, 2 * step + 1, 0, "chat gpt-5-mini", chat))
        if not last:
            tool: dict[str, str | int] = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": f"tool_{step}",
                "gen_ai.tool.call.id": f"c{step}",
                "gen_ai.tool.call.arguments": json.dumps({"order": number}),
                "gen_ai.tool.call.result": json.dumps({"status": "shipped", "note": "x" * 80}),
            }
            spans.append(_span(number, 2 * step + 2, 0, f"execute_tool tool_{step}", tool))
            told = {"type": "tool_call_response", "id": f"c{step}", "response": {"note": "x" * 80}}
            messages += [said, {"role": "tool", "parts": [told]}]
    resource = {"attributes": [_attribute("service.name", "support")]}
    request = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "agent"}, "spans": spans}]}]}
    return json.dumps(request).encode()


def _rate(lines: list[bytes], work: Callable[[bytes], object]) -> float:
    def once() -> float:
        start = process_time()
        for line in lines:
            work(line)
        return len(lines) / (process_time() - start)

    return median(once() for _ in range(ROUNDS))


def main(traces: int) -> None:
    lines = [trace(number) for number in range(traces)]
    reader = TraceReader()
    size = sum(map(len, lines)) / len(lines)
    print(f"{traces:,} traces of 10 spans and {size:,.0f} bytes, median of {ROUNDS} rounds, processor time")
    print(f"bytes → spans: {_rate(lines, reader.line):,.0f} traces a second")
    print(f"bytes → conversation: {_rate(lines, lambda line: conversation_of(reader.line(line))):,.0f} traces a second")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
