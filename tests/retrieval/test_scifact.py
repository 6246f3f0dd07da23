"""The published figures, on the real collection: 5,183 abstracts, 300 claims."""

import csv
import json

import numpy as np
import pytest

from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.retrieval.importing_vectors import import_vectors
from apps.retrieval.indexing import create_index
from apps.retrieval.search.open_indexes import open_index
from benchbench.ir.measures import GradedRankings, Measure, evaluate


def rows(file):
    return [json.loads(line) for line in file.open()]


@pytest.mark.django_db
def test_exact_dense_search_and_bm25_reach_the_published_figures(shared_data):
    folder = shared_data / "scifact"
    collection = create_collection("scifact")
    import_documents(
        collection, (DocumentRecord(row["_id"], row["title"], row["text"]) for row in rows(folder / "corpus.jsonl"))
    )
    judgments = {}
    with (folder / "qrels" / "test.tsv").open() as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            judgments.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    queries = {row["_id"]: row["text"] for row in rows(folder / "queries.jsonl") if row["_id"] in judgments}
    index = create_index(collection, name="minilm")
    report = import_vectors(index, folder / "minilm.npz", queries=queries)
    assert (report.documents, report.queries, report.missing_queries) == (5183, 300, 0)

    opened = open_index(index)
    names = np.array(opened.index.chunk_set.chunks.order_by("position").values_list("document__external_id", flat=True))
    texts = list(queries.values())

    def values(lists):
        graded = GradedRankings.of([names[found.ids] for found in lists], [judgments[query] for query in queries])
        return evaluate([Measure("nDCG", 10), Measure("R", 100)], graded).mean(axis=1)

    assert values(opened.dense(opened.encode(texts), 100)) == pytest.approx([0.6451, 0.925], abs=5e-4)
    ndcg, recall = values(opened.lexical(texts, 100))
    assert ndcg == pytest.approx(0.687, abs=0.01)
    assert recall == pytest.approx(0.913, abs=0.001)
