"""Further measures of a run, on the wire."""

from rest_framework import serializers

from apps.results.triage.content import NAMES


class MeasuredRunFacts(serializers.Serializer):
    """A run on one version of its dataset."""

    run_id = serializers.UUIDField()
    dataset_version = serializers.IntegerField()


class CoverageRowFacts(serializers.Serializer):
    """A mean beside what it rests on; null where there is no such value."""

    name = serializers.CharField(help_text="Of the measure.")
    value = serializers.FloatField(allow_null=True)
    judged = serializers.FloatField(allow_null=True, help_text="Share of what it looks at that is judged.")
    condensed = serializers.FloatField(allow_null=True, help_text="Its value over judged documents alone.")
    least = serializers.FloatField(allow_null=True, help_text="Its value if no unjudged document is relevant.")
    greatest = serializers.FloatField(
        allow_null=True, help_text="Its value if all unjudged documents are as relevant as possible."
    )


class CoverageFacts(MeasuredRunFacts):
    """How far the values of a run rest on judgments."""

    measures = CoverageRowFacts(many=True)


class SectionRowFacts(serializers.Serializer):
    """Means at one cutoff."""

    k = serializers.IntegerField()
    doc_recall = serializers.FloatField(help_text="Share of judgments whose document is in the first k.")
    section_recall = serializers.FloatField(help_text="Share of judgments one of whose sections is in the first k.")
    section_share = serializers.FloatField(help_text="Mean share of a judgment's sections in the first k.")


class SectionMeansFacts(MeasuredRunFacts):
    """How well a run finds documents and sections, over the judgments that name sections."""

    judgments = serializers.IntegerField(
        help_text="Judgments that name sections and whose query was answered; 0: no means."
    )
    rows = SectionRowFacts(many=True)
    doc_mrr = serializers.FloatField(allow_null=True)
    section_mrr = serializers.FloatField(allow_null=True)


class ContentMeanFacts(serializers.Serializer):
    """A mean over the queries that state something to compare with."""

    name = serializers.ChoiceField(list(NAMES))
    mean = serializers.FloatField(allow_null=True)
    queries = serializers.IntegerField()


class ContentFacts(MeasuredRunFacts):
    """What the first chunks of a run hold of the evidence and the answers that queries state."""

    k = serializers.IntegerField(help_text="Chunks that are looked at.")
    queries = serializers.IntegerField(help_text="That state evidence or an answer and were answered.")
    unanswered = serializers.IntegerField(help_text="That state some, and failed or were not asked.")
    means = ContentMeanFacts(many=True)
