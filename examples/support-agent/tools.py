"""What the agent can do: eight tools over a small order book. Each returns what to say, or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ORDERS: dict[str, dict[str, Any]] = {
    "A100": {"item": "kettle", "total": 39.0, "status": "delivered", "warranty": "2 years"},
    "A200": {"item": "desk lamp", "total": 24.5, "status": "processing", "warranty": "1 year"},
    "A300": {"item": "headphones", "total": 89.0, "status": "shipped", "warranty": "2 years"},
    "A400": {"item": "office chair", "total": 149.0, "status": "processing", "warranty": "5 years"},
    "A500": {"item": "blender", "total": 59.0, "status": "delivered", "warranty": "2 years"},
}
CATALOG = ["kettle", "desk lamp", "headphones", "office chair", "blender", "toaster", "monitor"]


def _order(order: str | None) -> dict[str, Any]:
    return ORDERS.get(order or "", {})


def lookup_order(order: str | None) -> dict[str, Any]:
    found = _order(order)
    if not found:
        return {"error": f"I could not find order {order}."}
    return {"say": f"Order {order} is a {found['item']} for ${found['total']:.2f} and it is {found['status']}."}


def refund_order(order: str | None) -> dict[str, Any]:
    found = _order(order)
    if found.get("status") != "delivered":
        return {"error": f"Order {order} cannot be refunded before it is delivered."}
    return {"say": f"I refunded ${found['total']:.2f} for your {found['item']}; it arrives in 3 to 5 days."}


def cancel_order(order: str | None) -> dict[str, Any]:
    found = _order(order)
    if found.get("status") != "processing":
        return {"error": f"Order {order} has left the warehouse and cannot be cancelled."}
    return {"say": f"I cancelled order {order}; nothing was charged."}


def track_shipment(order: str | None) -> dict[str, Any]:
    found = _order(order)
    place = {"delivered": "at your door", "shipped": "on its way, two days out", "processing": "still in the warehouse"}
    return {"say": f"Your {found['item']} is {place[found['status']]}."} if found else {"error": f"No order {order}."}


def update_address(order: str | None, address: str) -> dict[str, Any]:
    if _order(order).get("status") != "processing" or not address:
        return {"error": f"The address of order {order} can no longer be changed."}
    return {"say": f"Order {order} now goes to {address}."}


def check_warranty(order: str | None) -> dict[str, Any]:
    found = _order(order)
    return (
        {"say": f"Your {found['item']} has a warranty of {found['warranty']}."}
        if found
        else {"error": f"No order {order}."}
    )


def search_catalog(query: str) -> dict[str, Any]:
    hits = [item for item in CATALOG if any(word in item for word in query.split())]
    return {"say": f"We have: {', '.join(hits)}."} if hits else {"error": "Nothing in our catalog matches that."}


def open_ticket(topic: str) -> dict[str, Any]:
    return {"say": f"I opened a ticket about your {topic}; a colleague will write to you today."}


TOOLS: dict[str, Callable[..., dict[str, Any]]] = {
    tool.__name__: tool
    for tool in (
        lookup_order,
        refund_order,
        cancel_order,
        track_shipment,
        update_address,
        check_warranty,
        search_catalog,
        open_ticket,
    )
}
