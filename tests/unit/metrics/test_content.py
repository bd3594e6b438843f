from typing import Any

import pytest
from pydantic import ValidationError

from gate.metrics import load_metric
from gate.metrics.base import TrialOutput
from gate.metrics.patterns import PatternError, compile_pattern
from gate.model import Case, Invocation, Part, Turn
from tests.unit.metrics.build import metric, said_score


def test_contains_and_not_contains() -> None:
    for answers, options, contains, lacks in [
        (["Your refund is $900"], {"values": ["$900"]}, 1, 0),
        (["Your refund is $900"], {"values": ["$100"]}, 0, 1),
        (["a", "then b"], {"values": ["a", "b"]}, 1, 0),
        (["a", "then b"], {"values": ["a", "c"]}, 0, 0),
        (["Straße"], {"values": "STRASSE", "ignore_case": True}, 1, 0),
        (["Yes"], {"values": ["yes"]}, 0, 1),
        ([""], {"values": ["yes"]}, 0, 1),
    ]:
        assert said_score("contains", answers, **options).value == contains, (answers, options)
        assert said_score("not_contains", answers, **options).value == lacks, (answers, options)


SPELLINGS = [
    "I can't\u00a0help you",
    "I can't\u202fhelp you",
    "I can\u2019t help you",
    "I can\u00b4t help you",
    "I can't he\u00adlp you",
    "I can't he\u200blp you",
    "I ca\u034fn't help\ufe0f you",
    "I ca\x00n't help you",
    "I can't \uff48\uff45\uff4c\uff50 you",
    "I can't **help** you",
    "I *can't* help you",
    "I __can't__ _help_ you",
    "I can't `help` you",
    "I <b>can't</b> ***help*** you",
    "I can't\nhelp you",
    "I can't  help you",
    "I can&#39;t&nbsp;help you",
    "I can\\'t help you",
    "I [can't](https://example.com) help you",
    'I [can\'t](https://example.com/a_(b) "why") help you',
    "I [can't][1] help you",
    "I <a href='x'>can't</a> <span class=\"b\">help</span> you",
    "I can't<br/>help you",
    "I can't \\\nhelp you",
    "> I can't\n> help you",
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_no_spelling_hides_a_forbidden_text_or_takes_the_place_of_a_demanded_one(text: str) -> None:
    assert said_score("not_contains", [text], values=["can't help"]).value == 0.0
    assert said_score("not_contains", [text], values=["CAN'T HELP"], ignore_case=True).value == 0.0
    assert said_score("not_contains", [text], values=["can't hold"]).value == 1.0
    assert said_score("contains", [text], values=["can't help"]).value == 0.0


@pytest.mark.parametrize(
    "phrase", ["can\u2019t help", "can't\u00a0help", "can't\n  help", "can't \uff48\uff45\uff4c\uff50"]
)
def test_a_forbidden_text_is_found_whatever_its_own_spelling(phrase: str) -> None:
    assert said_score("not_contains", ["I can't help you"], values=[phrase]).value == 0.0


@pytest.mark.parametrize(
    ("value", "found", "not_found"),
    [
        ("\u2014", "yes \u2014 no", "yes - no"),
        ("**", "**yes**", "yes"),
        ("\n", "two\nlines", "two words"),
        ("  ", "two  spaces", "two words"),
        ("`pay`", "call `pay` now", "pay now"),
        ("\u201c", "\u201cquoted\u201d", '"quoted"'),
        ("\u00a0", "no\u00a0break", "a break"),
        ("\u3164", "a\u3164b", "ab"),
        (" ass ", "what an ass you are", "a pass for you"),
        ("23", "it is 23", "2*3 is 6"),
        ("-", "yes - no", "yes \u2014 no \u2013 yes"),
        ('"', 'say "no"', "say \u201cno\u201d"),
        ("!", "\u4e0d\uff01", "no"),
        ("<script>", "<script>alert(1)", "write &lt;script&gt; for it"),
        ("<b>", "a <b>bold</b> word", "a bold word"),
        ("X_1", "see X_1", "see X-1"),
    ],
)
def test_a_forbidden_spelling_is_only_that_spelling(value: str, found: str, not_found: str) -> None:
    assert said_score("not_contains", [found], values=[value]).value == 0.0
    assert said_score("not_contains", [not_found], values=[value]).value == 1.0


def test_what_is_said_before_the_final_answer_is_said_too() -> None:
    performance = TrialOutput((Invocation("q", (Part("Done."),), intermediate=(Part("I guarantee it."),)),))
    case = Case("c", (Turn("q"),))
    assert metric("not_contains", values=["guarantee"]).score(case, performance).value == 0.0
    assert metric("contains", values=["guarantee"]).score(case, performance).value == 0.0


def test_the_reason_names_the_text() -> None:
    assert said_score("contains", ["x"], values=["$100"]).reason == "the answer does not contain '$100'"
    assert said_score("not_contains", ["a $100"], values=["$100"]).reason == "the answer contains '$100'"


def test_without_anything_to_check_it_does_not_apply() -> None:
    for name in ["contains", "not_contains", "regex", "not_regex", "json_schema"]:
        score = said_score(name, ["anything"])
        assert (score.value, score.error) == (None, None), name


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(ValidationError, match="empty string"):
        said_score("contains", ["x"], values=[""])


def test_an_answer_of_one_word_has_no_space() -> None:
    assert said_score("not_contains", ["billing"], values=" ").value == 1.0
    assert said_score("not_contains", ["It is billing."], values=" ").value == 0.0


def test_thoughts_are_no_answer() -> None:
    performance = TrialOutput((Invocation("q", (Part("secret", thought=True), Part("open"))),))
    case = Case("c", (Turn("q"),))
    assert metric("not_contains", values=["secret"]).score(case, performance).value == 1.0
    assert metric("contains", values=["secret"]).score(case, performance).value == 0.0


def test_regex() -> None:
    assert said_score("regex", ["order A17 shipped"], patterns=[r"A\d+", "^order"]).value == 1.0
    score = said_score("regex", ["order A17 shipped"], patterns=[r"A\d+", "^shipped"])
    assert (score.value, score.reason) == (0.0, "nothing in the answer matches '^shipped'")
    assert said_score("regex", ["ORDER"], patterns="order", ignore_case=True).value == 1.0


@pytest.mark.parametrize(
    ("pattern", "answer", "value"),
    [
        (r"\AI'm sorry", "I\u2019m\u00a0sorry, no", 0.0),
        (r"\d{3}-\d{4}", "call **555**\u20111234", 0.0),
        (r"\ANo\Z", "No", 0.0),
        (r"\ANo\Z", "Not yet", 1.0),
        ("error.*stack", "no error\nin the stack", 1.0),
        ("\u2014", "a - b", 1.0),
        (r"[^\x00-\x7f]", "na\u00efve", 0.0),
        (r"\*\*", "**bold**", 0.0),
    ],
)
def test_what_no_pattern_may_match_is_read_as_a_person_does(pattern: str, answer: str, value: float) -> None:
    assert said_score("not_regex", [answer], patterns=[pattern]).value == value
    before = (Invocation("q", (Part("done"),), intermediate=(Part(answer),)),)
    found = metric("not_regex", patterns=[pattern]).score(Case("c", (Turn("q"),)), TrialOutput(before))
    assert found.value == value or pattern.endswith("Z")  # an answer in full, not a text before it


def test_a_pattern_that_cannot_be_tried_is_not_absent() -> None:
    assert said_score("not_regex", ["a" * 100_001], patterns=["b"]).value is None


def test_patterns_that_are_wrong_or_may_never_end_are_refused() -> None:
    for pattern in [
        "(",
        "[a",
        "a{2,1}",
        "(?P<n>a)(?P<n>b)",
        "(a+)+$",
        "(a*)*",
        "((a+)b?)*",
        "(?:(?:a+)*x)?",
        "(a+|b)(c+d*)+",
    ]:
        with pytest.raises(ValidationError):
            said_score("regex", ["x"], patterns=[pattern])


@pytest.mark.parametrize(
    ("pattern", "refused"),
    [
        ("(?!.*sorry).+", True),
        ("^(?!.*sorry).+", True),
        ("^(?=.*Well)(?!.*sorry).+", True),
        ("^(?!Sorry)(?!.*sorry).+", True),
        ("^((?!.*sorry).+)", True),
        (r"^(?![^\n]*sorry).+", True),
        (r"(?:(?s:(?!.*sorry)).+)", True),
        (r"\A(?:(?s:(?!.*sorry)).+)", False),
        (r"(?m)^(?![\s\S]*sorry).+", True),
        (r"(?s)(?!.*sorry).+", True),
        (r"(?s)\A(?!.*sorry).+", False),
        (r"^(?![\s\S]*sorry).+", False),
        (r"(?!00)\d\d", False),
        ("^(?!Sorry).+", False),
    ],
)
def test_a_pattern_that_forbids_a_text_must_search_the_whole_answer(pattern: str, refused: bool) -> None:
    answer = "00 11 Well,\nI am sorry"
    if refused:
        with pytest.raises(ValidationError, match="not search the whole answer"):
            said_score("regex", [answer], patterns=[pattern])
    else:
        assert said_score("regex", [answer], patterns=[pattern]).value == float("sorry" not in pattern)


def test_patterns_that_end_are_taken() -> None:
    for pattern in [r"(\d+,)*\d+", "a+b+", "(ab)+", "(a+){2,5}", r"(?:\w++\s*+)*+", "(?=a+)b", r"(\w+\s)+", "^$", ".*"]:
        assert compile_pattern(pattern).pattern == pattern, pattern


@pytest.mark.parametrize("pattern", ["refund", "b+", r"more \Z", r"\A(?![\s\S]*b)a"])
def test_a_long_answer_is_not_searched_for_a_pattern(pattern: str) -> None:
    """Nothing in it is taken for found or absent, whatever the pattern is and wherever it would match."""
    said = "sorry, no refund, b " + "a" * 99_980
    for text in (said + "b", said + "more ", "a" * 100_000 + "sorry", "a" * 100_001):
        score = said_score("regex", [text], patterns=[pattern])
        assert score.value is None
        assert score.error == f"{len(text):,} characters are more than the 100,000 that a pattern is matched to"
    assert said_score("regex", [said], patterns=[r"refund, b a+\Z"]).value == 1.0


def test_a_long_answer_is_searched_for_a_text() -> None:
    said = "a" * 500_000 + "sorry"
    assert said_score("contains", [said], values=["sorry"]).value == 1.0
    assert said_score("not_contains", [said], values=["sorry"]).value == 0.0


def test_a_case_that_ignores_case_leaves_the_texts_of_the_criterion_as_they_are() -> None:
    suite, own = {"values": ["US", "IT"]}, {"values": "sorry", "ignore_case": True}
    both = load_metric("not_contains").overlaid(suite, own)
    assert said_score("not_contains", ["it helps us"], **both).value == 1.0
    assert said_score("not_contains", ["Sorry"], **both).value == 0.0
    assert said_score("not_contains", ["in the US"], **both).value == 0.0
    both = load_metric("contains").overlaid({"values": "Yes"}, {"values": ["yes"], "ignore_case": True})
    assert said_score("contains", ["YES"], **both).reason == "the answer does not contain 'Yes'"
    both = load_metric("regex").overlaid({"patterns": "US"}, {"patterns": "yes", "ignore_case": True})
    assert said_score("regex", ["us, Yes"], **both).reason == "nothing in the answer matches 'US'"
    both = load_metric("contains").overlaid({"values": "Yes"}, {"ignore_case": True})
    assert said_score("contains", ["yes"], **both).value == 1.0
    with pytest.raises(ValidationError, match="write true or false"):
        said_score("contains", ["x"], values=["x"], ignore_case=[True, False])


def test_a_pattern_error_says_why() -> None:
    with pytest.raises(PatternError, match="repeats a repetition"):
        compile_pattern("(x+)+y")


SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}


def test_json_schema() -> None:
    for answer, value in [
        ('{"id": 3}', 1),
        (' \n{"id": 3, "more": []}\n', 1),
        ('```json\n{"id": 3}\n```', 1),
        ('{"id": "3"}', 0),
        ("{}", 0),
        ("Here you are: {}", 0),
        ("", 0),
        ('{"id": NaN}', 0),
        ('{"id": 3', 0),
        ("[" * 100_000, 0),
        ("[" * 500 + "]" * 500, 0),
    ]:
        assert said_score("json_schema", ["chat", answer], schema=SCHEMA).value == value, (answer, value)


def test_json_schema_says_what_is_wrong() -> None:
    assert said_score("json_schema", ['{"id": "3"}'], schema=SCHEMA).reason == "$.id: '3' is not of type 'integer'"
    assert "not JSON" in said_score("json_schema", ["hello"], schema=SCHEMA).reason


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match="not a JSON Schema"):
        said_score("json_schema", ["{}"], schema={"type": "objekt"})


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"typ": "object"}, "'typ' is no keyword of JSON Schema: did you mean 'type'"),
        ({"requried": ["id"]}, "did you mean 'required'"),
        ({"type": "object", "properties": {"id": {"minlength": 3}}}, "did you mean 'minLength'"),
        ({"anyOf": [{"types": "object"}]}, "did you mean 'type'"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": {"propertes": {}}}, "'properties'"),
    ],
)
def test_a_misspelt_keyword_is_refused_because_it_would_check_nothing(schema: dict[str, Any], hint: str) -> None:
    with pytest.raises(ValidationError, match=hint):
        said_score("json_schema", ["{}"], schema=schema)


@pytest.mark.parametrize("keys", [{"properties": {"id": {}}}, {"required": ["id"]}])
def test_a_schema_of_an_object_that_any_other_answer_would_match_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="add `type: object`"):
        said_score("json_schema", ["3"], schema=keys)
    for which in ({"type": "object"}, {"type": ["object", "null"]}, {"allOf": [{"type": "object"}]}):
        assert said_score("json_schema", ["3"], schema={**keys, **which}).value == 0.0
        assert said_score("json_schema", ['{"id": 3}'], schema={**keys, **which}).value == 1.0
    nested = {"type": "array", "items": keys}
    assert said_score("json_schema", ["[]"], schema=nested).value == 1.0


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"typ": {"const": {"requried": 1}}}, "default": {"typ": 1}, "enum": [{"typ": 1}, {}]},
        {"x-owner": {"typ": "team"}, "example": {}, "nullable": True, "discriminator": {"propertyName": "kind"}},
        {"dependentRequired": {"typ": ["id"]}, "$defs": {"items_": {"title": "x"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"typ": ["id"]}, "definitions": {}},
    ],
)
def test_names_and_data_in_a_schema_are_the_users_own(schema: dict[str, Any]) -> None:
    assert said_score("json_schema", ["{}"], schema=schema).value == 1.0


def test_json_in_a_code_block_counts_unless_the_answer_is_parsed_as_it_is() -> None:
    fenced = "```json\n{}\n```"
    assert said_score("json_schema", [fenced], schema={}).value == 1.0
    assert said_score("json_schema", [fenced], schema={}, code_block=False).value == 0.0
    assert said_score("json_schema", ["{}"], schema={}, code_block=False).value == 1.0


def test_a_reference_to_elsewhere_is_never_fetched() -> None:
    score = said_score("json_schema", ["{}"], schema={"$ref": "http://127.0.0.1:9/schema.json"})
    assert score.value is None
    assert "cannot be applied" in (score.error or "")


def test_the_draft_is_taken_from_the_schema() -> None:
    draft4 = {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}
    assert said_score("json_schema", ["3"], schema=draft4).value == 0.0
    assert said_score("json_schema", ["2"], schema=draft4).value == 1.0
