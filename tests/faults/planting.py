"""Faults, planted in a worker's process: at a named point of a stage something happens, once or some times.

Each wrapped thing is a function that the stage calls by the name it has in that module; no code of the site knows.
"""

import ctypes
import importlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

# What happens. A worker is a group of processes: it is frozen and killed as a whole, as a container is.
# Of a point where something is made, an action gets that, and returns what becomes of it.
ACTIONS: dict[str, Callable[..., Any]] = {}


def action(act: Callable[[], None], *, name: str = "") -> Callable[[], None]:
    ACTIONS[name or act.__name__.strip("_").replace("_", " ")] = act
    return act


@action
def freeze() -> None:
    """Freeze, as a paused container or a host that swaps does, until someone wakes it.

    The kernel may stop this thread only after others of its process: it must not commit meanwhile.
    """
    os.killpg(0, signal.SIGSTOP)
    time.sleep(1)


@action
def kill() -> None:
    """End silently."""
    os.killpg(0, signal.SIGKILL)


@action
def die() -> None:
    """End silently, alone: the process that watches over this one lives on."""
    os.kill(os.getpid(), signal.SIGKILL)


@action
def break_() -> None:
    """Fail with an error that may pass."""
    raise OSError(5, "The disk is away")


@action
def hang() -> None:
    """Wait for ever in native code, where no signal and no exception of Python reaches."""
    _deadlock(ctypes.CDLL(None))


@action
def seize() -> None:
    """Hang, and hold the interpreter's lock meanwhile: no other thread of the process runs either."""
    _deadlock(ctypes.PyDLL(None))


def _deadlock(library: Any) -> None:
    mutex = ctypes.create_string_buffer(128)  # zeros: PTHREAD_MUTEX_INITIALIZER
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)


@dataclass(frozen=True)
class Point:
    """A point in a stage: a function, by where it is called from, and whether before, after or during its rows, or what
    it made.
    """

    module: str
    name: str
    when: str = "before"


# By kind of operation and stage. Of a commit the transaction is open, of a claim it is not any more.
POINTS = {
    "claimed": Point("apps.operations.working", "claim", "after"),
    "benchmark: planned": Point("apps.execution.running.execution", "_load_work", "after"),
    "benchmark: prepared": Point("apps.execution.running.open_indexes", "_prepare", "after"),
    "benchmark: encoding": Point("apps.retrieval.encoders.registry", "KeywordEncoder.embed_batch"),
    "benchmark: encoded": Point("apps.execution.running.stages", "compute_query_vectors", "after"),
    "benchmark: reranking": Point("apps.retrieval.rerankers.late_interaction", "LateInteractionReranker.score"),
    "benchmark: reranked": Point("apps.execution.running.pairs", "_check"),
    "benchmark: searched": Point("apps.execution.running.execution", "run_shared", "after"),
    "benchmark: commit begun": Point("apps.execution.running.execution", "store_final_lists"),
    "benchmark: amid COPY": Point("benchbench.database.binary", "copy_rows", "amid"),
    "benchmark: commit stored": Point("apps.execution.running.execution", "store_stage_lists", "after"),
    "benchmark: committed": Point("apps.operations.working", "conclude"),
    "benchmark: finishing": Point("apps.execution.running.finishing", "evaluate_runs"),
    "benchmark: finished": Point("apps.execution.running.finishing", "_end", "after"),
    "store: filling": Point("apps.retrieval.stores.filling", "seal_folder"),
    "store: searching": Point("apps.retrieval.stores.sqlite_vec_store", "SqliteVecCollection.build_nominator"),
    "index: chunked": Point("apps.retrieval.chunking", "store_pieces", "after"),
    "index: encoded": Point("apps.retrieval.tasks", "encode_chunks", "after"),
    "index: commit begun": Point("apps.retrieval.tasks", "store_chunks"),
    "index: commit stored": Point("apps.retrieval.tasks", "store_chunks", "after"),
    "index: words": Point("apps.retrieval.search.lexical_indexes", "sha256"),
    "index: finishing": Point("apps.retrieval.building", "finish"),
    "index: finished": Point("apps.retrieval.building", "finish", "after"),
    "tree: summarised": Point("apps.retrieval.growing", "_store"),
    "tree: stored": Point("apps.retrieval.growing", "_store", "after"),
    "tree: level grown": Point("apps.retrieval.tasks", "grow", "after"),
    "judging: asked": Point("apps.judging.tasks", "read_answer"),
    "judging: graded": Point("apps.judging.tasks", "_grade", "after"),
    "judging: finished": Point("apps.judging.tasks", "trim_answers", "after"),
    "resolve: decided": Point("apps.mappings.tasks", "store_rulings"),
    "isolated: searched": Point("apps.execution.running.execution", "run_isolated", "after"),
    "resolve: stored": Point("apps.mappings.tasks", "store_rulings", "after"),
    "measure: commit begun": Point("apps.records.measuring.again", "store_values"),
    "measure: commit stored": Point("apps.records.measuring.again", "store_values", "after"),
    "measure: finished": Point("apps.records.measuring.again", "measure_again", "after"),
    "model: encoded": Point("apps.retrieval.encoders.registry", "KeywordEncoder.embed_batch", "made"),
}


@dataclass(frozen=True)
class Fault:
    """An action at a point: at its `calls` first calls, of all processes together, that are about a text if any.

    `token` is the beginning of the names of files that say that it happened.
    """

    point: str
    action: str
    token: str
    calls: int = 1
    about: str = ""

    def plant(self) -> None:
        point = POINTS[self.point]
        owner: Any = importlib.import_module(point.module)
        *classes, name = point.name.split(".")
        for piece in classes:
            owner = getattr(owner, piece)
        complete = getattr(owner, name)

        def faulty(*args: Any, **options: Any) -> Any:
            concerned = self.about in repr((args, options))
            if point.when == "amid" and concerned:
                *remaining, rows = args
                return complete(*remaining, self._amid(rows), **options)
            if point.when == "before" and concerned:
                self._happen()
            created = complete(*args, **options)
            if point.when == "made" and concerned:
                return self._happen(created)
            if point.when == "after" and concerned:
                self._happen()
            return created

        setattr(owner, name, faulty)

    def _amid(self, rows: Iterable[Any]) -> Iterator[Any]:
        for number, row in enumerate(rows):
            if number == 1:
                self._happen()
            yield row

    def _happen(self, *created: Any) -> Any:
        for call in range(self.calls):
            try:
                os.close(os.open(f"{self.token}.{call}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return ACTIONS[self.action](*created)
        return created[0] if created else None
