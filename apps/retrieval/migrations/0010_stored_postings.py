"""PostgreSQL stores the pieces of indexes as they are: it tried to compress them, in vain, for eight times as long."""

from django.db import migrations

SET_STORAGE = "ALTER TABLE retrieval_lexicalpiece ALTER COLUMN data SET STORAGE {}"


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0009_cut_queries"),
    ]

    operations = [
        migrations.RunSQL(SET_STORAGE.format("EXTERNAL"), SET_STORAGE.format("EXTENDED")),
    ]
