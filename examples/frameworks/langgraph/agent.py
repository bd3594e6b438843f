"""A support agent of LangChain, which is a graph of LangGraph. The gate calls `answer` and reads the graph's state."""

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver


def lookup_order(order_id: str) -> dict:
    """What is known of an order."""
    return {"order_id": order_id, "status": "shipped"}


def refund_order(order_id: str) -> dict:
    """Pays the price of an order back."""
    return {"order_id": order_id, "refunded": True}


agent = create_agent(
    "openai:gpt-5-mini",
    [lookup_order, refund_order],
    system_prompt="You are a support agent. Look an order up before you act on it.",
    checkpointer=InMemorySaver(),
)


async def answer(message, session_id):
    asked = {"messages": [{"role": "user", "content": message}]}
    return await agent.ainvoke(asked, {"configurable": {"thread_id": session_id}})
