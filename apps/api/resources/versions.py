"""Versions of a dataset: look, freeze the draft, discard it."""

from uuid import UUID

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer, ModelAnswer, answer_page, page_of
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import PageQuery, StrictSerializer, Text, Whole, valid
from apps.api.resources.judgments import JudgmentAnswer
from apps.api.resources.queries import QueryAnswer
from apps.datasets.editing.differences import KINDS, Changes
from apps.datasets.editing.drafts import changes_of, difference_of, discard_draft, freeze, require_draft
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.records import LABEL_LENGTH
from apps.datasets.versions import counted


class FreezeRequest(StrictSerializer):
    """What to say of the version that the draft becomes."""

    label = Text(default="", allow_blank=True, max_length=LABEL_LENGTH, help_text="Such as 2026-11.")
    note = Text(default="", allow_blank=True, max_length=10_000)
    seen = Text(
        default="",
        max_length=64,
        help_text="`seen` of the difference that you looked at: 409 if the draft was edited since.",
    )


class VersionAnswer(ModelAnswer):
    """A version of a dataset."""

    is_draft = serializers.SerializerMethodField()

    class Meta:
        model = DatasetVersion
        fields = [
            *("number", "label", "is_draft", "content_hash", "query_count", "judgment_count", "note"),
            *("created_at", "frozen_at"),
        ]
        extra_kwargs = {"content_hash": {"help_text": "Empty for a draft."}}

    def get_is_draft(self, version: DatasetVersion) -> bool:
        return version.frozen_at is None


VersionPage = page_of("versions", VersionAnswer)


class ChangesAnswer(Answer):
    """Changes of a draft to the version before it."""

    sentence = serializers.CharField()

    class Meta:
        dataclass = Changes
        extra_kwargs = {
            "added": {"help_text": "Judgments."},
            "queries": {"help_text": "Added, removed or reworded, with their judgments."},
        }


class VersionDetail(VersionAnswer):
    """A version, and what it changes where it is the draft."""

    changes = ChangesAnswer(allow_null=True)

    class Meta(VersionAnswer.Meta):
        fields = [*VersionAnswer.Meta.fields, "changes"]


class DifferenceQuery(StrictSerializer):
    """How much of a difference."""

    limit = Whole(default=50, min_value=1, max_value=500, help_text="Rows of each kind.")


class ChangedQuery(QueryAnswer):
    """A query that was reworded or described differently."""

    text_before = serializers.CharField()

    class Meta(QueryAnswer.Meta):
        fields = [*QueryAnswer.Meta.fields, "text_before"]


class ChangedJudgment(JudgmentAnswer):
    """A judgment that was changed."""

    grade_before = serializers.IntegerField()

    class Meta(JudgmentAnswer.Meta):
        fields = [*JudgmentAnswer.Meta.fields, "grade_before"]


class DifferenceAnswer(serializers.Serializer):
    """Differences of a version to the one before it: the first rows of each kind, by key.

    Judgments are those of queries that both have. Removed rows are shown as they were.
    """

    number = serializers.IntegerField(min_value=1, source="version.number")
    since = serializers.IntegerField(min_value=0, help_text="The version before; 0 where there is none.")
    sentence = serializers.CharField(source="counts.sentence")
    seen = serializers.CharField(source="digest", help_text="For freezing exactly this: it changes with every edit.")
    totals = inline_serializer("Totals", {kind: serializers.IntegerField() for kind in KINDS})
    judgments_added = JudgmentAnswer(many=True)
    judgments_changed = ChangedJudgment(many=True)
    judgments_removed = JudgmentAnswer(many=True)
    queries_added = QueryAnswer(many=True)
    queries_changed = ChangedQuery(many=True)
    queries_removed = QueryAnswer(many=True)


class Versions(Endpoint):
    model = Dataset

    @extend_schema(operation_id="list_versions", parameters=[PageQuery], responses=VersionPage)
    def get(self, request: Request, dataset_id: UUID) -> Response:
        """List the versions of a dataset, newest first; the draft is the first where there is one."""
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        query = valid(PageQuery, request.query_params)
        rows = dataset.versions.order_by("-number")
        return answer_page(VersionPage, rows, query, tell=lambda shown: [counted(row) for row in shown])

    @extend_schema(operation_id="freeze_draft", request=FreezeRequest, responses={201: VersionAnswer})
    def post(self, request: Request, dataset_id: UUID) -> Response:
        """Freeze the draft: it becomes the newest version and never changes again; 409 where nothing was edited.

        `seen` of its difference freezes just what was looked at: 409 where it was edited since.
        """
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        version = freeze(dataset, **valid(FreezeRequest, request.data))
        return Response(VersionAnswer(version).data, status=201)


class OneVersion(Endpoint):
    model = Dataset
    acts = {"DELETE": "change"}

    @extend_schema(operation_id="get_version", responses=VersionDetail)
    def get(self, request: Request, dataset_id: UUID, number: int) -> Response:
        """Show a version; of the draft also what it changes."""
        version = version_at(request, dataset_id, number)
        changes = ChangesAnswer(changes_of(version)).data if version.frozen_at is None else None
        return Response({**VersionAnswer(counted(version)).data, "changes": changes})

    @extend_schema(operation_id="discard_draft", responses={204: None})
    def delete(self, request: Request, dataset_id: UUID, number: int) -> Response:
        """Discard the draft and every edit in it, for good; 409 for a frozen version, which goes with its dataset."""
        version = version_at(request, dataset_id, number)
        require_draft(version)
        discard_draft(version.dataset)
        return Response(status=204)


class VersionDifference(Endpoint):
    model = Dataset

    @extend_schema(operation_id="get_difference", parameters=[DifferenceQuery], responses=DifferenceAnswer)
    def get(self, request: Request, dataset_id: UUID, number: int) -> Response:
        """Show row by row what a version or the draft changes of the version before it."""
        limit = valid(DifferenceQuery, request.query_params)["limit"]
        difference = difference_of(version_at(request, dataset_id, number))
        rows = {kind: getattr(difference, kind)[:limit] for kind in KINDS}
        names = ("version", "since", "counts", "digest", "totals")
        return Response(DifferenceAnswer({name: getattr(difference, name) for name in names} | rows).data)


def version_at(request: Request, dataset_id: UUID, number: int) -> DatasetVersion:
    """Return the version of an address; raise as `find_visible` does for its dataset."""
    dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
    version = dataset.versions.select_related("dataset").filter(number=number).first()
    if version is None:
        raise NotFound(f'The dataset "{dataset}" has no version {number}.')
    return version
