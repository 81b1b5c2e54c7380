"""A retriever component for Haystack."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Unpack

from polyad.engine import AsyncEngine, Engine
from polyad.engine.search import RetrieverLike
from polyad.errors import ConfigurationError, MissingExtraError
from polyad.integrations.hits import build_metadata
from polyad.model import Evidence
from polyad.retrieval.options import OptionArguments, SearchOptions
from polyad.text.filters import AllOf, Filter, Where, filter_from_json, filter_to_json, to_filter
from polyad.text.validity import Time

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ModuleNotFoundError as error:
    raise MissingExtraError("haystack-ai", "haystack") from error

_OPENING = threading.Lock()
_COMPARISONS = {"==": "=", "!=": "!=", ">": ">", ">=": ">=", "<": "<", "<=": "<="}


@component
class PolyadRetriever:
    """A Haystack component that searches a polyad index and returns documents.

    The inputs ``query``, ``filters`` and ``top_k`` are the same as in Haystack's own text retrievers. The inputs
    ``where`` and ``as_of`` replace the arguments of the constructor; a document must match both ``where`` and
    ``filters``. Haystack loads a saved pipeline only if this module is trusted: ``Pipeline.loads(text,
    allowed_modules=["polyad.integrations.haystack"])``.

    Example:
        >>> pipeline.add_component("retriever", PolyadRetriever("kb", top_k=3))     # doctest: +SKIP

    Args:
        engine: The directory of an index, which is opened when the pipeline is warmed up, or an engine. A pipeline with
            an engine cannot be saved.
        engine_options: Options of :meth:`polyad.engine.engine.Engine.open`, such as ``{"embedder": "openai:MODEL"}``.
        top_k: Maximum number of hits; None for 5, or for no limit if ``max_words`` is set.
        retriever: As of :meth:`polyad.engine.engine.Engine.search`.
        **options: Further options of the search; see :class:`polyad.retrieval.options.SearchOptions`.

    Raises:
        ConfigurationError: An option is out of range, or no filter or date.
    """

    def __init__(
        self,
        engine: Engine | str | Path,
        *,
        engine_options: Mapping[str, Any] | None = None,
        top_k: int | None = None,
        retriever: RetrieverLike | None = None,
        **options: Unpack[OptionArguments],
    ) -> None:
        self._place = None if isinstance(engine, Engine) else str(engine)
        self._engine = engine if isinstance(engine, Engine) else None
        self._engine_options = dict(engine_options or {})
        SearchOptions(k=top_k, **options)
        self._options: dict[str, Any] = {"k": top_k, "retriever": retriever, **options}

    def warm_up(self) -> None:
        """Open the index before the first search; Haystack calls this method.

        Raises:
            StoreNotFoundError: The directory contains no index.
        """
        self._get_engine()

    def _get_engine(self) -> Engine:
        with _OPENING:
            if self._engine is None:
                assert self._place is not None
                self._engine = Engine.open(self._place, create=False, **self._engine_options)
            return self._engine

    def to_dict(self) -> dict[str, Any]:
        """Return the component's settings as a dictionary, for saved pipelines.

        Raises:
            ConfigurationError: The component was made with an engine or a retriever instead of the name of one.
        """
        if self._place is None:
            raise ConfigurationError("the component has an engine; expected the directory of an index to save it")
        options = {name: _to_json(value) for name, value in self._options.items()}
        options["top_k"] = options.pop("k")
        return default_to_dict(self, engine=self._place, engine_options=self._engine_options, **options)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PolyadRetriever:
        """Return a component with the settings of a dictionary from :meth:`to_dict`."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        where: str | dict[str, Any] | None = None,
        as_of: str | None = None,
    ) -> dict[str, list[Document]]:
        """Search the index and return the best documents for a query.

        Args:
            query: The question.
            filters: A filter of Haystack; see :func:`parse_filters`.
            top_k: Maximum number of documents.
            where: A filter of polyad, as text or JSON.
            as_of: Search only documents and facts that are valid at this date.
        """
        options = self._merge_options(filters, top_k, where, as_of)
        return {"documents": _build_documents(self._get_engine().search(query, **options))}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        where: str | dict[str, Any] | None = None,
        as_of: str | None = None,
    ) -> dict[str, list[Document]]:
        """Search the index as :meth:`run` does, without blocking the event loop."""
        options = self._merge_options(filters, top_k, where, as_of)
        return {"documents": _build_documents(await AsyncEngine(self._get_engine()).search(query, **options))}

    def _merge_options(
        self, filters: Mapping[str, Any] | None, top_k: int | None, where: Where, as_of: Time
    ) -> dict[str, Any]:
        """Return the options of one search: the component's defaults, replaced or narrowed by the call's arguments."""
        options = {**self._options}
        if top_k is not None:
            options["k"] = top_k
        if as_of is not None:
            options["as_of"] = as_of
        parts = [to_filter(where or options.get("where")), parse_filters(filters) if filters else None]
        selections = tuple(part for part in parts if part is not None)
        options["where"] = AllOf(selections) if selections else None
        return options


def parse_filters(filters: Mapping[str, Any]) -> Filter:
    """Convert a Haystack filter such as ``{"field": "year", "operator": ">=", "value": 2020}`` to a filter of polyad.

    The filter's fields are metadata keys of documents, with or without ``meta.``; ``meta.document_id`` is the id of a
    document.

    Raises:
        FilterError: ``filters`` is no filter of Haystack.
    """
    return filter_from_json(_convert(filters))


def _convert(filters: object) -> object:
    match filters:
        case {"operator": "AND" | "OR" as operator, "conditions": list(conditions)}:
            return {operator.lower(): list(map(_convert, conditions))}
        case {"operator": "NOT", "conditions": list(conditions)}:
            return {"not": {"and": list(map(_convert, conditions))}}
        case {"field": str(field), "operator": "==" | "!=" as operator, "value": None}:
            exists = _compare(field, "exists", [])
            return exists if operator == "!=" else {"not": exists}
        case {"field": str(field), "operator": "not in", "value": list(values)}:
            return {"not": _compare(field, "in", values)}
        case {"field": str(field), "operator": "in", "value": list(values)}:
            return _compare(field, "in", values)
        case {"field": str(field), "operator": str(operator), "value": value} if operator in _COMPARISONS:
            return _compare(field, _COMPARISONS[operator], [value])
    return filters  # an invalid filter, which filter_from_json reports


def _compare(field: str, operator: str, values: list[Any]) -> dict[str, Any]:
    name = field.removeprefix("meta.")
    texts = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    return {"field": "id" if name == "document_id" else name, "operator": operator, "values": texts}


def _to_json(option: object) -> Any:
    """Return the value of an option in JSON.

    Raises:
        ConfigurationError: The value is a retriever.
    """
    if isinstance(option, Filter):
        return filter_to_json(option)
    if isinstance(option, datetime):
        return str(option)
    if not isinstance(option, str | int | float | Mapping | None):
        raise ConfigurationError(f"the retriever is {option!r}; expected its name to save it")
    return option


def _build_documents(evidence: Evidence) -> list[Document]:
    return [
        Document(id=hit.passage.id, content=hit.passage.text, meta=build_metadata(hit), score=hit.score)
        for hit in evidence.passages
    ]
