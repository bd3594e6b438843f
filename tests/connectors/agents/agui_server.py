"""An agent of pydantic-ai with a scripted model, served by the framework's own AG-UI adapter."""

import sys

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.routing import Route


async def model(messages, info):
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return":
        yield "It has "
        yield "shipped."
        return
    order = str(last.content).split()[-1].rstrip("?")
    if order == "E5":
        raise RuntimeError("no model today")
    yield {0: DeltaToolCall(name="lookup", json_args='{"order": ', tool_call_id="c1")}
    yield {0: DeltaToolCall(json_args=f'"{order}"}}', tool_call_id="c1")}


agent = Agent(FunctionModel(stream_function=model), name="support")


@agent.tool_plain
def lookup(order: str) -> dict:
    return {"status": "shipped", "order": order}


async def run(request):
    return await AGUIAdapter.dispatch_request(request, agent=agent)


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("ready", flush=True)


if __name__ == "__main__":
    app = Starlette(routes=[Route("/agent", run, methods=["POST"])])
    Server(uvicorn.Config(app, port=int(sys.argv[1]), log_level="error")).run()
