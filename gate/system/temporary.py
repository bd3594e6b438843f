"""Temporary folders of the gate's own work."""

from __future__ import annotations

from shutil import rmtree
from tempfile import TemporaryDirectory

from gate.stopping import STOPPING


class TemporaryFolder(TemporaryDirectory[str]):
    """A temporary folder that is removed whole, even if a signal asks the gate to stop in the middle of it."""

    def __init__(self, prefix: str) -> None:
        with STOPPING.postponed():
            super().__init__(prefix=prefix, ignore_cleanup_errors=True)

    def cleanup(self) -> None:
        """Remove the folder with everything in it; files that cannot be removed stay."""
        with STOPPING.postponed():
            try:
                super().cleanup()
            except BaseException:  # where no signal is postponed, since the gate is a library there
                rmtree(self.name, ignore_errors=True)
                raise
