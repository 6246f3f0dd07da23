import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("benchmarks", "0001_initial"),
        ("collections", "0001_initial"),
        ("datasets", "0001_initial"),
        ("mappings", "0001_initial"),
        ("retrieval", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Round",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=200)),
                (
                    "order",
                    models.CharField(
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
                ("depth", models.PositiveIntegerField(help_text="Documents of each ranking in the pool.")),
                (
                    "budget",
                    models.PositiveIntegerField(
                        blank=True, help_text="At most this many items. Empty: the pool.", null=True
                    ),
                ),
                (
                    "measure",
                    models.CharField(help_text="The measure whose differences the round settles.", max_length=100),
                ),
                (
                    "uniform_share",
                    models.FloatField(default=0.1, help_text="Share of the items drawn uniformly at random."),
                ),
                ("seed", models.BigIntegerField(default=42)),
                ("scale", models.JSONField(help_text="Grades, lowest first: grade, name, description.")),
                ("guidelines", models.TextField(blank=True, help_text="For the judges, in Markdown.")),
                ("overlap", models.FloatField(default=0, help_text="Share of the items that several judges grade.")),
                (
                    "overlap_judges",
                    models.PositiveSmallIntegerField(default=2, help_text="Judges for each shared item."),
                ),
                (
                    "blind",
                    models.BooleanField(
                        default=True,
                        help_text="Judges do not see each other's grades while it is open.",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("closed", "Closed")], default="open", editable=False, max_length=10
                    ),
                ),
                ("item_count", models.PositiveIntegerField(default=0, editable=False)),
                (
                    "pool_size",
                    models.PositiveIntegerField(
                        default=0,
                        editable=False,
                        help_text="Unjudged pairs in the first documents of its runs.",
                    ),
                ),
                (
                    "settled_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="When it was settled; then it hands out no items.",
                        null=True,
                    ),
                ),
                (
                    "continue_after_settled",
                    models.BooleanField(default=False, help_text="Judges get items after it is settled."),
                ),
                ("closed_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "closed_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "closed_version",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="datasets.datasetversion",
                    ),
                ),
                (
                    "dataset_version",
                    models.ForeignKey(
                        help_text="The dataset version at its start.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="datasets.datasetversion",
                    ),
                ),
                ("judges", models.ManyToManyField(related_name="judging_rounds", to=settings.AUTH_USER_MODEL)),
                (
                    "mapping",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="rounds", to="mappings.mapping"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="The user who can see and change it. Empty: all staff can.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        help_text="Members of this group can see it too.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="auth.group",
                    ),
                ),
            ],
            options={
                "verbose_name": "judging round",
                "ordering": ["-created_at"],
                "abstract": False,
                "default_permissions": ("add", "change", "delete", "view", "view_all"),
            },
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
                ("grades", models.PositiveIntegerField(default=0, help_text="Number of human grades that it counts.")),
                (
                    "mark",
                    models.CharField(help_text="Hash of its inputs: the basis and the grades.", max_length=64),
                ),
                ("state", models.JSONField(help_text="Null if the round compares no runs.", null=True)),
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
                    models.JSONField(default=list, help_text="Items that were reordered last, in their order."),
                ),
                ("basis", models.CharField(help_text="Hash of the inputs of the board.", max_length=64)),
                ("board", models.BinaryField(help_text="The question and the items, packed.", null=True)),
                ("computed_at", models.DateTimeField(null=True)),
                (
                    "evidence",
                    models.JSONField(
                        db_default={},
                        default=dict,
                        help_text="Names of the index of its texts and of the model whose grades are evidence.",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RoundItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "place",
                    models.PositiveIntegerField(help_text="In the order of the round when it was opened, from 1."),
                ),
                (
                    "planned_probability",
                    models.FloatField(
                        help_text="Probability that a pair of the pool is in the uniform sample of the completed round."
                    ),
                ),
                ("in_planned_sample", models.BooleanField(help_text="Whether it is in that sample.")),
                ("wanted", models.PositiveSmallIntegerField(default=1, help_text="Number of judges to grade it.")),
                (
                    "chunk",
                    models.ForeignKey(
                        help_text="The best passage of any run.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="retrieval.chunk",
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="collections.document"
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="datasets.query"
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="items", to="judging.round"
                    ),
                ),
            ],
            options={
                "ordering": ["round", "place"],
            },
        ),
        migrations.CreateModel(
            name="Grade",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "source",
                    models.CharField(choices=[("human", "Human"), ("llm", "Llm")], default="human", max_length=10),
                ),
                (
                    "judge_name",
                    models.CharField(
                        help_text="For a language model: model, prompt and their versions.", max_length=200
                    ),
                ),
                (
                    "adjudicates",
                    models.BooleanField(default=False, help_text="It decides an item on which the judges are split."),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("grade", "Grade"), ("skip", "Skip"), ("cannot_judge", "can't judge")],
                        default="grade",
                        max_length=12,
                    ),
                ),
                ("grade", models.SmallIntegerField(null=True)),
                ("note", models.TextField(blank=True)),
                (
                    "seconds",
                    models.FloatField(help_text="Time from showing the item to grading it.", null=True),
                ),
                ("graded_at", models.DateTimeField()),
                (
                    "judge",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="grades", to="judging.rounditem"
                    ),
                ),
            ],
            options={
                "ordering": ["-graded_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="CalibrationItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("place", models.PositiveIntegerField(help_text="In the order in which the sample was drawn, from 1.")),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calibration_items",
                        to="judging.round",
                    ),
                ),
                (
                    "item",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="calibration", to="judging.rounditem"
                    ),
                ),
            ],
            options={
                "ordering": ["round", "place"],
            },
        ),
        migrations.CreateModel(
            name="RoundRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="round_runs", to="judging.round"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="benchmarks.run"
                    ),
                ),
            ],
            options={
                "verbose_name": "judging round",
            },
        ),
        migrations.AddField(
            model_name="round",
            name="runs",
            field=models.ManyToManyField(related_name="rounds", through="judging.RoundRun", to="benchmarks.run"),
        ),
        migrations.CreateModel(
            name="Slot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveSmallIntegerField(help_text="From 1.")),
                (
                    "place",
                    models.IntegerField(
                        help_text="The smallest value comes first. New states of a decisive round change it."
                    ),
                ),
                ("until", models.DateTimeField(null=True)),
                ("done", models.BooleanField(default=False)),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="slots", to="judging.rounditem"
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="slots", to="judging.round"
                    ),
                ),
            ],
            options={
                "ordering": ["round", "place", "number"],
            },
        ),
        migrations.CreateModel(
            name="LLMJudge",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(help_text="Of its grades: server, model, revision, prompt.", max_length=200)),
                ("llm", models.CharField(help_text="Server and model, as ollama:llama3.", max_length=150)),
                (
                    "revision",
                    models.CharField(help_text="As its server reports it; unknown if it reports none.", max_length=200),
                ),
                ("prompt_version", models.CharField(max_length=20)),
                (
                    "prompt_hash",
                    models.CharField(help_text="Hash of the prompt with the scale and the guidelines.", max_length=64),
                ),
                (
                    "item_limit",
                    models.PositiveIntegerField(help_text="Maximum number of answers of its last start.", null=True),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="llm_judges", to="judging.round"
                    ),
                ),
            ],
            options={
                "verbose_name": "model that judges",
                "ordering": ["-updated_at"],
                "constraints": [models.UniqueConstraint(fields=("round", "name"), name="llm_judge_once")],
            },
        ),
        migrations.AddConstraint(
            model_name="rounditem",
            constraint=models.UniqueConstraint(fields=("round", "query", "document"), name="round_item_once"),
        ),
        migrations.AddConstraint(
            model_name="rounditem",
            constraint=models.CheckConstraint(
                condition=models.Q(("planned_probability__gte", 0), ("planned_probability__lte", 1)),
                name="round_item_probability",
            ),
        ),
        migrations.AddConstraint(
            model_name="rounditem",
            constraint=models.CheckConstraint(condition=models.Q(("wanted__gte", 1)), name="round_item_wanted"),
        ),
        migrations.AddIndex(
            model_name="grade",
            index=models.Index(fields=["judge", "-graded_at"], name="grade_of_judge"),
        ),
        migrations.AddConstraint(
            model_name="grade",
            constraint=models.UniqueConstraint(
                fields=("item", "source", "judge_name", "adjudicates"), name="grade_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="grade",
            constraint=models.UniqueConstraint(
                condition=models.Q(("adjudicates", True)), fields=("item",), name="grade_one_adjudication"
            ),
        ),
        migrations.AddConstraint(
            model_name="grade",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("grade__isnull", False), ("kind", "grade")),
                    models.Q(("grade__isnull", True), ("kind__in", ["skip", "cannot_judge"])),
                    _connector="OR",
                ),
                name="grade_of_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="grade",
            constraint=models.CheckConstraint(
                condition=models.Q(("source__in", ["human", "llm"])), name="grade_source"
            ),
        ),
        migrations.AddConstraint(
            model_name="grade",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("adjudicates", False), models.Q(("kind", "grade"), ("source", "human")), _connector="OR"
                ),
                name="grade_adjudication",
            ),
        ),
        migrations.AddConstraint(
            model_name="calibrationitem",
            constraint=models.UniqueConstraint(fields=("round", "place"), name="calibration_place"),
        ),
        migrations.AddConstraint(
            model_name="roundrun",
            constraint=models.UniqueConstraint(fields=("round", "run"), name="round_run_once"),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=models.Q(("order__in", ["depth", "random", "decisive", "queries"])), name="round_order"
            ),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_at__isnull", True), ("state", "open")),
                    models.Q(("closed_at__isnull", False), ("state", "closed")),
                    _connector="OR",
                ),
                name="round_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(condition=models.Q(("depth__gte", 1)), name="round_depth"),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("overlap__gte", 0), ("overlap__lte", 1), ("uniform_share__gte", 0), ("uniform_share__lte", 1)
                ),
                name="round_shares",
            ),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=models.Q(("overlap_judges__gte", 2)), name="round_overlap_judges"
            ),
        ),
        migrations.AddIndex(
            model_name="slot",
            index=models.Index(
                condition=models.Q(("done", False)), fields=["round", "place", "number"], name="slot_waiting"
            ),
        ),
        migrations.AddConstraint(
            model_name="slot",
            constraint=models.UniqueConstraint(fields=("item", "number"), name="slot_number"),
        ),
    ]
