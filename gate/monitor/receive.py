"""Stores requests of OpenTelemetry exporters on disk before they are answered, in a file that the monitor reads.

So received data outlives the process, as every other source does. Only data that may belong to the sample is stored.
"""

from __future__ import annotations

import re
from contextlib import suppress
from io import FileIO
from pathlib import Path
from secrets import token_hex

from msgspec.json import Encoder

from gate.monitor.sampling import concerns_sample
from gate.security import files
from gate.system.serving import HOST
from gate.traces.otlp import from_protobuf
from gate.traces.receiver import Receiver

ENOUGH_BYTES = 16 * 2**20
"""File size from which the file is emptied once all of it is settled."""
SUFFIX = ".received.jsonl"
"""The suffix added to the name of the state for this file."""
_TOKEN = re.compile(r"[\w-]{16,128}", re.ASCII)
_ENCODER = Encoder()


class Inbox:
    """The file to which received requests are appended, one per line."""

    def __init__(self, path: Path, rate: float) -> None:
        self.path, self._rate = path, rate
        self._file: FileIO | None = None
        self.refused = 0
        """Requests since it was opened that were not valid OTLP."""

    def __enter__(self) -> Inbox:
        self._file = files.open_to_append(self.path)
        if size := self.path.stat().st_size:
            self._file.seek(size - 1)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")  # a process was killed while writing: that request was never answered
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def receiver(self, port: int) -> Receiver:
        """Return a listener on loopback, for ``async with``; `endpoint_file` then holds its address.

        Every user of the machine may connect to it, but only those who can read that file know the address.
        """
        token = self._token()
        found = Receiver(port, self.take, token=token)
        with suppress(FileExistsError):
            files.create(self.endpoint_file, mode=0o600)
        files.write_text(self.endpoint_file, f"http://{HOST}:{port}/{token}\n")
        return found

    @property
    def endpoint_file(self) -> Path:
        """The file that holds the address for exporters."""
        return self.path.with_name(f"{self.path.name.removesuffix(SUFFIX)}.endpoint")

    def _token(self) -> str:
        """Return the token of the address that exporters already know, or a new one."""
        with suppress(OSError, UnicodeDecodeError):
            found = self.endpoint_file.read_text(encoding="ascii").strip().rpartition("/")[2]
            if _TOKEN.fullmatch(found):
                return found
        return token_hex(16)

    def take(self, body: bytes, signal: str, kind: str) -> None:
        """Store a request. Raises `OSError` if the disk is full, so that the exporter sends it again."""
        assert self._file is not None, "used inside `with`"
        if kind.endswith("json"):
            line = body.replace(b"\n", b" ").replace(b"\r", b" ")  # line breaks in JSON only occur between values
        else:
            try:
                line = _ENCODER.encode(from_protobuf(body, logs=signal == "logs")) if body else b""
            except ValueError:
                self.refused += 1
                return
        if line.strip() and concerns_sample(line, self._rate):
            self._file.write(line + b"\n")

    def empty(self, settled: int) -> None:
        """Empty the file if it is large and everything in it is ``settled``."""
        assert self._file is not None, "used inside `with`"
        if settled >= ENOUGH_BYTES and settled == self.path.stat().st_size:
            self._file.truncate(0)
