"""The passages that names lead to, and linkability."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.model import Document
from polyad.protocols.snapshot import Snapshot
from polyad.snapshot.incidences import compute_linkability
from tests.rows import get_document_ids

ONE_OF_FORTY = compute_linkability(2**32, 40)

DOCUMENTS = [
    Document("log", "Harbour log", "The oil was noticed by Watchman Piet Adler and by Old Tom Reed."),
    Document("piet", "Piet Adler", "He was a diver before."),
    Document("reed", "Reed", "A plant of wet places."),
]


UNTITLED = [
    Document("smart", "", "Frank Jeffrey Edson Smart was a painter. He lived in Lima."),
    Document("house", "", "The house was sold by Jeffrey Smart in 1961."),
]


def documents_about(snapshot: Snapshot, key: str) -> list[str]:
    passages, _, _ = snapshot.graph.mentions(np.array([snapshot.find_rows("entity", [key])[key]]), as_subject=True)
    return get_document_ids(snapshot, passages)


def test_a_name_with_a_prefix_leads_to_the_passage_about_the_subject(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents(DOCUMENTS)
        snapshot = engine.snapshot()
    about = {
        key: documents_about(snapshot, key) for key in ("watchman piet adler", "piet adler", "old tom reed", "reed")
    }
    assert about["watchman piet adler"] == about["piet adler"] == ["piet"]
    assert about["old tom reed"] == [], "a single word is too little to go by"
    assert about["reed"] == ["reed"]


def test_a_short_name_leads_to_the_passage_about_the_subject(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents(UNTITLED)
        snapshot = engine.snapshot()
        hits = engine.search("Where did Jeffrey Smart live?", 2, retriever="default").hyperedges
    row = snapshot.find_rows("entity", ["jeffrey smart"])["jeffrey smart"]
    mentions, _, _ = snapshot.graph.mentions(np.array([row]))
    assert documents_about(snapshot, "jeffrey smart") == ["smart"]
    assert sorted(get_document_ids(snapshot, mentions)) == ["house", "smart"]
    for passage in mentions.tolist():
        edges, _ = snapshot.graph.hyperedges(np.array([passage]))
        assert row in snapshot.graph.members(edges)[0]
    outputs = {hit.hyperedge.passage_id: {member.key for member in hit.members} for hit in hits}
    assert ["jeffrey smart" in keys for _, keys in sorted(outputs.items())] == [True, False], "members are as stored"


def test_an_ambiguous_short_name_leads_nowhere(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents(UNTITLED)
        engine.index_documents([Document("other", "", "Ann Jeffrey Smart was a singer.")])
        ambiguous = engine.snapshot()
        engine.remove("other")
        restored = engine.snapshot()
    assert [documents_about(snapshot, "jeffrey smart") for snapshot in (ambiguous, restored)] == [[], ["smart"]]


def index_documents(directory: Path, *documents: Document) -> Snapshot:
    with Engine.open(directory, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents(documents)
        return engine.snapshot()


TITLED = Document("isk", "Isk", "It is long.")
DEFINED = Document("weak", "", "They met. The Isk is a river.")
MENTIONED = Document("log", "", "They crossed the Isk at night.")


IN_COMMON_WORDS = Document("low", "", "they go to the root directory for it")
HEADED = Document("root", "Root directory", "it is the first")
BY_NAME = Document("high", "", "they go to the Root Directory for it")


def fillers(count: int) -> list[Document]:
    """Return documents without subjects and mentions."""
    return [Document(f"n{number}", "", f"they counted {number} of them") for number in range(count)]


def test_only_certain_subjects_are_strong(tmp_path: Path) -> None:
    snapshot = index_documents(tmp_path, TITLED, DEFINED, MENTIONED)
    isk = np.array([snapshot.find_rows("entity", ["isk"])["isk"]])
    passages, _, strengths = snapshot.graph.mentions(isk, as_subject=True)
    results = dict(zip(get_document_ids(snapshot, passages), (strengths >= 1).tolist(), strict=True))
    assert results == {"isk": True, "weak": False}


@pytest.mark.parametrize(
    ("documents", "average"),
    [
        ([], 0.0),
        ([TITLED, MENTIONED, *fillers(38)], 1 / 40),
        ([TITLED, MENTIONED, Document("too", "", "They saw the Isk at noon."), *fillers(37)], 1 / 40 / 2),
        ([HEADED, BY_NAME, *fillers(38)], 1 / 40),
        ([HEADED, IN_COMMON_WORDS, *fillers(38)], 0.0),
        ([TITLED, MENTIONED], 1 / 2),
        ([TITLED, *fillers(18)], 0.0),
        ([DEFINED, MENTIONED, *fillers(18)], 0.0),
        ([TITLED, Document("too", "Isk", "It is old."), *fillers(18)], 0.0),
    ],
    ids=[
        "empty",
        "one of forty",
        "one of forty, mentioned twice",
        "a heading, mentioned by name",
        "a heading, mentioned in common words",
        "one of two",
        "not mentioned",
        "not sure",
        "mentioned by itself",
    ],
)
def test_linkability_grows_with_mentioned_subjects(tmp_path: Path, documents: list[Document], average: float) -> None:
    assert index_documents(tmp_path, *documents).linkability == pytest.approx(
        compute_linkability(int(average * 2**32), 1)
    )


@pytest.mark.parametrize(("average", "expected"), [(0, 0), (0.01, 0), (0.0275, 0.5), (0.045, 1), (0.5, 1)])
def test_linkability_is_between_0_and_1(average: float, expected: float) -> None:
    assert compute_linkability(int(average * 2**32), 1) == pytest.approx(expected)


def test_adding_or_deleting_a_document_changes_linkability(tmp_path: Path) -> None:
    results = []
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents([TITLED, *fillers(38)])
        results.append(engine.snapshot().linkability)
        engine.index_documents([MENTIONED])
        results.append(engine.snapshot().linkability)
        others = [Document(f"too {number}", "Isk", f"It is old: {number}.") for number in range(2)]
        engine.index_documents(others)
        results.append(engine.snapshot().linkability)
        engine.remove([document.id for document in others])
        results.append(engine.snapshot().linkability)
        engine.remove("log")
        results.append(engine.snapshot().linkability)
    assert results == pytest.approx([0.0, ONE_OF_FORTY, 0.0, ONE_OF_FORTY, 0.0]), (
        "not of three places, nor where nobody mentions it"
    )


def test_an_ambiguous_name_is_no_link(tmp_path: Path) -> None:
    documents = [
        Document("smart", "Frank Jeffrey Smart", "He was a painter."),
        Document("house", "", "it was sold by Jeffrey Smart"),
    ]
    other = Document("other", "Ann Jeffrey Smart", "She sang.")
    results = []
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        engine.index_documents([*documents, *fillers(38)])
        results.append(engine.snapshot().linkability)
        engine.index_documents([other])
        results.append(engine.snapshot().linkability)
        engine.remove("other")
        results.append(engine.snapshot().linkability)
    assert results == pytest.approx([ONE_OF_FORTY, 0.0, ONE_OF_FORTY])
