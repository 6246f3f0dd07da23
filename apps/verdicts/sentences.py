"""The verdict of a comparison in sentences."""

from collections.abc import Iterable
from dataclasses import dataclass

from apps.records.finding import describe_warnings
from apps.verdicts.comparing import RunComparison
from apps.verdicts.describing import Costs
from benchbench.decimals import counted, figure, format_share, join_words
from benchbench.ir.slices import Reversal
from benchbench.ir.statistics.optimism import compute_optimism
from benchbench.ir.statistics.significance import Pair
from benchbench.ir.statistics.skew import FEWEST

MOST_NAMED = 3
MANY_RUNS = 20  # of which the best is chosen
FEWEST_CHANGED = 10  # queries whose values differ: of fewer, an interval of the mean is too narrow


def describe_verdict(comparison: RunComparison) -> str:
    """Return the verdict in one sentence, and in a second the number of queries that would settle open questions.

    Where a judging round selected the judgments, its verdict comes first.
    """
    verdict, labels = comparison.verdict, comparison.labels
    if comparison.carried:
        return comparison.carried.describe(comparison.ids, labels, comparison.comparison.baseline)
    best = labels[verdict.reference]
    if verdict.against_baseline:
        return _describe_baseline(comparison)
    rival_count = len(comparison.runs) - 1
    if verdict.winner is not None:
        beaten = labels[1 - verdict.reference] if rival_count == 1 else "every other run"
        return f"{best} beats {beaten}: the difference is significant."
    undecided = len(verdict.undecided)
    if rival_count == 1:
        sentence = f"{labels[0]} and {labels[1]} are not distinguishable."
    elif undecided == rival_count:
        sentence = f"{best} has the highest mean, but none of the other {rival_count} runs is distinguishable from it."
    else:
        subject = f"the other {undecided}" if undecided > 1 else labels[verdict.undecided[0]]
        sentence = (
            f"{best} beats {rival_count - undecided} of the other runs but is not distinguishable from {subject}."
        )
    return f"{sentence} {_describe_settling(comparison)}"


def _describe_baseline(comparison: RunComparison) -> str:
    verdict, labels = comparison.verdict, comparison.labels
    clauses = [
        f"{_name_runs(labels[run] for run in runs)} {'are' if len(runs) > 1 else 'is'} {standing}"
        for runs, standing in (
            (verdict.better, "better"),
            (verdict.worse, "worse"),
            (verdict.undecided, "not distinguishable from it"),
        )
        if runs
    ]
    sentence = f"Against the baseline {labels[verdict.reference]}: {'; '.join(clauses)}."
    return f"{sentence} {_describe_settling(comparison)}" if verdict.undecided else sentence


def _describe_settling(comparison: RunComparison) -> str:
    """Return a sentence on how many more queries would settle the open differences."""
    verdict = comparison.verdict
    if verdict.settled_by is not None:
        return f"About {counted(verdict.settled_by, 'more query')} would settle it."
    if all(number is None for number in verdict.more_queries):
        return "No realistic number of queries would settle it."
    max_queries = max(number for number in verdict.more_queries if number is not None)
    return (
        f"About {counted(max_queries, 'more query')} would settle some of it; no realistic number would "
        "settle the rest."
    )


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
    few = describe_few_changes(comparison.comparison.get_pair(choice.run, choice.best))
    return f"{sentence}. {few}" if few else f"{sentence}; {lost}."


def describe_few_changes(pair: Pair) -> str:
    """Return a sentence that replaces the interval of a difference where too few queries changed for one; else "".

    Where none of n queries changed, up to 1 − .05^(1 / n) of all may, with 95 % confidence (Clopper and Pearson 1934).
    """
    changed = pair.wins + pair.losses
    if changed >= FEWEST_CHANGED:
        return ""
    n = changed + pair.ties
    if not changed:
        return f"No query of {n:,} changed; up to {100 * (1 - 0.05 ** (1 / n)):.2g} % may."
    return f"Only {changed} of {counted(n, 'query')} changed, too few for an interval."


def describe_disorder(comparison: RunComparison) -> str:
    """Return why a run is worse than the reference though a lower one is not distinguishable from it; else ""."""
    if not comparison.is_tested:
        return ""
    order, verdict = comparison.order, comparison.verdict
    last = max((order.index(run) for run in verdict.undecided), default=0)
    above = [run for run in order[:last] if run in verdict.worse]
    if not above:
        return ""
    worse, lower = comparison.labels[above[0]], comparison.labels[order[last]]
    return (
        f"{worse} is significantly worse, but {lower}, whose mean is lower, is not: significance also "
        "depends on how much the differences vary between queries."
    )


def describe_caution(comparison: RunComparison) -> str:
    """Return what limits a verdict, else "": differences kept back by skew, missing intervals, the best of many."""
    if not comparison.is_tested:
        return ""
    statistics, sentences = comparison.comparison, []
    prevented = [pair for pair in statistics.pairs if pair.held_back]
    if prevented:
        sentences.append(
            f"Skew decides: the adjusted p of {counted(len(prevented), 'pair')} is at most "
            f"{figure(statistics.alpha, 2)}, but a few queries with large differences could turn the result, so it is "
            "not called significant."
        )
    if statistics.n < FEWEST:
        sentences.append(f"Below {FEWEST} queries no simultaneous interval is given, because it would often be wrong.")
    if (runs := len(comparison.runs)) >= MANY_RUNS:
        lead = compute_optimism(comparison.compared, seed=statistics.seed, weights=comparison.compared_weights)
        sentences.append(
            f"The best of {runs} runs seems better than it is, because they were tried on the same queries: by "
            f"{figure(lead)} on average if no run were better than another. Confirm it on other queries."
        )
    return " ".join(sentences)


def describe_family(comparison: RunComparison) -> str:
    """Return a sentence on what was tested, on which queries, and how."""
    statistics = comparison.comparison
    pairs = len(statistics.pairs)
    if statistics.baseline is None:
        family = "one pair" if pairs == 1 else f"all {pairs:,} pairs of {len(comparison.runs)} runs"
    else:
        family = f"{counted(pairs, 'run')} against the baseline"
    flips = (
        f"all {statistics.resamples + 1:,} sign patterns"
        if statistics.exact
        else f"{statistics.resamples:,} sign flips"
    )
    return (
        f"{name_differences(comparison)} of {family}, paired by query over {counted(statistics.n, 'query')}; {flips}, "
        f"seed {statistics.seed}, "
        f"family-wise error at most {statistics.alpha:.0%} by max-|t|, power {statistics.power:.0%}."
    )


def name_differences(comparison: RunComparison) -> str:
    """Return the compared measure for the middle of a sentence: "nDCG@10, weighted by demand,"."""
    return f"{comparison.title}," if comparison.means_name else comparison.measure


def describe_shares(comparison: RunComparison) -> str:
    """Return a sentence on the shares of demand, or of queries, on which a run is better and worse than another.

    With a baseline these are the best other run and the baseline, else the best run and the next.
    """
    order, reference = comparison.order, comparison.reference
    if comparison.comparison.baseline is None:
        better, base = order[:2]
    else:
        better, base = next(run for run in order if run != reference), reference
    pair = comparison.comparison.get_pair(better, base)
    return (
        f"With {comparison.labels[better]} instead of {comparison.labels[base]}, {format_share(pair.improved)} of "
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


def _name_runs(labels: Iterable[str]) -> str:
    names = list(labels)
    return join_words(names) if len(names) <= MOST_NAMED else f"{len(names)} runs"
