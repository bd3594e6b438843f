"""The comparison in every form: figures as they are, names of agents as text and nothing more."""

from __future__ import annotations

import json
import re

import pytest

from gate.insight.lineup_figures import Measured, count_comparisons, dominated, measures_of, preferences_of
from gate.model import Direction, Scale
from gate.model.lineup import Lineup, LineupEntry, OrderedVote
from gate.reports.lineup import LIMIT, render_html, render_json, render_line, render_markdown, render_text

from .harmless import PARSERS, findings
from .hostile import CORPUS, SOME_AND_ALL

COMMIT = "0123456789abcdef"
CASES = [f"case {n}" for n in range(20)]


def lineup(
    *names: str, votes: bool = False, criterion: str = "pass rate", note: str = "", reason: str = "why"
) -> Lineup:
    """Agents of which each further one passes less, costs less, and is slower."""
    names = names or ("large", "small", "people")

    def values(first: float, step: float) -> tuple[dict[str, list[float]], ...]:
        return tuple({c: [first + step * k + 0.01 * (n % 4)] for n, c in enumerate(CASES)} for k in range(len(names)))

    passed = tuple({c: [float(n % (k + 2) > 0)] for n, c in enumerate(CASES)} for k in range(len(names)))
    measured = [
        Measured(criterion, Scale.BINARY, Direction.HIGHER, passed[::-1]),
        Measured("cost of a trial", Scale.USD, Direction.LOWER, (*values(2.0, -0.5)[:-1], {})),
        Measured("latency of a trial", Scale.SECONDS, Direction.LOWER, values(1.0, 0.4)),
    ]
    cast = [OrderedVote(c, a, 1 - a, 1, reason) for c in CASES for a in (0, 1)] if votes else []
    comparisons = count_comparisons(measured)
    rows = measures_of(measured, comparisons)
    return Lineup(
        entries=tuple(LineupEntry(n, f"{n}.jsonl", "", COMMIT, 20, k) for k, n in enumerate(names)),
        measures=rows,
        cases=len(CASES),
        comparisons=comparisons,
        quality=criterion,
        cost="cost of a trial",
        latency="latency of a trial",
        dominated=dominated(rows, len(names)),
        preferences=preferences_of(cast, [(1, 0)] if votes else [], comparisons),
        votes=tuple(cast),
        judge_cost_usd=0.25 if votes else None,
        notes=(note,) if note else (),
    )


def test_a_terminal_without_utf_8_gets_ascii() -> None:
    for render in (render_text, render_line):
        render(lineup("größer", "kleiner"), encoding="ascii").encode("ascii")


def test_json_has_every_pair_and_vote() -> None:
    read = json.loads(render_json(lineup(votes=True)))
    assert read["version"] == 1
    latency = next(one for one in read["measures"] if one["name"].startswith("latency"))
    assert [(one["one"], one["other"]) for one in latency["differences"]] == [(1, 0), (2, 0), (2, 1)]
    assert len(read["votes"]) == 40


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS)
def test_the_whole_corpus_in_markdown_stays_text(parser: str) -> None:
    found = lineup(*CORPUS[:20], criterion=CORPUS[10], note=CORPUS[7], votes=True)
    assert findings(render_markdown(found, limit=10**9), parser=parser, headings=2) == []


def test_a_comment_keeps_to_its_limit() -> None:
    found = lineup(*(f"{n}" + "<" * 3_000 for n in range(20)))
    assert len(render_markdown(found)) <= LIMIT


@SOME_AND_ALL
def test_any_name_stays_text_in_every_form(texts: tuple[str, ...]) -> None:
    for name in (*texts, "x" * 100_000):
        found = lineup(name, "other", criterion=name or "x", note=name, votes=True, reason=name)
        said = render_text(found)
        assert all(c == "\n" or c >= " " for c in said)
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x7f-\x9f]", said)
        json.loads(render_json(found))
        page = render_html(found)
        page.encode("utf-8")
        assert "<img" not in page
        assert page.count("<script") == render_html(lineup("a", "other", votes=True)).count("<script")
        assert len(page) < 200_000


def test_no_line_is_longer_than_the_terminal() -> None:
    found = lineup("a model of a long name " * 3, "small", criterion="tool_trajectory_avg_score", votes=True)
    lines = render_text(found, width=60).splitlines()
    headings = [line for line in lines if "against" in line or "trials" in line or "position" in line]
    assert len(headings) > 3
    assert max(map(len, headings)) <= 60
