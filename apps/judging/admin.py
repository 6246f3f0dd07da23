"""Admin pages of judging rounds."""

from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.db.models import Count, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.decorators import display

from apps.datasets.models import Query
from apps.judging.handing import list_waiting_rounds
from apps.judging.judges import change_round, is_judge, may_close, may_lead
from apps.judging.llm.launching import cancel_judging
from apps.judging.models import Round
from apps.judging.settling.progress import compute_target
from apps.judging.views import judging, leading, llm, opening, rounds, single
from benchbench.access import staff
from benchbench.site.admin import FactAdmin
from benchbench.site.lists import VisibleFilter
from benchbench.site.panels import Button, Page, add_to


class WaitingFilter(admin.SimpleListFilter):
    title, parameter_name = "waits for", "waiting"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        return [("me", "me")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Round]) -> QuerySet[Round]:
        """Keep the rounds in which the user can grade items, or that are settled for the user to close."""
        if self.value() != "me":
            return queryset
        return queryset.filter(pk__in=list_waiting_rounds(staff(request)).values("pk"))


@admin.register(Round)
class RoundAdmin(FactAdmin):
    list_display = ("name", "state_label", "progress", "mapping", "owner", "created_at")
    list_filter = (WaitingFilter, "state", ("mapping", VisibleFilter))
    search_fields = ("name",)
    actions = ("go_on_selected", "cancel_llm_selected")
    pages = (
        Page("add/", opening.open_page, "judging_round_add"),
        Page("add/preview/", opening.preview_opening, "round_preview"),
        Page("add/choices/", opening.opening_choices, "round_choices"),
        Page("grades/", judging.my_rounds, "my_grades"),
        Page("<uuid:object_id>/judge/", judging.judge_page, "round_judge"),
        Page("<uuid:object_id>/judge/exchange/", judging.exchange, "round_exchange"),
        Page("<uuid:object_id>/grades/", judging.my_grades, "round_grades"),
        Page("<uuid:object_id>/adjudicate/", judging.adjudicate_page, "round_adjudicate"),
        Page("<uuid:object_id>/adjudicate/decide/", judging.decide, "round_decide"),
        Page("<uuid:object_id>/change/", rounds.round_page, "judging_round_change"),
        Page("<uuid:object_id>/state/", rounds.state_fragment, "round_state_fragment"),
        Page("<uuid:object_id>/pairs/", rounds.pairs_page, "round_pairs"),
        Page("<uuid:object_id>/people/", leading.people_page, "round_people"),
        Page("<uuid:object_id>/close/", leading.close_page, "round_close"),
        Page("<uuid:object_id>/llm/", llm.start_page, "round_llm"),
        Page("<uuid:object_id>/llm/preview/", llm.preview_start, "round_llm_preview"),
        Page("<uuid:object_id>/llm/sample/", llm.sample_page, "round_sample"),
        Page("<uuid:object_id>/llm/judges/", llm.judges_fragment, "round_llm_judges"),
        Page("<uuid:object_id>/verdicts/", llm.verdicts_fragment, "round_verdicts"),
        Page("<uuid:object_id>/judge/<int:item_id>/text/", judging.item_text, "round_text"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Round]:
        """Return the rounds with the number of their slots that are done."""
        slots = {"slots_done": Count("slots", filter=Q(slots__done=True))}
        related = ("owner", "mapping__dataset_version", "dataset_version")
        return super().get_queryset(request).select_related(*related).annotate(**slots)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("judging.add_round")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow only the round's leads to delete it, with its grades; edits that it made to the dataset remain."""
        permitted = request.user.has_perm("judging.delete_round")
        return permitted and obj is not None and may_lead(obj, request.user)

    @admin.action(description="Continue after it is settled", permissions=["act"])
    def go_on_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        def go_on(row: Round) -> str:
            change_round(row, staff(request), continue_after_settled=True)
            return f'"{row}" hands out further items.'

        return self.apply_each(request, queryset, go_on)

    @admin.action(description="Cancel judging by a model", permissions=["act"])
    def cancel_llm_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        def cancel(row: Round) -> str:
            cancel_judging(row, staff(request))
            return f'The model judges "{row}" no more; what it judged stays.'

        return self.apply_each(request, queryset, cancel)

    def list_buttons(self, request: HttpRequest, obj: Round) -> list[Button]:
        leads, judges = obj.is_open and may_lead(obj, request.user), is_judge(obj, request.user)
        grading = "judging.add_grade"
        buttons = []
        if judges and obj.offers_items:
            buttons.append(Button("Judge", "edit_note", href=_reverse("round_judge", obj), needs=grading))
        if judges:
            buttons.append(Button("My grades", "checklist", href=_reverse("round_grades", obj), needs=grading))
        if leads:
            needs = "judging.change_round"
            buttons.append(Button("Adjudicate", "balance", href=_reverse("round_adjudicate", obj), needs=needs))
            buttons.append(Button("Judges …", "group_add", href=_reverse("round_people", obj), needs=needs))
            if obj.settled_at and not obj.continue_after_settled:
                buttons.append(Button("Go on", "play_arrow", "go_on_selected"))
            if may_close(request.user):
                buttons.append(Button("Close …", "lock", href=_reverse("round_close", obj), needs=needs))
        return buttons

    @display(description="graded", ordering="slots_done")
    def progress(self, row: Any) -> str:
        return f"{row.slots_done:,} of {compute_target(row, row.slots_done):,}"

    @display(description="state", ordering="state", label={"open": "info", "settled": "success", "closed": "default"})
    def state_label(self, row: Round) -> str:
        return "settled" if row.is_open and row.settled_at else row.state

    def list_trail(self, obj: Round) -> list[Any]:
        return [obj.mapping.collection, obj.mapping.dataset, obj.mapping]


add_to(Query, pages=(Page("<int:query_id>/judge/", single.judge_one, "query_judge"),))


def _reverse(name: str, round: Round) -> str:
    return reverse(f"admin:{name}", args=[round.pk])
