"""The rate is an axis of the matrix. The column stays until the next version: the code before reads it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("benchmarks", "0006_schedules")]

    operations = [
        migrations.RemoveConstraint(model_name="benchmark", name="benchmark_rate"),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField(model_name="benchmark", name="rate")]
        ),
    ]
