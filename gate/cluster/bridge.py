"""A process between the gate and a Ray cluster: batches in, answers out, like a worker process.

    python -m gate.cluster.bridge ADDRESS

A separate process keeps Ray's threads, signals and memory away from the gate, and can be killed if it hangs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Event
from typing import Any

from gate import __version__
from gate.cluster import task as remote
from gate.errors import ConfigError, MeasureError
from gate.scoring.worker import fail
from gate.system import wire
from gate.system.serialize import pack
from gate.system.wire import Frame, ParentPipes

STORE_BYTES = 100_000_000
"""Shared memory of a local cluster: a batch and its answer take a few megabytes."""
QUEUED = 2
"""Batches per processor of the cluster: one being scored, one on its way."""
MOST_SEATS = 256


class Bridge:
    """Passes batches to the cluster, and the cluster's answers back."""

    def __init__(self, ray: Any, pipes: ParentPipes, leave: Callable[[], None]) -> None:
        self._ray, self._pipes, self._leave = ray, pipes, leave
        self._score = ray.remote(remote.score)
        self._setup: Any = None

    def take(self, message: Frame) -> None:
        kind, number, data = message
        try:
            if kind == wire.SETUP:
                self._setup = self._ray.put(data)
                self._pipes.send(wire.READY, 0, pack(self._seats()))
            else:
                answer = self._score.remote(self._setup, data).future()
                answer.add_done_callback(lambda found: self._answer(number, found))
        except Exception as error:  # noqa: BLE001 - any error from Ray fails only this batch
            fail(self._pipes, number, _plain(error))

    def _answer(self, number: int, found: Any) -> None:
        error = found.exception()
        try:
            if error is None:
                self._pipes.send(wire.DONE, number, found.result())
            else:
                fail(self._pipes, number, _plain(error))
        except BrokenPipeError:
            self._leave()

    def _seats(self) -> int:
        """Return the number of batches to accept. Asking for the version first also shows that the cluster runs
        tasks."""
        there = self._ray.get(self._ray.remote(remote.version).remote())
        if there != __version__:
            what = f"the cluster has agent-gate {there}, and this is {__version__}"
            raise MeasureError(what, where="executor.ray", hint="install the same version on its nodes")
        processors = int(self._ray.cluster_resources().get("CPU", 1))
        return min(MOST_SEATS, max(1, processors) * QUEUED)


def _plain(error: BaseException) -> Exception:
    """Return the gate's own error if the cluster passed one on; else Ray's error on one line."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, (ConfigError, MeasureError)):
        return cause
    if isinstance(cause, ModuleNotFoundError):
        what, hint = (
            f"the cluster's nodes have no module {cause.name!r}",
            "install it there, and agent-gate as it is here",
        )
        return MeasureError(what, where="executor.ray", hint=hint)
    first = next((line for line in str(cause or error).splitlines() if line.strip()), "")
    what = f"the cluster could not score a batch: {type(cause or error).__name__}: {first}"
    return MeasureError(what[:1000], where="executor.ray", hint="finished trials are kept: continue with --resume")


def _connect(address: str) -> Any:
    import ray  # weight, and optional: looked for by the process that starts this one

    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "logging_level": "ERROR"}
    if address == "local":
        ray.init(address="local", include_dashboard=False, object_store_memory=STORE_BYTES, **quiet)
    else:
        ray.init(address=address, **quiet)
    return ray


def main() -> None:
    pipes, over = ParentPipes(), Event()
    address = sys.argv[1]
    try:
        ray = _connect(address)
    except Exception as error:  # noqa: BLE001 - Ray has many errors for a missing cluster
        hint = "is it there, of this version of Ray, and RAY_AUTH_TOKEN the one that it asks for?"
        first = str(error).strip().partition("\n")[0]
        fail(pipes, 0, MeasureError(f"no Ray cluster at {address!r}: {first}", where="executor.ray", hint=hint))
        return
    pipes.listen(Bridge(ray, pipes, over.set).take, over.set)
    over.wait()
    ray.shutdown()


if __name__ == "__main__":
    main()
