"""Bodies of requests of the native API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(max_length=500)]
Filter = Annotated[
    str | dict[str, Any] | None,
    Field(description='Filter of documents, as text such as `year >= 2020 and author = "Ada"` or as its JSON tree.'),
]
Moment = Annotated[str | None, Field(max_length=40, description="Time in ISO 8601, such as 2024-05-17 or 2024.")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SearchBody(_Body):
    """A question with the options of `polyad search`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"question": "Who cast the bell of Tarn?", "k": 3}]}
    )
    question: str
    k: Annotated[int | None, Field(ge=1, description="Maximum number of hits.")] = None
    max_words: Annotated[int | None, Field(ge=1, le=1_000_000, description="Maximum words of all hits.")] = None
    retriever: Annotated[str, Field(max_length=100, description="Empty for the server's default.")] = ""
    min_relevance: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] | None = None
    where: Filter = None
    prefer: Filter = None
    as_of: Moment = None
    known_at: Moment = None
    explain: Annotated[bool, Field(description="Whether to add the trace, hyperedges and entities.")] = False


class Turn(_Body):
    """A message of a conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(max_length=100_000)]


class AskBody(SearchBody):
    """A question with the options of `polyad ask`, and the conversation before it."""

    history: Annotated[list[Turn], Field(max_length=100)] = []
    stream: Annotated[bool, Field(description="Whether to send events: text, citations, done or error.")] = False


class WorkspaceBody(_Body):
    """The name of a new workspace."""

    name: Name


class DocumentBody(_Body):
    """A document as text."""

    id: Annotated[str, Field(min_length=1, max_length=500)]
    text: str
    title: Name = ""
    url: Annotated[str, Field(max_length=2000)] = ""
    metadata: dict[str, str | int | float | bool | list[str]] = {}


class DocumentsBody(_Body):
    """Documents to index."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"documents": [{"id": "bell", "text": "Ines Moreau cast the bell of Tarn.", "title": "Bell"}]}]
        },
    )
    documents: Annotated[list[DocumentBody], Field(min_length=1, max_length=10_000)]
    method: Annotated[str, Field(max_length=100)] = ""


class IdsBody(_Body):
    """Ids of documents, with a reason."""

    ids: Annotated[list[Name], Field(min_length=1, max_length=10_000)]
    reason: Name = ""


class JobBody(_Body):
    """The id of a job."""

    id: Name


class SelectorBody(_Body):
    """A fact, an entity of one fact or of all facts, or all facts of the documents that a filter selects."""

    hyperedge: Name = ""
    entity: Name = ""
    role: Name = ""
    where: Filter = None
    dry_run: bool = False


class RetractionBody(SelectorBody):
    """What to retract, and why."""

    reason: Annotated[str, Field(min_length=1, max_length=2000)]


class AliasBody(_Body):
    """Another name, and the name of the entity that it stands for."""

    name: Annotated[str, Field(min_length=1, max_length=500)]
    entity: Annotated[str, Field(min_length=1, max_length=500)]
