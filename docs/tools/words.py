"""Count the words that users read: `python -m docs.tools.words` prints each page that is written by hand, and the sum.

Blocks of code and generated parts do not count. The generated reference and docs/dev stand apart.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
NOT_PROSE = re.compile(
    r"<!-- generated: \w+ -->\n.*?<!-- /generated -->|^(?P<fence>```+)\w*\n.*?^(?P=fence)$", re.MULTILINE | re.DOTALL
)
GENERATED = {"configuration", "cli", "metrics", "judged-metrics", "action"}
"""Pages that consist mostly of generated tables."""


def words_by_page() -> dict[Path, int]:
    """Return the number of words of each page for users that is written by hand."""
    pages = [page for page in sorted(DOCS.rglob("*.md")) if DOCS / "dev" not in page.parents]
    by_hand = [page for page in pages if page.stem not in GENERATED]
    return {page: len(NOT_PROSE.sub("", page.read_text(encoding="utf-8")).split()) for page in by_hand}


def main() -> None:
    """Print the pages and their words."""
    found = words_by_page()
    for page, words in found.items():
        print(f"{words:6,} {page.relative_to(DOCS)}")
    print(f"{sum(found.values()):6,} words on {len(found)} pages")


if __name__ == "__main__":
    main()
