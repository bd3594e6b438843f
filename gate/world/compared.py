"""Compares the requests of two recorded trials by replaying one to the requests of the other, without any server."""

from __future__ import annotations

from gate.model import Side
from gate.security.limits import shorten
from gate.world.attempt import Attempt, name_of
from gate.world.cassette import RecordedExchange, RecordedTape
from gate.world.differences import MOST_CHARS
from gate.world.mcp import listed, tool_changes
from gate.world.options import Kind
from gate.world.outbound import Addressed, OutboundRequest
from gate.world.volatile import Volatile


def difference_of(before: RecordedTape, now: RecordedTape, at: float, volatile: Volatile) -> tuple[str, bool]:
    """Return the second trial's first request that the first one's recording does not answer, and if all were compared.

    Once the two got different answers, later requests may differ for that reason and are not compared.

    Args:
        at: the Unix time of the second; times near it count as varying.
    """
    attempt = Attempt("", now.case_id, now.trial, Side.CANDIDATE, before)
    for exchange in now.exchanges:
        answered = attempt.recorded(Addressed(exchange.key, exchange.ids))
        if answered is None:
            attempt.differs(_asked(exchange, now, at), exchange.number, volatile, exchange.sent)
            return attempt.difference, True
        if answered.response != exchange.response and not (exchange.tools and exchange.tools == answered.tools):
            return _other_tools(before, answered, now, exchange), False
    attempt.ended()
    return attempt.difference, True


def _other_tools(
    before: RecordedTape, answered: RecordedExchange, now: RecordedTape, exchange: RecordedExchange
) -> str:
    """Return the first difference between the tools listed to both trials; empty if they share no list."""
    old = listed(before.cassette.body(answered.response) or b"")
    new = listed(now.cassette.body(exchange.response) or b"")
    if not exchange.tools or old is None or new is None:
        return ""
    changes = tool_changes(old, new)
    if not changes:
        return ""
    return shorten(f"tools of {name_of(exchange.upstream)}: {changes[0]}", MOST_CHARS)


def _asked(exchange: RecordedExchange, of: RecordedTape, at: float) -> OutboundRequest:
    body = of.cassette.body(exchange.request) or b""
    kind: Kind = "mcp" if b'"jsonrpc"' in body else "model"
    return OutboundRequest(exchange.upstream, kind, exchange.method, exchange.path, {}, body, at)
