"""Lookups in an index. Only the summary of an entity may need a language model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from polyad.curation.corrections import load_effects
from polyad.curation.curator import HistoryEntry, load_history
from polyad.curation.statements import Statements, Withdrawal
from polyad.engine.document_table import DocumentTable
from polyad.engine.selection import DocumentSelection
from polyad.errors import ConfigurationError, NotFoundError
from polyad.model import (
    Document,
    DocumentVersion,
    Entity,
    Hyperedge,
    Incidence,
    IndexedHyperedge,
    IndexedPassage,
    LabelCount,
    Origin,
    Passage,
    Statistics,
)
from polyad.protocols.components import LanguageModel
from polyad.protocols.lookups import (
    find_entity_ids,
    get_all,
    get_digests,
    get_hyperedge_ids,
    get_incidences,
    get_sources,
    get_statistics,
)
from polyad.protocols.store import EMBEDDER_CHOICE, Store
from polyad.retrieval.default.relevance import load_relevance_model
from polyad.retrieval.roles import RoleBinding, answer_roles, count_units, list_roles
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.vectors import RECALL_K
from polyad.text.conflicts import Conflict, find_conflicts
from polyad.text.filters import Where
from polyad.text.keys import build_argument_key, build_name_key
from polyad.text.languages import describe_languages
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad.text.validity import Interval, Time, parse_bounds, parse_interval, parse_period
from polyad.text.versions import VersionConflict
from polyad.text.words import normalize_value

_MAX_RANKED = 2_000
"""Hyperedges of an entity among which :meth:`Catalogue.neighbourhood` selects."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """An entity, its neighbours in the hypergraph, and the hyperedges that connect them.

    Attributes:
        entities: The entity and its neighbours, each with its degree, the number of its hyperedges.
        hyperedges: Hyperedges of the entity, each with the keys of its entities.
        total: Number of all hyperedges of the entity.
    """

    entities: tuple[tuple[Entity, int], ...]
    hyperedges: tuple[tuple[Hyperedge, tuple[str, ...]], ...]
    total: int


class Catalogue:
    """Looks up documents, passages, entities, hyperedges and facts of an index.

    Attributes:
        documents: The table of documents with title, type, language and date.

    Args:
        store: The index.
        language_model: Summarizes descriptions of entities; None if no model is set.
        recall: Returns the recall of approximate vector search by kind of vector; empty if the search is exact.
        get_snapshot: Returns the current snapshot, from which languages and versions of documents are derived.
        prompts: Prompts of the language model.
    """

    def __init__(
        self,
        store: Store,
        language_model: LanguageModel | None,
        recall: Callable[[], Mapping[str, float]],
        get_snapshot: Callable[[], MappedSnapshot],
        prompts: Prompts = DEFAULT_PROMPTS,
    ) -> None:
        self._get_snapshot = get_snapshot
        self._prompts = prompts
        self._store = store
        self._language_model = language_model
        self._recall = recall
        self.documents = DocumentTable(store)

    def statistics(self) -> Statistics:
        """Return the numbers of records by type, the names of the components, and the recall of vector search."""
        statistics = get_statistics(self._store)
        recalls = [f"{share:.3f} of the nearest {RECALL_K} of {kind}s" for kind, share in self._recall().items()]
        description = f"approximate, finds {', '.join(recalls)}" if recalls else "exact"
        settings = {
            **statistics.settings,
            "nearest": description,
            "relevance": f"auto refuses below {load_relevance_model().limit:.2f}",
        }
        settings["languages"] = describe_languages(self._get_snapshot().count_languages())
        settings["embedder_choice"] = "languages" if self._store.get_values(EMBEDDER_CHOICE) else "named"
        directory = self._store.manifest.directory
        if directory is None:
            return replace(statistics, settings=settings)
        files = _measure_files(directory)
        database_bytes = statistics.disk_bytes if self._store.manifest.place else 0  # its file is not in the folder
        return replace(statistics, settings=settings, files=files, disk_bytes=database_bytes + sum(files.values()))

    def match_documents(self, names: Iterable[str]) -> list[str]:
        """Return the ids of the documents that ids, files, folders and patterns such as ``old/*`` select.

        Raises:
            NotFoundError: A name selects no document.
        """
        from polyad.readers.text.sources import match_documents  # a search reads no documents

        sources = get_sources(self._store)
        ids: dict[str, None] = {}
        for name in names:
            if not (matches := match_documents(sources, name)):
                raise NotFoundError(f"no document {name!r}: it is neither an id nor a file, folder or pattern of any")
            ids.update(dict.fromkeys(matches))
        return list(ids)

    def statements(self) -> Statements:
        """Return all corrections by users: retractions of facts, aliases of entities, and disabled documents."""
        return Statements.load(self._store)

    def withdrawals(self, document_id: str = "") -> list[Withdrawal]:
        """Return the facts, and the entities of facts, that retractions withdrew, of one document or of all."""
        effects = load_effects(self._store, [document_id] if document_id else None)
        return [one for each in effects.values() for one in each.withdrawals]

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """Return one entry for each command that changed the index, newest first.

        Args:
            limit: Maximum number of entries; None for all.
        """
        return load_history(self._store)[:limit]

    def sources(self, where: Where = None, as_of: Time = None) -> dict[str, str]:
        """Return the source of every document, such as a file path, in a dictionary keyed by document id.

        Args:
            where: Filter of the documents; see :meth:`polyad.engine.engine.Engine.search`. None for all.
            as_of: Time at which the documents are valid, in the same form. None for all times.
        """
        sources = get_sources(self._store)
        selected = self._select_documents(sources, where, as_of)
        return {id: source for id, source in sources.items() if id in selected}

    def digests(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the content hash of documents in a dictionary keyed by id; documents that are missing are left out."""
        return get_digests(self._store, ids)

    def passages(self, where: Where = None, as_of: Time = None) -> list[Passage]:
        """Return all passages, sorted by id; with a filter or date, only the passages of documents that match."""
        passages = get_all(self._store, Passage)
        selected = self._select_documents({passage.document_id for passage in passages}, where, as_of)
        return [passage for passage in passages if passage.document_id in selected]

    def passages_of_document(self, document_id: str) -> list[Passage]:
        """Return the passages of a document in the order of its text; empty for an unknown document."""
        with self._store.read_transaction() as transaction:
            ids = transaction.find("passages by document", [document_id]).get(document_id, [])
            return sorted(transaction.get(Passage, ids).values(), key=lambda passage: passage.start)

    def entities(self, where: Where = None, as_of: Time = None) -> list[Entity]:
        """Return all entities, sorted by key; with a filter or date, only entities of hyperedges that match both.

        Then names, types and descriptions are aggregated from the matching hyperedges.
        """
        if where is None and as_of is None:
            return get_all(self._store, Entity)
        edges = self.hyperedges(where, as_of)
        if len(edges) == self.statistics().hyperedges:
            return get_all(self._store, Entity)
        incidences: defaultdict[str, list[LabelCount]] = defaultdict(list)
        for parts in self.incidences([edge.id for edge in edges]).values():
            for part in parts:
                incidences[part.entity_key].append((part.name, part.type, part.description, part.score, 1))
        return [Entity.from_labels(key, labels) for key, labels in sorted(incidences.items())]

    def entity_page(self, first: int, limit: int) -> tuple[list[Entity], int]:
        """Return at most ``limit`` entities, sorted by key, from position ``first`` on, and the number of all."""
        with self._store.read_transaction() as transaction:
            keys, total = transaction.entity_page(first, limit)
            return list(transaction.get(Entity, keys).values()), total

    def hyperedges(self, where: Where = None, as_of: Time = None) -> list[Hyperedge]:
        """Return all hyperedges, sorted by id; with a filter or date, only the hyperedges that match both."""
        edges = get_all(self._store, Hyperedge)
        if where is None and as_of is None:
            return edges
        selected = set(self._select_hyperedges([edge.id for edge in edges], where, as_of))
        return [edge for edge in edges if edge.id in selected]

    def incidences(self, hyperedge_ids: Sequence[str]) -> dict[str, list[Incidence]]:
        """Return the incidences (member entities with roles) of each hyperedge, keyed by hyperedge id."""
        return get_incidences(self._store, hyperedge_ids)

    def validity(self, hyperedge_ids: Sequence[str]) -> dict[str, Interval]:
        """Return for each hyperedge id the period in which the hyperedge and its document are both valid."""
        edges = get_all(self._store, Hyperedge, hyperedge_ids)
        ids = [edge.passage_id.rpartition("#")[0] for edge in edges]
        origins = get_all(self._store, Origin, ids)
        return {
            edge.id: parse_interval(origin.metadata).intersect(parse_bounds(edge.valid_from, edge.valid_to))
            for edge, origin in zip(edges, origins, strict=True)
        }

    def origin(self, document_id: str) -> Origin:
        """Return the title, source, URL and metadata of a document.

        Raises:
            NotFoundError: The index has no document with this id.
        """
        return get_all(self._store, Origin, [document_id])[0]

    def document(self, id: str) -> Document:
        """Return the document with this id, including its text.

        Raises:
            NotFoundError: The index has no document with this id.
        """
        return get_all(self._store, Document, [id])[0]

    def versions(self, id: str, as_of: Time) -> dict[str, DocumentVersion]:
        """Return the versions of a document with their status at a time, keyed by document (or file), oldest first.

        The result is empty for a document without other versions.

        Raises:
            NotFoundError: The index has no document with this id.
        """
        passages = [passage.id for passage in self.document_passages(id)[:1]]
        time, snapshot = parse_period("as_of", as_of).start, self._get_snapshot()
        families = [family for _, family in snapshot.versions.find_families(snapshot, passages).values()]
        members = [(family, member) for family in families for member in sorted(family.members, key=family.get_order)]
        described = {member.unit: family.describe(member.unit, time) for family, member in members}
        return {unit: version for unit, version in described.items() if version}

    def version_conflicts(self, where: Where = None, as_of: Time = None) -> list[VersionConflict]:
        """Return versions of one document that contradict each other, of the documents that ``where`` selects.

        They do if several are stated to be in force at the time ``as_of``, or if one version has different numbers.
        """
        time, snapshot = parse_period("as_of", as_of).start, self._get_snapshot()
        families = snapshot.versions.list_families(snapshot)
        with self._store.read_transaction() as transaction:
            documents = transaction.get(Document, [member.unit for family in families for member in family.members])
        texts = {id: document.text for id, document in documents.items()}
        conflicts = [conflict for family in families for conflict in family.find_conflicts(time, texts)]
        if where is None:
            return conflicts
        selected = self._select_documents({id for conflict in conflicts for id in conflict.documents}, where, None)
        return [conflict for conflict in conflicts if selected.issuperset(conflict.documents)]

    def document_passages(self, id: str) -> list[Passage]:
        """Return the passages of a document in the order of its text.

        Raises:
            NotFoundError: The index has no document with this id.
        """
        self.origin(id)
        with self._store.read_transaction() as transaction:
            ids = transaction.find("passages by document", [id]).get(id, [])
            return sorted(transaction.get(Passage, ids).values(), key=lambda passage: passage.start)

    def passage(self, id: str) -> Passage:
        """Return the passage with this id.

        Raises:
            NotFoundError: The index has no passage with this id.
        """
        return get_all(self._store, Passage, [id])[0]

    def hyperedge(self, id: str) -> tuple[Hyperedge, list[Incidence]]:
        """Return the hyperedge with this id, and its incidences (member entities with roles).

        Raises:
            NotFoundError: The index has no hyperedge with this id.
        """
        [item] = get_all(self._store, IndexedHyperedge, [id])
        return item.hyperedge, list(item.incidences)

    def hyperedges_of_passage(self, id: str) -> list[tuple[Hyperedge, list[str]]]:
        """Return the hyperedges of the passage with this id, in text order, each with the names of its entities.

        Raises:
            NotFoundError: There is no such passage.
        """
        [stored] = get_all(self._store, IndexedPassage, [id])
        return [
            (each.hyperedge, list(dict.fromkeys(incidence.name for incidence in each.incidences)))
            for each in stored.hyperedges
        ]

    def grounded_share(self, hyperedge: Hyperedge) -> float:
        """Return the share of a hyperedge's content words that occur in its passage, in [0, 1].

        A low share means that a language model may have stated a fact that the passage does not contain.
        """
        from polyad.indexing.facts.grounding import compute_grounded_share  # takes 40 ms, which a search does not need

        source = self.passage(hyperedge.passage_id).text[hyperedge.start : hyperedge.end]
        return compute_grounded_share(hyperedge.text, source)

    def entity(self, name: str) -> tuple[Entity, list[str]]:
        """Return (entity with this key or name, ids of its hyperedges); raise NotFoundError if there is none.

        An alias selects its entity. An entity of facts that were supplied as data has an exact name, or an id. A name
        beside an id selects the entity if no other entity has the same name.
        """
        resolve = Statements.load(self._store).resolve
        names = (name, build_argument_key(name), build_name_key(name))
        keys = dict.fromkeys(resolve(key) for key in names if key)
        *exact, last = ((key, get_hyperedge_ids(self._store, key)) for key in keys or [name])
        key, ids = next((one for one in exact if one[1]), last)
        if not ids and len(known_by := find_entity_ids(self._store, normalize_value(name))) == 1:
            key = build_argument_key(known_by[0])
            ids = get_hyperedge_ids(self._store, key)
        return get_all(self._store, Entity, [key])[0], ids

    def neighbourhood(self, name: str, limit: int) -> Neighbourhood:
        """Return an entity, its neighbours, and the ``limit`` hyperedges with the best connected neighbours.

        Args:
            name: Name or key of the entity.
            limit: Maximum number of hyperedges.

        Raises:
            NotFoundError: There is no such entity.
        """
        entity, ids = self.entity(name)
        members = {
            id: list(dict.fromkeys(each.entity_key for each in incidences))
            for id, incidences in self.incidences(ids[:_MAX_RANKED]).items()
        }
        keys = sorted({entity.key, *(key for each in members.values() for key in each)})
        with self._store.read_transaction() as transaction:
            degrees = {
                key: len(ids_of_key) for key, ids_of_key in transaction.find("hyperedges by entity", keys).items()
            }

        def rank(id: str) -> tuple[int, str]:
            return -max((degrees[key] for key in members[id] if key != entity.key), default=0), id

        nearest = sorted(members, key=rank)[:limit]
        neighbours = dict.fromkeys([entity.key, *(key for id in nearest for key in members[id])])
        return Neighbourhood(
            tuple((each, degrees[each.key]) for each in get_all(self._store, Entity, list(neighbours))),
            tuple((edge, tuple(members[edge.id])) for edge in get_all(self._store, Hyperedge, nearest)),
            len(ids),
        )

    def summary(self, name: str) -> str:
        """Return a short summary of an entity's descriptions, written by the language model if one is configured.

        A summary by the language model is cached.

        Raises:
            NotFoundError: there is no such entity.
            NoLanguageModelError: the descriptions are too long to be returned, and no language model is configured.
            LanguageModelError: the model gave no usable reply.
        """
        from polyad.answering.summary import summarise  # takes 60 ms, which a search does not need

        return summarise(self.entity(name)[0], self._language_model, self._prompts)

    def hyperedges_joining(self, names: Sequence[str], where: Where = None, as_of: Time = None) -> list[Hyperedge]:
        """Return the hyperedges that contain every entity in ``names``, sorted by hyperedge id.

        Args:
            names: Names of entities.
            where: Filter of the documents of the hyperedges; see :meth:`polyad.engine.engine.Engine.search`.
            as_of: Time at which the hyperedges are valid, in the same form. None for all times.

        Raises:
            ConfigurationError: ``names`` is empty.
            NotFoundError: A name is no entity of the index.
        """
        if not names:
            raise ConfigurationError("no entity is named; expected at least one name")
        postings = [set(self.entity(name)[1]) for name in names]
        ids = self._select_hyperedges(sorted(set.intersection(*postings)), where, as_of)
        return get_all(self._store, Hyperedge, ids)

    def _select_documents(self, ids: Iterable[str], where: Where, as_of: Time) -> set[str]:
        """Return the ids of the documents that are valid at a date and satisfy a filter."""
        selection = DocumentSelection(self._store, where, as_of)
        selection.require_fields()
        return selection.select_documents(ids)

    def _select_hyperedges(self, hyperedge_ids: Sequence[str], where: Where, as_of: Time) -> list[str]:
        """Return the ids of the hyperedges that are valid at a date and whose documents satisfy a filter."""
        selection = DocumentSelection(self._store, where, as_of)
        ids = selection.select_hyperedges(hyperedge_ids)
        if not ids:
            selection.require_fields()
        return ids

    def roles(
        self,
        conditions: Mapping[str, str | Sequence[str]] | Iterable[str],
        requested_roles: Sequence[str] = (),
        *,
        relation: str = "",
        limit: int | None = None,
        where: Where = None,
        as_of: Time = None,
    ) -> list[RoleBinding]:
        """Return the values of ``requested_roles`` (argument names) in each fact that satisfies ``conditions``.

        Conditions are, for example, ``{"giver": "Alice"}`` or ``["year>=1990"]``; see
        :func:`polyad.retrieval.roles.answer_roles`. ``where`` filters by document, ``as_of`` by time.
        """
        return answer_roles(
            self._store,
            conditions,
            requested_roles,
            relation=relation,
            limit=limit,
            select=lambda ids: self._select_hyperedges(ids, where, as_of),
        )

    def conflicts(self, where: Where = None, as_of: Time = None) -> list[Conflict]:
        """Return contradictions between facts: the same subject (main entity) and relation, but different values.

        See :mod:`polyad.text.conflicts`.

        ``where`` filters by document, ``as_of`` by time.
        """
        with self._store.read_transaction() as transaction:
            ids = transaction.find_tuples("", ())
            facts = transaction.get(Hyperedge, self._select_hyperedges(ids, where, as_of)).values()
        return find_conflicts(facts)

    def relations(self) -> dict[str, int]:
        """Return the number of facts of each relation in a dictionary, keyed by relation and sorted by key."""
        with self._store.read_transaction() as transaction:
            return transaction.count("relation")

    def role_names(self) -> list[str]:
        """Return the sorted names of all roles (argument names of facts) in the index."""
        with self._store.read_transaction() as transaction:
            return list(transaction.count("role"))

    def units(self, role: str) -> dict[str, int]:
        """Return how many numbers facts state in each unit for a role (argument name); "" stands for no unit."""
        return count_units(self._store, role)

    def list_roles(self, name: str) -> list[str]:
        """Return the sorted roles that an entity has in hyperedges, such as ``sponsor``; empty for an unknown name."""
        return list_roles(self._store, name)


def _measure_files(directory: Path) -> dict[str, int]:
    """Return the size in bytes of each file and folder in a directory, keyed by name."""
    sizes: Counter[str] = Counter()
    for path in sorted(directory.rglob("*")):
        with suppress(FileNotFoundError):  # a snapshot may be replaced meanwhile
            if path.is_file():
                sizes[path.relative_to(directory).parts[0]] += path.stat().st_size
    return dict(sizes)
