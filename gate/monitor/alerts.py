"""Sends each change of status once, and exports scores: to webhooks, chats and OTLP endpoints, over HTTP.

A target gets a message when the status differs from the last one that it was sent: a worse status at once, a better one
after the cool-down. `insufficient_data` is sent at once if it is a fault; if there are merely few traces, only once it
has lasted, because a quiet night is no alarm. The state stores the last message to each target, so a restart repeats
nothing and a failed attempt is retried. An attempt that may have arrived (no answer came) is repeated: each message
carries an id by which a receiver recognizes it. Addresses come only from the environment and are never shown; redirects
are not followed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from gate.errors import ConfigError
from gate.monitor.model import Observation
from gate.monitor.report import MonitorReport, headline
from gate.monitor.store import Delivery, MonitorState
from gate.monitor.window import WORSE, Status
from gate.security.limits import shorten
from gate.system.http import Client, HttpError, check_url, retry_after

ANSWER_SECONDS = 10.0
"""Seconds in which a target has to answer."""
MAX_ANSWER_BYTES = 65_536
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
"""Pauses before a failed attempt is repeated, in seconds: the first is doubled each time, up to the longest."""
LONGEST_RETRY_AFTER = 3600.0
EXPORT_BATCH = 500
MAX_TEXT_CHARS = 2_000
_TRACE_ID = re.compile("[0-9a-f]{32}")


class Target(Struct, frozen=True):
    """A target of alerts."""

    name: str
    """Its name in errors and in the state: the form, and the variable that holds its address."""
    form: str
    url: str
    token: str = ""
    """Sent as a bearer token if the target needs one."""

    def __repr__(self) -> str:
        return f"Target({self.name!r})"  # never the address


class Alert(Struct, frozen=True):
    """A change of status to be sent to a target."""

    id: str
    before: Status
    after: Status
    suite: str
    report: MonitorReport

    @property
    def title(self) -> str:
        return f"{self.suite}: {self.before.value} → {self.after.value}"


def target_of(form: str, variable: str, token: str, environment: Mapping[str, str]) -> Target:
    """Return the target at the address in a variable. Raises `ConfigError`, which shows neither address nor token."""
    where = f"monitor.alerts.{form}"
    url = environment.get(variable, "").strip()
    if not url:
        hint = "it holds the address; the configuration holds its name alone"
        raise ConfigError(f"the variable {variable} is not set", where=where, hint=hint)
    try:
        check_url(url)
    except ConfigError:
        raise ConfigError(f"the variable {variable} holds no http(s) address", where=where) from None
    if token and not environment.get(token):
        raise ConfigError(f"the variable {token} is not set", where=where, hint="it holds the token")
    return Target(f"{form}:{variable}", form, url, environment[token] if token else "")


# --- forms ----------------------------------------------------------------------------------------


def _webhook(alert: Alert) -> Any:
    report, share = alert.report, alert.report.finding.share
    return {
        "version": 1,
        "id": alert.id,
        "suite": alert.suite,
        "before": alert.before.value,
        "status": alert.after.value,
        "why": report.finding.why,
        "pass_rate": share.rate,
        "pass_rate_low": share.low,
        "pass_rate_high": share.high,
        "sample_count": len(report.samples),
        "average_score": getattr(report.average_score, "value", None),
        "failures": [{"trace": one.trace, "why": one.why} for one in report.failures],
    }


def _slack(alert: Alert) -> Any:
    text = "\n".join([f"*{_slack_text(alert.title)}*", *map(_slack_text, _details(alert))])
    return {"text": shorten(text, MAX_TEXT_CHARS), "unfurl_links": False, "unfurl_media": False}


def _teams(alert: Alert) -> Any:
    blocks = [{"type": "TextBlock", "text": _plain(alert.title), "weight": "Bolder", "wrap": True}]
    blocks += [{"type": "TextBlock", "text": _plain(line), "wrap": True} for line in _details(alert)]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
    }
    return {
        "type": "message",
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}],
    }


EXPORT = "otlp"
"""The form of a target that receives scores instead of alerts."""
FORMS: Mapping[str, Callable[[Alert], Any]] = {"webhook": _webhook, "slack": _slack, "teams": _teams}
"""The forms, by their key under ``monitor.alerts``. A new form needs one function and one line here."""


def _details(alert: Alert) -> list[str]:
    lines = [headline(alert.report)]
    return lines + [f"{shorten(one.trace, 80)}: {shorten(one.why, 200)}" for one in alert.report.failures[:3]]


def _slack_text(text: str) -> str:
    """Return text that Slack shows literally: without mentions, links and markup."""
    for sign, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, safe)
    return text.replace("*", "∗").replace("`", "'").replace("\n", " ")


def _plain(text: str) -> str:
    """Return text without the Markdown that an adaptive card interprets."""
    return re.sub(r"[\\*_\[\]()#`~]", r"\\\g<0>", shorten(text, 500).replace("\n", " "))


# --- telling --------------------------------------------------------------------------------------


class Alerts:
    """The targets of a monitor."""

    def __init__(self, targets: Sequence[Target], *, suite: str, cool_down: float, silence: float) -> None:
        self._targets, self._suite, self._cool_down, self._silence = targets, suite, cool_down, silence

    @property
    def exports(self) -> bool:
        """True if scores are exported."""
        return any(target.form == EXPORT for target in self._targets)

    async def tell(self, state: MonitorState, report: MonitorReport, now: float, client: Client) -> list[str]:
        """Send the status to every target that is due, and export waiting scores; return the problems."""
        known = state.deliveries()
        work = []
        for target in self._targets:
            serve = self._export if target.form == EXPORT else self._alert
            work.append(serve(state, target, known.get(target.name) or Delivery(Status.HEALTHY), report, now, client))
        problems = []
        for target, problem in zip(self._targets, await asyncio.gather(*work), strict=True):
            if problem:
                problems.append(f"{target.name}: {problem}")
        return problems

    async def _alert(
        self, state: MonitorState, target: Target, known: Delivery, report: MonitorReport, now: float, client: Client
    ) -> str:
        """Send the status if that is due; return the problem."""
        number, changed = state.last_change() or (0, None)
        lasted = report.finding.blind or (changed is not None and now >= changed + self._silence)
        if not is_due(known, report.status, now, self._cool_down, lasted=lasted):
            return known.error
        alert = Alert(f"{self._suite}:{number}", known.told, report.status, self._suite, report)
        problem, wait = await send(client, target, {"Idempotency-Key": alert.id}, FORMS[target.form](alert))
        after = failed(known, problem, wait, now) if problem else Delivery(report.status, now)
        state.delivered(target.name, after)
        return problem

    async def _export(
        self, state: MonitorState, target: Target, known: Delivery, _: MonitorReport, now: float, client: Client
    ) -> str:
        """Send the scores that wait, if no pause is in force; return the problem."""
        if now < known.next_at:
            return known.error
        while waiting := state.to_export(EXPORT_BATCH):
            body = evaluation_events([one for _, one in waiting], self._suite)
            problem, wait = await send(client, target, {}, body)
            if problem:
                state.delivered(target.name, failed(known, problem, wait, now))
                return problem
            state.exported(waiting[-1][0])
        if known.error:
            state.delivered(target.name, Delivery(Status.HEALTHY, now))
        return ""


def is_due(known: Delivery, status: Status, now: float, cool_down: float, *, lasted: bool = True) -> bool:
    """True if a target is due to receive a status now.

    A target that was sent nothing yet assumes a healthy agent. ``lasted``: whether `INSUFFICIENT_DATA` is more than a
    quiet night.
    """
    if status is known.told or now < known.next_at:
        return False
    if status is Status.INSUFFICIENT_DATA:
        return lasted and (known.told is Status.HEALTHY or now >= known.at + cool_down)
    return WORSE.index(status) > WORSE.index(known.told) or now >= known.at + cool_down


def failed(known: Delivery, problem: str, wait: float | None, now: float) -> Delivery:
    """Return the delivery after a failed attempt."""
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(known.attempts, 10))
    pause = max(pause, min(wait or 0.0, LONGEST_RETRY_AFTER))
    return Delivery(known.told, known.at, known.attempts + 1, now + pause, problem)


async def send(client: Client, target: Target, headers: Mapping[str, str], body: Any) -> tuple[str, float | None]:
    """Try once; return the problem, without the address, and the seconds that the server asks to wait."""
    sent = {"Content-Type": "application/json", **headers}
    if target.token:
        sent["Authorization"] = f"Bearer {target.token}"
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            data = json.dumps(body, ensure_ascii=True).encode()
            answer = await client.request("POST", target.url, headers=sent, body=data)
    except TimeoutError:
        return f"no answer within {ANSWER_SECONDS:g} s", None
    except HttpError as error:
        return shorten(error.message.replace(target.url, "***"), 200), None
    except ConfigError:
        return "the token cannot be sent in a header", None
    if 200 <= answer.status < 300:
        return "", None
    if 300 <= answer.status < 400:
        return f"HTTP {answer.status}: redirects are not followed", None
    return f"HTTP {answer.status}", retry_after(answer.headers)


# --- OTLP -----------------------------------------------------------------------------------------


def evaluation_events(observations: Sequence[Observation], suite: str) -> dict[str, Any]:
    """Return scores as OTLP log records in JSON: the event ``gen_ai.evaluation.result`` of the GenAI conventions."""
    records = []
    for one in observations:
        records += _records(one)
    resource = {"attributes": [_attribute("service.name", "agent-gate"), _attribute("gate.suite", suite)]}
    scope = {"scope": {"name": "agent-gate.monitor"}, "logRecords": records}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}


def _records(one: Observation) -> list[dict[str, Any]]:
    label = {True: "pass", False: "fail", None: "not_measured"}[one.passed]
    whole = [_attribute("gen_ai.evaluation.name", "pass"), _attribute("gen_ai.evaluation.score.label", label)]
    if one.why:
        whole.append(_attribute("gen_ai.evaluation.explanation", one.why))
    if one.passed is not None:
        whole.append(_attribute("gen_ai.evaluation.score.value", float(one.passed)))
    found = [whole]
    for name, value in one.scores.items():
        score = _attribute("gen_ai.evaluation.score.value", value)
        found.append([_attribute("gen_ai.evaluation.name", name), score])
    time = str(int(max(0.0, min(one.at, 1e11)) * 1e9))
    event = "gen_ai.evaluation.result"
    records = []
    for attributes in found:
        record: dict[str, Any] = {"timeUnixNano": time, "eventName": event}
        own = [_attribute("event.name", event)]
        if _TRACE_ID.fullmatch(one.trace):
            record["traceId"] = one.trace
        else:
            own.append(_attribute("gen_ai.conversation.id", one.trace))
        records.append({**record, "attributes": [*own, *attributes]})
    return records


def _attribute(key: str, value: str | float) -> dict[str, Any]:
    kind = "doubleValue" if isinstance(value, float) else "stringValue"
    return {"key": key, "value": {kind: value}}
