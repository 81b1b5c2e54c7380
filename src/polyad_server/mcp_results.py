"""The results of the MCP tools, as the JSON objects that an agent receives."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


class PassageResult(TypedDict):
    """A passage in the result of the tool ``search``."""

    id: str
    title: str
    url: str


class SearchResults(TypedDict):
    """The result of the MCP tool ``search``: passages."""

    results: list[PassageResult]


class FetchedPassage(TypedDict):
    """The result of the MCP tool ``fetch``: the text of a passage or document."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


class EvidencePassage(TypedDict):
    """A passage with the sentences that answer the question best, and the facts that led to it.

    ``version`` says whether the document is in force or superseded, if the index has other versions of it.
    """

    id: str
    document_id: str
    place: str
    url: str
    excerpt: str
    relevance: float | None
    facts: list[str]
    retracted: list[str]
    version: str
    link: str


class EvidenceResults(TypedDict):
    """The result of the MCP tool ``find_evidence``; ``next_cursor`` is empty at the end.

    ``trace`` has one line for each name that leads from one passage to another, and ``note`` the words that were
    searched for misspelt words.
    """

    evidence: list[EvidencePassage]
    trace: list[str]
    note: str
    next_cursor: str


class MatchingLine(TypedDict):
    """A line in the result of the tool ``find_text``, with the id of its passage, and the lines around it."""

    id: str
    document_id: str
    place: str
    line: int
    text: str
    before: list[str]
    after: list[str]


class TextResults(TypedDict):
    """The result of the MCP tool ``find_text``; ``next_cursor`` is empty at the end.

    ``documents`` has the number of matching lines by document, of the documents with most; ``total`` counts all lines.
    """

    matches: list[MatchingLine]
    total: int
    documents: dict[str, int]
    note: str
    next_cursor: str


class OutlineSection(TypedDict):
    """A heading of a document, with the id of its first passage and the number of its passages."""

    heading: str
    id: str
    page: int | None
    passages: int


class OutlineResult(TypedDict):
    """The result of the MCP tool ``outline``; ``next_cursor`` is empty at the end."""

    title: str
    sections: list[OutlineSection]
    next_cursor: str


class AnswerSource(TypedDict):
    """The passage that a mark ``[number]`` in an answer cites."""

    number: int
    id: str
    title: str
    url: str


class AnswerResult(TypedDict):
    """The result of the MCP tool ``ask``: an answer with its sources."""

    answer: str
    citations: list[AnswerSource]
    note: str


class EntityFact(TypedDict):
    """A fact that contains an entity, with the passage that states the fact."""

    text: str
    passage_id: str
    entities: list[str]


class EntityResult(TypedDict):
    """The result of the MCP tool ``describe_entity``; ``next_cursor`` is empty at the end."""

    name: str
    type: str
    description: str
    fact_count: int
    facts: list[EntityFact]
    next_cursor: str


class ListedDocument(TypedDict):
    """A document in the result of the tool ``list_documents``, with the metadata that filters can use."""

    id: str
    title: str
    metadata: dict[str, Any]


class DocumentsResult(TypedDict):
    """The result of the MCP tool ``list_documents``; ``next_cursor`` is empty at the end."""

    documents: list[ListedDocument]
    total: int
    next_cursor: str


class IndexResult(TypedDict):
    """The result of the MCP tool ``index``: numbers of documents."""

    added: int
    updated: int
    unchanged: int


class RetractionResult(TypedDict):
    """The result of the MCP tool ``retract``: the texts of the retracted facts."""

    withdrawn: list[str]
