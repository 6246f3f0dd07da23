"""Search under filters: recall, loss and time of each setting over the shares of the documents that a filter admits."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.mappings.truth import TruthError
from apps.records.measuring.slicing import SlicingError
from apps.records.models import Benchmark, Evaluation, Run
from apps.records.models.provenance import Approximation
from apps.results.ladders.page import Rung, find_exact, find_recall, list_labels
from apps.results.triage.triaging import load_judgments
from apps.retrieval.filters import bound_places, find_place
from apps.retrieval.models import Chunk
from apps.verdicts.comparing import compare_values
from apps.verdicts.describing import compute_means
from apps.verdicts.ranked_runs import load_evaluations, load_leaderboard
from apps.verdicts.values import load_run_values
from benchbench.decimals import counted, figure
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.labels import render_share
from benchbench.ir.triage import Loss

ADMITTED = (None, Loss.BEYOND_WINDOW)  # of what keeps a document from being found

# A share, the milliseconds of exact search and of a setting there, and the recall of the setting, if measured.
Curve = Sequence[tuple[float, float, float, float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRung(Rung):
    """One setting at one share. `pair` is its difference to exact search under the same filter.

    `ndcg` is the mean over the `answerable` queries, which have a relevant document that the filter admits: without
    one, every search has 0. `pair` is on these queries.
    """

    share: float
    facts: Approximation
    ndcg: float | None = None
    answerable: int | None = None

    @property
    def admitted(self) -> int:
        """Return the number of documents of its index that the filter admits: by chance not exactly the share."""
        index = self.run.index
        assert index is not None
        assert index.chunk_set_id is not None
        return int(np.searchsorted(_load_places(index.chunk_set_id), bound_places(self.share)))

    @property
    def admitted_text(self) -> str:
        """Return the admitted documents as `6 documents, 0.15 %`."""
        share = self.admitted / max(1, self.run.benchmark.document_count)
        return f"{counted(self.admitted, 'document')}, {render_share(share)}"

    @property
    def choice(self) -> str:
        """Return in words what PostgreSQL would choose by its costs; "" for searches elsewhere."""
        chosen, is_whole = self.facts.chosen, "exact" in self.run.configuration.ann
        if chosen is None:
            return ""
        return "vector index" if chosen.index_used and not is_whole else "compare all admitted"


@dataclass(frozen=True, slots=True)
class Setting:
    """The rungs of a configuration, the greatest share first, and a sentence on where exact search wins.

    The sentence is "" for exact search of any store, and where times are shared costs, which are those of batches.
    """

    label: str
    rungs: list[ShareRung]
    sentence: str


@lru_cache(maxsize=4)
def _load_places(chunk_set: UUID) -> NDArray[np.int64]:
    """Return the places of the documents of an index's chunks in ascending order, which never change."""
    chunks = Chunk.objects.filter(chunk_set=chunk_set, document__isnull=False)
    names = chunks.order_by().values_list("document__external_id", flat=True).distinct()
    return np.sort(np.fromiter(map(find_place, names.iterator()), np.int64))


def has_shares(benchmark: Benchmark) -> bool:
    """Return whether a benchmark compares filter shares, or has one that excludes documents."""
    shares = benchmark.matrix.get("filter_shares", ())
    return len(shares) > 1 or any(share and share < 1 for share in shares)


def list_settings(benchmark: Benchmark) -> list[Setting]:
    """Return the dense and hybrid settings of a benchmark that ran at several shares, in the order of the runs.

    Without a share all documents are admitted; if there are runs at share 1 too, only these are shown.
    """
    unstated = 1.0 if has_shares(benchmark) and 1 not in benchmark.matrix["filter_shares"] else None
    rungs: dict[Configuration, list[ShareRung]] = {}
    for row in load_leaderboard(benchmark).in_run_order:
        configuration = None if row.run.is_external else row.run.configuration
        share = configuration and (configuration.filter_share or unstated)
        if configuration and share and configuration.uses_vectors and row.final:
            facts = row.run.lineage.approximation or Approximation()
            rungs.setdefault(replace(configuration, filter_share=None), []).append(
                ShareRung(run=row.run, recall=find_recall(row.run, facts.recall), share=share, facts=facts)
            )
    compared = _compare_with_exact(benchmark, rungs)
    settings, is_isolated = [], benchmark.execution == Benchmark.Execution.ISOLATED
    for label, (configuration, of_setting) in zip(list_labels(rungs), rungs.items(), strict=True):
        some = sorted((compared.get(rung.run.pk, rung) for rung in of_setting), key=lambda rung: -rung.share)
        finds_all = Ann.parse(configuration.ann).compares_all and configuration.dimensions is None
        exact = {rung.share: rung.ms for rung in rungs.get(find_exact(configuration), [])}
        sentence = "" if finds_all or not is_isolated else describe_crossing(_list_points(exact, some))
        settings.append(Setting(label, some, sentence))
    return settings


def _list_points(exact: Mapping[float, float | None], rungs: Sequence[ShareRung]) -> Curve:
    return sorted((one.share, ms, one.ms, one.recall) for one in rungs if (ms := exact.get(one.share)) and one.ms)


def _compare_with_exact(
    benchmark: Benchmark, rungs: Mapping[Configuration, Sequence[ShareRung]]
) -> dict[Any, ShareRung]:
    """Return the rungs by run with their values on the answerable queries.

    The settings with one exact counterpart are a family of tests at each share.
    Without those whose mapping was resolved again after measuring: the queries are then unknown.
    """
    families: dict[tuple[Configuration, float], list[ShareRung]] = {}
    for configuration, some in rungs.items():
        for rung in some:
            families.setdefault((find_exact(configuration), rung.share), []).append(rung)
    evaluations = load_evaluations(benchmark)
    places = {}  # by index, found under its greatest share
    compared = {}
    for (_, share), family in sorted(families.items(), key=lambda one: -one[0][1]):
        run = family[0].run
        try:
            if run.index_id not in places:
                places[run.index_id] = _find_least_places(run)
            answerable = [query for query, number in places[run.index_id].items() if number < bound_places(share)]
            for rung in _compare_family(family, evaluations, answerable):
                compared[rung.run.pk] = rung
        except (SlicingError, TruthError):
            continue
    return compared


def _find_least_places(run: Run) -> dict[int, int]:
    """Return the least place of a relevant document in the index that the run's filters admit, by query with one."""
    judged, places = load_judgments(run, run.benchmark.dataset_version), {}
    for query in judged.truth.grades:
        admitted = [one.document for one in judged.list_relevant(query) if one.unreachable in ADMITTED]
        if names := [name for name in map(judged.find_external_id, admitted) if name is not None]:
            places[query] = min(map(find_place, names))
    return places


def _compare_family(
    rungs: Sequence[ShareRung], evaluations: Mapping[UUID, Evaluation], answerable: Sequence[int]
) -> Iterator[ShareRung]:
    runs = [rung.run for rung in rungs]
    values = load_run_values(runs, evaluations)
    inside = np.isin(values.query_ids, answerable)
    weights = None if values.weights is None else values.weights[inside]
    rows = values.values[values.primary][:, inside]
    exact = next((number for number, rung in enumerate(rungs) if rung.is_exact), None)
    comparison = None
    if exact is not None and len(rungs) > 1 and (~np.isnan(rows)).all(axis=0).sum() > 1:
        comparison = compare_values(rows, weights, seed=values.seed, baseline=exact)
    for number, (rung, mean) in enumerate(zip(rungs, compute_means(rows, weights), strict=True)):
        pair = None if comparison is None or number == exact else comparison.get_pair(number, comparison.baseline or 0)
        yield replace(rung, ndcg=mean, answerable=int(inside.sum()), pair=pair)


def find_crossing(curve: Curve) -> float | None:
    """Return the greatest share at and below which exact search is at least as fast as a setting, of those measured.

    Its recall is never lower. Between two measured shares it is interpolated where the logarithm of the ratio of the
    times is 0, linearly in the logarithm of the share. None if exact search is slower at the smallest share.
    """
    points = sorted(curve)
    ratios = [(math.log(share), math.log(exact_ms / ms)) for share, exact_ms, ms, _ in points]
    wins = next((number for number, (_, ratio) in enumerate(ratios) if ratio > 0), len(ratios))
    if not wins:
        return None
    (low, ratio), measured = ratios[wins - 1], points[wins - 1][0]
    if wins == len(ratios):
        return measured
    high, next_ratio = ratios[wins]
    return max(measured, math.exp(low + (high - low) * -ratio / (next_ratio - ratio)))


def describe_crossing(curve: Curve) -> str:
    """Return a sentence on the share up to which exact search is as fast, and on the recall of the setting there."""
    if not curve:
        return "Add “exact” to the settings of dense search to see where exact search is as fast."
    smallest, greatest = (render_share(edge(point[0] for point in curve)) for edge in (min, max))
    share = find_crossing(curve)
    recalls = [recall for at, *_, recall in curve if recall is not None and at <= (share or min(curve)[0])]
    if share is None:
        sentence = f"slower at the smallest measured share, {smallest}: no share was found where it is as fast."
    elif share >= max(point[0] for point in curve):
        sentence = f"at least as fast at every measured share, up to {greatest}."
    else:
        about = _round_between(share, [point[0] for point in curve])
        sentence = f"at least as fast at about {about:g} % of the documents and below, down to {smallest}."
    ends = " to ".join(dict.fromkeys(figure(end, 2) for end in (min(recalls), max(recalls)))) if recalls else ""
    agreement = f" There this setting's agreement with exact search is {ends}." if ends else ""
    return f"In-memory exact search is {sentence}{agreement}"


def _round_between(share: float, measured: Sequence[float]) -> float:
    """Return a share in percent with the fewest digits that leave it between the same measured shares."""
    for digits in range(1, 7):
        about = float(f"{100 * share:.{digits}g}")
        if all((one <= about / 100) == (one <= share) for one in measured):
            return about
    return 100 * share
