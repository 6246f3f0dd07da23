"""Exclusion of each query's document from its lists, as BEIR does for queries that were taken from documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from django.db.models import QuerySet

from apps.collections.models import Collection, Document
from apps.datasets.models import Query
from apps.execution.running.outcomes import Outcome
from apps.records.models import Benchmark
from apps.retrieval.search.open_indexes import OpenIndex


def find_selves(collection: Collection, keys: QuerySet[Query, object] | list[str]) -> dict[str, int]:
    """Return the document whose external id is the key, for each of the `keys` of queries that has one."""
    rows = Document.objects.filter(collection=collection, external_id__in=keys).order_by()
    return dict(rows.values_list("external_id", "pk"))


@dataclass(frozen=True)
class Exclusion:
    """The documents that lists leave out: of each query of a version, the one whose external id is the query's key.

    They leave the list of each first stage before it is cut to its depth, so that fusion, reranking and thresholds work
    as if the document were not in the collection. `count_more` is how many more entries a first stage searches for. It
    depends on the version and the index alone, because an approximate list depends on its depth. `selves` are the
    documents by the queries' keys. Without a collection, lists leave out nothing.
    """

    collection: Collection | None = None
    selves: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_benchmark(cls, benchmark: Benchmark) -> "Exclusion":
        if not benchmark.exclude_self:
            return cls()
        collection, queries = benchmark.mapping.collection, benchmark.dataset_version.queries
        return cls(collection, find_selves(collection, queries.order_by().values("key")))

    @cached_property
    def _more(self) -> dict[object, int]:
        return {}

    def count_more(self, index: OpenIndex) -> int:
        """Return the most chunks that a document to leave out has in the index."""
        if not self.selves:
            return 0
        key = index.chunk_set_id
        if key not in self._more:
            chunks = index.document_ids[np.isin(index.document_ids, list(self.selves.values()))]
            self._more[key] = int(np.unique(chunks, return_counts=True)[1].max(initial=0))
        return self._more[key]

    def drop(
        self, outcomes: Sequence[Outcome], queries: Sequence[Query], depth: int, index: OpenIndex | None
    ) -> list[Outcome]:
        """Return the outcomes of a first stage without the documents to leave out, cut to `depth`.

        Without an `index`, lists are of documents; an engine may have named some that no query before had found.
        """
        if self.collection is None:
            return [*outcomes]
        selves = find_selves(self.collection, [query.key for query in queries]) if index is None else self.selves

        def drop_one(outcome: Outcome, query: Query) -> Outcome:
            if outcome.error or outcome.value is None:
                return outcome
            documents = outcome.value.ids if index is None else index.document_ids[outcome.value.ids]
            remaining = outcome.value.select(documents != selves.get(query.key, 0))
            return replace(outcome, value=remaining.head(depth))

        return [drop_one(outcome, query) for outcome, query in zip(outcomes, queries, strict=True)]


NO_EXCLUSION = Exclusion()
