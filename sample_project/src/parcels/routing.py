"""Which carrier takes a parcel."""

from __future__ import annotations

from dataclasses import dataclass

from parcels.orders import Order


@dataclass(frozen=True)
class Carrier:
    """A carrier, where it goes and what it can lift."""

    name: str
    countries: frozenset[str]
    max_weight_g: int
    express: bool
    price_cents_per_kg: int


CARRIERS = (
    Carrier("Wren", frozenset({"PL", "CZ", "SK"}), 20_000, False, 90),
    Carrier("Falcon", frozenset({"PL", "DE", "FR", "NL"}), 30_000, True, 240),
    Carrier("Stork", frozenset({"DE", "FR", "NL", "LT", "LV"}), 31_500, False, 130),
)


class NoCarrier(Exception):
    """No carrier takes this parcel."""


def choose(order: Order, carriers: tuple[Carrier, ...] = CARRIERS) -> Carrier:
    """The cheapest carrier that reaches the country, lifts the weight and is express where that was ordered."""
    able = [
        c
        for c in carriers
        if order.country in c.countries and order.weight_g <= c.max_weight_g and (c.express or not order.express)
    ]
    if not able:
        raise NoCarrier(f"nobody takes {order.weight_g} g to {order.country} ({'express' if order.express else 'normal'})")
    return min(able, key=lambda c: (c.price_cents_per_kg, c.name))
