"""`gate decide --jsonl`: one state per input line, one answer per output line, so that anyone can test the rule."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gate.decision.engine.evidence_json import report, stage_name
from gate.decision.engine.rule import Step, decide
from gate.decision.engine.state import Config, Metric, More, Partner, Round, Row, State
from gate.errors import ConfigError
from gate.model import Direction, Side
from gate.model.defaults import ALPHA, MOST_EPOCHS

VERSION = 1


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
    except (ConfigError, ValueError, RecursionError) as error:
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
    """Parse the state on one line. Raises ConfigError that names the wrong key."""
    data = _mapping(data, "the line")
    if data.get("protocol") != VERSION:
        raise ConfigError(f"protocol must be {VERSION}, not {data.get('protocol')!r}")
    metrics = tuple(_metric(m, f"metrics[{i}]") for i, m in enumerate(_list(data.get("metrics"), "metrics")))
    if not metrics:
        raise ConfigError("metrics must not be empty: metric 0 is the trial's success")
    rounds = tuple(_round(r, f"rounds[{i}]", len(metrics)) for i, r in enumerate(_list(data.get("rounds"), "rounds")))
    seed = data.get("seed", 0)
    if not isinstance(seed, int):
        raise ConfigError(f"seed must be a whole number, not {seed!r}")
    baseline = _trials(data.get("baseline"), "baseline", len(metrics))
    config, clusters = _config(_mapping(data.get("config", {}), "config")), _clusters(data.get("clusters", {}))
    newest, frozen, recorded = _newest(data.get("newest", {}), baseline), _flag(data, "frozen"), _flag(data, "recorded")
    return State(metrics, baseline, rounds, config, seed, clusters, frozen, newest, recorded)


def _clusters(data: Any) -> dict[str, str]:
    """Return the cluster of each case that has one."""
    found = _mapping(data, "clusters")
    if not all(isinstance(name, str) and name for name in found.values()):
        raise ConfigError("clusters must hold the name of a cluster for each case in it")
    return dict(found)


def _flag(data: Mapping[str, Any], key: str) -> bool:
    value = data.get(key, False)
    if not isinstance(value, bool):
        raise ConfigError(f"{key} must be true or false, not {value!r}")
    return value


def _newest(data: Any, baseline: Mapping[str, Sequence[Row]]) -> dict[str, list[int]]:
    """Return the positions of the baseline's trials measured by its newest runs, by case."""
    found = {}
    for case, given in _mapping(data, "newest").items():
        stored = len(baseline.get(case, ()))
        found[case] = _list(given, f"newest[{case!r}]")
        if not all(_whole(place) and 0 <= place < stored for place in found[case]):
            raise ConfigError(f"newest[{case!r}] must hold positions of the case's {stored} baseline trials")
    return found


def _metric(data: Any, where: str) -> Metric:
    data = _mapping(data, where)
    kind = _choice(data.get("kind", "bounded"), ("binary", "bounded", "positive"), f"{where}.kind")
    direction = _choice(data.get("direction", "higher"), ("higher", "lower"), f"{where}.direction")
    margin = data.get("margin")
    if margin is not None and not (_number(margin) and margin >= 0):
        raise ConfigError(f"{where}.margin must be a number of at least 0, not {margin!r}")
    slope, error = data.get("slope", 1.0), data.get("slope_error", 0.0)
    if not (_number(slope) and 0 < slope <= 1 and _number(error) and 0 <= error <= 1):
        raise ConfigError(f"{where}.slope must lie between 0 and 1, and so must slope_error")
    name, gating = str(data.get("name", where)), bool(data.get("gating", True))
    return Metric(name, kind, Direction(direction), margin, gating, float(slope), float(error))  # type: ignore[arg-type]


CONFIG_KEYS = frozenset({"alpha", "trials", "rerun", "can_run", "runs_left", "kept_epochs"})


def _config(data: Mapping[str, Any]) -> Config:
    unknown = sorted(set(data) - CONFIG_KEYS)
    if unknown:
        raise ConfigError(f"unknown config key {unknown[0]!r}", hint="known: " + ", ".join(sorted(CONFIG_KEYS)))
    alpha, left, trials = data.get("alpha", ALPHA), data.get("runs_left"), data.get("trials", "auto")
    if not (_number(alpha) and 0 < alpha < 1):
        raise ConfigError(f"config.alpha must lie between 0 and 1, not {alpha!r}")
    if left is not None and not (_whole(left) and left >= 0):
        raise ConfigError(f"config.runs_left must be a whole number or null, not {left!r}")
    exact: int | None = None
    most: Any = MOST_EPOCHS
    if _whole(trials):
        exact = trials
    elif isinstance(trials, Mapping):
        most = trials.get("max", MOST_EPOCHS)
    elif trials != "auto":
        most = None
    if not _whole(most):
        raise ConfigError(f'config.trials must be "auto", {{"max": N}} or N, not {trials!r}')
    if most < 1 or (exact is not None and exact < 1):
        raise ConfigError("config.trials must be at least 1")
    rerun = _choice(data.get("rerun", "never"), ("never", "match"), "config.rerun")
    kept = data.get("kept_epochs", 0)
    if not (_whole(kept) and kept >= 0):
        raise ConfigError(f"config.kept_epochs must be a whole number from 0, not {kept!r}")
    return Config(float(alpha), most, exact, rerun, bool(data.get("can_run", True)), left, kept)  # type: ignore[arg-type]


def _round(data: Any, where: str, width: int) -> Round:
    data = _mapping(data, where)
    tag = _choice(data.get("tag"), ("full", "narrow", "confirm", "concurrent"), f"{where}.tag")
    side = _choice(data.get("side", "candidate"), ("candidate", "baseline"), f"{where}.side")
    trials = _trials(data.get("trials"), f"{where}.trials", width)
    return Round(tag, Side(side), trials, _links(data.get("coupled", {}), f"{where}.coupled", trials))


def _links(data: Any, where: str, trials: Mapping[str, Sequence[Row]]) -> dict[str, list[Partner | None]]:
    """Return for each trial of a case its partner, read from null or ``{"stored": position, "whole": bool}``."""
    found = {}
    for case, given in _mapping(data, where).items():
        here = f"{where}[{case!r}]"
        links = [_link(one, f"{here}[{i}]") for i, one in enumerate(_list(given, here))]
        if len(links) != len(trials.get(case, ())):
            raise ConfigError(f"{here} must hold one entry for each trial of the case, not {len(links)}")
        found[case] = links
    return found


def _link(data: Any, where: str) -> Partner | None:
    if data is None:
        return None
    data = _mapping(data, where)
    stored, whole = data.get("stored"), data.get("whole", False)
    if not (_whole(stored) and stored >= 0 and isinstance(whole, bool)):
        raise ConfigError(f"{where} must be null, or hold the position of a stored trial and whether all was replayed")
    return Partner(stored, whole)


def _trials(data: Any, where: str, width: int) -> dict[str, list[Row]]:
    found = {}
    for case, given in _mapping(data, where).items():
        here = f"{where}[{case!r}]"
        found[case] = [_row(row, f"{here}[{i}]", width) for i, row in enumerate(_list(given, here))]
    return found


def _row(data: Any, where: str, width: int) -> Row:
    row = _list(data, where)
    if len(row) != width:
        raise ConfigError(f"{where} must hold {width} values, one per metric, not {len(row)}")
    if not all(value is None or _number(value) for value in row):
        raise ConfigError(f"{where} must hold numbers or null")
    return [None if value is None else float(value) for value in row]


def _mapping(data: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise ConfigError(f"{where} must be an object")
    return data


def _list(data: Any, where: str) -> list[Any]:
    if not isinstance(data, list):
        raise ConfigError(f"{where} must be a list")
    return data


def _choice(value: Any, known: tuple[str, ...], where: str) -> str:
    if value not in known:
        raise ConfigError(f"{where} must be one of {', '.join(known)}, not {value!r}")
    return str(value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
