"""A store is a choice of the run, so that an index has none."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0003_llm_answers"), ("benchmarks", "0008_stores_of_runs")]
    operations = [
        migrations.RemoveField("index", "store"),
        migrations.RemoveField("index", "store_parameters"),
    ]
