"""A folder of an experiment: documents about fruit, the truth about them, and a file that compares searches."""

import json
from pathlib import Path
from typing import Any

import yaml

FRUITS = "keyword:apple,pear,plum,fig"
DOCUMENTS = {"A": "apple apple", "B": "pear plum", "C": "plum plum", "D": "fig", "E": "apple fig", "F": "pear pear"}
QUESTIONS = [("q1", "apple", "A"), ("q2", "plum", "C"), ("q3", "pear", "F"), ("q4", "fig", "D")]
EXPERIMENT: dict[str, Any] = {
    "id": "fruit",
    "description": "Which is better?",
    "data": {"documents_dir": "documents", "ground_truth_path": "ground_truth.json"},
    "benchmark": {"runs_per_query": 2, "top_k_values": [1, 3], "random_seed": 7},
    "embeddings": [{"model": FRUITS}],
    "backends": [{"name": "memory"}],
    "strategies": [{"name": "flat", "chunk_size": 40, "chunk_overlap": 5}],
}


def make_folder(folder: Path) -> None:
    (folder / "documents").mkdir()
    for id, text in DOCUMENTS.items():
        document = {"id": id, "title": id, "sections": [{"id": "s1", "heading": "Text", "level": 1, "content": text}]}
        (folder / "documents" / f"{id.lower()}.json").write_text(json.dumps(document))
    write_truth(folder, QUESTIONS)


def write_truth(folder: Path, questions: list[tuple[str, str, str]]) -> None:
    same = {"section_ids": ["s1"], "evidence": []}
    declared = [{"id": key, "question": text, "answer": text, "document_id": id, **same} for key, text, id in questions]
    (folder / "ground_truth.json").write_text(json.dumps(declared))


def write(folder: Path, **remaining: Any) -> Path:
    path = folder / "fruit.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, **remaining}))
    return path
