"""A support agent of google-adk, with a colleague for refunds. The gate calls `answer` and reads the run's events."""

from google.adk.agents import Agent
from google.adk.runners import InMemoryRunner
from google.genai import types


def lookup_order(order_id: str) -> dict:
    """What is known of an order."""
    return {"order_id": order_id, "status": "shipped"}


def refund_order(order_id: str) -> dict:
    """Pays the price of an order back."""
    return {"order_id": order_id, "refunded": True}


refunds = Agent(name="refunds", model="gemini-2.5-flash", instruction="You refund orders.", tools=[refund_order])
root_agent = Agent(
    name="support",
    model="gemini-2.5-flash",
    instruction="You are a support agent. Look an order up before you act on it; hand refunds over.",
    tools=[lookup_order],
    sub_agents=[refunds],
)
runner = InMemoryRunner(agent=root_agent, app_name="support")


async def answer(message, session_id, turn):
    if turn == 0:
        await runner.session_service.create_session(app_name="support", user_id="gate", session_id=session_id)
    said = types.Content(role="user", parts=[types.Part(text=message)])
    return [event async for event in runner.run_async(user_id="gate", session_id=session_id, new_message=said)]
