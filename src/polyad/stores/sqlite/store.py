"""The embedded store: one SQLite file in the index's directory, standard library only.

Write-ahead logging lets any number of readers work beside one writer. A document is written, replaced or removed in
one transaction, so after a crash it is there whole or not at all. Vectors lie as float32 blobs in the rows they
describe and commit with them; nothing is pickled and no file is rewritten whole. An index that may not be written, on
a read-only disk or of another user, can be searched; what a search would keep for the next one is then not kept.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from polyad.errors import IndexMismatchError, StoreError, StoreNotFoundError
from polyad.model import (
    Condition,
    Document,
    Entity,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedPassage,
    Origin,
    Passage,
    Statistics,
    Usage,
)
from polyad.protocols.store import Manifest
from polyad.stores.sqlite.checksums import SOUND_TEXT, find_unsound, sound
from polyad.stores.sqlite.database import BusyError, Database, is_laid_out, lay_out, require_length, run_script
from polyad.stores.sqlite.given import count_units, find_called, find_given, with_given
from polyad.stores.sqlite.migration import EARLIER_FORMATS, SCRIPTS, migrate
from polyad.stores.sqlite.pending import (
    delete_other_pending,
    delete_pending,
    insert_pending,
    is_there,
    select_pending,
)
from polyad.stores.sqlite.read_transaction import SqliteReadTransaction
from polyad.stores.sqlite.rebuild_checkpoint import delete_redone, has_redone, insert_redone, select_redone
from polyad.stores.sqlite.replies import REPLIES_FILE_NAME, SqliteReplies
from polyad.stores.sqlite.rows import (
    DOCUMENT_COLUMNS,
    PASSAGE_COLUMNS,
    SELECT_DUPLICATES,
    SELECT_ENTITIES,
    SELECT_HYPEREDGE,
    as_written,
    blob_of,
    build_entities,
    delete_documents,
    document_from,
    hyperedges_from,
    in_order,
    insert_documents,
    matrix_from,
    metadata_from,
    passages_from,
    require_known,
    select_hyperedges,
    select_in,
    select_incidences,
    select_indexed_passages,
)
from polyad.text.files import read_package_file

FORMAT_VERSION = 6
FILE_NAME = "index.sqlite"

_SOUND_HYPEREDGE = f"{sound('hyperedge')} AND {sound('passage')}"  # its text may be a span of the passage's

_KINDS = """
WITH RECURSIVE found(kind) AS (
    SELECT MIN(kind) FROM hyperedge
    UNION ALL SELECT (SELECT MIN(kind) FROM hyperedge WHERE kind > found.kind) FROM found WHERE kind IS NOT NULL
) SELECT kind FROM found WHERE kind IS NOT NULL
"""
"""By the index of kinds, of which it reads an entry for each."""

_WITHIN = (("/", "0"), (":", ";"))
"""What stands behind a folder in the name of a file, or behind a file in that of a record; and what comes after it."""

REMEMBERED_VERSIONS = 100_000
"""How many of the last versions :meth:`SqliteStore.changes` can tell apart."""


class SqliteStore:
    """An index in ``directory / "index.sqlite"``; implements :class:`polyad.protocols.store.Store`.

    The class itself is a :class:`polyad.protocols.store.StoreKind`.

    Safe to use from several threads (each has a connection of its own) and processes. Use :meth:`create` or
    :meth:`open`.
    """

    def __init__(self, path: Path, replies: Path | None = None) -> None:
        self._database = Database(path)
        self._moments = threading.local()
        try:
            self._manifest = self._read_manifest()
            if self._manifest.format_version in EARLIER_FORMATS:
                self._require_writable()
                migrate(path, replies or path.with_name(REPLIES_FILE_NAME), FORMAT_VERSION)
                self._manifest = self._read_manifest()
        except BaseException:
            self.close()
            raise

    @classmethod
    def exists(cls, directory: str | Path) -> bool:
        """Whether there is an index in ``directory``; a file still empty, of a run that was killed at once, is none.

        Raises:
            StoreError: the directory may not be looked into.
        """
        path = Path(directory, FILE_NAME)
        try:
            if not path.is_file():
                return False
        except OSError as error:
            raise StoreError(f"cannot look into the directory {str(directory)!r}: {error.strerror}") from error
        return is_laid_out(path)

    @classmethod
    def create(
        cls, directory: str | Path, embedder: str, dimension: int, mentions: str, *, replies: Path | None = None
    ) -> SqliteStore:
        """Make a new, empty index, or open the one that is there; see :meth:`open`.

        Args:
            directory: Where to; made when missing.
            embedder: Name of the embedder of all vectors.
            dimension: Their length.
            mentions: Name of the mention extractor.
            replies: As for :meth:`open`.

        Raises:
            IndexMismatchError: there is an index, and it was built with others, or is of another format.
            StoreError: the directory or the file cannot be written, or its path is too long.
        """
        path = Path(directory, FILE_NAME)
        require_length(path, "--store")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the directory {str(directory)!r}: {error.strerror}") from error
        lay_out(path, partial(_make_tables, Manifest(FORMAT_VERSION, embedder, dimension, mentions)))
        store = cls(path, replies)
        store.check(embedder=embedder, mentions=mentions)
        return store

    @classmethod
    def open(cls, directory: str | Path, *, replies: Path | None = None) -> SqliteStore:
        """Open an existing index; one of an earlier format is brought to the present one.

        Args:
            directory: Where it is.
            replies: The file that replies of an index of an earlier format go to; by default the one beside it.

        Raises:
            StoreNotFoundError: there is none in ``directory``.
            IndexMismatchError: it is of another format, and cannot be brought to the present one or may not be written.
        """
        if not cls.exists(directory):
            raise StoreNotFoundError(
                f"no index in {str(directory)!r}; expected a directory made by: polyad index PATH --store {directory}"
            )
        return cls(Path(directory, FILE_NAME), replies)

    @classmethod
    def replies(cls, directory: str | Path, file: Path | None = None) -> SqliteReplies:
        """The replies kept in ``file``; by default in the one beside the index, as far as it may be written."""
        return SqliteReplies(file or Path(directory, REPLIES_FILE_NAME), must_keep=file is not None)

    def check(self, *, embedder: str | None = None, mentions: str | None = None) -> None:
        """Raise IndexMismatchError unless the index was built with these."""
        built = self._manifest
        for what, wanted, found in (
            ("embedder", embedder, built.embedder),
            ("mention extractor", mentions, built.mentions),
        ):
            if wanted is not None and wanted != found:
                raise IndexMismatchError(
                    f"the index in {str(self._database.path.parent)!r} was built with the {what} {found!r}, not "
                    f"{wanted!r}; use that one, or index into another --store"
                )

    @property
    def manifest(self) -> Manifest:
        """What the index was built with."""
        return self._manifest

    @property
    def directory(self) -> Path:
        """What the index lies in."""
        return self._database.path.parent

    def version(self) -> int:
        """Grows with every committed change to documents."""
        with self._database.reading() as connection:
            return _version(connection)

    # Writing

    def put(self, *documents: IndexedDocument) -> None:
        """Store documents whole, each in place of any earlier one of the same id; all of them or none."""
        if not documents:
            return
        ids = [item.document.id for item in documents]
        with self._changing() as (connection, version):
            with self._database.understanding():
                delete_pending(connection, ids)
                there = {id for (id,) in select_in(connection, "SELECT id FROM document WHERE id IN ({})", ids)}
            new: list[IndexedDocument] = []
            for item in documents:
                if item.document.id in there:
                    insert_documents(connection, new, version)  # an entity of these is not gone with the earlier one
                    new = []
                    with self._database.understanding():
                        delete_documents(connection, [item.document.id], version)
                there.add(item.document.id)
                new.append(item)
            insert_documents(connection, new, version)

    def remove(self, document_ids: Sequence[str]) -> None:
        """Remove documents and all that came from them, or none of them if any is unknown (NotFoundError)."""
        with self._changing() as (connection, version), self._database.understanding():
            known = [id for (id,) in select_in(connection, "SELECT id FROM document WHERE id IN ({})", document_ids)]
            require_known("document", document_ids, frozenset(known))
            delete_pending(connection, known)
            delete_documents(connection, sorted(known), version)

    # Reading

    def digests(self, ids: Sequence[str] | None = None) -> dict[str, str]:
        """The digest of every document, or of those of some that are there, by id, sorted by id."""
        query = "SELECT id, digest FROM document"
        with self._database.reading() as connection:
            rows = (
                connection.execute(query) if ids is None else select_in(connection, f"{query} WHERE id IN ({{}})", ids)
            )
            return dict(sorted(as_written(rows, str, str)))

    def known_passages(self, digests: Sequence[str]) -> dict[str, IndexedPassage]:
        """The stored passages with these digests, with hyperedges and vectors, by digest."""
        with self._database.reading() as connection:
            found = select_indexed_passages(connection, "passage.digest", digests)
            return {item.digest: item for item in reversed(found)}  # of equal ones the first by id

    def indexed_passages(self, document_ids: Sequence[str]) -> list[IndexedPassage]:
        """The passages of these documents, with hyperedges and vectors; none of a document that is not there."""
        with self._database.reading() as connection:
            return select_indexed_passages(connection, "document.id", document_ids)

    @contextmanager
    def read_transaction(self) -> Iterator[SqliteReadTransaction]:
        """All of the file as it is now, for as long as the block runs; within it, the same again on this thread."""
        outer: SqliteReadTransaction | None = getattr(self._moments, "current", None)
        if outer is not None and outer.is_under_way:
            yield outer
            return
        with self._database.reading() as connection:
            transaction = SqliteReadTransaction(
                connection, _version(connection), REMEMBERED_VERSIONS, self._manifest.dimension
            )
            self._moments.current = transaction
            try:
                yield transaction
            finally:
                self._moments.current = None

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """In the order given."""
        with self._database.reading() as connection:
            sound_ones = f"WHERE id IN ({{}}) AND {sound('document')} AND {SOUND_TEXT}"
            rows = select_in(connection, f"SELECT {DOCUMENT_COLUMNS} FROM document {sound_ones}", ids)
            return in_order("document", ids, {row[0]: document_from(row) for row in rows})

    def origins(self, document_ids: Sequence[str]) -> list[Origin]:
        """What is known of documents beside their texts, in the order given."""
        with self._database.reading() as connection:
            rows = select_in(
                connection,
                f"SELECT id, title, source, url, metadata FROM document WHERE id IN ({{}}) AND {sound('document')}",
                document_ids,
            )
            found = {
                id: Origin(title, source, url, metadata_from(data))
                for id, title, source, url, data in as_written(rows, str, str, str, str, str)
            }
        return in_order("document", document_ids, found)

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """In the order given."""
        with self._database.reading() as connection:
            rows = select_in(
                connection,
                f"SELECT {PASSAGE_COLUMNS} FROM passage JOIN document ON document.number = passage.document "
                f"WHERE passage.id IN ({{}}) AND {sound('passage')}",
                ids,
            )
            return in_order("passage", ids, {passage.id: passage for passage in passages_from(rows)})

    def hyperedges(self, ids: Sequence[str]) -> list[Hyperedge]:
        """In the order given."""
        with self._database.reading() as connection:
            found = select_hyperedges(connection, f"hyperedge.id IN ({{}}) AND {_SOUND_HYPEREDGE}", ids)
            return in_order("hyperedge", ids, found)

    def all_hyperedges(self) -> list[Hyperedge]:
        """Every hyperedge, sorted by id."""
        with self._database.reading() as connection:
            rows = connection.execute(f"{SELECT_HYPEREDGE} WHERE {_SOUND_HYPEREDGE} ORDER BY hyperedge.id")
            return list(with_given(connection, hyperedges_from(rows)).values())

    def given(self, relation: str, conditions: Sequence[Condition]) -> list[str]:
        """Ids of the tuples of a relation, of any where it is empty, whose arguments meet some conditions; sorted."""
        with self._database.reading() as connection:
            numbers = find_given(connection, relation, conditions)
            query = "SELECT id FROM hyperedge WHERE number IN ({})"
            return sorted(id for (id,) in as_written(select_in(connection, query, map(str, numbers)), str))

    def called(self, name: str) -> list[str]:
        """What the entities are known by that tuples give this name beside their id, exactly; sorted."""
        with self._database.reading() as connection:
            return find_called(connection, name)

    def relations(self) -> dict[str, int]:
        """How many tuples there are of each relation, sorted by its name."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT relation, COUNT(*) FROM given GROUP BY 1 ORDER BY 1")
            return dict(as_written(rows, str, int))

    def roles(self) -> list[str]:
        """Every role that is taken in any hyperedge, sorted."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT role FROM argument UNION SELECT role FROM incidence ORDER BY 1")
            return [role for (role,) in as_written(rows, str) if role]

    def units(self, role: str) -> dict[str, int]:
        """How many numbers of tuples have each unit in a role, sorted by it; "" where they have none."""
        with self._database.reading() as connection:
            return count_units(connection, role)

    def entities(self, keys: Sequence[str]) -> list[Entity]:
        """The snapshots over their incidences, in the order given."""
        with self._database.reading() as connection:
            snapshots = build_entities(select_in(connection, SELECT_ENTITIES.format("AND entity.key IN ({})"), keys))
        return in_order("entity", keys, {snapshot.key: snapshot for snapshot in snapshots})

    def all_entities(self) -> list[Entity]:
        """The snapshot of every entity, sorted by key."""
        with self._database.reading() as connection:
            return build_entities(connection.execute(SELECT_ENTITIES.format("")).fetchall())

    def incidences(self, hyperedge_ids: Sequence[str]) -> dict[str, list[Incidence]]:
        """The incidences of each hyperedge, sorted by entity key, then role."""
        with self._database.reading() as connection:
            return select_incidences(connection, hyperedge_ids)

    def memberships(self, entity_key: str) -> list[str]:
        """Ids of the hyperedges that join an entity, sorted."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT hyperedge.id FROM entity JOIN incidence ON incidence.entity = entity.number "
                "JOIN hyperedge ON hyperedge.number = incidence.hyperedge WHERE entity.key = ? ORDER BY 1",
                [entity_key],
            )
            return [id for (id,) in as_written(rows, str)]

    def sources(self, places: Iterable[str] | None = None) -> dict[str, str]:
        """Where each document came from, by id, sorted by id; of some files and folders, or of all."""
        every, of_place = "SELECT id, source FROM document", "source = ?1 OR (source >= ?1 || ? AND source < ?1 || ?)"
        with self._database.reading() as connection:
            if places is None:
                rows = connection.execute(every).fetchall()
            else:
                rows = [
                    row
                    for place in places
                    for first, after in _WITHIN
                    for row in connection.execute(f"{every} WHERE {of_place}", [place, first, after])
                ]
            return dict(sorted(as_written(rows, str, str)))

    def kinds(self) -> set[HyperedgeKind]:
        """The kinds of hyperedges that there are."""
        with self._database.reading() as connection:
            return {HyperedgeKind(kind) for (kind,) in as_written(connection.execute(_KINDS), str)}

    def kinds_of_documents(self, kinds: Iterable[HyperedgeKind]) -> dict[str, HyperedgeKind]:
        """By id, the kind of the hyperedges of each document that has any of some kinds: that of its first."""
        holding = (
            "SELECT DISTINCT passage.document FROM hyperedge JOIN passage ON passage.number = hyperedge.passage "
            "WHERE hyperedge.kind IN ({})"
        )
        first = (
            "SELECT kind FROM passage JOIN hyperedge ON hyperedge.passage = passage.number "
            "WHERE passage.document = document.number LIMIT 1"
        )
        with self._database.reading() as connection:
            rows = select_in(connection, f"SELECT id, ({first}) FROM document WHERE number IN ({holding})", kinds)
            return {id: HyperedgeKind(kind) for id, kind in as_written(rows, str, str)}

    def duplicates(self, document_ids: Sequence[str]) -> dict[str, str]:
        """Of these documents, those with the title and the text of one that was written earlier; its id, by theirs."""
        with self._database.reading() as connection:
            return dict(as_written(select_in(connection, SELECT_DUPLICATES, document_ids), str, str))

    def verify(self) -> list[tuple[str, str]]:
        """Table and id of every row that is not as it was written, or has lost rows that belong to it; may take long.

        Words, of which there is no checksum, are not looked at.

        Raises:
            StoreError: the file is so damaged that its rows cannot be gone over.
        """
        with self._database.reading() as connection:
            return find_unsound(connection)

    def statistics(self) -> Statistics:
        """Sizes of the index."""
        with self._database.reading() as connection:
            documents, passages, entities, hyperedges, incidences = (
                int(_scalar(connection, f"SELECT COUNT(*) FROM {table}"))
                for table in ("document", "passage", "entity", "hyperedge", "incidence")
            )
            tokens = int(_scalar(connection, "SELECT COALESCE(SUM(tokens), 0) FROM document"))
            cost = float(_scalar(connection, "SELECT cost FROM account"))
            counts = connection.execute("SELECT kind, COUNT(*) FROM hyperedge GROUP BY kind ORDER BY kind")
            kinds = {HyperedgeKind(kind): count for kind, count in counts}
        settings = {"embedder": self._manifest.embedder, "mentions": self._manifest.mentions}
        return Statistics(
            documents,
            passages,
            entities,
            hyperedges,
            incidences,
            tokens,
            cost,
            disk_bytes=self._database.disk_bytes(),
            kinds=kinds,
            settings=settings,
        )

    def charge(self, usage: Usage) -> None:
        """Put what a language model has cost on the index's account."""
        if self._database.is_read_only:
            return
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE account SET calls = calls + ?, prompt_tokens = prompt_tokens + ?, "
                "completion_tokens = completion_tokens + ?, cost = cost + ?",
                [usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost],
            )

    # Vectors of documents that are not stored yet

    def pending_vectors(self, digests: Sequence[str]) -> dict[str, FloatArray]:
        """Vectors made for documents that are not stored yet, by the digest of their text."""
        with self._database.reading() as connection:
            return select_pending(connection, digests, self._manifest.dimension)

    def keep_pending_vectors(self, vectors: Mapping[str, tuple[str, FloatArray]]) -> None:
        """Keep vectors, by the digest of their text, each with the id of its document, until that is put or removed."""
        with self._database.writing() as connection:
            insert_pending(connection, vectors)

    def drop_pending_vectors(self, kept: Container[str] = ()) -> None:
        """Drop the vectors that wait, but for those of the documents with the ids ``kept``."""
        with self._database.reading() as connection:
            if self._database.is_read_only or not is_there(connection):
                return
        with self._database.writing() as connection, self._database.understanding():
            delete_other_pending(connection, kept)

    # What an unfinished run that builds anew has done

    def redone(self, run: str) -> set[str]:
        """The names of what it has done."""
        with self._database.reading() as connection:
            return select_redone(connection, run)

    def keep_redone(self, run: str, names: Sequence[str]) -> None:
        """Note that it has done more, until it is dropped."""
        with self._database.writing() as connection:
            insert_redone(connection, run, names)

    def drop_redone(self, run: str) -> None:
        """Forget it: it is finished."""
        with self._database.reading() as connection:
            if self._database.is_read_only or not has_redone(connection):
                return
        with self._database.writing() as connection, self._database.understanding():
            delete_redone(connection, run)

    # Vectors of entities, derived from all their incidences

    def entity_vectors(self, keys: Sequence[str]) -> dict[str, tuple[str, FloatArray]]:
        """By key, the vectors kept for some entities, each with the digest of the text it was made from."""
        query = (
            "SELECT key, digest, vector FROM entity_vector JOIN entity ON entity.number = entity_vector.entity "
            f"WHERE key IN ({{}}) AND {sound('entity')} AND {sound('entity_vector')}"
        )
        with self._database.reading() as connection:
            rows = as_written(select_in(connection, query, keys), str, str, bytes)
            vectors = matrix_from([blob for _, _, blob in rows], self._manifest.dimension)
        return {key: (digest, vector) for (key, digest, _), vector in zip(rows, vectors, strict=True)}

    def keep_entity_vectors(self, vectors: Mapping[str, tuple[str, FloatArray]]) -> None:
        """Keep the vectors of entities, by key, in place of older ones; entities that are gone are passed over.

        A search keeps them, so it does not wait for another process that is writing: nothing is kept then.
        """
        if self._database.is_read_only:
            return
        with suppress(BusyError), self._database.writing(seconds=0) as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO entity_vector SELECT number, ?1, ?2, row_checksum(number, ?1, ?2) FROM entity "
                "WHERE key = ?3",
                ((digest, blob_of(vector), key) for key, (digest, vector) in vectors.items()),
            )

    def close(self) -> None:
        """Release the file. The store is unusable afterwards."""
        self._database.close()

    @contextmanager
    def _changing(self) -> Iterator[tuple[sqlite3.Connection, int]]:
        """One transaction that changes documents, and the version that it makes."""
        with self._database.writing() as connection:
            with self._database.understanding():
                version = _version(connection) + 1
            connection.execute("UPDATE manifest SET value = ? WHERE key = 'version'", [version])
            connection.execute("INSERT INTO state VALUES (?, LOWER(HEX(RANDOMBLOB(8))))", [version])
            for log in ("removal", "state"):
                connection.execute(f"DELETE FROM {log} WHERE version <= ?", [version - REMEMBERED_VERSIONS])
            yield connection, version

    def _require_writable(self) -> None:
        """Raise IndexMismatchError if an index of an earlier format may not be written."""
        if self._database.is_read_only:
            raise IndexMismatchError(
                f"{str(self._database.path)!r} has format {self._manifest.format_version}, this polyad reads "
                f"{FORMAT_VERSION}, and it may not be written by this user; have one who may convert it: polyad stats "
                f"--store {self._database.path.parent}"
            )

    def _read_manifest(self) -> Manifest:
        with self._database.reading() as connection:
            found = connection.execute("SELECT 1 FROM pragma_table_info('manifest') WHERE name IN ('key', 'value')")
            rows = dict(connection.execute("SELECT key, value FROM manifest")) if len(found.fetchall()) == 2 else {}
            if not {"format_version", "embedder", "dimension", "mentions"} <= rows.keys():
                raise StoreError(f"{str(self._database.path)!r} belongs to another program; choose another --store")
            format_version, dimension = int(rows["format_version"]), int(rows["dimension"])
            if format_version not in (*EARLIER_FORMATS, FORMAT_VERSION):
                raise IndexMismatchError(
                    f"{str(self._database.path)!r} has format {format_version}, this polyad reads {FORMAT_VERSION}; "
                    "index again into another --store"
                )
            if dimension < 1:
                raise ValueError(f"vectors of length {dimension}")
            [(embedder, mentions)] = as_written([(rows["embedder"], rows["mentions"])], str, str)
        return Manifest(format_version, embedder, dimension, mentions)


def _make_tables(manifest: Manifest, connection: sqlite3.Connection) -> None:
    for script in SCRIPTS:
        run_script(connection, read_package_file("polyad.stores.sqlite", script))
    values = {
        "format_version": manifest.format_version,
        "embedder": manifest.embedder,
        "dimension": manifest.dimension,
        "mentions": manifest.mentions,
        "version": 0,
    }
    connection.executemany("INSERT INTO manifest VALUES (?, ?)", [(key, str(value)) for key, value in values.items()])


def _version(connection: sqlite3.Connection) -> int:
    return int(_scalar(connection, "SELECT value FROM manifest WHERE key = 'version'"))


def _scalar(connection: sqlite3.Connection, query: str) -> str | int | float:
    value: str | int | float = connection.execute(query).fetchone()[0]
    return value
