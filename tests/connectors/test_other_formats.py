"""What promptfoo, Inspect, DeepEval, Pydantic Evals and google-adk write, as released, is read as they mean it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gate.model import Suite
from gate.suites import load
from gate.suites.base import Loss
from tests.acceptance.conftest import Project
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat

pytestmark = pytest.mark.connectors
AGENTS = Path(__file__).parent / "agents"
SAMPLES = Path(__file__).parents[1] / "unit" / "importers" / "samples"
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_SELF_HOSTED": "1",
}


@pytest.fixture(scope="session")
def promptfoo() -> Path:
    named = os.environ.get("GATE_PROMPTFOO")
    if not named or not Path(named).exists():
        pytest.skip("GATE_PROMPTFOO names no command: `make connectors` installs it if node is there")
    return Path(named)


@pytest.fixture(scope="session")
def inspect() -> Path:
    named = os.environ.get("GATE_INSPECT_PYTHON")
    if not named:
        pytest.skip("GATE_INSPECT_PYTHON names no environment: run `make connectors`")
    return Path(named)


def evaluated(promptfoo: Path, folder: Path, *arguments: str, output: str = "results.json") -> dict[str, Any]:
    environment = {**os.environ, **QUIET, "PROMPTFOO_CONFIG_DIR": str(folder / "home")}
    command = [promptfoo, "eval", "-o", output, "--no-progress-bar", "--no-table", *arguments]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (folder / output).exists(), ran.stdout + ran.stderr
    found: dict[str, Any] = json.loads((folder / output).read_text())
    return found


def loaded(path: Path) -> tuple[Suite, list[Loss]]:
    losses: list[Loss] = []
    (suite,) = load([path], root=path.parent, losses=losses)
    return suite, losses


EVERY_FORM = """
prompts:
  - file://prompts.txt
  - label: chat
    raw: '[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "{{question}} please"}]'
providers: [echo]
assertionTemplates:
  polite: {type: icontains, value: PLEASE}
defaultTest:
  vars: {city: Rome}
  assert: [{$ref: '#/assertionTemplates/polite'}]
tests:
  - vars: {question: ["Weather?", "Hotels?"], city: [Rome, "Oslo, Norway"]}
    assert: [{type: contains-any, value: [Weather, Hotels]}, {type: not-contains-any, value: [Paris, Bern]}]
  - {description: length, vars: {question: q}, assert: [{type: javascript, value: "output.length > 30000"}]}
  - file://tests.csv
  - {vars: {question: [One, Two]}, assert: [{type: not-starts-with, value: x}, {type: not-equals, value: nothing}]}
  - vars: {question: [One, Two], city: Bern}
    assert: [{type: not-regex, value: "^x"}, {type: regex, value: "p.*e$"}]
"""


def test_a_configuration_and_its_results_are_the_same_cases(promptfoo: Path, tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(EVERY_FORM)
    (tmp_path / "prompts.txt").write_text("{{question}} in {{city}} please\n---\nTell me: {{question}} {{city}}")
    (tmp_path / "tests.csv").write_text("question,__expected,__description\nHi,contains:Hi,greeting\n")
    wrote = evaluated(promptfoo, tmp_path, "--repeat", "3")
    stated, _ = loaded(tmp_path / "promptfooconfig.yaml")
    suite, losses = loaded(tmp_path / "results.json")

    def parts(one: Suite) -> list[Any]:
        return sorted((c.id, c.turns, c.options, c.thresholds, c.content) for c in one.cases)  # type: ignore[type-var]

    assert [str(part) for part in parts(suite)] == [str(part) for part in parts(stated)]
    assert len(suite.recorded) == len(wrote["results"]["results"]) == 3 * len(suite.cases)
    assert {loss.what for loss in losses if loss.check} == {"assertion javascript 'output.length > 30000'"}
    assert not [trial for trial in suite.recorded if trial.error]
    given = [(trial.case_id, score) for trial in suite.recorded for score in trial.invocations[-1].foreign]
    assert {score.scorer for _, score in given} == {"promptfoo"}
    failed = [name for name, score in given if score.value < 1]
    assert len(failed) == sum(not row["success"] for row in wrote["results"]["results"])
    assert {case.id for case in suite.cases if case.id.startswith("length")} <= set(failed)
    assert not [loss.what for loss in losses if loss.unread], "a key of its results is neither read nor declared"


def test_every_trial_passes_here_that_passed_there(promptfoo: Path, project: Project) -> None:
    """But those that promptfoo passes by a threshold, from which a part of the assertions suffices."""
    for name in ("promptfooconfig.yaml", "more.csv", "provider.js"):
        shutil.copy(SAMPLES / "promptfoo" / name, project.root / name)
    wrote = evaluated(promptfoo, project.root, "--repeat", "2")
    project.write("gate.yaml", {"suite": "results.json", "agent": {"replay": True}, "trials": 2})
    code, result = project.result("run")
    there: dict[str, list[bool]] = {}
    for row in wrote["results"]["results"]:
        name = row["testCase"].get("description") or row["vars"]["question"]
        there.setdefault(name, []).append(row["success"])
    here = {case["id"]: case["passed"] for case in result["suites"][0]["cases"]}
    assert code != 0
    assert there.pop("refund of a broken kettle") == [True, True]
    assert here.pop("refund of a broken kettle") == 0
    assert here == {name: sum(passed) for name, passed in there.items()}


@pytest.fixture
def server() -> Iterator[int]:
    command = [sys.executable, str(AGENTS / "promptfoo_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.terminate()


def test_what_came_from_the_cache_is_told(promptfoo: Path, tmp_path: Path, server: int) -> None:
    config = {"method": "POST", "headers": {"content-type": "application/json"}, "body": {"q": "{{prompt}}"},
              "transformResponse": "json.answer"}  # fmt: skip
    tests = [{"vars": {"q": "hello"}, "assert": [{"type": "contains", "value": "hello"}]}]
    data = {
        "prompts": ["{{q}}"],
        "providers": [{"id": f"http://127.0.0.1:{server}/", "config": config}],
        "tests": tests,
    }
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(data))
    evaluated(promptfoo, tmp_path, "--repeat", "3", output="first.json")
    evaluated(promptfoo, tmp_path, "--repeat", "3", output="again.json")
    fresh, _ = loaded(tmp_path / "first.json")
    again, losses = loaded(tmp_path / "again.json")
    assert len(fresh.recorded) == len(again.recorded) == 3
    assert all(trial.invocations[0].duration for trial in fresh.recorded)
    assert not any(trial.invocations[0].duration for trial in again.recorded)
    assert any("cache" in loss.what for loss in losses)


def test_an_archive_of_inspect_is_what_inspect_dumps_of_it(inspect: Path, tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    subprocess.run([inspect, AGENTS / "inspect_task.py"], cwd=tmp_path, check=True, capture_output=True)
    (archive,) = (tmp_path / "logs").glob("*.eval")
    dumped = subprocess.run([inspect.parent / "inspect", "log", "dump", archive], capture_output=True, check=True)
    (tmp_path / "dump.json").write_bytes(dumped.stdout)
    packed, plain = loaded(archive)[0], loaded(tmp_path / "dump.json")[0]

    def parts(one: Suite) -> list[str]:
        held = [replace(case, location=None) for case in one.cases]
        said = sorted((t.case_id, t.number, t.error, str(t.invocations)) for t in one.recorded)
        return [str(sorted(held, key=lambda case: case.id)), str(said)]

    assert parts(packed) == parts(plain)
    assert not [loss.what for loss in loaded(archive)[1] if loss.unread], "a key is neither read nor declared"
    assert sorted((trial.case_id, trial.number) for trial in packed.recorded) == [
        (name, epoch) for name in ("two", "where") for epoch in (1, 2, 3)
    ]


@pytest.fixture(scope="module")
def written(inspect: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which DeepEval and Pydantic Evals have saved their data sets."""
    folder = tmp_path_factory.mktemp("written")
    subprocess.run([inspect, "-W", "ignore", AGENTS / "datasets.py"], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv"])
def test_goldens_that_deepeval_saves(written: Path, kind: str) -> None:
    suite, losses = loaded(written / f"goldens-{kind}.{kind}")
    where, cancel = suite.cases
    assert [(case.id, case.turns[0].user) for case in suite.cases] == [
        ("where", "Where is A100?"),
        ("cancel", "Cancel A200"),
    ]
    assert [(call.name, call.args) for call in where.turns[0].tools or ()] == [("lookup", {"order": "A100"})]
    assert cancel.turns[0].response is not None
    assert cancel.turns[0].response[0].text == "Ünable — it has shipped."
    assert where.metadata["team"] == "orders"
    (trial,) = suite.recorded
    (call,) = trial.invocations[0].tool_calls
    assert (trial.case_id, trial.invocations[0].text, call.args, call.result) == (
        "where", "A100 is on its way.", {"order": "A100"}, "shipped",
    )  # fmt: skip
    assert not losses


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_conversations_that_deepeval_saves(written: Path, kind: str) -> None:
    suite, losses = loaded(written / f"conversations-{kind}.{kind}")
    (talk,) = suite.cases
    assert (talk.id, [turn.user for turn in talk.turns]) == ("talk", ["A100?", "When?"])
    assert [rubric.text for rubric in talk.rubrics] == ["is told the day"]
    assert [(loss.what, loss.check) for loss in losses] == [("turns: what the assistant says", False)]


@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_a_dataset_that_pydantic_evals_saves(written: Path, kind: str) -> None:
    suite, losses = loaded(written / f"dataset.{kind}")
    where, cancel = suite.cases
    assert (where.id, where.turns[0].user, where.metadata) == ("where", "Where is A100?", {"team": "orders"})
    assert where.options == {
        "contains": {"values": ["shipped"]},
        "regex": {"patterns": [r"\AOrder\ A100\ has\ shipped\.\Z"]},
    }
    assert [case.thresholds for case in suite.cases] == [{"latency": 2.5}, {"latency": 2.5}]
    assert [rubric.text for rubric in cancel.rubrics] == ["It refuses kindly."]
    assert [(loss.case, loss.what, loss.check) for loss in losses] == [("where", "evaluator IsInstance", True)]


def kindly(request: Request) -> Reply:
    """Judge kind words as kind, in the form in which each tool asks."""
    kind = "Kindly" in request.text
    if request.question:  # ours
        verdict = "yes" if kind else "no"
        return chat({"verdicts": [{"id": "It is kind.", "rationale": "words", "verdict": verdict}]})
    (tool,) = request.json["tools"]
    arguments = json.dumps({"reason": "words", "pass": kind, "score": float(kind)})
    call = {"id": "c", "type": "function", "function": {"name": tool["function"]["name"], "arguments": arguments}}
    found = chat(None, finish="tool_calls")
    found.body["choices"][0]["message"]["tool_calls"] = [call]
    found.body |= {"created": 0, "model": "scripted"}
    return found


def test_an_llm_judge_of_pydantic_evals_passes_and_fails_what_it_does_there(inspect: Path, project: Project) -> None:
    """An imported check has its source's threshold: without a baseline, a case that fails it is no pass."""
    with JudgeStub() as stub:
        stub.answer = kindly
        command = [inspect, "-W", "ignore", AGENTS / "judged_dataset.py", stub.url, project.root / "dataset.yaml"]
        there = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        assert there == {"cancel": False, "where": True}
        answers = {"Cancel A200": "No.", "Where is A100?": "Kindly: it has shipped."}
        project.write("bot.py", f"def answer(message):\n    return {answers}[message]\n")
        judge = {"model": "scripted", "base_url": stub.url, "num_samples": 1}
        config = {"suite": "dataset.yaml", "agent": {"python": "bot:answer"}, "judge": judge, "trials": 2}
        project.write("gate.yaml", config)
        code, result = project.result("run")
    (suite,) = result["suites"]
    assert {case["id"]: (case["passed"], case["trials"]) for case in suite["cases"]} == {
        "cancel": (0, 2),
        "where": (2, 2),
    }
    assert (code, suite["verdict"]) == (1, "below_threshold")


def test_the_schema_beside_a_dataset_is_passed_over_in_its_folder(written: Path, project: Project) -> None:
    """A lost check ends the import, and nothing is written."""
    folder = project.root / "evals"
    folder.mkdir()
    for name in ("dataset.yaml", "dataset_schema.json"):
        shutil.copy(written / name, folder)
    lost = project.gate("import", "evals", "--to", "suite.json")
    assert (lost.code, (project.root / "suite.json").exists()) == (2, False)
    assert "evaluator IsInstance" in lost.out + lost.err
    kept = project.gate("import", "evals", "--to", "suite.json", "--allow-loss")
    assert kept.code == 0, kept.out + kept.err


ADK_AGENT = """
from google.adk.agents import Agent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

class Scripted(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        said = request.contents[-1].parts[-1].text or ""
        if "crash" in said:
            raise RuntimeError("the backend is gone")
        part = types.Part(text="Order A100 has shipped.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

root_agent = Agent(name="shop", model=Scripted(model="scripted"))
"""


def test_results_of_adk_eval(agentevals: Path, tmp_path: Path) -> None:
    def case(name: str, said: str, expected: str) -> dict[str, Any]:
        turn = {"user_content": {"parts": [{"text": said}]}, "final_response": {"parts": [{"text": expected}]}}
        session = {"app_name": "shop", "user_id": "u", "state": {}}
        return {"eval_id": name, "conversation": [turn], "session_input": session}

    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "__init__.py").write_text("from . import agent\n")
    (shop / "agent.py").write_text(ADK_AGENT)
    cases = [case("good", "Where?", "Order A100 has shipped."), case("bad", "Where?", "No"), case("gone", "crash", "x")]
    (tmp_path / "s.evalset.json").write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}))
    (tmp_path / "config.json").write_text('{"criteria": {"response_match_score": 0.8}}')
    command = [agentevals.parent / "adk", "eval", "shop", "s.evalset.json", "--config_file_path", "config.json"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    (path,) = (shop / ".adk" / "eval_history").glob("*.json")
    suite, _ = loaded(path)
    assert suite.brought == {"response_match_score": {"threshold": 0.8}}
    assert {trial.case_id: bool(trial.error) for trial in suite.recorded} == {"good": False, "bad": False, "gone": True}
