"""Thresholds of cosines, measured on an index: unrelated texts exceed them as rarely as with a calibrated embedder.

Embedders differ in the cosines of unrelated texts, and the same embedder differs between languages. Everyday questions
are unrelated to nearly all texts of an index, so a threshold is a quantile of their cosines to these texts.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from polyad.calibration import EmbedderCalibration, get_embedder_calibration
from polyad.errors import StaleSnapshotError
from polyad.model import Entity, FloatArray, IntArray, Passage
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.text.files import read_package_file
from polyad.text.function_words import find_language_evidence

_MIN_PASSAGES, _MAX_PASSAGES, _MAX_NAMES = 20, 1000, 100
"""Passages that are measured, with their hyperedges; with fewer, the embedder's values stand in. Names of entities."""

_ACTIVATION_SHARE, _HYPEREDGE_SHARE, _PASSAGE_SHARE, _NAME_SHARE = 0.011, 0.0003, 0.0018, 0.004
"""Shares of pairs of unrelated texts above the thresholds of all-MiniLM-L6-v2: of everyday questions and hyperedges
above 0.2 (1.27 % on musique, 0.85 % on hotpotqa, 1.21 % on XQuAD) and 0.4, of everyday questions and passages above 0.3
(0.19, 0.17, 0.18 %), and of names and other entities above 0.5 (0.34 and 0.45 % on musique and hotpotqa)."""

_MAX_ACTIVATION_THRESHOLD = 0.99
"""HyperSU divides by the distance of the threshold to 1."""


_MIN_LANGUAGE_SHARE, _MAX_SAMPLE = 0.2, 160
"""Share of the sampled passages from which a language is one of the index, and number of passages in the sample."""


class SimilarityThresholds:
    """The thresholds of an embedder's cosines on an index: measured there, unless the embedder is calibrated.

    Args:
        embedder: The embedder of the index.
        has_entity_vectors: Whether snapshots contain entity vectors, so that the threshold of entities is measured.

    Attributes:
        values: The thresholds; before a measurement those of the embedder or of the papers.
    """

    def __init__(self, embedder: Embedder, *, has_entity_vectors: bool = False) -> None:
        self._embedder = embedder
        self._has_entity_vectors = has_entity_vectors
        self._snapshot: Snapshot | None = None
        self.values = get_embedder_calibration(embedder.name)

    def measure(self, snapshot: Snapshot) -> None:
        """Measure the thresholds on a snapshot of the whole index.

        Nothing is measured for a calibrated embedder, or twice for the same snapshot.

        Equal snapshots have equal thresholds.
        """
        if not self.values.depends_on_index or snapshot is self._snapshot:
            return
        with suppress(StaleSnapshotError):  # a writer deleted a sampled passage; the next search measures
            self.values = self._measure(snapshot)
            self._snapshot = snapshot

    def _measure(self, snapshot: Snapshot) -> EmbedderCalibration:
        defaults = get_embedder_calibration(self._embedder.name)
        generator, row_count = random.Random(snapshot.passage_count), snapshot.row_count("passage")
        rows = np.array(sorted(generator.sample(range(row_count), min(row_count, _MAX_PASSAGES))), dtype=np.int64)
        edges, owners = snapshot.graph.hyperedges(rows)
        passages = rows[np.unique(owners)]  # not deleted
        if len(passages) < _MIN_PASSAGES:
            return defaults
        questions = self._embedder.encode(read_everyday_questions(find_main_languages(snapshot)), "query")
        by_edge, by_passage = (
            snapshot.cosines("hyperedge", edges, questions),
            snapshot.cosines("passage", passages, questions),
        )
        values = replace(
            defaults,
            activation_threshold=min(_find_threshold(by_edge, _ACTIVATION_SHARE), _MAX_ACTIVATION_THRESHOLD),
            hyperedge_threshold=10 * _find_threshold(by_edge, _HYPEREDGE_SHARE),
            passage_threshold=_find_threshold(by_passage, _PASSAGE_SHARE),
        )
        entities = np.unique(snapshot.graph.members(edges)[0])
        if self._has_entity_vectors and len(entities) >= _MIN_PASSAGES:
            sample = np.sort(generator.sample(entities.tolist(), min(len(entities), _MAX_NAMES)))
            values = replace(values, entity_threshold=100 * self._measure_names(snapshot, sample))
        return values

    def _measure_names(self, snapshot: Snapshot, entities: IntArray) -> float:
        """Return the cosine that a name and another entity rarely exceed."""
        with snapshot.read_transaction():
            names = [entity.name for entity in snapshot.get(Entity, entities.tolist())]
        cosines = snapshot.cosines("entity", entities, self._embedder.encode(names, "query"))
        return _find_threshold(cosines[~np.eye(len(names), dtype=bool)], _NAME_SHARE)


def _find_threshold(cosines: FloatArray, share: float) -> float:
    """Return the cosine, at least 0, that a ``share`` of all cosines exceeds."""
    return max(0.0, float(np.quantile(cosines, 1 - share)))


def read_everyday_questions(languages: Sequence[str] = ("en",)) -> list[str]:
    """Return questions about everyday subjects, most of which a typical index does not answer.

    Args:
        languages: ISO 639-1 codes. Of languages without questions, English stands in if no other has any.
    """
    sections = re.split(r"^\[(\w+)\]\n", read_package_file("polyad.retrieval", "everyday_questions.txt"), flags=re.M)
    questions = dict(zip(sections[1::2], sections[2::2], strict=True))
    return [
        question
        for language in [code for code in languages if code in questions] or ["en"]
        for question in questions[language].splitlines()
    ]


def find_main_languages(snapshot: Snapshot) -> list[str]:
    """Return the ISO 639-1 codes of the languages of at least a fifth of an index; English without evidence."""
    texts, _ = _sample_passages(snapshot, random.Random(snapshot.passage_count))
    counts = Counter(find_language_evidence(text) or "en" for text in texts)
    return [code for code, count in counts.most_common() if count >= _MIN_LANGUAGE_SHARE * len(texts)] or ["en"]


def _sample_passages(snapshot: Snapshot, generator: random.Random) -> tuple[list[str], IntArray]:
    """Return the texts and rows of some passages of the index."""
    row_count = snapshot.row_count("passage")
    rows = np.array(generator.sample(range(row_count), min(row_count, _MAX_SAMPLE)), dtype=np.int64)
    rows = rows[np.unique(snapshot.graph.hyperedges(rows)[1])]  # not deleted
    with snapshot.read_transaction():
        return [passage.text for passage in snapshot.get(Passage, rows.tolist())], rows
