"""The distance that scores of one agent move from trial to trial, and the margins that it allows.

    python benchmarks/margins.py [--data FOLDER]

50 tasks of recorded airline conversations, four trials each. In turn each trial of a task stands for what its author
wrote down, and the others are scored against it: ROUGE-1 of the last answer (`response_match_score`), the share of
expected calls that were made (as trajectory scores are averaged), and the expected calls over those made. Then a suite
of N cases with five stored trials is drawn from these tasks, and compared with itself 1,000 times.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean, variance

from gate.metrics.rouge import rouge_1
from gate.statistics.intervals import paired_change

AIRLINE = "tau-bench/gpt-4o-airline.json"
MARGINS = (0.03, 0.05, 0.07, 0.08, 0.10, 0.15)
Scores = Mapping[str, Sequence[Sequence[float]]]
"""Task → for each trial that was taken as the expectation, the scores of the others."""


def read(folder: Path) -> Mapping[str, list[tuple[str, list[tuple[str, str]]]]]:
    """Task → per trial the last answer, and the calls made."""
    found: dict[str, list[tuple[str, list[tuple[str, str]]]]] = {}
    for row in json.loads((folder / AIRLINE).read_text(encoding="utf-8")):
        messages = row["traj"]
        answers = [m["content"] for m in messages if m["role"] == "assistant" and m.get("content")]
        calls = [c["function"] for m in messages for c in m.get("tool_calls") or ()]
        made = [(c["name"], json.dumps(json.loads(c["arguments"]), sort_keys=True)) for c in calls]
        found.setdefault(f"task-{row['task_id']:02d}", []).append((answers[-1] if answers else "", made))
    return found


def rouge(expected: tuple[str, list[tuple[str, str]]], actual: tuple[str, list[tuple[str, str]]]) -> float:
    return rouge_1(actual[0], expected[0])[2]


def share_of_calls(expected: tuple[str, list[tuple[str, str]]], actual: tuple[str, list[tuple[str, str]]]) -> float:
    wanted = expected[1]
    return sum(call in actual[1] for call in wanted) / len(wanted) if wanted else float(not actual[1])


def efficiency(expected: tuple[str, list[tuple[str, str]]], actual: tuple[str, list[tuple[str, str]]]) -> float:
    return min(1.0, max(1, len(expected[1])) / max(1, len(actual[1])))


METRICS = {"ROUGE-1 of the last answer": rouge, "share of the expected calls": share_of_calls, "steps": efficiency}


def spread(scores: Scores) -> float:
    """The standard deviation between trials of one case, pooled."""
    return float(fmean(variance(group) for groups in scores.values() for group in groups) ** 0.5)


def held(scores: Scores, cases: int, epochs: int, margin: float, rng: Random, runs: int = 1000) -> float:
    """Return the share of unchanged suites whose loss a margin bounds; trials are drawn with replacement."""
    groups = [group for groups in scores.values() for group in groups]
    good = 0
    for _ in range(runs):
        drawn = (rng.choice(groups) for _ in range(cases))
        pairs = ((rng.choices(g, k=epochs), rng.choices(g, k=5)) for g in drawn)
        low = paired_change([fmean(now) - fmean(before) for now, before in pairs])[1]
        good += low >= -margin
    return good / runs


def table(folder: Path) -> Iterator[str]:
    tasks = read(folder)
    heads = [f"{margin:.2f}" for margin in MARGINS]
    yield "| metric | spread between trials | cases, epochs | loss bounded by " + " | ".join(heads) + " |"
    yield "|---|---|---|" + "---|" * len(MARGINS)
    for name, metric in METRICS.items():
        scores = {
            task: [[metric(expected, other) for other in trials if other is not expected] for expected in trials]
            for task, trials in tasks.items()
        }
        for cases, epochs in ((30, 1), (30, 3), (100, 1), (100, 3)):
            shares = [held(scores, cases, epochs, margin, Random(f"{name}:{cases}")) for margin in MARGINS]
            cells = " | ".join(f"{share:.2f}" for share in shares)
            yield f"| {name} | {spread(scores):.3f} | {cases}, {epochs} | {cells} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("GATE_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=shared, help="Folder of the recorded conversations.")
    for line in table(parser.parse_args().data):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
