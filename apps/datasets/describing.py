"""Descriptions of a dataset."""

from django.db.models import IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from apps.datasets.models import Dataset, DatasetVersion


def with_query_count(datasets: QuerySet[Dataset]) -> QuerySet[Dataset]:
    """Give each dataset `query_count`: of its newest frozen version, 0 where none is frozen yet."""
    frozen = DatasetVersion.objects.filter(dataset=OuterRef("pk"), frozen_at__isnull=False).order_by("-number")
    count = Subquery(frozen.values("query_count")[:1], output_field=IntegerField())
    return datasets.annotate(query_count=Coalesce(count, 0))


def counted(version: DatasetVersion) -> DatasetVersion:
    """Return a version with its counts: a draft is counted when it is told of, and stored when it is frozen."""
    if version.frozen_at is None:
        version.query_count = version.queries.count()
        version.judgment_count = version.judgments.count()
    return version
