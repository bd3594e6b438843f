"""One error budget for a job: what is divided, what a proof frees, and how often an unchanged agent is blocked."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.api import run
from gate.baselines.reference import Reference
from gate.config.load import load_config
from gate.decision import Settings
from gate.model import BaselineInfo, Criterion, Result, Scale, Score, SuiteResult, Trial, Verdict
from gate.pipeline.terms import Demands, Terms, after_proofs, comparisons_of, divided_at_least, own_terms, step_down
from gate.pipeline.verdict import judge_record
from gate.records import Header, PlannedCase, Record, read_record
from gate.reports.files import Outputs
from gate.statistics.intervals import binomial_at_least
from gate.stored.judging import report_record
from gate.stored.upkeep import save_newest
from tests.properties import examples

CRITERION = Criterion("ok", "contains", Scale.BINARY, threshold=0.1, pass_threshold=1.0, fingerprint="f")
PLAN = tuple(PlannedCase(f"c{n}", f"content {n}") for n in range(20))


def record(failing: int = 0, trials: int = 3) -> Record:
    made = tuple(
        Trial(case.id, n, round=1, scores={"ok": Score(float(place >= failing))})
        for place, case in enumerate(PLAN)
        for n in range(1, trials + 1)
    )
    return Record(Header("s", PLAN, (CRITERION,)), made, None)


def against(*names: str) -> list[Reference]:
    return [Reference(BaselineInfo(name), (record(trials=5),), name) for name in names]


def e_threshold(suite: SuiteResult) -> float:
    assert suite.outcome is not None
    return suite.outcome.evidence.e_threshold


def test_a_division_leaves_each_comparison_and_each_suite_its_part() -> None:
    settings = Settings(alpha=0.02, threshold_alpha=0.005, suites=5, comparisons=10)
    assert (settings.own_alpha, settings.own_threshold_alpha) == (pytest.approx(0.002), pytest.approx(0.001))
    of_matrix = replace(settings, family=4)
    assert (of_matrix.own_alpha, of_matrix.own_threshold_alpha) == (pytest.approx(0.0005), pytest.approx(0.00025))
    assert after_proofs(settings, 3).own_alpha == pytest.approx(0.02 / 7)
    assert after_proofs(settings, 10) == after_proofs(settings, 9), "at least one comparison is left"
    three = against("base", "anchor", "third")
    assert divided_at_least(Terms((CRITERION,), settings), three).settings == settings
    assert divided_at_least(Terms((CRITERION,)), three[:2]).settings.own_alpha == pytest.approx(0.01)


def test_a_suite_without_a_baseline_takes_no_part() -> None:
    terms = Terms((CRITERION,))
    assert comparisons_of(terms, [Reference(BaselineInfo(None, missing="none"))]) == 0
    assert comparisons_of(terms, against("base", "anchor")) == 2
    assert comparisons_of(replace(terms, base=Demands((CRITERION,))), against("base", "anchor")) == 4


def test_references_share_the_alpha_of_a_record_that_is_judged_alone() -> None:
    terms = Terms((CRITERION,))
    whole = e_threshold(judge_record(record(), against("base"), terms))
    both = judge_record(record(), against("base", "anchor"), terms)
    assert e_threshold(both) == e_threshold(both.further[0]) == pytest.approx(2 * whole)
    base_rules = replace(terms, base=Demands((replace(CRITERION, threshold=0.5),)))
    assert e_threshold(judge_record(record(), against("base"), base_rules)) == pytest.approx(2 * whole)


def test_the_division_that_a_record_states_is_what_it_is_judged_by() -> None:
    terms = Terms((CRITERION,), replace(Settings(), comparisons=8, suites=4))
    kept = own_terms(replace(record(), footer=None), terms.settings)
    assert kept.settings == terms.settings
    suite = judge_record(record(), against("base"), terms)
    assert e_threshold(suite) == pytest.approx(8 * e_threshold(judge_record(record(), against("base"), kept_whole())))
    assert suite.course is not None
    assert (suite.course.alpha, suite.course.suites) == (pytest.approx(0.02), 4)


def kept_whole() -> Terms:
    return Terms((CRITERION,))


def test_a_proof_frees_its_part_for_the_others_and_so_on() -> None:
    """Three suites: one proven at a third of alpha, one at half, one at the whole of it."""
    made = {verdict: _suite(verdict) for verdict in (Verdict.PASS, Verdict.REGRESSED)}
    needed, asked = (2, 0, 1), []

    def judge(number: int, proven: int) -> SuiteResult:
        asked.append((number, proven))
        return made[Verdict.REGRESSED if proven >= needed[number] else Verdict.PASS]

    assert [one.verdict for one in step_down(3, judge)] == [Verdict.REGRESSED] * 3
    assert asked == [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 2)], "what is proven is not judged again"
    asked.clear()
    assert step_down(1, judge) == [made[Verdict.PASS]]
    assert asked == [(0, 0)], "nothing is proven, so nothing is freed"


def _suite(verdict: Verdict) -> SuiteResult:
    found = judge_record(record(), against("base"), kept_whole())
    return replace(found, verdict=verdict)


# --- through the pipeline, with recorded trials ---------------------------------------------------

CASES = 8
ALPHA = 0.3
"""Large, so that two dozen jobs tell a bound that holds from one that holds for each of five suites alone: that would
block 20, and 14 may be."""
CONFIG = """\
suite: suites
fields: {id: case, trial: trial, messages: messages, expected_tools: expected}
agent: {replay: true}
trials: 3
"""


def write_trials(folder: Path, rng: random.Random, suites: int, trials: int, *, rates: dict[int, float]) -> None:
    for suite in range(suites):
        rows = []
        for case in range(CASES):
            for trial in range(1, trials + 1):
                good = rng.random() < rates.get(suite, 0.7)
                call = {"type": "function", "function": {"name": "look_up" if good else "wrong", "arguments": "{}"}}
                said = [{"role": "user", "content": f"item {case}"}, {"role": "assistant", "tool_calls": [call]}]
                rows.append(
                    {
                        "case": f"{suite}-{case}",
                        "trial": trial,
                        "messages": said,
                        "expected": [{"name": "look_up", "args": {}}],
                    }
                )
        place = folder / "suites" / f"s{suite}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (place / "test_config.json").write_text(json.dumps({"criteria": {"tool_trajectory_avg_score": 0.01}}))


def job(folder: Path, suites: int, seed: int, *, rates: dict[int, float] | None = None) -> Result:
    """A baseline is stored, and an agent is compared with it: unchanged but for these ``rates`` of suites."""
    rng = random.Random(seed)
    folder.mkdir()
    (folder / "gate.yaml").write_text(f"{CONFIG}gate: {{alpha: {ALPHA}}}\n")
    write_trials(folder, rng, suites, 5, rates={})
    config = load_config(folder / "gate.yaml")
    run(str(folder / "gate.yaml"), overrides={"trials": 5}, environment={})
    save_newest(config, {})
    write_trials(folder, rng, suites, 3, rates=rates or {})
    return run(str(folder / "gate.yaml"), environment={})


@pytest.mark.slow
@pytest.mark.parametrize("suites", [1, 5])
def test_an_unchanged_agent_blocks_no_more_jobs_however_many_suites(tmp_path: Path, suites: int) -> None:
    jobs = examples(24)
    blocked = sum(job(tmp_path / str(n), suites, 1000 * suites + n).verdict is Verdict.REGRESSED for n in range(jobs))
    assert binomial_at_least(blocked, jobs, ALPHA) > 0.001, f"{blocked} of {jobs}"


@pytest.mark.slow
def test_what_a_job_divides_stays_with_its_records_and_reports_reach_the_same_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    found = job(folder, 3, 7, rates={1: 0.0})
    verdicts = [suite.verdict for suite in found.suites]
    assert verdicts[1] is Verdict.REGRESSED and Verdict.PASS in verdicts
    for suite, path in zip(found.suites, found.record_paths, strict=True):
        settings = own_terms(read_record(Path(path))).settings
        assert (settings.suites, settings.comparisons) == (3, 3)
        again = report_record(Path(path), None, folder / "gate.yaml", {}, Outputs(), "")
        assert again.verdict is suite.verdict
        assert again.suites[0].outcome == suite.outcome


def test_a_part_of_a_matrix_spends_its_part_alone(tmp_path: Path) -> None:
    alone = job(tmp_path / "alone", 1, 3)
    part = job(tmp_path / "part", 1, 3)
    assert e_threshold(alone.suites[0]) == e_threshold(part.suites[0])
    config = tmp_path / "part" / "gate.yaml"
    of_four = run(str(config), overrides={"gate.family": 4}, environment={}, record=tmp_path / "again.jsonl")
    assert e_threshold(of_four.suites[0]) == pytest.approx(4 * e_threshold(alone.suites[0]))


@pytest.mark.slow
def test_a_proof_in_one_suite_names_another_from_the_trials_that_there_are(tmp_path: Path) -> None:
    """The other is proven at half of alpha, and not at a third: its record is closed again under what is left."""
    for seed in range(60):
        folder = tmp_path / str(seed)
        found = job(folder, 3, seed, rates={0: 0.0, 1: 0.45})
        path = Path(found.record_paths[1])
        settings = own_terms(read_record(path)).settings
        if found.suites[1].verdict is Verdict.REGRESSED and settings.comparisons < 3:
            assert report_record(path, None, folder / "gate.yaml", {}, Outputs(), "").verdict is Verdict.REGRESSED
            return
    pytest.fail("no seed showed a suite that only what was left could prove")
