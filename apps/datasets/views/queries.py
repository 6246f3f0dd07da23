"""Pages that add, reword and remove queries of a dataset, in its draft."""

import json
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.datasets.editing.drafts import find_draft
from apps.datasets.editing.queries import OutdatedError, add_query, edit_query, remove_query, require_current
from apps.datasets.forms import RemovableForm
from apps.datasets.models import Query
from apps.datasets.records import LENGTHS, SLICE_LENGTH, QueryRecord
from benchbench.access import may_change, staff
from benchbench.database.failures import read_again
from benchbench.errors import BenchbenchError
from benchbench.ir.demand import GREATEST_WEIGHT, LEAST_WEIGHT
from benchbench.reading import strict_json
from benchbench.site.admin import SiteAdmin
from benchbench.site.merging import Edited
from benchbench.site.pages import Sections, find_next_page, show_form
from benchbench.site.panels import change_url

FACTS = ("category", "difficulty", "query_type", "split")
RECORDED = {"query_key": "key", "query_text": "text"}  # fields with another name in records


class Prose(forms.CharField):
    """Field for verbatim text. Browsers change its line ends, which alone does not count as a change."""

    def __init__(self, *, rows: int, **kwargs: Any) -> None:
        super().__init__(widget=forms.Textarea({"rows": rows}), strip=False, **kwargs)

    def to_python(self, value: object) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")

    def has_changed(self, initial: object, data: object) -> bool:
        return self.to_python(self.prepare_value(initial)) != self.to_python(data)


class Lines(Prose):
    """Field for a list of names, one per line."""

    def prepare_value(self, value: object) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: object) -> list[str]:
        names = [line.strip() for line in self.to_python(value).split("\n") if line.strip()]
        for name in names:
            if len(name) > SLICE_LENGTH:
                raise forms.ValidationError(f"“{name[:40]}…” has more than {SLICE_LENGTH} characters.")
        return names


class JSONText(Prose):
    """Field for a JSON value of one type; empty text means the empty value of that type."""

    def __init__(self, type_: type, **kwargs: Any) -> None:
        self.type = type_
        super().__init__(rows=3, required=False, **kwargs)

    def prepare_value(self, value: object) -> Any:
        if isinstance(value, str):
            return value  # as it was typed
        return json.dumps(value, indent=2, ensure_ascii=False) if value else ""

    def clean(self, value: object) -> Any:
        text = self.to_python(value)
        if not text.strip():
            return self.type()
        try:
            parsed = strict_json.parse(text, location="The value")
        except BenchbenchError as error:
            raise forms.ValidationError(error.message) from None
        if not isinstance(parsed, self.type):
            expected = strict_json.kind(self.type())
            raise forms.ValidationError(f"This is {strict_json.kind(parsed)}; it must be {expected}.")
        return parsed


def _build_field(name: str, help_text: str, **kwargs: Any) -> forms.CharField:
    return forms.CharField(
        max_length=LENGTHS[name],
        help_text=help_text,
        **{"required": False} | kwargs,
    )


class QueryForm(RemovableForm):
    """The fields of a query. Its errors name them as the API does."""

    needed = "query_text"
    sections: ClassVar[Sections] = (
        ("", "", ("query_text", "expected_answer", "notes")),
        ("Slices of results", "", ("slices", *FACTS, "weight")),
        ("For programs", "As JSON. Optional.", ("filters", "evidence", "metadata")),
    )

    query_text = Prose(rows=2, label="Query", help_text="The question, as a user would write it.")
    expected_answer = Prose(rows=2, required=False, help_text="A good answer; retrieved texts are compared with it.")
    notes = Prose(rows=2, required=False, help_text="For later readers of the dataset.")
    slices = Lines(rows=3, required=False, help_text="Names of groups that it belongs to, each on a line of its own.")
    category = _build_field("category", "Such as how-to.")
    difficulty = _build_field("difficulty", "Such as easy.")
    query_type = _build_field("query_type", "Such as factual.")
    split = _build_field("split", "Such as test.")
    weight = forms.FloatField(
        required=False,
        min_value=LEAST_WEIGHT,
        max_value=GREATEST_WEIGHT,
        help_text="The demand that it stands for, such as how often it was asked; 1 if blank.",
    )
    filters = JSONText(dict, help_text='Metadata that a document must have to be found: {"version": "3.11"}.')
    evidence = JSONText(list, help_text='Passages that hold the answer: ["It is free."].')
    metadata = JSONText(dict, help_text="Anything else, kept as it is.")

    def clean_weight(self) -> float:
        weight: float | None = self.cleaned_data["weight"]
        return 1.0 if weight is None else weight

    def get_values(self) -> dict[str, Any]:
        """Return the form's values, under the names of a record."""
        return {RECORDED.get(name, name): value for name, value in self.cleaned_data.items() if name in self.data}

    def find_changes(self) -> dict[str, Any]:
        """Return the values that the user changed."""
        names = {RECORDED.get(name, name): name for name in self.fields}
        return {name: value for name, value in self.get_values().items() if names[name] in self.changed_data}


class NewQueryForm(QueryForm):
    """Form for a new query."""

    sections: ClassVar[Sections] = (("", "", ("query_key", *QueryForm.sections[0][2])), *QueryForm.sections[1:])

    query_key = _build_field(
        "key", "Names the query in all versions, in files and in runs. It never changes.", required=True
    )

    def record(self) -> QueryRecord:
        return QueryRecord(**self.get_values())


TEMPLATE = "datasets/query_form.html"


def add_to_dataset(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Add a query, then show its page or that of `?next=`, where documents are judged for it."""
    dataset: Any = model_admin.get_object(request, str(object_id))

    def act(form: NewQueryForm) -> HttpResponse:
        query = add_query(dataset, form.record(), judged_by=staff(request))
        messages.success(request, f"Added {query.key} to the draft. Next: judge documents for it.")
        return redirect(find_next_page(request, request.GET.get("next", "")) or change_url(query))

    return show_form(
        request,
        model_admin,
        NewQueryForm,
        act,
        permitted=may_change(dataset, request.user),
        title="Add a query",
        submit="Add to the draft",
        template=TEMPLATE,
        draft=find_draft(dataset),
        trail=[dataset],
    )


def edit(request: HttpRequest, model_admin: SiteAdmin, query_id: int) -> HttpResponse:
    """Reword a query, or remove it."""
    query: Any = model_admin.get_object(request, str(query_id))
    try:
        require_current(query)
    except OutdatedError as error:
        messages.error(request, error.message)
        return redirect(change_url(query))

    def read() -> dict[str, Any]:
        now = read_again(Query.objects.all(), query.pk)
        return {name: getattr(now, RECORDED.get(name, name)) for name in QueryForm.base_fields}

    def act(form: QueryForm) -> HttpResponse:
        if form.removes:
            remove_query(query)
            messages.success(request, f"Removed {query.key} from the draft; earlier versions keep it.")
            return redirect(change_url(query.dataset))
        now = edit_query(query, form.find_changes())
        return redirect(change_url(now))

    return show_form(
        request,
        model_admin,
        QueryForm,
        act,
        permitted=may_change(query.dataset, request.user),
        title=f"Edit the query {query.key}",
        submit="Save in the draft",
        template=TEMPLATE,
        edited=Edited(query, query.dataset, read),
        query=query,
        draft=find_draft(query.dataset),
        trail=[query.dataset, query],
    )
