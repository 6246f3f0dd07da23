"""Items and grades of a judging round on the wire."""

from rest_framework import serializers

from apps.api.fields import Choice, ListOf, Moment, StrictSerializer, Text, Whole
from apps.api.paging import Page
from apps.api.serializers.judging.rounds import Number
from apps.judging.grading import LONGEST_NOTE, MOST_UNDONE
from apps.judging.handing import MOST_AHEAD
from apps.judging.models import Grade

KINDS = Grade.Kind.values


class NextRequest(StrictSerializer):
    """How many items to hold at once."""

    count = Whole(required=False, default=1, min_value=1, max_value=MOST_AHEAD)


class GivenGrade(serializers.Serializer):
    """What a judge said of an item."""

    item_id = serializers.IntegerField()
    judge = serializers.CharField(source="judge_name")
    kind = serializers.ChoiceField(KINDS)
    grade = serializers.IntegerField(allow_null=True)
    note = serializers.CharField(help_text="May be empty.")
    seconds = serializers.FloatField(allow_null=True)
    graded_at = Moment()


class MyGrade(GivenGrade):
    """What you said of an item, and of what."""

    query_text = serializers.CharField(source="item.query.text")
    document_title = serializers.CharField(source="item.document.title", help_text="May be empty.")
    document_external_id = serializers.CharField(source="item.document.external_id")


class MyGradePage(Page):
    """A page of your grades."""

    grades = MyGrade(many=True)


class ItemFacts(serializers.Serializer):
    """An item for a judge: a query and a document, without run, rank or score."""

    item_id = serializers.IntegerField(source="item.pk")
    query_key = serializers.CharField(source="item.query.key")
    query_text = serializers.CharField(source="item.query.text")
    expected_answer = serializers.CharField(source="item.query.expected_answer", help_text="May be empty.")
    query_notes = serializers.CharField(source="item.query.notes", help_text="May be empty.")
    document_external_id = serializers.CharField(source="item.document.external_id")
    document_title = serializers.CharField(source="item.document.title", help_text="May be empty.")
    document_uri = serializers.CharField(source="item.document.uri", help_text="May be empty.")
    passage = serializers.CharField(help_text="The part that some run found it by; empty where that is not known.")
    passage_start = serializers.IntegerField(source="start", min_value=0, help_text="In characters of the text.")
    text = serializers.CharField(help_text="Its beginning; the whole is at the address of the item.")
    text_is_cut = serializers.BooleanField(source="is_cut")
    grade = GivenGrade(allow_null=True, help_text="Yours; null where you gave none.")
    others = GivenGrade(many=True, help_text="Of other judges, in a round that is not blind, once you graded it.")


class HandedItems(serializers.Serializer):
    """Items that you hold now, those to grade first at the beginning."""

    items = ItemFacts(many=True)
    is_open = serializers.BooleanField()
    answered_at = Moment(allow_null=True, help_text="Where that is not null, the question is settled.")
    hands_out = serializers.BooleanField(help_text="false: no further item comes, to anybody.")


class GradeGiven(StrictSerializer):
    """What you say of an item: a grade, or that you skip it, or that it cannot be told."""

    item_id = Whole()
    grade = Whole(required=False, allow_null=True, default=None, help_text="On the scale; null for the other kinds.")
    kind = Choice(KINDS, default="grade")
    note = Text(required=False, default="", allow_blank=True, max_length=LONGEST_NOTE)
    seconds = Number(required=False, allow_null=True, default=None, help_text="From being shown to being graded.")


class GradesGiven(StrictSerializer):
    """What you say of items, all or none. What is sent twice is kept once."""

    grades = ListOf(child=GradeGiven(), min_length=1, max_length=500)


class GradesKept(serializers.Serializer):
    """What is kept of what you said."""

    grades = GivenGrade(many=True)


class UndoRequest(StrictSerializer):
    """How many grades to take back, the last first."""

    count = Whole(required=False, default=1, min_value=1, max_value=MOST_UNDONE)


class UngradeRequest(StrictSerializer):
    """The items of which you take back what you said."""

    item_ids = ListOf(child=Whole(), min_length=1, max_length=5000)


class Ungraded(serializers.Serializer):
    """How many grades were taken back."""

    count = serializers.IntegerField(min_value=0)


class Adjudication(StrictSerializer):
    """The decision on an item whose judges are split."""

    item_id = Whole()
    grade = Whole()
    note = Text(required=False, default="", allow_blank=True, max_length=LONGEST_NOTE)


class SplitItem(serializers.Serializer):
    """An item whose judges are split evenly, with what they said."""

    item = ItemFacts()
    grades = GivenGrade(many=True)


class SplitItems(serializers.Serializer):
    """Items that wait for adjudication."""

    items = SplitItem(many=True)
