"""A signal leaves no temporary folder, file or process behind, in whatever moment it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gate import __main__
from gate.errors import Cancelled
from gate.security import files
from gate.stopping import SIGNALS, STOPPING, heed, heed_no_more
from gate.system import child
from gate.system.temporary import TemporaryFolder


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background
    heed()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    STOPPING.set(0)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_the_middle_of_the_removal_leaves_nothing(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = TemporaryFolder("gate-test-")
    (Path(folder.name) / "file").write_text("")
    whole = TemporaryDirectory.cleanup

    def interrupted(self: TemporaryDirectory[str]) -> None:
        signal.raise_signal(number)
        whole(self)

    monkeypatch.setattr(TemporaryDirectory, "cleanup", interrupted)
    with pytest.raises(Cancelled) as stopped, folder:
        pass
    assert stopped.value.exit_code == 128 + number
    assert not Path(folder.name).exists()


def test_a_signal_while_a_program_starts_ends_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []
    launch = child.launch

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(launch(*arguments, **options))
        signal.raise_signal(signal.SIGTERM)  # as if it came before the caller knows of the process
        return started[0]

    monkeypatch.setattr(child, "launch", interrupted)
    with pytest.raises(Cancelled):
        child.run(["/bin/sleep", "60"], environment={}, cwd=tmp_path, seconds=60)
    assert started[0].returncode == -signal.SIGKILL


def test_a_program_that_cleans_up_is_ended_by_a_second_signal(tmp_path: Path) -> None:
    STOPPING.set(signal.SIGTERM)
    second = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
    second.start()
    with pytest.raises(Cancelled):
        child.run(["/bin/sleep", "60"], environment={}, cwd=tmp_path, seconds=10)
    second.join()


def test_a_signal_while_a_file_is_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("old")

    def parts() -> Iterator[bytes]:
        yield b"half"
        signal.raise_signal(signal.SIGTERM)
        yield b" and half"

    with pytest.raises(Cancelled):
        files.write_parts(tmp_path / "report", parts())
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_signal_while_a_file_is_created_leaves_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = os.open

    def interrupted(path: str, flags: int, *mode: int, **options: int) -> int:
        descriptor = whole(path, flags, *mode, **options)
        if flags & os.O_EXCL:
            signal.raise_signal(signal.SIGTERM)
        return descriptor

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(Cancelled):
        files.write_text(tmp_path / "report", "text")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_ended_its_section_is_not_raised_again() -> None:
    with pytest.raises(Cancelled), STOPPING.postponed():
        signal.raise_signal(signal.SIGTERM)
        STOPPING.check()
    with STOPPING.postponed():
        pass


def test_a_signal_outranks_the_error_that_ends_a_section() -> None:
    with pytest.raises(Cancelled), STOPPING.postponed():
        signal.raise_signal(signal.SIGTERM)
        raise OSError


def test_a_removal_that_a_signal_interrupts_is_finished_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook, where Python's own handler raises at once."""
    folder = TemporaryFolder("gate-test-")
    (Path(folder.name) / "file").write_text("")
    whole = TemporaryDirectory.cleanup

    def interrupted(self: TemporaryDirectory[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TemporaryDirectory, "cleanup", interrupted)
    with pytest.raises(KeyboardInterrupt):
        folder.cleanup()
    assert not Path(folder.name).exists()
    whole(folder)  # so that it does not warn once it is collected


def test_sections_within_a_section_end_before_the_signal_is_heeded() -> None:
    done = []
    with pytest.raises(Cancelled), STOPPING.postponed():
        with STOPPING.postponed():
            signal.raise_signal(signal.SIGTERM)
        done.append("the outer one")
    assert done
    STOPPING.set(0)
    with STOPPING.postponed():
        pass  # that signal is not heeded twice


def test_a_section_of_another_thread_postpones_nothing() -> None:
    inside, leave = threading.Event(), threading.Event()

    def section() -> None:
        with STOPPING.postponed():
            inside.set()
            leave.wait()

    other = threading.Thread(target=section)
    other.start()
    inside.wait()
    try:
        with pytest.raises(Cancelled):
            signal.raise_signal(signal.SIGTERM)
    finally:
        leave.set()
        other.join()


def test_what_is_ignored_stays_ignored() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    heed()
    assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_signal_after_the_work_ends_the_process_as_signals_do() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    heed_no_more()
    assert signal.getsignal(signal.SIGTERM) is signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_second_signal_while_the_first_is_reported_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped_twice() -> None:
        raise Cancelled(signal.SIGTERM)

    monkeypatch.setattr(__main__, "main", stopped_twice)
    monkeypatch.setattr(__main__, "is_alone", lambda: None)
    with pytest.raises(SystemExit) as ended:
        __main__.run()
    assert ended.value.code == 128 + signal.SIGTERM
