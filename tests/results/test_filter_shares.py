"""Benchmarks over filter shares: their runs, exact counterparts and page, and where exact search wins."""

import csv
import io
import math

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.records.measuring.evaluating import load_truth
from apps.records.models import Evaluation, StageList
from apps.records.models.values import load_values
from apps.results.exporters.results_json import build_results
from apps.results.exporting import export
from apps.results.ladders.compression import list_ladders
from apps.results.ladders.filter_shares import describe_crossing, find_crossing, list_settings
from apps.results.triage.triaging import load_losses
from apps.retrieval.filters import PLACES, find_place
from apps.retrieval.models import Index
from apps.retrieval.search.open_indexes import open_index
from benchbench.ir.planning.axes import normalize
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.matrix import Matrix, MatrixError
from benchbench.ir.triage import Loss
from tests.benchmarks.approximated import NARROW, WIDE, run_matrix
from tests.commands import json_of
from tests.site import text_of

SHARES = [1, 0.5, 0.25]


class TestTheAxis:
    def test_each_share_is_a_run_of_its_own(self):
        matrix = Matrix.parse({"filter_shares": [None, 1, 0.001], "search_modes": ["dense", "sparse"]})
        configurations = matrix.list_configurations()
        assert [one.filter_share for one in configurations] == [None, 1.0, 0.001] * 2
        assert len({one.hash for one in configurations}) == 6
        assert Configuration(filter_share=None).hash == Configuration().hash, "hashes of earlier runs stay"
        assert matrix.list_configurations()[2].as_dict()["filter_share"] == 0.001

    def test_engines_are_not_filtered_by_a_share(self):
        assert (
            normalize(Configuration(search_mode="engine+dense", engine="shop", filter_share=0.1)).filter_share is None
        )

    @pytest.mark.parametrize("share", [0, -1, 1.5, "half"])
    def test_shares_lie_above_zero_and_up_to_one(self, share):
        with pytest.raises(MatrixError, match=r"filter_shares: .* is not a number above 0, up to 1"):
            Matrix.parse({"filter_shares": [share]})

    def test_the_command_and_the_report_state_it(self, library):
        report = json_of("run_benchmark", "library", "--ann", f"exact,{WIDE}", "--filter-share", "none,0.5", "--wait")
        labels = [run["label"] for run in report["runs"]]
        assert labels[1] == "dense · filter admits about 50 % · top 100"
        assert report["runs"][1]["config"]["filter_share"] == 0.5
        assert report["runs"][3]["ann"]["recall"][0]["mean"] == 1


class TestABenchmark:
    @pytest.mark.parametrize(("shares", "expected"), [([None, 0.5], [1, 0.5]), ([None, 1, 0.5], [1, 0.5])])
    def test_without_a_share_all_documents_are_admitted(self, library, shares, expected):
        (setting,) = list_settings(run_matrix(library, filter_shares=shares))
        assert [rung.share for rung in setting.rungs] == expected

    def test_the_page_counts_the_admitted_documents(self, library, admin_client):
        benchmark = run_matrix(library, filter_shares=[0.5])
        names = library.collection.documents.values_list("external_id", flat=True)
        admitted = sum(find_place(name) < math.ceil(0.5 * PLACES) for name in names)
        assert admitted != round(0.5 * len(names)), "chance decides"
        (setting,) = list_settings(benchmark)
        narrow = setting.rungs[-1]
        assert narrow.admitted == admitted
        assert narrow.admitted_text == f"{admitted} documents, {100 * admitted / len(names):.3g} %"

    def test_exact_counterpart_is_brute_force_under_the_filter(self, library):
        benchmark = run_matrix(library, ann=[WIDE, NARROW], filter_shares=[0.5])
        opened = open_index(Index.objects.get())
        names = dict(library.collection.documents.values_list("pk", "external_id"))
        rows = [n for n, pk in enumerate(opened.document_ids.tolist()) if find_place(names[pk]) < PLACES / 2]
        assert 0 < len(rows) < len(opened.document_ids)
        lists = StageList.objects.filter(source__benchmark=benchmark, source__key="dense(exact, share 0.5)")
        assert lists.count() == 12
        for one in lists.select_related("query"):
            scores = np.asarray(opened._vectors)[rows].astype(float) @ opened.encode([one.query.text])[0].astype(float)
            order = np.lexsort((rows, -scores))[: len(one.chunk_ids)]
            assert one.scores == pytest.approx(scores[order], abs=1e-6)
            assert {int(chunk) for chunk in one.chunk_ids} <= set(opened.chunk_ids[rows].tolist())
        wide, narrow = benchmark.runs.order_by("run_order")
        assert wide.provenance["ann"]["recall"][0]["mean"] == 1
        assert narrow.status == "completed", "too few results are results, not a failure"
        assert narrow.provenance["ann"]["recall"][0]["mean"] <= 2 / 10, "two are found, of ten"
        assert narrow.provenance["ann"]["notes"] == {"short": 12}
        assert narrow.provenance["ann"]["ndcg"]["cost"] > 0

    def test_documents_that_the_share_excludes_are_filtered(self, library):
        run = run_matrix(library, filter_shares=[0.25]).runs.get()
        losses = load_losses(run, Evaluation.objects.get(run=run))
        assert losses.tally[Loss.FILTERED].documents > 0

    def test_lexical_and_hybrid_search_are_filtered(self, library):
        benchmark = run_matrix(library, search_modes=["sparse", "hybrid"], lexical=["bm25", "fts"], filter_shares=[0.5])
        names = dict(library.collection.documents.values_list("pk", "external_id"))
        for run in benchmark.runs.all():
            hits = {pk for ids in run.query_results.values_list("document_ids", flat=True) for pk in ids}
            assert hits
            assert all(find_place(names[pk]) < PLACES / 2 for pk in hits)


class TestThePage:
    def test_it_shows_capped_recall_and_the_plan(self, library, admin_client):
        matrix = {"ann": ["exact", NARROW, "pgvector:exact"], "filter_shares": SHARES}
        benchmark = run_matrix(library, execution="isolated", **matrix)
        exact, narrow, complete = list_settings(benchmark)
        assert [rung.share for rung in narrow.rungs] == SHARES
        assert [rung.recall for rung in exact.rungs] == [1, 1, 1]
        assert all(
            rung.recall <= 2 / 8 and rung.facts.short == 12 and rung.pair.difference < 0 for rung in narrow.rungs
        )
        assert {rung.choice for rung in complete.rungs} == {"compare all admitted"}
        page = admin_client.get(reverse("admin:benchmark_filters", args=[benchmark.pk])).content.decode()
        assert "12 queries found too few" in page
        assert "median ms of search" in page
        assert "Seq Scan" in page
        assert complete.sentence == "", "it is exact too"
        assert narrow.sentence.startswith("In-memory exact search is ")
        assert page.count("In-memory exact search ") == 1
        results = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk])).content.decode()
        assert reverse("admin:benchmark_filters", args=[benchmark.pk]) in results

    def test_shared_costs_are_named_and_decide_nothing(self, library, admin_client):
        benchmark = run_matrix(library, ann=["exact", WIDE], filter_shares=SHARES)
        assert [setting.sentence for setting in list_settings(benchmark)] == ["", ""]
        page = admin_client.get(reverse("admin:benchmark_filters", args=[benchmark.pk])).content.decode()
        assert "mean ms of search (shared)" in page
        assert "These times are shared costs" in page

    def test_fewer_dimensions_are_compared_with_all(self, library):
        benchmark = run_matrix(
            library, dimensions=[None, Index.objects.get().dimension], filter_shares=SHARES, execution="isolated"
        )
        complete, first = list_settings(benchmark)
        assert [(rung.is_exact, rung.recall, rung.pair.ties) for rung in first.rungs] == [(False, None, 12)] * 3
        assert [rung.recall for rung in complete.rungs] == [1, 1, 1]
        assert complete.sentence == ""
        assert first.sentence.startswith("In-memory exact search ")

    def test_without_shares_it_says_what_to_add(self, library, admin_client):
        benchmark = run_matrix(library)
        page = admin_client.get(reverse("admin:benchmark_filters", args=[benchmark.pk])).content.decode()
        assert "Add shares such as 1, 0.1 and 0.01" in page
        results = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk])).content.decode()
        assert reverse("admin:benchmark_filters", args=[benchmark.pk]) not in results


class TestAnswerableQueries:
    def test_difference_covers_queries_with_an_admitted_relevant_document(self, library):
        shares = [1, 0.5, 0.1]
        benchmark = run_matrix(library, ann=["exact", NARROW], filter_shares=shares)
        exact, narrow = list_settings(benchmark)
        names = dict(library.collection.documents.values_list("pk", "external_id"))
        grades = load_truth(benchmark, benchmark.dataset_version).grades
        for share, of_exact, rung in zip(shares, exact.rungs, narrow.rungs, strict=True):
            admitted = [
                query
                for query, graded in grades.items()
                if any(grade > 0 and find_place(names[key]) < share * PLACES for key, grade in graded.items())
            ]
            rows = [Evaluation.objects.get(run=one.run) for one in (of_exact, rung)]
            values = load_values(rows, ["nDCG@10"], admitted)[:, 0]
            assert not values.size or values[1].mean() <= values[0].mean()
            assert (of_exact.answerable, rung.answerable) == (len(admitted), len(admitted))
            if not admitted:
                assert (of_exact.ndcg, rung.ndcg, rung.pair) == (None, None, None)
                continue
            assert (of_exact.ndcg, rung.ndcg) == pytest.approx(tuple(values.mean(axis=1)))
            if len(admitted) > 1:
                assert rung.pair.difference == pytest.approx((values[1] - values[0]).mean())
                assert rung.pair.wins + rung.pair.losses == np.count_nonzero(np.abs(values[1] - values[0]) > 1e-9)
        assert {rung.answerable for rung in narrow.rungs} > {12}, "some queries have no admitted relevant document"

    def test_judgments_are_read_once_for_all_shares(self, library):
        counts = []
        for shares in ([0.5], [1, 0.5, 0.1]):
            benchmark = run_matrix(library, ann=["exact", NARROW], filter_shares=shares)
            with CaptureQueriesContext(connection) as queries:
                list_settings(benchmark)
            counts.append(sum("EXISTS" in one["sql"] and "mappings_resolution" in one["sql"] for one in queries))
        assert counts == [1, 1]

    def test_loss_without_its_queries_is_not_exported(self, library):
        benchmark = run_matrix(library, ann=["exact", NARROW], filter_shares=[1, 0.5])
        of_all, filtered = benchmark.runs.exclude(config__ann="exact").order_by("run_order")
        ann = {run.id: run.ann for run in build_results(benchmark).runs}
        assert ann[of_all.pk]["ndcg"]["cost"] > 0
        assert ann[filtered.pk]["ndcg"] == {"measure": "nDCG@10", "approximate": None, "exact": None, "cost": None}
        assert ann[filtered.pk]["recall"]
        rows = {row["run_id"]: row for row in csv.DictReader(io.StringIO("".join(export(benchmark, "csv"))))}
        assert float(rows[str(of_all.pk)]["ann_ndcg_loss"]) > 0
        assert rows[str(filtered.pk)]["ann_ndcg_loss"] == ""

    def test_fewer_than_two_queries_have_no_difference(self, library, admin_client):
        benchmark = run_matrix(library, ann=["exact", NARROW], filter_shares=[1, 0.0001])
        _, narrow = list_settings(benchmark)
        assert (narrow.rungs[1].answerable, narrow.rungs[1].ndcg, narrow.rungs[1].pair) == (0, None, None)
        text = text_of(admin_client.get(reverse("admin:benchmark_filters", args=[benchmark.pk])))
        assert "0 of 12" in text

    def test_compression_leaves_filtered_runs_to_filters(self, library, admin_client):
        benchmark = run_matrix(library, ann=["exact", NARROW], filter_shares=[1, 0.5])
        (ladder,) = list_ladders(benchmark)
        assert {row.run.config.get("filter_share") for row in ladder.rows} == {1}
        text = text_of(admin_client.get(reverse("admin:benchmark_compression", args=[benchmark.pk])))
        assert "Runs under a filter share left out here: Filters compares them" in text


class TestWhereExactSearchWins:
    def test_it_is_interpolated_between_measured_shares(self):
        # The logarithms of the ratios are −ln 4 at .01 and +ln 4 at 1, so they cross half-way on the axis: at .1.
        assert find_crossing([(0.01, 1, 4, None), (1, 8, 2, None)]) == pytest.approx(0.1)
        assert find_crossing([(1, 8, 2, None), (0.01, 1, 2, None)]) == pytest.approx(10 ** (-2 + 2 / 3))

    def test_sentence_has_one_digit_and_the_recall_there(self):
        curve = [(0.01, 1, 4, 0.061), (0.1, 1, 2, 0.4), (1, 8, 2, 0.99)]
        assert describe_crossing(curve) == (
            "In-memory exact search is at least as fast at about 20 % of the documents and below, down to 1 %. "
            "There this setting's agreement with exact search is .06 to .40."
        )
        assert describe_crossing([(0.01, 2, 1, 0.061), (0.1, 2, 1, 0.9)]) == (
            "In-memory exact search is slower at the smallest measured share, 1 %: no share was found where it is as "
            "fast. There this setting's agreement with exact search is .06."
        )

    def test_only_shares_without_a_gap_below_count(self):
        assert find_crossing([(0.01, 4, 1, None), (0.1, 1, 4, None), (1, 4, 1, None)]) is None
        assert find_crossing([(0.01, 1, 4, None), (0.1, 4, 1, None), (1, 1, 4, None)]) == pytest.approx(0.01 * 10**0.5)

    def test_nothing_is_extrapolated(self):
        assert find_crossing([(0.01, 1, 1, None), (0.1, 1, 2, None)]) == pytest.approx(0.1)
        assert "at every measured share, up to 10 %" in describe_crossing([(0.01, 1, 1, None), (0.1, 1, 2, None)])
        assert "slower at the smallest measured share, 1 %" in describe_crossing(
            [(0.01, 2, 1, None), (0.1, 1, 2, None)]
        )
        assert "Add “exact”" in describe_crossing([])

    def test_greatest_measured_share_is_every_share(self):
        for number in range(1, 1000):
            share = number / 1000
            assert find_crossing([(share, 1, 2, None)]) == share
            assert share <= find_crossing([(share, 1, 1, None), (1.5, 2, 1, None)]) == pytest.approx(share)
        assert describe_crossing([(0.003, 1, 2, 0.5), (0.03, 1, 2, 0.9)]) == (
            "In-memory exact search is at least as fast at every measured share, up to 3 %. "
            "There this setting's agreement with exact search is .50 to .90."
        )

    @pytest.mark.parametrize(
        ("curve", "message"),
        [([(0.5, 1, 2, 0.4), (1, 8, 7.8, 0.9)], "98 %"), ([(0.3, 1, 2, 0.4), (0.5, 8, 7.2, 0.9)], "47 %")],
    )
    def test_rounding_passes_no_measured_share(self, curve, message):
        sentence = describe_crossing(curve)
        assert f"at about {message} of the documents and below" in sentence
        assert sentence.endswith("is .40.")
