"""The badge of a suite: its newest verdict as a small picture, and as the JSON from which shields.io draws one.

It claims no more than is known: a run without a verdict is ``unknown``, and one that could not be measured is no pass.
"""

from __future__ import annotations

import json

from markupsafe import Markup
from msgspec import Struct

from gate.model import Verdict
from gate.security.escape import one_line

LABEL = "agent gate"
MOST = 40
"""Maximum number of characters in a suite's name."""
_CHARACTER = 6.7
"""Average width of a character of the badge's text in pixels; the text is fitted to it."""


class _Look(Struct, frozen=True):
    said: str
    color: str
    """The background; white text on it has a contrast of at least 4.5."""
    is_error: bool = False


UNKNOWN = _Look("unknown", "#5b6370")
_LOOKS = {
    Verdict.PASS: _Look("pass", "#11734a"),
    Verdict.INCONCLUSIVE: _Look("inconclusive", "#8a5a00"),
    Verdict.NOT_MEASURED: _Look("not measured", "#8a5a00", is_error=True),
    Verdict.NOT_APPLIED: _Look("not applied", "#8a5a00", is_error=True),
    Verdict.NOT_COMPARED: _Look("not compared", "#bb2430", is_error=True),
    Verdict.BELOW_THRESHOLD: _Look("below threshold", "#bb2430", is_error=True),
    Verdict.REGRESSED: _Look("regressed", "#bb2430", is_error=True),
    Verdict.ERROR: _Look("error", "#bb2430", is_error=True),
}


def look_of(verdict: str) -> _Look:
    """Return the look of a verdict; an empty one, or one from another version, is unknown."""
    return next((look for known, look in _LOOKS.items() if known.value == verdict), UNKNOWN)


def badge(suite_id: str, verdict: str, day: str) -> str:
    """Return an SVG file; its title has the ``day`` of the run, so that an old verdict is recognisable."""
    look, label = look_of(verdict), one_line(f"{LABEL}: {suite_id}", MOST)
    left, right = (round(_CHARACTER * len(text) + 12) for text in (label, look.said))
    title = f"{label}: {look.said} ({one_line(day, MOST)})"
    text = Markup('<text x="{}" y="14" textLength="{}" lengthAdjust="spacingAndGlyphs">{}</text>')
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{title}">'
        '<title>{title}</title><clipPath id="r"><rect width="{width}" height="20" rx="4"/></clipPath>'
        '<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#30363d"/>'
        '<rect x="{left}" width="{right}" height="20" fill="{color}"/></g>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">{one}{other}</g></svg>\n'
    ).format(
        width=left + right,
        title=title,
        left=left,
        right=right,
        color=look.color,
        one=text.format(6, left - 12, label),
        other=text.format(left + 6, right - 12, look.said),
    )


def endpoint(suite_id: str, verdict: str) -> str:
    """Return the JSON for ``https://img.shields.io/endpoint?url=…``."""
    look = look_of(verdict)
    said = {
        "schemaVersion": 1,
        "label": one_line(f"{LABEL}: {suite_id}", MOST),
        "message": look.said,
        "color": look.color.removeprefix("#"),
        "isError": look.is_error,
        "cacheSeconds": 300,
    }
    return json.dumps(said, indent=1) + "\n"
