"""Lists of chunks, best first, made by stages; the rankings that runs return from them; and scores of pairs."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from apps.datasets.models import Query
from apps.retrieval.models import ChunkSet


class ListSource(models.Model):
    """The source of lists: one distinct stage of a benchmark's plan, or one run with rankings of its own."""

    benchmark = models.ForeignKey("Benchmark", on_delete=models.CASCADE, related_name="list_sources")
    key = models.CharField(max_length=1000)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["benchmark", "key"], name="list_source_once")]

    def __str__(self) -> str:
        return self.key


class Costs(models.Model):
    """Times and calls of a query, as if one run were alone; null if not timed or counted."""

    rewrite_ms = models.FloatField(null=True)
    encode_ms = models.FloatField(null=True)
    search_ms = models.FloatField(null=True)
    fuse_ms = models.FloatField(null=True)
    rerank_ms = models.FloatField(null=True)
    total_ms = models.FloatField(null=True)
    embed_calls = models.IntegerField(null=True, help_text="Calls, cached or not; null for external runs.")
    llm_calls = models.IntegerField(null=True)
    llm_cached = models.IntegerField(null=True)
    fallback_used = models.BooleanField(null=True)

    class Meta:
        abstract = True


class StageList(Costs):
    """The list of one stage for one query, with its chunks best first. Several runs may share it.

    A final list, the last of a run, also has the documents and the number of them that each run returns. A run returns
    the first documents of the list; see `QueryResult`.
    """

    counted_as = "list"  # where it is deleted with its benchmark

    source = models.ForeignKey(ListSource, on_delete=models.CASCADE, related_name="lists", db_index=False)
    query = models.ForeignKey(Query, on_delete=models.PROTECT, related_name="+")
    repetition = models.PositiveSmallIntegerField(default=1)
    chunk_ids = ArrayField(
        models.BigIntegerField(), null=True, help_text="Empty for external runs; null if the stage failed."
    )
    scores = ArrayField(models.FloatField())
    threshold_scores = ArrayField(
        models.FloatField(), null=True, help_text="Scores for thresholds, if they differ from the scores for ordering."
    )
    duration_ms = models.FloatField(null=True)
    document_ids = ArrayField(models.BigIntegerField(), null=True, help_text="Documents of a final list, best first.")
    chunk_ranks = ArrayField(
        models.IntegerField(),
        null=True,
        help_text="The rank of the chunk that found each document; null if each chunk is a whole document.",
    )
    lengths = ArrayField(
        models.IntegerField(),
        null=True,
        help_text="In a final list, the number of documents that each run returns, by its place.",
    )
    error = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "query", "repetition"], name="stage_list_once"),
            models.CheckConstraint(condition=Q(repetition__gte=1), name="stage_list_repetition"),
            models.CheckConstraint(
                condition=Q(document_ids__isnull=True, lengths__isnull=True)
                | Q(document_ids__isnull=False, lengths__isnull=False),
                name="stage_list_final",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source} / {self.query}"


class PairList(models.Model):
    """Pairs of one query that a reranker scored together. Each pair is in one list and is scored once."""

    benchmark = models.ForeignKey("Benchmark", on_delete=models.CASCADE, related_name="pair_lists")
    reranker = models.CharField(max_length=500)
    revision = models.CharField(max_length=1000)
    chunk_set = models.ForeignKey(ChunkSet, on_delete=models.CASCADE, related_name="+")
    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="+")
    positions = ArrayField(models.BigIntegerField(), help_text="Positions of the chunks in their set.")
    scores = ArrayField(models.FloatField(), help_text="Raw scores for ordering.")
    threshold_scores = ArrayField(models.FloatField(), help_text="Raw scores for thresholds.")
    cut = ArrayField(models.BigIntegerField(), null=True, help_text="Positions whose pairs were not read to the end.")
    duration_ms = models.FloatField()

    class Meta:
        # Loading the stored scores of a batch's queries.
        indexes = [models.Index(fields=["benchmark", "query"], name="pair_list_query")]

    def __str__(self) -> str:
        return f"{len(self.positions)} pairs by {self.reranker}"


class RerankerRevision(models.Model):
    """The revision of a reranker's model on a benchmark's first worker. All workers need this revision."""

    benchmark = models.ForeignKey("Benchmark", on_delete=models.CASCADE, related_name="reranker_revisions")
    model = models.CharField(max_length=500)
    revision = models.CharField(max_length=1000)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["benchmark", "model"], name="reranker_revision_once")]

    def __str__(self) -> str:
        return f"{self.model} in revision {self.revision}"


class QueryResult(Costs):
    """One ranking of one run: documents best first, each with its first chunk and score.

    A database view of the first documents of a final list. To store a result, store its list.
    """

    PLACES = 2**16  # more than the runs of any list

    run = models.ForeignKey("Run", on_delete=models.DO_NOTHING, related_name="query_results")
    stage_list = models.ForeignKey(StageList, on_delete=models.DO_NOTHING, related_name="+")
    place = models.PositiveIntegerField()
    query = models.ForeignKey(Query, on_delete=models.DO_NOTHING, related_name="results")
    repetition = models.PositiveSmallIntegerField()
    document_ids = ArrayField(models.BigIntegerField())
    chunk_ids = ArrayField(models.BigIntegerField(), help_text="Empty for external runs.")
    scores = ArrayField(models.FloatField())
    error = models.TextField()

    class Meta:
        managed = False
        db_table = "benchmarks_queryresult"
        ordering = ["run_id", "query_id", "repetition"]

    def __str__(self) -> str:
        return f"{self.run} / {self.query}"

    @property
    def heading(self) -> str:
        return f"{self.query.heading} in {self.run.label}"

    @classmethod
    def filter_number(cls, number: int) -> Q:
        """Return the condition for a primary key, on columns that have an index."""
        return Q(stage_list=number // cls.PLACES, place=number % cls.PLACES)
