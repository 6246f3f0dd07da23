"""What real runs lost: every cause, made to happen and found; and the stages that add up to the stored rankings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.collections.importing import import_documents
from apps.collections.models import Collection, Document
from apps.collections.records import DocumentRecord
from apps.datasets.records import JudgmentRecord, QueryRecord
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.records.lists.reading import build_stored_plan, list_keys, load_documents, read_lists
from apps.records.measuring.evaluating import load_truth
from apps.records.models import Benchmark, Evaluation, QueryResult, Run, StageList
from apps.results.triage.causes import count_causes
from apps.results.triage.lost_documents import triage_of
from apps.results.triage.paths import build_paths, name_documents
from apps.results.triage.queries import load_evaluation
from apps.results.triage.triaging import RunLosses, list_lost_documents, load_judgments, load_losses
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.triage import Loss, find_standings
from tests.created import run_benchmark
from tests.kept import made_once
from tests.library import ENCODER, import_all, make_library
from tests.tiny_models import save_cross_encoder


def finish(mapping: Mapping, matrix: dict[str, Any], **options: Any) -> Benchmark:
    matrix = {"k_values_for_metrics": [3], "primary_k": 3} | matrix
    benchmark = run_benchmark(mapping, name="b", matrix=matrix, **options)
    assert {run.status for run in benchmark.runs.all()} == {"completed"}
    return benchmark


def losses(run: Run) -> RunLosses:
    return load_losses(run, load_evaluation(run))


def documents_lost(run: Run) -> dict[tuple[str, str], Loss]:
    """Return the cause of every lost document, by query key and external id (or −judgment id, where it lacks it)."""
    benchmark = run.benchmark
    plan = build_stored_plan(run)
    judged = load_judgments(run, benchmark.dataset_version)
    keys = dict(benchmark.dataset_version.queries.values_list("pk", "key"))
    names = dict(benchmark.mapping.collection.documents.values_list("pk", "external_id"))
    return {
        (keys[query], names.get(one.document, "unresolved")): one.loss
        for query, lost in list_lost_documents(run, plan, judged, k=benchmark.primary_k)
        for one in lost or ()
    }


@pytest.fixture
def cross_encoder(tmp_path: Path) -> str:
    return str(save_cross_encoder(tmp_path / "cross"))


class TestEveryCause:
    """A shelf of which one knows what each search finds: the keyword encoder counts words, and so does BM25."""

    TEXTS = {
        "a1": "apple apple apple",
        "a2": "apple apple pear",
        "a3": "apple pear pear",
        "a4": "apple pear pear pear pear",
        "a5": "apple pear plum plum plum plum plum",
        "p1": "plum plum",
        "f1": "fig fig",
    }

    @pytest.fixture
    def shelf(self, transactional_db: None) -> Callable[..., Mapping]:
        def make(judged: dict[str, int], *, text: str = "apple", **query: Any) -> Mapping:
            documents = [
                DocumentRecord(key, "", words, metadata={"shelf": key[0]}) for key, words in self.TEXTS.items()
            ]
            judgments = [JudgmentRecord(doc_ref={"document_id": key}, grade=grade) for key, grade in judged.items()]
            records = [QueryRecord(key="q", text=text, judgments=judgments, **query)]
            return import_all(documents, records, name="keywords", encoder=ENCODER)

        return make

    def causes(self, mapping: Mapping, **matrix: Any) -> dict[str, Loss]:
        (run,) = finish(mapping, {"search_modes": ["dense"], **matrix}).runs.all()
        lost = documents_lost(run)
        assert losses(run).tally.keys() == set(lost.values())
        return {document: loss for (_, document), loss in lost.items()}

    def test_found_too_low_or_below_the_depth(self, shelf):
        result = self.causes(shelf({"a1": 1, "a4": 1, "f1": 1}), top_k_values=[4])
        assert result == {"a4": Loss.BELOW_K, "f1": Loss.BELOW_FIRST_STAGE}

    def test_missed_by_approximate_search(self, shelf):
        mapping = shelf({"a1": 1, "a2": 1, "f1": 1})
        matrix = {"search_modes": ["dense"], "top_k_values": [4], "ann": ["hnsw(ef_search=1)"]}
        (run,) = finish(mapping, matrix).runs.all()
        assert documents_lost(run) == {("q", "a2"): Loss.MISSED, ("q", "f1"): Loss.BELOW_FIRST_STAGE}
        causes = count_causes(losses(run), Configuration.from_dict(run.config))
        remedies = {
            Loss.MISSED: "Raise ef_search of hnsw(ef_search=1), or use exact search.",
            Loss.BELOW_FIRST_STAGE: "Raise candidates, and with them ef_search of hnsw(ef_search=1).",
        }
        assert {row.cause: row.remedy for row in causes} == remedies
        rows = triage_of(run).list_documents(range(2))
        assert {row.loss: row.remedy for row in rows} == remedies
        grades = dict.fromkeys(mapping.resolutions.values_list("document", flat=True), 1)
        paths = build_paths(run.query_results.get(), grades, hits=[], limit=9)
        answer = "Exact search has it among its first 4 chunks, but hnsw(ef_search=1) missed it."
        assert [path.sentence for path in paths.lost if path.reference == "a2"] == [answer]

    def test_cut_by_the_threshold(self, shelf):
        result = self.causes(shelf({"a1": 1, "a4": 1}), top_k_values=[7], score_thresholds=[0.5])
        assert result == {"a4": Loss.CUT_BY_THRESHOLD}

    def test_no_word_in_common(self, shelf):
        result = self.causes(shelf({"a1": 1, "f1": 1}), search_modes=["sparse"], top_k_values=[7])
        assert result == {"f1": Loss.NO_SHARED_WORD}

    def test_below_the_fused_depth(self, shelf):
        """Dense search finds a2 and a3, BM25 a4 and a3: after a3, which both find, a2 comes before a4, its equal."""
        hybrid = {"search_modes": ["hybrid"], "top_k_values": [2], "k_values_for_metrics": [2], "primary_k": 2}
        assert self.causes(shelf({"a3": 1, "a4": 1}, text="apple pear"), **hybrid) == {"a4": Loss.BELOW_FUSED}

    def test_below_the_rerank_depth_or_demoted(self, shelf, cross_encoder):
        reranked = {"use_reranker": [True], "rerankers": [cross_encoder], "top_k_values": [7], "candidates": [7]}
        mapping = shelf(dict.fromkeys(self.TEXTS, 1))
        (run,) = finish(mapping, {"search_modes": ["dense"], **reranked, "rerank_depths": [5]}).runs.all()
        plan = build_stored_plan(run)
        dense, rerank = list_keys(plan)
        ((_, lists),) = read_lists(run.benchmark, [dense, rerank]).items()
        names = dict(Document.objects.values_list("pk", "external_id"))
        documents = load_documents(lists.values())
        before, after = ([names[documents[chunk]] for chunk in lists[key].ids] for key in (dense, rerank))
        lost = {document: loss for (_, document), loss in documents_lost(run).items()}
        assert sorted(lost) == sorted(set(before) - set(after[:3])), "all that is relevant and not in the first three"
        for document, loss in lost.items():
            if document not in before[:5]:
                assert loss == Loss.BELOW_RERANK_DEPTH
            else:
                assert loss == (Loss.DEMOTED_BY_RERANKER if document in before[:3] else Loss.BELOW_K)
        assert Loss.BELOW_RERANK_DEPTH in lost.values()

    def test_a_filter_keeps_out(self, shelf):
        assert self.causes(shelf({"a1": 1, "p1": 1}, filters={"shelf": "a"}), top_k_values=[7]) == {"p1": Loss.FILTERED}

    @pytest.mark.django_db(transaction=True)
    def test_each_query_loses_its_document(self):
        documents = [DocumentRecord(key, "", "apple") for key in ("q", "a", "b")]
        judged = [JudgmentRecord({"document_id": key}, grade=1) for key in ("q", "a")]
        mapping = import_all(
            documents, [QueryRecord("q", "apple", judgments=judged)], name="arguments", encoder=ENCODER
        )
        excluding = finish(mapping, {"search_modes": ["dense"]}, exclude_self=True).runs.get()
        assert documents_lost(excluding) == {("q", "q"): Loss.EXCLUDED_SELF}
        assert losses(excluding).tally.keys() == {Loss.EXCLUDED_SELF}
        assert self.causes(mapping) == {}

    def test_unreachable_documents_are_classified(self, shelf):
        mapping = shelf({"a1": 1, "late": 1, "gone": 1, "nowhere": 1})
        benchmark = finish(mapping, {"search_modes": ["dense"], "top_k_values": [7]})
        late = [DocumentRecord(external_id=key, title="", text="apple") for key in ("late", "gone")]
        import_documents(mapping.collection, late, remove_missing=False)
        resolve(mapping)
        Document.objects.filter(external_id="gone").update(removed_at="2026-01-01T00:00Z")
        Document.objects.filter(external_id="a1").update(removed_at="2026-01-01T00:00Z")
        (run,) = benchmark.runs.all()
        assert documents_lost(run) == {("q", "unresolved"): Loss.NOT_IN_COLLECTION}, "as it was searched"
        Benchmark.objects.update(state=None)  # as of a benchmark that recorded none
        (run,) = Run.objects.all()
        nowhere = {("q", one): Loss.NOT_IN_COLLECTION for one in ("gone", "unresolved")}
        hits = {("q", "late"): Loss.NOT_INDEXED, **nowhere}
        assert documents_lost(run) == hits, "a1 was removed since, but the index has it"

    def test_ambiguous_references_are_unresolved(self, shelf):
        mapping = shelf({"a1": 1, "a2": 1})
        mapping.resolutions.filter(judgment__doc_ref__document_id="a2").update(outcome="ambiguous", document=None)
        (run,) = finish(mapping, {"search_modes": ["dense"], "top_k_values": [7]}).runs.all()
        assert documents_lost(run) == {("q", "unresolved"): Loss.UNRESOLVED}
        dropped = finish(mapping, {"search_modes": ["dense"], "top_k_values": [7]}, unresolved="drop").runs.get()
        assert losses(dropped).tally == {}, "what the measures leave out is not lost"


MATRIX = {
    "search_modes": ["dense", "sparse", "hybrid"],
    "use_reranker": [False, True],
    "top_k_values": [5, 20],
    "candidates": [25],
    "rerank_depths": [5, 15],
    "score_thresholds": [None, 0.45],
}
ALONE = MATRIX | {"search_modes": ["hybrid"], "top_k_values": [20]}  # each run of it makes its stages again


@pytest.mark.parametrize(("matrix", "execution"), [(MATRIX, "shared"), (ALONE, "isolated")], ids=["shared", "isolated"])
def test_the_stages_add_up_to_the_stored_rankings(library, matrix, execution):
    """Over modes, depths, thresholds and late interaction, whose thresholds compare other scores than it ranks by."""
    benchmark = finish(library, matrix, execution=execution)
    grades = load_truth(benchmark, benchmark.dataset_version).grades
    met: set[Loss] = set()
    for run in benchmark.runs.all():
        plan = build_stored_plan(run)
        lost = dict(list_lost_documents(run, plan, load_judgments(run, benchmark.dataset_version), k=3))
        stored = read_lists(benchmark, list_keys(plan))
        for result in run.query_results.all():
            lists = stored[result.query_id]
            documents = load_documents(lists.values())
            standings = find_standings(plan, name_documents(lists, documents), set(documents.values()))
            ranked = {path[-1].rank: document for document, path in standings.items() if path[-1].rank}
            assert [ranked[rank] for rank in sorted(ranked)] == result.document_ids
            assert [standings[document][-1].score for document in result.document_ids] == result.scores
            relevant = {document for document, grade in grades[result.query_id].items() if grade > 0}
            assert {one.document for one in lost[result.query_id]} == relevant - set(result.document_ids[:3])
        met |= {one.loss for of_query in lost.values() for one in of_query}
    assert met >= {Loss.BELOW_K, Loss.CUT_BY_THRESHOLD, Loss.BELOW_RERANK_DEPTH, Loss.DEMOTED_BY_RERANKER}


@made_once
def make_dense() -> Run:
    return finish(make_library(), {"search_modes": ["dense"], "top_k_values": [20]}).runs.get()


@pytest.fixture
def run(transactional_db: None) -> Run:
    return make_dense()


def test_losses_are_read_in_bulk_and_cached(run, statements):
    run = Run.objects.get(pk=run.pk)  # without its benchmark, which it has only if this test made it
    statements.clear()
    complete = losses(run)
    assert len(statements) <= 12
    statements.clear()
    assert losses(run) == complete
    assert len(statements) <= 6


def test_new_judgments_are_seen(run):
    assert losses(run).is_current
    first = run.benchmark.mapping.resolutions.filter(document__isnull=False).first()
    Document.objects.filter(pk=first.document_id).update(external_id="renamed")
    resolve(run.benchmark.mapping)
    after = losses(Run.objects.get(pk=run.pk))
    assert after.tally.get(Loss.NOT_IN_COLLECTION)
    assert not after.is_current


def test_documents_that_changed_since_are_seen(run):
    before = losses(run)
    StageList.objects.filter(source__benchmark=run.benchmark).delete()
    assert losses(Run.objects.get(pk=run.pk)) == before, "kept"
    Collection.objects.update(fingerprint="f" * 64)
    assert losses(Run.objects.get(pk=run.pk)) != before, "found again"


def test_failed_and_untraced_queries_are_not_triaged(run):
    failed, unkept = run.benchmark.dataset_version.queries.order_by("id")[:2]
    evaluation = Evaluation.objects.get(run=run)
    position = evaluation.query_ids.index(failed.pk)
    for column in evaluation.values:
        column[position] = None
    evaluation.save()
    StageList.objects.filter(source__benchmark=run.benchmark, query=unkept).delete()
    result = losses(run)
    assert result.untraced == 1
    assert result.judged.isdisjoint({failed.pk, unkept.pk})


def test_of_an_external_run_no_stages_are_known(run):
    Run.objects.filter(pk=run.pk).update(is_external=True, config={})
    run = Run.objects.get(pk=run.pk)
    evaluation = load_evaluation(run)
    assert evaluation is not None
    assert load_losses(run, evaluation) is None
    assert QueryResult.objects.filter(run=run).exists()
