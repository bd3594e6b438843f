"""A FastAPI server whose agent is one of several operations: as JSON at /v1/chat, as a stream at /v1/chat/stream."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any, Literal

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

app = FastAPI()
SAID: dict[str, list[str]] = {}


class Login(BaseModel):
    user: str
    text: str


class Feedback(BaseModel):
    message: str
    stars: int


class Question(BaseModel):
    prompt: str
    session_id: str | None = None
    tenant: Literal["shop", "bank"]
    locale: str


class Step(BaseModel):
    tool: str
    parameters: dict[str, Any]
    output: str


class Answer(BaseModel):
    reply: str
    steps: list[Step] | None = None
    usage: dict[str, int] | None = None


@app.post("/login")
def login(body: Login) -> dict[str, str]:
    return {"token": body.user}


@app.post("/feedback")
def feedback(body: Feedback) -> dict[str, str]:
    return {"message": "thanks"}


@app.post("/v1/chat")
def chat(body: Question) -> Answer:
    said = SAID.setdefault(body.session_id or "", [])
    said.append(body.prompt)
    steps = [Step(tool="lookup", parameters={"order": body.prompt}, output="shipped")]
    return Answer(reply=f"{body.tenant}: {' after '.join(reversed(said))}", steps=steps, usage={"input_tokens": 3})


class Events(StreamingResponse):
    media_type = "text/event-stream"


@app.post("/v1/chat/stream", response_class=Events)
def stream(body: Question) -> Events:
    def events() -> Iterator[str]:
        for piece in ("It has ", "shipped."):
            yield f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': piece}}]})}\n\n"
        yield "data: [DONE]\n\n"

    return Events(events())


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
