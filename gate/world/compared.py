"""What two recorded trials asked differently: the one is replayed to the other's requests, and no server is asked."""

from __future__ import annotations

from gate.model import Side
from gate.world.attempt import Attempt, Coupling
from gate.world.cassette import RecordedExchange
from gate.world.options import Kind
from gate.world.outbound import Addressed, OutboundRequest
from gate.world.volatile import Volatile


def difference_of(before: Coupling, now: Coupling, at: float, volatile: Volatile) -> tuple[str, bool]:
    """What the second trial asked first that the recording of the first does not answer, and whether all was compared.

    Where the two were answered differently, what they ask from there on may differ for that: it is not compared.

    Args:
        at: the Unix time of the second: what lies near it varies by itself.
    """
    attempt = Attempt("", now.tape.case_id, now.tape.trial, Side.CANDIDATE, before)
    for exchange in now.tape.exchanges:
        answered = attempt.recorded(Addressed(exchange.key, exchange.ids))
        if answered is None:
            attempt.differs(_asked(exchange, now, at), exchange.number, volatile, exchange.sent)
            return attempt.difference, True
        if answered.response != exchange.response:
            return "", False
    attempt.ended()
    return attempt.difference, True


def _asked(exchange: RecordedExchange, of: Coupling, at: float) -> OutboundRequest:
    body = of.cassette.body(exchange.request) or b""
    kind: Kind = "mcp" if b'"jsonrpc"' in body else "model"
    return OutboundRequest(exchange.upstream, kind, exchange.method, exchange.path, {}, body, at)
