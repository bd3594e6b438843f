"""Each kind of finding has words, and each template asks for nothing but what its kind has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest
from msgspec import ValidationError

from gate.model import Scale, Verdict
from gate.model.finding import KINDS, Finding, KindName
from gate.reports.wording import Table, fields_of, fill
from gate.reports.words import IN_HEADLINE, WORDS


def templates(table: Table) -> Iterator[tuple[KindName, str]]:
    for kind, words in table.items():
        if isinstance(words, str):
            yield kind, words
        elif isinstance(words, tuple):
            yield from ((kind, template) for template in words)


def test_every_kind_has_words_and_a_name() -> None:
    assert WORDS.keys() == KINDS.keys() == set(get_args(KindName))
    assert IN_HEADLINE.keys() <= KINDS.keys()


@pytest.mark.parametrize(("kind", "template"), [*templates(WORDS), *templates(IN_HEADLINE)])
def test_a_template_asks_for_what_its_kind_has(kind: KindName, template: str) -> None:
    assert {name for name, _ in fields_of(template)} <= KINDS[kind].fields.keys()


@pytest.mark.parametrize(
    ("template", "data", "told"),
    [
        ("{of:trial}", {"of": 1}, "1 trial"),
        ("{of:trial}", {"of": 1204}, "1,204 trials"),
        ("{cases:case} {cases:fails|fail}", {"cases": ("a",)}, "1 case fails"),
        ("{cases:n} {cases:fails|fail}: {cases:list}", {"cases": tuple("abcdefg")}, "7 fail: a, b, c, d, e and 2 more"),
        ("{cases:first}", {"cases": tuple("abcdefg")}, "a, b, c, d, e"),
        ("{cases:list}", {"cases": (("a", "b"),)}, "a → b"),
        ("{cached:yes|no}", {"cached": False}, "no"),
        ("lost{error:+; most often: #}", {"error": ""}, "lost"),
        ("lost{error:+; most often: #}", {"error": "a {b} | #"}, "lost; most often: a {b} | #"),
        ("{changes:+: #| since}", {"changes": ()}, " since"),
        ("{more:none|# more}", {"more": 3}, "3 more"),
        ("{now:figure}, limit {limit:figure}", {"now": 0.80004, "limit": 0.8}, "0.80004, limit 0.80"),
        ("{q:quantile} of {commit:4}", {"q": 0.95, "commit": "abcdef"}, "p95 of abcd"),
        ("{verdict}", {"verdict": Verdict.BELOW_THRESHOLD}, "below threshold"),
    ],
)
def test_a_field_is_shown_as_its_format_says(template: str, data: dict[str, object], told: str) -> None:
    assert fill(template, data, Scale.UNIT) == told


@pytest.mark.parametrize("data", [{}, {"trials": 1, "case": "a"}, {"trails": 1}])
def test_a_finding_has_the_fields_of_its_kind(data: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="nothing_passes has the fields trials"):
        Finding.of("nothing_passes", **data)


def test_a_note_is_read_as_it_was_written() -> None:
    note = Finding.of(
        "provider_moved", since=1.0, commit=None, metric="cost", scale=Scale.USD, change=0.1, p=0.01, runs=9
    )
    assert Finding.read(note.plain) == note
    assert note.plain["kind"] == "provider_moved"


@pytest.mark.parametrize("plain", ["text", {"kind": "unheard_of"}, {"kind": "no_worse"}, {"kind": "provider_moved"}])
def test_what_is_no_note_is_refused(plain: object) -> None:
    with pytest.raises(ValidationError):
        Finding.read(plain)
