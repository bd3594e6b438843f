"""The file that `gate init` writes to connect the gate to a framework's agent: a function that runs one turn."""

from __future__ import annotations

MODULE = "gate_agent"
"""The file's name, without the suffix."""
HEAD = '"""Runs one turn of the agent for the gate; yours to edit. The gate reads what {framework} returns."""\n\n'

LANGGRAPH = """\
from {module} import {name}


async def answer(messages, session_id, turn):
    config = {{"configurable": {{"thread_id": f"{{session_id}}-{{turn}}"}}}}  # every turn has the whole history
    return await {call}.ainvoke({{"messages": messages}}, config)  # context=…: what your tools need
"""
ADK = """\
from google.adk.runners import InMemoryRunner
from google.genai import types

from {module} import {name}

runner = InMemoryRunner(agent={call}, app_name="gate")
sessions = {{}}


async def answer(message, session_id, state):
    if session_id not in sessions:
        session = await runner.session_service.create_session(app_name="gate", user_id="gate", state=state)
        sessions[session_id] = session.id
    said = types.Content(role="user", parts=[types.Part(text=message)])
    events = runner.run_async(user_id="gate", session_id=sessions[session_id], new_message=said)
    return [event async for event in events]
"""
AGENTS_SDK = """\
from agents import Runner

from {module} import {name}


async def answer(messages):
    return await Runner.run({call}, messages)  # context=…: what your tools need
"""
PYDANTIC_AI = """\
from {module} import {name}

histories = {{}}


async def answer(message, session_id):
    result = await {call}.run(message, message_history=histories.get(session_id))  # deps=…: what your tools need
    histories[session_id] = result.all_messages()
    return result
"""
CREWAI = """\
from {module} import {name}


def answer(message):
    return {call}.kickoff(inputs={{"message": message}})  # the names that your tasks have in braces
"""
SHARED_CREW = """\
from {module} import {name}


def answer(message):
    own = {call}.copy()  # simultaneous questions to one crew would mix
    for agent in own.agents:
        agent.llm._token_usage = dict.fromkeys(agent.llm._token_usage, 0)  # CrewAI counts over all questions
    return own.kickoff(inputs={{"message": message}})  # the names that your tasks have in braces
"""
PROMPTFOO = """\
from {module} import {name}


def answer(message):
    found = {call}
    if found.get("error"):
        raise RuntimeError(found["error"])
    return found["output"]
"""


TEMPLATES = {
    "LangGraph": LANGGRAPH,
    "Google ADK": ADK,
    "OpenAI Agents SDK": AGENTS_SDK,
    "pydantic-ai": PYDANTIC_AI,
    "CrewAI": CREWAI,
    "promptfoo's provider": PROMPTFOO,
}


def adapter(framework: str, module: str, name: str, call: str) -> str:
    """Return the text of the file; ``call`` is the expression for the agent, usually its name."""
    template = TEMPLATES[framework]
    if template is CREWAI and call == name:
        template = SHARED_CREW
    text = template.format(module=module, name=name, call=call)
    if call.startswith("await "):
        text = text.replace("\ndef answer", "\nasync def answer")
    return HEAD.format(framework=framework) + text
