"""Each distinct list is stored once, and a run's rankings are its first documents. What is there becomes lists of runs."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

SOURCES = """
    INSERT INTO benchmarks_listsource (benchmark_id, key)
    SELECT DISTINCT benchmark_id, stage_key FROM benchmarks_stagelist
    UNION SELECT benchmark_id, 'run ' || run_order FROM benchmarks_run
    WHERE id IN (SELECT run_id FROM benchmarks_queryresult);

    UPDATE benchmarks_stagelist AS list SET source_id = source.id FROM benchmarks_listsource AS source
    WHERE source.benchmark_id = list.benchmark_id AND source.key = list.stage_key;

    UPDATE benchmarks_run AS run SET source_id = source.id FROM benchmarks_listsource AS source
    WHERE source.benchmark_id = run.benchmark_id AND source.key = 'run ' || run.run_order;
"""
RANKINGS = """
    INSERT INTO benchmarks_stagelist (
        source_id, query_id, repetition, chunk_ids, scores, document_ids, lengths,
        encode_ms, search_ms, fuse_ms, rerank_ms, total_ms, error
    )
    SELECT run.source_id, result.query_id, result.repetition, result.chunk_ids, result.scores, result.document_ids,
        ARRAY[cardinality(result.document_ids)],
        result.encode_ms, result.search_ms, result.fuse_ms, result.rerank_ms, result.total_ms, result.error
    FROM benchmarks_queryresult AS result JOIN benchmarks_run AS run ON run.id = result.run_id
    ORDER BY result.id;
"""
CHECKED = "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED;"  # else the table cannot be altered
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
        list.encode_ms, list.search_ms, list.fuse_ms, list.rerank_ms, list.total_ms, list.error
    FROM benchmarks_run AS run JOIN benchmarks_stagelist AS list ON list.source_id = run.source_id
    WHERE list.lengths IS NOT NULL
"""
INTEGERS = models.IntegerField()
FLOAT = models.FloatField(null=True)


class Migration(migrations.Migration):
    dependencies = [("benchmarks", "0003_batch_values"), ("datasets", "0001_initial")]

    operations = [
        migrations.RemoveField("batchvalues", "rankings_hash"),
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
            options={
                "constraints": [models.UniqueConstraint(fields=("benchmark", "key"), name="list_source_once")],
            },
        ),
        migrations.AddField(
            "run",
            "source",
            models.ForeignKey(
                editable=False,
                help_text="Of its lists.",
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="runs",
                to="benchmarks.listsource",
            ),
        ),
        migrations.AddField(
            "run",
            "place",
            models.PositiveSmallIntegerField(
                default=1, editable=False, help_text="Among the runs that read the same lists, from 1."
            ),
        ),
        migrations.AddField(
            "stagelist",
            "source",
            models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="lists",
                to="benchmarks.listsource",
            ),
        ),
        migrations.AddField("stagelist", "repetition", models.PositiveSmallIntegerField(default=1)),
        migrations.AddField(
            "stagelist",
            "document_ids",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), help_text="Of a final list: best first.", null=True, size=None
            ),
        ),
        migrations.AddField(
            "stagelist",
            "chunk_ranks",
            django.contrib.postgres.fields.ArrayField(
                base_field=INTEGERS,
                help_text="The rank of the chunk that brought each document; none where each chunk is a document of its "
                "own.",
                null=True,
                size=None,
            ),
        ),
        migrations.AddField(
            "stagelist",
            "lengths",
            django.contrib.postgres.fields.ArrayField(
                base_field=INTEGERS,
                help_text="Of a final list: how many documents each run returns, by its place.",
                null=True,
                size=None,
            ),
        ),
        *(
            migrations.AddField("stagelist", f"{name}_ms", FLOAT)
            for name in ("encode", "search", "fuse", "rerank", "total")
        ),
        migrations.AddField("stagelist", "error", models.TextField(blank=True, default=""), preserve_default=False),
        migrations.AlterField(
            "stagelist",
            "chunk_ids",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(),
                help_text="Empty for external runs; none where the stage failed.",
                null=True,
                size=None,
            ),
        ),
        migrations.RunSQL(SOURCES + CHECKED),
        migrations.RemoveConstraint("stagelist", "stage_list_once"),
        migrations.RemoveField("stagelist", "benchmark"),
        migrations.RemoveField("stagelist", "stage_key"),
        migrations.RunSQL(RANKINGS + CHECKED),
        migrations.AlterField(
            "stagelist",
            "source",
            models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="lists",
                to="benchmarks.listsource",
            ),
        ),
        migrations.AlterField(
            "stagelist",
            "query",
            models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="datasets.query"),
        ),
        migrations.AddConstraint(
            "stagelist",
            models.UniqueConstraint(fields=("source", "query", "repetition"), name="stage_list_once"),
        ),
        migrations.AddConstraint(
            "stagelist",
            models.CheckConstraint(condition=models.Q(("repetition__gte", 1)), name="stage_list_repetition"),
        ),
        migrations.AddConstraint(
            "stagelist",
            models.CheckConstraint(
                condition=models.Q(
                    models.Q(("document_ids__isnull", True), ("lengths__isnull", True)),
                    models.Q(("document_ids__isnull", False), ("lengths__isnull", False)),
                    _connector="OR",
                ),
                name="stage_list_final",
            ),
        ),
        migrations.DeleteModel("QueryResult"),
        migrations.RunSQL(VIEW),
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
                *((f"{name}_ms", FLOAT) for name in ("encode", "search", "fuse", "rerank", "total")),
                ("error", models.TextField()),
            ],
            options={
                "db_table": "benchmarks_queryresult",
                "ordering": ["run", "query", "repetition"],
                "managed": False,
            },
        ),
    ]
