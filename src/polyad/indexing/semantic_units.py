"""Semantic-unit hyperedges (HyperSU): sentences grouped into units, each unit joining the entities it mentions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from polyad.calibration import get_embedder_calibration
from polyad.indexing.builders import BuildResult, DraftHyperedge, OnMessage, build_hyperedge_id, ignore_message
from polyad.indexing.segmentation import Candidates, SegmentationSettings, Segmenter, counted, word_vectors
from polyad.indexing.subjects import NO_SUBJECTS, RULES, subjects
from polyad.model import (
    SUBJECT,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    Mention,
    Passage,
    Section,
    Span,
    Usage,
)
from polyad.protocols.components import Embedder, MentionExtractor, Prompt, Splitter
from polyad.text.keys import labelled_key, mention_key

_IDEOGRAPH = re.compile("[\u3040-\u9fff]")

_TOGETHER = 256
"""Passages whose names are found at once; between two of these there is a word of how far it is."""


@runtime_checkable
class _Estimating(Protocol):
    """A mention extractor that asks a language model."""

    def estimate(self, texts: Sequence[str], known: Callable[[Sequence[Prompt]], list[str | None]], /) -> Usage:
        """What finding the names in some texts is likely to cost."""


@dataclass(frozen=True, slots=True)
class _Analysis:
    """A passage on its way to units: its sentences, its mentions by key, the segments to choose from."""

    passage: Passage
    sentences: list[Span]
    mentions: list[tuple[str, Mention]]
    candidates: Candidates


class SemanticUnitBuilder:
    """Builds one hyperedge for each semantic unit, over the entities mentioned in it and the passage's subject.

    The passage's subjects, its title and headings if it has any, are members with role ``subject`` of every unit that
    stands under them: one that says "It was directed by" is about them, whether or not it repeats the name. What a
    sentence defines is a subject of that sentence's unit (:mod:`polyad.indexing.subjects`).

    Args:
        splitter: Finds sentences.
        extractor: Finds names.
        embedder: Tells which sentences belong together.
        settings: Of the segmentation.
        prompt: What tells the extractor's instructions apart, where these are not the usual ones.
    """

    def __init__(
        self,
        splitter: Splitter,
        extractor: MentionExtractor,
        embedder: Embedder,
        settings: SegmentationSettings,
        prompt: str = "",
    ) -> None:
        self._prompt = f" prompt={prompt}" if prompt else ""
        self._splitter = splitter
        self._extractor = extractor
        self._embedder = embedder
        if settings.kappa is None and settings.semantics == "embedder":
            settings = replace(settings, kappa=get_embedder_calibration(embedder.name).kappa)
        self._segmenter = Segmenter(settings)
        self._settings = settings

    @property
    def name(self) -> str:
        """The method, its settings, and the extractor's name and prompt."""
        *common, one_entity, joins = astuple(self._settings)
        rules = f"{RULES if joins else 'no-subjects'}{'' if one_entity == 'name' else ' labels'}"
        return f"semantic-units {self._extractor.name}{self._prompt} {rules} {tuple(common)}"

    def build(
        self,
        passages: Sequence[Passage],
        on_message: OnMessage = ignore_message,
    ) -> list[BuildResult]:
        """The units of each passage."""
        built: list[BuildResult] = []
        for start in range(0, len(passages), _TOGETHER):
            on_message(f"finding names, passage {start + 1:,} of {len(passages):,}")
            built += self._built(passages[start : start + _TOGETHER])
        return built

    def _built(self, passages: Sequence[Passage]) -> list[BuildResult]:
        mentions = self._extractor.extract([passage.text for passage in passages])
        analyses = [self._analyse(passage, found) for passage, found in zip(passages, mentions, strict=True)]
        vectors = self._sentence_vectors(analyses)
        return [BuildResult(self._units(analysis, own)) for analysis, own in zip(analyses, vectors, strict=True)]

    def estimate(self, passages: Sequence[Passage], known: Callable[[Sequence[Prompt]], list[str | None]]) -> Usage:
        """What finding names takes; nothing, where no language model is asked."""
        if not isinstance(self._extractor, _Estimating):
            return Usage()
        return self._extractor.estimate([passage.text for passage in passages], known)

    def _analyse(self, passage: Passage, mentions: Sequence[Mention]) -> _Analysis:
        sentences = self._splitter.sentences(passage.text)
        words = [count_words(sentence.of(passage.text)) for sentence in sentences]
        keyed = [(key, mention) for mention in mentions if (key := self._key(mention, passage.text))]
        return _Analysis(passage, sentences, keyed, self._segmenter.candidates(words))

    def _key(self, mention: Mention, text: str) -> str:
        key = mention_key(mention, text)
        return key if self._settings.one_entity == "name" else labelled_key(key, mention.type)

    def _sentence_vectors(self, analyses: Sequence[_Analysis]) -> list[FloatArray]:
        """Of each passage that has a choice to make; of the others nothing is embedded."""
        texts = [
            [sentence.of(analysis.passage.text) for sentence in analysis.sentences]
            if analysis.candidates.partition is None
            else []
            for analysis in analyses
        ]
        if self._settings.semantics == "words":
            return [word_vectors(own) for own in texts]
        vectors = self._embedder.encode([text for own in texts for text in own], "passage")
        bounds = np.cumsum([0, *map(len, texts)]).tolist()
        return [vectors[start:end] for start, end in pairwise(bounds)]

    def _units(self, analysis: _Analysis, embeddings: FloatArray) -> list[DraftHyperedge]:
        partition = self._segmenter.choose(analysis.candidates, embeddings, _mention_counts(analysis))
        passage = analysis.passage
        joins = self._settings.join_subject
        about = subjects(passage, analysis.sentences, analysis.mentions) if joins else NO_SUBJECTS
        units = []
        for position, (first, last) in enumerate(partition):
            start, end = analysis.sentences[first].start, analysis.sentences[last - 1].end
            id = build_hyperedge_id(passage.id, position)
            edge = Hyperedge(id, HyperedgeKind.SEMANTIC_UNIT, passage.text[start:end], passage.id, start, end)
            defined = [item for item in about.defined if start <= item[1].start < end]
            mentions = [item for item in analysis.mentions if start <= item[1].start < end]
            units.append(DraftHyperedge(edge, _incidences(id, about.of(Span(start, end)), defined, mentions)))
        return units


def count_words(sentence: str) -> int:
    """Words as the limits on a unit count them: runs between white space; an ideograph counts as half a word."""
    return len(sentence.split()) + len(_IDEOGRAPH.findall(sentence)) // 2


def _mention_counts(analysis: _Analysis) -> npt.NDArray[np.int64]:
    """Mentions of each entity in each sentence, ``[sentences, entities]``."""
    ends = [sentence.end for sentence in analysis.sentences]
    pairs = [(min(bisect_right(ends, mention.start), len(ends) - 1), key) for key, mention in analysis.mentions]
    return counted(pairs, len(ends))


def _incidences(
    hyperedge_id: str,
    subjects: Sequence[tuple[str, Section]],
    defined: Sequence[tuple[str, Mention, float]],
    mentions: Sequence[tuple[str, Mention]],
) -> tuple[Incidence, ...]:
    """One incidence an entity: what the unit is about, what it defines, then each mention when it first occurs."""
    found = {
        key: Incidence(key, hyperedge_id, section.name, SUBJECT, strength=section.strength)
        for key, section in reversed(subjects)
    }
    for key, mention, strength in defined:
        name = _on_one_line(mention.name)
        found.setdefault(key, Incidence(key, hyperedge_id, name, SUBJECT, mention.type, strength=strength))
    for key, mention in mentions:
        if key not in found:
            found[key] = Incidence(
                key,
                hyperedge_id,
                _on_one_line(mention.name),
                mention.role,
                mention.type,
                mention.description,
                mention.score,
            )
    return tuple(found[key] for key in sorted(found))


def _on_one_line(name: str) -> str:
    return " ".join(name.split())
