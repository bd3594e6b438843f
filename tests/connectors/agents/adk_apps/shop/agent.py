"""An agent of google-adk that looks orders up; where its model is, the environment says."""

from google.adk.agents import Agent


def lookup(order: str) -> str:
    """Looks an order up."""
    return f"{order} has shipped"


root_agent = Agent(name="shop", model="gemini-2.5-flash", instruction="Look orders up.", tools=[lookup])
