"""Indexes of a collection: declare, build, look, delete."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import require_empty, valid
from apps.api.idempotency import idempotent
from apps.api.paging import PageQuery, answer_page
from apps.api.serializers.indexes import (
    BuildStarted,
    GridMade,
    GridPlan,
    IndexFacts,
    IndexOptions,
    IndexPage,
    NewGrid,
    NewIndex,
)
from apps.collections.models import Collection
from apps.retrieval.availability import lack
from apps.retrieval.deleting import delete_index
from apps.retrieval.describing import known_encoders, with_operation
from apps.retrieval.grids.making import make_grid
from apps.retrieval.grids.planning import Grid, plan_grid
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from apps.retrieval.rerankers.registry import RERANKERS
from apps.retrieval.strategies import STRATEGIES
from benchbench.access import visible
from benchbench.database.rereading import read_again
from benchbench.ir.planning.ann_methods import STORES
from benchbench.ir.planning.configuration import FUSIONS, LEXICAL, SEARCH_MODES


class Indexes(Endpoint):
    model = Index
    acts = {"GET": "view", "POST": "add"}

    @extend_schema(operation_id="list_indexes", parameters=[PageQuery], responses=IndexPage, tags=["indexes"])
    def get(self, request: Request, collection_id: UUID) -> Response:
        """List the indexes of a collection, newest first."""
        collection = find_visible(Collection.objects.all(), collection_id, request.user)
        query = valid(PageQuery, request.query_params)
        rows = with_operation(visible(collection.indexes.order_by("-created_at", "id"), request.user))
        return answer_page(IndexPage, rows, query)

    @extend_schema(operation_id="create_index", request=NewIndex, responses={201: IndexFacts}, tags=["indexes"])
    @idempotent
    def post(self, request: Request, collection_id: UUID) -> Response:
        """Declare an index of a collection, the next version of its name; building it makes it searchable.

        409 while the collection has no documents.
        """
        collection = find_visible(Collection.objects.all(), collection_id, request.user)
        made = create_index(collection, owner=request.user, **valid(NewIndex, request.data))
        return Response(IndexFacts(read_again(with_operation(Index.objects.all()), made.pk)).data, status=201)


def grid_of(data: dict[str, Any]) -> Grid:
    return Grid(
        strategies=[(part["strategy"], part["chunk_parameters"]) for part in data["strategies"]],
        encoders=data["encoders"],
        llms=[(part["llm"], part["llm_parameters"]) for part in data["llms"]],
        lexical=data["lexical"],
    )


class IndexGrid(Endpoint):
    model = Index
    acts = {"POST": "add"}
    throttles = {"POST": "start"}

    @extend_schema(operation_id="build_indexes", request=NewGrid, responses={202: GridMade}, tags=["indexes"])
    @idempotent
    def post(self, request: Request, collection_id: UUID) -> Response:
        """Make each strategy by each encoder, and have workers build what is not ready: all of it, or nothing.

        An index that is there with the same ingredients is taken. 409 while the collection has no documents, where a
        part is not to be had here, and where more would be building than one may (`quota`).
        """
        collection = find_visible(Collection.objects.all(), collection_id, request.user)
        made = make_grid(collection, grid_of(valid(NewGrid, request.data)), owner=request.user, by=request.user)
        rows = with_operation(Index.objects.all()).in_bulk([part.index.pk for part in made])
        return Response(GridMade({"indexes": [rows[part.index.pk] for part in made]}).data, status=202)


class IndexGridPreview(Endpoint):
    model = Index
    acts = {"POST": "view"}

    @extend_schema(operation_id="preview_indexes", request=NewGrid, responses=GridPlan, tags=["indexes"])
    def post(self, request: Request, collection_id: UUID) -> Response:
        """Show which indexes of a grid are there, and which would be made, without making anything."""
        collection = find_visible(Collection.objects.all(), collection_id, request.user)
        cells = plan_grid(collection, grid_of(valid(NewGrid, request.data)), owner=request.user)
        return Response(GridPlan({"indexes": [cell.as_dict() for cell in cells]}).data)


class Options(Endpoint):
    model = Index
    acts = {"GET": "view"}

    @extend_schema(operation_id="get_index_options", responses=IndexOptions)
    def get(self, request: Request) -> Response:
        """Show what an index, or the matrix of a benchmark, can be made of here."""
        facts = {
            "encoders": known_encoders(visible(Index.objects.all(), request.user)),
            "strategies": list(STRATEGIES),
            "stores": [store for store in STORES if not lack({"store": store})],
            "search_modes": SEARCH_MODES,
            "lexical": LEXICAL,
            "fusions": FUSIONS,
            "rerankers": list(RERANKERS),
        }
        return Response(IndexOptions(facts).data)


class OneIndex(Endpoint):
    model = Index
    acts = {"GET": "view", "DELETE": "delete"}

    @extend_schema(operation_id="get_index", responses=IndexFacts)
    def get(self, request: Request, index_id: UUID) -> Response:
        """Show an index, and what building it took."""
        return Response(IndexFacts(find_visible(with_operation(Index.objects.all()), index_id, request.user)).data)

    @extend_schema(operation_id="delete_index", responses={204: None})
    def delete(self, request: Request, index_id: UUID) -> Response:
        """Delete an index; 409 while runs use it, or while it is being built."""
        delete_index(find_visible(Index.objects.all(), index_id, request.user))
        return Response(status=204)


class IndexBuild(Endpoint):
    model = Index
    acts = {"POST": "change"}
    throttles = {"POST": "start"}

    @extend_schema(operation_id="build_index", request=None, responses={202: BuildStarted})
    @idempotent
    def post(self, request: Request, index_id: UUID) -> Response:
        """Have a worker build an index; one that failed goes on where it stopped.

        409 where it is ready, and so never changes, or is being built, and where you have as many building as one may
        (`quota`).
        """
        index = find_visible(Index.objects.all(), index_id, request.user)
        require_empty(request.data)
        operation = build_index(index, by=request.user)
        facts = {"id": index.pk, "status": index.status, "operation_uuid": operation.pk}
        return Response(BuildStarted(facts).data, status=202)
