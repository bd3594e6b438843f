"""Runs the user's checks in child processes of the agent's interpreter, where the agent's modules can be imported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import field

from gate import guest
from gate.agents.base import AgentFailure, Clock, Request
from gate.agents.python import PythonAgent, PythonOptions
from gate.errors import MeasureError

CHECKS = Path(guest.__file__).with_name("checks.py")
ATTEMPTS = 3
"""How often a check is tried whose process was ended by another's fault, or ended under it."""


class _CheckRequest(Request, frozen=True):
    body: Mapping[str, Any] = field(default_factory=dict)

    def payload(self) -> dict[str, Any]:
        return dict(self.body)


class CheckProcess(PythonAgent):
    """One check, in a process of its own beside the agent's."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._worker_options = {"checks": str(CHECKS)}
        self._calls = count()

    async def check(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The meaning of the check's answer, as gate/guest/checks.py has it; ``error`` says why there is none."""
        seconds = self._options.timeout
        number = next(self._calls)
        failure = ""
        for attempt in range(ATTEMPTS):
            session = f"{number}-{attempt}"
            try:
                async with asyncio.timeout(seconds) as limit:
                    clock = Clock(seconds, limit)
                    request = _CheckRequest(self._options.python, number, session, 0, "", (), clock=clock, body=body)
                    answer: Mapping[str, Any] = (await self._reply(request))["answer"]
                    return answer
            except TimeoutError:
                return {"value": None, "error": f"the check gave no answer within {seconds:g} s"}
            except AgentFailure as error:
                failure = error.message.replace("the agent's process", "its process", 1)
                if not error.collateral and not error.transient:
                    break
            finally:
                await self.close_session(session)
        return {"value": None, "error": f"the check failed: {failure}"}


class Checks:
    """The checks of a run, by dotted path."""

    def __init__(self, processes: Mapping[str, CheckProcess]) -> None:
        self._processes = processes

    async def __call__(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._processes[path].check(body)


@asynccontextmanager
async def open_checks(
    options: PythonOptions, roots: Mapping[str, Path], *, root: Path, environment: Mapping[str, str]
) -> AsyncIterator[Checks]:
    """Starts one process per check, under the options of the ``python:`` agent; ``roots``: where each is imported from.

    Raises:
        MeasureError: a check that cannot be imported there.
    """
    async with AsyncExitStack() as stack:
        processes = {}
        executable = options.executable and str(root / Path(options.executable).expanduser())
        for path, folder in roots.items():
            own = options.model_copy(update={"python": path, "workers": 1, "executable": executable})
            process = CheckProcess.make(own, root=folder, environment=environment, recorded=())
            assert isinstance(process, CheckProcess)
            try:
                processes[path] = await stack.enter_async_context(process)
            except MeasureError as error:
                what = error.what.replace("the agent", f"the check {path}", 1)
                raise MeasureError(
                    what, where="criteria", hint=error.hint or "it is imported where the agent runs"
                ) from None
        yield Checks(processes)
