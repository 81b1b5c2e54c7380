"""What retrievers that learn are trained on, of an engine: its index as they see it, and the models they read it by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyad.engine import Engine
from polyad.protocols.components import Embedder, MentionExtractor, Progress, silent
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.signals import Candidates, SignalExtractor
from polyad.retrieval.question import QuestionLinker


def get_training_components(engine: Engine, progress: Progress = silent) -> tuple[Snapshot, Embedder, MentionExtractor]:
    """The index with its entities described, its embedder, and what finds the names in questions."""
    return engine.snapshot("hyperretriever", progress), engine.components.embedder, engine.components.extractor


def extract_signals(engine: Engine, questions: Iterable[str]) -> Iterator[Candidates]:
    """What the default retriever's scorer is trained on: see :meth:`SignalExtractor.candidates`, with rewriting."""
    snapshot, models = engine.snapshot(), engine.components
    linker = QuestionLinker(snapshot, models.extractor)
    return map(SignalExtractor(snapshot, models.embedder, linker, rewriting=True).extract_candidates, questions)
