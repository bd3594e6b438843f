"""The words of `gate suite` on a plan."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from gate.commands.texts.plans import describe_suites
from gate.config.load import load_config


def test_a_key_of_a_row_starts_no_line_and_moves_no_cursor(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "word"}]
    row = {"id": "a", "messages": said, "\x1b[2J\n::error::all is well": 1}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    config = {"suite": "rows.jsonl", "agent": {"replay": True}, "criteria": {"contains": {"values": ["word"]}}}
    (tmp_path / "gate.yaml").write_text(yaml.safe_dump(config))
    lines = describe_suites(load_config(tmp_path / "gate.yaml"), {}).splitlines()
    (note,) = (line for line in lines if "not read" in line)
    assert "all is well" in note and "\x1b" not in note
    assert not any(line.startswith("::") for line in lines)
