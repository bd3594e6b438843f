from hypothesis import given
from hypothesis import strategies as st

from gate.metrics.porter import stem

EXAMPLES = {
    "caresses": "caress", "ponies": "poni", "dies": "die", "caress": "caress", "cats": "cat", "feed": "feed",
    "agreed": "agre", "plastered": "plaster", "bled": "bled", "motoring": "motor", "sing": "sing",
    "conflated": "conflat", "troubled": "troubl", "sized": "size", "hopping": "hop", "falling": "fall",
    "hissing": "hiss", "fizzed": "fizz", "failing": "fail", "filing": "file", "happy": "happi", "enjoy": "enjoy",
    "spied": "spi", "died": "die", "relational": "relat", "conditional": "condit", "rational": "ration",
    "radically": "radic", "vietnamization": "vietnam", "triplicate": "triplic", "electrical": "electr",
    "goodness": "good", "adoption": "adopt", "replacement": "replac", "controlling": "control", "rolled": "roll",
    "probate": "probat", "cease": "ceas", "geology": "geolog", "archaeology": "archaeolog", "hopefully": "hope",
    "skies": "sky", "dying": "die", "news": "news", "innings": "inning", "proceed": "proceed", "as": "as",
}  # fmt: skip


def test_words_of_the_paper_and_of_nltk() -> None:
    assert {word: stem(word) for word in EXAMPLES} == EXAMPLES


@given(st.text(alphabet="abcdeilmnorstuyz0", min_size=1, max_size=30))
def test_a_stem_is_never_empty_and_never_longer_by_more_than_a_letter(word: str) -> None:
    assert 0 < len(stem(word)) <= len(word) + 1


def test_a_hostile_word_takes_no_longer_than_its_length_says() -> None:
    assert stem("y" * 300_000).startswith("yyy")
