"""History of a row: users' actions in the log of Django's admin, which the row's page shows."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from django.contrib import admin
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve

from benchbench.access import staff


def note(user: User, rows: Iterable[Model], message: str) -> None:
    """Log a user's action on rows, as a sentence."""
    LogEntry.objects.log_actions(user.pk, rows, CHANGE, message)


def note_deleted(user: User, model: type[Model], pk: object, message: str) -> None:
    """Log that a user deleted a row, of which only the key is left."""
    kind = ContentType.objects.get_for_model(model, for_concrete_model=False)
    entry = {"content_type": kind, "object_id": str(pk), "object_repr": str(pk), "change_message": message}
    LogEntry.objects.create(user_id=user.pk, action_flag=DELETION, **entry)


def find_last_author(row: Model) -> str:
    """Return who changed a row last and what of it, such as "ann (Changed Name)"; "" without a history."""
    kind = ContentType.objects.get_for_model(row)
    entries = LogEntry.objects.filter(content_type=kind, object_id=str(row.pk)).select_related("user")
    entry = entries.order_by("-action_time", "-pk").first()
    return f"{entry.user.get_username()} ({entry.get_change_message().rstrip('.')})" if entry else ""


def note_form(request: HttpRequest, model: type[Model], answer: HttpResponseBase, message: str) -> None:
    """Log the result of a form in the history of its page's row, else of the row that it redirects to."""
    match = request.resolver_match
    key = match.kwargs.get("object_id") if match else None
    try:
        if key is None:
            match = resolve(urlsplit(answer.get("Location", "")).path)
            key = match.kwargs.get("object_id")
            forms = {f"{cls._meta.label_lower.replace('.', '_')}_change": cls for cls in admin.site._registry}
            model = forms.get(match.url_name or "", model)
        note(staff(request), model._default_manager.filter(pk=key) if key else [], message)
    except (Resolver404, ValidationError, ValueError):  # it leads elsewhere
        return
