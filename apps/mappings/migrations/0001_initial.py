import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("collections", "0001_initial"),
        ("datasets", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Mapping",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=200)),
                ("collection_fingerprint", models.CharField(blank=True, editable=False, max_length=64)),
                (
                    "status",
                    models.CharField(
                        choices=[("pending", "Pending"), ("partial", "Partial"), ("resolved", "Resolved")],
                        default="pending",
                        editable=False,
                        max_length=16,
                    ),
                ),
                (
                    "counts",
                    models.JSONField(blank=True, default=dict, editable=False, help_text="Judgments by outcome."),
                ),
                ("mapped_count", models.PositiveIntegerField(default=0, editable=False)),
                ("total_count", models.PositiveIntegerField(default=0, editable=False)),
                ("resolved_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mappings",
                        to="collections.collection",
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="mappings", to="datasets.dataset"
                    ),
                ),
                (
                    "dataset_version",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        help_text="The version whose judgments are counted.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="datasets.datasetversion",
                    ),
                ),
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
            name="Resolution",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("resolved", "Resolved"),
                            ("ambiguous", "Ambiguous"),
                            ("not_found", "Not Found"),
                            ("invalid_ref", "Invalid Ref"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "key",
                    models.CharField(blank=True, help_text="The key of the reference that decided.", max_length=20),
                ),
                ("reason", models.TextField(blank=True)),
                (
                    "document",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="resolutions",
                        to="collections.document",
                    ),
                ),
                (
                    "judgment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="resolutions", to="datasets.judgment"
                    ),
                ),
                (
                    "mapping",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="resolutions", to="mappings.mapping"
                    ),
                ),
            ],
            options={
                "ordering": ["mapping", "judgment"],
            },
        ),
        migrations.AddConstraint(
            model_name="mapping",
            constraint=models.UniqueConstraint(
                fields=("owner", "dataset", "collection"), name="mapping_dataset_collection", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="mapping",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="mapping_name", nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name="mapping",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["pending", "partial", "resolved"])), name="mapping_status"
            ),
        ),
        migrations.AddConstraint(
            model_name="mapping",
            constraint=models.CheckConstraint(
                condition=models.Q(("mapped_count__lte", models.F("total_count"))), name="mapping_counts"
            ),
        ),
        migrations.AddIndex(
            model_name="resolution",
            index=models.Index(fields=["mapping", "outcome"], name="resolution_outcome"),
        ),
        migrations.AddConstraint(
            model_name="resolution",
            constraint=models.UniqueConstraint(fields=("mapping", "judgment"), name="resolution_once"),
        ),
        migrations.AddConstraint(
            model_name="resolution",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("document__isnull", False), ("outcome", "resolved")),
                    models.Q(("outcome__in", ["ambiguous", "not_found", "invalid_ref"]), ("document__isnull", True)),
                    _connector="OR",
                ),
                name="resolution_document_iff_resolved",
            ),
        ),
    ]
