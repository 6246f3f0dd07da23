"""Adding a tag to rows and removing it; the tag "archived" takes a row out of lists and choices alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F, Func, QuerySet, Value
from django.utils import timezone

from benchbench.database.ordered import lock_in_order, update_in_order
from benchbench.models import MAX_TAGS


@dataclass(frozen=True, slots=True)
class Tagged:
    """Rows whose tags were changed, and how many were left as they are: since they were so already, or are full."""

    changed: Sequence[Any]
    alike: int
    full: int


def change_tag(rows: QuerySet[Any], tag: str, *, add: bool) -> Tagged:
    """Add a tag to rows, or remove it."""
    with transaction.atomic():
        model: Any = rows.model
        every = list(model.objects.filter(pk__in=lock_in_order(rows)))
        differing = [row for row in every if (tag in row.tags) != add]
        changed = [row for row in differing if not add or len(row.tags) < MAX_TAGS]
        changes: Any = Func(F("tags"), Value(tag), function="array_append" if add else "array_remove")
        these = model.objects.filter(pk__in=[row.pk for row in changed])
        update_in_order(these, tags=changes, updated_at=timezone.now())
    return Tagged(changed, len(every) - len(differing), len(differing) - len(changed))
