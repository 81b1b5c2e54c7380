"""Results of the native API that no command prints: pages of lists, workspaces, jobs and parts of the hypergraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyad.engine.document_table import DocumentRow, Facet
from polyad.engine.graph_views import NamedEntity, PathStep
from polyad.model import MetadataValue
from polyad.schemas.catalogue import DocumentSchema, EntityItemSchema, PassageItemSchema, StatisticsSchema
from polyad.schemas.objects import JsonObject
from polyad.schemas.reports import WithdrawalSchema
from polyad_server.responses import PageSchema


class StatusSchema(JsonObject):
    """Whether the server works."""

    status: str


class WorkspaceSchema(JsonObject):
    """A workspace (index)."""

    name: str


class WorkspacesSchema(JsonObject):
    """The workspaces that a key may use, with its scope, the retrievers and the limits for adding documents."""

    workspaces: Sequence[WorkspaceSchema]
    scope: str
    retrievers: Sequence[str]
    allow_urls: bool
    max_body_mb: int


class ModelSchema(JsonObject):
    """A language model that a question may name; only an admin key sees its endpoint."""

    name: str
    model: str
    endpoint: str


class WorkspaceStatisticsSchema(StatisticsSchema):
    """The sizes of a workspace, its models, and the cost of building it."""

    name: str
    language_model: str
    models: Sequence[ModelSchema]


class DocumentsPageSchema(PageSchema):
    """Documents, and their numbers by the values of each facet."""

    documents: Sequence[DocumentRow]
    facets: Mapping[Facet, Mapping[str, int]]


class DocumentWithRowSchema(DocumentSchema):
    """A document with its text, and its row in the list of documents."""

    row: DocumentRow


class PassagesPageSchema(PageSchema):
    """Passages of a document, in the order of its text."""

    passages: Sequence[PassageItemSchema]


class LeftOutSchema(JsonObject):
    """What reading left out of a document: counts of the index, and texts of the file, by kind."""

    counts: Mapping[str, MetadataValue]
    texts: Mapping[str, Sequence[str]]


class JobSchema(JsonObject):
    """An indexing job; see :class:`polyad.protocols.jobs.Job`."""

    id: str
    files: Sequence[str]
    method: str
    created: str
    metadata: Mapping[str, MetadataValue]
    state: str
    started: str
    ended: str
    done: int
    total: int | None
    message: str
    report: Mapping[str, Any] | None
    number: int
    interruptions: int
    kind: str
    results: Sequence[Mapping[str, Any]]


class JobResultSchema(JsonObject):
    """A job that was added, cancelled or looked up."""

    job: JobSchema


class JobsPageSchema(PageSchema):
    """Jobs, newest first."""

    jobs: Sequence[JobSchema]


Selector = Mapping[str, str] | None
"""Body of the request that undoes a retraction; null if its fact is not in the index."""


class RetractionSchema(JsonObject):
    """A retraction by a user, and what undoes it.

    That are ``hyperedges`` (ids of the fact; any of them does), or else ``entity`` with ``role``, or ``where``. A fact
    that its document no longer states has no id.
    """

    id: str
    text: str
    entity: str
    role: str
    reason: str
    recorded: str
    hyperedges: Sequence[str]
    where: str


class AliasSchema(JsonObject):
    """A name that a user declared as a name of another entity, whose ``key`` is its id."""

    name: str
    entity: str
    key: str
    recorded: str


class RetractionItemSchema(RetractionSchema):
    """A retraction with the first facts that it withdrew, and what restores them."""

    facts: Sequence[WithdrawalSchema]
    fact_count: int
    selector: Selector


class RetractionsPageSchema(PageSchema):
    """Retractions, newest first."""

    retractions: Sequence[RetractionItemSchema]


class AliasesPageSchema(PageSchema):
    """Names that denote the same entity as another name."""

    aliases: Sequence[AliasSchema]


class PassageFactSchema(JsonObject):
    """A hyperedge of a passage, with the names of its entities."""

    id: str
    kind: str
    text: str
    relation: str
    entities: Sequence[str]


class RetractedFactSchema(WithdrawalSchema):
    """A fact of a passage that a user retracted."""

    selector: Selector


class PassageFactsSchema(JsonObject):
    """The hyperedges of a passage, and those that users retracted."""

    hyperedges: Sequence[PassageFactSchema]
    retracted: Sequence[RetractedFactSchema]


class EntitiesPageSchema(PageSchema):
    """Entities, sorted by key."""

    entities: Sequence[EntityItemSchema]


class NamesSchema(JsonObject):
    """The named entities of hyperedges, and the keys of those in each hyperedge."""

    entities: Sequence[NamedEntity]
    members: Mapping[str, Sequence[str]]


class PathSchema(JsonObject):
    """A shortest path between two entities."""

    steps: Sequence[PathStep]


class NeighbourSchema(JsonObject):
    """An entity; ``degree`` is the number of hyperedges that contain the entity."""

    key: str
    name: str
    type: str
    degree: int


class NeighbourHyperedgeSchema(PassageFactSchema):
    """A hyperedge, with the keys of its entities."""

    passage_id: str


class NeighbourhoodSchema(JsonObject):
    """An entity's hyperedges with all their entities; ``total`` counts all hyperedges of the entity."""

    entities: Sequence[NeighbourSchema]
    hyperedges: Sequence[NeighbourHyperedgeSchema]
    total: int


class ConversationSchema(JsonObject):
    """A saved conversation, with its turns if it was looked up."""

    id: str
    title: str
    owner: str
    questions: int
    created: str
    updated: str
    options: Mapping[str, str]
    turns: Sequence[Mapping[str, Any]] | None = None


class ConversationsPageSchema(PageSchema):
    """Saved conversations, the last changed first."""

    conversations: Sequence[ConversationSchema]


class DeletionSchema(JsonObject):
    """The id of a deleted conversation."""

    deleted: str


class SuggestionsSchema(JsonObject):
    """Questions that the documents answer."""

    questions: Sequence[str]
