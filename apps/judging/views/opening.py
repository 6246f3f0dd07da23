"""The form that opens a round, with a preview of the number of pairs and the time that judging takes."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.judging.judges import list_eligible_judges
from apps.judging.models import Round
from apps.judging.opening import RoundOptions, open_round, preview_round
from apps.judging.scales import LONGEST_GUIDELINES, read_scale
from apps.mappings.models import Mapping
from apps.records.measuring.alternatives import keep_alternatives
from apps.records.models import Run
from benchbench.access import AnyUser, staff, visible
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.ir.judging.orders import SHARE
from benchbench.models import leave_out_archived
from benchbench.reading.ids import parse_uuid
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm, preview_page, read_form, render_choices, show_form
from benchbench.site.panels import change_url

MOST_RUNS = 200
MOST_JUDGES = 500
AWAITED = ("mapping", "runs", "name", "judges")
ORDERS = {
    "decisive": "decisive: pairs that could change the differences most come first",
    "depth": "depth: pairs ranked highest by any run come first, as in TREC pools",
    "random": "random: uniformly at random",
    "queries": "queries: whole queries, in a random order",
}


class OpenForm(PageForm):
    """Form for a new round."""

    mapping = forms.ModelChoiceField(Mapping.objects.none(), empty_label="Choose a resolved mapping")
    runs = forms.MultipleChoiceField(help_text="Judges grade the unjudged documents at the top of these rankings.")
    name = forms.CharField(max_length=200)
    judges = forms.MultipleChoiceField(required=False, help_text="None selected: only you.")
    guidelines = forms.CharField(
        required=False,
        max_length=LONGEST_GUIDELINES,
        widget=forms.Textarea({"rows": 4}),
        help_text="Instructions for the judges, in Markdown.",
    )
    scale = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 4, "placeholder": "0 Not relevant: about something else\n1 Relevant"}),
        help_text="One grade per line: “2 Relevant: answers most of it”. Empty: 0 to the dataset's highest grade.",
    )
    order = forms.ChoiceField(choices=list(ORDERS.items()))
    measure = forms.CharField(required=False, help_text="The measure to settle. Empty: nDCG at primary k.")
    depth = forms.IntegerField(required=False, help_text="Documents pooled per ranking. Empty: the measure's cutoff.")
    budget = forms.IntegerField(required=False, help_text="Maximum number of items. Empty: all.")
    uniform_share = forms.FloatField(
        initial=SHARE, help_text="Share of the items drawn uniformly at random, from 0 to 1."
    )
    overlap = forms.FloatField(
        initial=0.0, help_text="Share of the items that several judges grade, to measure agreement; 0 to 1."
    )
    overlap_judges = forms.IntegerField(initial=2, help_text="Number of judges per shared item.")
    blind = forms.BooleanField(
        required=False, initial=True, help_text="While the round is open, judges see neither runs nor others' grades."
    )
    seed = forms.IntegerField(initial=42, help_text="Seed of the random draws.")

    sections = (
        ("What is judged", "", ("mapping", "runs", "name")),
        ("Judges", "", ("judges", "scale", "guidelines")),
        ("Order", "", ("order", "measure", "depth", "budget", "uniform_share", "seed")),
        ("Several judges", "", ("overlap", "overlap_judges", "blind")),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mappings: Any = self.fields["mapping"]
        seen = visible(Mapping.objects.exclude(status=Mapping.Status.PENDING), self.user)
        chosen = self["mapping"].value()
        offered = leave_out_archived(seen, path="dataset__tags", but=[chosen])
        mappings.queryset = offered.select_related("dataset", "collection").order_by("name")
        runs: Any = self.fields["runs"]
        runs.choices = _run_choices(self.user, chosen, self["runs"].value() or [])
        judges: Any = self.fields["judges"]
        staff_members = list_eligible_judges(self.user).order_by("username")[:MOST_JUDGES]
        judges.choices = [(str(member.pk), member.get_username()) for member in staff_members]

    def clean_scale(self) -> list[dict[str, object]]:
        lines = [line for line in self.cleaned_data["scale"].splitlines() if line.strip()]
        scale = []
        for line in lines:
            grade, words = [*line.split(None, 1), ""][:2]
            name, _, description = map(str.strip, words.partition(":"))
            if not (len(grade) == 1 and grade.isdecimal() and name):
                raise ValidationError(
                    f"“{line.strip()[:60]}” is not a grade: start the line with its digit, then its name."
                )
            scale.append({"grade": int(grade), "name": name, "description": description})
        try:
            return read_scale(scale) if scale else []
        except BenchbenchError as error:
            raise ValidationError(error.message) from error

    def load_runs(self) -> list[Run]:
        runs = Run.objects.filter(pk__in=self.cleaned_data["runs"]).select_related("benchmark__mapping")
        return list(runs.order_by("-benchmark__created_at", "run_order"))

    def load_judges(self) -> list[User]:
        return list(User.objects.filter(pk__in=self.cleaned_data["judges"]).order_by("username"))

    def build_options(self) -> RoundOptions:
        return RoundOptions(**{name: self.cleaned_data[name] for name in RoundOptions.__dataclass_fields__})


def _run_choices(user: AnyUser, mapping: Any, chosen: Iterable[Any]) -> list[tuple[str, object]]:
    """Return the completed runs of a mapping, by benchmark, the newest first; of archived ones only those chosen."""
    key = _parse_uuid(str(mapping))
    if key is None:
        return []
    runs = visible(Run.objects.filter(benchmark__mapping=key, status=Run.Status.COMPLETED), user, through="benchmark")
    runs = leave_out_archived(runs, path="benchmark__tags", but=chosen)
    by_benchmark: dict[str, list[tuple[str, str]]] = {}
    for run in runs.select_related("benchmark").order_by("-benchmark__created_at", "run_order")[:MOST_RUNS]:
        by_benchmark.setdefault(str(run.benchmark), []).append((str(run.pk), f"{run.run_order}. {run.label}"))
    return list(by_benchmark.items())


def open_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Open a round; `?run=…&run=…` and `?benchmark=…` fill in the runs."""

    def act(form: OpenForm) -> HttpResponse:
        opened = open_round(form.load_runs(), form.build_options(), judges=form.load_judges(), owner=staff(request))
        messages.success(request, f'"{opened}" is open, with {counted(opened.item_count, "item")}.')
        return redirect(change_url(opened))

    return show_form(
        request,
        model_admin,
        OpenForm,
        act,
        title="Open a judging round",
        submit="Open the round",
        initial=_parse_initial(request),
        intro="People grade unjudged documents at the top of the rankings until it is clear which run is "
        "better. No searches run, and values change only when the round is closed.",
        template="judging/open.html",
    )


@require_POST
def preview_opening(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Preview the pairs and the time for the form's current values, or show its errors."""
    form = read_form(request, model_admin, OpenForm)

    def look() -> dict[str, Any]:
        if not form.cleaned_data.get("runs"):
            return {}
        form.cleaned_data |= {"name": form.cleaned_data.get("name") or "to come"}
        previewed = preview_round(
            form.load_runs(), form.build_options(), judges=form.load_judges(), owner=staff(request)
        )
        total = previewed.gradings * previewed.seconds
        return {"preview": previewed, "total": total, "each": total / max(previewed.judges, 1)}

    return preview_page(request, "judging/preview.html", form, look, awaited=AWAITED)


def opening_choices(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Answer with the runs of the chosen mapping."""
    return render_choices(request, model_admin, OpenForm, "mapping", ["runs"])


def _parse_initial(request: HttpRequest) -> dict[str, object]:
    """Return initial values from the runs, or the alternatives of the benchmark, in the query string, if valid."""
    keys = [_parse_uuid(key) for key in request.GET.getlist("run")]
    benchmarks = [_parse_uuid(key) for key in request.GET.getlist("benchmark")]
    every = visible(Run.objects.filter(status=Run.Status.COMPLETED), request.user, through="benchmark")
    alternatives = keep_alternatives(every.filter(benchmark__in=filter(None, benchmarks)))
    runs = every.filter(Q(pk__in=filter(None, keys)) | Q(pk__in=alternatives))
    chosen = list(runs.select_related("benchmark").order_by("-benchmark__created_at", "run_order")[:MOST_RUNS])
    if not chosen:
        return {"judges": [str(staff(request).pk)]}
    first = chosen[0].benchmark
    return {
        "mapping": str(first.mapping_id),
        "runs": [str(run.pk) for run in chosen if run.benchmark.mapping_id == first.mapping_id],
        "name": f"Unjudged results: {first}"[:200],
        "judges": [str(staff(request).pk)],
        "order": Round.Order.DECISIVE if len(chosen) > 1 else Round.Order.DEPTH,
    }


def _parse_uuid(text: str) -> UUID | None:
    try:
        return parse_uuid(text)
    except ValueError:
        return None
