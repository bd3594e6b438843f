"""What a trace without an agent tells: an error of the agent's own service, and else nothing."""

from __future__ import annotations

from typing import Any

from gate.monitor.model import NO_AGENT
from gate.monitor.spans import TelemetryTraces
from gate.traces import TraceReader
from tests.unit.traces.spans import TRACE, agent, chat, request, said, span, text


def why(subject: TelemetryTraces, service: str, *spans: dict[str, Any]) -> str | None:
    """Why a trace is not measured; None if it tells nothing of an agent."""
    pieces = TraceReader().value(request(*spans, resource={"service.name": service}))
    found = subject.conversation(TRACE, pieces)
    return None if found is None else found.unmeasured


def test_an_error_before_any_agent_is_told_and_a_trace_that_went_well_is_not() -> None:
    subject = TelemetryTraces()
    assert why(subject, "shop", span(1, 0, "POST /chat", error="500")) == f"{NO_AGENT}: 500"
    assert why(subject, "shop", span(1, 0, "GET /health")) is None
    assert why(subject, "shop", span(1, 0, "POST /chat"), span(2, 1, "cache", error="miss")) is None


def test_errors_of_services_in_which_no_agent_is_seen_tell_nothing_once_one_was_seen_elsewhere() -> None:
    subject = TelemetryTraces()
    failed = span(1, 0, "POST /", error="500")
    assert why(subject, "billing", failed) is not None, "it may be the agent's"
    assert why(subject, "shop", agent(), chat(2, 1, None, [said("assistant", text("Here"))])) == ""
    assert why(subject, "billing", failed) is None
    assert why(subject, "shop", failed) == f"{NO_AGENT}: 500"
