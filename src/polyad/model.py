"""The words of polyad as frozen dataclasses: what flows between the stages.

A *document* is cut into *passages*; *mentions* in a passage resolve to *entities*; a *hyperedge* is a text that joins
entities, one *incidence* each. Retrieval returns *evidence*, answering returns an *answer* that cites it.

Identifiers are derived from content and position alone, so the same documents always give the same ids:
passage ``{document_id}#{position}``, hyperedge ``{passage_id}/{position}``; an entity's id is its key, the normalised
name. Character spans are half-open ``[start, end)`` offsets into a Python string.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from polyad.display_loader import DisplayLoader

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
TimeArray = npt.NDArray[np.float64]

SUBJECT = "subject"
"""The role of the entity that a hyperedge is about, as the title, a heading or a definition says."""

MetadataValue = str | int | float | bool | tuple[str, ...]
"""The types of a value in a document's metadata."""

METADATA_KEYS = 64
"""Maximum number of keys in the metadata of a document."""


class HyperedgeKind(StrEnum):
    """The method that built a hyperedge: semantic unit (group of sentences), extracted fact, or tuple (data)."""

    SEMANTIC_UNIT = "semantic-unit"
    FACT = "fact"
    TUPLE = "tuple"


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character positions in a text: from ``start`` up to, but not including, ``end``."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters of ``text`` in this span, ``text[start:end]``."""
        return text[self.start : self.end]


ArgumentType = Literal["entity", "number", "date", "boolean", "string", "null"]
"""The type of an argument's value. Values of all types but ``entity`` are literals, which join no hyperedges."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a fact that the user supplied as data: a role, such as ``recipient``, with its value.

    Attributes:
        role: The role as the user wrote it.
        value: The value as the user wrote it. For an entity, its name or its id.
        type: The type of the value.
        unit: The unit of a number, such as ``mg``; empty if there is none.
        names: The names of an entity with an id: its label, then other names.
    """

    role: str
    value: str
    type: ArgumentType = "entity"
    unit: str = ""
    names: tuple[str, ...] = ()


Operator = Literal["=", "!=", "<", "<=", ">", ">="]
"""The comparison operators of a condition."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison with the values of a role (an argument's name), such as ``year >= 1990``.

    See :func:`polyad.text.literals.is_satisfied`.
    """

    role: str
    operator: Operator
    value: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document under a heading, as a character range. Sections may be nested.

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
    """A position in a document that a person can find: characters, page, heading, sheet or slide.

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
    """The pages, sheets or slides of a document, with the character at which each begins.

    Attributes:
        places: Locations of the pages, in order, which do not overlap; empty for a document without pages.
    """

    places: tuple[Location, ...] = ()

    def find(self, offset: int) -> Location:
        """Return the page, sheet or slide that contains the character at ``offset``.

        In a document without pages, return a location without page, sheet and slide.
        """
        place = bisect_right(self.places, offset, key=lambda location: location.start) - 1
        return self.places[place] if place >= 0 else Location(offset, offset)


@dataclass(frozen=True, slots=True)
class Origin:
    """The title, source, URL and metadata of the document that a passage comes from, without the text.

    Attributes:
        title: The document's title; may be empty.
        source: Path of the file; empty for a document created in memory.
        url: Web address of the document; empty if there is none.
        metadata: Other properties of the document.
        recorded: Time when the document was indexed, in UTC with seconds; empty if not recorded. Not compared, so that
            the evidence of two indexes of the same documents is equal.
    """

    title: str = ""
    source: str = ""
    url: str = ""
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    recorded: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """The properties of a stored document that a list of documents shows, without its text.

    Attributes:
        origin: Title, source, URL and metadata.
        tokens: Length of the text in tokens.
        passages: Number of passages; 0 for a disabled document.
    """

    origin: Origin
    tokens: int
    passages: int


@dataclass(frozen=True, slots=True)
class Document:
    """A text with an id, a title, metadata and sections, from a file or created by the user.

    Attributes:
        id: The ``_id`` of a record, or the path of a file. Unique in an index.
        title: The title; may be empty.
        text: The plain text; every span refers to it.
        source: Path of the file; empty for a document created in memory.
        arguments: Arguments of a document that is one fact (a tuple); its text states the fact in words. Empty for
            prose. The index stores them with the hyperedge.
        relation: Relation of such a fact; empty for prose. The index stores it with the hyperedge.
        sections: Parts of the text under headings. The index stores them as titles of passages.
        url: Web address of the document; empty if there is none.
        metadata: Other properties, at most 64 keys. They are printed and exported, but not embedded. The document is
            valid from ``valid_from`` to ``valid_to``; see :mod:`polyad.text.validity`.
        places: Character ranges of the pages, sheets or slides, in order, without overlap; empty for a text without
            pages. The index stores them as locations of passages.
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
    """A chunk of a document, the unit of retrieval: ``document.text[start:end]``.

    Attributes:
        id: The document's id with the number of the passage in the document.
        document_id: Id of the document.
        title: The document's title and the headings above the whole passage: ``Pumps / Repair / Seals``.
        text: The passage's part of the document's text, unchanged.
        start: Offset of the first character in the document.
        end: Offset after the last character.
        page, sheet, slide: Those on which the passage begins; see :class:`Location`.
        heading: The headings above and in the passage; see :class:`Location`.
        arguments, relation: Those of a document that is one fact (a tuple). Set only during indexing.
        sections: Sections that overlap the passage, as spans of the passage's text. Set only during indexing. Without
            sections the title is the subject.
        begins_paragraph: Whether the first sentence is the first of a paragraph. Set only during indexing.
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
        """The location (characters, page, heading) of this passage in its document."""
        return Location(self.start, self.end, self.page, self.heading, self.sheet, self.slide)


@dataclass(frozen=True, slots=True)
class Mention:
    """An occurrence of an entity's name in a passage, as spelled there, with its character range.

    Attributes:
        name: The surface form, as written.
        start: Offset of the first character in the passage; -1 for a name outside the passage (in a title).
        end: Offset after the last character; -1 for a name outside the passage.
        role: The entity's role, such as ``subject`` or a column's name; may be empty.
        type: The entity's type, as the extractor labels it; may be empty.
        description: The passage's statement about the entity; may be empty.
        score: Confidence or importance in (0, 100].
    """

    name: str
    start: int
    end: int
    role: str = ""
    type: str = ""
    description: str = ""
    score: float = 100.0


LabelCount = tuple[str, str, str, float, int]
"""Name, type, description and score of some incidences of one entity, and their number."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A person, place or thing with all mentions of its name in the index: a node of the hypergraph.

    Aggregated from incidences (memberships in hyperedges) and not stored.

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

    @classmethod
    def from_labels(cls, key: str, labels: Iterable[LabelCount]) -> Entity:
        """Aggregate the labels of an entity's incidences: the most frequent name and type, and all descriptions.

        Of equally frequent names or types, the first in alphabetical order counts.
        """
        # Plain dictionaries: most entities have one or two incidences, and a search reads fifty entities.
        names: dict[str, int] = {}
        types: dict[str, int] = {}
        descriptions: set[str] = set()
        highest = 0.0
        for name, type, description, score, count in labels:
            names[name] = names.get(name, 0) + count
            types[type] = types.get(type, 0) + (count if type else 0)
            if description:
                descriptions.add(description)
            highest = max(highest, score)
        return cls(key, _get_most_frequent(names), _get_most_frequent(types), "\n".join(sorted(descriptions)), highest)


def _get_most_frequent(counts: Mapping[str, int]) -> str:
    return next(iter(counts)) if len(counts) == 1 else min(counts, key=lambda value: (-counts[value], value))


@dataclass(frozen=True, slots=True)
class Hyperedge:
    """An edge of the hypergraph: a text, such as a sentence or fact, that joins any number of entities.

    Attributes:
        id: ``{passage_id}/{position}``.
        kind: The method that built the hyperedge.
        text: The sentences of a semantic unit, or a fact in one sentence.
        passage_id: Id of the passage that states the text.
        start: Offset in the passage, in characters, at which the source of the text begins.
        end: Offset at which the source ends.
        score: Completeness or confidence in (0, 10].
        relation: The relation of a tuple, or of a fact that was extracted with relations; otherwise empty.
        arguments: The arguments of a tuple in the user's order: entities, which are the members, and literals. For an
            extracted fact with a relation, the entities with their types as roles.
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
    """The membership of one entity in one hyperedge, with the entity's role, type and description.

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
    """A document with its passages, hyperedges and vectors, ready to be stored in one transaction.

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
class RetractedFact:
    """A fact that a passage states but that a user retracted (withdrew as wrong).

    Attributes:
        text: The text of the fact.
        entities: Names of the entities that were withdrawn from the fact; empty if the whole fact was.
        reason: The reason that the user gave.
    """

    text: str
    entities: tuple[str, ...]
    reason: str


VersionStatus = Literal["in force", "superseded", "draft", "future", "latest", "earlier"]
"""The status of a version of a document; editions that differ by year are the latest or earlier ones."""


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """The place of a document among the versions, or editions, of one document.

    Attributes:
        status: Whether it is in force. A version in force in the future has the status ``future``.
        family: The name that the versions have in common.
        number: The number of the version; empty if it has none.
        valid_from: Date from which the version holds; empty if unknown.
        superseded_by: Id of the document, or the file, that is in force instead; empty if this one is.
    """

    status: VersionStatus
    family: str
    number: str = ""
    valid_from: str = ""
    superseded_by: str = ""

    def describe(self) -> str:
        """Return the status with the number, the date and the version that is in force instead.

        >>> DocumentVersion("superseded", "travel", "2", "2023-05-01", "travel-v3.md").describe()
        'version 2 of 2023-05-01, superseded by travel-v3.md'
        """
        number = f"version {self.number}" if self.number else "version"
        dated = f"{number} of {self.valid_from}" if self.valid_from else number
        other = f"{' by' if self.status == 'superseded' else '; the latest is'} {self.superseded_by}"
        return f"{dated}, {self.status}{other if self.superseded_by else ''}"


@dataclass(frozen=True, slots=True)
class ScoredHyperedge:
    """A hyperedge in a search result, with its member entities and its score; a higher score is better.

    ``retracted`` lists the entities that users withdrew from the hyperedge, whose text may still name them.
    """

    hyperedge: Hyperedge
    members: tuple[Entity, ...]
    score: float
    retracted: tuple[RetractedFact, ...] = ()


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The sentences of a retrieved passage that fit the question best.

    Attributes:
        text: The sentences in text order, with an ellipsis for each gap.
        start: Offset of the first displayed character in the document.
        end: Offset after the last displayed character in the document.
        highlight: The sentence that fits best, in characters of the passage's text.
        page: The page on which the cited characters begin; None where there are no pages.
        end_page: The page on which the cited characters end; None where there are no pages.
        sheet: Name of the spreadsheet's sheet on which the cited characters begin; empty elsewhere.
        slide: Number of the slide on which the cited characters begin; None elsewhere.
        cited: The document's characters from the first to the last sentence that is cited, because it fits nearly as
            well as the best; None for all sentences of the excerpt.
    """

    text: str
    start: int
    end: int
    highlight: Span
    page: int | None = None
    end_page: int | None = None
    sheet: str = ""
    slide: int | None = None
    cited: Span | None = None


class Displayable:
    """An object that notebooks display, and that converts to a dictionary and a data frame."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that ``polyad search --json`` or ``polyad ask --json`` prints."""
        converted: dict[str, Any] = DisplayLoader.load().to_dict(self)
        return converted

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row for each hit, or for each citation of an answer.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        return DisplayLoader.load().to_pandas(self)

    def __str__(self) -> str:
        text: str = DisplayLoader.load().format_text(self)
        return text

    def _repr_html_(self) -> str:
        html: str = DisplayLoader.load().format_html(self)
        return html


@dataclass(frozen=True, slots=True)
class ScoredPassage(Displayable):
    """A passage in a search result, with its score, best sentences and document title.

    Attributes:
        passage: The passage.
        score: The retriever's score; higher is better.
        reason: Why the passage was retrieved, in one line.
        origin: Title, source, URL and metadata of the document.
        relevance: Probability that the passage is evidence for the question, in [0, 1]; None if not computed.
        excerpt: The sentences that fit the question best; None if none were selected.
        copies: Other documents that contain the same text, with locations.
        retracted: Facts that the passage states and a user retracted.
        best_sentences: The one or two sentences that most likely answer the question, best first, in characters of the
            passage's text; empty if no excerpt was selected.
        summary: Spans of the passage's text for people: the sentences that fit the question best within some 90 words
            for each hit; a hit that fits better than its neighbours has more. Empty if no excerpt was selected.
        version: The status of the document among its versions; None if there are no other versions.
    """

    passage: Passage
    score: float
    reason: str = ""
    origin: Origin = field(default_factory=Origin)
    relevance: float | None = None
    excerpt: Excerpt | None = None
    copies: tuple[tuple[Origin, Location], ...] = ()
    retracted: tuple[RetractedFact, ...] = ()
    best_sentences: tuple[Span, ...] = ()
    summary: tuple[Span, ...] = ()
    version: DocumentVersion | None = None

    @property
    def location(self) -> Location:
        """The location of a retrieved passage; page, sheet and slide are those of the best sentences of its excerpt."""
        location, excerpt = self.passage.location, self.excerpt
        return replace(location, page=excerpt.page, sheet=excerpt.sheet, slide=excerpt.slide) if excerpt else location


@dataclass(frozen=True, slots=True)
class ScoredEntity:
    """An entity in a search result, with its score; a higher score is better."""

    entity: Entity
    score: float


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step of a search: the hyperedge that the search reached, and the passage that it ranked higher for it.

    Attributes:
        hyperedge_id: The hyperedge.
        passage_id: The passage whose score the hyperedge raised.
        matched: The clue or signal that the hyperedge matched.
        reached: ``forward``, ``backward`` or ``both`` for an expansion; otherwise the reason.
        via: Names of the entities that led to the hyperedge.
        score: The hyperedge's contribution to the passage's score.
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
    """The wall time of one search, in milliseconds: encoding the question, and everything else.

    Attributes:
        encode: Time of the embedder, including the time to wait for a batch of another thread's texts.
        retrieve: Time of all other steps.
    """

    encode: float = 0.0
    retrieve: float = 0.0

    @property
    def total(self) -> float:
        """The wall time of the whole search in milliseconds."""
        return self.encode + self.retrieve


@dataclass(frozen=True, slots=True)
class Query:
    """A request to a retriever: the question and the number of passages to return.

    Attributes:
        text: The question.
        k: Maximum number of passages; 1 or more.
    """

    text: str
    k: int


@dataclass(frozen=True, slots=True)
class Evidence(Displayable):
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
        spelling: Words of the question that the index lacks, with the similarly spelt words that were searched.
        absent_names: Names and codes of the question that no passage contains.
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
    spelling: Mapping[str, str] = field(default_factory=dict)
    absent_names: tuple[AbsentName, ...] = ()

    def describe_spelling(self) -> str:
        """Return which words were searched for misspelt words; empty if there are none."""
        changes = ", ".join(f"{word} for {typed}" for typed, word in self.spelling.items())
        return f"searched {changes}" if changes else ""


@dataclass(frozen=True, slots=True)
class AbsentName:
    """A name or code of a question that no passage contains.

    Attributes:
        text: The name or code as in the question.
        nearest: The most similar code that a passage contains; empty if there is none.
    """

    text: str
    nearest: str = ""

    def describe(self) -> str:
        """Return a sentence that says what is absent.

        >>> AbsentName("HP-2212", "HP-2210").describe()
        'No passage contains HP-2212; the nearest is HP-2210.'
        """
        return f"No passage contains {self.text}{self.nearest and f'; the nearest is {self.nearest}'}."


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A line of a document that matches a pattern, with its place.

    Attributes:
        document_id: Id of the document.
        passage_id: Id of the passage in which the match begins.
        title: The document's title and the headings above the passage.
        page: The page on which the match begins, from 1; None where there are no pages.
        heading: The headings above and in the passage.
        line: Number of the line in the document's text, from 1.
        text: The line, or the part of a long line around the match; several lines for a phrase across lines.
        start: Offset of the first match of the line in the document's text, in characters.
        end: Offset after this match.
        before: Lines before the line, if context is requested.
        after: Lines after the line.
    """

    document_id: str
    passage_id: str
    title: str
    page: int | None
    heading: str
    line: int
    text: str
    start: int
    end: int
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextMatches:
    """The result of an exact search: one page of the matching lines, and their numbers.

    Attributes:
        pattern: The pattern.
        matches: Matching lines, ordered by document id and line.
        total: Number of all matching lines.
        counts: Number of matching lines of each document that matches, by document id, sorted.
        next_cursor: Number of lines to skip for the next page; None at the end.
        is_complete: Whether all documents were searched before the time limit.
    """

    pattern: str
    matches: tuple[TextMatch, ...]
    total: int
    counts: Mapping[str, int]
    next_cursor: int | None = None
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of calls and tokens of a language model, and their cost in US dollars.

    The cost is 0 if no price is set.
    """

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
        """The number of prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation in an answer: the cited passage, and the position of ``[number]`` in the answer's text.

    ``title`` and ``location`` belong to the passage and ``origin`` to its document, so that a person can open it.
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
    """The part of the search result that fits into the prompt of an answer.

    In HyperGraphRAG, section 4.3, it is called K*.

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
        """The hyperedges, entities and quoted passages of an answer's prompt as one text."""
        entities = (": ".join(filter(None, (entity.name, entity.description))) for entity in self.entities)
        passages = (f"{passage.title}\n{quoted}".strip() for _, passage, quoted in self.passages)
        return "\n\n".join([*(scored.hyperedge.text for _, scored in self.hyperedges), *entities, *passages])


@dataclass(frozen=True, slots=True)
class Answer(Displayable):
    """An answer to a question, as text with citations of passages.

    Attributes:
        text: The answer, with citations as ``[1]``; empty when no language model is set.
        citations: The citations that point at a passage of the evidence.
        dropped_citations: Number of citations of missing passages that were removed from the text.
        evidence: The search result that the answer is based on.
        usage: Calls, tokens and cost of the answer.
        note: One line for the user, such as that no language model is set; usually empty.
        entities: The names in an answer that consists of names, distinct and best first. ``text`` joins them with
            ``"; "``.
        context: The evidence in the prompt; empty if no language model was called.
        thoughts: The reasoning of a reasoning model, if its server returns the reasoning.
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
    """A document, or a part of one, that indexing could not process, with the reason."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Statistics:
    """The numbers of documents, passages, entities and hyperedges of an index, its costs and its components.

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
        """The mean number of entities per hyperedge; 0 for an empty index."""
        return self.incidences / self.hyperedges if self.hyperedges else 0.0

    @property
    def density(self) -> float:
        """The number of hyperedges per entity, Delta(G) in HyperRAG, section 3.1; 0 for an empty index."""
        return self.hyperedges / self.entities if self.entities else 0.0
