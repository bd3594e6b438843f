"""Graphs as `langgraph dev` serves them: an agent with a model, one that interrupts, one with a state of its own."""

import os
from typing import TypedDict

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt


@tool
def lookup(order: str) -> str:
    """Looks an order up."""
    return f"{order} has shipped"


model = ChatOpenAI(model="m", base_url=os.environ["MODEL_URL"], api_key="none", max_retries=0)
shop = create_agent(model, [lookup])


@tool("lookup")
def guarded(order: str) -> str:
    """Looks an order up, if somebody allows it."""
    return f"{order} has shipped, {interrupt(f'May I look {order} up?')}"


gated = create_agent(model, [guarded])


def approve(state: MessagesState) -> MessagesState:
    asked = state["messages"][-1].content
    first = interrupt({"question": f"Refund {asked}?"})
    second = interrupt("Really?") if first == "maybe" else ""
    return {"messages": [AIMessage(f"{asked}: {first}{second}")]}


builder = StateGraph(MessagesState)
builder.add_node("approve", approve)
builder.add_edge(START, "approve")
builder.add_edge("approve", END)
desk = builder.compile()


class Ticket(TypedDict):
    question: str
    asked: list[str]
    reply: dict


def answer(state: Ticket, config: RunnableConfig) -> dict:
    asked = [*state.get("asked", []), state["question"]]
    if state["question"] == "raise":
        raise RuntimeError("no stock today")
    style = config["configurable"].get("style", "none")
    calls = [{"name": "lookup", "args": {"order": state["question"]}}]
    return {"asked": asked, "reply": {"text": f"{'+'.join(asked)} ({style})", "calls": calls}}


custom_builder = StateGraph(Ticket)
custom_builder.add_node("answer", answer)
custom_builder.add_edge(START, "answer")
custom_builder.add_edge("answer", END)
custom = custom_builder.compile()
