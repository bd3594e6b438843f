"""What people return at first in place of a framework's answer; the message says which of them."""

import importlib.util
import os
import threading
from pathlib import Path

EXAMPLES = Path(os.environ["EXAMPLES"])
THREAD = {"configurable": {"thread_id": "t"}}
# Several frameworks at once import the same packages in other orders, which Python can refuse as a deadlock.
IMPORTING = threading.Lock()


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / name / "agent.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(message="Where is A1?"):
    return {"messages": [{"role": "user", "content": message}]}


def strands():
    from strands import Agent
    from strands.models.openai import OpenAIModel

    return Agent(model=OpenAIModel(model_id="gpt-5-mini"), callback_handler=None)


def microsoft():
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatCompletionClient

    return Agent(OpenAIChatCompletionClient("gpt-5-mini"), "Help.", name="support")


def claude():
    from claude_agent_sdk import query

    return query(prompt="Where is A1?")


def google():
    from google.genai import types

    said = types.Content(role="user", parts=[types.Part(text="Where is A1?")])
    return example("google-adk").runner.run_async(user_id="u", session_id="s", new_message=said)


SHAPES = {
    "agents: agent": lambda: example("openai-agents").support,
    "pydantic-ai: agent": lambda: example("pydantic-ai").agent,
    "pydantic-ai: stream": lambda: example("pydantic-ai").agent.run_stream("Where is A1?"),
    "langgraph: graph": lambda: example("langgraph").agent,
    "langgraph: stream": lambda: example("langgraph").agent.stream(asked(), THREAD),
    "langgraph: updates": lambda: list(example("langgraph").agent.stream(asked(), THREAD)),
    "langgraph: values": lambda: list(example("langgraph").agent.stream(asked(), THREAD, stream_mode="values")),
    "langgraph: messages": lambda: list(example("langgraph").agent.stream(asked(), THREAD, stream_mode="messages")),
    "langgraph: renamed": lambda: {"history": example("langgraph").agent.invoke(asked(), THREAD)["messages"]},
    "claude: query": claude,
    "microsoft: response": lambda: microsoft().run("Where is A1?"),
    "google-adk: generator": google,
    "google-adk: agent": lambda: example("google-adk").root_agent,
    "crewai: crew": lambda: example("crewai").crew(),
    "strands: result": lambda: strands()("Where is A1?"),
    "strands: stream": lambda: strands().stream_async("Where is A1?"),
}


def answer(message):
    with IMPORTING:
        return SHAPES[message]()
