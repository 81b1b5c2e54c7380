"""JSON of evidence and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyad.model import (
    AbsentName,
    Answer,
    AnswerContext,
    Argument,
    DocumentVersion,
    Evidence,
    Excerpt,
    Location,
    MetadataValue,
    Origin,
    Passage,
    RetractedFact,
    ScoredHyperedge,
    ScoredPassage,
    Span,
    TraceStep,
    Usage,
)
from polyad.schemas.errors import ErrorSchema
from polyad.schemas.objects import JsonObject
from polyad.schemas.places import map_excerpts
from polyad.text.page_labels import find_page_label
from polyad.text.pictures import select_labels


class PlaceSchema(JsonObject):
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


class ArgumentSchema(JsonObject):
    """A role of a fact and its value, with unit and further names if there are any."""

    role: str
    value: str
    type: str
    unit: str | None = None
    names: Sequence[str] | None = None


MAX_MEMBERS = 100
"""Entities and arguments of a hyperedge in a search result: a fact may have thousands, such as authors."""


class ScoredHyperedgeSchema(JsonObject):
    """A retrieved hyperedge with its score and the names of its entities.

    Relation, arguments and dates are present only if the hyperedge has them. ``member_count`` is the number of all
    entities or arguments if only the first 100 are listed; ``polyad show hyperedge`` prints all.
    """

    id: str
    text: str
    score: float
    entities: Sequence[str]
    relation: str | None = None
    arguments: Sequence[ArgumentSchema] | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    member_count: int | None = None


class ExcerptSchema(JsonObject):
    """The sentences of a hit that fit the question best, and their range of characters in the document."""

    text: str
    start: int
    end: int


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
    highlight: Sequence[int] | None
    best_sentences: Sequence[Span]
    excerpt: ExcerptSchema | None
    copies: Sequence[CopySchema]
    hyperedges: Sequence[ScoredHyperedgeSchema]
    retracted: Sequence[RetractedFact]
    version: DocumentVersion | None = None


class TimingsSchema(JsonObject):
    """Durations of a search in milliseconds."""

    encode: float
    retrieve: float
    total: float


class ContextEntitySchema(JsonObject):
    """An entity in the prompt of an answer."""

    key: str
    name: str
    type: str
    description: str


class ScoredEntitySchema(ContextEntitySchema):
    """A retrieved entity with its score."""

    score: float


class EvidenceSchema(JsonObject):
    """Output of ``polyad search --json``; ``--explain`` adds the trace, hyperedges and entities."""

    query: str
    retriever: str
    hits: Sequence[HitSchema]
    timings_ms: TimingsSchema
    best_relevance: float | None = None
    absent_names: Sequence[AbsentName] | None = None
    notes: Mapping[str, int] | None = None
    spelling: Mapping[str, str] | None = None
    trace: Sequence[TraceStep] | None = None
    hyperedges: Sequence[ScoredHyperedgeSchema] | None = None
    entities: Sequence[ScoredEntitySchema] | None = None


class CitationSchema(PlaceSchema):
    """A citation in an answer: the cited statement and the location of the source."""

    number: int
    passage_id: str
    document_id: str
    title: str
    excerpt: ExcerptSchema | None
    claim: str
    answer_span: Sequence[int]


class ContextHyperedgeSchema(ScoredHyperedgeSchema):
    """A hyperedge in the prompt of an answer, with the citation number of its passage."""

    number: int


class ContextPassageSchema(JsonObject):
    """A passage, or a part of one, in the prompt of an answer, with its citation number."""

    number: int
    passage_id: str
    text: str


class AnswerContextSchema(JsonObject):
    """The evidence in the prompt of an answer: as much of the retrieved evidence as the token limit allows."""

    hyperedges: Sequence[ContextHyperedgeSchema]
    entities: Sequence[ContextEntitySchema]
    passages: Sequence[ContextPassageSchema]


class AnswerSchema(JsonObject):
    """Output of ``polyad ask --json``; ``--explain`` adds ``context`` (the evidence in the prompt) and ``thoughts``.

    If the language model failed, ``answer`` is empty and ``error`` says why.
    """

    query: str
    retriever: str
    answer: str
    entities: Sequence[str]
    citations: Sequence[CitationSchema]
    dropped_citations: int
    note: str
    usage: Usage
    evidence: EvidenceSchema
    error: ErrorSchema | None = None
    context: AnswerContextSchema | None = None
    thoughts: str | None = None


def evidence_json(evidence: Evidence, explain: bool) -> EvidenceSchema:
    """Return a search result as the JSON object that ``polyad search --json`` prints."""
    timings = evidence.timings
    return EvidenceSchema(
        query=evidence.question,
        retriever=evidence.retriever,
        hits=[hit_json(hit, select_hyperedges(evidence, hit)) for hit in evidence.passages],
        timings_ms=TimingsSchema(
            encode=round(timings.encode, 2), retrieve=round(timings.retrieve, 2), total=round(timings.total, 2)
        ),
        best_relevance=evidence.best_relevance,
        absent_names=evidence.absent_names or None,
        notes=evidence.notes or None,
        spelling=evidence.spelling or None,
        trace=evidence.trace if explain else None,
        hyperedges=list(map(_hyperedge_json, evidence.hyperedges)) if explain else None,
        entities=[ScoredEntitySchema.from_object(scored.entity, score=scored.score) for scored in evidence.entities]
        if explain
        else None,
    )


def _locate(location: Location, origin: Origin) -> PlaceSchema:
    return PlaceSchema.from_object(
        location, source=origin.source, url=origin.url, page_label=find_page_label(origin.metadata, location.page)
    )


def passage_json(passage: Passage, origin: Origin, location: Location | None = None) -> PassageSchema:
    """Return a passage as a JSON object with ids, text, location and the metadata of its document.

    Args:
        passage: The passage.
        origin: Its document.
        location: The location to state; None for that of the whole passage.
    """
    location = location or passage.location
    return PassageSchema(
        **vars(_locate(location, origin)),
        document_id=passage.document_id,
        passage_id=passage.id,
        title=passage.title,
        text=passage.text,
        metadata=select_labels(origin.metadata, f"{location.heading}\n{passage.text}"),
    )


def hit_json(hit: ScoredPassage, hyperedges: Sequence[ScoredHyperedge]) -> HitSchema:
    """Return a hit, with the hyperedges that belong to it or led to it, as a JSON object."""
    excerpt = hit.excerpt
    return HitSchema(
        **vars(passage_json(hit.passage, hit.origin, hit.location)),
        end_page=excerpt.end_page if excerpt else hit.passage.page,
        score=hit.score,
        relevance=hit.relevance,
        reason=hit.reason,
        highlight=[excerpt.highlight.start, excerpt.highlight.end] if excerpt else None,
        best_sentences=hit.best_sentences,
        excerpt=_excerpt_json(excerpt),
        copies=[CopySchema(**vars(_locate(location, origin)), title=origin.title) for origin, location in hit.copies],
        hyperedges=list(map(_hyperedge_json, hyperedges)),
        retracted=hit.retracted,
        version=hit.version,
    )


def _excerpt_json(excerpt: Excerpt | None) -> ExcerptSchema | None:
    return ExcerptSchema.from_object(excerpt) if excerpt else None


def argument_json(argument: Argument) -> ArgumentSchema:
    """Return a role of a fact with its value as a JSON object."""
    return ArgumentSchema.from_object(argument, unit=argument.unit or None, names=argument.names or None)


def _hyperedge_json(scored: ScoredHyperedge) -> ScoredHyperedgeSchema:
    edge = scored.hyperedge
    member_count = max(len(scored.members), len(edge.arguments))
    return ScoredHyperedgeSchema(
        id=edge.id,
        text=edge.text,
        score=scored.score,
        entities=[entity.name for entity in scored.members[:MAX_MEMBERS]],
        relation=edge.relation if edge.arguments else None,
        arguments=list(map(argument_json, edge.arguments[:MAX_MEMBERS])) or None,
        valid_from=edge.valid_from or None,
        valid_to=edge.valid_to or None,
        member_count=member_count if member_count > MAX_MEMBERS else None,
    )


def select_hyperedges(evidence: Evidence, hit: ScoredPassage) -> list[ScoredHyperedge]:
    """Return the hyperedges of a search result that belong to a hit or raised its score."""
    leading = {step.hyperedge_id for step in evidence.trace if step.passage_id == hit.passage.id}
    return [
        edge
        for edge in evidence.hyperedges
        if edge.hyperedge.passage_id == hit.passage.id or edge.hyperedge.id in leading
    ]


def answer_json(answer: Answer, explain: bool, error: ErrorSchema | None = None) -> AnswerSchema:
    """Return an answer as the JSON object that ``polyad ask --json`` prints.

    Args:
        answer: The answer.
        explain: Whether to add the evidence in the prompt.
        error: Why the language model failed.
    """
    excerpts = map_excerpts(answer.evidence)
    return AnswerSchema(
        query=answer.evidence.question,
        retriever=answer.evidence.retriever,
        answer=answer.text,
        entities=answer.entities,
        citations=[
            CitationSchema(
                **vars(_locate(citation.location, citation.origin)),
                number=citation.number,
                passage_id=citation.passage_id,
                document_id=citation.document_id,
                title=citation.title,
                excerpt=_excerpt_json(excerpts.get(citation.passage_id)),
                claim=citation.answer_span.of(answer.text),
                answer_span=[citation.answer_span.start, citation.answer_span.end],
            )
            for citation in answer.citations
        ],
        dropped_citations=answer.dropped_citations,
        note=answer.note,
        usage=answer.usage,
        evidence=evidence_json(answer.evidence, explain),
        error=error,
        context=_context_json(answer.context) if explain else None,
        thoughts=answer.thoughts if explain else None,
    )


def _context_json(context: AnswerContext) -> AnswerContextSchema:
    return AnswerContextSchema(
        hyperedges=[
            ContextHyperedgeSchema(**vars(_hyperedge_json(scored)), number=number)
            for number, scored in context.hyperedges
        ],
        entities=list(map(ContextEntitySchema.from_object, context.entities)),
        passages=[
            ContextPassageSchema(number=number, passage_id=passage.id, text=text)
            for number, passage, text in context.passages
        ],
    )
