import uuid

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from pgvector.django import VectorExtension


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("collections", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        VectorExtension(),
        migrations.CreateModel(
            name="LLMAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "key",
                    models.CharField(
                        help_text="SHA-256 over server, model, its revision, prompt and parameters.",
                        max_length=64,
                        unique=True,
                    ),
                ),
                ("provider", models.CharField(help_text="The name of the server.", max_length=100)),
                ("model", models.CharField(max_length=500)),
                ("revision", models.CharField(blank=True, help_text="Empty: the server reports none.", max_length=200)),
                ("prompt", models.TextField()),
                ("parameters", models.JSONField(help_text="Parameters of the request: temperature, max_tokens, seed.")),
                ("text", models.TextField()),
                ("ms", models.FloatField(help_text="Time of the model's answer.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("used_at", models.DateTimeField(auto_now_add=True, help_text="Accurate to the day.")),
            ],
        ),
        migrations.CreateModel(
            name="ChunkSet",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("collection_fingerprint", models.CharField(max_length=64)),
                ("strategy", models.CharField(max_length=50)),
                ("parameters", models.JSONField(default=dict)),
                (
                    "fingerprint",
                    models.CharField(
                        help_text="SHA-256 over collection, its fingerprint, strategy and parameters.",
                        max_length=64,
                        unique=True,
                    ),
                ),
                (
                    "chunk_count",
                    models.PositiveIntegerField(default=0, help_text="Chunks of level 0, at positions from 0."),
                ),
                (
                    "summary_count",
                    models.PositiveIntegerField(
                        default=0, help_text="Summaries of higher levels, at the positions after the chunks."
                    ),
                ),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "build_seconds",
                    models.FloatField(
                        db_default=0.0, default=0, editable=False, help_text="Time to split and summarise."
                    ),
                ),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="chunk_sets",
                        to="collections.collection",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="LexicalIndex",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("engine", models.CharField(default="bm25", max_length=16)),
                ("parameters", models.JSONField(default=dict)),
                (
                    "fingerprint",
                    models.CharField(
                        help_text="SHA-256 over chunk set, engine, parameters.", max_length=64, unique=True
                    ),
                ),
                ("size_bytes", models.PositiveBigIntegerField(default=0)),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "build_seconds",
                    models.FloatField(db_default=0.0, default=0, editable=False, help_text="Time to build it."),
                ),
                (
                    "chunk_set",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lexical_indexes",
                        to="retrieval.chunkset",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "lexical indexes",
            },
        ),
        migrations.CreateModel(
            name="VectorSpace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("encoder", models.CharField(max_length=500)),
                ("revision", models.CharField(max_length=200)),
                ("kind", models.CharField(choices=[("query", "Query"), ("document", "Document")], max_length=10)),
                ("dimension", models.PositiveIntegerField()),
            ],
            options={
                "verbose_name": "vector cache",
                "ordering": ["encoder", "revision", "kind"],
                "constraints": [
                    models.UniqueConstraint(fields=("encoder", "revision", "kind"), name="vector_space_key"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["query", "document"])), name="vector_space_kind"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Chunk",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("level", models.PositiveSmallIntegerField(default=0)),
                ("ordinal", models.PositiveIntegerField(help_text="Place in its document, from 0.")),
                (
                    "position",
                    models.PositiveIntegerField(
                        help_text="Row in the set's vectors. Ascending position is the tie order: level, external_id, then ordinal."
                    ),
                ),
                ("text", models.TextField()),
                ("text_hash", models.CharField(help_text="SHA-256 of the encoded text.", max_length=64)),
                ("start", models.PositiveIntegerField(default=0)),
                ("end", models.PositiveIntegerField(default=0)),
                ("children", models.ManyToManyField(blank=True, related_name="parents", to="retrieval.chunk")),
                (
                    "document",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="chunks",
                        to="collections.document",
                    ),
                ),
                (
                    "section",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="chunks",
                        to="collections.section",
                    ),
                ),
                (
                    "chunk_set",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="chunks", to="retrieval.chunkset"
                    ),
                ),
            ],
            options={
                "ordering": ["chunk_set", "position"],
                "constraints": [
                    models.UniqueConstraint(fields=("chunk_set", "position"), name="chunk_position"),
                    models.CheckConstraint(
                        condition=models.Q(("level__gt", 0), ("document__isnull", False), _connector="OR"),
                        name="chunk_leaf_has_document",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Index",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=200)),
                (
                    "version",
                    models.PositiveIntegerField(default=1, validators=[django.core.validators.MinValueValidator(1)]),
                ),
                ("strategy", models.CharField(default="flat", max_length=50)),
                (
                    "chunk_parameters",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text='Parameters of the strategy and its search, sizes in characters: {"size": 500, "overlap": 50}.',
                    ),
                ),
                (
                    "encoder",
                    models.CharField(
                        blank=True,
                        help_text="Name or local path of the model. Empty: no vectors, or imported vectors of an unnamed model.",
                        max_length=500,
                    ),
                ),
                ("encoder_revision", models.CharField(blank=True, editable=False, max_length=200)),
                ("dimension", models.PositiveIntegerField(blank=True, editable=False, null=True)),
                (
                    "vector_source",
                    models.CharField(
                        blank=True,
                        editable=False,
                        help_text="SHA-256 of the imported file. Empty: encoded here.",
                        max_length=100,
                    ),
                ),
                ("lexical", models.BooleanField(default=True, help_text="Also build a BM25 index.")),
                ("llm", models.CharField(blank=True, max_length=500)),
                ("llm_parameters", models.JSONField(blank=True, default=dict)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("indexing", "Indexing"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="pending",
                        editable=False,
                        max_length=16,
                    ),
                ),
                ("fingerprint", models.CharField(blank=True, editable=False, max_length=64)),
                ("stats", models.JSONField(blank=True, default=dict, editable=False)),
                ("error", models.TextField(blank=True, editable=False)),
                ("ready_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "chunk_set",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="retrieval.chunkset",
                    ),
                ),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="indexes", to="collections.collection"
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
                (
                    "lexical_index",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="retrieval.lexicalindex",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "indexes",
                "ordering": ["collection", "name", "-version"],
                "abstract": False,
                "default_permissions": ("add", "change", "delete", "view", "view_all"),
                "constraints": [
                    models.UniqueConstraint(fields=("collection", "name", "version"), name="index_version"),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["pending", "indexing", "ready", "failed", "cancelled"])),
                        name="index_status",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "ready"), _negated=True),
                            models.Q(("chunk_set__isnull", False), models.Q(("fingerprint", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="index_ready",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LexicalPiece",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ordinal", models.PositiveIntegerField()),
                ("data", models.BinaryField()),
                ("sha256", models.CharField(max_length=64)),
                (
                    "lexical_index",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="pieces", to="retrieval.lexicalindex"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("lexical_index", "ordinal"), name="lexical_piece_ordinal")
                ],
            },
        ),
        migrations.CreateModel(
            name="CachedVector",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text_hash", models.CharField(max_length=64)),
                ("vector", models.BinaryField(help_text="float32, little endian.")),
                (
                    "encode_ms",
                    models.FloatField(help_text="Time to encode it, if it was encoded here.", null=True),
                ),
                ("pinned", models.BooleanField(default=False)),
                ("used_at", models.DateTimeField(auto_now_add=True, help_text="Accurate to the day.")),
                (
                    "space",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="vectors", to="retrieval.vectorspace"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("pinned", False)), fields=["space", "used_at"], name="cached_vector_used"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("space", "text_hash"), name="cached_vector_key")],
            },
        ),
    ]
