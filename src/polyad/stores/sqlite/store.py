"""The embedded store: one SQLite file in the index's directory; needs only the standard library.

Write-ahead logging lets any number of readers work beside one writer. A document is written, replaced or deleted in one
transaction, so that after a crash it is stored completely or not at all. Each commit is synced to disk. Vectors are
float32 blobs in the rows they describe and are committed with them; no file is rewritten whole. A read-only index can
be searched; values that a search would cache are then not stored.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from polyad.errors import IndexMismatchError, StoreError, StoreNotFoundError
from polyad.model import IndexedDocument, Usage
from polyad.protocols.lookups import OLD_FORMAT_REMEDY, check_manifest
from polyad.protocols.store import (
    NO_VALUES,
    REPLIES,
    Changes,
    Damage,
    EntityIncidence,
    Manifest,
    Values,
)
from polyad.stores.relational import writing
from polyad.stores.relational.connection import Rows, Selection
from polyad.stores.relational.read_transaction import RelationalReadTransaction, Row, report_errors
from polyad.stores.relational.rows import (
    NUMBER,
    DamageError,
    check_types,
    format_checksum_columns,
    get_only_row,
    iterate_batches,
)
from polyad.stores.relational.tuples import select_entity_names
from polyad.stores.sqlite.connection import BATCH, SqliteConnection, is_sound, pad_values
from polyad.stores.sqlite.database import SqliteDatabase, check_path, create_tables, has_tables, open_lock, run_script
from polyad.stores.sqlite.integrity import find_index_damage, repair, seal_manifest
from polyad.stores.sqlite.jobs import JOBS_FILE_NAME, SqliteJobQueue
from polyad.stores.sqlite.values import (
    REPLIES_FILE_NAME,
    SqliteValueFile,
    read_value_schema,
)
from polyad.text.files import make_folder, read_package_file

FORMAT_VERSION = 8
FILE_NAME = "index.sqlite"

LOG_LENGTH = 100_000
"""How many of the last versions the log of removals covers."""

_REQUESTED_INCIDENCES = f"""
WITH request(place, number, after, last) AS (VALUES {{}})
SELECT request.place, {format_checksum_columns("incidence")}
FROM request CROSS JOIN incidence ON incidence.entity = request.number AND hyperedge > after AND hyperedge <= last
"""
"""Returns the incidences in the order of requests, then of hyperedges: CROSS JOIN fixes the order of the loops."""

_REQUESTED_TYPES = (int, int, int, int, str, str, str, str, NUMBER, int, NUMBER)
"""The column types of :data:`_REQUESTED_INCIDENCES`."""


class SqliteReadTransaction(RelationalReadTransaction):
    """A read transaction of an index in SQLite, in which all reads see one store version.

    It implements :class:`polyad.protocols.store.ReadTransaction`.

    Args:
        connection: A connection inside a transaction that lasts as long as this object is used.
        database: The file.
        manifest: The manifest of the index when it was opened.
    """

    def __init__(self, connection: SqliteConnection, database: SqliteDatabase, manifest: Manifest) -> None:
        with database.report_errors():
            number = connection.get_version()
        super().__init__(connection, database, manifest, LOG_LENGTH, lambda: number)
        self._sqlite = connection

    @property
    def is_open(self) -> bool:
        """Whether the transaction is still open; SQLite ends a transaction after a disk error."""
        return self._sqlite.in_transaction

    @report_errors
    def changes(self, since: int | None = None) -> Changes:
        """Return the documents written and deleted after version ``since``; all documents if ``since`` is unknown.

        Raises:
            IndexMismatchError: all vectors have been replaced since the index was opened.
        """
        _require_embedder(self._sqlite, self._manifest)
        return super().changes(since)

    @report_errors
    def entity_names(self, after: int, last: int) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield (entity id, names) from the user's facts whose primary key is above ``after`` and at most ``last``.

        Only tuples (facts that the user supplied as data) name entities beside the id. Other entities are left out.
        """
        source = "argument" if after else "argument INDEXED BY argument_by_names"
        yield from select_entity_names(self.connection, after, last, source)

    def _select_with_incidences(
        self, selections: Sequence[Selection], requests: Sequence[tuple[int, int, int]]
    ) -> tuple[list[list[Row]], list[list[EntityIncidence]]]:
        incidences: list[list[EntityIncidence]] = [[] for _ in requests]
        for batch in iterate_batches([(place, *request) for place, request in enumerate(requests)], BATCH // 4):
            padded = [request or (None,) * 4 for request in pad_values(batch)]
            rows = self.connection.execute(
                _REQUESTED_INCIDENCES.format(",".join(["(?, ?, ?, ?)"] * len(padded))), [*chain.from_iterable(padded)]
            )
            for place, incidence in _check_incidences(rows):
                incidences[place].append(incidence)
        return self.connection.select_each(selections), incidences


class SqliteStore:
    """A store that keeps an index in the SQLite file ``directory / "index.sqlite"``.

    Implements ``Store`` and ``MaintainedStore`` of :mod:`polyad.protocols.store`.

    Safe for several threads, each of which has a connection of its own, and for several processes. :meth:`open` is a
    :class:`polyad.protocols.store.StoreOpener`.

    Args:
        path: Path of the file, which must exist.
        replies: File of cached replies; by default one beside the index, if that can be written.

    Attributes:
        jobs: The queue of jobs of the index.
    """

    def __init__(self, path: Path, replies: Path | None = None) -> None:
        self._database = SqliteDatabase(path)
        self.jobs = SqliteJobQueue(path.with_name(JOBS_FILE_NAME))
        self._replies_path = replies
        self._replies: SqliteValueFile | None = None
        self._opening = threading.Lock()
        self._transactions = threading.local()
        try:
            self._manifest = self._read_manifest()
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls, directory: str | Path, manifest: Manifest | None = None, *, replies: Path | None = None
    ) -> SqliteStore:
        """Open the index in ``directory``; if there is none, create an index with the properties in ``manifest``.

        Args:
            directory: Directory of the index.
            manifest: Properties of a new index, which is created if the directory holds none (or an empty file, which a
                killed process may leave). None to only open.
            replies: File of cached replies, which several indexes may share; by default one beside the index.

        Raises:
            StoreNotFoundError: there is no index and ``manifest`` is None.
            IndexMismatchError: the index has another format, or was built with other components than ``manifest``.
            StoreError: the index is damaged or cannot be created, or its path is too long.
        """
        path = Path(directory, FILE_NAME)
        check_path(path, "--store")
        try:
            exists = path.is_file() and has_tables(path)
        except OSError as error:
            raise StoreError(f"cannot look into the directory {str(directory)!r}: {error.strerror}") from error
        if manifest is None:
            if not exists:
                raise StoreNotFoundError(
                    f"no index in {str(directory)!r}; expected a directory made by: polyad index PATH --store "
                    f"{shlex.quote(str(directory))}"
                )
            return cls(path, replies)
        try:
            make_folder(path.parent)
        except OSError as error:
            raise StoreError(f"cannot make the directory {str(directory)!r}: {error.strerror}") from error
        create_tables(path, partial(_create_tables, manifest))
        store = cls(path, replies)
        check_manifest(store.manifest, embedder=manifest.embedder, mentions=manifest.mentions)
        return store

    @property
    def directory(self) -> Path:
        """The directory that contains the database file of the index."""
        return self._database.path.parent

    @property
    def manifest(self) -> Manifest:
        """The properties of the index that are fixed at its creation, such as the embedder's name."""
        return self._manifest

    def put(
        self,
        *documents: IndexedDocument,
        values: Values = NO_VALUES,
        expected_version: int | None = None,
        expected_values: Values = NO_VALUES,
        values_version: int | None = None,
    ) -> None:
        """Store documents and key-value pairs in one transaction; a document replaces a stored one with the same id.

        See :meth:`polyad.protocols.store.Store.put`.
        """
        if not documents and not values:
            return
        with self._change_documents() as (connection, version):
            expected = NO_VALUES if values_version == version - 1 else expected_values
            writing.check_expectations(connection, version - 1, expected_version, expected)
            writing.put(connection, documents, values, version)

    def remove(self, document_ids: Sequence[str], *, values: Values = NO_VALUES) -> None:
        """Delete documents with all their rows, and store the key-value pairs ``values``, in one transaction.

        Raises:
            NotFoundError: a document does not exist; no document is deleted.
        """
        with self._change_documents() as (connection, version):
            writing.remove(connection, document_ids, values, version)

    def replace_vectors(
        self,
        manifest: Manifest,
        embed: Callable[[Sequence[IndexedDocument]], tuple[Sequence[IndexedDocument], Values]],
    ) -> None:
        """Replace all vectors by those from ``embed``, and the embedder in the manifest, in one transaction.

        See :meth:`polyad.protocols.store.Store.replace_vectors`.
        """
        with self._change_documents() as (connection, version):
            version += LOG_LENGTH + 1  # so that no snapshot of the old vectors is advanced
            connection.execute("UPDATE manifest SET value = ? WHERE key = 'version'", [version])
            with self.read_transaction() as transaction:
                writing.replace_vectors(connection, transaction, manifest, embed, version)
            seal_manifest(connection)
        self._manifest = replace(manifest, directory=self._manifest.directory)

    @contextmanager
    def read_transaction(self) -> Iterator[SqliteReadTransaction]:
        """Open a read transaction: all reads in the ``with`` block see one store version.

        Nested blocks on one thread share the transaction.
        """
        outer: SqliteReadTransaction | None = getattr(self._transactions, "current", None)
        if outer is not None and outer.is_open:
            yield outer
            return
        with self._database.hold_transaction() as connection:
            transaction = SqliteReadTransaction(connection, self._database, self._manifest)
            self._transactions.current = transaction
            try:
                yield transaction
            finally:
                self._transactions.current = None

    def list_namespaces(self) -> list[str]:
        """Return the sorted names of the namespaces (groups of key-value pairs) that have values."""
        with self._database.reading() as connection:
            rows = check_types(connection.execute("SELECT DISTINCT namespace FROM value"), str)
        replies = [REPLIES] if self._has_replies() and self._open_replies().has_values() else []
        return sorted({namespace for (namespace,) in rows} | set(replies))

    def charge(self, usage: Usage) -> Usage:
        """Add language-model usage to the total of the index, and return the total; an empty ``usage`` only reads."""
        if usage != Usage() and not self._database.is_read_only:
            with self._database.writing() as connection:
                connection.execute(
                    "UPDATE account SET calls = calls + ?, prompt_tokens = prompt_tokens + ?, "
                    "completion_tokens = completion_tokens + ?, cost = cost + ?",
                    [usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost],
                )
                seal_manifest(connection)
        with self._database.reading() as connection:
            rows = connection.execute("SELECT calls, prompt_tokens, completion_tokens, cost FROM account")
            total = get_only_row(check_types(rows, int, int, int, (int, float)))
        return Usage(*total)

    def get_values(self, namespace: str, keys: Sequence[str] | None = None) -> dict[str, bytes]:
        """Return the values of a namespace in a dictionary by key; all values if ``keys`` is None."""
        if namespace == REPLIES:
            return self._open_replies().get_values(namespace, keys)
        with self._database.reading() as connection:
            return connection.select_values(namespace, keys)

    def put_values(
        self, namespace: str, values: Mapping[str, bytes | None] | None, *, is_optional: bool = False
    ) -> None:
        """Store the key-value pairs ``values`` in a namespace; a key whose value is None is deleted.

        ``values=None`` deletes all keys of the namespace. An optional write is left out if the index cannot be
        written now, for example because it is read-only.

        See :meth:`polyad.protocols.store.ValueStore.put_values`.
        """
        if namespace == REPLIES:
            self._open_replies().put_values(namespace, values, is_optional=is_optional)
        else:
            self._database.put_values(namespace, values, is_optional=is_optional)

    def lock(self, name: str) -> AbstractContextManager[Callable[[], bool]]:
        """Return a context manager of a lock; see :meth:`polyad.protocols.store.LockingStore.lock`."""
        return open_lock(self.directory / f"{name}.lock")

    def verify(self) -> list[Damage]:
        """Return a sorted list with a :class:`Damage` for each damaged record of the index and its cached replies."""
        with self._database.reading() as connection:
            damage = find_index_damage(connection, _read_schema(), self._manifest.dimension)
        if self._has_replies():
            damage += self._open_replies().verify()
        return damage

    def repair(self) -> None:
        """Delete orphaned rows, and damaged values that can be computed again, in one transaction.

        See :meth:`verify`.
        """
        with self._database.writing() as connection:
            [(version,)] = connection.execute("SELECT value FROM manifest WHERE key = 'version'")
            repair(connection, int(version) + LOG_LENGTH + 1 if str(version).isdecimal() else LOG_LENGTH + 1)
        if self._has_replies():
            self._open_replies().repair()

    def back_up(self, path: Path) -> list[Path]:
        """Copy the index to the file ``path``, and its cached replies to ``path`` with the suffix ``.replies``.

        See :meth:`polyad.protocols.store.MaintainedStore.back_up`.
        """
        replies_path = self._database.path.with_name(REPLIES_FILE_NAME)
        copies = {path: self._database}
        with ExitStack() as stack:
            if replies_path.exists():
                replies = stack.enter_context(closing(SqliteDatabase(replies_path)))
                copies = {path.with_name(f"{path.name}.replies"): replies, **copies}
            for target, database in copies.items():
                database.copy_to(target)
        return sorted(copies)

    def close(self) -> None:
        """Close the database files; no other method may be called afterwards."""
        self._database.close()
        self.jobs.close()
        if self._replies is not None:
            self._replies.close()

    def _has_replies(self) -> bool:
        path = self._replies_path or self._database.path.with_name(REPLIES_FILE_NAME)
        return path.exists()

    def _open_replies(self) -> SqliteValueFile:
        """Return the database file of cached replies, opened on first use."""
        with self._opening:
            if self._replies is None:
                path = self._replies_path or self._database.path.with_name(REPLIES_FILE_NAME)
                self._replies = SqliteValueFile(path, is_required=self._replies_path is not None)
            return self._replies

    @contextmanager
    def _change_documents(self) -> Iterator[tuple[SqliteConnection, int]]:
        """Open a write transaction for the ``with`` block; yield its connection and the new store version."""
        with self._database.writing() as connection:
            new_version = connection.get_version() + 1
            _require_embedder(connection, self._manifest)
            connection.execute("UPDATE manifest SET value = ? WHERE key = 'version'", [new_version])
            connection.execute("INSERT INTO state VALUES (?, LOWER(HEX(RANDOMBLOB(8))))", [new_version])
            for log in ("removal", "state"):
                connection.execute(f"DELETE FROM {log} WHERE version <= ?", [new_version - LOG_LENGTH])
            yield connection, new_version

    def _read_manifest(self) -> Manifest:
        path = self._database.path
        with self._database.reading() as connection:
            columns = connection.execute("SELECT 1 FROM pragma_table_info('manifest') WHERE name IN ('key', 'value')")
            rows = dict(connection.execute("SELECT key, value FROM manifest")) if len(columns.fetchall()) == 2 else {}
            if not {"format_version", "embedder", "dimension", "mentions"} <= rows.keys():
                raise StoreError(f"{str(path)!r} belongs to another program; choose another --store")
            format_version, dimension = (_parse_number(rows[key]) for key in ("format_version", "dimension"))
            if format_version != FORMAT_VERSION:
                remedy = "upgrade polyad" if format_version > FORMAT_VERSION else OLD_FORMAT_REMEDY
                raise IndexMismatchError(
                    f"{str(path)!r} has format {format_version}, this polyad reads {FORMAT_VERSION}; {remedy}"
                )
            if dimension < 1:
                raise DamageError(f"vectors of length {dimension}")
            [(embedder, mentions)] = check_types([(rows["embedder"], rows["mentions"])], str, str)
        return Manifest(embedder, dimension, mentions, path.parent)


def _check_incidences(rows: Rows) -> Iterator[tuple[int, EntityIncidence]]:
    """Yield (position of the request, incidence) for each row, after verifying the row's checksum."""
    while batch := check_types(rows.fetchmany(BATCH), *_REQUESTED_TYPES):
        for place, *checked in batch:
            is_sound(*checked)
            _, _, hyperedge, _, name, type, description, score, *_ = checked
            yield place, (hyperedge, name, type, description, score)


def _require_embedder(connection: SqliteConnection, manifest: Manifest) -> None:
    """Raise IndexMismatchError if the index's vectors come from another embedder than when the index was opened."""
    (embedder,) = get_only_row(connection.execute("SELECT value FROM manifest WHERE key = 'embedder'"))
    if embedder != manifest.embedder:
        raise IndexMismatchError(
            f"the vectors of the index were replaced by those of {embedder!r} since it was opened; open it again"
        )


def _parse_number(value: object) -> int:
    """Return a number of the manifest, such as the format's version; raise DamageError if the value is no number."""
    if not str(value).isdecimal():
        raise DamageError(f"{value!r} where a number was written")
    return int(str(value))


def _create_tables(manifest: Manifest, connection: SqliteConnection) -> None:
    """Create the tables of a new index and store the manifest (fixed properties) with its checksum."""
    run_script(connection, _read_schema())
    values = {
        "format_version": FORMAT_VERSION,
        "embedder": manifest.embedder,
        "dimension": manifest.dimension,
        "mentions": manifest.mentions,
        "version": 0,
    }
    connection.executemany("INSERT INTO manifest VALUES (?, ?)", [(key, str(value)) for key, value in values.items()])
    seal_manifest(connection)


def _read_schema() -> str:
    return read_package_file("polyad.stores.sqlite", "schema.sql") + read_value_schema()
