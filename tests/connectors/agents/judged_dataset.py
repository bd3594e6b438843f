"""Evaluates a data set of Pydantic Evals by its own judge, at an address; prints what its assertions said."""

from __future__ import annotations

import json
import sys

from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import LLMJudge
from pydantic_evals.evaluators.llm_as_a_judge import set_default_judge_model

ANSWERS = {"Cancel A200": "No.", "Where is A100?": "Kindly: it has shipped."}
address, path = sys.argv[1:]
cases = [
    Case(name=name, inputs=asked, evaluators=(LLMJudge(rubric="It is kind.", include_input=True),))
    for name, asked in (("cancel", "Cancel A200"), ("where", "Where is A100?"))
]
Dataset(name="orders", cases=cases).to_file(path)
set_default_judge_model(OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=address, api_key="none")))
report = Dataset.from_file(path).evaluate_sync(lambda asked: ANSWERS[asked], progress=False)
assert not report.failures
print(json.dumps({one.name: one.assertions["LLMJudge"].value for one in report.cases}))
