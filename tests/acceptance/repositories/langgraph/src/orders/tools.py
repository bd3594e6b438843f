from langchain_core.tools import tool


@tool
def lookup(order: str) -> str:
    """The state of an order."""
    return "shipped"
