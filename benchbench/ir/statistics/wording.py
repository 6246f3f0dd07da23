"""Sentences about a comparison: the verdict, the tested family, and what limits them."""

from collections.abc import Iterable, Sequence

from benchbench.decimals import counted, figure, join_words
from benchbench.ir.statistics.resampling import Values, compute_optimism
from benchbench.ir.statistics.significance import Comparison, Pair
from benchbench.ir.statistics.skew import FEWEST
from benchbench.ir.statistics.verdict import Verdict, is_realistic

MOST_NAMED = 3
MANY_RUNS = 20  # of which the best is chosen
FEWEST_CHANGED = 10  # queries whose values differ: of fewer, an interval of the mean is too narrow


def describe_verdict(verdict: Verdict, labels: Sequence[str]) -> str:
    """Return the verdict in one sentence, and in a second the number of queries that would settle open questions.

    `labels` are those of all compared runs.
    """
    best = labels[verdict.reference]
    if verdict.against_baseline:
        return _describe_baseline(verdict, labels)
    rival_count = len(labels) - 1
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
    return f"{sentence} {_describe_settling(verdict)}"


def summarise_verdict(verdict: Verdict, labels: Sequence[str]) -> str:
    """Return a verdict without a baseline in a few words: "dense is better", "2 of 5 not distinguishable"."""
    if verdict.winner is not None:
        return f"{labels[verdict.reference]} is {'better' if len(labels) == 2 else 'the best'}"
    if len(labels) == 2:
        return "not distinguishable"
    group = len(verdict.group)
    return f"{'all' if group == len(labels) else f'{group} of'} {len(labels)} not distinguishable"


def _describe_baseline(verdict: Verdict, labels: Sequence[str]) -> str:
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
    return f"{sentence} {_describe_settling(verdict)}" if verdict.undecided else sentence


def _describe_settling(verdict: Verdict) -> str:
    """Return a sentence on how many more queries would settle the open differences."""
    numbers = [number for number in verdict.more_queries if number and is_realistic(number, verdict.queries)]
    if not numbers:
        return "No realistic number of queries would settle it."
    about = f"About {counted(max(numbers), 'more query')} would settle"
    if len(numbers) == len(verdict.more_queries):
        return f"{about} it."
    return f"{about} some of it; no realistic number would settle the rest."


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


def describe_disorder(verdict: Verdict, labels: Sequence[str], order: Sequence[int]) -> str:
    """Return why a run is worse than the reference though a lower one is not distinguishable from it; else "".

    `order` has the runs by falling mean.
    """
    last = max((order.index(run) for run in verdict.undecided), default=0)
    above = [run for run in order[:last] if run in verdict.worse]
    if not above:
        return ""
    worse, lower = labels[above[0]], labels[order[last]]
    return (
        f"{worse} is significantly worse, but {lower}, whose mean is lower, is not: significance also "
        "depends on how much the differences vary between queries."
    )


def describe_caution(statistics: Comparison, values: Values, weights: Values | None = None) -> str:
    """Return what limits a verdict, else "": differences kept back by skew, missing intervals, the best of many.

    `values` are those compared, (runs, queries), with the `weights` of their queries.
    """
    sentences = []
    prevented = [pair for pair in statistics.pairs if pair.held_back]
    if prevented:
        sentences.append(
            f"Skew decides: the adjusted p of {counted(len(prevented), 'pair')} is at most "
            f"{figure(statistics.alpha, 2)}, but a few queries with large differences could turn the result, so it is "
            "not called significant."
        )
    if statistics.n < FEWEST:
        sentences.append(f"Below {FEWEST} queries no simultaneous interval is given, because it would often be wrong.")
    if (runs := len(statistics.means)) >= MANY_RUNS:
        lead = compute_optimism(values, seed=statistics.seed, weights=weights)
        sentences.append(
            f"The best of {runs} runs seems better than it is, because they were tried on the same queries: by "
            f"{figure(lead)} on average if no run were better than another. Confirm it on other queries."
        )
    return " ".join(sentences)


def describe_family(statistics: Comparison, differences: str) -> str:
    """Return a sentence on what was tested, on which queries, and how; `differences` names the measure."""
    pairs = len(statistics.pairs)
    if statistics.baseline is None:
        family = "one pair" if pairs == 1 else f"all {pairs:,} pairs of {len(statistics.means)} runs"
    else:
        family = f"{counted(pairs, 'run')} against the baseline"
    flips = (
        f"all {statistics.resamples + 1:,} sign patterns"
        if statistics.exact
        else f"{statistics.resamples:,} sign flips"
    )
    return (
        f"{differences} of {family}, paired by query over {counted(statistics.n, 'query')}; {flips}, "
        f"seed {statistics.seed}, "
        f"family-wise error at most {100 * statistics.alpha:g} % by max-|t|, power {100 * statistics.power:g} %."
    )


def _name_runs(labels: Iterable[str]) -> str:
    names = list(labels)
    return join_words(names) if len(names) <= MOST_NAMED else f"{len(names)} runs"
