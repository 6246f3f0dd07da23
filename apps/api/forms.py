"""What the admin asks for when a token is made."""

from datetime import timedelta

from django import forms
from django.utils import timezone
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from apps.api.models import Scope
from benchbench.pages import PageForm

MOST_DAYS = 3650


class TokenForm(PageForm):
    name = forms.CharField(
        max_length=100,
        widget=UnfoldAdminTextInputWidget({"placeholder": "nightly pipeline"}),
        help_text="Where the token will be used, so that you know later which to revoke.",
    )
    scope = forms.ChoiceField(
        choices=[
            (Scope.READ.value, "Read: look, judge by gates, and change nothing"),
            (Scope.WRITE.value, "Write: all that you may"),
        ],
        widget=UnfoldAdminSelectWidget(),
    )
    days = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        initial=90,
        label="Days that it lasts",
        widget=UnfoldAdminIntegerFieldWidget({"placeholder": "until it is revoked"}),
        help_text="Empty: until it is revoked.",
    )

    sections = (("", "", ("name", "scope", "days")),)

    def clean_days(self) -> int | None:
        days = self.cleaned_data["days"]
        self.cleaned_data["expires_at"] = timezone.now() + timedelta(days=days) if days else None
        return days
