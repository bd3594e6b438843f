"""Reads traces of agents into conversations: spans and log records of OpenTelemetry and its dialects."""

from __future__ import annotations

from gate.traces.conversation import (
    Conversation,
    TracedTurn,
    conversation_of,
    conversations_of,
    failure_of,
)
from gate.traces.reader import TraceReader, read_file
from gate.traces.span import Piece, Span
