"""What the demo’s committed data promises, and its lexical figures through the product."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest
import Stemmer

from apps.demo import preparing
from apps.execution.defining.previewing import preview
from apps.execution.launching import launch
from apps.operations.working import wait
from apps.records.models import Evaluation, Run
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.encoders import load_encoder
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from apps.retrieval.unread import list_index_warnings
from tests.created import create_benchmark

DATA = Path(__file__).parents[2] / "apps" / "demo" / "data"


@pytest.fixture(scope="module")
def snapshot() -> bytes:
    return gzip.decompress((DATA / "python-docs.jsonl.gz").read_bytes())


@pytest.fixture(scope="module")
def documents(snapshot: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in snapshot.splitlines()]


@pytest.fixture(scope="module")
def dataset() -> dict[str, Any]:
    return json.loads((DATA / "python-questions.json").read_text(encoding="utf-8"))


def judgments(query: dict[str, Any]) -> dict[str, int]:
    return {item["doc_ref"]["uri"]: item["relevance_grade"] for item in query["relevant_docs"]}


def test_every_document_has_a_unique_id_and_a_kind(documents):
    assert 800 <= len(documents) <= 1200
    assert len({each["_id"] for each in documents}) == len(documents)
    for each in documents:
        assert each["_id"] == each["uri"]
        assert each["uri"].startswith("python:")
        assert each["title"].strip()
        assert each["text"].strip()
        assert each["metadata"]["kind"] in {"module", "class", "function", "topic"}
        assert each["metadata"]["module"]


def test_no_document_contains_memory_addresses_or_machine_paths(snapshot):
    for trace in (b" at 0x", b"bin/python3.11", b".venv", b"pyenv"):
        assert trace not in snapshot


def test_the_judgments_were_made_on_this_very_collection(snapshot, documents, dataset):
    declared = dataset["metadata"]["collection"]
    assert declared["documents"] == len(documents)
    assert declared["sha256_uncompressed"] == hashlib.sha256(snapshot).hexdigest()


def test_the_dataset_keeps_its_limits_and_categories(dataset):
    assert dataset["schema_version"] == "1.0"
    assert (DATA / "python-questions.json").stat().st_size < 1_000_000
    assert len({each["query_key"] for each in dataset["queries"]}) == len(dataset["queries"]) >= 60
    assert len({each["query_text"] for each in dataset["queries"]}) == len(dataset["queries"])
    for query in dataset["queries"]:
        assert len(query["relevant_docs"]) <= 100
        assert len(judgments(query)) == len(query["relevant_docs"]), "a document is judged once a query"
    described = [each["metadata"] for each in dataset["queries"]]
    assert {each["category"] for each in described} == {"how-to", "concept", "error", "naming"}
    assert {each["difficulty"] for each in described} == {"easy", "medium", "hard"}
    assert all(each["slices"] for each in described)


def test_every_judgment_has_a_known_document_and_valid_grade(documents, dataset):
    uris = {each["uri"] for each in documents}
    for query in dataset["queries"]:
        assert judgments(query).keys() <= uris
        assert set(judgments(query).values()) <= {0, 1, 2, 3}


def test_pool_statistics_and_marks_are_those_of_the_judgments(dataset):
    declared = dataset["metadata"]["pool_statistics"]
    grades = [grade for query in dataset["queries"] for grade in judgments(query).values()]
    assert declared["queries"] == len(dataset["queries"])
    assert declared["judgments"] == len(grades) == declared["pooled_pairs"] + declared["added_pairs"]
    assert declared["by_grade"] == {str(grade): grades.count(grade) for grade in range(4)}
    marked = {each["query_key"] for each in dataset["queries"] if "no-answer" in each["metadata"]["slices"]}
    unanswered = {each["query_key"] for each in dataset["queries"] if not any(judgments(each).values())}
    assert marked == unanswered
    assert len(marked) in {4, 5}


def test_nearly_all_that_bm25_ranks_first_is_judged(documents, dataset):
    """Judged@10 of the lexical pool member, as it was pooled: ties go to the smaller id."""
    stemmer = Stemmer.Stemmer("english")
    texts = [f"{each['title']} {each['text']}" for each in documents]
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)

    shares = []
    for query in dataset["queries"]:
        [tokens] = bm25s.tokenize(
            query["query_text"], stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False
        )
        scores = index.get_scores(tokens)
        # The collection is in the order of its ids, so a stable sort breaks ties by id.
        top = [position for position in np.argsort(-scores, kind="stable")[:10] if scores[position] > 0]
        shares.append(np.mean([documents[position]["uri"] in judgments(query) for position in top]))
    assert np.mean(shares) >= 0.9


FIGURES = {"nDCG@10": 0.3568, "P@10": 0.1802, "R@10": 0.4013, "RR": 0.4990, "AP": 0.3197}


@pytest.mark.django_db(transaction=True)
def test_bm25_reaches_these_figures():
    collection = preparing.prepare_collection(None)
    mapping = preparing.prepare_mapping(collection, None)
    assert mapping.status == "resolved"
    wait(build_index(create_index(collection, name="words")))
    wait(launch(create_benchmark(mapping, name="BM25", matrix={"search_modes": ["sparse"]})))
    means = {name: round(value, 4) for name, value in Evaluation.objects.get().means.items()}
    assert {name: means[name] for name in FIGURES} == FIGURES
    assert Run.objects.get().warnings == []
    assert list_index_warnings(Index.objects.get()) == []
    assert preview(mapping, {"search_modes": ["sparse"]}).warnings == []


@pytest.mark.thorough
@pytest.mark.django_db
def test_the_encoder_reads_all_documents():
    collection = preparing.prepare_collection(None)
    index = preparing.prepare_index(collection, None)
    encoder = load_encoder(index.encoder)
    parameters = {"strategy": index.strategy, "parameters": index.chunk_parameters}
    chunks = make_chunk_set(collection, **parameters, encoder=encoder).chunks
    assert chunks.count() > collection.document_count
    assert encoder.count_cut(list(chunks.values_list("text", flat=True))) is None
