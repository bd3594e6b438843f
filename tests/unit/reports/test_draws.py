"""Earlier measurements of a change: where each report tells of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from gate.model import SuiteResult, Verdict
from gate.model.facts import Stated
from gate.pipeline import draws as counted
from gate.pipeline.verdict import Terms
from gate.records import Header
from gate.reports import console, explanation, junit, markdown

from .samples import BELOW, PASSED, REGRESSED, result

HEADER = Header("support", (), (), run_id="now", base_commit="b" * 40)


@pytest.fixture
def stated(monkeypatch: pytest.MonkeyPatch) -> list[Verdict]:
    """What the earlier records come to, the newest first."""
    verdicts: list[Verdict] = []
    monkeypatch.setattr(
        counted,
        "_of_this_base",
        lambda *_: ((Path(str(n)), replace(HEADER, run_id=f"run {n}")) for n in range(len(verdicts))),
    )
    monkeypatch.setattr(counted, "load_to_judge", lambda path: int(path.name))
    monkeypatch.setattr(counted, "judge_record", lambda n, *_: replace(PASSED, verdict=verdicts[n]))
    return verdicts


def measured(suite: SuiteResult, stated: list[Verdict], *before: Verdict) -> SuiteResult:
    """The suite with what the run finds of so many earlier measurements."""
    stated[:] = before
    git = SimpleNamespace(is_elsewhere=lambda *_: False)
    note = counted.earlier_draws(None, HEADER, (), Terms(()), git)  # type: ignore[arg-type]
    return replace(suite, warnings=(Stated("another"), *([note] if note else [])))


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ((Verdict.REGRESSED, Verdict.REGRESSED), "measurement 3 of this change (before: regressed, regressed)"),
        ((Verdict.PASS, Verdict.BELOW_THRESHOLD), "measurement 3 of this change (before: pass, below threshold)"),
        (
            (Verdict.INCONCLUSIVE, *[Verdict.REGRESSED] * 6),
            "measurement 8 of this change (the newest 5 of 7 before: inconclusive, regressed, regressed, regressed, "
            "regressed)",
        ),
    ],
)
@pytest.mark.parametrize("suite", [PASSED, BELOW, replace(PASSED, further=(REGRESSED,), decided_by="")])
def test_a_headline_opens_with_earlier_measurements_of_which_one_fell_short(
    suite: SuiteResult, before: tuple[Verdict, ...], said: str, stated: list[Verdict]
) -> None:
    lucky = measured(suite, stated, *before)
    assert explanation.headline(lucky) == f"{said}: {explanation.headline(suite)}"
    assert f"{said}: " in console.render_line(result(lucky))
    assert f"{said}: " in " ".join(console.render(result(lucky)).split())
    assert markdown.render(result(lucky)).splitlines()[2].replace("\\", "").startswith(f"{said}: ")
    assert f"{said}: " in junit.render(result(lucky))


def test_the_reference_that_decided_is_told_after_the_earlier_measurements(stated: list[Verdict]) -> None:
    suite = replace(PASSED, further=(replace(REGRESSED, reference="anchor"),), decided_by="anchor")
    told = explanation.headline(measured(suite, stated, Verdict.REGRESSED))
    assert told.startswith("measurement 2 of this change (before: regressed): against the anchor: 2 cases broke")


def test_earlier_measurements_of_which_none_fell_short_stand_outside_of_every_fold(stated: list[Verdict]) -> None:
    suite = measured(PASSED, stated, Verdict.PASS, Verdict.INCONCLUSIVE)
    assert explanation.headline(suite) == explanation.headline(PASSED)
    page = markdown.render(result(suite)).replace("\\", "")
    whole = "measurement 3 of this change; before: pass, inconclusive (without a fingerprint of the agent"
    assert page.count(whole) == 1
    assert page.index(whole) < page.index("<details>")
    assert "How the verdict came about, 1 warning, baseline" in page


def test_a_first_measurement_is_not_counted(stated: list[Verdict]) -> None:
    suite = measured(PASSED, stated)
    assert "measurement" not in markdown.render(result(suite))
    assert "measurement" not in console.render(result(suite))
