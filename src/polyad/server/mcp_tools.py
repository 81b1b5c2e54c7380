"""The tools that agents call over MCP: their arguments, results and limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from typing_extensions import TypedDict

from polyad.engine import Engine
from polyad.model import Evidence, MetadataValue, ScoredPassage
from polyad.schemas.catalogue import ListKind, list_items
from polyad.schemas.places import describe_hit, describe_location, get_excerpt
from polyad.server.links import build_passage_url

MAX_CHARACTERS = 24_000
"""Characters of the JSON of one result; clients cut longer ones at 25,000."""

_MAX_FACTS = 60
_MAX_FACT_CHARACTERS = 300
_OFFSET = "@offset="

Item = TypeVar("Item")
Search = Callable[..., Evidence]
"""Searches: takes the question, and ``k``, ``where`` and ``as_of``."""


class ToolInputError(ValueError):
    """An argument of a tool that the agent can correct."""


class FoundPassage(TypedDict):
    """A passage that a search returned."""

    id: str
    title: str
    url: str


class SearchResults(TypedDict):
    """Result of the tool ``search``."""

    results: list[FoundPassage]


class FetchedPassage(TypedDict):
    """Result of the tool ``fetch``."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


class FoundEvidence(TypedDict):
    """A passage with the sentences that answer the question best, and the facts that led to it."""

    id: str
    document_id: str
    place: str
    url: str
    excerpt: str
    relevance: float | None
    facts: list[str]
    retracted: list[str]


class EvidenceResults(TypedDict):
    """Result of the tool ``find_evidence``; ``next_cursor`` is empty at the end."""

    evidence: list[FoundEvidence]
    next_cursor: str


class AnswerSource(TypedDict):
    """The source of a mark ``[number]`` in an answer."""

    number: int
    id: str
    title: str
    url: str


class AnswerResult(TypedDict):
    """Result of the tool ``ask``."""

    answer: str
    citations: list[AnswerSource]
    note: str


class EntityFact(TypedDict):
    """A fact of an entity, with its passage."""

    text: str
    passage_id: str
    entities: list[str]


class EntityResult(TypedDict):
    """Result of the tool ``describe_entity``."""

    name: str
    type: str
    description: str
    fact_count: int
    facts: list[EntityFact]


class DocumentsResult(TypedDict):
    """Result of the tool ``list_documents``; ``next_cursor`` is empty at the end."""

    documents: list[str]
    total: int
    next_cursor: str


class IndexResult(TypedDict):
    """Result of the tool ``index``."""

    added: int
    updated: int
    failures: list[str]


class RetractionResult(TypedDict):
    """Result of the tool ``retract``: the texts of the withdrawn facts."""

    withdrawn: list[str]


@dataclass(frozen=True, slots=True)
class ToolTarget:
    """The index that a call of a tool uses.

    Attributes:
        engine: The index.
        workspace: Name of the workspace.
        search: Searches it, within the limits of the server.
        base_url: Address of the web page, for links; empty without a page.
    """

    engine: Engine
    workspace: str
    search: Search
    base_url: str

    def get_url(self, passage_id: str) -> str:
        """Return the address of a passage; without a page, that of its document or ``polyad:ID``."""
        if self.base_url:
            return build_passage_url(self.base_url, self.workspace, passage_id)
        return f"polyad:{passage_id}"


def search(target: ToolTarget, query: str) -> SearchResults:
    """Return the passages for a query; the contract of chat clients for ``search``."""
    hits = target.search(query, k=10).passages
    return {
        "results": [
            {"id": hit.passage.id, "title": describe_hit(hit), "url": target.get_url(hit.passage.id)} for hit in hits
        ]
    }


def fetch(target: ToolTarget, id: str) -> FetchedPassage:
    """Return a passage in full; the contract of chat clients for ``fetch``.

    The text of a longer passage continues under the id in ``metadata["next_id"]``.

    Raises:
        NotFoundError: There is no such passage.
    """
    passage_id, offset = _split_offset(id)
    passage = target.engine.catalogue.passage(passage_id)
    origin = target.engine.catalogue.origin(passage.document_id)
    end = offset + MAX_CHARACTERS * 3 // 4
    metadata: dict[str, Any] = {
        "document_id": passage.document_id,
        "page": passage.page,
        "heading": passage.location.heading,
        "source": origin.source,
        **_shorten_metadata(origin.metadata),
    }
    if end < len(passage.text):
        metadata["next_id"] = f"{passage_id}{_OFFSET}{end}"
    return {
        "id": id,
        "title": describe_location(origin.title or passage.title or passage.document_id, passage.location, origin),
        "text": passage.text[offset:end],
        "url": target.get_url(passage_id),
        "metadata": metadata,
    }


def find_evidence(target: ToolTarget, question: str, k: int, where: str, as_of: str, cursor: str) -> EvidenceResults:
    """Return the best sentences for a question with their places and facts, a part at a time."""
    evidence = target.search(question, k=k, where=where or None, as_of=as_of or None)
    items = [_describe_hit(target, evidence, hit) for hit in evidence.passages]
    part, next_cursor = _take_part(items, cursor)
    return {"evidence": part, "next_cursor": next_cursor}


def _describe_hit(target: ToolTarget, evidence: Evidence, hit: ScoredPassage) -> FoundEvidence:
    facts = [edge.hyperedge.text for edge in evidence.hyperedges if edge.hyperedge.passage_id == hit.passage.id]
    return {
        "id": hit.passage.id,
        "document_id": hit.passage.document_id,
        "place": describe_hit(hit),
        "url": target.get_url(hit.passage.id),
        "excerpt": get_excerpt(hit)[: MAX_CHARACTERS // 4],
        "relevance": None if hit.relevance is None else round(hit.relevance, 2),
        "facts": [fact[:_MAX_FACT_CHARACTERS] for fact in facts[:5]],
        "retracted": [f"{fact.text} (retracted: {fact.reason})"[:_MAX_FACT_CHARACTERS] for fact in hit.retracted],
    }


def ask(target: ToolTarget, question: str) -> AnswerResult:
    """Return an answer of the language model with its sources.

    Raises:
        ToolInputError: No language model is set.
        LanguageModelError: The language model failed.
    """
    if target.engine.components.language_model is None:
        raise ToolInputError("no language model is set for this index; call find_evidence, and answer from it yourself")
    answer = target.engine.answer(target.search(question, min_relevance="auto"))
    sources = {each.number: each for each in answer.citations}
    return {
        "answer": answer.text[:MAX_CHARACTERS],
        "citations": [
            {
                "number": number,
                "id": each.passage_id,
                "title": each.title or each.document_id,
                "url": target.get_url(each.passage_id),
            }
            for number, each in sorted(sources.items())
        ],
        "note": answer.note,
    }


def describe_entity(target: ToolTarget, name: str) -> EntityResult:
    """Return what the index states about an entity.

    Raises:
        NotFoundError: There is no such entity.
    """
    around = target.engine.catalogue.neighbourhood(name, _MAX_FACTS)
    entity, _ = around.entities[0]
    names = {each.key: each.name for each, _ in around.entities}
    facts: list[EntityFact] = [
        {
            "text": edge.text[:_MAX_FACT_CHARACTERS],
            "passage_id": edge.passage_id,
            "entities": [names[key] for key in keys if key != entity.key][:10],
        }
        for edge, keys in around.hyperedges
    ]
    return {
        "name": entity.name,
        "type": entity.type,
        "description": entity.description[:2000],
        "fact_count": around.total,
        "facts": _take_part(facts, "", MAX_CHARACTERS - 4000)[0],
    }


def list_documents(target: ToolTarget, like: str, where: str, cursor: str) -> DocumentsResult:
    """Return the ids of documents, a part at a time."""
    items = list_items(target.engine.catalogue, ListKind.DOCUMENTS, like, where or None)
    ids = [str(item["id"]) for item in items]
    part, next_cursor = _take_part(ids, cursor)
    return {"documents": part, "total": len(ids), "next_cursor": next_cursor}


def _take_part(items: Sequence[Item], cursor: str, limit: int = MAX_CHARACTERS - 1000) -> tuple[list[Item], str]:
    """Return the items from a cursor on that fit into a result, and the cursor of the next one; empty at the end.

    Raises:
        ToolInputError: The cursor is not one of an earlier result.
    """
    if cursor and not (cursor.isascii() and cursor.isdigit() and int(cursor[:9]) <= len(items)):
        raise ToolInputError(f"the cursor is {cursor[:50]!r}; expected next_cursor of the result before")
    start = int(cursor or 0)
    part: list[Item] = []
    size = 0
    for item in items[start:]:
        size += len(json.dumps(item, indent=2)) + 8
        if part and size > limit:
            return part, str(start + len(part))
        part.append(item)
    return part, ""


def _split_offset(id: str) -> tuple[str, int]:
    passage_id, mark, offset = id.rpartition(_OFFSET)
    return (passage_id, int(offset[:9])) if mark and offset.isascii() and offset.isdigit() else (id, 0)


def _shorten_metadata(metadata: Mapping[str, MetadataValue]) -> dict[str, Any]:
    return {key: value[:200] if isinstance(value, str) else value for key, value in list(metadata.items())[:20]}
