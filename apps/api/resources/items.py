"""Items of a judging round: handed out, graded, taken back; and those that its owner decides."""

from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import ModelAnswer, Moment, answer_page, page_of
from apps.api.endpoint import Endpoint
from apps.api.fields import Number, PageQuery, StrictSerializer, Text, Whole, valid
from apps.api.resources.rounds import find_round
from apps.judging.grading import (
    LONGEST_NOTE,
    MOST_UNDONE,
    adjudicate,
    grade_item,
    grades_by,
    lock_items,
    undo,
    ungrade,
    withdraw_adjudication,
)
from apps.judging.handing import MOST_AHEAD, next_items, show, show_ungraded, shown
from apps.judging.judges import require_lead, require_part
from apps.judging.models import Grade, Round, RoundItem
from apps.judging.settling.consensus import agreed_of

KINDS = Grade.Kind.choices


class NextRequest(StrictSerializer):
    """How many items to hold at once."""

    count = Whole(default=1, min_value=1, max_value=MOST_AHEAD)


class GivenGrade(ModelAnswer):
    """A judge's grade of an item."""

    judge = serializers.CharField(source="judge_name")

    class Meta:
        model = Grade
        fields = ["item_id", "judge", "kind", "grade", "note", "seconds", "graded_at"]


class MyGrade(GivenGrade):
    """Your grade of an item, with its query and document."""

    query_text = serializers.CharField(source="item.query.text")
    document_title = serializers.CharField(source="item.document.title")
    document_external_id = serializers.CharField(source="item.document.external_id")

    class Meta(GivenGrade.Meta):
        fields = [*GivenGrade.Meta.fields, "query_text", "document_title", "document_external_id"]


MyGradePage = page_of("grades", MyGrade)


class ItemAnswer(serializers.Serializer):
    """An item for a judge: a query and a document, without run, rank or score."""

    item_id = serializers.IntegerField(source="item.pk")
    query_key = serializers.CharField(source="item.query.key")
    query_text = serializers.CharField(source="item.query.text")
    expected_answer = serializers.CharField(source="item.query.expected_answer")
    query_notes = serializers.CharField(source="item.query.notes")
    document_external_id = serializers.CharField(source="item.document.external_id")
    document_title = serializers.CharField(source="item.document.title")
    document_uri = serializers.CharField(source="item.document.uri")
    passage = serializers.CharField(help_text="The part that some run found it by; empty where that is not known.")
    passage_start = serializers.IntegerField(source="start", min_value=0, help_text="In characters of the text.")
    text = serializers.CharField(help_text="Its beginning; the whole is at the address of the item.")
    text_is_cut = serializers.BooleanField(source="is_cut")
    grade = GivenGrade(allow_null=True, help_text="Yours; null where you gave none.")
    others = GivenGrade(many=True, help_text="Of other judges, in a round that is not blind, once you graded it.")


class HandedItems(serializers.Serializer):
    """Items that you hold now, those to grade first at the beginning."""

    items = ItemAnswer(many=True)
    is_open = serializers.BooleanField()
    answered_at = Moment(allow_null=True, help_text="Where that is not null, the question is settled.")
    hands_out = serializers.BooleanField(help_text="false: no further item comes, to anybody.")


class GradeGiven(StrictSerializer):
    """What you say of an item: a grade, or that you skip it, or that it cannot be told."""

    item_id = Whole()
    grade = Whole(required=False, allow_null=True, default=None, help_text="On the scale; null for the other kinds.")
    kind = serializers.ChoiceField(KINDS, default="grade")
    note = Text(default="", allow_blank=True, max_length=LONGEST_NOTE)
    seconds = Number(required=False, allow_null=True, default=None, help_text="From being shown to being graded.")


class GradesGiven(StrictSerializer):
    """What you say of items, all or none. What is sent twice is kept once."""

    grades = serializers.ListField(child=GradeGiven(), min_length=1, max_length=500)


class GradesKept(serializers.Serializer):
    """What is kept of what you said."""

    grades = GivenGrade(many=True)


class UndoRequest(StrictSerializer):
    """How many grades to take back, the last first."""

    count = Whole(default=1, min_value=1, max_value=MOST_UNDONE)


class UngradeRequest(StrictSerializer):
    """The items of which you take back what you said."""

    item_ids = serializers.ListField(child=Whole(), min_length=1, max_length=5000)


class Ungraded(serializers.Serializer):
    """How many grades were taken back."""

    count = serializers.IntegerField(min_value=0)


class Adjudication(StrictSerializer):
    """The decision on an item whose judges are split."""

    item_id = Whole()
    grade = Whole()
    note = Text(default="", allow_blank=True, max_length=LONGEST_NOTE)


class SplitItem(serializers.Serializer):
    """An item whose judges are split evenly, with what they said."""

    item = ItemAnswer()
    grades = GivenGrade(many=True)


class SplitItems(serializers.Serializer):
    """Items that wait for adjudication."""

    items = SplitItem(many=True)


class NextItems(Endpoint):
    model = Grade
    acts = {"POST": "add"}
    throttles = {"POST": "read"}  # it is asked for with each grade, which counts as a write
    keeps_answers = False  # a repeated request renews what is held

    @extend_schema(operation_id="next_items", request=NextRequest, responses=HandedItems)
    def post(self, request: Request, round_id: UUID) -> Response:
        """Hand out the next items to you, at most `count`, those that you hold already first.

        They are yours for ten minutes from when you ask last; what you hold and do not grade goes to others then. 409
        where you do not judge in the round, and once it is closed.
        """
        round = find_round(request, round_id)
        items = next_items(round, request.user, count=valid(NextRequest, request.data)["count"])
        return handed(round, items)


class OneItem(Endpoint):
    model = Round

    @extend_schema(operation_id="get_item", responses=ItemAnswer)
    def get(self, request: Request, round_id: UUID, item_id: int) -> Response:
        """Show an item of a round with the whole text of its document; 409 where you have no part in the round."""
        round = find_round(request, round_id)
        require_part(round, request.user)
        require_item(round, item_id)
        (told,) = show(round, request.user, shown([item_id]), most_text=None)
        return Response(ItemAnswer(told).data)


class Grades(Endpoint):
    model = Grade
    acts = {"POST": "add"}

    @extend_schema(operation_id="list_my_grades", parameters=[PageQuery], responses=MyGradePage)
    def get(self, request: Request, round_id: UUID) -> Response:
        """List what you said in a round, the latest first."""
        rows = grades_by(find_round(request, round_id), request.user)
        query = valid(PageQuery, request.query_params)
        return answer_page(MyGradePage, rows.select_related("item__query", "item__document"), query)

    @extend_schema(operation_id="grade_items", request=GradesGiven, responses=GradesKept)
    def post(self, request: Request, round_id: UUID) -> Response:
        """Say what you think of items, in place of what you said before: all or none.

        Sent again it is kept once. A grade is kept too where the item has gone to another judge meanwhile. What you
        skip goes to others. 409 where you do not judge in the round, and once it is closed.
        """
        round = find_round(request, round_id)
        grades = valid(GradesGiven, request.data)["grades"]
        with transaction.atomic():
            lock_items(round, [given["item_id"] for given in grades])
            kept = [grade_item(round, given.pop("item_id"), request.user, **given) for given in grades]
        return Response(GradesKept({"grades": kept}).data)


class UndoGrades(Endpoint):
    model = Grade
    acts = {"POST": "add"}

    @extend_schema(operation_id="undo_grades", request=UndoRequest, responses=HandedItems)
    def post(self, request: Request, round_id: UUID) -> Response:
        """Take back your last grades, at most ten, and hold their items again. 409 where there is none."""
        round = find_round(request, round_id)
        items = undo(round, request.user, count=valid(UndoRequest, request.data)["count"])
        return handed(round, shown(items))


class Ungrade(Endpoint):
    model = Grade
    acts = {"POST": "add"}

    @extend_schema(operation_id="ungrade_items", request=UngradeRequest, responses=Ungraded)
    def post(self, request: Request, round_id: UUID) -> Response:
        """Take back what you said of these items, which go to whoever comes next."""
        round = find_round(request, round_id)
        count = ungrade(round, request.user, valid(UngradeRequest, request.data)["item_ids"])
        return Response(Ungraded({"count": count}).data)


class Adjudications(Endpoint):
    model = Round

    @extend_schema(operation_id="list_split_items", responses=SplitItems)
    def get(self, request: Request, round_id: UUID) -> Response:
        """List the items whose judges are split evenly, with what they said. 409 where you do not lead the round."""
        round = find_round(request, round_id)
        require_lead(round, request.user)
        split = {item_id: agreed for item_id, agreed in agreed_of(round).items() if agreed.split}
        rows = show(round, request.user, shown(list(split)))
        told = [{"item": row, "grades": split[row.item.pk].grades} for row in rows]
        return Response(SplitItems({"items": told}).data)

    @extend_schema(operation_id="adjudicate", request=Adjudication, responses=GivenGrade)
    def post(self, request: Request, round_id: UUID) -> Response:
        """Decide the grade of an item whose judges are split. 409 where they are not, or you do not lead the round."""
        round = find_round(request, round_id)
        data = valid(Adjudication, request.data)
        row = adjudicate(round, data["item_id"], request.user, data["grade"], note=data["note"])
        return Response(GivenGrade(row).data)


class OneAdjudication(Endpoint):
    model = Round
    acts = {"DELETE": "change"}

    @extend_schema(operation_id="withdraw_adjudication", responses={204: None})
    def delete(self, request: Request, round_id: UUID, item_id: int) -> Response:
        """Take back what you decided of an item, which waits again; nothing happens where nothing was decided.

        409 where somebody else decided, the round is closed, or you do not lead it.
        """
        round = find_round(request, round_id)
        require_item(round, item_id)
        withdraw_adjudication(round, item_id, request.user)
        return Response(status=204)


def require_item(round: Round, item_id: int) -> None:
    if not round.items.filter(pk=item_id).exists():
        raise NotFound(f'The round "{round}" has no item {item_id}.')


def handed(round: Round, items: list[RoundItem]) -> Response:
    """Answer with items as a judge sees them, and whether more will come."""
    names = ("is_open", "answered_at", "hands_out")
    told = {name: getattr(round, name) for name in names} | {"items": show_ungraded(items)}
    return Response(HandedItems(told).data)
