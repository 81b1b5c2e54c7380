from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.adapters.hashing import HashingEmbedder
from polyad.engine import RETRIEVERS, Engine
from polyad.model import Document
from polyad.protocols import Embedder, TextKind
from polyad.retrieval.passages import DenseRetriever, LexicalRetriever, NoRetriever, best
from polyad.retrieval.snapshot import Snapshot

Vector = Sequence[float]
Spec = Mapping[str, tuple[Vector, Sequence[tuple[Sequence[str], Vector]]]]
SnapshotOf = Callable[[Spec, int], Snapshot]
EmbedderOf = Callable[[Mapping[str, Vector], int], Embedder]

DOCUMENTS = [
    Document("alba", "Alba", "Alba is a film that Carla Diaz directed in 1961."),
    Document("carla", "Carla Diaz", "Carla Diaz was born in Lima. She left it early."),
    Document("lima", "Lima", "Lima is the capital of Peru."),
]
QUESTION = "Where was the director of Alba born?"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine.open(tmp_path, embedder=HashingEmbedder(32)) as opened:
        yield opened


@given(scores=st.lists(st.sampled_from([0.0, 0.5, 1.0, -1.0]), max_size=12), k=st.integers(0, 15))
def test_best_are_the_highest_and_ties_go_to_the_lower_row(scores: list[float], k: int) -> None:
    expected = sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:k]
    assert best(np.array(scores, dtype=np.float32), k).tolist() == expected


def test_dense_passages_are_ranked_by_cosine_and_ties_by_id(snapshot_of: SnapshotOf, embedder_of: EmbedderOf) -> None:
    spec: Spec = {"c": ((1.0, 0.0), []), "a": ((0.0, 1.0), []), "b": ((1.0, 0.0), []), "d": ((-1.0, 0.0), [])}
    retriever = DenseRetriever(snapshot_of(spec, 2), embedder_of({"q": (1.0, 0.0)}, 2))
    hits = [(hit.passage.title, hit.score) for hit in retriever.retrieve("q", 3).passages]
    assert hits == [("b", 1.0), ("c", 1.0), ("a", 0.0)]
    assert len(retriever.retrieve("q", 50).passages) == 4


def test_lexical_passages_share_a_word_and_ties_go_by_id(snapshot_of: SnapshotOf) -> None:
    spec: Spec = {title: ((1.0, 0.0), [((), (1.0, 0.0))]) for title in ("tower", "bridge", "tunnel")}
    retriever = LexicalRetriever(snapshot_of(spec, 2))
    assert [hit.passage.title for hit in retriever.retrieve("the bridge", 5).passages] == ["bridge"]
    assert [hit.passage.title for hit in retriever.retrieve("unit", 2).passages] == ["bridge", "tower"]
    assert retriever.retrieve("nothing of it", 5).passages == ()


def test_lexical_hits_younger_than_the_snapshot_are_left_out(engine: Engine) -> None:
    engine.index_documents(DOCUMENTS[:1])
    retriever = engine.retriever("bm25")
    engine.index_documents(DOCUMENTS)
    assert [hit.passage.document_id for hit in retriever.retrieve("Alba Lima", 5).passages] == ["alba"]


def test_no_retriever_finds_nothing(snapshot_of: SnapshotOf) -> None:
    evidence = NoRetriever(snapshot_of({"a": ((1.0, 0.0), [])}, 2)).retrieve("q", 5)
    assert (evidence.passages, evidence.hyperedges, evidence.entities) == ((), (), ())
    assert (evidence.question, evidence.retriever) == ("q", "none")


@pytest.mark.parametrize("name", RETRIEVERS)
def test_an_empty_index_gives_empty_evidence(engine: Engine, name: str) -> None:
    evidence = engine.search(QUESTION, 5, retriever=name)
    assert (evidence.passages, evidence.hyperedges, evidence.entities, evidence.trace) == ((), (), (), ())
    assert (evidence.retriever, evidence.question) == (name, QUESTION)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_an_index_that_was_emptied_gives_empty_evidence(engine: Engine, name: str) -> None:
    engine.index_documents(DOCUMENTS)
    assert name == "none" or engine.search(QUESTION, retriever=name).passages
    engine.remove([document.id for document in DOCUMENTS])
    assert engine.search(QUESTION, retriever=name).passages == ()


@pytest.mark.parametrize("name", sorted({*RETRIEVERS} - {"none", "bm25"}))
def test_k_beyond_the_corpus_gives_each_passage_once(engine: Engine, name: str) -> None:
    engine.index_documents(DOCUMENTS)
    found = engine.search(QUESTION, 1000, retriever=name).passages
    assert sorted(hit.passage.document_id for hit in found) == ["alba", "carla", "lima"]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_fewer_are_a_prefix_of_more(engine: Engine, name: str) -> None:
    engine.index_documents([*DOCUMENTS, *(Document(f"x{n}", "", "Carla left Lima.") for n in range(9))])
    ten = engine.search(QUESTION, 10, retriever=name).passages
    for k in (1, 3, 7):
        assert engine.search(QUESTION, k, retriever=name).passages == ten[:k]


@pytest.mark.parametrize("name", sorted({*RETRIEVERS} - {"none"}))
def test_equal_passages_are_ranked_by_id(engine: Engine, name: str) -> None:
    engine.index_documents([Document(id, "", "Carla Diaz left Lima.") for id in ("c", "a", "e", "b", "d")])
    found = engine.search("Who left Lima?", 3, retriever=name).passages
    assert [hit.passage.document_id for hit in found] == ["a", "b", "c"]


@pytest.mark.parametrize("name", RETRIEVERS)
@pytest.mark.parametrize("question", ["?", "\x00", "\ud800 Lima", '"AND" NEAR( * ^', "Lima " * 3000, "东京"])
def test_no_question_is_too_strange(engine: Engine, name: str, question: str) -> None:
    engine.index_documents(DOCUMENTS)
    assert engine.search(question, 2, retriever=name).question == question


@pytest.mark.parametrize("name", RETRIEVERS)
def test_passages_without_entities_are_found_too(engine: Engine, name: str) -> None:
    engine.index_documents([Document("a", "", "it was so, and then it was not"), Document("b", "", "yes")])
    found = [hit.passage.document_id for hit in engine.search("and then?", 1, retriever=name).passages]
    assert found == ([] if name == "none" else ["a"])


class NotToBeUsed:
    """An embedder that nobody should need."""

    name = "unused"
    dimension = 4

    def encode(self, texts: Sequence[str], kind: TextKind) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        raise AssertionError("no need of an embedder")


@pytest.mark.parametrize("name", ["bm25", "none"])
def test_retrievers_by_words_need_no_embedder(tmp_path: Path, name: str) -> None:
    with Engine.open(tmp_path, embedder=NotToBeUsed()) as engine:
        assert engine.search("Lima", retriever=name).timings.encode == 0


def test_retrievers_by_words_load_no_model(tmp_path: Path) -> None:
    Engine.open(tmp_path, embedder=NotToBeUsed()).close()
    with Engine.open(tmp_path) as engine:  # a model of that name does not exist
        assert engine.search("Lima", retriever="bm25").passages == ()
