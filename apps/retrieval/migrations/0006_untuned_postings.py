"""Write the stored BM25 indexes in their third format: postings have codes of occurrences and lengths."""

from tempfile import TemporaryFile
from typing import Any

from django.db import migrations

from apps.retrieval.analysis.analyzers import build_analyzer
from apps.retrieval.search.lexical_indexes import ENGINE, build_key, store_pieces
from apps.retrieval.search.term_counts import write_bm25


def rebuild(apps: Any, _: Any) -> None:
    """Build every index again: a minute for a million chunks. Locks on their rows prevent deletions meanwhile."""
    english = build_analyzer("english")  # as all were built
    indexes = apps.get_model("retrieval", "LexicalIndex").objects.filter(engine=ENGINE)
    for index in indexes.select_related("chunk_set").select_for_update(of=("self",)):
        chunks = apps.get_model("retrieval", "Chunk").objects.filter(chunk_set=index.chunk_set_id, level=0)
        with TemporaryFile() as out:
            write_bm25(chunks.order_by("position").values_list("text", flat=True).iterator(), out, english)
            index.size_bytes, index.fingerprint = out.tell(), build_key(index.chunk_set.fingerprint, english)
            index.save(update_fields=["size_bytes", "fingerprint"])
            index.pieces.all().delete()
            store_pieces(out, index.pk)


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0005_encoder_parameters"),
        ("collections", "0004_languages"),
    ]

    operations = [
        migrations.RunPython(rebuild, elidable=True),
    ]
