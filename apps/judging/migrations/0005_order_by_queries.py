from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0004_stored_state")]

    operations = [
        migrations.RemoveConstraint(model_name="round", name="round_order"),
        migrations.AlterField(
            model_name="round",
            name="order",
            field=models.CharField(
                choices=[
                    ("depth", "Depth"),
                    ("random", "Random"),
                    ("decisive", "Decisive"),
                    ("queries", "Queries"),
                ],
                default="decisive",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=models.Q(("order__in", ["depth", "random", "decisive", "queries"])), name="round_order"
            ),
        ),
    ]
