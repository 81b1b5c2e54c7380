"""The default retriever: links, signals, and weights that say why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.model import Document
from polyad.protocols.components import Embedder
from polyad.retrieval.default.retriever import DefaultRetriever, DefaultSettings
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.signals import SIGNAL_NAMES, UNNAMED_SHARE, list_weight_names
from polyad_bench.training.linear_scorer import extract_signals

QUESTION = "Where was the maker of the Bell of Tarn born?"


def titles(engine: Engine, question: str, k: int) -> list[str]:
    return [hit.passage.title for hit in engine.search(question, k).passages]


def test_a_link_leads_to_the_passage_about_what_the_first_passage_mentions(small_engine: Engine) -> None:
    evidence = small_engine.search(QUESTION, 2)
    assert [hit.passage.title for hit in evidence.passages] == ["Bell of Tarn", "Ines Moreau"]
    assert "linked from 'Bell of Tarn', which mentions 'Ines Moreau'" in evidence.passages[1].reason


def test_the_contributions_in_a_reason_add_up_to_the_score(small_engine: Engine) -> None:
    for hit in small_engine.search(QUESTION, 6, merge=False).passages:
        reasons = [part.rsplit(" ", 1) for part in hit.reason.split("; ") if not part.startswith("linked")]
        largest = [abs(float(value)) for name, value in reasons if name != "other signals"]
        assert largest == sorted(largest, reverse=True)
        assert sum(float(value) for _, value in reasons) == pytest.approx(hit.score, abs=0.0051)


def test_further_requests_for_passages_return_what_a_first_request_returns(
    small_engine: Engine, embedder: Embedder
) -> None:
    retriever, snapshot = DefaultRetriever(embedder, RuleMentionExtractor(), DefaultSettings()), small_engine.snapshot()
    rank = retriever.rank_candidates(QUESTION, snapshot)
    for k in (1, 2, 3, 1, 4, 5, 6):
        assert rank(k) == retriever.rank_candidates(QUESTION, snapshot)(k)


def test_a_rare_number_of_the_question_leads_and_says_so(tmp_path: Path, embedder: Embedder) -> None:
    documents = [
        Document(f"{number}", "", f"Each user of the system has an account and an id, such as {1000 + number % 3}.")
        for number in range(60)
    ]
    rare = Document("nfs", "", "Requests of root are mapped to 65534 unless the export permits otherwise.")
    with Engine.open(tmp_path, embedder=embedder) as engine:
        engine.index_documents([*documents, rare])
        hits = engine.search("Which user of the system has the account with the id 65534?", 3, merge=False).passages
        assert hits[0].passage.document_id == "nfs"
        assert "weighed by the words, links and similarities of the question +" in hits[0].reason
        for hit in engine.search("Which user of the system has the account with the id 1001?", 3, merge=False).passages:
            assert "rare number" not in hit.reason


@pytest.mark.parametrize("question", ["Which author was popular in the 70's?", "Who directed Felices 140?"])
def test_short_numbers_and_numbers_in_a_linked_name_do_not_lead(
    tmp_path: Path, embedder: Embedder, question: str
) -> None:
    documents = [Document(f"{number}", "", "Each author of the county has a house in Wales.") for number in range(60)]
    district = Document("district", "Penny Williams", "Penny Williams represents District 70 of Oklahoma, Box 140.")
    film = Document("film", "Felices 140", "Felices 140 is a comedy. Gracia Querejeta directed Felices 140.")
    with Engine.open(tmp_path, embedder=embedder) as engine:
        engine.index_documents([*documents, district, film])
        for hit in engine.search(question, 5, merge=False).passages:
            assert "rare number" not in hit.reason


def test_a_question_without_names_is_answered_by_similarity_and_words(small_engine: Engine) -> None:
    assert titles(small_engine, "what eats crabs and closes its ears", 1) == ["otter"]


def test_links_count_less_for_a_question_without_proper_names(small_engine: Engine) -> None:
    questions = [QUESTION, QUESTION.lower(), "How is a bell cast?"]
    named, lower, unnamed = (each.linkability for each in extract_signals(small_engine, questions))
    assert named == lower > 0
    assert unnamed == pytest.approx(UNNAMED_SHARE * named)


def test_relevance_counts_links_for_any_question(small_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    gated, full = (
        monkeypatch.setattr("polyad.retrieval.default.signals.UNNAMED_SHARE", share)
        or small_engine.search("How is a bell cast?", 1, merge=False).passages[0]
        for share in (UNNAMED_SHARE, 1)
    )
    assert gated.score != pytest.approx(full.score)
    assert gated.relevance == pytest.approx(full.relevance)


@pytest.mark.parametrize("place", ["Georgia", "Michigan", "Texas"])
def test_an_ambiguous_name_is_resolved_by_the_other_names_of_the_question(
    tmp_path: Path, embedder: Embedder, place: str
) -> None:
    documents = [
        Document("Georgia", "Atlanta", "Atlanta is the capital of Georgia and lies in Fulton County."),
        Document("Michigan", "Atlanta, Michigan", "Atlanta is a community in Montmorency County."),
        Document("Texas", "Atlanta, Texas", "Atlanta is a city in Cass County."),
        *(Document(f"n{n}", f"List {n}", f"Number {n} on the list of harvests and mills.") for n in range(20)),
    ]
    with Engine.open(tmp_path / "kb", embedder=embedder) as engine:
        engine.index_documents(documents)
        best = engine.search(f"In which county is Atlanta in {place}?", 1).passages[0]
    assert best.passage.document_id == place


def test_untitled_documents_are_linked_by_what_they_define(tmp_path: Path, embedder: Embedder) -> None:
    documents = [
        Document("a", "", "The Bell of Tarn is a bronze bell. It was cast by Ines Moreau."),
        Document("b", "", "Ines Moreau was a founder. She came from the hills in the north."),
        *(Document(f"n{n}", "", f"Number {n} on the list of harvests, granaries and mills.") for n in range(20)),
    ]
    with Engine.open(tmp_path / "kb", embedder=embedder) as engine:
        engine.index_documents(documents)
        evidence = engine.search("Who made the Bell of Tarn?", 2)
    assert [hit.passage.document_id for hit in evidence.passages] == ["a", "b"]
    assert "linked from" in evidence.passages[1].reason


def test_weights_survive_a_round_trip_through_text() -> None:
    for count in (0, 1, 6, 20):
        questions = tuple(f"{number:016x}" for number in range(count))
        scorer = LinearScorer({"a b": 0.25, "c": 3.0}, ("musique", "my questions"), question_digests=questions)
        assert LinearScorer.from_text(scorer.to_text(), "file") == scorer


def test_the_bundled_weights_are_for_the_signals_there_are_and_speak_for_passages() -> None:
    weights = LinearScorer.from_settings("").get_weights(list_weight_names(SIGNAL_NAMES))
    assert (weights >= 0).all()
    assert np.count_nonzero(weights) > 8


def test_weights_for_other_signals_are_refused(small_index_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "w.tsv").write_text("luck\t1\n", encoding="utf-8")
    settings = Settings(default=DefaultSettings(weights=str(tmp_path / "w.tsv")))
    with (
        Engine.open(small_index_dir, settings=settings, create=False) as engine,
        pytest.raises(ConfigurationError, match=r"for other signals.*weights\.tsv"),
    ):
        engine.search(QUESTION)


@pytest.mark.parametrize("text", ["link\tmuch\n", "link 0.5\n", "# questions: 0123456789abcdef 0123\n"])
def test_a_file_that_is_no_list_of_weights_is_refused_with_the_line(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"w\.tsv, line 1: .* expected"):
        LinearScorer.from_text(text, "w.tsv")
