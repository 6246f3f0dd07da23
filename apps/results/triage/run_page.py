"""Contents of the pages of a run and of one ranking: means, losses, queries; with a second run, the differences."""

from collections.abc import Mapping, Sequence

from django.core.paginator import Paginator

from apps.records.lists.reading import filter_found
from apps.records.measuring.approximations import render_ann
from apps.records.measuring.slicing import try_slicing
from apps.records.models import Evaluation, QueryResult, Run
from apps.records.models.timing import OpenLoop
from apps.results.leaderboard.versions import VersionView
from apps.results.triage import queries
from apps.results.triage.by_slice import build_context
from apps.results.triage.causes import count_causes, read_cause
from apps.results.triage.notices import list_notices
from apps.results.triage.paths import build_paths
from apps.results.triage.queries import filter_by_cause, get_column, order_by_gap, order_worst_first
from apps.results.triage.query_runs import load_query_runs
from apps.results.triage.sections import has_content, has_sections
from apps.results.triage.triaging import RunLosses, load_losses
from apps.retrieval.llms.asking import find_texts
from apps.retrieval.search.words import read_terms
from apps.verdicts.configurations import list_keys, list_phrases
from apps.verdicts.coverage import is_coverage, name_judged
from apps.verdicts.gates.baselines import load_baseline_names
from apps.verdicts.ranked_runs import name_primary, select_measures
from benchbench.ir.planning.lexical import Lexical
from benchbench.ir.planning.plan import plan

PER_PAGE = 10
MAX_TERMS = 100  # of a text that are shown
ORDERS = ("difference", "worst", "best")  # the default is the first available one


def build_run_context(
    run: Run, params: Mapping[str, str], *, at: VersionView, against: Run | None = None
) -> dict[str, object]:
    """Return the context of a run's page. Query string: `q` (text), `by` (measure), `order`, `slice`, `cause`, `page`.

    Values are those on the version of `at`. `against` is another run to compare with, query by query. If its values
    come from another truth, they are not compared, and `refusals` gives the reason.
    """
    benchmark = run.benchmark
    evaluation = queries.load_evaluation(run, version=at.version)
    losses = load_losses(run, evaluation) if evaluation else None
    against, other_evaluation, refusals = queries.find_partner(run, against, at.version)
    names = [name_primary(benchmark), *select_measures(benchmark, benchmark.primary_k)]
    measure = params.get("by", "") if params.get("by") in names else names[0]
    orders = ORDERS if evaluation and other_evaluation else ORDERS[1:]
    order = params.get("order", "") if params.get("order") in orders else orders[0]
    text, cause = params.get("q", "").strip(), read_cause(params.get("cause", "")) if losses else ""
    slicing, unsliced = try_slicing(benchmark, evaluation)
    chosen = slicing.find(params.get("slice", "")) if slicing else None
    within = slicing.list_ids(chosen) if slicing and chosen else None
    ids = queries.order_queries(run, evaluation, measure, text=text, best=order == "best", within=within)
    ids = _reorder(ids, run, evaluation, measure, order, losses=losses, other_evaluation=other_evaluation)
    ids = filter_by_cause(ids, losses, cause) if losses and cause else ids
    page = Paginator(ids, PER_PAGE).get_page(params.get("page"))
    columns = [measure, *(name for name in names if name != measure)] if other_evaluation else names
    values = get_column(other_evaluation, measure) if other_evaluation else None
    return {
        **_describe_run(run),
        **_describe_values(run, evaluation),
        "at": at,
        **build_context(evaluation, slicing, names),
        "unsliced": unsliced,
        "chosen": chosen,
        "no_slice": params.get("slice", "") if slicing and not chosen else "",
        "measures": names,
        "columns": columns,
        "measure": measure,
        "order": order,
        "text": text,
        "page": page,
        "is_narrowed": bool(text or cause or against),
        "rows": queries.load_query_rows(run, evaluation, page.object_list, columns, losses=losses, other_values=values),
        "losses": losses,
        "causes": count_causes(losses, run.configuration) if losses else [],
        "cause": str(cause),
        "against": against,
        "refusals": refusals,
    }


def _describe_run(run: Run) -> dict[str, object]:
    """Return the facts of a run that do not depend on the version."""
    loop = run.times.open_loop or OpenLoop()
    return {
        "run": run,
        "benchmark": run.benchmark,
        "baselines": load_baseline_names(run.benchmark).get(run.pk, []),
        "facts": list_phrases(run.config, list_keys([run.config])),
        "file": run.lineage.file,
        "engine": run.lineage.engine,
        "open_loop": [
            (name, loop.latency_ms[name], loop.service_ms[name])
            for name in ("mean", "p50", "p95", "p99", "max")
            if name in loop.latency_ms
        ],
    }


def _describe_values(run: Run, evaluation: Evaluation | None) -> dict[str, object]:
    """Return the means of a run, its other available measures, and the runs that it can be compared with."""
    siblings = run.benchmark.runs.only("pk", "label", "run_order", "benchmark").order_by("run_order")
    return {
        "evaluation": evaluation,
        "ann": render_ann(run, evaluation.truth_hash) if evaluation else "",
        "means": _list_means(evaluation) if evaluation else [],
        "has_sections": evaluation is not None and has_sections(evaluation),
        "has_content": evaluation is not None and has_content(evaluation),
        "siblings": siblings.filter(status=Run.Status.COMPLETED).exclude(pk=run.pk) if evaluation else [],
    }


def _reorder(
    ids: list[int],
    run: Run,
    evaluation: Evaluation | None,
    measure: str,
    order: str,
    *,
    losses: RunLosses | None,
    other_evaluation: Evaluation | None,
) -> list[int]:
    """Return the queries by the gap between two runs or by loss, if that order is chosen."""
    if evaluation and other_evaluation and order == "difference":
        return order_by_gap(ids, evaluation, other_evaluation, measure)
    if evaluation and losses and order == "worst" and measure == name_primary(run.benchmark):
        return order_worst_first(ids, evaluation, losses, measure)
    return ids


def _list_means(evaluation: Evaluation) -> list[tuple[str, float | None, float | None]]:
    """Return each mean with its judged share."""
    names = [name for name in evaluation.measures if not is_coverage(name)]
    return [(name, evaluation.means[name], evaluation.means.get(name_judged(name))) for name in names]


SHOWN_HITS = 20
SHOWN_LOST = 50


def build_query_context(result: QueryResult, *, at: VersionView) -> dict[str, object]:
    """Return the context of the page of a ranking, with grades and values on the version of `at`."""
    benchmark = result.run.benchmark
    grades = queries.load_grades(result, version=at.version)
    paths = build_paths(result, grades, hits=result.document_ids[:SHOWN_HITS], limit=SHOWN_LOST)
    hits = queries.load_hits(result, grades, limit=SHOWN_HITS)
    terms = list_terms(result.run, [result.query.text, *(hit.text for hit in hits)])
    query_terms = terms[0] if terms else None
    in_runs = load_query_runs(result.query, benchmark, [], number=str(at.version.number)).rows
    return {
        "result": result,
        "at": at,
        "query": result.query,
        "run": result.run,
        "paths": paths,
        "texts": _load_wordings(result),
        "terms": query_terms,
        "notices": list_notices(benchmark, [] if result.error else [result], [result.run.label], grades),
        "nothing": explain_nothing(result, query_terms),
        "hits": [
            (hit, paths.stops.get(hit.document.pk, ()) if hit.document else (), terms[number] if terms else ())
            for number, hit in enumerate(hits, start=1)
        ],
        "depth": len(result.document_ids),
        "values": queries.load_query_values(result, version=at.version),
        "others": [row for row in in_runs if row.result and row.run.pk != result.run_id],
        "primary": name_primary(benchmark),
        "k": benchmark.primary_k,
    }


def _load_wordings(result: QueryResult) -> tuple[str, ...]:
    """Return the texts that a language model made from the query; () if it made none or they are not cached.

    Those of further repetitions are never cached.
    """
    configuration = result.run.configuration
    revisions = result.run.lineage.list_revisions(configuration.llm or "")
    if not configuration.rewrites or result.error or result.repetition > 1 or len(revisions) != 1:
        return ()
    return find_texts(configuration.query, configuration.llm or "", result.query.text, revision=revisions[0])


def list_terms(run: Run, texts: Sequence[str]) -> list[list[str]] | None:
    """Return the first terms of each text by the analyzer of a run; None without lexical search."""
    if run.index is None or not run.configuration.uses_words:
        return None
    terms = read_terms(run.index, Lexical.parse(run.configuration.lexical), texts)
    return None if terms is None else [each[:MAX_TERMS] for each in terms]


def explain_nothing(result: QueryResult, terms: Sequence[str] | None) -> str:
    """Return why a ranking is empty, as a sentence; "" if it is not, or that is unknown. `terms` are the query's."""
    run = result.run
    if result.document_ids or result.error or run.is_external:
        return ""
    configuration, (planned,) = run.configuration, plan([("", run.configuration)]).runs
    if planned.threshold is not None and filter_found(run, planned).filter(query=result.query_id).exists():
        return f"The threshold {planned.threshold} removed all results."
    if configuration.uses_vectors or not configuration.uses_words or terms is None:
        return ""
    if not terms:
        return "No word of the query is left: the analyzer drops stop words, and perhaps words of one letter."
    if result.query.filters or configuration.filter_share is not None:
        return "No document that its filter admits has a word of the query."
    return "None of its words occurs in the collection."
