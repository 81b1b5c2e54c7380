"""JSON of the contents of an index, and of plug-ins and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import NotRequired

from typing_extensions import TypedDict

from polyad.curation.statements import STATEMENT_KINDS
from polyad.engine.catalogue import Catalogue
from polyad.errors import NotFoundError
from polyad.model import SUBJECT, Document, Entity, Hyperedge, HyperedgeKind, Incidence, Statistics
from polyad.retrieval.roles import RoleBinding, get_role_values
from polyad.schemas.evidence import ArgumentSchema, VersionSchema, passage_json
from polyad.schemas.filling import fields_of, fill_schema
from polyad.text.conflicts import Conflict
from polyad.text.filters import Where
from polyad.text.keys import build_name_key
from polyad.text.validity import Time, format_time


class StatisticsSchema(TypedDict):
    """Output of ``polyad stats --json``: sizes of an index, its components, and its cost in US dollars."""

    documents: int
    passages: int
    entities: int
    hyperedges: int
    kinds: dict[str, int]
    incidences: int
    mean_arity: float
    density: float
    tokens: int
    cost: float
    disk_bytes: int
    files: dict[str, int]
    settings: dict[str, str]


class PluginSchema(TypedDict):
    """A component that another package adds to polyad; ``sound`` is false if it cannot be imported."""

    table: str
    name: str
    package: str
    version: str
    sound: bool


class PluginsSchema(TypedDict):
    """Output of ``polyad plugins --json``: the components that other packages add to polyad."""

    plugins: list[PluginSchema]


class SettingSchema(TypedDict):
    """The value of a setting and its origin: a flag, an environment variable, a file or ``default``.

    ``section`` is empty for settings of the top level.
    """

    section: str
    key: str
    value: object
    origin: str


class SettingsSchema(TypedDict):
    """Output of ``polyad config --json``: the value and the origin of each setting."""

    settings: list[SettingSchema]


class FactSchema(TypedDict):
    """A hyperedge (a text that joins entities) as JSON, with the names of its entities by role.

    Only a fact with a relation, or a tuple, has ``arguments``. The fact and its document hold from ``valid_from`` until
    ``valid_to``; a missing bound is unbounded.
    """

    id: str
    text: str
    relation: str
    roles: dict[str, list[str]]
    arguments: list[ArgumentSchema]
    valid_from: NotRequired[str]
    valid_to: NotRequired[str]


class FactsSchema(TypedDict):
    """Output of ``polyad facts --json``: the hyperedges that match a query."""

    facts: list[FactSchema]


class ConflictingFactSchema(TypedDict):
    """A fact that contradicts another fact, with its document and validity period; empty bounds are unbounded."""

    id: str
    document_id: str
    text: str
    valid_from: str
    valid_to: str


class ConflictingValueSchema(TypedDict):
    """One of several contradicting values of a role, with the facts that state this value."""

    value: str
    facts: list[ConflictingFactSchema]


class ConflictSchema(TypedDict):
    """Facts that state different values for the same subject and role, such as two capitals of a country."""

    relation: str
    subject: str
    role: str
    values: list[ConflictingValueSchema]


class VersionConflictSchema(TypedDict):
    """Versions of one document that contradict each other."""

    family: str
    reason: str
    documents: list[str]


class ConflictsSchema(TypedDict):
    """Output of ``polyad conflicts --json``: groups of facts that contradict each other, and versions that do."""

    conflicts: list[ConflictSchema]
    versions: list[VersionConflictSchema]


class VersionItemSchema(VersionSchema):
    """A version of a document with the id of the document, or its file."""

    id: str


@fields_of(Document)
class DocumentSchema(TypedDict):
    """Output of ``polyad show document --json``: a document with its text and metadata.

    The key ``removed`` is present with ``--show-removed``: what the text leaves out, by kind. ``versions`` is present
    if the index has other versions of the document: each with its status, the oldest first.
    """

    removed: NotRequired[dict[str, list[str]]]
    versions: NotRequired[list[VersionItemSchema]]


class PassageItemSchema(TypedDict):
    """A passage in the list of a document's passages; ``page`` and ``slide`` are null where there are none."""

    id: str
    text: str
    start: int
    end: int
    page: int | None
    heading: str
    sheet: str
    slide: int | None


@fields_of(Incidence)
class IncidenceSchema(TypedDict):
    """The membership of an entity in a hyperedge as JSON."""


@fields_of(Hyperedge)
class HyperedgeSchema(TypedDict):
    """Output of ``polyad show hyperedge --json``: a text that joins entities, with these entities."""

    arguments: list[ArgumentSchema]
    grounded: float
    incidences: list[IncidenceSchema]


@fields_of(Entity)
class EntitySchema(TypedDict):
    """Output of ``polyad show entity --json``: an entity with the ids of its hyperedges.

    The key ``summary`` is present if a summary was requested.
    """

    hyperedges: list[str]


class Kind(StrEnum):
    """The kinds of objects that ``polyad show`` prints."""

    DOCUMENT = "document"
    PASSAGE = "passage"
    ENTITY = "entity"
    HYPEREDGE = "hyperedge"


class ListKind(StrEnum):
    """The kinds of objects that ``polyad list`` prints."""

    DOCUMENTS = "documents"
    PASSAGES = "passages"
    ENTITIES = "entities"
    HYPEREDGES = "hyperedges"
    RETRACTIONS = "retractions"
    ALIASES = "aliases"
    DISABLED = "disabled"


_SEARCHED_KEYS = {
    ListKind.DOCUMENTS: ["id"],
    ListKind.PASSAGES: ["id", "text"],
    ListKind.ENTITIES: ["name"],
    ListKind.HYPEREDGES: ["id", "text"],
}


def list_items(
    catalogue: Catalogue, kind: ListKind, like: str, where: Where = None, as_of: Time = None
) -> list[dict[str, object]]:
    """Return the objects of one kind, such as documents, that contain the text ``like``, ignoring case, as JSON.

    The text may be in the id of a document, the name of an entity, or the id or text of a passage or hyperedge.
    """
    items: list[dict[str, object]]
    statements = STATEMENT_KINDS.get(kind.value)
    if statements:
        items = statements.list_rows(getattr(catalogue.statements(), kind.value), catalogue.withdrawals)
    elif kind is ListKind.DOCUMENTS:
        selected = catalogue.sources(where, as_of)
        items = [
            {"id": row.id, "source": row.source, "title": row.title, "type": row.type}
            for row in catalogue.documents.get_rows()
            if row.id in selected
        ]
    elif kind is ListKind.PASSAGES:
        items = [
            {"id": passage.id, "title": passage.title, "text": passage.text}
            for passage in catalogue.passages(where, as_of)
        ]
    elif kind is ListKind.HYPEREDGES:
        items = [{"id": edge.id, "kind": edge.kind, "text": edge.text} for edge in catalogue.hyperedges(where, as_of)]
    else:
        items = [entity_item_json(entity) for entity in catalogue.entities(where, as_of)]
    keys = statements.search_keys if statements else _SEARCHED_KEYS[kind]
    return [item for item in items if any(like.casefold() in str(item[key]).casefold() for key in keys)]


def entity_item_json(entity: Entity) -> dict[str, object]:
    """Return an entity as a JSON object in a list of entities."""
    return {"key": entity.key, "name": entity.name, "type": entity.type, "score": entity.score}


def statistics_json(statistics: Statistics) -> StatisticsSchema:
    """Return the output of ``polyad stats --json`` for the statistics of an index."""
    ratios = {"mean_arity": round(statistics.mean_arity, 4), "density": round(statistics.density, 4)}
    return fill_schema(StatisticsSchema, statistics, **ratios)


def look_up(catalogue: Catalogue, kind: Kind, id: str, as_of: Time = None) -> dict[str, object]:
    """Return one object of an index by its id, with all details: the output of ``polyad show --json``.

    A document has its versions if the time ``as_of`` of their status is set.

    Raises:
        NotFoundError: The index has no object of this kind with this id.
    """
    match kind:
        case Kind.DOCUMENT:
            document = asdict(catalogue.document(id))
            versions = catalogue.versions(id, as_of) if as_of else {}
            items = [fill_schema(VersionItemSchema, version, id=unit) for unit, version in versions.items()]
            return {**document, "versions": items} if items else document
        case Kind.PASSAGE:
            passage = catalogue.passage(id)
            return dict(passage_json(passage, catalogue.origin(passage.document_id)))
        case Kind.HYPEREDGE:
            edge, incidences = catalogue.hyperedge(id)
            grounded = round(catalogue.grounded_share(edge), 3)
            arguments = [fill_schema(ArgumentSchema, argument) for argument in edge.arguments]
            rows = [asdict(incidence) for incidence in incidences]
            return {**asdict(edge), "arguments": arguments, "grounded": grounded, "incidences": rows}
        case Kind.ENTITY:
            return _entity_json(catalogue, id)


def _entity_json(catalogue: Catalogue, name: str) -> dict[str, object]:
    """Return the entity with this name or key, and the ids of the entity's hyperedges, as a JSON object."""
    try:
        entity, hyperedges = catalogue.entity(name)
    except NotFoundError:
        entity, hyperedges = catalogue.entity(build_name_key(name) or name)
    return {**asdict(entity), "hyperedges": hyperedges}


def conflict_json(conflict: Conflict) -> ConflictSchema:
    """Return a conflict, a group of facts that contradict each other, as a JSON object."""
    values = [
        {
            "value": value,
            "facts": [
                fill_schema(ConflictingFactSchema, fact, document_id=fact.passage_id.rpartition("#")[0])
                for fact in facts
            ],
        }
        for value, facts in conflict.values
    ]
    return fill_schema(ConflictSchema, conflict, values=values)


def hyperedge_json(catalogue: Catalogue, edge: Hyperedge) -> FactSchema:
    """Return a hyperedge as a JSON object with the names of its entities by role."""
    shape = binding_json(get_role_values(edge))
    if edge.kind is not HyperedgeKind.TUPLE:
        for incidence in catalogue.hyperedge(edge.id)[1]:
            if not edge.arguments or incidence.role == SUBJECT:
                shape["roles"].setdefault(incidence.role, []).append(incidence.name)
    return shape


def add_validity(catalogue: Catalogue, facts: Sequence[FactSchema]) -> None:
    """Add the bounds of each fact's validity period to the fact, under the keys ``valid_from`` and ``valid_to``."""
    intervals = catalogue.validity([fact["id"] for fact in facts])
    for fact in facts:
        valid_from, valid_to = map(format_time, intervals[fact["id"]])
        if valid_from:
            fact["valid_from"] = valid_from
        if valid_to:
            fact["valid_to"] = valid_to


def binding_json(binding: RoleBinding) -> FactSchema:
    """Return a fact that satisfies conditions on roles, such as ``sponsor=ACME``, as a JSON object."""
    roles = {role: list(names) for role, names in binding.roles.items()}
    return fill_schema(FactSchema, binding, id=binding.hyperedge_id, roles=roles)
