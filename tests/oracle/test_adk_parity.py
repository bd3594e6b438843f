"""Our scores against google-adk's own, bit by bit."""

from __future__ import annotations

import itertools
import os
import random

import pytest

from gate.metrics.porter import stem
from tests.oracle.oracle import PYTHON, ask
from tests.oracle.questions import differences, questions

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not PYTHON, reason="GATE_ORACLE_PYTHON names no environment with google-adk"),
]

_ENDINGS = """
s es ies ed ied ing eed sses ss ational tional enci ency anci ancy izer bli ably alli ally entli ently eli ely
ousli ously ization ation ator alism iveness fulness ousness aliti ality iviti ivity biliti bility fulli fully
logi logy icate ative alize iciti icity ical ful ness al ance ence er ic able ible ant ement ment ent sion
tion ion ou ism ate iti ous ive ize e ll l y at bl iz
"""
SUFFIXES = _ENDINGS.split()


@pytest.mark.parametrize("seed", [int(os.environ.get("GATE_ORACLE_SEED", "1")), 2])
def test_every_score_of_random_pairs_is_the_same_number(seed: int) -> None:
    asked = list(questions(2_000, seed))
    found = differences(asked, ask(asked))
    assert not found, f"{len(found)} of {len(asked)} differ, first:\n{found[0][:3000]}"


def test_every_stem_is_the_same() -> None:
    rng = random.Random(5)
    roots = ["".join(letters) for n in range(4) for letters in itertools.product("aeytrls", repeat=n)]
    words = {root + suffix for root in roots for suffix in SUFFIXES}
    for _ in range(200_000):
        root = "".join(rng.choice("aeiouybcdlmnrstz01w") for _ in range(rng.randrange(7)))
        words.add(root + rng.choice(SUFFIXES) + rng.choice([*SUFFIXES, *[""] * 40]))
    listed = sorted(words)
    (answer,) = ask([{"stems": listed}])
    different = [
        (word, ours, theirs)
        for word, theirs in zip(listed, answer["stems"], strict=True)
        if (ours := stem(word)) != theirs
    ]
    assert not different, different[:10]
