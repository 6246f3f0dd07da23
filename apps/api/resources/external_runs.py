"""External runs: upload rankings that were made elsewhere."""

from rest_framework import serializers

from apps.api.answers import Answer
from apps.api.errors import rename_options
from apps.api.fields import Flag, Identifier, Int, StrictSerializer, Text, Validated, VersionNumber
from apps.api.parsers import RunParser
from apps.api.resource import post
from apps.api.resources.datasets import DatasetPart
from apps.datasets.models import Dataset
from apps.datasets.versions import find_version
from apps.experiments.external.importing import LONGEST_LABEL, NewBenchmark, import_runs
from apps.experiments.external.reports import RunReport
from apps.records.measuring.measures import MAX_MEASURES, list_extra_measures
from apps.records.models import Benchmark
from apps.results.exporters.results_json import RunResult, load_run_result
from apps.verdicts.gates.reports import BenchmarkReference
from benchbench.files.runs import FORMATS
from benchbench.ir.measures.spelling import MAX_CUTOFF, MAX_NAME_LENGTH
from benchbench.site.reading import stored


class RunUpload(StrictSerializer):
    """A file of rankings, and how to measure them."""

    file = serializers.FileField(
        help_text="A TREC run (lines qid Q0 docno rank score tag), a table with columns query, document, and rank or "
        "score, JSON of scores by query and document, a Flowbaby run, or a Quepid snapshot; .gz too."
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
        help_text="For a Flowbaby run or table whose scores and ranks disagree: which of them decides the order.",
    )
    k = serializers.ListField(
        child=Int(min_value=1, max_value=MAX_CUTOFF),
        default=list,
        max_length=MAX_MEASURES,
        help_text="Cutoffs of a new benchmark, 5, 10 and 20 by default; 10 is always among them.",
    )
    measures = serializers.ListField(
        child=Text(max_length=MAX_NAME_LENGTH),
        default=list,
        max_length=MAX_MEASURES,
        help_text="Further measures, such as ERR@20; precision, recall, ndcg, mrr and ap are always computed.",
    )
    exclude_self = Flag(default=False, help_text="Leave out of each ranking the document whose id is the query's key.")


class RunReportAnswer(Answer):
    """Counts of a run file for the queries of the dataset version."""

    format = serializers.ChoiceField(list(FORMATS))
    notes = serializers.ListField(
        source="list_notes", child=serializers.CharField(), help_text="One sentence per fact that affects the values."
    )

    class Meta:
        dataclass = RunReport


class ImportedRunAnswer(Answer):
    """A run imported from a file."""

    class Meta:
        dataclass = RunResult
        fields = ["id", "run_order", "label", "metrics_flat"]


class RunImportAnswer(serializers.Serializer):
    """An imported run, its benchmark, and a report on its file."""

    benchmark = Answer(dataclass=BenchmarkReference)
    run = ImportedRunAnswer()
    report = RunReportAnswer()


NAMES = {"benchmark": "benchmark_id", "dataset": None}


class ExternalRuns(DatasetPart):
    model = Benchmark

    @post(
        "/external-runs",
        RunImportAnswer,
        form=RunUpload,
        parser=RunParser,
        act="add",
        status=201,
        names=NAMES,
        history="Upload rankings of another system.",
    )
    def upload_run(self, dataset: Dataset, data: Validated) -> dict[str, object]:
        """Upload rankings of another system and measure them like any run.

        They become a run of a new benchmark, or of the benchmark in the request. Errors name the line of the file.
        409 if the benchmark has these rankings already.
        """
        benchmark = None
        if "benchmark_id" in data:
            rows = Benchmark.objects.filter(mapping__dataset=dataset)
            benchmark = self.find_changeable(rows, data["benchmark_id"])
        with stored(data["file"]) as path, rename_options():
            imported = import_runs(
                [path],
                dataset=dataset,
                version=find_version(dataset, data["version"]) if "version" in data else None,
                benchmark=benchmark,
                new=NewBenchmark(
                    owner=self.user,
                    name=data["name"],
                    k=data["k"],
                    measures=list_extra_measures(data["measures"]),
                    exclude_self=data["exclude_self"],
                ),
                order_by=data.get("order_by"),
                format=data.get("format", ""),
                is_upload=True,
            )
        ((run, report),) = imported.runs
        return {"benchmark": imported.benchmark, "run": load_run_result(run), "report": report}
