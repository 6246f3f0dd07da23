"""Parts of a dataset's page: the state of its mappings, and its first queries with their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.core.cache import cache
from django.db.models import OuterRef

from apps.datasets.models import Dataset, Query
from apps.mappings.models import Mapping
from apps.mappings.truth import read_truth
from apps.records.lists.reading import load_results
from apps.records.measuring.primary import annotate_last
from apps.records.models import Evaluation
from apps.results.comparison.history import select_ranked
from apps.results.triage.queries import QueryRow
from benchbench.access import AnyUser, viewable
from benchbench.ir.measures import Measure
from benchbench.site.panels import build_list_url

SHOWN_MAPPINGS, SHOWN_QUERIES = 10, 10
CACHE_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Health:
    """A mapping of a dataset with its last completed benchmark, annotated by `annotate_last`.

    `resolved` is the share of judgments that have a document; `lost_gain` the share of the ideal gain that belongs to
    the others. Both are None before the mapping is resolved.
    """

    mapping: Any
    resolved: float | None
    lost_gain: float | None

    @property
    def unresolved(self) -> int:
        return int(self.mapping.total_count - self.mapping.mapped_count)


def load_health(dataset: Dataset, user: AnyUser) -> list[Health]:
    """Return the state of the dataset's mappings that the user may see. One query, and two per new partial mapping."""
    mappings = viewable(Mapping.objects.filter(dataset=dataset), user).select_related("collection", "dataset_version")
    rows = annotate_last(mappings, user, mapping=OuterRef("pk"))[:SHOWN_MAPPINGS]
    return [
        Health(
            mapping,
            mapping.mapped_count / mapping.total_count if mapping.total_count else None,
            _load_lost_gain(mapping),
        )
        for mapping in rows
    ]


def _load_lost_gain(mapping: Mapping) -> float | None:
    """Return the share of the ideal gain of unresolved judgments, cached until the mapping is resolved again."""
    version = mapping.dataset_version
    if version is None or mapping.resolved_at is None:
        return None
    if mapping.mapped_count == mapping.total_count:
        return 0.0
    key = f"lost-gain:{mapping.pk}:{mapping.resolved_at.timestamp()}"
    return cast(float, cache.get_or_set(key, lambda: read_truth(mapping, version).unresolved_share, CACHE_SECONDS))


@dataclass(frozen=True, slots=True)
class QueryTable:
    """The first queries of a dataset, with their values in the best run of its last benchmark, if it has one.

    The run is the best on the version of `evaluation`. `every` is the address of the list of all.
    """

    rows: list[QueryRow]
    measure: str
    evaluation: Evaluation | None
    every: str

    @property
    def has_categories(self) -> bool:
        return any(row.query.category for row in self.rows)

    @property
    def has_difficulties(self) -> bool:
        return any(row.query.difficulty for row in self.rows)


def load_query_table(dataset: Dataset, health: Sequence[Health]) -> QueryTable:
    """Return the first queries of the newest version or draft, with values on the newest version that has some."""
    queries = Query.objects.filter(dataset=dataset, until=None).order_by("id")[:SHOWN_QUERIES]
    every = build_list_url(Query, dataset__id__exact=dataset.pk)
    measured = [one.mapping for one in health if one.mapping.facts and one.mapping.last_at]
    if not measured:
        return QueryTable([QueryRow(query, None, []) for query in queries], "", None, every)
    last = max(measured, key=lambda mapping: mapping.last_at)
    measure = str(Measure("nDCG", last.facts["k"]))
    ranked = select_ranked(measure, run__benchmark=last.last_id).defer(None).select_related("dataset_version__dataset")
    evaluation: Evaluation = ranked.order_by("-dataset_version__number", "-value", "run__run_order")[0]
    values, results = evaluation.get_by_query(measure), load_results(evaluation.run, [query.pk for query in queries])
    rows = [QueryRow(query, results.get(query.pk), [values.get(query.pk)]) for query in queries]
    return QueryTable(rows, measure, evaluation, every)
