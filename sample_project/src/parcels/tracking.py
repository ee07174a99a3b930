"""Follows parcels: asks the carrier, moves the order on."""

from __future__ import annotations

from collections.abc import Callable

from parcels.orders import Order, Status
from parcels.repository import IRepository
from parcels.retry import retry_it

_WORDS = {"picked up": Status.IN_TRANSIT, "delivered": Status.DELIVERED, "refused": Status.RETURNED}


def refresh(order_id: str, orders: IRepository[Order], ask: Callable[[str], str]) -> Status:
    """The parcel's status after asking the carrier; words nobody knows leave it as it is."""
    order = orders.get(order_id)
    if order is None:
        raise KeyError(order_id)
    if order.status.final:
        return order.status
    word = retry_it(lambda: ask(order_id)).strip().lower()
    status = _WORDS.get(word)
    if status is not None and status is not order.status:
        order.advance(status)
        orders.add(order)
    return order.status
