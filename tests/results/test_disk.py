"""The page of the disk."""

import re
from typing import Any

from django.core.management import call_command
from django.test import Client

from apps.records.models import Benchmark
from apps.results.retention import sizes
from benchbench.access import viewable


class TestDiskPage:
    URL = "/admin/operations/operation/disk/"

    def test_sums_stay_within_the_database(self, ended: Benchmark) -> None:
        call_command("migrate", verbosity=0)
        measured = sizes.load_sizes()
        assert sum(measured.kinds.values()) == measured.total
        assert min(measured.kinds.values()) >= 0
        for estimate, kinds in (
            (sizes.estimate_collections, ["Documents"]),
            (sizes.estimate_benchmarks, ["Lists and rankings", "Values and evaluations"]),
            (sizes.estimate_indexes, ["Vectors of indexes", "Chunks", "BM25 and full text"]),
        ):
            pieces = estimate(measured)
            result = sum(piece.total() for piece in pieces.values())
            assert 0 < result <= sum(measured.kinds[kind] for kind in kinds)

    def test_estimates_from_all_rows_if_the_sample_is_empty(self, ended: Benchmark, monkeypatch: Any) -> None:
        measured = sizes.load_sizes()
        complete = sizes.estimate_collections(measured)
        monkeypatch.setattr(sizes, "SAMPLE_BYTES", 0)
        assert sizes.estimate_collections(measured) == complete

    def test_names_only_what_the_user_may_see(self, ended: Benchmark, retention: None, make_staff: Any) -> None:
        ada, bob = make_staff("ada"), make_staff("bob")
        Benchmark.objects.update(owner=ada)
        client = Client()
        displayed = {}
        for user in (ada, bob):
            client.force_login(user)
            displayed[user] = client.get(self.URL).content.decode()
        assert viewable(Benchmark.objects.all(), bob).count() == 0
        assert displayed[ada].count("Which?") == 2  # in its table, and in what is to be deleted
        assert "Which?" not in displayed[bob]

    def test_reads_in_few_statements(
        self, ended: Benchmark, retention: None, admin_client: Client, django_assert_max_num_queries: Any
    ) -> None:
        with django_assert_max_num_queries(60):
            page = admin_client.get(self.URL).content.decode()
        assert "BENCHBENCH_KEEP_RANKINGS_DAYS" in page
        assert re.search(r'class="bb-title-part"[^>]*>\s*Disk\s*<', page)
