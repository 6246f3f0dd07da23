import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("judging", "0003_llm_judging"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="rounditem", name="round_item_probability"),
        migrations.RenameField(model_name="rounditem", old_name="probability", new_name="planned_probability"),
        migrations.RenameField(model_name="rounditem", old_name="uniform", new_name="in_planned_sample"),
        migrations.AlterField(
            model_name="rounditem",
            name="planned_probability",
            field=models.FloatField(
                help_text=(
                    "With which any pair of the pool would be in the uniform sample, were the round judged to its end."
                )
            ),
        ),
        migrations.AlterField(
            model_name="rounditem",
            name="in_planned_sample",
            field=models.BooleanField(help_text="Whether it would be of that sample."),
        ),
        migrations.AddConstraint(
            model_name="rounditem",
            constraint=models.CheckConstraint(
                condition=models.Q(("planned_probability__gte", 0), ("planned_probability__lte", 1)),
                name="round_item_probability",
            ),
        ),
        migrations.RemoveField(model_name="round", name="stated_grades"),
        migrations.AddIndex(
            model_name="grade", index=models.Index(fields=["judge", "-graded_at"], name="grade_of_judge")
        ),
        migrations.CreateModel(
            name="RoundState",
            fields=[
                (
                    "round",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="stated",
                        serialize=False,
                        to="judging.round",
                    ),
                ),
                (
                    "grades",
                    models.PositiveIntegerField(default=0, help_text="How many grades of people it counts."),
                ),
                (
                    "mark",
                    models.CharField(
                        help_text="Hash of what it was reckoned from: the basis and the grades.", max_length=64
                    ),
                ),
                ("state", models.JSONField(help_text="Null for a round that compares nothing.", null=True)),
                (
                    "sample_size",
                    models.PositiveIntegerField(default=0, help_text="Pairs of the uniform sample that are judged."),
                ),
                (
                    "sampled_from",
                    models.PositiveIntegerField(default=0, help_text="Pairs that the sample is drawn from."),
                ),
                (
                    "front",
                    models.JSONField(default=list, help_text="Items that were put in place last, in their order."),
                ),
                (
                    "basis",
                    models.CharField(help_text="Hash of what the board was read from.", max_length=64),
                ),
                ("board", models.BinaryField(help_text="The question and the items, packed.", null=True)),
                ("renewed_at", models.DateTimeField(null=True)),
            ],
        ),
    ]
