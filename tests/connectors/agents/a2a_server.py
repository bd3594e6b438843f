"""An A2A server as its SDK makes one: an agent that asks which order is meant, and counts the turns of a context."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState
from opentelemetry import propagate
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

provider = TracerProvider()
if "OTEL_EXPORTER_OTLP_ENDPOINT" in os.environ:
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
TRACER = provider.get_tracer("shop")
TURNS: dict[str, list[str]] = {}


class Shop(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        said = context.get_user_input()
        if said.startswith("traced "):
            look_up_in_a_span(said.removeprefix("traced "), context.call_context.state["headers"])
            await event_queue.enqueue_event(new_text_message("It has shipped.", context_id=context.context_id))
            return
        if said == "hello":
            await event_queue.enqueue_event(new_text_message("Hi.", context_id=context.context_id))
            return
        task = context.current_task or new_task_from_user_message(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        turns = TURNS.setdefault(task.context_id, [])
        turns.append(said)
        await updater.start_work(updater.new_agent_message([new_text_part("Looking.")]))
        ends = {
            "fail": updater.failed,
            "reject": updater.reject,
            "cancel": updater.cancel,
            "login": updater.requires_auth,
            "which": updater.requires_input,
        }
        if said in ends:
            await ends[said](updater.new_agent_message([new_text_part(f"{said}: of what?")]))
            return
        if said == "raise":
            raise RuntimeError("no stock today")
        for number, piece in enumerate(["It has ", "shipped: ", f"{said} after {'+'.join(turns[:-1]) or 'nothing'}."]):
            await updater.add_artifact([new_text_part(piece)], artifact_id="answer", append=number > 0)
        calls = [{"name": "lookup", "args": {"order": said}, "result": "shipped"}]
        told = {"calls": calls, "usage": {"input_tokens": 7, "output_tokens": 3}}
        await updater.update_status(TaskState.TASK_STATE_COMPLETED, metadata=told)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def look_up_in_a_span(order: str, headers: Mapping[str, str]) -> None:
    """What an instrumented agent tells of a call, in the trace that the request belongs to."""
    parent = propagate.extract(dict(headers))
    with TRACER.start_as_current_span("agent", parent, attributes={"gen_ai.operation.name": "invoke_agent"}):
        told = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "lookup",
            "gen_ai.tool.call.arguments": json.dumps({"order": order}),
            "gen_ai.tool.call.result": json.dumps("shipped"),
        }
        with TRACER.start_as_current_span("tool", attributes=told):
            pass


def card(url: str, binding: str) -> AgentCard:
    path = {"JSONRPC": "/rpc", "HTTP+JSON": "/rest"}[binding]
    return AgentCard(
        name="shop",
        description="Knows orders.",
        version="1",
        capabilities=AgentCapabilities(streaming=True),
        skills=[AgentSkill(id="orders", name="orders", description="Looks orders up.", tags=["orders"])],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        supported_interfaces=[AgentInterface(url=f"{url}{path}", protocol_binding=binding, protocol_version="1.0")],
    )


def routes(url: str) -> Starlette:
    rpc = card(url, "JSONRPC")
    handler = DefaultRequestHandler(agent_executor=Shop(), task_store=InMemoryTaskStore(), agent_card=rpc)
    elsewhere = card("http://agents.example.org", "JSONRPC")
    old = {"name": "shop", "protocolVersion": "0.3.0", "url": "/rpc", "preferredTransport": "JSONRPC"}

    async def old_card(request: Request) -> JSONResponse:
        return JSONResponse({**old, "capabilities": {"streaming": True}})

    async def grpc_card(request: Request) -> JSONResponse:
        return JSONResponse({**old, "preferredTransport": "GRPC"})

    return Starlette(
        routes=[
            *create_agent_card_routes(rpc),
            *create_agent_card_routes(card(url, "HTTP+JSON"), card_url="/rest/.well-known/agent-card.json"),
            *create_agent_card_routes(elsewhere, card_url="/elsewhere.json"),
            Route("/old.json", old_card),
            Route("/wrong.json", grpc_card),
            *create_jsonrpc_routes(handler, rpc_url="/rpc", enable_v0_3_compat=True),
            *create_rest_routes(handler, path_prefix="/rest"),
        ]
    )


def main() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        port = listening.getsockname()[1]
        app = routes(f"http://localhost:{port}")
        print(port, flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main()
