"""The cost of a model's tokens, by the genai-prices list. Makes no requests."""

from __future__ import annotations

from gate.model import Usage


def price(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """US dollars; None where the list does not know the model.

    The list comes with the installed genai-prices. A provider in front of the name (``openai/gpt-4o``) is understood.
    """
    from genai_prices import Usage, calc_price  # weight: 150 ms

    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    provider, slash, name = model.partition("/")
    for reference, provider_id in ((model, None), (name, provider)) if slash else ((model, None),):
        try:
            return float(calc_price(usage, model_ref=reference, provider_id=provider_id).total_price)
        except LookupError:
            continue
    return None


def turn_cost(usage: Usage | None) -> float | None:
    """US dollars of one turn: what the agent reports, else the list price of its tokens; None where it says neither."""
    if usage is None or usage.cost_usd is not None or usage.model is None or usage.tokens is None:
        return None if usage is None else usage.cost_usd
    return price(usage.model, usage.input_tokens or 0, usage.output_tokens or 0)
