"""Pipelines by the names that users give them: construction methods and retrievers, put together from parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from polyad.config import FactSettings
from polyad.errors import ConfigurationError
from polyad.indexing.builder import HyperedgeBuilder
from polyad.indexing.facts.budget import Budget
from polyad.indexing.facts.builder import FactBuilder
from polyad.indexing.facts.compact import CompactExtractionStyle
from polyad.indexing.facts.extraction import ExtractionStyle
from polyad.indexing.facts.paper import PaperExtractionStyle
from polyad.indexing.tuple_builder import TupleBuilder
from polyad.indexing.unit_builder import SemanticUnitBuilder
from polyad.parts import Parts
from polyad.protocols import Retriever
from polyad.retrieval.baselines import DenseRetriever, LexicalRetriever, NoRetriever
from polyad.retrieval.default.retriever import DefaultRetriever
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.hypergraphrag import HyperGraphRAGRetriever
from polyad.retrieval.hypermemory.retriever import HyperMemoryRetriever
from polyad.retrieval.hyperretriever.retriever import HyperRetriever
from polyad.retrieval.hypersu.clues import LanguageModelClues, QuestionClues
from polyad.retrieval.hypersu.retriever import HyperSURetriever
from polyad.retrieval.question import QuestionLinker
from polyad.retrieval.question_names import QuestionNames
from polyad.retrieval.similar_names import SimilarNames
from polyad.retrieval.snapshot import Snapshot

# Construction


def fact_builder(parts: Parts, max_cost: float = 0.0, max_tokens: int = 0) -> FactBuilder:
    """Extracts facts with the language model, within a budget; 0 for no limit.

    Raises:
        ConfigurationError: no language model is set, or its prices are not and ``max_cost`` is, or a limit is below 0.
    """
    for name, limit in (("max_cost", max_cost), ("max_tokens", max_tokens)):
        if not limit >= 0:  # nor is NaN, which would limit nothing
            raise ConfigurationError(f"{name} is {limit}; expected 0 (no limit) or more")
    model = parts.require_language_model("the method 'facts'")
    if max_cost and not model.cost(1_000_000, 1_000_000):
        raise ConfigurationError(
            "max_cost needs the language model's prices; set prompt_price and completion_price (US dollars a million "
            "tokens) in the section [language_model] of polyad.toml, or give max_tokens"
        )
    settings = parts.settings.facts
    budget = Budget(model, max_cost=max_cost, max_tokens=max_tokens)
    return FactBuilder(parts.splitter, model, _style(settings), settings, budget)


def _style(settings: FactSettings) -> ExtractionStyle:
    return PaperExtractionStyle(settings.language) if settings.style == "paper" else CompactExtractionStyle()


def _unit_builder(parts: Parts) -> SemanticUnitBuilder:
    return SemanticUnitBuilder(parts.splitter, parts.extractor, parts.embedder, parts.settings.segmentation)


_BUILDERS: Mapping[str, Callable[[Parts], HyperedgeBuilder]] = {
    "semantic-units": _unit_builder,
    "facts": fact_builder,
    "tuples": lambda _: TupleBuilder(),
}

METHODS = tuple(_BUILDERS)
"""Ways to build hyperedges."""


def make_builder(method: str, parts: Parts) -> HyperedgeBuilder:
    """The builder of that method.

    Raises:
        ConfigurationError: there is no such method, or it lacks what it needs.
    """
    if method not in _BUILDERS:
        raise ConfigurationError(f"no method {method!r}; expected one of {', '.join(METHODS)}")
    return _BUILDERS[method](parts)


# Retrieval


def _question_linker(snapshot: Snapshot, parts: Parts) -> QuestionLinker:
    """Links names that the language model finds, where there is one."""
    model = parts.language_model
    return QuestionLinker(snapshot, QuestionNames(model, parts.extractor) if model else parts.extractor)


def _hypersu(snapshot: Snapshot, parts: Parts) -> Retriever:
    settings, model = parts.settings.hypersu, parts.language_model
    agent = LanguageModelClues(model, settings.max_clues) if model else QuestionClues()
    similar = SimilarNames(snapshot, parts.embedder, settings.link_threshold) if settings.link_threshold < 1 else None
    return HyperSURetriever(
        snapshot, parts.embedder, QuestionLinker(snapshot, parts.extractor, similar), agent, settings
    )


def _hypergraphrag(snapshot: Snapshot, parts: Parts) -> Retriever:
    settings = parts.settings.hypergraphrag
    return HyperGraphRAGRetriever(snapshot, parts.embedder, _question_linker(snapshot, parts), settings)


def _hyperretriever(snapshot: Snapshot, parts: Parts) -> Retriever:
    settings = parts.settings.hyperretriever
    return HyperRetriever(snapshot, parts.embedder, _question_linker(snapshot, parts), settings)


def _hypermemory(snapshot: Snapshot, parts: Parts) -> Retriever:
    model = parts.require_language_model("the retriever 'hypermemory'")
    linker = _question_linker(snapshot, parts)
    return HyperMemoryRetriever(snapshot, parts.embedder, linker, model, parts.settings.hypermemory)


def default_retriever(snapshot: Snapshot, parts: Parts, *, rewriting: bool | None = None) -> DefaultRetriever:
    """The default retriever, with the settings' weights and, unless said otherwise, their rewriting."""
    settings = parts.settings.default
    scorer = LinearScorer.load(Path(settings.weights)) if settings.weights and rewriting is None else None
    return DefaultRetriever(
        snapshot,
        parts.embedder,
        QuestionLinker(snapshot, parts.extractor),
        scorer,
        rewriting=settings.rewriting if rewriting is None else rewriting,
    )


_RETRIEVERS: Mapping[str, Callable[[Snapshot, Parts], Retriever]] = {
    "default": default_retriever,
    "hypergraphrag": _hypergraphrag,
    "hypersu": _hypersu,
    "hyperretriever": _hyperretriever,
    "hypermemory": _hypermemory,
    "standard": lambda snapshot, parts: DenseRetriever(snapshot, parts.embedder),
    "bm25": lambda snapshot, _: LexicalRetriever(snapshot),
    "none": lambda snapshot, _: NoRetriever(snapshot),
}

RETRIEVERS = tuple(_RETRIEVERS)
"""Ways to find evidence."""


NEED_LANGUAGE_MODEL = frozenset({"hypermemory"})
"""Retrievers that do nothing without a language model."""

READ_ENTITY_VECTORS = frozenset({"hypergraphrag", "hyperretriever"})
"""Retrievers that compare entities by vectors, which are made at the first search of an index."""


def require_retriever(name: str) -> None:
    """Raise ConfigurationError unless there is a retriever of that name."""
    if name not in _RETRIEVERS:
        raise ConfigurationError(f"no retriever {name!r}; expected one of {', '.join(RETRIEVERS)}")


def make_retriever(name: str, snapshot: Snapshot, parts: Parts) -> Retriever:
    """The retriever of that name.

    Raises:
        ConfigurationError: there is no such retriever, or it lacks what it needs.
    """
    require_retriever(name)
    return _RETRIEVERS[name](snapshot, parts)
