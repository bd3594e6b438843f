"""The words of every fact, and the published schema, as they were agreed on: no other test here asserts a sentence.

`make golden` rewrites them, for review. Whole reports are held to real runs in tests/acceptance.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.histories.trends import Histories, Unread
from gate.insight.history_text import history_text
from gate.model import (
    BaselineInfo,
    CaseStatus,
    CrashFacts,
    Criterion,
    CriterionResult,
    Direction,
    Estimate,
    Scale,
    SuiteResult,
    Verdict,
)
from gate.model.course import Course
from gate.model.finding import (
    CAUSES,
    CHANGES,
    GAPS,
    OF_CRITERION,
    PROBLEMS,
    WARNINGS,
    Finding,
    FindingKind,
    KindName,
)
from gate.reports import cases, console, html, junit, labels, replayed
from gate.reports import formatting as figures
from gate.reports import markdown as comments
from gate.reports.json import schema
from gate.reports.lineup import render_line, render_markdown, render_text
from gate.reports.markdown import Place
from gate.reports.reasons import reason, stage_text, why_apart
from gate.reports.rows import RowView
from gate.reports.story import story
from gate.reports.view import View
from gate.reports.words import tell_warning

from . import situations as given
from .samples import ACCEPTED, BROKEN, NOT_COMPARED, OK_CASES, PASSED, REGRESSED, RESULTS, result
from .test_by_tag import TAGGED, composite, group
from .test_history import CHANGED, DECLINING, FALLEN, FLAT, SHORT
from .test_lineup import lineup as compared

GOLDEN = Path(__file__).parents[2] / "golden" / "reports"


def agrees(path: Path, text: str) -> None:
    if os.environ.get("GATE_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_published_schema() -> None:
    agrees(GOLDEN / "result.schema.json", json.dumps(schema(), indent=2) + "\n")


BARE = replace(REGRESSED, cases=OK_CASES)
"""Without cases whose calls the headline would tell of."""


def facts() -> Iterator[str]:
    for cause in given.CAUSES:
        yield told(cause, View(replace(BARE, cause=cause)).headline)
    for problem in given.PROBLEMS:
        unmeasured = replace(PASSED, verdict=Verdict.ERROR, cause=problem, has_baseline=False)
        yield told(problem, View(unmeasured).headline)
    for gap in given.GAPS:
        yield told(gap, View(replace(NOT_COMPARED, cause=Finding.of("incomplete", gaps=(gap,)))).headline)
    for change in given.CHANGES:
        yield told(change, *View(replace(PASSED, changes=(change,))).all_changes)
    for warning in given.WARNINGS:
        yield told(warning, *View(replace(PASSED, warnings=(warning,))).all_warnings)


def findings() -> Iterator[str]:
    for criterion, one in given.FINDINGS:
        row = CriterionResult(criterion, one.verdict, (one,))
        warnings = [f"warning: {tell_warning(one, row)}"] if one.is_warning else []
        yield told(one, reason(row), *warnings)
    yield from (told(why, why_apart(why)) for why in given.NOT_COMPARED_BECAUSE)
    for stage in given.STAGES:
        yield told(stage.kind.name, stage_text(stage))


def stories() -> Iterator[str]:
    for name, suite in given.suites():
        yield told(name, *_story(suite))


def _story(suite: SuiteResult) -> Iterator[str]:
    yield View(suite).headline
    yield from (f"below it: {line}" for line in View(suite).opening)
    yield from View(suite).whole_story
    yield from (f"change: {line}" for line in View(suite).changes)
    yield from (f"warning: {line}" for line in View(suite).all_warnings)
    for row in suite.criteria:
        yield f"{row.criterion.name}: {reason(row)}"
    if replayed.line(suite):
        yield from (replayed.line(suite), replayed.calls(suite), *replayed.differences(suite))
    yield f"next: {View(suite).next_step()}"


def small() -> Iterator[str]:
    for value, scale in given.FIGURES:
        yield f"{value} {scale.value}: {figures.figure(value, scale)}"
    for ends, scale in given.INTERVALS:
        shown = (figures.interval(ends, scale), figures.change_interval(ends, scale), figures.sample(ends))
        yield f"{scale.value}: {' | '.join(shown)} | {figures.difference_interval(ends, scale)}"
    yield from (f"count: {figures.count(n, 'criterion', 'criteria')}" for n in (0, 1, 2))
    yield from (f"demand: {figures.threshold(criterion)}" for criterion in given.DEMANDS)
    for now, before, typical in given.MEANS:
        cost = Criterion("cost", "cost", Scale.USD, Direction.LOWER)
        sides = (Estimate(value, value, value, 9) for value in (now, before, typical))
        row = CriterionResult(cost, Verdict.PASS, (), *sides, compared=(before, now))
        other = replace(row, criterion=replace(cost, scale=Scale.UNIT))
        assert figures.of_means(other) == figures.of_means(replace(row, compared=None)) == ""
        yield f"means {before} → {now}, typical {typical}: {figures.of_means(row)}"
    for judge in (*given.JUDGES, None):
        row = CriterionResult(Criterion("a", "a", Scale.UNIT), Verdict.PASS, change=given.PEOPLE.candidate, judge=judge)
        yield f"judge: {RowView(row, PASSED).judge} | {RowView(row, PASSED).change.rests_on}"
    yield from (f"baseline: {labels.baseline_line(info)}" for info in given.BASELINES)
    for case in given.CASES:
        counts = cases.status_counts(replace(PASSED, cases=(case,)))
        gain = cases.improvement(case, PASSED) if case.improvement else ""
        yield f"case: {counts} | {cases.worse_title([case])} | {replayed.of_case(case)} | {gain}"
    yield from (f"trial: {replayed.of_trial(trial)}" for trial in given.TRIALS)
    for basis, unknown in given.COSTS:
        paid = replace(
            PASSED, cost_usd=0.0435, judge_cost_usd=None, cost_basis=basis, cost_unknown=unknown, agent_runs=12
        )
        yield f"cost: {labels.cost_line(paid)} | {labels.cost(paid)}"
    for code in labels.EXIT_MEANINGS:
        for verdict in (Verdict.INCONCLUSIVE, Verdict.REGRESSED):
            yield f"exit {verdict.value}: {labels.exit_line(code, verdict)}"


def ones() -> Iterator[str]:
    """One is told in the singular."""
    crashes = CrashFacts(("a",), 1, 1, 1, 1, "crash: x")
    course = Course(*[1] * 9, alpha=0.01, suites=1, family=1, reruns=1, baseline_reruns=1, confirming=1)
    one = replace(PASSED, crashes=crashes, course=course)
    yield told("story", *story(one))
    for cause in given.ones(CAUSES):
        yield told(cause, View(replace(one, cause=cause)).headline)
    for change in given.ones(CHANGES):
        yield told(change, *View(replace(one, changes=(change,))).all_changes)
    for warning in given.ones(WARNINGS):
        yield told(warning, *View(replace(PASSED, warnings=(warning,))).all_warnings)
    criterion = Criterion("a", "a", Scale.BINARY, Direction.LOWER, threshold=0.01)
    for found in given.ones(OF_CRITERION):
        yield told(found, reason(CriterionResult(criterion, found.verdict, (found,))))
    yield from (told(why, why_apart(why)) for why in given.ones(["not_compared"]))


def history() -> Iterator[str]:
    for suite in (FALLEN, DECLINING, FLAT, SHORT, CHANGED):
        yield history_text(Histories((suite,), (), "here"), cases=suite is FLAT)
    yield history_text(Histories((FALLEN,), (), "here"), cases=False, tags=True, ascii_only=True)
    unread = tuple(Unread(f"{n}.jsonl", "not closed") for n in range(7))
    yield history_text(Histories((FLAT,), unread, "here"), cases=False)


def lineup() -> Iterator[str]:
    for found in (compared(votes=True, note="read me"), compared("a model of a long name " * 3, "small", votes=True)):
        yield from (render_text(found), render_text(found, width=60, encoding="ascii"), render_line(found))
        yield render_markdown(found)


LOG = replace(REGRESSED, cases=(replace(BROKEN[0], log="starting\n```\nKeyError: 'tea'"),))
MANY = replace(REGRESSED, groups=tuple(group(f"tag-{n:03}", -0.01 * n, 1) for n in range(40)), further_groups=100)
SAMPLES = {name: found for name, found in RESULTS.items() if name != "hostile"} | {
    "accepted": result(ACCEPTED),
    "by tag": result(TAGGED),
    "by tag, none of which stands out": result(replace(TAGGED, concentrated=())),
    "many tags": result(MANY),
    "a composite and its part": result(composite(Verdict.BELOW_THRESHOLD)),
    "a log": result(LOG),
    "two references": result(replace(PASSED, further=(replace(REGRESSED, reference="anchor"),), decided_by="anchor")),
    "in quarantine": result(
        replace(PASSED, cases=(replace(BROKEN[0], status=CaseStatus.QUARANTINED, quarantine="ann, until 2026-12-01"),))
    ),
    "of no known price": result(replace(PASSED, cost_usd=None, judge_cost_usd=0.1)),
    "a trade": result(replace(given.TRADED, cases=REGRESSED.cases)),
    "without a commit": result(replace(PASSED, commit=None, baseline=BaselineInfo(None, trials_per_case=5))),
}


DETAILED = ("regressed", "error", "by tag", "a composite and its part", "a log", "in quarantine", "a trade")


def terminal() -> Iterator[str]:
    for name, found in SAMPLES.items():
        yield f"=== {name}\n{console.render(found)}{console.render_line(found)}"
        if name in DETAILED:
            yield console.render(found, width=60, verbose=True)


def comment() -> Iterator[str]:
    place = Place("1697cbd" + "0" * 33, "https://host/run/1", accept_label="gate:accept", base="main")
    yield from (f"=== {name}\n{comments.render(found, place=place)}" for name, found in SAMPLES.items())


def checks() -> Iterator[str]:
    yield from (f"=== {name}\n{junit.render(SAMPLES[name])}" for name in (*DETAILED, "accepted"))


def page() -> Iterator[str]:
    for name in (*DETAILED, "two references", "without a commit"):
        bare = re.sub(r"<(style|script|svg)[^>]*>.*?</\1>", "", html.render(SAMPLES[name]), flags=re.DOTALL)
        yield f"=== {name}\n{bare[bare.index('<main') :]}"


def told(of: Finding | str, *lines: str) -> str:
    """A name, and below it what is said of it."""
    return "\n  ".join((of if isinstance(of, str) else given.title(of.kind), *lines))


@pytest.mark.parametrize(
    "of", [facts, findings, stories, small, ones, history, lineup, terminal, comment, checks, page]
)
def test_the_words(of: Callable[[], Iterator[str]]) -> None:
    agrees(GOLDEN / "words" / f"{of.__name__}.txt", "\n".join(of()) + "\n")


@pytest.mark.parametrize(
    ("given", "kinds", "but"),
    [
        (given.CAUSES, CAUSES, set(PROBLEMS) - {"agent_fails"}),
        (given.PROBLEMS, PROBLEMS, set()),
        (given.CHANGES, CHANGES, set()),
        (given.WARNINGS, WARNINGS, set()),
        (given.GAPS, GAPS, set()),
        ([one for _, one in given.FINDINGS], OF_CRITERION, {"not_compared"}),
    ],
)
def test_every_kind_is_listed_and_no_finding_twice(
    given: list[Finding], kinds: Mapping[KindName, FindingKind], but: set[str]
) -> None:
    """One that keeps others from deciding stands in a story, and failures that are gone beside a problem."""
    assert {one.kind for one in given} == kinds.keys() - but
    assert [one for number, one in enumerate(given) if one in given[:number]] == []


NOUNS = (
    "cases trials runs suites points epochs scores answers calls jobs lines criteria records labels commits times "
    "attempts requests tags differences"
)
PLURAL = re.compile(
    rf"(?<![\d.,–−/])\b1 (?:(?!of |same )[a-z]+ )?(?:{'|'.join(NOUNS.split())})\b"
    r"|\b1 of 1 (?:[a-z]+ )?\w+s? (?:are|were)\b"
)


def test_one_is_told_in_the_singular() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in GOLDEN.rglob("*") if path.suffix in (".txt", ".md")}
    assert len(texts) > 10
    wrong = {path.name: told[0] for path, text in texts.items() if (told := PLURAL.search(text))}
    assert not wrong
