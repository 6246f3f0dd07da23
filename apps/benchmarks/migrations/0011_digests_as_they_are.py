"""Digests are kept as they are: PostgreSQL tried to compress them, which took as long as all else, and gave up."""

from django.db import migrations

STORAGE = "ALTER TABLE benchmarks_batchvalues ALTER COLUMN digests SET STORAGE"


class Migration(migrations.Migration):
    dependencies = [("benchmarks", "0010_digests")]

    operations = [migrations.RunSQL(f"{STORAGE} EXTERNAL", f"{STORAGE} EXTENDED")]
