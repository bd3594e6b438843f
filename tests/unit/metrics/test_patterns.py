"""Patterns of authors over strangers' text: each ends, and what it says is what `re` says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.metrics import patterns
from gate.metrics.base import NotMeasurableError, TrialOutput
from gate.metrics.content import JsonSchema, Regex, RegexOptions, SchemaOptions
from gate.metrics.matching import ArgsRule, args_match
from gate.metrics.patterns import PatternError, PatternTimeoutError, is_found, is_whole
from gate.model import Case, Invocation, Part, Turn
from tests.properties import examples

HANGING = [
    (r"(a|a)*b", "a" * 60),
    (r"(a|b|ab)*c", "ab" * 60),
    (r"(?:a?){60}a{60}", "a" * 60),
    (r"(.*a){25}b", "a" * 60),
    (r"(x+x+)+y", "x" * 60),
    (r"\s*\s*\s*\s*\s*x", " " * 20_000),
    (r"(a*)\1\1\1\1\1b", "a" * 20_000),
]
"""Each would take years, or hours; some are refused before they are matched."""
CASE = Case("c", (Turn("hello"),))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A matcher that is ended after a twentieth of a second of processor time."""
    matcher = patterns._Matcher()
    monkeypatch.setattr(patterns, "LIMIT_SECONDS", 0.05)
    monkeypatch.setattr(patterns, "_MATCHER", matcher)
    yield
    matcher._end()


def said(text: str) -> TrialOutput:
    return TrialOutput((Invocation(response=(Part(text),)),))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("pattern", "text"), HANGING)
def test_no_match_goes_on_for_ever(pattern: str, text: str) -> None:
    with pytest.raises((PatternError, PatternTimeoutError)):
        is_found(pattern, text)
    assert is_found("a+", "baa"), "the next one is matched all the same"


@pytest.mark.usefixtures("impatient")
def test_what_could_not_be_matched_is_no_score() -> None:
    pattern, text = HANGING[0]
    score = Regex(RegexOptions(patterns=(f"x{pattern}",))).score(CASE, said(f"x{text}"))
    assert score.value is None
    assert "took longer than 0.05 s" in (score.error or "")
    with pytest.raises(NotMeasurableError, match="took longer"):
        args_match({"q": pattern}, {"q": text}, ArgsRule(match="regex"))


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"pattern": "^(a|a)*b$"}, '"{}"'),
        ({"patternProperties": {"^(a|a)*b$": {}}}, '{{"{}": 1}}'),
        ({"patternProperties": {"^(a|a)*b$": {}}, "additionalProperties": False}, '{{"{}": 1}}'),
        ({"items": {"pattern": "^(a|a)*b$"}}, '["{}"]'),
    ],
)
def test_nor_do_those_of_a_schema(schema: dict[str, object], answer: str) -> None:
    score = JsonSchema(SchemaOptions(schema=schema)).score(CASE, said(answer.format("a" * 60)))
    assert score.value is None
    assert "took longer" in (score.error or "")


def test_a_schema_means_what_it_meant() -> None:
    closed = {
        "type": "object",
        "properties": {"b": {}},
        "patternProperties": {"^x": {}},
        "additionalProperties": False,
    }
    for schema, answer, value in [
        ({"pattern": "^a+$"}, '"aaa"', 1.0),
        ({"pattern": "^a+$"}, '"ab"', 0.0),
        ({"pattern": "^a+$"}, "1", 1.0),
        ({"patternProperties": {"^x": {"type": "integer"}}}, '{"xa": 1, "b": "c"}', 1.0),
        ({"patternProperties": {"^x": {"type": "integer"}}}, '{"xa": "1"}', 0.0),
        (closed, '{"xa": 1, "b": 2}', 1.0),
        (closed, '{"c": 1}', 0.0),
        ({"additionalProperties": {"type": "string"}}, '{"c": 1}', 0.0),
        ({"additionalProperties": {"type": "string"}}, '{"c": "d"}', 1.0),
        ({"additionalProperties": True}, '{"c": "d"}', 1.0),
    ]:
        assert JsonSchema(SchemaOptions(schema=schema)).score(CASE, said(answer)).value == value, (schema, answer)


def test_what_would_match_behind_our_back_is_refused() -> None:
    with pytest.raises(ValueError, match="unevaluatedProperties beside patternProperties"):
        SchemaOptions(schema={"patternProperties": {"a": {}}, "unevaluatedProperties": False})


@given(
    st.sampled_from(["a", "^b?c$", "a+b", r"\d{2,3}", "[ab]*c", r"(a)\1", "x|y+", "(?i)A.", "é+", r"\Aa?b?c?d?\Z"]),
    st.text(alphabet='abcdxyAé1\n"\\', max_size=12),
    st.booleans(),
)
@settings(max_examples=examples(150))
def test_the_answer_is_that_of_the_standard_library(pattern: str, text: str, ignore_case: bool) -> None:
    flags = re.IGNORECASE if ignore_case else 0
    assert is_found(pattern, text, ignore_case=ignore_case) == (re.search(pattern, text, flags) is not None)
    assert is_whole(pattern, text) == (re.fullmatch(pattern, text) is not None)


def test_lone_surrogates_and_whole_books_find_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_found("\ud800+x", "\ud800\ud800x")
    assert is_found("a+b", "a" * 50_000 + "b") is True
    with pytest.raises(patterns.PatternTimeoutError, match="100,001 characters"):
        is_found("b+", "a" * patterns.MAX_TEXT + "b")


def test_a_matcher_that_was_killed_is_started_again() -> None:
    assert is_found("a+", "a")
    dialogue = patterns._MATCHER._dialogue
    assert dialogue is not None
    dialogue._process.kill()
    dialogue._process.wait()
    with pytest.raises(PatternTimeoutError, match="the process for it was killed by SIGKILL"):
        is_found("a+", "a")
    assert is_found("a+", "a")


@pytest.mark.slow
def test_a_signal_ends_a_gate_that_is_matching() -> None:
    """In a process of its own: a match in the gate's own would sit the signal out."""
    code = """
        import signal, sys
        from gate.metrics import patterns
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        patterns.LIMIT_SECONDS = 10_000.0
        print("matching", flush=True)
        patterns.is_found("(a|a)*b", "a" * 60)
    """
    gate = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    with gate:
        assert gate.stdout is not None
        assert gate.stdout.readline() == "matching\n"
        os.kill(gate.pid, signal.SIGTERM)
        assert gate.wait() == 143


def test_only_what_cannot_take_long_is_matched_in_the_gate() -> None:
    for pattern, quick in [
        ("refund", True),
        ("a|b?", True),
        ("a?b?c?d?", False),
        ("a+", False),
        (r"(a)\1", False),
        ("(?:ab){2}", False),
    ]:
        assert patterns._is_quick(pattern) is quick, (pattern, quick)
