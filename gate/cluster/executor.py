"""Scores on a Ray cluster, through a separate process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.util import find_spec

from gate.errors import ConfigError, MeasureError
from gate.scoring.batch import ScoringSetup
from gate.scoring.workers import RESUME, DiedError, WorkerLink, Workers
from gate.security.redact import Redactor
from gate.system.child import new_mark


class Cluster(Workers):
    """A Ray cluster, which by itself repeats work that a failed node left unfinished."""

    allowed = ("RAY_*",)

    def __init__(self, address: str, setup: ScoringSetup, redactor: Redactor, environment: Mapping[str, str]) -> None:
        super().__init__(setup, redactor, environment)
        self._environment["RAY_USAGE_STATS_ENABLED"] = "0"
        if address == "local":  # a new token; Ray would leave one in the home folder
            self._environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": new_mark()}
        self._address = address
        self.module = ("gate.cluster.bridge", address)
        self._link: WorkerLink | None = None

    async def _open(self) -> None:
        if find_spec("ray") is None:
            hint = 'pip install "agent-gate[ray]"'
            raise ConfigError("executor.ray needs Ray, which is not installed", where="executor.ray", hint=hint)
        await self._reach()
        self._link, self.slots = await self._start()

    async def _reach(self) -> None:
        """Raise MeasureError if the cluster's machine cannot be reached; Ray itself would wait a minute for it."""
        address = self._environment.get("RAY_ADDRESS", "") if self._address == "auto" else self._address
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            return
        try:
            async with asyncio.timeout(5):
                _, writer = await asyncio.open_connection(host, int(port))
            writer.close()
        except (OSError, TimeoutError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or "no answer"
            hint = "start one with `ray start --head`, or name another address"
            raise MeasureError(f"no Ray cluster at {address!r}: {reason}", where="executor.ray", hint=hint) from None

    async def _ask(self, data: bytes) -> bytes:
        assert self._link is not None
        try:
            return await self._link.ask(data)
        except DiedError:
            what = f"the connection to the Ray cluster was lost: its process {await self._link.exit_reason()}"
        raise MeasureError(what, where="executor.ray", hint=RESUME)
