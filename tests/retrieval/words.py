"""Six words, three documents in sections, and an encoder that counts those words: searches with known answers."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection
from apps.collections.sources import find_sectioned, read_sectioned
from apps.retrieval.encoders.base import Kind, Vectors

WORDS = ("alpha", "beta", "gamma", "delta", "eps", "zeta")
BAG = "bag:words"
DOCUMENTS = {  # title, summary, and of each section its heading and content
    "A": ("alpha doc", "alpha", {"sec_1": ("Hist", "alpha beta"), "sec_2": ("Use", "alpha gamma")}),
    "B": ("beta doc", "beta", {"sec_1": ("Hist", "beta beta delta"), "sec_2": ("Use", "eps")}),
    "C": ("gamma doc", "gamma gamma", {"sec_1": ("H", "gamma zeta"), "sec_3": ("U", "beta zeta")}),
}


class BagOfWords:
    """How often a text has each of WORDS, of length 1. It must have one of them."""

    revision = "1"
    dimension = len(WORDS)

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self.prompts: dict[Kind, str] = {"query": "", "document": ""}

    def count_cut(self, texts: Sequence[str], *, kind: Kind = "document") -> None:
        return None

    def embed_batch(self, texts: Sequence[str], *, kind: Kind = "document") -> Vectors:
        words = [re.findall(r"\w+", text.lower()) for text in texts]
        counts = np.array([[of_text.count(word) for word in WORDS] for of_text in words], float)
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def write_documents(directory: Path) -> None:
    directory.mkdir(parents=True)
    for id, (title, summary, pieces) in DOCUMENTS.items():
        sections = [{"id": id, "heading": head, "level": 1, "content": text} for id, (head, text) in pieces.items()]
        fields = {"id": id, "title": title, "summary": summary, "sections": sections}
        (directory / f"{id}.json").write_text(json.dumps(fields))


def import_words(directory: Path) -> Collection:
    write_documents(directory / "documents")
    collection = create_collection("words")
    import_documents(collection, read_sectioned(find_sectioned(directory)))
    collection.refresh_from_db()
    return collection
