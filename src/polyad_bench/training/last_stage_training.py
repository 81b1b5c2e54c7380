"""Training of the last ranking stage of the default retriever, on questions of every kind.

Besides questions of benchmarks it learns from known items, which any index yields: words of a passage that no or few
other passages contain together, as people type them who know what they look for.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from polyad.engine import Engine
from polyad.model import Passage
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.encoder_trust import EncoderTrust
from polyad.retrieval.default.last_stage import WordMatch
from polyad.retrieval.default.ranking_network import RankingNetwork
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.second_stage import rank_by_links
from polyad.retrieval.default.signals import SignalExtractor
from polyad.retrieval.question import QuestionLinker
from polyad.text.words import extract_search_terms
from polyad_bench.training.linear_scorer import TrainingExample, extract_signals
from polyad_bench.training.network_training import LAST_STAGE, fit_network

KNOWN_ITEMS = 120
"""Known items of an index that is trained on."""

KNOWN_ITEMS_WEIGHT = 0.3
"""Weight of the known items of an index in training, beside its questions."""

_WORD = re.compile(r"[\w.,/-]*\w")
_MAX_WORDS = 3
_MAX_GOLD = 3
"""Most passages that contain all words of a known item."""

_TRIES = 12
_SEARCHED = 100


class KnownItem(NamedTuple):
    """Words that few passages contain together.

    Attributes:
        question: The words, in the order of the text.
        passages: Ids of all passages that contain them.
    """

    question: str
    passages: Sequence[str]


def generate_known_items(snapshot: Snapshot, count: int, seed: int) -> Iterator[KnownItem]:
    """Yield up to ``count`` known items of an index: one to three words of a passage, adjacent or not."""
    generator = random.Random(seed)
    row_count = snapshot.row_count("passage")
    rows = generator.sample(range(row_count), min(row_count, 3 * count))
    with snapshot.read_transaction():
        texts = [passage.text for passage in snapshot.get(Passage, rows)]
    items = (
        item for row, text in zip(rows, texts, strict=True) if (item := _find_item(row, text, snapshot, generator))
    )
    for _, item in zip(range(count), items, strict=False):
        yield item


def _find_item(row: int, text: str, snapshot: Snapshot, generator: random.Random) -> KnownItem | None:
    """Return words of the passage ``row`` that few passages contain together; None if no words are found."""
    words = _WORD.findall(text)
    size = generator.choice([1, 1, 1, 2, 2, _MAX_WORDS])
    for _ in range(_TRIES if len(words) > size else 0):
        start = generator.randrange(len(words) - size)
        places = list(range(start, start + size))
        if generator.random() < 1 / _MAX_WORDS:
            places = sorted(generator.sample(range(len(words)), size))
        question = " ".join(words[place] for place in places)
        terms = extract_search_terms(question, snapshot.infer_language(question))
        if not terms or not snapshot.document_frequencies(terms).all():
            continue
        similar = np.sort(snapshot.search_terms(question, _SEARCHED)[0])
        gold = similar[snapshot.contains_terms(terms, similar).all(axis=1)]
        if row in gold and len(gold) <= _MAX_GOLD:
            return KnownItem(question, snapshot.ids("passage", gold.tolist()))
    return None


def build_known_items(engine: Engine, count: int, seed: int) -> list[TrainingExample]:
    """Return known items of an index as examples of the first stage, whose evidence are passages."""
    items = list(generate_known_items(engine.snapshot(), count, seed))
    examples = []
    for item, candidates in zip(items, extract_signals(engine, [item.question for item in items]), strict=True):
        holds = np.array([[passage == gold for gold in item.passages] for passage in candidates.passages], dtype=bool)
        holds = holds.reshape(-1, len(item.passages))
        examples.append(TrainingExample(candidates.signals, holds, candidates.linkability, (), item.question))
    return examples


def train_last_stage(
    engines: Mapping[str, Engine], examples: Mapping[str, Sequence[TrainingExample]], scorer: LinearScorer, seed: int
) -> RankingNetwork:
    """Return the network of the last stage, trained on the questions and the known items of several indexes.

    Args:
        engines: Engine of each index.
        examples: Examples of the first stage, by the same names.
        scorer: The stages before.
        seed: Random seed.
    """
    questions = [weigh_examples(engine, examples[name], scorer) for name, engine in engines.items()]
    items = [
        weigh_examples(engine, build_known_items(engine, KNOWN_ITEMS, seed), scorer) for engine in engines.values()
    ]
    weights = [1.0] * len(questions) + [KNOWN_ITEMS_WEIGHT] * len(items)
    return fit_network([*questions, *items], seed, LAST_STAGE, weights)


def weigh_examples(
    engine: Engine, examples: Sequence[TrainingExample], scorer: LinearScorer, trust: EncoderTrust | None = None
) -> list[TrainingExample]:
    """Return examples of the compared candidates, with the features of the last stage as signals.

    Args:
        engine: Engine of the index.
        examples: Examples with texts, from :func:`polyad_bench.training.linear_scorer.extract_signals`.
        scorer: The stages before; with a network.
        trust: Trust in the encoder; by default full.
    """
    snapshot, components = engine.snapshot(), engine.components
    linker = QuestionLinker(components.extractor)
    extractor = SignalExtractor(snapshot, components.embedder, linker, trust or EncoderTrust())
    assert scorer.network
    weighed = []
    for example in examples:
        inputs = extractor.compute_inputs(example.text)
        ranking = rank_by_links(inputs, example.signals, example.compute_scores(scorer), scorer.network, snapshot)
        features = WordMatch.from_inputs(inputs, snapshot).compute_features(ranking)
        weighed.append(example.select(ranking.best, features))
    return weighed
