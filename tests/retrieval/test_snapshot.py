from __future__ import annotations

from pathlib import Path

import pytest

from polyad.adapters.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document
from polyad.retrieval.snapshot import Snapshot

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


def snapshot_of(directory: Path, *documents: Document) -> Snapshot:
    with Engine.open(directory, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents(documents)
        return engine.training_parts()[0]


TITLED = Document("isk", "Isk", "It is long.")
DEFINED = Document("weak", "", "They met. The Isk is a river.")
MENTIONED = Document("log", "", "They crossed the Isk at night.")


def fillers(count: int) -> list[Document]:
    """Documents that are about nothing and mention nobody."""
    return [Document(f"n{number}", "", f"they counted {number} of them") for number in range(count)]


def test_only_sure_subjects_count_as_strong(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, TITLED, DEFINED, MENTIONED)
    row = snapshot.entity_rows["isk"]
    assert snapshot.strong_degrees[row] == 1
    assert len(snapshot.passages_about[row]) == 2
    assert len(snapshot.strong_degrees) == snapshot.graph.node_count


@pytest.mark.parametrize(
    ("documents", "linkability"),
    [
        ([], 0.0),
        ([TITLED, MENTIONED, *fillers(18)], 0.5),
        ([TITLED, MENTIONED, *fillers(8)], 1.0),
        ([TITLED, MENTIONED], 1.0),
        ([TITLED, *fillers(18)], 0.0),
        ([DEFINED, MENTIONED, *fillers(18)], 0.0),
        ([TITLED, Document("too", "Isk", "It is old."), *fillers(18)], 0.0),
    ],
    ids=["empty", "one of twenty", "one of ten", "one of two", "not mentioned", "not sure", "mentioned by itself"],
)
def test_names_lead_as_far_as_passages_are_about_what_others_mention(
    tmp_path: Path, documents: list[Document], linkability: float
) -> None:
    assert snapshot_of(tmp_path, *documents).linkability == pytest.approx(linkability)
