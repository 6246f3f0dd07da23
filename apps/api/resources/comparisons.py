"""Comparisons of runs, and triage: the lost documents of a run, and its weak slices."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer, answer_page, page_of, present
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import GREATEST, Identifier, PageQuery, StrictSerializer, Text, VersionNumber, Whole, valid
from apps.api.resources.results import RunEndpoint, VersionQuery, measured_run
from apps.benchmarks.comparability import RELATED
from apps.benchmarks.measuring.measures import LONGEST
from apps.benchmarks.models import Run
from apps.datasets.versions import find_version
from apps.results.comparison.comparing import MOST_RUNS, RunComparison, compare_runs
from apps.results.comparison.describing import every_difference, with_queries
from apps.results.comparison_report import ComparisonReport, comparison_report
from apps.results.triage.by_slice import RunSlices, run_slices
from apps.results.triage.causes import CAUSES, CauseRow, cause_rows
from apps.results.triage.lost_documents import LostRow, triage_of
from benchbench.access import visible
from benchbench.ir.triage import Loss

LOSSES = [loss.value for loss in CAUSES]


class MeasuredOn(StrictSerializer):
    """By which measure, on which queries."""

    version = VersionNumber(help_text="Version of the dataset. Default: the newest on which all runs have values.")
    measure = Text(required=False, max_length=LONGEST, help_text="Such as mrr. Default: the primary measure.")
    slice = Text(required=False, max_length=500, trim_whitespace=False, help_text="Such as `category: billing`.")


class ComparisonQuery(MeasuredOn):
    """Which runs are held against each other."""

    run = serializers.ListField(
        child=Identifier(),
        min_length=1,
        max_length=MOST_RUNS,
        help_text="Ids of runs, of any benchmarks: run=…&run=….",
    )
    baseline = Identifier(
        required=False, help_text="The run that all others are compared with. Default: every pair is compared."
    )
    seed = Whole(
        required=False, min_value=0, max_value=GREATEST, help_text="Default: the seed of the oldest benchmark."
    )


class QueryDifferenceQuery(PageQuery, MeasuredOn):
    """Which two runs are held against each other, query by query."""

    run = Identifier()
    baseline = Identifier()


class QueryDifferenceAnswer(serializers.Serializer):
    """One query of two runs: `difference` is `value` − `baseline_value`."""

    query_id = serializers.IntegerField(source="query.pk")
    query_key = serializers.CharField(source="query.key")
    query_text = serializers.CharField(source="query.text")
    value = serializers.FloatField()
    baseline_value = serializers.FloatField(source="reference_value")
    difference = serializers.FloatField()


QueryDifferencePage = page_of("results", QueryDifferenceAnswer)


class Comparison(Endpoint):
    model = Run
    refuses = (404, 409)

    @extend_schema(operation_id="compare_runs", parameters=[ComparisonQuery], responses=ComparisonReport)
    def get(self, request: Request) -> Response:
        """Compare runs of one dataset query by query: all pairs, or all with a baseline.

        409 (`incomparable`) where they were measured against different truths: `detail` says how they differ, and
        what to do. A comparison does not judge: a gate does.
        """
        query = valid(ComparisonQuery, request.query_params)
        return present(comparison_report(compared(request, query, query["run"])))


class ComparisonQueries(Endpoint):
    model = Run
    refuses = (404, 409)

    @extend_schema(
        operation_id="list_query_differences", parameters=[QueryDifferenceQuery], responses=QueryDifferencePage
    )
    def get(self, request: Request) -> Response:
        """List the queries that two runs answered, those first on which they are furthest apart."""
        query = valid(QueryDifferenceQuery, request.query_params)
        comparison = compared(request, query, [query["run"]])
        place = next(place for place, run in enumerate(comparison.runs) if run.pk == query["run"])
        return answer_page(QueryDifferencePage, every_difference(comparison, place), query, tell=with_queries)


def compared(request: Request, query: dict[str, Any], run_ids: Sequence[UUID]) -> RunComparison:
    """Return the comparison that a query string asks for."""
    baseline_id = query.get("baseline")
    runs = find_all(request, {*run_ids, *([baseline_id] if baseline_id else [])})
    number, own = query.get("version"), next(iter(runs.values())).benchmark.dataset_version
    return compare_runs(
        runs.values(),
        measure=query.get("measure"),
        baseline=runs[baseline_id] if baseline_id else None,
        slice=query.get("slice"),
        seed=query.get("seed"),
        version=None if number is None else own if number == own.number else find_version(own.dataset, number),
    )


def find_all(request: Request, run_ids: set[UUID]) -> dict[UUID, Run]:
    """Return the runs of these ids; NotFound or PermissionDenied for the first that there is not, or is another's."""
    rows = Run.objects.select_related(*RELATED)
    runs = {run.pk: run for run in visible(rows.filter(pk__in=run_ids), request.user, through="benchmark")}
    for missing in sorted(run_ids - runs.keys()):
        find_visible(rows, missing, request.user, through="benchmark")
    return runs


class LostDocumentQuery(PageQuery, VersionQuery):
    """Which page of which lost documents."""

    cause = serializers.ChoiceField(LOSSES, required=False, help_text="Default: all causes.")

    def validate_cause(self, value: str) -> Loss:
        return Loss(value)


@dataclass(frozen=True)
class TriageAnswer:
    """The relevant documents that are not among the first k of a run, counted by what kept them out."""

    run_id: UUID
    dataset_version: Annotated[int, "Number of the version whose judgments are meant."]
    k: Annotated[int, "The primary k of the benchmark."]
    queries: Annotated[int, "Those that were answered and for which something is relevant."]
    losing_queries: Annotated[int, "Those of them that lost a document."]
    lost_documents: int
    untraced_queries: Annotated[int, "Those whose stage lists are not kept."]
    is_current: Annotated[bool, "Whether the judgments are the same as when the run was measured."]
    causes: Annotated[list[CauseRow], "In the order of the stages."]


class LostDocumentAnswer(Answer):
    """A relevant document that is not among the first k of a query."""

    document_id = serializers.CharField(
        source="document", allow_null=True, help_text="External id; null: the judgment has no document."
    )
    cause = serializers.ChoiceField(LOSSES, source="loss")

    class Meta:
        dataclass = LostRow
        exclude = ["document", "loss"]
        extra_kwargs = {
            "reference": {"help_text": "How the judgment names it, where there is no document."},
            "share": {"help_text": "The share of the ideal DCG@k that it would add."},
            "sentence": {"help_text": "What happened to it."},
        }


LostDocumentPage = page_of("documents", LostDocumentAnswer)


class Triage(RunEndpoint):
    @extend_schema(operation_id="triage_run", parameters=[VersionQuery], responses=TriageAnswer)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Count the relevant documents that a run lost, by what kept them out.

        409 where the run has no values, and for a run that was made elsewhere, whose stages are not known.
        """
        triage = triage_of(measured_run(request, run_id), **valid(VersionQuery, request.query_params))
        losses = triage.losses
        return present(
            TriageAnswer(
                run_id=run_id,
                dataset_version=triage.evaluation.dataset_version.number,
                k=triage.k,
                queries=len(losses.judged),
                losing_queries=len(losses.queries),
                lost_documents=triage.count(),
                untraced_queries=losses.untraced,
                is_current=losses.is_current,
                causes=cause_rows(losses),
            )
        )


class LostDocuments(RunEndpoint):
    @extend_schema(operation_id="list_lost_documents", parameters=[LostDocumentQuery], responses=LostDocumentPage)
    def get(self, request: Request, run_id: UUID) -> Response:
        """List the relevant documents that a run lost, of the worst query first, with what happened to each."""
        run = measured_run(request, run_id)
        query = valid(LostDocumentQuery, request.query_params)
        cause = query.get("cause")
        triage = triage_of(run, version=query.get("version"))
        tell = partial(triage.documents, cause=cause)
        return answer_page(LostDocumentPage, range(triage.count(cause)), query, tell=tell)


class Slices(RunEndpoint):
    @extend_schema(operation_id="slice_run", parameters=[VersionQuery], responses=RunSlices)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Show the means of a run over each slice of the queries, and which slices are weak.

        409 where the run has no values, or its mapping was resolved again since.
        """
        run = measured_run(request, run_id)
        return present(run_slices(run, **valid(VersionQuery, request.query_params)))
