"""What a trial can end in: one table, the same for every kind of agent."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from gate.agents.base import LATER, AgentFailure, kind_of_status, parse_options
from gate.errors import ConfigError
from gate.guest import worker
from gate.model import ENDS, End, ErrorKind, Trial, TrialError


def test_every_kind_of_error_has_one_end() -> None:
    assert set(ENDS) == set(ErrorKind)
    assert End.ANSWERED not in ENDS.values()


def test_the_kinds_of_format_1_are_read_by_the_table() -> None:
    for word, end in (
        ("timeout", End.FAILED),
        ("crash", End.FAILED),
        ("protocol", End.FAILED),
        ("unreachable", End.UNMEASURED),
        ("cancelled", End.UNMEASURED),
    ):
        assert ENDS[ErrorKind(word)] is end


def test_a_trial_is_answered_failed_or_unmeasured() -> None:
    answered, failed, lost = Trial("a", 1), _trial(ErrorKind.CRASH), _trial(ErrorKind.LIMIT)
    assert [(t.end, t.answered, t.failed, t.measured) for t in (answered, failed, lost)] == [
        (End.ANSWERED, True, False, True),
        (End.FAILED, False, True, True),
        (End.UNMEASURED, False, False, False),
    ]
    excused = Trial("a", 1, error=TrialError(ErrorKind.CRASH, "x", excused=True))
    assert not excused.measured


def _trial(kind: ErrorKind) -> Trial:
    return Trial("a", 1, error=TrialError(kind, "x"))


@pytest.mark.parametrize("status", [408, 425, 429, 503, 529])
def test_a_status_that_says_try_later_is_infrastructure(status: int) -> None:
    assert ENDS[kind_of_status(status)] is End.UNMEASURED


@pytest.mark.parametrize("status", [302, 400, 401, 404, 500, 501, 502, 504, 599])
def test_any_other_status_is_the_agents_own(status: int) -> None:
    assert ENDS[kind_of_status(status)] is End.FAILED


@pytest.mark.parametrize(
    "text",
    [
        "RateLimitError: Error code: 429 - {'error': {'message': 'slow down'}}",
        "HTTP 500: upstream says HTTP 503",
        "litellm.RateLimitError: rate limit reached",
        "anthropic.OverloadedError: Overloaded",
        "google.api_core.exceptions.ResourceExhausted: 429 Resource has been exhausted",
        "You exceeded your current quota, please check your plan",
        "insufficient_quota",
        "ThrottlingException: Too many requests",
    ],
)
def test_a_providers_signature_makes_a_crash_its_limit(text: str) -> None:
    failure = AgentFailure(ErrorKind.CRASH, text)
    assert (failure.kind, failure.transient) == (ErrorKind.LIMIT, True)


@pytest.mark.parametrize(
    "text",
    ["KeyError: 'order'", "ValueError: order 4290 is unknown", "500 items", "", "no overloaded function matches"],
)
def test_anything_else_is_the_agents_own(text: str) -> None:
    failure = AgentFailure(ErrorKind.CRASH, text, transient=True)
    assert (failure.kind, failure.transient) == (ErrorKind.CRASH, False), "never tried away"


@pytest.mark.parametrize(
    "text",
    [
        "NotFoundError: Error code: 404 - The model `gpt-99` does not exist or you do not have access to it.",
        "{'type': 'not_found_error', 'message': 'model: claude-99'}",
        "404 models/gemini-99 is not found for API version v1beta",
        "DeploymentNotFound: The API deployment for this resource does not exist",
        "ValidationException: The provided model identifier is invalid.",
        'model "llama99" not found, try pulling it first',
        "AuthenticationError: Error code: 401 - Incorrect API key provided: sk-…",
        "HTTP 400: API key not valid. Please pass a valid API key.",
        "OpenAIError: The api_key client option must be set",
        "NoCredentialsError: Unable to locate credentials",
        "PermissionDeniedError: Error code: 403",
        "AccessDeniedException: User is not authorized to perform: bedrock:InvokeModel",
        "PERMISSION_DENIED: the caller has no permission",
        "KeyError: 'OPENAI_API_KEY'",
        "ANTHROPIC_API_KEY is not set",
        "Access denied due to invalid subscription key",
    ],
)
@pytest.mark.parametrize("kind", [ErrorKind.CRASH, ErrorKind.PROTOCOL])
def test_an_unknown_model_and_a_refused_key_are_the_setups(kind: ErrorKind, text: str) -> None:
    """Nothing is down, so no other attempt helps; a change that names a wrong model in some cases is worse."""
    failure = AgentFailure(kind, text, transient=True)
    assert (failure.kind, failure.transient, failure.end) == (ErrorKind.SETUP, False, End.FAILED)


@pytest.mark.parametrize("status", [302, 308, 401, 403, 404, 405])
def test_a_status_that_refuses_key_or_address_is_the_setups(status: int) -> None:
    assert kind_of_status(status) is ErrorKind.SETUP


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'model'",
        "KeyError: 'session_token'",
        "order 7 does not exist",
        "ValueError: no keyword 'token'",
        "PermissionError: [Errno 13] Permission denied: '/data/orders.db'",
        "the user is unauthorized to refund order 7",
        "DoesNotExist: Model matching query does not exist",
        "cannot reach the model server: host not found",
    ],
)
def test_other_crashes_are_not_the_setups(text: str) -> None:
    assert AgentFailure(ErrorKind.CRASH, text).kind is ErrorKind.CRASH


def test_an_unreadable_answer_is_the_agents_whatever_it_speaks_of() -> None:
    assert AgentFailure(ErrorKind.PROTOCOL, "not JSON: 'our rate limit is ten a day'").end is End.FAILED


def test_only_the_part_that_says_why_is_searched_for_a_signature() -> None:
    tail = "HTTP/1.1 429 Too Many Requests, retrying\nKeyError: 'order'"
    assert AgentFailure(ErrorKind.CRASH, tail, said="KeyError: 'order'").end is End.FAILED


def test_the_users_own_signatures() -> None:
    failure = AgentFailure(ErrorKind.CRASH, "BackendError: Vector Store says no, shard 7 is warming up")
    assert failure.under(("vector store*warming",)).kind is ErrorKind.LIMIT
    assert failure.under(("warming*vector store",)) is failure, "in this order"
    assert failure.under(()) is failure
    timeout = AgentFailure(ErrorKind.TIMEOUT, "no answer within 60 s")
    assert timeout.under(("no answer within",)).transient
    refused = AgentFailure(ErrorKind.UNREACHABLE, "refused", transient=True)
    assert refused.under(("refused",)) is refused


@pytest.mark.parametrize("pattern", ["*", "", "a*b", " "])
def test_a_signature_that_would_match_anything_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="would match almost any error"):
        parse_options({"python": "a:b", "transient": pattern})


# --- the worker, which shares no code with the gate -----------------------------------------------


def test_the_worker_knows_the_same_statuses() -> None:
    assert frozenset(worker.LATER) == LATER


class StatusError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


def wrapped(cause: BaseException) -> BaseException:
    try:
        try:
            raise cause
        except BaseException as error:
            raise RuntimeError("the tool failed") from error
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StatusError(429), "unreachable"),
        (wrapped(StatusError(503)), "unreachable"),
        (StatusError(500), "crash"),
        (ConnectionRefusedError("refused"), "unreachable"),
        (wrapped(socket.gaierror(-2, "Name or service not known")), "unreachable"),
        (ConnectionResetError("reset"), "crash"),
        (TimeoutError("slow"), "crash"),
        (KeyError("order"), "crash"),
    ],
)
def test_an_exception_is_the_agents_unless_somebody_refused_it(error: BaseException, kind: str) -> None:
    told: dict[str, Any] = worker.failure(error)
    assert (told["kind"], told["transient"]) == (kind, kind == "unreachable")


def test_a_chain_of_causes_that_bites_its_tail_ends() -> None:
    one, other = KeyError("a"), KeyError("b")
    one.__cause__, other.__cause__ = other, one
    assert worker.failure(one)["kind"] == "crash"
