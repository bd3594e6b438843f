"""What holds of the base policy for all configurations, suites and records: nothing that a change writes helps it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.baselines.reference import Reference
from gate.config.base_policy import Rules, read_base, under_base_policy
from gate.config.load import load_config, read_config
from gate.config.resolve import Plan, make_plans
from gate.config.specs import read_specs
from gate.config.tighten import criteria_under_base
from gate.errors import ConfigError
from gate.metrics import METRICS
from gate.model import SEVERITY, BaselineInfo, Score, SuiteResult, Trial, Verdict
from gate.pipeline.terms import Terms, terms_of_plan
from gate.pipeline.verdict import judge_record
from gate.records import Header, Record
from gate.records.model import footer_of
from tests.properties import examples
from tests.quick_yaml import read_yaml

DOCS = Path(__file__).parents[3] / "docs"

# --- x under x is x -------------------------------------------------------------------------------


def shown() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every example of criteria in the guides, by its place."""
    for page in sorted([*DOCS.rglob("*.md"), DOCS.parent / "README.md"]):
        if page.stem == "extend":  # its names are unknown without its package
            continue
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(r"^```ya?ml\n(.*?)^```", text, re.M | re.S):
            where = f"{page.name}:{text[: found.start()].count(chr(10)) + 1}"
            try:
                data = read_yaml(found[1])
            except yaml.YAMLError:
                continue
            if not isinstance(data, dict):
                continue
            criteria = data.get("criteria", {key: value for key, value in data.items() if key in METRICS})
            if isinstance(criteria, dict) and criteria and None not in criteria.values():  # null: a file's is left out
                yield where, criteria


EXAMPLES = dict(shown())


def test_the_guides_show_criteria() -> None:
    assert len(EXAMPLES) > 10
    assert any("p95" in json.dumps(criteria) for criteria in EXAMPLES.values())


@pytest.mark.parametrize("where", EXAMPLES)
def test_criteria_of_the_guides_under_themselves_are_themselves(where: str) -> None:
    specs = read_specs(EXAMPLES[where], lambda *_: where)
    held, changes = criteria_under_base(specs, read_specs(EXAMPLES[where], lambda *_: where))
    assert (held, changes) == (specs, [])


def limits(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers above the lower end, which no score can miss."""
    return st.sampled_from([round(low + (high - low) * n / 4, 3) for n in range(1, 5)])


def options(**own: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of the common options, and of a metric's own."""
    return st.fixed_dictionaries(
        {},
        optional={
            "margin": limits(0, 1),
            "blocking": st.booleans(),
            "regression": st.sampled_from(["warn", "block"]),
            "ratchet": st.booleans(),
            **own,
        },
    )


CRITERIA = st.fixed_dictionaries(
    {},
    optional={
        "contains": options(threshold=limits(0, 1)).map(lambda found: {"values": ["x"], **found}),
        "response_match_score": st.one_of(limits(0, 1), options(threshold=limits(0, 1))),
        "latency": st.one_of(limits(0, 4), options(max=limits(0, 4), p95=limits(0, 4), p50=limits(0, 4))),
        "tool_calls": options(threshold=limits(0, 4)),
        "said": options(threshold=limits(0, 1)).map(lambda found: {"metric": "regex", "patterns": ["x"], **found}),
    },
).filter(lambda found: any(not isinstance(one, dict) or one.get("blocking", True) for one in found.values()))
GATE = st.fixed_dictionaries(
    {},
    optional={
        "alpha": st.sampled_from([0.001, 0.02, 0.2]),
        "on_inconclusive": st.sampled_from(["warn", "block"]),
        "max_error_rate": limits(0, 1),
        "pass_rate_margin": limits(0, 1),
    },
)
CASES = ("a", "b", "c", "d", "e")
OWN = st.dictionaries(st.sampled_from(CASES), limits(0, 1), max_size=3)
"""Thresholds of single cases."""
CONFIG = st.fixed_dictionaries({"criteria": CRITERIA, "gate": GATE})
VALUES = st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.0, 3.0]), min_size=1, max_size=7)
QUIET = settings(deadline=None, max_examples=examples(60, quick=8), suppress_health_check=list(HealthCheck))


def write(folder: Path, config: dict[str, Any], own: dict[str, float]) -> Path:
    criteria = config["criteria"]
    name = next((name for name in ("response_match_score", "contains", "said") if name in criteria), None)
    cases = [{"id": one, "input": one, "response": "x"} for one in CASES]
    for case in cases:
        if name is not None and case["id"] in own:
            case["thresholds"] = {name: own[case["id"]]}  # type: ignore[assignment]
    folder.mkdir()
    (folder / "suite.yaml").write_text(yaml.safe_dump({"cases": cases}))
    path = folder / "gate.yaml"
    path.write_text(yaml.safe_dump({"name": "s", "suite": "suite.yaml", "agent": {"command": "true"}, **config}))
    return path


def held(head: Path, base: Path) -> Rules:
    source = read_config(head)
    return under_base_policy(source, {}, read_base(base, source, {}))


@given(config=CONFIG, own=OWN)
@QUIET
def test_a_configuration_under_itself_is_itself(config: dict[str, Any], own: dict[str, float]) -> None:
    with TemporaryDirectory() as folder:
        head, base = (write(Path(folder, name), config, own) for name in ("head", "base"))
        rules, alone = held(head, base), load_config(head)
        assert (rules.changes, rules.doubts) == ((), ())
        assert rules.config.file == alone.file
        [plan], [before] = make_plans(rules.config, {}), make_plans(alone, {})
        assert (plan.criteria, plan.planned) == (before.criteria, before.planned)
        terms = terms_of_plan(plan, rules.config, rules=rules)
        assert terms.base is None


# --- the verdict is never better than by the base's own rules --------------------------------------


def record(plan: Plan, values: list[float], trials: int, run: str, names: set[str]) -> Record:
    """Trials whose scores of these criteria go through the values, whatever the criteria demand."""
    scored = []
    for nth in range(trials):
        for place, case in enumerate(plan.planned):
            scores = {}
            for shift, criterion in enumerate(c for c in plan.criteria if c.name in names):
                value = values[(place * 3 + nth + shift) % len(values)]
                scores[criterion.name] = Score(
                    value if criterion.metric in ("latency", "tool_calls") else min(value, 1.0)
                )
            scored.append(Trial(case.id, nth + 1, nth + 1, scores=scores))
    header = Header("s", plan.planned, plan.criteria, run_id=run)
    return Record(header, tuple(scored), footer_of(tuple(scored)))


def verdict(found: Record, reference: Reference | None, terms: Terms) -> SuiteResult:
    return judge_record(found, [reference] if reference is not None else [], terms)


@given(base=CONFIG, head=CONFIG, own=OWN, own_before=OWN, now=VALUES, then=st.none() | VALUES, trials=st.integers(1, 4))
@QUIET
def test_no_verdict_is_better_than_by_the_bases_own_rules(
    base: dict[str, Any],
    head: dict[str, Any],
    own: dict[str, float],
    own_before: dict[str, float],
    now: list[float],
    then: list[float] | None,
    trials: int,
) -> None:
    """Also not where every difference loosens: red and amber never become green."""
    with TemporaryDirectory() as folder:
        before = write(Path(folder, "base"), base, own_before)
        try:
            rules = held(write(Path(folder, "head"), head, own), before)
            [plan] = make_plans(rules.config, {})
        except ConfigError:  # a threshold of a single case for a criterion that is gone, or two that exclude each other
            return
        known = load_config(before)
        [of_base] = make_plans(known, {})
        names = {criterion.name for criterion in of_base.criteria}
        measured = record(plan, now, trials, "now", {criterion.name for criterion in plan.criteria})
        reference = None
        if then is not None:
            stored = record(of_base, then, 3, "then", names)
            reference = Reference(BaselineInfo("c" * 40, 1, 3.0, 1, "here"), (stored,))
        terms, alone = terms_of_plan(plan, rules.config, rules=rules), terms_of_plan(of_base, known)
        if terms.base is not None:  # judged by both rules, each with half of alpha
            alone = replace(alone, settings=replace(alone.settings, comparisons=max(2, alone.settings.comparisons)))
        found = verdict(measured, reference, terms)
        plain = verdict(measured, reference, alone)
        assert SEVERITY.index(found.verdict) >= SEVERITY.index(plain.verdict), (found.cause, plain.cause)
        if found.verdict is Verdict.PASS:
            assert plain.verdict is Verdict.PASS


LOOSER = st.sampled_from(
    [
        ("contains", "threshold", 0.1),
        ("contains", "margin", 1.0),
        ("contains", "blocking", False),
        ("contains", "ratchet", True),
        ("contains", "regression", "warn"),
        ("contains", "values", ["y"]),
        ("latency", "max", 100),
        ("latency", "p95", 100),
        ("latency", "ratchet", True),
    ]
)


@given(changes=st.lists(LOOSER, min_size=1, max_size=4), gone=st.sets(st.sampled_from(["contains", "latency"])))
@QUIET
def test_nothing_looser_holds(changes: list[tuple[str, str, Any]], gone: set[str]) -> None:
    """The very plan of the base, whatever is looser in the change's configuration or no longer there."""
    strict = {"threshold": 0.9, "margin": 0.01, "ratchet": False, "regression": "block"}
    criteria: dict[str, Any] = {
        "contains": {"values": ["x"], **strict},
        "latency": {"max": 2, "p95": 1, "ratchet": False},
    }
    looser = json.loads(json.dumps(criteria))
    for name, option, value in changes:
        looser[name][option] = value
    looser = {name: value for name, value in looser.items() if name not in gone} or {"pass_rate": 0.1}
    with TemporaryDirectory() as folder:
        base = write(Path(folder, "base"), {"criteria": criteria}, {})
        rules = held(write(Path(folder, "head"), {"criteria": looser}, {}), base)
        [plan], [before] = make_plans(rules.config, {}), make_plans(load_config(base), {})
        assert [c for c in plan.criteria if c.name != "pass_rate"] == list(before.criteria)
        assert rules.changes
