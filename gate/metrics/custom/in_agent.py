"""Runs custom metrics in child processes of the agent's interpreter, where the agent's modules can be imported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import field

from gate.agents.base import AgentFailure, Clock, Request
from gate.agents.python import ImportFailedError, PythonAgent, PythonOptions
from gate.errors import ConfigError, GateError, MeasureError
from gate.guest import custom_metric
from gate.metrics.custom.metric import RunInAgent
from gate.metrics.custom.source import namesake

ADAPTER = Path(custom_metric.__file__)
ATTEMPTS = 3
"""Attempts to compute a custom metric if something else ends its process."""


class _MetricRequest(Request, frozen=True):
    body: Mapping[str, Any] = field(default_factory=dict)

    def payload(self) -> dict[str, Any]:
        return dict(self.body)


class MetricProcess(PythonAgent):
    """One custom metric, in a separate process next to the agent's."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._worker_options = {"adapter": str(ADAPTER)}
        self._calls = count()

    async def compute(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the meaning of the answer, as in gate/guest/custom_metric.py; ``error`` gives the reason if there is
        none."""
        seconds = self._options.timeout
        number = next(self._calls)
        failure = ""
        for attempt in range(ATTEMPTS):
            session = f"{number}-{attempt}"
            try:
                async with asyncio.timeout(seconds) as limit:
                    clock = Clock(seconds, limit)
                    request = _MetricRequest(self._options.python, number, session, 0, "", (), clock=clock, body=body)
                    answer: Mapping[str, Any] = (await self._reply(request)).answer
                    return answer
            except TimeoutError:
                return {"value": None, "error": f"the custom metric gave no answer within {seconds:g} s"}
            except AgentFailure as error:
                failure = error.message.replace("the agent's process", "its process", 1)
                if not error.collateral and not error.transient:
                    break
            finally:
                await self.close_session(session)
        return {"value": None, "error": f"the custom metric failed: {failure}"}


@asynccontextmanager
async def open_in_agent(
    options: PythonOptions, roots: Mapping[str, Path], *, root: Path, environment: Mapping[str, str]
) -> AsyncIterator[RunInAgent]:
    """Start a process per custom metric, with the options of the ``python:`` agent, and yield what computes them.

    ``roots`` gives the folder to import each from, by dotted path.

    Raises:
        MeasureError: a custom metric cannot be imported there.
        ConfigError: the user's own ``gate/`` hides the package.
    """
    async with AsyncExitStack() as stack:
        processes: dict[str, MetricProcess] = {}
        executable = options.executable and str(root / Path(options.executable).expanduser())
        for path, folder in roots.items():
            own = options.model_copy(update={"python": path, "workers": 1, "executable": executable})
            process = MetricProcess(own, folder, environment)
            try:
                processes[path] = await stack.enter_async_context(process)
            except MeasureError as error:
                folders = [folder, *(folder / inner for inner in options.path)]
                raise _not_imported(path, error, folders) from None

        async def compute(path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
            return await processes[path].compute(body)

        yield compute


def _not_imported(path: str, error: MeasureError, folders: Sequence[Path]) -> GateError:
    """Return the reason why a custom metric cannot be imported in the agent's interpreter."""
    needed = ""
    if isinstance(error, ImportFailedError):
        needed = error.needs
    own = namesake(needed, folders)
    what = error.what.replace("the agent", f"the custom metric {path}", 1)
    if own is not None:
        hint = f"rename {own.name}, or return {{'value': …, 'reason': …}} in place of a `gate.Score`"
        return ConfigError(f"{own} hides Agent Gate's package `gate`: {what}", where="criteria", hint=hint)
    return MeasureError(what, where="criteria", hint=error.hint or "it is imported where the agent runs")
