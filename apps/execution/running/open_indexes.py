"""The indexes of a benchmark: made by its first batch if necessary; opened, and encoded for, by the others."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models.functions import Now
from numpy.typing import NDArray

from apps.execution.launching import UNFINISHED, split_batches
from apps.execution.running.builds import discard_other_builds
from apps.operations.handlers import Faults
from apps.operations.leasing import Lease, Stopped
from apps.operations.models import Batch
from apps.records.models import Benchmark, Run
from apps.records.models.batches import BenchmarkWork
from apps.records.planning import is_prepared, plan_of
from apps.retrieval.encoders.base import Kind, build_vector_error, find_vector_flaws
from apps.retrieval.encoders.encoding import embed_queries, load_index_encoder
from apps.retrieval.models import Index
from apps.retrieval.search.arms import make_arm
from apps.retrieval.search.open_indexes import OpenIndex, open_index
from apps.retrieval.search.words import make_words
from benchbench.database.ordered import update_in_order
from benchbench.errors import BenchbenchError, UnfitWorkerError, error_text
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.lexical import Lexical
from benchbench.ir.planning.plan import Plan
from benchbench.ir.planning.stages import DenseStage, LexicalStage, Stage
from benchbench.ir.records import ScoredList


class OpenIndexes(dict[str | None, Any]):
    """Indexes by their name in configurations, opened on access.

    An index that cannot be opened raises on access, so only the stages that need it fail.
    """

    def __getitem__(self, name: str | None) -> OpenIndex:
        return open_index(super().__getitem__(name))


def prepare_index(stage: DenseStage | LexicalStage, indexes: Mapping[str | None, OpenIndex]) -> OpenIndex:
    """Open and prepare the index that a stage searches, so that this is not part of a query's cost."""
    index = indexes[stage.index]
    index.prepare(stage.dimensions if isinstance(stage, DenseStage) else None, stage.filter_share)
    if isinstance(stage, LexicalStage):
        index.words.prepare(Lexical.parse(stage.lexical))
    return index


def find_unread(
    index: OpenIndex, stage: LexicalStage, texts: Sequence[str], lists: Sequence[ScoredList]
) -> dict[str, list[int]]:
    """Return why lexical search found nothing for some texts: {NO_TERM or UNKNOWN_TERMS: numbers of the texts}."""
    reasons: dict[str, list[int]] = {}
    for number, (text, ranked) in enumerate(zip(texts, lists, strict=True)):
        if not len(ranked) and (reason := index.words.explain_nothing(Lexical.parse(stage.lexical), text)):
            reasons.setdefault(reason, []).append(number)
    return reasons


MIN_COSINE = 0.99999


class StageError(BenchbenchError):
    """The result of a stage would be wrong."""

    code = "stage"


class ChangedModelError(BenchbenchError):
    """A model gives other vectors than when an index was built."""

    code = "stage"


def time_encoding_afresh(index: OpenIndex, texts: list[str], stored_vectors: NDArray[np.float32], kind: Kind) -> float:
    """Encode texts again, and return the milliseconds per text.

    The `stored_vectors` (n, d) rank the results, so they must come from the same model. Raises
    ChangedModelError if they do not, and EncoderError.
    """
    encoder = load_index_encoder(index.index)
    vectors, ms = embed_queries(encoder, texts, kind)
    for row, flaw in find_vector_flaws(encoder, vectors, len(texts)).items():
        raise build_vector_error(encoder.model_name, f"the query {texts[row][:80]!r}", flaw)
    if not index.index.vector_source and (np.einsum("qd,qd->q", vectors, stored_vectors) < MIN_COSINE).any():
        raise ChangedModelError(
            f"Encoding a query again with {index.index.encoder} gave a vector other than the stored one: the model's "
            "files have changed. Make a new version of the index."
        )
    return ms / len(texts)


def prepare(batch: Batch, lease: Lease) -> None:
    """Make the missing indexes before any query is timed, and add the batches of queries.

    An index that cannot be made fails only the runs that need it. `prepared` in the batch's result has the facts about
    each index, by stage key.
    """
    operation = batch.operation
    benchmark = Benchmark.objects.select_related("dataset_version").get(pk=operation.subject_id)
    run_ids = BenchmarkWork.from_operation(operation).run_ids
    runs = list(benchmark.runs.filter(pk__in=run_ids, status__in=UNFINISHED).select_related("index"))
    plan = plan_of(runs)
    preparations = _find_preparations(plan, runs)
    waiting = {run.pk for _, affected in preparations.values() for run in affected}
    pending = benchmark.runs.filter(pk__in=waiting, status=Run.Status.PENDING)
    update_in_order(pending, status=Run.Status.INDEXING, started_at=Now())
    prepared: dict[str, Any] = {}
    failed: dict[Run, str] = {}
    faults = Faults()
    for key, (stage, affected) in preparations.items():
        lease.check()
        try:
            with lease.interrupting():
                prepared[key] = _prepare(affected[0].index, stage)
        except (Stopped, UnfitWorkerError):
            raise
        except Exception as error:
            is_expected = isinstance(error, BenchbenchError)
            if not is_expected and batch.attempts < settings.BENCHBENCH_MAX_ATTEMPTS:
                raise
            message = error_text(error)
            faults.add(message, error)
            failed |= dict.fromkeys(affected, f"Its index could not be made: {message}")
    remaining = [run for run in runs if run not in failed]
    builds = {key: facts["build"] for key, facts in prepared.items() if facts.get("build")}
    failed |= discard_other_builds(benchmark, remaining, builds)
    remaining = [run for run in runs if run not in failed]
    remaining_plan = plan.select([str(run.pk) for run in remaining])
    result = {"prepared": prepared, **faults.as_result()}
    with lease.commit(result, batches=split_batches(benchmark, remaining, remaining_plan) if remaining else ()):
        for run, message in failed.items():
            benchmark.runs.filter(pk=run.pk).update(status=Run.Status.FAILED, error_message=message, completed_at=Now())


def _find_preparations(plan: Plan, runs: Sequence[Run]) -> dict[str, tuple[Stage, list[Run]]]:
    """Return the stages whose index must be made, by key, each with the runs that need it."""
    by_key = {str(run.pk): run for run in runs}
    preparations: dict[str, tuple[Stage, list[Run]]] = {}
    for planned in plan.runs:
        for stage in filter(is_prepared, planned.stages):
            preparations.setdefault(stage.key, (stage, []))[1].append(by_key[planned.run_key])
    return preparations


def _prepare(index: Index | None, stage: Stage) -> dict[str, object]:
    """Make the index of a stage and return facts about it. Raises AnnIndexError, StoreError and LexicalIndexError."""
    assert index is not None
    assert index.chunk_set is not None
    if isinstance(stage, DenseStage):
        return make_arm(index, Ann.parse(stage.ann), stage.depth, stage.filter_share)
    assert isinstance(stage, LexicalStage)
    started = time.perf_counter()
    words = make_words(index.chunk_set, Lexical.parse(stage.lexical))
    return {"bytes": words.size_bytes, "seconds": round(time.perf_counter() - started, 3), "build": words.fingerprint}
