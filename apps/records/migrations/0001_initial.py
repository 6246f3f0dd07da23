import uuid

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import apps.records.models.values

VIEW = """
    CREATE VIEW benchmarks_queryresult AS
    SELECT list.id * 65536 + run.place AS id, run.id AS run_id, list.id AS stage_list_id, run.place AS place,
        list.query_id, list.repetition,
        list.document_ids[:list.lengths[run.place]] AS document_ids,
        CASE WHEN list.chunk_ranks IS NULL THEN coalesce(list.chunk_ids[:list.lengths[run.place]], '{}')
        ELSE ARRAY(
            SELECT list.chunk_ids[rank] FROM unnest(list.chunk_ranks[:list.lengths[run.place]]) WITH ORDINALITY
            AS cut (rank, place) ORDER BY cut.place
        ) END AS chunk_ids,
        CASE WHEN list.chunk_ranks IS NULL THEN list.scores[:list.lengths[run.place]]
        ELSE ARRAY(
            SELECT list.scores[rank] FROM unnest(list.chunk_ranks[:list.lengths[run.place]]) WITH ORDINALITY
            AS cut (rank, place) ORDER BY cut.place
        ) END AS scores,
        list.encode_ms, list.search_ms, list.fuse_ms, list.rerank_ms, list.total_ms, list.error,
        list.embed_calls, list.llm_calls, list.llm_cached, list.fallback_used, list.rewrite_ms
    FROM benchmarks_run AS run JOIN benchmarks_stagelist AS list ON list.source_id = run.source_id
    WHERE list.lengths IS NOT NULL
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("datasets", "0001_initial"),
        ("mappings", "0001_initial"),
        ("operations", "0001_initial"),
        ("retrieval", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="QueryResult",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("place", models.PositiveIntegerField()),
                ("repetition", models.PositiveSmallIntegerField()),
                (
                    "document_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                (
                    "chunk_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), help_text="Empty for external runs.", size=None
                    ),
                ),
                ("scores", django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                ("rewrite_ms", models.FloatField(null=True)),
                ("encode_ms", models.FloatField(null=True)),
                ("search_ms", models.FloatField(null=True)),
                ("fuse_ms", models.FloatField(null=True)),
                ("rerank_ms", models.FloatField(null=True)),
                ("total_ms", models.FloatField(null=True)),
                (
                    "embed_calls",
                    models.IntegerField(help_text="Calls, cached or not; null for external runs.", null=True),
                ),
                ("llm_calls", models.IntegerField(null=True)),
                ("llm_cached", models.IntegerField(null=True)),
                ("fallback_used", models.BooleanField(null=True)),
                ("error", models.TextField()),
            ],
            options={
                "db_table": "benchmarks_queryresult",
                "ordering": ["run", "query", "repetition"],
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="Benchmark",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=200)),
                ("description", models.TextField(blank=True)),
                ("matrix", models.JSONField(help_text="The configuration matrix as validated.")),
                (
                    "measures",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), default=list, size=None
                    ),
                ),
                ("primary_k", models.PositiveIntegerField(default=10)),
                (
                    "k_values",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), default=list, size=None
                    ),
                ),
                (
                    "execution",
                    models.CharField(
                        choices=[("shared", "Shared"), ("isolated", "Isolated")], default="shared", max_length=10
                    ),
                ),
                ("runs_per_query", models.PositiveSmallIntegerField(default=1)),
                ("seed", models.BigIntegerField(default=42)),
                (
                    "unresolved",
                    models.CharField(choices=[("count", "count"), ("drop", "drop")], default="count", max_length=10),
                ),
                (
                    "empty_queries",
                    models.CharField(choices=[("zero", "zero"), ("skip", "skip")], default="zero", max_length=10),
                ),
                (
                    "allow_missing",
                    models.BooleanField(
                        default=False,
                        help_text="Created although the collection lacks modules that module queries expect.",
                    ),
                ),
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
                        editable=False,
                        max_length=16,
                    ),
                ),
                ("total_runs", models.PositiveIntegerField(default=0, editable=False)),
                ("started_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("completed_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "dataset_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="benchmarks",
                        to="datasets.datasetversion",
                    ),
                ),
                (
                    "mapping",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="benchmarks", to="mappings.mapping"
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="operations.operation",
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
                "ordering": ["-created_at"],
                "abstract": False,
                "default_permissions": ("add", "change", "delete", "view", "view_all"),
            },
        ),
        migrations.CreateModel(
            name="Origin",
            fields=[
                (
                    "benchmark",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="origin",
                        serialize=False,
                        to="benchmarks.benchmark",
                    ),
                ),
                (
                    "manifest",
                    models.JSONField(
                        default=dict, help_text="Experiment file of an earlier benchmark, whose values are compared."
                    ),
                ),
                (
                    "experiment",
                    models.JSONField(default=dict, help_text="The id, and the config with all defaults filled in."),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RerankerRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model", models.CharField(max_length=500)),
                ("revision", models.CharField(max_length=1000)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reranker_revisions",
                        to="benchmarks.benchmark",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("benchmark", "model"), name="reranker_revision_once")],
            },
        ),
        migrations.CreateModel(
            name="ListSource",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=1000)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="list_sources",
                        to="benchmarks.benchmark",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PairList",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reranker", models.CharField(max_length=500)),
                ("revision", models.CharField(max_length=1000)),
                (
                    "positions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        help_text="Positions of the chunks in their set.",
                        size=None,
                    ),
                ),
                (
                    "scores",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), help_text="Raw scores for ordering.", size=None
                    ),
                ),
                (
                    "threshold_scores",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), help_text="Raw scores for thresholds.", size=None
                    ),
                ),
                ("duration_ms", models.FloatField()),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pair_lists",
                        to="benchmarks.benchmark",
                    ),
                ),
                (
                    "chunk_set",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="retrieval.chunkset"
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="datasets.query"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("run_order", models.PositiveIntegerField(help_text="Starts at 1.")),
                ("label", models.CharField(max_length=300)),
                ("is_external", models.BooleanField(default=False)),
                ("config", models.JSONField(default=dict)),
                ("config_hash", models.CharField(max_length=64)),
                (
                    "place",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, help_text="Position among the runs that read the same lists, from 1."
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("indexing", "Indexing"),
                            ("evaluating", "Evaluating"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("error_message", models.TextField(blank=True)),
                (
                    "traceback",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="Set if the run was refused when the benchmark was created.",
                    ),
                ),
                ("warnings", models.JSONField(blank=True, default=list)),
                ("timing", models.JSONField(blank=True, default=dict)),
                ("embed_calls", models.PositiveIntegerField(default=0)),
                ("llm_calls", models.PositiveIntegerField(default=0)),
                ("provenance", models.JSONField(blank=True, default=dict)),
                ("failed_queries", models.PositiveIntegerField(default=0)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="benchmarks.benchmark"
                    ),
                ),
                (
                    "index",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="retrieval.index",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        editable=False,
                        help_text="Source of its lists.",
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="runs",
                        to="benchmarks.listsource",
                    ),
                ),
            ],
            options={
                "ordering": ["benchmark", "run_order"],
            },
        ),
        migrations.CreateModel(
            name="Evaluation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("policies", models.JSONField(help_text="unresolved, empty_queries.")),
                ("policies_hash", models.CharField(max_length=64)),
                ("means", models.JSONField(help_text="Measure name to mean over the queries that count.")),
                (
                    "measures",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), size=None),
                ),
                (
                    "query_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                (
                    "values",
                    apps.records.models.values.ValuesField(
                        help_text="Per measure, per query; null if the query failed."
                    ),
                ),
                ("query_count", models.PositiveIntegerField(help_text="Queries in the means.")),
                ("failed_queries", models.PositiveIntegerField(default=0)),
                (
                    "unsearched_queries",
                    models.PositiveIntegerField(default=0, help_text="Queries of the version that were not searched."),
                ),
                (
                    "truth_hash",
                    models.CharField(
                        blank=True, help_text="Hash of the grades it was measured against.", max_length=64
                    ),
                ),
                ("unresolved_count", models.PositiveIntegerField(default=0)),
                (
                    "unresolved_share",
                    models.FloatField(
                        default=0, help_text="Share of the ideal gain that belongs to unresolved judgments."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "dataset_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="evaluations",
                        to="datasets.datasetversion",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="evaluations", to="benchmarks.run"
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
            },
        ),
        migrations.CreateModel(
            name="BatchValues",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "measures",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), size=None),
                ),
                (
                    "query_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), help_text="Queries that have values.", size=None
                    ),
                ),
                (
                    "failed_query_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                (
                    "values",
                    models.BinaryField(help_text="Per measure, per query: float64, little endian; NaN: no value."),
                ),
                (
                    "truth_hash",
                    models.CharField(help_text="Hash of the grades of these queries.", max_length=64),
                ),
                ("was_searched", models.BooleanField(help_text="False if stored rankings were measured again.")),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="operations.batch"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="batch_values", to="benchmarks.run"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Baseline",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(default="baseline", max_length=200)),
                ("reason", models.TextField()),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
                (
                    "approved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="baselines", to="datasets.dataset"
                    ),
                ),
                (
                    "retired_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="baselines", to="benchmarks.run"
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
            },
        ),
        migrations.CreateModel(
            name="StageList",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("repetition", models.PositiveSmallIntegerField(default=1)),
                (
                    "chunk_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        help_text="Empty for external runs; null if the stage failed.",
                        null=True,
                        size=None,
                    ),
                ),
                ("scores", django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                (
                    "threshold_scores",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(),
                        help_text="Scores for thresholds, if they differ from the scores for ordering.",
                        null=True,
                        size=None,
                    ),
                ),
                ("duration_ms", models.FloatField(null=True)),
                (
                    "document_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        help_text="Documents of a final list, best first.",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "chunk_ranks",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(),
                        help_text="The rank of the chunk that found each document; null if each chunk is a whole document.",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "lengths",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(),
                        help_text="In a final list, the number of documents that each run returns, by its place.",
                        null=True,
                        size=None,
                    ),
                ),
                ("rewrite_ms", models.FloatField(null=True)),
                ("encode_ms", models.FloatField(null=True)),
                ("search_ms", models.FloatField(null=True)),
                ("fuse_ms", models.FloatField(null=True)),
                ("rerank_ms", models.FloatField(null=True)),
                ("total_ms", models.FloatField(null=True)),
                (
                    "embed_calls",
                    models.IntegerField(help_text="Calls, cached or not; null for external runs.", null=True),
                ),
                ("llm_calls", models.IntegerField(null=True)),
                ("llm_cached", models.IntegerField(null=True)),
                ("fallback_used", models.BooleanField(null=True)),
                ("error", models.TextField(blank=True)),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="datasets.query"
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lists",
                        to="benchmarks.listsource",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="benchmark",
            index=models.Index(fields=["-created_at"], name="benchmark_created"),
        ),
        migrations.AddConstraint(
            model_name="benchmark",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["pending", "running", "completed", "failed", "cancelled"])),
                name="benchmark_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="benchmark",
            constraint=models.CheckConstraint(
                condition=models.Q(("execution__in", ["shared", "isolated"])), name="benchmark_execution"
            ),
        ),
        migrations.AddConstraint(
            model_name="benchmark",
            constraint=models.CheckConstraint(
                condition=models.Q(("unresolved__in", ["count", "drop"])), name="benchmark_unresolved"
            ),
        ),
        migrations.AddConstraint(
            model_name="benchmark",
            constraint=models.CheckConstraint(
                condition=models.Q(("empty_queries__in", ["zero", "skip"])), name="benchmark_empty_queries"
            ),
        ),
        migrations.AddConstraint(
            model_name="benchmark",
            constraint=models.CheckConstraint(
                condition=models.Q(("runs_per_query__gte", 1)), name="benchmark_runs_per_query"
            ),
        ),
        migrations.AddConstraint(
            model_name="listsource",
            constraint=models.UniqueConstraint(fields=("benchmark", "key"), name="list_source_once"),
        ),
        migrations.AddIndex(
            model_name="pairlist",
            index=models.Index(fields=["benchmark", "query"], name="pair_list_query"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(fields=("benchmark", "run_order"), name="run_order"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(fields=("benchmark", "config_hash"), name="run_config"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("status__in", ["pending", "indexing", "evaluating", "completed", "failed", "cancelled"])
                ),
                name="run_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluation",
            constraint=models.UniqueConstraint(
                fields=("run", "dataset_version", "policies_hash"), name="evaluation_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="batchvalues",
            constraint=models.UniqueConstraint(fields=("run", "batch"), name="batch_values_once"),
        ),
        migrations.AddConstraint(
            model_name="baseline",
            constraint=models.UniqueConstraint(
                condition=models.Q(("retired_at__isnull", True)),
                fields=("dataset", "name"),
                name="baseline_one_current",
            ),
        ),
        migrations.AddConstraint(
            model_name="stagelist",
            constraint=models.UniqueConstraint(fields=("source", "query", "repetition"), name="stage_list_once"),
        ),
        migrations.AddConstraint(
            model_name="stagelist",
            constraint=models.CheckConstraint(condition=models.Q(("repetition__gte", 1)), name="stage_list_repetition"),
        ),
        migrations.AddConstraint(
            model_name="stagelist",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("document_ids__isnull", True), ("lengths__isnull", True)),
                    models.Q(("document_ids__isnull", False), ("lengths__isnull", False)),
                    _connector="OR",
                ),
                name="stage_list_final",
            ),
        ),
        # A ranking of 100 fits into a page as it is; compressing it, from 2 kB on, took half the time of storing it.
        migrations.RunSQL("ALTER TABLE benchmarks_stagelist SET (toast_tuple_target = 8160)"),
        migrations.RunSQL(VIEW),
    ]
