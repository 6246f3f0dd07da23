"""Verdicts compare alternatives only: neither other filter shares nor other rates; and labels that show defaults."""

import json
from typing import Any

import numpy as np
import pytest
from django.urls import reverse

from apps.execution.defining.foreseeing import find_prior
from apps.records.measuring.alternatives import choose_alternatives, keep_alternatives
from apps.records.measuring.primary import select_facts
from apps.records.models import Benchmark, Evaluation, Run
from apps.results.comparison.history import load_history
from apps.results.exporting import export
from apps.results.leaderboard.page import build_context
from apps.results.leaderboard.versions import choose_version
from apps.verdicts.comparing import compare_runs
from apps.verdicts.configurations import build_labels
from apps.verdicts.gates.baselines import approve
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.rules import read_rules
from apps.verdicts.ranked_runs import NARROWER, load_leaderboard
from benchbench.decimals import short_signed
from benchbench.ir.planning.labels import label_settings
from tests.benchmarks.gated import BEST, GOOD, POOR, make_gated, search
from tests.results.compared import make_compared, make_queries, noisy
from tests.site import results_url, text_of

pytestmark = pytest.mark.django_db
SHARES = [{"ann": ann, "filter_share": share, "top_k": 10} for ann in ("exact", "hnsw") for share in (1.0, 0.1)]
RATES = [{"ann": ann, "rate": rate, "top_k": 10} for ann in ("exact", "hnsw") for rate in (20.0, 50.0)]


def make_filtered() -> Benchmark:
    """Return a benchmark whose best value is that of a run under a filter."""
    return make_compared(make_queries(60), noisy([0.5, 0.6, 0.3, 0.2], 60, spread=0.02), configs=SHARES)


def make_loaded() -> Benchmark:
    better, worse = noisy([0.5, 0.3], 60, spread=0.02)
    return make_compared(make_queries(60), np.array([better, better, worse, worse]), configs=RATES)


def list_orders(runs: Any) -> list[int]:
    return [run.run_order for run in runs]


@pytest.mark.parametrize(
    ("make", "orders", "omitted"),
    [
        (make_filtered, [1, 3], {"filters": "Of filter shares only “all documents” is compared: the others"}),
        (make_loaded, [1, 3], {"load": "Of runs that differ only in rate, that with the fewest failed queries"}),
    ],
)
def test_every_verdict_of_a_benchmark_compares_alternatives(admin_client, make, orders, omitted):
    benchmark = make()
    chosen, sentences = choose_alternatives(benchmark.runs.order_by("-run_order"))
    assert list_orders(chosen) == orders
    assert {page: sentence[: len(omitted[page])] for page, sentence in sentences.items()} == omitted
    ((page, sentence),) = sentences.items()
    verdict = reverse("admin:benchmark_verdict", args=[benchmark.pk])
    full = admin_client.get(verdict)
    assert list_orders(full.context["comparison"].runs) == orders
    assert f"{sentence} See {page.capitalize()}" in text_of(full)
    assert reverse(f"admin:benchmark_{page}", args=[benchmark.pk]) in full.content.decode()
    brief = text_of(admin_client.get(verdict, {"brief": 1}))
    assert "beats" in brief
    comparison = admin_client.get(reverse("admin:run_compare"), {"benchmark": benchmark.pk})
    assert list_orders(comparison.context["comparison"].runs) == orders
    assert comparison.context["picked"] == 0
    assert sentence in text_of(comparison)
    markdown = "".join(export(benchmark, "markdown"))
    assert brief.strip().split(":")[0] in markdown.replace("\\", "")
    assert sentence.split(":")[0] in markdown
    best = benchmark.runs.get(run_order=1).pk
    assert json.loads("".join(export(benchmark, "json")))["summary"]["best_run"] == str(best)
    facts = Benchmark.objects.annotate(facts=select_facts(run__benchmark=benchmark.pk)).get().facts
    assert facts["run"] == str(best)


ENGINE = {"search_mode": "engine", "engine": "shop"}
DENSE = [{"filter_share": share} for share in (1.0, 0.1)]


@pytest.mark.parametrize(
    ("configs", "failed", "orders"),
    [
        ([*DENSE, ENGINE], {}, [1, 3]),
        ([DENSE[1], ENGINE], {}, [1, 2]),
        ([{}, *DENSE], {}, [1, 2]),
        ([DENSE[1], {"filter_share": 0.01}], {}, [1]),
        ([{"rate": rate} for rate in (20.0, None, 50.0)], {1: 4, 3: 9}, [2]),
        ([{"rate": rate} for rate in (20.0, 50.0)], {}, [1]),
        ([None, None, DENSE[1]], {}, [1, 2, 3]),  # of engines unknown to us
    ],
)
def test_lists_choose_the_alternatives_of_verdicts(configs, failed, orders):
    benchmark = make_compared(make_queries(3), noisy([0.1 * n for n in range(1, len(configs) + 1)], 3))
    for run, config in zip(benchmark.runs.order_by("run_order"), configs, strict=True):
        run.config = {} if config is None else {"search_mode": "dense", "top_k": 10, **config}
        run.failed_queries = failed.get(run.run_order, 0)
        run.save()
    chosen, _ = choose_alternatives(benchmark.runs.all())
    assert list_orders(chosen) == orders
    assert list_orders(keep_alternatives(benchmark.runs.order_by("run_order"))) == orders
    facts = Benchmark.objects.annotate(facts=select_facts(run__benchmark=benchmark.pk)).get().facts
    best = json.loads("".join(export(benchmark, "json")))["summary"]["best_run"]
    assert facts["run"] == best == str(benchmark.runs.get(run_order=orders[-1]).pk)


def test_gate_history_foresight_and_round_use_alternatives(admin_client, admin_user):
    benchmark = search(make_gated(), GOOD, BEST, POOR, BEST)
    for run, config in zip(benchmark.runs.order_by("run_order"), SHARES, strict=True):
        run.config |= config
        run.save()
    result = gate(benchmark, rules=read_rules("floors: {nDCG@10: 0.1}"))
    assert result.run_selection == "the best of 2 alternatives by nDCG@10"
    assert [verdict.run.run_order for verdict in result.verdicts] == [1]
    baseline = approve(benchmark.runs.get(run_order=3), name="main", reason="Because.", by=admin_user)
    rules = read_rules("against_baseline: {nDCG@10: {may_lose: 0.01}}")
    checks = gate(benchmark, rules=rules, baseline=baseline).verdicts[0].checks
    compared = benchmark.runs.filter(run_order__in=[1, 3])
    (pair,) = compare_runs(compared, baseline=baseline.run).comparison.pairs
    low, high = (short_signed(end) for end in (pair.simultaneous.low, pair.simultaneous.high))
    assert checks[0].observed == f"{short_signed(pair.difference)} [{low}, {high}]", "a family of one difference"
    (point,) = load_history(benchmark.mapping.dataset, admin_user).points
    assert point.run.run_order == 1
    values = [Evaluation.objects.get(run__run_order=order).get_column("nDCG@10") for order in (1, 3)]
    assert find_prior(benchmark.mapping, admin_user).deviation == pytest.approx(np.std(values[0] - values[1], ddof=1))
    url = reverse("admin:judging_round_add")
    initial = admin_client.get(url, {"benchmark": benchmark.pk}).context["form"].initial
    assert initial["runs"] == [str(run.pk) for run in choose_alternatives(benchmark.runs.all())[0]]
    filtered = benchmark.runs.get(run_order=2)
    assert admin_client.get(url, {"run": filtered.pk}).context["form"].initial["runs"] == [str(filtered.pk)]


def test_leaderboard_ranks_only_the_greatest_filter_share(admin_client):
    benchmark = make_filtered()
    rows = load_leaderboard(benchmark).rows
    assert [(row.run.run_order, row.rank) for row in rows] == [(1, 1), (3, 2), (2, None), (4, None)]
    assert rows[2].unranked == NARROWER
    assert rows[2].values["nDCG@10"] > rows[0].values["nDCG@10"]
    assert text_of(admin_client.get(results_url(benchmark))).count(rows[2].unranked) == 2
    exported = json.loads("".join(export(benchmark, "json")))["runs"]
    assert [run["unranked"] for run in exported] == [None, rows[2].unranked, None, rows[2].unranked]
    Evaluation.objects.filter(run__run_order__in=[1, 3]).delete()
    assert {row.rank for row in load_leaderboard(benchmark).rows} == {None}, "as its verdict"
    benchmark.runs.filter(run_order__in=[1, 3]).update(status=Run.Status.FAILED)
    assert [row.rank for row in load_leaderboard(benchmark).rows[:2]] == [1, 2]


def test_coverage_of_other_filters_is_no_warning():
    benchmark = make_filtered()
    for order, judged in ((1, 0.9), (2, 0.1), (3, 0.88), (4, 0.1)):
        evaluation = Evaluation.objects.get(run__benchmark=benchmark, run__run_order=order)
        evaluation.means = {**evaluation.means, "Judged@10": judged}
        evaluation.save()
    context = build_context(benchmark, 10, at=choose_version(benchmark, ""))
    assert (context["uneven"], context["few_judged"]) == ("", "")
    Evaluation.objects.filter(run__benchmark=benchmark, run__run_order=3).update(
        means={**evaluation.means, "Judged@10": 0.1}
    )
    assert "Judgment coverage differs" in build_context(benchmark, 10, at=choose_version(benchmark, ""))["uneven"]


def test_chosen_runs_of_other_shares_are_compared_with_warning(admin_client):
    benchmark = make_filtered()
    complete, filtered = benchmark.runs.order_by("run_order")[:2]
    page = admin_client.get(reverse("admin:run_compare"), {"run": [complete.pk, filtered.pk]})
    assert list_orders(page.context["comparison"].runs) == [1, 2]
    text = text_of(page)
    assert "Their filters admit different shares of the documents" in text


def test_runs_without_another_setting_have_no_verdict(admin_client):
    benchmark = make_loaded()
    benchmark.runs.filter(run_order__gt=2).delete()
    verdict = text_of(admin_client.get(reverse("admin:benchmark_verdict", args=[benchmark.pk])))
    assert "No verdict: It needs two runs that answer the same question." in verdict
    assert "that with the fewest failed queries stands for all" in verdict


def test_labels_show_the_default_that_others_vary(admin_client):
    assert label_settings(["exact", "hnsw", "hnsw(ef_search=10)", "faiss:hnsw"]) == {
        "exact": "exact",
        "hnsw": "hnsw(ef_search=40)",
        "hnsw(ef_search=10)": "hnsw(ef_search=10)",
        "faiss:hnsw": "faiss:hnsw",
    }
    assert label_settings(["hnsw", "hnsw(ef_search=10, m=8)"])["hnsw"] == "hnsw", "they differ in more than one option"
    configs = [{"ann": ann, "top_k": 10} for ann in ("hnsw(ef_search=10)", "hnsw", "hnsw(ef_search=100)")]
    benchmark = make_compared(make_queries(20), noisy([0.5, 0.6, 0.7], 20), configs=configs)
    labels = build_labels(benchmark.runs.order_by("run_order"))
    assert labels == ["hnsw(ef_search=10)", "hnsw(ef_search=40)", "hnsw(ef_search=100)"]
    assert "hnsw(ef_search=40)" in text_of(admin_client.get(results_url(benchmark)))
