"""What the store says of common entities, counted up to some hyperedge: of these only what came since is read again.

An entity is made of all its incidences, and some have a hundred thousand. What was counted of them is kept with the
arrays of a view, so that to show one takes no longer the more hyperedges join it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from polyad.embedded.strings import Strings
from polyad.hypergraph.sparse import among
from polyad.model import IntArray
from polyad.storage import EntityTally


@dataclass(frozen=True, slots=True, eq=False)
class Tallies:
    """What was counted of some entities, by row.

    Attributes:
        rows: Of those that were counted before the view was kept, sorted.
        texts: What was counted of each, as JSON.
        gone: Those of them of which something has gone since.
        made: What was counted, or counted anew, since; grows with what is shown.
    """

    rows: IntArray
    texts: Strings
    gone: frozenset[int] = frozenset()
    made: dict[int, EntityTally] = field(default_factory=dict)

    @classmethod
    def none(cls) -> Tallies:
        """Nothing was counted."""
        return cls(np.empty(0, dtype=np.int64), Strings.of([]))

    def of(self, rows: Sequence[int]) -> dict[int, EntityTally]:
        """What was counted of those of some entities that were."""
        wanted = np.array(rows, dtype=np.int64)
        kept = wanted[among(wanted, self.rows)]
        found = {
            row: _tally(self.texts[place])
            for row, place in zip(kept.tolist(), self.rows.searchsorted(kept).tolist(), strict=True)
            if row not in self.made and row not in self.gone
        }
        return found | {row: tally for row in rows if (tally := self.made.get(row))}

    def add(self, tallies: Mapping[int, EntityTally]) -> None:
        """Keep what was counted of some entities."""
        self.made.update(tallies)

    def without(self, rows: IntArray) -> Tallies:
        """The same without some entities, of which something has gone."""
        changed = set(rows.tolist())
        gone = self.gone.union(rows[among(rows, self.rows)].tolist())
        return replace(self, gone=gone, made={row: own for row, own in list(self.made.items()) if row not in changed})

    def whole(self) -> Tallies:
        """All of them as texts."""
        texts = {row: self.texts[place] for place, row in enumerate(self.rows.tolist()) if row not in self.gone}
        texts |= {row: _text(tally) for row, tally in list(self.made.items())}
        rows = sorted(texts)
        return Tallies(np.array(rows, dtype=np.int64), Strings.of(texts[row] for row in rows))


def _text(tally: EntityTally) -> str:
    said = sorted(tally.names.items()), sorted(tally.types.items()), sorted(tally.descriptions)
    return json.dumps([tally.key, *said, tally.score, tally.hyperedges, tally.last])


def _tally(text: str) -> EntityTally:
    key, names, types, descriptions, score, hyperedges, last = json.loads(text)
    return EntityTally(
        key, Counter(dict(names)), Counter(dict(types)), frozenset(descriptions), score, hyperedges, last
    )
