"""The comment: order, what is left out first, how long it gets. Golden files hold the whole."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.model.finding import Finding
from gate.reports.markdown import Place, render, render_suite

from .samples import ACCEPTED, BROKEN, FLAKY, LOST, NOT_COMPARED, PASSED, REGRESSED, RESULTS, result

RUN = Place(url="https://host/run/1")
MANY = replace(
    REGRESSED,
    criteria=tuple(
        replace(c, criterion=replace(c.criterion, name=f"{c.criterion.name}_{i}"))
        for i in range(8)
        for c in REGRESSED.criteria
    ),
    cases=tuple(replace(c, id=f"{c.id}-{i}", reasons=("because " * 30,)) for i in range(100) for c in (*BROKEN, FLAKY)),
)


def test_the_worst_suite_comes_first() -> None:
    page = render(result(PASSED, replace(REGRESSED, suite_id="zzz")))
    assert page.index("`zzz`: regressed") < page.index("`support`: pass")


def test_passes_go_first_then_detail_and_the_verdict_never() -> None:
    def shortened(limit: int) -> str:
        page = render(result(MANY), limit=limit, place=RUN)
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
    assert no_detail.count("```diff") == 1, "one case for the one reason"
    least = shortened(5_000)
    assert "[the whole report](https://host/run/1)" in least
    for page in (no_passes, no_detail, least):
        assert page.startswith("## ❌ `support`: regressed")
        assert "gate run --config gate.yaml" in page


@pytest.mark.slow
def test_suites_that_do_not_fit_are_counted() -> None:
    suites = [
        replace(MANY, suite_id=f"s{i:03}", cause=Finding.of("cut_short", why="word " * 100, epochs=1, wanted=2))
        for i in range(60)
    ]
    page = render(result(*suites), limit=5_000, place=RUN)
    assert len(page) <= 5_000
    assert "more suites: [the whole report](https://host/run/1)" in page


def test_one_suite_of_several_alone() -> None:
    page = render_suite(PASSED, RESULTS["two_suites"])
    assert page.startswith("## ✅ `support`: pass at `9d1fa2b`")
    assert "evals/refunds" not in page
    assert "gate run" in page
    assert "exit code 1" in page


def test_the_commit_is_the_one_that_its_reader_knows() -> None:
    page = render(RESULTS["regressed"], place=Place(head="1697cbd" + "0" * 33))
    assert page.startswith("## ❌ `support`: regressed at `1697cbd`\n")
    assert render(result(replace(PASSED, commit=None))).startswith("## ✅ `support`: pass\n")


def test_who_may_accept_is_said_where_someone_may() -> None:
    label = Place(accept_label="gate:accept")
    said = "or someone with write access sets `gate:accept`."
    for suite in (LOST, NOT_COMPARED):
        assert said in render(result(suite), place=label)
        assert said not in render(result(suite))
    for other in ("regressed", "below_threshold", "error", "inconclusive", "pass"):
        assert said not in render(RESULTS[other], place=label)
    accepted = render(result(ACCEPTED), place=label)
    assert "**Next:**" not in accepted
    assert "**Accepted:** ann accepted this" in accepted


def test_one_case_for_each_distinct_reason_and_how_many_more() -> None:
    cases = tuple(
        replace(BROKEN[0], id=f"refund-{n}", reasons=(f"refund_order(order='{n}') is missing",)) for n in range(12)
    )
    page = render(result(replace(REGRESSED, cases=cases)))
    assert "### Cases that got worse, 1 of 12" in page
    assert "<summary>11 more, same reason</summary>" in page
    assert page.count("is missing") == 1, "in the line that opens the fold, and nowhere else"
    mixed = render(result(replace(REGRESSED, cases=(*cases, *BROKEN))))
    assert "### Cases that got worse, 3 of 16" in mixed
    assert "<summary>13 more</summary>" in mixed


def test_every_line_of_the_command_is_one() -> None:
    command = "gh pr checkout 1 && git fetch origin abc\ngate run --against abc"
    page = render(result(PASSED, command=command))
    assert f"```sh\n{command}\n```" in page


def test_worst_first_whatever_the_order_of_the_cases() -> None:
    assert render(result(replace(REGRESSED, cases=REGRESSED.cases[::-1]))) == render(result(REGRESSED))
