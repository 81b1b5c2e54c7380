from __future__ import annotations

from pathlib import Path

from polyad.adapters.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document

DOCUMENTS = [
    Document("log", "Harbour log", "The oil was noticed by Watchman Piet Adler and by Old Tom Reed."),
    Document("piet", "Piet Adler", "He was a diver before."),
    Document("reed", "Reed", "A plant of wet places."),
]


UNTITLED = [
    Document("smart", "", "Frank Jeffrey Edson Smart was a painter. He lived in Lima."),
    Document("house", "", "The house was sold by Jeffrey Smart in 1961."),
]


def test_a_name_with_something_before_it_leads_to_the_passage_about_its_bearer(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents(DOCUMENTS)
        snapshot, _, _ = engine.training_parts()
    rows = snapshot.entity_rows
    about = {
        key: [snapshot.document_id(passage) for passage in snapshot.passages_about[rows[key]].tolist()]
        for key in ("watchman piet adler", "piet adler", "old tom reed", "reed")
    }
    assert about["watchman piet adler"] == about["piet adler"] == ["piet"]
    assert about["old tom reed"] == [], "a single word is too little to go by"
    assert about["reed"] == ["reed"]


def test_a_short_name_leads_to_what_is_known_of_its_bearer(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents(UNTITLED)
        snapshot, _, _ = engine.training_parts()
        hits = engine.search("Where did Jeffrey Smart live?", 2, retriever="default").hyperedges
    row = snapshot.entity_rows["jeffrey smart"]
    about = [snapshot.document_id(passage) for passage in snapshot.passages_about[row].tolist()]
    mentions = [snapshot.document_id(passage) for passage in snapshot.passages_of_entity[row].tolist()]
    assert about == ["smart"]
    assert mentions == ["house", "smart"]
    assert all(row in snapshot.entities_of_passage[passage] for passage in range(snapshot.passage_count))
    shown = {hit.hyperedge.passage_id: {member.key for member in hit.members} for hit in hits}
    assert ["jeffrey smart" in keys for _, keys in sorted(shown.items())] == [True, False], "members are as stored"


def test_a_short_name_leads_nowhere_once_another_could_be_meant(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents(UNTITLED)
        engine.index_documents([Document("other", "", "Ann Jeffrey Smart was a singer.")])
        ambiguous, _, _ = engine.training_parts()
        engine.remove("other")
        restored, _, _ = engine.training_parts()
    found = [len(snapshot.passages_about[snapshot.entity_rows["jeffrey smart"]]) for snapshot in (ambiguous, restored)]
    assert found == [0, 1]
