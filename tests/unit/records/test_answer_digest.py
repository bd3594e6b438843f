"""The digest of an answer: equal for equal answers of any run, and kept where what was said is not."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gate.model import ErrorKind, Invocation, Part, ToolCall, Trial, TrialError, Usage
from gate.records import Header, PlannedCase, Record, digested, parse_record, strip, to_record
from gate.records.writer import record_lines
from gate.security.redact import Redactor


def test_an_answer_has_the_same_digest_in_every_run_and_it_survives_storage() -> None:
    def digest(text: str, *calls: ToolCall, **others: Any) -> str:
        trial = Trial("a", 1, invocations=(Invocation("hi", (Part(text),), calls),), **others)
        recorded, _ = to_record(trial, Redactor())
        return recorded.answer

    call = ToolCall("find", {"a": 1, "b": [2]}, id="one", result="x")
    assert digest("yes") == digest("yes") != digest("no")
    assert digest("yes", call) == digest("yes", replace(call, id="two", result="y", duration=1.0)) != digest("yes")
    assert digest("yes", call) != digest("yes", replace(call, args={"a": 1}))
    assert digest("yes", error=TrialError(ErrorKind.CRASH, "no")) == ""


def test_the_digest_is_of_the_redacted_answer() -> None:
    trial = Trial("a", 1, invocations=(Invocation("hi", (Part("the key is s3cr3t-value-1"),)),))
    masked, line = to_record(trial, Redactor(["s3cr3t-value-1"]))
    again, _ = to_record(replace(trial, invocations=(Invocation("hi", masked.invocations[0].response),)), Redactor())
    assert masked.answer == again.answer
    assert b"s3cr3t" not in line


def test_the_digest_stays_where_what_was_said_goes() -> None:
    trial, _ = to_record(Trial("a", 1, invocations=(Invocation("hi", (Part("yes"),)),)), Redactor())
    assert digested(trial, failed=False).answer == trial.answer != ""
    stored = strip(Record(Header("s", (PlannedCase("a", "f"),), ()), (trial,), None))
    again = parse_record(b"".join(record_lines(stored)))
    assert again.trials[0].answer == trial.answer
    assert again.trials[0].invocations[0].response == ()


def test_model_and_system_that_answered_are_kept_in_a_baseline() -> None:
    usage = Usage(model="m-1", system="fp_1")
    trial = Trial("a", 1, invocations=(Invocation("hi", (Part("yes"),), usage=usage),))
    stored = strip(Record(Header("s", (PlannedCase("a", "f"),), ()), (trial,), None))
    assert parse_record(b"".join(record_lines(stored))).trials[0].usage == usage
