"""An experiment of two strategies over the words of tests/retrieval/words.py."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from apps.experiments.experiments import plan_experiment, prepare_experiment
from apps.records.models import Benchmark
from tests.benchmarks.laboratory import write
from tests.created import finish
from tests.kept import made_once
from tests.retrieval.words import BAG, write_documents

QUESTIONS = [("q1", "beta", "B", ["sec_1"]), ("q2", "zeta", "C", ["sec_3"]), ("q3", "gamma", "A", ["sec_2"])]
STRATEGIES = [{"name": "flat"}, {"name": "lod_embed", "doc_top_k": 1}]
SETTING = {"runs_per_query": 2, "top_k_values": [1, 3], "random_seed": 7}


@made_once
def make_word_experiment() -> Benchmark:
    """Return the benchmark of the experiment, run."""
    names = ("id", "question", "document_id", "section_ids")
    truth = [{**dict(zip(names, question, strict=True)), "answer": "", "evidence": []} for question in QUESTIONS]
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_documents(folder / "documents")
        (folder / "ground_truth.json").write_text(json.dumps(truth))
        path = write(folder, strategies=STRATEGIES, embeddings=[{"model": BAG}], benchmark=SETTING)
        return finish(prepare_experiment(plan_experiment(path)).benchmark)
