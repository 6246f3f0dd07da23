"""config.yaml of the strategy benchmark's results directory: what runs again, by `run_benchmark --experiment`."""

from collections.abc import Iterable, Iterator

from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.repeating.manifests import definition_of, own_evaluations
from apps.datasets.models import DatasetVersion
from apps.results.exporters.base import slug_of
from apps.retrieval.models import Index
from benchbench.files.experiment import experiment_of
from benchbench.reading import strict_yaml

AGAIN = (
    "To run it again: manage.py run_benchmark --experiment config.yaml",
    "Its data is in the database, and is found there by the hashes below, whatever it is called by then.",
)
EXTERNAL = "This does not run: its rankings were made elsewhere, and nothing here can make them again."
MAX_ID = 100


def config_of(benchmark: Benchmark, version: DatasetVersion, runs: Iterable[Run]) -> str:
    """Return the experiment that was run, with every key; of another benchmark its experiment file without figures.

    What that cannot state, or the other files beside it are not of, is said above it. The experiment is read anew,
    since PostgreSQL keeps an object but not the order of its keys.
    """
    if config := benchmark.experiment.get("config"):
        return experiment_of(config, where="config").as_yaml()
    definition = definition_of(benchmark, own_evaluations(benchmark))
    told = [EXTERNAL] if benchmark.is_external else [*AGAIN, *_left_out(benchmark, version, runs)]
    comments = "".join(f"# {' '.join(sentence.split())}\n" for sentence in told)
    id = benchmark.experiment.get("id") or slug_of(benchmark)[:MAX_ID]
    return comments + strict_yaml.dump({"id": id, **definition})


def _left_out(benchmark: Benchmark, version: DatasetVersion, runs: Iterable[Run]) -> Iterator[str]:
    """Yield a sentence for whatever of the runs, or of the files beside them, does not come of running it again."""
    for index in dict.fromkeys(run.index for run in runs if run.index and run.index.status == Index.Status.FAILED):
        yield f'Its index "{index}" is left out, with the runs over it: it could not be built. {index.error}'
    if version != benchmark.dataset_version:
        yield (
            f"It asks version {benchmark.dataset_version.number} of the dataset, as the benchmark did; the values in "
            f"the files beside it are of version {version.number}, on which it was re-scored."
        )
