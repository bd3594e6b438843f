"""The ``world`` section of a configuration: what is recorded and replayed, and where recordings are stored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from gate.errors import ConfigError
from gate.model.defaults import OPENAI_URL
from gate.model.strict import StrictModel

Mode = Literal["live", "replay", "replay-then-live", "fail"]
"""The source of answers: the outside world; the recording, and an error where it has none; the recording as long as it
has one; the recording, and where it has none the trial is not measured, as in ``replay`` if a model was asked."""
Kind = Literal["model", "tool", "mcp"]
MOST_PATTERNS = 50


class UpstreamOptions(StrictModel):
    """A server that may be reached through the proxy; a text alone is its address."""

    url: str
    """Its address; the rest of a request's path is appended."""
    kind: Kind = "tool"
    """The kind of server: a model, a tool, or an MCP server over streamable HTTP."""
    env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The variable that holds its address on the proxy, for the agent. Default: ``GATE_WORLD_`` and the name in
    capitals."""
    mode: Mode | None = None
    """Mode of this server, instead of ``models`` or ``tools``."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"url": value} if isinstance(value, str) else value

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{value!r} is not an http:// or https:// address without a query")
        return value.rstrip("/")


class WorldOptions(StrictModel):
    """The part of the outside world that is recorded while the baseline is measured, and replayed while a change is."""

    models: Mode = "replay-then-live"
    """The source of answers to model calls: ``live``, ``replay``, ``replay-then-live`` or ``fail``."""
    tools: Mode = "replay-then-live"
    """The source of answers to tool calls through the proxy."""
    upstreams: Mapping[str, UpstreamOptions] = {}
    """More servers by name, besides ``openai``, ``anthropic`` and ``gemini``."""
    store: str | None = None
    """Folder of the recordings, relative to the configuration file. Default: the user's cache folder."""
    normalise: list[str] = Field(default=[], max_length=MOST_PATTERNS)
    """Texts that vary from run to run, with ``{number}``, ``{word}`` or ``{hex}``, such as ``ticket {number}``."""
    port: int = Field(default=0, ge=0, le=65_535)
    """Port of the proxy on loopback, for an agent that the gate does not start; 0: a free one."""

    @field_validator("upstreams")
    @classmethod
    def _named_plainly(cls, value: Mapping[str, UpstreamOptions]) -> Mapping[str, UpstreamOptions]:
        for name in value:
            if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
                raise ValueError(f"{name!r}: a name may have only letters, digits, - and _")
        return value

    @field_validator("normalise")
    @classmethod
    def _says_something(cls, value: list[str]) -> list[str]:
        from gate.world.volatile import check_pattern  # next to the code that uses patterns

        for pattern in value:
            check_pattern(pattern)
        return value


class Upstream(UpstreamOptions):
    """A server with its defaults filled in."""

    name: str
    told: tuple[str, ...] = ()
    """The variables that hold the proxy's address of this server for the agent."""
    answered_by: Mode = "replay-then-live"


_MODELS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "openai": (OPENAI_URL, ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "anthropic": ("https://api.anthropic.com", ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")),
    "gemini": ("https://generativelanguage.googleapis.com", ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE")),
}
"""The known providers: their address, and the variables from which their clients read another address."""


def upstreams_of(options: WorldOptions, environment: Mapping[str, str]) -> dict[str, Upstream]:
    """Return servers by name. A provider's address comes from the configuration, the environment or the default."""
    found = {}
    for name, (default, variables) in _MODELS.items():
        given = options.upstreams.get(name)
        mode = options.models
        if given is None:
            told = [environment[variable] for variable in variables if environment.get(variable)]
            url = UpstreamOptions(url=told[0] if told else default).url
        else:
            url = given.url
            mode = given.mode or mode
        found[name] = Upstream(name=name, url=url, kind="model", told=variables, answered_by=mode)
    for name, one in options.upstreams.items():
        if name in _MODELS:
            continue
        variable = one.env or "GATE_WORLD_" + name.replace("-", "_").upper()
        mode = one.mode or (options.models if one.kind == "model" else options.tools)
        found[name] = Upstream(name=name, url=one.url, kind=one.kind, told=(variable,), answered_by=mode)
    return found


def store_folder(options: WorldOptions, root: Path, environment: Mapping[str, str]) -> Path:
    """Return the folder of recordings. Raises `ConfigError` if none is configured and the user has no cache folder."""
    if options.store is not None:
        return root / Path(options.store).expanduser()
    cache = environment.get("XDG_CACHE_HOME")
    home = environment.get("HOME")
    if not cache and not home:
        raise ConfigError("there is no cache folder for recordings", where="world", hint="name one: world.store")
    return (Path(cache) if cache else Path(str(home)) / ".cache") / "agent-gate" / "world"
