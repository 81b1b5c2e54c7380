"""The words of polyad as frozen dataclasses: what flows between the stages.

A *document* is cut into *passages*; *mentions* in a passage resolve to *entities*; a *hyperedge* is a text that joins
entities, one *incidence* each. Retrieval returns *evidence*, answering returns an *answer* that cites it.

Identifiers are derived from content and position alone, so the same documents always give the same ids:
passage ``{document_id}#{position}``, hyperedge ``{passage_id}/{position}``; an entity's id is its key, the normalised
name. Character spans are half-open ``[start, end)`` offsets into a Python string.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
TimeArray = npt.NDArray[np.float64]

SUBJECT = "subject"
"""The role of the entity that a hyperedge is about: the title of its passage, a heading above it, what it defines."""

MetadataValue = str | int | float | bool | tuple[str, ...]
"""What a key of a document's metadata may hold."""

METADATA_KEYS = 64
"""How many keys the metadata of a document may have."""


class HyperedgeKind(StrEnum):
    """The construction method of a hyperedge."""

    SEMANTIC_UNIT = "semantic-unit"
    FACT = "fact"
    TUPLE = "tuple"


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters of ``text`` that this span covers."""
        return text[self.start : self.end]


ArgumentType = Literal["entity", "number", "date", "boolean", "string", "null"]
"""What a value is; all but entities are literals, by which nothing is joined."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One place of a fact that was given as data: the role (``recipient``, a column's name) and the value in it.

    Attributes:
        role: As it is written.
        value: Word for word as it was given. Of an entity, what it is known by: its name, or an id.
        type: What the value is.
        unit: Of a number, such as ``mg``; empty where there is none.
        names: Of an entity that is known by an id, what it is called: its label, then other names.
    """

    role: str
    value: str
    type: ArgumentType = "entity"
    unit: str = ""
    names: tuple[str, ...] = ()


Operator = Literal["=", "!=", "<", "<=", ">", ">="]
"""How a value is compared."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on an argument: ``year >= 1990``; see :func:`polyad.text.literals.is_satisfied`."""

    role: str
    operator: Operator
    value: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document under a heading. Sections may be nested.

    Attributes:
        name: The heading.
        start: Offset of the first character of the heading, or of a heading directly above it.
        end: Offset after the last character, nested sections included.
        strength: Confidence, in [0, 1], that the heading is the subject of the section; 0 if it is only a name.
    """

    name: str
    start: int
    end: int
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a document, with page, heading, sheet or slide, so that a person can find it.

    Attributes:
        start: Offset of its first character in the document's text.
        end: Offset past its last.
        page: The page it begins on, from 1; None where there are no pages.
        heading: The headings above it, the highest first: ``Pumps / Repair``; empty where there are none. Of what holds
            several sections, those above all of it and then those of each: ``Pumps / Repair; Seals``.
        sheet: Name of the spreadsheet's sheet; empty elsewhere.
        slide: Number of the slide, from 1; None elsewhere.
    """

    start: int
    end: int
    page: int | None = None
    heading: str = ""
    sheet: str = ""
    slide: int | None = None


@dataclass(frozen=True, slots=True)
class Pagination:
    """The pages, sheets or slides of a document.

    Attributes:
        places: Their locations, in order, as spans that do not overlap; empty if the document has none.
    """

    places: tuple[Location, ...] = ()

    def find(self, offset: int) -> Location:
        """Return the page, sheet or slide of a character; a location without any if the document has none."""
        place = bisect_right(self.places, offset, key=lambda location: location.start) - 1
        return self.places[place] if place >= 0 else Location(offset, offset)


@dataclass(frozen=True, slots=True)
class Origin:
    """The title, source, URL and metadata of a document, without its text.

    Attributes:
        title: May be empty.
        source: The file it was read from, or likewise; empty when made in memory.
        url: Where a browser finds it; empty where unknown.
        metadata: What else is known of it.
        recorded: Time when the index learnt it, in UTC with seconds; empty where unknown. Not compared, so that the
            evidence of two indexes of the same documents is equal.
    """

    title: str = ""
    source: str = ""
    url: str = ""
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    recorded: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Document:
    """A text with an id, a title, metadata and sections, as read from a file or given by the user.

    Attributes:
        id: The ``_id`` of a record, or the path of a file. Unique in an index.
        title: The title; may be empty.
        text: The plain text; every span refers to it.
        source: Path of the file; empty for a document created in memory.
        arguments: Arguments of a document that is one fact (a tuple); its text states the fact in words. Empty for
            prose. The index stores them with the hyperedge.
        relation: Relation of such a fact; empty for prose. The index stores it with the hyperedge.
        sections: Parts of the text under headings. The index stores them as titles of passages.
        url: Where a browser finds it; empty where unknown.
        metadata: What else is known of it, at most 64 keys. Shown, and exported; no part of what is embedded. The
            document holds from ``valid_from`` to ``valid_to``; see :mod:`polyad.text.validity`.
        places: The pages, sheets or slides of the text, in order, as spans of it that do not overlap; empty where it
            has none. Kept in the index as the locations of passages.
    """

    id: str
    title: str
    text: str
    source: str = ""
    arguments: tuple[Argument, ...] = ()
    sections: tuple[Section, ...] = ()
    url: str = ""
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    places: tuple[Location, ...] = ()
    relation: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """The retrievable piece of a document: ``document.text[start:end]``.

    Attributes:
        id: The document's, with the number of the passage in it.
        document_id: Of the document it is from.
        title: The document's, and the headings that the whole passage stands under: ``Pumps / Repair / Seals``.
        text: Its part of the document's, word for word.
        start: Offset of its first character in the document.
        end: Offset past its last.
        page, sheet, slide: Where it begins; see :class:`Location`.
        heading: What it stands under and holds; see there.
        arguments, relation: Those of a document that is one fact given as data, while it is being indexed.
        sections: What it and its parts are about, as spans of its own text, while it is being indexed. Where there are
            none it is about its title.
        begins_paragraph: Whether its first sentence is the first of a paragraph, while it is being indexed.
    """

    id: str
    document_id: str
    title: str
    text: str
    start: int
    end: int
    page: int | None = None
    heading: str = ""
    sheet: str = ""
    slide: int | None = None
    arguments: tuple[Argument, ...] = ()
    sections: tuple[Section, ...] = ()
    begins_paragraph: bool = True
    relation: str = ""

    @property
    def location(self) -> Location:
        """The location of the passage in its document."""
        return Location(self.start, self.end, self.page, self.heading, self.sheet, self.slide)


@dataclass(frozen=True, slots=True)
class Mention:
    """A surface form in a passage, before it is resolved to an entity.

    Attributes:
        name: The surface form, as written.
        start: Offset of its first character in the passage; -1 when it stands outside it (a title).
        end: Offset past its last character; -1 likewise.
        role: Empty, or the part it plays: ``subject``, a column's name.
        type: Empty, or what kind of thing it is, in the extractor's own labels.
        description: Empty, or what the passage says of it.
        score: Confidence or importance in (0, 100].
    """

    name: str
    start: int
    end: int
    role: str = ""
    type: str = ""
    description: str = ""
    score: float = 100.0


@dataclass(frozen=True, slots=True)
class Entity:
    """A name with all its mentions: a vertex of the hypergraph. Aggregated from incidences and not stored.

    Attributes:
        key: The normalised name, which is the entity's id.
        name: The most frequent spelling.
        type: The most frequent type; may be empty.
        description: The distinct descriptions, joined by newlines.
        score: The highest score of its incidences, in (0, 100].
    """

    key: str
    name: str
    type: str = ""
    description: str = ""
    score: float = 100.0


@dataclass(frozen=True, slots=True)
class Hyperedge:
    """A text that joins entities.

    Attributes:
        id: ``{passage_id}/{position}``.
        kind: How it came about.
        text: A semantic unit's own words, or a fact in one sentence.
        passage_id: The passage it came from.
        start: Where its source begins in the passage (offset in characters).
        end: Where its source ends.
        score: Completeness or confidence in (0, 10].
        relation: What the arguments take part in: of a tuple, and of a fact that was extracted with relations.
        arguments: Of a tuple, all that it was given, in that order: entities, which are its members, and literals. Of
            an extracted fact with a relation, its entities with their types as roles.
        valid_from: Time from which the fact holds, as of :func:`polyad.text.validity.format_time`; empty if unbounded.
            The fact holds while its document does, too.
        valid_to: Time from which the fact no longer holds; empty if unbounded.
    """

    id: str
    kind: HyperedgeKind
    text: str
    passage_id: str
    start: int
    end: int
    score: float = 10.0
    relation: str = ""
    arguments: tuple[Argument, ...] = ()
    valid_from: str = ""
    valid_to: str = ""


@dataclass(frozen=True, slots=True)
class Incidence:
    """The membership of an entity in a hyperedge, with role, type and description.

    ``grounded`` is false if a language model named the entity but its name does not occur in the passage.
    ``strength``, in (0, 1], is the confidence that the entity is the subject of the hyperedge; 1 for other roles.
    """

    entity_key: str
    hyperedge_id: str
    name: str
    role: str = ""
    type: str = ""
    description: str = ""
    score: float = 100.0
    grounded: bool = True
    strength: float = 1.0


NO_VECTOR: FloatArray = np.zeros(0, dtype=np.float32)
"""The vector of a record that is not embedded."""


@dataclass(frozen=True, slots=True)
class IndexedHyperedge:
    """A hyperedge with its members and its vector of shape ``[dimension]``, ready to be stored."""

    hyperedge: Hyperedge
    incidences: tuple[Incidence, ...]
    vector: FloatArray


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A passage with its hyperedges and its vector of shape ``[dimension]``, ready to be stored.

    Attributes:
        digest: Hash of everything the hyperedges were derived from: title, text and settings. Equal digests mean
            equal contents, so that an unchanged passage is never embedded or extracted again.
    """

    passage: Passage
    digest: str
    vector: FloatArray
    hyperedges: tuple[IndexedHyperedge, ...]


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A whole document, ready to be stored in one transaction.

    Attributes:
        digest: Hash of the document and of the settings it was indexed with; equal means nothing to do.
        tokens: Length of the text in tokens.
        recorded: Time when the index learnt this version of the document, in UTC with seconds; empty where unknown.
    """

    document: Document
    digest: str
    tokens: int
    passages: tuple[IndexedPassage, ...]
    recorded: str = ""


@dataclass(frozen=True, slots=True)
class ScoredHyperedge:
    """A hyperedge in the evidence. ``members`` are sorted by key; the score is the retriever's, higher is better."""

    hyperedge: Hyperedge
    members: tuple[Entity, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The sentences of a passage that fit a question best.

    Attributes:
        text: The sentences in text order, with an ellipsis for each gap.
        start: Offset of the first displayed character in the document.
        end: Offset after the last displayed character in the document.
        highlight: The sentence that fits best, in characters of the passage's text.
        page: The page on which the first displayed character stands; None where there are no pages.
        end_page: The page on which the last displayed character stands; None where there are no pages.
        sheet: Name of the spreadsheet's sheet of the first displayed character; empty elsewhere.
        slide: Number of the slide of the first displayed character; None elsewhere.
    """

    text: str
    start: int
    end: int
    highlight: Span
    page: int | None = None
    end_page: int | None = None
    sheet: str = ""
    slide: int | None = None


@dataclass(frozen=True, slots=True)
class RetractedFact:
    """A fact that a user retracted although a passage states it.

    Attributes:
        text: The text of the fact.
        entities: Names of the entities that were withdrawn from the fact; empty if the whole fact was.
        reason: The reason that the user gave.
    """

    text: str
    entities: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage in the evidence.

    Attributes:
        passage: What was found.
        score: The retriever's, higher is better.
        reason: Why it is there, in one line.
        origin: The document it is from.
        relevance: How likely it is to be evidence for the question, in [0, 1]; None where that was not measured.
        excerpt: The sentences that fit the question best; None if none were selected.
        copies: Other documents in which the same text stands, and where.
        retracted: Facts that the passage states and a user retracted.
    """

    passage: Passage
    score: float
    reason: str = ""
    origin: Origin = field(default_factory=Origin)
    relevance: float | None = None
    excerpt: Excerpt | None = None
    copies: tuple[tuple[Origin, Location], ...] = ()
    retracted: tuple[RetractedFact, ...] = ()

    @property
    def location(self) -> Location:
        """The location of the passage, with the page, sheet and slide on which its excerpt begins."""
        location, excerpt = self.passage.location, self.excerpt
        return replace(location, page=excerpt.page, sheet=excerpt.sheet, slide=excerpt.slide) if excerpt else location


@dataclass(frozen=True, slots=True)
class ScoredEntity:
    """An entity in the evidence; the score is the retriever's, higher is better."""

    entity: Entity
    score: float


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A step of a search: how it reached a hyperedge, and the passage whose score the hyperedge raised.

    Attributes:
        hyperedge_id: The hyperedge.
        passage_id: The passage whose score it raised.
        matched: The clue or signal that the hyperedge matched.
        reached: ``forward``, ``backward`` or ``both`` for an expansion; otherwise the reason.
        via: Names of the entities that led to the hyperedge.
        score: Its contribution to the passage's score.
        tails: Names of the entities to which the search continued; empty for a search without paths.
        parent: Id of the hyperedge that led to the first entity of ``via``; empty at the beginning of a path.
    """

    hyperedge_id: str
    passage_id: str
    matched: str
    reached: str
    via: tuple[str, ...]
    score: float
    tails: tuple[str, ...] = ()
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Timings:
    """The wall time of one retrieval, in milliseconds.

    Attributes:
        encode: The embedder, and waiting for it: a batch of another thread's texts may have to end first.
        retrieve: Everything else.
    """

    encode: float = 0.0
    retrieve: float = 0.0

    @property
    def total(self) -> float:
        """Encoding and everything else together."""
        return self.encode + self.retrieve


@dataclass(frozen=True, slots=True)
class Query:
    """A request to a retriever: the question and the number of passages.

    Attributes:
        text: The question.
        k: How many passages, at most; 1 or more.
    """

    text: str
    k: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """The result of a search: passages, hyperedges and entities, best first. Ties are broken by id.

    Attributes:
        question: The question.
        retriever: Name of the retriever.
        passages: Retrieved passages.
        hyperedges: Hyperedges that led to the passages.
        entities: Entities that led to the hyperedges.
        trace: Steps of the search.
        timings: Durations of the search.
        notes: Counts of events, such as calls of a language model and repaired replies.
        best_relevance: The highest relevance if all passages were below the minimum; else None.
    """

    question: str
    retriever: str
    passages: tuple[ScoredPassage, ...] = ()
    hyperedges: tuple[ScoredHyperedge, ...] = ()
    entities: tuple[ScoredEntity, ...] = ()
    trace: tuple[TraceStep, ...] = ()
    timings: Timings = field(default_factory=Timings)
    notes: Mapping[str, int] = field(default_factory=dict)
    best_relevance: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls, tokens and cost of a language model. ``cost`` is in US dollars; 0 if no price is set."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost + other.cost,
        )

    def __sub__(self, earlier: Usage) -> Usage:
        return Usage(
            self.calls - earlier.calls,
            self.prompt_tokens - earlier.prompt_tokens,
            self.completion_tokens - earlier.completion_tokens,
            self.cost - earlier.cost,
        )

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Citation:
    """One claim's source: passage ``[number]`` of the prompt, and where in the answer it is cited.

    ``title`` and ``location`` are the passage's and ``origin`` its document's, so that a person can open it.
    """

    number: int
    passage_id: str
    document_id: str
    answer_span: Span
    title: str = ""
    location: Location = Location(0, 0)
    origin: Origin = field(default_factory=Origin, hash=False)


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """The part of the evidence that fitted into the prompt of an answer: K* of HyperGraphRAG, section 4.3.

    Attributes:
        hyperedges: The listed hyperedges, each with the citation number of its passage.
        entities: The listed entities: those of the evidence, and members of the listed hyperedges.
        passages: Number, passage and quoted text, which is a part of the passage's text if it was cut.
    """

    hyperedges: tuple[tuple[int, ScoredHyperedge], ...] = ()
    entities: tuple[Entity, ...] = ()
    passages: tuple[tuple[int, Passage, str], ...] = ()

    @property
    def text(self) -> str:
        """The hyperedges, entities and quoted passages as one text, without numbers and tags."""
        entities = (": ".join(filter(None, (entity.name, entity.description))) for entity in self.entities)
        passages = (f"{passage.title}\n{quoted}".strip() for _, passage, quoted in self.passages)
        return "\n\n".join([*(scored.hyperedge.text for _, scored in self.hyperedges), *entities, *passages])


@dataclass(frozen=True, slots=True)
class Answer:
    """A text that cites its evidence.

    Attributes:
        text: The answer, with citations as ``[1]``; empty when no language model is set.
        citations: The citations that point at a passage of the evidence.
        dropped_citations: How many pointed nowhere and were removed from the text.
        evidence: What the answer stands on.
        usage: What it cost.
        note: One line for the user, such as that no language model is set; usually empty.
        entities: Of an answer in names, these names, distinct and best first; ``text`` joins them by ``"; "``.
        context: The evidence in the prompt; empty if no language model was called.
        thoughts: What a reasoning model thought before it answered, as far as its server tells.
    """

    text: str
    evidence: Evidence
    citations: tuple[Citation, ...] = ()
    dropped_citations: int = 0
    usage: Usage = field(default_factory=Usage)
    note: str = ""
    entities: tuple[str, ...] = ()
    context: AnswerContext = field(default_factory=AnswerContext)
    thoughts: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A document, or part of one, that a run could not process, with the reason."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sizes, costs and components of an index.

    Attributes:
        documents, passages, entities, hyperedges, incidences: Numbers of objects.
        tokens: Tokens of all documents, as counted by the splitter.
        cost: Cost of language models for this index in US dollars.
        disk_bytes: Size of all files in the directory of the index; for an index without one, of its store.
        files: Size by file, or by folder of files, in that directory.
        kinds: Number of hyperedges of each kind.
        settings: Names of the embedder and the mention extractor.
    """

    documents: int
    passages: int
    entities: int
    hyperedges: int
    incidences: int
    tokens: int
    cost: float
    disk_bytes: int
    files: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[HyperedgeKind, int] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def mean_arity(self) -> float:
        """Members per hyperedge; 0 for an empty index."""
        return self.incidences / self.hyperedges if self.hyperedges else 0.0

    @property
    def density(self) -> float:
        """Hyperedges per entity, the Delta(G) of HyperRAG section 3.1; 0 for an empty index."""
        return self.hyperedges / self.entities if self.entities else 0.0
