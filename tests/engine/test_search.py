"""What a search on a real index gives back, and what an answer cites."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyad.config import AnswerSettings, NearestSettings, QuestionSettings, SplitSettings
from polyad.engine import NEED_LANGUAGE_MODEL, RETRIEVERS, Engine
from polyad.engine.registry import retrievers
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError, SettingError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Document, FloatArray, Location, Query, Section, Timings
from polyad.protocols.components import Embedder, TextKind
from polyad.retrieval.baselines import DenseRetriever
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.provider import SnapshotProvider
from polyad.text.words import count_words

PUMP = "The pump moves water from the tank to the basin. It has to be bled before it is started."
VALVE = "A valve stays open until the pressure falls below the limit. Then it is closed by hand."
BOOK = "Whoever works at the station writes down what was done, and signs the page in the book at the end of the day."
KEYS = (
    "Keys hang on the board beside the door, in the order of the rooms that they open, from the lowest to the highest."
)
WALK = "Visitors are led around the building on the first Sunday of each month, in groups of ten, with a lamp for each."
MANUAL = "\n\n".join([f"{PUMP} {BOOK}", f"{KEYS} {VALVE}", f"Otters live behind the station. {WALK}"])
QUESTION = "What has to be done before the pump is started?"
HEADING = "Operation"


@pytest.fixture
def manual(tmp_path: Path, embedder: Embedder) -> Engine:
    """An index of one document in three passages, the same as plain text, and another document."""
    split = SplitSettings(passage_tokens=50, overlap_tokens=0, section_tokens=0)
    places = tuple(
        Location(start, start + 100, page)
        for page, start in enumerate((0, MANUAL.index(VALVE) - 10, MANUAL.index("Otters")), 1)
    )
    sections = (Section("Manual", 0, len(MANUAL)), Section(HEADING, 0, len(MANUAL)))
    documents = [
        Document(
            "manual.html", "Manual", MANUAL, "docs/manual.html", sections=sections, places=places, url="http://m/"
        ),
        Document("manual.txt", "", MANUAL.upper(), "docs/manual.txt", metadata={"author": "Ada"}),
        Document("bell", "Bell of Tarn", "The Bell of Tarn was cast by Ines Moreau in 1702.", "bell.md"),
    ]
    engine = Engine.open(tmp_path / "kb", embedder=embedder, settings=Settings(split=split))
    assert engine.index_documents(documents).counts.passages == 7
    return engine


@pytest.mark.parametrize("value", [3, DenseRetriever])
def test_a_value_that_is_no_retriever_is_refused(small_engine: Engine, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"the retriever is .*; expected a name, one of default"):
        small_engine.search("otters", retriever=value)
    with pytest.raises(ConfigurationError):
        small_engine.snapshot(value)


@pytest.mark.parametrize("method", ["", "semantic-units"])
def test_a_value_that_is_no_document_is_refused_by_its_position(tmp_path: Path, method: str) -> None:
    values: Any = [Document("bell", "Bell", "The bell hangs in the tower."), 1]
    with Engine.open(tmp_path / "kb", embedder="hashing:16") as engine:
        with pytest.raises(ConfigurationError, match=r"documents\[1\] is 1; expected a polyad\.Document"):
            engine.index_documents(values, method=method)
        with pytest.raises(ConfigurationError, match=r"documents is Document\(.*; expected an iterable"):
            engine.index_documents(values[0], method=method)


@pytest.mark.parametrize("retriever", sorted({*RETRIEVERS} - NEED_LANGUAGE_MODEL - {"none"}))
def test_every_retrievers_passages_become_hits(manual: Engine, retriever: str) -> None:
    evidence = manual.search(QUESTION, 4, retriever=retriever)
    output = " ".join(hit.passage.text.lower() for hit in evidence.passages)
    assert output.count("before it is started") == 1
    assert max(output.count(words) for words in ("below the limit", "otters live")) <= 1
    hits = [hit for hit in evidence.passages if hit.passage.document_id.startswith("manual")]
    assert 1 <= len(hits) <= 3
    for hit in hits:
        assert hit.passage.text.lower() == MANUAL[hit.passage.start : hit.passage.end].lower()
        assert [len({hit.origin.source, origin.source}) for origin, _ in hit.copies] == [2]
    best = next(hit for hit in hits if "bled" in hit.passage.text.lower())
    assert best.excerpt is not None
    assert "bled" in best.excerpt.text.lower()
    for scored in evidence.hyperedges:
        edge = scored.hyperedge
        (passage,) = (hit for hit in evidence.passages if hit.passage.id == edge.passage_id)
        assert passage.passage.text[edge.start : edge.end] == edge.text


def test_measurements_see_passages_as_they_are_ranked(manual: Engine) -> None:
    evidence = manual.search(QUESTION, 5, retriever="dense", merge=False)
    bare = retrievers["dense"].make(manual.components).retrieve(Query(QUESTION, 5), manual.snapshot("dense"))
    assert replace(evidence, timings=bare.timings) == bare
    assert len({hit.passage.id for hit in evidence.passages}) == 5
    assert all((hit.copies, hit.excerpt) == ((), None) for hit in evidence.passages)


@pytest.mark.parametrize("retriever", ["default", "hypersu", "dense"])
def test_a_search_embeds_its_question_once_and_asks_for_one_snapshot(
    manual: Engine, retriever: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    manual.prepare(retriever)
    encoded: list[str] = []
    encode, current = manual.components.embedder._encode, SnapshotProvider.get_current

    def counted(texts: Sequence[str], kind: TextKind) -> FloatArray:
        encoded.extend(texts)
        return encode(texts, kind)

    monkeypatch.setattr(manual.components.embedder, "_encode", counted)
    snapshots: list[MappedSnapshot] = []

    def looked(keeper: SnapshotProvider, min_version: int) -> MappedSnapshot:
        snapshots.append(current(keeper, min_version))
        return snapshots[-1]

    monkeypatch.setattr(SnapshotProvider, "get_current", looked)
    evidence = manual.search(QUESTION, 4, retriever=retriever)
    assert evidence.passages[0].excerpt is not None
    assert (encoded.count(QUESTION), len(snapshots)) == (1, 1)


def test_timings_include_advancing_the_snapshot(manual: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    manual.prepare("bm25")
    current = SnapshotProvider.get_current

    def slowly(keeper: SnapshotProvider, min_version: int) -> MappedSnapshot:
        time.sleep(0.2)
        return current(keeper, min_version)

    monkeypatch.setattr(SnapshotProvider, "get_current", slowly)
    assert manual.search(QUESTION, retriever="bm25").timings.retrieve >= 200


@pytest.mark.parametrize("retriever", ["default", "dense", "bm25"])
@pytest.mark.parametrize("words", [10, 50, 200])
def test_a_budget_of_words_holds(manual: Engine, retriever: str, words: int) -> None:
    evidence = manual.search(QUESTION, max_words=words, retriever=retriever)
    assert 0 < sum(count_words(hit.passage.text.replace(" … ", " ")) for hit in evidence.passages) <= words
    # The sentence that answers has 9 words; the one before it, which names the pump, has more than 10.
    answering = "bled before it is started" if words == 10 else "pump"
    assert answering in evidence.passages[0].passage.text.lower()


class Reversing:
    """Prefers what stands behind in the alphabet."""

    name = "reversing"

    def scores(self, question: str, passages: Sequence[str]) -> FloatArray:
        order = sorted(passages)
        return np.array([order.index(passage) for passage in passages], dtype=np.float32)


def test_a_reranker_changes_the_order_of_all_passages(manual: Engine, tmp_path: Path, embedder: Embedder) -> None:
    with Engine.open(tmp_path / "kb", embedder=embedder, reranker=Reversing()) as engine:
        evidence = engine.search(QUESTION, 2, retriever="dense", merge=False)
        everything = engine.search(QUESTION, 7, retriever="dense", merge=False)
    assert [hit.passage.id for hit in evidence.passages] == [hit.passage.id for hit in everything.passages[:2]]
    plain = [hit.passage.id for hit in manual.search(QUESTION, 7, retriever="dense", merge=False).passages]
    reranked = [hit.passage.id for hit in everything.passages]
    assert reranked != plain
    assert sorted(reranked) == sorted(plain)


def test_a_least_relevance_is_refused_where_none_is_measured(manual: Engine) -> None:
    with pytest.raises(SettingError, match=r"min_relevance is 0\.2; expected 0 with 'bm25'"):
        manual.search(QUESTION, retriever="bm25", min_relevance=0.2)


def test_a_citation_says_where_its_passage_stands(manual: Engine, tmp_path: Path, embedder: Embedder) -> None:
    model = ScriptedLanguageModel(["It has to be bled [1]."])
    with Engine.open(tmp_path / "kb", embedder=embedder, language_model=model) as engine:
        answer = engine.ask("valve pressure limit", 1, retriever="dense")
    (citation,) = answer.citations
    (hit,) = answer.evidence.passages
    assert (citation.title, citation.location, citation.origin) == (
        hit.passage.title,
        hit.passage.location,
        hit.origin,
    )


def test_a_passage_that_a_fact_brought_in_has_its_title_too(
    tmp_path: Path, small_index_dir: Path, embedder: Embedder
) -> None:
    model = ScriptedLanguageModel(["She was born in Aldby [2]."])
    settings = Settings(answer=AnswerSettings(hyperedge_share=0.7))
    with Engine.open(
        small_index_dir, embedder=embedder, language_model=model, settings=settings, create=False
    ) as engine:
        evidence = engine.search("Where was the maker of the Bell of Tarn born?", 2)
        moreau = [edge for edge in evidence.hyperedges if edge.hyperedge.passage_id == "moreau#0000"]
        alone = type(evidence)(
            evidence.question,
            evidence.retriever,
            tuple(hit for hit in evidence.passages if hit.passage.id != "moreau#0000"),
            tuple(moreau),
        )
        (citation,) = engine.answer(alone).citations
    assert (citation.passage_id, citation.title, citation.origin.title) == ("moreau#0000", "Ines Moreau", "Ines Moreau")


@pytest.mark.parametrize("question", [None, 3, b"Who?", ["Who?"]])
def test_a_question_that_is_no_text_is_refused(manual: Engine, question: object) -> None:
    with pytest.raises(ConfigurationError, match=r"the question is .*; expected a text"):
        manual.search(question)  # type: ignore[arg-type]


def test_a_question_that_is_too_long_is_refused_by_its_length(small_index_dir: Path, embedder: Embedder) -> None:
    settings = Settings(question=QuestionSettings(max_characters=20))
    with Engine.open(small_index_dir, embedder=embedder, settings=settings) as engine:
        assert engine.search("Who cast the bell??", retriever="bm25").passages
        with pytest.raises(ConfigurationError, match=r"has 21 characters; expected at most 20 \(max_characters"):
            engine.search("Who cast that bell???", retriever="bm25")
    with Engine.open(small_index_dir, embedder=embedder) as engine:
        assert engine.search("bell 1 " * 1142, retriever="bm25").passages
        with pytest.raises(ConfigurationError, match="at most 8,000"):
            engine.ask("b" * 8001, retriever="bm25")


@pytest.mark.parametrize("retriever", ["default", "dense", "hypersu", "hypergraphrag"])
def test_an_index_whose_vectors_lie_in_cells_is_searched_in_them_and_says_so(
    small_index_dir: Path,
    tmp_path: Path,
    embedder: Embedder,
    monkeypatch: pytest.MonkeyPatch,
    retriever: str,
) -> None:
    monkeypatch.setattr("polyad.snapshot.provider.MIN_SAVED", 0)
    shutil.copytree(small_index_dir, tmp_path / "kb")
    shutil.rmtree(tmp_path / "kb" / "snapshot", ignore_errors=True)
    question = "Where was the maker of the Bell of Tarn born?"
    with Engine.open(small_index_dir, embedder=embedder) as engine:
        expected = replace(engine.search(question, 3, retriever=retriever), timings=Timings())
        assert engine.catalogue.statistics().settings["nearest"] == "exact"
    for nprobe in (0, 1):
        settings = Settings(nearest=NearestSettings(exact_up_to=0, clusters_from=0, nprobe=nprobe))
        with Engine.open(tmp_path / "kb", embedder=embedder, settings=settings) as engine:
            evidence = engine.search(question, 3, retriever=retriever)
            reply = engine.catalogue.statistics().settings["nearest"]
        assert reply.startswith("approximate, finds 1.000 of the nearest 40 of passages, 1.000 of"), (
            "of those of 6, all"
        )
        assert replace(evidence, timings=Timings()) == expected
