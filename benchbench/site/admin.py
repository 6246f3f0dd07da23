"""Base classes of admin pages: visible rows, read-only facts, buttons that post."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import ForeignKey, JSONField, Model, Q, QuerySet, TextField
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget

from benchbench.access import list_teams, staff, visible
from benchbench.errors import BenchbenchError
from benchbench.site.deleting import DeletingAdmin
from benchbench.site.history import note
from benchbench.site.lists import InfinitePaginator
from benchbench.site.pages import find_next_page
from benchbench.site.panels import (
    Button,
    Page,
    Panel,
    Table,
    build_list_url,
    load_facts,
    load_table,
    note_seen,
    show_values,
)

# Colours of unfold's labels, by status.
STATUS_COLOURS = {
    **dict.fromkeys(("completed", "ready", "resolved", "done"), "success"),
    **dict.fromkeys(("running", "indexing", "evaluating"), "info"),
    **dict.fromkeys(("partial", "cancelled", "ambiguous"), "warning"),
    **dict.fromkeys(("failed", "not found", "invalid ref"), "danger"),
    **dict.fromkeys(("pending", "queued"), "default"),
}


class OwnedForm(forms.ModelForm):
    """Form that checks the constraints on the owner even if the owner is not among the fields.

    The row's team stays a choice for every user who changes the row; its page shows the team anyway.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "team" in self.fields:
            team: Any = self.fields["team"]
            offered = Q(pk__in=team.queryset.values("pk")) | Q(pk=self.instance.team_id)
            team.queryset = Group.objects.filter(offered).order_by("name")

    def validate_unique(self) -> None:
        super().validate_unique()
        if self.errors:
            return
        try:
            self.instance.validate_constraints()
        except ValidationError as error:
            self.add_error(None, error)


class SiteAdmin(DeletingAdmin):
    """Admin class that shows the rows that `visible` lets the user see; any other is not found.

    Subclasses define the buttons, panels and trail of an object's page, and `pages` in addition to Django's. Higher
    rooms add theirs (`panels.add_to`). Fields outside `editable` are read-only.
    """

    through: ClassVar[str] = ""
    pages: ClassVar[Sequence[Page]] = ()
    editable: ClassVar[tuple[str, ...]] = ()
    compressed_fields = True
    formfield_overrides: ClassVar[dict[Any, object]] = {TextField: {"widget": UnfoldAdminTextareaWidget({"rows": 3})}}
    change_form_outer_before_template = "admin/object_head.html"
    change_form_outer_after_template = "admin/object_panels.html"

    @property
    def readonly_preprocess_fields(self) -> dict[str, object]:
        """Return by field what becomes of unfold's markup of read-only values; JSON is shown as labelled values."""
        return {field.name: show_values for field in self.opts.fields if isinstance(field, JSONField)}

    def get_urls(self) -> list[URLPattern]:
        pages = [*self.pages, *(page for addition in self.additions for page in addition.pages)]
        return [*(page.build_pattern(self) for page in pages), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return visible(super().get_queryset(request), request.user, through=self.through)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Model:
        row = super().get_object(request, object_id, from_field)
        if row is None:
            noun = self.opts.verbose_name
            raise Http404(f"The {noun} {object_id} does not exist, or is hidden from you: ask its owner to share it.")
        return row

    def load_viewed(self, request: HttpRequest, object_id: UUID | str) -> Any:
        """Return the row of a page. Raises PermissionDenied without the permission to view, Http404 without the row."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return self.get_object(request, str(object_id))

    def render_page(
        self, request: HttpRequest, template: str, context: dict[str, Any], *, original: Any = None, status: int = 200
    ) -> TemplateResponse:
        """Render a page in the layout of the admin; the page of a row, `original`, has its name and its trail.

        Its header names the list and then the row, or the page's title.
        """
        request.current_app = self.admin_site.name
        shell = {**self.admin_site.each_context(request), "model_admin": self}  # without `opts`, unfold adds the title
        if original is not None:
            note_seen(request, original)
            shell |= {
                "original": original,
                "title": getattr(original, "heading", str(original)),
                "trail": self.list_trail(original),
            }
            shell["opts"] = self.opts
        return TemplateResponse(request, template, shell | context, status=status)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        editable = set(self.editable)
        if not request.user.has_perm(f"{self.opts.app_label}.view_all_{self.opts.model_name}"):
            editable.discard("owner")  # only users who would still see the row may give it away
        return [name for name in flatten_fieldsets(self.get_fieldsets(request, obj)) if name not in editable]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the actions without `delete_selected`: rows are deleted one by one, on their own pages."""
        return {name: action for name, action in super().get_actions(request).items() if name != "delete_selected"}

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may start and stop work on these rows, also if the rows are read-only."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def apply_each(self, request: HttpRequest, rows: Iterable[Any], act: Callable[[Any], str]) -> HttpResponse | None:
        """Call `act` on every row, show its sentence or error, and return to the page with the button."""
        rows, sentences, refusals = list(rows), [], []
        for row in rows:
            try:
                sentences.append(act(row))
                note(staff(request), self.list_concerned(row), sentences[-1])
            except BenchbenchError as error:
                refusals.append(error.message)
        self.show_outcomes(request, rows, sentences, refusals)
        target = find_next_page(request, request.POST.get("next", ""))
        return redirect(target) if target else None

    def list_concerned(self, row: Any) -> list[Model]:
        """Return the rows whose history records an act on `row`."""
        return [row]

    def list_buttons(self, request: HttpRequest, obj: Any) -> list[Button]:
        """Return the buttons for `obj` in its present state, for any user; pages show those of `list_offered`."""
        return []

    def list_offered(self, request: HttpRequest, obj: Any) -> list[Button]:
        """Return the buttons that the user may use."""
        may_act = self.has_act_permission(request)
        return [
            button
            for button in self.list_buttons(request, obj)
            if (may_act or not button.action) and (not button.needs or request.user.has_perm(button.needs))
        ]

    def list_panels(self, request: HttpRequest, obj: Any) -> list[Panel]:
        """Return the panels of rows that belong to `obj`."""
        return []

    def describe_found(self, obj: Any) -> str:
        """Return what `obj` is, for the results of a search."""
        return str(self.opts.verbose_name)

    def list_trail(self, obj: Any) -> list[Model]:
        """Return the rows from which `obj` was made, in the order of the data flow."""
        return []

    def name_status(self, obj: Any) -> str:
        """Return the status of `obj` as pages show it; "" for a row without one."""
        return getattr(obj, "status_word", getattr(obj, "status", ""))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, object], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj = kwargs.get("obj")
        if obj is not None:
            for addition in self.additions:
                context |= addition.context(request, obj)
            context |= {
                "trail": self.list_trail(obj),
                "buttons": self.list_offered(request, obj),
                "tables": self.load_tables(request, obj),
                "operation": self.find_operation(obj),
                "status": self.name_status(obj),
                "changelist_url": build_list_url(self.model),
                "show_save_and_add_another": False,
                "show_save_and_continue": False,
            }
        return super().render_change_form(request, context, *args, **kwargs)

    def load_tables(self, request: HttpRequest, obj: Model) -> list[Table]:
        """Return the tables of the panels of `obj` that the user may see."""
        site = self.admin_site
        added = (panel for addition in self.additions for panel in addition.panels(request, obj))
        panels = sorted([*self.list_panels(request, obj), *added], key=lambda panel: panel.last)
        listed = [(panel, site.get_model_admin(panel.rows.model)) for panel in panels]
        return [load_table(panel, owner) for panel, owner in listed if owner.has_view_permission(request)]

    @display(description="status", ordering="status", label=STATUS_COLOURS)
    def status_label(self, obj: Model) -> str:
        return self.name_status(obj)


class OwnedAdmin(SiteAdmin):
    """Admin class of a root of the object tree. The user who creates a row owns it."""

    form = OwnedForm
    list_select_related: Sequence[str] = ("owner",)

    def formfield_for_foreignkey(self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "team":
            kwargs["queryset"] = list_teams(request.user)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        if not change:
            obj.owner = request.user
        super().save_model(request, obj, form, change)


class FactsFirstAdmin(OwnedAdmin):
    """Admin class of rows whose page begins with their `facts`; the form, which has what is `edited`, is folded."""

    facts: ClassVar[Sequence[str]]
    edited: ClassVar[str]
    head_template: ClassVar[str] = "admin/object_head.html"
    after_template: ClassVar[str] = "admin/object_panels.html"
    change_form_template = "admin/facts_first.html"
    change_form_outer_before_template = change_form_outer_after_template = ""

    def list_facts(self, obj: Any) -> list[tuple[str, Any]]:
        return load_facts(self.facts, obj, self)

    def render_change_form(self, request: HttpRequest, context: dict[str, object], *args: Any, **kwargs: Any) -> Any:
        if obj := kwargs.get("obj"):
            context |= {"facts": self.list_facts(obj), "edited": self.edited}
            context |= {"head_template": self.head_template, "after_template": self.after_template}
        return super().render_change_form(request, context, *args, **kwargs)


class FactAdmin(SiteAdmin):
    """Admin class of rows that only use cases write."""

    def _refuse(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_add_permission = has_change_permission = has_delete_permission = _refuse

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Return the groups of fields; the error only of a row that failed."""
        groups = super().get_fieldsets(request, obj)
        if getattr(obj, "error", True):
            return groups
        return [
            (name, group | {"fields": [field for field in group["fields"] if field != "error"]})
            for name, group in groups
        ]


class LargeAdmin(FactAdmin):
    """Admin class of facts in large tables, whose lists count them only where that is cheap."""

    paginator = InfinitePaginator
    show_full_result_count = False
