"""Every name that a user may give, and what it stands for: the one table of each kind of thing that can be chosen.

Whoever adds a retriever, a method, an embedder, a mention extractor, a reranker, a store or a format of files to polyad
adds a row here; whoever keeps it in a package of its own names such a row as an entry point (see
:mod:`polyad.engine.tables`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from polyad.config import (
    LONG_PASSAGES,
    SHORT_PASSAGES,
    AnswerSettings,
    EmbeddingSettings,
    EncoderSettings,
    LanguageModelSettings,
    NamesLinked,
    NearestSettings,
    QuestionSettings,
    ReadSettings,
    RerankerSettings,
    Settings,
    SplitSettings,
)
from polyad.engine.tables import Table
from polyad.errors import ConfigurationError, ModelNotFoundError
from polyad.indexing.builders import HyperedgeBuilder
from polyad.indexing.facts.budget import Budget
from polyad.indexing.facts.builder import FactBuilder
from polyad.indexing.facts.settings import FactSettings
from polyad.indexing.facts.style import CompactExtractionStyle, PaperExtractionStyle
from polyad.indexing.segmentation import SegmentationSettings
from polyad.indexing.semantic_units import SemanticUnitBuilder
from polyad.indexing.tuples import TupleBuilder
from polyad.language_models.no_language_model import NoLanguageModel
from polyad.protocols.components import Embedder, LanguageModel, MentionExtractor, Reader, Reranker, Retriever
from polyad.protocols.store import StoreOpener
from polyad.readers.files import MANY_DOCUMENTS, ONE_DOCUMENT, FileReader
from polyad.readers.tuples import TupleReader
from polyad.retrieval.baselines import DenseRetriever, LexicalRetriever, NoRetriever
from polyad.retrieval.default.retriever import DefaultRetriever, DefaultSettings
from polyad.retrieval.hypergraphrag.retriever import HyperGraphRAGRetriever, HyperGraphRAGSettings
from polyad.retrieval.hypermemory.retriever import HyperMemoryRetriever
from polyad.retrieval.hypermemory.search import HyperMemorySettings
from polyad.retrieval.hyperretriever.retriever import HyperRetriever
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings, HyperRetrieverTraining
from polyad.retrieval.hypersu.clues import LanguageModelClues, QuestionClues
from polyad.retrieval.hypersu.retriever import HyperSURetriever, HyperSUSettings
from polyad.retrieval.question_names import QuestionNames

if TYPE_CHECKING:
    from polyad.engine.components import Components  # made of what is registered here

_LOG = logging.getLogger(__name__)

# Ways to find evidence


@dataclass(frozen=True, slots=True)
class RetrieverSpec:
    """A way to find evidence.

    Attributes:
        make: Makes the retriever.
        settings: Of what kind its settings are, in the section of its name; None where it has none.
        training: The same of those that only its training reads, in the section ``NAME_training``.
        needs_language_model: Whether it does nothing without one.
        reads_entity_vectors: Whether it compares entities by vectors, which the first search of an index makes.
        embeds_question: Whether it needs the embedder, which takes a while to load.
        reads_names: Whether it may need the mention extractor or the language model, to find names in the question.
        lists_nearest: Whether its evidence has the hyperedges of each passage that are nearest to the question, scored
            by nearness.
    """

    make: Callable[[Components], Retriever]
    settings: type | None = None
    training: type | None = None
    needs_language_model: bool = False
    reads_entity_vectors: bool = False
    embeds_question: bool = True
    reads_names: bool = True
    lists_nearest: bool = False


def _question_names(components: Components) -> MentionExtractor:
    """Finds the names in questions by the language model, where there is one."""
    language_model = components.language_model
    return (
        QuestionNames(language_model, components.extractor, components.prompts)
        if language_model
        else components.extractor
    )


def _names(components: Components) -> NamesLinked:
    return components.settings.of(QuestionSettings).names


def _hypersu(components: Components) -> Retriever:
    settings, language_model = components.settings.of(HyperSUSettings), components.language_model
    rules = QuestionClues(use_remainder=settings.use_remainder)
    agent = LanguageModelClues(language_model, settings.max_clues, components.prompts) if language_model else rules
    return HyperSURetriever(components.embedder, components.extractor, agent, settings, _names(components))


def _hypergraphrag(components: Components) -> Retriever:
    settings = components.settings.of(HyperGraphRAGSettings)
    return HyperGraphRAGRetriever(components.embedder, _question_names(components), settings, _names(components))


def _hyperretriever(components: Components) -> Retriever:
    settings = components.settings.of(HyperRetrieverSettings)
    return HyperRetriever(components.embedder, _question_names(components), settings, names=_names(components))


def _hypermemory(components: Components) -> Retriever:
    language_model = components.require_language_model("the retriever 'hypermemory'")
    settings = components.settings.of(HyperMemorySettings)
    return HyperMemoryRetriever(
        components.embedder,
        _question_names(components),
        language_model,
        settings,
        names=_names(components),
        prompts=components.prompts,
    )


def _default(components: Components) -> Retriever:
    return DefaultRetriever(components.embedder, components.extractor, components.settings.of(DefaultSettings))


retrievers: Table[RetrieverSpec] = Table(
    "retrievers",
    "retriever",
    {
        "default": RetrieverSpec(_default, DefaultSettings, lists_nearest=True),
        "hypergraphrag": RetrieverSpec(_hypergraphrag, HyperGraphRAGSettings, reads_entity_vectors=True),
        "hypersu": RetrieverSpec(_hypersu, HyperSUSettings),
        "hyperretriever": RetrieverSpec(
            _hyperretriever, HyperRetrieverSettings, HyperRetrieverTraining, reads_entity_vectors=True
        ),
        "hypermemory": RetrieverSpec(_hypermemory, HyperMemorySettings, needs_language_model=True),
        "dense": RetrieverSpec(lambda components: DenseRetriever(components.embedder), reads_names=False),
        "bm25": RetrieverSpec(lambda _: LexicalRetriever(), embeds_question=False, reads_names=False),
        "none": RetrieverSpec(lambda _: NoRetriever(), embeds_question=False, reads_names=False),
    },
    lambda row: isinstance(row, RetrieverSpec),
)

RETRIEVERS = retrievers.own
"""Ways to find evidence that come with polyad."""

NEED_LANGUAGE_MODEL = frozenset(name for name in RETRIEVERS if retrievers[name].needs_language_model)
"""Those that do nothing without a language model."""

# Ways to build hyperedges


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


readers: Table[Callable[..., object]] = Table("readers", "format", {**ONE_DOCUMENT, **MANY_DOCUMENTS}, callable)
"""Functions by the extensions of files: they turn the bytes of a file into one document. Some of those that come with
polyad stream the many documents of a file instead."""


def _file_reader(settings: ReadSettings) -> Reader:
    """Reads the formats that come with polyad and those that other packages add."""
    added = {name: plugin.reference for name, plugin in readers.added.items() if readers.is_sound(plugin)}
    return FileReader(settings, one_document={**ONE_DOCUMENT, **added})


@dataclass(frozen=True, slots=True)
class Method:
    """A way to build hyperedges.

    Attributes:
        build: Makes the builder.
        read: Makes the reader of what is indexed.
        section: Of its settings, and of what kind they are.
        needs_language_model: Whether it spends on one, and can be limited.
        usual_passages: Tokens of a passage and of its overlap, where the settings do not say.
        describes_entities: Whether it says what entities are, so that they are worth embedding at once.
    """

    build: Callable[[Components, Limits], HyperedgeBuilder]
    read: Callable[[ReadSettings], Reader] = _file_reader
    section: tuple[str, type] | None = None
    needs_language_model: bool = False
    usual_passages: tuple[int, int] = SHORT_PASSAGES
    describes_entities: bool = False


def _facts(components: Components, limits: Limits) -> HyperedgeBuilder:
    language_model = components.language_model or NoLanguageModel("extracting facts with the method 'facts'")
    if limits.max_cost and not language_model.cost(1_000_000, 1_000_000):
        raise ConfigurationError(
            "max_cost needs the language model's prices; set prompt_price and completion_price (US dollars a million "
            "tokens) in the section [language_model] of polyad.toml, or give max_tokens"
        )
    settings = components.settings.of(FactSettings)
    budget = Budget(language_model, max_cost=limits.max_cost, max_tokens=limits.max_tokens)
    style = PaperExtractionStyle if settings.style == "paper" else CompactExtractionStyle
    return FactBuilder(
        components.splitter, language_model, style(settings.language, components.prompts), settings, budget
    )


def _semantic_units(components: Components, _: Limits) -> HyperedgeBuilder:
    return SemanticUnitBuilder(
        components.splitter,
        components.extractor,
        components.embedder,
        components.settings.of(SegmentationSettings),
        components.prompt_of_names,
    )


methods: Table[Method] = Table(
    "methods",
    "method",
    {
        "semantic-units": Method(_semantic_units, section=("segmentation", SegmentationSettings)),
        "facts": Method(
            _facts,
            section=("facts", FactSettings),
            needs_language_model=True,
            usual_passages=LONG_PASSAGES,
            describes_entities=True,
        ),
        "tuples": Method(lambda *_: TupleBuilder(), read=TupleReader),
    },
    lambda row: isinstance(row, Method),
)

METHODS = methods.own
"""Ways to build hyperedges that come with polyad."""


def make_builder(name: str, components: Components, limits: Limits) -> HyperedgeBuilder:
    """The builder of that method.

    Raises:
        ConfigurationError: there is no such method, it lacks what it needs, or there is nothing to limit.
    """
    method = methods[name]
    if limits != Limits() and not method.needs_language_model:
        raise ConfigurationError(f"max_cost and max_tokens limit the method 'facts' only, not {name!r}; leave them out")
    return method.build(components, limits)


# Adapters: a name is that of a row, and after a colon what the row's function reads

DEFAULT_EMBEDDER = "all-MiniLM-L6-v2"
DEFAULT_EXTRACTOR = "rules"
DEFAULT_STORE = "sqlite"

embedders: Table[Callable[[str, EncoderSettings], Embedder]] = Table(
    "embedders",
    "embedder",
    {
        "openai": "polyad.embedders.openai:OpenAIEmbedder.from_name",
        "hashing": "polyad.embedders.hashing:HashingEmbedder.from_name",
    },
    callable,
)

_LOCAL_EMBEDDER = "polyad.embedders.sentence_transformers:SentenceTransformerEmbedder.from_name"
"""Takes every other name, whole."""

_LIGHT_EMBEDDER = "polyad.embedders.minilm:MiniLMEmbedder.from_name"
"""Takes the default name without PyTorch."""

_LAST_RESORT = "hashing:384"

mentions: Table[Callable[[str, LanguageModel | None], MentionExtractor]] = Table(
    "mentions",
    "mention extractor",
    {
        "rules": "polyad.indexing.mentions.rules:RuleMentionExtractor.from_name",
        "gliner": "polyad.indexing.mentions.gliner:GlinerMentionExtractor.from_name",
        "llm": "polyad.indexing.mentions.language_model:LanguageModelMentionExtractor.from_name",
        "given": "polyad.indexing.mentions.given:GivenMentionExtractor.from_name",
    },
    callable,
    ("rules", "gliner", "gliner:medical", "llm", "given:FILE"),
)

rerankers: Table[Callable[[str, RerankerSettings], Reranker]] = Table(
    "rerankers",
    "reranker",
    {
        "cross-encoder": "polyad.rerankers.cross_encoder:CrossEncoderReranker.from_name",
        "endpoint": "polyad.rerankers.endpoint:EndpointReranker.from_name",
    },
    callable,
    ("cross-encoder:MODEL_OR_FOLDER", "endpoint:MODEL"),
)

stores: Table[StoreOpener] = Table(
    "stores",
    "store",
    {"sqlite": "polyad.stores.sqlite:SqliteStore.open", "memory": "polyad.stores.memory:MemoryStore.open"},
    callable,
)


def store_for(place: str | Path) -> StoreOpener:
    """Return the opener of the stores whose name a place begins with, ``NAME://``; SQLite for a directory.

    Raises:
        ConfigurationError: there is no store of this name.
    """
    scheme, separator, _ = str(place).partition("://")
    return stores[scheme if separator else DEFAULT_STORE]


_LANGUAGE_MODEL = "polyad.language_models.openai.language_model:OpenAILanguageModel"


def load_embedder(name: str, settings: EncoderSettings | None = None) -> Embedder:
    """The embedder called ``name``.

    ``openai:MODEL`` is served by an OpenAI-compatible endpoint; ``hashing:DIMENSION`` hashes words and needs no model,
    for tests and comparisons; anything else is the name or the folder of a sentence-transformers model. The default
    one is computed by numpy where the settings say so, or sentence-transformers is not installed.

    Args:
        name: As above, or that of another package's embedder.
        settings: Where it runs, or is served.

    Raises:
        ConfigurationError: there is no such model, or no such device.
    """
    settings = settings or EncoderSettings()
    kind, _, rest = name.partition(":")
    if kind in embedders:
        return embedders[kind](rest, settings)
    local = _LIGHT_EMBEDDER if _is_light(name, settings) else _LOCAL_EMBEDDER
    embedder: Embedder = resolve_name(local)(embedder_name(name), settings)
    return embedder


def _is_light(name: str, settings: EncoderSettings) -> bool:
    """Whether a model of this machine is computed without PyTorch.

    Raises:
        ConfigurationError: the settings say so, and it is another model than the default one.
    """
    is_default = name.removeprefix("sentence-transformers/") == DEFAULT_EMBEDDER
    if settings.backend == "numpy" and not is_default:
        raise ConfigurationError(f"the backend 'numpy' computes {DEFAULT_EMBEDDER!r} alone, not {name!r}; leave it out")
    if settings.backend == "auto":
        return is_default and find_spec("sentence_transformers") is None
    return settings.backend == "numpy"


def load_default_embedder(settings: EncoderSettings | None = None) -> Embedder:
    """The default embedder; where its model is not to be had, one that hashes words, with a warning."""
    try:
        return load_embedder(DEFAULT_EMBEDDER, settings)
    except ModelNotFoundError as error:
        _LOG.warning(
            "%s. The index is made with %s instead, which knows words and not what they mean; to have it made anew, "
            "remove its folder",
            error,
            _LAST_RESORT,
        )
        return load_embedder(_LAST_RESORT, settings)


def embedder_name(name: str) -> str:
    """The name that an index keeps for an embedder: of a model's folder the absolute path, else the name itself."""
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def load_extractor(name: str, language_model: LanguageModel | None) -> MentionExtractor:
    """The mention extractor called ``name``.

    ``rules`` needs no model; ``gliner`` or ``gliner:LABELS`` or ``gliner:LABELS:MODEL`` with the label set ``general``
    or ``medical``; ``llm`` asks the language model; ``given:FILE`` finds the names listed in a file.

    Raises:
        ConfigurationError: there is no such extractor, or it lacks what it needs.
    """
    kind, _, rest = name.partition(":")
    return mentions[kind](rest, language_model)


def load_reranker(name: str, settings: RerankerSettings | None = None) -> Reranker:
    """The reranker called ``name``.

    ``cross-encoder:MODEL`` is a cross-encoder of sentence-transformers, by its name or folder; ``endpoint:MODEL`` is
    served behind ``POST /rerank``, as Cohere and vLLM have it.

    Args:
        name: As above, or that of another package's reranker.
        settings: Where an endpoint is, and how long to wait for it.

    Raises:
        ConfigurationError: there is no such reranker, or it lacks what it needs.
    """
    kind, _, rest = name.partition(":")
    return rerankers[kind](rest, settings or RerankerSettings())


def load_language_model(given: str | LanguageModelSettings) -> LanguageModel:
    """The language model of that name, or with these settings, behind an OpenAI-compatible endpoint.

    What the settings leave open is for the OpenAI library to find in the environment: ``OPENAI_BASE_URL`` and
    ``OPENAI_API_KEY``.

    Raises:
        ConfigurationError: the name is blank, or the extra ``llm`` is not installed.
    """
    settings = LanguageModelSettings(model=given) if isinstance(given, str) else given
    model: LanguageModel = resolve_name(_LANGUAGE_MODEL)(settings)
    return model


TABLES: tuple[Table[Any], ...] = (retrievers, methods, readers, embedders, mentions, rerankers, stores)


# Settings

_STAGES: Mapping[str, type] = {
    "read": ReadSettings,
    "split": SplitSettings,
    "encoder": EncoderSettings,
    "embedding": EmbeddingSettings,
    "question": QuestionSettings,
    "nearest": NearestSettings,
    "answer": AnswerSettings,
    "reranker": RerankerSettings,
}
"""Sections of settings that are no method's own."""


@cache
def sections() -> dict[str, type]:
    """Every section of :class:`polyad.config.Settings`: those of the stages, then those of methods and retrievers."""
    found = dict(_STAGES)
    found.update(method.section for _, method in methods.rows() if method.section)
    for name, retrieval in retrievers.rows():
        own = {name: retrieval.settings, f"{name}_training": retrieval.training}
        found.update({section: kind for section, kind in own.items() if kind})
    return found


def by_section(settings: Settings) -> dict[str, Any]:
    """Every section of some settings, those with their defaults too."""
    return {name: settings.of(kind) for name, kind in sections().items()}


def check(settings: Settings) -> None:
    """Raise ConfigurationError where a section is none, or holds what is not its settings."""
    for name, value in settings.sections.items():
        kind = sections().get(name)
        if kind is None:
            raise ConfigurationError(f"no settings {name!r}; expected some of {', '.join(sections())}")
        if not isinstance(value, kind):
            raise ConfigurationError(f"the settings {name!r} are {value!r}; expected {kind.__name__}(...)")
