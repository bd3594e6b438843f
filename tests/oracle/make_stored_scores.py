"""Writes google-adk's scores of random pairs where the ordinary tests read them.

GATE_ORACLE_PYTHON=… python -m tests.oracle.make_stored_scores
"""

from __future__ import annotations

import gzip
import json
from itertools import groupby
from pathlib import Path

from tests.oracle.oracle import ask
from tests.oracle.questions import questions

PAIRS = 400
SEED = 2130
STORED = Path(__file__).parents[1] / "unit" / "metrics" / "stored_scores.jsonl.gz"


def main() -> None:
    asked = list(questions(PAIRS, SEED))
    answered = zip(asked, ask(asked), strict=True)
    lines = []
    for _, group in groupby(answered, key=lambda one: one[0]["id"]):
        members = list(group)
        pair = {key: members[0][0][key] for key in ("id", "actual", "expected")}
        answers = [
            {"metric": q["metric"], "options": q["options"], **{key: a[key] for key in ("score", "per_turn", "error")}}
            for q, a in members
        ]
        lines.append(json.dumps({**pair, "answers": answers}) + "\n")
    # No time and no name in the header: the same scores are the same file.
    STORED.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    main()
