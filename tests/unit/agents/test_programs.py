"""A program that is the agent: what is said when it cannot be started, or ends without an answer."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from gate.agents.base import AgentFailure
from gate.agents.command import CommandAgent, CommandOptions
from gate.agents.programs import MOST_OF_ERROR
from gate.errors import ConfigError
from gate.model import ErrorKind


def running(command: list[str], root: Path) -> CommandAgent:
    return CommandAgent(CommandOptions(command=tuple(command), persistent=True), root, {})


def failure_of(program: str, root: Path) -> AgentFailure:
    """What is said of a line to a Python program that ends without one."""

    async def ask() -> None:
        async with running([sys.executable, "-c", program], root) as started:
            line = await started.open_line()
            try:
                line.send({"question": 1})
                await line.next(called="server")
            finally:
                await line.end()

    with pytest.raises(AgentFailure) as caught:
        asyncio.run(ask())
    return caught.value


def test_a_program_that_is_not_there_is_named_with_its_key(tmp_path: Path) -> None:
    async def start() -> None:
        async with running(["./nowhere"], tmp_path) as program:
            await program.open_line()

    with pytest.raises(ConfigError, match=r"cannot run './nowhere': no such executable") as caught:
        asyncio.run(start())
    assert caught.value.where == "agent.command"


def test_a_program_is_found_in_folders_relative_to_the_configuration(tmp_path: Path) -> None:
    """Such as node_modules/.bin: the program is started from there, wherever the gate is."""
    program = tmp_path / "tools" / "ask-me"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    async def start(path: str) -> None:
        async with CommandAgent(CommandOptions(command=("ask-me",), persistent=True), tmp_path, {"PATH": path}) as one:
            await (await one.open_line()).end()

    asyncio.run(start("/nowhere:tools"))
    with pytest.raises(ConfigError, match="cannot run 'ask-me': no such executable"):
        asyncio.run(start("/nowhere:"))


def test_the_last_line_of_what_it_wrote_says_why(tmp_path: Path) -> None:
    error = failure_of("import sys; sys.exit('trying again\\nno database')", tmp_path)
    assert (error.kind, error.said) == (ErrorKind.CRASH, "no database")
    assert error.message.startswith("the server exited with status 1: trying again")


@pytest.mark.parametrize("many", [10, 10_000])
def test_a_word_that_is_cut_off_is_left_out(tmp_path: Path, many: int) -> None:
    """It may be half of a secret."""
    error = failure_of(f"import sys; sys.exit(('s3cret' + 'x' * {many}) + ' then it ended')", tmp_path)
    assert error.message.endswith("then it ended")
    assert ("x" in error.message.partition(": ")[2]) == (many < MOST_OF_ERROR)
