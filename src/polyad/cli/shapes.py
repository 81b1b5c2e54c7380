"""The JSON that the commands print. Programs rely on these shapes: they may grow, and nothing in them may change."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum

from polyad.engine.catalogue import Catalogue
from polyad.engine.tables import Plugin
from polyad.errors import NotFoundError
from polyad.evaluation import signal_training, triple_training
from polyad.evaluation.datasets import Dataset, Query
from polyad.evaluation.experiment import RetrieverResult
from polyad.evaluation.signal_training import TrainingReport
from polyad.evaluation.triple_training import TripleTrainingReport
from polyad.indexing.report import IndexReport
from polyad.model import (
    Answer,
    Evidence,
    Hyperedge,
    Location,
    Origin,
    Passage,
    ScoredHyperedge,
    ScoredPassage,
    Span,
    Statistics,
    TraceStep,
    Usage,
)
from polyad.retrieval.roles import RoleBinding
from polyad.text.keys import name_key


class Kind(StrEnum):
    """What ``polyad show`` can show."""

    DOCUMENT = "document"
    PASSAGE = "passage"
    ENTITY = "entity"
    HYPEREDGE = "hyperedge"


class Listed(StrEnum):
    """What ``polyad list`` can list."""

    DOCUMENTS = "documents"
    ENTITIES = "entities"
    HYPEREDGES = "hyperedges"


_LOOKED_AT = {Listed.DOCUMENTS: ["id"], Listed.ENTITIES: ["name"], Listed.HYPEREDGES: ["id", "text"]}


def listed(catalogue: Catalogue, kind: Listed, like: str) -> list[dict[str, object]]:
    """The documents, entities or hyperedges in which ``like`` occurs, whatever the case, in the order of their ids.

    It may occur in the id of a document, the name of an entity, the id or the text of a hyperedge.
    """
    if kind is Listed.DOCUMENTS:
        items: list[dict[str, object]] = [{"id": id, "source": source} for id, source in catalogue.sources().items()]
    elif kind is Listed.HYPEREDGES:
        items = [{"id": edge.id, "kind": edge.kind, "text": edge.text} for edge in catalogue.hyperedges()]
    else:
        items = [
            {"key": entity.key, "name": entity.name, "type": entity.type, "score": entity.score}
            for entity in catalogue.entities()
        ]
    return [item for item in items if any(like.casefold() in str(item[key]).casefold() for key in _LOOKED_AT[kind])]


def evidence_json(evidence: Evidence, explain: bool) -> dict[str, object]:
    """The shape that ``polyad search --json`` prints."""
    timings = evidence.timings
    shape: dict[str, object] = {
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
    return shape


def _hit_json(hit: ScoredPassage, hyperedges: Sequence[ScoredHyperedge]) -> dict[str, object]:
    return {
        **passage_json(hit.passage, hit.origin),
        "score": hit.score,
        "relevance": hit.relevance,
        "reason": hit.reason,
        "highlight": hit.highlight and [hit.highlight.start, hit.highlight.end],
        "copies": [{"title": origin.title, **_place_json(location, origin)} for origin, location in hit.copies],
        "hyperedges": [
            {
                "id": edge.hyperedge.id,
                "text": edge.hyperedge.text,
                "score": edge.score,
                "entities": [entity.name for entity in edge.members],
            }
            for edge in hyperedges
        ],
    }


def passage_json(passage: Passage, origin: Origin) -> dict[str, object]:
    """What names a passage, its text, where it stands and what is known of its document."""
    return {
        "document_id": passage.document_id,
        "passage_id": passage.id,
        "title": passage.title,
        "text": passage.text,
        **_place_json(passage.location, origin),
        "metadata": dict(origin.metadata),
    }


def _place_json(location: Location, origin: Origin) -> dict[str, object]:
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


def _step_json(step: TraceStep) -> dict[str, object]:
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


def answer_json(answer: Answer, explain: bool) -> dict[str, object]:
    """The shape that ``polyad ask --json`` prints."""
    return {
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


def usage_json(usage: Usage) -> dict[str, object]:
    """What a language model took."""
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
    }


def index_json(report: IndexReport) -> dict[str, object]:
    """The shape that ``polyad index --json`` prints."""
    counts = report.counts
    return {
        "added": counts.added,
        "updated": counts.updated,
        "unchanged": counts.unchanged,
        "failed": len(report.failures),
        "left": counts.left,
        "skipped": len(report.skipped),
        "passages": counts.passages,
        "hyperedges": counts.hyperedges,
        "seconds": round(report.seconds, 3),
        "encode_seconds": round(report.encode_seconds, 3),
        "failures": [{"id": failure.id, "reason": failure.reason} for failure in report.failures],
        "skipped_files": list(report.skipped),
        "skipped_kinds": dict(report.skipped_kinds),
        "stopped": counts.stopped,
        "usage": usage_json(report.usage),
        "notes": dict(report.notes),
        "gone": list(report.gone),
        "spared": list(report.spared),
        "pruned": report.pruned,
        "method": report.method,
        "kept_methods": dict(report.kept_methods),
        "duplicates": [{"id": id, "of": earlier} for id, earlier in report.duplicates],
    }


def statistics_json(statistics: Statistics) -> dict[str, object]:
    """The shape that ``polyad stats --json`` prints."""
    return {
        "documents": statistics.documents,
        "passages": statistics.passages,
        "entities": statistics.entities,
        "hyperedges": statistics.hyperedges,
        "kinds": {kind.value: count for kind, count in statistics.kinds.items()},
        "incidences": statistics.incidences,
        "mean_arity": round(statistics.mean_arity, 4),
        "density": round(statistics.density, 4),
        "tokens": statistics.tokens,
        "cost": statistics.cost,
        "disk_bytes": statistics.disk_bytes,
        "settings": dict(statistics.settings),
    }


def look_up(catalogue: Catalogue, kind: Kind, id: str) -> dict[str, object]:
    """One thing of the index, whole; the shape that ``polyad show --json`` prints.

    Raises:
        NotFoundError: there is nothing of that id.
    """
    match kind:
        case Kind.DOCUMENT:
            return asdict(catalogue.document(id))
        case Kind.PASSAGE:
            passage = catalogue.passage(id)
            return passage_json(passage, catalogue.origin(passage.document_id))
        case Kind.HYPEREDGE:
            edge, incidences = catalogue.hyperedge(id)
            grounded = round(catalogue.grounded(edge), 3)
            return {**asdict(edge), "grounded": grounded, "incidences": [asdict(part) for part in incidences]}
        case Kind.ENTITY:
            return _entity_json(catalogue, id)


def _entity_json(catalogue: Catalogue, name: str) -> dict[str, object]:
    """An entity by its key, or by its name as it is written."""
    try:
        entity, hyperedges = catalogue.entity(name)
    except NotFoundError:
        entity, hyperedges = catalogue.entity(name_key(name) or name)
    return {**asdict(entity), "hyperedges": hyperedges}


def plugin_json(plugin: Plugin, is_sound: bool) -> dict[str, object]:
    """A row that another package adds, and whether it can be loaded."""
    return {
        "table": plugin.table,
        "name": plugin.name,
        "package": plugin.package,
        "version": plugin.version,
        "sound": is_sound,
    }


def hyperedge_json(catalogue: Catalogue, edge: Hyperedge) -> dict[str, object]:
    """A hyperedge with the names it joins, by role."""
    roles: dict[str, list[str]] = {}
    for incidence in catalogue.hyperedge(edge.id)[1]:
        roles.setdefault(incidence.role, []).append(incidence.name)
    return {"id": edge.id, "text": edge.text, "roles": roles}


def binding_json(binding: RoleBinding) -> dict[str, object]:
    """A fact that matches a question for roles, with the names in its roles."""
    roles = {role: list(names) for role, names in binding.roles.items()}
    return {"id": binding.hyperedge_id, "text": binding.text, "roles": roles}


def eval_index_json(report: IndexReport, statistics: Statistics) -> dict[str, object]:
    """The part of ``polyad eval --json`` on indexing; taken right after it, for the peak of memory to be its own."""
    return {
        "seconds": round(report.seconds, 3),
        "encode_seconds": round(report.encode_seconds, 3),
        "passages": statistics.passages,
        "hyperedges": statistics.hyperedges,
        "entities": statistics.entities,
        "peak_rss_mb": round(_peak_memory_mb(), 1),
        "llm": usage_json(report.usage),
        "failed": len(report.failures) + report.counts.left,
    }


def eval_json(
    dataset: Dataset, k: int, index: dict[str, object], results: Sequence[RetrieverResult]
) -> dict[str, object]:
    """The shape that ``polyad eval --json`` prints."""
    return {
        "dataset": dataset.name,
        "k": k,
        "queries": len(dataset.queries),
        "index": index,
        "results": [result.to_json(k) for result in results],
    }


def demo_json(report: IndexReport, found: Sequence[tuple[Query, Evidence]]) -> dict[str, object]:
    """The shape that ``polyad demo --json`` prints."""
    return {
        "index": index_json(report),
        "questions": [
            {**evidence_json(evidence, explain=False), "gold": sorted(query.gold), "missing": missing(query, evidence)}
            for query, evidence in found
        ],
    }


def missing(query: Query, evidence: Evidence) -> list[str]:
    """The gold documents of a question that are not in the evidence."""
    return sorted(query.gold - {hit.passage.document_id for hit in evidence.passages})


def _peak_memory_mb() -> float:
    """The most memory this process has held; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def training_json(reports: Mapping[str, TrainingReport]) -> dict[str, object]:
    """What ``polyad train --json`` prints: recall at 5 of each file of weights, on each benchmark."""
    return {file: signal_training.report_json(report) for file, report in reports.items()}


def triple_training_json(
    report: TripleTrainingReport, results: Mapping[str, Sequence[RetrieverResult]], k: int
) -> dict[str, object]:
    """What ``polyad train hyperretriever --json`` prints."""
    held_out = {name: [result.to_json(k) for result in rows] for name, rows in results.items()}
    return {"training": triple_training.report_json(report), "held_out": held_out}
