from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import NEED_LANGUAGE_MODEL, RETRIEVERS, Engine
from polyad.engine.registry import retrievers
from polyad.engine.settings import Settings
from polyad.model import Document, FloatArray, Query
from polyad.protocols.components import TextKind
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_scorer import Recipe, TripleScorer

DOCUMENTS = [
    Document("alba", "Alba", "Alba is a film that Carla Diaz directed in 1961."),
    Document("carla", "Carla Diaz", "Carla Diaz was born in Lima. She left it early."),
    Document("lima", "Lima", "Lima is the capital of Peru."),
]
QUESTION = "Where was the director of Alba born?"

OFFLINE = sorted({*RETRIEVERS} - NEED_LANGUAGE_MODEL)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    embedder = HashingEmbedder(32)
    weights = tmp_path / "weights.safetensors"
    TripleScorer.create_untrained(Recipe(embedder=embedder.name, dimension=embedder.dimension)).save(weights)
    settings = Settings(hyperretriever=HyperRetrieverSettings(weights=str(weights)))
    with Engine.open(tmp_path, embedder=embedder, settings=settings) as opened:
        yield opened


class ByLetter:
    """Vectors by the first letter of a text."""

    name = "letters"
    dimension = 2

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        table = {"s": (1.0, 0.0), "o": (0.0, 1.0), "n": (-1.0, 0.0)}
        return np.array([table[text[0]] for text in texts], dtype=np.float32).reshape(-1, 2)


def test_dense_passages_are_ranked_by_cosine_and_ties_by_id(tmp_path: Path) -> None:
    texts = {"c": "same", "a": "other", "b": "same", "d": "no"}
    with Engine.open(tmp_path, embedder=ByLetter()) as engine:
        engine.index_documents([Document(id, "", text) for id, text in texts.items()])
        passages = engine.search("same?", 3, retriever="dense", merge=False).passages
    assert [(hit.passage.document_id, hit.score) for hit in passages] == [("b", 1.0), ("c", 1.0), ("a", 0.0)]


def test_lexical_passages_share_a_word_and_ties_go_by_id(engine: Engine) -> None:
    engine.index_documents([Document(id, id, "Built of stone.") for id in ("tower", "bridge", "tunnel")])
    bridge = engine.search("the bridge", retriever="bm25").passages
    assert [hit.passage.document_id for hit in bridge] == ["bridge"]
    stone = engine.search("stone", 2, retriever="bm25").passages
    assert [hit.passage.document_id for hit in stone] == ["bridge", "tower"]
    assert engine.search("nothing like it", retriever="bm25").passages == ()


def test_a_snapshot_keeps_its_version_after_later_changes(engine: Engine) -> None:
    engine.index_documents(DOCUMENTS)
    retriever, query = retrievers["bm25"].make(engine.components), Query("Alba Lima", 5)
    held = engine.snapshot("bm25")
    before = retriever.retrieve(query, held)
    engine.index_documents([Document(f"better {number}", "Alba Lima", f"Alba, Lima {number}.") for number in range(5)])
    assert retriever.retrieve(query, held) == before
    assert {hit.passage.document_id for hit in before.passages} == {"alba", "carla", "lima"}
    passages = engine.search("Alba Lima", 5, retriever="bm25").passages
    assert [hit.passage.document_id for hit in passages] == [f"better {number}" for number in range(5)]


def test_no_retriever_finds_nothing(engine: Engine) -> None:
    engine.index_documents(DOCUMENTS)
    evidence = engine.search(QUESTION, retriever="none")
    assert (evidence.passages, evidence.hyperedges, evidence.entities) == ((), (), ())
    assert (evidence.question, evidence.retriever) == (QUESTION, "none")


@pytest.mark.parametrize("name", OFFLINE)
def test_an_empty_index_gives_empty_evidence(engine: Engine, name: str) -> None:
    evidence = engine.search(QUESTION, 5, retriever=name)
    assert (evidence.passages, evidence.hyperedges, evidence.entities, evidence.trace) == ((), (), (), ())
    assert (evidence.retriever, evidence.question) == (name, QUESTION)


@pytest.mark.parametrize("name", OFFLINE)
def test_an_index_that_was_emptied_gives_empty_evidence(engine: Engine, name: str) -> None:
    engine.index_documents(DOCUMENTS)
    assert name == "none" or engine.search(QUESTION, retriever=name).passages
    engine.remove([document.id for document in DOCUMENTS])
    assert engine.search(QUESTION, retriever=name).passages == ()


@pytest.mark.parametrize("name", sorted({*OFFLINE} - {"none", "bm25"}))
def test_k_beyond_the_corpus_gives_each_passage_once(engine: Engine, name: str) -> None:
    engine.index_documents(DOCUMENTS)
    passages = engine.search(QUESTION, 1000, retriever=name).passages
    assert sorted(hit.passage.document_id for hit in passages) == ["alba", "carla", "lima"]
    assert [hit.score for hit in passages] == sorted((hit.score for hit in passages), reverse=True)


@pytest.mark.parametrize("name", OFFLINE)
def test_fewer_are_a_prefix_of_more(engine: Engine, name: str) -> None:
    engine.index_documents([*DOCUMENTS, *(Document(f"x{n}", "", "Carla left Lima.") for n in range(9))])
    ten = engine.search(QUESTION, 10, retriever=name).passages
    for k in (1, 3, 7):
        assert engine.search(QUESTION, k, retriever=name).passages == ten[:k]


@pytest.mark.parametrize("name", sorted({*OFFLINE} - {"none"}))
def test_equal_passages_are_ranked_by_id(engine: Engine, name: str) -> None:
    engine.index_documents([Document(id, "", "Carla Diaz left Lima.") for id in ("c", "a", "e", "b", "d")])
    passages = engine.search("Who left Lima?", 3, retriever=name, merge=False).passages
    assert [hit.passage.document_id for hit in passages] == ["a", "b", "c"]


@pytest.mark.parametrize("name", OFFLINE)
@pytest.mark.parametrize("question", ["?", "\x00", "\ud800 Lima", '"AND" NEAR( * ^', "Lima " * 1600, "东京"])
def test_no_question_is_too_strange(engine: Engine, name: str, question: str) -> None:
    engine.index_documents(DOCUMENTS)
    assert engine.search(question, 2, retriever=name).question == question


@pytest.mark.parametrize("name", OFFLINE)
def test_passages_without_entities_are_found_too(engine: Engine, name: str) -> None:
    engine.index_documents([Document("a", "", "it was so, and then it was not"), Document("b", "", "yes")])
    results = [hit.passage.document_id for hit in engine.search("and then?", 1, retriever=name).passages]
    assert results == ([] if name == "none" else ["a"])


class NotToBeUsed:
    """An embedder that nobody should need."""

    name = "unused"
    dimension = 4

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        raise AssertionError("no need of an embedder")


@pytest.mark.parametrize("name", ["bm25", "none"])
def test_retrievers_by_words_need_no_embedder(tmp_path: Path, name: str) -> None:
    with Engine.open(tmp_path, embedder=NotToBeUsed()) as engine:
        assert engine.search("Lima", retriever=name).timings.encode == 0


def test_retrievers_by_words_load_no_model(tmp_path: Path) -> None:
    Engine.open(tmp_path, embedder=NotToBeUsed()).close()
    with Engine.open(tmp_path) as engine:  # a model of that name does not exist
        assert engine.search("Lima", retriever="bm25").passages == ()
