"""Sections: from judgments that name them to ranks among distinct sections, on a search that one can predict."""

import pytest
from django.test import Client
from django.urls import reverse

from apps.benchmarks.measuring.reading import KeptError
from apps.benchmarks.models import Benchmark, Evaluation, StageList
from apps.collections.records import DocumentRecord, SectionRecord
from apps.datasets.records import JudgmentRecord, QueryRecord
from apps.results.triage.sections import section_at, section_means
from benchbench.site.panels import change_url
from tests.benchmarks.conftest import import_all
from tests.created import run_benchmark
from tests.kept import made_once
from tests.rankings import own_rankings
from tests.results.test_pages import text_of

PARTS = {"a": ("apple apple apple   ", "pear pear pear pear "), "b": ("pear plum fig lemon ", "plum plum plum plum ")}


@pytest.fixture
def benchmark(transactional_db: None) -> Benchmark:
    return make_sectioned()


@made_once
def make_sectioned() -> Benchmark:
    """Two documents of two sections, a chunk each. "pear" finds (a, s2), (b, s1); "plum" finds (b, s2), (b, s1)."""
    sections = (SectionRecord("s1", start=0, end=20), SectionRecord("s2", start=20, end=40))
    documents = [
        DocumentRecord(external_id=key, title=key, text="".join(parts), sections=sections)
        for key, parts in PARTS.items()
    ]
    records = [
        QueryRecord("pear", "pear", [JudgmentRecord({"document_id": "b"}, 1, ["s1", "s2"])]),
        QueryRecord("plum", "plum", [JudgmentRecord({"document_id": "a"}, 1, ["s2"])]),
        QueryRecord("fig", "fig", [JudgmentRecord({"document_id": "b"}, 1)]),
    ]
    mapping = import_all(documents, records, name="chunks", chunk_parameters={"size": 20, "overlap": 0})
    matrix = {"search_modes": ["sparse"], "k_values_for_metrics": [1, 2], "primary_k": 1}
    return run_benchmark(mapping, name="b", matrix=matrix)


def test_the_means_are_those_worked_out_by_hand(benchmark: Benchmark) -> None:
    means = section_means(Evaluation.objects.get())
    assert means is not None
    assert means.n == 2, "the third judgment names no section"
    told = [(row.k, row.doc_recall, row.section_recall, row.section_share) for row in means.rows]
    assert told == [(1, 0.0, 0.0, 0.0), (2, 0.5, 0.5, 0.25)]
    assert (means.doc_mrr, means.section_mrr) == ((1 / 2 + 0) / 2, (1 / 2 + 0) / 2)


def test_the_page_of_the_run_shows_them(admin_client: Client, benchmark: Benchmark) -> None:
    run = benchmark.runs.get()
    fragment = reverse("admin:run_sections", args=[run.pk])
    assert fragment in admin_client.get(change_url(run)).content.decode()
    shown = text_of(admin_client.get(fragment))
    assert "Over 2 judgments that name sections" in shown
    assert "Recall@2 .5000 .5000 .2500" in shown


def test_documents_that_judgments_stand_for_since_are_not_held_against_older_values(benchmark: Benchmark) -> None:
    Evaluation.objects.update(truth_hash="of another resolution")
    with pytest.raises(KeptError, match="resolved again since this run was measured"):
        section_means(Evaluation.objects.get())


def test_without_its_lists_it_says_so(admin_client: Client, benchmark: Benchmark) -> None:
    own_rankings(benchmark)
    StageList.objects.filter(lengths=None).delete()
    with pytest.raises(KeptError, match="not stored"):
        section_means(Evaluation.objects.get())
    shown = text_of(admin_client.get(reverse("admin:run_sections", args=[benchmark.runs.get().pk])))
    assert "run the benchmark again" in shown


def test_a_chunk_belongs_to_the_section_it_overlaps_most() -> None:
    spans = [(0, 100, "whole"), (0, 40, "first"), (40, 100, "second")]
    assert section_at(30, 60, spans[1:]) == "second"
    assert section_at(10, 30, spans) == "first", "of spans that overlap alike, the shortest"
    assert section_at(200, 300, spans) is None
    assert section_at(0, 10, []) is None
