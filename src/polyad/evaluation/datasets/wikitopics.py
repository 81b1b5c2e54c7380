"""WikiTopics (HyperRAG, section 4.1): questions whose answers are entities, easy and hard ones.

The files are those of HyperRAG's repository, with or without ``test_`` before their names: ``queries.json``, lists of
questions by what they are made of, such as ``('e', ('r', 'r', 'r'))``; ``answers_easy.json`` and ``answers_hard.json``,
the answers to each question likewise. The corpus is ``corpus.jsonl``, ``facts.jsonl`` (facts given as data), or all of
``*_sentences.txt``, each line of which is a document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.beir import Dataset, Question, parse_texts
from polyad.evaluation.datasets.json_files import find_line, read_json, read_text
from polyad.model import Document

_PREFIXES = ("", "test_")
_GIVEN = ("corpus.jsonl", "facts.jsonl")


def is_wikitopics(place: Path) -> bool:
    """Whether these files are what is in a folder."""
    return any((place / f"{prefix}queries.json").is_file() for prefix in _PREFIXES)


def load_wikitopics(place: Path) -> Dataset:
    """Read questions, answers and corpus; the evidence is not known.

    Raises:
        ConfigurationError: a file is missing or not in the format: says file and line.
    """
    prefix = next(prefix for prefix in _PREFIXES if (place / f"{prefix}queries.json").is_file())
    queries = place / f"{prefix}queries.json"
    easy, hard = place / f"{prefix}answers_easy.json", place / f"{prefix}answers_hard.json"
    answers = [path for path in (easy, hard) if path.is_file()]
    if not answers:
        raise ConfigurationError(f"{str(easy)!r} is missing; expected it, or {str(hard)!r}, beside {str(queries)!r}")
    found = _questions(queries, _answers(easy), _answers(hard))
    given = [place / name for name in _GIVEN if (place / name).is_file()]
    name = place.resolve().name
    if given:
        return Dataset(name, given[0], found, others=(queries, *answers))
    files = sorted(place.glob("*_sentences.txt"))
    if not files:
        raise ConfigurationError(f"{str(place)!r} has no corpus; expected {', '.join(_GIVEN)} or *_sentences.txt")
    documents = _documents(files)
    return Dataset(name, files[0], found, documents=documents, others=(*files[1:], queries, *answers))


def _questions(
    path: Path, easy: Mapping[str, Sequence[str]], hard: Mapping[str, Sequence[str]]
) -> tuple[Question, ...]:
    kinds = read_json(path)
    if not isinstance(kinds, dict) or not all(isinstance(texts, list) for texts in kinds.values()):
        raise ConfigurationError(f"{str(path)!r}: expected lists of questions by what they are made of")
    found: list[Question] = []
    known: set[str] = set()
    for kind, texts in kinds.items():
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                raise ConfigurationError(f"{str(path)!r}: a question of {kind} is {text!r}; expected some words")
            if text in known:  # what leads to the same words has the same answers
                continue
            known.add(text)
            answers = tuple(dict.fromkeys([*easy.get(text, ()), *hard.get(text, ())]))
            if not answers:
                raise ConfigurationError(
                    f"{str(path)!r}, line {find_line(path, text)}: there is no answer to {text!r}; expected some among "
                    "the easy or the hard ones"
                )
            id = f"q{len(found) + 1:05}"
            found.append(
                Question(
                    id, text, frozenset(), answers, kind, easy=tuple(easy.get(text, ())), hard=tuple(hard.get(text, ()))
                )
            )
    if not found:
        raise ConfigurationError(f"{str(path)!r} holds no question")
    return tuple(found)


def _answers(path: Path) -> dict[str, tuple[str, ...]]:
    """The answers of a file by question; none where there is no such file."""
    content: Any = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict) or not all(isinstance(by_question, dict) for by_question in content.values()):
        raise ConfigurationError(f"{str(path)!r}: expected answers by question, by what questions are made of")
    return {text: parse_texts(answers) for by_question in content.values() for text, answers in by_question.items()}


def _documents(files: Sequence[Path]) -> tuple[Document, ...]:
    """The lines of some files that are not blank, each text once."""
    found: dict[str, Document] = {}
    for path in files:
        for number, line in enumerate(read_text(path).splitlines(), 1):
            if line.strip():
                found.setdefault(line.strip(), Document(f"{path.stem}:{number}", "", line.strip(), source=str(path)))
    if not found:
        raise ConfigurationError(f"{', '.join(map(str, files))}: no sentences; expected one a line")
    return tuple(found.values())
