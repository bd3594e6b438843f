"""The comment: order, what is left out first, how long it gets. Golden files hold the whole."""

from __future__ import annotations

from dataclasses import replace

from gate.model import CaseStatus, Verdict
from gate.reports.markdown import render, render_suite

from .samples import BROKEN, FLAKY, PASSED, REGRESSED, RESULTS, result

MANY = replace(
    REGRESSED,
    criteria=tuple(
        replace(c, criterion=replace(c.criterion, name=f"{c.criterion.name}_{i}"))
        for i in range(8)
        for c in REGRESSED.criteria
    ),
    cases=tuple(replace(c, id=f"{c.id}-{i}", reasons=("because " * 30,)) for i in range(100) for c in (*BROKEN, FLAKY)),
)


def test_a_reviewer_reads_the_verdict_then_what_got_worse_then_the_rest() -> None:
    page = render(RESULTS["regressed"])
    order = [
        "## ❌ `support`: regressed",
        "2 of 40 cases broke",
        "**−12.5 [−20, −5] points**",
        "### Cases that got worse",
        "<code>refund-late-order</code>",
        "- issue_refund(",
        "<code>refund-wrong-item</code>",
        "### Warnings",
        "### What changed",
        "**Cost**",
        "Reproduce locally",
        "exit code 1",
    ]
    places = [page.index(said) for said in order]
    assert places == sorted(places)


def test_the_worst_suite_comes_first() -> None:
    page = render(result(PASSED, replace(REGRESSED, suite_id="zzz")))
    assert page.index("`zzz`: regressed") < page.index("`support`: pass")


def test_passes_go_first_then_detail_and_the_verdict_never() -> None:
    def shortened(limit: int) -> str:
        page = render(result(MANY), limit=limit, summary_url="https://host/run/1")
        assert len(page) <= limit
        return page

    whole = render(result(MANY), limit=10**6)
    assert "latency_0" in whole
    assert "Shortened" not in whole
    no_passes = shortened(len(whole) - 1)
    assert "`latency_0`" not in no_passes
    assert "8 criteria passed" in no_passes
    assert "How the verdict came about" in no_passes
    no_detail = shortened(len(no_passes) - 1)
    assert "How the verdict came about" not in no_detail
    assert no_detail.count("```diff") == 3
    least = shortened(5_000)
    assert "[the whole report](https://host/run/1)" in least
    for page in (no_passes, no_detail, least):
        assert page.startswith("## ❌ `support`: regressed")
        assert "gate run --config gate.yaml" in page


def test_suites_that_do_not_fit_are_counted() -> None:
    suites = [replace(MANY, suite_id=f"s{i:03}", headline="word " * 100) for i in range(500)]
    page = render(result(*suites), limit=5_000, summary_url="https://host/run/1")
    assert len(page) <= 5_000
    assert "more suites: [the whole report](https://host/run/1)" in page


def test_one_suite_alone() -> None:
    page = render_suite(PASSED, command="gate run")
    assert page.startswith("## ✅ `support`: pass")
    assert "gate run" in page
    assert "exit code" not in page


def test_worst_first_whatever_the_order_of_the_cases() -> None:
    assert render(result(replace(REGRESSED, cases=REGRESSED.cases[::-1]))) == render(result(REGRESSED))


def test_a_criterion_that_only_warns_says_so() -> None:
    assert "`cost`<br><sub>warns only</sub>" in render(RESULTS["regressed"])


def test_cases_in_error_and_quarantine() -> None:
    quarantined = replace(BROKEN[0], status=CaseStatus.QUARANTINED)
    page = render(result(replace(PASSED, verdict=Verdict.PASS, cases=(quarantined,))))
    assert "Cases that got worse" not in page
    assert "`refund-late-order` quarantined" in page
    assert "💥 <code>order-status-01</code> error, no trial measured, 3 errors" in render(RESULTS["error"])
