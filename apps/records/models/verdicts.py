"""Verdicts: of judging rounds, which the dataset versions that they made carry, and of benchmarks, for lists."""

from functools import cached_property

from django.contrib.postgres.fields import ArrayField
from django.db import models

from apps.datasets.models import DatasetVersion
from apps.records.models.benchmarks import Benchmark
from benchbench.ir.judging.state import State


class RoundVerdict(models.Model):
    """The state in which a judging round was closed. The version that its grades made carries it.

    A round selects the documents that it judges, so plain means on that version do not estimate what all grades would
    give. The state does.
    """

    dataset_version = models.OneToOneField(DatasetVersion, on_delete=models.CASCADE, related_name="round_verdict")
    name = models.CharField(max_length=200, help_text="Of the round.")
    measure = models.CharField(max_length=100)
    run_ids = ArrayField(models.UUIDField(), help_text="The runs that it compared, as its state numbers them.")
    grades = models.PositiveIntegerField(help_text="Grades of people that it rests on, with adjudications.")
    evidence = models.TextField(help_text="What the probability of relevance is based on, as a sentence.")
    record = models.JSONField(help_text="The state, as `State.as_record`.")

    def __str__(self) -> str:
        return f"{self.name} on {self.dataset_version}"

    @cached_property
    def state(self) -> State:
        return State.from_record(self.record)


class BenchmarkVerdict(models.Model):
    """The verdict on a benchmark, stored when it ends. It holds while its basis has the same `stamp`."""

    benchmark = models.OneToOneField(Benchmark, on_delete=models.CASCADE, primary_key=True, related_name="verdict")
    words = models.TextField(help_text="The verdict in a few words, for a cell of a list.")
    sentence = models.TextField()
    stamp = models.CharField(max_length=64, help_text="Hash of its basis: runs, values, mapping, judging rounds.")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.words
