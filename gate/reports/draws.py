"""Earlier measurements of the same change, as the run's terms state them among the warnings.

They are stated in words of their own (`gate.pipeline.draws`), so this is the one place where a sentence is read again.
"""

from __future__ import annotations

import re

from gate.model import SuiteResult
from gate.model.facts import Stated

FELL_SHORT = ("regressed", "below threshold")
_STATED = re.compile(r"(measurement \d+ of this change); ((?:the newest \d+ of \d+ )?before: ([a-z ,]+)) \(.+")


def in_headline(suite: SuiteResult) -> str:
    """``measurement 3 of this change (before: pass, regressed)``, where one of them fell short; else empty.

    Whatever a further one comes to, it is one of several, and a lucky one is not to hide the others.
    """
    found = _STATED.fullmatch(_stated(suite))
    if found is None or not any(verdict in FELL_SHORT for verdict in found[3].split(", ")):
        return ""
    return f"{found[1]} ({found[2]})"


def below_headline(suite: SuiteResult) -> str:
    """The whole sentence, where the headline does not tell it; empty if this is the first measurement."""
    return "" if in_headline(suite) else _stated(suite)


def _stated(suite: SuiteResult) -> str:
    texts = (one.text for one in suite.warnings if isinstance(one, Stated))
    return next((text for text in texts if _STATED.fullmatch(text)), "")
