"""Models of the caches of answers and vectors."""

from django.db import models
from django.db.models import Q


class LLMAnswer(models.Model):
    """A cached answer of a language model, so that the same request is free and repeatable."""

    key = models.CharField(
        max_length=64,
        unique=True,
        help_text="SHA-256 over server, model, its revision, prompt and parameters.",
    )
    provider = models.CharField(max_length=100, help_text="The name of the server.")
    model = models.CharField(max_length=500)
    revision = models.CharField(max_length=200, blank=True, help_text="Empty: the server reports none.")
    prompt = models.TextField()
    parameters = models.JSONField(help_text="Parameters of the request: temperature, max_tokens, seed.")
    text = models.TextField()
    ms = models.FloatField(help_text="Time of the model's answer.")
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(auto_now_add=True, help_text="Accurate to the day.")

    class Meta:
        # Estimating the time of a model from its latest answers.
        indexes = [models.Index(fields=["provider", "model", "-id"], name="llm_answer_of_model")]

    def __str__(self) -> str:
        return f"answer of {self.model}"


class VectorSpace(models.Model):
    """A space of comparable vectors in the cache: a model, its revision, and the kind of text.

    The kind matters because models may use different prompts for queries and documents.
    """

    class Kind(models.TextChoices):
        QUERY = "query"
        DOCUMENT = "document"

    encoder = models.CharField(max_length=500)
    revision = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, choices=Kind)
    dimension = models.PositiveIntegerField()

    class Meta:
        ordering = ["encoder", "revision", "kind"]
        verbose_name = "vector cache"
        constraints = [
            models.UniqueConstraint(fields=["encoder", "revision", "kind"], name="vector_space_key"),
            models.CheckConstraint(condition=Q(kind__in=["query", "document"]), name="vector_space_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} vectors of {self.encoder}"


class CachedVector(models.Model):
    """A text's vector in a space. Pinned vectors were imported and cannot be computed again."""

    space = models.ForeignKey(VectorSpace, on_delete=models.CASCADE, related_name="vectors")
    text_hash = models.CharField(max_length=64)
    vector = models.BinaryField(help_text="float32, little endian.")
    encode_ms = models.FloatField(null=True, help_text="Time to encode it, if it was encoded here.")
    is_cut = models.BooleanField(null=True, help_text="Whether the model does not read its end; null: not known.")
    pinned = models.BooleanField(default=False)
    used_at = models.DateTimeField(auto_now_add=True, help_text="Accurate to the day.")

    class Meta:
        # Evicting the vectors that were not used for the longest time.
        indexes = [models.Index(fields=["space", "used_at"], condition=Q(pinned=False), name="cached_vector_used")]
        constraints = [models.UniqueConstraint(fields=["space", "text_hash"], name="cached_vector_key")]

    def __str__(self) -> str:
        return self.text_hash[:12]
