"""Questions that an index can answer, generated from its names and headings without a language model."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple
from weakref import WeakKeyDictionary
from zlib import crc32

from polyad.curation.curator import HistoryEntry
from polyad.engine import Engine
from polyad.engine.catalogue import Catalogue
from polyad.engine.document_table import DocumentRow
from polyad.model import Evidence
from polyad.readers.text.titles import is_generic_name

_MAX_DOCUMENTS = 24
"""Documents from which questions are generated, at equal distances in the order of their ids."""

_SEARCHES_PER_QUESTION = 2
"""Searches for each question of the limit: a question is searched to check that the index answers it."""

_RETRIEVER = "bm25"
"""The retriever of these searches: the names are to be in the text, so that nothing has to be encoded."""

_MAX_HITS = 3
"""Hits that have to contain the names of a question."""

_MAX_PASSAGES = 4
"""Passages at the beginning of a document whose names are compared with the titles of other documents."""

_MAX_HEADINGS = 8
"""Passages of a document, at equal distances, whose headings are considered."""

_MAX_NAME = 60
"""Characters of a name or heading in a question."""

_STRUCTURE = """
appendices arguments author authors bugs caveats commands common copyright credits details environment errors example
examples files history limitations miscellaneous note options other output parameters prerequisites related remarks
requirements resources return returns see also sections settings syntax values warning warnings
"""
_STRUCTURAL_WORDS = frozenset(_STRUCTURE.split())
"""Words that say what kind of section a heading begins; a heading of such words alone has no subject."""

_CODE = re.compile(r"[\\/<>={}\[\]|_$@#*%;:¶]|\w\.\w|\(\)|--|(?<!\w)v?\d")
"""Signs of a heading or a name that is code, a number or a version."""

_MANUAL_SECTION = re.compile(r"\(\d\w*\)$")
"""The end of the title of a manual page, such as ``git-log(1)``."""

_HOW_TO = re.compile(r"How to (?=[a-z])")
_ABOUT = re.compile(r"about +(?:the )?(?=\w+ \w)", re.IGNORECASE)
_QUESTION = re.compile(
    r"(?:.*[?？]|(?:what|how|why|when|where|which|who) (?:is|are|was|were|do|does|did|can|should|will|has|have)\b.*)$",  # noqa: RUF001  # ends questions in Chinese and Japanese
    re.IGNORECASE,
)
"""A heading that is a question, in English also without a question mark."""

_CONNECTION = {
    "de": "Wie hängt {0} mit {1} zusammen?",
    "en": "How is {0} connected with {1}?",
    "es": "¿Qué relación hay entre {0} y {1}?",
    "fr": "Quel est le lien entre {0} et {1} ?",
    "it": "Che legame c'è tra {0} e {1}?",
    "nl": "Wat heeft {0} met {1} te maken?",
    "pt": "Qual é a relação entre {0} e {1}?",
}
"""Question for a connection, by language; in other languages the names themselves are searched."""

_SECTION = {
    "de": "Was steht in {0} über {1}?",
    "en": "What does {0} say about {1}?",
    "es": "¿Qué dice {0} sobre {1}?",
    "fr": "Que dit {0} sur {1} ?",
    "it": "Che cosa dice {0} su {1}?",
    "nl": "Wat staat er in {0} over {1}?",
    "pt": "O que diz {0} sobre {1}?",
}
"""Question for a section of a document, by language."""


class _Candidate(NamedTuple):
    """A question, the id of its document, and the names that its first hits have to contain."""

    question: str
    document_id: str
    names: tuple[str, str]


_CACHE: WeakKeyDictionary[Engine, tuple[list[HistoryEntry], list[str]]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def get_suggestions(engine: Engine) -> list[str]:
    """Return the questions of :func:`suggest_questions`, which are generated again after a change of the index."""
    last_change = engine.catalogue.history(1)
    with _LOCK:
        if engine not in _CACHE or _CACHE[engine][0] != last_change:
            _CACHE[engine] = last_change, suggest_questions(engine)
        return _CACHE[engine][1]


def suggest_questions(engine: Engine, limit: int = 6) -> list[str]:
    """Return questions that an index answers: its first hits contain the names in the question.

    A question asks how the subjects of two documents are connected, or what a document says about one of its sections.
    A heading that is a question is such a question itself.

    Args:
        engine: The index.
        limit: Maximum number of questions.
    """
    catalogue = engine.catalogue
    rows = [row for row in catalogue.documents.get_rows() if row.state == "searchable" and row.title]
    titles = {row.title.casefold() for row in rows}
    step = max(1, len(rows) // max(_MAX_DOCUMENTS, 2 * limit))
    selected = sorted(rows[::step], key=lambda row: crc32(row.id.encode()))  # neighbours are often alike
    columns = [
        list(_list_sections(catalogue, row)) or list(_list_connections(catalogue, row, titles)) for row in selected
    ]
    others = [list(_list_names(catalogue, row)) for row, of_row in zip(selected, columns, strict=True) if not of_row]
    candidates = [*_interleave(columns), *_interleave(others)]
    questions: list[str] = []
    used: set[str] = set()
    fresh = (each for each in candidates if not used & {each.document_id, *map(str.casefold, each.names)})
    for _, candidate in zip(range(_SEARCHES_PER_QUESTION * limit), fresh, strict=False):
        if _is_answered(engine.search(candidate.question, _MAX_HITS, retriever=_RETRIEVER), candidate.names):
            questions.append(candidate.question)
            used |= {candidate.document_id, *map(str.casefold, candidate.names)}
        if len(questions) == limit:
            break
    return questions


def _interleave(columns: Iterable[Iterable[_Candidate]]) -> list[_Candidate]:
    """Return the candidates of all documents: the first of each, then the next of each.

    Names that several documents have come last, such as the heading "Command line".
    """
    ordered = [each for row in zip_longest(*columns) for each in row if each is not None]
    counts = Counter(candidate.names[1] for candidate in ordered)
    return sorted(ordered, key=lambda candidate: counts[candidate.names[1]] > 1)


def _list_connections(catalogue: Catalogue, row: DocumentRow, titles: Container[str]) -> Iterator[_Candidate]:
    """Yield questions how the subject of a document is connected with the subject of another."""
    for position in range(min(_MAX_PASSAGES, row.passages)):
        for _, names in catalogue.hyperedges_of_passage(f"{row.id}#{position:04}"):
            proper = [name for name in names if _is_name(name) and name.casefold() in titles]
            subject = next((name for name in proper if name.casefold() == row.title.casefold()), None)
            for name in proper:
                if subject and name != subject:
                    yield _Candidate(_format(_CONNECTION, row, (subject, name)), row.id, (subject, name))


def _list_sections(catalogue: Catalogue, row: DocumentRow) -> Iterator[_Candidate]:
    """Yield questions about sections of a document, evenly over its text."""
    title = _MANUAL_SECTION.sub("", row.title)
    places = range(0, row.passages, max(1, row.passages // _MAX_HEADINGS))
    headings = [catalogue.passage(f"{row.id}#{position:04}").heading.rpartition(" / ")[2] for position in places]
    for heading in dict.fromkeys(headings):
        if not _is_topic(heading, title):
            continue
        if _HOW_TO.match(heading):
            yield _Candidate(f"{_HOW_TO.sub('How do I ', heading)}?", row.id, (title, heading))
        elif _QUESTION.match(heading):
            yield _Candidate(heading if heading.endswith(("?", "？")) else f"{heading}?", row.id, (title, heading))  # noqa: RUF001  # ends questions in Chinese and Japanese
        elif _is_title(title) and (topic := _ABOUT.sub("", heading)).casefold() != title.casefold():
            yield _Candidate(_format(_SECTION, row, (title, topic)), row.id, (title, topic))


def _list_names(catalogue: Catalogue, row: DocumentRow) -> Iterator[_Candidate]:
    """Yield a question about the most frequent name in the first passages of a document."""
    passages = range(min(_MAX_PASSAGES, row.passages))
    edges = [edge for place in passages for edge in catalogue.hyperedges_of_passage(f"{row.id}#{place:04}")]
    counts = Counter(name for _, names in edges for name in names if _is_name(name) and _is_topic(name, row.title))
    for name, _ in counts.most_common(1):
        if _is_title(row.title):
            yield _Candidate(_format(_SECTION, row, (row.title, name)), row.id, (row.title, name))


def _is_title(title: str) -> bool:
    """Return whether a title can stand in a question: short, not generic, and no code or number."""
    return len(title) <= _MAX_NAME and not _CODE.search(title) and not is_generic_name(title)


def _is_topic(heading: str, title: str) -> bool:
    """Return whether a heading names a subject within that of its document, in some words without code.

    >>> [_is_topic(heading, "Pumps") for heading in ("Worn seals", "Pumps", "See also", "NAME", "run()", "塔恩之钟")]
    [True, False, False, False, False, True]
    """
    words = re.findall(r"\w+", heading.casefold())
    has_case = heading.lower() != heading.upper()
    return (
        bool(words)
        and len(heading) <= _MAX_NAME
        and not _CODE.search(heading)
        and not is_generic_name(heading)
        and (not has_case or (len(words) > 1 and not heading.isupper()))
        and bool(set(words) - _STRUCTURAL_WORDS - set(re.findall(r"\w+", title.casefold())))
    )


def _is_name(text: str) -> bool:
    """Return whether a text can stand in a question as a name: some words without digits, not all in capitals.

    >>> [_is_name(text) for text in ("Ilse Varga", "git stash", "Show", "NAME", "May 1931", "塔恩之钟")]
    [True, True, False, False, False, True]
    """
    has_case = text.lower() != text.upper()
    has_letters = any(map(str.isalpha, text)) and not any(map(str.isdigit, text))
    return has_letters and len(text) <= _MAX_NAME and (not has_case or (" " in text and not text.isupper()))


def _format(templates: dict[str, str], row: DocumentRow, names: tuple[str, str]) -> str:
    """Return a question in the language of a document, or the names if there is no question in this language."""
    return templates.get(row.language, "{0}, {1}").format(*names)


def _is_answered(evidence: Evidence, names: Sequence[str]) -> bool:
    """Return whether the hits of a question contain its names, in their titles or texts."""
    texts = [f"{hit.origin.title} {hit.passage.title} {hit.passage.text}" for hit in evidence.passages]
    text = " ".join(" ".join(texts).casefold().split())
    return all(name.casefold() in text for name in names)
