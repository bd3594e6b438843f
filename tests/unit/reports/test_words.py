"""Each kind of finding has words, and a field of a template is shown as its format says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import pytest

from gate.model import Scale, Verdict
from gate.model.finding import KINDS
from gate.reports.wording import fill
from gate.reports.words import IN_HEADLINE, WORDS


def test_every_kind_has_words() -> None:
    assert WORDS.keys() == KINDS.keys()
    assert IN_HEADLINE.keys() <= KINDS.keys()
    for kind, words in WORDS.items():
        fields = KINDS[kind].fields
        reasons = set(get_args(fields["why"].type)) if "why" in fields else set()
        _covers(words, [set(KINDS[kind].verdicts), reasons])


def _covers(words: Any, sets: list[set[Any]]) -> None:
    """A table has words for every verdict or for every reason, and for every reason below a verdict."""
    if isinstance(words, Mapping):
        assert words.keys() in sets
        for one in words.values():
            _covers(one, sets[1:])


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
        ("lost{error:+; mostly: #}", {"error": ""}, "lost"),
        ("lost{error:+; mostly: #}", {"error": "a {b} | #"}, "lost; mostly: a {b} | #"),
        ("{changes:+: #| since}", {"changes": ()}, " since"),
        ("none{most:+, over the allowed #}", {"most": 0.1}, "none, over the allowed 10 %"),
        ("{more:none|# more}", {"more": 3}, "3 more"),
        ("{now:figure}, limit {limit:figure}", {"now": 0.80004, "limit": 0.8}, "0.80004, limit 0.80"),
        ("{commit:4}", {"commit": "abcdef"}, "abcd"),
        ("{verdict}", {"verdict": Verdict.BELOW_THRESHOLD}, "below threshold"),
    ],
)
def test_a_field_is_shown_as_its_format_says(template: str, data: dict[str, object], told: str) -> None:
    assert fill(template, data, Scale.UNIT) == told
