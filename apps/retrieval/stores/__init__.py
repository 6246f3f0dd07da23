"""Vector stores with copies of an index's vectors on this machine, one module each.

A new one copies its best sibling, joins here and in `ir.planning.ann`, and passes the tests of the contract and
of admission.

PostgreSQL stores the vectors of every index. Exact search of full vectors and pgvector search are in `search`.
"""

from apps.retrieval.stores.base import Store
from apps.retrieval.stores.chromadb_store import ChromaStore
from apps.retrieval.stores.faiss_store import FaissStore
from apps.retrieval.stores.lancedb_store import LanceStore
from apps.retrieval.stores.memory_store import MemoryStore
from apps.retrieval.stores.sqlite_vec_store import SqliteVecStore

ALL: tuple[Store, ...] = (MemoryStore(), SqliteVecStore(), ChromaStore(), FaissStore(), LanceStore())
STORES = {store.name: store for store in ALL}
