"""The words of `gate suite` on a plan."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from gate.commands.plans import describe_suites
from gate.config.load import load_config

CASES = [
    {"id": "a", "input": "x", "tools": ["f"], "tags": ["smoke", "refund"], "complexity": "simple"},
    {"id": "b", "turns": [{"input": "x", "tools": []}, {"input": "y"}], "tags": ["refund"]},
    {"id": "c", "input": "x", "response": "y", "complexity": "complex"},
]


def test_the_cases_are_counted_by_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps(CASES))
    config = {"suite": "cases.json", "agent": {"python": "agent:reply"}, "criteria": {"response_match_score": 0.8}}
    (tmp_path / "gate.yaml").write_text(yaml.safe_dump(config))
    lines = describe_suites(load_config(tmp_path / "gate.yaml"), {}).splitlines()
    assert lines[:5] == [
        "cases.json: 3 cases, 4 turns",
        "  complexity  simple 1, medium 1, complex 1",
        "  tags        (none) 1, refund 2, smoke 1",
        "  turns       1-turn 2, 2-turn 1",
        "  expects     calls 1, no call 1, calls not stated 1, a response 1",
    ]


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
