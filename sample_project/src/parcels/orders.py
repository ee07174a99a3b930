"""Orders as shops send them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum


class Status(Enum):
    """Where a parcel is. Delivered and returned are final."""

    ACCEPTED = "accepted"
    IN_TRANSIT = "in_transit"
    DELIVERED = "delivered"
    RETURNED = "returned"

    @property
    def final(self) -> bool:
        return self in (Status.DELIVERED, Status.RETURNED)


@dataclass
class Order:
    """One parcel of one shop. ``weight_g`` is grams, ``country`` an ISO code."""

    id: str
    customer: str
    country: str
    weight_g: int
    express: bool = False
    status: Status = Status.ACCEPTED
    created_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def __post_init__(self) -> None:
        if self.weight_g <= 0:
            raise ValueError(f"order {self.id}: the weight must be positive, not {self.weight_g} g")
        self.country = self.country.upper()

    def advance(self, status: Status) -> None:
        """Move on; a final status never changes again."""
        if self.status.final:
            raise ValueError(f"order {self.id} is {self.status.value} and cannot become {status.value}")
        self.status = status
