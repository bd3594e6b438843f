"""An agent of LangChain on LangGraph with a scripted model, instrumented by OpenInference; it answers with text."""

import json
import sys

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
LangChainInstrumentor().instrument(tracer_provider=provider)


class Scripted(BaseChatModel):
    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        last = messages[-1]
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        if isinstance(last, ToolMessage):
            reason = "length" if "Z9" in str(messages) else "stop"
            said = AIMessage("It has shipped.", usage_metadata=usage, response_metadata={"finish_reason": reason})
        else:
            order = last.content.split()[-1].rstrip("?")
            call = {"name": "lookup", "args": {"order": order}, "id": "c1"}
            said = AIMessage("", tool_calls=[call], usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def lookup(order: str) -> dict:
    """The status of an order."""
    return {"status": "shipped"}


agent = create_agent(Scripted(), [lookup])


def ask(message):
    state = agent.invoke({"messages": [{"role": "user", "content": message}]})
    return state["messages"][-1].content


def answer(message):
    return ask(message)


def result(message):
    return agent.invoke({"messages": [{"role": "user", "content": message}]})


def output(message):
    return agent.invoke({"messages": [{"role": "user", "content": message}]}, version="v2")


if __name__ == "__main__":
    print(ask(json.load(sys.stdin)["messages"][-1]["content"]))
