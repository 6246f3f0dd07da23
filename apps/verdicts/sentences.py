"""The verdict of a comparison in sentences."""

from dataclasses import dataclass

from apps.records.finding import describe_warnings
from apps.verdicts.comparing import RunComparison
from apps.verdicts.describing import Costs
from benchbench.decimals import figure, format_share, join_words
from benchbench.ir.slices import Reversal
from benchbench.ir.statistics import wording


def describe_verdict(comparison: RunComparison) -> str:
    """Return the verdict in one sentence, and in a second the number of queries that would settle open questions.

    Where a judging round selected the judgments, its verdict comes first.
    """
    if comparison.carried:
        return comparison.carried.describe(comparison.ids, comparison.labels, comparison.comparison.baseline)
    return wording.describe_verdict(comparison.verdict, comparison.labels)


def describe_choice(comparison: RunComparison, costs: Costs) -> str:
    """Return a sentence on the cheapest good run and its possible loss in quality."""
    choice = costs.choice
    if choice is None:
        if comparison.comparison.baseline is not None:
            return "The cheapest good run needs a comparison of all pairs: choose no baseline."
        if comparison.carried:
            return "The cheapest good run needs judgments of all results: plain means do not show its loss here."
        return "No run is within these bounds." if comparison.is_tested else ""
    label, best = comparison.labels[choice.run], comparison.labels[choice.best]
    within = " within the bounds" if len(choice.within) < len(comparison.runs) else ""
    of_them = " of those" if within else ""
    if choice.run == choice.best:
        latency = costs.points[choice.run].latency_ms or 0.0
        cheaper = any((costs.points[run].latency_ms or latency) < latency for run in choice.within)
        then = "and every cheaper run is significantly worse" if cheaper else "and also the cheapest"
        return f"{label} is the best{within}, {then}."
    lost = "there are too few queries to bound its loss"
    if choice.most_lost is not None:
        lost = f"it loses at most {figure(choice.most_lost)} {comparison.title}, with 95 % confidence"
    sentence = f"{label} is the cheapest run{within} that is not significantly worse than the best{of_them}, {best}"
    few = wording.describe_few_changes(comparison.comparison.get_pair(choice.run, choice.best))
    return f"{sentence}. {few}" if few else f"{sentence}; {lost}."


def describe_disorder(comparison: RunComparison) -> str:
    """Return why a run is worse than the reference though a lower one is not distinguishable from it; else ""."""
    if not comparison.is_tested:
        return ""
    return wording.describe_disorder(comparison.verdict, comparison.labels, comparison.order)


def describe_caution(comparison: RunComparison) -> str:
    """Return what limits a verdict, else "": differences kept back by skew, missing intervals, the best of many."""
    if not comparison.is_tested:
        return ""
    return wording.describe_caution(comparison.comparison, comparison.compared, comparison.compared_weights)


def describe_family(comparison: RunComparison) -> str:
    """Return a sentence on what was tested, on which queries, and how."""
    return wording.describe_family(comparison.comparison, name_differences(comparison))


def name_differences(comparison: RunComparison) -> str:
    """Return the compared measure for the middle of a sentence: "nDCG@10, weighted by demand,"."""
    return f"{comparison.title}," if comparison.means_name else comparison.measure


def describe_shares(comparison: RunComparison) -> str:
    """Return a sentence on the shares of demand, or of queries, on which a run is better and worse than the reference.

    The run is the best but the reference: as in every difference, run − reference.
    """
    reference = comparison.reference
    run = next(run for run in comparison.order if run != reference)
    pair = comparison.comparison.get_pair(run, reference)
    return (
        f"With {comparison.labels[run]} instead of {comparison.labels[reference]}, {format_share(pair.improved)} of "
        f"{comparison.counted_as} improved, {format_share(pair.worsened)} got worse by {comparison.measure}."
    )


@dataclass(frozen=True)
class VerdictText:
    """A verdict in sentences, the same for every page, file and answer. Inapplicable sentences are ""."""

    verdict: str  # "" if untested
    expected: str  # the expected means, if the verdict of a judging round comes first
    plain: str  # then the verdict by plain means
    shares: str
    family: str
    left_out: str
    disorder: str
    caution: str
    warnings: list[str]
    run_warnings: list[str]  # each after the labels of the runs that have it

    @property
    def notes(self) -> list[str]:
        """The basis of the verdict: means, shares, limits, the tested family, the queries left out, if they apply."""
        sentences = self.expected, self.plain, self.shares, self.caution, self.family, self.left_out
        return [sentence for sentence in sentences if sentence]


def build_verdict(comparison: RunComparison) -> VerdictText:
    plain, carried = comparison.plain, comparison.carried
    return VerdictText(
        " ".join([*_describe_part(comparison), describe_verdict(comparison)]) if comparison.is_tested else "",
        carried.describe_means(comparison.ids, comparison.labels) if carried else "",
        f"By plain means: {describe_verdict(plain)}" if carried else "",
        describe_shares(plain),
        describe_family(comparison),
        describe_left_out(comparison),
        describe_disorder(plain),
        describe_caution(plain),
        comparison.comparability.warnings,
        describe_warnings(comparison.runs, comparison.labels),
    )


def _describe_part(comparison: RunComparison) -> list[str]:
    """Return the verdict of a judging round on those of the runs that it compared, if it did not compare all."""
    selection, labels = comparison.comparability.selection, dict(zip(comparison.ids, comparison.labels, strict=True))
    if selection is None or comparison.carried or not selection.has_verdict_by(comparison.measure):
        return []
    members = [run for run in comparison.ids if run in selection.round.run_ids]
    if len(members) < 2 or comparison.slice or comparison.means_name:
        return []
    sentence = selection.describe(members, [labels[run] for run in members])
    return [f"Of {len(members)} runs: {sentence[0].lower()}{sentence[1:]} By plain means of all {len(labels)}:"]


def describe_left_out(comparison: RunComparison) -> str:
    """Return a sentence on the queries that are left out of the comparison, else ""."""
    clauses = []
    if comparison.comparison.left_out:
        clauses.append(f"{comparison.comparison.left_out:,} without an answer from every run")
    if comparison.skipped:
        clauses.append(f"{comparison.skipped:,} without a relevant judgment, which the benchmark's policy skips")
    return f"Queries left out: {' and '.join(clauses)}." if clauses else ""


def describe_reversal(comparison: RunComparison, run: int, reversal: Reversal) -> str:
    """Return a sentence on a partition of which most slices contradict the overall order of `run` and the reference."""
    pair = (comparison.labels[comparison.reference], comparison.labels[run])
    leader, behind = pair[reversal.leader], pair[1 - reversal.leader]
    return (
        f"{leader} leads {behind} over all queries, but by {reversal.partition} it is behind in "
        f"{len(reversal.against)} of {len(reversal.slices)} slices: "
        f"{join_words([slice_.label for slice_ in reversal.against])}."
    )
