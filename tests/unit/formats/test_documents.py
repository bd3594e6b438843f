"""Documents from strangers: what they hold, where it stands, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError
from gate.formats.documents import (
    parse_document,
    parse_document_with_lines,
    read_document,
    read_document_with_lines,
    read_json_lines,
    read_text,
)
from gate.formats.json_text import parse_json
from gate.formats.positions import at_line
from gate.formats.yaml_text import MAX_ALIAS_GROWTH
from gate.security.limits import MAX_NESTING

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes\non: off", {"a": "yes", "on": "off"}),
        ("a: true\nb: FALSE\nc: ~\nd:", {"a": True, "b": False, "c": None, "d": None}),
        ("a: 2026-01-01\nb: 2026-01-01 10:00:00", {"a": "2026-01-01", "b": "2026-01-01 10:00:00"}),
        ("c: 12:30:45", {"c": "12:30:45"}),
        ("a: 0o17\nb: 0x1F\nc: -3\nd: 1_000\ne: 010", {"a": 15, "b": 31, "c": -3, "d": "1_000", "e": 10}),
        ("a: 1e3\nb: .5\nc: 1.\nd: NaN", {"a": 1000.0, "b": 0.5, "c": 1.0, "d": "NaN"}),
        ("1: x\ntrue: y\n2.0: z", {"1": "x", "true": "y", "2.0": "z"}),
        ("a: !!str 12\nb: ! 12\nd: '7'", {"a": "12", "b": "12", "d": "7"}),
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}}),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("- &x {p: 1}\n- &y {p: 2, q: 2}\n- <<: [*x, *y]", [{"p": 1}, {"p": 2, "q": 2}, {"p": 1, "q": 2}]),
        ("{a: 1}", {"a": 1}),
        ('{"a": [1, 2.5, "\\u00e9"]}', {"a": [1, 2.5, "é"]}),
        ("just text", "just text"),
        ("\ufeff# byte order mark\na: 1", {"a": 1}),
    ],
)  # fmt: skip
def test_reads(text: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_text(text, encoding="utf-8")
    assert read_document(path) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "f:3: duplicate key 'a'"),
        ("- x: {a: 1, a: 2}", "f:1: duplicate key 'a'"),
        ('{"a": 1,\n "b": 1,\n "a": 2}', "f:3: duplicate key 'a'"),
        ('{"a": {"b": 1, "\\u0062": 2}}', "f:1: duplicate key 'b'"),
        (BOMB, f"f:5: aliases expand to more than {MAX_ALIAS_GROWTH:,} values"),
        ("a: &a [*a]", "f:1: alias *a contains itself"),
        ("a: *b", "f:1: unknown alias *b"),
        ("a: &a 1\n*a : 2", "f:2: a key must be plain text"),
        ("? [a]\n: 1", "f:1: a key must be plain text"),
        ("a: .nan", "f:1: .nan is not a usable number"),
        ("a:\n- -.inf", "f:2: -.inf is not a usable number"),
        ("a: 1e999", "f:1: number out of range: 1e999"),
        ('{"a": [1,\nNaN]}', "f:2: NaN is not a JSON number"),
        ("[1,\n-Infinity]", "f:2: -Infinity is not a JSON number"),
        ("[1e999]", "f:1: number out of range: 1e999"),
        ("[\n" + "9" * 5000 + "]", "f:2: number out of range"),
        ("a: " + "9" * 5000, "f:1: not a value of its type"),
        ("[" * 200 + "]" * 200, f"f:1: nested more than {MAX_NESTING} deep"),
        ("[" * 100_000 + "]" * 100_000, f"f:1: nested more than {MAX_NESTING} deep"),
        ("- " * 200, f"f:1: nested more than {MAX_NESTING} deep"),
        ("!!python/object/apply:os.system ['true']", "f:1: unknown tag"),
        ("a: !!timestamp 2026-01-01", "f:1: unknown tag"),
        ("a: !secret x", "f:1: unknown tag !secret"),
        ("a: !!int 7", "f:1: unknown tag"),
        ("a: 1\n---\nb: 2", "f:2: more than one YAML document in a file"),
        ("a: [1\nb: 2", "f:2: not YAML"),
        ("a: 'x", "f:1: not YAML"),
        ("a: 1\n<<: 3", "f:2: << takes a mapping or a list of mappings"),
        ("a: \x07", "f: not YAML"),
        ("", "f: is empty"),
        ("# nothing but a comment\n", "f: is empty"),
    ],
)  # fmt: skip
def test_refuses_with_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "f")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_file_named_json_is_not_read_as_yaml() -> None:
    with pytest.raises(ConfigError, match=r"f\.json:2: not JSON"):
        parse_document("{\n a: 1}", "f.json")


def test_nesting_through_aliases_is_bounded() -> None:
    deep = "[" * 60 + "]" * 60
    assert parse_document(f"a: &a {deep}\nb: [*a]", "f")["b"]
    with pytest.raises(ConfigError, match="through an alias"):
        parse_document(f"a: &a {deep}\nb: " + "[" * 50 + "*a" + "]" * 50, "f")


def test_large_texts_repeated_by_aliases_are_bounded() -> None:
    text = "a: &a " + "x" * 1_000_000 + "\nb: [" + ", ".join(["*a"] * 1000) + "]"
    with pytest.raises(ConfigError, match="aliases expand"):
        parse_document(text, "f")


def test_lone_surrogates_are_replaced_and_pairs_kept() -> None:
    value = parse_document('{"\\ud800": ["\\uDC00x", "\\ud83d\\ude00"]}', "f")
    assert value == {"\ufffd": ["\ufffdx", "😀"]}
    json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "text", ["a:\n  - x: 1\n    y:\n      z: 2\n  - 3\n", '{"a": [\n{"x": 1, \n"y": {\n"z": 2}},\n3]}']
)
def test_lines(text: str) -> None:
    _, lines = parse_document_with_lines(text, "f")
    found = [lines.line(*keys) for keys in [(), ("a",), ("a", 0), ("a", 0, "y"), ("a", 0, "y", "z"), ("a", 1)]]
    assert found == [1, 1, 2, 3, 4, 5]
    assert lines.line("a", 0, "missing") == 2
    assert lines.line("a", 7) == 1


def test_lines_behind_merges_and_aliases() -> None:
    _, lines = parse_document_with_lines("base: &b\n  x: 1\nuse:\n  <<: *b\n  y: 2\nagain: *b\n", "f")
    keys = [("use", "x"), ("use", "y"), ("again",), ("again", "x")]
    assert [lines.line(*path) for path in keys] == [2, 5, 6, 2]


class _Quoting(yaml.SafeDumper):
    """Quotes all text, which YAML 1.1 and 1.2 would otherwise read differently."""


_Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


@settings(deadline=None)
@given(JSON_VALUES)
def test_json_reads_as_json(value: Any) -> None:
    assert parse_document(json.dumps(value), "f.json") == value


@settings(deadline=None)
@given(JSON_VALUES.filter(lambda value: isinstance(value, dict | list) and value))
def test_yaml_reads_as_yaml(value: Any) -> None:
    text = yaml.dump(value, Dumper=_Quoting, allow_unicode=True)
    try:
        read = parse_document(text, "f.yaml")
    except ConfigError as error:
        assert "not YAML" in str(error)  # libyaml does not take back every character that it writes
        return
    assert json.loads(json.dumps(read)) == json.loads(json.dumps(value))


@settings(deadline=None)
@given(st.lists(JSON_VALUES, max_size=5), JSON_VALUES, st.sampled_from([(), ("a",), (1,)]), st.sampled_from([None, 0]))
def test_the_lines_of_items_are_found_alike_both_ways(
    value: list[Any], other: Any, keys: tuple[Any, ...], indent: int | None
) -> None:
    within = {(): value, ("a",): {"b": other, "a": value, "c": other}, (1,): [other, value]}[keys]
    text = "\n" + json.dumps(within, indent=indent)
    quick, slow = (parse_document_with_lines(text, "f.json")[1] for _ in range(2))
    slow.line()
    places = [*((*keys, i) for i in range(len(value) + 1)), (*keys, 0, 0), ("missing", 0), (0, 0)]
    assert [quick.line(*place) for place in places] == [slow.line(*place) for place in places]


@settings(deadline=None)
@given(st.text(alphabet="{}[]:,-&*<!|>'\"\\ \n\tab01.~#?%@`nulltrue", max_size=60))
def test_any_text_is_a_value_or_a_config_error(text: str) -> None:
    for name in ("f", "f.json"):
        try:
            value, lines = parse_document_with_lines(text, name)
        except ConfigError:
            continue
        assert (lines.line() or 0) >= 1
        json.dumps(value, allow_nan=False)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("a: 1\nb: é".encode("latin-1"))
    marked = tmp_path / "marked.yaml"
    marked.write_bytes(b"\xef\xbb\xbfa:\n\xff")
    for path, message in [
        (latin, "latin.yaml:2: not UTF-8"),
        (marked, "marked.yaml:2: not UTF-8"),
        (tmp_path / "missing.yaml", "missing.yaml: cannot be read: No such file"),
        (tmp_path, "not a regular file"),
        (tmp_path / "x\0y", "cannot be read"),
    ]:
        with pytest.raises(ConfigError, match=message):
            read_document(path)


def test_name_in_messages_can_be_given(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^suite\.yaml: cannot"):
        read_document_with_lines(tmp_path / "missing", where="suite.yaml")


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n[2]\n"\u2028"')
    assert list(read_json_lines(path)) == [(1, {"a": 1}), (2, [2]), (3, "\u2028")]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"a": 1}\n\n{"a": 2}\n', ":2: blank line"),
        (b'{"a": 1}\n{"a": ', ":2: not JSON: Expecting value (if the file is cut off, write it again or"),
        (b'{"a": 1}\n{"a": "x', ":2: not JSON: Unterminated string (if the file is cut off, write it again or delete"),
        (b'{"a": 1}\n{"a"\n', ":2: not JSON: Expecting ':' delimiter"),
        (b'{"a": 1, "a": 2}\n', ":1: duplicate key 'a'"),
        (b"1\n2\n[NaN]\n", ":3: NaN is not a JSON number"),
        (b'1\n"\xff"\n', ":2: not UTF-8"),
    ],
)
def test_json_lines_refuses_with_line(raw: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        list(read_json_lines(path))
    assert message in str(caught.value)


def test_parse_json_leaves_what_is_no_json_to_its_caller() -> None:
    with pytest.raises(json.JSONDecodeError):
        parse_json("{", "f")


def test_a_place_without_a_known_line_is_the_file() -> None:
    assert (at_line("f", 3), at_line("f", 0)) == ("f:3", "f")


@pytest.mark.parametrize("name", ["suite.json", "suite.yaml", "rows.jsonl", "rows.csv"])
def test_a_pointer_of_git_lfs_is_called_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12\n")
    with pytest.raises(ConfigError, match="Git LFS") as caught:
        _ = [*read_json_lines(path)] if path.suffix == ".jsonl" else read_document(path)
    assert "git lfs pull" in caught.value.hint


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 200_000])
def test_a_file_of_any_size_is_read_whole(tmp_path: Path, size: int) -> None:
    text = "0123456789" * (size // 10) + "x" * (size % 10)
    (tmp_path / "file.txt").write_text(text)
    assert read_text(tmp_path / "file.txt", "file.txt") == text


def test_a_file_is_refused_from_the_first_byte_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.formats.documents.MAX_DOCUMENT_BYTES", 100_000)
    path = tmp_path / "file.txt"
    path.write_text("x" * 100_000)
    assert len(read_text(path, "file.txt")) == 100_000
    path.write_text("x" * 100_001)
    with pytest.raises(ConfigError, match="larger than"):
        read_text(path, "file.txt")
