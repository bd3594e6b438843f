"""`gate init` in repositories as strangers have them: what is found, proposed and written, and the first verdict."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from tests.acceptance.conftest import REPOSITORY, Project, first_of

SAMPLES = Path(__file__).with_name("repositories")
NO_MODULE = "agent.executable: .venv"
FOUND: dict[str, tuple[str, dict[str, Any], int]] = {
    "adk": ("Google ADK in orders/agent.py:9", {"env": ["GEMINI_*", "GOOGLE_*"]}, 3),
    "langgraph": ("langgraph.json names the graph 'orders'", {"path": ["src"], "env": ["LANGSMITH_*", "OPENAI_*"]}, 3),
    "agents_sdk": ("1. OpenAI Agents SDK in triage.py:13: triage_agent", {"env": ["OPENAI_*"]}, 3),
    "pydantic_ai": ("pydantic-ai in app/support.py:4", {"env": ["OPENAI_*"]}, 3),
    "crewai": ("CrewAI in src/orders/crew.py:13", {"path": ["src"], "env": ["OPENAI_*"]}, 3),
    "function": ("def answer(question)", {"python": "bot:answer"}, 0),
    "promptfoo": ("promptfoo's configuration in promptfooconfig.yaml", {"python": "bot:chat"}, 0),
    "deepeval": ("goldens.json: 2 cases, used in place", {"python": "bot:respond"}, 0),
    "evalview": ("EvalView's cases in tests/test-cases/order.yaml: 1 case,", {"python": "bot:ask"}, 0),
}
"""Sample → what is said, what stands under ``agent`` (besides the file that asks a framework), the exit code."""


def sample(project: Project, name: str) -> set[str]:
    """A copy of a sample as the project; its files."""
    shutil.copytree(SAMPLES / name, project.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return files(project)


def files(project: Project) -> set[str]:
    own = (".gate", ".git", "__pycache__")
    paths = (path.relative_to(project.root) for path in project.root.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if not set(own) & set(path.parts)}


def config_of(project: Project) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((project.root / "gate.yaml").read_text())
    return content


def agent_of(project: Project) -> dict[str, Any]:
    """What stands under ``agent``, without its sources."""
    return {key: value for key, value in config_of(project)["agent"].items() if key != "sources"}


@pytest.mark.parametrize("name", first_of(FOUND, 4))
def test_a_repository_is_recognised(project: Project, name: str) -> None:
    said, agent, code = FOUND[name]
    before = {path: (project.root / path).read_bytes() for path in sample(project, name)}
    ran = project.gate("init")
    assert said in ran.out
    assert ran.code == code, ran.out + ran.err
    framework = "python" not in agent
    assert agent_of(project) == ({"python": "gate_agent:answer"} if framework else {}) | agent
    assert {path: (project.root / path).read_bytes() for path in before} == before
    assert ("gate_agent.py" in files(project)) == framework
    if framework:
        compile((project.root / "gate_agent.py").read_text(), "gate_agent.py", "exec")
        assert NO_MODULE in ran.out


def test_a_suite_that_is_there_is_pointed_to(project: Project) -> None:
    sample(project, "adk")
    told = project.gate("init", "--no-run").out
    assert "write your own cases   evals/orders.evalset.json" in told
    config = config_of(project)
    assert config["suite"] == "evals/orders.evalset.json"
    assert set(config["criteria"]) == {"tool_trajectory_avg_score", "response_match_score"}
    assert "evals/first.yaml" not in files(project)


def test_cases_in_tests_of_python_are_told_with_what_would_be_lost(project: Project) -> None:
    sample(project, "deepeval")
    told = "`gate import test_bot.py --to evals/test_bot.json --allow-loss` writes them and lists 1 check that is lost"
    ran = project.gate("init", "--no-run")
    assert f"found cases in a test in test_bot.py: 1 case can be read; {told}" in ran.out
    command = told.split("`")[1].split()[1:]
    ran = project.gate(*command)
    assert (ran.code, "lost check: line 7: metric AnswerRelevancyMetric()" in ran.out) == (0, True), ran.out + ran.err
    assert "Where is A1?" in (project.root / "evals" / "test_bot.json").read_text()


def test_a_dataset_in_code_is_a_suite_as_it_stands(project: Project) -> None:
    sample(project, "function")
    cases = "Dataset[str, str](cases=[Case(inputs='Hi', expected_output='You said Hi')])"
    project.write("evals/capitals.py", f"from pydantic_evals import Case, Dataset\nd = {cases}\n")
    ran = project.gate("init")
    assert "found cases in a test in evals/capitals.py: 1 case, used in place" in ran.out
    assert (ran.code, config_of(project)["suite"]) == (0, "evals/capitals.py"), ran.out + ran.err


def test_a_test_of_adk_adds_nothing_to_its_eval_set(project: Project) -> None:
    sample(project, "adk")
    call = "AgentEvaluator.evaluate('orders', eval_dataset_file_path_or_dir='evals/orders.evalset.json')"
    source = f"from google.adk.evaluation.agent_evaluator import AgentEvaluator\nasync def test():\n    await {call}\n"
    project.write("tests/test_eval.py", source)
    ran = project.gate("init", "--no-run")
    assert "ADK eval sets in evals/orders.evalset.json" in ran.out and "tests/test_eval.py" not in ran.out
    assert config_of(project)["suite"] == "evals/orders.evalset.json"


def test_an_agent_with_a_type_is_one(project: Project) -> None:
    project.write("bot.py", "from agents import Agent\nagent = Agent[dict](name='x')\n")
    assert "OpenAI Agents SDK in bot.py:2" in project.gate("init", "--no-run").out


def test_what_an_agent_still_needs_is_said_in_the_file_that_asks_it(project: Project) -> None:
    project.write("bot.py", "from pydantic_ai import Agent\nagent = Agent('openai-chat:gpt-5', deps_type=dict)\n")
    project.gate("init", "--no-run")
    assert "# deps=…: what your tools need\n" in (project.root / "gate_agent.py").read_text()
    assert agent_of(project)["env"] == ["OPENAI_*"]
    project.write("bot.py", "from crewai import Crew\ndef build():\n    return Crew(agents=[])\n\ncrew = build()\n")
    project.gate("init", "--no-run")
    written = (project.root / "gate_agent.py").read_text()
    assert 'own.kickoff(inputs={"message": message})  # the names that your tasks have in braces\n' in written
    assert agent_of(project)["env"] == ["OPENAI_*"]  # the provider that CrewAI takes by default


def test_a_function_that_takes_a_history_is_no_agent_by_itself(project: Project) -> None:
    """It would be called with a text, so the route that fills the history is the agent."""
    project.write("talk.py", "async def chat(history: 'list[dict]') -> dict:\n    return {'answer': history[-1]}\n")
    code, path, *_ = SERVERS["untyped"]
    project.write("server.py", code)
    ran = project.gate("init", "--no-run")
    assert "found 1. FastAPI in server.py" in ran.out and "found 2." not in ran.out
    assert agent_of(project)["http"]["url"] == f"http://127.0.0.1:8000{path}"


@pytest.mark.parametrize(
    ("code", "framework"),
    [
        (
            "import re\nfrom langgraph.graph import StateGraph\n\nWORD = re.compile('x')\n\ndef build():\n"
            "    g = StateGraph(dict)\n    return g.compile()\n\n"
            "graph = build()\n",
            "found 1. LangGraph in bot.py:10: graph = build(…)",
        ),
        (
            "from agents import Agent\n\ndef make_agent(name='x'):\n"
            "    return Agent(name=name)\n\nagent = make_agent()\n",
            "found 1. OpenAI Agents SDK in bot.py:6: agent = make_agent(…)",
        ),
    ],
)
def test_an_agent_that_a_function_of_the_module_builds_is_one(project: Project, code: str, framework: str) -> None:
    project.write("bot.py", code)
    ran = project.gate("init", "--no-run")
    assert framework in ran.out and "found 2." not in ran.out


@pytest.mark.parametrize(
    ("file", "agent"),
    first_of(
        [
            ("src/shopbot/main.py", {"python": "shopbot.main:reply", "path": ["src"]}),
            ("shopbot/talk/main.py", {"python": "shopbot.talk.main:reply"}),
            ("concierge/main.py", {"python": "concierge.main:reply"}),
        ]
    ),
)
def test_a_module_of_a_package_is_named_with_it(project: Project, file: str, agent: dict[str, Any]) -> None:
    """It may import its neighbours by a dot."""
    folder = Path(file).parent
    while folder.name and folder.name != "src":
        project.write(f"{folder}/__init__.py", "")
        folder = folder.parent
    project.write(str(Path(file).with_name("words.py")), "HELLO = 'Hello!'\n")
    project.write(file, "from .words import HELLO\n\ndef reply(message):\n    return HELLO\n")
    ran = project.gate("init", "--no-workflow")
    assert ran.code == 0, ran.out + ran.err
    assert agent_of(project) == agent


def test_criteria_of_the_suite_stay_its_own(project: Project) -> None:
    sample(project, "adk")
    project.write("evals/test_config.json", {"criteria": {"tool_trajectory_avg_score": 1.0}})
    project.gate("init", "--no-run")
    assert "criteria" not in config_of(project)


def test_a_described_server_is_asked_by_its_description(project: Project) -> None:
    sample(project, "server")
    ran = project.gate("init")
    assert (ran.code, "start the server" in ran.out) == (3, True)
    request = {"message": "{{message}}", "session_id": "{{session_id}}"}
    http = {"url": "http://127.0.0.1:9/chat", "request": request, "response": {"output": "reply"}}
    assert agent_of(project) == {"http": http}


def test_a_running_server_has_to_be_started_in_ci_too(project: Project) -> None:
    project.git("init", "-q")
    project.git("remote", "add", "origin", "https://github.com/some/repository")
    ran = project.gate("init", "--no-run", "--url", "http://127.0.0.1:9/ask")
    assert "found 1. an HTTP server at http://127.0.0.1:9/ask" in ran.out
    assert "start it in CI" in ran.out and "only thresholds decide" in ran.out


def test_an_address_is_enough(project: Project) -> None:
    ran = project.gate("init", "--url", "http://127.0.0.1:9/ask")
    assert ran.code == 3
    assert agent_of(project) == {"http": "http://127.0.0.1:9/ask"}


@contextmanager
def describing(documents: Mapping[str, Any]) -> Iterator[str]:
    """A server that has these documents, and answers a message at /chat."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(documents.get(self.path))

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer({"reply": f"You said {asked['message']}"} if self.path == "/chat" else None)

        def answer(self, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(404 if value is None else 200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


CARD = {"name": "shop", "supportedInterfaces": [{"url": "/rpc", "protocolBinding": "JSONRPC"}]}


def test_a_running_server_is_asked_for_its_description(project: Project) -> None:
    """The operation of its description is asked, wherever the description says that the server is."""
    document = json.loads((SAMPLES / "server" / "openapi.json").read_text())
    with describing({"/openapi.json": document}) as url:
        ran = project.gate("init", "--url", url)
        assert ran.code == 0, ran.out + ran.err
        assert "POST /chat takes 'message'" in ran.out
        assert "no baseline yet" in ran.out
    (record,) = (project.root / ".gate" / "records").rglob("*.jsonl")
    assert "You said Hello!" in record.read_text()
    http = config_of(project)["agent"]["http"]
    assert (http["url"], http["response"]) == (f"{url}/chat", {"output": "reply"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("documents", "path", "agent", "why"),
    [
        ({"/.well-known/agent-card.json": CARD}, "", {"a2a": ""}, "it has an agent card"),
        ({}, "", {"http": ""}, "it has no description at /openapi.json"),
        ({"/openapi.json": {"paths": {"/chat": {}}}}, "/chat", {"http": "/chat"}, "no POST /chat that takes a message"),
        ({"/openapi.json": {"paths": {"/run": {}, "/list-apps": {}}}, "/list-apps": ["shop", "bank"]}, "",
         {"adk": {"url": "", "app": "shop"}}, "it serves /list-apps and /run"),
        ({"/v1/models": {"data": [{"id": "shop"}]}}, "", {"openai": {"url": "/v1", "model": "shop"}},
         "it lists models at /v1/models"),
        ({"/api/models": {"data": [{"id": "shop"}]}}, "/api/chat/completions",
         {"openai": {"url": "/api", "model": "shop"}}, "it lists models at /api/models"),
        ({"/openapi.json": ["paths"], "/.well-known/agent-card.json": "card"}, "", {"http": ""}, "no description"),
    ],
    ids=["card", "nothing", "other", "adk", "models", "models elsewhere", "hostile"],
)  # fmt: skip
def test_what_a_running_server_is_known_by(
    project: Project, documents: dict[str, Any], path: str, agent: dict[str, Any], why: str
) -> None:
    with describing(documents) as url:
        ran = project.gate("init", "--no-run", "--url", url + path)
    assert (ran.code, why in ran.out) == (0, True), ran.out + ran.err
    ((kind, told),) = agent.items()
    expected = {**told, "url": url + told["url"]} if isinstance(told, dict) else url + path
    if kind == "a2a":
        expected = url
    assert agent_of(project) == {kind: expected}


@pytest.mark.parametrize("name", ["evals", ".github"])
def test_what_cannot_be_written_leaves_nothing_behind(project: Project, name: str) -> None:
    """A file lies where a folder is needed; once it is away, the same command works."""
    sample(project, "function")
    project.git("init", "-q")
    project.git("remote", "add", "origin", "https://github.com/some/repository")
    (project.root / name).write_text("in the way")
    before = set(project.root.rglob("*"))
    ran = project.gate("init", "--no-run")
    assert (ran.code, "nothing was written" in ran.err, ran.err.count("\n")) == (2, True, 1), ran.out + ran.err
    assert set(project.root.rglob("*")) == before
    (project.root / name).unlink()
    again = project.gate("init", "--no-run")
    assert again.code == 0, again.err
    assert {"gate.yaml", "evals/first.yaml", ".github/workflows/gate.yml"} <= files(project)


def test_nothing_is_run_while_looking_and_nothing_hostile_shown(project: Project) -> None:
    sample(project, "hostile")
    (project.root / "loop").symlink_to(project.root, target_is_directory=True)
    (project.root / "binary.py").write_bytes(b"\x00\xff" * 1_000)
    project.write("nested.yaml", "cases: " + "[" * 20_000)
    ran = project.gate("init")
    assert ran.code == 0, ran.out + ran.err
    assert not (project.root / "imported").exists()
    assert "\x1b" not in ran.out + ran.err
    assert config_of(project)["suite"] == "evals/first.yaml", "the broken file beside it is not read"


def test_an_empty_folder_gets_a_sample_that_passes(project: Project) -> None:
    ran = project.gate("init")
    assert ran.code == 0
    assert "exit code 0: pass" in ran.out
    assert files(project) == {"gate.yaml", "my_agent.py", "evals/first.yaml", ".gitignore"}


def test_a_sample_can_be_set_up_again(project: Project) -> None:
    assert "git init && git add . &&" in project.gate("init").out
    project.git("init", "-q")
    again = project.gate("init")
    assert again.code == 0, again.out + again.err
    assert "call your agent        my_agent.py is a sample" in again.out
    assert "git add .gitignore evals gate.yaml my_agent.py &&" in again.out
    path = project.root / "my_agent.py"
    path.write_text(path.read_text().replace("sunny", "raining"))
    assert "is a sample" not in project.gate("init", "--no-run").out


PROMPTFOO = """\
prompts: ["{{question}}"]
providers: [openai:gpt-5-mini]
tests:
  - description: refund
    vars: {question: My kettle arrived broken.}
    assert: [{type: icontains, value: echo}, {type: javascript, value: "output.length < 500"}]
  - description: hello
    vars: {question: Hello}
    assert: [{type: similar, value: Hi}]
"""


def test_a_suite_with_checks_that_the_gate_lacks_is_converted(project: Project) -> None:
    project.write("bot.py", "def answer(question):\n    return 'echo ' + question\n")
    project.write("promptfooconfig.yaml", PROMPTFOO)
    ran = project.gate("init")
    command = "gate import promptfooconfig.yaml --to evals/promptfooconfig.json --allow-loss"
    assert f"2 cases can be read; `{command}` writes them and lists 2 checks that are lost" in ran.out
    assert f"  convert your cases     {command}; gate init" in ran.out
    ran = project.gate(*command.split()[1:])
    assert (ran.code, ran.out.count("lost check: ")) == (0, 2), ran.out + ran.err
    ran = project.gate("init")
    assert ran.code == 0, ran.out + ran.err
    assert "found promptfoo's configuration in promptfooconfig.yaml: converted to evals/promptfooconfig.json" in ran.out
    assert "convert your cases" not in ran.out
    config = config_of(project)
    assert config["suite"] == "evals/promptfooconfig.json", "not the sample beside it"
    assert config["criteria"] == "evals/promptfooconfig.criteria.json"


def test_each_suite_is_converted_to_a_file_of_its_own(project: Project) -> None:
    for folder in ("a", "b"):
        project.write(f"{folder}/promptfooconfig.yaml", PROMPTFOO)
    project.write("evals/a-promptfooconfig.json", '{"cases": [{"id": "one", "input": "hi"}]}')
    ran = project.gate("init", "--no-run")
    assert "a/promptfooconfig.yaml: converted to evals/a-promptfooconfig.json" in ran.out
    assert "gate import b/promptfooconfig.yaml --to evals/b-promptfooconfig.json --allow-loss" in ran.out


def test_many_suites_beside_the_configuration_are_one_folder(project: Project) -> None:
    for number in range(25):
        turn = {"user_content": {"parts": [{"text": "hi"}]}}
        case = {"eval_id": f"case {number}", "conversation": [turn]}
        project.write(f"{number}.evalset.json", json.dumps({"eval_set_id": "s", "eval_cases": [case]}))
    ran = project.gate("init", "--no-run")
    assert ran.code == 0, ran.err
    assert config_of(project)["suite"] == "."


def test_what_is_there_stays_and_is_named(project: Project) -> None:
    project.write("evals/first.yaml", "cases: [{id: mine, input: Hello!, response: Hello! How can I help?}]\n")
    ran = project.gate("init", "--no-run")
    assert ran.code == 0
    assert "used in place" in ran.out
    assert "mine" in (project.root / "evals/first.yaml").read_text()
    project.write("my_agent.py", "x = 1\n")
    (project.root / "gate.yaml").unlink()
    assert "kept my_agent.py: you wrote or changed it" in project.gate("init", "--no-run").out


def test_it_can_be_run_again_and_replaces_no_file_that_a_person_changed(project: Project) -> None:
    sample(project, "function")
    assert project.gate("init").code == 0
    first = files(project)
    assert set(config_of(project)["criteria"]) == {"latency"}, "the cases state nothing that could be missed"
    cases = project.root / "evals" / "first.yaml"
    cases.write_text("cases: [{id: mine, input: Hi, tools: [look_up]}]\n")
    project.git("init", "-q")
    again = project.gate("init", "--no-run")
    assert (again.code, files(project)) == (0, first), again.err
    assert "git add evals gate.yaml &&" in again.out
    assert config_of(project)["criteria"] == {"tool_trajectory_avg_score": 0.6}
    assert config_of(project)["suite"] == "evals/", "the suite keeps its name"
    config = project.root / "gate.yaml"
    config.write_text(config.read_text().replace("0.6", "0.9"))
    refused = project.gate("init")
    assert (refused.code, "you have changed this file" in refused.err) == (2, True)
    assert project.gate("init", "--no-run", "--force").code == 0
    assert config_of(project)["criteria"] == {"tool_trajectory_avg_score": 0.6}
    assert "mine" in cases.read_text()


def test_calls_of_the_first_run_are_proposed_as_expectations(project: Project) -> None:
    call = "{'name': 'look_up', 'arguments': {'word': message.split()[0]}}"
    project.write("bot.py", f"def answer(message):\n    return {{'output': 'It is', 'tool_calls': [{call}]}}\n")
    assert project.gate("init").code == 0
    content = yaml.safe_load((project.root / "evals" / "first.yaml").read_text())
    assert content["cases"][1]["tools"] == [{"name": "look_up", "args": {"word": "Please"}}]
    assert config_of(project)["criteria"] == {"tool_trajectory_avg_score": 0.6}
    assert project.gate("run", "-q").code == 0
    project.write("bot.py", "def answer(message):\n    return {'output': 'It is', 'tool_calls': []}\n")
    assert project.gate("run", "-q").code == 1, "it can block"


def test_sources_are_what_the_agent_imports_and_names(project: Project) -> None:
    project.write(
        "bot.py", "import words\nTEXT = open('prompts/system.txt')\ndef answer(message):\n    return words.HI\n"
    )
    project.write("words.py", "from shop.orders import HI\n")
    project.write("shop/__init__.py", "")
    project.write("shop/orders.py", "HI = 'Hi'\n")
    project.write("prompts/system.txt", "Be kind.")
    project.write("skills/refund.md", "Refund.")
    project.write("requirements.txt", "")
    project.write("other.py", "x = 1\n")
    project.write("README.md", "")
    assert project.gate("init").code == 0
    sources = config_of(project)["agent"]["sources"]
    assert sources == ["bot.py", "words.py", "shop/", "prompts/", "skills/"]  # what installs it always counts
    project.write("words.py", "import importlib\nHI = importlib.import_module('shop.orders').HI\n")
    project.gate("init", "--no-run")
    assert "sources" not in config_of(project)["agent"], "nobody can tell what it loads while it runs"
    why = "(no agent.sources): what words.py reads shows only while it runs (import_module)"
    assert why in (project.root / "gate.yaml").read_text()


SERVERS = {
    "typed": (
        "from fastapi import APIRouter, FastAPI\nfrom models import Answer, Question\n\n"
        "app = FastAPI()\nrouter = APIRouter(tags=['x'], prefix='/v1')\n\n"
        "@app.post('/feedback')\ndef feedback(given: dict):\n    store(given['text'])\n\n"
        "@router.post('/chat', response_model=Answer)\nasync def chat(\n    asked: Question,\n) -> Answer:\n"
        "    return Answer(reply=await ask(asked.question, asked.thread_id))\n",
        "/v1/chat",
        {"question": "{{message}}", "thread_id": "{{session_id}}"},
        {"output": "reply"},
        "uvicorn server:app --port 8000",
    ),
    "untyped": (
        "from fastapi import Body, FastAPI\n\napp = FastAPI()\n\n"
        "@app.post('/ask')\ndef answer(message: str = Body(embed=True)):\n"
        "    return {'answer': 'x', 'tool_calls': []}\n",
        "/ask",
        {"message": "{{message}}"},
        {"output": "answer", "tool_calls": "tool_calls?"},
        "uvicorn server:app --port 8000",
    ),
    "flask": (
        "from flask import Flask, jsonify, request\n\napp = Flask(__name__)\n\n"
        "@app.route('/chat', methods=['POST'])\ndef chat():\n"
        "    data = request.get_json()\n    said = data['query']\n    return jsonify(response=said), 200\n",
        "/chat",
        {"query": "{{message}}"},
        {"output": "response"},
        "flask --app server:app run --port 8000",
    ),
    "starlette": (
        "from starlette.applications import Starlette\nfrom starlette.responses import JSONResponse\n"
        "from starlette.routing import Route\n\nasync def answer(request):\n    body = await request.json()\n"
        "    result = {'output': body.get('message'), 'tools': []}\n    return JSONResponse(result)\n\n"
        "app = Starlette(routes=[Route('/respond', answer, methods=['POST'])])\n",
        "/respond",
        {"message": "{{message}}"},
        {"output": "output", "tool_calls": "tools?"},
        "uvicorn server:app --port 8000",
    ),
}
"""Framework → the server's code, and what is proposed: path, request, response, and how to start it."""


@pytest.mark.parametrize("name", SERVERS)
def test_routes_of_web_frameworks_are_asked_over_http(project: Project, name: str) -> None:
    code, path, request, response, start = SERVERS[name]
    project.write("server.py", code)
    ran = project.gate("init", "--no-run")
    assert ran.code == 0, ran.err
    http = {"url": f"http://127.0.0.1:8000{path}", "request": request, "response": response}
    assert agent_of(project) == {"http": http}
    assert f"start the server:  {start}" in ran.out
    assert "python" not in ran.out.split("found 1.")[1].splitlines()[0]


def test_a_server_whose_code_names_no_keys_is_asked_by_its_description_once_it_runs(project: Project) -> None:
    document = json.loads((SAMPLES / "server" / "openapi.json").read_text())
    code = "from fastapi import FastAPI\nimport uvicorn\napp = FastAPI()\n\n"
    code += "@app.post('/chat')\ndef chat(asked: Question):\n    return run(asked)\n\nuvicorn.run(app, port={})\n"
    project.write("server.py", code.format(9))
    ran = project.gate("init")
    assert "to fill in: its request and answer: start it, then run this again" in ran.out
    assert (ran.code, "(uvicorn server:app --port 9), then: gate init\n" in ran.out) == (3, True), ran.out
    with describing({"/openapi.json": document}) as url:
        project.write("server.py", code.format(url.rpartition(":")[2]))
        ran = project.gate("init")
    assert (ran.code, "to fill in" in ran.out) == (0, False), ran.out + ran.err
    http = agent_of(project)["http"]
    assert (http["url"], http["response"]) == (f"{url}/chat", {"output": "reply"})
    assert "uvicorn server:app" in (project.root / "gate.yaml").read_text()


@pytest.mark.parametrize("path", ["", "/chat"])
def test_a_running_server_without_a_description_is_asked_by_its_route_in_the_code(project: Project, path: str) -> None:
    project.write("server.py", SERVERS["flask"][0].replace("data['query']", "data['message']"))
    with describing({}) as url:
        ran = project.gate("init", "--url", url + path)
    request, response = {"message": "{{message}}"}, {"output": "response"}
    assert agent_of(project) == {"http": {"url": f"{url}/chat", "request": request, "response": response}}
    assert f"1. Flask at {url}{path}: POST /chat takes 'message', as in server.py:3" in ran.out
    port = url.rpartition(":")[2]
    assert f"# start it first: flask --app server:app run --port {port}" in (project.root / "gate.yaml").read_text()


@pytest.mark.parametrize("name", [".gitignore", ".git/config"])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_where_one_is_looked_for_is_passed_over(project: Project, name: str, make: Any) -> None:
    """Opening a pipe would wait for somebody to write into it."""
    (project.root / name).parent.mkdir(exist_ok=True)
    make(project.root / name)
    assert project.gate("init", "--no-run", timeout=60).code == 0


def test_the_name_of_a_folder_writes_no_keys(project: Project) -> None:
    folder = project.root / "x\ntrials: 3\nbudget: "
    folder.mkdir()
    (folder / "bot.py").write_text("from agents import Agent\nagent = Agent(name='x')\n")
    assert project.gate("init", "--no-run").code == 0
    assert config_of(project).keys() == {"suite", "agent", "criteria"}


@pytest.mark.parametrize(
    ("mark", "file"), [(".github/CODEOWNERS", ".github/workflows/gate.yml"), (".gitlab-ci.yml", ".gitlab-ci.yml")]
)
def test_the_workflow_is_that_of_the_host(project: Project, mark: str, file: str) -> None:
    sample(project, "agents_sdk")
    project.write(mark, "")
    project.write("requirements.txt", "")
    ran = project.gate("init", "--no-run")
    if mark == file:
        assert f"kept {file}" in ran.out
        return
    workflow = yaml.safe_load((project.root / file).read_text())
    shown = re.search(
        r"^```yaml\n(# \.github/workflows/gate\.yml\n.*?)^```$", (REPOSITORY / "README.md").read_text(), re.M | re.S
    )
    assert shown is not None
    expected = yaml.safe_load(shown[1])
    expected["jobs"]["gate"]["secrets"]["env"] += "\n"  # a line each
    assert workflow == expected
    assert "The first push to main stores the baseline" in ran.out
    assert "give CI the key        OPENAI_API_KEY, as a repository secret" in ran.out


def test_a_key_is_a_variable_on_gitlab(project: Project) -> None:
    sample(project, "agents_sdk")
    project.git("init", "-q")
    project.git("remote", "add", "origin", "https://gitlab.example/some/repository")
    ran = project.gate("init", "--no-run")
    assert "give CI the key        OPENAI_API_KEY, as a CI/CD variable" in ran.out, ran.out + ran.err


def test_a_repository_on_gitlab_gets_both_jobs_and_keeps_its_baselines_in_git(project: Project) -> None:
    sample(project, "function")
    project.git("init", "-q")
    project.git("remote", "add", "origin", "https://gitlab.example/some/repository")
    project.write("requirements.txt", "")
    assert project.gate("init", "--no-run").code == 0
    jobs = yaml.safe_load((project.root / ".gitlab-ci.yml").read_text())
    assert "pip install -r requirements.txt" in jobs["gate"]["before_script"]
    assert jobs["gate"]["script"][-1].startswith("gate run ")
    assert jobs["baseline"]["script"][0].startswith("gate baseline ")
    assert config_of(project)["baseline"] == {"store": "git"}


def test_gitlabs_job_makes_the_virtual_environment_that_is_not_in_the_repository(project: Project) -> None:
    sample(project, "function")
    project.git("init", "-q")
    project.git("remote", "add", "origin", "https://gitlab.example/some/repository")
    project.write("requirements.txt", "")
    project.write(".venv/pyvenv.cfg", "")
    assert project.gate("init", "--no-run").code == 0
    assert config_of(project)["agent"]["executable"] == ".venv"
    jobs = yaml.safe_load((project.root / ".gitlab-ci.yml").read_text())
    made = ["python -m venv .venv", ".venv/bin/pip install -r requirements.txt"]
    assert jobs["gate"]["before_script"][-2:] == made


@pytest.mark.slow
def test_a_missing_key_is_named_with_the_place_to_hand_it_on(project: Project) -> None:
    project.write("bot.py", "import os\n\ndef answer(message):\n    raise KeyError('set ACME_API_KEY: unauthorized')\n")
    ran = project.gate("init", ACME_API_KEY="secret-value-1234")
    assert ran.code == 1 or ran.code == 3
    assert "to do: pass ACME_API_KEY to the agent: agent.env: [ACME_API_KEY] in gate.yaml" in ran.out
    assert "secret-value-1234" not in ran.out + ran.err
    assert "to do: set ACME_API_KEY here" in project_again(project)


def project_again(project: Project) -> str:
    (project.root / "gate.yaml").unlink()
    return project.gate("init").out


def test_one_of_several_agents_is_chosen(project: Project) -> None:
    sample(project, "agents_sdk")
    assert "taking agent 1 (--agent N takes another)" in project.gate("init", "--no-run").out
    assert project.gate("init", "--no-run", "--agent", "3").code == 0
    assert "from triage import orders" in (project.root / "gate_agent.py").read_text()
    (project.root / "gate.yaml").unlink()
    refused = project.gate("init", "--agent", "4")
    assert (refused.code, "3 found" in refused.err) == (2, True)


def test_a_remedy_names_the_agent_that_was_chosen(project: Project) -> None:
    """`gate init` alone would take the first again."""
    project.write("bot.py", "def answer(message):\n    return 'Hi'\n")
    code = "from fastapi import FastAPI\nimport uvicorn\napp = FastAPI()\n@app.post('/chat')\ndef chat(body: dict):\n"
    code += "    return {'reply': body['message']}\nuvicorn.run(app, port=1)\n"
    project.write("server.py", code)
    ran = project.gate("init", "--agent", "2")
    assert ran.code == 3
    assert "(uvicorn server:app --port 1), then: gate init --agent 2\n" in ran.out
    ran = project.gate("init", "--url", "http://127.0.0.1:1")
    assert "then: gate init --url http://127.0.0.1:1\n" in ran.out


@pytest.mark.slow
def test_the_shortest_case_is_the_first(project: Project) -> None:
    turns = [{"input": "one"}, {"input": "two"}]
    project.write("evals/cases.json", {"cases": [{"id": "long", "turns": turns}, {"id": "short", "input": "hi"}]})
    project.write("bot.py", "def answer(message):\n    return message\n")
    assert "case short" in project.gate("init").out


@pytest.mark.slow
def test_a_large_repository_is_looked_at_within_bounds(project: Project) -> None:
    for number in range(1_500):
        project.write(f"pkg/m{number:04}.py", "x = 1\n")
    for number in range(40):
        project.write(f"evals/e{number}.yaml", "- {a: [b, c, d]}\n" * 15_000)
    project.write("deep.py", "x = " + "-" * 200_000 + "1\ny = " + "1+" * 100_000 + "1\n")
    project.write("pkg/z.json", json.dumps({"cases": [{"id": "a", "input": "x"}]}))
    assert project.gate("init", "--no-run").code == 0
