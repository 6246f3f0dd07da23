"""Strategies and query rewriting with a real language model: ADI cut into sections, and HyDE on the demo's questions.

The model is whatever serves OpenAI's API at an address, so that a small one on this machine does:

python perf/llms.py http://127.0.0.1:8080/v1 MODEL [--only adi|demo] [--strategies NAME …]

Sections of ADI, whose abstracts have none, are every two sentences of an abstract. A tiny model shows that the plumbing
works, and not what a method is worth. Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names
another place).
"""

import argparse
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import throwaway

throwaway.open_site()

from django.conf import settings

from apps.benchmarks.defining.creating import BenchmarkOptions, create_benchmark
from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord, SectionRecord
from apps.collections.sources import read_corpus
from apps.datasets.formats.registry import read_dataset
from apps.datasets.importing import import_dataset
from apps.demo import preparing
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve_now
from apps.operations.working import wait
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from apps.retrieval.strategies import get_strategy

DATA = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or throwaway.ROOT.parent / "shared" / "data") / "adi"
MODEL = "all-MiniLM-L6-v2"
SIZES = {"size": 300, "overlap": 0}
STRATEGIES: dict[str, dict[str, Any]] = {
    "flat": {**SIZES, "sections": True},
    "lod_embed": SIZES,
    "lod_llm": SIZES,
    "raptor_extractive": {**SIZES, "context": 1500},
    "raptor": {**SIZES, "context": 1500},
}
SENTENCE = re.compile(r"[^.;]+[.;]?\s*")


def sectioned(document: DocumentRecord) -> DocumentRecord:
    """The document with a section for every two sentences."""
    ends = [match.end() for match in SENTENCE.finditer(document.text)][1::2]
    starts = [0, *ends]
    spans = [(start, end) for start, end in zip(starts, [*ends, len(document.text)], strict=True) if start < end]
    sections = [SectionRecord(f"s{n}", f"Part {n}", 1, *span) for n, span in enumerate(spans, 1)]
    return DocumentRecord(document.external_id, document.title, document.text, sections=sections)


def adi() -> Mapping:
    collection = create_collection("adi")
    import_documents(collection, map(sectioned, read_corpus(DATA / "corpus.jsonl")))
    dataset = import_dataset(read_dataset(DATA, format="beir", split="test"), name="adi").version.dataset
    return resolve_now(create_mapping(dataset, collection, name="adi"))


def built(mapping: Mapping, model: str, strategies: list[str]) -> Iterator[Index]:
    for strategy in strategies:
        parameters = STRATEGIES[strategy]
        asks = get_strategy(strategy).requires_llm
        started = time.perf_counter()
        index = create_index(
            mapping.collection,
            name=strategy,
            encoder=MODEL,
            strategy=strategy,
            chunk_parameters=parameters,
            llm=model if asks else "",
            llm_parameters={"max_tokens": 120} if asks else None,
        )
        wait(build_index(index))
        index.refresh_from_db()
        assert index.chunk_set, index
        print(
            f"{strategy:18} {index.status}: {index.chunk_set.chunk_count} chunks, {index.chunk_set.vector_count} "
            f"vectors, {time.perf_counter() - started:.0f} s",
            flush=True,
        )
        yield index


def measured(benchmark: Benchmark, measures: list[str]) -> None:
    started = time.perf_counter()
    wait(launch(benchmark))
    print(f"{benchmark}: {benchmark.mapping.dataset.queries.count()} queries, {time.perf_counter() - started:.0f} s")
    for run in Run.objects.filter(benchmark=benchmark).order_by("run_order"):
        means = Evaluation.objects.get(run=run).means if run.status == Run.Status.COMPLETED else {}
        figures = "  ".join(f"{name} {means[name]:.4f}" for name in measures if means.get(name) is not None)
        print(
            f"  {run.label:60} {figures}  {run.embed_calls} encodings, {run.llm_calls} answers, "
            f"{run.failed_queries} failed; {run.error_message}{' '.join(run.warnings)}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--only", choices=("adi", "demo"))
    parser.add_argument("--strategies", nargs="*", choices=[*STRATEGIES], default=[*STRATEGIES])
    asked = parser.parse_args()
    settings.BENCHBENCH_LLM_SERVERS = [f"here=openai+{asked.url}"]
    settings.BENCHBENCH_LLM_TIMEOUT_SECONDS = 600
    settings.BENCHBENCH_QUERY_TIMEOUT_MS = 600_000
    if asked.only != "demo":
        mapping = adi()
        indexes = list(built(mapping, asked.model, asked.strategies))
        matrix = {"search_modes": ["dense"], "indexes": [index.name for index in indexes], "top_k_values": [50]}
        measured(create_benchmark(mapping, BenchmarkOptions(name="ADI", matrix=matrix)), ["nDCG@10", "R@10", "RR"])
    if asked.only != "adi":
        collection = preparing.prepare_collection(None)
        mapping = preparing.prepare_mapping(collection, None)
        wait(build_index(create_index(collection, name="MiniLM", encoder=MODEL)))
        matrix = {
            "search_modes": ["dense"],
            "query": ["as_asked", "hyde"],
            "llms": [f"here:{asked.model}"],
            "top_k_values": [100],
        }
        measured(create_benchmark(mapping, BenchmarkOptions(name="HyDE", matrix=matrix)), ["nDCG@10", "R@10", "RR"])


if __name__ == "__main__":
    main()
