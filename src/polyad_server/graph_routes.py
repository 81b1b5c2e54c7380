"""Routes that explore the hypergraph: passages, entities, hyperedges and their neighbourhoods."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from polyad.engine.graph_views import Overview
from polyad.engine.page_images import DEFAULT_WIDTH, MAX_WIDTH, MIN_WIDTH, PageImage
from polyad.schemas.catalogue import (
    EntityItemSchema,
    EntitySchema,
    HyperedgeSchema,
    look_up_entity,
    look_up_hyperedge,
    look_up_passage,
)
from polyad.schemas.evidence import PassageSchema
from polyad_server.access import AuthenticatedRoute, Reader
from polyad_server.index_routes import Cursor, Id, Limit, build_selector
from polyad_server.models import HyperedgesBody
from polyad_server.responses import PROBLEMS, cut_page, parse_cursor
from polyad_server.results import (
    EntitiesPageSchema,
    NamesSchema,
    NeighbourhoodSchema,
    NeighbourHyperedgeSchema,
    NeighbourSchema,
    PassageFactSchema,
    PassageFactsSchema,
    PathSchema,
    RetractedFactSchema,
)
from polyad_server.state import State

router = APIRouter(prefix="/api/v1", tags=["hypergraph"], route_class=AuthenticatedRoute, responses=PROBLEMS)

EntityName = Annotated[str, Query(min_length=1, max_length=500, description="Name or key of an entity.")]


Width = Annotated[int, Query(ge=MIN_WIDTH, le=MAX_WIDTH, description="Width in pixels.")]


@router.get("/passage")
def read_passage(access: Reader, id: Id) -> PassageSchema:
    """Return a passage with its location and the metadata of its document."""
    return look_up_passage(access.workspace.engine.catalogue, id)


@router.get("/passages/image", responses={200: {"content": {"image/png": {}}}}, response_class=Response)
def read_page_image(
    access: Reader,
    state: State,
    id: Id,
    start: Annotated[int | None, Query(ge=0, description="Start of a sentence in the document.")] = None,
    end: Annotated[int | None, Query(ge=0, description="End of the sentence.")] = None,
    page: Annotated[int | None, Query(ge=1, le=1_000_000, description="Another page of the file.")] = None,
    width: Width = DEFAULT_WIDTH,
    crop: Annotated[bool, Query(description="Only the figure or table whose caption is in the text.")] = False,
) -> Response:
    """Return the page of a passage in a PDF file or scan as PNG, on which the passage or a sentence is marked.

    Of a Word, PowerPoint, HTML, EPUB or e-mail document, a picture of the passage is returned; `page` is its number.

    The header `Polyad-Page` has the number of the page, `Polyad-Pages` the number of pages, and `Polyad-Boxes` the
    left, upper, right and lower end of each marked line as shares of width and height. `Polyad-Figures` is the number
    of framed figures and tables, and `Polyad-Kind` is `page` or `picture`.
    """
    with state.heavy_requests.hold_slot(access.workspace.name):
        images = access.workspace.engine.page_images
        return _respond_image(images.render(id, start=start, end=end, page=page, width=width, crop=crop))


@router.get("/document/image", responses={200: {"content": {"image/png": {}}}}, response_class=Response)
def read_picture(
    access: Reader,
    state: State,
    id: Id,
    picture: Annotated[int, Query(ge=1, le=1_000_000, description="Number in `metadata.pictures`.")],
    width: Width = DEFAULT_WIDTH,
) -> Response:
    """Return a picture of a document, or a figure or table of a PDF file, as PNG.

    `metadata.pictures` of the document lists them, from number 1. The headers are those of `/passages/image`.
    """
    with state.heavy_requests.hold_slot(access.workspace.name):
        return _respond_image(access.workspace.engine.page_images.render_picture(id, picture, width=width))


def _respond_image(image: PageImage) -> Response:
    headers = {
        "Polyad-Page": str(image.page),
        "Polyad-Pages": str(image.pages),
        "Polyad-Boxes": json.dumps(image.boxes),
        "Polyad-Figures": str(image.figures),
        "Polyad-Kind": "page" if image.is_page else "picture",
        "Cache-Control": "private, max-age=60",
    }
    return Response(image.png, media_type="image/png", headers=headers)


@router.get("/passage/hyperedges")
def list_hyperedges_of_passage(access: Reader, id: Id) -> PassageFactsSchema:
    """List the hyperedges (facts) of a passage, with the names of their entities, and those that users retracted."""
    catalogue = access.workspace.engine.catalogue
    rows = [PassageFactSchema.from_object(edge, entities=names) for edge, names in catalogue.hyperedges_of_passage(id)]
    retractions = catalogue.statements().retractions
    retracted = [
        RetractedFactSchema.from_object(one, selector=build_selector(retractions[one.retraction], [one]))
        for one in catalogue.withdrawals(id.rpartition("#")[0])
        if one.passage_id == id and one.retraction in retractions
    ]
    return PassageFactsSchema(hyperedges=rows, retracted=retracted)


@router.get("/hyperedge")
def read_hyperedge(access: Reader, id: Id) -> HyperedgeSchema:
    """Return a hyperedge with its entities."""
    return look_up_hyperedge(access.workspace.engine.catalogue, id)


@router.get("/entity")
def read_entity(access: Reader, name: EntityName) -> EntitySchema:
    """Return an entity with the ids of its hyperedges."""
    return look_up_entity(access.workspace.engine.catalogue, name)


@router.get("/entities")
def list_entities(
    access: Reader,
    state: State,
    like: Annotated[str, Query(max_length=500)] = "",
    limit: Limit = 100,
    cursor: Cursor = "",
) -> EntitiesPageSchema:
    """List the entities whose names contain a text."""
    catalogue = access.workspace.engine.catalogue
    if like:
        with state.heavy_requests.hold_slot(access.workspace.name):  # reads every entity
            matching = [each for each in catalogue.entities() if like.casefold() in each.name.casefold()]
        entities, page = cut_page(matching, limit, cursor)
    else:
        listed, total = catalogue.entity_page(parse_cursor(cursor), limit)
        entities, page = cut_page(listed, limit, cursor, total)
    return EntitiesPageSchema(**vars(page), entities=list(map(EntityItemSchema.from_object, entities)))


@router.post("/graph")
def read_names(body: HyperedgesBody, access: Reader) -> NamesSchema:
    """List the named entities of hyperedges: members that a person would call entities, not headings or phrases."""
    entities, members = access.workspace.engine.graph_views.find_names(body.hyperedges)
    return NamesSchema(entities=entities, members=members)


@router.get("/graph")
def read_overview(
    access: Reader, state: State, limit: Annotated[int, Query(ge=1, le=300, description="Number of entities.")] = 100
) -> Overview:
    """Return the most frequent named entities of the index, with the strongest links and their communities."""
    with state.heavy_requests.hold_slot(access.workspace.name):
        return access.workspace.engine.graph_views.build_overview(limit)


@router.get("/path")
def read_path(access: Reader, state: State, source: EntityName, target: EntityName) -> PathSchema:
    """Return a shortest path between two entities, as hyperedges that join one entity with the next."""
    with state.heavy_requests.hold_slot(access.workspace.name):
        return PathSchema(steps=access.workspace.engine.graph_views.find_path(source, target))


@router.get("/neighbourhood")
def read_neighbourhood(
    access: Reader,
    entity: EntityName,
    limit: Annotated[int, Query(ge=1, le=200, description="Number of hyperedges.")] = 15,
) -> NeighbourhoodSchema:
    """Return the hyperedges of an entity with all their entities; best connected entities first."""
    around = access.workspace.engine.catalogue.neighbourhood(entity, limit)
    return NeighbourhoodSchema(
        entities=[NeighbourSchema.from_object(each, degree=degree) for each, degree in around.entities],
        hyperedges=[NeighbourHyperedgeSchema.from_object(edge, entities=keys) for edge, keys in around.hyperedges],
        total=around.total,
    )
