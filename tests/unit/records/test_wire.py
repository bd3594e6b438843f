"""What is declared of a record's lines, against the model, the golden records and the page of the format."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from gate.errors import BaselineError
from gate.model import Criterion, ForeignScore, Invocation, Replay, Score, ToolCall, Trial, Usage
from gate.records import Footer, Header, PlannedCase, Record, parse_record, record_lines, wire
from gate.records.lines import nests_within
from tests.properties import examples
from tests.unit.records import strategies

ROOT = Path(__file__).parents[3]
GOLDEN = {path.name: path.read_bytes() for path in (ROOT / "tests" / "golden" / "records").iterdir()}
PAGE = (ROOT / "docs" / "dev" / "record.md").read_text()


EACH = (
    strategies.cases,
    strategies.criteria,
    strategies.turns,
    strategies.calls,
    strategies.usages,
    strategies.replays,
    strategies.scores_of(None),
)
"""What a record may hold none of."""
NOUNS = (Header, PlannedCase, Criterion, Trial, Invocation, ToolCall, Usage, Score, Replay, Footer)


def written(record: Record) -> bytes:
    return b"".join(record_lines(record))


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(strategies.records())
def test_any_record_is_read_as_it_was_written_and_written_as_it_was_read(made: Record) -> None:
    data = written(made)
    read = parse_record(data)
    assert read == made
    assert written(read) == data


@pytest.mark.parametrize("name", sorted(name for name in GOLDEN if name.endswith("-2.jsonl") and "open" not in name))
def test_a_golden_record_is_written_as_it_was_read(name: str) -> None:
    read = parse_record(GOLDEN[name])
    lines = GOLDEN[name].splitlines()
    assert written(read).splitlines()[:-1] == lines[:-1]
    assert parse_record(written(read)) == read


@settings(max_examples=examples(300))
@given(st.sampled_from(sorted(GOLDEN)), st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_no_changed_byte_of_a_golden_record_changes_what_was_measured(name: str, place: float, change: int) -> None:
    """It is refused. Of an open record, what was never proven is left out; no sum covers the closing line."""
    closed = not name.startswith("open")
    whole = parse_record(GOLDEN[name], complete=closed)
    data = bytearray(GOLDEN[name])
    data[int(place * len(data))] ^= change
    try:
        read = parse_record(bytes(data), complete=closed)
    except BaselineError as refusal:
        assert "\n" not in str(refusal)
        return
    assert read.header == whole.header
    assert read.trials == whole.trials[: len(read.trials)]
    assert closed <= (len(read.trials) == len(whole.trials))


@pytest.mark.slow
def test_every_field_of_the_model_takes_part_in_the_round_trip() -> None:
    """So that a field that is added to the model and forgotten on the line fails the test above."""
    never = {(noun, info.name) for noun in NOUNS for info in fields(noun)}

    @settings(max_examples=50, suppress_health_check=list(HealthCheck), database=None)
    @given(st.tuples(strategies.records(), *EACH))
    def drawn(samples: tuple[object, ...]) -> None:
        for made in nouns(samples):
            for info in fields(made):
                usual = info.default if info.default_factory is NODEFAULT else info.default_factory()
                if getattr(made, info.name) != usual:
                    never.discard((type(made), info.name))

    drawn()
    assert never == {(Invocation, "digest"), (Invocation, "outcomes"), (Trial, "run")}  # in memory alone


def nouns(value: object) -> Iterator[Struct]:
    """The structs of the model in a value, and it itself."""
    if isinstance(value, Struct):
        yield value
        value = [getattr(value, name) for name in value.__struct_fields__]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from nouns(inner)


# --- the page of the format -------------------------------------------------------------------------

SECTIONS: dict[str, type[Struct]] = {
    "Header": wire.HeaderLine,
    "Criterion": wire.CriterionObject,
    "Plan": PlannedCase,
    "Trial": wire.TrialLine,
    "Replay": Replay,
    "Score": Score,
    "Turn": wire.TurnObject,
    "Foreign score": ForeignScore,
    "Call": ToolCall,
    "Usage": Usage,
    "Closing line": wire.ClosingObject,
}
ELSEWHERE = {"PlanLine", "ClosingLine", "ThoughtObject", "VersionLine"}
"""Structs of one key or of none, which the page describes in its text."""


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_page_has_every_key_and_no_other(heading: str) -> None:
    section = re.split(r"^##+ ", PAGE.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    first_columns = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    keys = [key for column in first_columns for key in re.findall(r"`(\w+)`", column)]
    assert sorted(keys) == sorted(SECTIONS[heading].__struct_encode_fields__)


def test_every_struct_of_the_lines_has_its_section() -> None:
    declared = {
        name for name, kind in vars(wire).items() if isinstance(kind, type) and kind.__module__ == wire.__name__
    }
    sections = {kind.__name__ for kind in SECTIONS.values() if kind.__module__ == wire.__name__}
    assert declared == sections | ELSEWHERE | {"MalformedError"}


# --- messages -------------------------------------------------------------------------------------

FULL = GOLDEN["full-2.jsonl"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"ok":1.0', b'"ok":true', ":3: unreadable record: scores[...]: expected float | object | null, got bool"),
        (b'"ok":1.0', b'"ok":{"value":1,"why":2}', "scores[...]: object contains unknown field why"),
        (b'"ok":1.0', b'"ok":[1,2]', "scores[...]: expected float | object | null, got array"),
        (b'"ok":1.0', b'"ok":1e999', "scores[...]: number out of range"),
        (b'"ok":1.0', b'"o\\nk":"x"', "scores[...]: expected float | object | null, got str"),
        (b'"n":3', b'"n":0', ":3: unreadable record: n: expected int >= 1"),
        (b'"n":3', b'"n":9007199254740993', "n: expected int <= 9007199254740992"),
        (b'"n":3,', b"", "trial: object missing required field n"),
        (b'"n":3,', b'"n":"a\\nb","n":3,', "n: expected int, got str"),
        (b'"round":2', b'"sum":3', "sum: expected str | null, got int"),
        (b'"duration":0.25', b'"duration":-0.25', "turns[0].calls[0].duration: expected float >= 0.0"),
        (b'"user":', b'"ver\\ndict":', "turns[0]: object contains unknown field ver\\ndict"),
        (b'["timeout","60 s"]', b'["tired","60 s"]', "error[0]: invalid enum value 'tired'"),
        (b'["timeout","60 s"]', b'["timeout"]', "error: expected array of length 2"),
        (b'["timeout","60 s"]', b'"timeout"', "error: expected array | null, got str"),
        (b'"per_turn":[0.5', b'"per_turn":["0.5"', "scores[...].per_turn[0]: expected float | null, got str"),
        (b'"suite":"support"', b'"suite":null', ":1: unreadable record: suite: expected str, got null"),
        (b'"quantiles":[[0.95', b'"quantiles":[[1.95', "criteria[0].quantiles[0][0]: expected float < 1.0"),
        (b'"pass_mark"', b'"pass_threshold"', "criteria[0]: object contains unknown field pass_threshold"),
        (b'"shard":[1,1]', b'"shard":[2,1]', ":1: unreadable record: shard is not [i, n] with i from 1 to n: [2, 1]"),
        (b'{"plan"', b'{"plane"', ":2: unreadable record: plan line: object contains unknown field plane"),
        (b'"at":["evals/a.yaml",12]', b'"at":[12,"evals/a.yaml"]', "at is not [path, line]"),
        (b'"thresholds":{', b'"thresholds":{"a":1,"b":"x",', "plan[0].thresholds[...]: expected float, got str"),
        (b'"closing":{"trials":2', b'"closing":{"trials":-1', "closing.trials: expected int >= 0"),
    ],
)
def test_a_refusal_names_the_line_and_the_field(old: bytes, new: bytes, says: str) -> None:
    assert old in FULL
    with pytest.raises(BaselineError) as caught:
        parse_record(FULL.replace(old, new, 1), where="r.jsonl")
    assert str(caught.value).startswith("r.jsonl:")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_of_the_line_is_json_under_its_own_name() -> None:
    plain = json.loads(FULL.splitlines()[0])
    assert {"pass_mark", "gate_regression"} <= plain["criteria"][0].keys()


# --- nesting --------------------------------------------------------------------------------------


def depth_of(value: object) -> int:
    if isinstance(value, (dict, list)):
        return 1 + max(map(depth_of, value.values() if isinstance(value, dict) else value), default=0)
    return 0


BRACKETED = st.text('[]{}"\\', max_size=5)


@given(
    st.recursive(
        st.none() | BRACKETED,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(BRACKETED, inner, max_size=3),
    ),
    st.integers(0, 8),
)
def test_the_depth_of_a_line_is_that_of_its_containers(value: object, limit: int) -> None:
    """Brackets and quotes in texts make no difference."""
    assert nests_within(json.dumps(value).encode() + b"\n", limit) == (depth_of(value) <= limit)
