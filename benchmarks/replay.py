"""Replays recorded trials through the whole gate: reading, scoring, recording, deciding.

    python benchmarks/replay.py [--cases 10000] [--trials 10]

Answers of 200 words, three tool calls, trajectory and ROUGE. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
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


def measure(cases: int, trials: int) -> dict[str, object]:
    """Wall and CPU seconds, megabytes and trials a second of one replay."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "rows.jsonl", cases, trials)
        (folder / "gate.yaml").write_text(CONFIG)
        started = time.perf_counter()
        argv = [sys.executable, "-m", "gate", "run", "--quiet", "--record", "record.jsonl", "--junit", "junit.xml"]
        run = subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(run.pid, 0)
        cpu = usage.ru_utime + usage.ru_stime
        return {
            "cases": cases,
            "trials": cases * trials,
            "wall_s": round(time.perf_counter() - started, 1),
            "cpu_s": round(cpu, 1),
            "mb": round(usage.ru_maxrss / 1024),
            "trials_per_cpu_s": round(cases * trials / cpu),
            "exit_code": os.waitstatus_to_exitcode(status),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--trials", type=int, default=10)
    given = parser.parse_args()
    print(json.dumps(measure(given.cases, given.trials)))


if __name__ == "__main__":
    main()
