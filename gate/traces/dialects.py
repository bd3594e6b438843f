"""Interprets spans in any dialect: GenAI conventions, OpenInference, OpenLLMetry, AI SDK, Strands, ADK."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from msgspec import UNSET, UnsetType

from gate.formats.endings import cut_off_by
from gate.formats.shapes import as_list, as_mapping, as_text
from gate.model import Usage
from gate.model.bounds import MAX_COUNT
from gate.security.limits import MAX_ID_CHARS, cut, shorten
from gate.traces import said
from gate.traces.said import Message
from gate.traces.span import Event, Piece, Span
from gate.traces.values import first_recorded, is_placeholder, listed, mapping, parsed, text_in

MAX_ERROR_CHARS = 1_000
MAX_LITERAL_CHARS = 10_000


class Kind(Enum):
    """The kind of operation that a span describes."""

    AGENT = "agent"
    WORKFLOW = "workflow"
    MODEL = "model"
    TOOL = "tool"
    OTHER = "other"
    """Anything else; its children count as if the span did not exist."""


AGENTIC = (Kind.AGENT, Kind.WORKFLOW)
_OPERATIONS = {
    "chat": Kind.MODEL,
    "generate_content": Kind.MODEL,
    "text_completion": Kind.MODEL,
    "invoke_agent": Kind.AGENT,
    "invoke_workflow": Kind.WORKFLOW,
    "execute_tool": Kind.TOOL,
}
_MARKS: Mapping[str, Mapping[str, Kind]] = {
    "openinference.span.kind": {"AGENT": Kind.AGENT, "LLM": Kind.MODEL, "TOOL": Kind.TOOL},
    "traceloop.span.kind": {"workflow": Kind.WORKFLOW, "agent": Kind.AGENT, "tool": Kind.TOOL},
    "ai.operationId": {
        **dict.fromkeys(("generateText", "streamText"), Kind.AGENT),
        **dict.fromkeys(("doGenerate", "doStream"), Kind.MODEL),
        "toolCall": Kind.TOOL,
    },
    "mcp.method.name": {"tools/call": Kind.TOOL},
}
"""The meaning of each attribute that marks a span without ``gen_ai.operation.name``; the first one decides."""
_ADK_NAMES = {"invocation": Kind.WORKFLOW, "call_llm": Kind.MODEL, "agent_run": Kind.AGENT}
_ADK = "gcp.vertex.agent"
_MERGED = "(merged tools)"
_MERGED_SPAN = f"execute_tool {_MERGED}"
"""A span of ADK that repeats several calls."""

_TOOL_NAME = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "mcp.tool.name", "traceloop.entity.name")
_TOOL_ID = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool.id")
_ARGUMENTS = (
    *("gen_ai.tool.call.arguments", "ai.toolCall.args", "ai.toolCall.input", "tool_arguments"),
    *("gcp.vertex.agent.tool_call_args", "input.value", "tool.parameters", "traceloop.entity.input"),
)
_RESULT = (
    *("gen_ai.tool.call.result", "ai.toolCall.result", "ai.toolCall.output", "tool_response"),
    *("gcp.vertex.agent.tool_response", "output.value", "traceloop.entity.output"),
)
_MODEL = (
    *("gen_ai.response.model", "ai.response.model", "llm.model_name", "gen_ai.request.model", "ai.model.id"),
    "llm.response.model",
)
_INPUT_TOKENS = (
    *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    *("ai.usage.promptTokens", "ai.usage.inputTokens", "llm.usage.prompt_tokens"),
)
_OUTPUT_TOKENS = (
    *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    *("ai.usage.completionTokens", "ai.usage.outputTokens", "llm.usage.completion_tokens"),
)
_COST = ("llm.cost.total", "gen_ai.usage.cost", "gen_ai.usage.total_cost", "operation.cost")
_SESSION = (
    *("gen_ai.conversation.id", "session.id", "gcp.vertex.agent.session_id", "langfuse.session.id"),
    *("traceloop.association.properties.session_id", "ai.telemetry.metadata.sessionId"),
)
_SESSION_KEYS = frozenset(_SESSION)
_DETAILS = "gen_ai.client.inference.operation.details"
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_TOOL_ENDINGS = frozenset({"tool_calls", "tool_call", "tool_use", "function_call", "tool-calls"})


class Operation:
    """A span and its interpretation. Messages are read on demand, because most are never needed."""

    __slots__ = ("_logs", "_usage", "id", "kind", "name", "span")

    def __init__(self, span: Span, logs: Sequence[Event] = ()) -> None:
        self.span, self._logs = span, logs
        self._usage: Usage | UnsetType | None = UNSET
        self.kind = kind_of(span)
        self.id = self.name = ""
        if self.kind is Kind.TOOL:
            self.id, self.name = _tool_id(span), _tool_name(span)

    @property
    def usage(self) -> Usage | None:
        if self._usage is UNSET:
            self._usage = _usage(self.span)
        return self._usage

    @property
    def error(self) -> str:
        """The error of the operation; empty on success."""
        span, raised = self.span, None
        for one in (*span.events, *self._logs):
            if one.name in _RAISED:
                raised = one.attributes
        kind, status = span.attributes.get("error.type"), span.attributes.get("gen_ai.tool.status")
        if not (span.failed or kind or status == "error" or (raised is not None and not span.end)):
            return ""
        raised = raised or {}
        words = as_text(kind or raised.get("exception.type")), as_text(span.message or raised.get("exception.message"))
        kept = filter(None, dict.fromkeys(words))
        return shorten(": ".join(kept) or "the span ended in an error", MAX_ERROR_CHARS)

    @property
    def arguments(self) -> Any:
        """The arguments of a tool; UNSET if they were not recorded."""
        value = _tool_content(self.span, _ARGUMENTS, "gen_ai.tool.message", "content")
        if value is UNSET:
            value = first_recorded(call.args for call in said.calls_in((*self.inputs(), *self.outputs())))
        return value

    @property
    def result(self) -> Any:
        """The result of a tool; UNSET if it was not recorded."""
        value = _tool_content(self.span, _RESULT, "gen_ai.choice", "message")
        if value is UNSET:
            value = first_recorded(one.result for one in said.results_in(self.outputs()))
        return value

    def inputs(self) -> tuple[Message, ...]:
        """Return the input messages."""
        attributes = self.span.attributes
        return (
            said.messages(attributes.get("gen_ai.input.messages"))
            or _from_details(self.span, self._logs, "gen_ai.input.messages", "user")
            or _from_events(self.span, self._logs, outputs=False)
            or said.openinference(attributes, "llm.input_messages.")
            or said.openllmetry(attributes, "gen_ai.prompt.", "user")
            or _ai_sdk_inputs(attributes)
            or said.messages(mapping(attributes.get("gcp.vertex.agent.llm_request")).get("contents"))
            or _from_value(attributes, ("input.value", "traceloop.entity.input"), "user")
        )

    def outputs(self) -> tuple[Message, ...]:
        """Return the output messages."""
        attributes = self.span.attributes
        return (
            said.messages(attributes.get("gen_ai.output.messages"), "assistant")
            or _from_details(self.span, self._logs, "gen_ai.output.messages", "assistant")
            or _from_events(self.span, self._logs, outputs=True)
            or said.openinference(attributes, "llm.output_messages.")
            or said.openllmetry(attributes, "gen_ai.completion.", "assistant")
            or _ai_sdk_outputs(attributes)
            or said.messages(mapping(attributes.get("gcp.vertex.agent.llm_response")).get("content"), "assistant")
            or _from_value(attributes, ("final_result", "output.value", "traceloop.entity.output"), "assistant")
        )

    @property
    def ends_without_calls(self) -> bool:
        """True if the finish reasons of a model call are known and none of them is a tool call."""
        reasons = _finish_reasons(self.span)
        return bool(reasons) and not any(str(reason).lower() in _TOOL_ENDINGS for reason in reasons)


# --- what a span is -------------------------------------------------------------------------------


def kind_of(span: Span) -> Kind:
    """Return the kind of a span, from its attributes; from its name only if its instrumentation sets no other mark."""
    attributes = span.attributes
    if attributes.get("gen_ai.tool.name") == _MERGED or span.name == _MERGED_SPAN:
        return Kind.OTHER
    if _HANDOFF in attributes:
        return Kind.TOOL
    named = attributes.get("gen_ai.operation.name")
    if isinstance(named, str) and named:
        return _OPERATIONS.get(named, Kind.OTHER)
    for key, kinds in _MARKS.items():
        mark = attributes.get(key)
        if isinstance(mark, str) and mark:
            named = mark.rpartition(".")[2]  # of `ai.generateText.doGenerate`
            return kinds.get(named) or kinds.get(named.upper(), Kind.OTHER)
    if span.scope == _ADK or "gcp.vertex.agent.invocation_id" in attributes:
        if span.name.startswith("execute_tool"):
            return Kind.TOOL
        return _ADK_NAMES.get(span.name, Kind.OTHER)
    if _is_model_call(attributes):
        return Kind.MODEL
    return Kind.OTHER


def _is_model_call(attributes: Mapping[str, Any]) -> bool:
    if attributes.get("llm.request.type") in ("chat", "completion"):
        return True
    if "gen_ai.request.model" not in attributes:
        return False
    marks = ("gen_ai.usage.", "gen_ai.prompt.", "gen_ai.completion.", "gen_ai.input.messages", "gen_ai.output.messages")
    return any(key.startswith(marks) for key in attributes)


def _tool_name(span: Span) -> str:
    named = text_in(span.attributes, *_TOOL_NAME)
    if named:
        return named
    receiver = _receiver(span)
    if receiver:
        return handoff_name(receiver)
    for operation in ("execute_tool ", "tools/call "):
        if span.name.startswith(operation):
            return cut(span.name.removeprefix(operation), MAX_ID_CHARS)
    return cut(span.name, MAX_ID_CHARS)


def handoff_name(receiver: str) -> str:
    """Return the tool name for a handoff to an agent, in the spelling of the OpenAI Agents SDK, for all dialects."""
    return cut(f"transfer_to_{_NO_WORD.sub('_', receiver)}".lower(), MAX_ID_CHARS)


_NO_WORD = re.compile(r"[^a-zA-Z0-9]")
_HANDOFF = "gen_ai.handoff.to_agent"
_HANDOFF_NAME = "handoff to "


def _receiver(span: Span) -> str:
    """Return the agent to which a span hands the conversation over; empty if there is none."""
    named = text_in(span.attributes, _HANDOFF)
    if not named and span.name.startswith(_HANDOFF_NAME):
        return span.name.removeprefix(_HANDOFF_NAME)
    return named


def _tool_id(span: Span) -> str:
    named = text_in(span.attributes, *_TOOL_ID)
    if named or "output.value" not in span.attributes:
        return named
    return text_in(_tool_message(parsed(span.attributes["output.value"])), "tool_call_id")


def _tool_message(value: Any) -> Mapping[str, Any]:
    """Return LangChain's tool message, in which OpenInference records a result; empty if it is not one."""
    if not isinstance(value, dict):
        return {}
    held = as_mapping(value.get("data", value.get("kwargs", value)))
    if "tool_call_id" not in held or "content" not in held:
        return {}
    return held


def session_of(attributes: Mapping[str, Any]) -> str:
    """Return the session that attributes name; empty if they name none."""
    if _SESSION_KEYS.isdisjoint(attributes):
        return ""
    return text_in(attributes, *_SESSION)


# --- its parts ------------------------------------------------------------------------------------


def _tool_content(span: Span, keys: Sequence[str], event: str, of_event: str) -> Any:
    """Return the arguments or the result in a tool's own attributes or event; UNSET if it holds none."""
    for key in keys:
        if key in span.attributes:
            value = _recorded(key, span.attributes[key])
            if value is not UNSET:
                return value
    for one in span.events:
        if one.name == event:
            return said.content(_of_blocks(one.attributes.get(of_event, one.attributes.get("content"))))
    return UNSET


def _recorded(key: str, value: Any) -> Any:
    found = said.content(value)
    if key.startswith(_ADK) and found in ({}, "{}"):
        return UNSET  # ADK's placeholder for content that is not recorded
    if key in _WHOLE_INPUTS or (isinstance(found, dict) and "input_str" in found and key in _ARGUMENTS):
        return _of_whole_input(found)
    if key in _RESULT:
        if isinstance(found, dict) and found.keys() == {"output", "kwargs"}:
            found = said.content(found["output"])
        message = _tool_message(found)
        if message:
            return said.content(message["content"])
    return found


_WHOLE_INPUTS = ("input.value", "traceloop.entity.input")


def _of_whole_input(found: Any) -> Any:
    """Return arguments from a tool's whole input. A bare value is unset: some dialects record a single argument without
    its name, and the model's request is more precise."""
    if isinstance(found, str) and found[:1] == "{" and len(found) < MAX_LITERAL_CHARS:
        try:
            found = ast.literal_eval(found)  # a mapping printed by Python
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return UNSET
    if not isinstance(found, dict):
        return UNSET
    for name in ("inputs", "kwargs"):
        if isinstance(found.get(name), dict):
            return found[name]
    return found


def _of_blocks(value: Any) -> Any:
    """Return the text of Bedrock's only block, in which Strands holds the result of a tool; any other value as it
    is."""
    blocks = parsed(value)
    if isinstance(blocks, list) and len(blocks) == 1 and isinstance(blocks[0], dict):
        return blocks[0].get("text", blocks[0].get("json"))
    return value


def _finish_reasons(span: Span) -> list[Any]:
    """Return the reasons why a model's answers ended; empty if they are not recorded."""
    reasons = parsed(span.attributes.get("gen_ai.response.finish_reasons"))
    if isinstance(reasons, str):
        return [reasons]
    return as_list(reasons)


def _usage(span: Span) -> Usage | None:
    attributes = span.attributes
    read, written = _count(attributes, _INPUT_TOKENS), _count(attributes, _OUTPUT_TOKENS)
    if read is None and written is None and "gcp.vertex.agent.llm_response" in attributes:
        told = mapping(mapping(attributes["gcp.vertex.agent.llm_response"]).get("usage_metadata"))
        read, written = _count(told, ("prompt_token_count",)), _count(told, ("candidates_token_count",))
    cost, model = _number(attributes, _COST), text_in(attributes, *_MODEL) or None
    cut_off = any(map(cut_off_by, _finish_reasons(span)))
    if read is None and written is None and cost is None and not cut_off:
        return None
    return Usage(read, written, cost, model=model, cut_off=cut_off)


def _number(attributes: Mapping[str, Any], keys: Sequence[str]) -> float | None:
    for key in keys:
        if key in attributes:
            value = attributes[key]
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT:
                return float(value)
    return None


def _count(attributes: Mapping[str, Any], keys: Sequence[str]) -> int | None:
    found = _number(attributes, keys)
    if found is None:
        return None
    return int(found)


_RAISED = ("exception", "gen_ai.client.operation.exception")


# --- messages -------------------------------------------------------------------------------------


def unread_kinds(piece: Piece) -> Iterator[str]:
    """Yield the kinds of messages and parts in a span or log record that no dialect here knows."""
    found = _recorded_messages(piece.attributes)
    for prefix in ("llm.input_messages.", "llm.output_messages."):
        found += said.openinference(piece.attributes, prefix, whole=True)
    events: Sequence[Event] = (piece,) if isinstance(piece, Event) else piece.events
    for event in events:
        if _is_message(event.name):
            found.append(_event_message(event))
        elif event.name == _DETAILS:
            found += _recorded_messages(mapping(event.body))
            if event is not piece:
                found += _recorded_messages(event.attributes)
        elif event.name.startswith("gen_ai."):
            yield f"an event {shorten(repr(event.name), MAX_ID_CHARS)}"
    for message in found:
        yield from message.unread


def _recorded_messages(attributes: Mapping[str, Any]) -> list[Message]:
    """Return the messages in attributes that hold whole lists of them, empty messages included."""
    found: list[Message] = []
    for key in ("gen_ai.input.messages", "gen_ai.output.messages", "ai.prompt.messages"):
        if key in attributes:
            found += map(said.message, listed(attributes[key]))
    return found


def _from_details(span: Span, logs: Sequence[Event], key: str, role: str) -> tuple[Message, ...]:
    for event in (*span.events, *logs):
        if event.name == _DETAILS:
            found = said.messages(event.attributes.get(key, mapping(event.body).get(key)), role)
            if found:
                return found
    return ()


def _from_events(span: Span, logs: Sequence[Event], *, outputs: bool) -> tuple[Message, ...]:
    """Return messages recorded as single events, of the span or, if it has none, of its log records."""
    told = [event for event in span.events if _is_message(event.name)]
    if not told:
        told = sorted([record for record in logs if _is_message(record.name)], key=lambda record: record.time)
    found = []
    for one in told:
        if (one.name == "gen_ai.choice") is outputs:
            found.append(_event_message(one))
    return said.with_content(found)


def _is_message(name: str) -> bool:
    return name == "gen_ai.choice" or name in _MESSAGE_EVENTS


def _event_message(event: Event) -> Message:
    held, role = mapping(event.body) or event.attributes, _MESSAGE_EVENTS.get(event.name, "assistant")
    inner = parsed(held.get("message"))
    if isinstance(inner, dict):
        return said.message({"role": role, **inner}, role)
    if inner is not None:
        held = {**held, "content": inner}
    return said.message({**held, "role": role}, role)


def _ai_sdk_inputs(attributes: Mapping[str, Any]) -> tuple[Message, ...]:
    if "ai.prompt.messages" in attributes:
        return said.messages(attributes["ai.prompt.messages"])
    prompt = mapping(attributes.get("ai.prompt"))
    return said.messages(prompt.get("messages")) or _text_message(prompt.get("prompt"), "user")


def _ai_sdk_outputs(attributes: Mapping[str, Any]) -> tuple[Message, ...]:
    text, calls = attributes.get("ai.response.text", attributes.get("ai.response.object")), "ai.response.toolCalls"
    if text is None and calls not in attributes:
        return ()
    return said.messages({"role": "assistant", "content": text, "tool_calls": attributes.get(calls)})


def _from_value(attributes: Mapping[str, Any], keys: Sequence[str], role: str) -> tuple[Message, ...]:
    for key in keys:
        if key in attributes and not is_placeholder(attributes[key]):
            value = attributes[key]
            held = mapping(value).get("messages")
            if isinstance(held, list):
                if len(held) == 1 and isinstance(held[0], list):  # LangChain may nest them
                    held = held[0]
                return said.messages(held, role)
            return _text_message(said.plain_text(value), role)
    return ()


def _text_message(text: Any, role: str) -> tuple[Message, ...]:
    if not isinstance(text, str) or is_placeholder(text):
        return ()
    return (Message(role, (text,)),)
