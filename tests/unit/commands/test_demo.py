"""The demo's agent."""

from __future__ import annotations

import runpy
from pathlib import Path

from gate.commands.texts.demo import files


def test_it_answers_a_question_about_no_order(tmp_path: Path) -> None:
    """`gate doctor` asks such a one."""
    for name, text in files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    answer = runpy.run_path(str(tmp_path / "agent.py"))["answer"]
    assert answer("Which code word did I give you?")["tool_calls"] == []
    assert [call["name"] for call in answer("Please refund order A100.")["tool_calls"]] == ["look_up_order", "refund"]
