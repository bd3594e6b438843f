"""Finds the agent at the address of `gate init --url`, by what the running server says of itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from gate.agents.a2a import CARD
from gate.commands.setup.found import FoundAgent
from gate.commands.setup.openapi import agent_of
from gate.errors import GateError
from gate.formats.documents import parse_document
from gate.formats.shapes import as_list, as_mapping
from gate.system.http import Client, HttpError, check_url

DESCRIPTIONS = ("/openapi.json", "/openapi.yaml", "/swagger.json", "/v3/api-docs", "/api/openapi.json")
"""The addresses at which servers describe themselves."""
SECONDS, MOST_BYTES = 5.0, 2_000_000
"""Maximum number of seconds for all requests together, and of bytes in one answer."""


LOCAL = ("127.0.0.1", "localhost", "::1")


async def agent_at(url: str, in_code: Sequence[FoundAgent], environment: Mapping[str, str]) -> FoundAgent:
    """Return the agent at an address: by the server's description, by its route in the code, or in the gate's JSON
    protocol.

    Raises:
        ConfigError: it is not a valid address.
    """
    described, why = await _described(url, environment)
    if described is not None:
        return replace(described, where=url)
    address = urlsplit(url)
    for agent in in_code:
        route = agent.agent.get("http")
        if not agent.start or not isinstance(route, dict):
            continue
        path = urlsplit(route["url"]).path
        if address.path.rstrip("/") in ("", path):
            called = {"http": {**route, "url": address._replace(path=path).geturl()}}
            start = ""
            if address.hostname in LOCAL and address.port:
                start = re.sub(r"--port \d+", f"--port {address.port}", agent.start)
            return replace(agent, why=f"{agent.why}, as in {agent.where}", agent=called, where=url, start=start)
    return FoundAgent("an HTTP server", f"--url; {why}", {"http": url}, where=url)


async def as_it_describes_itself(agent: FoundAgent, environment: Mapping[str, str]) -> FoundAgent:
    """Return a server that was found in code by its description, if it runs here and has one; else as it was found."""
    ((_, options),) = agent.agent.items()
    url = options["url"] if isinstance(options, Mapping) else options
    described, _ = await _described(url, environment)
    if described is None:
        return agent
    return replace(described, where=agent.where, framework=agent.framework, start=agent.start)


async def _described(url: str, environment: Mapping[str, str]) -> tuple[FoundAgent | None, str]:
    """Return how to call the server at an address, or the reason why that is not known; sends only GET requests.

    With a path, the address means the operation there; without one, the operation that is most likely the agent.
    """
    parts = check_url(url, where="--url")
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    described = path.endswith((".json", ".yaml", "/api-docs"))
    places = (path,) if described else DESCRIPTIONS
    async with Client(environment=environment, max_bytes=MOST_BYTES) as client:
        try:
            async with asyncio.timeout(SECONDS):
                document = await _first(client, origin, places)
                if document is None:
                    offered = await _models(client, origin, path)
                    if offered is not None:
                        return offered, ""
                if document is None and not path:
                    return await _card(client, origin)
                found = agent_of(document, origin=origin, path="" if described else path)
                return (None if found is None else await _named(client, found)), _why(document, path)
        except HttpError as error:
            return None, error.message
        except TimeoutError:
            return None, f"no answer within {SECONDS:g} s"


def _why(document: Any, path: str) -> str:
    if document is None:
        return f"it has no description at {', '.join(DESCRIPTIONS[:3])}"
    if "swagger" in document:
        return "it describes itself in version 2.0 of OpenAPI, and only 3 is read"
    if path:
        return f"its description has no POST {path} that takes a message"
    return "it describes no POST that takes a message"


async def _first(client: Client, origin: str, places: tuple[str, ...]) -> Any:
    """Return the first description found; None if there is none."""
    for place in places:
        document = await _document(client, origin + place)
        if isinstance(document, Mapping) and isinstance(document.get("paths"), Mapping):
            return document
    return None


async def _document(client: Client, url: str) -> Any:
    """Return the content as JSON or YAML; None if it is missing or unreadable."""
    response = await client.request("GET", url, headers={"Accept": "application/json, application/yaml"})
    if response.status != 200:
        return None
    try:
        return parse_document(response.body.decode("utf-8-sig", "replace"), urlsplit(url).path or "/")
    except GateError:
        return None


async def _card(client: Client, origin: str) -> tuple[FoundAgent | None, str]:
    card = await _document(client, origin + CARD)
    if isinstance(card, Mapping) and ("supportedInterfaces" in card or "url" in card):
        return FoundAgent("an A2A agent", f"it has an agent card at {CARD}", {"a2a": origin}), ""
    return None, _why(None, "")


async def _models(client: Client, origin: str, path: str) -> FoundAgent | None:
    """Return the agent of a server that lists models as OpenAI's API does; None if it lists none."""
    base = path.removesuffix("/chat/completions").removesuffix("/responses") or "/v1"
    listed = as_mapping(await _document(client, f"{origin}{base}/models"))
    if not as_list(listed.get("data")):
        return None
    agent = {"openai": {"url": origin + base, "model": "my-model"}}
    notes = ("agent.openai.model: its model",)
    return await _named(
        client, FoundAgent("a Chat Completions server", f"it lists models at {base}/models", agent, notes)
    )


async def _named(client: Client, found: FoundAgent) -> FoundAgent:
    """Return the agent with the name of its app or model, if the server reports it."""
    for kind, place, key, names in (
        ("adk", "/list-apps", "app", lambda told: told),
        ("openai", "/models", "model", lambda told: [one["id"] for one in told["data"]]),
    ):
        options = found.agent.get(kind)
        if options is None:
            continue
        try:
            name = names(await _document(client, options["url"] + place))[0]
        except (LookupError, TypeError):
            return found
        if isinstance(name, str) and name:
            return replace(found, agent={kind: {**options, key: name}}, fill=())
    return found
