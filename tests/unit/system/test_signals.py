"""Signals while a coroutine runs: each stops it with its own exit code, and a second one ends what does not stop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from gate.errors import Cancelled, MeasureError
from gate.system import signals as interrupts
from tests.patience import CEILING


@pytest.mark.parametrize("number", interrupts.SIGNALS)
def test_a_signal_cancels_and_is_told(number: signal.Signals) -> None:
    closed = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)  # as `timeout` does: to the process and to its group
            await asyncio.sleep(CEILING)
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    of_the_tests = signal.signal(number, signal.SIG_DFL)  # which may run under `nohup`
    before = [signal.getsignal(known) for known in interrupts.SIGNALS]
    try:
        with pytest.raises(Cancelled) as caught:
            interrupts.run(work())
        assert caught.value.exit_code == 128 + number
        assert closed
        assert [signal.getsignal(known) for known in interrupts.SIGNALS] == before
    finally:
        signal.signal(number, of_the_tests)


def test_what_is_ignored_at_the_start_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def work() -> str:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        return "done"

    try:
        assert interrupts.run(work()) == "done"
    finally:
        signal.signal(signal.SIGHUP, before)


BUSY = """
import sys
from gate.system import signals as interrupts
interrupts.PATIENCE = 0.0
async def work():
    print("busy", flush=True)
    while True: pass
interrupts.run(work())
"""


def test_a_second_signal_ends_a_loop_that_never_looks() -> None:
    run = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == "busy\n"
        while run.poll() is None:
            run.send_signal(signal.SIGINT)
            time.sleep(0.05)
        assert run.returncode == -signal.SIGINT, "a shell says 130"
    finally:
        run.kill()
        run.communicate()


@pytest.mark.parametrize("in_task", [False, True])
def test_code_that_asks_to_exit_does_not_choose_the_exit_code(in_task: bool) -> None:
    async def leave() -> None:
        raise SystemExit(0)

    async def work() -> None:
        await (asyncio.create_task(leave()) if in_task else leave())

    with pytest.raises(MeasureError, match="asked to end the process"):
        interrupts.run(work())


def test_no_result_is_spelled_out() -> None:
    """asyncio spells out the result of its task when it sets signals back: of a large run that takes its time."""

    class Result:
        spelled = 0

        def __repr__(self) -> str:
            Result.spelled += 1
            return "a result"

    async def work() -> Result:
        return Result()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # else asyncio sets nothing back
    try:
        assert isinstance(interrupts.run(work()), Result)
        assert isinstance(interrupts.in_loop(work()), Result)
        assert Result.spelled == 0
    finally:
        signal.signal(signal.SIGINT, before)
