"""A relative change is a typical case's: no report says it of the means beside it, which may move the other way."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from gate.model import Verdict, facts
from gate.model.findings import Change, ChangeAllowed, LossNotExcluded
from gate.reports import checks, console, explanation, html, markdown, notebook
from gate.reports.reasons import reason

from .samples import COST, PASSED, RESULTS, estimate, measured

FELL = measured(
    COST,
    Verdict.PASS,
    (ChangeAllowed(Change(0.782, 0.448, 1.193, 40)),),
    estimate(0.0435, 0.03, 0.06),
    estimate(0.0843, 0.02, 0.2),
    estimate(0.782, 0.448, 1.193),
    compared=(0.0843, 0.0435),
)
SUITE = replace(PASSED, criteria=(FELL,), warnings=(facts.QuietRise("cost", 0.782),))
RESULT = replace(RESULTS["pass"], suites=(SUITE,))
TYPICAL, MEANS = "a typical case +78.2 %", "the mean over all cases −48.4 %"


def _flat(text: str) -> str:
    return " ".join(re.sub(r"</?(wbr|span)[^>]*>", "", text).split())


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("verbose", [False, True])
def test_console(width: int, verbose: bool) -> None:
    said = _flat(console.render(RESULT, width=width, verbose=verbose))
    assert said.count("+78.2 %") >= 2
    if not verbose or width < 76:  # cells that stand side by side are broken within
        assert TYPICAL in said
        assert MEANS in said


def test_other_forms() -> None:
    junit = repr(list(checks.checks_of(SUITE, RESULT)))
    for text in (markdown.render(RESULT), notebook.fragment(RESULT), html.render(RESULT), junit):
        assert TYPICAL in _flat(text)
        assert MEANS in _flat(text)
        assert "changed by" not in text


def test_means_over_other_cases_are_not_set_against_one_another() -> None:
    """Four dear cases are new: over the cases that both have the mean rose as a typical case's did."""
    new = replace(FELL, candidate=estimate(0.4, 0.3, 0.6, 44), compared=(0.0843, 0.15))
    assert reason(new) == f"{TYPICAL} (+44.8 % to +119.3 %) over 40 cases"
    fell = replace(new, compared=(0.0843, 0.0435))
    assert reason(fell).endswith("; the mean over the 40 compared cases −48.4 %")
    assert reason(replace(fell, compared=None)) == reason(new)


def test_warning_and_reason() -> None:
    warning = f"cost: {TYPICAL}, beyond its margin; {MEANS}; it warns only"
    assert explanation.warnings(SUITE) == (warning,)
    assert reason(FELL) == f"{TYPICAL} (+44.8 % to +119.3 %) over 40 cases; {MEANS}"
    open_ = LossNotExcluded(Change(0.1, -0.05, 0.3, 40), 0.3, 0.2)
    row = replace(FELL, verdict=Verdict.INCONCLUSIVE, findings=(open_,))
    assert "its interval reaches +30 %, beyond the margin of 20 %" in reason(row)
