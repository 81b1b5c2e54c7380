"""GraphRAG-Bench (Xiang et al., 2026, "When to use graphs in RAG"): questions of four types on novels or medicine.

The files are those of its repository: ``Questions/NAME_questions.json``, an array of ``{"id", "source", "question",
"answer", "question_type", "evidence"}``, and ``Corpus/NAME.json``, one or many ``{"corpus_name", "context"}``; or both
in one folder. What the evidence is, is said in statements of their own, not in documents.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.beir import Dataset, Question, parse_texts, require_unique_id
from polyad.evaluation.datasets.json_files import read_json_objects
from polyad.model import Document

_QUESTIONS = "_questions.json"
_BETWEEN_SENTENCES, _BETWEEN = re.compile(r"(?<=[.!?]);\s+"), re.compile(r";\s+")
"""Where the evidence is written as one text, each statement ends in a full stop and a semicolon."""


def is_graphrag_bench(place: Path) -> bool:
    """Whether these files are what is in a folder, or what is named."""
    return place.name.endswith(_QUESTIONS) if place.is_file() else bool(_question_files(place))


def load_graphrag_bench(place: Path) -> Dataset:
    """Read questions and corpus.

    All of a corpus is one index, from which every question is asked: of the novels each question has one, which is then
    its gold document. With a single document there is nothing to rank, and no gold.

    Args:
        place: The file of questions, or a folder that holds one, by itself or in ``Questions``.

    Raises:
        ConfigurationError: there is not exactly one, or something is not in the format: says file and line.
    """
    questions = place if place.is_file() else _only(_question_files(place), place)
    corpus = _corpus_of(questions)
    documents = _documents(corpus)
    gold = {name: frozenset(document.id for document in own) for name, own in documents.items()}
    asked = _questions(questions, gold if len(gold) > 1 else {})
    listed = tuple(document for own in documents.values() for document in own)
    name = questions.name.removesuffix(_QUESTIONS)
    return Dataset(name, corpus, asked, documents=listed, others=(questions,))


def split_statements(evidence: object) -> tuple[str, ...]:
    """The statements of ``evidence``: a list of them, or one text with semicolons between.

    >>> split_statements("Otters dive.; They eat fish; and crabs.")
    ('Otters dive.', 'They eat fish; and crabs.')
    """
    if not isinstance(evidence, str):
        return parse_texts(evidence)
    between = _BETWEEN_SENTENCES if _BETWEEN_SENTENCES.search(evidence) else _BETWEEN
    return tuple(text.strip() for text in between.split(evidence) if text.strip())


def _question_files(folder: Path) -> list[Path]:
    return sorted(path for place in (folder, folder / "Questions") for path in place.glob(f"*{_QUESTIONS}"))


def _only(files: list[Path], folder: Path) -> Path:
    if len(files) > 1:
        raise ConfigurationError(
            f"{str(folder)!r} holds several files of questions; expected one of {', '.join(map(str, files))}"
        )
    return files[0]


def _corpus_of(questions: Path) -> Path:
    name = f"{questions.name.removesuffix(_QUESTIONS)}.json"
    places = [questions.parent / name, questions.parent.parent / "Corpus" / name, questions.parent / "Corpus" / name]
    for place in places:
        if place.is_file():
            return place
    raise ConfigurationError(
        f"{str(questions)!r} has no corpus; expected {str(places[0])!r} or {str(places[1])!r} beside it"
    )


def _documents(path: Path) -> dict[str, list[Document]]:
    """The documents by the name that questions call them by, which is no title; those of one name are numbered."""
    found: dict[str, list[Document]] = defaultdict(list)
    for line, item in read_json_objects(path):
        name, text = _text(item, "corpus_name", path, line), _text(item, "context", path, line)
        id = f"{name}#{len(found[name]) + 1}" if found[name] else name
        found[name].append(Document(id, "", text, source=str(path)))
    if not found:
        raise ConfigurationError(f'{str(path)!r} holds no document {{"corpus_name", "context"}}')
    return found


def _questions(path: Path, gold: Mapping[str, frozenset[str]]) -> tuple[Question, ...]:
    found, lines = [], dict[str, int]()
    for line, item in read_json_objects(path):
        id = _text(item, "id", path, line)
        require_unique_id(path, line, "question", id, lines)
        source = str(item.get("source", ""))
        if gold and source not in gold:
            raise ConfigurationError(
                f"{str(path)!r}, line {line}: question {id!r} is about {source!r}, which is no corpus_name; expected "
                f"one of {', '.join(list(gold)[:5])}, ..."
            )
        found.append(
            Question(
                id,
                _text(item, "question", path, line),
                gold.get(source, frozenset()),
                parse_texts(item.get("answer")),
                str(item.get("question_type", "")),
                split_statements(item.get("evidence")),
            )
        )
    if not found:
        raise ConfigurationError(f'{str(path)!r} holds no question {{"id", "question", "answer", "evidence"}}')
    return tuple(found)


def _text(item: Mapping[str, Any], key: str, path: Path, line: int) -> str:
    value = item.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and key == "id":
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{str(path)!r}, line {line}: {key!r} is {str(value)[:60]!r}; expected a text")
    return value
