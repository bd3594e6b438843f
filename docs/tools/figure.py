"""Draws two figures from tables in docs/dev/evidence/decision.md: what the gate blocks, and power beside drift.

    python -m docs.tools.figure

A test fails while a figure is stale.
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
FRONTIER = DOCS / "dev" / "evidence" / "frontier.svg"

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
RULES = {
    "never": "never",
    "**p > 0.7: the rule**": "p > 0.7: the rule",
    "p > 0.4": "p > 0.4",
    "always: stored trials only": "always",
}
"""The row of the frontier's table, by when the record counts → its label in the figure."""
WORLDS = {"−5 points": "#2f6fbb", "−10 points, N = 30": "#12806a", "drift −4": "#b3261e", "drift −8": "#e37400"}
"""The columns of the frontier's table that are drawn, each with its colour."""

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


def table(name: str) -> list[list[str]]:
    """Return the cells of a table in the page, its heads first."""
    text = TABLE.read_text(encoding="utf-8").partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|--")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def bars() -> list[Bar]:
    """Return the bars in the order of the figure, as the table has them."""
    found = {}
    for cells in table("rule"):
        if cells[0] in SHOWN:
            low, _, high = cells[3].partition("–")
            found[cells[0]] = Bar(SHOWN[cells[0]], float(cells[2]), float(low), float(high))
    return [found[name] for name in SHOWN]


def dots() -> list[str]:
    """Return a row for each rule of the frontier: what it finds of changes, and blocks of unchanged agents."""
    heads, *rows = table("frontier")
    by_name = {cells[0]: cells for cells in rows}
    drawn = []
    for number, (name, label) in enumerate(RULES.items()):
        y = TOP + ROW * (number + 1)
        parts = [f'<text x="{LEFT - 10}" y="{y + 14}" text-anchor="end">{escape(label)}</text>']
        for place, (world, color) in enumerate(WORLDS.items()):
            share, low, high = map(float, re.findall(r"\d\.\d+", by_name[name][heads.index(world)])[:3])
            middle, start, end = (LEFT + value * WIDTH for value in (share, low, high))
            at = y + 3 + 5 * place
            parts.append(f'<path d="M{start:.1f} {at}H{end:.1f}" stroke="{color}" stroke-width="1.5"/>')
            parts.append(f'<circle cx="{middle:.1f}" cy="{at}" r="3.5" fill="{color}"/>')
        drawn.append("".join(parts))
    return drawn


def canvas(title: str, rows: list[str], height: int) -> str:
    """Return rows over an axis from 0 to 100 %, as SVG."""
    grid = "".join(
        f'<path d="M{LEFT + share * WIDTH:.0f} {TOP - 6}V{height - 22}" stroke="#dadce0"/>'
        f'<text x="{LEFT + share * WIDTH:.0f}" y="{height - 6}" text-anchor="middle">{100 * share:.0f} %</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    drawn = "\n".join(rows)
    return re.sub(
        r"\n+",
        "\n",
        f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" font-family="sans-serif" font-size="13">
<rect width="680" height="{height}" fill="#ffffff"/>
<text x="{LEFT}" y="18" font-weight="bold">{title}</text>
{grid}
{drawn}
</svg>
""",
    )


def figure() -> str:
    """Return the figure of what the gate blocks, as SVG."""
    rows = [bar.svg(TOP + ROW * number) for number, bar in enumerate(bars())]
    return canvas("Share of changes that the gate blocks, with 95 % intervals", rows, TOP + ROW * len(rows) + 24)


def frontier() -> str:
    """Return the figure of power beside drift where the base can be run, as SVG."""
    x, legend = LEFT, ""
    for world, color in WORLDS.items():
        legend += f'<circle cx="{x + 6}" cy="{TOP + 8}" r="4" fill="{color}"/>'
        legend += f'<text x="{x + 14}" y="{TOP + 12}">{escape(world)}</text>'
        x += 30 + 8 * len(world)
    rows = [legend, *dots()]
    return canvas(
        "Share blocked, by when the base's record counts, with 95 % intervals", rows, TOP + ROW * len(rows) + 24
    )


def main() -> int:
    """Write the figures."""
    for path, drawn in ((FIGURE, figure()), (FRONTIER, frontier())):
        path.write_text(drawn, encoding="utf-8")
        print(f"{path}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
