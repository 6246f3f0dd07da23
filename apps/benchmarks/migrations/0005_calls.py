"""Final lists, and so the results of queries, say how many calls they took; those that are there encoded each query."""

from django.db import migrations, models

# Until now every strategy encoded a query once; words alone took no encoding, and imported rankings say nothing.
CALLS = """
    UPDATE benchmarks_stagelist AS list SET llm_calls = 0,
        embed_calls = CASE WHEN run.config->>'search_mode' = 'sparse' THEN 0 ELSE 1 END
    FROM benchmarks_run AS run
    WHERE run.source_id = list.source_id AND run.place = 1 AND NOT run.is_external AND list.lengths IS NOT NULL;
    SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED;
"""
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
        list.embed_calls, list.llm_calls
    FROM benchmarks_run AS run JOIN benchmarks_stagelist AS list ON list.source_id = run.source_id
    WHERE list.lengths IS NOT NULL
"""
EMBED = models.IntegerField(help_text="Of a final list: queries encoded, as if made alone.", null=True)
LLM = models.IntegerField(help_text="Of a final list: a language model asked, as if made alone.", null=True)


class Migration(migrations.Migration):
    dependencies = [("benchmarks", "0004_lists")]

    operations = [
        migrations.AddField("stagelist", "embed_calls", EMBED),
        migrations.AddField("stagelist", "llm_calls", LLM),
        migrations.RunSQL(CALLS),
        migrations.RunSQL(VIEW),
    ]
