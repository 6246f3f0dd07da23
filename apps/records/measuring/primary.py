"""The primary measure in SQL: values of runs and the best run of a benchmark, for lists of many of them."""

from typing import TypeVar

from django.db.models import (
    CharField,
    Expression,
    F,
    FloatField,
    Func,
    Model,
    OuterRef,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Concat, JSONObject

from apps.operations.models import Status
from apps.records.measuring.alternatives import keep_alternatives
from apps.records.models import Benchmark, Evaluation, Run
from benchbench.access import AnyUser, viewable

M = TypeVar("M", bound=Model)


def _select_ranked() -> QuerySet[Model]:
    """Return the evaluations that rank runs: of completed runs, on the dataset version of their benchmark.

    Each has its primary measure as `value`, and its judged share at the same cutoff, or NULL, as `judged`. Evaluations
    without a value, or that lost too many queries, are left out.
    """
    evaluations = Evaluation.objects.filter(
        Evaluation.filter_ranked(),
        run__status=Run.Status.COMPLETED,
        dataset_version=F("run__benchmark__dataset_version"),
    )
    valued = evaluations.annotate(value=_select_mean("nDCG"), judged=_select_mean("Judged"))
    return valued.filter(value__isnull=False).defer("values", "query_ids")


def select_facts(*, measure: str = "", **filters: object) -> Subquery:
    """Return the subquery of the best ranked run that matches: an object with its id, label, means and truth; or NULL.

    Of alternatives; of those with equal values it is the first in run order, as on the leaderboard. `chosen` is the
    mean of `measure`, or NULL.
    """
    facts = JSONObject(
        run="run_id",
        label="run__label",
        value="value",
        judged="judged",
        k="run__benchmark__primary_k",
        weighting="run__benchmark__weighting",
        truth="truth_hash",
        chosen=_extract_mean(Value(measure)),
    )
    best = keep_alternatives(_select_ranked().filter(**filters), "run__").order_by("-value", "run__run_order")
    return Subquery(best.annotate(facts=facts).values("facts")[:1])


def annotate_last(rows: QuerySet[M], user: AnyUser, **filters: object) -> QuerySet[M]:
    """Annotate the `last` completed benchmark that matches and the user may view, and the `facts` of its best run."""
    completed = viewable(Benchmark.objects.filter(status=Status.COMPLETED, **filters), user)
    ordered = completed.order_by(F("completed_at").desc(nulls_last=True), "-created_at", "pk")
    facts = JSONObject(id="pk", name="name", version="dataset_version__number")
    annotated = rows.annotate(
        last=Subquery(ordered.annotate(facts=facts).values("facts")[:1]),
        last_id=Subquery(ordered.values("pk")[:1]),
        last_at=Subquery(ordered.values("completed_at")[:1]),
    )
    return annotated.annotate(facts=select_facts(run__benchmark=OuterRef("last_id")))


def order_by_fact(name: str) -> Cast:
    """Return the expression that orders rows by a number of the annotation `facts`."""
    return Cast(KeyTextTransform(name, "facts"), FloatField())


def _select_mean(measure: str) -> Cast:
    """Return the mean of a measure at the primary cutoff of the benchmark."""
    name = Concat(Value(f"{measure}@"), Cast("run__benchmark__primary_k", CharField()))
    return _extract_mean(name)


def _extract_mean(name: Expression) -> Cast:
    return Cast(Func("means", name, function="jsonb_extract_path_text", output_field=TextField()), FloatField())
