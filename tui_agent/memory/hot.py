"""The hot zone: the items in memory, and one set of arrays with a row for each, so that all are scored at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.scoring import (
    IMPORTANT_KINDS,
    TERM_NAMES,
    Calibration,
    Comparison,
    Floats,
    Scorer,
    cosines,
    kind_weight,
)
from tui_agent.memory.symbols import Symbols
from tui_agent.memory.types import Term, Vector

Spans = tuple[tuple[int, int], ...]
"""Character ranges of a text that are shown when the whole does not fit."""


@dataclass(slots=True)
class Item:
    """One item of the working memory, hot or cold.

    ``tokens`` counts the whole text, ``size`` what is shown of it and ``cost`` that with its header, as rendered.
    ``birth`` and ``touched`` are steps; ``weighted`` is ``references`` with each weighed by how rare its name is.
    ``head`` and ``body`` are the item as rendered, without its age and source.
    ``lineage`` is shared by copies of one text in several sessions; ``origin_kind`` is what a ``recalled`` item was.
    """

    id: str
    kind: str
    text: str
    summary: str = ""
    source: str = ""
    pinned: bool = False
    tokens: int = 0
    size: int = 0
    cost: int = 0
    birth: int = 0
    touched: int = -1
    references: int = 0
    weighted: float = 0.0
    recalls: int = 0
    lineage: str = ""
    origin_kind: str = ""
    created_at: str = ""
    put_away_at: str = ""
    put_away_step: int = 0
    reason: str = ""
    shown: Spans = ()
    vector: Vector | None = None
    symbols: Symbols = field(default_factory=Symbols)
    session_id: str = ""
    row: int = -1
    head: str = ""
    body: str = ""

    @property
    def last(self) -> int:
        """The step from which the age counts."""
        return max(self.birth, self.touched)

    @property
    def important(self) -> bool:
        """Whether it may come back although its cooldown still runs."""
        return self.references > 0 or self.pinned or self.kind in IMPORTANT_KINDS

    @property
    def label(self) -> str:
        """The summary, or the first line that holds something."""
        text = self.summary.strip() or self.text.strip()
        line = text.split("\n", 1)[0].strip() if text else "(empty)"
        return line if len(line) <= 72 else f"{line[:71]}…"


_COLUMNS = ("kinds", "references", "last", "size", "cosines", "calibrated", "weighted", "lasting")


class HotZone:
    """Items by id, in the order they came, with running totals.

    ``used`` is the rendered cost of all items in tokens, ``pinned_cost`` that of the pinned ones. Whoever changes a
    field of an item calls :meth:`update`.
    """

    def __init__(self, scorer: Scorer, *, calibrate: bool, weigh_names: bool) -> None:
        self.scorer = scorer
        self.items: dict[str, Item] = {}
        self.used = 0
        self.pinned_cost = 0
        self.goal: Vector | None = None
        self.calibration = Calibration()
        self._calibrate = calibrate
        self._weigh_names = weigh_names
        self._rows: list[Item] = []
        self._table = np.zeros((len(_COLUMNS), 64), dtype=np.float64)
        self._data = dict(zip(_COLUMNS, self._table, strict=True))  # the same, by name
        self._costs = np.zeros(64, dtype=np.int64)
        self._pinned = np.zeros(64, dtype=bool)
        self._matrix: NDArray[np.float32] | None = None
        self._cosines_of = (0, 0)  # the goal and the calibration that the cached cosines belong to
        self._goal_count = 0
        self._goal_ready: Comparison | None = None

    def __len__(self) -> int:
        return len(self._rows)

    # --- changing ---------------------------------------------------------------------------------

    def add(self, item: Item) -> None:
        """Takes an item in. Its id must be new here."""
        if item.id in self.items:
            raise ValueError(f"The item {item.id} is in the hot zone already.")
        if len(self._rows) == len(self._costs):
            self._grow()
        item.row = len(self._rows)
        self._rows.append(item)
        self.items[item.id] = item
        self._costs[item.row] = 0
        self._pinned[item.row] = False
        self.update(item, vector=True)

    def remove(self, item: Item) -> None:
        """Lets an item go; the last row takes its place."""
        del self.items[item.id]
        self.used -= item.cost
        self.pinned_cost -= item.cost if item.pinned else 0
        row, last = item.row, self._rows.pop()
        if last is not item:
            self._table[:, row] = self._table[:, last.row]
            self._costs[row], self._pinned[row] = self._costs[last.row], self._pinned[last.row]
            if self._matrix is not None:
                self._matrix[row] = self._matrix[last.row]
            self._rows[row] = last
            last.row = row
        item.row = -1

    def update(self, item: Item, *, vector: bool = False) -> None:
        """Reads the fields of an item again; ``vector`` when that has changed too."""
        row, data = item.row, self._data
        self.used += item.cost - int(self._costs[row])
        self.pinned_cost += item.cost * item.pinned - int(self._costs[row]) * int(self._pinned[row])
        self._costs[row], self._pinned[row] = item.cost, item.pinned
        data["kinds"][row] = kind_weight(item.kind)
        data["references"][row] = item.references
        data["weighted"][row] = item.weighted if self._weigh_names else item.references
        data["last"][row] = item.last
        data["size"][row] = item.size
        if vector:
            self._set_vector(item)
        self._lasting_of(item)

    def set_vector(self, item: Item) -> None:
        """Reads only the vector of an item again."""
        self._set_vector(item)
        self._lasting_of(item)

    def _lasting_of(self, item: Item) -> None:
        data, row = self._data, item.row
        data["lasting"][row] = self.scorer.lasting_one(
            kind_weight(item.kind),
            item.size,
            float(data["calibrated"][row]),
            item.weighted if self._weigh_names else item.references,
        )

    def set_goal(self, goal: Vector | None) -> None:
        """Compares every item with a new goal."""
        self.goal = goal
        self._goal_count += 1
        self.refresh()

    def refresh(self) -> None:
        """Computes the cached cosines again when the goal or the calibration has moved."""
        now = (self._goal_count, self.calibration.version if self._calibrate else 0)
        if now == self._cosines_of:
            return
        n = len(self._rows)
        plain, calibrated = self._data["cosines"], self._data["calibrated"]
        matrix, goal = self._matrix, self.goal
        if matrix is None or goal is None or matrix.shape[1:] != goal.shape:
            plain[:n] = calibrated[:n] = 0.0
        else:
            if now[0] != self._cosines_of[0]:
                plain[:n] = cosines(matrix[:n], goal)
            calibrated[:n] = self.calibration.of_units(matrix[:n], goal)[1] if now[1] else plain[:n]
        self._cosines_of = now
        self._goal_ready = None if goal is None else Comparison(goal, self.calibration if self._calibrate else None)
        self._relast(slice(0, n))

    def _set_vector(self, item: Item) -> None:
        vector, row = item.vector, item.row
        if vector is not None and (self._matrix is None or (self._matrix.shape[1:] != vector.shape)):
            # The first vector, or another embedder: the old rows say nothing beside the new ones.
            self._matrix = np.zeros((len(self._costs), len(vector)), dtype=np.float32)
            for other in self._rows:
                if other.vector is not None and other.vector.shape == vector.shape:
                    self._matrix[other.row] = other.vector
                elif other is not item:
                    self._data["cosines"][other.row] = self._data["calibrated"][other.row] = 0.0
            self._relast(slice(0, len(self._rows)))
        if self._matrix is not None:
            self._matrix[row] = vector if vector is not None else 0.0
        plain = calibrated = 0.0
        if vector is not None and self._goal_ready is not None:
            plain, calibrated = self._goal_ready.cosines(vector)
        self._data["cosines"][row], self._data["calibrated"][row] = plain, calibrated

    def _relast(self, rows: slice) -> None:
        data = self._data
        data["lasting"][rows] = self.scorer.lasting(
            data["kinds"][rows], data["size"][rows], data["calibrated"][rows], data["weighted"][rows]
        )

    def _grow(self) -> None:
        room = 2 * len(self._costs)
        table = np.zeros((len(_COLUMNS), room), dtype=np.float64)
        table[:, : self._table.shape[1]] = self._table
        self._table, self._data = table, dict(zip(_COLUMNS, table, strict=True))
        self._costs, self._pinned = np.resize(self._costs, room), np.resize(self._pinned, room)
        if self._matrix is not None:
            larger = np.zeros((room, self._matrix.shape[1]), dtype=np.float32)
            larger[: len(self._matrix)] = self._matrix
            self._matrix = larger

    # --- reading ----------------------------------------------------------------------------------

    def scores(self, now: int) -> Floats:
        """The score of every row at step ``now``, shape ``(n,)``."""
        n = len(self._rows)
        ages = np.maximum(now - self._data["last"][:n], 0.0)
        found = self.scorer.passing(ages, self._data["weighted"][:n])
        found += self._data["lasting"][:n]
        return found

    def terms(self, now: int) -> dict[str, tuple[Term, ...]]:
        """The terms of every item by id; they add up to its score."""
        n = len(self._rows)
        data = self._data
        found = self.scorer.terms(
            data["kinds"][:n],
            data["references"][:n],
            now - data["last"][:n],
            data["size"][:n],
            data["cosines"][:n],
            data["calibrated"][:n] if self._calibrate else None,
            data["weighted"][:n] if self._weigh_names else None,
        )
        return {item.id: self._named(item, found[:, item.row], now) for item in self._rows}

    def _named(self, item: Item, values: Floats, now: int) -> tuple[Term, ...]:
        notes = (
            item.kind,
            f"{item.references} later mentions of its names",
            f"cosine with the goal {self._data['cosines'][item.row]:.2f}",
            f"{max(0, now - item.last)} steps old",
            f"{item.size} tokens",
            f"unrelated texts score {self.calibration.level:.2f} with this embedder",
            "names that many items mention count less",
        )
        return tuple(
            Term(name, float(value), note) for name, value, note in zip(TERM_NAMES, values, notes, strict=True)
        )

    def at(self, row: int) -> Item:
        """The item of a row."""
        return self._rows[row]

    def candidates(
        self, now: int, keep: frozenset[str] = frozenset()
    ) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64]]:
        """Rows of items that may leave (not pinned, not in ``keep``), their scores and their costs in tokens."""
        n = len(self._rows)
        if not self.pinned_cost and not keep:
            return np.arange(n), self.scores(now), self._costs[:n].copy()
        free = ~self._pinned[:n]
        for item_id in keep:
            item = self.items.get(item_id)
            if item is not None:
                free[item.row] = False
        rows = np.flatnonzero(free)
        return rows, self.scores(now)[rows], self._costs[rows]
