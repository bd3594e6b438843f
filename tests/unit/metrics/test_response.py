from hypothesis import given
from hypothesis import strategies as st

from gate.metrics.base import TrialOutput
from gate.metrics.rouge import MAX_MARKS, _Stems, rouge_1, rouge_1_sets, tokens
from gate.model import Case, Invocation, Part, Turn
from tests.unit.metrics.build import metric, said_score


def test_tokens_are_cut_where_google_adk_cuts() -> None:
    for text, expected in [
        ("The cats, running!", ["the", "cat", "run"]),
        ("it's e-mail x_y", ["it", "s", "e", "mail", "x", "y"]),
        ("flies dies", ["fli", "die"]),
        ("❤️", ["\ufe0f"]),
        ("カ・タ", ["カ", "・", "タ"]),
        ("฿100", ["฿100"]),
        ("สวัสดีhello", ["ส", "วั", "ส", "ดีhello"]),
        ("人々", ["人", "々"]),
        ("㐀㐁", ["㐀㐁"]),
        ("한국어", ["한", "국", "어"]),
        ("ｆｌｉｅｓ", ["fli"]),
        ("cafés running", ["cafés", "run"]),
        ("наблюдения", ["наблюдения"]),
        ("a\ufe0fb", ["a\ufe0fb"]),
        ("", []),
    ]:
        assert tokens(text) == expected, (text, expected)


def test_words_count_with_repetition() -> None:
    precision, recall, f = rouge_1("a a b", "a b b c")
    assert (precision, recall) == (2 / 3, 2 / 4)
    assert f == 2 * (2 / 3) * 0.5 / ((2 / 3) + 0.5)


def test_without_words_on_a_side_it_is_zero() -> None:
    assert rouge_1("", "a")[2] == rouge_1("...", "a")[2] == rouge_1("", "")[2] == 0.0


def test_adk_ts_compares_sets_of_unstemmed_ascii_words() -> None:
    assert rouge_1_sets("a a b", "a b b c") == (1.0, 2 / 3, 0.8)
    assert rouge_1_sets("flying", "flies")[2] == 0.0
    assert rouge_1_sets("x_y 中文", "x_y")[2] == 1.0


texts = st.text(max_size=60)


@given(texts, texts)
def test_f_is_symmetric_and_between_zero_and_one(one: str, other: str) -> None:
    assert rouge_1(one, other)[2] == rouge_1(other, one)[2]
    assert 0.0 <= rouge_1(one, other)[2] <= 1.0


@given(texts)
def test_a_text_equals_itself_unless_it_has_no_words(text: str) -> None:
    assert rouge_1(text, text)[2] == (1.0 if tokens(text) else 0.0)


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=80))
def test_the_ascii_path_and_the_unicode_path_agree(text: str) -> None:
    assert tokens(text) == [token for token in tokens(text + " é") if token != "é"]


def test_the_stems_kept_are_bounded() -> None:
    stems = _Stems()
    assert [stems["x" * 100], stems["flying"]] == ["x" * 100, "fli"]
    assert list(stems) == ["flying"]


def test_a_text_made_to_hang_normalisation_is_refused_before_it() -> None:
    score = said_score("response_match_score", ["a" + "\u0301\u0316" * 400_000], ["a"])
    assert score.value is None
    assert "combining marks" in (score.error or "")
    assert said_score("response_match_score", ["a" + "\u0301" * (MAX_MARKS // 2)], ["a"]).value is not None


def test_the_score_is_the_mean_over_turns() -> None:
    score = said_score("response_match_score", ["yes sir", "no"], ["yes sir", "yes"])
    assert (score.value, score.per_turn) == (0.5, (1.0, 0.0))
    assert "turn 2: 0% of the expected words were said" in score.reason


def test_a_word_of_many_that_is_missing_leaves_no_whole() -> None:
    words = [f"w{n}" for n in range(300)]
    score = said_score("response_match_score", [" ".join(words[1:])], [" ".join(words)])
    assert "99% of the expected words were said, 100% of the said words were expected" in score.reason


def test_turns_without_an_expected_answer_are_left_out() -> None:
    score = said_score("response_match_score", ["yes", "whatever"], ["yes", None])
    assert (score.value, score.per_turn) == (1.0, (1.0, None))


def test_a_case_without_expected_answers_does_not_apply() -> None:
    score = said_score("response_match_score", ["yes"], [None])
    assert (score.value, score.error) == (None, None)


def test_an_expected_answer_that_is_empty_scores_zero() -> None:
    assert said_score("response_match_score", ["yes"], [""]).value == 0.0


def test_turns_that_were_not_played_are_an_error_and_not_cut_off() -> None:
    case = Case("c", (Turn("a", response=(Part("x"),)), Turn("b", response=(Part("x"),))))
    score = metric("response_match_score").score(case, TrialOutput((Invocation("a", (Part("x"),)),)))
    assert score.value is None
    assert "turns: 2 in the case" in (score.error or "")
    assert metric("response_match_score").score(Case("c", ()), TrialOutput(())).error == "the case has no turns"


def test_thoughts_count_unless_left_out() -> None:
    case = Case("c", (Turn("q", response=(Part("four"),)),))
    performance = TrialOutput((Invocation("q", (Part("two and two", thought=True), Part("four"))),))
    assert metric("response_match_score").score(case, performance).value == 2 * 0.25 / 1.25
    assert metric("response_match_score", thoughts="exclude").score(case, performance).value == 1.0


def test_the_flavor_decides() -> None:
    assert said_score("response_match_score", ["flying"], ["flies"]).value == 1.0
    assert said_score("response_match_score", ["flying"], ["flies"], flavor="adk-ts").value == 0.0
