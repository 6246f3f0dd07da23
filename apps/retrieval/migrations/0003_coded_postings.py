"""Empty: 0006 builds the stored BM25 indexes again."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0002_chunk_set_index"),
    ]

    operations = []
