"""The published schema, as it was agreed on; whole reports are held to real runs in tests/acceptance.

`make golden` rewrites it, for review.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from gate.reports.json import schema

GOLDEN = Path(__file__).parents[2] / "golden" / "reports" / "result.schema.json"


def test_the_published_schema() -> None:
    text = json.dumps(schema(), indent=2) + "\n"
    if os.environ.get("GATE_UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
