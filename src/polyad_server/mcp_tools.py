"""The tools that agents call over MCP: their arguments, results and limits."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from typing_extensions import TypedDict

from polyad.engine import Engine
from polyad.errors import NotFoundError
from polyad.model import (
    Answer,
    Document,
    Evidence,
    Excerpt,
    Location,
    MetadataValue,
    Origin,
    ScoredPassage,
    TextMatch,
    TextMatches,
)
from polyad.readers.metadata import CONTENT_HASH
from polyad.schemas.catalogue import ListKind, list_items
from polyad.schemas.filling import fill_schema
from polyad.schemas.places import describe_citation, describe_hit, describe_location, get_excerpt, map_excerpts
from polyad.text.words import TOKEN, count_tokens
from polyad_server.links import build_passage_url

MAX_CHARACTERS = 24_000
"""Maximum characters of the JSON of one result; clients cut longer results at 25,000."""

PAGE_IMAGES = "polyad-page:///"
"""Beginning of the address of the resource with the page of a passage; the id of the passage follows."""

_MAX_FACTS = 60
_MAX_HIT_FACTS = 5
_MAX_DOCUMENTS = 200
_MAX_COUNTS = 10
_MAX_TRACE = 8
_MAX_KEYS = 20
_MAX_DIGITS = 12
_MAX_TEXT = 300
"""Characters of a title, a fact or a name."""

_OFFSET = "@offset="
_CURSOR_MESSAGE = "the cursor is {!r}; expected next_cursor of the result before"

Item = TypeVar("Item")
Search = Callable[..., Evidence]
"""Searches: takes the question, and ``k``, ``where`` and ``as_of``."""

FindText = Callable[..., TextMatches]
"""Searches exactly: takes the arguments of :meth:`polyad.engine.engine.Engine.find_text`."""


class ToolInputError(ValueError):
    """Raised if an argument of an MCP tool is invalid; the message tells the agent how to correct it."""


class PassageResult(TypedDict):
    """A passage in the result of the tool ``search``."""

    id: str
    title: str
    url: str


class SearchResults(TypedDict):
    """The result of the MCP tool ``search``: passages."""

    results: list[PassageResult]


class FetchedPassage(TypedDict):
    """The result of the MCP tool ``fetch``: the text of a passage or document."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


class EvidencePassage(TypedDict):
    """A passage with the sentences that answer the question best, and the facts that led to it."""

    id: str
    document_id: str
    place: str
    url: str
    excerpt: str
    relevance: float | None
    facts: list[str]
    retracted: list[str]
    link: str


class EvidenceResults(TypedDict):
    """The result of the MCP tool ``find_evidence``; ``next_cursor`` is empty at the end.

    ``trace`` has one line for each name that leads from one passage to another.
    """

    evidence: list[EvidencePassage]
    trace: list[str]
    next_cursor: str


class MatchingLine(TypedDict):
    """A line in the result of the tool ``find_text``, with the id of its passage, and the lines around it."""

    id: str
    document_id: str
    place: str
    line: int
    text: str
    before: list[str]
    after: list[str]


class TextResults(TypedDict):
    """The result of the MCP tool ``find_text``; ``next_cursor`` is empty at the end.

    ``documents`` has the number of matching lines by document, of the documents with most; ``total`` counts all lines.
    """

    matches: list[MatchingLine]
    total: int
    documents: dict[str, int]
    note: str
    next_cursor: str


class OutlineSection(TypedDict):
    """A heading of a document, with the id of its first passage and the number of its passages."""

    heading: str
    id: str
    page: int | None
    passages: int


class OutlineResult(TypedDict):
    """The result of the MCP tool ``outline``; ``next_cursor`` is empty at the end."""

    title: str
    sections: list[OutlineSection]
    next_cursor: str


class AnswerSource(TypedDict):
    """The passage that a mark ``[number]`` in an answer cites."""

    number: int
    id: str
    title: str
    url: str


class AnswerResult(TypedDict):
    """The result of the MCP tool ``ask``: an answer with its sources."""

    answer: str
    citations: list[AnswerSource]
    note: str


class EntityFact(TypedDict):
    """A fact that contains an entity, with the passage that states the fact."""

    text: str
    passage_id: str
    entities: list[str]


class EntityResult(TypedDict):
    """The result of the MCP tool ``describe_entity``; ``next_cursor`` is empty at the end."""

    name: str
    type: str
    description: str
    fact_count: int
    facts: list[EntityFact]
    next_cursor: str


class ListedDocument(TypedDict):
    """A document in the result of the tool ``list_documents``, with the metadata that filters can use."""

    id: str
    title: str
    metadata: dict[str, Any]


class DocumentsResult(TypedDict):
    """The result of the MCP tool ``list_documents``; ``next_cursor`` is empty at the end."""

    documents: list[ListedDocument]
    total: int
    next_cursor: str


class IndexResult(TypedDict):
    """The result of the MCP tool ``index``: numbers of documents."""

    added: int
    updated: int
    unchanged: int


class RetractionResult(TypedDict):
    """The result of the MCP tool ``retract``: the texts of the retracted facts."""

    withdrawn: list[str]


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


def search(target: ToolTarget, query: str) -> SearchResults:
    """Return the passages for a query in the form that chat programs expect of an MCP tool ``search``.

    Raises:
        ToolInputError: The index has no documents.
    """
    hits = target.search(query, k=10).passages
    if not hits:
        _require_documents(target, "")
    results: list[PassageResult] = [
        {
            "id": hit.passage.id,
            "title": _truncate(describe_hit(hit)),
            "url": target.get_url(hit.passage.id, hit.origin, hit.excerpt),
        }
        for hit in hits
    ]
    return {"results": _take_page(results, "")[0]}


def fetch(target: ToolTarget, id: str, around: int = 0, max_tokens: int = 0) -> FetchedPassage:
    """Return a whole passage or document in the form that chat programs expect of an MCP tool ``fetch``.

    A longer text continues under the id in ``metadata["next_id"]``. With ``around``, the text includes this number of
    passages before and after the passage.

    Raises:
        NotFoundError: There is no such passage or document.
        ToolInputError: The text ends before the offset in the id.
    """
    item_id, offset = _split_offset(id)
    catalogue = target.engine.catalogue
    try:
        passage = catalogue.passage(item_id)
    except NotFoundError:
        document = catalogue.document(item_id)
        text, document_id, title, location = document.text, item_id, document.title or item_id, None
        origin = catalogue.origin(item_id)
    else:
        text, document_id, location = passage.text, passage.document_id, passage.location
        origin = catalogue.origin(document_id)
        title = describe_location(origin.title or passage.title or document_id, location, origin)
        if around:
            passages = catalogue.passages_of_document(document_id)
            place = passages.index(passage)
            window = passages[max(0, place - around) : place + around + 1]
            text = catalogue.document(document_id).text[window[0].start : window[-1].end]
    if offset and offset >= len(text):
        raise ToolInputError(f"the id ends in {_OFFSET}{offset}; expected at most {len(text) - 1}")
    fetched: FetchedPassage = {
        "id": id,
        "title": _truncate(title),
        "text": "",
        "url": target.get_url(item_id, origin),
        "metadata": {
            **_shorten_metadata(origin.metadata),
            "document_id": document_id,
            "page": location.page if location else None,
            "heading": _truncate(location.heading) if location else "",
            "source": _truncate(origin.source),
            "image": f"{PAGE_IMAGES}{quote(item_id, safe='')}" if location and CONTENT_HASH in origin.metadata else "",
            "next_id": "",
        },
    }
    part = _truncate(text[offset : offset + MAX_CHARACTERS], MAX_CHARACTERS - _count_characters(fetched) - len(id))
    fetched["text"] = part = _cut_to_tokens(part, max_tokens)
    end = offset + len(part)
    fetched["metadata"]["next_id"] = f"{item_id}{_OFFSET}{end}" if end < len(text) else ""
    return fetched


def read_page_image(target: ToolTarget, id: str) -> bytes:
    """Return the page of a passage as PNG, with the passage marked.

    Raises:
        NotFoundError: There is no such passage.
        PageImageError: The page cannot be shown.
    """
    return target.engine.page_images.render(unquote(id)).png


def _cut_to_tokens(text: str, max_tokens: int) -> str:
    """Return the beginning of a text with at most ``max_tokens`` tokens; 0 for no limit."""
    following = next(islice(TOKEN.finditer(text), max_tokens, None), None) if max_tokens else None
    return text[: following.start()] if following else text


def outline(target: ToolTarget, id: str, cursor: str) -> OutlineResult:
    """Return the headings of a document with the ids of their first passages, one page of results at a time.

    Raises:
        NotFoundError: There is no such document.
        ToolInputError: The cursor is invalid.
    """
    origin = target.engine.catalogue.origin(id)
    passages = target.engine.catalogue.passages_of_document(id)
    groups = [(heading, list(group)) for heading, group in groupby(passages, key=lambda passage: passage.heading)]
    sections: list[OutlineSection] = [
        {"heading": _truncate(heading), "id": first.id, "page": first.page, "passages": 1 + len(others)}
        for heading, [first, *others] in groups
    ]
    part, next_cursor = _take_page(sections, cursor)
    return {"title": _truncate(origin.title), "sections": part, "next_cursor": next_cursor}


def find_text(
    target: ToolTarget, pattern: str, cursor: str, max_tokens: int, options: Mapping[str, Any]
) -> TextResults:
    """Return the lines that match a pattern exactly, one page of results at a time.

    Raises:
        ConfigurationError: The pattern is no regular expression.
        ToolInputError: No document matches the filter, or the cursor is invalid.
    """
    start = _read_cursor(cursor)
    result = target.find_text(pattern, cursor=start, **options)
    if not result.total:
        _require_documents(target, options.get("where") or "")
    lines = [_describe_line(target, match) for match in result.matches]
    part, _ = _take_page(lines, "", MAX_CHARACTERS - 4000, max_tokens=max_tokens)
    end = start + len(part)
    frequent = sorted(result.counts.items(), key=lambda count: (-count[1], count[0]))[:_MAX_COUNTS]
    return {
        "matches": part,
        "total": result.total,
        "documents": {_truncate(id, 150): count for id, count in frequent},
        "note": "" if result.is_complete else "the time limit ended the search; use where to select fewer documents",
        "next_cursor": str(end) if end < result.total else "",
    }


def _describe_line(target: ToolTarget, match: TextMatch) -> MatchingLine:
    origin = target.engine.catalogue.origin(match.document_id)
    location = Location(match.start, match.end, match.page, match.heading)
    place = describe_location(origin.title or match.title or match.document_id, location, origin)
    before, after = (list(map(_truncate, lines)) for lines in (match.before, match.after))
    values = {"place": _truncate(place), "text": _truncate(match.text, 2 * _MAX_TEXT), "before": before, "after": after}
    return fill_schema(MatchingLine, match, id=match.passage_id, **values)


def find_evidence(
    target: ToolTarget,
    question: str,
    k: int,
    where: str,
    as_of: str,
    cursor: str,
    seen: Sequence[str] = (),
    max_tokens: int = 0,
) -> EvidenceResults:
    """Return the best sentences for a question with their sources and facts, one page at a time.

    Passages in ``seen`` are left out; the others state which name links them with a passage that was seen, or with one
    of the result.

    Raises:
        ToolInputError: No document matches the filter, or the cursor is invalid.
    """
    evidence = target.search(question, k=k + len(seen), where=where or None, as_of=as_of or None)
    if not evidence.passages:
        _require_documents(target, where)
    hits = [hit for hit in evidence.passages if hit.passage.id not in seen][:k]
    links = _find_links(target, evidence, hits, seen)
    items = [_describe_hit(target, evidence, hit, "; ".join(links[hit.passage.id][:3])) for hit in hits]
    part, next_cursor = _take_page(items, cursor, MAX_CHARACTERS - 3000, max_tokens=max_tokens)
    trace = [f"{each['id']}: {link}" for each in part for link in links[each["id"]]]
    return {
        "evidence": part,
        "trace": [_truncate(line, 250) for line in trace[:_MAX_TRACE]],
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


def _describe_hit(target: ToolTarget, evidence: Evidence, hit: ScoredPassage, link: str) -> EvidencePassage:
    facts = [edge.hyperedge.text for edge in evidence.hyperedges if edge.hyperedge.passage_id == hit.passage.id]
    retracted = [f"{fact.text} (retracted: {fact.reason})" for fact in hit.retracted]
    return {
        "id": hit.passage.id,
        "document_id": hit.passage.document_id,
        "place": _truncate(describe_hit(hit)),
        "url": target.get_url(hit.passage.id, hit.origin, hit.excerpt),
        "excerpt": _truncate(get_excerpt(hit), MAX_CHARACTERS // 4),
        "relevance": None if hit.relevance is None else round(hit.relevance, 2),
        "facts": [_truncate(fact) for fact in facts[:_MAX_HIT_FACTS]],
        "retracted": [_truncate(fact) for fact in retracted[:_MAX_HIT_FACTS]],
        "link": _truncate(link),
    }


def ask(target: ToolTarget, question: str) -> AnswerResult:
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
    citations: list[AnswerSource] = [
        {
            "number": number,
            "id": each.passage_id,
            "title": _truncate(describe_citation(each, answer.evidence)),
            "url": target.get_url(each.passage_id, each.origin, excerpts.get(each.passage_id)),
        }
        for number, each in sorted(sources.items())
    ]
    return {
        "answer": _truncate(answer.text, MAX_CHARACTERS // 2),
        "citations": _take_page(citations, "", MAX_CHARACTERS // 2 - 1000)[0],
        "note": _truncate(answer.note),
    }


def describe_entity(target: ToolTarget, name: str, cursor: str) -> EntityResult:
    """Return the facts about an entity and the entities in them, one page of results at a time.

    Raises:
        NotFoundError: There is no such entity.
        ToolInputError: The cursor is invalid.
    """
    around = target.engine.catalogue.neighbourhood(name, _read_cursor(cursor) + _MAX_FACTS + 1)
    entity, _ = around.entities[0]
    names = {each.key: _truncate(each.name) for each, _ in around.entities}
    facts = [
        fill_schema(
            EntityFact, edge, text=_truncate(edge.text), entities=[names[key] for key in keys if key != entity.key][:10]
        )
        for edge, keys in around.hyperedges
    ]
    part, next_cursor = _take_page(facts, cursor, MAX_CHARACTERS - 4000, _MAX_FACTS)
    return {
        "name": _truncate(entity.name),
        "type": _truncate(entity.type),
        "description": _truncate(entity.description, 2000),
        "fact_count": around.total,
        "facts": part,
        "next_cursor": next_cursor,
    }


def list_documents(target: ToolTarget, like: str, where: str, cursor: str) -> DocumentsResult:
    """Return the documents with their metadata, one page of results at a time.

    Raises:
        ToolInputError: No document matches, or the cursor is invalid.
    """
    catalogue = target.engine.catalogue
    ids = [str(item["id"]) for item in list_items(catalogue, ListKind.DOCUMENTS, like, where or None)]
    if not ids:
        raise ToolInputError("no document matches; leave out like and where to see all documents")
    start = _read_cursor(cursor)
    if start >= len(ids):
        raise ToolInputError(_CURSOR_MESSAGE.format(cursor))
    part, _ = _take_page([_describe_document(target, id) for id in ids[start : start + _MAX_DOCUMENTS]], "")
    end = start + len(part)
    return {"documents": part, "total": len(ids), "next_cursor": str(end) if end < len(ids) else ""}


def _describe_document(target: ToolTarget, id: str) -> ListedDocument:
    origin = target.engine.catalogue.origin(id)
    return {"id": id, "title": _truncate(origin.title), "metadata": _shorten_metadata(origin.metadata)}


def index(target: ToolTarget, document: Document) -> IndexResult:
    """Index a document, replacing a document with the same id.

    Raises:
        ToolInputError: The document cannot be indexed.
    """
    report = target.engine.index_documents([document])
    if report.failures:
        raise ToolInputError("; ".join(f"{failure.id}: {failure.reason}" for failure in report.failures))
    return fill_schema(IndexResult, report.counts)


def retract(target: ToolTarget, hyperedge: str, entity: str, reason: str) -> RetractionResult:
    """Retract a fact, or remove one entity from a fact, and return the texts of the changed facts.

    Raises:
        NotFoundError: There is no such fact or entity.
    """
    report = target.engine.corrections.retract(hyperedge=hyperedge, entity=entity, reason=reason)
    return {"withdrawn": _take_page([_truncate(fact.text) for fact in report.withdrawn], "")[0]}


def _require_documents(target: ToolTarget, where: str) -> None:
    """Raise ToolInputError if no document satisfies a filter, which is probably a mistake of the agent."""
    if not target.engine.catalogue.sources(where or None):
        reason = f"matches {where!r}; call list_documents to see the metadata" if where else "is in the index"
        raise ToolInputError(f"no document {reason}")


def _take_page(
    items: Sequence[Item],
    cursor: str,
    max_characters: int = MAX_CHARACTERS - 1000,
    max_items: int = 1000,
    max_tokens: int = 0,
) -> tuple[list[Item], str]:
    """Return the items from ``cursor`` on that fit into one result of an MCP tool, and the next cursor ("" at the end).

    At most ``max_items`` items are returned, with ``max_characters`` characters and ``max_tokens`` tokens of JSON (0
    for any number), but at least one item.

    Raises:
        ToolInputError: The cursor is not from an earlier result.
    """
    start = _read_cursor(cursor)
    if start and start >= len(items):
        raise ToolInputError(_CURSOR_MESSAGE.format(cursor))
    part: list[Item] = []
    size = tokens = 0
    for item in items[start:]:
        size += _count_characters(item)
        tokens += count_tokens(json.dumps(item, ensure_ascii=False)) if max_tokens else 0
        if part and (size > max_characters or tokens > max_tokens or len(part) == max_items):
            return part, str(start + len(part))
        part.append(item)
    return part, ""


def _read_cursor(cursor: str) -> int:
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < _MAX_DIGITS):
        raise ToolInputError(_CURSOR_MESSAGE.format(cursor))
    return int(cursor or 0)


def _count_characters(value: object) -> int:
    """Return the number of characters of a value in indented JSON, as the result of an MCP tool contains it."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return len(text) + 4 * (text.count("\n") + 1) + 2


def _truncate(text: str, limit: int = _MAX_TEXT) -> str:
    """Return the longest beginning of a text whose JSON has at most ``limit`` characters."""
    ends = range(min(len(text), limit) + 1)
    return text[: bisect_right(ends, limit, key=lambda end: len(json.dumps(text[:end], ensure_ascii=False)) - 2) - 1]


def _split_offset(id: str) -> tuple[str, int]:
    item_id, mark, offset = id.rpartition(_OFFSET)
    is_offset = mark and offset.isascii() and offset.isdigit() and len(offset) < _MAX_DIGITS
    return (item_id, int(offset)) if is_offset else (id, 0)


def _shorten_metadata(metadata: Mapping[str, MetadataValue]) -> dict[str, Any]:
    return {_truncate(key, 100): _shorten_value(value) for key, value in list(metadata.items())[:_MAX_KEYS]}


def _shorten_value(value: MetadataValue) -> object:
    if isinstance(value, str):
        return _truncate(value, 200)
    return [_truncate(each, 50) for each in value[:10]] if isinstance(value, tuple) else value
