"""Replays recorded trials through the whole gate: reading, scoring, recording, deciding.

    python benchmarks/replay.py [--cases 10000] [--trials 10] [--executor '{processes: 1}']

Answers of 200 words, three tool calls, trajectory and ROUGE. Prints one line of JSON: seconds of processor time and the
most memory at any time (shared pages counted once), both over the gate and every process that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

CONFIG = """\
suite: rows.jsonl
agent: {replay: true}
baseline: {store: none}
criteria:
  tool_trajectory_avg_score: {match_type: IN_ORDER}
  response_match_score: 0.5
fields:
  id: task
  trial: trial
  messages: messages
  expected_tools: expected
  expected_response: response
"""


def write_rows(path: Path, cases: int, trials: int) -> None:
    """Rows whose answers share about 85 % of their words with what is expected."""
    rng = random.Random(1)
    words = ["".join(rng.choices("aeioubcdlmnrst", k=rng.randint(3, 9))) for _ in range(3_000)]
    with path.open("w") as file:
        for case in range(cases):
            expected = rng.choices(words, k=200)
            calls = [{"name": f"tool_{(case + n) % 17}", "args": {"order": case, "step": n}} for n in range(3)]
            for trial in range(trials):
                said = [word if rng.random() < 0.85 else rng.choice(words) for word in expected]
                file.write(json.dumps(_row(case, trial, calls, said, expected)) + "\n")


def _row(case: int, trial: int, calls: list[dict[str, object]], said: list[str], expected: list[str]) -> object:
    messages: list[object] = [{"role": "user", "content": f"please do {case}"}]
    for n, call in enumerate(calls):
        function = {"name": call["name"], "arguments": json.dumps(call["args"])}
        messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": f"c{n}", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": "done"})
    messages.append({"role": "assistant", "content": " ".join(said)})
    response = " ".join(expected)
    return {"task": f"case-{case}", "trial": trial, "messages": messages, "expected": calls, "response": response}


class Watch(threading.Thread):
    """Looks at a process and its descendants four times a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._over = threading.Event()
        self._seconds: dict[int, float] = {}
        self.mb = 0.0
        self.processes = 0

    def run(self) -> None:
        while not self._over.wait(0.25):
            kilobytes = 0
            found = list(descendants(self._pid))
            for pid in found:
                kilobytes += proportional_kb(pid)
                self._seconds[pid] = max(self._seconds.get(pid, 0.0), cpu_seconds(pid))
            self.mb = max(self.mb, kilobytes / 1024)
            self.processes = max(self.processes, len(found))

    def end(self) -> float:
        """Processor time of everything that was seen, in seconds."""
        self._over.set()
        self.join()
        return sum(self._seconds.values())


def descendants(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            listed = task.read_text().split()
        except OSError:
            continue
        for child in listed:
            yield from descendants(int(child))


def proportional_kb(pid: int) -> int:
    """Memory, of which pages that several processes share count in part for each."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(cases: int, trials: int, executor: str = "{}") -> dict[str, object]:
    """Wall and CPU seconds, megabytes and trials a second of one replay."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "rows.jsonl", cases, trials)
        (folder / "gate.yaml").write_text(f"{CONFIG}executor: {executor}\n")
        started = time.perf_counter()
        argv = [sys.executable, "-m", "gate", "run", "--quiet", "--record", "record.jsonl", "--junit", "junit.xml"]
        run = subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watch = Watch(run.pid)
        watch.start()
        _, status, usage = os.wait4(run.pid, 0)
        wall = time.perf_counter() - started
        cpu = max(usage.ru_utime + usage.ru_stime, watch.end())
        return {
            "cases": cases,
            "trials": cases * trials,
            "executor": executor,
            "processes": watch.processes,
            "wall_s": round(wall, 1),
            "cpu_s": round(cpu, 1),
            "mb": round(watch.mb),
            "trials_per_cpu_s": round(cases * trials / cpu),
            "trials_per_s": round(cases * trials / wall),
            "exit_code": os.waitstatus_to_exitcode(status),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--executor", default="{}")
    given = parser.parse_args()
    print(json.dumps(measure(given.cases, given.trials, given.executor)))


if __name__ == "__main__":
    main()
