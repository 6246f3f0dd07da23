"""The filter `safe`, of all templates, those of other packages too: it trusts no text that was not made as HTML."""

from typing import Any

from django import template

register = template.Library()


@register.filter(is_safe=True)
def safe(value: Any) -> Any:
    """Return `value` as it is: HTML made by `format_html` or `mark_safe` is shown as HTML, any other text is escaped.

    Templates of unfold and Django write `{{ help_text|safe }}` and the like. Django's own filter would turn a name in
    such a text into elements of the page.
    """
    return value
