import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Operation",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("index", "Index"),
                            ("resolve", "Resolve"),
                            ("benchmark", "Benchmark"),
                            ("llm_judging", "judging by a model"),
                            ("measure", "measuring again"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "subject_id",
                    models.UUIDField(help_text="The object of the work: an index, a mapping, a benchmark, a round."),
                ),
                ("queue", models.CharField(default="default", max_length=32)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("running", "Running"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("parameters", models.JSONField(blank=True, default=dict)),
                ("total_units", models.PositiveBigIntegerField(default=0, help_text="Units of work over all batches.")),
                ("error", models.TextField(blank=True)),
                (
                    "unfit_workers",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        editable=False,
                        help_text="Workers that gave back a batch, with the reason; they take no more batches.",
                    ),
                ),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "started_by",
                    models.ForeignKey(
                        blank=True,
                        help_text="User whose quota it counts against. Empty: a command without an owner, or a deleted user.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
                "default_permissions": ("add", "change", "delete", "view", "view_all"),
            },
        ),
        migrations.CreateModel(
            name="Batch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ordinal", models.PositiveIntegerField()),
                ("payload", models.JSONField(default=dict)),
                ("units", models.PositiveBigIntegerField(default=1)),
                ("done_units", models.PositiveBigIntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("lease_owner", models.CharField(blank=True, max_length=100)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                (
                    "result",
                    models.JSONField(blank=True, default=dict, help_text="The batch's part of the progress."),
                ),
                (
                    "waits_for",
                    models.TextField(blank=True, help_text="Why its worker cannot start yet."),
                ),
                (
                    "hung",
                    models.JSONField(
                        blank=True,
                        db_default={},
                        default=dict,
                        editable=False,
                        help_text="Error of a model that did not answer, by stage and query; without a query for several queries.",
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="batches", to="operations.operation"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "batches",
                "ordering": ["operation", "ordinal"],
            },
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(fields=["-created_at"], name="operation_created"),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(fields=["subject_id", "-created_at"], name="operation_subject"),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["pending", "running", "completed", "failed", "cancelled"])),
                name="operation_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["pending", "running"])),
                fields=("kind", "subject_id"),
                name="operation_one_active_per_subject",
            ),
        ),
        migrations.AddIndex(
            model_name="batch",
            index=models.Index(condition=models.Q(("state", "running")), fields=["lease_until"], name="batch_leases"),
        ),
        migrations.AddConstraint(
            model_name="batch",
            constraint=models.UniqueConstraint(fields=("operation", "ordinal"), name="batch_ordinal"),
        ),
        migrations.AddConstraint(
            model_name="batch",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["pending", "running", "done", "failed"])), name="batch_state"
            ),
        ),
        migrations.AddConstraint(
            model_name="batch",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "running"), _negated=True), ("lease_until__isnull", False), _connector="OR"
                ),
                name="batch_running_has_lease",
            ),
        ),
    ]
