"""Judging rounds: open, list, look, change, delete, close."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.idempotency import idempotent
from apps.api.naming import naming
from apps.api.openapi import refusals
from apps.api.paging import answer_page
from apps.api.serializers.judging.rounds import (
    ClosedFacts,
    CloseRequest,
    NewRound,
    RoundChanges,
    RoundFacts,
    RoundPage,
    RoundQuery,
)
from apps.benchmarks.models import Run
from apps.judging.closing import close_round
from apps.judging.judges import nameable, require_lead
from apps.judging.leading import change_round, find_judges
from apps.judging.models import Round
from apps.judging.opening import RoundOptions, open_round
from benchbench.access import visible
from benchbench.database.rereading import read_again


class Rounds(Endpoint):
    model = Round
    acts = {"GET": "view", "POST": "add"}

    @extend_schema(operation_id="list_rounds", parameters=[RoundQuery], responses=RoundPage)
    def get(self, request: Request) -> Response:
        """List judging rounds, newest first: yours, your team's, and those in which you judge."""
        query = valid(RoundQuery, request.query_params)
        rows = visible(told().order_by("-created_at", "id"), request.user)
        if "state" in query:
            rows = rows.filter(state=query["state"])
        return answer_page(RoundPage, rows, query)

    @extend_schema(operation_id="open_round", request=NewRound, responses={201: RoundFacts} | refusals(404, 409))
    @idempotent
    def post(self, request: Request) -> Response:
        """Open a judging round over completed runs of one mapping.

        Its items are what the runs return in their first documents and the dataset has not judged. 409 where the
        mapping is not resolved for what dataset and collection are now.
        """
        data = valid(NewRound, request.data)
        runs = [
            find_visible(Run.objects.select_related("benchmark__mapping"), pk, request.user, through="benchmark")
            for pk in data.pop("run_ids")
        ]
        judges = find_judges(data.pop("judges"), nameable(request.user))
        with naming(runs="run_ids"):
            made = open_round(runs, RoundOptions(**data), judges=judges, owner=request.user)
        return Response(RoundFacts(read_again(told(), made.pk)).data, status=201)


class OneRound(Endpoint):
    model = Round
    acts = {"GET": "view", "PATCH": "change", "DELETE": "delete"}

    @extend_schema(operation_id="get_round", responses=RoundFacts)
    def get(self, request: Request, round_id: UUID) -> Response:
        """Show a judging round."""
        return Response(RoundFacts(find_visible(told(), round_id, request.user)).data)

    @extend_schema(operation_id="change_round", request=RoundChanges, responses=RoundFacts)
    def patch(self, request: Request, round_id: UUID) -> Response:
        """Change an open round: whether it goes on once its question is settled, its judges, its guidelines.

        409 for a round that is closed, and where you judge in it and do not lead it.
        """
        round = find_round(request, round_id)
        data = valid(RoundChanges, request.data)
        if "judges" in data:
            data["judges"] = find_judges(data["judges"], nameable(request.user, round))
        change_round(round, request.user, **data)
        return Response(RoundFacts(read_again(told(), round.pk)).data)

    @extend_schema(operation_id="delete_round", responses={204: None})
    def delete(self, request: Request, round_id: UUID) -> Response:
        """Delete a round with its grades; the version that it became stays. 409 where you do not lead it."""
        round = find_round(request, round_id)
        require_lead(round, request.user)
        round.delete()
        return Response(status=204)


class CloseRound(Endpoint):
    model = Round
    acts = {"POST": "change"}

    @extend_schema(operation_id="close_round", request=CloseRequest, responses=ClosedFacts)
    @idempotent
    def post(self, request: Request, round_id: UUID) -> Response:
        """Close a round: its grades become the dataset's next version, on which its runs are measured again.

        Nothing is searched. 409 for a round that is closed or that you do not lead, and, unless the request says
        otherwise, where items wait for adjudication or the dataset's draft has other edits.
        """
        round = find_round(request, round_id)
        closed = close_round(round, request.user, **valid(CloseRequest, request.data))
        return Response(ClosedFacts(closed).data)


def told() -> QuerySet[Round]:
    """Return rounds with what their serializer reads."""
    related = ("dataset_version", "closed_version", "mapping")
    return Round.objects.select_related(*related).prefetch_related("round_runs", "judges")


def find_round(request: Request, round_id: UUID) -> Any:
    return find_visible(Round.objects.select_related("mapping", "dataset_version"), round_id, request.user)
