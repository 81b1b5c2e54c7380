"""The tables of retrievers and construction methods, and the sections of settings.

A new retriever or method gets a row here. A package of its own names such a row as an entry point (see
:mod:`polyad.plugin_tables`). Embedders and other components are in :mod:`polyad.engine.loaders`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from polyad.calibration import MEASURED_VALUES
from polyad.config import LONG_PASSAGES, SHORT_PASSAGES, ReadSettings
from polyad.engine.components import Components
from polyad.engine.loaders import embedders, mentions, rerankers, stores
from polyad.engine.settings import SECTIONS, Settings
from polyad.errors import ConfigurationError
from polyad.language_models.no_language_model import NoLanguageModel
from polyad.model import Document, Failure, HyperedgeKind
from polyad.plugin_tables import Table
from polyad.protocols.components import HyperedgeBuilder, Reader, Retriever
from polyad.retrieval.baselines import DenseRetriever, LexicalRetriever, NoRetriever
from polyad.text.files import get_source_file

if TYPE_CHECKING:
    from polyad.retrieval.question import QuestionLinker

_LOG = logging.getLogger(__name__)

# A function below imports the component that it builds, since a command uses one retriever and perhaps no method, and
# all of them take 0.3 s to import.

# Retrievers


@dataclass(frozen=True, slots=True)
class RetrieverSpec:
    """The row of a retriever in the registry: its constructor and its requirements, such as a language model.

    Attributes:
        make: Builds the retriever from the engine's components.
        settings: Class of the settings of a plug-in, in the section of its name; None if it has none.
        needs_language_model: Whether the retriever fails without a language model.
        reads_entity_vectors: Whether the retriever compares entities by vectors; the first search computes the vectors.
        embeds_question: Whether the retriever needs the embedder, which takes a while to load.
        reads_names: Whether the retriever may extract names from the question, by mention extractor or language model.
        reads_hyperedges: Whether the retriever needs the hyperedges, so that a comparison counts their cost.
        construction: The ``method`` and the settings, by ``section.key``, that build the index of its paper.
    """

    make: Callable[[Components], Retriever]
    settings: type | None = None
    needs_language_model: bool = False
    reads_entity_vectors: bool = False
    embeds_question: bool = True
    reads_names: bool = True
    reads_hyperedges: bool = True
    construction: Mapping[str, str | int | float | bool] = field(default_factory=dict, hash=False)


def _create_linker(components: Components) -> QuestionLinker:
    """Return a linker of the names in questions, which the language model or the index's extractor extracts."""
    from polyad.retrieval.prompting import QuestionNameExtractor
    from polyad.retrieval.question import QuestionLinker

    extractor, language_model = components.extractor, components.language_model
    if language_model:
        extractor = QuestionNameExtractor(language_model, extractor, components.prompts)
    return QuestionLinker(extractor, components.settings.question.names)


def _warn_of_threshold(components: Components, section: str, key: str, paper_embedder: str) -> None:
    """Log a warning if a preset's threshold is above the one measured for the embedder, so that it excludes most texts.

    Args:
        components: Embedder and settings.
        section: Section of the threshold, which is also the name of the preset.
        key: The threshold, in the section and in the calibration of embedders.
        paper_embedder: Embedder of the paper.
    """
    settings = components.settings
    value, measured = getattr(getattr(settings, section), key), MEASURED_VALUES.get(components.embedder.name)
    if settings.preset == section and measured and value is not None and value > getattr(measured, key):
        _LOG.warning(
            "%s.%s = %g of the preset is for %s; %s has lower cosines, so that nearly nothing reaches it: use "
            "--embedder %s, or --set %s.%s=%g, the value measured for %s",
            *(section, key, value, paper_embedder, components.embedder.name),
            *(paper_embedder, section, key, getattr(measured, key), components.embedder.name),
        )


def _make_hypersu(components: Components) -> Retriever:
    from polyad.retrieval.hypersu.retriever import HyperSURetriever, LanguageModelClues, QuestionClues
    from polyad.retrieval.question import QuestionLinker, SimilarNames

    settings, language_model, embedder = components.settings.hypersu, components.language_model, components.embedder
    rules = QuestionClues(use_remainder=settings.use_remainder)
    agent = LanguageModelClues(language_model, settings.max_clues, components.prompts) if language_model else rules
    similar_names = SimilarNames(embedder, settings.link_threshold) if settings.link_threshold < 1 else None
    linker = QuestionLinker(components.extractor, components.settings.question.names, similar_names)
    _warn_of_threshold(components, "hypersu", "activation_threshold", "BAAI/bge-large-en-v1.5")
    return HyperSURetriever(embedder, linker, agent, settings)


def _make_hypergraphrag(components: Components) -> Retriever:
    from polyad.retrieval.hypergraphrag.retriever import HyperGraphRAGRetriever

    for key in ("entity_threshold", "hyperedge_threshold", "passage_threshold"):
        _warn_of_threshold(components, "hypergraphrag", key, "openai:text-embedding-3-small")
    return HyperGraphRAGRetriever(components.embedder, _create_linker(components), components.settings.hypergraphrag)


def _make_hyperretriever(components: Components) -> Retriever:
    from polyad.retrieval.hyperretriever.retriever import HyperRetriever

    if components.settings.preset == "hyperretriever" and not components.settings.hyperretriever.weights:
        _LOG.warning(
            "the weights that come with polyad were trained by polyad's defaults, not as in the paper of the preset; "
            "run: polyad bench train hyperretriever BEIR_DIR --preset hyperretriever, and set hyperretriever.weights"
        )
    return HyperRetriever(components.embedder, _create_linker(components), components.settings.hyperretriever)


def _make_hypermemory(components: Components) -> Retriever:
    from polyad.retrieval.hypermemory.retriever import HyperMemoryRetriever

    language_model = components.require_language_model("the retriever 'hypermemory'")
    linker, settings = _create_linker(components), components.settings.hypermemory
    return HyperMemoryRetriever(components.embedder, linker, language_model, settings, components.prompts)


def _make_default(components: Components) -> Retriever:
    from polyad.retrieval.default.retriever import DefaultRetriever

    return DefaultRetriever(components.embedder, components.extractor, components.settings.default)


_PLAIN: Mapping[str, str | int | float | bool] = {"method": "semantic-units"}
"""The construction without a language model, for retrievers that read no hyperedges."""

retrievers: Table[RetrieverSpec] = Table(
    "retrievers",
    "retriever",
    {
        "default": RetrieverSpec(_make_default),
        "hypergraphrag": RetrieverSpec(_make_hypergraphrag, reads_entity_vectors=True),
        "hypersu": RetrieverSpec(_make_hypersu),
        "hyperretriever": RetrieverSpec(_make_hyperretriever, reads_entity_vectors=True),
        "hypermemory": RetrieverSpec(_make_hypermemory, needs_language_model=True),
        "dense": RetrieverSpec(
            lambda components: DenseRetriever(components.embedder),
            reads_names=False,
            reads_hyperedges=False,
            construction=_PLAIN,
        ),
        "bm25": RetrieverSpec(
            lambda _: LexicalRetriever(),
            embeds_question=False,
            reads_names=False,
            reads_hyperedges=False,
            construction=_PLAIN,
        ),
        "none": RetrieverSpec(
            lambda _: NoRetriever(),
            embeds_question=False,
            reads_names=False,
            reads_hyperedges=False,
            construction=_PLAIN,
        ),
    },
    lambda row: isinstance(row, RetrieverSpec),
)

RETRIEVERS = retrievers.builtin_names
"""Names of the retrievers that come with polyad."""

NEED_LANGUAGE_MODEL = frozenset(name for name in RETRIEVERS if retrievers[name].needs_language_model)
"""Names of the retrievers that fail without a language model."""

# Construction methods


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """The maximum cost and number of tokens that one indexing run may spend on the language model; 0 for no limit.

    Attributes:
        max_cost: US dollars.
        max_tokens: Prompt and completion tokens together.
    """

    max_cost: float = 0.0
    max_tokens: int = 0

    def __post_init__(self) -> None:
        for name, limit in (("max_cost", self.max_cost), ("max_tokens", self.max_tokens)):
            if not limit >= 0:  # also rejects NaN
                raise ConfigurationError(f"{name} is {limit}; expected 0 (no limit) or more")


def _read_files(settings: ReadSettings) -> Reader:
    from polyad.readers.folder.files import FileReader

    return FileReader(settings)


def _read_tuples(settings: ReadSettings) -> Reader:
    from polyad.readers.folder.tuples import TupleReader

    return TupleReader(settings)


def _make_tuple_builder(_components: Components, _limits: SpendingLimits) -> HyperedgeBuilder:
    from polyad.indexing.tuples import TupleBuilder

    return TupleBuilder()


@dataclass(frozen=True, slots=True)
class Method:
    """The registry row of a construction method: functions that create its hyperedge builder and file reader.

    Attributes:
        build: Creates the builder of hyperedges.
        read: Creates the reader of files.
        needs_language_model: Whether the method calls a language model, whose cost can be limited.
        default_passages: Default tokens of a passage and of its overlap.
        describes_entities: Whether the method describes entities, so that entity vectors are computed after indexing.
    """

    build: Callable[[Components, SpendingLimits], HyperedgeBuilder]
    read: Callable[[ReadSettings], Reader] = _read_files
    needs_language_model: bool = False
    default_passages: tuple[int, int] = SHORT_PASSAGES
    describes_entities: bool = False


def _make_fact_builder(components: Components, limits: SpendingLimits) -> HyperedgeBuilder:
    from polyad.indexing.facts.budget import Budget
    from polyad.indexing.facts.builder import FactBuilder
    from polyad.indexing.facts.ontology import Ontology
    from polyad.indexing.facts.style import ExtractionStyle

    language_model = components.language_model or NoLanguageModel("extracting facts with the method 'facts'")
    if limits.max_cost and not language_model.cost(1_000_000, 1_000_000):
        raise ConfigurationError(
            "max_cost needs the language model's prices; set prompt_price and completion_price (US dollars a million "
            "tokens) in the section [language_model] of polyad.toml, or give max_tokens"
        )
    settings = components.settings.facts
    budget = Budget(language_model, max_cost=limits.max_cost, max_tokens=limits.max_tokens)
    ontology = Ontology.from_settings(settings)
    style = ExtractionStyle(settings.language, components.prompts, ontology, style=settings.style, dates=settings.dates)
    return FactBuilder(components.splitter, language_model, style, settings, budget)


def _make_unit_builder(components: Components, _: SpendingLimits) -> HyperedgeBuilder:
    from polyad.indexing.semantic_units import SemanticUnitBuilder

    return SemanticUnitBuilder(
        components.splitter,
        components.extractor,
        components.embedder,
        components.settings.segmentation,
        components.extractor_prompt_version,
    )


methods: Table[Method] = Table(
    "methods",
    "method",
    {
        "semantic-units": Method(_make_unit_builder),
        "facts": Method(
            _make_fact_builder,
            needs_language_model=True,
            default_passages=LONG_PASSAGES,
            describes_entities=True,
        ),
        "tuples": Method(_make_tuple_builder, read=_read_tuples),
    },
    lambda row: isinstance(row, Method),
)

DEFAULT_METHOD = "semantic-units"

METHODS = methods.builtin_names
"""Names of the construction methods that come with polyad."""


def make_builder(name: str, components: Components, limits: SpendingLimits) -> HyperedgeBuilder:
    """Return the hyperedge builder for a construction method such as ``facts``.

    Raises:
        ConfigurationError: The method is unknown or lacks a component, or a limit is set for a method without costs.
    """
    method = methods[name]
    if limits != SpendingLimits() and not method.needs_language_model:
        raise ConfigurationError(f"max_cost and max_tokens limit the method 'facts' only, not {name!r}; leave them out")
    return method.build(components, limits)


TUPLES = "tuples"

METHOD_BY_KIND: Mapping[HyperedgeKind, str] = {
    HyperedgeKind.SEMANTIC_UNIT: "semantic-units",
    HyperedgeKind.FACT: "facts",
    HyperedgeKind.TUPLE: TUPLES,
}


@dataclass(frozen=True, slots=True)
class MethodAssignment:
    """The construction method (``facts``, ``semantic-units``, ``tuples``) of each document of an index.

    An indexed document keeps its method unless the user names another. So neither paid facts nor tuples are replaced by
    semantic units, and a table of tuples is not read as prose.

    Attributes:
        default: Method of new documents.
        document_methods: Method by document id, for documents built by another method than the default.
        file_methods: Method by file, for files that contain such documents; new records of the file get this method.
    """

    default: str
    document_methods: Mapping[str, str] = field(default_factory=dict)
    file_methods: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_index(
        cls, default: str, document_kinds: Mapping[str, HyperedgeKind], document_sources: Mapping[str, str]
    ) -> MethodAssignment:
        """Return the construction method of each document, derived from the kind of the document's hyperedges.

        Documents without an entry in ``document_kinds`` have the method ``default``.
        """
        methods = {id: method for id, kind in document_kinds.items() if (method := METHOD_BY_KIND[kind]) != default}
        files = {
            get_source_file(source): method for id, method in methods.items() if (source := document_sources.get(id))
        }
        return cls(default, methods, files)

    @property
    def methods(self) -> list[str]:
        """The construction methods in use in the index, the default method first."""
        return [self.default, *sorted({*self.document_methods.values()} - {self.default})]

    def get_method(self, item: Document | Failure) -> str:
        """Return the construction method of a document, or of a file that could not be read."""
        if isinstance(item, Document) and item.id in self.document_methods:
            return self.document_methods[item.id]
        if self.file_methods:
            file = get_source_file(item.source if isinstance(item, Document) else item.id)
            if file in self.file_methods:
                return self.file_methods[file]
        return TUPLES if isinstance(item, Document) and item.arguments else self.default

    def list_files(self, method: str) -> Iterable[str]:
        """Return the sorted files whose documents were built by ``method``; an empty list for the default method."""
        return sorted(file for file, file_method in self.file_methods.items() if file_method == method)


def get_tables() -> tuple[Table[Any], ...]:
    """Return all tables of components (such as retrievers and readers); packages can also add commands."""
    from polyad.readers.formats import get_readers

    return retrievers, methods, get_readers(), embedders, mentions, rerankers, stores


# Settings


@cache
def get_sections() -> dict[str, type]:
    """Return the settings class of each section of ``polyad.toml`` by name, including the sections of plug-ins."""
    return {**{name: spec.settings for name, spec in retrievers.rows() if spec.settings}, **SECTIONS}


def get_settings_by_section(settings: Settings) -> dict[str, Any]:
    """Return every section of the settings by name, including sections with default values."""
    return {
        name: getattr(settings, name) if name in SECTIONS else settings.plugins.get(name) or kind()
        for name, kind in get_sections().items()
    }


def replace_sections(settings: Settings, sections: Mapping[str, Any]) -> Settings:
    """Return a copy of the settings in which the sections named in ``sections`` are replaced."""
    plugins = {name: section for name, section in sections.items() if name not in SECTIONS}
    others = {name: section for name, section in sections.items() if name in SECTIONS}
    return replace(settings, **others, plugins={**settings.plugins, **plugins})
