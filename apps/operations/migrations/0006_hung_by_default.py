from django.db import migrations, models


class Migration(migrations.Migration):
    """Lets code that does not know the column go on adding batches while it is replaced."""

    dependencies = [("operations", "0005_hung")]

    operations = [
        migrations.AlterField(
            model_name="batch",
            name="hung",
            field=models.JSONField(
                blank=True,
                db_default={},
                default=dict,
                editable=False,
                help_text="By stage and query, the sentence of a model that did not answer; without a query, for several.",
            ),
        ),
    ]
