"""Evidence and answers, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired

from typing_extensions import TypedDict

from polyad.model import (
    Answer,
    AnswerContext,
    Argument,
    Entity,
    Evidence,
    Hyperedge,
    Location,
    MetadataValue,
    Origin,
    Passage,
    ScoredEntity,
    ScoredHyperedge,
    ScoredPassage,
    Span,
    TraceStep,
    Usage,
)


class PlaceShape(TypedDict):
    """Where something stands: characters, and what of page, heading, sheet and slide is known; with its document."""

    start: int
    end: int
    source: str
    url: str
    page: int | None
    heading: str
    sheet: str
    slide: int | None


class CopyShape(PlaceShape):
    """Another place where the same text stands."""

    title: str


class PassageShape(PlaceShape):
    """A passage and what is known of its document."""

    document_id: str
    passage_id: str
    title: str
    text: str
    metadata: Mapping[str, MetadataValue]


class ArgumentShape(TypedDict):
    """What a role of a fact was given; ``unit`` and ``names`` where there are any."""

    role: str
    value: str
    type: str
    unit: NotRequired[str]
    names: NotRequired[list[str]]


class FoundHyperedgeShape(TypedDict):
    """A hyperedge with the names it joins; one that was given as data with its relation and all it was given."""

    id: str
    text: str
    score: float
    entities: list[str]
    relation: NotRequired[str]
    arguments: NotRequired[list[ArgumentShape]]


class HitShape(PassageShape):
    """A passage that was found; ``relevance`` in [0, 1], ``highlight`` the characters of its text that fit best."""

    score: float
    relevance: float | None
    reason: str
    highlight: list[int] | None
    copies: list[CopyShape]
    hyperedges: list[FoundHyperedgeShape]


class TimingsShape(TypedDict):
    """Milliseconds."""

    encode: float
    retrieve: float
    total: float


class StepShape(TypedDict):
    """Why a hyperedge is there."""

    hyperedge_id: str
    passage_id: str
    matched: str
    reached: str
    via: list[str]
    score: float
    tails: list[str]
    parent: str


class FoundEntityShape(TypedDict):
    """An entity that was found."""

    key: str
    name: str
    type: str
    description: str
    score: float


class EvidenceShape(TypedDict):
    """What ``polyad search --json`` prints; with ``--explain`` also all that is handed to a language model."""

    query: str
    retriever: str
    hits: list[HitShape]
    timings_ms: TimingsShape
    best_relevance: NotRequired[float]
    notes: NotRequired[dict[str, int]]
    trace: NotRequired[list[StepShape]]
    hyperedges: NotRequired[list[FoundHyperedgeShape]]
    entities: NotRequired[list[FoundEntityShape]]


class CitationShape(PlaceShape):
    """A claim of an answer and where it is from."""

    number: int
    passage_id: str
    document_id: str
    title: str
    claim: str
    answer_span: list[int]


class UsageShape(TypedDict):
    """What a language model took; ``cost`` in US dollars."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


class ListedHyperedgeShape(FoundHyperedgeShape):
    """A hyperedge that a language model was shown, under the number that its passage is cited by."""

    number: int


class ListedEntityShape(TypedDict):
    """An entity that a language model was shown."""

    key: str
    name: str
    type: str
    description: str


class QuotedPassageShape(TypedDict):
    """What a language model was shown of a passage, under the number that this is cited by."""

    number: int
    passage_id: str
    text: str


class ShownShape(TypedDict):
    """What of the evidence a language model was shown: all that fitted into the prompt."""

    hyperedges: list[ListedHyperedgeShape]
    entities: list[ListedEntityShape]
    passages: list[QuotedPassageShape]


class AnswerShape(TypedDict):
    """What ``polyad ask --json`` prints; with ``--explain`` also what the model was shown, and its thoughts."""

    query: str
    retriever: str
    answer: str
    entities: list[str]
    citations: list[CitationShape]
    dropped_citations: int
    note: str
    usage: UsageShape
    evidence: EvidenceShape
    shown: NotRequired[ShownShape]
    thoughts: NotRequired[str]


def evidence_json(evidence: Evidence, explain: bool) -> EvidenceShape:
    """The shape that ``polyad search --json`` prints."""
    timings = evidence.timings
    shape: EvidenceShape = {
        "query": evidence.question,
        "retriever": evidence.retriever,
        "hits": [_hit_json(hit, hyperedges_of(evidence, hit)) for hit in evidence.passages],
        "timings_ms": {
            "encode": round(timings.encode, 2),
            "retrieve": round(timings.retrieve, 2),
            "total": round(timings.total, 2),
        },
    }
    if evidence.best_relevance is not None:
        shape["best_relevance"] = evidence.best_relevance
    if evidence.notes:
        shape["notes"] = dict(evidence.notes)
    if explain:
        shape["trace"] = [_step_json(step) for step in evidence.trace]
        shape["hyperedges"] = [_hyperedge_json(edge) for edge in evidence.hyperedges]
        shape["entities"] = [_entity_json(found) for found in evidence.entities]
    return shape


def _hit_json(hit: ScoredPassage, hyperedges: Sequence[ScoredHyperedge]) -> HitShape:
    return {
        **passage_json(hit.passage, hit.origin),
        "score": hit.score,
        "relevance": hit.relevance,
        "reason": hit.reason,
        "highlight": [hit.highlight.start, hit.highlight.end] if hit.highlight else None,
        "copies": [{"title": origin.title, **_place_json(location, origin)} for origin, location in hit.copies],
        "hyperedges": [_hyperedge_json(edge) for edge in hyperedges],
    }


def _hyperedge_json(scored: ScoredHyperedge) -> FoundHyperedgeShape:
    edge = scored.hyperedge
    shape: FoundHyperedgeShape = {
        "id": edge.id,
        "text": edge.text,
        "score": scored.score,
        "entities": [entity.name for entity in scored.members],
    }
    if edge.arguments:
        shape["relation"] = edge.relation
        shape["arguments"] = [argument_json(argument) for argument in edge.arguments]
    return shape


def _entity_json(found: ScoredEntity) -> FoundEntityShape:
    return {**_listed_json(found.entity), "score": found.score}


def _listed_json(entity: Entity) -> ListedEntityShape:
    return {"key": entity.key, "name": entity.name, "type": entity.type, "description": entity.description}


def _shown_json(shown: AnswerContext) -> ShownShape:
    return {
        "hyperedges": [{**_hyperedge_json(scored), "number": number} for number, scored in shown.hyperedges],
        "entities": [_listed_json(entity) for entity in shown.entities],
        "passages": [
            {"number": number, "passage_id": passage.id, "text": quoted} for number, passage, quoted in shown.passages
        ],
    }


def argument_json(argument: Argument) -> ArgumentShape:
    """What a role of a fact was given."""
    shape: ArgumentShape = {"role": argument.role, "value": argument.value, "type": argument.type}
    if argument.unit:
        shape["unit"] = argument.unit
    if argument.names:
        shape["names"] = list(argument.names)
    return shape


def passage_json(passage: Passage, origin: Origin) -> PassageShape:
    """What names a passage, its text, where it stands and what is known of its document."""
    return {
        "document_id": passage.document_id,
        "passage_id": passage.id,
        "title": passage.title,
        "text": passage.text,
        **_place_json(passage.location, origin),
        "metadata": dict(origin.metadata),
    }


def _place_json(location: Location, origin: Origin) -> PlaceShape:
    return {
        "start": location.start,
        "end": location.end,
        "source": origin.source,
        "url": origin.url,
        "page": location.page,
        "heading": location.heading,
        "sheet": location.sheet,
        "slide": location.slide,
    }


def _step_json(step: TraceStep) -> StepShape:
    return {
        "hyperedge_id": step.hyperedge_id,
        "passage_id": step.passage_id,
        "matched": step.matched,
        "reached": step.reached,
        "via": list(step.via),
        "score": step.score,
        "tails": list(step.tails),
        "parent": step.parent,
    }


def hyperedges_of(evidence: Evidence, hit: ScoredPassage) -> list[ScoredHyperedge]:
    """The hyperedges of ``evidence`` that stand in the passage, or lifted it; the best match to the question first."""
    lifted = {step.hyperedge_id for step in evidence.trace if step.passage_id == hit.passage.id}
    found = [
        edge
        for edge in evidence.hyperedges
        if edge.hyperedge.passage_id == hit.passage.id or edge.hyperedge.id in lifted
    ]
    return sorted(found, key=lambda edge: not _is_highlighted(edge.hyperedge, hit))


def _is_highlighted(edge: Hyperedge, hit: ScoredPassage) -> bool:
    return edge.passage_id == hit.passage.id and Span(edge.start, edge.end) == hit.highlight


def answer_json(answer: Answer, explain: bool) -> AnswerShape:
    """The shape that ``polyad ask --json`` prints."""
    shape: AnswerShape = {
        "query": answer.evidence.question,
        "retriever": answer.evidence.retriever,
        "answer": answer.text,
        "entities": list(answer.entities),
        "citations": [
            {
                "number": citation.number,
                "passage_id": citation.passage_id,
                "document_id": citation.document_id,
                "title": citation.title,
                **_place_json(citation.location, citation.origin),
                "claim": citation.answer_span.of(answer.text),
                "answer_span": [citation.answer_span.start, citation.answer_span.end],
            }
            for citation in answer.citations
        ],
        "dropped_citations": answer.dropped_citations,
        "note": answer.note,
        "usage": usage_json(answer.usage),
        "evidence": evidence_json(answer.evidence, explain),
    }
    if explain:
        shape["shown"] = _shown_json(answer.context)
        shape["thoughts"] = answer.thoughts
    return shape


def usage_json(usage: Usage) -> UsageShape:
    """What a language model took."""
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
    }
