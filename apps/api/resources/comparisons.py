"""Comparisons of runs, and triage: the lost documents of a run, and its weak slices."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated
from uuid import UUID

from rest_framework import serializers
from rest_framework.response import Response

from apps.api.answers import Answer, answer_page, build_page
from apps.api.fields import GREATEST, Identifier, Int, PageQuery, StrictSerializer, Text, Validated, VersionNumber
from apps.api.resource import Resource, find_visible, get
from apps.api.resources.results import RunResource, VersionQuery
from apps.datasets.versions import find_version
from apps.records.comparability import RELATED, find_newest_version
from apps.records.models import Run
from apps.results.comparison_report import ComparisonReport, build_report
from apps.results.triage.by_slice import RunSlices, load_run_slices
from apps.results.triage.causes import CAUSES, CauseRow, count_causes
from apps.results.triage.lost_documents import LostRow, triage_of
from apps.verdicts.comparing import MOST_RUNS, RunComparison, compare_runs
from apps.verdicts.describing import add_queries, list_differences
from benchbench.access import visible
from benchbench.ir.measures.spelling import MAX_NAME_LENGTH
from benchbench.ir.triage import Loss

LOSSES = [loss.value for loss in CAUSES]


class MeasuredOn(StrictSerializer):
    """The measure and the queries of a comparison."""

    version = VersionNumber(help_text="Version of the dataset. Default: the newest on which all runs have values.")
    measure = Text(required=False, max_length=MAX_NAME_LENGTH, help_text="Such as mrr. Default: the primary measure.")
    slice = Text(required=False, max_length=500, trim_whitespace=False, help_text="Such as `category: billing`.")


class ComparisonQuery(MeasuredOn):
    """Query parameters for comparing runs."""

    run = serializers.ListField(
        child=Identifier(),
        min_length=1,
        max_length=MOST_RUNS,
        help_text="Ids of runs, of any benchmarks: run=…&run=….",
    )
    baseline = Identifier(
        required=False, help_text="The run that all others are compared with. Default: every pair is compared."
    )
    seed = Int(required=False, min_value=0, max_value=GREATEST, help_text="Default: the seed of the oldest benchmark.")
    margin = serializers.FloatField(
        required=False, help_text="With two runs: the loss that is accepted when one replaces the other (`migration`)."
    )


class QueryDifferenceQuery(PageQuery, MeasuredOn):
    """Query parameters for comparing two runs query by query."""

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


QueryDifferencePage = build_page("results", QueryDifferenceAnswer)


class Comparisons(Resource):
    model = Run
    route = "comparison"

    @get("", ComparisonReport, ComparisonQuery, refuses=[404, 409])
    def compare_runs(self, query: Validated) -> ComparisonReport:
        """Compare runs of one dataset query by query: all pairs, or all with a baseline.

        409 (`incomparable`) if they were measured against different judgments: `detail` says how they differ and
        what to do. A comparison does not judge: a gate does.
        """
        return build_report(self.load_comparison(query, query["run"]), margin=query.get("margin"))

    @get("/queries", QueryDifferencePage, QueryDifferenceQuery, refuses=[404, 409])
    def list_query_differences(self, query: Validated) -> Response:
        """List the queries that two runs answered, largest difference first."""
        comparison = self.load_comparison(query, [query["run"]])
        index = next(index for index, run in enumerate(comparison.runs) if run.pk == query["run"])
        return answer_page(QueryDifferencePage, list_differences(comparison, index), query, prepare=add_queries)

    def load_comparison(self, query: Validated, run_ids: Sequence[UUID]) -> RunComparison:
        """Return the comparison that a query string asks for."""
        baseline_id = query.get("baseline")
        runs = self.find_all({*run_ids, *([baseline_id] if baseline_id else [])})
        number, base = query.get("version"), next(iter(runs.values())).benchmark.dataset_version
        if number is None:
            version = find_newest_version(runs.values())
        else:
            version = base if number == base.number else find_version(base.dataset, number)
        return compare_runs(
            runs.values(),
            measure=query.get("measure"),
            baseline=runs[baseline_id] if baseline_id else None,
            slice=query.get("slice"),
            seed=query.get("seed"),
            version=version,
        )

    def find_all(self, run_ids: set[UUID]) -> dict[UUID, Run]:
        """Return the runs of these ids; raises the error of `find_visible` for the first missing one."""
        rows = Run.objects.select_related(*RELATED)
        runs = {run.pk: run for run in visible(rows.filter(pk__in=run_ids), self.user, through="benchmark")}
        for missing in sorted(run_ids - runs.keys()):
            find_visible(rows, missing, self.user, through="benchmark")
        return runs


class LostDocumentQuery(PageQuery, VersionQuery):
    """Query parameters for listing lost documents."""

    cause = serializers.ChoiceField(LOSSES, required=False, help_text="Default: all causes.")

    def validate_cause(self, value: str) -> Loss:
        return Loss(value)


@dataclass(frozen=True)
class TriageAnswer:
    """Counts of relevant documents that are not among the first k of a run, by cause."""

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


LostDocumentPage = build_page("documents", LostDocumentAnswer)


class Triage(RunResource):
    @get("/triage", TriageAnswer, VersionQuery, refuses=[409])
    def triage_run(self, run: Run, query: Validated) -> TriageAnswer:
        """Count the relevant documents that a run lost, by cause.

        409 if the run has no values, or is an external run, whose stages are unknown.
        """
        triage = triage_of(run, **query)
        losses = triage.losses
        return TriageAnswer(
            run_id=run.pk,
            dataset_version=triage.evaluation.dataset_version.number,
            k=triage.k,
            queries=len(losses.judged),
            losing_queries=len(losses.queries),
            lost_documents=triage.count(),
            untraced_queries=losses.untraced,
            is_current=losses.is_current,
            causes=count_causes(losses, run.configuration),
        )

    @get("/triage/documents", LostDocumentPage, LostDocumentQuery, refuses=[409])
    def list_lost_documents(self, run: Run, query: Validated) -> Response:
        """List the relevant documents that a run lost, worst query first, with the cause for each."""
        cause = query.get("cause")
        triage = triage_of(run, version=query.get("version"))
        prepare = partial(triage.list_documents, cause=cause)
        return answer_page(LostDocumentPage, range(triage.count(cause)), query, prepare=prepare)

    @get("/slices", RunSlices, VersionQuery, refuses=[409])
    def slice_run(self, run: Run, query: Validated) -> RunSlices:
        """Show the means of a run over each slice of the queries, and which slices are weak.

        409 if the run has no values, or its mapping was resolved again since.
        """
        return load_run_slices(run, **query)
