"""Who mentions what: references to an item through the names it defines, as in counting garbage collection."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable

from tui_agent.memory.hot import Item

_LEAST_WEIGHT = 0.05


class ReferenceIndex:
    """Names defined and mentioned by the hot items. Adding and forgetting an item costs as many steps as it has names.

    A later item that mentions a name adds one reference to every earlier item that defines it, once per name. Beside
    the count a weighted sum is kept, in which a name that many items mention counts less.
    """

    def __init__(self) -> None:
        self._owners: dict[str, dict[str, Item]] = defaultdict(dict)
        self._mentions: Counter[str] = Counter()
        self._items = 0

    def refer(self, item: Item, step: int) -> list[tuple[Item, list[str]]]:
        """Counts the references a new item makes; returns the items referred to, with the names, sorted.

        It touches them (``touched = step``) but is itself not registered yet.
        """
        found: dict[str, tuple[Item, list[str]]] = {}
        for name in item.symbols.mentions:
            for owner in self._owners.get(name, {}).values():
                if owner is not item:
                    owner.references += 1
                    owner.weighted += self.weight(name)
                    owner.touched = max(owner.touched, step)
                    found.setdefault(owner.id, (owner, []))[1].append(name)
        return [(owner, sorted(names)) for owner, names in found.values()]

    def weight(self, name: str) -> float:
        """How much a reference through ``name`` says, 0.05 … 1: its inverse document frequency among the hot items,
        scaled so that a name only its owner mentions weighs 1."""
        count = self._items + 1
        rarity = math.log((count + 1) / (max(1, self._mentions[name]) + 0.5))
        return min(1.0, max(_LEAST_WEIGHT, rarity / math.log((count + 1) / 1.5)))

    def register(self, items: Iterable[Item]) -> None:
        """Takes items in without counting references."""
        for item in items:
            self._items += 1
            self._mentions.update(item.symbols.mentions)
            for name in item.symbols.defs:
                self._owners[name][item.id] = item

    def forget(self, item: Item) -> None:
        """Takes an item out again."""
        self._items -= 1
        self._mentions.subtract(item.symbols.mentions)
        for name in item.symbols.mentions:
            if self._mentions[name] <= 0:
                del self._mentions[name]
        for name in item.symbols.defs:
            owners = self._owners.get(name)
            if owners is not None:
                owners.pop(item.id, None)
                if not owners:
                    del self._owners[name]
