"""Answers of search engines, so that triage, late judgments and resumed benchmarks ask nothing twice."""

from django.contrib.postgres.indexes import HashIndex
from django.db import models


class EngineAnswer(models.Model):
    """The latest answer of an engine to a query, as it was mapped."""

    key = models.CharField(
        max_length=64,
        unique=True,
        help_text="SHA-256 over engine, its version and declaration, parameters, depth, text and filters.",
    )
    engine = models.CharField(max_length=100, help_text="The alias in BENCHBENCH_ENGINES.")
    version = models.CharField(max_length=200, blank=True, help_text="The version that was declared then.")
    parameters = models.JSONField(help_text="All parameters with their values.")
    depth = models.PositiveIntegerField(help_text="Hits asked for.")
    text = models.TextField(help_text="The query.")
    filters = models.JSONField(default=dict)
    hits = models.JSONField(help_text="In the engine's order: reference of the document, score, title, snippet.")
    total = models.BigIntegerField(null=True, help_text="Hits that the engine counts; empty: it gives no number.")
    service_ms = models.FloatField(help_text="Round trip of the successful requests, as seen from the worker.")
    retries = models.PositiveIntegerField(help_text="Requests that were repeated.")
    asked_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["engine", "-asked_at"]),
            HashIndex(fields=["text"], name="engine_answer_text"),  # snippets for judges
        ]

    def __str__(self) -> str:
        return f"answer of {self.engine}"
