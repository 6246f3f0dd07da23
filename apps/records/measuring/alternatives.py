"""Alternatives: the runs of a benchmark among which a verdict, a gate or a list chooses the best."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django.db.models import Case, Exists, FloatField, Func, Model, OuterRef, Q, QuerySet, TextField, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from apps.records.models import Run
from benchbench.ir.planning.axes import AXES
from benchbench.ir.planning.configuration import ENGINE_MODES

M = TypeVar("M", bound=Model)


def choose_alternatives(runs: Iterable[Run]) -> tuple[list[Run], dict[str, str]]:
    """Return the runs of a benchmark among which a verdict chooses, and sentences on the others, by their page.

    Runs under a filter share answer another question than those under a greater one, so only the greatest stays, and
    runs to which shares do not apply. Runs that differ only in their rate search alike, but queries that were not sent
    in time failed: the one with the fewest failed queries stays.
    """
    every, sentences = list(runs), {}
    chosen = keep_greatest_share(every)
    if len(chosen) < len(every):
        words = AXES["filter_share"].describe(max(filter(None, map(find_filter_share, chosen))))
        sentences["filters"] = f"Of filter shares only “{words}” is compared: the others ask another question."
    rates: dict[str, float | None] = {}  # of the run that stands for each setting
    for run in sorted(chosen, key=lambda run: (run.failed_queries, run.run_order)):
        rates.setdefault(_write_setting(run), run.configuration.rate)
    by_order = sorted(chosen, key=lambda run: run.run_order)
    alternatives = [run for run in by_order if rates[_write_setting(run)] == run.configuration.rate]
    if len(alternatives) < len(chosen):
        sentences["load"] = "Of runs that differ only in rate, that with the fewest failed queries stands for all."
    return alternatives, sentences


def keep_greatest_share(runs: Sequence[Run]) -> list[Run]:
    """Return the runs whose filter admits the greatest share of the documents, and those to which none applies."""
    shares = {run.pk: share for run in runs if (share := find_filter_share(run))}
    greatest = max(shares.values(), default=None)
    return [run for run in runs if shares.get(run.pk, greatest) == greatest]


def find_filter_share(run: Run) -> float | None:
    """Return the share of the documents that a run's filter admits; None where shares do not apply or are unknown."""
    if not run.config or run.configuration.search_mode in ENGINE_MODES:
        return None
    return float(run.configuration.filter_share or 1)


def _write_setting(run: Run) -> str:
    return json.dumps({**run.config, "rate": None}, sort_keys=True)


def keep_alternatives(rows: QuerySet[M], path: str = "") -> QuerySet[M]:
    """Return the rows whose completed run, which they have at `path`, such as "run__", `choose_alternatives` keeps."""
    completed = Run.objects.filter(status=Run.Status.COMPLETED, benchmark=OuterRef(f"{path}benchmark"))
    failed, order = OuterRef(f"{path}failed_queries"), OuterRef(f"{path}run_order")
    wider = completed.alias(share=_select_share("")).filter(share__gt=OuterRef("own_share"))
    same = completed.alias(setting=_select_setting("")).filter(setting=OuterRef("own_setting"))
    at_other_rates = same.exclude(config=OuterRef(f"{path}config"))
    calmer = at_other_rates.filter(Q(failed_queries__lt=failed) | Q(failed_queries=failed, run_order__lt=order))
    candidates: Any = rows.alias(own_share=_select_share(path), own_setting=_select_setting(path))
    return candidates.exclude(Exists(wider)).exclude(Exists(calmer))


def _select_share(path: str) -> Case:
    """Return `find_filter_share` in SQL."""
    share = Cast(KeyTextTransform("filter_share", f"{path}config"), FloatField())
    unfiltered = Q(**{f"{path}config": {}}) | Q(**{f"{path}config__search_mode__in": ENGINE_MODES})
    return Case(When(unfiltered, then=None), default=Coalesce(share, 1.0), output_field=FloatField())


def _select_setting(path: str) -> Func:
    return Func(f"{path}config", template="(%(expressions)s - 'rate')::text", output_field=TextField())
