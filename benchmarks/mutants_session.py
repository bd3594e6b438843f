"""The far side of benchmarks/mutants.py: pytest in a copy of the checkout, which forks for each order it is given.

Run as a program, by the copy's interpreter in the copy's folder, with two descriptors, the folder of the switches, and
the options of pytest. An order is a line; what to run is in the folder's file `order`.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

RECORD = -2
PR_SET_CHILD_SUBREAPER = 36
HOLDING = {"gate.metrics.custom.isolated", "tests.warm"}
"""Modules whose caches hold processes, and are not cleared between tests."""


class Session:
    def __init__(self, orders: int, answers: int, switches: Path) -> None:
        for end in (orders, answers):
            os.set_inheritable(end, False)
        self._orders = os.fdopen(orders)
        self._answers = answers
        self._switches = switches
        self._test = os.open(switches / "test", os.O_WRONLY)
        self._recording = False
        self._failed = False
        self._caches: list[Any] = []

    # --- before the tests -------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import settings

        settings.register_profile("mutants", settings.default, derandomize=True, database=None)
        settings.load_profile("mutants")
        self._say_test("import")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        users: dict[str, list[int]] = {}
        for at, item in enumerate(session.items):
            for definitions in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
                for one in definitions:
                    if one.scope != "function":
                        users.setdefault(_name(one), []).append(at)
        told = {"tests": [item.nodeid for item in session.items], "users": users}
        path = self._switches / "collected"
        path.write_text(json.dumps(told), encoding="utf-8")
        if not session.testsfailed:
            self._say(f"collected {path}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return True
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for _ in self._orders:
            order = json.loads((self._switches / "order").read_text())
            child = os.fork()
            if not child:
                self._play(session, order)
            self._say(f"pid {child}")
            status = self._wait(child)
            self._say(f"ended {status}")
        return True

    def _wait(self, child: int) -> int:
        """Return the exit code of a fork, and end the processes that it leaves behind."""
        code = 0
        while True:
            with suppress(ChildProcessError):
                ended, status = os.waitpid(-1, 0)
                if ended != child:
                    continue
                code = os.waitstatus_to_exitcode(status)
            break
        while left := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(-1, 0)
        shutil.rmtree(self._temporary(child), ignore_errors=True)
        return code

    def _temporary(self, child: int) -> Path:
        return self._switches.parent / f"t{child}"

    # --- in the fork ------------------------------------------------------------------------------

    def _play(self, session: pytest.Session, order: dict[str, Any]) -> NoReturn:
        try:
            os.setsid()
            self._turn(order["active"])
            self._make_room(session.config)
            items = [session.items[at] for at in order["tests"]]
            for at, item, following in zip(order["tests"], items, [*items[1:], None], strict=True):
                self._failed = False
                self._say(f"start {at}")
                self._say_test(str(at))
                if self._recording:
                    self._forget()
                began = time.monotonic()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                self._say(f"{'failed' if self._failed else 'passed'} {time.monotonic() - began:.3f}")
                if self._failed and order["stop"]:
                    break
            os._exit(0)
        finally:
            os._exit(1)

    def _turn(self, active: int) -> None:
        """Switch a mutant on, in this process and for modules that it is yet to import."""
        self._recording = active == RECORD
        switch: Any = sys.__reached__ if self._recording else active.__eq__  # type: ignore[attr-defined]
        sys.__mutant__ = switch  # type: ignore[attr-defined]
        for names in sys.__switched__:  # type: ignore[attr-defined]
            names["__mutant__"] = switch

    def _make_room(self, config: pytest.Config) -> None:
        """Make a folder for temporary files, which is removed once the fork has ended."""
        folder = self._temporary(os.getpid())
        folder.mkdir(mode=0o700)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
        config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        del os.environ["PYTEST_DEBUG_TEMPROOT"]

    def _forget(self) -> None:
        """Clear caches: a test that is run alone has none of another test's."""
        if not self._caches:
            for name, module in list(sys.modules.items()):
                if name.split(".")[0] in ("gate", "tests") and name not in HOLDING:
                    found = [one for one in vars(module).values() if isinstance(one, functools._lru_cache_wrapper)]
                    self._caches += [one for one in found if one.__module__ not in HOLDING]
        for cache in self._caches:
            if cache.cache_info().currsize:
                cache.cache_clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        """A place that a fixture of a wider scope reaches is reached by all tests that use the fixture."""
        before = self._now
        if fixturedef.scope != "function":
            self._say_test(_name(fixturedef))
        try:
            return (yield)
        finally:
            self._say_test(before)

    _now = ""

    def _say_test(self, name: str) -> None:
        self._now = name
        os.pwrite(self._test, name.encode().ljust(100), 0)
        if hasattr(sys, "__reached__"):
            sys.__reached__.test = name

    def _say(self, line: str) -> None:
        os.write(self._answers, f"{line}\n".encode())


def _name(fixture: Any) -> str:
    return f"{fixture.baseid}::{fixture.argname}".replace(" ", "_")[-100:]


def main() -> int:
    orders, answers, switches, *options = sys.argv[1:]
    sys.path[0] = str(Path.cwd())  # as `python -m pytest` has it
    return int(pytest.main(options, plugins=[Session(int(orders), int(answers), Path(switches))]))


if __name__ == "__main__":
    sys.exit(main())
