"""A trace as a case: what is in the file stays to the letter, and whatever people wrote reads back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import ConfigError
from gate.formats.documents import parse_document
from gate.model import Case, Invocation, Part, ToolCall, Turn
from gate.monitor.model import Observation
from gate.monitor.promote import added, case_of, promoted_before
from gate.suites import load
from gate.system.serialize import pack_invocations

ONE = """# our cases
cases:
  # the first
  - id: a  # kept
    input: hello
"""


def seen(*asked: str, trace: str = "t-8841", why: str = "tone: rude", said: str = "No.") -> Observation:
    turns = tuple(Invocation(text, (Part(said),), (ToolCall("refund", {"order": 1}),)) for text in asked)
    return Observation(trace, 1_700_000_000.0, False, 0.0, why=why, kept=pack_invocations(turns))


TEXT = st.text(min_size=1).filter(lambda text: text.strip() and "\x00" not in text)


@given(TEXT, st.text(), st.text(min_size=1))
def test_whatever_was_asked_reads_back_as_it_was(asked: str, said: str, trace: str) -> None:
    case = case_of(seen(asked, trace=trace, why=said, said=said), [])
    for text in ("", ONE, "- {id: a, input: hello}\n", "- id: a\n  input: hello"):
        found = parse_document(added(text, case, "suite.yaml"), "suite.yaml")
        cases = found["cases"] if isinstance(found, dict) else found
        assert cases[-1] == case.value
        assert cases[-1]["input"] == asked
        assert cases[-1]["metadata"] == {"trace": trace, "time": "2023-11-14T22:13:20+00:00", "why": said}


def test_what_is_there_stays_to_the_letter(tmp_path: Path) -> None:
    case = case_of(seen("Where is it?", "And now?"), ["where-is-it-t-8841"])
    assert case.id == "where-is-it-t-8841-2"
    after = ONE + "\n  # about the last\n\ndefaults: {tags: [x]}  # end\n"
    for text in (ONE, after, ONE.replace("\n  ", "\n"), ONE.rstrip("\n")):
        found = added(text, case, "suite.yaml")
        kept = iter(found.splitlines())
        assert all(line in kept for line in text.splitlines()), "every line, in its order"
        (tmp_path / "suite.yaml").write_text(found, encoding="utf-8")
        (suite,) = load([tmp_path / "suite.yaml"], root=tmp_path)
        first, second = suite.cases
        assert first.turns == (Turn("hello"),)
        assert [turn.user for turn in second.turns] == ["Where is it?", "And now?"]
        assert second.metadata["trace"] == "t-8841"
        assert "production" in second.tags


def test_a_case_says_what_happened_and_what_is_left_to_say() -> None:
    case = case_of(seen("Where?", said="I\n# cannot\x1b[2J"), [])
    assert "  # The agent answered: I ⏎ # cannot" in case.text
    assert "  # It called: refund(order=1)\n" in case.text
    assert "  # Say what should have happened" in case.text
    assert "\x1b" not in case.text


@pytest.mark.parametrize(
    "text",
    [
        "cases: [{id: a, input: hello}]\n",
        "cases: []\n",
        "name: nothing\n",
        "just text\n",
        "defaults: {tags: [x]}\n",
        "cases: &all\n  - id: a\n    input: hello\n    metadata: {more: {cases: 1}}\n...\n# the end\n",
    ],
)
def test_a_file_that_would_have_to_be_rewritten_is_refused_with_the_way_to_the_case(text: str) -> None:
    case = case_of(seen("Where?"), [])
    try:
        found = added(text, case, "suite.yaml")
    except ConfigError as refused:
        assert "`gate promote TRACE --to NEW.yaml`" in str(refused)
    else:
        assert parse_document(found, "suite.yaml")["cases"][-1] == case.value


def test_a_trace_becomes_one_case_only() -> None:
    found = seen("Where?")
    by_trace = Case("a", (Turn("else"),), metadata={"trace": "t-8841"})
    by_text = Case("b", (Turn("Where?"),))
    assert promoted_before(found, [Case("c", (Turn("x"),)), by_trace]) is by_trace
    assert promoted_before(found, [by_text]) is by_text
    assert promoted_before(found, [Case("c", (Turn("Where?"), Turn("more")))]) is None


def test_masked_values_are_counted() -> None:
    assert case_of(seen("mail [personal data] with [redacted] and [redacted]"), []).masked == 3


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Observation("t", 0.0, True, 1.0), "it passed"),
        (Observation("t", 0.0, False, 1.0), "too large to be kept"),
        (seen(""), "does not contain the user's message"),
        (seen(), "does not contain the user's message"),
    ],
)
def test_what_is_not_here_is_not_made_up(found: Observation, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        case_of(found, [])
