"""Draws the figure of docs/explanation/statistics.md from the table in docs/dev/evidence/decision.md.

    python -m docs.tools.figure

A test fails while the figure is stale.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
TABLE = DOCS / "dev" / "evidence" / "decision.md"
FIGURE = DOCS / "explanation" / "blocked.svg"

SHOWN = {
    "typical, N = 100, unchanged": "100 cases, unchanged",
    "typical, N = 30, unchanged": "30 cases, unchanged",
    "typical, N = 10, 1 case broke": "10 cases, one breaks",
    "typical, N = 100, 1 case broke": "100 cases, one breaks",
    "typical, N = 30, −10 points": "30 cases, −10 points",
    "typical, N = 100, −10 points": "100 cases, −10 points",
    "typical, N = 100, −5 points": "100 cases, −5 points",
    "typical, N = 300, −5 points": "300 cases, −5 points",
}
"""The row of the table → its label in the figure."""

ROW, TOP, LEFT, WIDTH = 28, 34, 190, 400


@dataclass(frozen=True)
class Bar:
    """The share of changes that the gate blocks in one simulated world."""

    label: str
    share: float
    low: float
    high: float

    def svg(self, y: int) -> str:
        """Return the bar with its label, its 95 % interval and its value."""
        end, low, high = (LEFT + share * WIDTH for share in (self.share, self.low, self.high))
        color = "#9aa0a6" if "unchanged" in self.label else "#2f6fbb"
        return (
            f'<text x="{LEFT - 10}" y="{y + 14}" text-anchor="end">{escape(self.label)}</text>'
            f'<rect x="{LEFT}" y="{y + 2}" width="{max(end - LEFT, 1):.1f}" height="16" fill="{color}"/>'
            f'<path d="M{low:.1f} {y + 10}H{high:.1f}" stroke="#202124" stroke-width="2"/>'
            f'<text x="{LEFT + WIDTH + 12}" y="{y + 14}">{100 * self.share:.1f} %</text>'
        )


def bars() -> list[Bar]:
    """Return the bars in the order of the figure, as the table has them."""
    text = TABLE.read_text(encoding="utf-8").partition("<!-- rule -->")[2].partition("<!-- /rule -->")[0]
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in SHOWN:
            low, _, high = cells[3].partition("–")
            found[cells[0]] = Bar(SHOWN[cells[0]], float(cells[2]), float(low), float(high))
    return [found[name] for name in SHOWN]


def figure() -> str:
    """Return the figure as SVG."""
    drawn = bars()
    height = TOP + ROW * len(drawn) + 24
    grid = "".join(
        f'<path d="M{LEFT + share * WIDTH:.0f} {TOP - 6}V{height - 22}" stroke="#dadce0"/>'
        f'<text x="{LEFT + share * WIDTH:.0f}" y="{height - 6}" text-anchor="middle">{100 * share:.0f} %</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    rows = "\n".join(bar.svg(TOP + ROW * number) for number, bar in enumerate(drawn))
    return re.sub(
        r"\n+",
        "\n",
        f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" font-family="sans-serif" font-size="13">
<rect width="680" height="{height}" fill="#ffffff"/>
<text x="{LEFT}" y="18" font-weight="bold">Share of changes that the gate blocks, with 95 % intervals</text>
{grid}
{rows}
</svg>
""",
    )


def main() -> int:
    """Write the figure."""
    FIGURE.write_text(figure(), encoding="utf-8")
    print(f"{FIGURE}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
