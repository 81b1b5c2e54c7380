"""The tools that agents call over MCP, as functions of an index and their arguments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any
from urllib.parse import quote, unquote

from polyad.engine import Engine
from polyad.errors import NotFoundError
from polyad.model import (
    Answer,
    Document,
    Evidence,
    Excerpt,
    Location,
    Origin,
    ScoredPassage,
    TextMatch,
    TextMatches,
)
from polyad.readers.text.metadata import CONTENT_HASH
from polyad.schemas.catalogue import ListKind, list_items
from polyad.schemas.places import describe_citation, describe_hit, describe_location, get_excerpt, map_excerpts
from polyad.text.pictures import PICTURE_LIST, select_labels
from polyad.text.words import TOKEN
from polyad_server import mcp_results
from polyad_server.links import build_passage_url
from polyad_server.mcp_limits import (
    CURSOR_MESSAGE,
    MAX_CHARACTERS,
    MAX_TEXT,
    OFFSET_MARK,
    ToolInputError,
    count_characters,
    read_cursor,
    shorten_metadata,
    split_offset,
    take_page,
    truncate,
)

PAGE_IMAGES = "polyad-page:///"
"""Beginning of the address of the resource with the page of a passage; the id of the passage follows."""

_MAX_FACTS = 60
_MAX_HIT_FACTS = 5
_MAX_DOCUMENTS = 200
_MAX_COUNTS = 10
_MAX_TRACE = 8

Search = Callable[..., Evidence]
"""Searches: takes the question, ``k`` and the options of a search."""

FindText = Callable[..., TextMatches]
"""Searches exactly: takes the arguments of :meth:`polyad.engine.engine.Engine.find_text`."""


@dataclass(frozen=True, slots=True)
class ToolTarget:
    """The index that MCP tools search and change, with the server's address for links.

    Attributes:
        engine: The index.
        workspace: Name of the workspace.
        search: Searches the index, within the limits of the server.
        find_text: Searches the index exactly, within the limits of the server.
        answer: Answers a question from the index, within the limits of the server.
        base_url: Address of the web page, for links; empty without a page.
    """

    engine: Engine
    workspace: str
    search: Search
    find_text: FindText
    answer: Callable[[str], Answer]
    base_url: str

    def get_url(self, passage_id: str, origin: Origin, excerpt: Excerpt | None = None) -> str:
        """Return a URL for a passage: in the server's web page, of the document, or ``polyad:ID``."""
        if self.base_url:
            return build_passage_url(self.base_url, self.workspace, passage_id, excerpt)
        return origin.url if origin.url.startswith(("https://", "http://")) else f"polyad:{passage_id}"


def search(target: ToolTarget, query: str) -> mcp_results.SearchResults:
    """Return the passages for a query in the form that chat programs expect of an MCP tool ``search``.

    Raises:
        ToolInputError: The index has no documents.
    """
    hits = target.search(query, k=10).passages
    if not hits:
        _require_documents(target, "")
    results: list[mcp_results.PassageResult] = [
        {
            "id": hit.passage.id,
            "title": truncate(describe_hit(hit)),
            "url": target.get_url(hit.passage.id, hit.origin, hit.excerpt),
        }
        for hit in hits
    ]
    return {"results": take_page(results, "")[0]}


def fetch(target: ToolTarget, id: str, around: int = 0, max_tokens: int = 0) -> mcp_results.FetchedPassage:
    """Return a whole passage or document in the form that chat programs expect of an MCP tool ``fetch``.

    A longer text continues under the id in ``metadata["next_id"]``. With ``around``, the text includes this number of
    passages before and after the passage.

    Raises:
        NotFoundError: There is no such passage or document.
        ToolInputError: The text ends before the offset in the id.
    """
    item_id, offset = split_offset(id)
    catalogue = target.engine.catalogue
    try:
        passage = catalogue.passage(item_id)
    except NotFoundError:
        document = catalogue.document(item_id)
        text, document_id, title, location = document.text, item_id, document.title or item_id, None
        own_text = text
        origin = catalogue.origin(item_id)
    else:
        text, document_id, location = passage.text, passage.document_id, passage.location
        own_text = f"{location.heading}\n{text}"
        origin = catalogue.origin(document_id)
        title = describe_location(origin.title or passage.title or document_id, location, origin)
        if around:
            passages = catalogue.passages_of_document(document_id)
            place = passages.index(passage)
            window = passages[max(0, place - around) : place + around + 1]
            text = catalogue.document(document_id).text[window[0].start : window[-1].end]
    if offset and offset >= len(text):
        raise ToolInputError(f"the id ends in {OFFSET_MARK}{offset}; expected at most {len(text) - 1}")
    metadata = select_labels(origin.metadata, own_text) if location else origin.metadata
    has_image = location and CONTENT_HASH in metadata and (location.page or PICTURE_LIST in metadata)
    fetched: mcp_results.FetchedPassage = {
        "id": id,
        "title": truncate(title),
        "text": "",
        "url": target.get_url(item_id, origin),
        "metadata": {
            **shorten_metadata(metadata),
            "document_id": document_id,
            "page": location.page if location else None,
            "heading": truncate(location.heading) if location else "",
            "source": truncate(origin.source),
            "image": f"{PAGE_IMAGES}{quote(item_id, safe='')}" if has_image else "",
            "next_id": "",
        },
    }
    part = truncate(text[offset : offset + MAX_CHARACTERS], MAX_CHARACTERS - count_characters(fetched) - len(id))
    fetched["text"] = part = _cut_to_tokens(part, max_tokens)
    end = offset + len(part)
    fetched["metadata"]["next_id"] = f"{item_id}{OFFSET_MARK}{end}" if end < len(text) else ""
    return fetched


def read_page_image(target: ToolTarget, id: str) -> bytes:
    """Return the page of a passage, with the passage marked, or a picture of the passage, as PNG.

    Raises:
        NotFoundError: There is no such passage.
        PageImageError: The page cannot be shown.
    """
    return target.engine.page_images.render(unquote(id)).png


def _cut_to_tokens(text: str, max_tokens: int) -> str:
    """Return the beginning of a text with at most ``max_tokens`` tokens; 0 for no limit."""
    following = next(islice(TOKEN.finditer(text), max_tokens, None), None) if max_tokens else None
    return text[: following.start()] if following else text


def outline(target: ToolTarget, id: str, cursor: str) -> mcp_results.OutlineResult:
    """Return the headings of a document with the ids of their first passages, one page of results at a time.

    Raises:
        NotFoundError: There is no such document.
        ToolInputError: The cursor is invalid.
    """
    origin = target.engine.catalogue.origin(id)
    passages = target.engine.catalogue.passages_of_document(id)
    groups = [(heading, list(group)) for heading, group in groupby(passages, key=lambda passage: passage.heading)]
    sections: list[mcp_results.OutlineSection] = [
        {"heading": truncate(heading), "id": first.id, "page": first.page, "passages": 1 + len(others)}
        for heading, [first, *others] in groups
    ]
    part, next_cursor = take_page(sections, cursor)
    return {"title": truncate(origin.title), "sections": part, "next_cursor": next_cursor}


def find_text(
    target: ToolTarget, pattern: str, cursor: str, max_tokens: int, options: Mapping[str, Any]
) -> mcp_results.TextResults:
    """Return the lines that match a pattern exactly, one page of results at a time.

    Raises:
        ConfigurationError: The pattern is no regular expression.
        ToolInputError: No document matches the filter, or the cursor is invalid.
    """
    start = read_cursor(cursor)
    result = target.find_text(pattern, cursor=start, **options)
    if not result.total:
        _require_documents(target, options.get("where") or "")
    lines = [_describe_line(target, match) for match in result.matches]
    part, _ = take_page(lines, "", MAX_CHARACTERS - 4000, max_tokens=max_tokens)
    end = start + len(part)
    frequent = sorted(result.counts.items(), key=lambda count: (-count[1], count[0]))[:_MAX_COUNTS]
    return {
        "matches": part,
        "total": result.total,
        "documents": {truncate(id, 150): count for id, count in frequent},
        "note": "" if result.is_complete else "the time limit ended the search; use where to select fewer documents",
        "next_cursor": str(end) if end < result.total else "",
    }


def _describe_line(target: ToolTarget, match: TextMatch) -> mcp_results.MatchingLine:
    origin = target.engine.catalogue.origin(match.document_id)
    location = Location(match.start, match.end, match.page, match.heading)
    place = describe_location(origin.title or match.title or match.document_id, location, origin)
    return {
        "id": match.passage_id,
        "document_id": match.document_id,
        "place": truncate(place),
        "line": match.line,
        "text": truncate(match.text, 2 * MAX_TEXT),
        "before": list(map(truncate, match.before)),
        "after": list(map(truncate, match.after)),
    }


def find_evidence(
    target: ToolTarget,
    question: str,
    k: int,
    options: Mapping[str, Any],
    cursor: str,
    seen: Sequence[str] = (),
    max_tokens: int = 0,
) -> mcp_results.EvidenceResults:
    """Return the best sentences for a question with their sources and facts, one page at a time.

    Passages in ``seen`` are left out; the others state which name links them with a passage that was seen, or with one
    of the result. ``options`` are those of the search; empty ones count as missing.

    Raises:
        ToolInputError: No document matches the filter, or the cursor is invalid.
    """
    options = {name: value for name, value in options.items() if value != ""}
    evidence = target.search(question, k=k + len(seen), **options)
    if not evidence.passages:
        _require_documents(target, options.get("where", ""))
    hits = [hit for hit in evidence.passages if hit.passage.id not in seen][:k]
    links = _find_links(target, evidence, hits, seen)
    items = [_describe_hit(target, evidence, hit, "; ".join(links[hit.passage.id][:3])) for hit in hits]
    part, next_cursor = take_page(items, cursor, MAX_CHARACTERS - 3000, max_tokens=max_tokens)
    trace = [f"{each['id']}: {link}" for each in part for link in links[each["id"]]]
    return {
        "evidence": part,
        "trace": [truncate(line, 250) for line in trace[:_MAX_TRACE]],
        "note": truncate(evidence.describe_spelling()),
        "next_cursor": next_cursor,
    }


def _find_links(
    target: ToolTarget, evidence: Evidence, hits: Sequence[ScoredPassage], seen: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """Return for each hit the names that link it with passages that were seen, or with better hits, as texts."""
    facts = {id: target.engine.catalogue.hyperedges_of_passage(id) for id in seen}
    names = {id: {name for _, members in edges for name in members} for id, edges in facts.items()}
    links: defaultdict[str, list[str]] = defaultdict(list)
    for id in (hit.passage.id for hit in hits):
        edges = [edge for edge in evidence.hyperedges if edge.hyperedge.passage_id == id]
        members = {entity.name for edge in edges for entity in edge.members}
        via = [name for step in evidence.trace if step.passage_id == id for name in step.via]
        for name in [*dict.fromkeys(via), *sorted(members.difference(via))]:
            source = next((other for other, others in names.items() if name in others), "")
            if source and (name in via or source in seen):
                links[id].append(f"{name!r} is also in {source}")
        names[id] = members
    return links


def _describe_hit(target: ToolTarget, evidence: Evidence, hit: ScoredPassage, link: str) -> mcp_results.EvidencePassage:
    facts = [edge.hyperedge.text for edge in evidence.hyperedges if edge.hyperedge.passage_id == hit.passage.id]
    retracted = [f"{fact.text} (retracted: {fact.reason})" for fact in hit.retracted]
    return {
        "id": hit.passage.id,
        "document_id": hit.passage.document_id,
        "place": truncate(describe_hit(hit)),
        "url": target.get_url(hit.passage.id, hit.origin, hit.excerpt),
        "excerpt": truncate(get_excerpt(hit), MAX_CHARACTERS // 4),
        "relevance": None if hit.relevance is None else round(hit.relevance, 2),
        "facts": [truncate(fact) for fact in facts[:_MAX_HIT_FACTS]],
        "retracted": [truncate(fact) for fact in retracted[:_MAX_HIT_FACTS]],
        "version": hit.version.describe() if hit.version else "",
        "link": truncate(link),
    }


def ask(target: ToolTarget, question: str) -> mcp_results.AnswerResult:
    """Return an answer that the language model writes from the documents, with its sources.

    Raises:
        ToolInputError: No language model is set.
        LanguageModelError: The language model failed.
    """
    if target.engine.components.language_model is None:
        raise ToolInputError("no language model is set for this index; call find_evidence, and answer from it yourself")
    answer = target.answer(question)
    sources = {each.number: each for each in answer.citations}
    excerpts = map_excerpts(answer.evidence)
    citations: list[mcp_results.AnswerSource] = [
        {
            "number": number,
            "id": each.passage_id,
            "title": truncate(describe_citation(each, answer.evidence)),
            "url": target.get_url(each.passage_id, each.origin, excerpts.get(each.passage_id)),
        }
        for number, each in sorted(sources.items())
    ]
    return {
        "answer": truncate(answer.text, MAX_CHARACTERS // 2),
        "citations": take_page(citations, "", MAX_CHARACTERS // 2 - 1000)[0],
        "note": truncate("; ".join(filter(None, [answer.note, answer.evidence.describe_spelling()]))),
    }


def describe_entity(target: ToolTarget, name: str, cursor: str) -> mcp_results.EntityResult:
    """Return the facts about an entity and the entities in them, one page of results at a time.

    Raises:
        NotFoundError: There is no such entity.
        ToolInputError: The cursor is invalid.
    """
    around = target.engine.catalogue.neighbourhood(name, read_cursor(cursor) + _MAX_FACTS + 1)
    entity, _ = around.entities[0]
    names = {each.key: truncate(each.name) for each, _ in around.entities}
    facts: list[mcp_results.EntityFact] = [
        {
            "text": truncate(edge.text),
            "passage_id": edge.passage_id,
            "entities": [names[key] for key in keys if key != entity.key][:10],
        }
        for edge, keys in around.hyperedges
    ]
    part, next_cursor = take_page(facts, cursor, MAX_CHARACTERS - 4000, _MAX_FACTS)
    return {
        "name": truncate(entity.name),
        "type": truncate(entity.type),
        "description": truncate(entity.description, 2000),
        "fact_count": around.total,
        "facts": part,
        "next_cursor": next_cursor,
    }


def list_documents(target: ToolTarget, like: str, where: str, cursor: str) -> mcp_results.DocumentsResult:
    """Return the documents with their metadata, one page of results at a time.

    Raises:
        ToolInputError: No document matches, or the cursor is invalid.
    """
    catalogue = target.engine.catalogue
    ids = [str(item["id"]) for item in list_items(catalogue, ListKind.DOCUMENTS, like, where or None)]
    if not ids:
        raise ToolInputError("no document matches; leave out like and where to see all documents")
    start = read_cursor(cursor)
    if start >= len(ids):
        raise ToolInputError(CURSOR_MESSAGE.format(cursor))
    part, _ = take_page([_describe_document(target, id) for id in ids[start : start + _MAX_DOCUMENTS]], "")
    end = start + len(part)
    return {"documents": part, "total": len(ids), "next_cursor": str(end) if end < len(ids) else ""}


def _describe_document(target: ToolTarget, id: str) -> mcp_results.ListedDocument:
    origin = target.engine.catalogue.origin(id)
    return {"id": id, "title": truncate(origin.title), "metadata": shorten_metadata(origin.metadata)}


def index(target: ToolTarget, document: Document) -> mcp_results.IndexResult:
    """Index a document, replacing a document with the same id.

    Raises:
        ToolInputError: The document cannot be indexed.
    """
    report = target.engine.index_documents([document])
    if report.failures:
        raise ToolInputError("; ".join(f"{failure.id}: {failure.reason}" for failure in report.failures))
    counts = report.counts
    return {"added": counts.added, "updated": counts.updated, "unchanged": counts.unchanged}


def retract(target: ToolTarget, hyperedge: str, entity: str, reason: str) -> mcp_results.RetractionResult:
    """Retract a fact, or remove one entity from a fact, and return the texts of the changed facts.

    Raises:
        NotFoundError: There is no such fact or entity.
    """
    report = target.engine.corrections.retract(hyperedge=hyperedge, entity=entity, reason=reason)
    return {"withdrawn": take_page([truncate(fact.text) for fact in report.withdrawn], "")[0]}


def _require_documents(target: ToolTarget, where: str) -> None:
    """Raise ToolInputError if no document satisfies a filter, which is probably a mistake of the agent."""
    if not target.engine.catalogue.sources(where or None):
        reason = f"matches {where!r}; call list_documents to see the metadata" if where else "is in the index"
        raise ToolInputError(f"no document {reason}")
