"""Evidence, hits and answers in notebooks."""

from __future__ import annotations

import json
import sys

import pytest

from polyad import Answer, Document, Engine, Evidence
from polyad.errors import ConfigurationError
from polyad.model import Citation, Span
from polyad.schemas.evidence import answer_json, evidence_json
from polyad.text.json_types import format_value

TEXT = "The clapper is <b>new</b>. The Bell of Tarn was cast by Ines <i>Moreau</i> & sons in 1702. It rings."


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    with Engine.open(tmp_path_factory.mktemp("kb"), embedder="hashing:64") as engine:
        engine.index_documents([Document("bell", "Bell <of> Tarn", TEXT), Document("song", "Song", "Sing loudly.")])
        return engine.search("Who cast the Bell of Tarn?", 2, retriever="bm25")


@pytest.fixture(scope="module")
def answer(evidence: Evidence) -> Answer:
    citation = Citation(1, evidence.passages[0].passage.id, "bell", Span(0, 12), "Bell <of> Tarn")
    return Answer("Moreau <did> [1].", evidence, (citation, citation))


def test_html_is_escaped_and_the_best_sentence_is_marked(evidence: Evidence, answer: Answer) -> None:
    html = evidence._repr_html_()
    assert "<mark>The Bell of Tarn was cast by Ines &lt;i&gt;Moreau&lt;/i&gt; &amp; sons in 1702.</mark>" in html
    assert evidence.passages[0]._repr_html_() in html
    for page in (html, answer._repr_html_()):
        assert "&lt;of&gt;" in page
        assert not {"<i>", "<of>", "<did>"} & set(page.replace(">", ">|").replace("<", "|<").split("|"))


def test_text_is_readable(evidence: Evidence, answer: Answer) -> None:
    lines = str(evidence).splitlines()
    assert lines[0] == evidence.question
    assert lines[1].startswith("1. Bell <of> Tarn")
    assert lines[2] == TEXT
    assert str(answer).splitlines() == ["Moreau <did> [1].", "[1] Bell <of> Tarn"]


def test_without_a_text_an_answer_displays_its_evidence(evidence: Evidence) -> None:
    answer = Answer("", evidence, note="no model")
    assert str(answer) == f"{evidence}\nno model"
    assert evidence._repr_html_() in answer._repr_html_()


def test_dictionaries_are_the_json_of_the_commands(evidence: Evidence, answer: Answer) -> None:
    assert evidence.to_dict() == format_value(evidence_json(evidence, explain=False))
    assert answer.to_dict() == format_value(answer_json(answer, explain=False))
    assert json.dumps(evidence.passages[0].to_dict())


def test_a_data_frame_has_a_row_for_each_hit_or_citation(evidence: Evidence, answer: Answer) -> None:
    pytest.importorskip("pandas")
    frame = evidence.to_pandas()
    assert list(frame["document_id"]) == [hit.passage.document_id for hit in evidence.passages]
    assert "1702" in frame["best_sentence"][0]
    assert list(evidence.passages[0].to_pandas()["text"]) == [TEXT]
    assert list(answer.to_pandas()["claim"]) == ["Moreau <did>"] * 2


def test_without_pandas_the_error_says_what_to_install(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigurationError, match="pip install pandas"):
        evidence.to_pandas()


def test_repr_is_that_of_a_dataclass(evidence: Evidence) -> None:
    assert repr(evidence).startswith("Evidence(question=")
    assert not hasattr(evidence, "__dict__")
