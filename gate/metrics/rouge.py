"""ROUGE-1 F between two texts, in google-adk's dialect; knows nothing of turns or cases.

The tokens and the arithmetic are those of google-adk 2.13 with rouge_score 0.1.2, to the last bit. For speed, it uses
translation tables where google-adk goes character by character, and stems each word once.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from gate.metrics.base import NotMeasurableError
from gate.metrics.porter import stem

MAX_MARKS = 1_000
"""The longest run of combining marks to normalise: the time grows with the square of its length."""
_CACHED_WORDS = 100_000
_CACHED_LENGTH = 40

_CJK = ((0x4E00, 0x9FFF), (0x3040, 0x309F), (0x30A0, 0x30FF), (0xAC00, 0xD7AF))
"""Ideographs, kana and Hangul: every character is a token."""
_UNSPACED = ((0x0E00, 0x0E7F), (0x0E80, 0x0EFF), (0x1780, 0x17FF), (0x1000, 0x109F))
"""Thai, Lao, Khmer and Myanmar: every character except a mark starts a token."""


def rouge_1(candidate: str, reference: str) -> tuple[float, float, float]:
    """Return precision, recall and F of the common words, counted with repetition; 0–1, and 0 if a side has no words.

    Source: C.-Y. Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004.

    Raises:
        NotMeasurableError: thousands of combining marks in a row, which would take hours to normalise.
    """
    said, wanted = tokens(candidate), _bag(reference)
    common = wanted.common(said)
    precision = common / max(len(said), 1)
    recall = common / max(wanted.size, 1)
    return precision, recall, _harmonic(precision, recall)


class _WordCounts(NamedTuple):
    """The words of a text with their counts, arranged for comparison with many others."""

    size: int
    words: frozenset[str]
    repeated: Mapping[str, int]
    """The words that occur more than once."""

    def common(self, said: list[str]) -> int:
        """Return the number of common words; a word counts as often as it occurs in both."""
        shared = self.words.intersection(said)
        again = shared.intersection(self.repeated)
        if not again:
            return len(shared)
        counts = Counter([word for word in said if word in again])
        return len(shared) + sum([min(counts[word], self.repeated[word]) - 1 for word in again])


@lru_cache(maxsize=64)
def _bag(text: str) -> _WordCounts:
    """Return the words of an expected answer, cached because all trials of a case need them."""
    counts = Counter(tokens(text))
    repeated = {word: n for word, n in counts.items() if n > 1}
    return _WordCounts(counts.total(), frozenset(counts), repeated)


def rouge_1_sets(candidate: str, reference: str) -> tuple[float, float, float]:
    """Return ROUGE-1 over sets of unstemmed ASCII words, as ADK-TS 0.8 computes it."""
    said, wanted = set(_TS_WORD.findall(candidate.lower())), set(_TS_WORD.findall(reference.lower()))
    common = len(said & wanted)
    precision = common / max(len(said), 1)
    recall = common / max(len(wanted), 1)
    return precision, recall, _harmonic(precision, recall)


def tokens(text: str) -> list[str]:
    """Return the words of a text; ASCII words longer than three letters are stemmed."""
    if text.isascii():
        words = text.translate(_ASCII).split()
    else:
        _check_marks(text)
        words = unicodedata.normalize("NFKC", text).lower().translate(_UNICODE).split()
    return list(map(_STEMS.__getitem__, words))


def _harmonic(precision: float, recall: float) -> float:
    if precision + recall <= 0:
        return 0.0
    return 2 * precision * recall / (precision + recall)


def _check_marks(text: str) -> None:
    if len(text) <= MAX_MARKS:
        return
    for is_mark, run in groupby(text, key=_is_mark):
        if is_mark and sum(1 for _ in run) > MAX_MARKS:
            raise NotMeasurableError(f"the text has more than {MAX_MARKS:,} combining marks in a row")


def _is_mark(char: str) -> bool:
    return unicodedata.combining(char) != 0


_TS_WORD = re.compile(r"[a-z0-9_]+")
_ASCII = dict.fromkeys(range(128), " ") | {ord(char): char.lower() for char in map(chr, range(128)) if char.isalnum()}


class _Spacing(dict[int, str]):
    """Character → itself with the spaces that make `str.split` cut where google-adk does."""

    def __missing__(self, code: int) -> str:
        self[code] = spaced = _spaced(code)
        return spaced


def _spaced(code: int) -> str:
    char = chr(code)
    if _within(code, _CJK):
        return f" {char} "
    is_mark = unicodedata.category(char).startswith("M")
    if _within(code, _UNSPACED):
        return char if is_mark else f" {char}"
    return char if is_mark or char.isalnum() else " "


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


class _Stems(dict[str, str]):
    """Word → token. Bounded: emptied when full, and long words are not kept, so that no agent can fill the memory."""

    def __missing__(self, word: str) -> str:
        token = stem(word) if len(word) > 3 and word.isascii() else word
        if len(word) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = token
        return token


_UNICODE = _Spacing()
_STEMS = _Stems()
