"""The corpora of ``benchmarks/scale.py``."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from polyad import Engine
from polyad.model import Document, IndexedDocument
from polyad.protocols.lookups import get_document_passages
from polyad.text.keys import build_entity_key
from polyad_bench.datasets.beir import Question

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from scale_corpora import MadeUpEmbedder, Records, RenamedText, embedded

DOCUMENTS = (
    Document("a", "Ilse Varga", "Ilse Varga was born in Ottermere. She built the gauge at Saltby Weir."),
    Document("b", "Saltby Weir", "Saltby Weir is a weir near Ottermere. Ilse Varga's gauge stands there."),
)
QUERY = Question("q", "Where was the builder of the gauge at Saltby Weir born?", frozenset({"a", "b"}))


@pytest.fixture
def text(tmp_path: Path) -> RenamedText:
    with Engine.open(tmp_path, embedder=MadeUpEmbedder(8)) as engine:
        engine.index_documents(DOCUMENTS)
        store = engine._store
        base = [
            IndexedDocument(document, document.id, 0, tuple(get_document_passages(store, [document.id])))
            for document in DOCUMENTS
        ]
    return RenamedText(base, [QUERY], name_share=0)


def names(document: IndexedDocument) -> list[tuple[str, str]]:
    edges = [edge for passage in document.passages for edge in passage.hyperedges]
    return [(part.entity_key, part.name) for edge in edges for part in edge.incidences]


def test_the_first_copy_is_as_it_was(text: RenamedText) -> None:
    assert [item.document.text for item in islice(text.documents(), 2)] == [item.text for item in DOCUMENTS]


def test_a_copy_has_other_names_that_join_the_same_documents(text: RenamedText) -> None:
    first, second, *copies = islice(text.documents(), 4)
    for original, copy in zip((first, second), copies, strict=True):
        assert copy.document.id != original.document.id
        assert len(copy.document.text) == len(original.document.text)
        assert "Varga" not in copy.document.text
        assert all(key == build_entity_key(name) for key, name in names(copy))
    shared = {key for key, _ in names(first)} & {key for key, _ in names(second)}
    in_copy = {key for key, _ in names(copies[0])} & {key for key, _ in names(copies[1])}
    assert len(shared) == len(in_copy) > 1
    assert shared.isdisjoint(in_copy)


def test_hyperedges_of_a_copy_are_spans_of_its_passages(text: RenamedText) -> None:
    for item in islice(text.documents(), 2, 4):
        for passage in item.passages:
            assert passage.passage.text == item.document.text[passage.passage.start : passage.passage.end]
            for edge in passage.hyperedges:
                assert edge.hyperedge.text == passage.passage.text[edge.hyperedge.start : edge.hyperedge.end]


def test_questions_are_renamed_as_their_copy(text: RenamedText) -> None:
    first, second = text.questions(documents=4, most=2)
    titles = {item.document.id: item.document.title for item in islice(text.documents(), 4)}
    assert "Saltby Weir" in first.text
    assert second.gold <= titles.keys()
    assert any(titles[id] in second.text for id in second.gold)


def test_a_record_answers_its_question() -> None:
    records = Records(1000)
    documents = {item.document.id: item for item in islice(records.documents(), 50)}
    for query in records.questions(50, 5):
        (id,) = query.gold
        messages = {argument.role: argument.value for argument in documents[id].document.arguments}
        assert all(messages[role] in query.text for role in ("customer", "part", "city"))
        assert messages["technician"] not in query.text


def test_vectors_are_of_length_one_and_of_the_words() -> None:
    (item,) = embedded(islice(Records(1000).documents(), 1), MadeUpEmbedder(16))
    assert np.isclose(np.linalg.norm(item.passages[0].vector), 1)
    one, same, other = MadeUpEmbedder(16).encode(["Saltby Weir", "saltby weir", "Ottermere"], "query")
    assert (one == same).all()
    assert one @ other < 0.9
