"""A support crew of CrewAI. The gate calls `answer` and reads the crew's own output."""

import os

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")  # read as the package is imported

from crewai import Agent, Crew, Task
from crewai.tools import tool


@tool("lookup_order")
def lookup_order(order_id: str) -> str:
    """What is known of an order."""
    return f'{{"order_id": "{order_id}", "status": "shipped"}}'


@tool("refund_order")
def refund_order(order_id: str) -> str:
    """Pays the price of an order back."""
    return f'{{"order_id": "{order_id}", "refunded": true}}'


def crew():
    """A crew of its own for each question: kickoffs of one crew would mix their messages."""
    support = Agent(
        role="support agent",
        goal="Help customers with their orders.",
        backstory="You look an order up before you act on it.",
        llm="gpt-5-mini",
        tools=[lookup_order, refund_order],
    )
    task = Task(description="Answer the customer:\n{conversation}", expected_output="One sentence.", agent=support)
    return Crew(agents=[support], tasks=[task])


def answer(messages):
    conversation = "\n".join(f"{one['role']}: {one['content']}" for one in messages if one.get("content"))
    return crew().kickoff(inputs={"conversation": conversation})
