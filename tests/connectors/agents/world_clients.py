"""Functions that ask a model by the clients that agents are built with, as released, and nothing told but variables."""

from __future__ import annotations

from typing import Any


def _chat(message: str) -> list[Any]:
    return [{"role": "user", "content": message}]


def openai_chat(message: str) -> str:
    import openai

    client = openai.OpenAI()
    whole = client.chat.completions.create(model="gpt-5-mini", messages=_chat(message))
    pieces = client.chat.completions.create(model="gpt-5-mini", messages=_chat(message + "!"), stream=True)
    return str(whole.choices[0].message.content) + "".join(piece.choices[0].delta.content or "" for piece in pieces)


def openai_responses(message: str) -> str:
    import openai

    client = openai.OpenAI()
    vector = client.embeddings.create(model="text-embedding-3-small", input=message).data[0].embedding
    return f"{client.responses.create(model='gpt-5-mini', input=message).output_text} {vector[0]}"


def anthropic_messages(message: str) -> str:
    import anthropic

    client = anthropic.Anthropic()
    whole = client.messages.create(model="claude-sonnet-4-5", max_tokens=64, messages=_chat(message))
    with client.messages.stream(model="claude-sonnet-4-5", max_tokens=64, messages=_chat(message + "!")) as stream:
        return str(whole.content[0].text) + "".join(stream.text_stream)


def gemini(message: str) -> str:
    from google import genai

    client = genai.Client()
    whole = client.models.generate_content(model="gemini-2.5-flash", contents=message)
    pieces = client.models.generate_content_stream(model="gemini-2.5-flash", contents=message + "!")
    return str(whole.text) + "".join(piece.text or "" for piece in pieces)


def litellm_both(message: str) -> str:
    import litellm

    one = litellm.completion(model="openai/gpt-5-mini", messages=_chat(message))
    other = litellm.completion(model="anthropic/claude-sonnet-4-5", messages=_chat(message))
    return str(one.choices[0].message.content) + str(other.choices[0].message.content)


async def agents_sdk(message: str) -> str:
    from agents import Agent, Runner, set_tracing_disabled

    set_tracing_disabled(True)
    return str((await Runner.run(Agent(name="Clerk", model="gpt-5-mini"), message)).final_output)


async def pydantic_ai(message: str) -> str:
    from pydantic_ai import Agent

    return str((await Agent("openai-chat:gpt-5-mini").run(message)).output)


async def langchain(message: str) -> str:
    from langchain.chat_models import init_chat_model

    return str((await init_chat_model("openai:gpt-5-mini").ainvoke(message)).content)
