"""An agent of the OpenAI Agents SDK with a scripted model; it returns what the framework gives."""

import json

from agents import Agent, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)


class Scripted(Model):
    async def get_response(self, system_instructions, input, *args, **kwargs):
        last = input[-1] if isinstance(input, list) else {"content": input}
        if last.get("type") == "function_call_output":
            text = ResponseOutputText(annotations=[], text="It has shipped.", type="output_text")
            status = "incomplete" if "Z9" in str(input) else "completed"
            said = ResponseOutputMessage(id="m1", content=[text], role="assistant", status=status, type="message")
        else:
            order = str(last["content"]).split()[-1].rstrip("?")
            said = ResponseFunctionToolCall(
                arguments=json.dumps({"order": order}), call_id="c1", name="lookup", type="function_call", id="f1"
            )
        usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
        return ModelResponse(output=[said], usage=usage, response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


@function_tool
def lookup(order: str) -> str:
    if order.startswith("F"):
        raise LookupError("no such order")
    return '{"status": "shipped"}'


agent = Agent(name="support", tools=[lookup], model=Scripted())


async def result(message):
    return await Runner.run(agent, message)
