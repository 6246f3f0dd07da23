"""Plans of experiment files: the combinations, and why some cannot run here."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.retrieval.availability import encoder_of, lack, parts_of
from apps.retrieval.reusing import Ingredients
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.files.experiment import Combination, Experiment, combinations, read_experiment
from benchbench.ir.planning.strategies import STRATEGIES
from benchbench.reading.strict_json import attributes

ASKED = ("provider", "base_url", "temperature", "max_tokens")  # what an index keeps of its language model
SEEDS = 2**31  # as many as servers of language models and libraries tell apart


class ExperimentError(BenchbenchError):
    """An experiment that cannot be run here."""

    code = "experiment"


@dataclass(frozen=True)
class Planned:
    """An experiment with absolute paths, its combinations by name, and by name why some of them cannot run here."""

    path: Path
    experiment: Experiment
    combinations: Mapping[str, Combination]
    lacking: Mapping[str, str]

    @property
    def ingredients(self) -> list[Ingredients]:
        """What the indexes of the combinations are made of: those over several backends share one."""
        made_of = [ingredients(combination, self.experiment) for combination in self.combinations.values()]
        return [each for place, each in enumerate(made_of) if each not in made_of[:place]]

    @property
    def sentence(self) -> str:
        """How much it is: "Experiment baseline: 4 combinations of 2 strategies × 2 backends × …; 3 can run here. …"."""
        experiment, total = self.experiment, len(self.combinations)
        able = total - len(self.lacking)
        axes = [
            (len(experiment.strategies), "strategy", "strategies"),
            (len(experiment.backends), "backend", "backends"),
            (len(experiment.embeddings), "embedding", "embeddings"),
            (len(experiment.llms), "language model where one is asked", "language models where one is asked"),
        ]
        axes_told = " × ".join(
            f"{number} {singular if number == 1 else plural}" for number, singular, plural in axes if number
        )
        times = counted(experiment.benchmark.runs_per_query, "time")
        chunks = counted(max(experiment.benchmark.top_k_values), "chunk")
        return (
            f"Experiment {experiment.id}: {counted(total, 'combination')} of {axes_told}; {able} can run here. Each "
            f"query is asked {times} by each, for {chunks}."
        )

    def as_text(self) -> str:
        lines = [self.sentence]
        for place, name in enumerate(self.combinations, start=1):
            cannot = f": cannot run, {self.lacking[name]}" if name in self.lacking else ""
            lines.append(f"{place:>3} {name}{cannot}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment.as_dict(),
            "combinations": [
                {
                    "name": name,
                    "strategy": combination.strategy.name,
                    "backend": combination.backend.name,
                    "embedding_model": combination.embedding.model,
                    "llm_model": combination.llm.model if combination.llm else None,
                    "parameters": combination.parameters,
                    "error": self.lacking.get(name),
                }
                for name, combination in self.combinations.items()
            ],
            "total_runs": len(self.combinations),
            "runs_that_can_run": len(self.combinations) - len(self.lacking),
        }


def plan_experiment(path: Path, *, preset: str | None = None) -> Planned:
    """Return what the experiment of a file would run, at its own size or at that of a preset. Nothing is written.

    Raises a sentence that names file and key for what is stated wrongly, and ExperimentError for more combinations than
    BENCHMARK_MAX_RUNS.
    """
    experiment = _settled(read_experiment(path), path.parent)
    if preset:
        experiment = experiment.preset(preset)
    combined = _different(combinations(experiment, where=path.name), experiment)
    if len(combined) > settings.BENCHMARK_MAX_RUNS:
        raise ExperimentError(
            f"{path.name} combines into {len(combined)} runs; at most {settings.BENCHMARK_MAX_RUNS} are allowed "
            "(BENCHMARK_MAX_RUNS). Shorten a list."
        )
    lacks = {
        name: lack({**parts_of(ingredients(combination, experiment), to_build=True), "store": combination.backend.name})
        for name, combination in combined.items()
    }
    return Planned(path, experiment, combined, {name: lack for name, lack in lacks.items() if lack})


def _different(combined: Mapping[str, Combination], experiment: Experiment) -> dict[str, Combination]:
    """Leave out what is another combination under another name of its provider."""
    made_of: list[tuple[Ingredients, str]] = []
    different = {}
    for name, combination in combined.items():
        searched = ingredients(combination, experiment), combination.backend.name
        if searched not in made_of:
            made_of.append(searched)
            different[name] = combination
    return different


def _settled(experiment: Experiment, directory: Path) -> Experiment:
    """Return the experiment with paths that lead to the same from wherever it is kept: relative ones start there."""

    def settle(path: str) -> str:
        return str((directory / path).resolve())

    data = replace(
        experiment.data,
        documents_dir=settle(experiment.data.documents_dir),
        ground_truth_path=settle(experiment.data.ground_truth_path),
    )
    backends = [
        replace(backend, path=settle(backend.path)) if backend.path else backend for backend in experiment.backends
    ]
    return replace(experiment, data=data, backends=tuple(backends))


def ingredients(combination: Combination, experiment: Experiment) -> Ingredients:
    """Return what the index of a combination is made of. Strategies call size and overlap of chunks by those names.

    Chunks of `flat` are cut section by section, as those of the other strategies are: they are compared by sections.
    The seed of the experiment is that of a tree's clusters, and of a language model's answers.
    """
    seed = experiment.benchmark.random_seed % SEEDS
    declared = STRATEGIES[combination.strategy.name].parameters
    settled = {name: value for name, value in (("sections", True), ("seed", seed)) if name in declared}
    parameters = combination.parameters | settled
    llm = combination.llm
    return Ingredients(
        strategy=combination.strategy.name,
        chunk_parameters={key.removeprefix("chunk_"): value for key, value in parameters.items()},
        encoder=encoder_of(combination.embedding.model, combination.embedding.provider),
        llm=llm.model if llm else "",
        llm_parameters=attributes(llm, *ASKED) | {"seed": seed} if llm else {},
    )
