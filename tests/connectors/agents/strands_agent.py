"""An agent of Strands, which exports its own spans; it answers with bare text. The model is behind a socket."""

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.telemetry import StrandsTelemetry

StrandsTelemetry().setup_otlp_exporter()


@tool
def lookup_order(order_id: str) -> dict:
    """What is known of an order."""
    return {"status": "success", "content": [{"json": {"order_id": order_id, "status": "shipped"}}]}


def answer(message):
    agent = Agent(model=OpenAIModel(model_id="gpt-5-mini"), tools=[lookup_order], callback_handler=None)
    return str(agent(message)).strip()
