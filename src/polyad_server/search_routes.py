"""Routes that search and answer: ``/api/v1/search``, ``/api/v1/grep`` and ``/api/v1/ask``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from polyad.schemas.evidence import AnswerSchema, EvidenceSchema, answer_json, evidence_json
from polyad.schemas.text_matches import TextMatchesSchema, text_matches_json
from polyad.text.json_types import format_value
from polyad_server.access import AuthenticatedRoute, Reader
from polyad_server.answers import WrittenAnswer, write_answer
from polyad_server.models import AskBody, SearchBody
from polyad_server.responses import EVENTS, PROBLEMS, Event, describe_problems, stream_events
from polyad_server.results import SuggestionsSchema
from polyad_server.state import State
from polyad_server.suggestions import get_suggestions

router = APIRouter(prefix="/api/v1", tags=["search"], route_class=AuthenticatedRoute, responses=PROBLEMS)


@router.post("/search")
def search(body: SearchBody, access: Reader, state: State) -> EvidenceSchema:
    """Find the evidence for a question."""
    evidence = state.search(access.workspace, body.question, **body.get_options())
    return evidence_json(evidence, body.explain)


@router.get("/grep")
def grep(
    access: Reader,
    state: State,
    pattern: Annotated[str, Query(max_length=1000, description="Regular expression of RE2, or literal text.")],
    phrase: Annotated[bool, Query(description="Whether the pattern is literal text.")] = False,
    ignore_case: Annotated[bool, Query(description="Whether upper and lower case are the same.")] = False,
    context: Annotated[int, Query(ge=0, le=20, description="Lines to return around each line.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of lines.")] = 100,
    cursor: Annotated[int, Query(ge=0, le=10**9, description="`next_cursor` of the result before.")] = 0,
    where: Annotated[str, Query(max_length=4000, description="Filter of documents.")] = "",
    as_of: Annotated[str, Query(max_length=40, description="What held at this date; empty for now.")] = "",
    known_at: Annotated[
        str, Query(max_length=40, description="Only documents that the index knew at this date; empty for all.")
    ] = "",
) -> TextMatchesSchema:
    """Find the lines of documents that match a pattern exactly."""
    with state.heavy_requests.hold_slot(access.workspace.name):
        result = access.workspace.engine.find_text(
            pattern,
            limit,
            phrase=phrase,
            ignore_case=ignore_case,
            context=context,
            cursor=cursor,
            where=where or None,
            as_of=as_of or None,
            known_at=known_at or None,
        )
    return text_matches_json(result)


@router.post("/ask", response_model=AnswerSchema, responses=EVENTS | describe_problems(502, 504))
def ask(request: Request, body: AskBody, access: Reader, state: State) -> AnswerSchema | Response:
    """Answer a question with citations, as one object or as server-sent events.

    The events are `evidence` with the sources that the search found, `text` with a piece of the answer, `citations`
    with the sources of its statements, `done` with the whole answer, and `error`. So the evidence is there before the
    answer, and also if the language model fails. Without a language model the answer is empty, and its evidence stands
    alone. `model` names one of the models that the server offers (`models` of `/stats`). With `regenerate`, the
    language model writes a new answer even if an answer to this question is stored.
    """
    if body.model or body.regenerate:
        key = access.principal.key.id if access.principal.key else ""
        state.model_answers.count(f"{key} {body.model}")
    history = [turn.model_dump() for turn in body.history]
    options = {"model": body.model, "regenerate": body.regenerate, **body.get_options()}
    written = write_answer(state, access.workspace, body.question, history, **options)
    if body.stream:
        return stream_events(_list_events(written, explain=body.explain), written.abandon)
    request.state.abandon = written.abandon
    return answer_json(written.finish(), body.explain)


def _list_events(written: WrittenAnswer, *, explain: bool) -> Iterator[Event]:
    yield "evidence", format_value(evidence_json(written.evidence, explain))
    for piece in written:
        yield "text", {"text": piece}
    shape = format_value(answer_json(written.finish(), explain))
    yield "citations", {"citations": shape["citations"]}
    yield "done", shape


@router.get("/suggestions")
def suggest(
    access: Reader, state: State, limit: Annotated[int, Query(ge=1, le=6, description="Number of questions.")] = 4
) -> SuggestionsSchema:
    """Suggest questions that the documents answer, generated from their names and headings without a model."""
    with state.searches.hold_slot():
        return SuggestionsSchema(questions=get_suggestions(access.workspace.engine)[:limit])
