"""An agent of Microsoft's Agent Framework, which exports its own spans and answers with bare text; a scripted model."""

from agent_framework import Agent
from agent_framework.observability import configure_otel_providers
from agent_framework.openai import OpenAIChatCompletionClient

configure_otel_providers(enable_sensitive_data=True)


def lookup_order(order_id: str) -> dict:
    """What is known of an order."""
    return {"order_id": order_id, "status": "shipped"}


agent = Agent(OpenAIChatCompletionClient("gpt-5-mini"), "Look an order up.", name="support", tools=[lookup_order])


async def answer(message):
    return (await agent.run(message)).text
