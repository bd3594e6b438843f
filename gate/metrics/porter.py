"""The Porter stemmer with NLTK's extensions; knows only English suffixes.

Algorithm: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the deviations of
``nltk.stem.PorterStemmer`` (NLTK 3.10), which published ROUGE scores depend on.
"""

from __future__ import annotations

from collections.abc import Sequence

_IRREGULAR = {
    "skies": "sky",
    "sky": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "inning": "inning",
    "innings": "inning",
    "outing": "outing",
    "outings": "outing",
    "canning": "canning",
    "cannings": "canning",
    "howe": "howe",
    "proceed": "proceed",
    "exceed": "exceed",
    "succeed": "succeed",
}

_STEP_2 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("fulli", "ful"),
)
_STEP_3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
# A suffix comes before the shorter ones that it ends in: only the first that fits is tried.
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent"),
    *("ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)


def stem(word: str) -> str:
    """Return the stem of a lower-case ASCII word, in time linear in its length."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _without_plural(word)
    word = _without_past_and_gerund(word)
    word = _y_to_i(word)
    word = _without_double_suffix(word)
    word = _replace_first(word, _STEP_3)
    word = _without_suffix(word)
    return _tidy(word)


def _shape(word: str) -> str:
    """Return the word as a string of ``c`` and ``v``: y is a vowel after a consonant; digits are consonants."""
    marks = []
    mark = "v"
    for letter in word:
        mark = "v" if letter in "aeiou" or (letter == "y" and mark == "c") else "c"
        marks.append(mark)
    return "".join(marks)


def _measure(word: str) -> int:
    """Return Porter's m: the number of times a consonant follows a vowel."""
    return _shape(word).count("vc")


def _ends_short(word: str) -> bool:
    """True for Porter's *o: the word ends in consonant, vowel, consonant other than w, x, y. NLTK adds words of just
    vowel and consonant."""
    shape = _shape(word)
    return shape == "vc" or (shape.endswith("cvc") and word[-1] not in "wxy")


def _replace_first(word: str, rules: Sequence[tuple[str, str]]) -> str:
    """Apply the first rule whose suffix fits, if its stem has a measure above 0; later rules are not tried."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            if _measure(rest) > 0:
                return rest + replacement
            return word
    return word


def _without_ie(word: str) -> str:
    """Return a word on -ies or -ied without the ending; of four letters, it keeps its e, as in NLTK."""
    if len(word) == 4:
        return word[:-1]
    return word[:-2]


def _without_plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return _without_ie(word)
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _without_past_and_gerund(word: str) -> str:
    """Step 1b."""
    if word.endswith("ied"):
        return _without_ie(word)
    if word.endswith("eed"):
        return _replace_first(word, (("eed", "ee"),))
    for suffix in ("ed", "ing"):
        if word.endswith(suffix) and "v" in _shape(word[: -len(suffix)]):
            return _restored(word[: -len(suffix)])
    return word


def _restored(word: str) -> str:
    """Return the word without -ed or -ing, with its final e or single consonant restored."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) >= 2 and word[-1] == word[-2] and _shape(word)[-1] == "c":
        if word[-1] in "lsz":
            return word
        return word[:-1]
    if _measure(word) == 1 and _ends_short(word):
        return word + "e"
    return word


def _y_to_i(word: str) -> str:
    """Step 1c, as in NLTK: after a consonant that is not the first letter."""
    if word.endswith("y") and len(word) > 2 and _shape(word)[-2] == "c":
        return word[:-1] + "i"
    return word


def _without_double_suffix(word: str) -> str:
    """Step 2. NLTK turns -alli into -al first and then looks again."""
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _without_double_suffix(word[:-2])
    if word.endswith("logi"):
        if _measure(word[:-3]) > 0:
            return word[:-1]
        return word
    return _replace_first(word, _STEP_2)


def _without_suffix(word: str) -> str:
    """Step 4."""
    for suffix in _STEP_4:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            if _measure(rest) > 1 and (suffix != "ion" or rest[-1] in "st"):
                return rest
            return word
    return word


def _tidy(word: str) -> str:
    """Steps 5a and 5b."""
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _ends_short(rest)):
            word = rest
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word
