"""Tests written in Python: their constants become cases, what is computed is listed, and nothing is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.errors import ConfigError, MeasureError
from gate.model import Case, Part
from gate.suites import load
from gate.suites.base import Loss
from tests.unit.suites.files import write

DEEPEVAL = """\
import os
import pytest
from deepeval import assert_test
from deepeval.dataset import EvaluationDataset, Golden
from deepeval.metrics import AnswerRelevancyMetric, GEval
from deepeval.test_case import LLMTestCase, ToolCall
from shop import chatbot

open("RAN", "w").close()
correct = GEval(name="Correctness", criteria="Is it right?")
ORDERS = [("Where is A1?", "A1 has shipped."), ("Where is A2?", "A2 has shipped.")]


def test_refund():
    question = "I want a refund"
    case = LLMTestCase(input=question, actual_output=chatbot(question), expected_output="We started it.",
                       expected_tools=[ToolCall(name="refund", input_parameters={"order": "A1"})])
    assert_test(case, [correct, AnswerRelevancyMetric(threshold=0.7)])


@pytest.mark.parametrize("question, answer", ORDERS)
def test_orders(question, answer):
    assert_test(LLMTestCase(input=question, actual_output=chatbot(question), expected_output=answer), [correct])


def test_city():
    return LLMTestCase(input="Weather in " + "Rome?", actual_output=chatbot("Rome"))


dataset = EvaluationDataset(goldens=[Golden(input="Hi", expected_output=os.environ["X"]), Golden(input=chatbot("Hi"))])
"""
EVALS = """\
from typing import Any
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains, EqualsExpected, LLMJudge

paris = Case(name="paris", inputs="Capital of France?", expected_output="Paris", evaluators=(EqualsExpected(),))
capitals = Dataset[str, str, Any](
    name="capitals",
    cases=[paris, Case(inputs="Of Italy?", metadata={"hard": True}, evaluators=[LLMJudge(rubric="Names Rome.")])],
    evaluators=[Contains(value="a", case_sensitive=True)],
)
"""


def read(folder: Path, text: str, name: str = "test_bot.py") -> tuple[dict[str, Case], list[str]]:
    """The cases by id, and the checks that are lost."""
    write(folder / name, text)
    losses: list[Loss] = []
    (suite,) = load([folder / name], root=folder, losses=losses)
    return {case.id: case for case in suite.cases}, [str(loss) for loss in losses if loss.check]


def test_deepeval(tmp_path: Path) -> None:
    cases, lost = read(tmp_path, DEEPEVAL)
    assert {id: case.turns[0].user for id, case in cases.items()} == {
        "test_refund": "I want a refund",
        "test_city": "Weather in Rome?",
        "case": "Hi",
    }
    refund = cases["test_refund"].turns[0]
    assert refund.tools is not None
    assert (refund.tools[0].name, refund.tools[0].args) == ("refund", {"order": "A1"})
    assert refund.response == (Part("We started it."),)
    location = cases["test_refund"].location
    assert location is not None
    assert location.line == 16
    assert sorted(lost) == [
        "case: expected_output, which is computed",
        "line 18: metric AnswerRelevancyMetric(threshold=0.7)",
        "line 18: metric GEval(name='Correctness', criteria='Is it right?')",
        "line 23: a case whose input is computed",
        "line 30: a case whose input is computed",
    ]
    assert not Path("RAN").exists()
    assert not (tmp_path / "RAN").exists()


def test_pydantic_evals(tmp_path: Path) -> None:
    cases, lost = read(tmp_path, EVALS)
    assert lost == []
    assert list(cases) == ["paris", "test_bot-2"]
    assert cases["paris"].options == {"contains": {"values": ["a"]}, "regex": {"patterns": [r"\AParis\Z"]}}
    assert cases["test_bot-2"].metadata == {"hard": True}
    assert [rubric.text for rubric in cases["test_bot-2"].rubrics] == ["Names Rome."]
    (suite,) = load([tmp_path / "test_bot.py"], root=tmp_path)
    assert suite.brought is not None, "what loses no check is a suite as it stands"
    assert set(suite.brought) == {"contains", "regex", "rubric_based_final_response_quality_v1"}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('value="a"', 'value="a" + secret()', "paris: evaluator Contains"),
        ("EqualsExpected()", "Mine(3)", "paris: evaluator Mine"),
        ('expected_output="Paris"', "expected_output=find()", "paris: expected_output, which is computed"),
        ("evaluators=(EqualsExpected(),)", "evaluators=all_of_them()", "line 5: evaluators, which are computed"),
        ('inputs="Of Italy?"', "inputs=ask()", "line 8: a case whose inputs are computed"),
        ("cases=[paris,", "cases=more() + [paris,", "paris: evaluator Secret"),
    ],
)
def test_what_is_computed_is_lost(tmp_path: Path, before: str, after: str, told: str) -> None:
    assert before in EVALS
    text = EVALS.replace(before, after)
    text = text.replace("Contains(value=", "Secret(value=") if "Secret" in told else text
    assert told in read(tmp_path, text)[1]
    with pytest.raises(ConfigError, match="gate import --allow-loss"):
        load([tmp_path / "test_bot.py"], root=tmp_path)


ADK = """\
import os, pathlib
from google.adk.evaluation.agent_evaluator import AgentEvaluator

async def test_it():
    await AgentEvaluator.evaluate(agent_module="shop", eval_dataset_file_path_or_dir={path}, num_runs=2)
"""
SET = '[{"query": "Hi", "expected_tool_use": [], "reference": "Hello"}]'


@pytest.mark.parametrize(
    "path",
    [
        '"tests/evals/greet.test.json"',
        '"evals/greet.test.json"',
        'os.path.join(os.path.dirname(__file__), "evals/greet.test.json")',
        'str(pathlib.Path(__file__).parent / "evals" / "greet.test.json")',
        'str(pathlib.Path(__file__).resolve().parent / "evals")',
    ],
)
def test_the_eval_set_that_a_test_of_adk_names_is_read(tmp_path: Path, path: str) -> None:
    write(tmp_path / "tests" / "evals" / "greet.test.json", SET)
    write(tmp_path / "tests" / "evals" / "other.json", "{}")
    cases, lost = read(tmp_path, ADK.format(path=path), "tests/test_eval.py")
    assert ([case.turns[0].user for case in cases.values()], lost) == (["Hi"], [])


@pytest.mark.parametrize("path", ["find()", '"nowhere.json"', '"../outside.test.json"'])
def test_an_eval_set_that_is_not_there_is_lost(tmp_path: Path, path: str) -> None:
    write(tmp_path / "outside.test.json", SET)
    write(tmp_path / "in" / "test_eval.py", ADK.format(path=path) + DEEPEVAL)
    losses: list[Loss] = []
    load([tmp_path / "in" / "test_eval.py"], root=tmp_path / "in", losses=losses)
    assert "the file of cases" in str(losses)


def test_conversations(tmp_path: Path) -> None:
    said = (("user", "Hi"), ("assistant", "Hello"), ("user", "Bye"))
    turns = ", ".join(f"Turn(role={role!r}, content={text!r})" for role, text in said)
    text = f"""from deepeval.dataset import ConversationalGolden
from deepeval.test_case import Turn
ConversationalGolden(scenario="A greeting.", expected_outcome="It is polite.", turns=[{turns}])
ConversationalGolden(scenario="Somebody asks.")
"""
    cases, lost = read(tmp_path, text)
    assert [turn.user for turn in cases["case"].turns] == ["Hi", "Bye"]
    assert [rubric.text for rubric in cases["case"].rubrics] == ["It is polite."]
    assert lost == ["line 4: a case without turns"]


def test_a_file_of_goldens_is_read(tmp_path: Path) -> None:
    write(tmp_path / "goldens.json", '[{"input": "Hi", "expected_output": "Hello"}]')
    text = "from deepeval.dataset import EvaluationDataset\nd = EvaluationDataset()\n"
    cases, lost = read(tmp_path, f'{text}d.add_goldens_from_json_file(file_path="goldens.json")\nd.pull(alias="x")\n')
    assert ([case.turns[0].user for case in cases.values()], lost) == (["Hi"], ["line 4: the cases of pull"])


NAMES = "".join(f"v{n + 1} = [v{n}, v{n}]\n" for n in range(30))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "from deepeval import assert_test\ndef broken(:\n",
        "from pydantic_evals import Case\nx = " + "-" * 100_000 + "1\n",
        "from pydantic_evals import Case\na = b\nb = a\nCase(inputs=a)\n",
        "from deepeval.test_case import LLMTestCase\nx = 'x' * 10**9\nLLMTestCase(input=x)\n",
        "from deepeval.test_case import LLMTestCase\n" + "v0 = 1\n" + NAMES + "LLMTestCase(input=v30)\n",
        "from pydantic_evals import Case\nx = " + "-" * 2_000 + "1\nCase(inputs=x)\n",
    ],
    ids=["broken", "deep", "round", "large", "names", "nested"],
)  # fmt: skip
def test_hostile_programs_end_in_a_line(tmp_path: Path, text: str) -> None:
    write(tmp_path / "test_bot.py", text)
    with pytest.raises((ConfigError, MeasureError)):
        load([tmp_path / "test_bot.py"], root=tmp_path, losses=[])
