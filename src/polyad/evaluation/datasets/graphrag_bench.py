"""GraphRAG-Bench (Xiang et al., 2026, "When to use graphs in RAG"): questions of four types on novels or medicine.

The files are those of its repository: ``Questions/NAME_questions.json``, an array of ``{"id", "source", "question",
"answer", "question_type", "evidence"}``, and ``Corpus/NAME.json``, one or many ``{"corpus_name", "context"}``; or both
in one folder. The evidence is given as statements, not as documents.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.beir import Dataset, Question, parse_texts, require_unique_id
from polyad.evaluation.files import read_json_objects
from polyad.model import Document
from polyad.text.files import make_file_name

_QUESTIONS = "_questions.json"
_BETWEEN_SENTENCES, _BETWEEN = re.compile(r"(?<=[.!?]);\s+"), re.compile(r";\s+")
"""In evidence given as one text, each statement ends in a full stop and a semicolon."""


def is_graphrag_bench(path: Path) -> bool:
    """Return whether a path is a file of questions of GraphRAG-Bench, or a folder that holds one."""
    return path.name.endswith(_QUESTIONS) if path.is_file() else bool(_find_question_files(path))


def load_graphrag_bench(path: Path) -> Dataset:
    """Read questions and corpus.

    The whole corpus is one index for all questions. A question about one of several novels has this novel as its gold
    document. With a single document there is nothing to rank, so that questions have no gold documents.

    Args:
        path: The file of questions, or a folder that holds one, directly or in ``Questions``.

    Raises:
        ConfigurationError: there is not exactly one file of questions, or a file has another format; the message names
            file and line.
    """
    questions = path if path.is_file() else _require_one(_find_question_files(path), path)
    corpus = _find_corpus(questions)
    documents = _read_documents(corpus)
    gold = {name: frozenset(document.id for document in group) for name, group in documents.items()}
    queries = _read_questions(questions, gold if len(gold) > 1 else {})
    every_document = tuple(document for group in documents.values() for document in group)
    name = make_file_name(questions.name.removesuffix(_QUESTIONS))
    return Dataset(name, corpus, queries, documents=every_document, others=(questions,))


def split_statements(evidence: object) -> tuple[str, ...]:
    """Return the statements of ``evidence``: a list, or one text separated by semicolons.

    >>> split_statements("Otters dive.; They eat fish; and crabs.")
    ('Otters dive.', 'They eat fish; and crabs.')
    """
    if not isinstance(evidence, str):
        return parse_texts(evidence)
    between = _BETWEEN_SENTENCES if _BETWEEN_SENTENCES.search(evidence) else _BETWEEN
    return tuple(text.strip() for text in between.split(evidence) if text.strip())


def _find_question_files(folder: Path) -> list[Path]:
    return sorted(path for place in (folder, folder / "Questions") for path in place.glob(f"*{_QUESTIONS}"))


def _require_one(files: list[Path], folder: Path) -> Path:
    if len(files) > 1:
        raise ConfigurationError(
            f"{str(folder)!r} holds several files of questions; expected one of {', '.join(map(str, files))}"
        )
    return files[0]


def _find_corpus(questions: Path) -> Path:
    name = f"{questions.name.removesuffix(_QUESTIONS)}.json"
    candidates = [
        questions.parent / name,
        questions.parent.parent / "Corpus" / name,
        questions.parent / "Corpus" / name,
    ]
    for path in candidates:
        if path.is_file():
            return path
    raise ConfigurationError(
        f"{str(questions)!r} has no corpus; expected {str(candidates[0])!r} or {str(candidates[1])!r} beside it"
    )


def _read_documents(path: Path) -> dict[str, list[Document]]:
    """Return the documents by the corpus name that questions refer to; documents with the same name are numbered."""
    documents: dict[str, list[Document]] = defaultdict(list)
    for line, item in read_json_objects(path):
        name, text = _get_text(item, "corpus_name", path, line), _get_text(item, "context", path, line)
        id = f"{name}#{len(documents[name]) + 1}" if documents[name] else name
        documents[name].append(Document(id, "", text, source=str(path)))
    if not documents:
        raise ConfigurationError(f'{str(path)!r} holds no document {{"corpus_name", "context"}}')
    return documents


def _read_questions(path: Path, gold: Mapping[str, frozenset[str]]) -> tuple[Question, ...]:
    questions, lines = [], dict[str, int]()
    for line, item in read_json_objects(path):
        id = _get_text(item, "id", path, line)
        require_unique_id(path, line, "question", id, lines)
        source = str(item.get("source", ""))
        if gold and source not in gold:
            raise ConfigurationError(
                f"{str(path)!r}, line {line}: question {id!r} is about {source!r}, which is no corpus_name; expected "
                f"one of {', '.join(list(gold)[:5])}, ..."
            )
        questions.append(
            Question(
                id,
                _get_text(item, "question", path, line),
                gold.get(source, frozenset()),
                parse_texts(item.get("answer")),
                str(item.get("question_type", "")),
                split_statements(item.get("evidence")),
            )
        )
    if not questions:
        raise ConfigurationError(f'{str(path)!r} holds no question {{"id", "question", "answer", "evidence"}}')
    return tuple(questions)


def _get_text(item: Mapping[str, Any], key: str, path: Path, line: int) -> str:
    value = item.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and key == "id":
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{str(path)!r}, line {line}: {key!r} is {str(value)[:60]!r}; expected a text")
    return value
