"""Values of runs: batch values and evaluations."""

import json
import math
import struct
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import RawSQL
from django.db.models.lookups import GreaterThanOrEqual
from numpy.typing import NDArray

from apps.datasets.models import DatasetVersion
from apps.operations.models import Batch
from apps.records.models.benchmarks import Run
from benchbench.database.binary import read_rows
from benchbench.ir.demand import name_means
from benchbench.ir.measures import Values
from benchbench.ir.measures.means import MAX_LOST_PERCENT, unranked_reason

FLOAT = struct.Struct(">d")
HEAD = struct.Struct(">i")  # of packed values: the number of measures


class BatchValues(models.Model):
    """The values by query of one run's rankings in a batch, stored until the run ends and has an evaluation."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="batch_values")
    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="+")
    measures = ArrayField(models.CharField(max_length=100))
    query_ids = ArrayField(models.BigIntegerField(), help_text="Queries that have values.")
    failed_query_ids = ArrayField(models.BigIntegerField())
    values = models.BinaryField(help_text="Per measure, per query: float64, little endian; NaN: no value.")
    truth_hash = models.CharField(max_length=64, help_text="Hash of the grades of these queries.")
    was_searched = models.BooleanField(help_text="False if stored rankings were measured again.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "batch"], name="batch_values_once")]

    def __str__(self) -> str:
        return f"{self.run} in {self.batch}"


class ValuesField(models.BinaryField):
    """Values by measure, then query; None means no value. Stored as bytes, since PostgreSQL converts arrays to text."""

    _pyi_private_set_type: Any  # read by django-stubs
    _pyi_private_get_type: list[list[float | None]]  # type: ignore[assignment]

    def from_db_value(self, packed: bytes | None, *_: object) -> list[list[float | None]] | None:
        return None if packed is None else replace_nan(unpack(packed))

    def get_prep_value(self, value: object) -> bytes | None:
        return value if value is None or isinstance(value, bytes) else pack(np.array(value, np.float64))

    def value_to_string(self, obj: models.Model) -> str:
        text: str = json.dumps(self.value_from_object(obj))
        return text

    def to_python(self, value: object) -> Any:
        return json.loads(value) if isinstance(value, str) else value


def pack(values: Values) -> bytes:
    """Pack values (measures, queries) into bytes: the number of measures, then float64; both big-endian."""
    return HEAD.pack(len(values)) + values.astype(">f8").tobytes()


def unpack(packed: bytes) -> Values:
    """Unpack values (measures, queries); NaN means no value."""
    rows, flat = HEAD.unpack_from(packed)[0], np.frombuffer(packed, ">f8", offset=HEAD.size)
    return flat.astype(np.float64).reshape(rows, len(flat) // max(rows, 1))


def replace_nan(values: Values) -> list[list[float | None]]:
    """Return values as lists, with None instead of NaN."""
    rows = values.astype(object)
    rows[np.isnan(values)] = None
    lists: list[list[float | None]] = rows.tolist()
    return lists


def select_value(measure: str, query_id: int) -> RawSQL:
    """Return the expression for one packed value of an evaluation; `read_value` unpacks it."""
    row, column = "array_position(measures, %s::varchar) - 1", "array_position(query_ids, %s::bigint) - 1"
    start = f"{HEAD.size + 1} + {FLOAT.size} * (({row}) * cardinality(query_ids) + {column})"
    return RawSQL(  # nosec # only integer constants are in the text; values are parameters
        f'substring("values" FROM {start} FOR {FLOAT.size})',
        [measure, query_id],
        output_field=models.BinaryField(),
    )


def read_value(packed: bytes | None) -> float | None:
    """Return a single packed value, or None if the evaluation or the query has no value."""
    value: float = FLOAT.unpack(packed)[0] if packed else math.nan
    return None if math.isnan(value) else value


class Evaluation(models.Model):
    """A run measured against one dataset version under given policies."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="evaluations")
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, related_name="evaluations")
    policies = models.JSONField(help_text="unresolved, empty_queries; of the others those that are not the default.")
    policies_hash = models.CharField(max_length=64)
    means = models.JSONField(help_text="Measure name to mean over the queries that count.")
    measures = ArrayField(models.CharField(max_length=100))
    query_ids = ArrayField(models.BigIntegerField())
    values = ValuesField(help_text="Per measure, per query; null if the query failed.")
    query_count = models.PositiveIntegerField(help_text="Queries in the means.")
    failed_queries = models.PositiveIntegerField(default=0)
    unsearched_queries = models.PositiveIntegerField(
        default=0, help_text="Queries of the version that were not searched."
    )
    truth_hash = models.CharField(max_length=64, blank=True, help_text="Hash of the grades it was measured against.")
    unresolved_count = models.PositiveIntegerField(default=0)
    unresolved_share = models.FloatField(
        default=0, help_text="Share of the ideal gain that belongs to unresolved judgments."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["run", "dataset_version", "policies_hash"], name="evaluation_once"),
        ]

    def __str__(self) -> str:
        return f"{self.run} on {self.dataset_version}"

    def get_column(self, measure: str) -> Values:
        """Return the values of a measure in the order of `query_ids`; NaN means no value."""
        row, values = self.measures.index(measure), cast("bytes | list[list[float | None]]", self.values)
        # Bytes are those of an evaluation that was just made. None becomes NaN.
        return unpack(values)[row] if isinstance(values, bytes) else np.array(values[row], np.float64)

    def get_by_query(self, measure: str) -> dict[int, float | None]:
        """Return the values of a measure by query id; None means no value."""
        return dict(zip(self.query_ids, self.values[self.measures.index(measure)], strict=True))

    @property
    def weighting(self) -> str:
        return str(self.policies.get("weighting", "equal"))

    @property
    def means_name(self) -> str:
        """Return the name of its kind of mean: "weighted by demand", or "" for plain means."""
        return name_means(self.weighting)

    @property
    def unranked(self) -> str:
        """Return a sentence if too many queries were lost for these means to rank, win or pass a gate, else ""."""
        return unranked_reason(counted=self.query_count, failed=self.failed_queries, unsearched=self.unsearched_queries)

    @classmethod
    def filter_ranked(cls) -> Q:
        """Return the database condition for evaluations that are not `unranked`."""
        lost = F("failed_queries") + F("unsearched_queries")
        return Q(GreaterThanOrEqual((F("query_count") + lost) * MAX_LOST_PERCENT, lost * 100))


def reorder(values: Values, stored_ids: Sequence[int], query_ids: Sequence[int]) -> Values:
    """Reorder values (measures, queries) from `stored_ids` to `query_ids`, with NaN for missing queries."""
    if stored_ids == query_ids:
        return values
    column = {query_id: n for n, query_id in enumerate(stored_ids)}
    columns = np.array([column.get(query_id, len(stored_ids)) for query_id in query_ids], np.int64)
    return np.column_stack([values, np.full(len(values), np.nan)])[:, columns]


def load_values(
    evaluations: Sequence[Evaluation], names: Sequence[str], query_ids: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Load values of measures that all evaluations have, (evaluations, measures, queries), in one database query.

    The queries are `query_ids`, by default those of the first evaluation; NaN means no value. Sets the `query_ids` of
    the evaluations, which may be deferred.
    """
    rows = Evaluation.objects.filter(pk__in=[evaluation.pk for evaluation in evaluations]).order_by()
    stored = {key: row for key, *row in read_rows(rows.values_list("pk", "query_ids", "values"))}
    for evaluation in evaluations:
        evaluation.query_ids = stored[evaluation.pk][0]
    requested = evaluations[0].query_ids if query_ids is None else query_ids
    values = np.full((len(evaluations), len(names), len(requested)), np.nan)
    for index, evaluation in enumerate(evaluations):
        if evaluation.query_ids:
            columns = [evaluation.measures.index(name) for name in names]
            values[index] = reorder(unpack(stored[evaluation.pk][1])[columns], evaluation.query_ids, requested)
    return values
