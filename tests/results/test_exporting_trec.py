"""TREC files of a benchmark: trec_eval reads them and gets its figures, also where a text is judged twice."""

import io
from collections import Counter
from typing import Any

import pytest
import pytrec_eval

from apps.collections.records import DocumentRecord
from apps.datasets.records import JudgmentRecord, QueryRecord
from apps.records.models import Benchmark
from apps.results.triage.queries import load_evaluation
from tests.created import run_benchmark
from tests.library import ENCODER, import_all
from tests.results.exported import export_text

pytestmark = pytest.mark.django_db(transaction=True)
MEASURES = {"P@5": "P_5", "R@5": "recall_5", "nDCG@5": "ndcg_cut_5", "nDCG@10": "ndcg_cut_10", "RR": "recip_rank"}
MEASURES["AP"] = "map"


def check_as_trec_eval(benchmark: Benchmark) -> None:
    text = export_text(benchmark, "trec-qrels")
    pairs = Counter(tuple(line.split()[::2][:2]) for line in text.splitlines())
    assert set(pairs.values()) == {1}, text
    evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(io.StringIO(text)), set(MEASURES.values()))
    keys = dict(benchmark.dataset_version.queries.values_list("pk", "key"))
    for run in benchmark.runs.all():
        result = evaluator.evaluate(pytrec_eval.parse_run(io.StringIO(export_text(run, "trec-run"))))
        evaluation: Any = load_evaluation(run)
        for name, theirs in MEASURES.items():
            ours = evaluation.values[evaluation.measures.index(name)]
            for query, value in zip(evaluation.query_ids, ours, strict=True):
                assert result.get(keys[query], {}).get(theirs, 0.0) == pytest.approx(value, abs=1e-12), (name, text)


TEXTS = {"d0": "apple apple", "d1": "apple pear", "d2": "apple apple", "d3": "plum apple", "d4": "apple apple"}
DOCUMENTS = [DocumentRecord(key, "", text, uri=f"file:///{key}") for key, text in TEXTS.items()]


@pytest.mark.parametrize("identical_texts", ["different", "judged"])
@pytest.mark.parametrize("unresolved", ["count", "drop"])
def test_trec_eval_finds_our_values_with_documents_judged_twice(identical_texts: str, unresolved: str) -> None:
    references = [
        *(
            [{"document_id": "d0"}, 1],
            [{"uri": "file:///d0"}, 2],
            [{"document_id": "d2"}, 1],
            [{"uri": "file:///d1"}, 1],
        ),
        *([{"document_id": "gone"}, 1], [{"uri": "file:///gone"}, 3], [{"uri": "d3"}, 1]),
    ]
    judgments = [JudgmentRecord(reference, grade=grade) for reference, grade in references]
    queries = [QueryRecord("q0", "apple", judgments=judgments), QueryRecord("q1", "pear", judgments=judgments[:1])]
    mapping = import_all(DOCUMENTS, queries, name="twins", encoder=ENCODER)
    matrix = {"search_modes": ["dense", "sparse"], "k_values_for_metrics": [5, 10]}
    declared = {"identical_texts": identical_texts, "unresolved": unresolved}
    check_as_trec_eval(run_benchmark(mapping, name="twins", matrix=matrix, **declared))
