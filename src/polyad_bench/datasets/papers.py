"""Data sets in the layouts of the repositories of papers: GraphRAG-Bench and WikiTopics.

GraphRAG-Bench (Xiang et al., 2026, "When to use graphs in RAG") has questions of four types on novels or medicine:
``Questions/NAME_questions.json``, an array of ``{"id", "source", "question", "answer", "question_type", "evidence"}``,
and ``Corpus/NAME.json``, one or many ``{"corpus_name", "context"}``; or both in one folder. The evidence is given as
statements, not as documents.

WikiTopics (HyperRAG, section 4.1) has questions whose answers are entities, easy and hard answers. With or without
``test_`` before their names, ``queries.json`` holds lists of questions by their structure, such as ``("e", ("r", "r",
"r"))``, and ``answers_easy.json`` and ``answers_hard.json`` the answers by structure and question. The corpus is
``corpus.jsonl``, ``facts.jsonl`` (facts as data), or the lines of ``*_sentences.txt``, each of which is a document.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.model import Document
from polyad.text.files import make_file_name
from polyad_bench.datasets.beir import Dataset, Question, parse_texts, require_unique_id
from polyad_bench.files import find_line, read_json, read_json_objects, read_text

_QUESTIONS = "_questions.json"
_BETWEEN_SENTENCES, _BETWEEN = re.compile(r"(?<=[.!?]);\s+"), re.compile(r";\s+")
"""In evidence given as one text, each statement ends in a full stop and a semicolon."""


def is_graphrag_bench(path: Path) -> bool:
    """Return whether a path is a file of questions in the format of GraphRAG-Bench, or a folder that contains one."""
    return path.name.endswith(_QUESTIONS) if path.is_file() else bool(_find_question_files(path))


def load_graphrag_bench(path: Path) -> Dataset:
    """Return the questions and the corpus of GraphRAG-Bench as a data set.

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
    """Return the evidence statements in a JSON value: a list, or one text with statements separated by semicolons.

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
    """Return the documents of a GraphRAG-Bench file in lists, keyed by ``corpus_name``; later ids end in a number."""
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


_PREFIXES = ("", "test_")
_CORPORA = ("corpus.jsonl", "facts.jsonl")


def is_wikitopics(folder: Path) -> bool:
    """Return whether a folder contains the files of WikiTopics, the benchmark of HyperRAG."""
    return any((folder / f"{prefix}queries.json").is_file() for prefix in _PREFIXES)


def load_wikitopics(folder: Path) -> Dataset:
    """Return the questions, answers and corpus of WikiTopics as a data set, in which no question has gold documents.

    Raises:
        ConfigurationError: a file is missing or has another format; the message names file and line.
    """
    prefix = next(prefix for prefix in _PREFIXES if (folder / f"{prefix}queries.json").is_file())
    queries = folder / f"{prefix}queries.json"
    easy, hard = folder / f"{prefix}answers_easy.json", folder / f"{prefix}answers_hard.json"
    answers = [path for path in (easy, hard) if path.is_file()]
    if not answers:
        raise ConfigurationError(f"{str(easy)!r} is missing; expected it, or {str(hard)!r}, beside {str(queries)!r}")
    questions = _read_topic_questions(queries, _read_topic_answers(easy), _read_topic_answers(hard))
    corpora = [folder / name for name in _CORPORA if (folder / name).is_file()]
    name = folder.resolve().name
    if corpora:
        return Dataset(name, corpora[0], questions, others=(queries, *answers))
    files = sorted(folder.glob("*_sentences.txt"))
    if not files:
        raise ConfigurationError(f"{str(folder)!r} has no corpus; expected {', '.join(_CORPORA)} or *_sentences.txt")
    documents = _read_sentences(files)
    return Dataset(name, files[0], questions, documents=documents, others=(*files[1:], queries, *answers))


def _read_topic_questions(
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
            by_difficulty = {"easy": tuple(easy.get(text, ())), "hard": tuple(hard.get(text, ()))}
            id = f"q{len(questions) + 1:05}"
            questions.append(Question(id, text, frozenset(), answers, structure, **by_difficulty))
    if not questions:
        raise ConfigurationError(f"{str(path)!r} holds no question")
    return tuple(questions)


def _read_topic_answers(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the accepted answers in a WikiTopics file, keyed by question; empty if the file is missing."""
    content: Any = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict) or not all(isinstance(by_question, dict) for by_question in content.values()):
        raise ConfigurationError(f"{str(path)!r}: expected answers by question and structure")
    return {text: parse_texts(answers) for by_question in content.values() for text, answers in by_question.items()}


def _read_sentences(files: Sequence[Path]) -> tuple[Document, ...]:
    """Return one document for each non-blank line of the files, without duplicates."""
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
