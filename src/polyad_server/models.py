"""Bodies of requests of the native API."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from polyad.retrieval.options import MinRelevance, list_options
from polyad.text.filters import Where
from polyad.text.validity import Time

Name = Annotated[str, Field(max_length=500)]
Text = Annotated[str, Field(max_length=1_000_000_000)]
"""A text of any length that a body may have; only for a text with a limit does pydantic reject a lone surrogate."""

Filter = Annotated[
    Text | dict[str, Any] | None,
    Field(description='Filter of documents, as text such as `year >= 2020 and author = "Ada"` or as its JSON tree.'),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


_B = TypeVar("_B", bound=_Body)


_REQUEST_TYPES: dict[Any, Any] = {
    Where: Filter,
    Time: Annotated[str | None, Field(max_length=40)],
    int | None: Annotated[int | None, Field(ge=1)],
    MinRelevance: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] | None,
}
"""Types of the options of a search in JSON, by their types in Python."""


def _add_search_options(body: type[_B]) -> type[_B]:
    """Add the options of :class:`polyad.retrieval.options.SearchOptions` to the fields of a request body."""
    options: dict[str, Any] = {}
    for name, option in list_options().items():
        help = option.help.replace("--", "")
        details = Field(default=None, le=option.request_maximum, description=help)
        options[name] = (_REQUEST_TYPES[option.type], details)
    return create_model(body.__name__, __base__=body, __module__=__name__, __doc__=body.__doc__, **options)


@_add_search_options
class SearchBody(_Body):
    """The request body of a search: a question with the options of `polyad search`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"question": "Who cast the bell of Tarn?", "k": 3}]}
    )
    question: Text
    retriever: Annotated[str, Field(max_length=100, description="Empty for the server's default.")] = ""
    explain: Annotated[bool, Field(description="Whether to add the trace, hyperedges and entities.")] = False

    def get_options(self) -> dict[str, Any]:
        """Return the options that the request sets, as arguments of :meth:`polyad_server.state.ServerState.search`."""
        return self.model_dump(include={"retriever", *list_options()}, exclude_none=True)


class Turn(_Body):
    """One earlier message of a conversation, with its role (user or assistant)."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(max_length=100_000)]


class AskBody(SearchBody):
    """The request body of an answer: a question with the options of `polyad ask`, and earlier messages."""

    history: Annotated[list[Turn], Field(max_length=100)] = []
    stream: Annotated[bool, Field(description="Whether to send events: evidence, text, citations, done or error.")] = (
        False
    )
    model: Annotated[str, Field(max_length=200, description="One of the `models` of `/stats`.")] = ""
    regenerate: Annotated[bool, Field(description="Whether to replace a stored answer by a new one.")] = False


class SourceBody(_Body):
    """A source of a saved answer: its number, where it stands, and the sentence that it was cited for."""

    number: Annotated[int, Field(ge=1, le=10_000)]
    passage_id: Annotated[str, Field(max_length=1000)]
    title: Annotated[str, Field(max_length=1000)]
    place: Annotated[str, Field(max_length=1000, description="Page and heading.")] = ""
    text: Annotated[str, Field(max_length=2000)] = ""
    start: Annotated[int, Field(ge=0, description="Start of the sentence in the document.")] = 0
    end: Annotated[int, Field(ge=0)] = 0


class SavedTurnBody(_Body):
    """A question of a saved conversation, with its answer (Markdown, or empty without a model) and sources."""

    question: Annotated[str, Field(min_length=1, max_length=20_000)]
    answer: Annotated[str, Field(max_length=200_000)] = ""
    sources: Annotated[list[SourceBody], Field(max_length=200)] = []


class ConversationOptions(_Body):
    """The options of the searches of a saved conversation, as in the address of the page."""

    retriever: Annotated[str, Field(max_length=100)] = ""
    where: Annotated[str, Field(max_length=10_000)] = ""
    as_of: Annotated[str, Field(max_length=40)] = ""


ConversationTitle = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
SavedTurns = Annotated[list[SavedTurnBody], Field(min_length=1, max_length=200)]


class ConversationBody(_Body):
    """The request body that saves a conversation with the index."""

    title: ConversationTitle
    turns: SavedTurns
    options: ConversationOptions = ConversationOptions()


class ConversationChangeBody(_Body):
    """The request body that renames a saved conversation or replaces its turns."""

    title: ConversationTitle | None = None
    turns: SavedTurns | None = None


class WorkspaceBody(_Body):
    """The request body that creates a workspace: its name."""

    name: Name


class DocumentBody(_Body):
    """A document to index: its text with id, title and metadata."""

    id: Annotated[str, Field(min_length=1, max_length=500)]
    text: Text
    title: Name = ""
    url: Annotated[str, Field(max_length=2000)] = ""
    metadata: dict[str, str | int | float | bool | list[str]] = {}


class DocumentsBody(_Body):
    """The request body for indexing documents: a list of texts with ids and metadata."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"documents": [{"id": "bell", "text": "Ines Moreau cast the bell of Tarn.", "title": "Bell"}]}]
        },
    )
    documents: Annotated[list[DocumentBody], Field(min_length=1, max_length=10_000)]
    method: Annotated[str, Field(max_length=100)] = ""


class DocumentIdsBody(_Body):
    """The request body that removes documents or indexes them again: their ids."""

    ids: Annotated[list[Name], Field(min_length=1, max_length=10_000)]


class AddressesBody(_Body):
    """The request body that adds web pages: their addresses."""

    urls: Annotated[list[Annotated[str, Field(min_length=1, max_length=2000)]], Field(min_length=1, max_length=20)]


class IdsBody(DocumentIdsBody):
    """The request body that disables or enables documents: their ids, with a reason."""

    reason: Name = ""


class HyperedgesBody(_Body):
    """The request body that lists the named entities of hyperedges: the ids of the hyperedges."""

    hyperedges: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=500)]


class JobBody(_Body):
    """The request body for cancelling a job: the job's id."""

    id: Name


class SelectorBody(_Body):
    """The request body that selects facts: one fact, all facts of an entity, or all facts of filtered documents."""

    hyperedge: Name = ""
    entity: Name = ""
    role: Name = ""
    where: Filter = None
    dry_run: bool = False


class RetractionBody(SelectorBody):
    """The request body that retracts facts: the selected facts, and the reason."""

    reason: Annotated[str, Field(min_length=1, max_length=2000)]


class AliasBody(_Body):
    """The request body that adds an alias: another name, and the name of the entity that it denotes."""

    name: Annotated[str, Field(min_length=1, max_length=500)]
    entity: Annotated[str, Field(min_length=1, max_length=500)]
