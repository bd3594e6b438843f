"""The badge of a suite: its newest verdict as a small picture.

It claims no more than is known: a run without a verdict is ``unknown``, and one that could not be measured is no pass.
"""

from __future__ import annotations

from markupsafe import Markup

from gate.model import Verdict
from gate.reports.labels import TONES, VERDICTS
from gate.security.escape import one_line

LABEL = "agent gate"
MOST = 40
"""Maximum number of characters in a suite's name."""
_CHARACTER = 6.7
"""Average width of a character of the badge's text in pixels; the text is fitted to it."""


COLORS = {"good": "#11734a", "warn": "#8a5a00", "mute": "#5b6370", "bad": "#bb2430", "error": "#bb2430"}
"""The background of each tone; white text on it has a contrast of at least 4.5."""
UNKNOWN = ("unknown", "mute")


def look_of(verdict: str) -> tuple[str, str]:
    """Return the words and the tone of a verdict; an empty one, or one from another version, is unknown."""
    for known in Verdict:
        if known.value == verdict:
            return VERDICTS[known], TONES[known]
    return UNKNOWN


def badge(suite_id: str, verdict: str, day: str) -> str:
    """Return an SVG file; its title has the ``day`` of the run, so that an old verdict is recognisable."""
    said, tone = look_of(verdict)
    label = one_line(f"{LABEL}: {suite_id}", MOST)
    left, right = (round(_CHARACTER * len(text) + 12) for text in (label, said))
    title = f"{label}: {said} ({one_line(day, MOST)})"
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
        color=COLORS[tone],
        one=text.format(6, left - 12, label),
        other=text.format(left + 6, right - 12, said),
    )
