"""Table of the API itself: stored answers for repeated requests."""

from django.conf import settings
from django.db import models


class StoredAnswer(models.Model):
    """The answer to a request with an Idempotency-Key, stored in the transaction of its changes."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    path = models.CharField(max_length=300)
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    body = models.TextField(blank=True, help_text="The very text of the answer.")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)  # index: deleting old answers

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["user", "path", "key"], name="answer_stored_once")]

    def __str__(self) -> str:
        return f"{self.path} {self.key}"
