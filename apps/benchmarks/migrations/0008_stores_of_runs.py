"""The store that an index had is the `ann` of the runs that were to search it and have not."""

from django.db import migrations

from benchbench.ir.planning.ann_methods import STORES, arm_of
from benchbench.ir.planning.configuration import Configuration

SEARCHED_IN_MEMORY = ("pgvector", "memory")  # whichever an index named, and said so


def state_stores(apps, schema_editor):
    runs = apps.get_model("benchmarks", "Run").objects.filter(index__isnull=False).exclude(status="completed")
    for run in runs.exclude(index__store__in=SEARCHED_IN_MEMORY).select_related("index"):
        if run.index.store in STORES and run.config.get("search_mode") != "sparse":
            configuration = Configuration.from_dict(run.config | {"ann": arm_of(run.index.store)})
            run.config, run.config_hash = configuration.as_dict(), configuration.hash
            run.label = configuration.label
            run.save(update_fields=["config", "config_hash", "label"])


class Migration(migrations.Migration):
    dependencies = [("benchmarks", "0007_language_models"), ("retrieval", "0003_llm_answers")]
    operations = [migrations.RunPython(state_stores, migrations.RunPython.noop)]
