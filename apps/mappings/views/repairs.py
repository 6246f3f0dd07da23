"""The page that repairs a judgment without a document."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.collections.models import Document
from apps.mappings.models import Mapping, Resolution
from apps.mappings.repairing.repairs import candidates, drop, repoint
from benchbench.access import may_change, visible
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import staff
from benchbench.site.panels import change_url


def repair(request: HttpRequest, model_admin: SiteAdmin, object_id: int) -> HttpResponse:
    """Show the documents that a judgment might mean, or those that `?q=` finds; point it at one, or drop it."""
    rows = Resolution.objects.select_related("judgment__query", "mapping__dataset", "mapping__collection")
    resolution = visible(rows, request.user, through="mapping").filter(pk=object_id).first()
    if resolution is None:
        raise Http404(f"There is no resolution {object_id} that you may see.")
    mapping, judgment = resolution.mapping, resolution.judgment
    if not may_change(mapping.dataset, request.user):
        raise PermissionDenied
    if resolution.outcome == Resolution.Outcome.RESOLVED:
        return redirect(change_url(resolution))
    documents = visible(Document.objects.filter(collection=mapping.collection), request.user, through="collection")
    if request.method == "POST":
        try:
            messages.success(request, _act(request, resolution, documents.filter(pk=_chosen(request)).first()))
            return redirect(change_url(mapping))
        except BenchbenchError as error:
            messages.error(request, error.message)
    term = request.GET.get("q", "").strip().replace("\0", "")
    elsewhere = Resolution.objects.filter(judgment=judgment, outcome=Resolution.Outcome.RESOLVED)
    context = {
        "title": "Repair a judgment",
        "trail": [mapping.dataset, mapping],
        "resolution": resolution,
        "mapping": mapping,
        "judgment": judgment,
        "term": term,
        "candidates": candidates(documents, judgment.doc_ref, term=term),
        "elsewhere": visible(Mapping.objects.filter(pk__in=elsewhere.values("mapping")), request.user),
    }
    return model_admin.page(request, "mappings/repair.html", context)


def _chosen(request: HttpRequest) -> int:
    """Return the primary key of the document that was chosen, 0 where none was."""
    asked = request.POST.get("document", "")
    return int(asked) if asked.isdecimal() and len(asked) < 19 else 0


def _act(request: HttpRequest, resolution: Resolution, document: Document | None) -> str:
    """Do what was pressed, and say what was done and what comes next."""
    mapping, judgment = resolution.mapping, resolution.judgment
    if "drop" in request.POST:
        drop(mapping, judgment)
        done = f"Dropped the judgment of {judgment.reference[:100]} for {judgment.query.key}"
    elif document is None:
        raise BenchbenchError("Choose a document of the collection.")
    else:
        repoint(mapping, judgment, document, by=staff(request))
        done = f"The judgment of {judgment.reference[:100]} for {judgment.query.key} is of {document.external_id} now"
    return f"{done}, in the draft. Freeze it when you are done, and resolve the mapping again."
