"""The page that freezes a draft: what it changes, and then the act."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.datasets.editing.differences import Difference
from apps.datasets.editing.drafts import difference_of, draft_of, freeze
from apps.datasets.forms import FreezeForm
from benchbench.access import may_change
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import form_page, next_page, staff
from benchbench.site.panels import change_url

SHOWN = 50
TITLES = {
    "judgments_added": "Judgments added",
    "judgments_changed": "Judgments changed",
    "judgments_removed": "Judgments removed",
    "queries_added": "Queries added, with their judgments",
    "queries_changed": "Queries reworded or described differently",
    "queries_removed": "Queries removed, with their judgments",
}


def freeze_draft(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Show what the draft changes, and freeze what was shown: where it was edited since, show it again."""
    dataset: Any = model_admin.get_object(request, str(object_id))
    permitted = may_change(dataset, staff(request))
    draft = draft_of(dataset)
    if draft is None and permitted:
        messages.info(request, f'"{dataset}" has no draft to freeze: nothing was edited since its newest version.')
        return redirect(change_url(dataset))

    def act(form: FreezeForm) -> HttpResponse:
        values = form.cleaned_data
        seen = request.POST.get("seen", "") or "nothing"
        version = freeze(dataset, label=values["label"], note=values["note"], seen=seen)
        messages.success(request, f"{version} is frozen and never changes again.")
        return redirect(next_page(request, values["next"]) or change_url(dataset))

    difference = difference_of(draft) if draft and permitted else None
    return form_page(
        request,
        model_admin,
        FreezeForm,
        act,
        permitted=permitted,
        title=f"Freeze version {draft.number} of {dataset}" if draft else "",
        submit="Freeze for good",
        intro=f"The draft holds {difference.counts().sentence}. Once it is frozen it never changes again."
        if difference
        else "",
        template="datasets/freeze.html",
        difference=difference,
        tables=tables_of(difference) if difference else [],
        trail=[dataset],
    )


def tables_of(difference: Difference) -> list[dict[str, Any]]:
    """Return what differs, by kind: how many there are, and the first of them."""
    return [
        {"kind": kind, "title": title, "total": total, "rows": getattr(difference, kind)[:SHOWN]}
        for kind, title in TITLES.items()
        if (total := difference.totals[kind])
    ]
