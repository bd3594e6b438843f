"""The cost of a model's tokens, from the genai-prices list. Makes no requests."""

from __future__ import annotations

from gate.model import Usage


def price(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Return the price in US dollars; None if the list does not have the model.

    The list comes with the installed genai-prices. The name may start with a provider (``openai/gpt-4o``).
    """
    from genai_prices import Usage, calc_price  # weight: 150 ms

    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    known: list[tuple[str, str | None]] = [(model, None)]
    provider, slash, name = model.partition("/")
    if slash:
        known.append((name, provider))
    for reference, provider_id in known:
        try:
            return float(calc_price(usage, model_ref=reference, provider_id=provider_id).total_price)
        except LookupError:
            continue
    return None


def turn_cost(usage: Usage | None) -> float | None:
    """Return one turn's cost in US dollars: as reported by the agent, else by list price; None if neither is known.

    A reported cost of 0 gives way to a list price, since libraries report 0 for models that they do not know. A local
    model has no list price, and is free.
    """
    if usage is None:
        return None
    if usage.cost_usd or usage.model is None or usage.tokens is None:
        return usage.cost_usd
    listed = price(usage.model, usage.input_tokens or 0, usage.output_tokens or 0)
    return usage.cost_usd if listed is None else listed
