"""Answers of language models are kept."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0002_summaries")]

    operations = [
        migrations.CreateModel(
            name="LLMAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "key",
                    models.CharField(
                        help_text="SHA-256 over server, model, prompt and what the server was told.",
                        max_length=64,
                        unique=True,
                    ),
                ),
                ("provider", models.CharField(help_text="The name of the server.", max_length=100)),
                ("model", models.CharField(max_length=500)),
                ("prompt", models.TextField()),
                ("parameters", models.JSONField(help_text="What the server was told: temperature, max_tokens, seed.")),
                ("text", models.TextField()),
                ("ms", models.FloatField(help_text="What the model took for it.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
    ]
