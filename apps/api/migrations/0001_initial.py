import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="StoredAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(max_length=300)),
                ("key", models.CharField(max_length=200)),
                ("body_hash", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(default=0)),
                ("body", models.TextField(blank=True, help_text="The very text of the answer.")),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("user", "path", "key"), name="answer_stored_once")],
            },
        ),
    ]
