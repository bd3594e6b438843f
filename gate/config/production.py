"""The ``monitor`` section of gate.yaml: where production's traces are, when a pass rate is too low, and who is told."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from gate.formats.durations import Seconds
from gate.suites.messages import Path

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""The name of an environment variable."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


def _named(value: Any) -> Any:
    return {"url": value} if isinstance(value, str) else value


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class AlertAddress(_Section):
    """Where alerts of one form go; a text is the variable of the address."""

    url: Variable
    """The environment variable that holds the address. The address itself is a secret, and never stands here."""
    token: Variable | None = None
    """The environment variable with a token, where the receiver wants one: it is sent as a bearer token."""


_ADDRESS = {
    "anyOf": [
        {"type": "string", "description": "The environment variable that holds the address."},
        {
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "The environment variable that holds the address."},
                "token": {"type": "string", "description": "The environment variable that holds a bearer token."},
            },
            "required": ["url"],
            "additionalProperties": False,
        },
    ]
}
_ADDRESSES = {"anyOf": [*_ADDRESS["anyOf"], {"type": "array", "items": _ADDRESS}]}
_PLACES = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
Address = Annotated[AlertAddress, BeforeValidator(_named)]
Addresses = Annotated[list[Address], BeforeValidator(_listed), WithJsonSchema(_ADDRESSES)]


class AlertsSection(_Section):
    """The targets that are told of a change of status; each key names environment variables that hold addresses."""

    webhook: Addresses = []
    """Receivers of the gate's own JSON."""
    slack: Addresses = []
    """Incoming webhooks of Slack."""
    teams: Addresses = []
    """Workflows of Microsoft Teams that post an adaptive card."""


class RowPaths(_Section):
    """Where in a row of production everything is: paths such as ``info.id`` or ``log[0].text``."""

    id: Path = "id"
    """The key that tells a conversation from every other."""
    messages: Path = "messages"
    """The conversation, as OpenAI's messages."""
    error: Path | None = None
    """The error, if the agent failed."""
    usage: Path | None = None
    """Token counts, as OpenAI reports them. Default: those in the messages."""
    cost_usd: Path | None = None
    """US dollars."""
    duration: Path | None = None
    """Seconds."""


class MonitorSection(_Section):
    """Watching the agent in production."""

    traces: Annotated[list[str], BeforeValidator(_listed), WithJsonSchema(_PLACES)] = []
    """Files and folders with OTLP JSON lines or rows of messages; one path or a list. They may grow, and be rotated."""
    receive: int | None = Field(default=None, ge=1, le=65_535)
    """Port on loopback on which exporters of OpenTelemetry (OTLP/HTTP) are listened to. Default: files alone."""
    fields: RowPaths | None = None
    """Where rows keep what is read. Default: as under ``fields``."""
    suite: str | None = None
    """The suite whose criteria apply, if the configuration makes several."""
    sample_rate: float = Field(default=0.01, gt=0, le=1)
    """Share of the traces that are scored, picked by their ids: a trace is always in the sample or never."""
    window: int = Field(default=200, ge=10, le=100_000)
    """Scored traces that the status is decided on, the newest."""
    max_age: Seconds | None = None
    """Longest time that a scored trace stays in the window, such as ``24h``. Default: until newer ones replace it."""
    min_samples: int = Field(default=30, ge=5)
    """Measured traces from which there is a status other than ``insufficient_data``."""
    warning: float = Field(default=0.85, gt=0, lt=1)
    """The status is ``warning`` once the pass rate is shown to be below."""
    critical: float = Field(default=0.70, gt=0, lt=1)
    """The status is ``critical`` once the pass rate is shown to be below."""
    idle: Annotated[Seconds, Field(le=86_400)] = 30.0
    """Time after a trace's last span from which it counts as complete."""
    every: Annotated[Seconds, Field(le=86_400)] = 5.0
    """Pause before more is read, once everything was."""
    cool_down: Seconds = 1800.0
    """Time after an alert in which nobody is told that the status is better again; that it is worse is told at once."""
    silence: Annotated[Seconds, Field(gt=0)] = 86_400.0
    """Longest time without a new score, or with too little for a status, until that is ``insufficient_data`` (exit code
    3; ``critical`` stays ``critical``) and those who get alerts are told so."""
    alerts: AlertsSection = Field(default_factory=dict, validate_default=True)
    """The targets that are told of a change of status."""
    otlp: Variable | None = None
    """The environment variable with the address (``…/v1/logs``) that scores are sent to, each as an event
    ``gen_ai.evaluation.result``."""
    prometheus: str | None = None
    """File for Prometheus' textfile collector, relative to the configuration file and below it."""
    state: str | None = None
    """File of the monitor's state. Default: ``monitor.sqlite`` in the folder of records."""

    @field_validator("prometheus", "state")
    @classmethod
    def _below(cls, value: str | None) -> str | None:
        if value is not None and (not value or PurePath(value).is_absolute() or ".." in PurePath(value).parts):
            raise ValueError(f"{value!r} is not a file below the configuration's folder")
        return value

    @model_validator(mode="after")
    def _ordered(self) -> MonitorSection:
        if self.critical > self.warning:
            raise ValueError(f"critical ({self.critical:g}) is above warning ({self.warning:g})")
        if self.min_samples > self.window:
            raise ValueError(f"min_samples ({self.min_samples}) is more than the window holds ({self.window})")
        return self
