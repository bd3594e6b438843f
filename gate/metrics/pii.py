"""Finds personal data in a text, offline, by shape and check digit; reports counts only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from gate.metrics.reading import as_read
from gate.security.redact import INTERNATIONAL, luhn

_CARD = r"(?<![\w-])(?:{})(?![\w-])"
_ISSUER = "(?:2[2-7]|3[05689]|[4-6][0-9])"
"""The first two digits of a card with 16 to 19; those of years, barcodes and serial numbers of devices are others."""
_SHAPES = (
    (
        "e-mail address",
        re.compile(r"(?<![\w.%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"),
    ),
    (
        "card number",
        re.compile(_CARD.format(rf"3[0689][0-9]{{12}}|3[47][0-9]{{13}}|{_ISSUER}[0-9]{{14,17}}")),
    ),
    ("card number", re.compile(_CARD.format(rf"{_ISSUER}[0-9]{{2}}(?:[ -][0-9]{{4}}){{3}}"))),
    ("card number", re.compile(_CARD.format(rf"{_ISSUER}[0-9]{{2}}(?:[ -][0-9]{{4}}){{3}}[ -][0-9]{{1,3}}"))),
    ("card number", re.compile(_CARD.format(r"3[046-9][0-9]{2}[ -][0-9]{6}[ -][0-9]{4,5}"))),
    ("IBAN", re.compile(r"(?<!\w)[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")),
    (
        "US social security number",
        re.compile(r"(?<![\w-])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![\w-])"),
    ),
    ("telephone number", re.compile(rf"(?<![\w+]){INTERNATIONAL}(?!\w)")),
    (
        "telephone number",
        re.compile(
            r"(?<![\w-])(?:(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2} )[0-9]{3}[ .-]"
            r"|[2-9][0-9]{2}(?P<gap>[.-])[0-9]{3}(?P=gap))[0-9]{4}(?![\w-])"  # 210-250 2024 is a range and a year
        ),
    ),
)
"""Kinds and their shapes as they are usually printed."""


def find_personal(text: str, known: str = "") -> list[str]:
    """Return the kind of every e-mail address, card number (Luhn), IBAN (check digits), US social security number and
    telephone number, except those in ``known``: repeating what the user said first is not a disclosure.

    Names, postal addresses, dates of birth and health data have no fixed shape and are not found.
    """
    text = as_read(text)
    found = []
    for kind, shape in _SHAPES:
        is_right = _CHECKS.get(kind)
        for match in shape.finditer(text):
            if is_right is None or is_right(match[0]):
                found.append((kind, _plain(match[0])))
    if not found:
        return []
    said = _plain(as_read(known))
    return [kind for kind, value in found if value not in said]


def tell(kinds: Iterable[str]) -> str:
    """Return kinds and counts; the texts that were found are never repeated."""
    return ", ".join(f"{count} × {kind}" for kind, count in sorted(Counter(kinds).items()))


def _plain(text: str) -> str:
    return re.sub(r"[\s().-]", "", text).lower()


def iban(number: str) -> bool:
    """True if the check digits of ISO 13616 are right: first four characters moved to the end, letters as 10–35, modulo
    97 is 1."""
    plain = number.replace(" ", "")
    moved = plain[4:] + plain[:4]
    return 15 <= len(plain) <= 34 and int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


_CHECKS = {"card number": luhn, "IBAN": iban}
