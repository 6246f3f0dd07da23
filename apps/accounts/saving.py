"""Saving a view of a list: its filters, order, columns and measure under a name, for a user or a team too."""

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from apps.accounts.models import LONGEST_NAME, LONGEST_QUERY, SavedView
from benchbench.access import list_teams
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.names import check_name

MAX_VIEWS = 50  # of a user, of one list


class SavedViewError(BenchbenchError):
    """The view cannot be saved."""


def list_views(user: User, listed: str) -> QuerySet[SavedView]:
    """Return the views of a list that `user` sees, also as a superuser: the user's and those of the user's teams."""
    views = SavedView.objects.filter(SavedView.seen_by(user), listed=listed)
    return views.select_related("owner", "team").order_by("name", "pk")


def save_view(user: User, *, listed: str, name: str, query: str, team: str = "") -> SavedView:
    """Save a view for `user` and for the team with this id, "" for none. Raises SavedViewError or ConflictError."""
    shared: Group | None = next((row for row in list_teams(user) if str(row.pk) == team), None)
    if team and shared is None:
        raise SavedViewError("You are not in this team: choose another one.", field="team")
    if SavedView.objects.filter(owner=user, listed=listed).count() >= MAX_VIEWS:
        raise SavedViewError(f"You have {MAX_VIEWS} views of this list, which is the limit: delete one first.")
    name = check_name(name, "view", error=SavedViewError, max_length=LONGEST_NAME)
    view = SavedView(owner=user, listed=listed, name=name, team=shared, query=_check_query(query))
    try:
        with transaction.atomic():
            view.save()
    except IntegrityError:
        raise ConflictError(
            f'You have a view "{name}" of this list: choose another name, or open and update it.', field="name"
        ) from None
    return view


def update_view(view: SavedView, query: str) -> None:
    view.query = _check_query(query)
    view.save(update_fields=["query", "updated_at"])


def _check_query(query: str) -> str:
    if len(query) > LONGEST_QUERY:
        raise SavedViewError(
            f"The filters of this list have {len(query):,} characters, and the limit is {LONGEST_QUERY:,}: remove some."
        )
    return query
