"""Semantic-unit hyperedges (HyperSU): sentences grouped into units, each unit joining the entities it mentions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from polyad.calibration import get_embedder_calibration
from polyad.errors import MentionExtractorError
from polyad.indexing.segmentation import (
    CandidateUnits,
    SegmentationSettings,
    Segmenter,
    build_count_matrix,
    build_word_vectors,
)
from polyad.indexing.subjects import NO_SUBJECTS, RULES_VERSION, find_subjects
from polyad.model import (
    NO_VECTOR,
    SUBJECT,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedHyperedge,
    Mention,
    Passage,
    Section,
    Span,
    Usage,
)
from polyad.protocols.components import (
    BuildResult,
    Embedder,
    FindReplies,
    MentionExtractor,
    OnMessage,
    Splitter,
    build_hyperedge_id,
    ignore_message,
    report_failure,
)
from polyad.text.keys import build_labelled_key, find_mention_key
from polyad.text.words import collapse_whitespace

_IDEOGRAPH = re.compile("[\u3040-\u9fff]")

_CALL_PASSAGES = 256
"""Passages whose mentions are extracted in one call; progress is reported between calls."""


@runtime_checkable
class _EstimatingExtractor(Protocol):
    """A mention extractor that calls a language model and can estimate its token usage."""

    def estimate(self, texts: Sequence[str], find_replies: FindReplies, /) -> Usage:
        """Return the estimated token usage of finding names in ``texts``; cached replies are free."""


@dataclass(frozen=True, slots=True)
class _Analysis:
    """A passage with its sentences, its entity mentions and its candidate groups of sentences."""

    passage: Passage
    sentences: list[Span]
    mentions: list[tuple[str, Mention]]
    candidates: CandidateUnits


class SemanticUnitBuilder:
    """Builds hyperedges from semantic units: groups of consecutive sentences about the same entities.

    A hyperedge joins the entities mentioned in its sentences and the passage's subjects (the entities that the passage
    is about).

    The passage's subjects, its title and headings, are members with role ``subject`` of every unit below them: a unit
    that says "It was directed by" is about them, whether or not it repeats the name. An entity that a sentence defines
    is a subject of that sentence's unit (:mod:`polyad.indexing.subjects`).

    Args:
        splitter: Finds sentences.
        extractor: Finds mentions.
        embedder: Embeds sentences if the settings ask for it, and decides the default of ``kappa``.
        settings: The settings of the segmentation.
        prompt_version: Fingerprint of the user's own prompt for the extractor; empty for polyad's prompt.
    """

    def __init__(
        self,
        splitter: Splitter,
        extractor: MentionExtractor,
        embedder: Embedder,
        settings: SegmentationSettings,
        prompt_version: str = "",
    ) -> None:
        self._prompt = f" prompt={prompt_version}" if prompt_version else ""
        self._splitter = splitter
        self._extractor = extractor
        self._embedder = embedder
        if settings.kappa is None and settings.semantics == "embedder":
            settings = replace(settings, kappa=get_embedder_calibration(embedder.name).kappa)
        self._segmenter = Segmenter(settings)
        self._settings = settings

    @property
    def name(self) -> str:
        """Name of the construction method ``semantic-units``, with its settings and the mention extractor."""
        *common, one_entity, join_subject = astuple(self._settings)
        rules = f"{RULES_VERSION if join_subject else 'no-subjects'}{'' if one_entity == 'name' else ' labels'}"
        return f"semantic-units {self._extractor.name}{self._prompt} {rules} {tuple(common)}"

    def build(self, passages: Sequence[Passage], on_message: OnMessage = ignore_message) -> list[BuildResult]:
        """Return the hyperedges of each passage: one for each semantic unit (group of sentences)."""
        results: list[BuildResult] = []
        for start in range(0, len(passages), _CALL_PASSAGES):
            on_message(f"finding names, passage {start + 1:,} of {len(passages):,}")
            part = passages[start : start + _CALL_PASSAGES]
            with report_failure(MentionExtractorError, f"the mention extractor {self._extractor.name!r}"):
                mentions = self._extractor.extract([passage.text for passage in part])
            analyses = [self._analyse(passage, of_passage) for passage, of_passage in zip(part, mentions, strict=True)]
            vectors = self._embed_sentences(analyses)
            results += [BuildResult(self._build_units(*pair)) for pair in zip(analyses, vectors, strict=True)]
        return results

    def estimate(self, passages: Sequence[Passage], find_replies: FindReplies) -> Usage:
        """Return the estimated language model usage of finding names in ``passages``; cached replies are free.

        It is zero if the mention extractor uses no language model.
        """
        if not isinstance(self._extractor, _EstimatingExtractor):
            return Usage()
        return self._extractor.estimate([passage.text for passage in passages], find_replies)

    def _analyse(self, passage: Passage, mentions: Sequence[Mention]) -> _Analysis:
        sentences = self._splitter.sentences(passage.text)
        lengths = [count_unit_words(sentence.of(passage.text)) for sentence in sentences]
        keyed = [(key, mention) for mention in mentions if (key := self._find_key(mention, passage.text))]
        return _Analysis(passage, sentences, keyed, self._segmenter.find_candidates(lengths))

    def _find_key(self, mention: Mention, text: str) -> str:
        key = find_mention_key(mention, text)
        return key if self._settings.one_entity == "name" else build_labelled_key(key, mention.type)

    def _embed_sentences(self, analyses: Sequence[_Analysis]) -> list[FloatArray]:
        """Return one array of sentence vectors per passage; empty if the passage has only one possible division."""
        texts = [
            [sentence.of(analysis.passage.text) for sentence in analysis.sentences]
            if analysis.candidates.only_partition is None
            else []
            for analysis in analyses
        ]
        if self._settings.semantics == "words":
            return [build_word_vectors(sentences) for sentences in texts]
        vectors = self._embedder.encode([text for sentences in texts for text in sentences], "passage")
        bounds = np.cumsum([0, *map(len, texts)]).tolist()
        return [vectors[start:end] for start, end in pairwise(bounds)]

    def _build_units(self, analysis: _Analysis, vectors: FloatArray) -> list[IndexedHyperedge]:
        partition = self._segmenter.choose_partition(analysis.candidates, vectors, _count_mentions(analysis))
        passage, sentences, mentions = analysis.passage, analysis.sentences, analysis.mentions
        subjects = find_subjects(passage, sentences, mentions) if self._settings.join_subject else NO_SUBJECTS
        units = []
        for position, (first, last) in enumerate(partition):
            start, end = sentences[first].start, sentences[last - 1].end
            id = build_hyperedge_id(passage.id, position)
            edge = Hyperedge(id, HyperedgeKind.SEMANTIC_UNIT, passage.text[start:end], passage.id, start, end)
            definitions = [item for item in subjects.definitions if start <= item[1].start < end]
            inside = [item for item in mentions if start <= item[1].start < end]
            sections = subjects.get_sections(Span(start, end))
            units.append(IndexedHyperedge(edge, _build_incidences(id, sections, definitions, inside), NO_VECTOR))
        return units


def count_unit_words(sentence: str) -> int:
    """Return the number of words in a sentence; an ideograph counts as half a word."""
    return len(sentence.split()) + len(_IDEOGRAPH.findall(sentence)) // 2


def _count_mentions(analysis: _Analysis) -> npt.NDArray[np.int64]:
    """Return the number of mentions of each entity in each sentence; shape ``[sentences, entities]``."""
    ends = [sentence.end for sentence in analysis.sentences]
    pairs = [(min(bisect_right(ends, mention.start), len(ends) - 1), key) for key, mention in analysis.mentions]
    return build_count_matrix(pairs, len(ends))


def _build_incidences(
    hyperedge_id: str,
    sections: Sequence[tuple[str, Section]],
    definitions: Sequence[tuple[str, Mention, float]],
    mentions: Sequence[tuple[str, Mention]],
) -> tuple[Incidence, ...]:
    """Return the incidences (memberships of entities) of a hyperedge; topic entities have the role ``subject``.

    Topic entities are those of headings and definitions. Each argument lists pairs or triples that begin with an entity
    key.
    """
    incidences = {
        key: Incidence(key, hyperedge_id, section.name, SUBJECT, strength=section.strength)
        for key, section in reversed(sections)
    }
    for key, mention, strength in definitions:
        name = collapse_whitespace(mention.name)
        incidences.setdefault(key, Incidence(key, hyperedge_id, name, SUBJECT, mention.type, strength=strength))
    for key, mention in mentions:
        if key not in incidences:
            name, role, kind = collapse_whitespace(mention.name), mention.role, mention.type
            incidences[key] = Incidence(key, hyperedge_id, name, role, kind, mention.description, mention.score)
    return tuple(incidences[key] for key in sorted(incidences))
