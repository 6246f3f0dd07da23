"""Tables of accounts: tokens, sign-ins by password, saved views, and what users deleted and can restore."""

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Model, Q
from django.db.models.deletion import Collector
from django.utils import timezone

from benchbench.models import NamedModel, PublicModel

LONGEST_NAME, LONGEST_QUERY = 100, 2000  # characters of a saved view


class Scope(models.TextChoices):
    READ = "read"
    WRITE = "write"


class AccessToken(NamedModel, PublicModel):
    """A personal token that its user named and can revoke. Only the hash of the secret is stored."""

    name_scope = ("user",)

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="access_tokens")
    name = models.CharField(max_length=100, help_text="Where the token is used, such as a pipeline.")
    scope = models.CharField(
        max_length=10,
        choices=Scope,
        default=Scope.READ,
        help_text="read only reads, write does everything that you may do.",
    )
    digest = models.CharField(max_length=64, unique=True, editable=False, help_text="SHA-256 of the secret.")
    hint = models.CharField(max_length=12, editable=False, help_text="First characters of the secret.")
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: valid until revoked.")
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="Accurate to the minute.")
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = "token"
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"],
                condition=Q(revoked_at__isnull=True),
                name="access_token_name",
            ),
            models.CheckConstraint(condition=Q(scope__in=["read", "write"]), name="access_token_scope"),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def list_rivals(cls, **scope: object) -> models.QuerySet[Model]:
        return super().list_rivals(**scope).filter(revoked_at=None)

    @property
    def state(self) -> str:
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= timezone.now() else "active"


class SignIn(PublicModel):
    """A sign-in with a password. All its pairs of JWTs name this row and are invalid once it is deleted."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    jti = models.CharField(max_length=64, help_text="ID of the only refresh token that can be exchanged.")
    expires_at = models.DateTimeField(db_index=True, help_text="Expiry of that token.")  # index: deleting expired rows

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.user} since {self.created_at}"


class Deletion(PublicModel):
    """A deletion that can be taken back: who deleted what, and where the bin has it (`benchbench.database.bin`)."""

    kind = models.CharField(max_length=100, editable=False, help_text="Label of the model.")
    object_id = models.UUIDField(editable=False)
    name = models.CharField(max_length=500, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    team = models.ForeignKey("auth.Group", null=True, on_delete=models.SET_NULL, related_name="+")
    deleted_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    until = models.DateTimeField(db_index=True, help_text="Until when it can be restored.")  # index: emptying the bin
    size = models.BigIntegerField(help_text="Estimated bytes.")
    counts = models.JSONField(default=dict, help_text="Deleted rows by label of their model.")
    tables = ArrayField(models.CharField(max_length=63), default=list, help_text="Tables of the bin with its rows.")
    renamed = ArrayField(models.CharField(max_length=63), default=list, help_text="Tables without a model.")

    class Meta:
        default_permissions = ()
        ordering = ["-created_at"]
        verbose_name = "deletion"
        verbose_name_plural = "bin"

    def __str__(self) -> str:
        return self.name


def keep_shared(collector: Collector, field: models.Field, rows: models.QuerySet[Model], using: str) -> None:
    """Delete the views of a deleted user, except those of a team, which have no owner then."""
    models.CASCADE(collector, field, rows.filter(team=None), using)
    models.SET_NULL(collector, field, rows.exclude(team=None), using)


def keep_owned(collector: Collector, field: models.Field, rows: models.QuerySet[Model], using: str) -> None:
    """Delete the views of a deleted team that have no owner; their owners keep the others."""
    models.CASCADE(collector, field, rows.filter(owner=None), using)
    models.SET_NULL(collector, field, rows.exclude(owner=None), using)


class SavedView(NamedModel, PublicModel):
    """Filters, order, columns and measure of a list under a name. Its owner sees it, and so does its team.

    A view whose owner was deleted is its team's alone.
    """

    name_scope = ("owner", "listed")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=keep_shared, related_name="+")
    team = models.ForeignKey("auth.Group", null=True, blank=True, on_delete=keep_owned, related_name="+")
    listed = models.CharField(max_length=100, help_text="The rows of its list, such as benchmarks.run.")
    name = models.CharField(max_length=LONGEST_NAME)
    query = models.CharField(max_length=LONGEST_QUERY, help_text="The query string of the list.")

    class Meta:
        verbose_name = "view"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["owner", "listed", "name"], name="saved_view_name"),
            models.CheckConstraint(condition=Q(owner__isnull=False) | Q(team__isnull=False), name="saved_view_seen"),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def seen_by(cls, user: User) -> Q:
        return Q(owner=user) | Q(team__in=user.groups.values("pk"))
