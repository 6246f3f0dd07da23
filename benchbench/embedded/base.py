"""Django's PostgreSQL backend on the embedded server, which the first connection of a process starts."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.db.backends.postgresql import base

from benchbench import embedded

ensure_once = cache(embedded.ensure)


class DatabaseWrapper(base.DatabaseWrapper):
    """Backend for scripts that call `django.setup()` in the checkout; commands and the site start the services."""

    def get_new_connection(self, conn_params: Mapping[str, object]) -> Any:
        ensure_once()
        return super().get_new_connection(conn_params)
