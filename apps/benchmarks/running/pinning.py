"""Rerankers of a benchmark, each in one revision, whichever worker scores its pairs and whenever."""

from apps.benchmarks.models import Benchmark, RerankerRevision
from apps.operations.leasing import UnfitWorkerError
from apps.retrieval.models import Index
from apps.retrieval.rerankers import Reranker, load_reranker


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
        """Return the benchmark's revision of a model: the one given, where no worker pinned one before."""
        pinned, _ = RerankerRevision.objects.get_or_create(
            benchmark=self._benchmark, model=model, defaults={"revision": revision}
        )
        return pinned.revision
