"""Prints docstrings of the package, picked at random: `python -m docs.tools.docstrings [--seed 1] [FOLDER]`.

To be read by somebody who did not write them. The last line counts those that begin with a word that no docstring
should begin with.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "gate"
FRAGMENT = re.compile(r"(What|Whether|Whose|Who|Why|How|That)\b")


def docstrings(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the first paragraph of every docstring, of attributes too."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            body = getattr(node, "body", None)
            for statement in body if isinstance(body, list) else ():
                text = _text_of(statement)
                if text is not None:
                    place = f"{path.relative_to(PACKAGE.parent)}:{statement.lineno}"
                    yield place, " ".join(text.split("\n\n")[0].split())


def _text_of(statement: object) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        text = statement.value.value
        return text if isinstance(text, str) else None
    return None


def main() -> None:
    """Print the sample and the number of fragments in the whole folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=PACKAGE)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    found = list(docstrings(given.folder.resolve()))
    for place, text in random.Random(given.seed).sample(found, min(given.count, len(found))):
        print(f"{place}: {text}")
    fragments = sum(FRAGMENT.match(text) is not None for _, text in found)
    print(f"{fragments} of {len(found)} docstrings begin with What, Whether, Whose, Who, Why, How or That")


if __name__ == "__main__":
    main()
