"""External runs on the wire."""

from rest_framework import serializers

from apps.api.fields import Choice, FilePart, Identifier, ListOf, StrictSerializer, Text, VersionNumber, Whole
from apps.api.serializers.benchmarks.gates import GatedBenchmarkFacts
from apps.benchmarks.external.importing import LONGEST_LABEL
from apps.benchmarks.external.reports import RunReport
from apps.benchmarks.measuring.measures import GREATEST_CUTOFF, LONGEST, MOST
from benchbench.files.runs import FORMATS


class RunUpload(StrictSerializer):
    """A file of rankings, and how to measure them."""

    file = FilePart(
        help_text="A TREC run (lines qid Q0 docno rank score tag) or a Flowbaby run (JSON); it may be a .gz."
    )
    name = Text(
        required=False,
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
    format = Choice(list(FORMATS), required=False, help_text="Default: detected from the content.")
    order_by = Choice(
        ["score", "rank"],
        required=False,
        help_text="For a Flowbaby run whose scores and ranks disagree: which of them decides the order.",
    )
    k = ListOf(
        child=Whole(min_value=1, max_value=GREATEST_CUTOFF),
        required=False,
        default=list,
        max_length=MOST,
        help_text="Cutoffs of a new benchmark, 5, 10 and 20 by default; 10 is always among them.",
    )
    measures = ListOf(
        child=Text(max_length=LONGEST),
        required=False,
        default=list,
        max_length=MOST,
        help_text="Of a new benchmark besides precision, recall, ndcg, mrr and ap, such as ERR@20.",
    )


class RunReportFacts(serializers.Serializer):
    """What a file holds for the queries of the dataset version."""

    file = serializers.CharField()
    format = serializers.ChoiceField(list(FORMATS))
    tags = serializers.ListField(child=serializers.CharField(allow_blank=True))
    queries = serializers.IntegerField(help_text="Of the version.")
    answered = serializers.IntegerField(help_text="Queries of the version for which the file ranks documents.")
    results = serializers.IntegerField(help_text="Ranked documents.")
    documents = serializers.IntegerField(help_text="Distinct ones.")
    missing = serializers.IntegerField(help_text="Judged queries that the file lacks; they count as 0.")
    unjudged = serializers.IntegerField(help_text="Queries of the version without a judgment.")
    unknown = serializers.IntegerField(help_text="Queries of the file that the version lacks; they are left out.")
    first_unknown = serializers.ListField(child=serializers.CharField())
    unjudged_documents = serializers.IntegerField(
        help_text="Distinct documents that no judgment of the version names; they count as not relevant."
    )
    first_unjudged = serializers.ListField(child=serializers.CharField())
    tied = serializers.IntegerField(help_text="Queries in which ids decided between equal scores.")
    notes = serializers.SerializerMethodField(help_text="A sentence for each thing that affects the values.")

    def get_notes(self, report: RunReport) -> list[str]:
        return list(report.notes())


class ImportedRunFacts(serializers.Serializer):
    """A run that was made of a file."""

    id = serializers.UUIDField()
    run_order = serializers.IntegerField()
    label = serializers.CharField()
    metrics_flat = serializers.DictField(child=serializers.FloatField(allow_null=True))


class RunImportFacts(serializers.Serializer):
    """An imported run, its benchmark, and a report on its file."""

    benchmark = GatedBenchmarkFacts()
    run = ImportedRunFacts()
    report = RunReportFacts()
