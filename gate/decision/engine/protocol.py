"""`gate decide`: one state per input line, one answer per output line, so that anyone can test the rule."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import ValidationError, convert
from msgspec.structs import replace

from gate.decision.engine.evidence_json import report, stage_name
from gate.decision.engine.rule import Step, decide
from gate.decision.engine.state import CONCURRENT, More, Row, State
from gate.errors import ConfigError
from gate.model import CONFIRM, FULL, NARROW, Side
from gate.model.defaults import MOST_EPOCHS

VERSION = 1
TAGS = (FULL, NARROW, CONFIRM, CONCURRENT)
CONFIG_KEYS = frozenset({"alpha", "trials", "rerun", "can_run", "runs_left", "kept_epochs"})


def decide_lines(lines: Iterable[str]) -> Iterator[str]:
    """Answer each line separately; an unreadable line is answered with ``{"error": …}`` and never skipped."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield json.dumps(_answer(line, number), ensure_ascii=False, allow_nan=False)


def _answer(line: str, number: int) -> dict[str, Any]:
    data: Any = None
    try:
        data = json.loads(line)
        answer = to_json(decide(read_state(data)))
    except (ConfigError, ValidationError, ValueError, RecursionError) as error:
        answer = {"error": f"line {number}: {error}"}
    if isinstance(data, dict) and "id" in data:
        answer = {"id": data["id"], **answer}
    return answer


def to_json(step: Step) -> dict[str, Any]:
    if isinstance(step, More):
        requests = [{"side": r.side.value, "tag": r.tag, "cases": list(r.cases), "n": r.n} for r in step.requests]
        return {"verdict": "CONTINUE", "why": step.why, "requests": requests}
    stage, found = stage_name(step.stage), report(step.evidence)
    return {"verdict": step.verdict, "cases": list(step.cases), "stage": stage, "report": found}


def read_state(data: Any) -> State:
    """Parse the state on one line.

    Raises:
        ConfigError, ValidationError: something is wrong; the message says what and where.
    """
    if not isinstance(data, dict):
        raise ConfigError("the line must be an object")
    if data.get("protocol") != VERSION:
        raise ConfigError(f"protocol must be {VERSION}, not {data.get('protocol')!r}")
    if isinstance(data.get("rounds"), list):
        for one in data["rounds"]:
            if isinstance(one, dict):
                one.setdefault("side", Side.CANDIDATE.value)
    state = convert({**data, "config": _config(data.get("config", {}))}, State)
    metrics = []
    for place, metric in enumerate(state.metrics):
        metrics.append(metric if metric.name else replace(metric, name=f"metrics[{place}]"))
    state = replace(state, metrics=tuple(metrics))
    _check(state)
    return state


def _config(data: Any) -> dict[str, Any]:
    """Return the configuration with ``trials`` as the engine's numbers of epochs."""
    if not isinstance(data, dict):
        raise ConfigError("config must be an object")
    unknown = sorted(set(data) - CONFIG_KEYS)
    if unknown:
        raise ConfigError(f"unknown config key {unknown[0]!r}", hint="known: " + ", ".join(sorted(CONFIG_KEYS)))
    trials, most, exact = data.get("trials", "auto"), MOST_EPOCHS, None
    if isinstance(trials, dict):
        most = trials.get("max", MOST_EPOCHS)
    elif trials != "auto":
        exact = trials
    for number in (most, 1 if exact is None else exact):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise ConfigError(f'config.trials must be "auto", {{"max": N}} or N, and N at least 1, not {trials!r}')
    others = {key: value for key, value in data.items() if key != "trials"}
    return {**others, "max_epochs": most, "exact_epochs": exact}


def _check(state: State) -> None:
    """Raise ConfigError if the parts of a state contradict each other."""
    _check_rows(state, state.baseline, "baseline")
    for number, round_ in enumerate(state.rounds):
        where = f"rounds[{number}]"
        if round_.tag not in TAGS:
            raise ConfigError(f"{where}.tag must be one of {', '.join(TAGS)}, not {round_.tag!r}")
        _check_rows(state, round_.trials, f"{where}.trials")
        for case, links in round_.links.items():
            if len(links) != len(round_.trials.get(case, ())):
                here = f"{where}.coupled[{case!r}]"
                raise ConfigError(f"{here} must hold one entry for each trial of the case, not {len(links)}")
    for case, places in state.newest.items():
        stored = len(state.baseline.get(case, ()))
        if not all(0 <= place < stored for place in places):
            raise ConfigError(f"newest[{case!r}] must hold positions of the case's {stored} baseline trials")


def _check_rows(state: State, trials: Mapping[str, Sequence[Row]], where: str) -> None:
    width = len(state.metrics)
    for case, rows in trials.items():
        for number, row in enumerate(rows):
            if len(row) != width:
                here = f"{where}[{case!r}][{number}]"
                raise ConfigError(f"{here} must hold {width} values, one per metric, not {len(row)}")
