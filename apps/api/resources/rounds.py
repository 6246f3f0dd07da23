"""Judging rounds: open, list, look, change, delete, close."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from apps.api.answers import Answer, ModelAnswer, build_page
from apps.api.fields import Flag, Identifier, Int, Number, PageQuery, StrictSerializer, Text, Validated
from apps.api.resource import Resource, delete, find_visible, get, patch, post
from apps.judging.closing import Closed, close_round
from apps.judging.judges import change_round, find_judges, list_eligible_judges, require_close, require_lead
from apps.judging.models import Round
from apps.judging.opening import MOST_DEPTH, MOST_SEED, RoundOptions, open_round
from apps.judging.scales import LONGEST_DESCRIPTION, LONGEST_GUIDELINES, LONGEST_NAME
from apps.judging.settling.agreement import AgreementReport, compute_agreement
from apps.judging.settling.renewing import load_round_status
from apps.judging.settling.report import RoundReport, build_round_report
from apps.records.models import Run
from benchbench.database.failures import read_again
from benchbench.deleting import delete_unused
from benchbench.ir.judging.orders import SHARE

MOST_RUNS = 64
MOST_JUDGES = 100


class GradeOfScale(StrictSerializer):
    """A grade that judges choose."""

    grade = Int(min_value=0, max_value=9, help_text="0 is not relevant; its digit is its key.")
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
    depth = Int(
        allow_null=True,
        default=None,
        min_value=1,
        max_value=MOST_DEPTH,
        help_text="Default: the cutoff.",
    )
    budget = Int(allow_null=True, default=None, min_value=1, help_text="Items. Default: the pool.")
    uniform_share = Number(default=SHARE, help_text="From 0 to 1, drawn uniformly at random.")
    seed = Int(default=42, min_value=0, max_value=MOST_SEED)
    scale = serializers.ListField(
        child=GradeOfScale(), default=list, max_length=10, help_text="Default: 0 to the dataset's highest grade."
    )
    guidelines = Text(default="", allow_blank=True, max_length=LONGEST_GUIDELINES)
    overlap = Number(default=0.0, help_text="From 0 to 1, graded by several judges.")
    overlap_judges = Int(default=2, min_value=2, max_value=10)
    blind = Flag(default=True, help_text="While it is open, judges do not see each other's grades.")


class RoundChanges(StrictSerializer):
    """Changes to an open round."""

    continue_after_settled = Flag(required=False, help_text="true: judges get items after its question is settled.")
    judges = serializers.ListField(child=Text(max_length=150), required=False, min_length=1, max_length=MOST_JUDGES)
    guidelines = Text(required=False, allow_blank=True, max_length=LONGEST_GUIDELINES)


class RoundQuery(PageQuery):
    """Query parameters for listing rounds."""

    state = serializers.ChoiceField(Round.State.choices, required=False)


class ScaleAnswer(serializers.Serializer):
    """A grade of a scale."""

    grade = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()


class RoundAnswer(ModelAnswer):
    """A judging round."""

    dataset_version = serializers.IntegerField(source="dataset_version.number", help_text="Version at its start.")
    run_ids = serializers.SerializerMethodField()
    judges = serializers.SerializerMethodField()
    scale = ScaleAnswer(many=True)
    closed_version = serializers.IntegerField(
        source="closed_version.number", allow_null=True, help_text="The version made from its grades."
    )

    class Meta:
        model = Round
        fields = [
            *("id", "name", "owner_id", "mapping_id", "dataset_version", "run_ids", "judges", "state", "order"),
            *("measure", "depth", "budget", "uniform_share", "seed", "scale", "guidelines", "overlap"),
            *(
                "overlap_judges",
                "blind",
                "item_count",
                "pool_size",
                "continue_after_settled",
                "settled_at",
                "created_at",
            ),
            *("closed_at", "closed_version"),
        ]

    def get_run_ids(self, row: Any) -> list[str]:
        return [str(run.run_id) for run in sorted(row.round_runs.all(), key=lambda run: run.pk)]

    def get_judges(self, row: Any) -> list[str]:
        return sorted(judge.username for judge in row.judges.all())


RoundPage = build_page("rounds", RoundAnswer)


class CloseRequest(StrictSerializer):
    """Options for closing a round."""

    leave_out_split = Flag(default=False, help_text="Leave out items that wait for adjudication.")
    with_draft = Flag(default=False, help_text="Freeze other edits in the dataset's draft too.")
    label = Text(default="", allow_blank=True, max_length=50)
    note = Text(default="", allow_blank=True, max_length=10_000)


class ClosedAnswer(Answer):
    """The result of closing a round."""

    version = serializers.IntegerField(allow_null=True, source="version.number")
    sentence = serializers.CharField()

    class Meta:
        dataclass = Closed
        exclude = ["messages"]


class Rounds(Resource):
    model = Round
    route = "judging-rounds"

    @get("", RoundPage, RoundQuery)
    def list_rounds(self, query: Validated) -> QuerySet[Round]:
        """List judging rounds, newest first: yours, your team's, and those that you judge."""
        rows = self.newest().prefetch_related("round_runs", "judges")
        return rows.filter(state=query["state"]) if "state" in query else rows

    @post(
        "",
        RoundAnswer,
        NewRound,
        act="add",
        status=201,
        names={"runs": "run_ids"},
        refuses=[404],
        history="Open a judging round over completed runs of one mapping.",
    )
    def open_round(self, data: Validated) -> Round:
        """Open a judging round over completed runs of one mapping.

        Its items are the unjudged documents among the first that the runs return. 409 if the mapping is not resolved
        for the current dataset and collection.
        """
        rows = Run.objects.select_related("benchmark__mapping")
        runs = [find_visible(rows, pk, self.user, through="benchmark") for pk in data.pop("run_ids")]
        judges = find_judges(data.pop("judges"), list_eligible_judges(self.user))
        new_round = open_round(runs, RoundOptions(**data), judges=judges, owner=self.user)
        return read_again(self.rows(), new_round.pk)

    @get("/<id:round_id>", RoundAnswer)
    def get_round(self, round: Round) -> Round:
        """Show a judging round."""
        return round

    @patch("/<id:round_id>", RoundAnswer, RoundChanges, history="Change an open round.")
    def change_round(self, round: Round, data: Validated) -> Round:
        """Change an open round: whether it continues once its question is settled, its judges, its guidelines.

        409 if the round is closed, or you judge in it and do not lead it.
        """
        if "judges" in data:
            data["judges"] = find_judges(data["judges"], list_eligible_judges(self.user, round))
        change_round(round, self.user, **data)
        return read_again(self.rows(), round.pk)

    @delete("/<id:round_id>", history="Delete a round with its grades.")
    def delete_round(self, round: Round) -> None:
        """Delete a round with its grades; the version made from it stays. 409 if you do not lead it."""
        require_lead(round, self.user)
        delete_unused(round)

    @post("/<id:round_id>/close", ClosedAnswer, CloseRequest, history="Close a round.")
    def close_round(self, round: Round, data: Validated) -> Closed:
        """Close a round: its grades become the dataset's next version, on which its runs are measured again.

        Nothing is searched. 409 if the round is closed, you do not lead it or may not change datasets, or, unless the
        request allows it, items wait for adjudication or the dataset's draft has other edits.
        """
        require_close(round, self.user)
        return close_round(round, self.user, **data)

    @get("/<id:round_id>/state", RoundReport)
    def get_round_state(self, round: Round) -> RoundReport:
        """Show the progress of a round: each judge's pace, what is settled, and about how many grades are missing."""
        return build_round_report(round, load_round_status(round))

    @get("/<id:round_id>/agreement", AgreementReport)
    def get_agreement(self, round: Round) -> AgreementReport:
        """Show the agreement of the judges of a round.

        409 if the round is blind and open, and you do not lead it.
        """
        if round.blind and round.is_open:
            require_lead(round, self.user)
        return compute_agreement(round)

    def rows(self) -> QuerySet[Round]:
        return Round.objects.select_related("dataset_version", "closed_version", "mapping")
