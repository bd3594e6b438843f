"""The one path from a record to a result: terms, several references, gaps, and what is kept of a trial."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec
import pytest
from msgspec.structs import replace

from gate.baselines.reference import Reference, reference_to
from gate.decision import Settings, exit_code
from gate.errors import ExitCode, MeasureError
from gate.model import (
    BaselineInfo,
    Criterion,
    Invocation,
    Scale,
    Score,
    SuiteResult,
    ToolCall,
    Trial,
    Verdict,
    accepted_by,
)
from gate.model.finding import Finding
from gate.pipeline.terms import Demands, Terms, own_terms, with_run_of
from gate.pipeline.verdict import judge_record, left_out_by, result_of
from gate.records import Footer, Header, PlannedCase, Record
from gate.reports import load_report
from gate.reports.trajectory_diff import trajectory_diff
from gate.suites import Selection

CRITERION = Criterion("ok", "contains", Scale.BINARY, threshold=1.0, pass_threshold=1.0, fingerprint="f")
PLAN = tuple(PlannedCase(f"c{n}", f"content {n}") for n in range(20))


def record(value: float = 1.0, *, plan: tuple[PlannedCase, ...] = PLAN, trials: int = 3) -> Record:
    made = tuple(Trial(case.id, n, round=n, scores={"ok": Score(value)}) for case in plan for n in range(1, trials + 1))
    return Record(Header("s", plan, (CRITERION,)), made, None)


def against(*records: Record, name: str = "baseline", commit: str = "abc") -> Reference:
    return Reference(BaselineInfo(commit), records, name)


def judged(candidate: Record, *baseline: Record, terms: Terms | None = None) -> SuiteResult:
    return judge_record(candidate, [against(*baseline)], terms or own_terms(candidate))


@pytest.mark.slow
def test_an_equal_record_passes_and_a_broken_one_is_regressed() -> None:
    assert judged(record(), record()).verdict is Verdict.PASS
    broken = judged(record(0.0), record())
    assert broken.verdict is Verdict.REGRESSED
    assert result_of([broken], Settings(), command="").exit_code is ExitCode.FAILED


def test_what_would_have_saved_runs_is_said_only_beside_a_pass_without_any_loss() -> None:
    def noted(candidate: Record) -> tuple[Verdict, bool]:
        found = judged(candidate, record(), terms=replace(own_terms(candidate), saving="free"))
        return found.verdict, any(one.data.get("text") == "free" for one in found.warnings)

    assert noted(record()) == (Verdict.PASS, True)
    assert noted(record(0.0)) == (Verdict.REGRESSED, False)
    lost = record()
    lost = replace(lost, header=replace(lost.header, criteria=(replace(CRITERION, threshold=0.5),)))
    worse = replace(lost.trials[0], scores={"ok": Score(0.0)})
    assert noted(replace(lost, trials=(worse, *lost.trials[1:]))) == (Verdict.PASS, False)


def test_a_regression_is_not_hidden_by_the_edit_of_another_case() -> None:
    edited = (replace(PLAN[0], fingerprint="other"), *PLAN[1:])
    assert judged(record(0.0, plan=edited), record()).verdict is Verdict.REGRESSED


def test_a_rename_is_no_escape() -> None:
    renamed = tuple(replace(case, id=f"new {case.id}") if n < 5 else case for n, case in enumerate(PLAN))
    found = judged(record(plan=renamed), record())
    assert found.verdict is Verdict.PASS
    assert found.changes[0]["how"] == "renamed"
    assert (found.changes[0]["before"][0], found.changes[0]["cases"][0]) == ("c0", "new c0")
    broken = record(plan=renamed)
    trials = tuple(replace(t, scores={"ok": Score(0.0)}) if "new" in t.case_id else t for t in broken.trials)
    assert judged(replace(broken, trials=trials), record()).verdict is Verdict.REGRESSED


def test_scores_by_other_options_than_demanded_are_not_measured() -> None:
    """A baseline that was scored again shows nothing about a record that was not."""
    other = Terms((replace(CRITERION, fingerprint="g"),))
    again = record()
    again = replace(again, header=replace(again.header, criteria=other.criteria))
    for references in ([], [against(again)]):
        found = judge_record(record(), references, other)
        assert (found.verdict, found.cause["criteria"]) == (Verdict.ERROR, ("ok",))


def test_a_removed_criterion_is_owed() -> None:
    other = replace(CRITERION, name="tone")
    base = record()
    scored = tuple(replace(t, scores={**t.scores, "tone": Score(1.0)}) for t in base.trials)
    base = Record(replace(base.header, criteria=(CRITERION, other)), scored, None)
    found = judged(record(), base)
    assert (found.verdict, found.cause) == (
        Verdict.NOT_COMPARED,
        Finding.of("incomplete", gaps=(Finding.of("not_compared", criterion="tone", why="removed"),)),
    )
    assert found.criteria[-1].not_compared == Finding.of("not_compared", criterion="tone", why="removed")
    advisory = replace(base, header=replace(base.header, criteria=(CRITERION, replace(other, blocking=False))))
    assert judged(record(), advisory).verdict is Verdict.PASS


def test_one_case_that_was_edited_away_leaves_nothing_compared() -> None:
    plan = (PlannedCase("only", "before"),)
    found = judged(record(plan=(replace(plan[0], fingerprint="after"),)), record(plan=plan))
    assert (found.verdict, found.cause) == (
        Verdict.NOT_COMPARED,
        Finding.of("incomplete", gaps=(Finding.of("cases_changed", Verdict.NOT_COMPARED, how="all", of=1, edited=1),)),
    )


def test_a_case_that_lost_its_tag_is_still_owed_by_a_selection_of_the_tag() -> None:
    stored = [PlannedCase(name, name, tags=("smoke",) if name != "c" else ()) for name in "abc"]
    base = reference_to([record(plan=tuple(stored))])
    now = (PlannedCase("a", "a", tags=("smoke",)),)
    smoke = Selection(tags=["smoke"])
    assert left_out_by(smoke, {"b", "c"}, now, base) == {"c"}
    assert left_out_by(Selection(ids=["a"]), {"b", "c"}, now, base) == {"b", "c"}
    by_metadata = Selection(tags=["smoke"], metadata={"team": ["billing"]})
    assert left_out_by(by_metadata, {"b", "c"}, now, base) == {"b", "c"}, "of which nothing is stored"
    assert left_out_by(None, {"b"}, now, base) == {"b"}


def test_no_suite_is_never_green() -> None:
    assert result_of([], Settings(), command="").exit_code is ExitCode.NOT_MEASURED


TERMS = Terms(
    (CRITERION,),
    Settings(alpha=0.05, quarantine={"c1": "me"}, exact_epochs=3),
    thresholds={"c2": {"ok": 0.5}},
    deselected=frozenset({"x", "y"}),
    notes=("a note", Finding.of("measured_before", verdicts=(Verdict.PASS,), total=1, fingerprinted=True)),
    changes=("a change",),
    doubts=("a gap",),
    saving="a note",
    scheduled=True,
    command="gate run",
)


def test_terms_come_back_from_the_record_that_keeps_them() -> None:
    plain = msgspec.json.decode(msgspec.json.encode(TERMS.plain()))
    kept = replace(record(), footer=Footer(60, 0, 3, terms=plain))
    assert own_terms(kept) == TERMS
    assert own_terms(record(), Settings(alpha=0.01)) == Terms((CRITERION,), Settings(alpha=0.01))


def test_terms_that_cannot_be_read_are_refused_in_one_line() -> None:
    with pytest.raises(MeasureError, match="terms cannot be read"):
        own_terms(replace(record(), footer=Footer(60, 0, 3, terms={"criteria": 5})))


def test_terms_are_read_by_the_keys_that_format_2_was_first_written_with() -> None:
    """Under other keys a bar, a design or what blocks would be left out of records that exist, and a verdict differ."""
    criterion = {"name": "ok", "metric": "contains", "scale": "binary", "pass_mark": 1.0, "gate_regression": False}
    settings = {"max_passes": 7, "exact_passes": 5}
    terms = own_terms(replace(record(), footer=Footer(60, 0, 3, terms={"criteria": [criterion], "settings": settings})))
    assert (terms.criteria[0].pass_threshold, terms.criteria[0].blocks_regression) == (1.0, False)
    assert (terms.settings.max_epochs, terms.settings.exact_epochs) == (7, 5)
    written = Terms(terms.criteria, terms.settings).plain()
    assert criterion.items() <= written["criteria"][0].items()
    assert settings.items() <= written["settings"].items()


def test_a_record_keeps_its_terms_under_one_level_of_keys() -> None:
    """As format 2 was first written."""
    plain = TERMS.plain()
    assert (plain["scheduled"], plain["command"]) == (True, "gate run")
    assert "design" not in plain
    with pytest.raises(MeasureError, match="design"):
        own_terms(replace(record(), footer=Footer(60, 0, 3, terms={**plain, "design": {"whole": True}})))


@pytest.mark.parametrize("where", ["", "settings", "criteria", "base"])
def test_a_key_of_terms_that_is_not_known_is_refused(where: str) -> None:
    terms = replace(TERMS, base=Demands((CRITERION,))).plain()
    held = {"": terms, "settings": terms["settings"], "criteria": terms["criteria"][0], "base": terms["base"]}[where]
    held["new_bar"] = 1.0
    with pytest.raises(MeasureError, match=r"terms cannot be read: .*new_bar"):
        own_terms(replace(record(), footer=Footer(60, 0, 3, terms=terms)))


def test_a_configuration_judges_and_the_record_tells_how_it_was_made() -> None:
    kept = replace(record(), footer=Footer(60, 0, 3, terms=TERMS.plain()))
    told = with_run_of(kept, Terms((CRITERION,), Settings(alpha=0.01), notes=("another", "a note")))
    assert (told.settings.alpha, told.settings.exact_epochs, told.settings.quarantine) == (0.01, 3, {})
    assert (told.notes, told.scheduled, told.command) == ((*TERMS.notes, "another"), True, "gate run")
    assert (told.changes, told.doubts) == ((), ())


def test_every_report_shows_what_does_not_hold_yet_and_how_the_record_came_about() -> None:
    found = judged(record(), record(), terms=Terms((CRITERION,), changes=("two",), notes=("a note",)))
    assert found.changes == (Finding.of("stated", text="two"),)
    assert Finding.of("stated", text="a note") in found.warnings


@pytest.mark.slow
def test_what_the_base_holds_besides_and_was_not_compared_is_a_gap_and_hides_nothing_worse() -> None:
    terms = Terms((CRITERION,), doubts=("gone",))
    gap, regressed = judged(record(), record(), terms=terms), judged(record(0.0), record(), terms=terms)
    assert (gap.verdict, gap.cause) == (
        Verdict.NOT_COMPARED,
        Finding.of("incomplete", gaps=(Finding.of("stated", text="gone"),)),
    )
    assert (regressed.verdict, regressed.cause) == (Verdict.REGRESSED, judged(record(0.0), record()).cause)
    assert exit_code([gap], Settings()) is ExitCode.FAILED
    assert exit_code([accepted_by(gap, "wendy")], Settings(on_inconclusive="block")) is ExitCode.PASS


@pytest.mark.slow
def test_against_several_references_the_worst_verdict_stands_and_all_are_shown() -> None:
    lenient = replace(CRITERION, threshold=None)
    terms, now = Terms((lenient,)), record(0.0)
    base, anchor = against(record(0.0)), against(record(), name="anchor")
    assert judge_record(now, [base], terms).verdict is Verdict.PASS
    both = judge_record(now, [base, anchor], terms)
    assert (both.verdict, both.decided_by) == (Verdict.REGRESSED, "anchor")
    assert [suite.verdict for suite in both.further] == [Verdict.REGRESSED]
    assert result_of([both], Settings(), command="").exit_code is ExitCode.FAILED
    swapped = judge_record(now, [replace(anchor, name="baseline"), replace(base, name="anchor")], terms)
    assert (swapped.verdict, [s.verdict for s in swapped.further]) == (Verdict.REGRESSED, [Verdict.PASS])
    assert not swapped.decided_by


def test_reports_say_which_reference_the_verdict_is_from() -> None:
    """The commit beside the headline, the change in the lead and the failures in JUnit are the anchor's."""
    lenient = replace(CRITERION, threshold=None)
    base, anchor = against(record(0.0), commit="b" * 40), against(record(), name="anchor", commit="a" * 40)
    both = judge_record(record(0.0), [base, anchor], Terms((lenient,)))
    assert (both.decided_by, both.further[0].reference) == ("anchor", "anchor")
    result = result_of([both], Settings(), command="")
    lines = load_report("markdown")(result).splitlines()
    assert "long-term baseline" in lines[0]
    assert "`aaaaaaa`" in lines[-1]
    assert "bbbbbbb" not in lines[-1]
    tests = ElementTree.fromstring(load_report("junit")(result).encode()).iter("testcase")
    failed = {test.get("classname") for test in tests if test.find("failure") is not None}
    assert {"s", "s.anchor", "s.anchor.criteria"} <= failed


def test_a_call_of_the_expected_category_is_no_difference() -> None:
    wanted = (ToolCall("lookup"), ToolCall("", category="notification"))
    made = (ToolCall("lookup"), ToolCall("send_email", {"to": "a"}), ToolCall("send_email", {"to": "b"}))
    plan = (replace(PLAN[0], expected=(wanted,)),)
    trial = Trial("c0", 1, invocations=(Invocation(tool_calls=made),), scores={"ok": Score(0.0)})
    failing = replace(record(plan=plan), trials=(trial,))
    terms = Terms((CRITERION,), categories={"notification": frozenset({"send_email"})})
    for given, missing in ((terms, 0), (Terms((CRITERION,)), 1)):
        [turn] = trajectory_diff(judge_record(failing, [], given).cases[0])
        assert sum(mark == "-" for mark, _ in turn.lines) == missing
        assert [text for mark, text in turn.lines if mark == "+"][-1] == 'send_email(to="b")'


def test_a_record_without_trials_is_not_judged() -> None:
    with pytest.raises(MeasureError, match="no trials"):
        judged(replace(record(), trials=()), record())
