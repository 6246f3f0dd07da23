"""Differences between two versions of a dataset."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, cast

from django.core.cache import cache
from django.db.models import Count, Exists, Model, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.db.models.lookups import IsNull

from apps.datasets.models import DatasetVersion, Judgment, Query, filter_alive
from apps.datasets.records import QUERY_FIELDS
from apps.datasets.versions import encode_judgment, encode_query
from benchbench.decimals import counted

CACHE_SECONDS = 7 * 24 * 3600
KINDS = {  # of differences, with their titles
    "judgments_added": "Judgments added",
    "judgments_changed": "Judgments changed",
    "judgments_removed": "Judgments removed",
    "queries_added": "Queries added, with their judgments",
    "queries_changed": "Queries reworded or described differently",
    "queries_removed": "Queries removed, with their judgments",
}
SAME_QUERY = Q(**{name: OuterRef(name) for name in QUERY_FIELDS})
SAME_DOCUMENT = Q(query__key=OuterRef("query__key"), ref_hash=OuterRef("ref_hash"))
SAME_SECTIONS = Q(section_refs=OuterRef("section_refs")) | Q(section_refs__isnull=True) & Q(
    IsNull(OuterRef("section_refs"), True)
)
SAME_JUDGMENT = SAME_SECTIONS & Q(**{name: OuterRef(name) for name in ("grade", "source", "judge", "note")})


@dataclass(frozen=True, slots=True)
class Changes:
    """Numbers of judgments added, changed and removed among the queries that a version keeps, and of changed `queries`.

    A query that is added or removed is one change, regardless of its judgments.
    """

    added: Annotated[int, "Judgments."]
    changed: int
    removed: int
    queries: Annotated[int, "Added, removed or reworded, with their judgments."]

    @property
    def total(self) -> int:
        return self.added + self.changed + self.removed + self.queries

    @property
    def sentence(self) -> str:
        """Return the changes in words: `3 changes: 1 judgment added, 2 judgments changed`."""
        clauses = [
            f"{counted(count, noun)} {verb}"
            for count, noun, verb in (
                (self.added, "judgment", "added"),
                (self.changed, "judgment", "changed"),
                (self.removed, "judgment", "removed"),
                (self.queries, "query", "changed"),
            )
            if count
        ]
        return f"{counted(self.total, 'change')}: {', '.join(clauses)}" if clauses else "no changes"


@dataclass(frozen=True)
class Difference:
    """A version against the earlier version with number `since`; 0 means an empty version, so everything is added.

    Added and changed rows are those of the version, removed rows those of the earlier one. A changed query has its
    earlier text and weight as `text_before` and `weight_before`, a changed judgment its earlier grade as
    `grade_before`. Edits that were reverted are not changes. Judgments are compared by query key and reference, for the
    queries that both versions have.
    """

    version: DatasetVersion
    since: int

    @property
    def queries_added(self) -> QuerySet[Query]:
        return self._begun_queries.filter(~Exists(self._ended_queries.filter(key=OuterRef("key"))))

    @property
    def queries_removed(self) -> QuerySet[Query]:
        return self._ended_queries.filter(~Exists(self._begun_queries.filter(key=OuterRef("key"))))

    @property
    def queries_changed(self) -> QuerySet[Query]:
        before = self._ended_queries.filter(key=OuterRef("key"))
        changed = self._begun_queries.filter(Exists(before), ~Exists(before.filter(SAME_QUERY)))
        return changed.annotate(**{f"{name}_before": Subquery(before.values(name)[:1]) for name in ("text", "weight")})

    @property
    def judgments_added(self) -> QuerySet[Judgment]:
        return self._select_common(self._begun).filter(~Exists(self._ended.filter(SAME_DOCUMENT)))

    @property
    def judgments_removed(self) -> QuerySet[Judgment]:
        return self._select_common(self._ended).filter(~Exists(self._begun.filter(SAME_DOCUMENT)))

    @property
    def judgments_changed(self) -> QuerySet[Judgment]:
        before = self._ended.filter(SAME_DOCUMENT)
        changed = self._begun.filter(Exists(before), ~Exists(before.filter(SAME_JUDGMENT)))
        return changed.annotate(grade_before=Subquery(before.values("grade")[:1]))

    @cached_property
    def totals(self) -> dict[str, int]:
        """Return the number of rows of each kind of KINDS, in one statement; for a frozen version from the cache."""
        if self.version.frozen_at is None:
            return self._count_totals()
        key = f"difference:{self.version.pk}:{self.version.content_hash}:{self.since}"
        return cast(dict[str, int], cache.get_or_set(key, self._count_totals, CACHE_SECONDS))

    def _count_totals(self) -> dict[str, int]:
        counts = {kind: Coalesce(Subquery(_count(getattr(self, kind))), 0) for kind in KINDS}
        totals: Any = DatasetVersion.objects.filter(pk=self.version.pk).values(**counts).get()
        return dict(totals)

    def counts(self) -> Changes:
        """Return the totals as changes, each of which counts once: queries added, removed and reworded together."""
        totals = self.totals
        return Changes(
            added=totals["judgments_added"],
            changed=totals["judgments_changed"],
            removed=totals["judgments_removed"],
            queries=totals["queries_added"] + totals["queries_changed"] + totals["queries_removed"],
        )

    @cached_property
    def digest(self) -> str:
        """Return a hash of all differences: it stays the same until the next edit."""
        digest = sha256()
        for query in [*self._begun_queries, *self._ended_queries]:
            digest.update(f"{query.since} {query.until} {encode_query(query)}\n".encode())
        for judgment in [*self._begun, *self._ended]:
            line = f"{judgment.query_id} {judgment.since} {judgment.until} {encode_judgment(judgment)}\n"
            digest.update(line.encode())
        return digest.hexdigest()

    @property
    def _begun_queries(self) -> QuerySet[Query]:
        return self.version.queries.exclude(filter_alive(self.since)).order_by("key")

    @property
    def _ended_queries(self) -> QuerySet[Query]:
        older = Query.objects.filter(filter_alive(self.since), dataset=self.version.dataset_id)
        return older.exclude(filter_alive(self.version.number)).order_by("key")

    @property
    def _begun(self) -> QuerySet[Judgment]:
        return _sort_rows(self.version.judgments.exclude(_filter_alive(self.since)))

    @property
    def _ended(self) -> QuerySet[Judgment]:
        older = Judgment.objects.filter(_filter_alive(self.since), query__dataset=self.version.dataset_id)
        return _sort_rows(older.exclude(_filter_alive(self.version.number)))

    def _select_common(self, judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
        """Return the judgments of queries that both versions have."""
        one_sided = self.queries_added, self.queries_removed
        return judgments.filter(*(~Exists(rows.filter(key=OuterRef("query__key"))) for rows in one_sided))


def _filter_alive(number: int) -> Q:
    return filter_alive(number) & filter_alive(number, "query__")


def _sort_rows(judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
    return judgments.select_related("query", "judged_by").order_by("query__key", "id")


def _count(rows: QuerySet[Model]) -> QuerySet[Model]:
    return rows.order_by().annotate(one=Value(1)).values("one").annotate(count=Count("pk")).values("count")
