"""Benchmarks that wait for a mapping and indexes."""

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from apps.mappings.models import Mapping
from apps.records.models.benchmarks import Benchmark
from benchbench.models import PublicModel


class Preparation(PublicModel):
    """A question about a dataset and a collection whose benchmark starts once its mapping and indexes are ready.

    Any number of them may wait for one index. It is deleted with its benchmark, so that this does not start again.
    """

    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    mapping = models.ForeignKey(Mapping, on_delete=models.CASCADE, related_name="+")
    index_ids = ArrayField(models.UUIDField(), help_text="Of the indexes that the benchmark searches.")
    question = models.CharField(max_length=32, help_text="Key of the question that the benchmark answers.")
    benchmark = models.OneToOneField(Benchmark, null=True, on_delete=models.CASCADE, related_name="+")
    error = models.TextField(blank=True, help_text="Why the benchmark could not start.")

    objects: ClassVar[models.Manager["Preparation"]] = models.Manager()  # mypy's plugin misses it

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.question} on {self.mapping}"
