from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

agent: Agent[None, str] = Agent(OpenAIChatModel("m"), instructions="Look up orders.")


@agent.tool_plain
def lookup(order: str) -> str:
    """The state of an order."""
    return "shipped"
