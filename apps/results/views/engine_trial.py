"""The page that asks a declared search engine once, and its answer, which a worker brings."""

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.engines.declarations import load_declarations
from apps.operations.queueing import QUICK
from apps.operations.waiting import describe_workers
from apps.results.trying import EngineTrial, request_answer
from benchbench.access import staff
from benchbench.errors import BenchbenchError
from benchbench.names import MAX_LENGTH
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm


class EngineTrialForm(PageForm):
    """A query and the engine to ask."""

    engine = forms.ChoiceField()
    q = forms.CharField(max_length=MAX_LENGTH, label="Query")

    def __init__(self, *args: Any, aliases: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["engine"].choices = [(alias, alias) for alias in aliases]  # type: ignore[attr-defined]


def engine_trial_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Render the form. A POST asks the engine through a worker, and renders the answer once it is there."""
    if not (model_admin.has_view_permission(request) and request.user.has_perm("benchmarks.add_benchmark")):
        raise PermissionDenied
    aliases, problem = [], ""
    try:
        aliases = list(load_declarations().engines)
    except BenchbenchError as error:
        problem = error.message
    form = EngineTrialForm(request.POST or None, user=staff(request), aliases=aliases, initial=request.GET.dict())
    if request.method != "POST":
        context = {"title": "Try an engine", "form": form, "has_engines": bool(aliases), "problem": problem}
        return model_admin.render_page(request, "results/engine_trial.html", context)
    if not form.is_valid():
        return render(request, "results/engine_answer.html", {"problem": " ".join(_list_errors(form))})
    progress = request_answer(EngineTrial(form.cleaned_data["engine"], form.cleaned_data["q"]))
    is_stuck = not progress.answer and not progress.is_waiting
    context = {"answer": progress.answer, "problem": describe_workers(QUICK) if is_stuck else "", "asks": True}
    return render(request, "results/engine_answer.html", context)


def _list_errors(form: forms.Form) -> list[str]:
    return [f"{form[name].label}: {error}" for name, errors in form.errors.items() for error in errors]
