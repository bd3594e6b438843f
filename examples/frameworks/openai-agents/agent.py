"""A support agent of the OpenAI Agents SDK, with a colleague for refunds. The gate reads the result of the run."""

from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled

set_tracing_disabled(True)  # or leave it on, with a key for OpenAI's own traces


@function_tool
def lookup_order(order_id: str) -> str:
    """What is known of an order."""
    return f'{{"order_id": "{order_id}", "status": "shipped"}}'


@function_tool
def refund_order(order_id: str) -> str:
    """Pays the price of an order back."""
    return f'{{"order_id": "{order_id}", "refunded": true}}'


refunds = Agent(name="refunds", model="gpt-5-mini", instructions="You refund orders.", tools=[refund_order])
support = Agent(
    name="support",
    model="gpt-5-mini",
    instructions="You are a support agent. Look an order up before you act on it; hand refunds over.",
    tools=[lookup_order],
    handoffs=[refunds],
)
sessions = {}


async def answer(message, session_id):
    session = sessions.setdefault(session_id, SQLiteSession(session_id))
    return await Runner.run(support, message, session=session)
