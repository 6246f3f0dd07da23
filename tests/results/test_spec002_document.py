"""SPEC-002, kept: its command, its console, its file and its formulas.

A script as its users would write it: a file of queries goes in by the command, and what comes out is read with `json`
alone. Every figure is computed here by the specification's own functions.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.operations.working import wait
from apps.retrieval.encoders.registry import KeywordEncoder
from apps.retrieval.indexing import build_index, create_index
from tests.commands import output_of

MODULES: dict[str, tuple[str, Any]] = {
    "l10n_es_facturae": ("invoice invoice spain", "16.0"),
    "l10n_es_aeat": ("invoice spain spain", ["16.0", "17.0"]),
    "account_invoice": ("invoice", "16.0"),
    "stock_dock": ("stock dock", "18.0"),
    "stock": ("stock stock stock", "18.0"),
    "sale_flow": ("sale invoice", "17.0"),
    "sale_b2b": ("sale sale", "17.0"),
}
QUERIES: list[dict[str, Any]] = [
    {
        **{"id": 1, "query": "invoice spain", "version": "16.0", "category": "localization", "difficulty": "easy"},
        "expected_modules": ["l10n_es_facturae", "l10n_es_aeat"],
    },
    {
        **{"id": 2, "query": "sale", "version": "17.0", "category": "sales", "difficulty": "medium"},
        "expected_modules": ["sale_flow", "sale_b2b"],
    },
    {
        **{"id": 3, "query": "dock", "version": "18.0", "category": "inventory", "difficulty": "hard"},
        "expected_modules": ["stock"],
    },
    {
        **{"id": 4, "query": "boom", "version": "18.0", "category": "inventory", "difficulty": "hard"},
        "expected_modules": ["stock"],
    },
    {
        **{"id": 5, "query": "spain sale", "version": ["17.0", "16.0"], "category": "sales", "difficulty": "easy"},
        "expected_modules": ["sale_b2b", "l10n_es_aeat"],
    },
]


# The functions of the specification, as they are there.
def calculate_precision_at_k(retrieved: list[str], expected: list[str], k: int) -> float:
    if not retrieved or k == 0:
        return 0.0
    top_k = retrieved[:k]
    relevant_count = sum(1 for mod in top_k if mod in expected)
    return relevant_count / k


def calculate_recall_at_k(retrieved: list[str], expected: list[str], k: int) -> float:
    if not expected:
        return 0.0
    top_k = retrieved[:k]
    found_count = sum(1 for exp in expected if exp in top_k)
    return found_count / len(expected)


def calculate_mrr(retrieved: list[str], expected: list[str]) -> float:
    for i, module in enumerate(retrieved, start=1):
        if module in expected:
            return 1.0 / i
    return 0.0


def metrics(answer: dict[str, Any]) -> dict[str, float]:
    retrieved, expected = answer["returned_modules"], answer["expected_modules"]
    return {
        "precision@3": calculate_precision_at_k(retrieved, expected, 3),
        "precision@5": calculate_precision_at_k(retrieved, expected, 5),
        "recall@10": calculate_recall_at_k(retrieved, expected, 10),
        "mrr": calculate_mrr(retrieved, expected),
    }


def mean(answers: list[dict[str, Any]], name: str) -> Any:
    return pytest.approx(sum(metrics(answer)[name] for answer in answers) / len(answers))


@pytest.fixture
def odoo(transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """A collection of modules, and a model that falls over one of the queries."""
    settings.BENCHBENCH_MAX_ATTEMPTS = 1
    collection = create_collection("odoo")
    documents = [
        DocumentRecord(key, key, text, metadata={"version": version}) for key, (text, version) in MODULES.items()
    ]
    import_documents(collection, documents)
    encode = KeywordEncoder.embed_batch

    def breaks(self: KeywordEncoder, texts: Any, **options: Any) -> Any:
        if "boom" in texts:
            raise TimeoutError("timeout")
        return encode(self, texts, **options)

    monkeypatch.setattr(KeywordEncoder, "embed_batch", breaks)
    wait(build_index(create_index(collection, name="words", encoder="keyword:invoice,spain,stock,dock,sale")))


def queries_file(folder: Path, queries: list[dict[str, Any]] = QUERIES) -> Path:
    path = folder / "benchmark_queries.json"
    path.write_text(json.dumps({"benchmark_queries": queries, "metadata": {"total_queries": len(queries)}}))
    return path


def test_the_specifications_promises_hold(odoo, tmp_path):
    source, folder = queries_file(tmp_path), tmp_path / "tests" / "results"
    options = ("--queries", source, "--collection", "odoo", "--verbose", "--output-dir", folder, "--modes", "dense")
    output = output_of("run_benchmark", *options)
    (file,) = folder.iterdir()
    assert re.fullmatch(r"baseline_\d{8}_\d{6}\.json", file.name)
    content = json.loads(file.read_text())
    assert list(content) == ["metadata", "aggregate_metrics", "per_category", "per_difficulty", "detailed_results"]
    check_about(content["metadata"], file)
    answers = content["detailed_results"]
    for answer, query in zip(answers, QUERIES, strict=True):
        check_answer(answer, query)
    check_means(content, [answer for answer in answers if answer["error"] is None])
    check_console(output, content, source, file)


def check_about(about: dict[str, Any], file: Path) -> None:
    assert about["timestamp"].endswith("Z"), "UTC"
    assert re.sub(r"[-:]", "", about["timestamp"][:19]).replace("T", "_") == file.stem.removeprefix("baseline_")
    assert (about["total_queries"], about["valid_queries"], about["failed_queries"]) == (5, 4, 1)
    assert (about["search_mode"], about["limit"]) == ("vector", 10)
    assert about["execution_time_seconds"] > 0


def check_answer(answer: dict[str, Any], query: dict[str, Any]) -> None:
    assert (answer["query_id"], answer["query"], answer["version"]) == (query["id"], query["query"], query["version"])
    assert (answer["category"], answer["difficulty"]) == (query["category"], query["difficulty"])
    assert answer["expected_modules"] == query["expected_modules"], "in the stated order"
    if query["id"] == 4:
        assert "timeout" in answer["error"]
        assert (answer["returned_modules"], answer["metrics"]) == ([], None)
        return
    assert answer["error"] is None
    assert answer["execution_time_ms"] > 0
    returned = answer["returned_modules"]
    versions = query["version"] if isinstance(query["version"], list) else [query["version"]]
    remote = {name: version if isinstance(version, list) else [version] for name, (_, version) in MODULES.items()}
    matching = {name for name in remote if set(remote[name]) & set(versions)}
    assert set(returned) == matching, "of that version, and no other"
    expected = query["expected_modules"]
    places = [index for index, module in enumerate(returned, start=1) if module in expected]
    assert answer["metrics"] == {
        **{name: pytest.approx(value) for name, value in metrics(answer).items()},
        "hits_in_top_3": sum(spot <= 3 for spot in places),
        "hits_in_top_5": sum(position <= 5 for position in places),
        "first_relevant_position": places[0] if places else None,
    }


def check_means(content: dict[str, Any], valid: list[dict[str, Any]]) -> None:
    names = ("precision@3", "precision@5", "recall@10", "mrr")
    assert content["aggregate_metrics"] == {name: mean(valid, name) for name in names}
    for piece, key in (("per_category", "category"), ("per_difficulty", "difficulty")):
        kinds = {answer[key] for answer in valid}
        assert set(content[piece]) == kinds
        for kind in kinds:
            inside = [answer for answer in valid if answer[key] == kind]
            assert content[piece][kind]["count"] == len(inside)
            for name in names[:2]:
                assert content[piece][kind][name] == mean(inside, name)


def check_console(message: str, content: dict[str, Any], source: Path, file: Path) -> None:
    rule = "=" * 80
    assert message.startswith(f"{rule}\n")
    assert (
        f"Loading queries from: {source}\n✓ Loaded 5 queries successfully\n\nStarting benchmark execution...\n"
        in message
    )
    places = [
        message.index(f'[{position}/5] Query: "{query["query"]}"') for position, query in enumerate(QUERIES, start=1)
    ]
    assert places == sorted(places)
    first = message[places[0] : places[1]].splitlines()
    lines = [line.strip() for line in first[1:3]]
    assert lines == ["Version: 16.0 | Category: localization | Difficulty: easy", "Expected: 2 modules"]
    assert re.search(r"✓ Executed in \d+ms", message)
    assert re.search(r"Metrics: P@3=\d\.\d+ \| P@5=\d\.\d+ \| R@10=\d\.\d+ \| MRR=\d\.\d+", message)
    assert f"{rule}\nBENCHMARK COMPLETED\n{rule}\n" in message
    for line in ("Execution Time: ", "Total Queries: 5", "AGGREGATE METRICS:", "BY DIFFICULTY:"):
        assert f"\n{line}" in message
    for label, name in (("Precision@3:", "precision@3"), ("Precision@5:", "precision@5"), ("Recall@10:", "recall@10")):
        share = content["aggregate_metrics"][name]
        bar = "█" * round(24 * share) + "░" * (24 - round(24 * share))
        assert re.search(rf"  {re.escape(label)}\s+{100 * share:.1f}%\s+{bar}\n", message)
    assert re.search(rf"  Mean MRR:\s+{content['aggregate_metrics']['mrr']:.3f}\n", message)
    for kind, owner in content["per_difficulty"].items():
        shares = f"P@3={100 * owner['precision@3']:.1f}% | P@5={100 * owner['precision@5']:.1f}%"
        assert re.search(rf"  {kind.capitalize()}\s+\({owner['count']}\):  {re.escape(shares)}", message)
    assert f"Results saved to: {file}\n" in message
