import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0001_initial"),
    ]

    operations = [
        migrations.AlterField(
            model_name="chunk",
            name="chunk_set",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="chunks",
                to="retrieval.chunkset",
            ),
        ),
    ]
