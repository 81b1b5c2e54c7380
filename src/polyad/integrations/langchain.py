"""A retriever for LangChain."""

from __future__ import annotations

from typing import Annotated, cast

from typing_extensions import Unpack

from polyad.engine import AsyncEngine, Engine
from polyad.engine.search import RetrieverLike
from polyad.errors import MissingExtraError
from polyad.integrations.hits import SearchArguments, build_metadata
from polyad.model import Evidence
from polyad.retrieval.assembly import MinRelevance
from polyad.text.filters import Where
from polyad.text.validity import Time

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, SkipValidation
except ModuleNotFoundError as error:
    raise MissingExtraError("langchain-core", "langchain") from error


class PolyadRetriever(BaseRetriever):
    """A LangChain retriever that searches a polyad index.

    The fields are the options of :meth:`polyad.engine.engine.Engine.search`. The methods ``invoke`` and ``ainvoke``
    take the same options for one search: ``retriever.invoke(question, k=3, where="year >= 2020")``.

    Example:
        >>> retriever = PolyadRetriever(engine=Engine.open("kb"), k=3)          # doctest: +SKIP
        >>> retriever.invoke("Who funded the trial?")[0].metadata["citation"]   # doctest: +SKIP
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")  # a misspelt filter must be an error

    # The engine validates the options; pydantic would copy filters and retrievers, or refuse them.
    engine: Annotated[Engine, SkipValidation]
    k: int | None = None
    max_words: int | None = None
    retriever: Annotated[RetrieverLike | None, SkipValidation] = None
    merge: bool = True
    min_relevance: MinRelevance = 0.0
    where: Annotated[Where, SkipValidation] = None
    prefer: Annotated[Where, SkipValidation] = None
    as_of: Time = None
    known_at: Time = None

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002  part of the interface
        **options: Unpack[SearchArguments],
    ) -> list[Document]:
        return _build_documents(self.engine.search(query, **self._merge_options(options)))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002  part of the interface
        **options: Unpack[SearchArguments],
    ) -> list[Document]:
        return _build_documents(await AsyncEngine(self.engine).search(query, **self._merge_options(options)))

    def _merge_options(self, options: SearchArguments) -> SearchArguments:
        defaults = {name: getattr(self, name) for name in SearchArguments.__annotations__}
        return cast(SearchArguments, {**defaults, **options})


def _build_documents(evidence: Evidence) -> list[Document]:
    return [
        Document(id=hit.passage.id, page_content=hit.passage.text, metadata=build_metadata(hit))
        for hit in evidence.passages
    ]
