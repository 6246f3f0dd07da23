"""Contents of a query's page: its judged documents, and their ranks in the runs of one benchmark."""

import operator
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from apps.collections.models import Document, list_live
from apps.datasets.editing.drafts import find_draft
from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.mappings import models as mappings
from apps.mappings.references import resolve_reference
from apps.mappings.repairing import find_judgments
from apps.mappings.resolving import load_catalogue
from apps.mappings.truth import USUAL, Unresolved, read_truths
from apps.records.measuring.evaluating import get_truth_policies
from apps.records.models import Benchmark
from apps.results.triage.next_steps import list_next_steps
from apps.results.triage.notices import list_notices
from apps.results.triage.query_runs import QueryRuns, load_query_runs, plot_values
from apps.results.triage.ranks import RankRow, list_benchmarks
from benchbench.access import AnyUser, may_change, viewable, visible
from benchbench.markup import Piece, excerpt
from benchbench.site.panels import build_list_url

SHOWN_JUDGMENTS = 50
SHOWN_UNJUDGED = 5
SHOWN_MATCHES = 10
MOST_WORDS = 8  # of a search for a document
SEARCH_MS = 3000  # after which the database gives up a search for a document
MOST_TEXT = 50_000  # characters of a document that are searched for its passage
Unjudged = dict[int, tuple[int, int]]  # by document: the first ranking that has it, and the number of those


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document with its judgment and the passage that matters; None if the reader sees no collection that has it.

    Without a judgment, `run_count` runs have it within the cutoff, one of them in the ranking with the id `result`.
    """

    document: Document | None
    passage: list[Piece]
    judgment: Judgment | None = None
    result: int = 0
    run_count: int = 0


def list_searched(query: Query, user: AnyUser) -> QuerySet[Benchmark]:
    """Return the benchmarks that searched for this wording of the query, newest first."""
    ended = Q() if query.until is None else Q(dataset_version__number__lt=query.until)
    return list_benchmarks(user, ended, mapping__dataset=query.dataset_id, dataset_version__number__gte=query.since)


def build_query_page(
    query: Query, user: AnyUser, benchmark: Benchmark | None, *, number: str = "", by: str = "", words: str = ""
) -> dict[str, Any]:
    """Return the context of a query's page; `benchmark`, `number` and `by` are those of `load_query_runs`.

    `words` find documents of the collection; None as `matches`: that took too long.

    The number of statements does not depend on the number of runs, queries and judgments.
    """
    draft, may_edit = find_draft(query.dataset), may_change(query.dataset, user)
    every = list(query.judgments.select_related("judged_by").order_by("-grade", "id"))
    runs = load_query_runs(query, benchmark, every, number=number, by=by) if benchmark else None
    at = runs.at if runs else None
    version = at.version if at else None
    mapping = benchmark.mapping if benchmark else _find_mapping(query, user)
    judgments = list_judgments(query, every, draft)
    ids = _find_document_ids(mapping, judgments["rows"], benchmark.state if benchmark else None) if mapping else {}
    keys = {query.pk: query.key}
    resolved = [(benchmark.mapping, benchmark.state)] if benchmark and at else []
    policies = replace(get_truth_policies(benchmark), unresolved="count") if benchmark else USUAL
    truths = read_truths(resolved, at.version, keys, policies=policies, query_ids=[query.pk]) if at else []
    grades = truths[0].grades[query.pk] if truths else {}  # on the version of the values
    unjudged = _find_unjudged(runs, {*grades, *ids.values()}) if runs else {}
    matches = find_by_words(mapping, words) if mapping and words.split() else []
    documents = _load_documents({*ids.values(), *grades, *unjudged, *(matches or [])} - {None}, user)
    judged = [_describe(query, documents.get(ids.get(row.pk) or 0), row) for row in judgments["rows"]]
    return {
        "query": query,
        "runs": runs,
        **_describe_runs(runs, grades),
        "at": at,
        "judgments": judgments,
        "relevant": [row for row in judged if row.judgment and row.judgment.grade > 0],
        "irrelevant": [row for row in judged if row.judgment and row.judgment.grade <= 0],
        "unjudged": [
            _describe(query, documents[pk], None, *facts) for pk, facts in unjudged.items() if pk in documents
        ],
        "words": words,
        "matches": _describe_matches(query, mapping, draft, matches, documents) if mapping and matches else matches,
        "may_search": mapping is not None and mapping.collection.kind != mapping.collection.Kind.EXTERNAL,
        **_find_neighbours(query, benchmark),
        "may_judge": query.until is None and may_edit,
        "matrix": _build_matrix(runs, grades, unjudged, documents, every) if runs else [],
        "wordings": Query.objects.filter(dataset=query.dataset_id, key=query.key)
        .exclude(pk=query.pk)
        .order_by("since"),
        "steps": list_next_steps(query.dataset, user, draft, may_edit=may_edit, benchmark=benchmark, version=version),
    }


def _describe_runs(runs: QueryRuns | None, grades: Mapping[int, int]) -> dict[str, object]:
    if runs is None:
        return {"figure": None, "notices": []}
    results, labels = [row.result for row in runs.ranked if row.result], [row.label for row in runs.ranked]
    return {"figure": plot_values(runs), "notices": list_notices(runs.benchmark, results, labels, grades)}


def list_judgments(query: Query, every: Sequence[Judgment], draft: DatasetVersion | None) -> dict[str, Any]:
    """Return the query's judgments in the newest version, drafts included; `every` has those of all versions.

    `removed` are those that the draft removes without replacing.
    """
    newest = [row for row in every if row.until == query.until]
    refs = {row.ref_hash for row in newest}
    ended = [row for row in every if draft and row.until == draft.number != query.until]
    return {
        "rows": newest[:SHOWN_JUDGMENTS],
        "removed": [row for row in ended if row.ref_hash not in refs][:SHOWN_JUDGMENTS],
        "draft": draft,
        "has_more": len(newest) > SHOWN_JUDGMENTS,
        "every": build_list_url(Judgment, query__id__exact=query.pk, **({"of": "all"} if query.until else {})),
    }


def find_by_words(mapping: mappings.Mapping, words: str) -> list[int] | None:
    """Return some documents whose title or text has all words; None if the database gave up after SEARCH_MS."""
    terms = [Q(title__icontains=word) | Q(text__icontains=word) for word in words.split()[:MOST_WORDS]]
    rows = list_live(mapping.collection).filter(reduce(operator.and_, terms)).order_by()
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(SEARCH_MS)])
            return list(rows.values_list("pk", flat=True)[:SHOWN_MATCHES])
    except OperationalError:
        return None


def _find_neighbours(query: Query, benchmark: Benchmark | None) -> dict[str, Query]:
    """Return the queries before and after this one in the benchmark, or among the current ones. One statement."""
    current = Query.objects.filter(dataset=query.dataset_id, until=None)
    rows = benchmark.dataset_version.queries if benchmark else current
    before, after = rows.filter(pk__lt=query.pk).order_by("-pk")[:1], rows.filter(pk__gt=query.pk).order_by("pk")[:1]
    return {"previous" if row.pk < query.pk else "following": row for row in before.union(after)}


def _find_mapping(query: Query, user: AnyUser) -> mappings.Mapping | None:
    """Return the newest visible mapping of the dataset, if possible one to a collection with texts."""
    rows = visible(mappings.Mapping.objects.filter(dataset=query.dataset_id), user)
    return rows.select_related("collection").order_by("collection__kind", "-created_at").first()


def _find_document_ids(
    mapping: mappings.Mapping, judgments: Sequence[Judgment], state: int | None
) -> dict[int, int | None]:
    """Return the document of each judgment as resolved in a state; judgments of a draft are resolved here."""
    stored = mappings.Resolution.objects.at(state).filter(mapping=mapping, judgment__in=judgments).order_by()
    document_ids: dict[int, int | None] = dict(stored.values_list("judgment_id", "document_id"))
    new = [judgment for judgment in judgments if judgment.pk not in document_ids]
    catalogue = load_catalogue(mapping.collection, (judgment.doc_ref for judgment in new))
    return document_ids | {row.pk: resolve_reference(row.doc_ref, catalogue).document_id for row in new}


def _find_unjudged(runs: QueryRuns, judged: Collection[int | None]) -> Unjudged:
    """Return the unjudged documents that the most runs find within the cutoff."""
    firsts = [(row.result.pk, row.ranking[: runs.benchmark.primary_k]) for row in runs.ranked if row.result]
    counts = Counter(pk for _, first in firsts for pk in first if pk not in judged)
    common = counts.most_common(SHOWN_UNJUDGED)
    return {pk: (next(result for result, first in firsts if pk in first), count) for pk, count in common}


def _load_documents(ids: Collection[Any], user: AnyUser) -> dict[int, Document]:
    """Return the documents that the user may view, with the beginning of their text as `head`."""
    rows = viewable(Document.objects.filter(pk__in=ids), user, through="collection")
    return {row.pk: row for row in rows.defer("text", "metadata").annotate(head=Left("text", MOST_TEXT))}


def _describe(query: Query, document: Any, *facts: Any) -> DocumentRow:
    text = document.head.removeprefix(document.title) if document else ""
    return DocumentRow(document, excerpt(text, query.text), *facts)


def _describe_matches(
    query: Query,
    mapping: mappings.Mapping,
    draft: DatasetVersion | None,
    matches: Sequence[int],
    documents: Mapping[int, Document],
) -> list[DocumentRow]:
    """Return the documents that were searched for, each with its highest judgment."""
    judgments = find_judgments(mapping, draft or query.dataset.versions.latest("number"), query)
    highest = {pk: max(rows, key=lambda row: row.grade) for pk, rows in judgments.items()}
    return [_describe(query, documents[pk], highest.get(pk)) for pk in matches if pk in documents]


def _build_matrix(
    runs: QueryRuns,
    grades: Mapping[int, int],
    unjudged: Unjudged,
    documents: Mapping[int, Document],
    every: Sequence[Judgment],
) -> list[RankRow]:
    """Return the judged documents, highest grade first, then unjudged ones, each with its rank in each ranking."""
    rankings = [{pk: rank for rank, pk in enumerate(row.ranking, start=1)} for row in runs.ranked]
    judged = sorted(grades, key=lambda pk: (-grades[pk], pk))[:SHOWN_JUDGMENTS]
    names = {Unresolved.from_judgment(row.pk): row.reference for row in every} | {
        pk: str(document) for pk, document in documents.items()
    }
    return [
        RankRow(
            name=names.get(pk, f"document {pk}"),
            row=documents.get(pk),
            grade=grades.get(pk),
            ranks=[ranking.get(pk) for ranking in rankings],
            k=runs.benchmark.primary_k,
        )
        for pk in (*judged, *unjudged)
    ]
