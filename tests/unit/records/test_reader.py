import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from gate.errors import BaselineError, GateError, MeasureError, UntrustedError
from gate.model import (
    CONFIRM,
    Complexity,
    Criterion,
    Direction,
    ErrorKind,
    ForeignScore,
    Invocation,
    Part,
    Replay,
    Scale,
    Score,
    Side,
    ToolCall,
    Trial,
    TrialError,
    Usage,
)
from gate.records import (
    FORMAT,
    Footer,
    Header,
    PlannedCase,
    Record,
    RecordWriter,
    assign_shards,
    cases_of,
    iter_trials,
    merge,
    parse_record,
    read_header,
    read_record,
    record_lines,
    redacted,
    strip,
    write_record,
)
from gate.records.lines import trial_line
from gate.records.shards import OTHER_TERMS
from gate.security.limits import MAX_LINE_BYTES
from gate.security.redact import Redactor
from tests.patience import steps
from tests.properties import examples

GOLDEN = Path(__file__).parents[2] / "golden" / "records"

RICH_CASE = PlannedCase(
    "refund",
    "f1",
    ("smoke",),
    Complexity.COMPLEX,
    ("evals/a.yaml", 12),
    1.5,
    1,
    {"response_match_score": 0.5},
    "refunds",
    expected=((ToolCall("refund", {"order": 1}),), None),
)
PLAIN_CASE = PlannedCase("größe → 漢字", "f2")
RICH_CRITERION = Criterion(
    name="p95",
    metric="latency",
    scale=Scale.SECONDS,
    direction=Direction.LOWER,
    threshold=2.5,
    limit=4.0,
    quantiles=((0.95, 3.0),),
    margin=0.3,
    pass_threshold=0.5,
    blocking=False,
    blocks_regression=False,
    ratchet=False,
    hard=True,
    fingerprint="abc",
)
HEADER = Header(
    suite_id="support",
    plan=(RICH_CASE, PLAIN_CASE),
    criteria=(RICH_CRITERION, Criterion("ok", "contains", Scale.BINARY)),
    run_id="run-1",
    gate_version="0.1.0",
    commit="c" * 40,
    base_commit="b" * 40,
    dirty=True,
    agent="a1",
    seed=7,
    created=1_700_000_000.25,
)
RICH_CALL = ToolCall("refund", {"order": 1, "why": None}, "id1", {"ok": True}, "late", 0.25, "payments", True)
RICH_TRIAL = Trial(
    case_id="refund",
    number=3,
    round=2,
    tag=CONFIRM,
    side=Side.BASELINE,
    invocations=(
        Invocation(
            user="I want my money back",
            response=(Part("thinking", thought=True), Part("Done.")),
            tool_calls=(
                ToolCall("refund", {"order": 1, "why": None}, "id1", {"ok": True}, "late", 0.25, "payments", True),
            ),
            intermediate=(Part("One moment."),),
            usage=Usage(10, 20, 0.001, 2, "m-1"),
            duration=0.5,
        ),
        Invocation(tool_calls=(ToolCall("empty", {}), ToolCall("absent"))),
    ),
    scores={
        "ok": Score(1.0),
        "p95": Score(0.1 + 0.2, "slow", None, (0.5, None), {"k": [1, "x"]}),
        "none": Score(None),
        "failed": Score(None, error="judge is down"),
    },
    duration=0.5,
    attempts=2,
    started=1_700_000_001.5,
)
FAILED_TRIAL = Trial("größe → 漢字", 1, error=TrialError(ErrorKind.TIMEOUT, "60 s"))
RECORD = Record(HEADER, (RICH_TRIAL, FAILED_TRIAL), Footer(2, 1, 2, 12.5, 0.04, "budget"))
RICH_FOOTER = Footer(2, 1, 2, 12.5, 0.04, "budget", {"notes": ["a note"]})


def text_of(record: Record) -> bytes:
    return b"".join(record_lines(record))


def journal(path: Path) -> bytes:
    """An open record of `OPEN_TRIALS`, appended one by one."""
    with RecordWriter(path, HEADER) as writer:
        for made in OPEN_TRIALS:
            writer.append(made)
    return path.read_bytes()


def trial(number: int = 1, case: str = "refund", value: float = 1.0) -> Trial:
    return Trial(case, number, scores={"ok": Score(value)})


# --- round trip -----------------------------------------------------------------------------------


def test_everything_survives_the_round_trip(tmp_path: Path) -> None:
    write_record(tmp_path / "r.jsonl", RECORD)
    assert read_record(tmp_path / "r.jsonl") == RECORD
    assert list(iter_trials(tmp_path / "r.jsonl")) == list(RECORD.trials)
    assert read_header(tmp_path / "r.jsonl") == HEADER


def test_that_a_selection_left_cases_out_is_kept() -> None:
    selected = replace(RECORD, header=replace(HEADER, selected=True, scope="tag smoke", whole=120))
    found = parse_record(text_of(selected)).header
    assert (found.selected, found.scope, found.whole) == (True, "tag smoke", 120)
    assert not parse_record(text_of(RECORD)).header.selected


def test_what_is_known_of_reported_calls_is_kept() -> None:
    criterion = Criterion(
        "c", "weighted_score", Scale.UNIT, reads_tools=True, absence=True, lexical=True, k=3, parts=("a", "b")
    )
    given = ForeignScore("match", 0.5, "half of it")
    turns = (Invocation(reports_calls=True), Invocation(foreign=(given,)))
    record = replace(
        RECORD,
        header=replace(HEADER, criteria=(criterion,), definition="d1", subject="s", branch="b", version="v"),
        trials=(replace(trial(), invocations=turns), FAILED_TRIAL),
    )
    read = parse_record(text_of(record))
    assert (read.header, read.trials) == (record.header, record.trials)
    assert [turn.reports_calls for turn in strip(record).trials[0].invocations] == [True, False]


OPEN_TRIALS = (RICH_TRIAL, FAILED_TRIAL, trial(1), trial(2))


@pytest.mark.parametrize(
    "value",
    [
        RICH_CASE,
        RICH_CRITERION,
        HEADER,
        RICH_TRIAL,
        RICH_TRIAL.invocations[0],
        RICH_TRIAL.invocations[0].usage,
        RICH_TRIAL.invocations[0].tool_calls[0],
        RICH_FOOTER,
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_samples_above_leave_no_field_at_its_default(value: object) -> None:
    """So that a field added to a noun and forgotten in the format fails the round trip."""
    unusual = {
        "again",
        "error",
        "stripped",
        "shard",
        "selected",
        "digest",
        "outcomes",
    }  # tests of their own; no digest is written
    unusual |= {
        "reports_calls",
        "cut_off",
        "reads_tools",
        "absence",
        "lexical",
        "k",
        "parts",
        "calibration",
        "definition",
        "subject",
        "branch",
        "version",
        "runs",
        "scope",
        "whole",
        "epochs",
        "answer",
        "process",
        "log",
        "cluster",
        "responses",
        "run",
        "unseen",
        "foreign",
        "system",
        "replay",
        "users",
        "earlier",
    }  # newer than the golden records
    for field in fields(value):  # type: ignore[arg-type]
        if field.name not in unusual:
            assert getattr(value, field.name) not in (field.default, (), {}, frozenset()), field.name


def test_that_a_trial_stands_in_for_a_lost_one_is_kept() -> None:
    again = Trial("refund", 2, again=True)
    assert parse_record(text_of(replace(RECORD, trials=(again,), footer=None)), complete=False).trials == (again,)


def test_which_process_answered_is_kept_in_a_baseline_too() -> None:
    record = replace(RECORD, trials=(replace(trial(), process="4f1c09aa"), FAILED_TRIAL))
    assert parse_record(text_of(record)).trials == record.trials
    assert [one.process for one in strip(record).trials] == ["4f1c09aa", ""]


def test_earlier_attempts_and_who_played_the_user_are_kept() -> None:
    earlier = ((Invocation("hi", tool_calls=(ToolCall("drop"),)),),)
    record = replace(RECORD, trials=(replace(trial(), users=(("player", "player-1"),), earlier=earlier), FAILED_TRIAL))
    assert parse_record(text_of(record)).trials == record.trials
    kept = strip(record).trials[0]
    assert (kept.users, kept.earlier) == ((("player", "player-1"),), ()), "a baseline keeps no conversation"


def test_a_line_is_json_for_any_reader() -> None:
    for line in text_of(RECORD).splitlines():
        json.loads(line.decode("utf-8"), parse_constant=pytest.fail)


def test_scores_keep_every_bit() -> None:
    values = [0.1 + 0.2, 1 / 3, 5e-324, 1e300, -0.0]
    record = Record(HEADER, tuple(Trial("refund", n, scores={"p95": Score(v)}) for n, v in enumerate(values, 1)), None)
    read = [t.scores["p95"].value for t in parse_record(text_of(record)).trials]
    assert [v.hex() for v in read if v is not None] == [v.hex() for v in values]


finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
parts = st.lists(st.builds(Part, st.text(), st.booleans()), max_size=3).map(tuple)
amounts = st.none() | st.floats(0, 1e9)
calls = st.builds(ToolCall, st.text(), json_values, st.none() | st.text(), json_values, st.none() | st.text(), amounts)
usages = st.builds(Usage, st.none() | st.integers(0, 2**40), st.none() | st.integers(0, 2**40), amounts)
turns = st.builds(
    Invocation, st.text(), parts, st.lists(calls, max_size=3).map(tuple), parts, st.none() | usages, amounts
)
scores = st.builds(
    Score,
    st.none() | finite,
    st.text(),
    st.none() | st.text(),
    st.lists(st.none() | st.floats(0, 1), max_size=3).map(tuple),
    st.dictionaries(st.text(), json_values, max_size=3),
)
trials = st.builds(
    Trial,
    st.just("refund"),
    st.integers(1, 10_000),
    st.integers(1, 50),
    st.text(),
    st.sampled_from(Side),
    st.lists(turns, max_size=3).map(tuple),
    st.dictionaries(st.text(), scores, max_size=4),
    st.none() | st.builds(TrialError, st.sampled_from(ErrorKind), st.text()),
    amounts,
    st.integers(0, 9),
    amounts,
)


@pytest.mark.slow
@given(trials)
def test_any_trial_survives_the_round_trip(made: Trial) -> None:
    assert parse_record(text_of(Record(HEADER, (made,), None))).trials == (made,)


# --- what JSON cannot hold ------------------------------------------------------------------------


def reread(made: Trial) -> Trial:
    data = text_of(Record(HEADER, (made,), None))
    for line in data.splitlines():
        json.loads(line.decode("utf-8"), parse_constant=pytest.fail)
    return parse_record(data).trials[0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_not_measured(value: float) -> None:
    score = reread(Trial("refund", 1, scores={"ok": Score(value)})).scores["ok"]
    assert score.value is None
    assert score.error is not None and "not a finite number" in score.error


def test_unpaired_surrogates_are_replaced_and_pairs_joined() -> None:
    turn = Invocation(user="a\ud800b", response=(Part("\ud83d\ude00\udc00"),))
    read = reread(Trial("refund", 1, invocations=(turn,)))
    assert read.invocations[0].user == "a\ufffdb"
    assert read.invocations[0].text == "😀\ufffd"


def test_wild_arguments_become_the_nearest_json() -> None:
    deep: object = "bottom"
    for _ in range(100_000):
        deep = [deep]
    wild = {"nan": math.nan, "huge": 10**5000, "set": {1}, "path": Path("x"), "deep": deep, 5: (1, 2)}
    args = reread(Trial("refund", 1, invocations=(Invocation(tool_calls=(ToolCall("t", wild),)),))).invocations[0]
    read = args.tool_calls[0].args
    assert read["nan"] is None and read["set"] == [1] and read["path"] == "x" and read["5"] == [1, 2]
    assert "bits" in read["huge"]
    assert "nested too deeply" in json.dumps(read["deep"], ensure_ascii=False)


class Odd:
    """As an array of numbers: asked whether it equals something, it has no single answer."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "odd"


def test_a_value_that_cannot_be_compared_is_written_as_text() -> None:
    calls = (ToolCall("t", Odd(), result=[Odd()]), ToolCall("u"))
    read = reread(Trial("refund", 1, invocations=(Invocation(tool_calls=calls),))).invocations[0].tool_calls
    assert read == (ToolCall("t", "odd", result=["odd"]), ToolCall("u"))


def test_control_characters_and_line_ends_stay_inside_their_line() -> None:
    text = "".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029\r\n"
    assert reread(Trial("refund", 1, invocations=(Invocation(user=text),))).invocations[0].user == text


@pytest.mark.parametrize("length", [3_000_000, pytest.param(60_000_000, marks=pytest.mark.slow)])
def test_huge_texts_are_shortened_and_scores_kept(length: int) -> None:
    made = replace(RICH_TRIAL, invocations=(Invocation(user="x" * length, response=(Part("y" * length),)),))
    data = text_of(Record(HEADER, (made,), None))
    assert max(map(len, data.splitlines())) < 100_000
    read = parse_record(data).trials[0]
    assert read.scores == made.scores
    assert read.invocations[0].user.endswith("more characters)")


@pytest.mark.slow
def test_forty_thousand_calls_keep_their_order() -> None:
    calls = tuple(ToolCall(f"tool_{n}", {"n": n, "text": "z" * 30}) for n in range(40_000))
    read = reread(Trial("refund", 1, invocations=(Invocation(tool_calls=calls),)))
    assert read.invocations[0].tool_calls == calls


# --- refusing -------------------------------------------------------------------------------------


def refusal(data: bytes, *, complete: bool = True) -> str:
    with pytest.raises(BaselineError) as caught:
        parse_record(data, where="r.jsonl", complete=complete)
    assert str(caught.value).startswith("r.jsonl")
    return str(caught.value)


GOOD = text_of(RECORD)
LINES = GOOD.splitlines(keepends=True)


def test_every_cut_is_refused_whole_and_read_as_far_as_it_goes_otherwise() -> None:
    for end in range(len(GOOD)):
        refusal(GOOD[:end])


def test_an_open_record_is_read_up_to_its_last_whole_line(tmp_path: Path) -> None:
    data = journal(tmp_path / "r.jsonl")
    for end in range(len(LINES[0] + LINES[1]), len(data)):
        read = parse_record(data[:end], complete=False)
        assert read.trials == OPEN_TRIALS[: data[:end].count(b"\n") - 2]
        assert read.footer is None


def test_no_changed_byte_of_an_open_record_is_believed(tmp_path: Path) -> None:
    """Only the last line, or its sum, may look as if it had never been written whole."""
    data = journal(tmp_path / "r.jsonl")
    for at in range(len(data)):
        edited = bytearray(data)
        edited[at] ^= 1
        try:
            read = parse_record(bytes(edited), complete=False)
        except BaselineError:
            continue
        assert read.trials in (OPEN_TRIALS[:-1], OPEN_TRIALS[:-2])  # the latter without the end of the line between
        assert at >= data.rindex(b"\n", 0, -1)


def test_what_was_appended_in_one_go_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first, *batch = [trial(n) for n in range(1, 5)]
    last = replace(batch[-1], round=7)
    with RecordWriter(path, HEADER) as writer:
        writer.append(first)
        writer.extend([(made, trial_line(made)) for made in (*batch[:-1], last)])
    whole = path.read_bytes()
    begin = len(whole) - sum(len(line) for line in whole.splitlines(keepends=True)[-3:])
    for end in (begin, begin + 10, whole.index(b"\n", begin) + 1, len(whole) - 1):
        path.write_bytes(whole[:end])
        with RecordWriter(path, HEADER, resume=True) as writer:
            assert writer.resumed == (first,)
            writer.append(batch[0])
            writer.finish()
        assert read_record(path).trials == (first, batch[0])
        assert read_record(path).footer == Footer(2, 0, 1)


@pytest.mark.parametrize(("name", "value"), [("ok", 1.5), ("ok", -0.1), ("p95", -1.0)])
def test_a_score_outside_its_scale_is_refused(name: str, value: float) -> None:
    """Also with a checksum that fits: whoever wrote it, no statistics hold for it."""
    made = Trial("refund", 1, scores={name: Score(value)})
    with pytest.raises(BaselineError, match="outside its scale"):
        parse_record(text_of(Record(HEADER, (made,), None)))


def test_a_long_record_that_is_written_whole_is_proven_piece_by_piece() -> None:
    made = tuple(trial(n) for n in range(1, 251))
    data = text_of(Record(HEADER, made, None))
    assert parse_record(data).trials == made
    assert parse_record(data, complete=False).trials == made
    assert parse_record(data[: data.rindex(b'{"closing"')], complete=False).trials == made[:200]


@pytest.mark.slow
def test_every_changed_byte_is_noticed() -> None:
    for at in range(len(GOOD) - len(LINES[-1])):
        edited = bytearray(GOOD)
        edited[at] ^= 1
        refusal(bytes(edited))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"hello\n", "not a line of JSON"),
        (b"[]\n", "header: expected object, got array"),
        (b'{"a":1}\n', "not a record of the gate"),
        (b"\xff\xfe\n", "not a line of JSON"),
        (LINES[0].replace(b'"gate_record":2', b'"gate_record":3'), "written in format 3"),
        (LINES[0].replace(b'"gate_record":2', b'"gate_record":true'), "expected int, got bool"),
        (LINES[0], "cut short before its first trial"),
        (b"".join(LINES[:-1]), "not closed"),
        (b"".join(LINES[:-2] + LINES[-1:]), "checksum"),
        (b"".join(LINES[:2] + LINES[3:1:-1] + LINES[4:]), "checksum"),
        (b"".join([*LINES[:3], LINES[2], *LINES[3:]]), "there twice"),
        (GOOD + LINES[2], "there twice"),
        (GOOD + b"\n", "not a line of JSON"),
        (b"".join([*LINES[:2], b"{torn\n", *LINES[2:]]), "not a line of JSON"),
        (GOOD.replace(b'{"case":"refund"', b'{"case":"other"'), "outside the plan"),
        (GOOD.replace(b'"n":3', b'"n":3.5'), "n: expected int, got float"),
        (GOOD.replace(b'"n":3', b'"n":0'), "n: expected int >= 1"),
        (GOOD.replace(b'"side":"baseline"', b'"side":"both"'), "side: invalid enum value 'both'"),
        (GOOD.replace(b'"ok":1.0', b'"ok":true'), "expected float | object | null, got bool"),
        (GOOD.replace(b'"ok":1.0', b'"ok":NaN'), "not a line of JSON"),
        (GOOD.replace(b'"ok":1.0', b'"ok":1e999'), "out of range"),
        (GOOD.replace(b'"ok":1.0', b'"ok":' + b"9" * 400), "number out of range"),
        (GOOD.replace(b'"ok":1.0', b'"ok":' + b"9" * 5000), "out of range"),
        (GOOD.replace(b'"args":{}', b'"args":' + b"[" * 200 + b"]" * 200), "nested more than"),
        (GOOD.replace(b'"args":{}', b'"args":' + b"[" * 200_000 + b"]" * 200_000), "not a line of JSON"),
        (GOOD.replace(b'"user":', b'"verdict":'), "unknown field verdict"),
        (LINES[0].replace(b'"cases":2', b'"cases":1') + LINES[1], "the plan does not hold"),
        (LINES[0] + LINES[1].replace("größe → 漢字".encode(), b"refund"), "the plan does not hold"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, says: str) -> None:
    assert says in refusal(data)


def test_a_line_beyond_the_limit_is_refused_without_reading_it_whole(tmp_path: Path) -> None:
    with (tmp_path / "r.jsonl").open("wb") as file:
        file.write(b"".join(LINES[:2]))
        file.write(b'{"case":"' + b"x" * (MAX_LINE_BYTES + 10) + b'"}\n')
        file.write(LINES[2])
    with pytest.raises(MeasureError, match="too long"):
        read_record(tmp_path / "r.jsonl", complete=False)


def test_the_caller_names_the_error(tmp_path: Path) -> None:
    with pytest.raises(UntrustedError):
        parse_record(b"hello", error=UntrustedError)
    with pytest.raises(MeasureError, match="no such record"):
        read_record(tmp_path / "none")
    with pytest.raises(BaselineError, match="this is a folder"):
        read_record(tmp_path, error=BaselineError)
    with pytest.raises(MeasureError, match="cannot be read: File name too long"):
        read_record(tmp_path / ("x" * 300))


def test_escaped_surrogates_of_a_stranger_are_refused() -> None:
    assert "not a line of JSON" in refusal(GOOD.replace(b'"n":3', b'"n":3,"tag":"\\ud800"'))


json_text = json_values.map(lambda value: json.dumps(value).encode())


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["bytes", "drop", "double", "value", "cut"]))
        if kind == "bytes":
            line = bytearray(lines[at])
            for _ in range(draw(st.integers(1, 4))):
                line[draw(st.integers(0, len(line) - 1))] = draw(st.integers(0, 255))
            lines[at] = bytes(line)
        elif kind == "value":
            data = json.loads(LINES[min(at, len(LINES) - 1)])
            key = draw(st.sampled_from(sorted(data)))
            data[key] = draw(json_values)
            lines[at] = json.dumps(data).encode() + b"\n"
        elif kind == "cut":
            lines[at] = lines[at][: draw(st.integers(1, len(lines[at])))]
        elif kind == "double":
            lines.insert(at, lines[at])
        elif len(lines) > 1:
            del lines[at]
    return b"".join(lines)


@settings(max_examples=examples(300))
@given(mutations(), st.booleans())
def test_no_mutation_does_worse_than_a_gate_error(data: bytes, complete: bool) -> None:
    try:
        read = parse_record(data, complete=complete)
    except GateError as error:
        assert "\n" not in str(error)
        return
    assert parse_record(text_of(read)).trials == read.trials


@settings(max_examples=examples(200))
@given(st.binary(max_size=300))
def test_no_bytes_do_worse_than_a_gate_error(data: bytes) -> None:
    with pytest.raises(GateError):
        parse_record(data, complete=False)


# --- writing and resuming -------------------------------------------------------------------------


def test_a_trial_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "r.jsonl"
    with RecordWriter(path, HEADER) as writer:
        writer.append(trial(1))
        assert read_record(path, complete=False).trials == (trial(1),)
        writer.append(trial(2))
        assert writer.finish(duration=3.0) == Footer(2, 0, 1, 3.0)
    assert read_record(path) == Record(HEADER, (trial(1), trial(2)), Footer(2, 0, 1, 3.0))


def test_resume_drops_a_truncated_line_and_repeats_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordWriter(path, HEADER) as writer:
        writer.append(trial(1))
        writer.append(trial(2))
    path.write_bytes(path.read_bytes()[:-7])
    with RecordWriter(path, replace(HEADER, run_id="second", seed=99, created=5.0), resume=True) as writer:
        assert writer.resumed == (trial(1),)
        assert writer.header == HEADER, "the stored header stays, with its seed"
        with pytest.raises(ValueError, match="recorded before"):
            writer.append(trial(1))
        writer.append(trial(2))
        writer.finish()
    assert read_record(path).trials == (trial(1), trial(2))


def test_a_rerun_appends_after_the_closing_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordWriter(path, HEADER) as writer:
        writer.append(trial(1))
        writer.finish(duration=2.0, judge_cost_usd=0.5, stopped="cancelled")
    with RecordWriter(path, HEADER, resume=True) as writer:
        writer.append(replace(trial(2), round=2))
        with pytest.raises(MeasureError, match="not closed"):
            read_record(path)
        writer.finish(duration=1.0, judge_cost_usd=0.25)
    assert read_record(path).footer == Footer(2, 0, 2, 3.0, 0.75, "")
    assert path.read_bytes().count(b'{"closing"') == 2


def test_finishing_again_without_news_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordWriter(path, HEADER) as writer:
        writer.finish()
    before = path.read_bytes()
    with RecordWriter(path, HEADER, resume=True) as writer:
        writer.finish()
    assert path.read_bytes() == before


@pytest.mark.parametrize("length", [0, 1, 14, 40, 10_000])
def test_killed_while_writing_the_header_starts_again(tmp_path: Path, length: int) -> None:
    path = tmp_path / "r.jsonl"
    head = b"".join(LINES[:2])
    path.write_bytes(head[: min(length, len(head) - 1)])
    with RecordWriter(path, HEADER, resume=True) as writer:
        assert writer.resumed == ()
        writer.append(trial())
        writer.finish()
    assert read_record(path).trials == (trial(),)


def test_resume_without_a_record_starts_one(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "r.jsonl", HEADER, resume=True) as writer:
        writer.finish()
    assert read_record(tmp_path / "r.jsonl").header == HEADER


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (replace(HEADER, suite_id="other"), "its suite is 'support', not 'other'"),
        (replace(HEADER, commit="d" * 40), "its commit is"),
        (replace(HEADER, agent="a2"), "agent's fingerprint"),
        (replace(HEADER, dirty=False), "its work tree is 'dirty', not 'clean'"),
        (replace(HEADER, shard=(1, 2)), "shard"),
        (replace(HEADER, plan=HEADER.plan[:1]), "2 cases, not 1"),
        (replace(HEADER, plan=HEADER.plan[::-1]), "case 'refund' in place of"),
        (replace(HEADER, plan=(replace(RICH_CASE, fingerprint="x"), PLAIN_CASE)), "another content"),
        (replace(HEADER, criteria=HEADER.criteria[:1]), "criterion 'ok' differs"),
        (replace(HEADER, criteria=(replace(RICH_CRITERION, fingerprint="x"), HEADER.criteria[1])), "'p95' differs"),
    ],
)
def test_resume_refuses_a_record_of_another_run_and_leaves_it_alone(tmp_path: Path, wanted: Header, says: str) -> None:
    path = tmp_path / "r.jsonl"
    write_record(path, RECORD)
    with pytest.raises(MeasureError, match="belongs to another run") as caught:
        RecordWriter(path, wanted, resume=True)
    assert says in str(caught.value)
    assert read_record(path) == RECORD


def test_resume_takes_up_where_only_thresholds_differ(tmp_path: Path) -> None:
    write_record(tmp_path / "r.jsonl", RECORD)
    tighter = replace(HEADER, criteria=(replace(RICH_CRITERION, threshold=1.0, margin=0.1), HEADER.criteria[1]))
    with RecordWriter(tmp_path / "r.jsonl", tighter, resume=True) as writer:
        assert writer.resumed == RECORD.trials


def test_resume_refuses_an_edited_open_record_and_leaves_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    edited = journal(path).replace(b'"ok":1.0', b'"ok":0.0', 1)
    path.write_bytes(edited)
    with pytest.raises(MeasureError, match="the sum does not fit") as caught:
        RecordWriter(path, HEADER, resume=True)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == edited


def test_resume_refuses_an_edited_record(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(GOOD.replace(b'"ok":1.0', b'"ok":0.0'))
    with pytest.raises(MeasureError, match="checksum"):
        RecordWriter(path, HEADER, resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_another_file_is_never_overwritten(tmp_path: Path, resume: bool) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(MeasureError):
        RecordWriter(path, HEADER, resume=resume)
    assert path.read_text() == "dear diary\n"


def test_a_second_gate_is_told_and_the_first_keeps_its_record(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordWriter(path, HEADER) as writer:
        writer.append(trial(1))
        for resume in (False, True):
            with pytest.raises(MeasureError, match="another gate"):
                RecordWriter(path, HEADER, resume=resume)
        writer.append(trial(2))
        writer.finish()
    assert len(read_record(path).trials) == 2
    RecordWriter(path, HEADER).close()


def test_no_permission_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MeasureError, match="cannot be written"):
        RecordWriter(tmp_path / "file" / "r.jsonl", HEADER)
    with pytest.raises(MeasureError, match="cannot be written"):
        write_record(tmp_path / "file" / "r.jsonl", RECORD)


def test_redacting_reaches_every_text_from_outside() -> None:
    secret = "hunter2-hunter2"
    made = Trial(
        "refund",
        1,
        invocations=(
            Invocation(
                user=secret,
                response=(Part(secret),),
                tool_calls=(ToolCall(secret, {"x": [secret]}, result=secret, error=secret),),
                intermediate=(Part(secret),),
            ),
        ),
        scores={"ok": Score(None, reason=secret, error=secret, details={"k": secret})},
        error=TrialError(ErrorKind.CRASH, secret),
    )
    data = text_of(Record(HEADER, (redacted(made, Redactor([secret])),), None)).decode()
    assert secret not in data
    assert data.count("[redacted]") == 11


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from gate.errors import MeasureError
from gate.model import Invocation, Trial
from gate.records import Header, PlannedCase, RecordWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
header = Header("s", (PlannedCase("c", "f"),), ())
with RecordWriter(Path(sys.argv[1]), header) as writer:
    for number in range(1, 1000):
        try:
            writer.append(Trial("c", number, invocations=(Invocation(user="x" * 1000),)))
        except MeasureError as error:
            print(number, int(error.exit_code), error)
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if sys.argv[2] == "go on":
        writer.append(Trial("c", number))
        writer.finish()
"""


@pytest.mark.parametrize("then", ["end", "go on"])
def test_a_full_disk_loses_nothing_earlier(tmp_path: Path, then: str) -> None:
    path = tmp_path / "r.jsonl"
    done = subprocess.run([sys.executable, "-c", FULL_DISK, path, then], capture_output=True, text=True, check=True)
    number, code, message = done.stdout.split(" ", 2)
    assert code == "3"
    assert "File too large" in message and "--resume" in message
    read = read_record(path, complete=then == "go on")
    assert [t.number for t in read.trials] == list(range(1, int(number) + (then == "go on")))
    assert path.read_bytes().endswith(b"\n"), "the truncated line was cut off"


ENDLESS = """
import sys
from pathlib import Path
from gate.model import Invocation, Trial
from gate.records import Header, PlannedCase, RecordWriter
from tests.properties import examples
header = Header("s", (PlannedCase("c", "f"),), ())
with RecordWriter(Path(sys.argv[1]), header, resume=True) as writer:
    number = max((trial.number for trial in writer.resumed), default=0)
    while True:
        number += 1
        writer.append(Trial("c", number, invocations=(Invocation(user="x" * 3000),)))
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
"""


@pytest.mark.slow
def test_killed_again_and_again_it_loses_no_trial(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    reported = 0
    for round_ in range(5):
        process = subprocess.Popen([sys.executable, "-c", ENDLESS, path], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(0.01 * round_)
        os.kill(process.pid, signal.SIGKILL)
        rest = [line for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        process.stdout.close()
        process.wait()
        assert int(first) in (reported + 1, reported + 2), "took up where it was killed"
        reported = int(rest[-1]) if rest else int(first)
        numbers = [t.number for t in read_record(path, complete=False).trials]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= reported
        reported = len(numbers)


# --- stripping ------------------------------------------------------------------------------------


def test_strip_keeps_what_was_measured_and_drops_what_was_said() -> None:
    stripped = strip(RECORD)
    data = text_of(stripped).decode()
    for said in ("money back", "thinking", "Done.", "One moment.", "slow", '"late"', '"ok":true'):
        assert said not in data
    kept = stripped.trials[0]
    assert [(c.name, c.args) for turn in kept.invocations for c in turn.tool_calls] == [
        ("refund", {"order": 1, "why": None}),
        ("empty", {}),
        ("absent", None),
    ]
    assert {name: score.value for name, score in kept.scores.items()} == {
        name: score.value for name, score in RICH_TRIAL.scores.items()
    }
    assert kept.scores["p95"].per_turn == (0.5, None)
    assert kept.scores["failed"].error == "judge is down"
    assert kept.usage == RICH_TRIAL.usage and kept.duration == RICH_TRIAL.duration
    assert stripped.trials[1].error == FAILED_TRIAL.error
    assert stripped.header == replace(HEADER, stripped=True)
    assert parse_record(text_of(stripped)) == replace(stripped, footer=RECORD.footer)


def test_expected_responses_stand_in_a_record_of_a_run_and_in_no_baseline() -> None:
    planned = replace(RICH_CASE, responses=("The money is back.", None))
    record = replace(RECORD, header=replace(HEADER, plan=(planned, *HEADER.plan[1:])))
    read = parse_record(text_of(record))
    assert read.header.plan[0] == planned
    assert [turn.response for turn in cases_of(read.header)[0].turns] == [
        (Part("The money is back."),),
        None,
    ]
    assert b"The money is back." not in text_of(strip(record))


def test_strip_redacts_and_shortens_arguments() -> None:
    args = {"password": "correct horse", "note": "x" * 10_000, "key": "token-of-mine", "ids": [1, "y" * 900]}
    made = Trial("refund", 1, invocations=(Invocation(tool_calls=(ToolCall("t", args),)),))
    record = Record(HEADER, (made,), None)
    kept = strip(record, Redactor(["token-of-mine"])).trials[0].invocations[0].tool_calls[0].args
    assert kept["password"] == kept["key"] == "[redacted]"
    assert len(kept["note"]) < 600 and len(kept["ids"][1]) < 600 and kept["ids"][0] == 1


@pytest.mark.slow
@given(trials)
def test_strip_is_idempotent(made: Trial) -> None:
    once = strip(Record(HEADER, (made,), None))
    assert strip(once) == once
    assert strip(parse_record(text_of(once))).trials == once.trials


# --- shards ---------------------------------------------------------------------------------------


def sharded(count: int = 3, cases: int = 10) -> list[Record]:
    plan = assign_shards([PlannedCase(f"c{n}", f"f{n}", hint=float(n)) for n in range(cases)], count)
    header = replace(HEADER, plan=plan)
    records = []
    for index in range(1, count + 1):
        own = tuple(trial(1, case.id) for case in plan if case.shard == index)
        footer = Footer(len(own), 0, 1, duration=float(index), judge_cost_usd=0.1)
        records.append(Record(replace(header, shard=(index, count), created=100.0 - index), own, footer))
    return records


def test_merge_is_the_union_whatever_the_order() -> None:
    shards = sharded()
    whole = merge(shards[::-1])
    assert sorted(t.case_id for t in whole.trials) == [f"c{n}" for n in range(10)]
    assert whole.header.shard == (1, 1)
    assert {case.shard for case in whole.header.plan} == {1}
    assert whole.header.created == 97.0
    assert whole.footer is not None
    assert (whole.footer.trials, whole.footer.duration) == (10, 3.0)
    assert whole.footer.judge_cost_usd == pytest.approx(0.3)
    assert parse_record(text_of(whole)) == whole
    assert merge([RECORD]) == RECORD


def test_what_is_merged_is_another_run_as_soon_as_a_part_is() -> None:
    def run_of(*ids: str) -> str:
        parts = zip(sharded(), ids, strict=True)
        return merge([replace(part, header=replace(part.header, run_id=one)) for part, one in parts]).header.run_id

    assert run_of("a", "b", "c") == run_of("a", "b", "c")
    assert len({run_of("a", "b", "c"), run_of("a", "b", "d"), run_of("d", "b", "c"), "a"}) == 4


def altered(**changes: object) -> list[Record]:
    shards = sharded()
    shards[1] = replace(shards[1], header=replace(shards[1].header, **changes))  # type: ignore[arg-type]
    return shards


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([], "no shards"),
        (sharded()[:2], "shards are missing: 3 of 3"),
        (sharded()[1:], "shards are missing: 1 of 3"),
        ([*sharded(), sharded()[0]], "shard 1 of 3 occurs twice"),
        ([*sharded()[:2], replace(sharded()[2], footer=None)], "shard 3 of 3 is truncated"),
        ([*sharded()[:2], sharded(4)[2]], "shard 3 of 4 belongs to another run"),
        (altered(commit="d" * 40), "shard 2 of 3 belongs to another run: its commit"),
        (altered(gate_version="9"), "shard 2 of 3 belongs to another run: it was written by version '9'"),
        (altered(plan=sharded(cases=11)[0].header.plan), "shard 2 of 3 belongs to another run"),
        (altered(suite_id="x"), "shard 2 of 3 belongs to another run: its suite"),
        (altered(agent="x"), "shard 2 of 3 belongs to another run: its agent"),
        ([*sharded()[:2], replace(sharded()[2], trials=sharded()[0].trials)], "which is another shard's"),
    ],
)
def test_merge_names_the_shard_that_it_refuses(records: list[Record], says: str) -> None:
    with pytest.raises(MeasureError) as caught:
        merge(records)
    assert says in str(caught.value)


def of_terms(*terms: dict[str, object]) -> list[Record]:
    """As many shards as terms."""
    shards = sharded(len(terms))
    return [
        replace(shard, footer=replace(shard.footer, terms=one))  # type: ignore[type-var]
        for shard, one in zip(shards, terms, strict=True)
    ]


def test_merge_keeps_equal_terms_with_the_notes_of_all() -> None:
    first = {
        "settings": {"alpha": 0.02},
        "notes": ["a", {"kind": "unproven", "why": "b"}],
        "command": "gate run --shard 1/2",
    }
    second = {"settings": {"alpha": 0.02}, "notes": [{"why": "b", "kind": "unproven"}, "c"]}
    merged = merge(of_terms(first, second)).footer
    assert merged is not None
    assert merged.terms == {
        "settings": {"alpha": 0.02},
        "notes": ["a", {"kind": "unproven", "why": "b"}, "c"],
        "command": "",
    }


def test_merge_believes_no_pass_by_terms_that_differ() -> None:
    merged = merge(of_terms({"settings": {}, "doubts": ["moved"]}, {"settings": {"alpha": 0.5}})).footer
    assert merged is not None
    assert merged.terms["doubts"] == ["moved", OTHER_TERMS]
    silent = merge(of_terms({"settings": {}}, {})).footer
    assert silent is not None
    assert silent.terms["doubts"] == [OTHER_TERMS]
    assert merge(of_terms({}, {})).footer == replace(merged, terms={})


def twice() -> list[Record]:
    """Two shards that set out to run each case twice."""
    made = []
    for shard in sharded(2, 4):
        trials = tuple(replace(t, number=n) for t in shard.trials for n in (1, 2))
        made.append(Record(replace(shard.header, epochs=2), trials, Footer(len(trials), 0, 1)))
    return made


def test_merge_wants_every_planned_trial() -> None:
    whole = merge(twice())
    assert len(whole.trials) == 8
    assert whole.header.epochs == 0
    first, second = twice()
    error = TrialError(ErrorKind.UNREACHABLE, "refused")
    failed = tuple(replace(t, scores={}, error=error) if t.number == 2 else t for t in second.trials)
    assert len(merge([first, replace(second, trials=failed)]).trials) == 8
    short = replace(second, trials=second.trials[:-1])
    with pytest.raises(MeasureError, match="shard 2 of 2 lacks 1 of 4 planned trials") as caught:
        merge([first, short])
    assert "--resume" in str(caught.value)
    assert second.footer is not None
    stopped = replace(short, footer=replace(second.footer, stopped="the budget of 7 agent runs is spent"))
    merged = merge([first, stopped])
    assert merged.footer is not None
    assert merged.footer.stopped == "the budget of 7 agent runs is spent"
    with pytest.raises(MeasureError, match="number of planned epochs"):
        merge([first, replace(second, header=replace(second.header, epochs=1))])


def test_merge_of_a_claimed_million_shards_costs_nothing() -> None:
    record = replace(RECORD, header=replace(HEADER, shard=(1, 2**53)))
    with pytest.raises(MeasureError, match="missing: 2, 3"):  # counting to the claim takes years
        merge([record])


def test_durations_beyond_belief_are_shared_out_like_any_other() -> None:
    plan = [PlannedCase(f"c{n}", "f", hint=1e308) for n in range(4)]
    assert sorted(case.shard for case in assign_shards(plan, 2)) == [1, 1, 2, 2]


@given(st.lists(st.none() | st.floats(0.1, 100), max_size=60), st.integers(1, 9))
def test_shards_are_balanced_stable_and_complete(hints: list[float | None], shards: int) -> None:
    plan = [PlannedCase(f"c{n}", "f", hint=hint) for n, hint in enumerate(hints)]
    assigned = assign_shards(plan, shards)
    assert [case.id for case in assigned] == [case.id for case in plan]
    by_id = {case.id: case.shard for case in assigned}
    assert {case.id: case.shard for case in assign_shards(plan[::-1], shards)} == by_id
    known = [hint for hint in hints if hint is not None]
    usual = math.fsum(known) / len(known) if known else 1.0
    loads = [0.0] * shards
    for case in assigned:
        loads[case.shard - 1] += usual if case.hint is None else case.hint
    longest = max((usual if hint is None else hint for hint in hints), default=0.0)
    assert max(loads) - min(loads) <= longest + 1e-6


# --- versions -------------------------------------------------------------------------------------


def golden() -> dict[str, Record]:
    return {"full": RECORD, "stripped": strip(RECORD)}


@pytest.mark.parametrize("name", sorted(golden()))
def test_a_golden_record_is_read_and_written_as_it_is(name: str) -> None:
    """If this fails, the format has changed: raise FORMAT, and write the golden files anew."""
    path = GOLDEN / f"{name}-{FORMAT}.jsonl"
    assert read_record(path) == golden()[name]
    assert text_of(golden()[name]) == path.read_bytes()


def test_the_golden_open_record_is_read_and_written_as_it_is(tmp_path: Path) -> None:
    path = GOLDEN / f"open-{FORMAT}.jsonl"
    assert read_record(path, complete=False).trials == OPEN_TRIALS
    assert journal(tmp_path / "r.jsonl") == path.read_bytes()


@pytest.mark.parametrize("version", [FORMAT - 1, FORMAT + 1])
def test_a_record_of_another_format_is_refused(version: int) -> None:
    other = (GOLDEN / f"full-{FORMAT}.jsonl").read_bytes().replace(b'{"gate_record":2', b'{"gate_record":%d' % version)
    with pytest.raises(BaselineError, match=f"written in format {version}; this version reads {FORMAT}"):
        parse_record(other)


# --- size -----------------------------------------------------------------------------------------


def write_two_trials_each(path: Path, cases: int) -> None:
    plan = tuple(PlannedCase(f"case-{n:06}", f"{n:032x}") for n in range(cases))
    turn = replace(RICH_TRIAL.invocations[0], response=(Part("word " * 200),))
    with RecordWriter(path, replace(HEADER, plan=plan)) as writer:
        for number in (1, 2):
            for case in plan:
                writer.append(replace(RICH_TRIAL, case_id=case.id, number=number, invocations=(turn,)))
        writer.finish()


def test_writing_and_reading_take_work_in_proportion_to_the_trials(tmp_path: Path) -> None:
    few, many = tmp_path / "few.jsonl", tmp_path / "many.jsonl"
    written = [steps(lambda p=path, n=cases: write_two_trials_each(p, n)) for path, cases in ((few, 100), (many, 400))]
    read = [steps(lambda p=path: list(iter_trials(p))) for path in (few, many)]
    for small, large in (written, read):
        assert large < 4.5 * small


@pytest.mark.slow
def test_forty_thousand_trials_are_read_in_flat_memory(tmp_path: Path) -> None:
    import resource

    write_two_trials_each(tmp_path / "r.jsonl", 20_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sum(1 for _ in iter_trials(tmp_path / "r.jsonl")) == 40_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_terms_of_the_closing_line_come_back_and_are_not_stored_with_a_baseline(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write_record(path, replace(RECORD, footer=RICH_FOOTER))
    assert read_record(path).footer == RICH_FOOTER
    stripped = strip(read_record(path)).footer
    assert stripped is not None
    assert stripped.terms == {}


def test_a_baseline_keeps_which_recording_a_trial_was_coupled_with_and_drops_what_was_said() -> None:
    replayed = Replay("run-0:2", 4, 1, "request 5 differs in messages[2]", "run-1:2", 0.02)
    kept = strip(replace(RECORD, trials=(replace(RECORD.trials[0], replay=replayed),))).trials[0]
    assert kept.replay == replace(replayed, difference="")


def test_what_differed_is_bounded_in_a_record() -> None:
    trial = Trial("refund", 1, replay=Replay("run-0:1", 0, 1, "x" * 5_000))
    (read,) = parse_record(text_of(replace(RECORD, trials=(trial,), footer=None)), complete=False).trials
    assert read.replay is not None and len(read.replay.difference) == 500
