"""Admin classes of users, groups, tokens, the bin and the log. Only interfaces import it."""

from apps.accounts.admin import history, users  # noqa: F401 (Django imports only this package)
