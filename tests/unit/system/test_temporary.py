"""A temporary folder is gone afterwards, whatever interrupts its removal."""

from __future__ import annotations

import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gate.errors import Cancelled
from gate.system.temporary import TemporaryFolder


def test_a_signal_in_the_middle_of_the_removal_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = TemporaryFolder("gate-test-")
    (Path(folder.name) / "a").mkdir()
    (Path(folder.name) / "a" / "file").write_text("")
    whole = TemporaryDirectory.cleanup

    def interrupted(self: TemporaryDirectory[str]) -> None:
        (Path(self.name) / "a" / "file").unlink()
        raise Cancelled(signal.SIGTERM)

    monkeypatch.setattr(TemporaryDirectory, "cleanup", interrupted)
    with pytest.raises(Cancelled), folder:
        pass
    assert not Path(folder.name).exists()
    whole(folder)  # so that it does not warn once it is collected
