"""Shows progress while trials run: a bar with an estimate on a terminal, a few plain lines in a log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from gate.model import End, Trial
from gate.reports.formatting import agree
from gate.security.escape import console


class Progress:
    """Receives news from the pipeline, and shows nothing; its subclasses show it."""

    def plan(self, suite_id: str, runs: int, why: str, pause: float = 0.0) -> None:
        """Announce ``runs`` more trials after ``pause`` seconds, with the reason in words."""

    def trial(self, trial: Trial) -> None:
        """Report that one trial was run and scored."""

    def close(self) -> None:
        """Show nothing more."""


class ProgressLines(Progress):
    """Prints a line per round and then at most one every ``every`` seconds, so as not to flood a log."""

    def __init__(self, out: TextIO, *, every: float = 15.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.out, self.every, self.clock = out, every, clock
        self.done = self.total = 0
        self.ends: Counter[End] = Counter()
        self.started = self.last = clock()

    def plan(self, suite_id: str, runs: int, why: str, pause: float = 0.0) -> None:
        self.done, self.total, self.ends = 0, runs, Counter()
        self.started = self.last = self.clock() + pause  # a pause says nothing about the speed of what follows it
        self._say(f"{console(suite_id)}: {why}, {runs} {agree(runs, 'run', 'runs')}")

    def trial(self, trial: Trial) -> None:
        self.done += 1
        self.ends[trial.end] += 1
        now = self.clock()
        if now - self.last >= self.every:
            self.last = now
            rest = left(self.done, self.total, now - self.started)
            counts = [f"  {self.done} of {self.total:,} runs", f"{rest} left", *without_answer(self.ends)]
            self._say(", ".join(counts))

    def _say(self, line: str) -> None:
        self.out.write(line + "\n")
        self.out.flush()


class ProgressBar(Progress):
    """A progress bar on a terminal."""

    def __init__(self, out: TextIO) -> None:
        from rich.console import Console  # weight: only on a terminal
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self.ends: Counter[End] = Counter()
        self.task: Any = None
        self.bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", style="yellow", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(file=out),
            transient=True,
        )
        self.bar.start()

    def plan(self, suite_id: str, runs: int, why: str, pause: float = 0.0) -> None:  # noqa: ARG002 - rich takes the speed from trials alone
        self.ends = Counter()
        if self.task is not None:
            self.bar.remove_task(self.task)
        self.task = self.bar.add_task(f"{console(suite_id)}: {why}", total=runs, note="")

    def trial(self, trial: Trial) -> None:
        self.ends[trial.end] += 1
        self.bar.update(self.task, advance=1, note=", ".join(without_answer(self.ends)))

    def close(self) -> None:
        self.bar.stop()


def without_answer(ends: Mapping[End, int]) -> list[str]:
    """Return how many trials of a round have no answer, because the agent failed or they were not measured."""
    failed, lost = ends.get(End.FAILED, 0), ends.get(End.UNMEASURED, 0)
    said = []
    if failed:
        said.append(f"the agent failed in {failed:,}")
    if lost:
        said.append(f"{lost:,} could not be measured")
    return said


def left(done: int, total: int, elapsed: float) -> str:
    """Return the remaining time in words, at the speed so far."""
    if done == 0:
        return "an unknown time"
    seconds = elapsed / done * (total - done)
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
