"""Pages that delete a row: what keeps it, as links; what goes with it, in numbers; then the question."""

from collections.abc import Sequence, Sized
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from unfold.widgets import UnfoldAdminTextInputWidget

from benchbench.decimals import counted
from benchbench.deleting import Effects, delete_unused, find_effects
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.site.lists import ListAdmin
from benchbench.site.panels import ADDITIONS, change_url

BINS: list[Any] = []  # the module `bin` of the room of accounts, which registers it
MAX_SENTENCES = 5  # on as many rows
MAX_LINKS = 10  # to the rows of a kind


class UntypedNameError(ConflictError):
    """The name of a row with irreplaceable contents was not typed."""


class NameForm(forms.Form):
    """The field in which a user types the name of what is to be deleted."""

    name = forms.CharField(widget=UnfoldAdminTextInputWidget({"autocomplete": "off"}))


class DeletingAdmin(ListAdmin):
    """Admin class with a page of what a deletion means. Models that are `irreplaceable` make it ask for the name."""

    delete_confirmation_template = "admin/deleting.html"

    def find_url(self, obj: Any) -> str:
        """Return the address of the page that shows `obj` first."""
        return change_url(obj)

    def find_operation(self, obj: Any) -> Any:
        """Return the active operation whose progress the page of `obj` shows, or None."""
        return None

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with BINS[0].keep_deleted(obj, request.user) as deletion:
            self.delete_row(obj)
        vars(request)["deletions"] = [deletion] if deletion else []  # for the message

    def delete_row(self, obj: Any) -> None:
        """Delete a row with what goes with it."""
        deleting = [addition.delete for addition in self.additions if addition.delete]
        deleting[-1](obj) if deleting else delete_unused(obj)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except BenchbenchError as error:
            self.message_user(request, error.message, messages.ERROR)
            again = isinstance(error, UntypedNameError)
            return redirect(request.get_full_path() if again else change_url(self.model, object_id))

    def message_user(
        self,
        request: HttpRequest,
        message: Any,
        level: int | str = messages.INFO,
        extra_tags: str = "",
        fail_silently: bool = False,
    ) -> None:
        """Show a message. The first after a deletion has a button that takes it back."""
        if deletions := vars(request).pop("deletions", None):
            context = {"sentence": message, "deletions": deletions}
            message = render_to_string("admin/undo.html", context, request)
        super().message_user(request, message, level, extra_tags, fail_silently)

    @admin.action(description="Delete, to the bin", permissions=["delete"])
    def bin_selected(self, request: HttpRequest, queryset: Any) -> None:
        """Delete rows that can be taken back, without a question; what people decided is deleted on its page alone."""
        deletions, refusals = [], []
        for row in queryset:
            try:
                with transaction.atomic(), BINS[0].keep_deleted(row, request.user) as deletion:
                    self.log_deletions(request, [row])
                    if takes_decisions(find_losses(row)) or deletion is None:
                        reason = "nothing would bring it back" if deletion is None else "what people decided goes too"
                        raise ConflictError(f'"{row}" was not deleted: {reason}. Delete it on its page.')
                    self.delete_row(row)
                deletions.append(deletion)
            except BenchbenchError as error:
                refusals.append(error.message)
        self.show_outcomes(request, queryset, [], refusals)
        if deletions:
            vars(request)["deletions"] = deletions
            message = f"{counted(len(deletions), str(self.opts.verbose_name))} deleted."
            self.message_user(request, message, messages.SUCCESS)

    def count_unseen(self, request: HttpRequest, rows: Sized) -> list[str]:
        """Return in a sentence how many of the selected rows an act left out, since the user does not see them."""
        unseen = len(set(request.POST.getlist("_selected_action"))) - len(rows)
        if unseen <= 0 or request.POST.get("select_across", "0") != "0":
            return []
        noun = counted(unseen, str(self.opts.verbose_name))
        return [f"{noun} left out: deleted meanwhile, or not yours to see."]

    def show_outcomes(
        self, request: HttpRequest, rows: Sized, sentences: Sequence[str], refusals: Sequence[str]
    ) -> None:
        """Show a sentence on each of several rows: the first few of a kind, and the number of the others."""
        levels = (
            (messages.SUCCESS, sentences, "like these"),
            (messages.ERROR, refusals, "were refused: select fewer to see why"),
        )
        for level, each, words in levels:
            more = [f"{len(each) - MAX_SENTENCES:,} more {words}."] if len(each) > MAX_SENTENCES else []
            for sentence in [*each[:MAX_SENTENCES], *more]:
                self.message_user(request, sentence, level)
        for sentence in self.count_unseen(request, rows):
            self.message_user(request, sentence, messages.WARNING)

    def get_deleted_objects(
        self, objs: QuerySet[Model], request: HttpRequest
    ) -> tuple[list[str], dict[Any, int], set[str], list]:
        """Return the name of a row, and the numbers of what goes with it by noun, without reading that.

        Raises UntypedNameError if the form lacks a name that it needs.
        """
        (obj,) = objs
        effects = find_losses(obj)
        nouns = {self._name_part(model): rows for model, rows in effects.contents.items()}
        counts = {noun: rows.count() for noun, rows in nouns.items() if noun}
        needs_name = takes_decisions(effects)
        if needs_name and request.method == "POST" and request.POST.get("name", "").strip() != str(obj):
            raise UntypedNameError(f'Nothing was deleted: type the name "{obj}" to delete it.')
        request.needs_name = needs_name  # type: ignore[attr-defined]  # for the page
        return [str(obj)], {noun: count for noun, count in counts.items() if count}, set(), []

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        obj = context["object"]
        sentences = [text for text in context["deleted_objects"] if text != str(obj)]
        context |= {
            "counts": [*sentences, *(counted(count, noun) for noun, count in context["model_count"])],
            "users": [*self._list_operations(request, obj), *self._list_users(request, obj)],
            "name_form": NameForm() if getattr(request, "needs_name", False) else None,
            "page": self.find_url(obj),
            "plan": BINS[0].plan_deletion(obj),
        }
        return super().render_delete_form(request, context)

    def _name_part(self, model: type[Model]) -> str:
        """Return the noun for rows of a model; "" for those that no page shows."""
        is_visible = self.admin_site.is_registered(model) or is_irreplaceable(model)
        return getattr(model, "counted_as", str(model._meta.verbose_name) if is_visible else "")

    def _list_operations(self, request: HttpRequest, obj: Any) -> list[tuple[str, str]]:
        """Return the active operations on `obj` and on what goes along, each as its text and its address."""
        along = {model for addition in self.additions for model in addition.along}
        contents = find_losses(obj).contents
        rows = [obj, *(row for model in along for row in contents[model])]
        active = [self.admin_site.get_model_admin(type(row)).find_operation(row) for row in rows]
        is_visible = request.user.has_perm("operations.view_operation")
        return [(f"the operation {one}", change_url(one) if is_visible else "") for one in active if one]

    def _list_users(self, request: HttpRequest, obj: Any) -> list[tuple[str, str]]:
        """Return the rows that use `obj`, each as its text and its address, and the number of those without a name."""
        listed = []
        for model, rows in find_losses(obj).users.items():
            noun, admin, total = str(model._meta.verbose_name), self.admin_site.get_model_admin(model), rows.count()
            seen = admin.get_queryset(request).filter(pk__in=rows.values("pk")) if total else rows.none()
            linked = list(seen[:MAX_LINKS]) if admin.has_view_permission(request) else []
            listed += [(f"the {noun} “{row}”", admin.find_url(row)) for row in linked]
            if total > len(linked):
                hidden = "" if len(linked) == MAX_LINKS else ", which others own"
                listed.append((f"{counted(total - len(linked), f'more {noun}' if linked else noun)}{hidden}", ""))
        return listed


def find_losses(row: Model) -> Effects:
    """Return what goes with a row, rows of higher rooms too, and what keeps it."""
    return find_effects(row, [model for addition in ADDITIONS[type(row)] for model in addition.along])


def takes_decisions(effects: Effects) -> bool:
    """Return whether what people decided goes with a row."""
    return any(is_irreplaceable(model) and rows.exists() for model, rows in effects.contents.items())


def is_irreplaceable(model: type[Model]) -> bool:
    """Return whether rows of a model hold what people decided, so that nothing makes them again."""
    return getattr(model, "irreplaceable", False)
