import django.db.models.deletion
from django.db import migrations, models

# Until now the cache had vectors of queries only.
FILL_SPACES = """
    INSERT INTO retrieval_vectorspace (encoder, revision, kind, dimension)
    SELECT encoder, revision, 'query', max(octet_length(vector)) / 4 FROM retrieval_cachedvector
    GROUP BY encoder, revision;
    UPDATE retrieval_cachedvector cached SET space_id = space.id FROM retrieval_vectorspace space
    WHERE (cached.encoder, cached.revision) = (space.encoder, space.revision);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0002_cachedvector_encode_ms"),
    ]

    operations = [
        migrations.CreateModel(
            name="VectorSpace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("encoder", models.CharField(max_length=500)),
                ("revision", models.CharField(max_length=200)),
                ("kind", models.CharField(choices=[("query", "Query"), ("document", "Document")], max_length=10)),
                ("dimension", models.PositiveIntegerField()),
            ],
            options={"verbose_name": "vector cache", "ordering": ["encoder", "revision", "kind"]},
        ),
        migrations.AddConstraint(
            model_name="vectorspace",
            constraint=models.UniqueConstraint(fields=("encoder", "revision", "kind"), name="vector_space_key"),
        ),
        migrations.AddConstraint(
            model_name="vectorspace",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["query", "document"])), name="vector_space_kind"
            ),
        ),
        migrations.AddField(
            model_name="cachedvector",
            name="space",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="vectors",
                to="retrieval.vectorspace",
            ),
        ),
        migrations.RunSQL(FILL_SPACES, migrations.RunSQL.noop),
        # The constraints of a foreign key wait for the end of a transaction, and no table is altered while one waits.
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="cachedvector",
            name="space",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="vectors", to="retrieval.vectorspace"
            ),
        ),
        migrations.RemoveConstraint(model_name="cachedvector", name="cached_vector_key"),
        migrations.RemoveIndex(model_name="cachedvector", name="cached_vector_used"),
        migrations.RemoveField(model_name="cachedvector", name="encoder"),
        migrations.RemoveField(model_name="cachedvector", name="revision"),
        migrations.AddIndex(
            model_name="cachedvector",
            index=models.Index(
                condition=models.Q(("pinned", False)), fields=["space", "used_at"], name="cached_vector_used"
            ),
        ),
        migrations.AddConstraint(
            model_name="cachedvector",
            constraint=models.UniqueConstraint(fields=("space", "text_hash"), name="cached_vector_key"),
        ),
        migrations.AlterField(
            model_name="cachedvector",
            name="used_at",
            field=models.DateTimeField(auto_now_add=True, help_text="To the day."),
        ),
    ]
