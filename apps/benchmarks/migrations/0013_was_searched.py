from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("benchmarks", "0012_refusals")]

    operations = [
        migrations.RemoveField("batchvalues", "digests"),
        migrations.AddField(
            "batchvalues",
            "was_searched",
            models.BooleanField(help_text="False: stored rankings were measured again.", default=True),
            preserve_default=False,
        ),
    ]
