"""Names and multi-hop questions in other languages than English, on small texts of these languages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from polyad.engine import Engine
from polyad.model import Document
from polyad.text.keys import build_entity_key

FOLDER = Path(__file__).parent


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=["zh", "ar", "de", "ja", "th"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def documents(language: str) -> Mapping[str, str]:
    texts = read("linking.json")[language]["documents"]
    return read(texts)["documents"] if isinstance(texts, str) else texts  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def engine(documents: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine.open(tmp_path_factory.mktemp("index"), embedder="hashing") as engine:
        engine.index_documents([Document(id=title, text=text, title=title) for title, text in documents.items()])
        yield engine


def test_a_question_links_to_the_entity_that_it_names(engine: Engine, language: str) -> None:
    questions = read("linking.json")[language]["questions"]
    missing = [
        question
        for question, name in questions.items()
        if build_entity_key(name) not in [scored.entity.key for scored in engine.search(question, k=1).entities]
    ]
    assert len(questions) == 8
    assert not missing


def test_multi_hop_questions_have_all_evidence_among_the_first_five(engine: Engine, language: str) -> None:
    if not (FOLDER / f"sample_{language}.json").exists():
        pytest.skip("no translated sample")
    questions = read(f"sample_{language}.json")["questions"]
    complete = [
        question["text"]
        for question in questions
        if {*question["gold"]} <= {hit.passage.document_id for hit in engine.search(question["text"], k=5).passages}
    ]
    assert len(questions) == 6
    assert len(complete) >= 5
