"""Kept answers of language models know the revision that gave them, and when they were used."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0004_stores_go")]

    operations = [
        migrations.AddField(
            "llmanswer",
            "revision",
            models.CharField(blank=True, default="", help_text="Empty: the server tells none.", max_length=200),
            preserve_default=False,
        ),
        migrations.AddField(
            "llmanswer",
            "used_at",
            models.DateTimeField(auto_now_add=True, default=django.utils.timezone.now, help_text="To the day."),
            preserve_default=False,
        ),
        migrations.AlterField(
            "llmanswer",
            "key",
            models.CharField(
                help_text="SHA-256 over server, model, its revision, prompt and what the server was told.",
                max_length=64,
                unique=True,
            ),
        ),
    ]
