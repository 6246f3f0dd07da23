"""State of the database's tables: whether they are those that this code needs."""

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import DatabaseError

from benchbench.decimals import counted


def unapplied() -> int:
    """Return how many migrations the database lacks; none are missing where its tables are up to date.

    Raises DatabaseError where it does not answer.
    """
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def why_not_usable(program: str) -> str:
    """Return the sentence that says why no command can use the database, and what to do; "" where all can."""
    try:
        missing = unapplied()
    except DatabaseError as error:
        return f"PostgreSQL does not answer: {error} Start it, or mend DATABASE_URL; unset, BenchBench starts its own."
    if not missing:
        return ""
    return f"The tables of the database are not up to date: {not_applied(missing)}. Run `{program} migrate`."


def not_applied(missing: int) -> str:
    """Say how many migrations are not applied."""
    return f"{counted(missing, 'migration')} {'is' if missing == 1 else 'are'} not applied"
