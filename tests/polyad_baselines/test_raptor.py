from __future__ import annotations

from functools import partial
from itertools import chain

import numpy as np
import pytest

from polyad.errors import LanguageModelError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Query
from polyad.protocols.components import Prompt
from polyad_baselines.raptor import RaptorRetriever, cluster
from polyad_baselines.settings import RaptorSettings
from tests.polyad_baselines.cases import NAMES, QUESTION, BuildCase, Case

SETTINGS = RaptorSettings(dimension=1, layers=2, max_clusters=3, top_k_nodes=0)


def summarise(case: Case, prompt: Prompt) -> str:
    """A summary is the names in a text, in order."""
    return " ".join(name for name in NAMES if name in prompt.user)


@pytest.mark.parametrize("seed", range(30))
def test_passages_are_ranked_by_their_best_node(make_case: BuildCase, seed: int) -> None:
    case = make_case(seed)
    model = ScriptedLanguageModel(partial(summarise, case))
    retriever = RaptorRetriever(case.vectors, model, SETTINGS)
    evidence = retriever.retrieve(Query(QUESTION, 9), case.snapshot)
    tree = retriever.prepare(case.snapshot)
    best = {passage: case.vectors.cosine(case.get_text(passage), QUESTION) for passage in case.facts}
    for text, rows in zip(tree.texts, tree.leaves, strict=True):
        for passage in case.snapshot.ids("passage", rows):
            best[passage] = max(best[passage], case.vectors.cosine(text, QUESTION))
    scores = {hit.passage.id: hit.score for hit in evidence.passages}
    assert scores == pytest.approx(best, abs=1e-5)
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    requests = len(model.prompts)
    assert requests == len(tree.texts) > 0
    retriever.retrieve(Query("Where?", 2), case.snapshot)
    assert len(model.prompts) == requests, "summaries are written once"


def test_clusters_are_the_groups_in_the_vectors_and_cover_them() -> None:
    rng = np.random.default_rng(3)
    centres = np.eye(3, 16, dtype=np.float32)
    vectors = np.repeat(centres, 12, axis=0) + rng.normal(0, 0.02, (36, 16)).astype(np.float32)
    clusters = cluster(vectors, RaptorSettings(dimension=3, max_clusters=5))
    assert {*chain.from_iterable(places.tolist() for places in clusters)} == set(range(36))
    assert all(len({place // 12 for place in places.tolist()}) == 1 for places in clusters)


def test_a_summary_that_fails_is_left_out(make_case: BuildCase) -> None:
    case = make_case(6)
    retriever = RaptorRetriever(case.vectors, ScriptedLanguageModel(lambda _: LanguageModelError("busy")), SETTINGS)
    evidence = retriever.retrieve(Query(QUESTION, 9), case.snapshot)
    assert len(evidence.passages) == len(case.facts)
    assert {hit.reason for hit in evidence.passages} == {"similar to the question"}


def test_a_summary_is_written_from_all_passages_below_it(make_case: BuildCase) -> None:
    case = make_case(12)
    half = sum(len(case.get_text(id)) + 4 for id in case.facts) // 8
    trees = []
    for tokens in (half, 1000):
        settings = RaptorSettings(dimension=1, layers=1, max_clusters=2, max_cluster_tokens=tokens)
        model = ScriptedLanguageModel(partial(summarise, case))
        tree = RaptorRetriever(case.vectors, model, settings).prepare(case.snapshot)
        trees.append(tree)
        for prompt, rows in zip(model.prompts, tree.leaves, strict=True):
            texts = [case.get_text(id) for id in case.snapshot.ids("passage", rows)]
            assert all(text in prompt.user for text in texts) or len(texts) == 1
            assert len(texts) == 1 or sum(map(len, texts)) <= 4 * tokens
        assert {*chain.from_iterable(rows.tolist() for rows in tree.leaves)} == set(range(len(case.facts)))
    assert len(trees[0].leaves) > len(trees[1].leaves)


def test_summaries_are_evidence_beside_the_passages_that_are_nodes(make_case: BuildCase) -> None:
    case, model = make_case(4), ScriptedLanguageModel(lambda _: "A summary of bells.")
    settings = RaptorSettings(dimension=1, layers=1, max_clusters=3, evidence="summaries")
    evidence = RaptorRetriever(case.vectors, model, settings).retrieve(Query(QUESTION, 9), case.snapshot)
    assert {edge.hyperedge.text for edge in evidence.hyperedges} == {"A summary of bells."}
    assert {edge.hyperedge.passage_id for edge in evidence.hyperedges} <= {*case.facts}
    assert {hit.reason for hit in evidence.passages} == {"similar to the question"}
