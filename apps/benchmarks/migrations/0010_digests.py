"""Batches keep the digests of their rankings, of which the hash of a run is made when it ends."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("benchmarks", "0009_rewriting")]

    operations = [
        migrations.AddField(
            "batchvalues",
            "digests",
            models.BinaryField(null=True, help_text="Of the run's rankings: `apps.benchmarks.measuring.hashes`."),
        ),
    ]
