"""Filters of all templates, those of other packages too: `safe` trusts no text; the others escape for documents."""

from collections.abc import Callable

from django import template
from django.utils.safestring import SafeString, mark_safe

from benchbench import markup

register = template.Library()


@register.filter(is_safe=True)
def safe(value: object) -> object:
    """Return `value` as it is: HTML made by `format_html` or `mark_safe` is shown as HTML, any other text is escaped.

    Templates of unfold and Django write `{{ help_text|safe }}` and the like. Django's own filter would turn a name in
    such a text into elements of the page.
    """
    return value


def escape_by(escape: Callable[[str], str]) -> Callable[[object], SafeString]:
    """Return the filter that escapes a value for a document of another format than HTML."""
    return lambda value: mark_safe(escape(str(value)))  # nosec # not for pages


register.filter("markdown", escape_by(markup.text))
register.filter("code", escape_by(markup.code))
register.filter("latex", escape_by(markup.latex))
