"""Answers with trials that were recorded outside the gate; no agent runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from gate.agents.base import Agent, AgentFailure, AgentOptions, Request
from gate.model import ErrorKind, Invocation, RecordedTrial
from gate.model.strict import Words


class ReplayOptions(AgentOptions):
    """``replay: true``, or ``replay: traces.jsonl``."""

    replay: Literal[True] | Words
    """``true``: the suite's recorded trials; or files of traces."""

    @property
    def recordings(self) -> tuple[str, ...]:
        """Files of traces, relative to the configuration."""
        return () if self.replay is True else self.replay


class ReplayAgent(Agent):
    """Trial n of a case is its n-th recorded trial, by number."""

    Options = ReplayOptions
    takes_attached = True  # nothing is sent

    def __init__(self, recorded: Sequence[RecordedTrial]) -> None:
        self._trials: dict[str, list[RecordedTrial]] = defaultdict(list)
        for trial in sorted(recorded, key=lambda trial: trial.number):
            self._trials[trial.case_id].append(trial)

    @classmethod
    def make(
        cls,
        options: ReplayOptions,  # noqa: ARG003 - there is nothing to set
        *,
        root: Path,  # noqa: ARG003
        environment: Mapping[str, str],  # noqa: ARG003
        recorded: Sequence[RecordedTrial],
    ) -> ReplayAgent:
        return cls(recorded)

    async def answer(self, request: Request) -> Invocation:
        trials = self._trials.get(request.case_id, [])
        if not 1 <= request.trial <= len(trials):
            message = f"trial {request.trial} was not recorded; there are {len(trials)} of this case"
            raise AgentFailure(ErrorKind.MISSING, message)
        trial = trials[request.trial - 1]
        return answer_of(trial.invocations, trial.error, trial=request.trial, turn=request.turn)


def answer_of(recorded: Sequence[Invocation], error: str | None, *, trial: int, turn: int) -> Invocation:
    """Return one turn of a recorded trial; turns count from 0. Raises AgentFailure if there is no such turn."""
    if error is not None:
        raise AgentFailure(ErrorKind.CRASH, f"recorded as failed: {error}")
    if turn >= len(recorded):
        message = f"turn {turn + 1} was not recorded; trial {trial} has {len(recorded)}"
        raise AgentFailure(ErrorKind.MISSING, message)
    return recorded[turn]
