"""A support agent of pydantic-ai. The gate calls `answer` and reads the framework's own result."""

from pydantic_ai import Agent

agent = Agent(
    "openai:gpt-5-mini",
    defer_model_check=True,
    system_prompt="You are a support agent. Look an order up before you act on it.",
)
history = {}


@agent.tool_plain
def lookup_order(order_id: str) -> dict:
    """What is known of an order."""
    return {"order_id": order_id, "status": "shipped"}


@agent.tool_plain
def refund_order(order_id: str) -> dict:
    """Pays the price of an order back."""
    return {"order_id": order_id, "refunded": True}


async def answer(message, session_id):
    result = await agent.run(message, message_history=history.get(session_id))
    history[session_id] = result.all_messages()
    return result
