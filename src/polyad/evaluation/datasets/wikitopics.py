"""WikiTopics (HyperRAG, section 4.1): questions whose answers are entities, easy and hard ones.

The files are those of HyperRAG's repository, with or without ``test_`` before their names: ``queries.json``, lists of
questions by their structure, such as ``('e', ('r', 'r', 'r'))``; ``answers_easy.json`` and ``answers_hard.json``, the
answers by structure and question. The corpus is ``corpus.jsonl``, ``facts.jsonl`` (facts as data), or the lines of
``*_sentences.txt``, each of which is a document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.beir import Dataset, Question, parse_texts
from polyad.evaluation.files import find_line, read_json, read_text
from polyad.model import Document

_PREFIXES = ("", "test_")
_CORPORA = ("corpus.jsonl", "facts.jsonl")


def is_wikitopics(folder: Path) -> bool:
    """Return whether a folder holds the files of WikiTopics."""
    return any((folder / f"{prefix}queries.json").is_file() for prefix in _PREFIXES)


def load_wikitopics(folder: Path) -> Dataset:
    """Read questions, answers and corpus; questions have no gold documents.

    Raises:
        ConfigurationError: a file is missing or has another format; the message names file and line.
    """
    prefix = next(prefix for prefix in _PREFIXES if (folder / f"{prefix}queries.json").is_file())
    queries = folder / f"{prefix}queries.json"
    easy, hard = folder / f"{prefix}answers_easy.json", folder / f"{prefix}answers_hard.json"
    answers = [path for path in (easy, hard) if path.is_file()]
    if not answers:
        raise ConfigurationError(f"{str(easy)!r} is missing; expected it, or {str(hard)!r}, beside {str(queries)!r}")
    questions = _read_questions(queries, _read_answers(easy), _read_answers(hard))
    corpora = [folder / name for name in _CORPORA if (folder / name).is_file()]
    name = folder.resolve().name
    if corpora:
        return Dataset(name, corpora[0], questions, others=(queries, *answers))
    files = sorted(folder.glob("*_sentences.txt"))
    if not files:
        raise ConfigurationError(f"{str(folder)!r} has no corpus; expected {', '.join(_CORPORA)} or *_sentences.txt")
    documents = _read_documents(files)
    return Dataset(name, files[0], questions, documents=documents, others=(*files[1:], queries, *answers))


def _read_questions(
    path: Path, easy: Mapping[str, Sequence[str]], hard: Mapping[str, Sequence[str]]
) -> tuple[Question, ...]:
    by_structure = read_json(path)
    if not isinstance(by_structure, dict) or not all(isinstance(texts, list) for texts in by_structure.values()):
        raise ConfigurationError(f"{str(path)!r}: expected lists of questions by their structure")
    questions: list[Question] = []
    seen: set[str] = set()
    for structure, texts in by_structure.items():
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                raise ConfigurationError(f"{str(path)!r}: a question of {structure} is {text!r}; expected some words")
            if text in seen:  # a question with another structure but the same text has the same answers
                continue
            seen.add(text)
            answers = tuple(dict.fromkeys([*easy.get(text, ()), *hard.get(text, ())]))
            if not answers:
                raise ConfigurationError(
                    f"{str(path)!r}, line {find_line(path, text)}: there is no answer to {text!r}; expected some among "
                    "the easy or the hard ones"
                )
            id = f"q{len(questions) + 1:05}"
            questions.append(
                Question(
                    id,
                    text,
                    frozenset(),
                    answers,
                    structure,
                    easy=tuple(easy.get(text, ())),
                    hard=tuple(hard.get(text, ())),
                )
            )
    if not questions:
        raise ConfigurationError(f"{str(path)!r} holds no question")
    return tuple(questions)


def _read_answers(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the answers of a file by question; empty if the file is missing."""
    content: Any = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict) or not all(isinstance(by_question, dict) for by_question in content.values()):
        raise ConfigurationError(f"{str(path)!r}: expected answers by question and structure")
    return {text: parse_texts(answers) for by_question in content.values() for text, answers in by_question.items()}


def _read_documents(files: Sequence[Path]) -> tuple[Document, ...]:
    """Return the non-blank lines of the files as documents, without duplicates."""
    documents: dict[str, Document] = {}
    for path in files:
        for number, line in enumerate(read_text(path).splitlines(), 1):
            if line.strip():
                documents.setdefault(
                    line.strip(), Document(f"{path.stem}:{number}", "", line.strip(), source=str(path))
                )
    if not documents:
        raise ConfigurationError(f"{', '.join(map(str, files))}: no sentences; expected one a line")
    return tuple(documents.values())
