"""JSON of evidence and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypeVar

from typing_extensions import TypedDict

from polyad.model import Answer, AnswerContext, Evidence, MetadataValue, Origin, Passage, ScoredHyperedge, ScoredPassage
from polyad.schemas.shapes import build_shape
from polyad.text.page_labels import find_page_label


class PlaceShape(TypedDict):
    """Location of a text in a document: character offsets, source, and page, heading, sheet or slide if any.

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


class CopyShape(PlaceShape):
    """Another location of the same text."""

    title: str


class PassageShape(PlaceShape):
    """A passage with its location and the metadata of its document."""

    document_id: str
    passage_id: str
    title: str
    text: str
    metadata: Mapping[str, MetadataValue]


class ArgumentShape(TypedDict):
    """The value of a role of a fact, with its unit and names if there are any."""

    role: str
    value: str
    type: str
    unit: NotRequired[str]
    names: NotRequired[list[str]]


class ScoredHyperedgeShape(TypedDict):
    """A retrieved hyperedge with the names of its entities; relation, arguments and dates only if it has them."""

    id: str
    text: str
    score: float
    entities: list[str]
    relation: NotRequired[str]
    arguments: NotRequired[list[ArgumentShape]]
    valid_from: NotRequired[str]
    valid_to: NotRequired[str]


class ExcerptShape(TypedDict):
    """The sentences of a hit that fit the question best, with the characters of the document that they lie in."""

    text: str
    start: int
    end: int


class RetractedFactShape(TypedDict):
    """A retracted fact that a passage states; ``entities`` is empty if the whole fact was retracted."""

    text: str
    entities: list[str]
    reason: str


class HitShape(PassageShape):
    """A retrieved passage; ``relevance`` is in [0, 1], ``highlight`` are the offsets of its best sentence.

    Its excerpt begins on ``page`` and ends on ``end_page``. Users retracted the facts in ``retracted``.
    """

    end_page: int | None
    score: float
    relevance: float | None
    reason: str
    highlight: list[int] | None
    excerpt: ExcerptShape | None
    copies: list[CopyShape]
    hyperedges: list[ScoredHyperedgeShape]
    retracted: list[RetractedFactShape]


class TimingsShape(TypedDict):
    """Durations of a search in milliseconds."""

    encode: float
    retrieve: float
    total: float


class StepShape(TypedDict):
    """A step of the trace: how a search reached a hyperedge."""

    hyperedge_id: str
    passage_id: str
    matched: str
    reached: str
    via: list[str]
    score: float
    tails: list[str]
    parent: str


class ScoredEntityShape(TypedDict):
    """A retrieved entity with its score."""

    key: str
    name: str
    type: str
    description: str
    score: float


class EvidenceShape(TypedDict):
    """JSON object that ``polyad search --json`` prints; with ``--explain`` also the trace, hyperedges and entities."""

    query: str
    retriever: str
    hits: list[HitShape]
    timings_ms: TimingsShape
    best_relevance: NotRequired[float]
    notes: NotRequired[dict[str, int]]
    trace: NotRequired[list[StepShape]]
    hyperedges: NotRequired[list[ScoredHyperedgeShape]]
    entities: NotRequired[list[ScoredEntityShape]]


class CitationShape(PlaceShape):
    """A statement of an answer with the location of its source."""

    number: int
    passage_id: str
    document_id: str
    title: str
    excerpt: ExcerptShape | None
    claim: str
    answer_span: list[int]


class UsageShape(TypedDict):
    """Calls and tokens of a language model; ``cost`` in US dollars."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


class ContextHyperedgeShape(ScoredHyperedgeShape):
    """A hyperedge in the prompt, with the number by which the answer cites its passage."""

    number: int


class ContextEntityShape(TypedDict):
    """An entity in the prompt."""

    key: str
    name: str
    type: str
    description: str


class ContextPassageShape(TypedDict):
    """The part of a passage in the prompt, with the number by which the answer cites it."""

    number: int
    passage_id: str
    text: str


class AnswerContextShape(TypedDict):
    """The evidence in the prompt of an answer: the part that fits into the token budget."""

    hyperedges: list[ContextHyperedgeShape]
    entities: list[ContextEntityShape]
    passages: list[ContextPassageShape]


class AnswerShape(TypedDict):
    """Output of ``polyad ask --json``; ``context`` and ``thoughts`` only with ``--explain``."""

    query: str
    retriever: str
    answer: str
    entities: list[str]
    citations: list[CitationShape]
    dropped_citations: int
    note: str
    usage: UsageShape
    evidence: EvidenceShape
    context: NotRequired[AnswerContextShape]
    thoughts: NotRequired[str]


H = TypeVar("H", bound=ScoredHyperedgeShape)


def evidence_json(evidence: Evidence, explain: bool) -> EvidenceShape:
    """Return the output of ``polyad search --json``."""
    shape = build_shape(
        EvidenceShape,
        query=evidence.question,
        retriever=evidence.retriever,
        hits=[_hit_json(hit, select_hyperedges(evidence, hit)) for hit in evidence.passages],
        timings_ms={key: round(getattr(evidence.timings, key), 2) for key in TimingsShape.__annotations__},
        notes=evidence.notes,
    )
    if evidence.best_relevance is not None:
        shape["best_relevance"] = evidence.best_relevance
    if explain:
        shape["trace"] = [build_shape(StepShape, step) for step in evidence.trace]
        shape["hyperedges"] = [_hyperedge_json(ScoredHyperedgeShape, edge) for edge in evidence.hyperedges]
        shape["entities"] = [build_shape(ScoredEntityShape, scored, scored.entity) for scored in evidence.entities]
    return shape


def _hit_json(hit: ScoredPassage, hyperedges: Sequence[ScoredHyperedge]) -> HitShape:
    return build_shape(
        HitShape,
        hit,
        hit.location,
        hit.passage,
        hit.origin,
        passage_id=hit.passage.id,
        page_label=find_page_label(hit.origin.metadata, hit.location.page),
        end_page=hit.excerpt.end_page if hit.excerpt else hit.passage.page,
        highlight=[hit.excerpt.highlight.start, hit.excerpt.highlight.end] if hit.excerpt else None,
        copies=[
            build_shape(CopyShape, location, origin, page_label=find_page_label(origin.metadata, location.page))
            for origin, location in hit.copies
        ],
        hyperedges=[_hyperedge_json(ScoredHyperedgeShape, edge) for edge in hyperedges],
    )


def _hyperedge_json(shape: type[H], scored: ScoredHyperedge, **values: object) -> H:
    edge = scored.hyperedge
    names = [entity.name for entity in scored.members]
    built = build_shape(shape, scored, id=edge.id, text=edge.text, entities=names, **values)
    if edge.valid_from:
        built["valid_from"] = edge.valid_from
    if edge.valid_to:
        built["valid_to"] = edge.valid_to
    if edge.arguments:
        built["relation"] = edge.relation
        built["arguments"] = [build_shape(ArgumentShape, argument) for argument in edge.arguments]
    return built


def passage_json(passage: Passage, origin: Origin) -> PassageShape:
    """Return a passage with its ids, text, location and the metadata of its document as JSON."""
    label = find_page_label(origin.metadata, passage.page)
    return build_shape(PassageShape, passage, origin, passage_id=passage.id, page_label=label)


def select_hyperedges(evidence: Evidence, hit: ScoredPassage) -> list[ScoredHyperedge]:
    """Return the hyperedges of a hit's passage and those that led to it."""
    leading = {step.hyperedge_id for step in evidence.trace if step.passage_id == hit.passage.id}
    return [
        edge
        for edge in evidence.hyperedges
        if edge.hyperedge.passage_id == hit.passage.id or edge.hyperedge.id in leading
    ]


def answer_json(answer: Answer, explain: bool) -> AnswerShape:
    """Return the output of ``polyad ask --json``."""
    excerpts = {hit.passage.id: hit.excerpt for hit in answer.evidence.passages}
    shape = build_shape(
        AnswerShape,
        query=answer.evidence.question,
        retriever=answer.evidence.retriever,
        answer=answer.text,
        entities=answer.entities,
        citations=[
            build_shape(
                CitationShape,
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


def _context_json(context: AnswerContext) -> AnswerContextShape:
    return build_shape(
        AnswerContextShape,
        context,
        hyperedges=[
            _hyperedge_json(ContextHyperedgeShape, scored, number=number) for number, scored in context.hyperedges
        ],
        passages=[
            {"number": number, "passage_id": passage.id, "text": text} for number, passage, text in context.passages
        ],
    )
