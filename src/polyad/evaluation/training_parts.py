"""What retrievers that learn are trained on, of an engine: its index as they see it, and the models they read it by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyad.engine import Engine
from polyad.protocols import Embedder, MentionExtractor, Progress, silent
from polyad.retrieval.default.signals import Candidates, SignalExtractor
from polyad.retrieval.question import QuestionLinker
from polyad.view import View


def training_parts(engine: Engine, progress: Progress = silent) -> tuple[View, Embedder, MentionExtractor]:
    """The index with its entities described, its embedder, and what finds the names in questions."""
    return engine.view("hyperretriever", progress), engine.models.embedder, engine.models.extractor


def signals_of(engine: Engine, questions: Iterable[str]) -> Iterator[Candidates]:
    """What the default retriever's scorer is trained on: see :meth:`SignalExtractor.candidates`, with rewriting."""
    view, models = engine.view(), engine.models
    linker = QuestionLinker(view, models.extractor)
    return map(SignalExtractor(view, models.embedder, linker, rewriting=True).candidates, questions)
