"""The preset ``hypersu`` against the published formulas, computed here once more from texts and vectors alone."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from polyad.config import SplitSettings
from polyad.engine import Engine, build_preset_settings
from polyad.engine.changes import change_settings
from polyad.engine.settings import Settings
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.indexing.split import SentenceSplitter
from polyad.model import Document, Evidence, Passage
from polyad.protocols.components import Embedder
from polyad.text.keys import find_mention_key

DOCUMENTS = (
    Document(
        "bell",
        "Bell of Tarn",
        "The great bronze bell was cast by Ines Moreau in the spring of 1702, after two earlier attempts had failed. "
        "It hangs in Corven Tower, which stands in the village of Aldby, and is rung on the eve of every harvest. "
        "The rope of the bell was woven by Tomas Ferrand from the hemp that grows along the lower banks of the Isk. "
        "Visitors to Aldby may climb the stairs on Sundays, when the Marrow Valley Trust opens the doors to everyone. "
        "Nobody knows for certain why the bell has a crack, although Ines Moreau wrote of a cold winter in her diary.",
    ),
    Document(
        "moreau",
        "Ines Moreau",
        "Ines Moreau was born in Lode Bridge and learnt to cast bronze from her uncle, who made cannons for the crown. "
        "After the war she moved to Aldby, where she cast three bells, of which the largest still hangs in the tower. "
        "Her brother Tomas Ferrand sold ginger beer at Ottermere, and left his fortune to the Marrow Valley Trust.",
    ),
    Document(
        "tower",
        "Corven Tower",
        "Corven Tower is built of red granite that was quarried near Ottermere and brought down the Isk on flat boats. "
        "Its stairs have two hundred and fourteen steps, and swifts nest under the roof from May until late in August.",
    ),
    Document(
        "otter",
        "Otters",
        "An otter eats fish and crabs, and closes its ears and nostrils when it dives below the surface of the water. "
        "The otters of the Isk sleep in holts under the roots of old alders, and rarely travel far from the river.",
    ),
)
QUESTION = "Where was Ines Moreau, who cast the bell that hangs in Corven Tower, born?"
KAPPA, D_EFF, SHORTEST, LONGEST = 75.0, 32, 20, 200
DELTA, FORWARD, BACKWARD, WIDTH, BETA, MU, UNITS = 0.5, 4, 2, 30, 0.5, 2.0, 3


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Engine]:
    with Engine.open(tmp_path_factory.mktemp("hypersu") / "kb", embedder=embedder, preset="hypersu") as opened:
        opened.index_documents(DOCUMENTS)
        yield opened


def mentions_of(document: Document) -> list[tuple[int, str]]:
    """Start, and normalised name with label, of each mention."""
    (mentions,) = RuleMentionExtractor().extract([document.text])
    return [
        (mention.start, f"{key} ({mention.type})")
        for mention in mentions
        if (key := find_mention_key(mention, document.text))
    ]


def units_of(document: Document, embedder: Embedder) -> list[tuple[str, set[str]]]:
    """The partition of highest Q_MDL (eq. 3), by trying every one: text and V_u of each unit."""
    sentences = SentenceSplitter(SplitSettings(passage_tokens=1200)).sentences(document.text)
    texts = [document.text[span.start : span.end] for span in sentences]
    vectors = embedder.encode(texts, "passage").astype(float)
    mentions = mentions_of(document)
    names = [[key for start, key in mentions if span.start <= start < span.end] for span in sentences]
    count = len(texts)

    def reward(first: int, last: int) -> float:
        """r(u) (eq. 6) of the sentences from ``first`` up to ``last``."""
        resultant = float(np.linalg.norm(vectors[first:last].sum(axis=0)))
        counts = Counter(key for name in names[first:last] for key in name)
        total, entities = sum(counts.values()), 0.0
        if total:
            entities = -sum(n * math.log(n / total) for n in counts.values()) + (len(counts) - 1) / 2 * math.log(total)
        return KAPPA * resultant - entities - (D_EFF - 1) / 2 * math.log(count)

    def is_allowed(first: int, last: int) -> bool:
        return SHORTEST <= sum(len(text.split()) for text in texts[first:last]) <= LONGEST

    partitions = [
        list(itertools.pairwise([0, *cuts, count]))
        for size in range(count)
        for cuts in itertools.combinations(range(1, count), size)
    ]
    allowed = [parts for parts in partitions if all(is_allowed(*part) for part in parts)]
    best = max(allowed, key=lambda parts: sum(reward(*part) for part in parts))
    return [
        (
            document.text[sentences[first].start : sentences[last - 1].end],
            {key for name in names[first:last] for key in name},
        )
        for first, last in best
    ]


def all_units(embedder: Embedder) -> list[tuple[str, str, set[str]]]:
    return [(document.id, *unit) for document in DOCUMENTS for unit in units_of(document, embedder)]


def test_units_are_the_best_partition_and_join_what_appears_in_them(engine: Engine, embedder: Embedder) -> None:
    results = [
        (edge.passage_id.split("#")[0], edge.text, {member.entity_key for member in members})
        for edge, members in map(engine.catalogue.hyperedge, (edge.id for edge in engine.catalogue.hyperedges()))
    ]
    assert sorted(results) == sorted(all_units(embedder))
    assert len(results) > len(DOCUMENTS), "something was cut"
    members = set().union(*(members for _, _, members in results))
    assert not [key for key in members if key.startswith("bell of tarn")], "no title is a member"


def test_units_are_embedded_without_a_title_and_passages_with_it(engine: Engine, embedder: Embedder) -> None:
    snapshot = engine.snapshot()
    for row in range(snapshot.row_count("hyperedge")):
        (id,) = snapshot.ids("hyperedge", [row])
        edge = engine.catalogue.hyperedge(id)[0]
        (expected,) = embedder.encode([edge.text], "passage")
        assert snapshot.cosines("hyperedge", np.array([row]), expected)[0] == pytest.approx(1, abs=1e-3)
    for row in range(snapshot.passage_count):
        (passage,) = snapshot.get(Passage, [row])
        (expected,) = embedder.encode([f"{passage.title}\n{passage.text}"], "passage")
        assert snapshot.cosines("passage", np.array([row]), expected)[0] == pytest.approx(1, abs=1e-3)


def test_settings_of_units_are_part_of_the_index_method(tmp_path: Path, embedder: Embedder) -> None:
    with Engine.open(tmp_path / "kb", embedder=embedder) as engine:
        engine.index_documents(DOCUMENTS)
        assert engine.index_documents(DOCUMENTS).counts.unchanged == len(DOCUMENTS)
    for setting in ("segmentation.join_subject", "embedding.hyperedge_titles"):
        changed = change_settings(Settings(), {setting: False})
        with Engine.open(tmp_path / "kb", embedder=embedder, settings=changed) as engine:
            assert engine.index_documents(DOCUMENTS).counts.updated == len(DOCUMENTS), setting


# Retrieval, section 4.2


def walk(
    seeds: Mapping[str, float], alpha: Sequence[float], units: Sequence[set[str]], depth: int
) -> tuple[dict[int, float], dict[str, float]]:
    """b(u) of every unit above 0, and a(v) of every entity reached."""
    activated, frontier, bridges = dict(seeds), dict(seeds), defaultdict[int, float](float)
    for hop in range(1, depth + 1):
        candidates = defaultdict[str, float](float)
        for place, members in enumerate(units):
            strongest = max((frontier[z] for z in members if z in frontier), default=0.0)
            score = alpha[place] * strongest
            bridges[place] = max(bridges[place], score)
            for v in members - set(activated):
                candidates[v] = max(candidates[v], score)
        remaining = sorted((v for v in candidates if candidates[v] > 0), key=lambda v: (-candidates[v], v))[:WIDTH]
        frontier = {v: candidates[v] * BETA**hop for v in remaining}
        activated |= frontier
        if not frontier:
            break
    return {place: score for place, score in bridges.items() if score > 0}, activated


def published(embedder: Embedder, delta: float) -> dict[str, float]:
    """g(p) of every passage above 0."""
    units = all_units(embedder)
    texts, members = [text for _, text, _ in units], [item for _, _, item in units]
    question = embedder.encode([QUESTION], "query")[0]
    cosines = embedder.encode(texts, "passage") @ question
    alpha = [min(1.0, max(0.0, (float(cosine) - delta) / (1 - delta))) for cosine in cosines]
    (named,) = RuleMentionExtractor().extract([QUESTION])
    entities = set().union(*members)
    keys = [f"{find_mention_key(mention, QUESTION)} ({mention.type})" for mention in named]
    seeds = {key: 1.0 for key in keys if key in entities}
    anchors = dict.fromkeys(set().union(*members), 1.0)  # of the 10 nearest passages, which are all there are
    forward, _ = walk(seeds, alpha, members, FORWARD)
    backward, _ = walk(anchors, alpha, members, BACKWARD)
    by_passage = defaultdict[str, list[float]](list)
    for place, bridge in forward.items():
        by_passage[units[place][0]].append(bridge * (MU if place in backward else 1.0))
    best = {id: sorted(scores, reverse=True)[:UNITS] for id, scores in by_passage.items()}
    return {id: sum(scores) / len(scores) for id, scores in best.items()}


def activated_passages(evidence: Evidence) -> dict[str, float]:
    return {hit.passage.document_id: hit.score for hit in evidence.passages if hit.score > 0}


def test_passages_are_ranked_as_the_published_formulas_say(engine: Engine, embedder: Embedder) -> None:
    expected = published(embedder, DELTA)
    assert expected, "the question activates something"
    assert activated_passages(engine.search(QUESTION)) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("delta", [0.0, 0.2])
def test_units_equal_the_published_ones_with_another_delta(tmp_path: Path, embedder: Embedder, delta: float) -> None:
    selection = build_preset_settings("hypersu", {"hypersu.activation_threshold": delta})
    with Engine.open(tmp_path / "kb", embedder=embedder, settings=selection) as engine:
        engine.index_documents(DOCUMENTS)
        expected = published(embedder, delta)
        assert len(expected) > 2
        assert activated_passages(engine.search(QUESTION)) == pytest.approx(expected, abs=2e-3)


def test_five_passages_are_handed_on(engine: Engine) -> None:
    assert {hit.passage.document_id for hit in engine.search(QUESTION).passages} == {one.id for one in DOCUMENTS}
    assert len(engine.search(QUESTION, 2).passages) == 2
