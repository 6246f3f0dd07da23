"""Admin pages of judging rounds."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.decorators import display

from apps.judging.closing import close_round
from apps.judging.judges import may_lead
from apps.judging.models import Round
from apps.judging.views import judging
from benchbench.site.additions import Page
from benchbench.site.admin import FactAdmin, VisibleFilter
from benchbench.site.pages import staff
from benchbench.site.panels import Button


@admin.register(Round)
class RoundAdmin(FactAdmin):
    list_display = ("name", "mapping", "order", "progress", "state_label", "owner", "created_at")
    list_filter = ("state", "order", ("mapping", VisibleFilter))
    list_select_related = ("mapping", "owner", "dataset_version")
    search_fields = ("name",)
    actions = ("close_selected",)
    pages = (
        Page("<uuid:object_id>/judge/", judging.judge_page, "round_judge"),
        Page("<uuid:object_id>/judge/exchange/", judging.exchange, "round_exchange"),
        Page("<uuid:object_id>/judge/<int:item_id>/text/", judging.item_text, "round_text"),
    )
    fieldsets = (
        (None, {"fields": (("state_label", "progress"), "named_judges", "guidelines", "grades")}),
        (
            "How it was opened",
            {
                "fields": (
                    ("measure", "order", "depth", "budget"),
                    ("uniform_share", "overlap", "overlap_judges", "blind", "seed"),
                    ("item_count", "pool_size"),
                )
            },
        ),
        (
            "Facts",
            {
                "fields": (
                    ("mapping", "dataset_version", "closed_version"),
                    ("owner", "team"),
                    ("created_at", "answered_at", "closed_at", "closed_by"),
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Round]:
        """Return the rounds with how many of their slots are done, and how many there are."""
        slots = {"slots_done": Count("slots", filter=Q(slots__done=True)), "slots_wanted": Count("slots")}
        return super().get_queryset(request).annotate(**slots)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only who leads a round deletes it, with its grades; what it made of the dataset stays."""
        permitted = request.user.has_perm("judging.delete_round")
        return permitted and obj is not None and may_lead(obj, request.user)

    @admin.action(description="Close", permissions=["act"])
    def close_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.each(request, queryset, lambda one: close_round(one, staff(request)).sentence)

    def buttons(self, request: HttpRequest, obj: Round) -> list[Button]:
        return (
            [Button("Close the round", "lock", "close_selected")] if obj.is_open and may_lead(obj, request.user) else []
        )

    @display(description="graded", ordering="slots_done")
    def progress(self, row: Any) -> str:
        return f"{row.slots_done:,} of {row.slots_wanted:,}"

    @display(description="state", ordering="state", label={"open": "info", "closed": "default"})
    def state_label(self, row: Round) -> str:
        return row.state

    @display(description="judges")
    def named_judges(self, row: Round) -> str:
        return ", ".join(judge.get_username() for judge in row.judges.order_by("username"))

    @display(description="scale")
    def grades(self, row: Round) -> str:
        return ", ".join(f"{entry['grade']} {entry['name']}" for entry in row.scale)

    def trail(self, obj: Round) -> list[Any]:
        return [obj.mapping.collection, obj.mapping.dataset, obj.mapping]
