"""Pipelines by the names that users give them: construction methods and retrievers, put together from parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from polyad.adapters.no_language_model import NoLanguageModel
from polyad.adapters.reading.files import FileReader
from polyad.adapters.reading.tuples import TupleReader
from polyad.config import LONG_PASSAGES, SHORT_PASSAGES, FactSettings, ReadSettings
from polyad.errors import ConfigurationError
from polyad.indexing.builder import HyperedgeBuilder
from polyad.indexing.facts.budget import Budget
from polyad.indexing.facts.builder import FactBuilder
from polyad.indexing.facts.compact import CompactExtractionStyle
from polyad.indexing.facts.paper import PaperExtractionStyle
from polyad.indexing.facts.style import ExtractionStyle
from polyad.indexing.tuple_builder import TupleBuilder
from polyad.indexing.unit_builder import SemanticUnitBuilder
from polyad.parts import Parts
from polyad.protocols import MentionExtractor, Reader, Retriever
from polyad.retrieval.baselines import DenseRetriever, LexicalRetriever, NoRetriever
from polyad.retrieval.default.retriever import DefaultRetriever
from polyad.retrieval.hypergraphrag import HyperGraphRAGRetriever
from polyad.retrieval.hypermemory.retriever import HyperMemoryRetriever
from polyad.retrieval.hyperretriever.retriever import HyperRetriever
from polyad.retrieval.hypersu.clues import LanguageModelClues, QuestionClues
from polyad.retrieval.hypersu.retriever import HyperSURetriever
from polyad.retrieval.question_names import QuestionNames

# Construction


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may spend on the language model; 0 for no limit.

    Attributes:
        max_cost: US dollars.
        max_tokens: Prompt and completion tokens together.
    """

    max_cost: float = 0.0
    max_tokens: int = 0

    def __post_init__(self) -> None:
        for name, limit in (("max_cost", self.max_cost), ("max_tokens", self.max_tokens)):
            if not limit >= 0:  # nor is NaN, which would limit nothing
                raise ConfigurationError(f"{name} is {limit}; expected 0 (no limit) or more")


@dataclass(frozen=True, slots=True)
class Method:
    """A way to build hyperedges.

    Attributes:
        build: Makes the builder.
        read: Makes the reader of what is indexed.
        needs_language_model: Whether it spends on one, and can be limited.
        usual_passages: Tokens of a passage and of its overlap, where the settings do not say.
        describes_entities: Whether it says what entities are, so that they are worth embedding at once.
    """

    build: Callable[[Parts, Limits], HyperedgeBuilder]
    read: Callable[[ReadSettings], Reader] = FileReader
    needs_language_model: bool = False
    usual_passages: tuple[int, int] = SHORT_PASSAGES
    describes_entities: bool = False


def _facts(parts: Parts, limits: Limits) -> HyperedgeBuilder:
    language_model = parts.language_model or NoLanguageModel("extracting facts with the method 'facts'")
    if limits.max_cost and not language_model.cost(1_000_000, 1_000_000):
        raise ConfigurationError(
            "max_cost needs the language model's prices; set prompt_price and completion_price (US dollars a million "
            "tokens) in the section [language_model] of polyad.toml, or give max_tokens"
        )
    settings = parts.settings.facts
    budget = Budget(language_model, max_cost=limits.max_cost, max_tokens=limits.max_tokens)
    return FactBuilder(parts.splitter, language_model, _style(settings), settings, budget)


def _style(settings: FactSettings) -> ExtractionStyle:
    style = PaperExtractionStyle if settings.style == "paper" else CompactExtractionStyle
    return style(settings.language)


def _semantic_units(parts: Parts, _: Limits) -> HyperedgeBuilder:
    return SemanticUnitBuilder(parts.splitter, parts.extractor, parts.embedder, parts.settings.segmentation)


_METHODS: Mapping[str, Method] = {
    "semantic-units": Method(_semantic_units),
    "facts": Method(_facts, needs_language_model=True, usual_passages=LONG_PASSAGES, describes_entities=True),
    "tuples": Method(lambda *_: TupleBuilder(), read=TupleReader),
}

METHODS = tuple(_METHODS)
"""Ways to build hyperedges."""


def method_called(name: str) -> Method:
    """The method of that name.

    Raises:
        ConfigurationError: there is none.
    """
    if name not in _METHODS:
        raise ConfigurationError(f"no method {name!r}; expected one of {', '.join(METHODS)}")
    return _METHODS[name]


def make_builder(name: str, parts: Parts, limits: Limits) -> HyperedgeBuilder:
    """The builder of that method.

    Raises:
        ConfigurationError: there is no such method, it lacks what it needs, or there is nothing to limit.
    """
    method = method_called(name)
    if limits != Limits() and not method.needs_language_model:
        raise ConfigurationError(f"max_cost and max_tokens limit the method 'facts' only, not {name!r}; leave them out")
    return method.build(parts, limits)


# Retrieval


def _question_names(parts: Parts) -> MentionExtractor:
    """Finds the names in questions by the language model, where there is one."""
    language_model = parts.language_model
    return QuestionNames(language_model, parts.extractor) if language_model else parts.extractor


def _hypersu(parts: Parts) -> Retriever:
    settings, language_model = parts.settings.hypersu, parts.language_model
    agent = LanguageModelClues(language_model, settings.max_clues) if language_model else QuestionClues()
    return HyperSURetriever(parts.embedder, parts.extractor, agent, settings)


def _hypergraphrag(parts: Parts) -> Retriever:
    return HyperGraphRAGRetriever(parts.embedder, _question_names(parts), parts.settings.hypergraphrag)


def _hyperretriever(parts: Parts) -> Retriever:
    return HyperRetriever(parts.embedder, _question_names(parts), parts.settings.hyperretriever)


def _hypermemory(parts: Parts) -> Retriever:
    language_model = parts.require_language_model("the retriever 'hypermemory'")
    return HyperMemoryRetriever(parts.embedder, _question_names(parts), language_model, parts.settings.hypermemory)


def _default(parts: Parts) -> Retriever:
    return DefaultRetriever(parts.embedder, parts.extractor, parts.settings.default)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A way to find evidence.

    Attributes:
        make: Makes the retriever.
        needs_language_model: Whether it does nothing without one.
        reads_entity_vectors: Whether it compares entities by vectors, which the first search of an index makes.
        embeds_question: Whether it needs the embedder, which takes a while to load.
        reads_names: Whether it may need the mention extractor or the language model, to find names in the question.
        lists_nearest: Whether its evidence has the hyperedges of each passage that are nearest to the question, scored
            by nearness.
    """

    make: Callable[[Parts], Retriever]
    needs_language_model: bool = False
    reads_entity_vectors: bool = False
    embeds_question: bool = True
    reads_names: bool = True
    lists_nearest: bool = False


_RETRIEVERS: Mapping[str, Retrieval] = {
    "default": Retrieval(_default, lists_nearest=True),
    "hypergraphrag": Retrieval(_hypergraphrag, reads_entity_vectors=True),
    "hypersu": Retrieval(_hypersu),
    "hyperretriever": Retrieval(_hyperretriever, reads_entity_vectors=True),
    "hypermemory": Retrieval(_hypermemory, needs_language_model=True),
    "standard": Retrieval(lambda parts: DenseRetriever(parts.embedder), reads_names=False),
    "bm25": Retrieval(lambda _: LexicalRetriever(), embeds_question=False, reads_names=False),
    "none": Retrieval(lambda _: NoRetriever(), embeds_question=False, reads_names=False),
}

RETRIEVERS = tuple(_RETRIEVERS)
"""Ways to find evidence."""

NEED_LANGUAGE_MODEL = frozenset(name for name, retrieval in _RETRIEVERS.items() if retrieval.needs_language_model)
"""Retrievers that do nothing without a language model."""


def retrieval_called(name: str) -> Retrieval:
    """The way to find evidence of that name.

    Raises:
        ConfigurationError: there is none.
    """
    if name not in _RETRIEVERS:
        raise ConfigurationError(f"no retriever {name!r}; expected one of {', '.join(RETRIEVERS)}")
    return _RETRIEVERS[name]
