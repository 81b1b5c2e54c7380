"""What an index holds, and what can be chosen, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum

from typing_extensions import TypedDict

from polyad.engine.catalogue import Catalogue
from polyad.engine.tables import Plugin
from polyad.errors import NotFoundError
from polyad.model import Hyperedge, MetadataValue, Statistics
from polyad.retrieval.roles import RoleBinding, get_role_values
from polyad.schemas.evidence import ArgumentShape, argument_json, passage_json
from polyad.text.keys import build_name_key


class StatisticsShape(TypedDict):
    """What ``polyad stats --json`` prints; ``cost`` in US dollars."""

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
    settings: dict[str, str]


class PluginShape(TypedDict):
    """A row that another package adds; ``sound`` unless it cannot be loaded."""

    table: str
    name: str
    package: str
    version: str
    sound: bool


class PluginsShape(TypedDict):
    """What ``polyad plugins --json`` prints."""

    plugins: list[PluginShape]


class SettingShape(TypedDict):
    """A setting: ``section`` is empty for the top level, ``origin`` a flag, a variable, a file or ``default``."""

    section: str
    key: str
    value: object
    origin: str


class SettingsShape(TypedDict):
    """What ``polyad config --json`` prints."""

    settings: list[SettingShape]


class FactShape(TypedDict):
    """A hyperedge with the names it joins, by role; of a fact that was given as data, with all it was given."""

    id: str
    text: str
    relation: str
    roles: dict[str, list[str]]
    arguments: list[ArgumentShape]


class FactsShape(TypedDict):
    """What ``polyad facts --json`` prints."""

    facts: list[FactShape]


class DocumentShape(TypedDict):
    """What ``polyad show document --json`` prints."""

    id: str
    title: str
    text: str
    source: str
    arguments: list[object]
    sections: list[object]
    url: str
    metadata: dict[str, MetadataValue]
    places: list[object]
    relation: str


class IncidenceShape(TypedDict):
    """An entity in a hyperedge."""

    entity_key: str
    hyperedge_id: str
    name: str
    role: str
    type: str
    description: str
    score: float
    grounded: bool
    strength: float


class HyperedgeShape(TypedDict):
    """What ``polyad show hyperedge --json`` prints."""

    id: str
    kind: str
    text: str
    passage_id: str
    start: int
    end: int
    score: float
    relation: str
    arguments: list[ArgumentShape]
    grounded: float
    incidences: list[IncidenceShape]


class EntityShape(TypedDict):
    """What ``polyad show entity --json`` prints, with a ``summary`` where one is asked for."""

    key: str
    name: str
    type: str
    description: str
    score: float
    hyperedges: list[str]


class Kind(StrEnum):
    """What ``polyad show`` can show."""

    DOCUMENT = "document"
    PASSAGE = "passage"
    ENTITY = "entity"
    HYPEREDGE = "hyperedge"


class Listed(StrEnum):
    """What ``polyad list`` can list."""

    DOCUMENTS = "documents"
    ENTITIES = "entities"
    HYPEREDGES = "hyperedges"


_LOOKED_AT = {Listed.DOCUMENTS: ["id"], Listed.ENTITIES: ["name"], Listed.HYPEREDGES: ["id", "text"]}


def listed(catalogue: Catalogue, kind: Listed, like: str) -> list[dict[str, object]]:
    """The documents, entities or hyperedges in which ``like`` occurs, whatever the case, in the order of their ids.

    It may occur in the id of a document, the name of an entity, the id or the text of a hyperedge.
    """
    if kind is Listed.DOCUMENTS:
        items: list[dict[str, object]] = [{"id": id, "source": source} for id, source in catalogue.sources().items()]
    elif kind is Listed.HYPEREDGES:
        items = [{"id": edge.id, "kind": edge.kind, "text": edge.text} for edge in catalogue.hyperedges()]
    else:
        items = [
            {"key": entity.key, "name": entity.name, "type": entity.type, "score": entity.score}
            for entity in catalogue.entities()
        ]
    return [item for item in items if any(like.casefold() in str(item[key]).casefold() for key in _LOOKED_AT[kind])]


def statistics_json(statistics: Statistics) -> StatisticsShape:
    """The shape that ``polyad stats --json`` prints."""
    return {
        "documents": statistics.documents,
        "passages": statistics.passages,
        "entities": statistics.entities,
        "hyperedges": statistics.hyperedges,
        "kinds": {kind.value: count for kind, count in statistics.kinds.items()},
        "incidences": statistics.incidences,
        "mean_arity": round(statistics.mean_arity, 4),
        "density": round(statistics.density, 4),
        "tokens": statistics.tokens,
        "cost": statistics.cost,
        "disk_bytes": statistics.disk_bytes,
        "settings": dict(statistics.settings),
    }


def plugin_json(plugin: Plugin, is_sound: bool) -> PluginShape:
    """A row that another package adds, and whether it can be loaded."""
    return {
        "table": plugin.table,
        "name": plugin.name,
        "package": plugin.package,
        "version": plugin.version,
        "sound": is_sound,
    }


def look_up(catalogue: Catalogue, kind: Kind, id: str) -> dict[str, object]:
    """One thing of the index, whole; the shape that ``polyad show --json`` prints.

    Raises:
        NotFoundError: there is nothing of that id.
    """
    match kind:
        case Kind.DOCUMENT:
            return asdict(catalogue.document(id))
        case Kind.PASSAGE:
            passage = catalogue.passage(id)
            return dict(passage_json(passage, catalogue.origin(passage.document_id)))
        case Kind.HYPEREDGE:
            edge, incidences = catalogue.hyperedge(id)
            grounded = round(catalogue.grounded(edge), 3)
            given = [argument_json(argument) for argument in edge.arguments]
            parts = [asdict(part) for part in incidences]
            return {**asdict(edge), "arguments": given, "grounded": grounded, "incidences": parts}
        case Kind.ENTITY:
            return _entity_json(catalogue, id)


def _entity_json(catalogue: Catalogue, name: str) -> dict[str, object]:
    """An entity by its key, or by its name as it is written."""
    try:
        entity, hyperedges = catalogue.entity(name)
    except NotFoundError:
        entity, hyperedges = catalogue.entity(build_name_key(name) or name)
    return {**asdict(entity), "hyperedges": hyperedges}


def hyperedge_json(catalogue: Catalogue, edge: Hyperedge) -> FactShape:
    """A hyperedge with the names it joins, by role; of a fact that was given as data, with all it was given."""
    if edge.arguments:
        return binding_json(get_role_values(edge))
    roles: dict[str, list[str]] = {}
    for incidence in catalogue.hyperedge(edge.id)[1]:
        roles.setdefault(incidence.role, []).append(incidence.name)
    return {"id": edge.id, "text": edge.text, "relation": "", "roles": roles, "arguments": []}


def binding_json(binding: RoleBinding) -> FactShape:
    """A fact that matches a question for roles, with what is in its roles."""
    return {
        "id": binding.hyperedge_id,
        "text": binding.text,
        "relation": binding.relation,
        "roles": {role: list(names) for role, names in binding.roles.items()},
        "arguments": [argument_json(argument) for argument in binding.arguments],
    }
