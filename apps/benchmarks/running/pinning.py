"""Rerankers of a benchmark, each in one revision, whichever worker scores its pairs and whenever."""

from apps.benchmarks.models import Benchmark
from apps.operations.leasing import UnfitWorkerError
from apps.retrieval.models import Index
from apps.retrieval.rerankers import Reranker, load_reranker
from benchbench.models import with_key


class RerankerRevisionError(UnfitWorkerError):
    """A reranker is here in another revision than the one that the benchmark began with."""

    code = "reranker"


class PinnedRerankers:
    """Loads rerankers in the revision that the benchmark's first worker had, and in no other."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark
        self._pinned: dict[str, str] = {}

    def load(self, name: str, index: Index) -> Reranker:
        """Return the reranker called `name` for an index. Raises what `load_reranker` does, RerankerRevisionError."""
        reranker = load_reranker(name, index)
        model, here = reranker.model_name, reranker.revision
        if self._pinned.get(model) != here:
            self._pinned[model] = pinned = self._pin(model, here)
            if pinned != here:
                raise RerankerRevisionError(
                    f'"{self._benchmark}" is reranked by {model} in revision {pinned}; here it is {here}. Install that '
                    "revision on a worker, or clone the benchmark to measure with another."
                )
        return reranker

    def _pin(self, model: str, revision: str) -> str:
        """Return the benchmark's revision of a model: the one stated, if no worker stated one before."""
        rows = Benchmark.objects.filter(pk=self._benchmark.pk)
        unpinned = rows.exclude(reranker_revisions__has_key=model)
        unpinned.update(reranker_revisions=with_key("reranker_revisions", model, revision))
        pinned: dict[str, str] = rows.values_list("reranker_revisions", flat=True).get()
        return pinned[model]
