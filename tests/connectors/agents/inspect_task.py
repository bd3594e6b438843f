"""A task of Inspect with a scripted model that calls a tool, run here and written to ./logs."""

from __future__ import annotations

from inspect_ai import Epochs, Task
from inspect_ai import eval as run
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

MODEL = "mockllm/model"


@tool
def lookup_order():
    async def execute(order: str) -> str:
        """Looks up an order.

        Args:
            order: Its number.
        """
        return "shipped"

    return execute


def scripted(number: int) -> ModelOutput:
    """A call, then an answer; with its usage, or Inspect would fetch a tokenizer."""
    call = ModelOutput.for_tool_call(MODEL, "lookup_order", {"order": "A100"})
    said = call if number % 2 == 0 else ModelOutput.from_content(MODEL, "Order A100 has shipped.")
    said.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return said


samples = [Sample(id="where", input="Where is A100?", target="shipped"), Sample(id="two", input="A200?", target="lost")]
task = Task(
    name="orders",
    dataset=samples,
    solver=[use_tools(lookup_order()), generate()],
    scorer=[includes(), match()],
    epochs=Epochs(3, ["mean"]),
)
model = get_model(MODEL, custom_outputs=[scripted(number) for number in range(40)])
(log,) = run(task, model=model, log_dir="logs", max_samples=1, max_connections=1, display="none")
print(log.location)
