"""Lists whose filters, order, columns and measure users save as views."""

from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.accounts.models import SavedView
from apps.accounts.saving import list_views, save_view, update_view
from benchbench.access import list_teams, staff
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.lists import HIDDEN, MEASURED, VIEW

UNSAVED = (VIEW, "p", "e", "all", "_facets", "_popup", "_to_field")  # of an address: not what rows it shows, nor how


class ViewedAdmin(SiteAdmin):
    """Admin class of a list with saved views.

    All that a view shows is in its address, so changes take effect there, and in the view once it is updated.
    """

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        views = list(list_views(staff(request), self.opts.label_lower))
        view = next((row for row in views if str(row.pk) == request.GET.get(VIEW)), None)
        if request.method == "POST" and "_view" in request.POST:
            return self._act_on_views(request, view)
        if set(request.GET) == {VIEW}:
            if view is None:
                raise Http404("The view does not exist, or is not shared with you. Open the list without it.")
            return redirect(self._build_address(request, view))
        try:
            response = super().changelist_view(request, extra_context)
        except BadRequest as error:
            if view is None or set(request.GET) <= {HIDDEN, VIEW}:
                raise
            self.message_user(request, f'The view "{view}" does not fit the list: {error}', messages.ERROR)
            return redirect(f"{request.path}?{urlencode({HIDDEN: '', VIEW: view.pk})}")
        if hasattr(response, "context_data"):
            response.context_data |= {
                "saved_views": views,
                "saved_view": view,
                "is_changed": view is not None and view.query != self._write_query(request),
                "may_change_view": view is not None and self._may_change(request, view),
                "teams": list_teams(request.user) if self.has_act_permission(request) else [],
            }
        return response

    def _act_on_views(self, request: HttpRequest, view: SavedView | None) -> HttpResponse:
        """Save, update or delete a view, as the button says."""
        act = request.POST["_view"]
        if act == "save":
            return self._save(request)
        if view is None or not self._may_change(request, view):
            raise PermissionDenied
        if act == "delete":
            view.delete()
            self.message_user(request, f'Deleted the view "{view}".', messages.SUCCESS)
            return redirect(request.path)
        return self._save(request, view)

    def _save(self, request: HttpRequest, view: SavedView | None = None) -> HttpResponse:
        """Save the list of the address as a new view or as `view`. Raises BadRequest for a list that does not open."""
        self.get_changelist_instance(request)
        query, name, team = self._write_query(request), request.POST.get("name", ""), request.POST.get("team", "")
        if team and not self.has_act_permission(request):
            raise PermissionDenied
        try:
            if view is None:
                view = save_view(staff(request), listed=self.opts.label_lower, name=name, query=query, team=team)
            else:
                update_view(view, query)
        except BenchbenchError as error:
            self.message_user(request, error.message, messages.ERROR)
            return redirect(request.get_full_path())
        self.message_user(request, f'Saved the view "{view}".', messages.SUCCESS)
        return redirect(self._build_address(request, view))

    def _may_change(self, request: HttpRequest, view: SavedView) -> bool:
        """Return whether the user may change a view that the user sees: as its owner, or as an editor of such rows."""
        return view.owner_id == request.user.pk or self.has_act_permission(request)

    def _build_address(self, request: HttpRequest, view: SavedView) -> str:
        return f"{request.path}?{view.query}&{VIEW}={view.pk}"

    def _write_query(self, request: HttpRequest) -> str:
        """Return the address of the list as a query string with its hidden columns."""
        hidden = ".".join(name for name, _, is_hidden in self.list_columns(request) if is_hidden and name != MEASURED)
        parameters = {name: values for name, values in request.GET.lists() if name not in UNSAVED}
        return urlencode(sorted((parameters | {HIDDEN: [hidden]}).items()), doseq=True)
