"""The agent's version, as `agent.version` defines it: a text, a program's output, or a server's header.

It is looked up at the beginning and at the end of a run, so that answers of two versions are never mixed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from gate.agents.base import AgentOptions, VersionSource, allowed_environment, expand
from gate.agents.http import Server, server_of
from gate.errors import ConfigError, GateError, MeasureError
from gate.security.limits import shorten
from gate.system.child import run
from gate.system.http import Client, HttpError

WHERE = "agent.version"
SECONDS = 60.0
"""Seconds for the program or server to give it."""
MOST = 500
"""The most characters of a version."""


async def version_of(
    kind: str, options: AgentOptions, *, root: Path, environment: Mapping[str, str], url: str | None = None
) -> str:
    """Return the agent's version; empty if none is configured.

    Args:
        kind: the agent's kind.
        options: its options.
        root: the configuration's folder.
        environment: the gate's own.
        url: another server to ask, such as the base commit's agent.

    Raises:
        ConfigError: this kind of agent has no such version, or the text names a variable that is not set.
        MeasureError: the program or server does not give it.
    """
    source = options.version
    if source is None:
        return ""
    if kind == "replay":
        raise ConfigError("recorded trials have no version to look up", where=WHERE)
    if source.text is not None:
        return _checked(expand(source.text, environment, where=WHERE), ConfigError)
    if source.command is not None:
        return await asyncio.to_thread(_printed, source.command, options, root, environment)
    server = server_of(options, kind)
    if server is None:
        hint = "a header is for agents behind HTTP; give a text or a command"
        raise ConfigError(f"a {kind}: agent sends no headers", where=WHERE, hint=hint)
    return await _told(source, server, environment, url)


def _printed(command: tuple[str, ...], options: AgentOptions, root: Path, environment: Mapping[str, str]) -> str:
    try:
        code, output, errors = run(
            command, environment=allowed_environment(environment, options.env), cwd=root, seconds=SECONDS
        )
    except OSError as error:
        raise ConfigError(f"{command[0]!r} cannot be run: {error.strerror}", where=WHERE) from None
    except TimeoutError:
        raise MeasureError(f"{command[0]!r} took longer than {SECONDS:g} s", where=WHERE) from None
    if code:
        said = shorten(errors.decode("utf-8", "replace").strip(), 300)
        raise MeasureError(f"{command[0]!r} ended with exit code {code}{f': {said}' if said else ''}", where=WHERE)
    return _checked(output.decode("utf-8", "replace"), MeasureError)


async def _told(source: VersionSource, server: Server, environment: Mapping[str, str], url: str | None) -> str:
    """Return the header of an answer of any status: even an agent that refuses GET sends it."""
    assert source.header is not None
    address = expand(url or source.url or server.url, environment, where=WHERE)
    headers = {name: expand(value, environment, where=WHERE) for name, value in server.headers.items()}
    try:
        async with asyncio.timeout(SECONDS), Client(environment=environment) as client:
            response = await client.request("GET", address, headers=headers)
    except HttpError as error:
        raise MeasureError(f"{address} does not state it: {error.message}", where=WHERE) from None
    except TimeoutError:
        raise MeasureError(f"{address} does not state it within {SECONDS:g} s", where=WHERE) from None
    told = response.headers.get(source.header.lower())
    if told is None:
        what = f"the answer to GET {address} (HTTP {response.status}) has no header {source.header}"
        raise MeasureError(what, where=WHERE, hint="name an address that sends it: version: {header: …, url: …}")
    return _checked(told, MeasureError)


def _checked(text: str, error: type[GateError]) -> str:
    version = text.strip()
    if not version or len(version) > MOST:
        what = "it is empty" if not version else f"it has more than {MOST} characters"
        raise error(what, where=WHERE, hint="a version is a short string, such as 1.4.2 or a commit")
    return version
