"""Pages about mappings."""

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.mappings.creating import create_mapping
from apps.mappings.forms import MappingForm
from apps.mappings.models import Mapping
from apps.mappings.resolving import Resolved, resolve
from benchbench.site.pages import form_page, staff
from benchbench.site.panels import change_url


def add_mapping(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: MappingForm) -> HttpResponse:
        values = form.cleaned_data
        with transaction.atomic():
            mapping = create_mapping(values["dataset"], values["collection"], name=values["name"], owner=staff(request))
            resolved = resolve(mapping, by=staff(request))
        messages.success(request, sentence(resolved))
        return redirect(change_url(mapping))

    return form_page(
        request,
        model_admin,
        MappingForm,
        act,
        title="Map a dataset to a collection",
        submit="Map and resolve",
        intro="A mapping finds for each judgment of the dataset its document in the collection, or says "
        "why there is none.",
    )


def sentence(resolved: Resolved) -> str:
    """Say what came of resolving, and what to do next."""
    mapping = resolved.mapping
    if resolved.operation is not None:
        return f'"{mapping}" is large: it is being resolved on the queue, and this page shows how far that is.'
    summary = f"{mapping.mapped_count:,} of {mapping.total_count:,} judgments found their document."
    if mapping.status == Mapping.Status.RESOLVED:
        return f"{summary} Next: make a benchmark."
    return f"{summary} The others, listed on the page of the mapping, count as documents that cannot be found."
