"""What a check's process may do, and what the gate makes of it."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gate.errors import ConfigError
from gate.metrics.base import Metric, NoOptions, TrialOutput
from gate.metrics.custom import isolated as apart
from gate.metrics.custom.isolated import resolve_isolated
from gate.metrics.custom.metric import InAgentMetric, MetricUse, read_score, resolve_in_agent
from gate.model import Case, Direction, Invocation, Part, Scale, Score, Turn

CODE = '''
import json, os, subprocess, sys, time
from gate.metrics.base import Composite, Judged, Metric, NoOptions, Options
from gate.model import Direction, Scale, Score

def pid(actual, expected): return Score(0.5, str(os.getpid()))
def ends(actual, expected): os._exit(7)
def hangs(actual, expected): time.sleep(600)
def prints(actual, expected):
    print('{"value": 1.0}')
    sys.stdout.flush()
    os.write(1, b'{"value": 1.0}')
    return 0.25
def forges(actual, expected):
    for fd in range(3, 10):
        try: os.write(fd, b'no answer')
        except OSError: pass
    os.write(4, b'x')
    return 1.0
def much(actual, expected): return Score(1.0, "x" * 100_000)
def odd(actual, expected): return Score(1.0, details={"object": object})
def sees(actual, expected): return Score(1.0, json.dumps(dict(os.environ)))

class Wanted(Options):
    most_calls: int = 2

class Limit(Metric[Wanted]):
    """How many."""
    scale, direction, options_type, version = Scale.COUNT, Direction.LOWER, Wanted, 3
    missing = property(lambda self: "" if self.options.most_calls else "most_calls")
    def score(self, case, performance): return Score(float(self.options.most_calls))

class Half(Composite[NoOptions]):
    def combine(self, case, scores): return Score(scores["other"].value / 2)

class Asks(Judged[NoOptions]):
    async def judge_score(self, case, performance, judge): return Score(1.0)
'''
CASE = Case("c", (Turn("q"),))
PERFORMANCE = TrialOutput((Invocation("q", (Part("a"),)),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder, and so one process, for what leaves it as it is."""
    return written(tmp_path_factory.mktemp("metrics"))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder whose process nobody has started."""
    return written(tmp_path)


def written(folder: Path) -> Path:
    (folder / "users_own.py").write_text(CODE)
    return folder


def made(folder: Path, name: str, **options: object) -> Metric[object]:
    metric = resolve_isolated(f"users_own:{name}", MetricUse(folder=str(folder), environment={"SEEN": "yes"}))
    return metric(metric.options_type.model_validate(options))


def score(folder: Path, name: str) -> Score:
    return made(folder, name).score(CASE, PERFORMANCE)


def test_it_is_another_process_and_stays_the_same(folder: Path) -> None:
    metric = made(folder, "pid")
    first, second = (metric.score(CASE, PERFORMANCE).reason for _ in range(2))
    assert first == second != str(os.getpid())
    assert "users_own" not in sys.modules
    assert str(folder) not in sys.path


@pytest.mark.slow
def test_an_edited_module_is_imported_anew(own: Path) -> None:
    assert score(own, "pid").value == 0.5
    (own / "users_own.py").write_text(CODE.replace("Score(0.5,", "Score(0.75,"))
    assert score(own, "pid").value == 0.75


def test_it_sees_what_it_is_given_of_the_environment(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INPUT_TOKEN", "secret")
    seen = score(own, "sees").reason
    assert '"SEEN": "yes"' in seen
    assert "secret" not in seen


@pytest.mark.slow
def test_what_ends_the_process_costs_one_score(folder: Path) -> None:
    ends, pid = made(folder, "ends"), made(folder, "pid")
    for _ in range(2):
        error = "the custom metric failed: its process exited with status 7"
        assert ends.score(CASE, PERFORMANCE) == Score(None, error=error)
        assert pid.score(CASE, PERFORMANCE).value == 0.5


@pytest.mark.slow
def test_what_hangs_is_ended(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = made(own, "hangs")
    ask = apart._Child.ask
    monkeypatch.setattr(apart._Child, "ask", lambda *given, **named: ask(*given, **{**named, "seconds": 0.2}))
    assert hangs.score(CASE, PERFORMANCE) == Score(
        None, error="the custom metric failed: its process gave no answer within 0.2 s"
    )


@pytest.mark.slow
def test_a_process_that_is_started_anew_gives_a_trial_no_more_time(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = made(own, "hangs")
    monkeypatch.setitem(apart._Child.ask.__kwdefaults__, "seconds", 0.2)
    monkeypatch.setattr(apart, "START_SECONDS", 20.0)
    for _ in range(2):
        error = hangs.score(CASE, PERFORMANCE).error
        assert error == "the custom metric failed: its process gave no answer within 0.2 s"


def test_what_it_prints_is_no_answer(own: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert score(own, "prints") == Score(0.25)
    assert capfd.readouterr().out == ""


def test_what_it_writes_into_the_line_leaves_the_score_not_measured(folder: Path) -> None:
    assert score(folder, "forges").value is None


def test_answers_are_bounded_and_plain(folder: Path) -> None:
    assert len(score(folder, "much").reason) < 1_000
    assert score(folder, "odd").value == 1.0


def test_what_is_no_score_was_not_measured() -> None:
    for sent in [
        {"value": "1"},
        {"value": True},
        {"value": float("nan")},
        {"value": 1.0, "per_turn": "x"},
        {"value": 1.0, "per_turn": ["x"]},
        {"reason": "no value"},
        "1",
        None,
    ]:
        assert read_score(sent) == Score(None, error="the custom metric's process sent what is no score"), sent
        assert in_agent(sent) == read_score(sent)


def in_agent(sent: Any) -> Score:
    """Return the score of a custom metric for which the agent's interpreter sends this."""

    async def run(path: str, request: Mapping[str, Any]) -> Any:
        return sent

    metric = resolve_in_agent("users_own:metric", MetricUse())(NoOptions())
    assert isinstance(metric, InAgentMetric)
    return asyncio.run(metric.score_in_agent(Case("c", (Turn("hi"),)), TrialOutput(()), run))


def test_a_class_is_what_it_says_it_is(folder: Path) -> None:
    metric = made(folder, "Limit", most_calls=5)
    assert (metric.scale, metric.direction, metric.version) == (Scale.COUNT, Direction.LOWER, 3)
    assert metric.__doc__ == "How many."
    assert metric.score(CASE, PERFORMANCE).value == 5.0
    assert (metric.missing, made(folder, "Limit", most_calls=0).missing) == ("", "most_calls")


def test_options_are_validated_by_the_class(folder: Path) -> None:
    with pytest.raises(ValueError, match="expected a whole number"):
        made(folder, "Limit", most_calls="many")
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        made(folder, "Limit", cals=3)


def test_a_composite_is_given_the_other_scores(folder: Path) -> None:
    metric = made(folder, "Half")
    assert metric.combine(CASE, {"other": Score(0.5)}) == Score(0.25)  # type: ignore[attr-defined]
    assert "KeyError" in (metric.combine(CASE, {}).error or "")  # type: ignore[attr-defined]


def test_a_check_asks_no_judge(folder: Path) -> None:
    with pytest.raises(ConfigError, match="asks the judge of the run"):
        made(folder, "Asks")


def test_a_metric_can_be_sent_to_a_worker(folder: Path) -> None:
    again = pickle.loads(pickle.dumps(made(folder, "Limit", most_calls=4)))
    assert again.score(CASE, PERFORMANCE).value == 4.0
