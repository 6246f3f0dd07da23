"""Lists say what rewriting the query cost."""

from django.db import migrations, models

VIEW = """
    CREATE OR REPLACE VIEW benchmarks_queryresult AS
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
    dependencies = [("benchmarks", "0008_stores_of_runs")]

    operations = [
        migrations.AddField("stagelist", "rewrite_ms", models.FloatField(null=True)),
        migrations.RunSQL(VIEW),
    ]
