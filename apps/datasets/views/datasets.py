"""Pages that upload, download and freeze a dataset."""

import uuid
from collections.abc import Callable
from typing import IO, Any, cast
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin
from django.db.models import Count, Max, Min, Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.datasets.editing.differences import KINDS, Difference
from apps.datasets.editing.drafts import build_difference, find_draft, freeze
from apps.datasets.exporting import DatasetExport, export_record, record_of
from apps.datasets.formats.registry import WRITERS
from apps.datasets.forms import DatasetForm, FreezeForm, QueriesForm
from apps.datasets.importing import DatasetImport, import_dataset
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.uploading import upload_turn
from apps.datasets.versions import add_counts
from benchbench.access import may_change, staff
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.site.admin import SiteAdmin
from benchbench.site.downloads import attachment
from benchbench.site.pages import find_next_page, preview_page, read_form, show_form
from benchbench.site.panels import build_list_url, change_url

SHOWN_VERSIONS = 6


def describe_dataset(dataset: Dataset) -> dict[str, object]:
    """Return what the page of a dataset shows: its newest frozen version, or its draft, and what that holds.

    `grades` and `splits` count judgments by grade, highest first, and queries by split. `versions` pairs each of the
    newest versions with the totals of its difference from the one before. `weights` has the least and greatest weight.
    """
    versions = list(dataset.versions.select_related("dataset")[: SHOWN_VERSIONS + 1])
    newest = dataset.versions.exclude(frozen_at=None).select_related("dataset").first()
    described = newest or (versions[0] if versions else None)
    return {
        "newest": newest,
        "writers": WRITERS,
        "described": described and add_counts(described),
        "grades": described and _count_shares(described.judgments, "-grade"),
        "splits": described and _count_shares(described.queries, "split"),
        "weights": described and described.queries.aggregate(least=Min("weight"), most=Max("weight")),
        "versions": [(add_counts(version), _load_totals(version)) for version in versions[:SHOWN_VERSIONS]],
        "every_version": build_list_url(DatasetVersion, dataset__id__exact=dataset.pk)
        if len(versions) > SHOWN_VERSIONS
        else "",
    }


def _load_totals(version: DatasetVersion) -> dict[str, int]:
    """Return the totals of a version's difference from the one before it; {} for the first."""
    return build_difference(version).totals if version.number > 1 else {}


def _count_shares(rows: QuerySet[Model], field: str) -> list[tuple[object, int, float]]:
    """Return each value of a field with the number and share of the rows that have it."""
    counts = rows.order_by(field).values_list(field.lstrip("-")).annotate(number=Count("pk"))
    pairs = list(counts)
    total = sum(number for _, number in pairs)
    return [(value, number, number / total) for value, number in pairs]


def download(request: HttpRequest, make: Callable[[], DatasetExport], *, back: str) -> HttpResponseBase:
    """Answer with the export that `make` returns, or redirect to `back` with the error as a message.

    Warnings, such as content that the format cannot hold, are shown on the next page.
    """
    try:
        export = make()
        answer = attachment(export.write, export.name, export.writer.content_type)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect(back)
    for warning in export.warnings:
        messages.warning(request, f"{export.name}: {warning}")
    return answer


def download_version(
    request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID, format: str
) -> HttpResponseBase:
    """Answer with a version in one of the formats, or redirect to its page with the error."""
    version: DatasetVersion = model_admin.load_viewed(request, object_id)
    if format not in WRITERS:
        raise Http404
    return download(request, lambda: _export_version(version, format), back=change_url(version))


def _export_version(version: DatasetVersion, format: str) -> DatasetExport:
    return export_record(record_of(version), format, name=f"{version.dataset.name}-v{version.number}")


def build_export(dataset: Dataset, format: str) -> tuple[str, Callable[[IO[bytes]], None]]:
    """Return the file name of a dataset's newest frozen version in a format, and what writes the file."""
    version = dataset.versions.exclude(frozen_at=None).first()
    if version is None:
        raise ConflictError("It has no frozen version: freeze its draft first.")
    export = _export_version(version, format)
    return export.name, export.write


MAX_ROWS = 50


def freeze_draft(
    request: HttpRequest,
    model_admin: SiteAdmin,
    object_id: UUID,
    *,
    finish: Callable[[DatasetVersion], HttpResponse],
    then: Callable[[DatasetVersion], str],
) -> HttpResponse:
    """Show the draft's changes and freeze it; if it was edited since, show the changes again.

    A second button only freezes; the first calls `finish` with the version and returns its answer. `then` describes
    what that will do; "" if it has nothing to do.
    """
    dataset: Any = model_admin.get_object(request, str(object_id))
    permitted = may_change(dataset, staff(request))
    draft = find_draft(dataset)
    if draft is None and permitted:
        messages.info(request, f'"{dataset}" has no draft to freeze: nothing was edited since its newest version.')
        return redirect(change_url(dataset))

    def act(form: FreezeForm) -> HttpResponse:
        values = form.cleaned_data
        digest = request.POST.get("digest", "") or "nothing"
        version = freeze(dataset, label=values["label"], note=values["note"], digest=digest)
        messages.success(request, f"{version} is frozen and never changes again.")
        if "finish" in request.POST:
            return finish(version)
        return redirect(find_next_page(request, values["next"]) or change_url(dataset))

    difference = build_difference(draft) if draft and permitted else None
    consequences = then(draft) if draft and permitted else ""
    return show_form(
        request,
        model_admin,
        FreezeForm,
        act,
        permitted=permitted,
        title=f"Freeze version {draft.number} of {dataset}" if draft else "",
        submit="Freeze, resolve, re-score" if consequences else "Freeze for good",
        intro=f"The draft holds {difference.counts().sentence}. Frozen, it never changes again. {consequences}"
        if difference
        else "",
        template="datasets/freeze.html",
        difference=difference,
        consequences=consequences,
        differing=list_tables(request, difference) if difference else [],
        trail=[dataset],
    )


def list_tables(request: HttpRequest, difference: Difference) -> list[dict[str, object]]:
    """Return the tables of the rows that differ, each with the first rows of its kind, annotated as in their list."""
    tables = [(kind, title, getattr(difference, kind)) for kind, title in KINDS.items()]
    return [
        {
            "kind": kind,
            "title": title,
            "total": total,
            "rows": cast(SiteAdmin, admin.site.get_model_admin(rows.model)).annotate_rows(request, rows)[:MAX_ROWS],
        }
        for kind, title, rows in tables
        if (total := difference.totals[kind])
    ]


def has_preview(request: HttpRequest) -> bool:
    """Return whether the reader saw a form's preview, and its warnings, which needs scripts."""
    return "HX-Request" in request.headers


def upload_dataset(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: DatasetForm) -> HttpResponse:
        values = form.cleaned_data
        with upload_turn():
            imported = import_dataset(
                form.record(), description=values["description"], owner=staff(request), **form.get_target()
            )
        messages.success(request, _describe_import(imported))
        for warning in () if has_preview(request) else imported.report.warnings:
            messages.warning(request, warning)
        return redirect(change_url(imported.version.dataset))

    return show_form(
        request,
        model_admin,
        DatasetForm,
        act,
        title="Upload a dataset",
        submit="Import",
        intro="A dataset holds queries and relevance judgments; a mapping connects it to a collection later.",
        template="datasets/form.html",
    )


@require_POST
def preview_dataset(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Answer the unsaved form with the content of its file, or with its errors; nothing is stored."""
    form = read_form(request, model_admin, DatasetForm)

    return preview_queries(request, form, submit="Import")


def preview_queries(request: HttpRequest, form: QueriesForm, *, submit: str = "") -> HttpResponse:
    """Answer a form with the content of its files of queries; nothing is stored."""
    awaited = () if form.source in request.FILES else (form.source,)
    look = form.preview if form.is_valid() else dict
    return preview_page(
        request, "datasets/preview.html", form, look, awaited=awaited, choices=form.choices, submit=submit
    )


def _describe_import(imported: DatasetImport) -> str:
    """Return the result of an import and the next step, in a sentence."""
    version, report = imported.version, imported.report
    if report.outcome == "unchanged":
        return f"{version} holds exactly this already: nothing was changed."
    suffix = f" ({report.extra_counts})" if report.extra_counts else ""
    return (
        f"Imported {counted(version.query_count, 'query')} with {counted(version.judgment_count, 'judgment')} "
        f"as {version}{suffix}. Next: map the dataset to the collection of its documents."
    )
