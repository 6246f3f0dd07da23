"""Abstract bases of the tables: public ids, timestamps, ownership."""

import uuid

from django.conf import settings
from django.db import models


class PublicModel(models.Model):
    """A row that the outside names: its primary key is a UUID."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class OwnedModel(PublicModel):
    """A root of the object tree: who may see it is decided by `benchbench.access.visible`.

    Without an owner (a command without --owner made it) it belongs to the whole staff.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Sees and changes it. Empty: every staff member does.",
    )
    team = models.ForeignKey(
        "auth.Group",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Members of this group see it as the owner does.",
    )

    class Meta:
        abstract = True
        default_permissions = ("add", "change", "delete", "view", "view_all")
