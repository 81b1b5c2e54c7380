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
