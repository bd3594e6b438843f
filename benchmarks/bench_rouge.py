"""Measures response_match_score and trajectory scoring on one core, and google-adk beside them where it is installed.

    python -m benchmarks.bench_rouge
    GATE_ORACLE_PYTHON=/path/to/python-with-google-adk python -m benchmarks.bench_rouge

Prints one line per measurement: what, how many a second, and how many times the oracle's speed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from gate.metrics.base import TrialOutput
from gate.metrics.response import ResponseMatch, ResponseMatchOptions
from gate.metrics.rouge import rouge_1
from gate.metrics.trajectory import ToolTrajectory, TrajectoryOptions
from gate.model import Case, Invocation, Part, ToolCall, Turn

VOCABULARY = 3_000
ENDINGS = ("", "", "s", "ed", "ing", "ation", "ly", "ness", "ful", "izer")


def word_pairs(count: int, *, words: int, seed: int) -> list[tuple[str, str]]:
    """Pairs of texts that share about half of their words: inflected ones, of a vocabulary of 3,000."""
    rng = random.Random(seed)
    vocabulary = [
        "".join(rng.choices("aeioubcdlmnrst", k=rng.randint(2, 8))) + rng.choice(ENDINGS) for _ in range(VOCABULARY)
    ]
    pairs = []
    for _ in range(count):
        reference = rng.choices(vocabulary, k=words)
        candidate = [word if rng.random() < 0.5 else rng.choice(vocabulary) for word in reference]
        pairs.append((_text(rng, candidate), _text(rng, reference)))
    return pairs


def _text(rng: random.Random, words: list[str]) -> str:
    return " ".join(word + rng.choice(("", "", "", "", ",", ".")) for word in words).capitalize()


def per_second(count: int, work: Callable[[], object]) -> float:
    """The best of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return count / best


def trials(pairs: list[tuple[str, str]]) -> list[tuple[Case, TrialOutput]]:
    """One-turn trials with five calls each, as every case of a real suite might have."""
    calls = tuple(ToolCall(f"tool_{n}", {"id": n, "q": "text"}) for n in range(5))
    made = []
    for number, (candidate, reference) in enumerate(pairs):
        case = Case(str(number), (Turn("question", calls, (Part(reference),)),))
        made.append((case, TrialOutput((Invocation("question", (Part(candidate),), calls),))))
    return made


def main() -> None:
    pairs = word_pairs(5_000, words=200, seed=1)
    ours = per_second(len(pairs), lambda: [rouge_1(*pair) for pair in pairs])
    print(f"response_match_score, 200-word pairs   {ours:10,.0f} a second")
    rouge, trajectory = ResponseMatch(ResponseMatchOptions()), ToolTrajectory(TrajectoryOptions())
    scored = trials(pairs)
    both = per_second(len(scored), lambda: [(rouge.score(*one), trajectory.score(*one)) for one in scored])
    print(f"trajectory + response, trials          {both:10,.0f} a second")
    alone = per_second(len(scored), lambda: [trajectory.score(*one) for one in scored])
    print(f"trajectory alone, 5 calls              {alone:10,.0f} a second")
    _beside_the_oracle(pairs[:500], ours)


def _beside_the_oracle(pairs: list[tuple[str, str]], ours: float) -> None:
    from tests.oracle.oracle import PYTHON, ask

    if not PYTHON:
        return
    (answer,) = ask([{"texts": pairs}])
    theirs = len(pairs) / answer["seconds"]
    print(f"google-adk, the same pairs             {theirs:10,.0f} a second: we are {ours / theirs:.0f} times as fast")


if __name__ == "__main__":
    main()
