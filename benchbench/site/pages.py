"""Pages with a form in the layout of the admin: show it, validate it, call one use case, redirect."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

from django import forms
from django.conf import settings
from django.contrib.admin import ModelAdmin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.utils.http import url_has_allowed_host_and_scheme
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from benchbench.access import describe_lack, staff, visible
from benchbench.errors import BenchbenchError
from benchbench.site.history import note_form
from benchbench.site.merging import Edited, MergingForm
from benchbench.site.strict import Lookup

LOOKS: dict[type[forms.Widget], type[forms.Widget]] = {
    forms.TextInput: UnfoldAdminTextInputWidget,
    forms.Textarea: UnfoldAdminTextareaWidget,
    forms.NumberInput: UnfoldAdminIntegerFieldWidget,
    forms.CheckboxInput: UnfoldBooleanSwitchWidget,
    forms.Select: UnfoldAdminSelectWidget,
    forms.SelectMultiple: UnfoldAdminCheckboxSelectMultipleWidget,
}
Sections = tuple[tuple[str, str, tuple[str, ...]], ...]
Groups = list[tuple[str, str, list[forms.BoundField]]]
Folds = list[tuple[str, str, list[forms.BoundField], bool]]


def dress(field: forms.Field) -> None:
    """Give a field the admin's widget, unless it has its own."""
    plain = field.widget
    if look := LOOKS.get(type(plain)):
        field.widget = look(attrs=plain.attrs)
        field.widget.is_required = plain.is_required
        if isinstance(field, forms.ChoiceField):
            cast(Any, field.widget).choices = field.choices


def require_adding(request: HttpRequest, model_admin: ModelAdmin) -> None:
    """Raise PermissionDenied unless the user may add rows."""
    if not model_admin.has_add_permission(request):
        raise PermissionDenied(describe_lack(f"{model_admin.opts.app_label}.add_{model_admin.opts.model_name}"))


@dataclass(frozen=True, slots=True)
class FieldFaults:
    """Errors of one field of a form, in sentences; may be empty."""

    name: str
    label: str
    errors: list[str]


@dataclass(frozen=True, slots=True)
class Remedy:
    """A button's label, and the values that it fills into fields of a form with errors: JSON by their names."""

    label: str
    fill: str


class SizedFileField(forms.FileField):
    """A file field of at most `limit` bytes; `remedy` is the advice for larger files.

    A limit that is a text is the name of a setting. The browser checks the limit too, before it sends anything.
    """

    input_class: ClassVar[type[forms.ClearableFileInput]] = forms.ClearableFileInput
    formats_template: ClassVar[str] = ""  # of what its files may look like, folded below its help

    def __init__(self, *, limit: str | int, remedy: str, accept: str = "", **kwargs: Any) -> None:
        self.limit, self.remedy = limit, remedy
        widget = self.input_class({"class": "bb-file"} | ({"accept": accept} if accept else {}))
        super().__init__(widget=widget, **kwargs)

    @property
    def most_bytes(self) -> int:
        return getattr(settings, self.limit) if isinstance(self.limit, str) else self.limit

    @property
    def rule(self) -> str:
        return f"the limit is {filesizeformat(self.most_bytes)}. {self.remedy}"

    def get_bound_field(self, form: Any, field_name: str) -> forms.BoundField:
        self.widget.attrs |= {"data-max-bytes": self.most_bytes, "data-too-large": self.rule}
        return super().get_bound_field(form, field_name)

    def clean(self, data: object, initial: object = None) -> Any:
        upload = super().clean(data, initial)
        if upload and upload.size > self.most_bytes:
            raise forms.ValidationError(f"The file has {filesizeformat(upload.size)}; {self.rule}")
        return upload


class PageForm(MergingForm, forms.Form):
    """A form of a page, in the style of the admin. `sections` groups its fields: (title, sentence, names).

    `folds` groups fields that few change under a summary of their defaults. `content_field` gets errors of the content.
    """

    sections: ClassVar[Sections] = ()
    folds: ClassVar[Sections] = ()
    content_field: str | None = None
    content_options: ClassVar[tuple[str, ...]] = ()  # fields whose errors a preview shows with those of the content
    remedy: Remedy | None = None

    def __init__(self, *args: Any, user: User, site: Any = None, **kwargs: Any) -> None:
        self.user = user
        self.site = site
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            dress(field)

    def drop_bad_values(self) -> None:
        """Drop initial values that the user may not choose. They come from the query string, which is untrusted."""
        for name, value in list(self.initial.items()):
            field = self.fields.get(name)
            if isinstance(field, forms.ModelChoiceField):
                several = isinstance(field, forms.ModelMultipleChoiceField) and not isinstance(value, list)
                try:
                    field.clean([value] if several else value)
                except ValidationError:
                    del self.initial[name]

    def groups(self) -> Groups:
        sections = self.sections or (("", "", tuple(self.fields)),)
        return [(title, sentence, [self[name] for name in names]) for title, sentence, names in sections]

    def list_folds(self) -> Folds:
        """Return the folds, each with whether it is open: a field of it has an error, or another value than usual."""
        folds = [(summary, sentence, [self[name] for name in names]) for summary, sentence, names in self.folds]
        return [(*fold, any(map(_is_seen, fold[2]))) for fold in folds]

    def present(self, error: BenchbenchError) -> None:
        """Show the error of a use case at the field that it names, else at the content, else above the form."""
        self.add_error(error.field if error.field in self.fields else self.content_field, error.message)

    @contextmanager
    def content(self, *options: str) -> Iterator[None]:
        """Show the errors of the block at the content, except those that name one of the fields in `options`.

        A key of the content may have the same name as a valid field of the form.
        """
        try:
            yield
        except BenchbenchError as error:
            if error.field not in options:
                error.field = self.content_field
            raise

    def faults(self, *, awaited: Sequence[str] = ()) -> list[FieldFaults]:
        """Return the errors of all fields, also valid ones; none for fields in `awaited` that are still empty."""
        fields = (field for field in self if field.name not in awaited or field.data)
        return [
            FieldFaults(field.html_name, str(field.label), [str(error) for error in field.errors]) for field in fields
        ]

    def choose(self, source: type[Model], name: str, *, through: str = "") -> None:
        """Let the field `name` search the visible rows of `source`'s foreign key of that name.

        `through` leads from these rows to the owned model that decides for them, as in `visible`.
        """
        foreign_key: Any = source._meta.get_field(name)
        field: Any = self.fields[name]
        field.widget = Lookup(foreign_key, self.site)
        field.queryset = visible(foreign_key.related_model._default_manager.all(), self.user, through=through)


def _is_seen(field: forms.BoundField) -> bool:
    value = field.value()
    return bool(field.errors) or (bool(value) and str(value) != str(field.field.initial))


F = TypeVar("F", bound=PageForm)


def show_form(
    request: HttpRequest,
    model_admin: ModelAdmin,
    form_class: type[F],
    act: Callable[[F], HttpResponse],
    *,
    title: str,
    submit: str,
    template: str = "admin/form_page.html",
    permitted: bool | None = None,
    initial: dict[str, object] | None = None,
    edited: Edited | None = None,
    **context: object,
) -> HttpResponse:
    """Show a form, and call `act` with a valid submission. Errors of `act` are shown at their fields.

    A form with files is sent as a part of its page, which stays, with its files, if they are refused. The query string
    gives initial values (`?collection=…`), `initial` the others; `edited` gives those of the row that the form changes.
    `permitted` replaces the check of the permission to add such rows.
    """
    if permitted is None:
        require_adding(request, model_admin)
    elif not permitted:
        raise PermissionDenied(describe_lack(f"{model_admin.opts.app_label}.change_{model_admin.opts.model_name}"))
    site = model_admin.admin_site
    with edited.locked(request) if edited else nullcontext():
        values = edited.read() if edited else {}
        form = form_class(
            request.POST if request.method == "POST" else None,
            request.FILES or None,
            user=staff(request),
            site=site,
            initial=(initial or {}) | request.GET.dict() | values,
        )
        if edited:
            form.start_merging(edited.row, values, author=edited.author)
        form.drop_bad_values()
        is_part = form.is_bound and form.is_multipart() and "HX-Request" in request.headers
        if form.is_valid():
            try:
                answer = act(form)
            except BenchbenchError as error:
                form.present(error)
            else:
                note_form(request, model_admin.model, answer, title)
                return HttpResponse(headers={"HX-Redirect": answer["Location"]}) if is_part else answer
    if is_part:
        return preview_page(request, "admin/refusal.html", form, dict)
    base_context = {"title": title, "form": form, "submit": submit, "opts": model_admin.opts, "media": form.media}
    base_context["keeps_files"] = form.is_multipart()
    return TemplateResponse(request, template, site.each_context(request) | base_context | context)


def read_form(request: HttpRequest, model_admin: ModelAdmin, form_class: type[F]) -> F:
    """Return a page's submitted form, for a preview. Raises PermissionDenied if the user may not add such rows."""
    require_adding(request, model_admin)
    return form_class(request.POST, request.FILES, user=staff(request), site=model_admin.admin_site)


def preview_page(
    request: HttpRequest,
    template: str,
    form: PageForm,
    look: Callable[[], Mapping[str, object]],
    *,
    awaited: Sequence[str] = (),
    unread: Sequence[str] = (),
    **context: object,
) -> HttpResponse:
    """Render a preview of an unsaved form: its errors, and the context from `look` if no field but `unread` has one.

    Errors that `look` raises are included; those of the content are in the preview, and not at its field. The template
    gets the errors and not the form. So a late preview contains no inputs and cannot overwrite what the user typed
    meanwhile. `awaited` are fields that may still be empty.
    """
    if not any(field.errors for field in form.faults(awaited=awaited) if field.name not in unread):
        try:
            context |= look()
        except BenchbenchError as error:
            form.present(error)
    fields = form.faults(awaited=awaited)
    errors = list(form.non_field_errors())
    inside = (form.content_field, *form.content_options)
    content = [field for field in fields if field.name in inside and field.errors]
    fields = [field for field in fields if field.name not in inside]
    faulty = [field for field in fields if field.errors]
    faults = {"fields": fields, "content": content, "faulty": faulty, "errors": errors, "remedy": form.remedy}
    return render(request, template, faults | {"wrong": errors or content or faulty} | context)


def render_choices(
    request: HttpRequest, model_admin: ModelAdmin, form_class: type[PageForm], changed: str, names: Sequence[str]
) -> HttpResponse:
    """Render the fields `names` of a form, whose choices depend on the field `changed`."""
    require_adding(request, model_admin)
    initial = {changed: request.GET.get(changed, "")}
    form = form_class(user=staff(request), site=model_admin.admin_site, initial=initial)
    return render(request, "admin/form_choices.html", {"fields": [form[name] for name in names]})


def find_next_page(request: HttpRequest, target: str) -> str:
    """Return the address that a form names as the next page, or "" if it is on another site."""
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if safe else ""
