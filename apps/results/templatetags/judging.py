"""The tag that offers to judge a document of a ranking."""

from typing import Any

from django import template
from django.template import Context

from apps.collections.models import Document

register = template.Library()


@register.inclusion_tag("results/judge.html", takes_context=True)
def judge(context: Context, document: Document | None, grade: int | None) -> dict[str, Any]:
    """The button that opens a form in its place, and what the draft says other than `grade`, which the page shows."""
    judging = context.get("judging")
    if judging is None or document is None:
        return {}
    return {
        "document": document,
        "result": judging.result,
        "permitted": judging.permitted and document.removed_at is None,
        "change": judging.change(document.pk, grade),
        "next": context["request"].get_full_path(),
    }
