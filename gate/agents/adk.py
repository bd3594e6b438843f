"""Drives an agent that ``adk api_server`` serves: one session per trial, one run per turn."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from gate.agents.base import AgentFailure, AgentOptions, Request, refuse_error
from gate.agents.http import Server, ServerAgent
from gate.formats import adk
from gate.formats.messages import FormatError
from gate.formats.paths import find
from gate.model import ErrorKind, Invocation

LOCKED = "database is locked"
REMEDY = "adk api_server --session_service_uri memory:// holds many sessions at once, or lower agent.concurrency"
"""The hint for a server that keeps its sessions in a file, as it does by default."""


class AdkServer(Server):
    """The section ``adk:``."""

    url: str = "http://127.0.0.1:8000"
    """Address of ``adk api_server``."""
    app: str
    """The app's name; a case's own ``app_name`` takes precedence."""
    user: str = "gate"
    """The user's id; a case's own ``user_id`` takes precedence."""


class AdkOptions(AgentOptions):
    """``adk: {app: …}``."""

    adk: AdkServer
    """The server and the app."""


class AdkAgent(ServerAgent[AdkServer, str]):
    """Creates a session with the case's state, and reads the events of each run."""

    Options = AdkOptions
    kind = "adk"
    takes_attached = True
    reports_calls = True

    def _names(self, request: Request) -> tuple[str, str]:
        return request.app.get("app_name") or self._server.app, request.app.get("user_id") or self._server.user

    async def _ask_for_json(self, request: Request, body: Any, path: str) -> tuple[Any, float]:
        try:
            return await super()._ask_for_json(request, body, path)
        except AgentFailure as error:
            if LOCKED not in error.message:
                raise
            raise AgentFailure(error.kind, f"{error.message}; {REMEDY}") from error

    async def open_session(self, request: Request) -> None:
        app, user = self._names(request)
        path = f"/apps/{quote(app, safe='')}/users/{quote(user, safe='')}/sessions"
        body = {"sessionId": request.session_id, "state": dict(request.state)}
        session, _ = await self._ask_for_json(request, body, path)
        try:
            self._sessions[request.session_id] = find(session, "id")
        except LookupError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the new session has {error}") from error

    async def answer(self, request: Request) -> Invocation:
        app, user = self._names(request)
        body = {
            "appName": app,
            "userId": user,
            "sessionId": self._sessions[request.session_id],
            "newMessage": {"role": "user", "parts": [{"text": request.user}, *map(adk.camel_keys, request.attached)]},
        }
        events, duration = await self._ask_for_json(request, body, "/run")
        try:
            refuse_error(events)
            return replace(adk.events_to_invocation(events, user=request.user), duration=duration)
        except FormatError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the events cannot be read: {error}") from error
