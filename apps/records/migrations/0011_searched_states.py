from django.db import migrations, models


def record_states(apps, schema_editor):
    """Record the state of each collection that has not changed since a benchmark searched it."""
    CollectionState = apps.get_model("collections", "CollectionState")
    Run = apps.get_model("benchmarks", "Run")
    benchmarks = apps.get_model("benchmarks", "Benchmark").objects.filter(mapping__collection__kind="documents")
    for benchmark in benchmarks.select_related("mapping__collection").iterator():
        collection = benchmark.mapping.collection
        runs = Run.objects.filter(benchmark=benchmark).exclude(started_at=None)
        marks = runs.values_list("index__chunk_set__collection_fingerprint", "provenance__collection__fingerprint")
        searched = {mark for pair in marks for mark in pair if mark}
        if searched == {collection.fingerprint}:
            CollectionState.objects.get_or_create(
                collection=collection,
                number=1,
                defaults={"fingerprint": collection.fingerprint, "document_count": collection.document_count},
            )
            benchmark.state = 1
            benchmark.save(update_fields=["state"])


class Migration(migrations.Migration):
    dependencies = [
        ("benchmarks", "0010_orderings"),
        ("collections", "0003_searched_states"),
    ]

    operations = [
        migrations.AddField(
            model_name="benchmark",
            name="state",
            field=models.PositiveIntegerField(
                blank=True,
                editable=False,
                help_text="Number of the state of the collection that it searched. Empty before its launch.",
                null=True,
            ),
        ),
        migrations.RunPython(record_states, migrations.RunPython.noop),
    ]
