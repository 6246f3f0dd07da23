"""Tables of judging: rounds, their items, slots for handing out items, grades, models that judge."""

import math

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.functional import cached_property

from apps.collections.models import Document
from apps.datasets.models import DatasetVersion, Query
from apps.mappings.models import Mapping
from apps.records.models import Run
from apps.retrieval.models import Chunk
from benchbench.access import AnyUser
from benchbench.ir.judging.orders import SHARE
from benchbench.models import OwnedModel, PublicModel


class Round(OwnedModel):
    """A judging round: pairs that runs of one mapping returned without a judgment, graded by judges.

    It is a draft of the dataset: its grades count only after closing, which freezes the next version.
    """

    made_by = "open_round"

    class Order(models.TextChoices):
        DEPTH = "depth"
        RANDOM = "random"
        DECISIVE = "decisive"
        QUERIES = "queries"

    class State(models.TextChoices):
        OPEN = "open"
        CLOSED = "closed"

    name = models.CharField(max_length=200)
    mapping = models.ForeignKey(Mapping, on_delete=models.PROTECT, related_name="rounds")
    runs = models.ManyToManyField(Run, through="RoundRun", related_name="rounds")
    dataset_version = models.ForeignKey(
        DatasetVersion, on_delete=models.PROTECT, related_name="+", help_text="The dataset version at its start."
    )
    order = models.CharField(max_length=10, choices=Order, default=Order.DECISIVE)
    depth = models.PositiveIntegerField(help_text="Documents of each ranking in the pool.")
    budget = models.PositiveIntegerField(null=True, blank=True, help_text="At most this many items. Empty: the pool.")
    measure = models.CharField(max_length=100, help_text="The measure whose differences the round settles.")
    uniform_share = models.FloatField(default=SHARE, help_text="Share of the items drawn uniformly at random.")
    seed = models.BigIntegerField(default=42)
    scale = models.JSONField(help_text="Grades, lowest first: grade, name, description.")
    guidelines = models.TextField(blank=True, help_text="For the judges, in Markdown.")
    judges = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="judging_rounds")
    overlap = models.FloatField(default=0, help_text="Share of the items that several judges grade.")
    overlap_judges = models.PositiveSmallIntegerField(default=2, help_text="Judges for each shared item.")
    blind = models.BooleanField(default=True, help_text="Judges do not see each other's grades while it is open.")
    state = models.CharField(max_length=10, choices=State, default=State.OPEN, editable=False)
    item_count = models.PositiveIntegerField(default=0, editable=False)
    pool_size = models.PositiveIntegerField(
        default=0, editable=False, help_text="Unjudged pairs in the first documents of its runs."
    )
    settled_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When it was settled; then it hands out no items."
    )
    continue_after_settled = models.BooleanField(default=False, help_text="Judges get items after it is settled.")
    closed_at = models.DateTimeField(null=True, blank=True, editable=False)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    closed_version = models.ForeignKey(
        DatasetVersion, null=True, editable=False, on_delete=models.PROTECT, related_name="+"
    )

    class Meta(OwnedModel.Meta):
        verbose_name = "judging round"
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(order__in=["depth", "random", "decisive", "queries"]), name="round_order"
            ),
            models.CheckConstraint(
                condition=Q(state="open", closed_at__isnull=True) | Q(state="closed", closed_at__isnull=False),
                name="round_state",
            ),
            models.CheckConstraint(condition=Q(depth__gte=1), name="round_depth"),
            models.CheckConstraint(
                condition=Q(overlap__gte=0, overlap__lte=1, uniform_share__gte=0, uniform_share__lte=1),
                name="round_shares",
            ),
            models.CheckConstraint(condition=Q(overlap_judges__gte=2), name="round_overlap_judges"),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def seen_by(cls, user: AnyUser, prefix: str = "") -> Q:
        """Return the filter for rounds of the user and of the user's teams, and those in which the user judges."""
        return cls.shared_with(user, prefix) | Q(**{f"{prefix}pk__in": cls.judged_by(user)})

    @classmethod
    def shared_with(cls, user: AnyUser, prefix: str = "") -> Q:
        """Return the filter for rounds of the user, of the user's teams and of no one."""
        return super().seen_by(user, prefix)

    @classmethod
    def judged_by(cls, user: AnyUser) -> models.QuerySet[models.Model, object]:
        return cls.judges.through.objects.filter(user=user.pk).values("round")

    @property
    def is_open(self) -> bool:
        return self.state == self.State.OPEN

    @property
    def shared_items(self) -> int:
        """Number of its items that several judges grade."""
        return math.ceil(self.overlap * self.item_count)

    @property
    def gradings(self) -> int:
        """Number of gradings that its items want: one per judge and item, as many as it has slots."""
        return self.item_count + self.shared_items * (self.overlap_judges - 1)

    @cached_property
    def judge_ids(self) -> frozenset[int]:
        """Ids of its judges, cached on first access."""
        return frozenset(self.judges.through.objects.filter(round=self).values_list("user_id", flat=True))

    @property
    def offers_items(self) -> bool:
        """Whether judges get further items: it is open, and not settled or `continue_after_settled`."""
        return self.is_open and (self.settled_at is None or self.continue_after_settled)


class RoundRun(models.Model):
    """A run that a round compares."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="round_runs")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+")

    class Meta:
        verbose_name = "judging round"  # shown as the user of a run that is to be deleted
        constraints = [models.UniqueConstraint(fields=["round", "run"], name="round_run_once")]

    def __str__(self) -> str:
        return str(self.round)


class RoundItem(models.Model):
    """A pair to be judged: a query and a document, unique in its round. The run that brought it is not stored."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="items")
    query = models.ForeignKey(Query, on_delete=models.PROTECT, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="+")
    chunk = models.ForeignKey(
        Chunk, null=True, on_delete=models.SET_NULL, related_name="+", help_text="The best passage of any run."
    )
    place = models.PositiveIntegerField(help_text="In the order of the round when it was opened, from 1.")
    planned_probability = models.FloatField(
        help_text="Probability that a pair of the pool is in the uniform sample of the completed round."
    )
    in_planned_sample = models.BooleanField(help_text="Whether it is in that sample.")
    wanted = models.PositiveSmallIntegerField(default=1, help_text="Number of judges to grade it.")

    class Meta:
        ordering = ["round_id", "place"]
        constraints = [
            models.UniqueConstraint(fields=["round", "query", "document"], name="round_item_once"),
            models.CheckConstraint(
                condition=Q(planned_probability__gte=0, planned_probability__lte=1), name="round_item_probability"
            ),
            models.CheckConstraint(condition=Q(wanted__gte=1), name="round_item_wanted"),
        ]

    def __str__(self) -> str:
        return f"{self.query} / {self.document}"


class Slot(models.Model):
    """A judge's place for an item: free, leased until a time, or done. Its own columns decide, so races are checked."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="slots")
    item = models.ForeignKey(RoundItem, on_delete=models.CASCADE, related_name="slots")
    number = models.PositiveSmallIntegerField(help_text="From 1.")
    place = models.IntegerField(help_text="The smallest value comes first. New states of a decisive round change it.")
    judge = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    until = models.DateTimeField(null=True)
    done = models.BooleanField(default=False)

    class Meta:
        ordering = ["round_id", "place", "number"]
        # Claiming the next items of a round.
        indexes = [models.Index(fields=["round", "place", "number"], condition=Q(done=False), name="slot_waiting")]
        constraints = [models.UniqueConstraint(fields=["item", "number"], name="slot_number")]

    def __str__(self) -> str:
        return f"{self.item}, judge {self.number}"


class Grade(models.Model):
    """One judge's answer on one item: a grade, a skip, or unsure."""

    irreplaceable = True

    class Kind(models.TextChoices):
        GRADE = "grade"
        SKIP = "skip"
        CANNOT_JUDGE = "cannot_judge", "can't judge"

    class Source(models.TextChoices):
        HUMAN = "human"
        LLM = "llm"

    item = models.ForeignKey(RoundItem, on_delete=models.CASCADE, related_name="grades")
    source = models.CharField(max_length=10, choices=Source, default=Source.HUMAN)
    judge = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    judge_name = models.CharField(max_length=200, help_text="For a language model: model, prompt and their versions.")
    adjudicates = models.BooleanField(default=False, help_text="It decides an item on which the judges are split.")
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.GRADE)
    grade = models.SmallIntegerField(null=True)
    note = models.TextField(blank=True)
    seconds = models.FloatField(null=True, help_text="Time from showing the item to grading it.")
    graded_at = models.DateTimeField()

    class Meta:
        ordering = ["-graded_at", "-id"]
        indexes = [models.Index(fields=["judge", "-graded_at"], name="grade_of_judge")]  # a judge's latest grades
        constraints = [
            models.UniqueConstraint(fields=["item", "source", "judge_name", "adjudicates"], name="grade_once"),
            models.UniqueConstraint(fields=["item"], condition=Q(adjudicates=True), name="grade_one_adjudication"),
            models.CheckConstraint(
                condition=Q(kind="grade", grade__isnull=False)
                | Q(kind__in=["skip", "cannot_judge"], grade__isnull=True),
                name="grade_of_kind",
            ),
            models.CheckConstraint(condition=Q(source__in=["human", "llm"]), name="grade_source"),
            models.CheckConstraint(
                condition=Q(adjudicates=False) | Q(kind="grade", source="human"), name="grade_adjudication"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item} = {self.kind if self.grade is None else self.grade}"


class RoundState(models.Model):
    """The most recently computed state of a round. Lock this row while computing it."""

    round = models.OneToOneField(Round, on_delete=models.CASCADE, primary_key=True, related_name="stated")
    grades = models.PositiveIntegerField(default=0, help_text="Number of human grades that it counts.")
    mark = models.CharField(max_length=64, help_text="Hash of its inputs: the basis and the grades.")
    state = models.JSONField(null=True, help_text="Null if the round compares no runs.")
    sample_size = models.PositiveIntegerField(default=0, help_text="Pairs of the uniform sample that are judged.")
    sampled_from = models.PositiveIntegerField(default=0, help_text="Pairs that the sample is drawn from.")
    front = models.JSONField(default=list, help_text="Items that were reordered last, in their order.")
    basis = models.CharField(max_length=64, help_text="Hash of the inputs of the board.")
    board = models.BinaryField(null=True, help_text="The question and the items, packed.")
    computed_at = models.DateTimeField(null=True)
    evidence = models.JSONField(
        default=dict,
        db_default={},
        help_text="Names of the index of its texts and of the model whose grades are evidence.",
    )

    def __str__(self) -> str:
        return f"{self.round}, {self.grades} grades"


class LLMJudge(PublicModel):
    """A language model that judges a round, with one revision, one prompt and one scale. Its grades carry its name."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="llm_judges")
    name = models.CharField(max_length=200, help_text="Of its grades: server, model, revision, prompt.")
    llm = models.CharField(max_length=150, help_text="Server and model, as ollama:llama3.")
    revision = models.CharField(max_length=200, help_text="As its server reports it; unknown if it reports none.")
    prompt_version = models.CharField(max_length=20)
    prompt_hash = models.CharField(max_length=64, help_text="Hash of the prompt with the scale and the guidelines.")
    item_limit = models.PositiveIntegerField(null=True, help_text="Maximum number of answers of its last start.")

    class Meta:
        verbose_name = "model that judges"
        ordering = ["-updated_at"]
        constraints = [models.UniqueConstraint(fields=["round", "name"], name="llm_judge_once")]

    def __str__(self) -> str:
        return self.name


class CalibrationItem(models.Model):
    """An item of a round's calibration sample: frozen, uniform, judged by people and by models."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="calibration_items")
    item = models.OneToOneField(RoundItem, on_delete=models.CASCADE, related_name="calibration")
    place = models.PositiveIntegerField(help_text="In the order in which the sample was drawn, from 1.")

    class Meta:
        ordering = ["round_id", "place"]
        constraints = [models.UniqueConstraint(fields=["round", "place"], name="calibration_place")]

    def __str__(self) -> str:
        return str(self.item)
