"""The log of who did what, of all rows and of those that are gone, as superusers read it.

The history of a row shows its part to whoever sees the row.
"""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from unfold.decorators import display

from benchbench.site.admin import LargeAdmin

ACTS = {ADDITION: "added", CHANGE: "changed", DELETION: "deleted"}
COLOURS = {"added": "success", "changed": "info", "deleted": "danger"}


@admin.register(LogEntry)
class LogEntryAdmin(LargeAdmin):
    list_display = ("action_time", "user", "act", "kind", "row", "said")
    list_filter = ("action_flag", "action_time", ("content_type", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user", "content_type")
    search_fields = ("=user__username", "=object_id", "object_repr")
    search_help_text = "The name of a user, the id of a row, or words of its name"
    ordering = ("-action_time", "-id")
    fieldsets = (
        (None, {"fields": (("action_time", "user"), "act", "sentence")}),
        ("What it was done to", {"fields": (("kind", "row"), "object_id")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[LogEntry]:
        return LogEntry.objects.select_related("user", "content_type")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    @display(description="act", ordering="action_flag", label=COLOURS)
    def act(self, entry: LogEntry) -> str:
        return ACTS[entry.action_flag]

    @display(description="kind", ordering="content_type")
    def kind(self, entry: LogEntry) -> str:
        return str(entry.content_type.name) if entry.content_type else "–"

    @display(description="row", ordering="object_repr")
    def row(self, entry: LogEntry) -> str:
        """The row by the name that it had then, with a link to it where it may still be there."""
        name, url = truncatechars(entry.object_repr, 80), entry.get_admin_url()
        if url is None or entry.is_deletion():
            return name
        return format_html('<a class="text-link" href="{}">{}</a>', url, name)

    @display(description="what was done")
    def said(self, entry: LogEntry) -> str:
        return truncatechars(entry.get_change_message(), 160)

    @display(description="what was done")
    def sentence(self, entry: LogEntry) -> str:
        return entry.get_change_message()
