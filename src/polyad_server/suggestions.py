"""Questions that an index can answer, generated from its names and headings without a language model."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import NamedTuple
from weakref import WeakKeyDictionary

from polyad.curation.curator import HistoryEntry
from polyad.engine import Engine
from polyad.engine.catalogue import Catalogue
from polyad.errors import NotFoundError
from polyad.model import Evidence, Origin

_MAX_DOCUMENTS = 24
"""Documents from which questions are generated, at equal distances in the order of their ids."""

_MAX_SEARCHES = 12
"""Generated questions that are searched to check that the index answers them."""

_MAX_HITS = 3
"""Hits that have to contain the names of a question."""

_MAX_PASSAGES = 4
"""Passages at the beginning of a document from which questions are generated."""

_MAX_FACTS = 200
"""Facts of an entity in which its documents are counted."""

_MAX_NAME = 60
"""Characters of a name or heading in a question."""

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
    """A question, the names that its first hits have to contain, and a rank: 0 if both are titles of documents."""

    question: str
    names: tuple[str, str]
    rank: int = 0


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
    """Return questions that an index answers: their first hits contain the names in the question.

    A question asks how two names of different documents are connected, or what a document says about a section.

    Args:
        engine: The index.
        limit: Maximum number of questions.
    """
    catalogue = engine.catalogue
    ids = sorted(catalogue.sources())
    step = max(1, len(ids) // _MAX_DOCUMENTS)
    selected = ids[::step][:_MAX_DOCUMENTS]
    origins = [catalogue.origin(id) for id in selected]
    titles = {origin.title.casefold() for origin in origins}
    connections = _interleave(
        _list_connections(catalogue, *pair, titles) for pair in zip(selected, origins, strict=True)
    )
    sections = _interleave(_list_sections(catalogue, *pair) for pair in zip(selected, origins, strict=True))
    questions: list[str] = []
    used_names: set[str] = set()
    interleaved = [each for pair in zip_longest(connections, sections) for each in pair if each is not None]
    fresh = (each for each in interleaved if not used_names & {name.casefold() for name in each.names})
    for _, candidate in zip(range(_MAX_SEARCHES), fresh, strict=False):
        if _is_answered(engine.search(candidate.question, _MAX_HITS), candidate.names):
            questions.append(candidate.question)
            used_names.update(name.casefold() for name in candidate.names)
        if len(questions) == limit:
            break
    return questions


def _interleave(columns: Iterable[Iterable[_Candidate]]) -> list[_Candidate]:
    """Return the candidates of all documents: the best of each, then the next of each.

    Names that several documents have come last, such as the heading "Options".
    """
    rows = zip_longest(*(sorted(column, key=lambda candidate: candidate.rank) for column in columns))
    ordered = [each for row in rows for each in row if each is not None]
    counts = Counter(candidate.names[1] for candidate in ordered)
    return sorted(ordered, key=lambda candidate: (candidate.rank, counts[candidate.names[1]] > 1))


def _list_connections(catalogue: Catalogue, id: str, origin: Origin, titles: Container[str]) -> Iterator[_Candidate]:
    """Yield questions how the subject of a document is connected with a name that other documents contain too."""
    for position in range(_MAX_PASSAGES):
        with suppress(NotFoundError):  # the document has fewer passages
            for _, names in catalogue.hyperedges_of_passage(f"{id}#{position:04}"):
                proper = [name for name in names if _is_name(name)]
                subject = next((name for name in proper if name.casefold() == origin.title.casefold()), None)
                linked = [name for name in proper if name != subject and len(_find_documents(catalogue, name) - {id})]
                linked.sort(key=lambda name: name.casefold() not in titles)
                if linked and (subject or len(linked) > 1):
                    pair = (subject or linked[1], linked[0])
                    rank = (subject is None) + (linked[0].casefold() not in titles)
                    yield _Candidate(_format(_CONNECTION, origin, pair), pair, rank)


def _list_sections(catalogue: Catalogue, id: str, origin: Origin) -> Iterator[_Candidate]:
    """Yield questions about sections of a document with a title."""
    for position in range(1, _MAX_PASSAGES):
        with suppress(NotFoundError):  # the document has fewer passages
            heading = catalogue.passage(f"{id}#{position:04}").heading.rpartition(" / ")[2]
            if (
                heading
                and len(heading) <= _MAX_NAME
                and not heading.isupper()
                and _is_name(origin.title)
                and heading.casefold() not in origin.title.casefold()
            ):
                yield _Candidate(_format(_SECTION, origin, (origin.title, heading)), (origin.title, heading))


def _find_documents(catalogue: Catalogue, name: str) -> set[str]:
    """Return the ids of the documents with a fact about an entity; none if the name is not in the index."""
    try:
        return {id.rpartition("#")[0] for id in catalogue.entity(name)[1][:_MAX_FACTS]}
    except NotFoundError:
        return set()


def _is_name(text: str) -> bool:
    """Return whether a text can stand in a question as a name: some words without digits, not all in capitals.

    >>> [_is_name(text) for text in ("Ilse Varga", "git stash", "Show", "NAME", "May 1931", "塔恩之钟")]
    [True, True, False, False, False, True]
    """
    has_case = text.lower() != text.upper()
    has_letters = any(map(str.isalpha, text)) and not any(map(str.isdigit, text))
    return has_letters and len(text) <= _MAX_NAME and (not has_case or (" " in text and not text.isupper()))


def _format(templates: dict[str, str], origin: Origin, names: tuple[str, str]) -> str:
    """Return a question in the language of a document, or the names if there is no question in this language."""
    return templates.get(str(origin.metadata.get("language", "")), "{0}, {1}").format(*names)


def _is_answered(evidence: Evidence, names: Sequence[str]) -> bool:
    """Return whether the hits of a question contain its names, in their titles or texts."""
    texts = [f"{hit.origin.title} {hit.passage.title} {hit.passage.text}" for hit in evidence.passages]
    text = " ".join(" ".join(texts).casefold().split())
    return all(name.casefold() in text for name in names)
