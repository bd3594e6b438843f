"""An agent of pydantic-ai with a scripted model, instrumented by the framework itself; it answers with bare text."""

import importlib
import json
import os
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

encoding = "json" if os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") == "http/json" else "proto"
exporters = importlib.import_module(f"opentelemetry.exporter.otlp.{encoding}.http.trace_exporter")
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporters.OTLPSpanExporter()))
trace.set_tracer_provider(provider)
Agent.instrument_all()


def model(messages, info):
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return":
        reason = "length" if "Z9" in str(messages) else "stop"
        return ModelResponse(parts=[TextPart("It has shipped.")], finish_reason=reason)
    order = str(last.content).split()[-1].rstrip("?")
    return ModelResponse(parts=[ToolCallPart("lookup", {"order": order}, tool_call_id="c1")])


agent = Agent(FunctionModel(model), name="support")


@agent.tool_plain
def lookup(order: str) -> dict:
    if order == "E5":
        raise LookupError("no such order")
    if order.startswith("F"):
        raise ModelRetry("no such order")
    return {"status": "shipped"}


async def result(message):
    return await agent.run(message)


async def answer(message):
    return (await agent.run(message)).output


if __name__ == "__main__":
    print(agent.run_sync(json.load(sys.stdin)["messages"][-1]["content"]).output)
