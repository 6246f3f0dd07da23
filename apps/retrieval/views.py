"""Pages about indexes."""

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.retrieval.forms import IndexForm
from apps.retrieval.indexing import build_index, create_index
from benchbench.site.pages import form_page, staff
from benchbench.site.panels import change_url


def add_index(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: IndexForm) -> HttpResponse:
        values = form.cleaned_data
        with transaction.atomic():
            index = create_index(
                values["collection"],
                name=values["name"],
                encoder=values["encoder"],
                strategy=values["strategy"] or "flat",
                chunk_parameters=form.parameters,
                llm=values["llm"],
                llm_parameters={"provider": values["llm_server"]} if values["llm"] else {},
                lexical=values["lexical"],
                owner=staff(request),
            )
            build_index(index, by=staff(request))
        messages.success(request, f'The index "{index}" is being built by a worker; this page shows how far it is.')
        return redirect(change_url(index))

    return form_page(
        request,
        model_admin,
        IndexForm,
        act,
        title="Build an index",
        submit="Create and build",
        intro="An index makes a collection searchable in one way. Make several, and a benchmark compares them.",
    )
