"""Pages about indexes."""

import json
from dataclasses import asdict

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST, require_safe

from apps.retrieval.encoders.prompts import describe_unset_prompts, find_unset_prompts
from apps.retrieval.forms import GridForm, IndexForm
from apps.retrieval.grids import make_grid, plan_grid
from apps.retrieval.indexing import build_index, create_index
from benchbench.access import require, staff
from benchbench.decimals import counted
from benchbench.ir.encoding import EncoderParameters
from benchbench.site.pages import preview_page, read_form, show_form
from benchbench.site.panels import change_url

AWAITED = ("collection",)


def add_index(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: IndexForm) -> HttpResponse:
        values = form.cleaned_data
        with transaction.atomic():
            index = create_index(
                values["collection"],
                name=values["name"],
                encoder=values["encoder"],
                **asdict(form.encoder_parameters),
                strategy=values["strategy"] or "flat",
                chunk_parameters=form.parameters,
                llm=values["llm"],
                llm_parameters={"provider": values["llm_server"]} if values["llm"] else {},
                lexical=values["lexical"],
                owner=staff(request),
            )
            build_index(index, by=staff(request))
        messages.success(request, f'The index "{index}" will be built by a worker; this page shows the progress.')
        return redirect(change_url(index))

    return show_form(
        request,
        model_admin,
        IndexForm,
        act,
        title="Build an index",
        submit="Create and build",
        intro=format_html(
            'An index makes a collection searchable in one way. To compare several, <a href="{}">build all '
            "combinations at once</a>.",
            reverse("admin:index_grid"),
        ),
    )


@require_safe
def offer_prompts(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer a form with the usual prompts of its encoder that it lacks."""
    require(request.user, "retrieval.add_index")
    encoder, *prompts = (request.GET.get(name, "") for name in ("encoder", "query_prompt", "document_prompt"))
    unset = find_unset_prompts(encoder, EncoderParameters(*prompts))
    sentences = [describe_unset_prompts(encoder, unset)] if unset else []
    context = {"offer": {"sentences": sentences, "usual": json.dumps(unset)}}
    return render(request, "retrieval/prompts.html", context)


def add_grid(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Create the missing indexes of all combinations of strategies and encoders."""

    def act(form: GridForm) -> HttpResponse:
        collection = form.cleaned_data["collection"]
        builds = make_grid(collection, form.grid, owner=staff(request), by=staff(request))
        building = sum(item.operation is not None for item in builds)
        suffix = f"; {counted(len(builds) - building, 'index')} already ready" if building < len(builds) else ""
        messages.success(request, f"{counted(building, 'index')} queued for workers{suffix}.")
        return redirect(change_url(collection))

    return show_form(
        request,
        model_admin,
        GridForm,
        act,
        title="Build several indexes",
        submit="Create and build",
        intro="Builds each strategy with each model. Existing indexes are reused; new ones are named by their parts.",
        template="retrieval/grid.html",
    )


@require_POST
def preview_grid(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Render the existing and the new indexes of the partly filled form."""
    form = read_form(request, model_admin, GridForm)

    def look() -> dict[str, object]:
        collection, offer = form.cleaned_data.get("collection"), form.offer_prompts()
        cells = plan_grid(collection, form.grid, owner=staff(request)) if collection else []
        return {"cells": cells, "offer": offer}

    return preview_page(request, "retrieval/grid_preview.html", form, look, awaited=AWAITED)
