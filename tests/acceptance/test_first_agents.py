"""`gate init` finds the agent where a stranger's repository states it: in code, and in the files of other tools."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.acceptance.conftest import Project

PACKAGE = {"scripts": {"start": "node --env-file=.env server.js"}}
SERVER = """\
import express from "express";
const app = express();
app.post("/chat", async (req, res) => {
  const { message, lang } = req.body;
  if (!message) return res.status(400).json({ error: "no message" });
  res.json({ reply: await ask(message) });
});
app.listen(process.env.PORT || 4100, () => console.log("ready"));
"""
FASTAPI = """\
from fastapi import FastAPI

app = FastAPI()


@app.post("/ask")
def ask(q: dict):
    return {"answer": q["question"]}
"""
FLASK = """\
from flask import Flask, request

app = Flask(__name__)


@app.post("/ask")
def ask():
    return {"answer": request.json["question"]}


if __name__ == "__main__":
"""
UVICORN = "import uvicorn\nfrom bot.api import app\nuvicorn.run('bot.api:app', port=9002)\n"
SERVERS: dict[str, tuple[dict[str, Any], str, str]] = {
    "package.json": ({"package.json": PACKAGE, "server.js": SERVER}, "npm run start", "4100/chat"),
    "a server that is built": (
        {"package.json": {"scripts": {"start": "node dist/x.js", "dev": "tsx src/x.ts"}}, "src/x.ts": SERVER},
        "npm run dev",
        "4100/chat",
    ),
    "a folder of Node's": ({"web/package.json": PACKAGE, "web/server.js": SERVER}, "npm --prefix web", "4100/chat"),
    "Flask": ({"api.py": f"{FLASK}    app.run('0.0.0.0', port=5001)\n"}, "api:app run --port 5001", "5001/ask"),
    "a variable's default": (
        {"api.py": f"import os\n{FLASK}    app.run(port=int(os.environ.get('PORT', '5002')))\n"},
        "api:app run --port 5002",
        "5002/ask",
    ),
    "FastAPI": (
        {"api.py": f"import uvicorn\n{FASTAPI}\nuvicorn.run(app, port=9001)\n"},
        "uvicorn api:app --port 9001",
        "9001/ask",
    ),
    "another module": (
        {"bot/api.py": FASTAPI, "bot/__init__.py": "", "main.py": UVICORN},
        "uvicorn bot.api:app --port 9002",
        "9002/ask",
    ),
}
"""The place that states a server → the files, what is said, and the end of its address."""


def written(project: Project) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((project.root / "gate.yaml").read_text())
    return content


@pytest.mark.parametrize("place", SERVERS)
def test_a_server_is_called_at_the_port_that_its_repository_states(project: Project, place: str) -> None:
    files, said, end = SERVERS[place]
    for name, content in files.items():
        project.write(name, content)
    assert said in project.gate("init", "--no-run").out
    assert written(project)["agent"]["http"]["url"] == f"http://127.0.0.1:{end}"


def test_a_node_server_is_asked_with_the_keys_that_its_code_reads(project: Project) -> None:
    project.write("package.json", PACKAGE)
    project.write("server.js", SERVER)
    project.gate("init", "--no-run")
    http = written(project)["agent"]["http"]
    assert (http["request"], http["response"]) == ({"message": "{{message}}"}, {"output": "reply"})


def test_a_program_of_package_json_is_a_command(project: Project) -> None:
    project.write("package.json", {"scripts": {"start": "next start", "ask": "tsx ./cli.ts"}})
    project.write("cli.ts", "")
    assert "to fill in: how it is asked" in project.gate("init", "--no-run").out
    assert written(project)["agent"] == {"command": ["npx", "tsx", "cli.ts"]}


@pytest.mark.parametrize("text", ["[", "[]", '{"scripts": []}', '{"scripts": {"start": "\'", "dev": "node ../x.js"}}'])
def test_an_odd_package_json_names_no_agent(project: Project, text: str) -> None:
    project.write("package.json", text)
    ran = project.gate("init", "--no-run")
    assert (ran.code, "found no agent" in ran.out) == (0, True), ran.out + ran.err


PROMPTFOO = """\
prompts: ["{{question}}"]
providers: [{id: 'file://lib/provider.py:ask', config: {tone: 'kind '}}, openai:gpt-5-mini]
tests:
  - {description: hello, vars: {question: Hello}, assert: [{type: icontains, value: kind}]}
"""


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_provider_of_promptfoo_is_the_agent(project: Project, kind: str) -> None:
    answer = "    return {'output': options['config']['tone'] + prompt}\n"
    project.write("checks/promptfooconfig.yaml", PROMPTFOO)
    project.write("checks/lib/provider.py", f"{kind} ask(prompt, options, context):\n{answer}")
    ran = project.gate("init")
    assert "found 1. promptfoo's provider in checks/lib/provider.py:1: checks/promptfooconfig.yaml names it" in ran.out
    assert ran.code == 0, ran.out + ran.err
    assert "checks/lib/provider.py" in written(project)["agent"]["sources"]


def test_a_function_that_asks_a_model_is_an_agent_under_any_name(project: Project) -> None:
    body = "def run(prompt: str) -> str:\n    return prompt\n\n\ndef show(text):\n    return text\n"
    project.write("main.py", f"from openai import OpenAI\n\n\n{body}")
    project.write("other.py", body)
    ran = project.gate("init", "--no-run")
    assert "found 1. a Python function in main.py:4: def run(prompt)" in ran.out
    assert "found 2." not in ran.out


def test_a_sample_gives_way_to_an_agent(project: Project) -> None:
    project.gate("init", "--no-run")
    project.write("package.json", PACKAGE)
    project.write("server.js", SERVER)
    assert "found 1. Node in server.js" in project.gate("init", "--no-run").out


def test_the_workflow_of_a_node_server_installs_and_starts_it(project: Project) -> None:
    project.git("init", "-q")
    for name, content in {"package.json": PACKAGE, "package-lock.json": "{}", "server.js": SERVER}.items():
        project.write(name, content)
    project.write(".github/CODEOWNERS", "")
    ran = project.gate("init", "--no-run")
    workflow = (project.root / ".github/workflows/gate.yml").read_text()
    assert "npm ci" in workflow and "npm run start > server.log 2>&1 &" in workflow
    assert "to fill in: a CI job with Node" in ran.out
