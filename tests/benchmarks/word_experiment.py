"""An experiment of two strategies over the words of tests/retrieval/words.py."""

import json
from pathlib import Path

from apps.benchmarks.models import Benchmark
from apps.benchmarks.repeating.experiments import plan_experiment, prepare_experiment
from tests.benchmarks.laboratory import write
from tests.created import finish
from tests.retrieval.words import BAG, write_documents

QUESTIONS = [("q1", "beta", "B", ["sec_1"]), ("q2", "zeta", "C", ["sec_3"]), ("q3", "gamma", "A", ["sec_2"])]
STRATEGIES = [{"name": "flat"}, {"name": "lod_embed", "doc_top_k": 1}]
SETTING = {"runs_per_query": 2, "top_k_values": [1, 3], "random_seed": 7}


def run_word_experiment(folder: Path) -> Benchmark:
    write_documents(folder / "documents")
    names = ("id", "question", "document_id", "section_ids")
    truth = [{**dict(zip(names, question, strict=True)), "answer": "", "evidence": []} for question in QUESTIONS]
    (folder / "ground_truth.json").write_text(json.dumps(truth))
    path = write(folder, strategies=STRATEGIES, embeddings=[{"model": BAG}], benchmark=SETTING)
    benchmark = prepare_experiment(plan_experiment(path)).benchmark
    finish(benchmark)
    return benchmark
