"""Data sets as DeepEval and Pydantic Evals write them themselves, into the working folder."""

from __future__ import annotations

import os

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"
os.environ["DEEPEVAL_DISABLE_DOTENV"] = "1"

from deepeval.dataset import ConversationalGolden, EvaluationDataset, Golden
from deepeval.test_case import ToolCall, Turn
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains, EqualsExpected, IsInstance, LLMJudge, MaxDuration

goldens = [
    Golden(
        input="Where is A100?",
        expected_output="Order A100 has shipped.",
        actual_output="A100 is on its way.",
        expected_tools=[ToolCall(name="lookup", input_parameters={"order": "A100"})],
        tools_called=[ToolCall(name="lookup", input_parameters={"order": "A100"}, output="shipped")],
        retrieval_context=["A100: shipped"],
        additional_metadata={"team": "orders"},
        name="where",
    ),
    Golden(input="Cancel A200", expected_output="Ünable — it has shipped.", name="cancel"),
]
for kind in ("json", "jsonl", "csv"):
    EvaluationDataset(goldens=goldens).save_as(kind, ".", f"goldens-{kind}")

turns = [
    Turn(role=role, content=text) for role, text in (("user", "A100?"), ("assistant", "Shipped."), ("user", "When?"))
]
talk = ConversationalGolden(
    scenario="somebody asks twice", expected_outcome="is told the day", turns=turns, name="talk"
)
for kind in ("json", "jsonl"):
    EvaluationDataset(goldens=[talk]).save_as(kind, ".", f"conversations-{kind}")

case = Case(
    name="where",
    inputs={"question": "Where is A100?"},
    expected_output="Order A100 has shipped.",
    metadata={"team": "orders"},
    evaluators=(EqualsExpected(), Contains(value="shipped"), IsInstance(type_name="str")),
)
plain = Case(name="cancel", inputs="Cancel A200", evaluators=(LLMJudge(rubric="It refuses kindly."),))
dataset = Dataset(name="orders", cases=[case, plain], evaluators=[MaxDuration(seconds=2.5)])
for kind in ("yaml", "json"):
    dataset.to_file(f"dataset.{kind}")
