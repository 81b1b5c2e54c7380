"""Synthetic corpora of any size for ``benchmarks/scale.py``, and an embedder of negligible cost.

Text: the passages, units and names of real articles, over and over, each time with other names. Within a copy a name
is the same everywhere, title and questions included, so that what links articles to each other, how often each name
occurs, and which names are short for others, is as in the original. Some common names stay in all copies, and so grow
with the corpus, as do all words in small letters and all numbers.

Records: facts with roles, from templates. Some values occur in a quarter of all records, some in a handful.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import count, islice
from random import Random
from zlib import crc32

import numpy as np

from polyad.indexing.embedding import format_embedding_text
from polyad.model import (
    Argument,
    Document,
    FloatArray,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Passage,
)
from polyad.protocols.components import Embedder, TextKind
from polyad.readers.folder.tuples import format_fact
from polyad.text.keys import build_argument_key, build_entity_key
from polyad_bench.datasets.beir import Question

BUCKETS = 1 << 13
"""Directions that words share: few, so that the embedder takes little of the memory that is measured."""

HUB = 20
"""Hyperedges of a name from which on it may stay the same in all copies."""

_WORD = re.compile(r"[^\W\d_]+")
_LETTERS = "aeioubcdfgklmnprstvz"


class MadeUpEmbedder:
    """An embedder that adds a random direction per word, so that texts with common words are similar.

    Args:
        dimension: Length of the vectors.
    """

    def __init__(self, dimension: int) -> None:
        self._directions = np.random.default_rng(7).standard_normal((BUCKETS, dimension), dtype=np.float32)

    @property
    def name(self) -> str:
        """``made-up:`` and the dimension."""
        return f"made-up:{self.dimension}"

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return int(self._directions.shape[1])

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:  # noqa: ARG002  # the protocol's parameter
        """Return unit vectors; words of up to three letters, which say little, count a fifth."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            words = _WORD.findall(text.lower()) or [text]
            places = [crc32(word.encode("utf-8", "surrogatepass")) % BUCKETS for word in words]
            weights = np.array([0.2 if len(word) <= 3 else 1.0 for word in words], dtype=np.float32)
            vectors[row] = weights @ self._directions[places]
        unit: FloatArray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def embedded(documents: Iterable[IndexedDocument], embedder: Embedder) -> Iterator[IndexedDocument]:
    """Yield documents with vectors of their texts, as indexing would embed them."""
    for document in documents:
        passages = []
        for item in document.passages:
            title = item.passage.title
            texts = [item.passage.text, *(edge.hyperedge.text for edge in item.hyperedges)]
            member, *others = embedder.encode([format_embedding_text(title, text) for text in texts], "passage")
            edges = tuple(replace(edge, vector=vector) for edge, vector in zip(item.hyperedges, others, strict=True))
            passages.append(replace(item, vector=member, hyperedges=edges))
        yield replace(document, passages=tuple(passages))


@dataclass(frozen=True)
class RenamedText:
    """Articles in any number of copies with renamed entities, and questions on them.

    Attributes:
        base: The articles as they were indexed, those that answer questions first.
        queries: Their questions.
        kept: Share of the common names that stay as they are.
    """

    base: Sequence[IndexedDocument]
    queries: Sequence[Question]
    name_share: float

    def documents(self) -> Iterator[IndexedDocument]:
        """Without end, copy after copy; vectors are those of the original."""
        for copy in count():
            names = _Names(self._replaced_words, copy)
            for document in self.base:
                yield names.of_document(document)

    def questions(self, documents: int, most: int) -> list[Question]:
        """Return questions whose evidence is among the first documents, evenly from all copies."""
        copies = max(1, documents // len(self.base))
        names = {item.document.id for item in self.base[:documents]}
        answered = [query for query in self.queries if query.gold <= names]
        selection = [(query, place % copies) for place, query in enumerate(islice(_repeated(answered), most))]
        return [_Names(self._replaced_words, copy).of_query(query) for query, copy in dict.fromkeys(selection)]

    @cached_property
    def _replaced_words(self) -> frozenset[str]:
        """The words, in small letters, that copies replace: those of names that do not stay as they are."""
        spelt: Counter[str] = Counter()
        capital: Counter[str] = Counter()
        for item in self.base:
            for word in _WORD.findall(item.document.text):
                spelt[word.lower()] += 1
                capital[word.lower()] += word[0].isupper()
        degrees = Counter(
            part.entity_key
            for item in self.base
            for passage in item.passages
            for edge in passage.hyperedges
            for part in edge.incidences
        )
        hubs = {
            key
            for key, degree in degrees.items()
            if degree >= HUB and crc32(key.encode()) % 100 < 100 * self.name_share
        }
        stay = {word for key in hubs for word in key.split()}
        return frozenset(
            word
            for word, times in spelt.items()
            if len(word) > 2 and word not in stay and 2 * capital[word] > times and len(word.upper()) == len(word)
        )


def _repeated(queries: Sequence[Question]) -> Iterator[Question]:
    while queries:
        yield from queries


class _Names:
    """The names of one copy. New words have the length of the original, so that spans stay valid.

    Args:
        words: That are replaced.
        copy: Its number.
    """

    def __init__(self, words: frozenset[str], copy: int) -> None:
        self._words = words if copy else frozenset()
        self._copy = copy
        self._keys: dict[str, str] = {}

    def of_text(self, text: str) -> str:
        return _WORD.sub(lambda match: self._of_word(match.group()), text)

    def _of_word(self, word: str) -> str:
        if word.lower() not in self._words:
            return word
        new = _invented(word.lower(), self._copy)
        if word[1:].islower():
            return new.capitalize() if word[0].isupper() else new
        return new.upper() if word.isupper() else "".join(map(_in_case_of, new, word))

    def of_query(self, query: Question) -> Question:
        return Question(self._id(query.id), self.of_text(query.text), frozenset(map(self._id, query.gold)))

    def of_document(self, item: IndexedDocument) -> IndexedDocument:
        document = item.document
        other_document = Document(self._id(document.id), self.of_text(document.title), self.of_text(document.text))
        passages = tuple(self._of_passage(passage, other_document.id) for passage in item.passages)
        return replace(item, document=other_document, digest=self._id(item.digest), passages=passages)

    def _of_passage(self, item: IndexedPassage, document_id: str) -> IndexedPassage:
        passage = item.passage
        id = f"{document_id}#{passage.id.rpartition('#')[2]}"
        other_passage = replace(
            passage,
            id=id,
            document_id=document_id,
            title=self.of_text(passage.title),
            text=self.of_text(passage.text),
            heading=self.of_text(passage.heading),
        )
        edges = tuple(self._of_edge(edge, other_passage) for edge in item.hyperedges)
        return replace(item, passage=other_passage, digest=self._id(item.digest), hyperedges=edges)

    def _of_edge(self, item: IndexedHyperedge, passage: Passage) -> IndexedHyperedge:
        edge = item.hyperedge
        id = f"{passage.id}/{edge.id.rpartition('/')[2]}"
        hyperedge = replace(edge, id=id, passage_id=passage.id, text=passage.text[edge.start : edge.end])
        # Two names of one hyperedge may be replaced by the same name.
        parts = {(part.entity_key, part.role): part for part in (self._of_part(part, id) for part in item.incidences)}
        return replace(item, hyperedge=hyperedge, incidences=tuple(parts.values()))

    def _of_part(self, part: Incidence, hyperedge_id: str) -> Incidence:
        name = self.of_text(part.name)
        key = self._keys.setdefault(part.entity_key, build_entity_key(name) if self._words else part.entity_key)
        return replace(part, entity_key=key or part.entity_key, hyperedge_id=hyperedge_id, name=name)

    def _id(self, id: str) -> str:
        return f"{id}~{self._copy}"


@lru_cache(maxsize=1 << 17)
def _invented(word: str, copy: int) -> str:
    digest = blake2b(f"{copy} {word}".encode(), digest_size=64).digest()
    return "".join(_LETTERS[digest[place % 64] % len(_LETTERS)] for place in range(len(word)))


def _in_case_of(letter: str, other: str) -> str:
    return letter.upper() if other.isupper() else letter


@dataclass(frozen=True)
class Records:
    """Service records: who repaired which device where, for whom and when.

    Attributes:
        size: How many there will be; the more, the more values most roles have.
    """

    size: int

    def documents(self) -> Iterator[IndexedDocument]:
        """One for each record, without end; vectors are empty."""
        chance = Random(7)
        for number in count():
            yield _record(number, self._values(chance))

    def questions(self, documents: int, most: int) -> list[Question]:
        """Of records drawn evenly, each asking for the technician by everything else."""
        expected = set(range(0, documents, max(1, documents // most)))
        chance = Random(7)
        drawn = [(number, self._values(chance)) for number in range(documents)]
        return [_build_question(number, values) for number, values in drawn if number in expected][:most]

    def _values(self, chance: Random) -> dict[str, str]:
        roles = {
            "customer": ("", self.size // 5),
            "product": ("Model ", self.size // 100),
            "part": ("Part ", self.size // 20),
            "technician": ("", self.size // 200),
            "city": ("", 50),
            "status": ("", 4),
        }
        values = {role: _name(role, prefix, _draw_number(chance, most)) for role, (prefix, most) in roles.items()}
        return values | {"date": f"{chance.randint(1, 28)} March {chance.randint(2000, 2024)}"}


def _draw_number(chance: Random, most: int) -> int:
    """Return a random number below ``most`` or 4, with a preference for low numbers."""
    return int(max(4, most) * chance.random() ** 3)


@lru_cache(maxsize=1 << 17)
def _name(role: str, prefix: str, number: int) -> str:
    first, last = (_invented("x" * length, crc32(f"{role}{number}{length}".encode())) for length in (6, 8))
    return f"{prefix}{first.capitalize()}" + (f" {last.capitalize()}" if not prefix else f" {number}")


def _record(number: int, values: dict[str, str]) -> IndexedDocument:
    arguments = tuple(Argument(role, value) for role, value in values.items())
    text, none = format_fact("repair", arguments), np.empty(0, dtype=np.float32)
    id = f"record-{number}"
    edge = Hyperedge(
        f"{id}#0/0", HyperedgeKind.TUPLE, text, f"{id}#0", 0, len(text), relation="repair", arguments=arguments
    )
    parts = {
        (build_argument_key(argument.value), argument.role): Incidence(
            build_argument_key(argument.value), edge.id, argument.value, argument.role
        )
        for argument in arguments
    }
    incidences = tuple(parts[place] for place in sorted(parts))
    passage = Passage(f"{id}#0", id, "", text, 0, len(text))
    indexed = IndexedPassage(passage, f"digest {id}", none, (IndexedHyperedge(edge, incidences, none),))
    document = Document(id, "", text, arguments=arguments, relation="repair")
    return IndexedDocument(document, f"digest {id}", len(text.split()), (indexed,))


def _build_question(number: int, values: dict[str, str]) -> Question:
    text = "Which technician repaired {part} in the {product} of {customer} in {city} on {date}, now {status}?"
    return Question(f"record-{number}", text.format(**values), frozenset([f"record-{number}"]))
