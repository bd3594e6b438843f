"""Earlier measurements of a change: how many are counted, and where each report tells of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from gate.model import SuiteResult, Verdict
from gate.model.finding import Finding
from gate.pipeline import draws as counted
from gate.pipeline.terms import Terms
from gate.records import Header
from gate.reports import console, explanation, junit, markdown

from .samples import BELOW, PASSED, REGRESSED, result

HEADER = Header("support", (), (), run_id="now", base_commit="b" * 40)
REGRESSION, PASS = Verdict.REGRESSED, Verdict.PASS


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ((), None),
        ((REGRESSION, PASS), Finding.of("measured_before", verdicts=(REGRESSION, PASS), total=2, fingerprinted=False)),
        (
            (PASS, *[REGRESSION] * 6),
            Finding.of("measured_before", verdicts=(PASS, *[REGRESSION] * 4), total=7, fingerprinted=False),
        ),
    ],
)
def test_every_earlier_measurement_is_counted_and_the_newest_are_told(
    verdicts: tuple[Verdict, ...], told: Finding | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = [(Path(str(n)), replace(HEADER, run_id=f"run {n}")) for n in range(len(verdicts))]
    monkeypatch.setattr(counted, "_of_this_base", lambda *_: iter(headers))
    monkeypatch.setattr(counted, "load_to_judge", lambda path: int(path.name))
    monkeypatch.setattr(counted, "judge_record", lambda n, *_: replace(PASSED, verdict=verdicts[n]))
    git = SimpleNamespace(is_elsewhere=lambda *_: False)
    found = counted.earlier_draws(None, HEADER, (), Terms(()), git)  # type: ignore[arg-type]
    assert found.notes == (() if told is None else (told,))
    assert found.verdicts == (() if told is None else told["verdicts"])


@pytest.mark.parametrize("suite", [PASSED, BELOW, replace(PASSED, further=(REGRESSED,), decided_by="")])
def test_a_headline_opens_with_earlier_measurements_of_which_one_fell_short(suite: SuiteResult) -> None:
    lucky = replace(
        suite, warnings=(Finding.of("measured_before", verdicts=(REGRESSION,), total=1, fingerprinted=True),)
    )
    said, plain = explanation.headline(lucky), explanation.headline(suite)
    assert said.endswith(plain) and said != plain
    opened = said.removesuffix(plain).strip()
    assert opened in console.render_line(result(lucky))
    assert opened in " ".join(console.render(result(lucky)).split())
    assert markdown.render(result(lucky)).splitlines()[2].replace("\\", "").startswith(opened)
    assert opened in junit.render(result(lucky))


def test_earlier_measurements_of_which_none_fell_short_stand_outside_of_every_fold() -> None:
    suite = replace(PASSED, warnings=(Finding.of("measured_before", verdicts=(PASS,), total=1, fingerprinted=True),))
    assert explanation.headline(suite) == explanation.headline(PASSED)
    page = markdown.render(result(suite)).replace("\\", "")
    (told,) = explanation.warnings(suite)
    assert page.count(told[:40]) == 1
    assert page.index(told[:40]) < page.index("<details>")
