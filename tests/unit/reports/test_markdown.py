"""The comment: order, columns, folds, what is left out first, how long it gets. Golden files hold the words."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from gate.model import CaseResult, CaseStatus
from gate.model.finding import Finding, Wording
from gate.reports.markdown import Place, render, render_suite

from .samples import BROKEN, FLAKY, LOST, PASSED, REGRESSED, RESULTS, result

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


@pytest.mark.parametrize("name", [name for name in RESULTS if name != "hostile"])
def test_every_comment_is_a_title_a_fold_and_tables_of_three_columns(name: str) -> None:
    alone = RESULTS[name]
    for suite in alone.suites:
        page = render_suite(suite, alone, place=RUN)
        assert page.startswith("### ")
        assert page.count("<details>") == page.count("</details>") == 1
        rows = [line for line in page.splitlines() if line.startswith("| ")]
        assert all(len(re.findall(r"(?<!\\)\|", row)) <= 4 for row in rows)


def test_the_cases_stand_before_the_numbers_and_what_to_do_above_the_fold() -> None:
    above, _, fold = render(result(LOST), place=replace(RUN, accept_label="gate:accept", base="main")).partition(
        "<details>"
    )
    assert "| case | main | this change |" in above
    assert above.index("| case |") < above.index("```diff") < above.index("**Next:**")
    assert "`gate:accept`" in above and "https://host/run/1" in above
    assert not re.search(r"\[[−\d.]+, [−+\d.]+\]", above), "no interval"
    assert "**Criteria**" in fold


def test_the_worst_suite_comes_first() -> None:
    page = render(result(PASSED, replace(REGRESSED, suite_id="zzz")))
    assert page.index("`zzz`") < page.index("`support`")


def test_parts_of_the_fold_go_first_and_the_verdict_never() -> None:
    whole = render(result(MANY), limit=10**6)
    head = whole.partition("<details>")[0]
    lengths = []
    for limit in (len(whole) - 1, 15_000, 8_000, 5_000):
        page = render(result(MANY), limit=limit, place=RUN)
        assert len(page) <= limit
        assert page.startswith(head.splitlines()[0])
        assert "**Next:**" in page
        lengths.append(len(page))
    assert lengths == sorted(lengths, reverse=True)


def test_suites_that_do_not_fit_are_counted() -> None:
    suites = [
        replace(MANY, suite_id=f"s{i:03}", cause=Finding.of("not_run", cases=("word " * 100,))) for i in range(60)
    ]
    page = render(result(*suites), limit=5_000, place=RUN)
    assert len(page) <= 5_000
    assert "more suites" in page and "https://host/run/1" in page


def test_one_suite_of_several_alone() -> None:
    page = render_suite(PASSED, RESULTS["two_suites"])
    assert "`support`" in page.splitlines()[0]
    assert "evals/refunds" not in page
    assert "exit code 1" in page


def test_the_words_that_differ_are_marked() -> None:
    wording = Wording("a", "It takes 5 days.", "It takes 9 days.", "It takes 5 days.")
    cause = Finding.of("suite_got_worse", criteria=("response_match_score",), suspects=(), wording=wording)
    case = CaseResult("a", CaseStatus.OK, passed=3, trials=3)
    page = render(result(replace(REGRESSED, cause=cause, cases=(case,))))
    assert "It takes **5** days." in page and "It takes **9** days." in page


def test_every_line_of_the_command_is_one() -> None:
    command = "gh pr checkout 1 && git fetch origin abc\ngate run --against abc"
    assert f"```sh\n{command}\n```" in render(result(PASSED, command=command))


def test_worst_first_whatever_the_order_of_the_cases() -> None:
    once, again = (
        render(result(replace(REGRESSED, cases=cases))) for cases in (REGRESSED.cases, REGRESSED.cases[::-1])
    )
    assert once.partition("**Every case**")[0] == again.partition("**Every case**")[0]
