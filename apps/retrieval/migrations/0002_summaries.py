"""Chunk sets count the summaries above their chunks; those that are there have none."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0001_initial")]

    operations = [
        migrations.AddField(
            "chunkset",
            "summary_count",
            models.PositiveIntegerField(default=0, help_text="The levels above: the positions after those."),
        ),
        migrations.AlterField(
            "chunkset",
            "chunk_count",
            models.PositiveIntegerField(default=0, help_text="Level 0: positions 0 to this."),
        ),
        migrations.AlterField(
            "chunk",
            "position",
            models.PositiveIntegerField(
                help_text="Row in the set's vectors. Ascending position is the tie order: level, external_id, then "
                "ordinal."
            ),
        ),
        migrations.AlterField(
            "index",
            "chunk_parameters",
            models.JSONField(
                blank=True,
                default=dict,
                help_text='Of the strategy, those of its search too. Characters: {"size": 500, "overlap": 50}.',
            ),
        ),
    ]
