# ruff: noqa: RUF009  # sections are frozen, so a default can be shared
"""The settings of an engine: one section for each stage, construction method and retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from polyad.config import (
    AnswerSettings,
    EmbeddingSettings,
    EncoderSettings,
    NearestSettings,
    QuestionSettings,
    ReadSettings,
    RerankerSettings,
    SplitSettings,
    WorkerSettings,
)
from polyad.errors import ConfigurationError
from polyad.indexing.facts.settings import FactSettings
from polyad.indexing.segmentation import SegmentationSettings
from polyad.retrieval.default.retriever import DefaultSettings
from polyad.retrieval.hypergraphrag.settings import HyperGraphRAGSettings
from polyad.retrieval.hypermemory.settings import HyperMemorySettings
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings, HyperRetrieverTraining
from polyad.retrieval.hypersu.settings import HyperSUSettings


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an engine, by section, as in ``polyad.toml``.

    >>> settings = Settings(split=SplitSettings(passage_tokens=100))
    >>> settings.split.passage_tokens, settings.encoder.device
    (100, 'auto')

    Attributes:
        preset: Name of the preset of these settings (:func:`polyad.engine.changes.build_preset_settings`). An
            engine uses the preset's method and retriever unless the user names others. Empty for none.
        segmentation: Settings of the method ``semantic-units``.
        default: Settings of the retriever ``default``; the other retrievers have sections of their names.
        plugins: Settings of retrievers that other packages add, by name of the retriever.

    Raises:
        ConfigurationError: A section has the wrong class.
    """

    preset: str = ""
    read: ReadSettings = ReadSettings()
    split: SplitSettings = SplitSettings()
    encoder: EncoderSettings = EncoderSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    question: QuestionSettings = QuestionSettings()
    nearest: NearestSettings = NearestSettings()
    answer: AnswerSettings = AnswerSettings()
    reranker: RerankerSettings = RerankerSettings()
    worker: WorkerSettings = WorkerSettings()
    segmentation: SegmentationSettings = SegmentationSettings()
    facts: FactSettings = FactSettings()
    default: DefaultSettings = DefaultSettings()
    hypergraphrag: HyperGraphRAGSettings = HyperGraphRAGSettings()
    hypersu: HyperSUSettings = HyperSUSettings()
    hyperretriever: HyperRetrieverSettings = HyperRetrieverSettings()
    hyperretriever_training: HyperRetrieverTraining = HyperRetrieverTraining()
    hypermemory: HyperMemorySettings = HyperMemorySettings()
    plugins: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name, kind in SECTIONS.items():
            if not isinstance(getattr(self, name), kind):
                value = getattr(self, name)
                raise ConfigurationError(f"the settings {name!r} are {value!r}; expected {kind.__name__}(...)")


SECTIONS: Mapping[str, type] = {
    each.name: type(each.default) for each in fields(Settings) if each.name not in ("preset", "plugins")
}
"""Class of each section, by name."""
