"""JSON of the contents of an index, and of plug-ins and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from polyad.curation.statements import STATEMENT_KINDS
from polyad.engine.catalogue import Catalogue
from polyad.errors import NotFoundError
from polyad.model import (
    SUBJECT,
    Argument,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    Location,
    MetadataValue,
    Section,
    Statistics,
    VersionStatus,
)
from polyad.retrieval.roles import RoleBinding, get_role_values
from polyad.schemas.evidence import (
    ArgumentSchema,
    PassageSchema,
    ScoredEntitySchema,
    argument_json,
    passage_json,
)
from polyad.schemas.objects import JsonObject
from polyad.text.conflicts import Conflict
from polyad.text.filters import Where
from polyad.text.json_types import format_value
from polyad.text.keys import build_name_key
from polyad.text.validity import Time, format_time
from polyad.text.versions import VersionConflict


class StatisticsSchema(JsonObject):
    """Output of ``polyad stats --json``: sizes of an index, its components, and its cost in US dollars."""

    documents: int
    passages: int
    entities: int
    hyperedges: int
    kinds: Mapping[str, int]
    incidences: int
    mean_arity: float
    density: float
    tokens: int
    cost: float
    disk_bytes: int
    files: Mapping[str, int]
    settings: Mapping[str, str]


class PluginSchema(JsonObject):
    """A component that another package adds to polyad; ``sound`` is false if it cannot be imported."""

    table: str
    name: str
    package: str
    version: str
    sound: bool


class PluginsSchema(JsonObject):
    """Output of ``polyad plugins --json``: the components that other packages add to polyad."""

    plugins: Sequence[PluginSchema]


class SettingSchema(JsonObject):
    """The value of a setting and its origin: a flag, an environment variable, a file or ``default``.

    ``section`` is empty for settings of the top level.
    """

    section: str
    key: str
    value: object
    origin: str


class SettingsSchema(JsonObject):
    """Output of ``polyad config --json``: the value and the origin of each setting."""

    settings: Sequence[SettingSchema]


class FactSchema(JsonObject):
    """A hyperedge (a text that joins entities) as JSON, with the names of its entities by role.

    Only a fact with a relation, or a tuple, has ``arguments``. The fact and its document hold from ``valid_from`` until
    ``valid_to``; a missing bound is unbounded.
    """

    id: str
    text: str
    relation: str
    roles: Mapping[str, Sequence[str]]
    arguments: Sequence[ArgumentSchema]
    valid_from: str | None = None
    valid_to: str | None = None


class FactsSchema(JsonObject):
    """Output of ``polyad facts --json``: the hyperedges that match a query."""

    facts: Sequence[FactSchema]


class ConflictingFactSchema(JsonObject):
    """A fact that contradicts another fact, with its document and validity period; empty bounds are unbounded."""

    id: str
    document_id: str
    text: str
    valid_from: str
    valid_to: str


class ConflictingValueSchema(JsonObject):
    """One of several contradicting values of a role, with the facts that state this value."""

    value: str
    facts: Sequence[ConflictingFactSchema]


class ConflictSchema(JsonObject):
    """Facts that state different values for the same subject and role, such as two capitals of a country."""

    relation: str
    subject: str
    role: str
    values: Sequence[ConflictingValueSchema]


class ConflictsSchema(JsonObject):
    """Output of ``polyad conflicts --json``: groups of facts that contradict each other, and versions that do."""

    conflicts: Sequence[ConflictSchema]
    versions: Sequence[VersionConflict]


class VersionItemSchema(JsonObject):
    """The status of a document among its versions, with the id of the document, or its file."""

    status: VersionStatus
    family: str
    number: str
    valid_from: str
    superseded_by: str
    id: str


class DocumentSchema(JsonObject):
    """Output of ``polyad show document --json``: a document with its text and metadata.

    The key ``removed`` is present with ``--show-removed``: what the text leaves out, by kind. ``versions`` is present
    if the index has other versions of the document: each with its status, the oldest first.
    """

    id: str
    title: str
    text: str
    source: str
    arguments: Sequence[Argument]
    sections: Sequence[Section]
    url: str
    metadata: Mapping[str, MetadataValue]
    places: Sequence[Location]
    relation: str
    removed: Mapping[str, Sequence[str]] | None = None
    versions: Sequence[VersionItemSchema] | None = None


class PassageItemSchema(JsonObject):
    """A passage in the list of a document's passages; ``page`` and ``slide`` are null where there are none."""

    id: str
    text: str
    start: int
    end: int
    page: int | None
    heading: str
    sheet: str
    slide: int | None


class HyperedgeSchema(JsonObject):
    """Output of ``polyad show hyperedge --json``: a text that joins entities, with these entities."""

    id: str
    kind: str
    text: str
    passage_id: str
    start: int
    end: int
    score: float
    relation: str
    arguments: Sequence[ArgumentSchema]
    valid_from: str
    valid_to: str
    grounded: float
    incidences: Sequence[Incidence]


class EntitySchema(ScoredEntitySchema):
    """Output of ``polyad show entity --json``: an entity with the ids of its hyperedges.

    The key ``summary`` is present if a summary was requested.
    """

    hyperedges: Sequence[str]
    summary: str | None = None


class EntityItemSchema(JsonObject):
    """An entity in a list of entities."""

    key: str
    name: str
    type: str
    score: float


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
) -> list[dict[str, Any]]:
    """Return the objects of one kind, such as documents, that contain the text ``like``, ignoring case, as JSON.

    The text may be in the id of a document, the name of an entity, or the id or text of a passage or hyperedge.
    """
    items: Sequence[object]
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
        items = list(map(EntityItemSchema.from_object, catalogue.entities(where, as_of)))
    keys = statements.search_keys if statements else _SEARCHED_KEYS[kind]
    return [
        item for item in map(format_value, items) if any(like.casefold() in str(item[key]).casefold() for key in keys)
    ]


def statistics_json(statistics: Statistics) -> StatisticsSchema:
    """Return the output of ``polyad stats --json`` for the statistics of an index."""
    return StatisticsSchema.from_object(
        statistics,
        kinds={kind.value: count for kind, count in statistics.kinds.items()},
        mean_arity=round(statistics.mean_arity, 4),
        density=round(statistics.density, 4),
    )


def look_up(catalogue: Catalogue, kind: Kind, id: str, as_of: Time = None) -> JsonObject:
    """Return one object of an index by its id, with all details: the output of ``polyad show --json``.

    A document has its versions if the time ``as_of`` of their status is set.

    Raises:
        NotFoundError: The index has no object of this kind with this id.
    """
    match kind:
        case Kind.DOCUMENT:
            return look_up_document(catalogue, id, as_of)
        case Kind.PASSAGE:
            return look_up_passage(catalogue, id)
        case Kind.HYPEREDGE:
            return look_up_hyperedge(catalogue, id)
        case Kind.ENTITY:
            return look_up_entity(catalogue, id)


def look_up_document(catalogue: Catalogue, id: str, as_of: Time = None) -> DocumentSchema:
    """Return a document with its text; see :func:`look_up`."""
    document = catalogue.document(id)
    versions = [
        VersionItemSchema.from_object(version, id=unit)
        for unit, version in (catalogue.versions(id, as_of) if as_of else {}).items()
    ]
    return DocumentSchema.from_object(document, versions=versions or None)


def look_up_passage(catalogue: Catalogue, id: str) -> PassageSchema:
    """Return a passage with its location; see :func:`look_up`."""
    passage = catalogue.passage(id)
    return passage_json(passage, catalogue.origin(passage.document_id))


def look_up_hyperedge(catalogue: Catalogue, id: str) -> HyperedgeSchema:
    """Return a hyperedge with its entities; see :func:`look_up`."""
    edge, incidences = catalogue.hyperedge(id)
    return HyperedgeSchema.from_object(
        edge,
        arguments=list(map(argument_json, edge.arguments)),
        grounded=round(catalogue.grounded_share(edge), 3),
        incidences=incidences,
    )


def look_up_entity(catalogue: Catalogue, name: str) -> EntitySchema:
    """Return the entity with this name or key, and the ids of the entity's hyperedges; see :func:`look_up`."""
    try:
        entity, hyperedges = catalogue.entity(name)
    except NotFoundError:
        entity, hyperedges = catalogue.entity(build_name_key(name) or name)
    return EntitySchema.from_object(entity, hyperedges=hyperedges)


def conflict_json(conflict: Conflict) -> ConflictSchema:
    """Return a conflict, a group of facts that contradict each other, as a JSON object."""
    return ConflictSchema.from_object(
        conflict,
        values=[
            ConflictingValueSchema(
                value=value,
                facts=[
                    ConflictingFactSchema.from_object(fact, document_id=fact.passage_id.rpartition("#")[0])
                    for fact in facts
                ],
            )
            for value, facts in conflict.values
        ],
    )


def bind_names(catalogue: Catalogue, edge: Hyperedge) -> RoleBinding:
    """Return a hyperedge with the names of its entities by role."""
    binding = get_role_values(edge)
    if edge.kind is HyperedgeKind.TUPLE:
        return binding
    roles = dict(binding.roles)
    for incidence in catalogue.hyperedge(edge.id)[1]:
        if not edge.arguments or incidence.role == SUBJECT:
            roles[incidence.role] = (*roles.get(incidence.role, ()), incidence.name)
    return replace(binding, roles=roles)


def facts_json(catalogue: Catalogue, bindings: Sequence[RoleBinding]) -> list[FactSchema]:
    """Return facts, such as those that satisfy ``sponsor=ACME``, with their validity periods as JSON objects."""
    intervals = catalogue.validity([binding.hyperedge_id for binding in bindings])
    return [
        FactSchema(
            id=binding.hyperedge_id,
            text=binding.text,
            relation=binding.relation,
            roles=binding.roles,
            arguments=list(map(argument_json, binding.arguments)),
            valid_from=format_time(intervals[binding.hyperedge_id].start) or None,
            valid_to=format_time(intervals[binding.hyperedge_id].end) or None,
        )
        for binding in bindings
    ]
