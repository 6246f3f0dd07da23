"""Pages of mappings: creating one, exporting its dataset, repairing a judgment."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from apps.collections.models import Collection, Document
from apps.datasets.formats.registry import WRITERS
from apps.datasets.models import Dataset
from apps.datasets.views.datasets import download
from apps.mappings.creating import create_mapping, ensure_external
from apps.mappings.exporting import export_dataset
from apps.mappings.models import Mapping, Resolution
from apps.mappings.repairing import drop, find_candidates, repoint
from apps.mappings.resolving import Resolved, resolve
from benchbench.access import AnyUser, describe_lack, may_change, may_view, staff, visible
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm, show_form
from benchbench.site.panels import change_url, render_value


class MappingForm(PageForm):
    dataset = forms.ModelChoiceField(Dataset.objects.none(), help_text="The judged queries.")
    collection = forms.ModelChoiceField(
        Collection.objects.none(),
        required=False,
        empty_label="Ids alone: the documents are not here",
        help_text="The documents to search. Ids alone suffice for search engines and imported runs.",
    )
    name = forms.CharField(
        max_length=200,
        required=False,
        help_text="Empty: the names of the dataset and the collection.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(Mapping, "dataset")
        self.choose(Mapping, "collection")


def add_mapping(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: MappingForm) -> HttpResponse:
        values = form.cleaned_data
        if values["collection"] is None:
            with transaction.atomic():
                return redirect(change_url(ensure_external(values["dataset"])))
        with transaction.atomic():
            mapping = create_mapping(values["dataset"], values["collection"], name=values["name"], owner=staff(request))
            resolved = resolve(mapping, by=staff(request))
        messages.success(request, describe_outcome(resolved, is_below=True))
        return redirect(change_url(mapping))

    return show_form(
        request,
        model_admin,
        MappingForm,
        act,
        title="Map a dataset to a collection",
        submit="Map and resolve",
        intro="A mapping matches each judgment of the dataset to its document in the collection, or "
        "gives the reason if none matches.",
    )


def describe_outcome(resolved: Resolved, *, is_below: bool = False) -> str:
    """Return the outcome of resolving and the next step, as a message; without the counts where they are below it."""
    mapping = resolved.mapping
    if resolved.operation is not None:
        return f'"{mapping}" is large, so a worker resolves it. This page shows the progress.'
    counts = f"{mapping.mapped_count:,} of {mapping.total_count:,} judgments have a document."
    if mapping.status == Mapping.Status.RESOLVED:
        return f"{counts} Next: create a benchmark."
    missing = "Judgments without a document count as not found: repair them, or go on."
    return missing if is_below else f"{counts} {missing}"


def may_download(mapping: Mapping, user: AnyUser) -> bool:
    """Return whether a user may have the files of a mapping, which reveal its documents and its whole dataset."""
    return may_view(mapping.collection, user) and may_view(mapping.dataset, user)


def download_mapped(
    request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID, format: str
) -> HttpResponseBase:
    """Return a download of the version that a mapping is resolved for; in the format BEIR it includes the corpus.

    If the export fails, redirect to the mapping's page, which shows the reason.
    """
    mapping: Mapping = model_admin.load_viewed(request, object_id)
    if mapping.dataset_version is None or format not in WRITERS:
        raise Http404
    if not may_download(mapping, request.user):
        raise PermissionDenied("The files of a mapping are for users who see its collection and its dataset.")
    version = mapping.dataset_version
    return download(request, lambda: export_dataset(version, format, mapping=mapping), back=change_url(mapping))


def repair(request: HttpRequest, model_admin: SiteAdmin, object_id: int) -> HttpResponse:
    """Show the documents that a judgment may mean or that `?q=` finds; on POST, repoint or drop the judgment."""
    rows = Resolution.objects.at(None).select_related("judgment__query", "mapping__dataset", "mapping__collection")
    resolution = visible(rows, request.user, through="mapping").filter(pk=object_id).first()
    if resolution is None:
        raise Http404(f"Resolution {object_id} was not found, or you may not view it.")
    mapping, judgment = resolution.mapping, resolution.judgment
    if not may_change(mapping.dataset, request.user):
        raise PermissionDenied(describe_lack("datasets.change_dataset"))
    if resolution.outcome == Resolution.Outcome.RESOLVED:
        return redirect(change_url(resolution))
    documents = visible(Document.objects.filter(collection=mapping.collection), request.user, through="collection")
    if request.method == "POST":
        try:
            messages.success(
                request, _apply_repair(request, resolution, documents.filter(pk=_parse_chosen(request)).first())
            )
            return redirect(change_url(mapping))
        except BenchbenchError as error:
            messages.error(request, error.message)
    term = request.GET.get("q", "").strip().replace("\0", "")
    elsewhere = Resolution.objects.at(None).filter(judgment=judgment, outcome=Resolution.Outcome.RESOLVED)
    context = {
        "title": "Repair a judgment",
        "trail": [mapping.dataset, mapping],
        "resolution": resolution,
        "mapping": mapping,
        "judgment": judgment,
        "reference": render_value(judgment.doc_ref),
        "term": term,
        "candidates": find_candidates(documents, judgment.doc_ref, term=term),
        "elsewhere": visible(Mapping.objects.filter(pk__in=elsewhere.values("mapping")), request.user),
    }
    return model_admin.render_page(request, "mappings/repair.html", context)


def _parse_chosen(request: HttpRequest) -> int:
    """Return the primary key of the chosen document, or 0 without one."""
    document_id = request.POST.get("document", "")
    return int(document_id) if document_id.isdecimal() and len(document_id) < 19 else 0


def _apply_repair(request: HttpRequest, resolution: Resolution, document: Document | None) -> str:
    """Drop or repoint the judgment as the form says, and return a message with the next step."""
    mapping, judgment = resolution.mapping, resolution.judgment
    if "drop" in request.POST:
        drop(mapping, judgment)
        result = f"Removed the judgment of {judgment.reference[:100]} for {judgment.query.key}"
    elif document is None:
        raise BenchbenchError("Choose a document of the collection.")
    else:
        repoint(mapping, judgment, document, by=staff(request))
        result = f"The judgment of {judgment.reference[:100]} for {judgment.query.key} now names {document.external_id}"
    return f"{result}, in the draft. Freeze it when you are done, and resolve the mapping again."
