"""An experiment as a user of the strategy benchmark's document would write it, and what it combines into."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.retrieval.llm_server import MODEL as LLM
from tests.retrieval.llm_server import LLMServer

MODEL = "keyword:apple,pear,plum,fig"
RUNS, CUTOFFS = 2, (1, 3, 5)
SECTIONS = {
    "A": ["apple apple", "pear", "fig plum"],
    "B": ["pear pear", "apple pear"],
    "C": ["plum", "plum plum fig"],
    "D": ["fig", "apple plum"],
    "E": ["apple fig", "pear fig"],
    "F": ["nothing"],
    "G": ["pear plum"],
}
QUESTIONS = [
    ("q1", "apple", "A", ["A0"]),
    ("q2", "pear?", "A", ["A1", "A2"]),
    ("q3", "plum", "C", ["C1", "C0"]),
    ("q4", "which fig", "E", ["E1"]),
    ("q5", "boom", "B", ["B0"]),
    ("q6", "apple pear", "F", ["F0"]),
]
EXPERIMENT: dict[str, Any] = {
    "id": "which-strategy",
    "description": "Flat against level of detail.",
    "data": {"documents_dir": "data/documents", "ground_truth_path": "data/ground_truth.json", "max_documents": None},
    "benchmark": {"runs_per_query": RUNS, "top_k_values": list(CUTOFFS), "random_seed": 7},
    "embeddings": [{"model": MODEL, "provider": "sbert"}],
    "llms": [{"model": name, "provider": "ollama", "base_url": "http://localhost:11434"} for name in ("one", "two")],
    "backends": [{"name": "memory"}, {"name": "chromadb", "path": "chroma"}],
    "strategies": [{"name": "flat", "chunk_size": 12, "chunk_overlap": 0}, {"name": "lod_llm", "doc_top_k": 5}],
}
LLM_CALLS = {"flat": "0", "lod_llm": "2", "raptor": "0"}  # of each query

Matrix = set[tuple[str, ...]]


def experiment_with(server: LLMServer | None) -> dict[str, Any]:
    """The experiment, of which a server has one of two language models; without a server it is asked of none."""
    if server is None:
        return EXPERIMENT
    llms = [{"model": name, "provider": "ollama", "base_url": server.url} for name in (LLM, "two")]
    tree = {"name": "raptor", "chunk_size": 12, "chunk_overlap": 0}
    return {**EXPERIMENT, "llms": llms, "strategies": [*EXPERIMENT["strategies"], tree]}


def matrix_of(experiment: dict[str, Any]) -> Matrix:
    """For each strategy, backend and embedding; for each language model only where the strategy asks one."""
    names = {key: [piece.get("name", piece.get("model")) for piece in experiment[key]] for key in ("backends", "llms")}
    return {
        (strategy["name"], backend, MODEL, llm)
        for strategy in experiment["strategies"]
        for backend in names["backends"]
        for llm in (names["llms"] if strategy["name"] != "flat" else [""])
    }


def write_experiment(folder: Path, experiment: dict[str, Any]) -> Path:
    documents = folder / "data" / "documents"
    documents.mkdir(parents=True)
    for name, texts in SECTIONS.items():
        same = {"heading": "", "level": 1, "subsections": []}
        pieces = [{"id": f"{name}{index}", "content": text, **same} for index, text in enumerate(texts)]
        fields = {"id": name, "title": name, "source": "here", "summary": "", "sections": pieces}
        (documents / f"{name}.json").write_text(json.dumps(fields))
    truth = [
        {"id": key, "question": text, "answer": "", "document_id": document, "section_ids": sections, "evidence": []}
        for key, text, document, sections in QUESTIONS
    ]
    (folder / "data" / "ground_truth.json").write_text(json.dumps(truth))
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(experiment))
    return path
