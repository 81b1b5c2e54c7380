"""Records of runs: what a retriever returned for one question, and statistics of the hypergraph.

The statistics are arity, degree, sentences per hyperedge, and the neighbourhood of one entity: HyperGraphRAG, Figure 5
and Table 3; HyperSU, Table 5.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from polyad.config import SplitSettings
from polyad.engine.catalogue import Catalogue
from polyad.indexing.split import SentenceSplitter
from polyad.model import ScoredPassage
from polyad.text.words import count_words
from polyad_bench.datasets.beir import Question
from polyad_bench.measures.evidence import StatementCoverage

_count_words = lru_cache(maxsize=1 << 14)(count_words)
"""Many questions and retrievers return the same passages."""


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage in a retriever's ranking, with its score.

    Attributes:
        passage_id: Id of the passage.
        document_id: Id of its document.
        score: Score by the retriever; higher is better.
        words: Number of words in its text; see :mod:`polyad.text.words`.
        relevance: Probability that the passage is evidence, in [0, 1]; None if the retriever does not predict it.
    """

    passage_id: str
    document_id: str
    score: float
    words: int
    relevance: float | None = None

    @classmethod
    def from_hit(cls, hit: ScoredPassage) -> RankedPassage:
        """Return a record with the ids, score and number of words of a retrieved passage."""
        relevance = None if hit.relevance is None else float(hit.relevance)
        passage = hit.passage
        return cls(passage.id, passage.document_id, float(hit.score), _count_words(passage.text), relevance)


@dataclass(frozen=True, slots=True)
class PassageText:
    """Title and text of a retrieved passage, stored once per evaluation run."""

    passage_id: str
    document_id: str
    title: str
    text: str

    @property
    def key(self) -> str:
        """The passage id, which is the key of the record."""
        return self.passage_id


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """One retriever's result for one question: ranking, times and tokens.

    Attributes:
        retriever: Name of the retriever.
        query: The question with its gold documents.
        passages: Passages returned, best first.
        hyperedges: Ids of the hyperedges that led to the passages, best first.
        encode_ms: Milliseconds spent in the embedder.
        retrieve_ms: Milliseconds spent everywhere else.
        llm_tokens: Language-model tokens spent.
        llm_tokens_uncached: Tokens that would have been spent without cached replies.
        coverage: Coverage of the evidence statements of the data set; None if the data set has none.
    """

    retriever: str
    query: Question
    passages: tuple[RankedPassage, ...]
    hyperedges: tuple[str, ...] = ()
    encode_ms: float = 0.0
    retrieve_ms: float = 0.0
    llm_tokens: int = 0
    llm_tokens_uncached: int = 0
    coverage: StatementCoverage | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The key of a record within an evaluation run: retriever and question id."""
        return self.retriever, self.query.id

    @property
    def milliseconds(self) -> float:
        """Total search time in milliseconds, including embedding the question."""
        return self.encode_ms + self.retrieve_ms

    @property
    def documents(self) -> list[str]:
        """Ids of the retrieved documents, each at the rank of its best passage."""
        return list(dict.fromkeys(passage.document_id for passage in self.passages))

    def get_top_passage_ids(self, k: int) -> list[str]:
        """Return the ids of the first ``k`` passages of the ranking."""
        return [passage.passage_id for passage in self.passages[:k]]

    def count_words_to_read(self, k: int) -> int:
        """Return the number of words that a user reads in the ranked passages until ``k`` documents are seen in full.

        These are the words before the (``k`` + 1)-th document; with at most ``k`` documents, all words count.
        """
        documents: set[str] = set()
        words = 0
        for passage in self.passages:
            if passage.document_id not in documents and len(documents) == k:
                break
            documents.add(passage.document_id)
            words += passage.words
        return words

    def get_documents_within(self, max_words: int) -> list[str]:
        """Return the distinct documents of the first passages that together have at most ``max_words`` words.

        Reading stops at the first passage that does not fit. This compares retrievers of long and of short passages by
        the amount of text that a reader reads.
        """
        documents: list[str] = []
        for passage in self.passages:
            max_words -= passage.words
            if max_words < 0:
                break
            documents.append(passage.document_id)
        return list(dict.fromkeys(documents))


def find_missing_questions(
    stored_keys: Container[tuple[str, str]], retriever: str, queries: Iterable[Question]
) -> list[Question]:
    """Return the questions without a stored result of ``retriever``; a key is (retriever, question id)."""
    return [query for query in queries if (retriever, query.id) not in stored_keys]


Histogram = Mapping[int, int]
"""Maps a size to its frequency, in ascending order of sizes."""

_EXAMPLE_DEGREES = range(3, 7)
"""Degrees of entities whose neighbourhood can be plotted."""

_MAX_NEIGHBOURS = 24
"""Most neighbours of the entity whose neighbourhood is plotted."""


@dataclass(frozen=True, slots=True)
class ExampleNeighbourhood:
    """An entity that is plotted as an example, with all its hyperedges as lists of entity names.

    Attributes:
        entity: Name of the entity.
        hyperedges: Names of the members of each of its hyperedges, the entity included.
    """

    entity: str
    hyperedges: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class HypergraphStatistics:
    """Histograms of a hypergraph, such as the number of entities per hyperedge.

    Attributes:
        arity: Histogram of the number of entities of a hyperedge.
        degree: Histogram of the number of hyperedges of an entity.
        sentences: Histogram of the number of sentences in the text of a hyperedge.
        words: Number of words in the texts of all hyperedges.
        neighbourhood: Neighbourhood of an entity of small degree; None if there is no such entity.
    """

    arity: Histogram
    degree: Histogram
    sentences: Histogram
    words: int
    neighbourhood: ExampleNeighbourhood | None

    @property
    def hyperedges(self) -> int:
        """The number of hyperedges of the hypergraph."""
        return sum(self.arity.values())

    @property
    def entities(self) -> int:
        """The number of entities of the hypergraph."""
        return sum(self.degree.values())


def compute_statistics(catalogue: Catalogue) -> HypergraphStatistics:
    """Return statistics of the hypergraph that ``catalogue`` reads, such as a histogram of entities per hyperedge."""
    hyperedges = catalogue.hyperedges()
    names: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for id, incidences in catalogue.incidences([hyperedge.id for hyperedge in hyperedges]).items():
        for incidence in incidences:
            names[incidence.entity_key] = min(names.get(incidence.entity_key, incidence.name), incidence.name)
        members[id] = sorted({incidence.entity_key for incidence in incidences})
    memberships: dict[str, list[str]] = defaultdict(list)
    for id, keys in members.items():
        for key in keys:
            memberships[key].append(id)
    splitter = SentenceSplitter(SplitSettings())
    example = _find_example_entity(memberships, members)
    return HypergraphStatistics(
        arity=_count(len(members.get(hyperedge.id, ())) for hyperedge in hyperedges),
        degree=_count(map(len, memberships.values())),
        sentences=_count(len(splitter.sentences(hyperedge.text)) for hyperedge in hyperedges),
        words=sum(count_words(hyperedge.text) for hyperedge in hyperedges),
        neighbourhood=None
        if example is None
        else ExampleNeighbourhood(names[example], [[names[key] for key in members[id]] for id in memberships[example]]),
    )


def compute_mean(histogram: Histogram) -> float:
    """Return the mean of a histogram, which maps each value to its count; 0 for an empty histogram.

    >>> compute_mean({2: 1, 4: 3})
    3.5
    """
    total = sum(histogram.values())
    return sum(size * count for size, count in histogram.items()) / total if total else 0.0


def _count(sizes: Iterable[int]) -> Histogram:
    return dict(sorted(Counter(sizes).items()))


def _find_example_entity(
    hyperedges_by_entity: Mapping[str, Sequence[str]], entities_by_hyperedge: Mapping[str, Sequence[str]]
) -> str | None:
    """Return the key of an entity to plot as an example, with 3 to 6 hyperedges and at most 24 neighbours.

    The entity has the most hyperedges of all such entities. Entities with digits in their key, such as numbers and
    dates, are skipped. Return None if the index has no suitable entity. The arguments contain entity keys and hyperedge
    ids.
    """
    neighbours = {
        key: len({member for id in ids for member in entities_by_hyperedge[id]}) - 1
        for key, ids in hyperedges_by_entity.items()
        if len(ids) in _EXAMPLE_DEGREES and not any(letter.isdigit() for letter in key)
    }
    candidates = [key for key, count in neighbours.items() if count <= _MAX_NEIGHBOURS]
    return min(candidates, key=lambda key: (-len(hyperedges_by_entity[key]), -neighbours[key], key), default=None)
