import uuid

import django.contrib.postgres.fields
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
            name="Dataset",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=200)),
                ("description", models.TextField(blank=True)),
                ("schema_version", models.CharField(default="1.0", editable=False, max_length=20)),
                ("source_format", models.CharField(blank=True, editable=False, max_length=30)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("slice_definitions", models.JSONField(blank=True, default=dict)),
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
            name="DatasetVersion",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("number", models.PositiveIntegerField()),
                (
                    "label",
                    models.CharField(blank=True, help_text="Version label in the imported file.", max_length=50),
                ),
                ("content_hash", models.CharField(blank=True, max_length=64)),
                ("query_count", models.PositiveIntegerField(default=0)),
                ("judgment_count", models.PositiveIntegerField(default=0)),
                ("frozen_at", models.DateTimeField(blank=True, null=True)),
                ("note", models.TextField(blank=True)),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="versions", to="datasets.dataset"
                    ),
                ),
            ],
            options={
                "ordering": ["dataset", "-number"],
            },
        ),
        migrations.CreateModel(
            name="Query",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(db_collation="C", max_length=200)),
                ("text", models.TextField()),
                (
                    "slices",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), blank=True, default=list, size=None
                    ),
                ),
                ("category", models.CharField(blank=True, max_length=100)),
                ("difficulty", models.CharField(blank=True, max_length=100)),
                ("query_type", models.CharField(blank=True, max_length=100)),
                ("split", models.CharField(blank=True, max_length=50)),
                (
                    "filters",
                    models.JSONField(
                        blank=True, default=dict, help_text="Document metadata that the search must match."
                    ),
                ),
                ("expected_answer", models.TextField(blank=True)),
                ("evidence", models.JSONField(blank=True, default=list)),
                ("notes", models.TextField(blank=True)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("since", models.PositiveIntegerField(default=1, help_text="First version that has it.")),
                (
                    "until",
                    models.PositiveIntegerField(blank=True, help_text="First version without it.", null=True),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="queries", to="datasets.dataset"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "queries",
                "ordering": ["dataset", "id"],
            },
        ),
        migrations.CreateModel(
            name="Judgment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("doc_ref", models.JSONField(help_text="Any of document_id, uri, content_hash, path, file_name.")),
                (
                    "ref_hash",
                    models.CharField(
                        editable=False, help_text="SHA-256 of the reference's canonical JSON.", max_length=64
                    ),
                ),
                (
                    "section_refs",
                    models.JSONField(blank=True, help_text="Section ids local to the document.", null=True),
                ),
                ("grade", models.SmallIntegerField(help_text="Above 0 is relevant, 0 judged not relevant.")),
                (
                    "source",
                    models.CharField(
                        choices=[("human", "Human"), ("llm", "Llm"), ("import", "Import")],
                        default="import",
                        max_length=10,
                    ),
                ),
                ("judge", models.CharField(blank=True, max_length=200)),
                ("note", models.TextField(blank=True)),
                ("since", models.PositiveIntegerField(default=1)),
                ("until", models.PositiveIntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "judged_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="judgments", to="datasets.query"
                    ),
                ),
            ],
            options={
                "ordering": ["query", "id"],
            },
        ),
        migrations.AddConstraint(
            model_name="dataset",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="dataset_name", nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name="datasetversion",
            constraint=models.UniqueConstraint(fields=("dataset", "number"), name="dataset_version_number"),
        ),
        migrations.AddConstraint(
            model_name="datasetversion",
            constraint=models.UniqueConstraint(
                condition=models.Q(("frozen_at__isnull", True)), fields=("dataset",), name="dataset_one_draft"
            ),
        ),
        migrations.AddConstraint(
            model_name="datasetversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("frozen_at__isnull", True), models.Q(("content_hash", ""), _negated=True), _connector="OR"
                ),
                name="dataset_version_frozen_has_hash",
            ),
        ),
        migrations.AddConstraint(
            model_name="query",
            constraint=models.UniqueConstraint(fields=("dataset", "key", "since"), name="query_key_since"),
        ),
        migrations.AddConstraint(
            model_name="query",
            constraint=models.UniqueConstraint(
                condition=models.Q(("until__isnull", True)), fields=("dataset", "key"), name="query_key_current"
            ),
        ),
        migrations.AddConstraint(
            model_name="query",
            constraint=models.CheckConstraint(
                condition=models.Q(models.Q(("key", ""), _negated=True), models.Q(("text", ""), _negated=True)),
                name="query_has_key_and_text",
            ),
        ),
        migrations.AddConstraint(
            model_name="query",
            constraint=models.CheckConstraint(
                condition=models.Q(("until__isnull", True), ("until__gt", models.F("since")), _connector="OR"),
                name="query_since_until",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgment",
            constraint=models.UniqueConstraint(fields=("query", "ref_hash", "since"), name="judgment_ref_since"),
        ),
        migrations.AddConstraint(
            model_name="judgment",
            constraint=models.UniqueConstraint(
                condition=models.Q(("until__isnull", True)), fields=("query", "ref_hash"), name="judgment_ref_current"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgment",
            constraint=models.CheckConstraint(
                condition=models.Q(("source__in", ["human", "llm", "import"])), name="judgment_source"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgment",
            constraint=models.CheckConstraint(
                condition=models.Q(("until__isnull", True), ("until__gt", models.F("since")), _connector="OR"),
                name="judgment_since_until",
            ),
        ),
    ]
