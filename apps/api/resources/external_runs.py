"""External runs: upload rankings that were made elsewhere."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer
from apps.api.endpoint import Endpoint, find_visible
from apps.api.errors import naming, naming_options
from apps.api.fields import Identifier, StrictSerializer, Text, VersionNumber, Whole, valid
from apps.api.parsers import RunParser
from apps.benchmarks.external.importing import LONGEST_LABEL, NewBenchmark, import_runs
from apps.benchmarks.external.reports import RunReport, stored_run
from apps.benchmarks.gates.reports import BenchmarkReference
from apps.benchmarks.measuring.measures import GREATEST_CUTOFF, LONGEST, MOST, besides_the_usual
from apps.benchmarks.models import Benchmark
from apps.datasets.models import Dataset
from apps.datasets.versions import find_version
from apps.results.exporters.results_json import RunResult, run_results
from benchbench.access import may_change
from benchbench.files.runs import FORMATS


class RunUpload(StrictSerializer):
    """A file of rankings, and how to measure them."""

    file = serializers.FileField(
        help_text="A TREC run (lines qid Q0 docno rank score tag) or a Flowbaby run (JSON); it may be a .gz."
    )
    name = Text(
        default="",
        allow_blank=True,
        max_length=LONGEST_LABEL,
        help_text="Of the new benchmark; by default the tag of the run, or the name of the file.",
    )
    benchmark_id = Identifier(
        required=False,
        help_text="A benchmark of external runs of the dataset to add this one to; its version and measures hold.",
    )
    version = VersionNumber(help_text="Of the dataset, for a new benchmark; by default the newest frozen one.")
    format = serializers.ChoiceField(list(FORMATS), required=False, help_text="Default: detected from the content.")
    order_by = serializers.ChoiceField(
        ["score", "rank"],
        required=False,
        help_text="For a Flowbaby run whose scores and ranks disagree: which of them decides the order.",
    )
    k = serializers.ListField(
        child=Whole(min_value=1, max_value=GREATEST_CUTOFF),
        default=list,
        max_length=MOST,
        help_text="Cutoffs of a new benchmark, 5, 10 and 20 by default; 10 is always among them.",
    )
    measures = serializers.ListField(
        child=Text(max_length=LONGEST),
        default=list,
        max_length=MOST,
        help_text="Of a new benchmark besides precision, recall, ndcg, mrr and ap, such as ERR@20.",
    )


class RunReportAnswer(Answer):
    """What a file holds for the queries of the dataset version."""

    format = serializers.ChoiceField(list(FORMATS))
    notes = serializers.ListField(
        child=serializers.CharField(), help_text="A sentence for each thing that affects the values."
    )

    class Meta:
        dataclass = RunReport
        exclude = ["longer"]
        extra_kwargs = {
            "queries": {"help_text": "Of the version."},
            "answered": {"help_text": "Queries of the version for which the file ranks documents."},
            "results": {"help_text": "Ranked documents."},
            "documents": {"help_text": "Distinct ones."},
            "missing": {"help_text": "Judged queries that the file lacks; they count as 0."},
            "unjudged": {"help_text": "Queries of the version without a judgment."},
            "unknown": {"help_text": "Queries of the file that the version lacks; they are left out."},
            "unjudged_documents": {
                "help_text": "Distinct documents that no judgment of the version names; they count as not relevant."
            },
            "tied": {"help_text": "Queries in which ids decided between equal scores."},
        }


class ImportedRunAnswer(Answer):
    """A run that was made of a file."""

    class Meta:
        dataclass = RunResult
        fields = ["id", "run_order", "label", "metrics_flat"]


class RunImportAnswer(serializers.Serializer):
    """An imported run, its benchmark, and a report on its file."""

    benchmark = Answer(dataclass=BenchmarkReference)
    run = ImportedRunAnswer()
    report = RunReportAnswer()


class ExternalRuns(Endpoint):
    model = Benchmark
    acts = {"POST": "add"}
    throttles = {"POST": "upload"}
    parser_classes = [RunParser]

    @extend_schema(
        operation_id="upload_run", request={"multipart/form-data": RunUpload}, responses={201: RunImportAnswer}
    )
    def post(self, request: Request, dataset_id: UUID) -> Response:
        """Upload rankings that were made elsewhere, and measure them as any other run.

        They become the run of a new benchmark, or one more of the benchmark that is named. What is wrong with a file is
        said with its line. 409 where the benchmark has these rankings already.
        """
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        data = valid(RunUpload, request.data)
        benchmark = find_benchmark(request, dataset, data)
        with stored_run(data["file"]) as path, naming(benchmark="benchmark_id", dataset=None), naming_options():
            imported = import_runs(
                [path],
                dataset=dataset,
                version=find_version(dataset, data["version"]) if "version" in data else None,
                benchmark=benchmark,
                new=NewBenchmark(
                    owner=request.user,
                    name=data["name"],
                    k=data["k"],
                    measures=besides_the_usual(data["measures"]),
                ),
                order_by=data.get("order_by"),
                format=data.get("format", ""),
            )
        ((run, report),) = imported.runs
        facts = {"benchmark": imported.benchmark, "run": run_results(run), "report": report}
        return Response(RunImportAnswer(facts).data, status=201)


def find_benchmark(request: Request, dataset: Dataset, data: dict[str, Any]) -> Benchmark | None:
    """Return the benchmark that a run is to be added to, which changes it."""
    if "benchmark_id" not in data:
        return None
    benchmark = find_visible(Benchmark.objects.filter(mapping__dataset=dataset), data["benchmark_id"], request.user)
    if not may_change(benchmark, request.user):
        raise PermissionDenied("You may not change any benchmark: ask an administrator for the permission.")
    return benchmark
