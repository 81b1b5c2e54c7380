"""Inputs of training from an engine: snapshot, embedder, mention extractor, and signals of candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyad.engine import Engine
from polyad.protocols.components import Embedder, MentionExtractor, Progress, silent
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.signals import Candidates, SignalExtractor
from polyad.retrieval.question import QuestionLinker


def get_training_components(engine: Engine, progress: Progress = silent) -> tuple[Snapshot, Embedder, MentionExtractor]:
    """Return the snapshot with entity vectors, the embedder and the mention extractor of an engine."""
    snapshot = engine.snapshot("hyperretriever", progress)
    return snapshot, engine.components.embedder, engine.components.extractor


def extract_signals(engine: Engine, questions: Iterable[str]) -> Iterator[Candidates]:
    """Yield the candidates of each question with all signals of the default retriever, those of rewriting included."""
    snapshot, models = engine.snapshot(), engine.components
    linker = QuestionLinker(snapshot, models.extractor)
    return map(SignalExtractor(snapshot, models.embedder, linker, rewriting=True).extract_candidates, questions)
