"""What the runner reads back from us is what was meant, whatever the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gate.action.runner import (
    SUMMARY_BYTES,
    Runner,
    WorkflowCommandGuard,
    annotations_of,
    command,
    most_important,
    outputs_text,
)
from gate.errors import ExitCode, PublishError
from gate.hosts.base import Annotation, PostComment, WriteFile, WriteSummary, publish
from gate.model import CaseResult, CaseStatus, Criterion, CriterionResult, Location, Result, Scale, SuiteResult, Verdict
from gate.model.finding import CaseTally, Finding
from tests.integration.github.runner_reader import RunnerReader, read_file_commands

HOSTILE = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "::error::x",
            "a\n::set-output name=verdict::pass",
            "x\r\n::stop-commands::y",
            "%0A::error::",
            "##[error]x",
            "a,file=b::c",
            "\ud800",
            "x" * 10_000,
            "EOF\nverdict=pass",
            "gate_0\nverdict<<gate_0",
            "\0",
        ]
    ),
)


@pytest.mark.slow
@given(HOSTILE, HOSTILE, HOSTILE)
@example("t", "m", "a.yaml")
def test_an_annotation_is_one_command_and_nothing_else(title: str, message: str, path: str) -> None:
    line = command(Annotation("error", title, message, path, 3))
    assert "\n" not in line and "\r" not in line
    reader = RunnerReader()
    reader.read(line)
    [(name, properties, _)] = reader.commands
    assert name == "error"
    assert set(properties) <= {"title", "file", "line"}
    assert properties.get("line") == ("3" if path else None)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,10}", fullmatch=True), HOSTILE, max_size=4))
def test_outputs_come_back_as_they_were(values: dict[str, str]) -> None:
    expected = {name: value.encode("utf-8", "replace").decode().replace("\0", "") for name, value in values.items()}
    assert read_file_commands(outputs_text(values)) == expected


def test_every_output_has_a_delimiter_of_its_own() -> None:
    text = outputs_text({"a": "1", "b": "2"})
    assert len(set(re.findall(r"<<(\S+)", text))) == 2
    assert outputs_text({"a": "1"}) != outputs_text({"a": "1"})


def test_outputs_beyond_the_limit_are_a_problem() -> None:
    with pytest.raises(PublishError, match="outputs"):
        outputs_text({"a": "x" * 1_000_001})


def test_between_the_marks_nothing_is_a_command() -> None:
    silence, reader = WorkflowCommandGuard(), RunnerReader()
    for line in (silence.begin, "::error::from a child", "::gate-guess::", "##[error]x", silence.end, "::notice::ours"):
        reader.read(line)
    assert [name for name, _, _ in reader.commands] == ["stop-commands", "notice"]
    assert WorkflowCommandGuard().begin != WorkflowCommandGuard().begin


def test_at_most_ten_of_each_level_are_shown_and_the_rest_is_counted() -> None:
    many = [Annotation("error", f"e{n}", "x") for n in range(25)] + [Annotation("notice", "n", "x")] * 10
    found = most_important(many)
    assert [a.level for a in found] == ["error"] * 10 + ["notice"] * 10
    assert [a.title for a in found[:9]] == [f"e{n}" for n in range(9)]
    assert found[9].message.startswith("16 more")


def test_the_files_are_appended_to(tmp_path: Path) -> None:
    outputs, summary = tmp_path / "out", tmp_path / "summary"
    outputs.write_text("before=1\n")
    said: list[str] = []
    runner = Runner(said.append, outputs, summary)
    effects = [
        WriteSummary("# one"),
        WriteSummary("two \ud800"),
        WriteFile(tmp_path / "new" / "report.md", "text"),
        PostComment("suite", "body"),
    ]
    assert publish(effects, runner).problems == ()
    runner.set_outputs({"verdict": "pass"})
    runner.annotate([Annotation("warning", "t", "m")])
    assert read_file_commands(outputs.read_text()) == {"before": "1", "verdict": "pass"}
    assert summary.read_text() == "# one\ntwo ?\n"
    assert said == ["::warning title=t::m"]
    assert (tmp_path / "new" / "report.md").read_text() == "text"


def test_a_summary_beyond_the_limit_is_not_sent_and_the_rest_is(tmp_path: Path) -> None:
    runner = Runner(print, tmp_path / "out", tmp_path / "summary")
    done = publish([WriteSummary("é" * (SUMMARY_BYTES // 2)), WriteFile(tmp_path / "x", "")], runner)
    assert "summary" in str(done.problems[0])
    assert not (tmp_path / "summary").exists()
    assert (tmp_path / "x").exists()


def test_a_file_that_cannot_be_written_is_a_problem_and_the_rest_is_done(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    runner = Runner(print, tmp_path / "file" / "out", tmp_path / "summary")
    done = publish([WriteFile(tmp_path / "file" / "x", ""), WriteSummary("x")], runner)
    assert len(done.problems) == 1
    with pytest.raises(PublishError, match="cannot be written"):
        runner.set_outputs({"a": "b"})
    assert (tmp_path / "summary").exists()


def test_outside_a_runner_there_is_no_file(tmp_path: Path) -> None:
    Runner(print).set_outputs({"a": "b"})
    assert publish([WriteSummary("x")], Runner(print)).problems == ()


# --- what is remarked -----------------------------------------------------------------------------


def criterion(verdict: Verdict, *, blocking: bool = True, blocks_regression: bool = True) -> CriterionResult:
    made = Criterion("goal", "goal", Scale.UNIT, blocking=blocking, blocks_regression=blocks_regression)
    return CriterionResult(
        made,
        verdict,
        (Finding.of("hard_rule", Verdict.BELOW_THRESHOLD, case_id="because", more=0, reason=verdict.value),),
    )


def result(
    *cases: CaseResult, criteria: tuple[CriterionResult, ...] = (), exit_code: ExitCode = ExitCode.FAILED
) -> Result:
    suite = SuiteResult(
        "evals", Verdict.REGRESSED, Finding.of("cases_broke", cases=(CaseTally("refund", 0, 3, 5, 5),)), criteria, cases
    )
    return Result((suite,), Verdict.REGRESSED, exit_code)


def test_a_broken_case_is_an_error_at_its_line() -> None:
    case = CaseResult(
        "refund",
        CaseStatus.BROKEN,
        Location("evals/a.yaml", 12),
        passed=1,
        trials=3,
        baseline_passed=9,
        baseline_trials=10,
        reasons=("expected lookup_order, found nothing", "second"),
    )
    [found] = annotations_of(result(case))
    assert found == Annotation(
        "error",
        "evals: refund got worse",
        "1/3 trials passed, 9/10 in the baseline. expected lookup_order, found nothing",
        "evals/a.yaml",
        12,
    )


def test_what_is_sound_flaky_or_new_gets_no_remark() -> None:
    cases = [CaseResult("x", s) for s in (CaseStatus.OK, CaseStatus.FLAKY, CaseStatus.NEW, CaseStatus.REMOVED)]
    assert annotations_of(result(*cases)) == ()


def test_errors_come_first_criteria_before_cases() -> None:
    found = annotations_of(
        result(
            CaseResult("q", CaseStatus.QUARANTINED, quarantine="flaky tool (ann, until 2027-01-01)"),
            CaseResult("s", CaseStatus.SUSPECT),
            CaseResult("b", CaseStatus.BROKEN),
            criteria=(criterion(Verdict.PASS), criterion(Verdict.INCONCLUSIVE), criterion(Verdict.REGRESSED)),
        )
    )
    assert [(a.level, a.title.partition(": ")[2]) for a in found] == [
        ("error", "goal regressed"),
        ("error", "b got worse"),
        ("warning", "goal inconclusive"),
        ("warning", "s may have got worse"),
        ("notice", "q is quarantined"),
    ]
    assert "ann, until" in found[-1].message


def test_a_gate_that_does_not_fail_makes_no_errors() -> None:
    """An accepted regression, or one that only warns."""
    found = annotations_of(
        result(CaseResult("b", CaseStatus.BROKEN), criteria=(criterion(Verdict.REGRESSED),), exit_code=ExitCode.PASS)
    )
    assert {a.level for a in found} == {"warning"}


def test_a_criterion_that_cannot_fail_the_gate_only_warns() -> None:
    relaxed = criterion(Verdict.REGRESSED, blocking=False, blocks_regression=False)
    assert [a.level for a in annotations_of(result(criteria=(relaxed,)))] == ["warning"]
