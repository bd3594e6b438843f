"""The ``monitor`` section of gate.yaml: where production's traces are, when a pass rate is too low, and who is told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from gate.formats.durations import Seconds
from gate.model.strict import FileBelow, StrictModel, Words, short_for

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""The name of an environment variable."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


class AlertAddress(StrictModel):
    """The target of alerts in one form; a string names the variable with the address."""

    url: Variable
    """Environment variable with the address, which is a secret."""
    token: Variable | None = None
    """Environment variable with a bearer token."""


_URL = {"type": "string", "description": "The environment variable that holds the address."}
_TOKEN = {"type": "string", "description": "The environment variable that holds a bearer token."}
_BOTH = {
    "type": "object",
    "properties": {"url": _URL, "token": _TOKEN},
    "required": ["url"],
    "additionalProperties": False,
}
_ADDRESSES = {"anyOf": [_URL, _BOTH, {"type": "array", "items": {"anyOf": [_URL, _BOTH]}}]}
Address = Annotated[AlertAddress, short_for("url")]
Addresses = Annotated[list[Address], BeforeValidator(_listed), WithJsonSchema(_ADDRESSES)]


class AlertsSection(StrictModel):
    """The targets that are told of a change of status; each key names environment variables that hold addresses."""

    webhook: Addresses = []
    """Receivers of the gate's JSON."""
    slack: Addresses = []
    """Slack's incoming webhooks."""
    teams: Addresses = []
    """Microsoft Teams workflows that post an adaptive card."""


class MonitorSection(StrictModel):
    """Watching the agent in production."""

    traces: Words = ()
    """Files and folders with OTLP JSON lines or rows of messages, with paths as under ``fields``; one path or a list.
    They may grow and rotate."""
    receive: int | None = Field(default=None, ge=1, le=65_535)
    """Port on loopback that receives OTLP over HTTP. Default: files alone."""
    suite: str | None = None
    """The suite whose criteria apply, if the configuration makes several."""
    sample_rate: float = Field(default=0.01, gt=0, le=1)
    """Share of the traces to score, sampled by id."""
    window: int = Field(default=200, ge=10, le=100_000)
    """Number of newest scored traces that decide the status."""
    min_samples: int = Field(default=30, ge=5)
    """Fewest measured traces for a status other than ``insufficient_data``."""
    warning: float = Field(default=0.85, gt=0, lt=1)
    """The status is ``warning`` once the pass rate is proven to be below this."""
    critical: float = Field(default=0.70, gt=0, lt=1)
    """The status is ``critical`` once the pass rate is proven to be below this."""
    rule: Literal["proven", "rate"] = "proven"
    """``proven``: an interval below a limit decides; ``rate``: only the window's pass rate, so chance can raise
    alerts."""
    cool_down: Seconds = 1800.0
    """Time after an alert during which a better status is not reported; a worse one is reported at once."""
    silence: Annotated[Seconds, Field(gt=0)] = 86_400.0
    """Longest time without a new score, or with too few of them, before the status is ``insufficient_data`` (exit
    code 3; ``critical`` stays) and alerts go out."""
    alerts: AlertsSection = Field(default_factory=dict, validate_default=True)
    """Receivers of status changes."""
    otlp: Variable | None = None
    """Environment variable with the address (``…/v1/logs``) that receives each score as an event
    ``gen_ai.evaluation.result``."""
    prometheus: FileBelow | None = None
    """File for Prometheus' textfile collector, below the configuration file's folder."""

    @model_validator(mode="after")
    def _ordered(self) -> MonitorSection:
        if self.critical > self.warning:
            raise ValueError(f"critical ({self.critical:g}) is above warning ({self.warning:g})")
        if self.min_samples > self.window:
            raise ValueError(f"min_samples ({self.min_samples}) is more than the window holds ({self.window})")
        return self
