"""Relevance: a probability beside the score, and the refusal of questions that the documents do not answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from polyad import sample
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.model import AbsentName, Document, FloatArray
from polyad.protocols.components import Embedder, TextKind
from polyad.retrieval.default.absent_names import find_absent_names
from polyad.retrieval.default.relevance import FEATURES, load_relevance_model
from polyad.retrieval.default.retriever import DefaultRetriever, DefaultSettings
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.default.signals import SIGNAL_NAMES, list_weight_names
from polyad.retrieval.question import QuestionLinker


def test_hits_of_the_default_retriever_say_how_relevant_they_are(tmp_path: Path) -> None:
    weights = dict.fromkeys(list_weight_names(SIGNAL_NAMES), 0.0)
    weights |= dict.fromkeys(list_weight_names(["similar to the question"]), 1.0)
    (tmp_path / "w.tsv").write_text(LinearScorer(weights).to_text(), encoding="utf-8")
    settings = Settings(default=DefaultSettings(weights=str(tmp_path / "w.tsv")))
    documents = [
        Document("bell", "Bell", "It was cast in bronze."),
        Document("bowl", "Bowl", "It may be of wood or of clay or of bronze."),
        Document("otter", "Otter", "It eats fish."),
    ]
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32), settings=settings) as engine:
        engine.index_documents(documents)
        hits = engine.search("What was cast in bronze?").passages
    assert [hit.passage.document_id for hit in hits] == ["bell", "bowl"]
    assert 1 > (hits[0].relevance or 0) >= (hits[1].relevance or 0) > 0


def measure_feature(engine: Engine, question: str, feature: str, hidden: Sequence[int] = ()) -> float:
    """Return a feature of a question, without the passages ``hidden``."""
    components = engine.components
    retriever = DefaultRetriever(components.embedder, components.extractor, components.settings.default)
    *_, (features, _) = retriever.measure_relevance(question, engine.snapshot(), *([hidden] if hidden else ()))
    return float(features.table[0, FEATURES.index(feature)])


@pytest.fixture(scope="module")
def army_index(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Path:
    """An index of one document, a manual of an army that does not name its country."""
    folder = tmp_path_factory.mktemp("army")
    with Engine.open(folder, embedder=embedder) as engine:
        engine.index_documents(
            [Document("drill", "Drill", "Infantrymen stand in ranks with elbows four inches apart.")]
        )
    return folder


@pytest.mark.parametrize(
    ("question", "share"),
    [
        ("How far apart, elbow to elbow, do American infantrymen stand in ranks?", 0),
        ("How far apart do infantrymen stand in ranks?", 0),
        ("How far apart do infantrymen stand in the Battle of Brolvak?", 1),
        ("How far apart do the stones of Stonehenge stand?", 1),
    ],
)
def test_an_unknown_name_counts_if_it_matters_for_the_meaning_of_the_question(
    army_index: Path, question: str, share: float
) -> None:
    with Engine.open(army_index) as engine:
        assert measure_feature(engine, question, "unknown names") == pytest.approx(share, abs=0.01)


def test_words_that_no_passage_contains_count_by_their_rarity(army_index: Path) -> None:
    with Engine.open(army_index) as engine:
        texts = ("infantrymen in ranks", "infantrymen soup", "qxv zzkr plomt")
        none, half, every = (measure_feature(engine, text, "unknown") for text in texts)
    assert (none, half, every) == (0, 0.5, 1)


def test_a_hidden_passage_counts_as_absent(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(64)) as engine:
        engine.index_documents(
            [Document("otter", "", "Otters eat fish."), Document("bell", "", "Bells hang above the fish market.")]
        )
        otter = int(engine.snapshot().search_terms("otters", 1)[0][0])
        question = "What fish do otters eat?"
        assert (measure_feature(engine, question, "unknown"), measure_feature(engine, question, "coverage")) == (0, 1)
        assert measure_feature(engine, question, "unknown", [otter]) == pytest.approx(2 / 3)
        assert measure_feature(engine, question, "coverage", [otter]) == pytest.approx(1 / 3)


def test_a_passage_that_only_names_the_subject_has_half_of_the_question(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(64)) as engine:
        engine.index_documents(
            [
                Document("title", "", "Marlock Instruments. Annual report."),
                Document("chief", "", "The chief executive leads the company."),
            ]
        )
        question = "Who is the chief executive of Marlock Instruments?"
        assert measure_feature(engine, question, "joint coverage") == 1
        assert measure_feature(engine, question, "balanced coverage") == 0


@pytest.fixture(scope="module")
def sample_index(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Path:
    """An index of twelve short articles."""
    folder = tmp_path_factory.mktemp("sample")
    with Engine.open(folder, embedder=embedder) as engine:
        engine.index_documents(document for document in sample.documents() if isinstance(document, Document))
    return folder


ANSWERED = ("Who designed the Ottermere Gauge?", "Whose gift founded the owner of Saltby Weir?")


def test_auto_answers_questions_that_a_small_index_answers_and_refuses_others(sample_index: Path) -> None:
    unanswered = ["qxv zzkr plomt?", "How do I bake a cake without eggs?", "Who designed the Brolvak Cathedral?"]
    with Engine.open(sample_index) as engine:
        for question in ANSWERED:
            assert engine.search(question, min_relevance="auto").passages, question
            assert engine.search(question, min_relevance=0.2).passages, question
        for question in unanswered:
            evidence = engine.search(question, min_relevance="auto")
            assert not evidence.passages, question
            assert evidence.best_relevance is not None
        assert len(engine.search(ANSWERED[0], min_relevance="auto").passages) == 5, "auto leaves no single passage out"
        assert engine.search(unanswered[0], retriever="dense", min_relevance="auto").passages, "it has no relevance"


def read_relevances(engine: Engine, k: int = 3) -> list[float | None]:
    """Return the relevance of the hits of two questions."""
    return [hit.relevance for question in ANSWERED for hit in engine.search(question, k, merge=False).passages]


def test_relevance_is_the_same_before_and_after_any_other_search(sample_index: Path) -> None:
    with Engine.open(sample_index) as engine:
        before = read_relevances(engine)
        for question in (*ANSWERED, "How do I bake a cake without eggs?"):
            engine.search(question, min_relevance="auto")
        assert read_relevances(engine) == before
        assert read_relevances(engine, 5)[:3] == before[:3], "it does not depend on the number of hits"
    with Engine.open(sample_index) as engine:
        assert read_relevances(engine) == before


def test_relevance_hardly_changes_when_the_index_grows_by_a_tenth(tmp_path: Path, embedder: Embedder) -> None:
    documents = [document for document in sample.documents() if isinstance(document, Document)]
    with Engine.open(tmp_path, embedder=embedder) as engine:
        engine.index_documents(documents)
        before = read_relevances(engine)
        engine.index_documents([Document("new", "Beekeeping", "Bees are kept in hives of wood beside a meadow.")])
        after = read_relevances(engine)
    assert np.array(after, dtype=float) == pytest.approx(np.array(before, dtype=float), abs=0.02)


@pytest.mark.parametrize("question", ["otters", "fish", "Otters fish", "What do otters eat?", "river night"])
def test_a_few_words_are_not_refused_while_a_passage_contains_them(tmp_path: Path, question: str) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(32)) as engine:
        assert not engine.search("otters", min_relevance="auto").passages, "an empty index has no hits"
        engine.index_documents(
            [
                Document("otter", "", "Otters eat fish in the river by night, and hardly anything else."),
                *(
                    Document(f"{number}", "", f"The bell {number} was cast from bronze by a maker.")
                    for number in range(40)
                ),
            ]
        )
        evidence = engine.search(question, min_relevance="auto")
        assert evidence.passages[0].passage.document_id == "otter"


@pytest.mark.parametrize("question", ["price-list-2026.csv", "price list 2026"])
def test_the_name_of_a_file_leads_to_it_and_is_not_refused(tmp_path: Path, embedder: Embedder, question: str) -> None:
    names = ["bearing", "gasket", "impeller", "motor", "nozzle", "pump", "screw", "valve", "washer", "wrench"]
    rows = "\n".join(f"{name},{price}" for price, name in enumerate(names, 10))
    (tmp_path / "price-list-2026.csv").write_text(f"title,euros\n{rows}\n", encoding="utf-8")
    (tmp_path / "releases.md").write_text("# Release\n\nA list is saved as CSV since 2026.\n", encoding="utf-8")
    for number in range(8):
        (tmp_path / f"minutes-{number}.md").write_text(f"# Meeting {number}\n\nNo news of prices.\n", encoding="utf-8")
    with Engine.open(tmp_path / "kb", embedder=embedder) as engine:
        engine.index([tmp_path / "price-list-2026.csv", *sorted(tmp_path.glob("*.md"))])
        hits = engine.search(question).passages
    assert "price-list-2026.csv" in hits[0].passage.document_id
    assert (hits[0].relevance or 0) >= load_relevance_model().limit


def test_an_index_of_one_passage_answers_and_refuses_what_it_lacks(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder=HashingEmbedder(32)) as engine:
        engine.index_documents([Document("a", "Anna", "Anna met Bob in Oslo.")])
        assert engine.search("Whom did Anna meet?", min_relevance="auto").passages
        assert not engine.search("How do submarines dive?", min_relevance="auto").passages


PARTS = (
    "The seal kit HP-2210 costs 84 EUR.",
    "The pump P31 has the valve C-2024-008 and case 48213.",
    "Version 4.4.1 was released for Dr Holt.",
)


@pytest.mark.parametrize(
    ("question", "absent"),
    [
        ("What does HP-2212 cost?", [AbsentName("HP-2212", "HP-2210")]),
        ("What does HP-2210 cost?", []),
        ("what does HP2210 or P-31 cost", []),
        ("When does C-2024-009 end?", [AbsentName("C-2024-009", "C-2024-008")]),
        ("Which is 48214, not 48213?", [AbsentName("48214", "48213")]),
        ("Who closed case ZQ-7?", [AbsentName("ZQ-7", "")]),
        ("Since when is v4.4.1 out, the 3rd of 2031, at 12:30 or 2024-05-06 for 10mg?", []),
        ("What did Lena Brolvak say to Holt?", [AbsentName("Lena Brolvak", "")]),
        ("Was hat die Pumpe mit dem Ventil gemacht?", []),
    ],
)
def test_codes_and_names_that_no_passage_contains_are_stated(
    tmp_path: Path, question: str, absent: list[AbsentName]
) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(32)) as engine:
        engine.index_documents(Document(f"{number}", "", text) for number, text in enumerate(PARTS))
        linked = QuestionLinker(engine.components.extractor).link(question, engine.snapshot())
        assert find_absent_names(linked, engine.snapshot()) == absent
        assert list(engine.search(question).absent_names) == absent


def test_a_question_about_a_code_that_no_passage_contains_is_refused(tmp_path: Path) -> None:
    with Engine.open(tmp_path, embedder=HashingEmbedder(32)) as engine:
        engine.index_documents(Document(f"{number}", "", text) for number, text in enumerate(PARTS))
        evidence = engine.search("What does the seal kit HP-2212 cost?", min_relevance="auto")
        assert (evidence.passages, evidence.absent_names) == ((), (AbsentName("HP-2212", "HP-2210"),))
        assert "No passage contains HP-2212; the nearest is HP-2210." in engine.answer(evidence).note
        assert engine.search("What does the seal kit HP-2210 cost?", min_relevance="auto").passages


def test_the_network_of_relevance_has_its_features() -> None:
    model = load_relevance_model()
    assert model.mean.shape == model.linear.shape == (len(FEATURES),)
    assert model.hidden.shape == (len(FEATURES), len(model.output))
    assert 0 < model.limit < 0.5


class CountingEmbedder(HashingEmbedder):
    """A hashing embedder that records the number of texts of each request."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.requests: list[int] = []

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.requests.append(len(texts))
        return super().encode(texts, kind)


def test_an_unknown_name_costs_no_further_request_to_the_embedder(tmp_path: Path) -> None:
    embedder = CountingEmbedder(32)
    with Engine.open(tmp_path, embedder=embedder) as engine:
        engine.index_documents([Document("drill", "Drill", "Infantrymen stand in ranks.")])
        embedder.requests.clear()
        measure_feature(engine, "How do infantrymen of Brolvak stand?", "unknown names")
    assert embedder.requests == [3]
