"""Families of models: whether a judge is kin to what made the rankings that it judges."""

import re

from apps.benchmarks.models import Run
from apps.benchmarks.provenance import llms_of
from apps.judging.models import LLMJudge
from benchbench.ir.planning.configuration import Configuration

# What marks a name as of a family, each by its first word; models that grew from another count as of it.
KNOWN = {
    "llama": "llama vicuna alpaca",
    "mistral": "mistral mixtral ministral codestral magistral",
    "gpt": "gpt davinci",
    "gemma": "gemma gemini",
    "qwen": "qwen qwq",
}


def family_of(model: str) -> str:
    """Return the family of a model by its name: qwen of `ollama:qwen2.5:7b` and of `Qwen/Qwen3-Reranker-0.6B`."""
    name = model.partition(":")[2] if re.match(r"[\w-]+:", model) else model
    name = name.rpartition("/")[2].lower()
    for family, marks in KNOWN.items():
        if any(mark in name for mark in marks.split()):
            return family
    letters = re.match(r"[a-z]+", name)
    return letters[0] if letters else name


def kinship(judge: LLMJudge, runs: list[Run]) -> list[str]:
    """Return a warning for each run that a model of the judge's own family reranked, or rewrote queries for.

    Judges favour what their kin brought up (Panickssery, Bowman and Feng, NeurIPS 2024): such a run may look better
    than it is.
    """
    family = family_of(judge.llm)
    warnings = []
    for run in runs:
        acts = [f"{model} {act}" for model, act in _asked_by(run) if family_of(model) == family]
        if acts:
            warnings.append(
                f'{judge.llm} judges a run that its own family of models, {family}, took part in: in "{run}" '
                f"{' and '.join(acts)}."
            )
    return warnings


def _asked_by(run: Run) -> list[tuple[str, str]]:
    """The models that took part in a run's rankings, each with what it did."""
    if run.benchmark.is_external:
        return []
    config = Configuration.from_dict(run.config)
    acts = [(model, "is asked in its search") for model in llms_of(run)]
    if config.rewrites and config.llm:
        acts = [(model, act) for model, act in acts if model != config.llm] + [(config.llm, "rewrites queries")]
    if config.use_reranker and config.reranker:
        acts.append((config.reranker, "reranks"))
    return acts
