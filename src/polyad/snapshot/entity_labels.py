"""The labels of entities that tuples name by an id: further names that stand beside the id."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from threading import Lock

from polyad.protocols.store import ReadTransaction, Store
from polyad.text.keys import build_argument_key, build_name_key


class EntityLabels:
    """Finds entities by label: a name that a tuple gives to an entity besides its id.

    Thread-safe; snapshots share an instance until a hyperedge is deleted.

    Labels are read from the store when they are first needed.
    """

    def __init__(self) -> None:
        self._keys: defaultdict[str, set[str]] = defaultdict(set)
        self._last_read = 0
        self._reading = Lock()

    def find_keys(self, names: Iterable[str], store: Store, last: int) -> dict[str, Sequence[str]]:
        """Return the sorted keys of the entities with each label. Omit names that are no label.

        Args:
            names: The name keys of labels.
            store: The store.
            last: Primary key of the last hyperedge of the snapshot.
        """
        if self._last_read < last:
            with store.read_transaction() as transaction, self._reading:
                self._read(transaction, last)
        return {name: sorted(self._keys[name]) for name in names if name in self._keys}

    def _read(self, transaction: ReadTransaction, last: int) -> None:
        for value, names in transaction.entity_names(self._last_read, last):
            for name in names:
                self._keys[build_name_key(name)].add(build_argument_key(value))
        self._last_read = max(self._last_read, last)
