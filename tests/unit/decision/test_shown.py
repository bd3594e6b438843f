"""What a result tells a reader beyond its verdict: answers, causes, and what passes without being good."""

from __future__ import annotations

from msgspec.structs import replace

from gate.decision import Settings
from gate.decision.cases import MAX_TEXT_CHARS
from gate.model import Case, ErrorKind, Invocation, Part, SuiteResult, ToolCall, Trial, TrialError, Turn, Verdict

from .records import LATENCY, RESPONSE, TRAJECTORY, by_name, cases, judge, once, reason, stored, trial

SUITE = cases(12)
MATCH = replace(RESPONSE, threshold=0.9)
ASKED = Case("asked", (Turn("Paris?", response=(Part("It is sunny in Paris."),)), Turn("Thanks")))


def said(number: int, response: float, *texts: str, trajectory: float = 1.0) -> Trial:
    turns = tuple(Invocation(response=(Part("hm", thought=True), Part(text)) if text else ()) for text in texts)
    return replace(trial("asked", number, response=response, trajectory=trajectory), invocations=turns)


def texts(result: SuiteResult) -> tuple[tuple[str | None, ...], tuple[str | None, ...]]:
    return result.cases[0].expected_text, result.cases[0].actual_text


def test_a_failing_answer_is_kept_of_the_worst_trial() -> None:
    trials = [said(1, 0.5, "Sunny.", "Bye."), said(2, 0.0, "No idea.", ""), said(3, 1.0, "It is sunny in Paris.", "")]
    assert texts(judge([ASKED], [MATCH], trials)) == (("It is sunny in Paris.", None), ("No idea.", None))
    assert texts(judge([ASKED], [MATCH], trials[2:])) == ((), ())


def test_an_answer_is_kept_only_where_it_explains_the_failure() -> None:
    calls = replace(TRAJECTORY, threshold=1.0, reads_tools=True)
    called = said(1, 1.0, "It is.", trajectory=0.0)
    called = replace(called, invocations=tuple(replace(turn, reports_calls=True) for turn in called.invocations))
    assert texts(judge([ASKED], [calls, MATCH], [called])) == ((), ())
    slow = replace(LATENCY, limit=1.0)
    trials = [
        replace(t, scores={**t.scores, "latency": replace(t.scores["response"], value=9.0)})
        for t in [said(1, 1.0, "It is.")]
    ]
    assert texts(judge([ASKED], [slow, MATCH], trials)) == ((), ())


def test_without_what_was_expected_or_said_there_is_nothing_to_show() -> None:
    bare = replace(ASKED, turns=(Turn("", (ToolCall("lookup"),)),))
    assert texts(judge([bare], [MATCH], [said(1, 0.0, "No idea.")])) == ((), ("No idea.",))
    assert texts(judge([bare], [MATCH], [said(1, 0.0, "")])) == ((), ())


def test_long_answers_are_bounded() -> None:
    long = replace(ASKED, turns=(Turn("", response=(Part("a" * 9_000),)),))
    expected, actual = texts(judge([long], [MATCH], [said(1, 0.0, "b" * 9_000)]))
    assert [len(text or "") for text in (*expected, *actual)] == [MAX_TEXT_CHARS] * 2


def test_no_criterion_passes_without_a_measured_trial() -> None:
    down = [Trial(c.id, 1, error=TrialError(ErrorKind.UNREACHABLE, "refused")) for c in SUITE]
    for before in ((), stored(SUITE, trajectory=1.0, response=1.0)):
        result = judge(SUITE, [TRAJECTORY, replace(RESPONSE, blocking=False)], down, before)
        assert result.verdict is Verdict.ERROR
        assert Verdict.PASS not in by_name(result).values()
    assert reason(judge(SUITE, [TRAJECTORY], down), "trajectory") == "no trial was measured"


def test_the_headline_names_the_criterion_that_was_not_measured() -> None:
    result = judge(SUITE, [replace(TRAJECTORY, threshold=0.5)], once(SUITE, trajectory="judge is down"))
    assert result.verdict is Verdict.NOT_MEASURED
    assert result.headline.startswith("trajectory could not be measured")


def test_the_headline_of_an_error_says_what_happened_most_often() -> None:
    errors = ["connection\nrefused " + "x" * 500] * 8 + ["reset"] * 4
    trials = [
        Trial(c.id, 1, error=TrialError(ErrorKind.UNREACHABLE, text)) for c, text in zip(SUITE, errors, strict=True)
    ]
    result = judge(SUITE, [TRAJECTORY], trials)
    head, _, often = result.headline.partition("; most often: ")
    assert head == "could not measure: 100% of the trials ended in infrastructure errors; at most 10% may"
    shown = often.removesuffix("; no baseline yet")
    assert shown.startswith("unreachable: connection refused xxx")
    assert (len(shown), shown[-1]) == (120, "…")
    silent = judge(SUITE, [TRAJECTORY], [*trials[11:], *once(SUITE[:11], trajectory=1.0)])
    assert silent.headline.endswith("could be measured: case-11; most often: unreachable: reset")


def test_what_only_the_baseline_excuses_is_a_warning() -> None:
    before, now = stored(SUITE, response=0.0), once(SUITE, response=0.0)
    result = judge(SUITE, [MATCH], now, before)
    assert result.verdict is Verdict.PASS
    assert result.warnings[0] == (
        "response: 0 is below 0.9, as the baseline was (0): it does not block (`ratchet: false` would)"
    )
    better = judge(SUITE, [MATCH], once(SUITE, response=0.95), before)
    assert not any("ratchet" in warning for warning in better.warnings)
    informs = judge(SUITE, [replace(MATCH, blocking=False)], now, before)
    assert not any("ratchet" in warning for warning in informs.warnings)


def test_a_limit_that_the_baseline_broke_is_a_warning_too() -> None:
    slow = replace(LATENCY, limit=1.0)
    result = judge(SUITE, [slow], once(SUITE, latency=2.0), stored(SUITE, latency=2.0))
    assert result.verdict is Verdict.PASS
    assert result.warnings[0].endswith(
        "reached 2 s, limit 1 s, as the baseline was above it too: it does not block (`ratchet: false` would)"
    )


def test_changes_have_a_minus_sign_and_one_case_is_no_plural() -> None:
    down = once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[:8]}, trajectory=1.0)
    result = judge(SUITE, [TRAJECTORY], down, stored(SUITE, trajectory=1.0), settings=Settings())
    assert "−66.7 points (" in reason(result, "pass rate")
    assert "-" not in reason(result, "pass rate").split("broken")[0]
    one = judge(SUITE[:1], [MATCH], [trial("case-00", response=0.5)])
    assert "over 1 case, threshold 0.9" in reason(one, "response")
    assert "1 trials" not in reason(one, "response")
