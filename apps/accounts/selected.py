"""Lists whose selected rows are tagged, archived or exported at once."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import SimpleListFilter
from django.contrib.postgres.fields import ArrayField
from django.db.models import Func, Model, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from unfold.widgets import UnfoldAdminTextInputWidget

from apps.accounts.tagging import change_tag
from apps.accounts.viewed import ViewedAdmin
from benchbench.access import staff
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.local_files.placing import write_zip
from benchbench.models import ARCHIVED, MAX_TAGS, TAG_LENGTH, leave_out_archived, spell_tag
from benchbench.site.downloads import AT_ONCE, IN_MEMORY, attachment
from benchbench.site.history import note
from benchbench.site.pages import PageForm, dress, find_next_page
from benchbench.site.panels import Button, Exports

MAX_FILES = 100
MAX_BYTES = 200 * 2**20  # of the files, before they are packed
LEFT_OUT = "left-out.txt"
MAX_NAMES = 5  # of the selected rows
SENTENCES = 3  # on what is left out
REPEATED = ("action", "select_across", "_selected_action")  # of the form of an act, from the list


def list_tags(request: HttpRequest, model_admin: Any) -> list[str]:
    """Return the tags of the rows that the user sees, in order; read once a request."""
    if not hasattr(request, "tags"):
        rows = model_admin.get_queryset(request).order_by().annotate(tag=Func(model_admin.tags, function="unnest"))
        request.tags = sorted(rows.values_list("tag", flat=True).distinct())  # type: ignore[attr-defined]
    return request.tags  # type: ignore[attr-defined]


class TagFilter(SimpleListFilter):
    """Filter for the rows with a tag."""

    title = parameter_name = "tag"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        self.path = model_admin.tags
        offered = {*list_tags(request, model_admin)} - {ARCHIVED}
        if chosen := self.value():  # by a row or not: a filter without choices would not filter
            offered.add(chosen)
        return [(tag, tag) for tag in sorted(offered)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> QuerySet[Any]:
        return queryset.filter(**{f"{self.path}__contains": [tag]}) if (tag := self.value()) else queryset


class ArchiveFilter(SimpleListFilter):
    """Filter for archived rows, which are left out by default. An act on rows by their ids leaves none out."""

    title = parameter_name = "archived"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        self.path = model_admin.tags
        is_used = self.value() or ARCHIVED in list_tags(request, model_admin)
        return [("only", "These only"), ("all", "Included")] if is_used else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> QuerySet[Any]:
        if self.value() == "only":
            return queryset.filter(**{f"{self.path}__contains": [ARCHIVED]})
        by_id = request.method == "POST" and request.POST.get("select_across", "0") == "0"
        by_parent = self.path.replace("tags", "id__exact") in request.GET  # such as the runs of an archived benchmark
        if by_id or by_parent or self.value() == "all":
            return queryset
        return leave_out_archived(queryset, path=self.path)


class TagForm(PageForm):
    """The tag to add or to remove; `tags` are offered."""

    tags: Sequence[str] = ()

    tag = forms.CharField(
        max_length=TAG_LENGTH,
        widget=UnfoldAdminTextInputWidget({"list": "tags", "autocomplete": "off"}),
        help_text=f"A word to filter by, such as nightly; {ARCHIVED} takes rows out of lists and choices.",
    )

    def clean_tag(self) -> str:
        if "," in (tag := self.cleaned_data["tag"]):
            raise forms.ValidationError("A comma ends a tag: add one tag at a time.")
        return tag if tag in self.tags else spell_tag(tag)


class ExportForm(PageForm):
    """The format of the files."""

    format = forms.ChoiceField()

    def __init__(self, *args: Any, labels: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["format"] = forms.ChoiceField(choices=list(labels.items()))
        dress(self.fields["format"])


class ExportingAdmin(ViewedAdmin):
    """Admin class of a list whose rows have tags, of their own or of the row above, and are exported as one zip."""

    tags: ClassVar[str]  # the path to the tags of a row

    @admin.action(description="Export", permissions=["view"])
    def export_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponseBase | None:
        """Answer with the selected rows in one format, after asking for it."""
        if len(queryset) > MAX_FILES:
            sentence = f"A zip holds at most {MAX_FILES} files, not {len(queryset):,}: select fewer."
            self.message_user(request, sentence, messages.ERROR)
            return None
        (exports,) = (addition.exports for addition in self.additions if addition.exports)
        values = request.POST if "format" in request.POST else None
        form = ExportForm(values, user=staff(request), labels=exports.labels)
        if not form.is_valid():
            return self.ask(request, queryset, form, title="Export", buttons=[("", "Download a zip")])
        rows = list(self.get_queryset(request).filter(pk__in=[row.pk for row in queryset]))
        try:
            answer, left_out = self._build_zip(rows, exports, form.cleaned_data["format"])
        except BenchbenchError as error:
            self.message_user(request, error.message, messages.ERROR)
            return None
        more = (
            [f"{len(left_out) - SENTENCES:,} more are left out: {LEFT_OUT} says which."]
            if len(left_out) > SENTENCES
            else []
        )
        for sentence in [*left_out[:SENTENCES], *more, *self.count_unseen(request, rows)]:
            self.message_user(request, sentence, messages.WARNING)
        return answer

    def _build_zip(self, rows: Sequence[Model], exports: Exports, format: str) -> tuple[HttpResponseBase, list[str]]:
        """Return the zip, and a sentence on each row that it leaves out. Raises BenchbenchError without a file."""
        files: dict[str, Any] = {}
        left_out, size = [], 0
        with ExitStack() as stack:
            for row in rows:
                file = stack.enter_context(tempfile.SpooledTemporaryFile(max_size=IN_MEMORY))
                try:
                    name, write = exports.build(row, format)
                    write(file)
                except BenchbenchError as error:
                    left_out.append(f"“{row}” is left out. {error.message}")
                    continue
                size += file.tell()
                if size > MAX_BYTES:
                    limit = filesizeformat(MAX_BYTES)
                    raise BenchbenchError(f"The files have more than {limit}: select fewer, or a shorter format.")
                file.seek(0)
                while name in files:
                    name = f"{len(files) + 1}-{name}"
                files[name] = iter(partial(file.read, AT_ONCE), b"")
            if not files:
                raise BenchbenchError(" ".join(left_out[:SENTENCES]))
            if left_out:
                files[LEFT_OUT] = ["\n".join(left_out)]
            name = f"{self.opts.verbose_name_plural}.zip"
            return attachment(lambda out: write_zip(files, out), name, "application/zip"), left_out

    def ask(
        self, request: HttpRequest, rows: QuerySet[Model], form: PageForm, *, title: str, buttons: list[tuple[str, str]]
    ) -> HttpResponseBase:
        """Render the form of an act on the selected rows, which repeats the act with its values."""
        selected = [(name, value) for name in REPEATED for value in request.POST.getlist(name)]
        context = {"form": form, "selected": selected, "buttons": buttons, "media": form.media, "opts": self.opts}
        more = f" and {len(rows) - MAX_NAMES:,} more" if len(rows) > MAX_NAMES else ""
        context |= {
            "title": f"{title} {counted(len(rows), str(self.opts.verbose_name))}",
            "intro": ", ".join(str(row) for row in rows[:MAX_NAMES]) + more,
            "back": find_next_page(request, request.POST.get("next", "")) or request.get_full_path(),
        }
        return self.render_page(request, "admin/selected.html", context)


class TaggedAdmin(ExportingAdmin):
    """Admin class of a list whose selected rows are tagged and archived."""

    tags = "tags"
    formfield_overrides: ClassVar[dict[Any, object]] = ViewedAdmin.formfield_overrides | {
        ArrayField: {
            "widget": UnfoldAdminTextInputWidget,
            "help_text": "Words to filter by, separated by commas, such as nightly.",
        }
    }

    @admin.action(description="Add or remove a tag", permissions=["act"])
    def tag_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponseBase | None:
        form = TagForm(request.POST if "tag" in request.POST else None, user=staff(request))
        form.tags = list_tags(request, self)
        if not form.is_valid():
            buttons = [("add", "Add the tag"), ("remove", "Remove the tag")]
            return self.ask(request, queryset, form, title="Tag", buttons=buttons)
        return self._change_tag(request, queryset, form.cleaned_data["tag"], add=request.POST.get("act") != "remove")

    @admin.action(description="Archive", permissions=["act"])
    def archive_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponseBase | None:
        return self._change_tag(request, queryset, ARCHIVED, add=True)

    @admin.action(description="Bring back from the archive", permissions=["act"])
    def bring_back_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponseBase | None:
        return self._change_tag(request, queryset, ARCHIVED, add=False)

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Model], search_term: str) -> Any:
        """Search a list, or what a field offers, which archived rows are not part of."""
        if request.path == reverse("admin:autocomplete"):
            queryset = leave_out_archived(queryset)
        return super().get_search_results(request, queryset, search_term)

    def _change_tag(
        self, request: HttpRequest, queryset: QuerySet[Model], tag: str, *, add: bool
    ) -> HttpResponseBase | None:
        rows = self.model._default_manager.filter(pk__in=[row.pk for row in queryset])
        tagged = change_tag(rows, tag, add=add)
        noun = str(self.opts.verbose_name)
        if tag == ARCHIVED:
            state = "archived: the filter Archived shows" if add else "back from the archive: lists and choices show"
            sentence = f"{counted(len(tagged.changed), noun)} {state} {'it' if len(tagged.changed) == 1 else 'them'}."
        else:
            did = f"Added the tag “{tag}” to" if add else f"Removed the tag “{tag}” from"
            sentence = f"{did} {counted(len(tagged.changed), noun)}."
        if tagged.changed:
            note(staff(request), tagged.changed, f"{'Added' if add else 'Removed'} the tag “{tag}”.")
            self.message_user(request, sentence, messages.SUCCESS)
        alike, full = "had it already" if add else "did not have it", f"left out: {MAX_TAGS} tags are the most"
        for count, reason in ((tagged.alike, alike), (tagged.full, full)):
            if count:
                self.message_user(request, f"{counted(count, noun)} {reason}.", messages.WARNING)
        for sentence in self.count_unseen(request, queryset):
            self.message_user(request, sentence, messages.WARNING)
        target = find_next_page(request, request.POST.get("next", ""))
        return redirect(target) if target else None

    def list_offered(self, request: HttpRequest, obj: Any) -> list[Button]:
        buttons = super().list_offered(request, obj)
        if not self.has_act_permission(request):
            return buttons
        if ARCHIVED in obj.tags:
            return [*buttons, Button("Bring back from the archive", "unarchive", "bring_back_selected")]
        return [*buttons, Button("Archive", "archive", "archive_selected")]
