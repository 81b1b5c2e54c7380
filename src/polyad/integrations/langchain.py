"""A retriever for LangChain."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, TypeVar

from typing_extensions import Unpack

from polyad.engine import AsyncEngine, Engine
from polyad.engine.engine import SearchArguments
from polyad.engine.search import RetrieverLike
from polyad.errors import MissingExtraError
from polyad.integrations.hits import build_metadata
from polyad.model import Evidence
from polyad.retrieval.options import SearchOptions

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, SkipValidation, create_model
except ModuleNotFoundError as error:
    raise MissingExtraError("langchain-core", "langchain") from error

R = TypeVar("R", bound=BaseRetriever)


def _add_search_options(retriever: type[R]) -> type[R]:
    """Add the options of :class:`polyad.retrieval.options.SearchOptions` to the fields of a retriever.

    The engine validates the options; pydantic would copy filters, or refuse them.
    """
    options: dict[str, Any] = {each.name: (Any, each.default) for each in fields(SearchOptions)}
    return create_model(
        retriever.__name__, __base__=retriever, __module__=__name__, __doc__=retriever.__doc__, **options
    )


@_add_search_options
class PolyadRetriever(BaseRetriever):
    """A LangChain retriever that searches a polyad index.

    The fields are the options of :meth:`polyad.engine.engine.Engine.search`. The methods ``invoke`` and ``ainvoke``
    take the same options for one search: ``retriever.invoke(question, k=3, where="year >= 2020")``.

    Example:
        >>> retriever = PolyadRetriever(engine=Engine.open("kb"), k=3)          # doctest: +SKIP
        >>> retriever.invoke("Who funded the trial?")[0].metadata["citation"]   # doctest: +SKIP
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")  # a misspelt filter must be an error

    engine: Annotated[Engine, SkipValidation]
    retriever: Annotated[RetrieverLike | None, SkipValidation] = None

    def __init__(self, **values: Any) -> None:
        """Take the values of the fields as arguments."""
        super().__init__(**values)

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

    def _merge_options(self, options: SearchArguments) -> dict[str, Any]:
        names = ("retriever", *(each.name for each in fields(SearchOptions)))
        return {**{name: getattr(self, name) for name in names}, **options}


def _build_documents(evidence: Evidence) -> list[Document]:
    return [
        Document(id=hit.passage.id, page_content=hit.passage.text, metadata=build_metadata(hit))
        for hit in evidence.passages
    ]
