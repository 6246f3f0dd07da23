import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from apps.accounts.roles import make_roles


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("auth", "0012_alter_user_first_name_max_length"),
        *((room, "0001_initial") for room in ("benchmarks", "collections", "datasets", "judging", "mappings")),
        *((room, "0001_initial") for room in ("operations", "retrieval")),
    ]

    operations = [
        migrations.CreateModel(
            name="SignIn",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "jti",
                    models.CharField(help_text="ID of the only refresh token that can be exchanged.", max_length=64),
                ),
                ("expires_at", models.DateTimeField(db_index=True, help_text="Expiry of that token.")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="AccessToken",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "name",
                    models.CharField(help_text="Where the token is used, such as a pipeline.", max_length=100),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[("read", "Read"), ("write", "Write")],
                        default="read",
                        help_text="read only reads, write does everything that you may do.",
                        max_length=10,
                    ),
                ),
                (
                    "digest",
                    models.CharField(editable=False, help_text="SHA-256 of the secret.", max_length=64, unique=True),
                ),
                ("hint", models.CharField(editable=False, help_text="First characters of the secret.", max_length=12)),
                (
                    "expires_at",
                    models.DateTimeField(blank=True, help_text="Empty: valid until revoked.", null=True),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(blank=True, editable=False, help_text="Accurate to the minute.", null=True),
                ),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="access_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "token",
                "ordering": ["-created_at"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("revoked_at__isnull", True)),
                        fields=("user", "name"),
                        name="access_token_name",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("scope__in", ["read", "write"])), name="access_token_scope"
                    ),
                ],
            },
        ),
        migrations.RunPython(make_roles, migrations.RunPython.noop),  # the groups of the roles
    ]
