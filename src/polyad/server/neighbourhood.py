"""JSON of the part of the hypergraph around an entity."""

from __future__ import annotations

from typing_extensions import TypedDict

from polyad.engine.catalogue import Neighbourhood


class NeighbourShape(TypedDict):
    """An entity; ``degree`` is the number of hyperedges that contain it."""

    key: str
    name: str
    type: str
    degree: int


class NeighbourHyperedgeShape(TypedDict):
    """A hyperedge with the keys of its entities."""

    id: str
    kind: str
    text: str
    passage_id: str
    relation: str
    entities: list[str]


class NeighbourhoodShape(TypedDict):
    """The hyperedges of an entity with their entities, itself first; ``total`` counts all of its hyperedges."""

    entities: list[NeighbourShape]
    hyperedges: list[NeighbourHyperedgeShape]
    total: int


def neighbourhood_json(neighbourhood: Neighbourhood) -> NeighbourhoodShape:
    """Return the part of the hypergraph around an entity as JSON."""
    return {
        "entities": [
            {"key": each.key, "name": each.name, "type": each.type, "degree": degree}
            for each, degree in neighbourhood.entities
        ],
        "hyperedges": [
            {
                "id": edge.id,
                "kind": edge.kind.value,
                "text": edge.text,
                "passage_id": edge.passage_id,
                "relation": edge.relation,
                "entities": list(keys),
            }
            for edge, keys in neighbourhood.hyperedges
        ],
        "total": neighbourhood.total,
    }
