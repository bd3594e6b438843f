from google.adk.agents import Agent


def lookup(order: str) -> str:
    """The state of an order."""
    return "shipped"


root_agent = Agent(name="orders", model="gemini-2.5-flash", instruction="Look up orders.", tools=[lookup])
