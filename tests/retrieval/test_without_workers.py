"""An encoder, a store and a strategy in a plain Python process: no settings, no database, and nothing that works."""

import subprocess
import sys

SCRIPT = """
import sys
from pathlib import Path
from apps.collections.records import DocumentRecord
from apps.retrieval.encoders import load_encoder
from apps.retrieval.stores import STORES
from apps.retrieval.stores.filling import open_collection
from apps.retrieval.strategies import get_strategy
from apps.retrieval.strategies.base import Asked
from benchbench.ir.planning.ann import Ann
from benchbench.ir.ranking import pair_scores, top

encoder, flat = load_encoder("keyword:apple,pear"), get_strategy("flat")
documents = [DocumentRecord(title, title, "") for title in ("plum", "pear", "apple")]
vectors = encoder.embed_batch([piece.text for document in documents for piece in flat.chunks(document, {})])
setting = Ann.parse("sqlite_vec:exact")
opened = open_collection(Path(sys.argv[1]) / "fruit", STORES["sqlite_vec"], setting, vectors, holds="fruit")


class View:
    def nearest(self, queries, depth, masks):
        nominated = [opened.collection.nominator(setting, None)(query, depth) for query in queries]
        return [top(pair_scores(vectors[ids], query), depth, ids=ids) for ids, query in zip(nominated, queries)]


(query,) = encoder.embed_batch(["a pear"], kind="query")
(answer,) = flat.search([Asked("a pear", query)], View(), 1, {})
print(documents[answer.ranked.ids[0]].external_id, [name for name in sys.modules if name.startswith("apps.operations")])
"""


def test_an_encoder_a_store_and_a_strategy_find_a_document(tmp_path):
    environment = {"PATH": "", "PYTHONPATH": "."}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("pear []\n", "")
