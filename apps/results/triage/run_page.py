"""Contents of the page of a run: its means, its losses, and its queries in the order that was chosen."""

from collections.abc import Mapping
from typing import Any

from django.core.paginator import Paginator

from apps.benchmarks.comparability import differences
from apps.benchmarks.gates.baselines import baseline_names
from apps.benchmarks.measuring.approximations import ann_of, ann_text
from apps.benchmarks.measuring.slicing import slicing_or_why
from apps.benchmarks.models import Evaluation, Run
from apps.datasets.models import DatasetVersion
from apps.results.configurations import keys_of, phrases
from apps.results.leaderboard.coverage import is_coverage, judged_name
from apps.results.leaderboard.runs import measures_at, primary_measure
from apps.results.leaderboard.versions import VersionShown
from apps.results.triage import queries
from apps.results.triage.by_slice import slices_context
from apps.results.triage.causes import cause_rows, read_cause
from apps.results.triage.content import has_content
from apps.results.triage.queries import column_of, furthest_apart, having, worst_first
from apps.results.triage.sections import names_sections
from apps.results.triage.triaging import RunLosses, losses_of

PER_PAGE = 25
ORDERS = ("difference", "worst", "best")  # the first is chosen unless another is asked for


def run_context(run: Run, asked: Mapping[str, str], *, at: VersionShown, against: Run | None = None) -> dict[str, Any]:
    """Return what the page of `run` shows, as the query string asks: text `q`, measure `by`, `order`, `slice`, `cause`,
    `page`; its values are those on the version of `at`.

    `against` is another run, with whose values those of this one are compared query by query; not where these were
    measured against another truth, which `refusals` then says.
    """
    benchmark = run.benchmark
    evaluation = queries.evaluation_of(run, version=at.version)
    losses = losses_of(run, evaluation) if evaluation else None
    against, other, refusals = _beside(run, against, at.version)
    names = [primary_measure(benchmark), *measures_at(benchmark, benchmark.primary_k)]
    measure = asked.get("by", "") if asked.get("by") in names else names[0]
    orders = ORDERS if evaluation and other else ORDERS[1:]
    order = asked.get("order", "") if asked.get("order") in orders else orders[0]
    text, cause = asked.get("q", "").strip(), read_cause(asked.get("cause", "")) if losses else ""
    slicing, unsliced = slicing_or_why(benchmark, evaluation)
    chosen = slicing.find(asked.get("slice", "")) if slicing else None
    within = slicing.ids_in(chosen) if slicing and chosen else None
    ids = queries.ordered_queries(run, evaluation, measure, text=text, best=order == "best", within=within)
    ids = _reordered(ids, run, evaluation, measure, order, losses=losses, other=other)
    ids = having(ids, losses, cause) if losses and cause else ids
    page = Paginator(ids, PER_PAGE).get_page(asked.get("page"))
    columns = [measure, *(name for name in names if name != measure)] if other else names
    beside = column_of(other, measure) if other else None
    return {
        **_about(run),
        **_measured(run, evaluation),
        "at": at,
        **slices_context(evaluation, slicing, names),
        "unsliced": unsliced,
        "chosen": chosen,
        "no_slice": asked.get("slice", "") if slicing and not chosen else "",
        "measures": names,
        "columns": columns,
        "measure": measure,
        "order": order,
        "text": text,
        "page": page,
        "is_narrowed": bool(text or cause or against),
        "rows": queries.query_rows(run, evaluation, page.object_list, columns, losses=losses, other=beside),
        "losses": losses,
        "causes": cause_rows(losses) if losses else [],
        "cause": str(cause),
        "against": against,
        "refusals": refusals,
    }


def _beside(run: Run, against: Run | None, version: DatasetVersion) -> tuple[Run | None, Evaluation | None, list[str]]:
    """Return the run to compare with and its values, or why the two do not compare."""
    refusals = differences([run, against], version=version).refusals if against else []
    if against is None or refusals:
        return None, None, refusals
    return against, queries.evaluation_of(against, version=version), []


def _about(run: Run) -> dict[str, Any]:
    """Return what is known of a run whatever it is measured on."""
    return {
        "run": run,
        "benchmark": run.benchmark,
        "baselines": baseline_names(run.benchmark).get(run.pk, []),
        "facts": phrases(run.config, keys_of([run.config])),
        "file": run.provenance.get("file"),
    }


def _measured(run: Run, evaluation: Evaluation | None) -> dict[str, Any]:
    """Return the means of a run, what else can be measured of its rankings, and the runs to hold them against."""
    others = run.benchmark.runs.only("pk", "label", "run_order", "benchmark").order_by("run_order")
    return {
        "evaluation": evaluation,
        "ann": ann_text(ann_of(run, evaluation.truth_hash) if evaluation else None),
        "means": _means(evaluation) if evaluation else [],
        "has_sections": evaluation is not None and names_sections(evaluation),
        "has_content": evaluation is not None and has_content(evaluation),
        "siblings": others.filter(status=Run.Status.COMPLETED).exclude(pk=run.pk) if evaluation else [],
    }


def _reordered(
    ids: list[int],
    run: Run,
    evaluation: Evaluation | None,
    measure: str,
    order: str,
    *,
    losses: RunLosses | None,
    other: Evaluation | None,
) -> list[int]:
    """Return the queries by how far two runs are apart, or by what they lost, where that is the order asked for."""
    if evaluation and other and order == "difference":
        return furthest_apart(ids, evaluation, other, measure)
    if evaluation and losses and order == "worst" and measure == primary_measure(run.benchmark):
        return worst_first(ids, evaluation, losses, measure)
    return ids


def _means(evaluation: Evaluation) -> list[tuple[str, float | None, float | None]]:
    """Return each mean with that of how far it is judged."""
    names = [name for name in evaluation.measures if not is_coverage(name)]
    return [(name, evaluation.means[name], evaluation.means.get(judged_name(name))) for name in names]
