"""Measures in templates: their names with what they mean."""

from typing import Any

from django import template
from django.utils.text import slugify

from benchbench.ir.measures import Measure, definition_of

register = template.Library()


@register.inclusion_tag("results/defined.html")
def defined(name: str, place: str, label: str = "") -> dict[str, Any]:
    """The name of a measure, or `label`, that opens its definition; `place` tells apart what stands twice on a page."""
    measure = Measure.parse(name)
    shown = {"definition": definition_of(measure), "cutoff": measure.cutoff}
    return shown | {"id": f"define-{place}-{slugify(name)}", "label": label or name}
