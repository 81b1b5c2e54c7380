"""Routes that change an index: workspaces, documents, jobs, retractions and aliases."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, File, Form, Header, Query, Request, UploadFile
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from starlette.responses import StreamingResponse

from polyad.curation.statements import Retraction, Withdrawal
from polyad.curation.statements import list_retractions as list_retraction_rows
from polyad.engine.document_table import FACETS, DocumentQuery, Facet, SortKey
from polyad.engine.registry import methods
from polyad.errors import ConfigurationError
from polyad.model import MetadataValue
from polyad.protocols.jobs import Job
from polyad.readers.folder.files import FileReader
from polyad.schemas.catalogue import ListKind, PassageItemSchema, list_items, look_up_document, statistics_json
from polyad.schemas.reports import CorrectionSchema, HistorySchema, RemovalSchema, WithdrawalSchema, correction_json
from polyad.text.files import get_source_file
from polyad.text.json_types import format_value
from polyad.text.removals import NOTES
from polyad_server.access import AuthenticatedRoute, Gatekeeper, Reader, Writer
from polyad_server.jobs import format_job
from polyad_server.keys import Scope
from polyad_server.models import (
    AddressesBody,
    AliasBody,
    DocumentIdsBody,
    DocumentsBody,
    IdsBody,
    JobBody,
    RetractionBody,
    SelectorBody,
    WorkspaceBody,
)
from polyad_server.problems import RequestError
from polyad_server.responses import EVENTS, PROBLEMS, cut_page
from polyad_server.results import (
    AliasesPageSchema,
    AliasSchema,
    DocumentsPageSchema,
    DocumentWithRowSchema,
    JobResultSchema,
    JobSchema,
    JobsPageSchema,
    LeftOutSchema,
    ModelSchema,
    PassagesPageSchema,
    RetractionItemSchema,
    RetractionsPageSchema,
    WorkspaceSchema,
    WorkspacesSchema,
    WorkspaceStatisticsSchema,
)
from polyad_server.state import State
from polyad_server.uploads import UploadedFile

router = APIRouter(prefix="/api/v1", route_class=AuthenticatedRoute, responses=PROBLEMS)

Limit = Annotated[int, Query(ge=1, le=1000, description="Number of items in a part of the list.")]
Cursor = Annotated[str, Query(max_length=50, description="`next_cursor` of the part before; empty for the first.")]
Id = Annotated[str, Query(min_length=1, max_length=1000, description="Id of the object.")]

_MAX_FACTS = 20
"""Facts of one retraction that the list of retractions contains."""


# Workspaces


@router.get("/workspaces", tags=["workspaces"])
def list_workspaces(request: Request, state: State) -> WorkspacesSchema:
    """List the workspaces that the key may use, with its scope, the retrievers and the limits for adding documents."""
    gatekeeper: Gatekeeper = request.app.state.gatekeeper
    principal = gatekeeper.authenticate(request)
    return WorkspacesSchema(
        workspaces=[WorkspaceSchema(name=name) for name in gatekeeper.list_names(principal)],
        scope=principal.scope.name.lower(),
        retrievers=state.retrievers,
        allow_urls=state.settings.allow_urls,
        max_body_mb=state.settings.max_body_mb,
    )


@router.post("/workspaces", tags=["workspaces"], status_code=201)
def create_workspace(request: Request, body: WorkspaceBody) -> WorkspaceSchema:
    """Create an empty workspace; needs an admin key that is not bound to one workspace."""
    _require_server_admin(request).create(body.name)
    return WorkspaceSchema(name=body.name)


@router.delete("/workspaces", tags=["workspaces"])
def delete_workspace(
    request: Request, workspace: Annotated[str, Query(min_length=1, max_length=200, description="Its name.")]
) -> WorkspaceSchema:
    """Delete a workspace with its index; needs an admin key that is not bound to one workspace."""
    _require_server_admin(request).delete(workspace)
    return WorkspaceSchema(name=workspace)


def _require_server_admin(request: Request) -> Any:
    gatekeeper: Gatekeeper = request.app.state.gatekeeper
    principal = gatekeeper.authenticate(request)
    if principal.scope < Scope.ADMIN or principal.workspace:
        raise RequestError(403, "scope_required", "needs an admin key for all workspaces")
    return gatekeeper.workspaces


@router.get("/stats", tags=["workspaces"])
def read_statistics(access: Reader) -> WorkspaceStatisticsSchema:
    """Return the sizes of the index, its models, and the cost of building it.

    `models` are the further language models, of which a question to `/ask` may name one; only an admin key sees their
    endpoints.
    """
    components = access.workspace.engine.components
    model, is_admin = components.language_model, access.principal.scope >= Scope.ADMIN
    models = [
        ModelSchema(name=name, model=each.name, endpoint=each.endpoint if is_admin else "")
        for name, each in components.language_models.items()
    ]
    return WorkspaceStatisticsSchema(
        **vars(statistics_json(access.workspace.engine.catalogue.statistics())),
        name=access.workspace.name,
        language_model=model.name if model else "",
        models=models,
    )


# Documents


def _select_facets(
    type: Annotated[str | None, Query(max_length=100, description="Type of the file, such as `pdf`.")] = None,
    language: Annotated[str | None, Query(max_length=10, description="ISO 639-1 code, or `none`.")] = None,
    year: Annotated[str | None, Query(max_length=4, description="Year of the document's date, or `none`.")] = None,
    folder: Annotated[str | None, Query(max_length=1000, description="Folder of the file, or `none`.")] = None,
    state: Annotated[str | None, Query(max_length=20, description="`searchable`, `disabled` or `empty`.")] = None,
) -> dict[Facet, str]:
    """Return the value that each facet must have; the value ``none`` stands for documents without one."""
    values = {"type": type, "language": language, "year": year, "folder": folder, "state": state}
    return {facet: "" if values[facet] == "none" else value for facet in FACETS if (value := values[facet])}


@router.get("/documents", tags=["documents"])
def list_documents(
    access: Reader,
    facets: Annotated[dict[Facet, str], Depends(_select_facets)],
    where: Annotated[str, Query(max_length=4000, description="Filter of documents.")] = "",
    like: Annotated[str, Query(max_length=500, description="Text in the id.")] = "",
    text: Annotated[str, Query(max_length=500, description="Text in the id or the title.")] = "",
    sort: Annotated[SortKey, Query(description="Column to sort by.")] = "id",
    descending: Annotated[bool, Query(description="Whether the highest value comes first.")] = False,
    limit: Limit = 100,
    cursor: Cursor = "",
) -> DocumentsPageSchema:
    """List documents with title, type, language, size and dates; count them by the values of each facet."""
    catalogue = access.workspace.engine.catalogue
    selected = set(catalogue.sources(where)) if where else None
    rows, counts = catalogue.documents.select(DocumentQuery(text, facets, sort, descending), selected)
    rows = [row for row in rows if like.casefold() in row.id.casefold()]
    documents, page = cut_page(rows, limit, cursor)
    return DocumentsPageSchema(**vars(page), documents=documents, facets=counts)


@router.post("/documents/files", tags=["documents"], status_code=202)
def upload_files(
    access: Writer,
    files: Annotated[list[UploadFile], File(description="Files of any supported type.")],
    metadata: Annotated[str, Form(max_length=100_000, description="JSON object of metadata of all files.")] = "",
    method: Annotated[str, Form(max_length=100, description="Construction method; empty for the default.")] = "",
    idempotency_key: Annotated[str, Header(max_length=255)] = "",
) -> JobResultSchema:
    """Index files in the background; the id of a document is the name of its file."""
    uploads = [UploadedFile(_check_name(file.filename), file.file.read()) for file in files]
    return _submit(access, uploads, method, _parse_metadata(metadata), idempotency_key)


@router.post("/documents", tags=["documents"], status_code=202)
def add_documents(
    body: DocumentsBody, access: Writer, idempotency_key: Annotated[str, Header(max_length=255)] = ""
) -> JobResultSchema:
    """Index texts in the background; a document replaces an earlier document with the same id."""
    lines = [
        json.dumps({"_id": each.id, "title": each.title, "text": each.text, "url": each.url, "metadata": each.metadata})
        for each in body.documents
    ]
    upload = UploadedFile("documents.jsonl", "\n".join(lines).encode())
    return _submit(access, [upload], body.method, {}, idempotency_key)


@router.post("/documents/urls", tags=["documents"], status_code=202)
def add_web_pages(
    body: AddressesBody, access: Writer, state: State, idempotency_key: Annotated[str, Header(max_length=255)] = ""
) -> JobResultSchema:
    """Fetch and index web pages in the background; needs the setting `server.allow_urls`.

    Each address is one page, and the id of its document. Addresses of private networks are refused.
    """
    if not state.settings.allow_urls:
        raise RequestError(
            403, "urls_not_allowed", "the server fetches no web pages; set server.allow_urls to allow it"
        )
    return _submit(access, [UploadedFile(url, b"") for url in body.urls], "", {}, idempotency_key, kind="addresses")


@router.post("/documents/reindex", tags=["documents"], status_code=202)
def reindex_documents(body: DocumentIdsBody, access: Writer) -> JobResultSchema:
    """Read the files of documents and index them again in the background, also unchanged ones.

    A document that was uploaded has no file on the server, and is refused: upload it again.
    """
    catalogue = access.workspace.engine.catalogue
    for id in body.ids:
        source = get_source_file(catalogue.origin(id).source)
        if not source or not Path(source).exists():
            where = f"is not at {source!r} any more" if source else "was uploaded"
            raise RequestError(422, "no_file", f"the file of {id!r} {where}; upload the file again")
    return _submit(access, [UploadedFile(id, b"") for id in body.ids], "", {}, "", kind="documents")


def _submit(
    access: Writer,
    files: list[UploadedFile],
    method: str,
    metadata: dict[str, MetadataValue],
    idempotency_key: str,
    *,
    kind: str = "files",
) -> JobResultSchema:
    if method and method not in methods:
        raise ConfigurationError(f"the method is {method!r}; expected one of {', '.join(methods)}")
    job = access.workspace.jobs.submit(
        files, method=method, metadata=metadata, idempotency_key=idempotency_key, kind=kind, now=datetime.now(UTC)
    )
    return JobResultSchema(job=_job_json(job))


def _check_name(name: str | None) -> str:
    cleaned = (name or "").replace("\\", "/").strip()
    if not cleaned or len(cleaned) > 500 or "\0" in cleaned:
        raise RequestError(422, "invalid_file_name", "a file has no name; expected one of at most 500 characters")
    return cleaned


def _parse_metadata(text: str) -> dict[str, MetadataValue]:
    try:
        value = json.loads(text or "{}")
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # fails for NaN and lone surrogates
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(isinstance(each, str | int | float | bool) for each in value.values()):
        raise RequestError(
            422, "invalid_metadata", f"metadata is {text[:80]!r}; expected a JSON object of texts and numbers"
        )
    return value


@router.get("/document", tags=["documents"])
def read_document(access: Reader, id: Id) -> DocumentWithRowSchema:
    """Return a document with its whole text, and its row in the list of documents."""
    catalogue = access.workspace.engine.catalogue
    return DocumentWithRowSchema(**vars(look_up_document(catalogue, id)), row=catalogue.documents.get(id))


@router.delete("/document", tags=["documents"])
def delete_document(access: Writer, id: Id) -> RemovalSchema:
    """Remove a document with its passages, hyperedges and vectors, also one that a job has yet to index."""
    return _remove(access, [id])


@router.get("/document/passages", tags=["documents"])
def list_passages(access: Reader, id: Id, limit: Limit = 100, cursor: Cursor = "") -> PassagesPageSchema:
    """List the passages of a document in the order of its text; a disabled document has none."""
    passages, page = cut_page(access.workspace.engine.catalogue.document_passages(id), limit, cursor)
    return PassagesPageSchema(**vars(page), passages=list(map(PassageItemSchema.from_object, passages)))


@router.get("/document/removals", tags=["documents"])
def list_removals(access: Reader, state: State, id: Id) -> LeftOutSchema:
    """List what reading left out of a document's text, by kind.

    `counts` were recorded when the document was indexed. `texts` are read again from its file; they are empty if the
    server does not have the file.
    """
    engine = access.workspace.engine
    origin = engine.catalogue.origin(id)
    source = get_source_file(origin.source)
    texts: Mapping[str, Sequence[str]] = {}
    if source and Path(source).is_file():
        with state.heavy_requests.hold_slot(access.workspace.name):
            texts = FileReader(engine.components.settings.read).list_removals(Path(source))
    counts = {note: origin.metadata[kind] for kind, note in NOTES.items() if kind in origin.metadata}
    return LeftOutSchema(counts=counts, texts={NOTES.get(kind, kind): texts[kind] for kind in texts})


@router.post("/documents/remove", tags=["documents"])
def remove_documents(body: DocumentIdsBody, access: Writer) -> RemovalSchema:
    """Remove documents with their passages, hyperedges and vectors; if one id is unknown, none is removed."""
    return _remove(access, body.ids)


def _remove(access: Writer, ids: Sequence[str]) -> RemovalSchema:
    access.workspace.jobs.remove_documents(ids)
    return RemovalSchema(removed=ids, documents=access.workspace.engine.catalogue.statistics().documents)


@router.post("/documents/disable", tags=["documents"])
def disable_documents(body: IdsBody, access: Writer) -> CorrectionSchema:
    """Hide documents from searches without removing them."""
    return correction_json(access.workspace.engine.corrections.disable(body.ids, body.reason))


@router.post("/documents/enable", tags=["documents"])
def enable_documents(body: IdsBody, access: Writer) -> CorrectionSchema:
    """Show documents again that were hidden."""
    return correction_json(access.workspace.engine.corrections.enable(body.ids))


# Jobs


def _job_json(job: Job) -> JobSchema:
    state = format_job(job)
    return JobSchema(**{key: state[key] for key in JobSchema.__required_keys__})


@router.post("/check", tags=["jobs"], status_code=202)
def check_index(access: Writer) -> JobResultSchema:
    """Check the index for damage in the background; the `report` of the job is that of `polyad check --json`."""
    return _submit(access, [], "", {}, "", kind="check")


@router.get("/jobs", tags=["jobs"])
def list_jobs(access: Reader, limit: Limit = 100, cursor: Cursor = "") -> JobsPageSchema:
    """List the jobs, newest first."""
    jobs, page = cut_page(access.workspace.jobs.list_all(), limit, cursor)
    return JobsPageSchema(**vars(page), jobs=[_job_json(job) for job in jobs])


@router.get("/job", tags=["jobs"])
def read_job(access: Reader, id: Id) -> JobResultSchema:
    """Return the state of a job."""
    return JobResultSchema(job=_job_json(access.workspace.jobs.get(id)))


@router.get("/job/events", tags=["jobs"], response_class=StreamingResponse, responses=EVENTS)
def follow_job(
    request: Request, access: Reader, id: Id, last_event_id: Annotated[int, Header(ge=0, le=10**12)] = 0
) -> Response:
    """Stream the states of a job after `Last-Event-ID` as server-sent events, until it ends or the key is removed."""
    runner, gatekeeper = access.workspace.jobs, request.app.state.gatekeeper
    runner.get(id)

    async def list_events() -> AsyncIterator[bytes]:
        async for job in runner.follow(id, last_event_id):
            if not await run_sync(gatekeeper.is_current, access.principal):
                return
            data = json.dumps(format_value(_job_json(job)))
            yield format_sse_event(event="job", id=str(job.revision), data_str=data)

    return StreamingResponse(list_events(), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


@router.post("/job/cancel", tags=["jobs"])
def cancel_job(body: JobBody, access: Writer) -> JobResultSchema:
    """Cancel a job; documents that it stored before stay in the index."""
    return JobResultSchema(job=_job_json(access.workspace.jobs.cancel(body.id)))


# Corrections


def build_selector(retraction: Retraction, withdrawals: Sequence[Withdrawal]) -> dict[str, str] | None:
    """Return the request body that undoes a retraction; None if it is limited to a fact that is not in the index."""
    selector = {"entity": retraction.entity, "role": retraction.role, "where": retraction.where}
    if retraction.document_id:
        if not withdrawals:
            return None
        selector["hyperedge"] = withdrawals[0].hyperedge_id
    return {key: value for key, value in selector.items() if value}


@router.get("/retractions", tags=["corrections"])
def list_retractions(access: Reader, limit: Limit = 100, cursor: Cursor = "") -> RetractionsPageSchema:
    """List the retractions, newest first: the first facts that each withdrew, and the `selector` that restores them.

    `selector` is null if the fact is no longer in the index.
    """
    catalogue = access.workspace.engine.catalogue
    statements, withdrawn = catalogue.statements(), catalogue.withdrawals()
    withdrawals = defaultdict(list)
    for one in withdrawn:
        withdrawals[one.retraction].append(one)
    rows = list_retraction_rows(statements.retractions, lambda: withdrawn)
    items = [
        RetractionItemSchema(
            **row,
            facts=list(map(WithdrawalSchema.from_object, withdrawals[key][:_MAX_FACTS])),
            fact_count=len(withdrawals[key]),
            selector=build_selector(retraction, withdrawals[key]),
        )
        for row, (key, retraction) in zip(rows, statements.retractions.items(), strict=True)
    ]
    items.sort(key=lambda item: item.recorded, reverse=True)
    retractions, page = cut_page(items, limit, cursor)
    return RetractionsPageSchema(**vars(page), retractions=retractions)


@router.post("/retractions", tags=["corrections"])
def retract(body: RetractionBody, access: Writer) -> CorrectionSchema:
    """Retract a fact, an entity, or all facts of some documents; `dry_run` only reports the facts."""
    report = access.workspace.engine.corrections.retract(
        hyperedge=body.hyperedge,
        entity=body.entity,
        role=body.role,
        where=body.where,
        reason=body.reason,
        is_trial=body.dry_run,
    )
    return correction_json(report, is_trial=body.dry_run)


@router.post("/retractions/restore", tags=["corrections"])
def restore(body: SelectorBody, access: Writer) -> CorrectionSchema:
    """Undo a retraction; the body selects facts as the retraction did."""
    report = access.workspace.engine.corrections.restore(
        hyperedge=body.hyperedge, entity=body.entity, role=body.role, where=body.where, is_trial=body.dry_run
    )
    return correction_json(report, is_trial=body.dry_run)


@router.get("/aliases", tags=["corrections"])
def list_aliases(access: Reader, limit: Limit = 100, cursor: Cursor = "") -> AliasesPageSchema:
    """List the aliases: names that denote the same entity as another name."""
    aliases, page = cut_page(list_items(access.workspace.engine.catalogue, ListKind.ALIASES, ""), limit, cursor)
    return AliasesPageSchema(**vars(page), aliases=[AliasSchema(**row) for row in aliases])


@router.post("/aliases", tags=["corrections"])
def add_alias(body: AliasBody, access: Writer) -> CorrectionSchema:
    """Declare a name as an alias of an entity."""
    return correction_json(access.workspace.engine.corrections.add_aliases([(body.name, body.entity)]))


@router.delete("/aliases", tags=["corrections"])
def remove_alias(access: Writer, name: Annotated[str, Query(min_length=1, max_length=500)]) -> CorrectionSchema:
    """Remove an alias, so that the name is an entity again."""
    return correction_json(access.workspace.engine.corrections.remove_alias(name))


@router.get("/log", tags=["corrections"])
def read_log(access: Reader, limit: Limit = 100) -> HistorySchema:
    """List the latest changes of the index, newest first."""
    return HistorySchema(changes=access.workspace.engine.catalogue.history(limit))
