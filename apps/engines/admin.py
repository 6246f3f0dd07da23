"""Admin page of engines, below the operations."""

from apps.engines.views import engines_page
from apps.operations.models import Operation
from benchbench.site.panels import Page, add_to

add_to(Operation, pages=(Page("engines/", engines_page, "engines"),))
