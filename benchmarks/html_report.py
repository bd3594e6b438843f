"""Measures the HTML report: how long it takes to write, how large it is, how soon a browser answers.

    python benchmarks/html_report.py [--cases 5000] [--rounds 5] [--write docs/dev/evidence/performance.md]

The records are made up: a support agent's conversations of one to three turns, answered once by the change (with reruns
of the cases that fail) and five times by the baseline, with trajectories, scores, judges' reasons and votes. A third of
the cases that are tagged ``refund`` break. `records` is used by the browser tests as well.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gate.model import (
    CONFIRM,
    FULL,
    Complexity,
    Criterion,
    Direction,
    ErrorKind,
    Invocation,
    Part,
    Scale,
    Score,
    ToolCall,
    Trial,
    TrialError,
    Usage,
)
from gate.records import Header, PlannedCase, Record, strip, write_record
from gate.records.model import footer_of

CRITERIA = (
    Criterion("tool_trajectory_avg_score", "tool_trajectory_avg_score", Scale.UNIT, threshold=0.6, reads_tools=True),
    Criterion("response_match_score", "response_match_score", Scale.UNIT, threshold=0.5, margin=0.1),
    Criterion("rubric_based_final_response_quality_v1", "rubric", Scale.UNIT, threshold=0.5, margin=0.1),
    Criterion("latency", "latency", Scale.SECONDS, Direction.LOWER, blocking=False, blocks_regression=False),
    Criterion("cost", "cost", Scale.USD, Direction.LOWER, margin=0.2, blocking=False, blocks_regression=False),
)
TOPICS = ("refund", "shipping", "account", "invoice", "small-talk")
TEXT = """order parcel customer policy days shop return label warehouse address invoice number payment card statement
please thank you we will check that for your account today tomorrow delivery reached courier amount transferred confirm
"""
WORDS = TEXT.split()
COMPLEXITIES = tuple(Complexity)
HANDED_OVER = "I am afraid I cannot do that; a colleague will call you."
WRONG = "issue_refund got amount=4990, expected amount=49.9"
NO = "no to 'resolves' (the answer resolves the request): it hands the customer over instead"


def _text(draw: random.Random, words: int) -> str:
    said = [draw.choice(WORDS) for _ in range(words)]
    return " ".join(said).capitalize() + "."


class _Case:
    """One made-up case: what is asked, and how it is answered on either side."""

    def __init__(self, number: int, seed: int) -> None:
        draw = random.Random(f"{seed} {number}")
        self.topic = TOPICS[number % len(TOPICS)]
        self.id = f"{self.topic}/{draw.choice(('late', 'wrong-item', 'change', 'status', 'twice'))}-{number:05}"
        self.broken = self.topic == "refund" and number // len(TOPICS) % 3 == 0
        self.flaky = number % 37 == 0
        self.gained = self.topic == "invoice" and number // len(TOPICS) % 8 == 0
        self.order = f"A-{10_000 + number}"
        self.questions = [_text(draw, draw.randint(8, 30)) for _ in range(draw.choice((1, 1, 2, 3)))]
        self.answers = [_text(draw, draw.randint(25, 90)) for _ in self.questions]
        self.complexity = COMPLEXITIES[number % 3]
        self.tags = tuple(sorted({self.topic, *(["smoke"] if number % 10 == 0 else [])}))

    def calls(self, turn: int, *, good: bool) -> tuple[ToolCall, ...]:
        order = {"order_id": self.order}
        lookup = ToolCall("lookup_order", order, result={**order, "status": "shipped", "total": 49.9})
        if turn:
            return (lookup,)
        if self.topic != "refund":
            policy = "Returns are free for 30 days."
            return (lookup, ToolCall("search_policy", {"topic": self.topic, "limit": 3}, result=policy))
        refund = {**order, "amount": 49.9, "reason": "arrived late"}
        if good:
            return (lookup, ToolCall("issue_refund", refund))
        wrong = ToolCall("issue_refund", {**refund, "amount": 4990}, error="amount is too high")
        return (lookup, wrong, ToolCall("escalate", {"queue": "humans"}))

    def planned(self, number: int) -> PlannedCase:
        calls = [self.calls(turn, good=True) for turn in range(len(self.questions))]
        expected = tuple(tuple(ToolCall(call.name, call.args) for call in turn) for turn in calls)
        at = ("evals/support.yaml", 10 + 7 * number)
        return PlannedCase(self.id, f"fp{number}", self.tags, self.complexity, at, expected=expected)

    def trial(self, number: int, draw: random.Random, *, before: bool, tag: str = FULL) -> Trial:
        fails = (self.broken and not before) or (self.gained and before)
        good = draw.random() < (0.5 if self.flaky else 0.02 if fails else 0.98)
        if self.broken and not before and draw.random() < 0.05:
            error = TrialError(ErrorKind.CRASH, "KeyError: 'amount' in refund.py:41")
            return Trial(self.id, number, tag=tag, error=error, duration=0.4, started=1.0)
        turns = tuple(self._turn(at, draw, good=good, before=before) for at in range(len(self.questions)))
        mark = 1.0 if good else round(draw.uniform(0.0, 0.45), 3)
        details = {
            "votes": [mark, mark, round(min(1.0, mark + 0.1), 2)],
            "dimensions": {"resolves": mark, "polite": 1.0},
        }
        said = round(mark * draw.uniform(0.75, 1.0), 3)
        seconds = sum(turn.duration or 0.0 for turn in turns)
        scores = {
            "tool_trajectory_avg_score": Score(mark, "as expected" if good else WRONG),
            "response_match_score": Score(said, f"{100 * said:.0f} % of the expected words were said"),
            "rubric_based_final_response_quality_v1": Score(mark, "all affirmed" if good else NO, details=details),
            "latency": Score(seconds),
            "cost": Score(sum(turn.usage.cost_usd or 0.0 for turn in turns if turn.usage)),
        }
        epoch = 1 if tag == FULL else 2
        return Trial(self.id, number, epoch, tag, invocations=turns, scores=scores, duration=seconds, started=1.0)

    def _turn(self, at: int, draw: random.Random, *, good: bool, before: bool) -> Invocation:
        answer = self.answers[at]
        said = answer if good else f"{answer[: len(answer) // 2]} {HANDED_OVER}"
        dollars = round(draw.lognormvariate(-6.2, 0.4), 6)
        usage = Usage(draw.randint(400, 1200), draw.randint(40, 260), dollars, 2, "gpt-5-mini")
        seconds = round(draw.lognormvariate(0.3 if before else 0.45, 0.5), 3)
        calls = self.calls(at, good=good)
        return Invocation(self.questions[at], (Part(said),), calls, (), usage, seconds, reports_calls=True)


def records(folder: Path, cases: int, seed: int = 1) -> tuple[Path, Path]:
    """The files of the change's record and of its baseline's, made up."""
    draw = random.Random(seed)
    made = [_Case(number, seed) for number in range(cases)]
    plan = tuple(case.planned(number) for number, case in enumerate(made))
    trials = [case.trial(1, draw, before=False) for case in made]
    failing = [case for case, trial in zip(made, trials, strict=True) if _fails(trial)]
    trials += [case.trial(number, draw, before=False, tag=CONFIRM) for case in failing for number in (2, 3, 4)]
    stored = [case.trial(number, draw, before=True) for case in made for number in range(1, 6)]
    paths = folder / "change.jsonl", folder / "base.jsonl"
    for path, held, run in zip(paths, (trials, stored), ("change", "base"), strict=True):
        commits = {"commit": f"{run}c0ffee", "base_commit": "basec0ffee"}
        header = Header("support", plan, CRITERIA, run_id=run, created=1.0, definition="one", **commits)
        record = Record(header, tuple(held), footer_of(tuple(held)))
        write_record(path, strip(record) if run == "base" else record)
    return paths


def _fails(trial: Trial) -> bool:
    score = trial.scores.get("response_match_score")
    return score is None or score.value is None or score.value < 0.5


def page_of(folder: Path, cases: int) -> Path:
    """The report on made-up records, as a file."""
    from gate.reports.files import Outputs
    from gate.stored.judging import compare_records

    change, base = records(folder, cases)
    path = folder / "report.html"
    compare_records(change, base, None, {}, Outputs({"html": path}), "gate compare change.jsonl base.jsonl")
    return path


# --- measured ---------------------------------------------------------------------------------------


def _seconds(act: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor time."""
    gc.collect()
    started, worked = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - started, time.process_time() - worked


def writing(folder: Path, cases: int, rounds: int) -> tuple[list[tuple[float, float]], int]:
    """Seconds that ``--html`` adds to a verdict, for reading the record again and writing the page, and its bytes."""
    from gate.reports import files
    from gate.stored import judging

    change, base = records(folder, cases)
    path, taken = folder / "report.html", []
    write = files.write_reports

    def timed(*given: Any) -> Any:
        taken.extend(_seconds(lambda: write(*given)) for _ in range(rounds))
        return given[0]

    judging.write_reports = timed
    judging.compare_records(change, base, None, {}, files.Outputs({"html": path}), "gate compare")
    judging.write_reports = write
    return taken, path.stat().st_size


READY = """() => performance.getEntriesByName('table')[0].startTime"""
SEARCH = """async () => {
  const box = document.querySelector('input[type=search]');
  const started = performance.now();
  box.value = 'refund late';
  box.dispatchEvent(new Event('input', { bubbles: true }));
  await new Promise(requestAnimationFrame);
  return performance.now() - started;
}"""
OPEN = """async () => {
  const started = performance.now();
  document.querySelector('.list .open').click();
  while (!document.querySelector('.columns')) await new Promise(requestAnimationFrame);
  return performance.now() - started;
}"""


def browsing(path: Path, rounds: int) -> dict[str, list[float]]:
    """Milliseconds until the table can be used, of a search, and until a case is open; empty without a browser."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return {}
    from playwright.sync_api import sync_playwright

    found: dict[str, list[float]] = {
        "until the table can be used, since the page was opened": [],
        "a search over all cases": [],
        "opening a case": [],
        "all of the page's own work until it is loaded, processor time": [],
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(rounds):
            opened = browser.new_page(viewport={"width": 1280, "height": 900})
            session = opened.context.new_cdp_session(opened)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            opened.goto(path.as_uri())
            metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
            seen = [*(opened.evaluate(script) for script in (READY, SEARCH, OPEN)), 1000 * metrics["TaskDuration"]]
            for values, value in zip(found.values(), seen, strict=True):
                values.append(value)
            opened.close()
        browser.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="Put the table between the marks of this page.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        taken, size = writing(folder, given.cases, given.rounds)
        seen = browsing(folder / "report.html", given.rounds)
    wall, worked = ([pair[at] for pair in taken] for at in (0, 1))
    lines = [
        f"| {given.cases:,} cases, n = {given.rounds} | median | from | to | at most |",
        "|---|---|---|---|---|",
        _line("read the trials again, write the page", wall, "2 s"),
        _line("the same, processor time", worked, ""),
        f"| size of the page | {size / 1e6:.1f} MB | | | 15 MB |",
    ]
    for what, values in seen.items():
        lines.append(_line(what, [ms / 1000 for ms in values], "1 s" if "table" in what else ""))
    lines += ["", f"The load average was {os.getloadavg()[0]:.1f} at the end."]
    import page  # beside this program

    page.publish({"html report": lines}, given.write)


def _line(what: str, values: list[float], most: str) -> str:
    return f"| {what} | {statistics.median(values):.2f} s | {min(values):.2f} | {max(values):.2f} | {most} |"


if __name__ == "__main__":
    main()
