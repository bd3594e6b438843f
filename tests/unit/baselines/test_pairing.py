"""What of a baseline may be compared, and what the settings of a configuration come to."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.baselines.pairing import excuses, match_cases, pair
from gate.baselines.reference import Reference
from gate.config.load import load_config
from gate.config.settings import settings_of
from gate.decision import Settings
from gate.decision.comparison import Incomparable
from gate.decision.own_models import own_models_of
from gate.errors import ConfigError
from gate.model import BaselineInfo, Criterion, Scale, Score, Side, Trial
from gate.records import Header, PlannedCase, Record, Run
from gate.reports.files import Outputs, check_outputs

CRITERION = Criterion("ok", "contains", Scale.BINARY, threshold=1.0, pass_threshold=1.0, fingerprint="f")
PLAN = tuple(PlannedCase(f"c{n}", f"content {n}") for n in range(20))


def record(
    value: float = 1.0, *, plan: tuple[PlannedCase, ...] = PLAN, fingerprint: str = "f", trials: int = 3
) -> Record:
    made = tuple(Trial(case.id, n, round=n, scores={"ok": Score(value)}) for case in plan for n in range(1, trials + 1))
    return Record(Header("s", plan, (replace(CRITERION, fingerprint=fingerprint),)), made, None)


def against(*records: Record) -> Reference:
    return Reference(BaselineInfo("abc"), records)


def test_everything_is_comparable_with_an_equal_record() -> None:
    found = pair(PLAN, [CRITERION], against(record()))
    assert not found.not_comparable
    assert len(found.stored) == 60


@pytest.mark.parametrize(
    ("commit", "provenance", "expected"),
    [("b" * 40, "", True), ("b" * 40, "proven", True), ("b" * 40, "unproven", False), ("a" * 40, "", False)],
)
def test_the_bases_own_record_alone_excuses_a_missed_threshold(commit: str, provenance: str, expected: bool) -> None:
    """Whoever names the record: the run, or `gate compare` without a repository."""
    of_base = replace(against(record()), info=BaselineInfo(commit, provenance=provenance))
    header = replace(record().header, base_commit="b" * 40)
    assert excuses(of_base, header) is expected
    assert not excuses(replace(of_base, records=()), header)


def test_an_edited_case_is_not_compared() -> None:
    edited = (replace(PLAN[0], fingerprint="other"), *PLAN[1:])
    found = pair(edited, [CRITERION], against(record()))
    assert found.not_comparable == {("c0", "ok"): Incomparable.EDITED}


def test_a_changed_option_makes_the_criterion_incomparable_for_every_case() -> None:
    found = pair(PLAN, [CRITERION], against(record(fingerprint="other")))
    assert len(found.not_comparable) == 20
    assert set(found.not_comparable.values()) == {Incomparable.CHANGED}


def played_by(name: str) -> Record:
    made = record()
    return replace(made, trials=tuple(replace(trial, users=(("player", name),)) for trial in made.trials))


@pytest.mark.parametrize("name", ["player-1", "player-2"])
def test_a_simulated_user_under_the_same_name_is_another_model_like_a_judge(name: str) -> None:
    models = own_models_of(played_by(name).trials)
    found = pair(PLAN, [CRITERION], against(played_by("player-1"), played_by("player-2")), models=models)
    other = {(case.id, "ok"): Incomparable.OTHER_MODEL for case in PLAN}
    assert found.not_comparable == ({} if name == "player-1" else other)
    assert {asked for trial in found.stored for asked in trial.users} == {("player", "player-1")} | (
        {("player", "player-2")} if name == "player-2" else set()
    )


@pytest.mark.parametrize(("cases", "compared"), [(20, 60), (19, 0)], ids=["of every case", "of some cases"])
def test_runs_that_were_measured_since_a_name_moved_are_the_baseline(cases: int, compared: int) -> None:
    """The record of a commit holds runs from before and after."""
    earlier, later = played_by("player-1").trials, record(plan=PLAN[:cases]).trials
    later = tuple(replace(trial, users=(("player", "player-2"),)) for trial in later)
    runs = (Run("before", 1.0, len(earlier)), Run("after", 2.0, len(later)))
    both = replace(record(), trials=(*earlier, *later), header=replace(record().header, runs=runs))
    found = pair(PLAN, [CRITERION], against(both), models={"ok": {("player", "player-2")}})
    assert bool(found.not_comparable) == (not compared)
    if compared:
        assert (len(found.stored), {trial.run for trial in found.stored}) == (compared, {"after"})


def test_of_a_pooled_record_only_what_fits_is_taken() -> None:
    edited = (replace(PLAN[0], fingerprint="other"), *PLAN[1:])
    found = pair(PLAN, [CRITERION], against(record(), record(plan=edited), record(fingerprint="other")))
    assert len(found.stored) == 60 + 57
    assert not found.not_comparable


def test_the_runs_of_a_changes_reference_come_by_age_and_of_the_anchor_age_is_no_matter() -> None:
    records = [
        replace(made, header=replace(made.header, run_id=name, created=created))
        for made, name, created in ((record(), "merge", 2.0), (record(), "first", 1.0), (record(), "night", 3.0))
    ]
    reference = replace(against(*records), of_change=True)
    found = pair(PLAN, [CRITERION], reference)
    assert found.stored_runs == ("first", "merge", "night")
    assert {trial.run for trial in found.stored} == set(found.stored_runs)
    assert pair(PLAN, [CRITERION], replace(reference, of_change=False)).stored_runs == ()


def test_trials_that_a_stored_run_made_of_its_own_baseline_are_not_its_agents() -> None:
    stored = record()
    mixed = replace(stored, trials=(*stored.trials, replace(stored.trials[0], side=Side.BASELINE)))
    assert len(pair(PLAN, [CRITERION], against(mixed)).stored) == 60


def test_cases_are_paired_by_content_under_any_id() -> None:
    swapped = (replace(PLAN[0], id="c1"), replace(PLAN[1], id="c0"), *PLAN[2:])
    found = pair(swapped, [CRITERION], against(record()))
    assert (len(found.stored), found.not_comparable) == (60, {})
    assert found.renamed == {"c1": "c0", "c0": "c1"}


def test_of_equal_contents_the_order_of_the_files_decides() -> None:
    twins = tuple(PlannedCase(f"old {n}", "same") for n in range(3))
    now = (PlannedCase("old 1", "same"), PlannedCase("x", "same"), PlannedCase("y", "same"))
    match = match_cases(now, twins)
    assert match.ids == {"old 1": "old 1", "old 0": "x", "old 2": "y"}


def test_a_case_whose_id_went_to_another_keeps_an_id_of_its_own() -> None:
    now = (replace(PLAN[1], id="c0"), *PLAN[2:])
    found = pair(now, [CRITERION], against(record()))
    assert found.renamed == {"c0": "c1"}
    assert {t.case_id for t in found.stored} - {case.id for case in now} == {"c0 (at the baseline)"}


contents = st.lists(st.sampled_from("abcd"), max_size=6)


@given(contents, contents, st.randoms())
def test_every_case_is_paired_with_at_most_one_of_the_same_content(
    now: list[str], then: list[str], luck: Random
) -> None:
    names = [f"case {n}" for n in range(8)]
    plan = [PlannedCase(name, content) for name, content in zip(luck.sample(names, len(now)), now, strict=True)]
    stored = [PlannedCase(name, content) for name, content in zip(luck.sample(names, len(then)), then, strict=True)]
    match, by_id = match_cases(plan, stored), {case.id: case.fingerprint for case in plan}
    assert set(match.ids) == {case.id for case in stored}
    assert len(set(match.ids.values())) == len(stored)
    for case in stored:
        assert (by_id.get(match.ids[case.id]) == case.fingerprint) == (case.id in match.same)
    assert Counter(by_id[match.ids[name]] for name in match.same) == Counter(now) & Counter(then)
    assert not match.edited & set(match.same)


def configured(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "gate.yaml"
    path.write_text("suite: x\nagent: {python: 'a:b'}\n" + text)
    return settings_of(load_config(path), datetime(2026, 6, 1, tzinfo=UTC))


def test_trials_come_to_passes(tmp_path: Path) -> None:
    assert (configured(tmp_path, "").max_epochs, configured(tmp_path, "").exact_epochs) == (3, None)
    assert configured(tmp_path, "trials: {max: 7}\n").max_epochs == 7
    assert configured(tmp_path, "trials: 5\n").exact_epochs == 5


def test_quarantine_ends_on_its_date(tmp_path: Path) -> None:
    entry = "quarantine: [{{case: a, owner: me, reason: broken upstream, expires: {0}}}]\n"
    assert "broken upstream" in configured(tmp_path, entry.format("2026-06-01")).quarantine["a"]
    assert not configured(tmp_path, entry.format("2026-05-31")).quarantine


def test_a_report_that_cannot_be_written_is_refused_early(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="junit"):
        check_outputs(Outputs({"junit": tmp_path / "file" / "report.xml"}))
