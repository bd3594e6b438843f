from agents import Agent, OpenAIChatCompletionsModel, function_tool
from openai import AsyncOpenAI


@function_tool
def lookup(order: str) -> str:
    """The state of an order."""
    return "shipped"


model = OpenAIChatCompletionsModel("m", AsyncOpenAI())
orders = Agent(name="orders", model=model, tools=[lookup])
triage_agent = Agent(name="triage", model=model, tools=[lookup], handoffs=[orders])
helper = Agent(name="helper", model=model)
