"""What every error says: one line, by the user's own keys, without the password of an address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

import gate
from gate.errors import ConfigError, first_problem, nearest, short_line
from tests.patience import steps


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)

    most_calls: int = Field(default=1, ge=1)


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    one: Inner | None = None
    many: list[Inner] = []
    by_name: Mapping[str, Inner] = {}
    either: int | Inner = 1


def said(data: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(data)
    return str(first_problem(caught.value, Outer).as_error("here"))


def test_the_first_problem_by_the_users_own_keys() -> None:
    for data, line in [
        ({}, "here: missing key 'name'"),
        ({"name": "x", "nme": 1}, "here: unknown key 'nme' (did you mean 'name'?)"),
        ({"name": "x", "one": {"zzz": 1}}, "here: one: unknown key 'zzz' (known: most_calls)"),
        ({"name": "x", "many": [{}, {"zzz": 1}]}, "here: many.1: unknown key 'zzz' (known: most_calls)"),
        ({"name": "x", "by_name": {"a": {"zzz": 1}}}, "here: by_name.a: unknown key 'zzz' (known: most_calls)"),
        ({"name": "x", "one": {"mostCalls": 0}}, "here: one.mostCalls: expected greater than or equal to 1, found 0"),
        ({"name": "x", "Section": 1}, "here: unknown key 'Section' (known: by_name, either, many, name, one)"),
    ]:
        assert said(data) == line, (data, line)


def test_nobody_else_reads_the_errors_of_a_validation() -> None:
    folder = Path(gate.__file__).parent
    readers = [p.name for p in folder.rglob("*.py") if re.search(r"\berror\.errors\(", p.read_text(encoding="utf-8"))]
    assert readers == ["errors.py"]


def test_no_address_is_echoed_with_its_password() -> None:
    for said, shown in [
        ("no server at http://ana:s3cret@host:8000/x", "no server at http://***@host:8000/x"),
        ("'https://tok3n@host/' and 'git+ssh://a:b@c@host/x'", "'https://***@host/' and 'git+ssh://***@host/x'"),
        ("write to ana@example.org about http://host/@x", "write to ana@example.org about http://host/@x"),
    ]:
        assert str(ConfigError(said)) == shown, (said, shown)
        assert str(ConfigError("x", where=said, hint=said)) == f"{shown}: x ({shown})", (said, shown)


def test_an_error_lists_a_bounded_number_of_known_words() -> None:
    known = [f"metric_{n:03d}" for n in range(60)]
    hint = nearest("zzz", known)
    assert hint.startswith("known: metric_000, metric_001") and hint.endswith("metric_006 and 53 more")
    assert nearest("zzz", known[:7]).endswith("metric_006")
    assert nearest("zzz", ["b", "a", "b"]) == "known: a, b"
    assert nearest("metric_59", known) == "did you mean 'metric_059'?"
    assert nearest("environment", ["env", "persistent", "environ"]) == "did you mean 'environ'?"
    assert nearest("enviroment", ["en", "env", "persistent"]) == "did you mean 'env'?"


LONG = "/builds/" + "a-folder-of-many/" * 20


def test_a_long_error_loses_the_middle_of_its_paths_and_keeps_file_line_and_key() -> None:
    error = ConfigError(f"no folder {LONG}evals", where=f"{LONG}gate.yaml:12: agent.http", hint=f"see {LONG}x.md")
    assert str(error) == "/builds/…/gate.yaml:12: agent.http: no folder /builds/…/evals (see /builds/…/x.md)"
    assert error.whole.count(LONG) == 3
    assert short_line("https://host:1/" + "a/" * 100 + "b.json: 404") == "https://host:1/…/b.json: 404"
    assert short_line(f"agent/one.py and {LONG}two.py") == f"agent/one.py and {LONG}two.py"[:17] + "/builds/…/two.py"


def test_a_long_error_keeps_what_to_do() -> None:
    for what in ("one word after another " * 20, "x" * 20_000, "(" * 300, ")" * 300):
        shown = str(ConfigError(what, where="agent", hint="run again (with --resume)"))
        assert shown.startswith("agent: ") and shown.endswith(" (run again (with --resume))") and len(shown) == 194, (
            what
        )


def test_an_error_that_somebody_else_wrote_costs_no_time_without_bound() -> None:
    assert steps(lambda: short_line("/a/b/c " * 100_000)) < 50_000


@pytest.mark.parametrize(
    "text", ["x" * 300, "/" * 300, "a/b/" * 90, "/…/" * 100, "é" * 300, "'" + "/x" * 200, LONG * 30]
)
def test_no_error_is_longer_than_a_line(text: str) -> None:
    assert len(f"gate: {ConfigError(text, where=text, hint=text)}") <= 200
