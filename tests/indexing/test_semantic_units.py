from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import get_args

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polyad.indexing import segmentation
from polyad.indexing.segmentation import (
    CandidateUnits,
    Partition,
    Segmentation,
    SegmentationSettings,
    Segmenter,
    build_word_vectors,
    compute_entity_code_lengths,
    compute_resultant_lengths,
)
from polyad.model import FloatArray
from tests.examples import count_examples

Counts = npt.NDArray[np.int64]


def every_partition(count: int) -> Iterator[Partition]:
    """All ways to cut ``count`` sentences into consecutive units, one bit for each gap."""
    for cuts in range(2 ** max(0, count - 1)):
        bounds = [0, *(gap for gap in range(1, count) if cuts >> (gap - 1) & 1), count]
        yield list(pairwise(bounds)) if count else []


def code_length(mentions: Sequence[int]) -> float:
    """Phi(u) as equation 1 states it: N * H(pi) + (|U| - 1) / 2 * log N."""
    total = sum(mentions)
    if total == 0:
        return 0.0
    entropy = -sum(m / total * math.log(m / total) for m in mentions if m)
    return total * entropy + (sum(m > 0 for m in mentions) - 1) / 2 * math.log(total)


def reward(unit: tuple[int, int], embeddings: FloatArray, counts: Counts, selection: SegmentationSettings) -> float:
    """r(u) of equation 6, by the definition."""
    start, end = unit
    resultant = math.dist(embeddings[start:end].astype(float).sum(axis=0), np.zeros(embeddings.shape[1]))
    mentions = [int(sum(column)) for column in zip(*counts[start:end].tolist(), strict=True)]
    complexity = (selection.effective_dimension - 1) / 2 * math.log(len(embeddings))
    semantic = 0.0 if selection.method == "mdl-no-semantics" else (selection.kappa or 0.0) * resultant
    entities = 0.0 if selection.method == "mdl-no-entities" else code_length(mentions)
    return semantic - entities - complexity


def violation(partition: Partition, words: Sequence[int], selection: SegmentationSettings) -> int:
    """Words missing or in excess, summed over the units."""
    lengths = [sum(words[start:end]) for start, end in partition]
    return sum(max(0, selection.min_words - length, length - selection.max_words) for length in lengths)


def random_passage(seed: int, count: int, entities: int = 4) -> tuple[FloatArray, Counts]:
    generator = np.random.default_rng(seed)
    topic = generator.normal(size=5)
    vectors = generator.normal(size=(count, 5)) + topic * generator.uniform(0, 2)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), generator.poisson(0.7, size=(count, entities)).astype(np.int64)


def segment(words: Sequence[int], embeddings: FloatArray, counts: Counts, selection: SegmentationSettings) -> Partition:
    segmenter = Segmenter(selection)
    return segmenter.choose_partition(segmenter.find_candidates(words), embeddings, counts)


def all_candidates(count: int) -> CandidateUnits:
    pairs = [(start, end) for end in range(1, count + 1) for start in range(end)]
    starts, ends = np.array(pairs, dtype=np.int64).T
    return CandidateUnits(starts, ends, count)


def unit_vectors(degrees: Sequence[float]) -> FloatArray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


METHODS = st.sampled_from(["mdl", "mdl-no-entities", "mdl-no-semantics"])


@settings(max_examples=count_examples(120), deadline=None)
@given(
    words=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    limits=st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted),
    kappa=st.sampled_from([0.0, 3.0, 12.0, 75.0]),
    method=METHODS,
    seed=st.integers(0, 2**32 - 1),
)
@example(words=[5] * 12, limits=[20, 30], kappa=75.0, method="mdl", seed=1)
@example(words=[500, 3, 500], limits=[20, 50], kappa=75.0, method="mdl", seed=1)
def test_dynamic_programme_finds_the_best_of_all_partitions_with_the_least_violation(
    words: list[int], limits: list[int], kappa: float, method: Segmentation, seed: int
) -> None:
    selection = SegmentationSettings(
        method=method, kappa=kappa, effective_dimension=8, min_words=limits[0], max_words=max(1, limits[1])
    )
    embeddings, counts = random_passage(seed, len(words))
    partitions = list(every_partition(len(words)))
    least = min(violation(partition, words, selection) for partition in partitions)
    rewards = {
        unit: reward(unit, embeddings, counts, selection) for unit in {unit for whole in partitions for unit in whole}
    }
    best = max(
        math.fsum(rewards[unit] for unit in partition)
        for partition in partitions
        if violation(partition, words, selection) == least
    )

    results = segment(words, embeddings, counts, selection)

    assert results in partitions
    assert violation(results, words, selection) == least
    assert math.fsum(rewards[unit] for unit in results) == pytest.approx(best, abs=1e-6)


def test_limits_that_cannot_be_kept_cost_as_few_words_as_possible_before_any_reward() -> None:
    selection = SegmentationSettings(min_words=20, max_words=30)
    embeddings = unit_vectors([0, 0, 0])

    # 25 | 25 | 4 misses 16 words and 25 | 29 none, however much alike the sentences are.
    assert segment([25, 25, 4], embeddings, np.zeros((3, 0), dtype=np.int64), selection) == [(0, 1), (1, 3)]
    # 4 | 90 misses 16 and exceeds by 60; 94 exceeds by 64.
    assert segment([4, 90], unit_vectors([0, 180]), np.zeros((2, 0), dtype=np.int64), selection) == [(0, 2)]


def test_units_within_the_limits_are_left_to_the_reward() -> None:
    selection = SegmentationSettings(min_words=20, max_words=200, kappa=75.0, effective_dimension=32)
    nothing = np.zeros((4, 0), dtype=np.int64)

    # kappa * R of two opposite halves is 75 * (2 + 2) apart and 0 together; a cut costs 15.5 * log 4 = 21.5.
    assert segment([30] * 4, unit_vectors([0, 0, 180, 180]), nothing, selection) == [(0, 2), (2, 4)]
    assert segment([30] * 4, unit_vectors([0, 0, 0, 0]), nothing, selection) == [(0, 4)]


def test_entity_channel_separates_what_mentions_different_entities() -> None:
    embeddings = unit_vectors([0, 0, 0, 0])
    focused: Counts = np.array([[3, 0], [3, 0], [0, 3], [0, 3]], dtype=np.int64)
    selection = SegmentationSettings(min_words=0, kappa=0.0, effective_dimension=2)

    # Apart: two complexities of 0.5 * log 4 = 1.386. Together: 12 * log 2 + 0.5 * log 12 + 0.693 = 10.25.
    assert segment([30] * 4, embeddings, focused, selection) == [(0, 2), (2, 4)]
    blind = SegmentationSettings(min_words=0, kappa=0.0, effective_dimension=2, method="mdl-no-entities")
    assert segment([30] * 4, embeddings, focused, blind) == [(0, 4)]


def test_semantic_channel_is_what_its_ablation_leaves_out() -> None:
    opposite = unit_vectors([0, 0, 180, 180])
    same: Counts = np.ones((4, 1), dtype=np.int64)

    assert segment([30] * 4, opposite, same, SegmentationSettings()) == [(0, 2), (2, 4)]
    assert segment([30] * 4, opposite, same, SegmentationSettings(method="mdl-no-semantics")) == [(0, 4)]


def test_code_length_of_a_hand_computed_unit() -> None:
    # Mentions a a b in one unit: N = 3, H = log 3 - 2/3 log 2, |U| = 2.
    counts: Counts = np.array([[1, 0], [1, 1], [0, 0]], dtype=np.int64)
    lengths = dict(
        zip(
            [(a, b) for b in range(1, 4) for a in range(b)],
            compute_entity_code_lengths(all_candidates(3), counts),
            strict=True,
        )
    )

    assert lengths[0, 2] == pytest.approx(3 * math.log(3) - 2 * math.log(2) + 0.5 * math.log(3))
    assert lengths[0, 2] == pytest.approx(2.4588, abs=1e-4)
    assert lengths[1, 2] == pytest.approx(2 * math.log(2) + 0.5 * math.log(2))
    assert lengths[0, 1] == 0.0  # one entity, mentioned once: log 1
    assert lengths[2, 3] == 0.0  # nothing is mentioned
    assert lengths[0, 3] == lengths[0, 2]


def test_resultant_length_of_a_hand_computed_unit() -> None:
    lengths = compute_resultant_lengths(all_candidates(2), unit_vectors([0, 90]))
    assert lengths.tolist() == pytest.approx([1.0, math.sqrt(2), 1.0])


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, [(0, 1)]), (3, [(0, 3)]), (4, [(0, 3), (3, 4)]), (7, [(0, 3), (3, 6), (6, 7)])],
)
def test_windows_hold_three_sentences_and_the_last_the_rest(count: int, expected: Partition) -> None:
    embeddings, counts = random_passage(0, count)
    assert segment([500] * count, embeddings, counts, SegmentationSettings(method="window")) == expected


def test_sentence_method_makes_a_unit_of_each_whatever_its_length() -> None:
    embeddings, counts = random_passage(0, 3)
    selection = SegmentationSettings(method="sentence")
    assert segment([1, 900, 1], embeddings, counts, selection) == [(0, 1), (1, 2), (2, 3)]


def test_semantic_chunking_cuts_where_neighbours_are_furthest_apart() -> None:
    embeddings = unit_vectors([0, 2, 4, 90, 92])
    selection = SegmentationSettings(method="semantic-chunking", min_words=0)
    assert segment([30] * 5, embeddings, np.zeros((5, 0), dtype=np.int64), selection) == [(0, 3), (3, 5)]


@settings(max_examples=count_examples(200), deadline=None)
@given(
    words=st.lists(st.integers(0, 10_000), max_size=40),
    limits=st.tuples(st.integers(0, 300), st.integers(0, 300)).map(sorted),
    method=st.sampled_from(get_args(Segmentation)),
    mentioned=st.integers(0, 3),
)
def test_every_method_covers_every_sentence_once_whatever_the_words_and_limits(
    words: list[int], limits: list[int], method: Segmentation, mentioned: int
) -> None:
    selection = SegmentationSettings(method=method, min_words=limits[0], max_words=max(1, limits[1]))
    embeddings, counts = random_passage(len(words), len(words), mentioned)

    results = segment(words, embeddings, counts, selection)

    covered = Counter(sentence for start, end in results for sentence in range(start, end))
    assert covered == Counter(range(len(words)))
    assert results == sorted(results)
    assert all(start < end for start, end in results)


def test_no_candidate_is_offered_that_no_admissible_partition_uses() -> None:
    # 20 + 20 + 20 with units of 40 to 60 words: only the whole passage keeps the limits.
    segmenter = Segmenter(SegmentationSettings(min_words=40, max_words=60))
    assert segmenter.find_candidates([20, 20, 20]).only_partition == [(0, 3)]
    assert segmenter.find_candidates([40, 40]).only_partition == [(0, 1), (1, 2)]
    assert segmenter.find_candidates([30, 30, 30, 30]).only_partition == [(0, 2), (2, 4)]
    assert segmenter.find_candidates([20, 20, 20, 20, 20]).only_partition is None  # 40 | 60 or 60 | 40


def test_sentences_that_share_words_are_alike_whatever_their_case_and_script() -> None:
    vectors = build_word_vectors(
        ["The otter eats fish.", "FISH: the otter eats!", "Bronze bells ring", "东京塔", "塔", "--"]
    )
    cosines = vectors @ vectors.T
    assert cosines[0, 1] == pytest.approx(1)
    assert cosines[0, 2] == 0
    assert cosines[3, 4] == pytest.approx(1 / math.sqrt(3))
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([1, 1, 1, 1, 1, 0])


def test_sentences_without_any_words_have_vectors_of_no_numbers() -> None:
    assert build_word_vectors(["...", "--"]).shape == (2, 0)


def test_many_candidates_have_the_code_lengths_that_few_have(monkeypatch: pytest.MonkeyPatch) -> None:
    _, counts = random_passage(3, 12)
    candidates = all_candidates(12)
    together = compute_entity_code_lengths(candidates, counts)
    monkeypatch.setattr(segmentation, "_BLOCK_SIZE", 5)
    assert compute_entity_code_lengths(candidates, counts).tobytes() == together.tobytes()
