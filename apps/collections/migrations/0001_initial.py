import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Collection",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=200)),
                ("description", models.TextField(blank=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("documents", "Documents"),
                            ("external", "external (ids only, for rankings made elsewhere)"),
                        ],
                        default="documents",
                        max_length=16,
                    ),
                ),
                (
                    "fingerprint",
                    models.CharField(
                        blank=True,
                        editable=False,
                        help_text="SHA-256 over the ids and hashes of its documents.",
                        max_length=64,
                    ),
                ),
                ("document_count", models.PositiveIntegerField(default=0, editable=False)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="The user who can see and change it. Empty: all staff can.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        help_text="Members of this group can see it too.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="auth.group",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "abstract": False,
                "default_permissions": ("add", "change", "delete", "view", "view_all"),
            },
        ),
        migrations.CreateModel(
            name="Document",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("external_id", models.CharField(db_collation="C", max_length=500)),
                ("uri", models.CharField(blank=True, max_length=2000)),
                (
                    "content_hash",
                    models.CharField(
                        help_text="SHA-256 of the file's bytes, or of title, newline, text for records.", max_length=64
                    ),
                ),
                ("file_name", models.CharField(blank=True, max_length=500)),
                ("title", models.TextField(blank=True)),
                ("text", models.TextField(blank=True)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("removed_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="documents",
                        to="collections.collection",
                    ),
                ),
            ],
            options={
                "ordering": ["collection", "external_id"],
            },
        ),
        migrations.CreateModel(
            name="Section",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("section_id", models.CharField(help_text="Local to the document.", max_length=200)),
                ("ordinal", models.PositiveIntegerField(help_text="Place in the document, depth first.")),
                ("heading", models.TextField(blank=True)),
                ("level", models.PositiveSmallIntegerField(default=1)),
                ("start", models.PositiveIntegerField(default=0, help_text="First character in the document's text.")),
                ("end", models.PositiveIntegerField(default=0, help_text="One past the last character.")),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sections", to="collections.document"
                    ),
                ),
            ],
            options={
                "ordering": ["document", "ordinal"],
            },
        ),
        migrations.AddConstraint(
            model_name="collection",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="collection_name", nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name="collection",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["documents", "external"])), name="collection_kind"
            ),
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["collection", "uri"], name="document_uri"),
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["collection", "content_hash"], name="document_hash"),
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["collection", "file_name"], name="document_file_name"),
        ),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.UniqueConstraint(fields=("collection", "external_id"), name="document_external_id"),
        ),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.CheckConstraint(
                condition=models.Q(("external_id", ""), _negated=True), name="document_has_external_id"
            ),
        ),
        migrations.AddConstraint(
            model_name="section",
            constraint=models.UniqueConstraint(fields=("document", "section_id"), name="section_id_in_document"),
        ),
        migrations.AddConstraint(
            model_name="section",
            constraint=models.UniqueConstraint(fields=("document", "ordinal"), name="section_ordinal"),
        ),
        migrations.AddConstraint(
            model_name="section",
            constraint=models.CheckConstraint(condition=models.Q(("end__gte", models.F("start"))), name="section_span"),
        ),
    ]
