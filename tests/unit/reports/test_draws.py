"""Earlier measurements of a change: how many are counted, and that those which fell short are told first."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from gate.model import Verdict
from gate.model.finding import Finding
from gate.pipeline import earlier as counted
from gate.pipeline.terms import Terms
from gate.records import Header
from gate.reports import explanation, markdown

from .samples import PASSED, result

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


def test_an_earlier_measurement_that_fell_short_is_told_above_every_fold() -> None:
    before = Finding.of("measured_before", verdicts=(REGRESSION,), total=1, fingerprinted=True)
    lucky = replace(PASSED, warnings=(before,))
    told = explanation.measured_again(lucky)
    assert told and told in explanation.headline(lucky)
    assert told in markdown.render(result(lucky)).partition("<details>")[0].lower()
    passed = replace(PASSED, warnings=(before.but(verdicts=(PASS,)),))
    assert explanation.headline(passed) == explanation.headline(PASSED)
