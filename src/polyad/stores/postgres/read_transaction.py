"""Read transactions of the PostgreSQL store."""

from __future__ import annotations

from collections.abc import Sequence

from polyad.protocols.store import EntityIncidence
from polyad.stores.relational.connection import Selection
from polyad.stores.relational.read_transaction import RelationalReadTransaction, Row

_REQUESTED_INCIDENCES = """
SELECT request.place - 1, hyperedge, name, type, description, score
FROM unnest(?::bigint[], ?::bigint[], ?::bigint[]) WITH ORDINALITY AS request(number, after, last, place)
JOIN incidence ON incidence.entity = request.number AND hyperedge > after AND hyperedge <= last
ORDER BY request.place, hyperedge, role
"""


class PostgresReadTransaction(RelationalReadTransaction):
    """A read transaction of an index in PostgreSQL, in which all reads see one store version.

    It implements :class:`polyad.protocols.store.ReadTransaction`.
    """

    _documents_by_source = """
        SELECT id FROM document, (SELECT ? AS place, ? AS first, ? AS after) AS range
        WHERE SUBSTR(source, 1, 500) BETWEEN SUBSTR(place, 1, 500) AND SUBSTR(after, 1, 500)
        AND (source = place OR (source >= first AND source < after))
    """

    def _select_with_incidences(
        self, selections: Sequence[Selection], requests: Sequence[tuple[int, int, int]]
    ) -> tuple[list[list[Row]], list[list[EntityIncidence]]]:
        incidences: list[list[EntityIncidence]] = [[] for _ in requests]
        if not requests:
            return self.connection.select_each(selections), incidences
        columns = [list(column) for column in zip(*requests, strict=True)]
        together = [*selections, Selection(_REQUESTED_INCIDENCES, None, columns)]
        *rows, incidence_rows = self.connection.select_each(together)
        for place, *incidence in incidence_rows:
            incidences[place].append(tuple(incidence))
        return rows, incidences
