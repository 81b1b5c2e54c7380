"""What entities that are known by an id are called: the labels and other names that given facts have beside the id."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from threading import Lock

from polyad.protocols.store import ReadTransaction, Store
from polyad.text.keys import given_key, name_key


class GivenNames:
    """Finds the keys of entities by the key of a name that they were given; what was added since is read when asked.

    Views share it for as long as no fact has gone. For many threads.
    """

    def __init__(self) -> None:
        self._keys: defaultdict[str, set[str]] = defaultdict(set)
        self._last = 0
        self._reading = Lock()

    def keys_of(self, names: Iterable[str], store: Store, last: int) -> dict[str, Sequence[str]]:
        """The keys of the entities that have each of some names, sorted; of names that any has.

        Args:
            names: Keys of names.
            store: Is read where it has not been up to ``last``.
            last: The store's number of the last hyperedge that counts.
        """
        if self._last < last:
            with store.read_transaction() as transaction, self._reading:
                self._read(transaction, last)
        return {name: sorted(self._keys[name]) for name in names if name in self._keys}

    def _read(self, transaction: ReadTransaction, last: int) -> None:
        for value, names in transaction.entity_names(self._last, last):
            for name in names:
                self._keys[name_key(name)].add(given_key(value))
        self._last = max(self._last, last)
