"""Abstract bases of the tables: public ids, timestamps, ownership."""

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Func, JSONField, Q, Value

PERMISSIONS = ("add", "change", "delete", "view", "view_all")  # of an owned model, see `benchbench.access.visible`


def add_key(field: str, key: str, value: Any) -> Func:
    """Return an expression that adds a key to the JSON object `field`, so that concurrent UPDATEs keep both keys."""
    more = Value({key: value}, JSONField())
    return Func(F(field), more, template="%(expressions)s", arg_joiner=" || ", output_field=JSONField())


class PublicModel(models.Model):
    """A row with a public id: its primary key is a UUID."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class OwnedModel(PublicModel):
    """A root of the object tree. `benchbench.access.visible` decides who may see it.

    Without an owner (a command without --owner made it) it belongs to all staff. `made_by` names the command that
    makes such rows.
    """

    made_by: ClassVar[str]

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The user who can see and change it. Empty: all staff can.",
    )
    team = models.ForeignKey(
        "auth.Group",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Members of this group can see it too.",
    )

    class Meta:
        abstract = True
        default_permissions = PERMISSIONS

    @classmethod
    def seen_by(cls, user: Any, prefix: str = "") -> Q:
        """Return the filter of the rows that staff without `view_all` see; `prefix` leads to them (`"benchmark__"`)."""
        return (
            Q(**{f"{prefix}owner": user})
            | Q(**{f"{prefix}owner__isnull": True})
            | Q(**{f"{prefix}team__in": user.groups.values("pk")})
        )
