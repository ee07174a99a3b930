"""Data access. Nothing outside this module writes SQL."""

from __future__ import annotations

import sqlite3
from typing import Generic, Protocol, TypeVar

from parcels.orders import Order, Status

T = TypeVar("T")


class IRepository(Protocol, Generic[T]):
    """What services may ask of stored things."""

    def add(self, item: T) -> None: ...

    def get(self, item_id: str) -> T | None: ...

    def by_customer(self, customer: str) -> list[T]: ...


class OrderRepository:
    """Orders in SQLite. Implements ``IRepository[Order]``."""

    def __init__(self, path: str = ":memory:") -> None:
        self._db = sqlite3.connect(path)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS orders("
            "id TEXT PRIMARY KEY, customer TEXT, country TEXT, weight_g INTEGER, express INTEGER, status TEXT)"
        )

    def add(self, item: Order) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO orders VALUES (?, ?, ?, ?, ?, ?)",
            (item.id, item.customer, item.country, item.weight_g, int(item.express), item.status.value),
        )
        self._db.commit()

    def get(self, item_id: str) -> Order | None:
        row = self._db.execute("SELECT * FROM orders WHERE id = ?", (item_id,)).fetchone()
        return _order(row) if row else None

    def by_customer(self, customer: str) -> list[Order]:
        rows = self._db.execute("SELECT * FROM orders WHERE customer = ? ORDER BY id", (customer,))
        return [_order(row) for row in rows]


def _order(row: tuple[str, str, str, int, int, str]) -> Order:
    order_id, customer, country, weight_g, express, status = row
    return Order(order_id, customer, country, weight_g, bool(express), Status(status))
