"""JSON of evidence and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypeVar

from typing_extensions import TypedDict

from polyad.model import (
    AbsentName,
    Answer,
    AnswerContext,
    DocumentVersion,
    Entity,
    Evidence,
    MetadataValue,
    Origin,
    Passage,
    RetractedFact,
    ScoredHyperedge,
    ScoredPassage,
    Span,
    Timings,
    TraceStep,
    Usage,
)
from polyad.schemas.errors import ErrorSchema
from polyad.schemas.filling import fields_of, fill_schema
from polyad.schemas.places import map_excerpts
from polyad.text.page_labels import find_page_label
from polyad.text.pictures import select_labels


class PlaceSchema(TypedDict):
    """The location of a text in a document: character offsets, source, and page, heading, sheet or slide if any.

    ``page`` counts the pages of the file; ``page_label`` is the printed number.
    """

    start: int
    end: int
    source: str
    url: str
    page: int | None
    page_label: str | None
    heading: str
    sheet: str
    slide: int | None


class CopySchema(PlaceSchema):
    """The location of a copy of a hit's text in another document."""

    title: str


class PassageSchema(PlaceSchema):
    """A passage (a retrievable piece of a document) with its location and the metadata of the document.

    ``pictures`` of the metadata are those of the document whose caption, description or text is in the passage.
    """

    document_id: str
    passage_id: str
    title: str
    text: str
    metadata: Mapping[str, MetadataValue]


class ArgumentSchema(TypedDict):
    """A role of a fact and its value, with unit and further names if there are any."""

    role: str
    value: str
    type: str
    unit: NotRequired[str]
    names: NotRequired[list[str]]


MAX_MEMBERS = 100
"""Entities and arguments of a hyperedge in a search result: a fact may have thousands, such as authors."""


class ScoredHyperedgeSchema(TypedDict):
    """A retrieved hyperedge with its score and the names of its entities.

    Relation, arguments and dates are present only if the hyperedge has them. ``member_count`` is the number of all
    entities or arguments if only the first 100 are listed; ``polyad show hyperedge`` prints all.
    """

    id: str
    text: str
    score: float
    entities: list[str]
    relation: NotRequired[str]
    arguments: NotRequired[list[ArgumentSchema]]
    valid_from: NotRequired[str]
    valid_to: NotRequired[str]
    member_count: NotRequired[int]


class ExcerptSchema(TypedDict):
    """The sentences of a hit that fit the question best, and their range of characters in the document."""

    text: str
    start: int
    end: int


@fields_of(RetractedFact)
class RetractedFactSchema(TypedDict):
    """A fact that a passage states and a user has retracted; ``entities`` is empty if the whole fact was retracted."""


@fields_of(Span)
class SpanSchema(TypedDict):
    """A range of characters in a text: ``text[start:end]``."""


@fields_of(DocumentVersion)
class VersionSchema(TypedDict):
    """The status of a document among its versions: ``superseded`` by another, or the one ``in force``.

    Editions that differ by year are ``earlier`` or the ``latest``; a version may also be a ``draft`` or of the
    ``future``.
    """


class HitSchema(PassageSchema):
    """One search result: a passage with score and relevance (in [0, 1]).

    ``best_sentences`` are the one or two sentences of ``text`` that most likely answer the question, best first;
    ``highlight`` is the range of the sentence that fits best together with its neighbours. The best sentences of the
    excerpt begin on ``page`` and end on ``end_page``. Users retracted the facts in ``retracted``.
    """

    end_page: int | None
    score: float
    relevance: float | None
    reason: str
    highlight: list[int] | None
    best_sentences: list[SpanSchema]
    excerpt: ExcerptSchema | None
    copies: list[CopySchema]
    hyperedges: list[ScoredHyperedgeSchema]
    retracted: list[RetractedFactSchema]
    version: NotRequired[VersionSchema]


@fields_of(Timings)
class TimingsSchema(TypedDict):
    """Durations of a search in milliseconds."""

    total: float


@fields_of(TraceStep)
class StepSchema(TypedDict):
    """A step of a search through the hypergraph: the hyperedge that it reached, and why."""


@fields_of(Entity)
class ScoredEntitySchema(TypedDict):
    """A retrieved entity with its score."""


@fields_of(AbsentName)
class AbsentNameSchema(TypedDict):
    """A name or code of the question that no passage contains, and the nearest code that one contains."""


class EvidenceSchema(TypedDict):
    """Output of ``polyad search --json``; ``--explain`` adds the trace, hyperedges and entities."""

    query: str
    retriever: str
    hits: list[HitSchema]
    timings_ms: TimingsSchema
    best_relevance: NotRequired[float]
    absent_names: NotRequired[list[AbsentNameSchema]]
    notes: NotRequired[dict[str, int]]
    spelling: NotRequired[dict[str, str]]
    trace: NotRequired[list[StepSchema]]
    hyperedges: NotRequired[list[ScoredHyperedgeSchema]]
    entities: NotRequired[list[ScoredEntitySchema]]


class CitationSchema(PlaceSchema):
    """A citation in an answer: the cited statement and the location of the source."""

    number: int
    passage_id: str
    document_id: str
    title: str
    excerpt: ExcerptSchema | None
    claim: str
    answer_span: list[int]


@fields_of(Usage)
class UsageSchema(TypedDict):
    """The number of calls and tokens of a language model, and their cost in US dollars, as JSON."""


class ContextHyperedgeSchema(ScoredHyperedgeSchema):
    """A hyperedge in the prompt of an answer, with the citation number of its passage."""

    number: int


class ContextEntitySchema(TypedDict):
    """An entity in the prompt of an answer."""

    key: str
    name: str
    type: str
    description: str


class ContextPassageSchema(TypedDict):
    """A passage, or a part of one, in the prompt of an answer, with its citation number."""

    number: int
    passage_id: str
    text: str


class AnswerContextSchema(TypedDict):
    """The evidence in the prompt of an answer: as much of the retrieved evidence as the token limit allows."""

    hyperedges: list[ContextHyperedgeSchema]
    entities: list[ContextEntitySchema]
    passages: list[ContextPassageSchema]


class AnswerSchema(TypedDict):
    """Output of ``polyad ask --json``; ``--explain`` adds ``context`` (the evidence in the prompt) and ``thoughts``.

    If the language model failed, ``answer`` is empty and ``error`` says why.
    """

    query: str
    retriever: str
    answer: str
    entities: list[str]
    citations: list[CitationSchema]
    dropped_citations: int
    note: str
    usage: UsageSchema
    evidence: EvidenceSchema
    error: NotRequired[ErrorSchema]
    context: NotRequired[AnswerContextSchema]
    thoughts: NotRequired[str]


H = TypeVar("H", bound=ScoredHyperedgeSchema)


def evidence_json(evidence: Evidence, explain: bool) -> EvidenceSchema:
    """Return a search result as the JSON object that ``polyad search --json`` prints."""
    shape = fill_schema(
        EvidenceSchema,
        query=evidence.question,
        retriever=evidence.retriever,
        hits=[hit_json(hit, select_hyperedges(evidence, hit)) for hit in evidence.passages],
        timings_ms={key: round(getattr(evidence.timings, key), 2) for key in TimingsSchema.__annotations__},
        notes=evidence.notes,
    )
    if evidence.best_relevance is not None:
        shape["best_relevance"] = evidence.best_relevance
    if evidence.spelling:
        shape["spelling"] = dict(evidence.spelling)
    if evidence.absent_names:
        shape["absent_names"] = [fill_schema(AbsentNameSchema, name) for name in evidence.absent_names]
    if explain:
        shape["trace"] = [fill_schema(StepSchema, step) for step in evidence.trace]
        shape["hyperedges"] = [_hyperedge_json(ScoredHyperedgeSchema, edge) for edge in evidence.hyperedges]
        shape["entities"] = [fill_schema(ScoredEntitySchema, scored, scored.entity) for scored in evidence.entities]
    return shape


def hit_json(hit: ScoredPassage, hyperedges: Sequence[ScoredHyperedge]) -> HitSchema:
    """Return a hit, with the hyperedges that belong to it or led to it, as a JSON object."""
    return fill_schema(
        HitSchema,
        hit,
        hit.location,
        hit.passage,
        hit.origin,
        passage_id=hit.passage.id,
        metadata=select_labels(hit.origin.metadata, f"{hit.location.heading}\n{hit.passage.text}"),
        page_label=find_page_label(hit.origin.metadata, hit.location.page),
        end_page=hit.excerpt.end_page if hit.excerpt else hit.passage.page,
        highlight=[hit.excerpt.highlight.start, hit.excerpt.highlight.end] if hit.excerpt else None,
        copies=[
            fill_schema(CopySchema, location, origin, page_label=find_page_label(origin.metadata, location.page))
            for origin, location in hit.copies
        ],
        hyperedges=[_hyperedge_json(ScoredHyperedgeSchema, edge) for edge in hyperedges],
    )


def _hyperedge_json(shape: type[H], scored: ScoredHyperedge, **values: object) -> H:
    edge = scored.hyperedge
    names = [entity.name for entity in scored.members[:MAX_MEMBERS]]
    built = fill_schema(shape, scored, id=edge.id, text=edge.text, entities=names, **values)
    if edge.valid_from:
        built["valid_from"] = edge.valid_from
    if edge.valid_to:
        built["valid_to"] = edge.valid_to
    if edge.arguments:
        built["relation"] = edge.relation
        built["arguments"] = [fill_schema(ArgumentSchema, argument) for argument in edge.arguments[:MAX_MEMBERS]]
    if (member_count := max(len(scored.members), len(edge.arguments))) > MAX_MEMBERS:
        built["member_count"] = member_count
    return built


def passage_json(passage: Passage, origin: Origin) -> PassageSchema:
    """Return a passage as a JSON object with ids, text, location and the metadata of its document."""
    label = find_page_label(origin.metadata, passage.page)
    metadata = select_labels(origin.metadata, f"{passage.heading}\n{passage.text}")
    return fill_schema(PassageSchema, passage, origin, passage_id=passage.id, page_label=label, metadata=metadata)


def select_hyperedges(evidence: Evidence, hit: ScoredPassage) -> list[ScoredHyperedge]:
    """Return the hyperedges of a search result that belong to a hit or raised its score."""
    leading = {step.hyperedge_id for step in evidence.trace if step.passage_id == hit.passage.id}
    return [
        edge
        for edge in evidence.hyperedges
        if edge.hyperedge.passage_id == hit.passage.id or edge.hyperedge.id in leading
    ]


def answer_json(answer: Answer, explain: bool) -> AnswerSchema:
    """Return an answer as the JSON object that ``polyad ask --json`` prints."""
    excerpts = map_excerpts(answer.evidence)
    shape = fill_schema(
        AnswerSchema,
        query=answer.evidence.question,
        retriever=answer.evidence.retriever,
        answer=answer.text,
        entities=answer.entities,
        citations=[
            fill_schema(
                CitationSchema,
                citation,
                citation.location,
                citation.origin,
                page_label=find_page_label(citation.origin.metadata, citation.location.page),
                excerpt=excerpts.get(citation.passage_id),
                claim=citation.answer_span.of(answer.text),
                answer_span=[citation.answer_span.start, citation.answer_span.end],
            )
            for citation in answer.citations
        ],
        dropped_citations=answer.dropped_citations,
        note=answer.note,
        usage=answer.usage,
        evidence=evidence_json(answer.evidence, explain),
    )
    if explain:
        shape["context"] = _context_json(answer.context)
        shape["thoughts"] = answer.thoughts
    return shape


def _context_json(context: AnswerContext) -> AnswerContextSchema:
    return fill_schema(
        AnswerContextSchema,
        context,
        hyperedges=[
            _hyperedge_json(ContextHyperedgeSchema, scored, number=number) for number, scored in context.hyperedges
        ],
        passages=[
            {"number": number, "passage_id": passage.id, "text": text} for number, passage, text in context.passages
        ],
    )
