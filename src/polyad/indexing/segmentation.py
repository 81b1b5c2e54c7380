"""Semantic units: a passage's sentences grouped by minimum description length, without a language model.

HyperSU, section 4.1 and appendix B. A unit u = (s_i .. s_j) earns::

    r(u) = kappa * R_u - Phi(u) - (d_eff - 1) / 2 * log n                                       (eq. 6)
    R_u = || sum of the unit's sentence embeddings ||                                           (semantic channel)
    Phi(u) = N_u * H(pi_u) + (|U_u| - 1) / 2 * log N_u, and 0 when the unit mentions nothing    (entity channel)

with N_u mentions of the ``|U_u|`` distinct entities in the unit, pi_u their distribution and n the passage's sentences.
The partition of the passage with the highest sum of rewards is found exactly by dynamic programming.

The paper takes the sentences' vectors from an encoder. By default they are counts of words here
(:func:`word_vectors`): that costs nothing, and units and recall are about the same (docs/adr/0007).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from polyad.calibration import PAPER_VALUES
from polyad.config import require, require_idle
from polyad.model import FloatArray, IntArray

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
"""An ideograph is a word by itself, since there is no white space between them."""

_WORDS_KAPPA = 25.0
"""Semantic reward scale for vectors of words: units are as long as with all-MiniLM-L6-v2 and its 30."""

_TOGETHER = 1 << 14
"""Candidates whose mentions are counted at once."""

Partition = list[tuple[int, int]]
"""Half-open ranges of sentences, in order, disjoint, together the whole passage."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The segments that some admissible partition uses: sentences ``starts[c]`` up to ``ends[c]``.

    A partition is admissible when no other has fewer words outside the limits on a unit's length; where the limits
    can be kept, that means it keeps them.
    """

    starts: IntArray
    ends: IntArray
    sentences: int

    @property
    def partition(self) -> Partition | None:
        """The only admissible partition, or None when there is a choice."""
        if (self.starts[1:] == self.ends[:-1]).all():
            return [(int(a), int(b)) for a, b in zip(self.starts, self.ends, strict=True)]
        return None


class Segmenter:
    """Groups the sentences of a passage into units, by the method its settings name."""

    def __init__(self, settings: SegmentationSettings) -> None:
        self._settings = settings

    def candidates(self, words: Sequence[int]) -> Candidates:
        """The segments to choose from, for sentences of the given lengths in words."""
        settings = self._settings
        count = len(words)
        if settings.method == "sentence":
            return _consecutive(list(range(count + 1)))
        if settings.method == "window":
            return _consecutive([*range(0, count, settings.window), count])
        return _admissible(np.asarray(words, dtype=np.int64), settings.min_words, settings.max_words)

    def choose(self, candidates: Candidates, embeddings: FloatArray, counts: npt.NDArray[np.int64]) -> Partition:
        """The best partition.

        Args:
            candidates: From :meth:`candidates`.
            embeddings: Of the sentences, unit length, float32 ``[sentences, dimension]``.
            counts: Mentions of each entity in each sentence, ``[sentences, entities]``.
        """
        only = candidates.partition
        if only is not None:
            return only
        settings = self._settings
        if settings.method == "semantic-chunking":
            return _chunks(embeddings, settings.percentile)
        rewards = np.full(
            len(candidates.starts), -(settings.effective_dimension - 1) / 2 * np.log(candidates.sentences)
        )
        if settings.method != "mdl-no-semantics":
            default = _WORDS_KAPPA if settings.semantics == "words" else PAPER_VALUES.kappa
            kappa = default if settings.kappa is None else settings.kappa
            rewards += kappa * resultant_lengths(candidates, embeddings)
        if settings.method != "mdl-no-entities":
            rewards -= entity_code_lengths(candidates, counts)
        return _best_partition(candidates, rewards)


def word_vectors(sentences: Sequence[str]) -> FloatArray:
    """Counts of each word in each sentence, rows of length 1; float32 ``[sentences, distinct words]``.

    >>> (word_vectors(["An otter eats fish.", "The otter swims.", "..."]) > 0).sum(axis=1).tolist()
    [4, 3, 0]
    """
    words = [_WORD.findall(sentence.lower()) for sentence in sentences]
    pairs = [(row, word) for row, own in enumerate(words) for word in own]
    counts = counted(pairs, len(sentences)).astype(np.float32)
    lengths = np.linalg.norm(counts, axis=1, keepdims=True)
    vectors: FloatArray = counts / np.maximum(lengths, 1e-12)
    return vectors


def counted(pairs: Sequence[tuple[int, str]], rows: int) -> npt.NDArray[np.int64]:
    """How often each row stands with each text; ``[rows, distinct texts]``, texts in the order they come.

    >>> counted([(0, "fish"), (1, "otter"), (1, "fish"), (1, "otter")], 2).tolist()
    [[1, 0], [1, 2]]
    """
    columns = {text: column for column, text in enumerate(dict.fromkeys(text for _, text in pairs))}
    places = np.array([row * len(columns) + columns[text] for row, text in pairs], dtype=np.int64)
    return np.bincount(places, minlength=rows * len(columns)).reshape(rows, len(columns))


def resultant_lengths(candidates: Candidates, embeddings: FloatArray) -> npt.NDArray[np.float64]:
    """R_u of every candidate, from prefix sums; shape ``[candidates]``.

    By ||b - a||^2 = b.b + a.a - 2 a.b, so that no vector is made for each candidate, of which there are many more than
    sentences.
    """
    sums = _prefix_sums(embeddings.astype(np.float64))
    products = sums @ sums.T
    squares = products.diagonal()
    starts, ends = candidates.starts, candidates.ends
    lengths: npt.NDArray[np.float64] = np.sqrt(
        np.maximum(squares[ends] + squares[starts] - 2 * products[starts, ends], 0)
    )
    return lengths


def entity_code_lengths(candidates: Candidates, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Phi(u) of every candidate, from prefix sums; shape ``[candidates]``."""
    sums = _prefix_sums(counts)
    lengths = np.zeros(len(candidates.starts))
    for first in range(0, len(lengths), _TOGETHER):  # a passage of many one-word sentences has a million candidates
        part = slice(first, first + _TOGETHER)
        lengths[part] = _code_lengths((sums[candidates.ends[part]] - sums[candidates.starts[part]]).astype(np.float64))
    return lengths


def _code_lengths(mentions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Phi of units by their mentions of each entity, ``[units, entities]``."""
    total = mentions.sum(axis=1)
    distinct = (mentions > 0).sum(axis=1)
    log_total = np.log(np.maximum(total, 1))
    data = total * log_total - (mentions * np.log(np.maximum(mentions, 1))).sum(axis=1)
    lengths: npt.NDArray[np.float64] = np.where(total > 0, data + (distinct - 1) / 2 * log_total, 0.0)
    return lengths


def _prefix_sums(rows: npt.NDArray[np.number]) -> npt.NDArray[np.number]:
    return np.concatenate([np.zeros((1, rows.shape[1]), dtype=rows.dtype), np.cumsum(rows, axis=0)])


def _consecutive(boundaries: Sequence[int]) -> Candidates:
    bounds = np.asarray(boundaries, dtype=np.int64)
    return Candidates(bounds[:-1], bounds[1:], int(bounds[-1]))


def _admissible(words: IntArray, fewest: int, most: int) -> Candidates:
    """The segments that partitions with the least violation of the limits on words are made of."""
    ends_at = np.concatenate([[0], np.cumsum(words)])
    count = len(words)
    least = np.zeros(count + 1, dtype=np.int64)
    previous: list[IntArray] = []
    for end in range(1, count + 1):
        length = ends_at[end] - ends_at[:end]
        violation = least[:end] + np.maximum(0, fewest - length) + np.maximum(0, length - most)
        least[end] = violation.min()
        previous.append(np.flatnonzero(violation == least[end]))
    # Backwards from the end of the passage, keep what a complete partition can still use.
    starts: list[int] = []
    ends: list[int] = []
    useful = np.zeros(count + 1, dtype=bool)
    useful[count] = True
    for end in range(count, 0, -1):
        if useful[end]:
            useful[previous[end - 1]] = True
            starts.extend(previous[end - 1][::-1].tolist())
            ends.extend([end] * len(previous[end - 1]))
    return Candidates(np.array(starts[::-1], dtype=np.int64), np.array(ends[::-1], dtype=np.int64), count)


def _best_partition(candidates: Candidates, rewards: npt.NDArray[np.float64]) -> Partition:
    """Bellman's recurrence over prefixes (eq. 8); among equals the longest last unit."""
    best = np.full(candidates.sentences + 1, -np.inf)
    best[0] = 0.0
    parent = [0] * (candidates.sentences + 1)
    for start, end, reward in zip(
        candidates.starts.tolist(), candidates.ends.tolist(), rewards.tolist(), strict=True
    ):  # sorted by end, so best[start] is final
        if best[start] + reward > best[end]:
            best[end] = best[start] + reward
            parent[end] = start
    partition: Partition = []
    end = candidates.sentences
    while end > 0:
        partition.append((parent[end], end))
        end = parent[end]
    return partition[::-1]


def _chunks(embeddings: FloatArray, percentile: float) -> Partition:
    """Cut between neighbours that are further apart than most neighbours of this passage."""
    distances = 1 - (embeddings[1:] * embeddings[:-1]).sum(axis=1)
    cuts = np.flatnonzero(distances > np.percentile(distances, percentile)) + 1
    bounds = [0, *cuts.tolist(), len(embeddings)]
    return list(pairwise(bounds))


Segmentation = Literal["mdl", "mdl-no-entities", "mdl-no-semantics", "sentence", "window", "semantic-chunking"]
Semantics = Literal["words", "embedder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentationSettings:
    """How a passage's sentences are grouped into semantic units (HyperSU, section 4.1 and Table 11).

    Attributes:
        method: ``mdl`` is the paper's; the others are its Table 11.
        semantics: How alike sentences are: by their ``words``, which costs nothing, or by the ``embedder``'s vectors of
            each sentence, as in the paper, which is a third of all that is embedded.
        kappa: Semantic reward scale. None takes what suits the words or the embedder: the paper's 75 is for bge-large,
            where units average 3 to 6 sentences; with lower cosines it cuts almost each of them apart.
        effective_dimension: d_eff of the complexity term (Table 10: 32).
        min_words: Shortest unit, in words (20).
        max_words: Longest unit, in words (200).
        window: Sentences in a unit of method ``window`` (Table 11: 3).
        percentile: For ``semantic-chunking``: cut where the distance of neighbours is above this percentile, 0-100.
        one_entity: What makes mentions one entity: the normalised ``name``; or ``name-and-label`` as in the paper, for
            an extractor that tells Washington the person from the place. Its label is then part of an entity's key;
            a title has none, so this goes with ``join_subject = false``.
        join_subject: Whether what a unit stands under, the title and headings of its passage, is a member of it, and
            what its sentences define is marked as its subject. Off, V_u is what appears in the unit (definition 3).
    """

    method: Segmentation = "mdl"
    semantics: Semantics = "words"
    kappa: float | None = None
    effective_dimension: int = 32
    min_words: int = 20
    max_words: int = 200
    window: int = 3
    percentile: float = 80.0
    one_entity: Literal["name", "name-and-label"] = "name"
    join_subject: bool = True

    def __post_init__(self) -> None:
        require(self.method in get_args(Segmentation), "method", self.method, f"one of {get_args(Segmentation)}")
        require(self.semantics in get_args(Semantics), "semantics", self.semantics, f"one of {get_args(Semantics)}")
        require(self.kappa is None or self.kappa >= 0, "kappa", self.kappa, "0 or more")
        require(self.effective_dimension >= 1, "effective_dimension", self.effective_dimension, "1 or more")
        require(self.min_words >= 0, "min_words", self.min_words, "0 or more")
        require(
            self.max_words >= max(1, self.min_words),
            "max_words",
            self.max_words,
            f"min_words ({self.min_words}) or more",
        )
        one_entity = ("name", "name-and-label")
        require(self.one_entity in one_entity, "one_entity", self.one_entity, " or ".join(one_entity))
        if self.join_subject:
            require_idle(self, ["one_entity"], "join_subject = false: a title has no label to be joined by")
        require(self.window >= 1, "window", self.window, "1 or more")
        require(0 <= self.percentile <= 100, "percentile", self.percentile, "0 to 100")
        for key, method in (("window", "window"), ("percentile", "semantic-chunking")):
            if self.method != method:
                require_idle(self, [key], f'method = "{method}"')
