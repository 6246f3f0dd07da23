"""Pages that add, reword and remove queries of a dataset, in its draft."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.datasets.editing.drafts import draft_of
from apps.datasets.editing.queries import OutdatedError, add_query, edit_query, remove_query, require_current
from apps.datasets.models import Query
from apps.datasets.query_forms import RECORDED, NewQueryForm, QueryForm
from benchbench.access import may_change
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import form_page, staff
from benchbench.site.panels import change_url

TEMPLATE = "datasets/query_form.html"


def add_to_dataset(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Add a query; its page, where documents are judged for it, comes next."""
    dataset: Any = model_admin.get_object(request, str(object_id))

    def act(form: NewQueryForm) -> HttpResponse:
        query = add_query(dataset, form.record(), judged_by=staff(request))
        messages.success(request, f"Added {query.key} to the draft. Next: judge documents for it.")
        return redirect(change_url(query))

    return form_page(
        request,
        model_admin,
        NewQueryForm,
        act,
        permitted=may_change(dataset, request.user),
        title="Add a query",
        submit="Add to the draft",
        template=TEMPLATE,
        draft=draft_of(dataset),
        trail=[dataset],
    )


def edit(request: HttpRequest, model_admin: SiteAdmin, query_id: int) -> HttpResponse:
    """Word a query anew, or remove it."""
    query: Any = model_admin.get_object(request, str(query_id))
    try:
        require_current(query)
    except OutdatedError as error:
        messages.error(request, error.message)
        return redirect(change_url(query))

    def act(form: QueryForm) -> HttpResponse:
        if form.removes:
            remove_query(query)
            messages.success(request, f"Removed {query.key} from the draft; earlier versions keep it.")
            return redirect(change_url(query.dataset))
        now = edit_query(query, form.changes(query))
        return redirect(change_url(now))

    return form_page(
        request,
        model_admin,
        QueryForm,
        act,
        permitted=may_change(query.dataset, request.user),
        title=f"Edit the query {query.key}",
        submit="Save in the draft",
        template=TEMPLATE,
        initial=_stated(query),
        query=query,
        draft=draft_of(query.dataset),
        trail=[query.dataset, query],
    )


def _stated(query: Query) -> dict[str, Any]:
    """Return what the fields of the form are for `query`."""
    return {name: getattr(query, RECORDED.get(name, name)) for name in QueryForm.base_fields}
