"""Segmentation into semantic units: sentences grouped by minimum description length, without a language model.

HyperSU, section 4.1 and appendix B. A unit u = (s_i .. s_j) has the reward::

    r(u) = kappa * R_u - Phi(u) - (d_eff - 1) / 2 * log n                                       (eq. 6)
    R_u = || sum of the unit's sentence embeddings ||                                           (semantic channel)
    Phi(u) = N_u * H(pi_u) + (|U_u| - 1) / 2 * log N_u, and 0 when the unit mentions nothing    (entity channel)

with N_u mentions of the ``|U_u|`` distinct entities in the unit, pi_u their distribution and n the passage's sentences.
Dynamic programming finds the partition of the passage with the highest sum of rewards exactly.

The paper embeds sentences with an encoder. By default, their vectors here are counts of words
(:func:`build_word_vectors`): they cost nothing, and units and recall are about the same (docs/adr/0007).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from polyad.calibration import PAPER_VALUES
from polyad.config import NOT_IN_FILE, require, require_idle
from polyad.model import FloatArray, IntArray

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
"""A word, or one ideograph, because ideographs have no white space between them."""

_WORDS_KAPPA = 25.0
"""Semantic reward scale for word vectors: units are as long as with all-MiniLM-L6-v2 and its calibrated scale of 30."""

_BLOCK_SIZE = 1 << 14
"""Candidates whose mentions are counted at once, which limits the memory of the counts."""

Partition = list[tuple[int, int]]
"""Half-open ranges of sentences, in order and disjoint, that cover the whole passage."""


@dataclass(frozen=True, slots=True)
class CandidateUnits:
    """The candidate groups of consecutive sentences in a passage, as arrays of start and end positions.

    Candidate ``c`` has the sentences ``starts[c]`` up to ``ends[c]``.

    They are the units of all admissible partitions. A partition is admissible if no other partition violates the limits
    on a unit's length by fewer words.
    """

    starts: IntArray
    ends: IntArray
    sentences: int

    @property
    def only_partition(self) -> Partition | None:
        """The only possible division of the passage into groups of sentences; None if there are several."""
        if (self.starts[1:] == self.ends[:-1]).all():
            return [(int(a), int(b)) for a, b in zip(self.starts, self.ends, strict=True)]
        return None


class Segmenter:
    """Divides a passage into semantic units (groups of consecutive sentences), by the method in the settings."""

    def __init__(self, settings: SegmentationSettings) -> None:
        self._settings = settings

    def find_candidates(self, lengths: Sequence[int]) -> CandidateUnits:
        """Return the candidate groups of consecutive sentences; ``lengths`` are the sentences' numbers of words."""
        settings = self._settings
        count = len(lengths)
        if settings.method == "sentence":
            return _build_candidates(list(range(count + 1)))
        if settings.method == "window":
            return _build_candidates([*range(0, count, settings.window), count])
        return _find_candidate_groups(np.asarray(lengths, dtype=np.int64), settings.min_words, settings.max_words)

    def choose_partition(
        self, candidates: CandidateUnits, embeddings: FloatArray, mention_counts: npt.NDArray[np.int64]
    ) -> Partition:
        """Return the division of a passage into groups of similar sentences about few different entities.

        The sum of the groups' rewards is highest (HyperSU, equation 6).

        Args:
            candidates: The candidate units from :meth:`find_candidates`.
            embeddings: Sentence vectors of unit length, float32 ``[sentences, dimension]``.
            mention_counts: Number of mentions of each entity in each sentence, ``[sentences, entities]``.
        """
        if candidates.only_partition is not None:
            return candidates.only_partition
        settings = self._settings
        if settings.method == "semantic-chunking":
            return _split_at_distances(embeddings, settings.percentile)
        rewards = np.full(
            len(candidates.starts), -(settings.effective_dimension - 1) / 2 * np.log(candidates.sentences)
        )
        if settings.method != "mdl-no-semantics":
            default = _WORDS_KAPPA if settings.semantics == "words" else PAPER_VALUES.kappa
            kappa = default if settings.kappa is None else settings.kappa
            rewards += kappa * compute_resultant_lengths(candidates, embeddings)
        if settings.method != "mdl-no-entities":
            rewards -= compute_entity_code_lengths(candidates, mention_counts)
        return _find_best_partition(candidates, rewards)


def build_word_vectors(sentences: Sequence[str]) -> FloatArray:
    """Return the word counts of each sentence, scaled to unit length; float32 ``[sentences, words]``.

    >>> (build_word_vectors(["An otter eats fish.", "The otter swims.", "..."]) > 0).sum(axis=1).tolist()
    [4, 3, 0]
    """
    words = [_WORD.findall(sentence.lower()) for sentence in sentences]
    pairs = [(row, word) for row, words_of_sentence in enumerate(words) for word in words_of_sentence]
    counts = build_count_matrix(pairs, len(sentences)).astype(np.float32)
    lengths = np.linalg.norm(counts, axis=1, keepdims=True)
    vectors: FloatArray = counts / np.maximum(lengths, 1e-12)
    return vectors


def build_count_matrix(pairs: Sequence[tuple[int, str]], row_count: int) -> npt.NDArray[np.int64]:
    """Return how often ``pairs`` contains each (row number, text), as a matrix ``[row_count, distinct texts]``.

    >>> build_count_matrix([(0, "fish"), (1, "otter"), (1, "fish"), (1, "otter")], 2).tolist()
    [[1, 0], [1, 2]]
    """
    columns = {text: column for column, text in enumerate(dict.fromkeys(text for _, text in pairs))}
    places = np.array([row * len(columns) + columns[text] for row, text in pairs], dtype=np.int64)
    return np.bincount(places, minlength=row_count * len(columns)).reshape(row_count, len(columns))


def compute_resultant_lengths(candidates: CandidateUnits, embeddings: FloatArray) -> npt.NDArray[np.float64]:
    """Return for each candidate group of sentences the norm of the sum of its ``embeddings``, ``[candidates]``.

    The norm is high for similar sentences. It is R_u in HyperSU.

    Uses ||b - a||^2 = b.b + a.a - 2 a.b, so that no vector is computed for each candidate: there are many more
    candidates than sentences.
    """
    sums = _compute_prefix_sums(embeddings.astype(np.float64))
    products = sums @ sums.T
    squares = products.diagonal()
    starts, ends = candidates.starts, candidates.ends
    lengths: npt.NDArray[np.float64] = np.sqrt(
        np.maximum(squares[ends] + squares[starts] - 2 * products[starts, ends], 0)
    )
    return lengths


def compute_entity_code_lengths(
    candidates: CandidateUnits, mention_counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the description length (MDL) of each candidate sentence group's entity mentions, ``[candidates]``.

    It is low for few different entities (Phi(u) in HyperSU). ``mention_counts`` has a row for each sentence, a column
    for each entity.
    """
    sums = _compute_prefix_sums(mention_counts)
    lengths = np.zeros(len(candidates.starts))
    for first in range(0, len(lengths), _BLOCK_SIZE):  # a passage of many one-word sentences has a million candidates
        part = slice(first, first + _BLOCK_SIZE)
        lengths[part] = _compute_code_lengths(
            (sums[candidates.ends[part]] - sums[candidates.starts[part]]).astype(np.float64)
        )
    return lengths


def _compute_code_lengths(mention_counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the description length (MDL) of each row of ``mention_counts``, ``[sentence groups, entities]``.

    It is Phi in HyperSU.
    """
    total = mention_counts.sum(axis=1)
    distinct = (mention_counts > 0).sum(axis=1)
    log_total = np.log(np.maximum(total, 1))
    data = total * log_total - (mention_counts * np.log(np.maximum(mention_counts, 1))).sum(axis=1)
    lengths: npt.NDArray[np.float64] = np.where(total > 0, data + (distinct - 1) / 2 * log_total, 0.0)
    return lengths


def _compute_prefix_sums(rows: npt.NDArray[np.number]) -> npt.NDArray[np.number]:
    return np.concatenate([np.zeros((1, rows.shape[1]), dtype=rows.dtype), np.cumsum(rows, axis=0)])


def _build_candidates(boundaries: Sequence[int]) -> CandidateUnits:
    bounds = np.asarray(boundaries, dtype=np.int64)
    return CandidateUnits(bounds[:-1], bounds[1:], int(bounds[-1]))


def _find_candidate_groups(sentence_lengths: IntArray, min_words: int, max_words: int) -> CandidateUnits:
    """Return the groups of sentences in all divisions of a passage with the fewest missing and excess words.

    Words are missing below ``min_words`` in a group, or in excess above ``max_words``. ``sentence_lengths`` are the
    sentences' numbers of words.
    """
    offsets = np.concatenate([[0], np.cumsum(sentence_lengths)])
    count = len(sentence_lengths)
    least = np.zeros(count + 1, dtype=np.int64)
    previous: list[IntArray] = []
    for end in range(1, count + 1):
        length = offsets[end] - offsets[:end]
        violation = least[:end] + np.maximum(0, min_words - length) + np.maximum(0, length - max_words)
        least[end] = violation.min()
        previous.append(np.flatnonzero(violation == least[end]))
    # Backwards from the end of the passage, keep only the groups that belong to a complete partition.
    starts: list[int] = []
    ends: list[int] = []
    useful = np.zeros(count + 1, dtype=bool)
    useful[count] = True
    for end in range(count, 0, -1):
        if useful[end]:
            useful[previous[end - 1]] = True
            starts.extend(previous[end - 1][::-1].tolist())
            ends.extend([end] * len(previous[end - 1]))
    small = np.min_scalar_type(count)  # there may be a candidate for each pair of sentences
    return CandidateUnits(np.array(starts[::-1], dtype=small), np.array(ends[::-1], dtype=small), count)


def _find_best_partition(candidates: CandidateUnits, rewards: npt.NDArray[np.float64]) -> Partition:
    """Return the division of a passage into candidate sentence groups with the highest sum of ``rewards``.

    ``rewards`` has one number for each candidate. The algorithm is Bellman's recurrence (eq. 8). Ties prefer the
    longest last group.
    """
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


def _split_at_distances(embeddings: FloatArray, percentile: float) -> Partition:
    """Return the division of a passage where neighbouring sentences' vectors are far apart, above ``percentile``.

    It is a percentile of all distances between neighbours, 0 to 100.
    """
    distances = 1 - (embeddings[1:] * embeddings[:-1]).sum(axis=1)
    cuts = np.flatnonzero(distances > np.percentile(distances, percentile)) + 1
    bounds = [0, *cuts.tolist(), len(embeddings)]
    return list(pairwise(bounds))


Segmentation = Literal["mdl", "mdl-no-entities", "mdl-no-semantics", "sentence", "window", "semantic-chunking"]
Semantics = Literal["words", "embedder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentationSettings:
    """Settings for grouping a passage's sentences into semantic units (HyperSU, section 4.1 and Table 11).

    Attributes:
        method: ``mdl`` is the paper's method; the others are the variants of its Table 11.
        semantics: How similarity of sentences is measured: by their ``words``, which costs nothing, or by the vectors
            of the ``embedder`` as in the paper, which is a third of all embedding.
        kappa: Semantic reward scale. None is the value calibrated for the words or the embedder. The paper's 75 is for
            bge-large, where units average 3 to 6 sentences; lower cosines need a lower scale.
        effective_dimension: d_eff of the complexity term (Table 10: 32).
        min_words: Minimum length of a unit, in words (20).
        max_words: Maximum length of a unit, in words (200).
        window: Sentences of a unit with the method ``window`` (Table 11: 3).
        percentile: With the method ``semantic-chunking``, cut where the distance of neighbours is above this
            percentile, 0 to 100.
        one_entity: Whether mentions with the same ``name`` are one entity, or only mentions with the same
            ``name-and-label``, as in the paper; the label is then part of an entity's key. A title has no label, so
            this value needs ``join_subject = false``.
        join_subject: Whether the title and headings of a passage are members of the units below them, and entities that
            a sentence defines are subjects of its unit. If false, V_u is what the unit mentions (definition 3).
    """

    method: Segmentation = "mdl"
    semantics: Semantics = "words"
    kappa: float | None = None
    effective_dimension: int = field(default=32, metadata=NOT_IN_FILE)
    min_words: int = 20
    max_words: int = 200
    window: int = field(default=3, metadata=NOT_IN_FILE)
    percentile: float = field(default=80.0, metadata=NOT_IN_FILE)
    one_entity: Literal["name", "name-and-label"] = field(default="name", metadata=NOT_IN_FILE)
    join_subject: bool = field(default=True, metadata=NOT_IN_FILE)

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
