"""Reads the answers of A2A agents, in protocol 1.0 and 0.3: messages, tasks, and updates of tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from gate.formats.adk import usage_of_events
from gate.formats.messages import FormatError, Trajectory, optional_text, to_call
from gate.formats.shapes import as_mapping, as_text, mappings_in
from gate.model import Invocation, Part, ToolCall, Usage, parts_of
from gate.security.limits import shorten

ANSWERED = ("completed", "input-required")
"""The states in which a task has said something to the user: a result or a question."""
OPEN = ("submitted", "working")
"""The states in which a task continues."""
KINDS = {"task": "task", "message": "message", "statusUpdate": "status-update", "artifactUpdate": "artifact-update"}
"""The kinds of results: the key in protocol 1.0 and the ``kind`` in 0.3."""
ADK = "adk_"
"""The prefix of the metadata keys that google-adk writes."""
MOST_ARTIFACTS = 1_000


class Exchange(Struct):
    """The answer to one message, assembled from one or several results."""

    message_id: str
    """The id of the sent message: everything after it in the history belongs to the turn."""
    known: frozenset[str] = frozenset()
    """Artifacts of the same task from earlier turns, as `artifact_keys` identifies them."""
    task_id: str = ""
    context_id: str = ""
    state: str = ""
    """In the spelling of protocol 0.3; empty until a task has a state."""
    reply: Mapping[str, Any] | None = None
    """The message with which the agent answered, if there is no task."""
    status: Mapping[str, Any] | None = None
    """The message in the last status of the task."""
    artifacts: dict[str, dict[str, Any]] = field(default_factory=dict)
    said: list[Mapping[str, Any]] = field(default_factory=list)
    """The agent's messages before its answer, in order."""
    metadata: dict[str, Any] = field(default_factory=dict)
    consumed: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The usage in each event of google-adk, by the event's id."""

    def take(self, result: Any) -> None:
        """Add one result. Raises `FormatError` for anything else."""
        kind, body = _kind_of(result)
        self.context_id = _agreeing("contextId", self.context_id, _text(body, "contextId"))
        key = "taskId"
        if kind == "task":
            key = "id"
        self.task_id = _agreeing("taskId", self.task_id, _text(body, key))
        told = as_mapping(body.get("metadata"))
        self.metadata |= told
        usage = told.get(f"{ADK}usage_metadata")
        if kind.endswith("update") and usage is not None:
            self.consumed[_text(told, f"{ADK}event_id")] = {"usage_metadata": usage}
        if kind == "message":
            self.reply = body
        elif kind == "artifact-update":
            self._add_artifact(_object(body, "artifact"), append=body.get("append") is True)
        else:
            self._take_status(_object(body, "status"))
            if kind == "task":
                self._take_task(body)

    def _take_status(self, status: Mapping[str, Any]) -> None:
        self.state = state_of(status.get("state"))
        if self.status is not None:
            self._say(self.status)
        message, self.status = status.get("message"), None
        if isinstance(message, Mapping):
            self.status = message

    def _take_task(self, task: Mapping[str, Any]) -> None:
        """Take over a complete task: its history and artifacts replace the earlier ones."""
        history = mappings_in(task.get("history"))
        asked = [place for place, one in enumerate(history) if is_from_user(one)]
        sent = [place for place in asked if history[place].get("messageId") == self.message_id]
        self.said = [one for one in history[(sent or asked or [-1])[-1] + 1 :] if not is_from_user(one)]
        self.artifacts = {}
        for artifact in mappings_in(task.get("artifacts")):
            self._add_artifact(artifact, append=False)

    def _add_artifact(self, artifact: Mapping[str, Any], *, append: bool) -> None:
        key = _text(artifact, "artifactId") or f"#{len(self.artifacts)}"
        if append and key not in self.artifacts:
            raise FormatError("an artifact continues without a beginning: part of the stream is missing")
        if len(self.artifacts) >= MOST_ARTIFACTS and key not in self.artifacts:
            raise FormatError(f"the task has more than {MOST_ARTIFACTS:,} artifacts")
        if append:
            self.artifacts[key]["parts"] += mappings_in(artifact.get("parts"))
        else:
            self.artifacts[key] = {**artifact, "parts": list(mappings_in(artifact.get("parts")))}

    def _say(self, message: Mapping[str, Any]) -> None:
        known = message.get("messageId")
        if not any(message is one or (known and one.get("messageId") == known) for one in self.said):
            self.said.append(message)

    @property
    def artifact_keys(self) -> frozenset[str]:
        """The keys of this task's artifacts, which distinguish them from those of its later turns."""
        return frozenset(map(_key_of, self.artifacts.values()))

    def to_json(self) -> dict[str, Any]:
        """Return the agent's answer as one object: the task in the form of 1.0, or the message."""
        if self.reply is not None:
            return {**self.reply, "metadata": self.metadata}
        status: dict[str, Any] = {"state": self.state}
        if self.status is not None:
            status["message"] = self.status
        artifacts = list(self.artifacts.values())
        return {"status": status, "artifacts": artifacts, "history": self.said, "metadata": self.metadata}

    def to_invocation(self, *, user: str) -> Invocation:
        """Return the turn. Raises `FormatError` if it has neither text nor calls."""
        new = [artifact for artifact in self.artifacts.values() if _key_of(artifact) not in self.known]
        final = [message for message in (self.status, self.reply) if message]
        brought = _without_empty(text_of_parts(artifact["parts"], between="") for artifact in new)
        last = _without_empty(map(_text_of, reversed(final)))
        said = _without_empty(_text_of(message) for message in self.said if message is not self.status)
        if self.state != "input-required" and brought:
            said, last = said + last, []
        answer = "\n".join([*brought, *last])
        if not answer and said:
            answer = said.pop()
        calls = _calls([*self.said, *new, *final])
        if not answer and not calls and not (new or final):
            raise FormatError("the task ended without an artifact and without a message")
        return Invocation(
            user=user,
            response=parts_of(answer),
            tool_calls=calls,
            intermediate=tuple(Part(text) for text in said if text != answer),
            usage=self._usage(),
            reports_calls=f"{ADK}app_name" in self.metadata,
        )

    def _usage(self) -> Usage | None:
        """Return the tokens in the metadata of google-adk's events; a task has only those of its last event."""
        return usage_of_events(self.consumed.values())


def _without_empty(texts: Iterable[str]) -> list[str]:
    return list(filter(None, texts))


def state_of(raw: Any) -> str:
    """Return a state in the form of version 0.3: ``TASK_STATE_INPUT_REQUIRED`` becomes ``input-required``."""
    if not isinstance(raw, str):
        raise FormatError("the task has no state")
    return raw.removeprefix("TASK_STATE_").lower().replace("_", "-")


def is_from_user(message: Mapping[str, Any]) -> bool:
    """True if a message in the history is from the user."""
    return str(message.get("role")).upper().endswith("USER")


def text_of_parts(parts: Any, *, between: str = "\n") -> str:
    """Return parts as text: data as JSON, files by address or name. Calls, results and thoughts are left out."""
    found = []
    for part in mappings_in(parts):
        told = part.get("metadata")
        if isinstance(told, Mapping) and (told.get(f"{ADK}thought") or f"{ADK}type" in told):
            continue
        found.append(_text_of_part(part))
    return between.join(_without_empty(found))


def _text_of_part(part: Mapping[str, Any]) -> str:
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if "data" in part:
        return json.dumps(part["data"], ensure_ascii=False)
    file = as_mapping(part.get("file")) or part
    for key in ("url", "uri", "filename", "name", "mediaType", "mimeType"):
        name = as_text(file.get(key))
        if name:
            return f"[file {name}]"
    return ""


def _text_of(message: Mapping[str, Any]) -> str:
    return text_of_parts(message.get("parts"))


def _calls(told: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    """Return the calls that google-adk puts into data parts, each with its result."""
    trajectory = Trajectory()
    parts: list[Mapping[str, Any]] = []
    for one in told:
        parts += mappings_in(one.get("parts"))
    for part in parts:
        data = part.get("data")
        kind = as_mapping(part.get("metadata")).get(f"{ADK}type")
        if kind == "function_call":
            call = to_call(data)
            if call.id is None or all(call.id != one.id for one in trajectory.calls):
                trajectory.add(call)
        elif kind == "function_response" and isinstance(data, Mapping):
            trajectory.answer(optional_text(data, "id"), as_text(data.get("name")) or None, data.get("response"))
    return tuple(trajectory.calls)


def _kind_of(result: Any) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(result, Mapping):
        raise FormatError("a result is not an object")
    for key, kind in KINDS.items():
        if isinstance(result.get(key), Mapping):
            return kind, result[key]
    if result.get("kind") in KINDS.values():
        return str(result["kind"]), result
    if "status" in result and "id" in result:
        return "task", result
    keys = shorten(", ".join(map(str, result)) or "nothing", 200)
    raise FormatError(f"a result is neither a message nor a task: it has {keys}")


def _key_of(artifact: Mapping[str, Any]) -> str:
    return json.dumps([artifact.get("artifactId"), artifact["parts"]], sort_keys=True)


def _text(body: Mapping[str, Any], key: str) -> str:
    return as_text(body.get(key))


def _agreeing(key: str, known: str, told: str) -> str:
    """Return the value of a key that all results agree on. Raises `FormatError` if one differs."""
    if known and told and known != told:
        raise FormatError(f"a result has a different {key} from earlier ones: it answers something else")
    return told or known


def _object(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = body.get(key)
    if not isinstance(value, Mapping):
        raise FormatError(f"a result has no {key}")
    return value


def file_part(attached: Mapping[str, Any], *, old: bool) -> dict[str, Any]:
    """Return a user's file as a part of a message; ``old``: in the form of protocols before 1.0."""
    (held,) = attached.values()
    names = ("mediaType", "filename", "raw", "url")
    if old:
        names = ("mimeType", "name", "bytes", "uri")
    found = {}
    for name, key in zip(names, ("mime_type", "display_name", "data", "file_uri"), strict=True):
        if held.get(key) is not None:
            found[name] = held[key]
    if old:
        return {"kind": "file", "file": found}
    return found
