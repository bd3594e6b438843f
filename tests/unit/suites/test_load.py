"""Which files are read, how they group into suites, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.errors import ConfigError, MeasureError
from gate.suites import FORMATS, load
from gate.suites.messages import FieldPaths
from tests.unit.suites.files import EVAL_CASE, ROOT, ROW, SHARED, needs_shared, write

CASE = "- id: {}\n  input: hello\n"
CRITERIA = {"criteria": {"response_match_score": 0.5}}


def test_smallest_suite(tmp_path: Path) -> None:
    write(tmp_path / "s.yaml", "- id: x\n  input: hello\n")
    (suite,) = load([Path("s.yaml")], root=tmp_path)
    assert (suite.id, suite.source, suite.criteria, suite.recorded) == ("s.yaml", "s.yaml", None, ())
    (case,) = suite.cases
    assert (case.id, case.turns[0].user, case.turns[0].tools, case.turns[0].response) == ("x", "hello", None, None)


def test_folders_with_criteria_are_suites_of_their_own(tmp_path: Path) -> None:
    write(tmp_path / "evals/plain.yaml", CASE.format("plain"))
    write(tmp_path / "evals/a/test_config.json", CRITERIA)
    write(tmp_path / "evals/a/x.test.json", [{"query": "hi"}])
    write(tmp_path / "evals/a/deep/y.test.json", [{"query": "hi"}])
    write(tmp_path / "evals/b/test_config.json", {"criteria": {"safety_v1": 1}})
    write(tmp_path / "evals/b/set.evalset.json", {"eval_set_id": "s", "eval_cases": [EVAL_CASE]})
    suites = {suite.id: suite for suite in load([tmp_path / "evals"], root=tmp_path)}
    assert {name: [case.id for case in suite.cases] for name, suite in suites.items()} == {
        "evals": ["plain"],
        "evals/a": ["x", "deep/y"],
        "evals/b": ["one"],
    }
    assert suites["evals/a"].criteria == CRITERIA
    assert suites["evals"].criteria is None
    (whole,) = load([tmp_path / "evals"], root=tmp_path, split=False, name="all")
    assert whole.id == "all"
    assert whole.criteria is None
    assert [case.id for case in whole.cases] == ["plain", "a/x", "a/deep/y", "one"]


def test_criteria_beside_a_named_file_apply(tmp_path: Path) -> None:
    write(tmp_path / "evals/test_config.json", CRITERIA)
    write(tmp_path / "evals/x.test.json", [{"query": "hi"}])
    write(tmp_path / "evals/ignored.test.json", "{")
    (suite,) = load([Path("evals/x.test.json")], root=tmp_path)
    assert (suite.id, suite.criteria, suite.cases[0].id) == ("evals", CRITERIA, "x")


def test_criteria_above_what_was_asked_for_do_not_apply(tmp_path: Path) -> None:
    write(tmp_path / "test_config.json", CRITERIA)
    write(tmp_path / "evals/x.test.json", [{"query": "hi"}])
    (suite,) = load([Path("evals")], root=tmp_path)
    assert suite.criteria is None


def test_the_root_itself_as_suite_takes_the_name(tmp_path: Path) -> None:
    write(tmp_path / "test_config.json", CRITERIA)
    write(tmp_path / "x.test.json", [{"query": "hi"}])
    write(tmp_path / "gate.yaml", "suite: .")
    assert load([Path()], root=tmp_path, name="mine")[0].id == "mine"


def test_several_sources_are_one_suite_and_a_file_counts_once(tmp_path: Path) -> None:
    write(tmp_path / "a/x.test.json", [{"query": "hi"}])
    write(tmp_path / "b/x.test.json", [{"query": "hi"}])
    (suite,) = load([Path("a"), Path("b"), Path("a/x.test.json")], root=tmp_path)
    assert [case.id for case in suite.cases] == ["a/x", "b/x"]
    assert suite.id == "a, b, a/x.test.json"


def test_order_does_not_depend_on_the_file_system(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        write(tmp_path / f"{name}.yaml", CASE.format(name))
    (suite,) = load([tmp_path], root=tmp_path)
    assert [case.id for case in suite.cases] == ["a", "b", "c"]


def test_hidden_and_foreign_files_are_not_read(tmp_path: Path) -> None:
    write(tmp_path / "s/x.yaml", CASE.format("x"))
    for name in (".hidden.yaml", ".adk/r.json", "README.md", "tool.py", "gate.yaml", "__pycache__/c.json"):
        write(tmp_path / "s" / name, "not: a suite")
    assert len(load([tmp_path / "s"], root=tmp_path)[0].cases) == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "other.json",
            {"a": 1},
            r"other\.json: not a suite in any known format .*`gate help cases`.* `format: NAME`",
        ),
        ("near.json", {"eval_case": []}, r"near\.json: not a suite .*nearest is an ADK eval set"),
        ("qa.jsonl", '{"question": "Hi"}\n', r"qa\.jsonl: not a suite .*call question `input`; `gate help"),
        ("talk.json", [{"id": "a", "conversation": []}], r"talk\.json: not a suite .*`messages: conversation`"),
        ("rows.json", [{"task": 1, "conversation": []}], r"rows\.json: not a suite .*`messages: conversation`"),
        ("schema.json", {"type": "object", "properties": {}}, r"schema\.json: not a suite in any known format"),
        ("text.yaml", "just text", r"text\.yaml: not a suite in any known format"),
        ("empty.yaml", "", r"empty\.yaml: is empty"),
        ("torn.test.json", '[{"query": "hi"}', r"torn\.test\.json:1: not JSON"),
        ("torn.jsonl", '{"id": 1, "messages": []}\n{"id": 2, "mess', r"torn\.jsonl:2: not JSON"),
        ("again.yaml", CASE.format("x"), r"x\.yaml:1: duplicate case id 'x', first at again\.yaml:1"),
        ("test_config.json", {}, r"test_config\.json: criteria are missing"),
        ("test_config.json", {"criteria": 3}, r"test_config\.json: criteria are missing"),
        ("test_config.json", "[", r"test_config\.json:1: not JSON"),
    ],
)
def test_nothing_is_read_by_halves(
    name: str, content: object, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "x.yaml", CASE.format("x"))
    write(tmp_path / name, content)
    with pytest.raises(ConfigError, match=f"^{message}"):
        load([Path()], root=tmp_path)


def test_a_schema_in_a_folder_holds_no_case(tmp_path: Path) -> None:
    """And alone it measures nothing."""
    write(tmp_path / "s/x.yaml", CASE.format("x"))
    write(tmp_path / "s/x_schema.json", {"$defs": {}, "type": "object", "properties": {"cases": {"type": "array"}}})
    assert [case.id for case in load([tmp_path / "s"], root=tmp_path)[0].cases] == ["x"]
    with pytest.raises(MeasureError, match=r"x_schema\.json: no cases"):
        load([tmp_path / "s/x_schema.json"], root=tmp_path)


@pytest.mark.parametrize("content", ["[]", "{cases: []}", '{"eval_set_id": "x", "eval_cases": []}'])
def test_zero_cases_are_not_measured(content: str, tmp_path: Path) -> None:
    write(tmp_path / "s.yaml", content)
    with pytest.raises(MeasureError, match=r"s\.yaml: no cases"):
        load([Path("s.yaml")], root=tmp_path)


def test_no_files_are_not_measured(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="no suite files"):
        load([tmp_path], root=tmp_path)


def test_a_missing_source_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="evals: no such file or folder"):
        load([Path("evals")], root=tmp_path)


@pytest.mark.parametrize("target", ["file", "folder"])
def test_links_out_of_the_folder_are_refused(target: str, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/x.yaml", CASE.format("x"))
    write(tmp_path / "evals/y.yaml", CASE.format("y"))
    link = tmp_path / "evals" / ("x.yaml" if target == "file" else "more")
    link.symlink_to(outside if target == "file" else outside.parent)
    with pytest.raises(ConfigError, match="a symbolic link out of the folder is not followed"):
        load([Path("evals")], root=tmp_path)


def test_links_within_the_folder_do_not_count_twice(tmp_path: Path) -> None:
    write(tmp_path / "evals/a/x.yaml", CASE.format("x"))
    (tmp_path / "evals/b").symlink_to(tmp_path / "evals/a")
    (tmp_path / "evals/y.yaml").symlink_to(tmp_path / "evals/a/x.yaml")
    assert len(load([Path("evals")], root=tmp_path)[0].cases) == 1


def test_locations_are_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "sub/evals/x.yaml", "cases:\n  - id: x\n    input: a\n  - id: y\n    input: b\n")
    monkeypatch.chdir(tmp_path)
    (suite,) = load([Path("evals")], root=tmp_path / "sub")
    assert [str(case.location) for case in suite.cases] == ["sub/evals/x.yaml:2", "sub/evals/x.yaml:4"]
    assert suite.id == "evals"


def test_json_lines_need_no_fields_where_the_usual_ones_are_there(tmp_path: Path) -> None:
    rows = '{"id": "a", "messages": [{"role": "user", "content": "hi"}]}\n'
    write(tmp_path / "rows.jsonl", rows)
    (suite,) = load([tmp_path], root=tmp_path)
    assert (suite.cases[0].id, str(suite.cases[0].location)[-12:]) == ("a", "rows.jsonl:1")
    assert suite.recorded == ()


def test_rows_and_cases_may_lie_side_by_side(tmp_path: Path) -> None:
    write(tmp_path / "rows.json", [ROW])
    write(tmp_path / "cases.yaml", CASE.format("x"))
    (suite,) = load([tmp_path], root=tmp_path, fields=FieldPaths(id="task", messages="log"))
    assert [case.id for case in suite.cases] == ["x", "7"]


@needs_shared
def test_all_real_eval_sets_load() -> None:
    suites = {suite.id: suite for suite in load([SHARED / "adk-samples"], root=SHARED / "adk-samples")}
    assert {name: [len(case.turns) for case in suite.cases] for name, suite in suites.items()} == {
        "RAG": [22],
        "customer-service": [10, 2],
        "llm-auditor": [1, 1],
        "travel-concierge": [3, 4, 2],
    }
    assert [case.id for case in suites["customer-service"].cases] == ["full_conversation", "simple"]
    assert suites["travel-concierge"].cases[1].id.startswith("/usr/local/")
    assert all(suite.criteria and suite.criteria["criteria"] for suite in suites.values())
    assert all(turn.tools is not None for suite in suites.values() for case in suite.cases for turn in case.turns)


def test_every_format_is_documented() -> None:
    guide = (ROOT / "docs/reference/suites.md").read_text(encoding="utf-8")
    for name in FORMATS:
        assert f"(`{name}`)" in guide


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.yaml", "- {id: a, input: hi, rubrics: [' ']}"),
        ("s.yaml", '- {id: a, turns: [{input: hi, rubrics: ["\\u200b"]}]}'),
        ("s.yaml", "cases: [{name: a, inputs: hi, evaluators: [{LLMJudge: ''}]}]"),
    ],
)
def test_a_rubric_without_text_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(ConfigError, match="case 'a': a rubric has no text"):
        load([write(tmp_path / name, text)], root=tmp_path)
