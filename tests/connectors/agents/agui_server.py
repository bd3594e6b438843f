"""An agent with a scripted model, served by the AG-UI adapter of the framework that is named: one `build` for each."""

import os
import socket
import sys

import uvicorn

URL = os.environ["MODEL_URL"]


def lookup(order: str) -> str:
    """Looks an order up."""
    return f"{order} has shipped"


def pydantic_ai():
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.ui.ag_ui import AGUIAdapter
    from starlette.applications import Starlette
    from starlette.routing import Route

    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=URL, api_key="none"))
    agent = Agent(model, name="support", tools=[lookup])

    async def run(request):
        return await AGUIAdapter.dispatch_request(request, agent=agent)

    return Starlette(routes=[Route("/agent", run, methods=["POST"])])


def langgraph():
    from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
    from fastapi import FastAPI
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver

    model = ChatOpenAI(model="m", base_url=URL, api_key="none", max_retries=0)
    graph = create_agent(model, [tool(lookup)], checkpointer=InMemorySaver())
    app = FastAPI()
    add_langgraph_fastapi_endpoint(app, LangGraphAgent(name="support", graph=graph), "/agent")
    return app


def microsoft():
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatCompletionClient
    from agent_framework_ag_ui import add_agent_framework_fastapi_endpoint
    from fastapi import FastAPI

    client = OpenAIChatCompletionClient("m", base_url=URL, api_key="none")
    app = FastAPI()
    agent = Agent(client, name="support", tools=[lookup])
    add_agent_framework_fastapi_endpoint(app, agent, "/agent", single_user=True)
    return app


def main():
    app = {"pydantic-ai": pydantic_ai, "langgraph": langgraph, "microsoft": microsoft}[sys.argv[1]]()
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main()
