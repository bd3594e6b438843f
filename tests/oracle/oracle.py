"""Asks google-adk in its own environment, given by GATE_ORACLE_PYTHON."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PYTHON = os.environ.get("GATE_ORACLE_PYTHON")
SCRIPT = Path(__file__).with_name("adk_oracle.py")


def ask(lines: Iterable[dict[str, Any]]) -> list[Any]:
    """One answer per line."""
    if not PYTHON:
        raise RuntimeError("GATE_ORACLE_PYTHON is not set")
    sent = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([PYTHON, str(SCRIPT)], input=sent, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-3000:])
    return [json.loads(line) for line in done.stdout.splitlines()]
