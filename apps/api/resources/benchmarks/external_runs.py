"""External runs: upload rankings that were made elsewhere."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.idempotency import idempotent
from apps.api.naming import naming, naming_options
from apps.api.parsers import RunParser
from apps.api.serializers.benchmarks.external_runs import RunImportFacts, RunUpload
from apps.benchmarks.external.importing import NewBenchmark, import_runs
from apps.benchmarks.external.uploading import stored_run
from apps.benchmarks.measuring.measures import besides_the_usual
from apps.benchmarks.models import Benchmark
from apps.datasets.models import Dataset
from apps.datasets.versions import find_version
from apps.results.exporters.results_json import run_results
from benchbench.access import may_change


class ExternalRuns(Endpoint):
    model = Benchmark
    acts = {"POST": "add"}
    throttles = {"POST": "upload"}
    parser_classes = [RunParser]

    @extend_schema(
        operation_id="upload_run", request={"multipart/form-data": RunUpload}, responses={201: RunImportFacts}
    )
    @idempotent
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
        return Response(RunImportFacts(facts).data, status=201)


def find_benchmark(request: Request, dataset: Dataset, data: dict[str, Any]) -> Benchmark | None:
    """Return the benchmark that a run is to be added to, which changes it."""
    if "benchmark_id" not in data:
        return None
    benchmark = find_visible(Benchmark.objects.filter(mapping__dataset=dataset), data["benchmark_id"], request.user)
    if not may_change(benchmark, request.user):
        raise PermissionDenied("You may not change any benchmark: ask an administrator for the permission.")
    return benchmark
