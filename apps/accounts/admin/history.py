"""Admin pages of what was deleted and changed: the bin and the log."""

from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import filesizeformat, truncatechars
from django.urls import reverse
from django.utils.html import format_html
from unfold.decorators import display

from apps.accounts.admin.users import allow_staff, allow_superuser
from apps.accounts.bin import empty, list_deletions, restore
from apps.accounts.models import Deletion
from benchbench.decimals import counted
from benchbench.errors import ConflictError
from benchbench.site.admin import FactAdmin, LargeAdmin
from benchbench.site.lists import render_distance
from benchbench.site.panels import Button, build_list_url

ACTS = {ADDITION: "added", CHANGE: "changed", DELETION: "deleted"}
COLOURS = {"added": "success", "changed": "info", "deleted": "danger"}


@admin.register(Deletion)
class DeletionAdmin(FactAdmin):
    """Admin of the bin. Who may delete rows of a kind restores those that they saw; superusers empty it early."""

    list_display = ("name", "noun", "deleted", "deleted_by", "until", "space")
    phone_columns = ("until",)
    counted_as = "deletions"
    empty_words = f"The bin is empty. It keeps rows for {counted(settings.BENCHBENCH_KEEP_DELETED_DAYS, 'day')}."
    search_fields = ("name",)
    list_select_related = ("deleted_by",)
    actions = ("restore_selected", "rename_selected")
    direct_action = "restore_selected"
    fieldsets = (
        (
            None,
            {
                "fields": (("name", "noun"), ("deleted", "deleted_by"), ("until", "space"), "contents"),
                "description": "Restoring brings back its history and all its rows. Files of a machine, such as mapped "
                "vectors, are made again at first use. It no longer names users and rows that were deleted later. A "
                "schedule whose time has passed starts once.",
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Deletion]:
        return list_deletions(request.user)

    has_module_permission = has_act_permission = has_view_permission = allow_staff
    has_delete_permission = allow_superuser

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        if not self.has_delete_permission(request):
            raise PermissionDenied("Only superusers delete for good; the bin empties itself in time.")
        return super().delete_view(request, object_id, extra_context)

    def delete_row(self, obj: Deletion) -> None:
        empty(obj)

    def render_delete_form(self, request: HttpRequest, context: dict[str, object]) -> HttpResponse:
        return super().render_delete_form(request, context | {"ends": True})

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: object) -> HttpResponse:
        self.message_user(request, f"“{obj_display}” is deleted for good.", messages.SUCCESS)
        return redirect(build_list_url(Deletion))

    def list_concerned(self, row: Deletion) -> list[Model]:
        """Return what was restored: the deletion itself is gone."""
        return list(apps.get_model(row.kind)._default_manager.filter(pk=row.object_id))

    @admin.action(description="Restore", permissions=["act"])
    def restore_selected(self, request: HttpRequest, queryset: Any, *, rename: bool = False) -> HttpResponse | None:
        addresses: list[str] = []

        @transaction.atomic
        def restore_one(deletion: Deletion) -> str:
            row = restore(deletion, rename=rename)
            pages = self.admin_site.get_model_admin(type(row))
            if not pages.has_delete_permission(request, row):
                raise ConflictError(f"“{row}” was not restored: you may not delete it.")
            addresses.append(pages.find_url(row))
            return f"“{row}” is restored."

        if not queryset:
            self.message_user(request, "Nothing was restored: it is no longer in the bin.", messages.ERROR)
        self.apply_each(request, queryset, restore_one)
        return redirect(addresses[0] if len(addresses) == 1 else build_list_url(Deletion))

    @admin.action(description="Restore under another name", permissions=["act"])
    def rename_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        return self.restore_selected(request, queryset, rename=True)

    def list_buttons(self, request: HttpRequest, obj: Deletion) -> list[Button]:
        end = Button("Delete for good", "delete_forever", href=reverse("admin:accounts_deletion_delete", args=[obj.pk]))
        return [
            Button("Restore", "undo", "restore_selected", primary=True),
            Button("Restore under another name", "undo", "rename_selected"),
            *([end] if self.has_delete_permission(request) else []),
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, object], *args: object, **kwargs: object
    ) -> HttpResponse:
        return super().render_change_form(request, context | {"show_delete": False}, *args, **kwargs)

    @display(description="kind", ordering="kind")
    def noun(self, deletion: Deletion) -> str:
        return str(apps.get_model(deletion.kind)._meta.verbose_name)

    @display(description="deleted", ordering="created_at")
    def deleted(self, deletion: Deletion) -> str:
        return render_distance(deletion.created_at)

    @display(description="space", ordering="size")
    def space(self, deletion: Deletion) -> str:
        return filesizeformat(deletion.size)

    @display(description="with it")
    def contents(self, deletion: Deletion) -> str:
        counted_rows = deletion.counts | {deletion.kind: deletion.counts.get(deletion.kind, 1) - 1}
        counts = [(self._name_part(apps.get_model(kind)), count) for kind, count in counted_rows.items()]
        return ", ".join(counted(count, noun) for noun, count in counts if noun and count) or "–"


def rename_filter(kind: type[admin.FieldListFilter], title: str) -> type[admin.FieldListFilter]:
    """Return a filter with another title than the name of its field."""

    class RenamedFilter(kind):  # type: ignore[misc, valid-type]  # a class that is chosen at run time
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.title = title

    return RenamedFilter


class KindFilter(admin.RelatedOnlyFieldListFilter):
    """Filter by the kinds of rows that have entries, each by its noun alone."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        choices = super().field_choices(field, request, model_admin)
        return [(pk, str(label).rpartition(" | ")[2]) for pk, label in choices]


@admin.register(LogEntry)
class LogEntryAdmin(LargeAdmin):
    """Log of all changes, also to deleted rows, for superusers. The history of a row shows its own entries."""

    list_display = ("action_time", "user", "act", "kind", "row", "summary")
    list_filter = (
        ("action_flag", rename_filter(admin.ChoicesFieldListFilter, "act")),
        ("action_time", rename_filter(admin.DateFieldListFilter, "time")),
        ("content_type", rename_filter(KindFilter, "kind")),
    )
    phone_columns = ("row", "summary")
    search_fields = ("=user__username", "=object_id", "object_repr")
    search_help_text = "User name, object id, or words of the object's name"
    ordering = ("-action_time", "-id")
    fieldsets = (
        (None, {"fields": (("action_time", "user"), "act", "sentence")}),
        ("Object", {"fields": (("kind", "row"), "object_id")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[LogEntry]:
        return LogEntry.objects.select_related("user", "content_type")

    has_module_permission = has_view_permission = allow_superuser

    @display(description="act", ordering="action_flag", label=COLOURS)
    def act(self, entry: LogEntry) -> str:
        return ACTS[entry.action_flag]

    @display(description="kind", ordering="content_type")
    def kind(self, entry: LogEntry) -> str:
        return str(entry.content_type.name) if entry.content_type else "–"

    @display(description="row", ordering="object_repr")
    def row(self, entry: LogEntry) -> str:
        """Return the name that the row had then, with a link unless it was deleted."""
        name, url = truncatechars(entry.object_repr, 80), entry.get_admin_url()
        if url is None or entry.is_deletion():
            return name
        return format_html('<a class="text-link" href="{}">{}</a>', url, name)

    @display(description="change")
    def summary(self, entry: LogEntry) -> str:
        return truncatechars(entry.get_change_message(), 160)

    @display(description="change")
    def sentence(self, entry: LogEntry) -> str:
        return entry.get_change_message()
