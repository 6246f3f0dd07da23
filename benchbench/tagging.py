"""Tags of rows: words to filter lists by. The tag "archived" takes a row out of lists and choices alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models import F, Func, QuerySet, Value
from django.utils import timezone

TAG_LENGTH = 50  # characters
MAX_TAGS = 20
ARCHIVED = "archived"


class TaggedModel(models.Model):
    """A row with tags."""

    tags = ArrayField(
        models.CharField(max_length=TAG_LENGTH),
        default=list,
        db_default=[],  # for processes of the version before, while a site is upgraded
        blank=True,
        size=MAX_TAGS,
        help_text="Words to filter by, such as nightly.",
    )

    class Meta:
        abstract = True


def leave_out_archived(rows: QuerySet[Any], *, path: str = "tags") -> QuerySet[Any]:
    """Return the rows without those that are archived; `path` leads to their tags (`"benchmark__tags"`)."""
    return rows.exclude(**{f"{path}__contains": [ARCHIVED]})


@dataclass(frozen=True, slots=True)
class Tagged:
    """Rows whose tags were changed, and how many were left as they are: since they were so already, or are full."""

    changed: Sequence[Any]
    alike: int
    full: int


def change_tag(rows: QuerySet[Any], tag: str, *, add: bool) -> Tagged:
    """Add a tag to rows, or remove it."""
    with transaction.atomic():
        locked = rows.model._default_manager.filter(pk__in=rows.values("pk")).select_for_update(of=("self",))
        every = list(locked.order_by("pk"))
        differing = [row for row in every if (tag in row.tags) != add]
        changed = [row for row in differing if not add or len(row.tags) < MAX_TAGS]
        changes: Any = Func(F("tags"), Value(tag), function="array_append" if add else "array_remove")
        locked.filter(pk__in=[row.pk for row in changed]).update(tags=changes, updated_at=timezone.now())
    return Tagged(changed, len(every) - len(differing), len(differing) - len(changed))
