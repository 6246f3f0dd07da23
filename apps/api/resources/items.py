"""Items of a judging round: handed out, graded, taken back; and those that its owner decides."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import NotFound

from apps.api.answers import ModelAnswer, Moment, build_page
from apps.api.fields import Int, Number, PageQuery, StrictSerializer, Text, Validated
from apps.api.resource import Resource, delete, find_visible, get, post
from apps.judging import grading
from apps.judging.handing import MOST_AHEAD, ItemView, load_items, load_next_items, view_items, view_ungraded_items
from apps.judging.judges import require_lead, require_part
from apps.judging.models import Grade, Round, RoundItem
from apps.judging.settling.consensus import load_consensus

KINDS = Grade.Kind.choices


class NextRequest(StrictSerializer):
    """The number of items to hold at once."""

    count = Int(default=1, min_value=1, max_value=MOST_AHEAD)


class GradeAnswer(ModelAnswer):
    """A judge's grade of an item."""

    judge = serializers.CharField(source="judge_name")

    class Meta:
        model = Grade
        fields = ["item_id", "judge", "kind", "grade", "note", "seconds", "graded_at"]


class MyGrade(GradeAnswer):
    """Your grade of an item, with its query and document."""

    query_text = serializers.CharField(source="item.query.text")
    document_title = serializers.CharField(source="item.document.title")
    document_external_id = serializers.CharField(source="item.document.external_id")

    class Meta(GradeAnswer.Meta):
        fields = [*GradeAnswer.Meta.fields, "query_text", "document_title", "document_external_id"]


MyGradePage = build_page("grades", MyGrade)


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
    passage = serializers.CharField(help_text="The text by which a run found it; empty if unknown.")
    passage_start = serializers.IntegerField(source="start", min_value=0, help_text="In characters of the text.")
    text = serializers.CharField(help_text="Its beginning; the address of the item has the whole text.")
    is_text_truncated = serializers.BooleanField(source="is_cut")
    grade = GradeAnswer(allow_null=True, help_text="Your answer; null before you give one.")
    other_grades = GradeAnswer(
        many=True, help_text="Of other judges, in a round that is not blind, once you graded it."
    )


class HandedItems(serializers.Serializer):
    """Items that you hold now, those to grade first at the beginning."""

    items = ItemAnswer(many=True)
    is_open = serializers.BooleanField()
    settled_at = Moment(allow_null=True, help_text="Time at which the question was settled; null before.")
    offers_items = serializers.BooleanField(help_text="false: judges get no further items.")


class NewGrade(StrictSerializer):
    """Your answer for an item: a grade, skip, or can't judge."""

    item_id = Int()
    grade = Int(allow_null=True, default=None, help_text="On the scale; null for the other kinds.")
    kind = serializers.ChoiceField(KINDS, default="grade")
    note = Text(default="", allow_blank=True, max_length=grading.LONGEST_NOTE)
    seconds = Number(allow_null=True, default=None, help_text="From being shown to being graded.")


class NewGrades(StrictSerializer):
    """Your answers for items, stored all or none. Repeated answers are stored once."""

    grades = serializers.ListField(child=NewGrade(), min_length=1, max_length=500)


class GradesAnswer(serializers.Serializer):
    """Your stored answers."""

    grades = GradeAnswer(many=True)


class UndoRequest(StrictSerializer):
    """The number of grades to withdraw, last first."""

    count = Int(default=1, min_value=1, max_value=grading.MOST_UNDONE)


class UngradeRequest(StrictSerializer):
    """The items whose answers you withdraw."""

    item_ids = serializers.ListField(child=Int(), min_length=1, max_length=5000)


class UngradeAnswer(serializers.Serializer):
    """The number of withdrawn grades."""

    count = serializers.IntegerField(min_value=0)


class Adjudication(StrictSerializer):
    """The decision on an item whose judges are split."""

    item_id = Int()
    grade = Int()
    note = Text(default="", allow_blank=True, max_length=grading.LONGEST_NOTE)


class SplitItem(serializers.Serializer):
    """An item whose judges are split evenly, with their answers."""

    item = ItemAnswer()
    grades = GradeAnswer(many=True)


class SplitItems(serializers.Serializer):
    """Items that wait for adjudication."""

    items = SplitItem(many=True)


class RoundPart(Resource):
    """A resource below a round."""

    route = "judging-rounds/<id:round_id>"

    def find(self, round_id: UUID) -> Any:
        return find_visible(Round.objects.select_related("mapping", "dataset_version"), round_id, self.user)


class Grades(RoundPart):
    model = Grade  # has no history: each row has its judge and its time

    # Items are asked for with each grade, which counts as a write. A repeated request renews what is held.
    @post("/next", HandedItems, NextRequest, act="add", throttle="read", keeps_answer=False)
    def next_items(self, round: Round, data: Validated) -> dict[str, object]:
        """Claim the next items for you, at most `count`, beginning with those that you hold.

        You hold them for ten minutes after your last request; ungraded items then go to others. 409 if you are not a
        judge of the round, or it is closed.
        """
        return describe_items(round, load_next_items(round, self.user, **data))

    @get("/grades", MyGradePage, PageQuery)
    def list_my_grades(self, round: Round, query: Validated) -> QuerySet[Grade]:
        """List your answers in a round, latest first."""
        return (
            grading.load_grades(round, self.user)
            .select_related("item__query", "item__document")
            .defer("item__document__text")
        )

    @post("/grades", GradesAnswer, NewGrades, act="add")
    def grade_items(self, round: Round, data: Validated) -> dict[str, object]:
        """Store your answers for items, all or none; they replace earlier ones.

        Repeated answers are stored once. A grade is stored even if the item has gone to another judge meanwhile.
        Skipped items go to others. 409 if you are not a judge of the round, or it is closed.
        """
        grades = data["grades"]
        with transaction.atomic():
            grading.lock_items(round, [grade["item_id"] for grade in grades])
            return {"grades": [grading.grade_item(round, grade.pop("item_id"), self.user, **grade) for grade in grades]}

    @post("/grades/undo", HandedItems, UndoRequest, act="add")
    def undo_grades(self, round: Round, data: Validated) -> dict[str, object]:
        """Withdraw your last grades, at most ten, and hold their items again. 409 if you have no grades."""
        return describe_items(round, load_items(grading.undo(round, self.user, **data)))

    @post("/grades/remove", UngradeAnswer, UngradeRequest, act="add")
    def ungrade_items(self, round: Round, data: Validated) -> dict[str, int]:
        """Withdraw your answers for these items, which go to the next judge."""
        return {"count": grading.ungrade(round, self.user, data["item_ids"])}


class Items(RoundPart):
    model = Round

    @get("/items/<int:item_id>", ItemAnswer)
    def get_item(self, item: RoundItem) -> ItemView:
        """Show an item of a round with the whole text of its document; 409 if you are not a member of the round."""
        require_part(item.round, self.user)
        (answer,) = view_items(item.round, self.user, load_items([item.pk]), most_text=None)
        return answer

    @get("/adjudications", SplitItems)
    def list_split_items(self, round: Round) -> dict[str, object]:
        """List the items whose judges are split evenly, with their answers. 409 if you do not lead the round."""
        require_lead(round, self.user)
        split = {item_id: agreed for item_id, agreed in load_consensus(round).items() if agreed.split}
        rows = view_items(round, self.user, load_items(list(split)))
        return {"items": [{"item": row, "grades": split[row.item.pk].grades} for row in rows]}

    @post("/adjudications", GradeAnswer, Adjudication, history="Decide the grade of an item whose judges are split.")
    def adjudicate(self, round: Round, data: Validated) -> Grade:
        """Decide the grade of an item whose judges are split. 409 if they are not, or you do not lead the round."""
        return grading.adjudicate(round, data["item_id"], self.user, data["grade"], note=data["note"])

    @delete(
        "/adjudications/<int:item_id>",
        act="change",
        history="Withdraw the decision on an item.",
    )
    def withdraw_adjudication(self, item: RoundItem) -> None:
        """Withdraw your decision on an item, which then waits again. Without a decision nothing happens.

        409 if another user decided, the round is closed, or you do not lead it.
        """
        grading.withdraw_adjudication(item.round, item.pk, self.user)

    def find(self, round_id: UUID, item_id: int | None = None) -> Any:
        round = super().find(round_id)
        if item_id is None:
            return round
        item = round.items.filter(pk=item_id).first()
        if item is None:
            raise NotFound(f'The round "{round}" has no item {item_id}.')
        return item


def describe_items(round: Round, items: list[RoundItem]) -> dict[str, object]:
    """Return items as a judge sees them, and whether more will come."""
    names = ("is_open", "settled_at", "offers_items")
    return {name: getattr(round, name) for name in names} | {"items": view_ungraded_items(items)}
