"""Judging rounds: open, list, look, change, delete, close."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer, ModelAnswer, answer_page, page_of, present
from apps.api.endpoint import Endpoint, find_visible
from apps.api.errors import naming
from apps.api.fields import Flag, Identifier, Number, PageQuery, StrictSerializer, Text, Whole, valid
from apps.api.openapi import refusals
from apps.benchmarks.models import Run
from apps.judging.closing import Closed, close_round
from apps.judging.judges import change_round, find_judges, nameable, require_lead
from apps.judging.models import Round
from apps.judging.opening import MOST_DEPTH, MOST_SEED, RoundOptions, open_round
from apps.judging.scales import LONGEST_DESCRIPTION, LONGEST_NAME
from apps.judging.settling.agreement import AgreementReport, agreement_of
from apps.judging.settling.renewing import known_state
from apps.judging.settling.report import RoundReport, round_report
from benchbench.access import visible
from benchbench.database.failures import read_again
from benchbench.ir.judging.orders import SHARE

LONGEST_GUIDELINES = 100_000
MOST_RUNS = 64
MOST_JUDGES = 100


class GradeOfScale(StrictSerializer):
    """A grade that judges choose."""

    grade = Whole(min_value=0, max_value=9, help_text="0 is not relevant; its digit is its key.")
    name = Text(max_length=LONGEST_NAME)
    description = Text(default="", allow_blank=True, max_length=LONGEST_DESCRIPTION)


class NewRound(StrictSerializer):
    """A judging round over completed runs of one mapping."""

    name = Text(max_length=200)
    run_ids = serializers.ListField(child=Identifier(), min_length=1, max_length=MOST_RUNS)
    judges = serializers.ListField(
        child=Text(max_length=150), max_length=MOST_JUDGES, default=list, help_text="User names. Without any, you."
    )
    order = serializers.ChoiceField(Round.Order.choices, default="decisive")
    measure = Text(default="", help_text="Default: nDCG at the primary k of the first run's benchmark.")
    depth = Whole(
        allow_null=True,
        default=None,
        min_value=1,
        max_value=MOST_DEPTH,
        help_text="Default: the cutoff.",
    )
    budget = Whole(required=False, allow_null=True, default=None, min_value=1, help_text="Items. Default: the pool.")
    uniform_share = Number(default=SHARE, help_text="From 0 to 1, drawn uniformly at random.")
    seed = Whole(default=42, min_value=0, max_value=MOST_SEED)
    scale = serializers.ListField(
        child=GradeOfScale(), default=list, max_length=10, help_text="Default: 0 to the dataset's highest grade."
    )
    guidelines = Text(default="", allow_blank=True, max_length=LONGEST_GUIDELINES)
    overlap = Number(default=0.0, help_text="From 0 to 1, graded by several judges.")
    overlap_judges = Whole(default=2, min_value=2, max_value=10)
    blind = Flag(default=True, help_text="While it is open, nobody sees grades of others.")


class RoundChanges(StrictSerializer):
    """What to change of an open round."""

    goes_on = Flag(required=False, help_text="true: items are handed out although its question is settled.")
    judges = serializers.ListField(child=Text(max_length=150), required=False, min_length=1, max_length=MOST_JUDGES)
    guidelines = Text(required=False, allow_blank=True, max_length=LONGEST_GUIDELINES)


class RoundQuery(PageQuery):
    """Which page of which rounds."""

    state = serializers.ChoiceField(Round.State.choices, required=False)


class ScaleAnswer(serializers.Serializer):
    """A grade of a scale."""

    grade = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()


class RoundAnswer(ModelAnswer):
    """A judging round."""

    dataset_version = serializers.IntegerField(source="dataset_version.number", help_text="That it began from.")
    run_ids = serializers.SerializerMethodField()
    judges = serializers.SerializerMethodField()
    scale = ScaleAnswer(many=True)
    closed_version = serializers.IntegerField(
        source="closed_version.number", allow_null=True, help_text="The version that it became."
    )

    class Meta:
        model = Round
        fields = [
            *("id", "name", "owner_id", "mapping_id", "dataset_version", "run_ids", "judges", "state", "order"),
            *("measure", "depth", "budget", "uniform_share", "seed", "scale", "guidelines", "overlap"),
            *("overlap_judges", "blind", "item_count", "pool_size", "goes_on", "answered_at", "created_at"),
            *("closed_at", "closed_version"),
        ]

    def get_run_ids(self, row: Any) -> list[str]:
        return [str(run.run_id) for run in row.round_runs.all()]

    def get_judges(self, row: Any) -> list[str]:
        return sorted(judge.username for judge in row.judges.all())


RoundPage = page_of("rounds", RoundAnswer)


class CloseRequest(StrictSerializer):
    """How to close a round."""

    leave_out_split = Flag(default=False, help_text="Leave out what waits for adjudication.")
    with_draft = Flag(default=False, help_text="Freeze other edits in the dataset's draft too.")
    label = Text(default="", allow_blank=True, max_length=50)
    note = Text(default="", allow_blank=True, max_length=10_000)


class ClosedAnswer(Answer):
    """What closing a round did."""

    version = serializers.IntegerField(allow_null=True, source="version.number")
    sentence = serializers.CharField()

    class Meta:
        dataclass = Closed
        exclude = ["told"]
        extra_kwargs = {
            "judgments": {"help_text": "That the version has from the round."},
            "split": {"help_text": "Items left out, as their judges are split."},
            "outdated": {"help_text": "Of queries or documents that changed since."},
            "judged": {"help_text": "Judged elsewhere since."},
        }


class Rounds(Endpoint):
    model = Round
    acts = {"POST": "add"}

    @extend_schema(operation_id="list_rounds", parameters=[RoundQuery], responses=RoundPage)
    def get(self, request: Request) -> Response:
        """List judging rounds, newest first: yours, your team's, and those in which you judge."""
        query = valid(RoundQuery, request.query_params)
        rows = visible(told().order_by("-created_at", "id"), request.user)
        if "state" in query:
            rows = rows.filter(state=query["state"])
        return answer_page(RoundPage, rows, query)

    @extend_schema(operation_id="open_round", request=NewRound, responses={201: RoundAnswer} | refusals(404))
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
        return Response(RoundAnswer(read_again(told(), made.pk)).data, status=201)


class OneRound(Endpoint):
    model = Round

    @extend_schema(operation_id="get_round", responses=RoundAnswer)
    def get(self, request: Request, round_id: UUID) -> Response:
        """Show a judging round."""
        return Response(RoundAnswer(find_visible(told(), round_id, request.user)).data)

    @extend_schema(operation_id="change_round", request=RoundChanges, responses=RoundAnswer)
    def patch(self, request: Request, round_id: UUID) -> Response:
        """Change an open round: whether it goes on once its question is settled, its judges, its guidelines.

        409 for a round that is closed, and where you judge in it and do not lead it.
        """
        round = find_round(request, round_id)
        data = valid(RoundChanges, request.data)
        if "judges" in data:
            data["judges"] = find_judges(data["judges"], nameable(request.user, round))
        change_round(round, request.user, **data)
        return Response(RoundAnswer(read_again(told(), round.pk)).data)

    @extend_schema(operation_id="delete_round", responses={204: None})
    def delete(self, request: Request, round_id: UUID) -> Response:
        """Delete a round with its grades; the version that it became stays. 409 where you do not lead it."""
        round = find_round(request, round_id)
        require_lead(round, request.user)
        round.delete()
        return Response(status=204)


class CloseRound(Endpoint):
    model = Round

    @extend_schema(operation_id="close_round", request=CloseRequest, responses=ClosedAnswer)
    def post(self, request: Request, round_id: UUID) -> Response:
        """Close a round: its grades become the dataset's next version, on which its runs are measured again.

        Nothing is searched. 409 for a round that is closed or that you do not lead, and, unless the request says
        otherwise, where items wait for adjudication or the dataset's draft has other edits.
        """
        round = find_round(request, round_id)
        closed = close_round(round, request.user, **valid(CloseRequest, request.data))
        return Response(ClosedAnswer(closed).data)


def told() -> QuerySet[Round]:
    """Return rounds with what their serializer reads."""
    related = ("dataset_version", "closed_version", "mapping")
    return Round.objects.select_related(*related).prefetch_related("round_runs", "judges")


def find_round(request: Request, round_id: UUID) -> Any:
    return find_visible(Round.objects.select_related("mapping", "dataset_version"), round_id, request.user)


class State(Endpoint):
    model = Round

    @extend_schema(operation_id="get_round_state", responses=RoundReport)
    def get(self, request: Request, round_id: UUID) -> Response:
        """Show how far a round is, each judge's pace, what is settled and about how many grades more are needed."""
        round = find_round(request, round_id)
        return present(round_report(round, known_state(round)))


class Agreement(Endpoint):
    model = Round

    @extend_schema(operation_id="get_agreement", responses=AgreementReport)
    def get(self, request: Request, round_id: UUID) -> Response:
        """Show how far the judges of a round agree.

        409 where the round is blind and open, and you do not lead it.
        """
        round: Any = find_round(request, round_id)
        if round.blind and round.is_open:
            require_lead(round, request.user)
        return present(agreement_of(round))
