"""State and agreement of a judging round on the wire."""

from rest_framework import serializers

from apps.api.fields import Moment


class JudgeFacts(serializers.Serializer):
    """Progress of a judge."""

    judge = serializers.CharField()
    graded = serializers.IntegerField(min_value=0)
    skipped = serializers.IntegerField(min_value=0)
    cant_tell = serializers.IntegerField(min_value=0)
    seconds_each = serializers.FloatField(allow_null=True, help_text="Median of the latest 50.")
    seconds_left = serializers.FloatField(allow_null=True, help_text="To the end, in equal shares.")
    last_at = Moment(allow_null=True)


class PairFacts(serializers.Serializer):
    """Two runs; differences are first − second, of means over the compared queries."""

    first_run_id = serializers.UUIDField()
    second_run_id = serializers.UUIDField()
    least = serializers.FloatField(help_text="Over every filling of the holes.")
    greatest = serializers.FloatField()
    certain = serializers.IntegerField(
        allow_null=True, help_text="1, −1: ahead under every filling; 0: equal; or null."
    )
    difference = serializers.FloatField(help_text="Expected.")
    spread = serializers.FloatField(help_text="What the holes leave open of it: its standard deviation.")
    outcome = serializers.IntegerField(help_text="Likeliest at the end: 1 or −1 significantly better, 0 neither.")
    probability = serializers.FloatField()
    settled = serializers.BooleanField(help_text="At 95 %, together with all that are called so.")


class QuestionFacts(serializers.Serializer):
    """What the grades so far say of the round's question."""

    settled = serializers.BooleanField(help_text="Whether the verdict stands at 95 %.")
    certain = serializers.BooleanField(help_text="Whether every pair's order stands under every filling.")
    probability = serializers.FloatField(help_text="Of the verdict.")
    best_run_ids = serializers.ListField(child=serializers.UUIDField(), help_text="The likeliest best group.")
    winner_run_id = serializers.UUIDField(allow_null=True)
    judged = serializers.IntegerField(min_value=0)
    holes = serializers.IntegerField(min_value=0)
    queries = serializers.IntegerField(min_value=0, help_text="That every run answered.")
    more = serializers.IntegerField(allow_null=True, help_text="About so many grades more settle it; null: unknown.")
    more_at_most = serializers.IntegerField(allow_null=True, help_text="In nine cases of ten.")
    reason = serializers.CharField(allow_null=True, help_text="Why nothing is called settled yet.")
    pairs = PairFacts(many=True)


class RoundState(serializers.Serializer):
    """State of a round: how far it is, and what is settled."""

    done = serializers.IntegerField(min_value=0, help_text="Gradings that are done, one a judge and item.")
    wanted = serializers.IntegerField(min_value=0)
    waiting_for_adjudication = serializers.IntegerField(min_value=0)
    judges = JudgeFacts(many=True)
    is_open = serializers.BooleanField()
    hands_out = serializers.BooleanField()
    answered_at = Moment(allow_null=True)
    sentence = serializers.CharField()
    grades = serializers.IntegerField(min_value=0, help_text="That people gave so far, adjudications too.")
    counted_grades = serializers.IntegerField(
        min_value=0,
        help_text="Of which question, sample_size and inclusion_probability are. Who asks has them renewed.",
    )
    is_current = serializers.BooleanField(help_text="Whether they count all that is said now.")
    renewed_at = Moment()
    sample_size = serializers.IntegerField(min_value=0, help_text="Judged pairs that are a uniform sample.")
    inclusion_probability = serializers.FloatField(
        help_text="With which any pair that nobody had judged before the round is in that sample, after these grades."
    )
    question = QuestionFacts(allow_null=True, help_text="null where nothing is compared: of one run.")


class ConfusionFacts(serializers.Serializer):
    """How two judges graded what both graded."""

    first = serializers.CharField()
    second = serializers.CharField()
    shared = serializers.IntegerField(min_value=0)
    kappa = serializers.FloatField(allow_null=True, help_text="Cohen's, unweighted; null where nothing could differ.")
    scale = serializers.ListField(child=serializers.IntegerField())
    counts = serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))
    items = serializers.ListField(
        child=serializers.ListField(child=serializers.ListField(child=serializers.IntegerField())),
        help_text="The ids behind the counts.",
    )


class ShiftFacts(serializers.Serializer):
    """How much higher a judge grades than the others of the same items."""

    judge = serializers.CharField()
    mean = serializers.FloatField(allow_null=True)
    items = serializers.IntegerField(min_value=0)


class AgreementFacts(serializers.Serializer):
    """Agreement of the judges of a round. Adjudications are no judge's grades."""

    alpha = serializers.FloatField(allow_null=True, help_text="Krippendorff's, ordinal; null: nothing could differ.")
    alpha_low = serializers.FloatField(allow_null=True, help_text="95 %; null below 30 shared items.")
    alpha_high = serializers.FloatField(allow_null=True)
    shared = serializers.IntegerField(min_value=0, help_text="Items that two judges or more graded.")
    shifts = ShiftFacts(many=True)
    pairs = ConfusionFacts(many=True)
