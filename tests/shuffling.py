"""Rows in random order, wherever a query leaves their order to PostgreSQL: `--random-order` shuffles them too.

What PostgreSQL returns first depends on its plan, on the pages that autovacuum freed and on other sessions: code and
tests that count on it fail by chance.
"""

from typing import Any

from django.db.models.expressions import Col, OrderBy
from django.db.models.functions import Random
from django.db.models.sql.compiler import SQLCompiler


def shuffle_rows() -> None:
    """Order the rows of every query by what it states, and those that it leaves equal by chance."""
    get_order_by = SQLCompiler.get_order_by

    def shuffled(compiler: SQLCompiler) -> Any:
        declared = get_order_by(compiler)
        if not is_list_of_rows(compiler.query) or any(is_unique(order.expression) for order, _ in declared):
            return declared
        by_chance = OrderBy(Random()).resolve_expression(compiler.query, allow_joins=True, reuse=None)
        return [*declared, (by_chance, (*compiler.compile(by_chance), False))]

    SQLCompiler.get_order_by = shuffled


def is_list_of_rows(query: Any) -> bool:
    """Return whether a query lists rows, which may be ordered by what they do not contain."""
    if query.distinct or query.combinator or query.group_by is not None or query.subquery:
        return False
    is_count = any(one.contains_aggregate for one in query.annotation_select.values())
    return not is_count and bool(query.select or query.default_cols)


def is_unique(expression: Any) -> bool:
    return isinstance(expression, Col) and bool(expression.target.primary_key)
