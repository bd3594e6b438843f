"""The process ends with the exit code of the command, whoever reads its output."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import atexit, sys
import gate.__main__ as process

def main():
    atexit.register(lambda: print("registered"))
    sys.stdout.write("said")
    sys.stderr.write("warned")
    {ends}

process.main = main
process.run()
"""


def run(ends: str) -> subprocess.CompletedProcess[str]:
    code = PROGRAM.format(ends=ends)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_what_was_said_and_registered_is_done() -> None:
    ended = run("sys.exit(0)")
    assert (ended.stdout, ended.stderr, ended.returncode) == ("saidregistered\n", "warned", 0)


def test_nothing_but_an_exit_code_of_its_own_is_success() -> None:
    assert run("sys.exit('a message')").returncode == 1
    assert run("pass").returncode == 1


def test_what_fails_at_the_end_changes_nothing() -> None:
    assert run("atexit.register(lambda: 1 / 0); sys.exit(3)").returncode == 3


def test_a_reader_that_left_early_changes_nothing() -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", PROGRAM.format(ends="sys.exit(3)")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=buffered) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 3
